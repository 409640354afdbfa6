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
        command.add_argument("--json", action="store_true", help="print the result as JSON on stdout")
        if name == "sweep":
            command.add_argument("--dry-run", action="store_true", help="print the plan and stop")
    return parser


_COMMANDS = {
    "run": ("run one experiment", "paribus run [--json] [OVERRIDE ...]", OVERRIDES),
    "sweep": (
        "run a baseline, and variants that differ from it in one variable each",
        "paribus sweep [--json] [--dry-run] [OVERRIDE ...]",
        OVERRIDES + SWEEP,
    ),
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
    from runner.app import launch

    os.environ["PARIBUS_FORMAT"] = "json" if options.json else "text"
    showing = any(argument.partition("=")[0] in _SHOWING for argument in rest)
    if options.command == "sweep" and not showing:
        rest = ["-m", *rest, *(["++sweep.dry_run=true"] if options.dry_run else [])]
    launch(rest)
    return ExitCode.OK


_SHOWING = {"--cfg", "-c", "--info", "-i", "--hydra-help", "--shell-completion", "-sc"}
"""Hydra's options that print and do not run; they do not go together with its -m."""


def _told(message: object, code: ExitCode) -> int:
    sys.stderr.write(f"paribus: {message}\n")
    return code
