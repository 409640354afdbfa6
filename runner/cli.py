"""The command line. Imports nothing heavy: help and mistakes answer at once."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from runner import __version__
from runner.errors import TRACEBACK, ConfigError, ExitCode, ParibusError, unforeseen

if TYPE_CHECKING:
    _Parsers = argparse._SubParsersAction[argparse.ArgumentParser]

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
RECORD = """\
A run writes the replies of a judge that is a model down in any case. `record` names the file, takes replies that were
kept from earlier runs with it, then scores everything again from the file alone, and fails where a reply is missing or
a score is another: what it leaves can be committed and replayed. A recording of the same judge is continued.
"""
JUDGE = """\
examples: paribus judge align human.jsonl judge=openai judge.model=qwen2.5:7b-instruct --out alignment
          paribus judge align human.jsonl --run mlruns/results/single/20261130T101500-000000
          paribus judge sample --share 0.1 --run mlruns/results/single/20261130T101500-000000 --to review.html
          paribus judge labels review.jsonl --into my_test_set/questions.jsonl
          paribus judge freeze --run mlruns/results/single/20261130T101500-000000 --to judge_frozen.json
the format of human.jsonl, and what the figures mean: docs/judges.md
"""
AUDIT = """\
examples: paribus audit --example
          paribus audit answers.jsonl judge=openai judge.model=qwen2.5:7b-instruct
          paribus audit answers.csv --columns question=user_query answer=bot_reply
          paribus audit --run latest --definitions ragas/faithfulness deepeval/faithfulness
          paribus audit human.jsonl --formulas-only
          paribus audit --ranking .R.R. --relevant 3
          paribus audit --versions deepeval==4.2.6 deepeval==4.3.1 --definitions deepeval/faithfulness
what it reads and writes, and how the parts of a difference are computed: docs/audit.md
"""
ACCEPT = """\
examples: paribus accept latest
          paribus accept mlruns/results/single/20261130T101500-000000 --to baselines/judged.json
The file is small and made for review: commit it. Where the run is tracked, it gets the tag paribus.accepted too.
overrides: tracking.folder=..., tracking.uri=..., tracking.experiment=...
"""
GATE = """\
examples: paribus gate latest
          paribus gate latest --baseline baseline.json --junit gate.xml --summary gate.md
          paribus gate latest --rules gate.yaml
          paribus gate latest --baseline mlruns/results/single/20261130T101500-000000
without --baseline: baseline.json here, else the tracked run that was accepted last
rules: conf/gate/default.yaml, or a YAML file with the same keys
overrides: tracking.folder=..., tracking.uri=..., tracking.experiment=...
what a gate looks at, and ready jobs for CI: docs/ci.md
exit codes of gate: 0 passed; 1 regression; 2 it cannot be told: not comparable, something missing, or broken input
"""
COMPARE = """\
examples: paribus compare baseline latest
          paribus compare mlruns/results/20261130T101500-000000/0 chunker.size=400 --out difference
          paribus compare baseline latest --slice split:held_out
a run is a result folder or a file in one, the id or name of a tracked run, or `latest`; BASE may be `baseline`: that of
the candidate's sweep, else the run accepted last. What each column means: docs/compare.md
exit codes of compare: 0 compared; 1 nothing could be compared; 2 the input is wrong
"""
REPORT = """\
examples: paribus report
          paribus report mlruns/results/20261130T101500-000000 --out report
          paribus report latest --baseline mlruns/results/single/20261130T101500-000000
