"""The command line. Imports nothing heavy: help and mistakes answer at once."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper

from runner import __version__
from runner.errors import ExitCode, ParibusError

OVERRIDES = """\
overrides are Hydra's: group=option (embedder=lsa), key=value (chunker.size=256); `--cfg job` prints the
configuration instead of running, `--config-dir DIR` adds a folder with more YAML, `--hydra-help` lists the rest.
"""
SWEEP = """\
values to sweep: a,b,c  range(1,10,2)  choice(a,b)  glob(*) of a group; presets: sweep=chunk_size, sweep=all
combinations of several variables: hydra/sweeper=basic; several processes: launcher=joblib
"""
DEFINITIONS = """\
examples: paribus definitions --by framework
          paribus definitions show deepeval/faithfulness penalize_ambiguous_claims=true --prompts
          paribus definitions diff ragas/faithfulness deepeval/faithfulness
a definition of your own is module:Class; `show` and `diff` import the framework to read its prompts (5 to 15 s)
"""
WORDS = "an id, or module:Class, and parameters that are not at their defaults; values are JSON, or plain text"
EXIT_CODES = "exit codes: 0 done; 1 something that ran failed; 2 nothing ran, the input is wrong; 130 interrupted"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `paribus …` and return its exit code (see ExitCode)."""
    parser = _parser()
    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal's encoding must not cost a finished table
    options, rest = parser.parse_known_args(arguments)
    if options.command is None:
        parser.print_help()
        return ExitCode.USAGE
    return _guarded(options, [*rest])


