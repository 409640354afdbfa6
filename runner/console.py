"""What a person sees: plans and results as tables of at most 100 columns, or JSON for machines. The only place that
prints results; everything said on the way goes to stderr.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from runner.phrases import shortened, signed

if TYPE_CHECKING:
    from pathlib import Path

    from rich.table import Table

    from adapters.base import Measure
    from runner.agreement import Figure
    from runner.align import Alignment, Report
    from runner.compare import findings
    from runner.definitions import By
    from runner.drift import Frozen
    from runner.plan import Plan
    from runner.results import Mean, Usage
    from runner.run import Outcome
    from runner.spot_check import PutBack, Sample
    from runner.sweep import Row, SweepResult

WIDTH = 100
"""Columns of the widest table. RUN_COLUMN is for the name of a run, CELL for a mean with its difference."""
RUN_COLUMN, CELL = 26, 13

FORMAT = "PARIBUS_FORMAT"
"""Environment variable by which the command line tells this process and its workers to print JSON (`json`)."""


@contextmanager
def read_or_not() -> Iterator[None]:
    """Print; where whoever read stdout has gone (`| head`), the work goes on and what it prints goes nowhere."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def as_json() -> bool:
    """Whether results are printed for machines."""
    return os.environ.get(FORMAT) == "json"