writes report.html (one file, for people who never saw paribus), report.md (for a pull request), report.json and
charts/*.svg, into `report` in the folder of the sweep or run where --out names no other. SWEEP is the folder, the name
or the MLflow id of a sweep, RUN a result folder, or the id or name of a tracked run; without either: the newest sweep,
else the newest run
overrides: tracking.folder=..., tracking.uri=..., tracking.experiment=...
what the report shows: docs/report.md
"""
DIAGNOSE = """\
examples: paribus diagnose latest
          paribus diagnose chunker.size=400 --baseline baseline --unjudged unjudged.csv
          paribus diagnose latest diagnosis.buried_from=3
          paribus diagnose --labels unjudged.csv --into my_test_set/questions.jsonl
a run is a result folder, the id or name of a tracked run, or `latest`; --baseline may be `baseline`: that of the run's
sweep. overrides: diagnosis.KEY=... (conf/diagnosis/default.yaml), tracking.folder=..., tracking=off
what each fault means, and by which pattern it is told: docs/diagnosis.md
"""
UI = """\
examples: paribus ui
          paribus ui tracking.folder=other_runs --port 5001
          paribus ui tracking.uri=http://mlflow.example:5000 --print
starts MLflow's own server for a database on this machine, for this machine only, and opens the list of runs with their
variable, value and differences; of a server that runs elsewhere it opens the address. --print starts and opens nothing
overrides: tracking.folder=..., tracking.uri=..., tracking.experiment=...
what is where in MLflow: docs/mlflow.md
"""
CONFIG_DIR = "--config-dir="
WORDS = "an id, or module:Class, and parameters that are not at their defaults; values are JSON, or plain text"
EXIT_CODES = "exit codes: 0 done; 1 something that ran failed; 2 nothing ran, the input is wrong; 130 interrupted"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `paribus …` and return its exit code (see ExitCode)."""
    parser = _parser()
    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal's encoding must not cost a finished table
    options, rest = parser.parse_known_args(_joined(arguments))
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
    parser = argparse.ArgumentParser(
        "paribus",
        description="RAG experiments in which one thing changes at a time.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"paribus {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, action in _COMMANDS.items():
        _add(commands, name, f"paribus {name}", action)
    return parser


def _add(commands: _Parsers, name: str, typed: str, action: _Action) -> argparse.ArgumentParser:
    """Add a command or a sub-command, which knows how it is typed."""
    command = commands.add_parser(
        name,
        help=action.summary,
        description=action.summary,
        usage=f"{typed} {action.usage}",
        epilog=f"{action.epilog}\n{EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.set_defaults(typed=typed)
    action.arguments(command)
    return command


def _audit_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "words", nargs="*", metavar="ANSWERS [OVERRIDE ...]", help="JSONL, JSON, CSV or Parquet, and overrides"
    )
    command.add_argument(
        "--run", nargs="+", metavar="RUN", help="audit tracked runs instead: ids, names, result folders, or latest"
    )
    command.add_argument("--columns", nargs="+", metavar="OURS=THEIRS", help="names of columns, where they differ")
    command.add_argument(
        "--definitions",
        nargs="+",
        metavar="ID [PARAMETER=VALUE ...]",
        help="only these; default: those of metrics=audit, or those that the runs have",
    )
    command.add_argument(
        "--formulas-only", action="store_true", help="ask no judge: apply every formula to the verdicts there are"
    )
    command.add_argument("--versions", nargs="+", metavar="PACKAGE==VERSION", help="compare versions of a package")
    command.add_argument(
        "--example", action="store_true", help="audit one answer that people judged; no model, no network"
    )
    command.add_argument(
        "--ranking", metavar="MARKS", help="one ranking, best first: . not relevant, R or 1-9, ? unjudged"
    )
    command.add_argument("--relevant", type=int, metavar="N", help="how many relevant ones there are, with --ranking")
    command.add_argument(
        "--call-libraries",
        action="store_true",
        help="rankings: ask the installed libraries too, not their documentation alone (imports them: some 20 s)",
    )
    command.add_argument(
        "--threshold",
        type=float,
        default=0.5,
        metavar="SHARE",
        help="two scores disagree when they lie on different sides of it (default: 0.5)",
    )
    command.add_argument(
        "--similar",
        type=float,
        default=0.8,
        metavar="SHARE",
        help="likeness from which on two claims are one (default: 0.8)",
    )
    command.add_argument("--out", metavar="FOLDER", help="where files go; default: a new one in tracking.folder/audits")
    _run_arguments(command)


def _accept_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("run", metavar="RUN", help="a result folder, latest, or the id or name of a tracked run")
    command.add_argument("words", nargs="*", default=[], metavar="OVERRIDE", help="of tracking")
    command.add_argument("--to", default="baseline.json", metavar="FILE", help="the file (default: baseline.json)")
    _run_arguments(command)


def _gate_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("run", metavar="RUN", help="a result folder, latest, or the id or name of a tracked run")
    command.add_argument("words", nargs="*", default=[], metavar="OVERRIDE", help="of tracking")
    command.add_argument("--baseline", metavar="FILE|RUN", help="a file of `paribus accept`, or another run")
    command.add_argument("--rules", default="default", metavar="NAME|FILE", help="in conf/gate, or a YAML file")
    command.add_argument("--junit", metavar="FILE", help="write JUnit XML")
    command.add_argument("--summary", metavar="FILE", help="write Markdown for the page of the job")
    command.add_argument(
        "--anyway", action="store_true", help="compare what is not comparable all the same; every output says so"
    )
    _run_arguments(command)


def _diagnose_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("run", nargs="?", metavar="RUN", help="the run to look at")
    command.add_argument("words", nargs="*", default=[], metavar="OVERRIDE", help="of diagnosis and of tracking")
    command.add_argument("--baseline", metavar="RUN", help="show what changed against this run")
    command.add_argument(
        "--unjudged", metavar="FILE", help="write the chunks that nobody judged, to be graded: .csv, or JSONL"
    )
    command.add_argument("--labels", metavar="FILE", help="no run: take this file back, with grades")
    command.add_argument("--into", metavar="QUESTIONS.jsonl", help="the questions that --labels are for")
    _run_arguments(command)


def _compare_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("baseline", metavar="BASE", help="the run to compare with")
    command.add_argument("candidate", metavar="CANDIDATE", help="the run that is judged")
    command.add_argument(
        "words", nargs="*", default=[], metavar="OVERRIDE", help="where runs are: tracking.folder=..., tracking=off"
    )
    command.add_argument("--out", metavar="FOLDER", help="where files go; default: a new one in tracking.folder")
    command.add_argument("--anyway", action="store_true", help="subtract also what does not mean the same, and say so")
    command.add_argument(
        "--slice", nargs="+", action="extend", metavar="NAME", help="only the questions of these slices"
    )
    _run_arguments(command)


def _report_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("words", nargs="*", metavar="SWEEP|RUN [OVERRIDE ...]", help="what to report; default: latest")
    command.add_argument("--baseline", metavar="RUN", help="compare a single run with this one; baseline: of its sweep")
    command.add_argument("--out", metavar="FOLDER", help="where files go; default: report in the folder of the sweep")
    _run_arguments(command)


def _ui_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("words", nargs="*", default=[], metavar="OVERRIDE", help="of tracking")
    command.add_argument("--port", type=int, metavar="N", help="default: 5000, or another where that is taken")
    command.add_argument("--no-open", action="store_true", help="say the address only; open no browser")
    command.add_argument("--print", action="store_true", help="print the address, or the command that would serve it")


def _run_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="print the result as JSON on stdout")


def _sweep_arguments(command: argparse.ArgumentParser) -> None:
    _run_arguments(command)
    command.add_argument("--dry-run", action="store_true", help="print the plan and stop")


def _record_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--to", default="", metavar="FILE", help="the recording; default: in the result folder")
    _run_arguments(command)


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


class _Action(NamedTuple):
    """One command or sub-command: what its help says, its arguments, and what runs it, which is given what argparse
    made of the words and what it left over."""

    summary: str
    usage: str
    epilog: str
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace, list[str]], int]


def _judge_arguments(command: argparse.ArgumentParser) -> None:
    actions = command.add_subparsers(dest="action", metavar="ACTION", prog="paribus judge", required=True)
    for name, found in _JUDGE.items():
        _run_arguments(_add(actions, name, f"paribus judge {name}", found))


def _align_arguments(action: argparse.ArgumentParser) -> None:
    action.add_argument(
        "words", nargs="*", metavar="HUMAN.jsonl [OVERRIDE ...]", help="labels of people, and overrides"
    )
    action.add_argument(
        "--definitions",
        nargs="+",
        metavar="ID [PARAMETER=VALUE ...]",
        help="the definitions to align; default: those of metrics=faithfulness, or the judged ones of --run",
    )
    action.add_argument(
        "--run", metavar="FOLDER", help="take the judge's scores from this result folder; nothing is asked"
    )
    action.add_argument(
        "--supported-from",
        type=float,
        default=0.5,
        metavar="SHARE",
        help="a person's score counts as supported from this share of its scale on (default: 0.5)",
    )
    action.add_argument("--out", metavar="FOLDER", help="write alignment.json and disagreements.md there")


def _sample_arguments(action: argparse.ArgumentParser) -> None:
    action.add_argument("--run", required=True, metavar="FOLDER", help="the result folder to draw from")
    action.add_argument("--share", type=float, default=0.1, help="share of its questions, above 0 to 1 (default: 0.1)")
    action.add_argument("--definition", metavar="KEY", help="whose claims are shown; default: its first judged one")
    action.add_argument("--to", default="review.html", metavar="FILE", help="the page (default: review.html)")
    action.add_argument("--csv", metavar="FILE", help="write a table for a spreadsheet too")
    action.add_argument("--seed", type=int, default=0, help="another sample (default: 0)")


def _freeze_arguments(action: argparse.ArgumentParser) -> None:
    action.add_argument("--run", required=True, metavar="FOLDER", help="the result folder of a judged run")
    action.add_argument("--n", type=int, default=30, help="how many of its records (default: 30)")
    action.add_argument("--to", default="judge_frozen.json", metavar="FILE", help="default: judge_frozen.json")
    action.add_argument("--seed", type=int, default=0, help="another sample (default: 0)")


def _labels_arguments(action: argparse.ArgumentParser) -> None:
    action.add_argument("review", metavar="REVIEW", help="what the page or the table gave: .jsonl or .csv")
    action.add_argument("--into", required=True, metavar="QUESTIONS.jsonl", help="the questions of the test set")
    action.add_argument("--replace", action="store_true", help="replace verdicts that are there already")


def _split(options: argparse.Namespace, words: Iterable[str]) -> tuple[list[str], list[str]]:
    """Names and overrides: words with a `=`, and folders of configuration. Raises ConfigError for an unknown option."""
    names: list[str] = []
    overrides: list[str] = []
    for word in words:
        if word.startswith("-") and not word.startswith(CONFIG_DIR):
            raise _no_such(options, word)
        (overrides if "=" in word else names).append(word)
    return names, overrides


def _overrides(options: argparse.Namespace, rest: Sequence[str]) -> tuple[str, ...]:
    """The words of a command that takes nothing but overrides besides its arguments."""
    names, overrides = _split(options, (*getattr(options, "words", ()), *rest))
    if names:
        raise _no_such(options, names[0])
    return tuple(overrides)


def _no_such(options: argparse.Namespace, word: str) -> ConfigError:
    return ConfigError(f"{word}: no such argument; `{options.typed} --help` lists what there is")


def _joined(arguments: Sequence[str]) -> list[str]:
    """`--config-dir DIR` as one word, as all but Hydra's own commands read it."""
    joined: list[str] = []
    for word in arguments:
        if joined and joined[-1] == CONFIG_DIR.removesuffix("=") and not word.startswith("-"):
            joined[-1] = f"{CONFIG_DIR}{word}"
        else:
            joined.append(word)
    return joined


def _path(word: str | None) -> Path | None:
    return Path(word) if word else None


def _aligned(options: argparse.Namespace, rest: list[str]) -> int:
    from runner import align, console
    from runner.results import RECORDING

    words = [*options.words, *(options.definitions or ()), *rest]
    overrides = [word for word in words if align.is_override(word)]
    files = [word for word in options.words if word not in overrides]
    if len(files) != 1:
        raise ConfigError(f"judge align takes one file of labels, got {', '.join(files) or 'none'}")
    if left := [word for word in rest if word not in overrides]:
        raise _no_such(options, left[0])
    report = align.align(
        Path(files[0]),
        overrides,
        definitions=[word for word in (options.definitions or ()) if word not in overrides],
        run=_path(options.run),
        supported_from=options.supported_from,
        recording=Path(options.out) / RECORDING if options.out else None,
    )
    if options.out:
        align.write(report, Path(options.out))
    console.show_alignment(report, options.out)
    return ExitCode.OK if report.measured else ExitCode.FAILED


def _audited(options: argparse.Namespace, rest: list[str]) -> int:
    from runner.audit import command

    lists = (options.run, options.columns, options.definitions, options.versions)
    given = [*options.words, *(word for words in lists for word in words or ()), *rest]
    overrides = tuple(word for word in given if command.is_override(word))
    if left := [word for word in rest if word not in overrides]:
        raise _no_such(options, left[0])

    def named(words: Sequence[str] | None) -> tuple[str, ...]:
        return tuple(word for word in (words or ()) if word not in overrides)

    asked = command.Asked(
        files=tuple(map(Path, named(options.words))),
        runs=named(options.run),
        columns=command.columns(named(options.columns)),
        definitions=named(options.definitions),
        overrides=overrides,
        formulas_only=options.formulas_only,
        versions=named(options.versions),
        example=options.example,
        ranking=options.ranking,
        relevant=options.relevant,
        call_libraries=options.call_libraries,
        threshold=options.threshold,
        similar=options.similar,
        out=_path(options.out),
    )
    return ExitCode.OK if command.run(asked) else ExitCode.FAILED


def _accepted(options: argparse.Namespace, rest: list[str]) -> int:
    from runner.gate import command

    command.accept(options.run, Path(options.to), _overrides(options, rest))
    return ExitCode.OK


def _gated(options: argparse.Namespace, rest: list[str]) -> int:
    from runner.gate import command

    asked = command.Asked(
        run=options.run,
        baseline=options.baseline,
        rules=options.rules,
        junit=_path(options.junit),
        summary=_path(options.summary),
        anyway=options.anyway,
        overrides=_overrides(options, rest),
    )
    return command.decide(asked).exit_code


def _diagnosed(options: argparse.Namespace, rest: list[str]) -> int:
    from runner.diagnosis import command

    overrides = _overrides(options, rest)
    if (options.labels is None) != (options.into is None):
        raise ConfigError("--labels FILE and --into QUESTIONS.jsonl go together")
    if (options.labels is None) == (options.run is None):
        raise ConfigError("diagnose takes a run, or --labels FILE --into QUESTIONS.jsonl")
    if options.labels is not None:
        if unused := next((name for name in ("baseline", "unjudged") if getattr(options, name)), None):
            raise ConfigError(f"--{unused} needs a run, and --labels takes none")
        command.put_into(Path(options.labels), Path(options.into))
        return ExitCode.OK
    asked = command.Asked(
        run=options.run, baseline=options.baseline, unjudged=_path(options.unjudged), overrides=overrides
    )
    command.run(asked)
    return ExitCode.OK


def _compared(options: argparse.Namespace, rest: list[str]) -> int:
    from runner.compare import command

    if options.candidate.startswith(("tracking=", "tracking.")):
        raise ConfigError(f"compare takes two runs, got {options.candidate} as the second")
    slices, more = _split(options, options.slice or ())
    asked = command.Asked(
        baseline=options.baseline,
        candidate=options.candidate,
        overrides=(*_overrides(options, rest), *more),
        anyway=options.anyway,
        slices=tuple(slices),
        out=_path(options.out),
    )
    return ExitCode.OK if command.run(asked) else ExitCode.FAILED


def _reported(options: argparse.Namespace, rest: list[str]) -> int:
    from runner.report import command

    names: list[str] = []
    overrides: list[str] = []
    for word in (*options.words, *rest):  # the name of a run may have a `=`: chunker.size=400
        if word.startswith("-") and not word.startswith(CONFIG_DIR):
            raise _no_such(options, word)
        (overrides if word.startswith(("tracking=", "tracking.", CONFIG_DIR)) else names).append(word)
    if len(names) > 1:
        raise _no_such(options, names[1])
    asked = command.Asked(
        name=names[0] if names else "latest",
        baseline=options.baseline,
        overrides=tuple(overrides),
        out=_path(options.out),
    )
    command.run(asked)
    return ExitCode.OK


def _browsed(options: argparse.Namespace, rest: list[str]) -> int:
    from runner.app import composed
    from runner.config import Tracking
    from runner.tracking.ui import show

    overrides = _overrides(options, rest)
    if other := next((word for word in overrides if not word.startswith(("tracking", CONFIG_DIR))), None):
        raise _no_such(options, other)
    settings = Tracking(**composed(overrides)["tracking"])
    show(settings, options.port, opens=not options.no_open, only_print=options.print)
    return ExitCode.OK


def _sampled(options: argparse.Namespace, rest: list[str]) -> int:
    from runner import console, spot_check

    _nothing_more(options, rest)
    drawn = spot_check.draw(Path(options.run), options.share, options.definition, options.seed)
    written = spot_check.write(drawn, Path(options.to), _path(options.csv))
    console.show_sample(drawn, written)
    return ExitCode.OK


def _frozen(options: argparse.Namespace, rest: list[str]) -> int:
    from runner import console, drift

    _nothing_more(options, rest)
    frozen = drift.freeze(Path(options.run), options.n, options.seed)
    drift.save(frozen, Path(options.to))
    console.show_frozen(frozen, options.to)
    return ExitCode.OK


def _labelled(options: argparse.Namespace, rest: list[str]) -> int:
    from runner import console, spot_check

    _nothing_more(options, rest)
    console.show_labels(spot_check.put_back(Path(options.review), Path(options.into), options.replace), options.into)
    return ExitCode.OK


def _nothing_more(options: argparse.Namespace, rest: Sequence[str]) -> None:
    if rest:
        raise _no_such(options, rest[0])


def _launched(options: argparse.Namespace, rest: list[str]) -> int:
    from runner.app import launch

    showing = any(argument.partition("=")[0] in _SHOWING for argument in rest)
    if options.command == "sweep" and not showing:
        rest = ["-m", *rest, *(["++sweep.dry_run=true"] if options.dry_run else [])]
    if options.command == "record" and {"-m", "--multirun"} & set(rest):
        raise ConfigError("record takes one run, not a sweep")
    launch(rest, options.to if options.command == "record" else None)
    return ExitCode.OK


def _listed(options: argparse.Namespace, rest: list[str]) -> int:
    from runner import console, definitions

    if unknown := [word for word in rest if word.startswith("-") or options.action is None]:
        raise _no_such(options, unknown[0])

    if options.action is None:
        console.show_definitions(*definitions.catalogue(), by=options.by)
        return ExitCode.OK
    words = [*options.words, *rest]  # argparse leaves parameters that follow an option over
    if options.action == "show":
        (spec,) = definitions.specs(words, 1)
        console.show_definition(definitions.card(spec, options.prompts))
    else:
        console.show_differences(*(definitions.card(spec) for spec in definitions.specs(words, 2)))
    return ExitCode.OK


def _schema(options: argparse.Namespace, rest: list[str]) -> int:
    from runner import console, definitions

    _nothing_more(options, rest)
    console.show_schema(definitions.schema_of(options.type))
    return ExitCode.OK


_JUDGE = {
    "align": _Action(
        "measure how far the judge agrees with people",
        "HUMAN.jsonl [OVERRIDE ...] [--definitions ID ...] [--run FOLDER] [--out FOLDER] [--json]",
        "",
        _align_arguments,
        _aligned,
    ),
    "sample": _Action(
        "draw answers of a run for people to judge, as a local page",
        "--run FOLDER [--share 0.1] [--definition KEY] [--to review.html] [--csv FILE] [--seed 0] [--json]",
        "",
        _sample_arguments,
        _sampled,
    ),
    "freeze": _Action(
        "keep a sample of graded records, to see later whether the judge moved",
        "--run FOLDER [--n 30] [--to judge_frozen.json] [--seed 0] [--json]",
        "",
        _freeze_arguments,
        _frozen,
    ),
    "labels": _Action(
        "put what people said into the test set",
        "REVIEW --into QUESTIONS.jsonl [--replace] [--json]",
        "",
        _labels_arguments,
        _labelled,
    ),
}


def _schema_arguments(command: argparse.ArgumentParser) -> None:
    from runner.definitions import FILES, SCHEMAS

    names = (*SCHEMAS, *FILES)
    command.add_argument("type", choices=names, metavar="TYPE", help=" | ".join(names))


_COMMANDS = {
    "run": _Action("run one experiment", "[--json] [OVERRIDE ...]", OVERRIDES, _run_arguments, _launched),
    "sweep": _Action(
        "run a baseline, and variants that differ from it in one variable each",
        "[--json] [--dry-run] [OVERRIDE ...]",
        OVERRIDES + SWEEP,
        _sweep_arguments,
        _launched,
    ),
    "record": _Action(
        "run one experiment, and keep the replies of its judge so that it can be scored again without asking",
        "[--to FILE] [--json] [OVERRIDE ...]",
        OVERRIDES + RECORD,
        _record_arguments,
        _launched,
    ),
    "definitions": _Action(
        "list the definitions of scores, or show what one means",
        "[--by asks|framework] [--json] [show | diff ...]",
        DEFINITIONS,
        _definitions_arguments,
        _listed,
    ),
    "diagnose": _Action(
        "say which fault each question of a run has, by what it is told, and what to try",
        "RUN [--baseline RUN] [--unjudged FILE] [--json] [OVERRIDE ...]",
        DIAGNOSE,
        _diagnose_arguments,
        _diagnosed,
    ),
    "compare": _Action(
        "compare two runs question by question: what changed, beyond chance or not, and where",
        "BASE CANDIDATE [--out FOLDER] [--anyway] [--slice NAME ...] [--json] [OVERRIDE ...]",
        COMPARE,
        _compare_arguments,
        _compared,
    ),
    "report": _Action(
        "write what a sweep or a run found as one page, and as Markdown for a pull request",
        "[SWEEP|RUN] [--baseline RUN] [--out FOLDER] [--json] [OVERRIDE ...]",
        REPORT,
        _report_arguments,
        _reported,
    ),
    "audit": _Action(
        "show why scores of one name differ: other claims, other verdicts, or another formula",
        "[ANSWERS | --run RUN ... | --example | --ranking MARKS] [OPTIONS] [OVERRIDE ...]",
        AUDIT,
        _audit_arguments,
        _audited,
    ),
    "accept": _Action(
        "accept a run as the baseline that later ones are held to",
        "RUN [--to FILE] [--json] [OVERRIDE ...]",
        ACCEPT,
        _accept_arguments,
        _accepted,
    ),
    "gate": _Action(
        "end with exit code 1 where a run is worse than the accepted baseline",
        "RUN [--baseline FILE|RUN] [--rules NAME|FILE] [--junit FILE] [--summary FILE] [--anyway] [--json] "
        "[OVERRIDE ...]",
        GATE,
        _gate_arguments,
        _gated,
    ),
    "judge": _Action(
        "show how far a judge agrees with people",
        "ACTION ...",
        JUDGE,
        _judge_arguments,
        lambda options, rest: _JUDGE[options.action].run(options, rest),
    ),
    "ui": _Action(
        "look at the runs in MLflow", "[OVERRIDE ...] [--port N] [--no-open] [--print]", UI, _ui_arguments, _browsed
    ),
    "schema": _Action("print the JSON Schema of what paribus reads and writes", "TYPE", "", _schema_arguments, _schema),
}


def _guarded(options: argparse.Namespace, rest: list[str]) -> int:
    failed = ExitCode.USAGE if options.command == "gate" else ExitCode.FAILED  # of a gate, FAILED means a regression
    os.environ["PARIBUS_FORMAT"] = "json" if getattr(options, "json", False) else "text"
    try:
        return _COMMANDS[options.command].run(options, rest)
    except ParibusError as error:
        return _told(error, failed if error.exit_code == ExitCode.FAILED else error.exit_code)
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
        return _told(unforeseen(error), failed)


_SHOWING = {"--cfg", "-c", "--info", "-i", "--hydra-help", "--shell-completion", "-sc"}
"""Hydra's options that print and do not run; they do not go together with its -m."""


def _told(message: object, code: ExitCode) -> int:
    sys.stderr.write(f"paribus: {message}\n")
    return code