def hydra_habit(argv: Sequence[str] | None = None) -> int:
    """Run `python -m runner …`: Hydra's own habits, `-m` for a sweep; subcommands are understood too."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments and (arguments[0] in _COMMANDS or arguments[0] in ("--help", "-h", "--version")):
        return main(arguments)
    sweeping = {"-m", "--multirun"}
    command = "sweep" if sweeping & set(arguments) else "run"
    return main([command, *(argument for argument in arguments if argument not in sweeping)])


def _parser() -> argparse.ArgumentParser:
    shape = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        "paribus",
        description="RAG experiments in which one thing changes at a time.",
        epilog=EXIT_CODES,
        formatter_class=shape,
    )
    parser.add_argument("--version", action="version", version=f"paribus {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, (summary, usage, epilog) in _COMMANDS.items():
        command = commands.add_parser(
            name,
            help=summary,
            description=summary,
            usage=usage,
            epilog=f"{epilog}\n{EXIT_CODES}",
            formatter_class=shape,
            allow_abbrev=False,
        )
        _ARGUMENTS[name](command)
    return parser


def _run_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="print the result as JSON on stdout")


def _sweep_arguments(command: argparse.ArgumentParser) -> None:
    _run_arguments(command)
    command.add_argument("--dry-run", action="store_true", help="print the plan and stop")


def _definitions_arguments(command: argparse.ArgumentParser) -> None:
    by = command.add_argument("--by", choices=("asks", "framework"), default="asks")
    by.help = "group the list by what the definitions ask (the default), or by framework"
    _run_arguments(command)
    actions = command.add_subparsers(dest="action", metavar="ACTION", prog="paribus definitions")
    for name, summary, usage in (
        ("show", "print the whole card of one definition", "show ID [PARAMETER=VALUE ...] [--prompts] [--json]"),
        ("diff", "print where the cards of two definitions differ", "diff ID [PARAMETER=VALUE ...] ID [...] [--json]"),
    ):
        action = actions.add_parser(
            name, help=summary, description=summary, usage=f"paribus definitions {usage}", epilog=EXIT_CODES
        )
        action.add_argument("words", nargs="*", metavar="ID [PARAMETER=VALUE ...]", help=WORDS)
        action.add_argument(
            "--json", action="store_true", default=argparse.SUPPRESS, help="print the result as JSON on stdout"
        )
        if name == "show":
            action.add_argument("--prompts", action="store_true", help="print the text of every prompt too")


def _schema_arguments(command: argparse.ArgumentParser) -> None:
    from runner.definitions import SCHEMAS

    command.add_argument("type", choices=tuple(SCHEMAS), metavar="TYPE", help=" | ".join(SCHEMAS))


_COMMANDS = {
    "run": ("run one experiment", "paribus run [--json] [OVERRIDE ...]", OVERRIDES),
    "sweep": (
        "run a baseline, and variants that differ from it in one variable each",
        "paribus sweep [--json] [--dry-run] [OVERRIDE ...]",
        OVERRIDES + SWEEP,
    ),
    "definitions": (
        "list the definitions of scores, or show what one means",
        "paribus definitions [--by asks|framework] [--json] [show | diff ...]",
        DEFINITIONS,
    ),
    "schema": ("print the JSON Schema of what paribus reads and writes", "paribus schema TYPE", ""),
}
_ARGUMENTS = {
    "run": _run_arguments,
    "sweep": _sweep_arguments,
    "definitions": _definitions_arguments,
    "schema": _schema_arguments,
}


def _guarded(options: argparse.Namespace, rest: list[str]) -> int:
    try:
        return _dispatch(options, rest)
    except ParibusError as error:
        return _told(error, error.exit_code)
    except KeyboardInterrupt:
        return _told(
            "stopped. What was finished is kept, and the same command goes on from there.", ExitCode.INTERRUPTED
        )
    except Exception as error:
        from runner.hydra_errors import explained

        sentence = explained(error)
        if sentence is not None:
            return _told(sentence, ExitCode.USAGE)
        if os.environ.get(TRACEBACK):
            raise
        place = _last_place(error)
        return _told(f"{place}{type(error).__name__}: {error} ({TRACEBACK}=1 prints where from)", ExitCode.FAILED)


TRACEBACK = "PARIBUS_TRACEBACK"
"""Environment variable that has an unforeseen error printed with its traceback."""


def _last_place(error: Exception) -> str:
    from traceback import extract_tb

    frames = extract_tb(error.__traceback__)
    return f"{frames[-1].filename}:{frames[-1].lineno}: " if frames else ""


def _dispatch(options: argparse.Namespace, rest: list[str]) -> int:
    if options.command in ("definitions", "schema"):
        try:
            code = _looked_up(options, rest)
            sys.stdout.flush()
        except BrokenPipeError:  # `| head` has read enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = ExitCode.OK
        return code
    from runner.app import launch

    os.environ["PARIBUS_FORMAT"] = "json" if options.json else "text"
    showing = any(argument.partition("=")[0] in _SHOWING for argument in rest)
    if options.command == "sweep" and not showing:
        rest = ["-m", *rest, *(["++sweep.dry_run=true"] if options.dry_run else [])]
    launch(rest)
    return ExitCode.OK


def _looked_up(options: argparse.Namespace, rest: list[str]) -> int:
    from runner import console, definitions

    command = f"paribus {options.command}"
    action = getattr(options, "action", None)
    unknown = [word for word in rest if word.startswith("-") or action is None]
    if unknown:
        return _told(f"{unknown[0]}: no such argument; `{command} --help` lists what there is", ExitCode.USAGE)
    if options.command == "schema":
        console.show_schema(definitions.schema_of(options.type))
        return ExitCode.OK
    os.environ["PARIBUS_FORMAT"] = "json" if options.json else "text"
    if action is None:
        console.show_definitions(*definitions.catalogue(), by=options.by)
        return ExitCode.OK
    words = [*options.words, *rest]  # argparse leaves parameters that follow an option over
    if action == "show":
        (spec,) = definitions.specs(words, 1)
        console.show_definition(definitions.card(spec, options.prompts))
    else:
        console.show_differences(*(definitions.card(spec) for spec in definitions.specs(words, 2)))
    return ExitCode.OK


_SHOWING = {"--cfg", "-c", "--info", "-i", "--hydra-help", "--shell-completion", "-sc"}
"""Hydra's options that print and do not run; they do not go together with its -m."""


def _told(message: object, code: ExitCode) -> int:
    sys.stderr.write(f"paribus: {message}\n")
    return code