def note(text: str) -> None:
    """Say something on stderr."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def show_plan(planned: Plan) -> None:
    """The runs that are to be made. As JSON only for a dry run, whose only result it is."""
    rows = planned.table()
    if as_json():
        if planned.dry_run:
            print_json({"runs": rows, "left_out": list(planned.left_out)})
        return
    table = table_of(
        "run", "variable", "baseline", "value", title=f"Plan: 1 baseline + {len(planned.variants)} variants"
    )
    table.add_row("0", "the baseline", "", "")
    for number, row in enumerate(rows[1:], 1):
        table.add_row(str(number), *(short(row[key]) for key in ("variable", "baseline", "value")))
    print_table(table)
    for reason in planned.left_out:
        note(f"left out: {reason}")
    if not planned.variants:
        note("nothing is swept: give a variable several values (retriever.k=3,5,10), or choose a preset")


def show_run(outcome: Outcome, one_of_many: bool = False) -> None:
    """One run: every definition with its mean and the number of questions it is over. one_of_many: JSON on one line."""
    if as_json():
        print_json(_outcome_data(outcome), indent=None if one_of_many else 1)
        return
    table = table_of("definition", "mean", "over", "not applicable", "failed", title=outcome.name)
    for key, mean in outcome.means.items():
        lower = " ↓" if key in outcome.lower_is_better else ""
        table.add_row(f"{key}{lower}", _number(mean.value), str(mean.n), str(mean.not_applicable), str(mean.failed))
    print_table(table)
    _footer([outcome], outcome.folder, outcome.ui)


def show_sweep(result: SweepResult) -> None:
    """The variants below their baseline, with the difference of each definition in the table."""
    if as_json():
        print_json(
            {
                "sweep": result.name,
                "parent_run_id": result.parent_run_id,
                "seconds": result.seconds,
                "notes": list(result.notes),
                "rows": [_row_data(row) for row in result.rows],
                "recommendation": _plain_data(result.recommendation),
                "report": str(result.report) if result.report else None,
            }
        )
        return
    for text in result.notes:
        note(f"note: {said(text)}")
    done = [row.outcome for row in result.rows if row.outcome]
    if not done:
        return
    keys = done[0].table[: _columns()]
    lower = done[0].lower_is_better
    headers = (f"{broken(_header(key), CELL)}{' ↓' if key in lower else ''}" for key in keys)
    table = table_of("run", *headers, title=f"Sweep {result.name}")
    table.padding = (0, 0)  # five columns of differences and a run's name take 96 columns
    for row in result.rows:
        table.add_row(short(_marked(row), RUN_COLUMN), *_cells(row, keys))
        if row.planned.variable is None:
            table.add_section()
    print_table(table)
    counts = ", ".join(f"{_header(key)} {_over(done[0].means[key])}" for key in keys if key in done[0].means)
    note(f"Questions counted: {counts}")
    if left := done[0].table[len(keys) :]:
        note(f"Not shown for lack of room: {', '.join(map(_header, left))}")
    family = max((row.compared[key].family for row in result.rows for key in keys if key in row.compared), default=0)
    if family:
        note("* better or worse: the 95% paired bootstrap interval excludes 0, six questions or more changed, and the")
        note(f"  p-value is below 5% after Holm for the {family} comparisons in definitions of the table: the")
        note("  chance that one `*` or more is chance is below 5%. Without it: cannot be told here.")
    if any(row.outcome and row.outcome.errors for row in result.rows):
        note("! questions without an answer; they count 0 where an answer or a ranking is scored")
    for row in result.rows:
        means = row.outcome.means if row.outcome else {}
        for key in keys:
            if (mine := means.get(key)) and mine.n != done[0].means[key].n:
                note(f"{shortened(row.planned.label)}: {_header(key)} is over {_over(mine)}")
        if row.not_comparable:
            note(f"{shortened(row.planned.label)}: no difference is shown: {said(row.not_comparable)}")
    if result.recommendation:
        from runner.recommendation.terminal import show

        show(result.recommendation)
    _footer(done, result.folder, result.ui)
    if result.report:
        note(f"Report: {result.report / 'report.html'}")


def show_definitions(found: Sequence[Measure], problems: Sequence[str], by: By) -> None:
    """The definitions, grouped by what they ask or by framework; parameters are at their defaults."""
    from runner.definitions import entry, grouped

    groups = grouped(found, by)
    for problem in problems:
        note(f"not available: {problem}")
    if as_json():
        print_json({"definitions": [entry(measure) for group in groups.values() for measure in group]})
        return
    other = "framework" if by == "asks" else "asks"
    widths = (32, 21, 6, 9, 22) if by == "asks" else (32, 21, 6, 33)
    print_lines([("definition", "unit", "better", other, "judge calls")[: len(widths)]], widths)
    for name, group in groups.items():
        print_text(f"\n{name}")
        rows = [(each.id, each.unit_judged, each.direction, getattr(each, other), each.calls) for each in group]
        print_lines([row[: len(widths)] for row in rows], widths)


def show_definition(card: Mapping[str, Any]) -> None:
    """One card in full, and the text of its prompts where the card holds it."""
    if as_json():
        print_json(dict(card))
        return
    low, high = card["range"]
    told: list[tuple[str, str]] = [
        ("key", card["key"]),
        ("asks", card["asks"]),
        ("unit", card["unit"]),
        ("hit", card["hit"]),
        ("formula", card["formula"]),
        ("aggregation", card["aggregation"]),
        ("range", f"{low:g} to {high:g}, {card['direction']} is better"),
        ("nothing to judge", card["nothing_to_judge"]),
        ("requires", ", ".join(card["requires"])),
        *(("parameter", _parameter(card["parameters"], declared)) for declared in card["declared"]),
        ("judge calls", card["calls"]),
        *(("prompt", f"{name} {found}") for name, found in card["prompts"].items()),
        ("framework", f"{card['framework']} {card['version']}"),
        ("implementation", card["implementation"]),
        ("source", card["source"]),
        ("revision", str(card["revision"])),
        ("fingerprint", card["fingerprint"]),
        *(("hazard", hazard) for hazard in card["hazards"]),
    ]
    print_text(card["id"])
    names = [name for name, _ in told]
    rows = [("" if names[:n][-1:] == [name] else name, text) for n, (name, text) in enumerate(told)]
    print_lines(rows, (16, 80))
    for name, text in card.get("prompt_texts", {}).items():
        print_text(f"\n--- prompt {name}\n{text}")


def _parameter(values: Mapping[str, Any], declared: Mapping[str, Any]) -> str:
    from runner.definitions import Parameter

    return f"{declared['name']} = {json.dumps(values[declared['name']])} ({Parameter(**declared)})"


def show_differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> None:
    """The fields in which two cards differ, side by side."""
    from runner.definitions import differences

    found = differences(one, other)
    if as_json():
        print_json({"definitions": [one["key"], other["key"]], "differences": found})
        return
    if not found:
        note(f"{one['key']} and {other['key']} are the same definition")
        return
    told = [(name, *(_plain(value) for value in pair)) for name, pair in found.items()]
    print_lines([("", one["key"], other["key"]), *told], (22, 36, 36))


def show_frozen(frozen: Frozen, path: str) -> None:
    """What was kept of a run, and how later runs are held to it."""
    counts = {key: sum(score.definition == key for score in frozen.scores) for key in frozen.definitions}
    if as_json():
        print_json(
            {
                "file": path,
                "sample": frozen.fingerprint,
                "judge": frozen.judge.fingerprint,
                "records": len(frozen.records),
                "scores": counts,
            }
        )
        return
    rows = [("records", str(len(frozen.records))), *((f"scores of {key}", str(n)) for key, n in counts.items())]
    print_lines(rows, (60, 8))
    note(f"Kept in {path}. Runs with judge.frozen={path} grade it again first, and say whether the judge moved")


def show_schema(schema: Mapping[str, Any]) -> None:
    """A JSON Schema."""
    print_json(dict(schema))


def show_alignment(report: Report, out: str | None) -> None:
    """How far the judge agrees with people, one definition after the other."""
    from runner.align import as_data

    if as_json():
        print_json(as_data(report))
        return
    if report.judge:
        print_text(f"judge: {report.judge.provider} {report.judge.model} ({report.judge.fingerprint})")
    for found in report.alignments:
        print_text(f"\n{found.definition}")
        print_lines(_alignment(found), (25, 72))
    for text in report.notes:
        note(f"note: {text}")
    told = ", ".join(f"{count} {split}" for split, count in sorted(report.labels.items()))
    note(f"Labels: {told}. Intervals are 95%, by bootstrap over answers.")
    note(f"Disagreements: {out}" if out else "--out FOLDER writes the disagreements down, with claims and reasons")


def _alignment(found: Alignment) -> list[tuple[str, str]]:
    table, sign = found.confusion, "≥" if found.direction == "higher" else "≤"
    over = f"{found.n} answers{' (held_out)' if found.lines == 'held_out' else ''}"
    apart = f", {found.failed} failed, {found.not_applicable} not applicable"
    rows = [("over", over + (apart if found.failed or found.not_applicable else ""))]
    if found.first_failure:
        rows.append(("the first failure", found.first_failure))
    if found.supported_share is not None:
        rows.append(("people say supported", f"{found.supported_share:.3f} of them"))
    threshold = f"supported when {sign} {found.threshold:.4g}"
    if found.chosen:
        tied = [f"{value:.4g}" for value in found.chosen.tied if value != found.chosen.value]
        threshold += f", chosen on {found.chosen.n} tune (balanced accuracy {found.chosen.balanced_accuracy:.3f}"
        threshold += f"; as good: {', '.join(tied[:4])}{', …' * (len(tied) > 4)})" if tied else ")"
    rows.append(("threshold", f"{threshold}; {found.why}" if found.why else threshold))
    rows += [(name.replace("_", " "), _interval(figure)) for name, figure in found.figures.items()]
    rows += [
        ("people supported", f"judge supported {table.supported_supported}, not {table.supported_unsupported}"),
        ("people unsupported", f"judge supported {table.unsupported_supported}, not {table.unsupported_unsupported}"),
    ]
    if found.claims:
        rows.append(("claims cut alike", f"{found.claims.matched} of {found.claims.of} of people's"))
        rows += [(f"  {name.replace('_', ' ')}", _interval(figure)) for name, figure in found.claims.rates.items()]
        rows += [(f"  {words}", str(count)) for words, count in sorted(found.claims.words.items())]
    if found.corrected:
        mean = found.corrected
        rows += [
            ("mean, judge alone", f"{_interval(mean.raw)} over {mean.n + mean.rest} answers"),
            ("mean, people alone", f"{_interval(mean.labels)} over {mean.n} answers"),
            ("mean, corrected", f"{_interval(mean.corrected)} (prediction-powered, weight {mean.weight:.2f})"),
        ]
    return rows


def _interval(figure: Figure) -> str:
    if figure.value is None:
        return "–"
    if figure.low is None or figure.high is None:
        return f"{figure.value:.3f}"
    return f"{figure.value:.3f}  [{figure.low:.3f}, {figure.high:.3f}]"


def show_sample(sample: Sample, written: Sequence[Path]) -> None:
    """What was drawn for people, by stratum, and where it is."""
    answers = sum(stratum.of for stratum in sample.strata)
    if as_json():
        strata = [asdict(stratum) for stratum in sample.strata]
        ids = [drawn.id for drawn in sample.drawn]
        files = [str(path) for path in written]
        print_json({"definition": sample.definition, "strata": strata, "drawn": ids, "written": files})
        return
    table = table_of("slice", "judged", "answers", "drawn", title=f"{sample.run}, by {sample.definition}")
    for stratum in sample.strata:
        table.add_row(short(stratum.slice), stratum.band, str(stratum.of), str(stratum.drawn))
    print_table(table)
    note(f"{len(sample.drawn)} of {answers} answers drawn (seed {sample.seed})")
    if sample.unanswered:
        note(f"{sample.unanswered} questions have no answer; nobody can judge those")
    for path in written:
        note(f"Written: {path}")
    note("`paribus judge align FILE --run …` measures the judge by what people mark; `paribus judge labels` keeps it")


def show_labels(done: PutBack, into: str) -> None:
    """Which questions got verdicts of people."""
    if as_json():
        names = ("id", "who", "when", "record")
        changed = [dict(zip(names, row, strict=True)) for row in done.changed]
        print_json({"changed": changed, "unchanged": done.unchanged})
        return
    if done.changed:
        table = table_of("question", "who", "when", "record", title=f"Verdicts put into {into}")
        for row in done.changed:
            table.add_row(*(short(cell or "–") for cell in row))
        print_table(table)
    note(f"{into}: {len(done.changed)} questions changed; {done.unchanged} had these verdicts already")


def _plain(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, list | tuple):
        return "; ".join(map(_plain, value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def print_lines(rows: Sequence[Sequence[str]], widths: Sequence[int]) -> None:
    """Rows in columns of these widths, indented by two, with long cells on several lines."""
    from itertools import zip_longest
    from textwrap import wrap

    for row in rows:
        cells = [wrap(cell, width) or [""] for cell, width in zip(row, widths, strict=True)]
        for line in zip_longest(*cells, fillvalue=""):
            laid_out = "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
            print_text(f"  {laid_out}".rstrip())


def said(text: str) -> str:
    """A foreign text on one line, without what steers a terminal or what it cannot write."""
    from adapters.sentences import well_formed
    from runner.phrases import plain

    return well_formed(plain(text))


def print_paragraphs(texts: Iterable[str], indent: int = 0) -> None:
    """Foreign texts below one another, each on as many lines as it takes, no wider than the tables."""
    room = max(_width(), 40) - 6
    for text in texts:
        print_lines(*(([("", said(text))], (indent, room - 2 - indent)) if indent else ([(said(text),)], (room,))))


def _columns() -> int:
    """How many columns of differences fit."""
    return max(1, (_width() - RUN_COLUMN) // (CELL + 1))


def _marked(row: Row) -> str:
    errors = row.outcome.errors if row.outcome else 0
    mark = f" !{errors}" if errors else ""
    return f"{shortened(row.planned.label, RUN_COLUMN - len(mark))}{mark}"


def _cells(row: Row, keys: Sequence[str]) -> list[str]:
    if row.outcome is None:
        return ["FAILED", *[""] * (len(keys) - 1)]
    return [_cell(row.outcome.means.get(key), row.compared.get(key)) for key in keys]


def _cell(mean: Mean | None, compared: findings.Row | None) -> str:
    if mean is None or mean.value is None:
        return "–"
    if compared is None:
        return f"{mean.value:.3f}{' ' * 8}"
    sign = signed(compared.delta) if compared.changed else "="
    colour = {"better": "green", "worse": "red"}.get(compared.word)
    if colour is None:
        return f"{mean.value:.3f} {sign:>6} "
    return f"{mean.value:.3f} [{colour}]{sign:>6}*[/{colour}]"


def _over(mean: Mean) -> str:
    return f"{mean.n} of {mean.of}" + (f" ({mean.failed} failed)" if mean.failed else "")


def _footer(outcomes: Sequence[Outcome], folder: Any, ui: str | None) -> None:
    from runner.results import usage

    computed = sum(sum(outcome.computed.values()) for outcome in outcomes)
    reused = sum(sum(outcome.reused.values()) for outcome in outcomes)
    common = set.intersection(*(set(outcome.notes) for outcome in outcomes))
    for text in dict.fromkeys(text for outcome in outcomes for text in outcome.notes if text in common):
        note(f"note: {text}")
    for outcome in outcomes:
        for text in outcome.notes:
            if text not in common:
                note(f"note: {outcome.name}: {text}")
    if used := usage(outcome.usage for outcome in outcomes if outcome.usage):
        judges = dict.fromkeys(outcome.judge_name for outcome in outcomes if outcome.judge_name)
        note(f"judge: {' and '.join(judges)}: {_used(used)}")
    for stage in dict.fromkeys(stage for outcome in outcomes for stage in outcome.stages):
        if used := usage(outcome.stages[stage] for outcome in outcomes if stage in outcome.stages):
            note(f"{stage}: {_used(used)}")
    told = f"{computed} stage outputs computed, {reused} read from the store"
    note(told if computed else f"nothing recomputed: all {reused} stage outputs were read from the store")
    note(f"Results: {folder}")
    if ui:
        note(f"Open the UI: {ui}")


def _used(used: Usage) -> str:
    """What judging or a stage cost, on one line, without what is unknown."""
    cached = f"{used.cached} from the cache" if used.cached else ""
    repaired = f"{used.repaired} repaired" if used.repaired else ""
    tokens = f"{_thousands(used.tokens)} tokens" if used.tokens else ""
    cost = "" if used.cost is None else f"${used.cost:.2f}" if used.cost >= 0.01 or not used.cost else "under $0.01"
    seconds = f"{used.seconds:.1f} s added up" if used.seconds >= 0.1 else "under 0.1 s"
    return ", ".join(part for part in (f"{used.calls} calls", cached, repaired, tokens, cost, seconds) if part)


def _thousands(count: int) -> str:
    return str(count) if count < 1000 else f"{count / 1000:.0f}k" if count < 1e6 else f"{count / 1e6:.1f}M"


def _outcome_data(outcome: Outcome) -> dict[str, Any]:
    return {
        "name": outcome.name,
        "run_id": outcome.run_id,
        "folder": str(outcome.folder),
        "dataset": dict(outcome.dataset),
        "means": {key: asdict(mean) for key, mean in outcome.means.items()},
        "fingerprints": dict(outcome.fingerprints),
        "judge": outcome.judge,
        "usage": asdict(outcome.usage) if outcome.usage else None,
        "stages": {stage: asdict(used) for stage, used in outcome.stages.items()},
        "drift": {**asdict(outcome.drift), "told": str(outcome.drift)} if outcome.drift else None,
        "computed": dict(outcome.computed),
        "reused": dict(outcome.reused),
        "seconds": outcome.seconds,
        "errors": outcome.errors,
        "notes": list(outcome.notes),
    }


def _row_data(row: Row) -> dict[str, Any]:
    return {
        "run": row.planned.label,
        "variable": row.planned.variable,
        "value": row.planned.value,
        "baseline_value": row.planned.from_value,
        "error": row.error,
        "not_comparable": row.not_comparable,
        "outcome": _outcome_data(row.outcome) if row.outcome else None,
        "differences": {key: {**asdict(found), "changed": found.changed} for key, found in row.compared.items()},
    }


def _plain_data(value: Any) -> Any:
    """Findings as JSON holds them; paths are texts."""
    return json.loads(json.dumps(asdict(value), default=str)) if value is not None else None


def broken(text: str, width: int) -> str:
    """`text` on lines of at most `width`, broken after a separator where it has one."""
    lines = [""]
    for part in re.findall(r"[^/_.@-]+[/_.@-]?|[/_.@-]", text):
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def _header(key: str) -> str:
    return key.removeprefix("labels/")


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


def short(value: Any, length: int = 48) -> str:
    """`value` on one line of at most `length` characters, as text in a table."""
    from rich.markup import escape

    text = "" if value is None else " ".join(str(value).split())
    return escape(text if len(text) <= length else f"{text[: length - 1]}…")


def table_of(*columns: str, title: str) -> Table:
    """A table: the first column is text, the others are numbers."""
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number == 0 else "right", overflow="fold")
    return table


def print_table(table: Table) -> None:
    """Print a table, WIDTH columns wide or as wide as the terminal."""
    from rich.console import Console

    class Screen(Console):
        def on_broken_pipe(self) -> None:  # Rich would end the program
            raise BrokenPipeError

    with read_or_not():
        Screen(width=_width()).print(table)


def _width() -> int:
    from rich.console import Console

    screen = Console()
    return min(screen.width, WIDTH) if screen.is_terminal else WIDTH


def print_text(text: str) -> None:
    """Print what is ready to be printed."""
    with read_or_not():
        sys.stdout.write(text + "\n")


def print_json(value: Any, indent: int | None = 1) -> None:
    """Print a result for machines."""
    print_text(json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False))
