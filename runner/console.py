"""What a person sees: plans and results as tables of at most 100 columns, or JSON for machines. The only place that
prints results; everything said on the way goes to stderr.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

    from runner.plan import Plan
    from runner.results import Mean
    from runner.run import Outcome
    from runner.stats import Difference
    from runner.sweep import Row, SweepResult

WIDTH = 100
"""Columns of the widest table. RUN_COLUMN is for the name of a run, CELL for a mean with its difference."""
RUN_COLUMN, CELL = 26, 13

FORMAT = "PARIBUS_FORMAT"
"""Environment variable by which the command line tells this process and its workers to print JSON (`json`)."""


def _as_json() -> bool:
    return os.environ.get(FORMAT) == "json"


def note(text: str) -> None:
    """Say something on stderr."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def show_plan(planned: Plan) -> None:
    """The runs that are to be made. As JSON only for a dry run, whose only result it is."""
    rows = planned.table()
    if _as_json():
        if planned.dry_run:
            _print_json({"runs": rows, "left_out": list(planned.left_out)})
        return
    table = _table("run", "variable", "baseline", "value", title=f"Plan: 1 baseline + {len(planned.variants)} variants")
    table.add_row("0", "the baseline", "", "")
    for number, row in enumerate(rows[1:], 1):
        table.add_row(str(number), *(_short(row[key]) for key in ("variable", "baseline", "value")))
    _print(table)
    for reason in planned.left_out:
        note(f"left out: {reason}")
    if not planned.variants:
        note("nothing is swept: give a variable several values (retriever.k=3,5,10), or choose a preset")


def show_run(outcome: Outcome, one_of_many: bool = False) -> None:
    """One run: every definition with its mean and the number of questions it is over. one_of_many: JSON on one line."""
    if _as_json():
        _print_json(_outcome_data(outcome), indent=None if one_of_many else 1)
        return
    table = _table("definition", "mean", "over", "not applicable", "failed", title=outcome.name)
    for key, mean in outcome.means.items():
        table.add_row(key, _number(mean.value), str(mean.n), str(mean.not_applicable), str(mean.failed))
    _print(table)
    _footer([outcome], outcome.folder, outcome.ui)


def show_sweep(result: SweepResult) -> None:
    """The variants below their baseline, with the difference of each definition in the table."""
    if _as_json():
        _print_json(
            {
                "sweep": result.name,
                "parent_run_id": result.parent_run_id,
                "seconds": result.seconds,
                "notes": list(result.notes),
                "rows": [_row_data(row) for row in result.rows],
            }
        )
        return
    for text in result.notes:
        note(f"note: {text}")
    done = [row.outcome for row in result.rows if row.outcome]
    if not done:
        return
    keys = done[0].table[: _columns()]
    lower = done[0].lower_is_better
    headers = (f"{_header(key)}{' ↓' if key in lower else ''}" for key in keys)
    table = _table("run", *headers, title=f"Sweep {result.name}")
    table.padding = (0, 0)  # five columns of differences and a run's name take 96 columns
    for row in result.rows:
        table.add_row(_short(_marked(row), RUN_COLUMN), *_cells(row, keys, lower))
        if row.planned.variable is None:
            table.add_section()
    _print(table)
    counts = ", ".join(f"{_header(key)} {_over(done[0].means[key])}" for key in keys if key in done[0].means)
    note(f"Questions counted: {counts}")
    if left := done[0].table[len(keys) :]:
        note(f"Not shown for lack of room: {', '.join(map(_header, left))}")
    note("* the 95% paired bootstrap interval of the difference excludes 0, and six questions or more changed.")
    note("  Without it: cannot be told from noise here.")
    if any(row.outcome and row.outcome.errors for row in result.rows):
        note("! questions without an answer; they count 0 where an answer or a ranking is scored")
    shown = sum(key in row.differences for row in result.rows for key in keys)
    if shown >= 20:
        note(f"  Of {shown} differences, about {shown // 20} would carry the mark by chance alone.")
    for row in result.rows:
        means = row.outcome.means if row.outcome else {}
        for key in keys:
            if (mine := means.get(key)) and mine.n != done[0].means[key].n:
                note(f"{row.planned.label}: {_header(key)} is over {_over(mine)}")
        if row.not_comparable:
            note(f"{row.planned.label}: no difference is shown: {row.not_comparable}")
    _footer(done, result.folder, result.ui)


def _columns() -> int:
    """How many columns of differences fit."""
    return max(1, (_width() - RUN_COLUMN) // (CELL + 1))


def _marked(row: Row) -> str:
    errors = row.outcome.errors if row.outcome else 0
    return f"{row.planned.label} !{errors}" if errors else row.planned.label


def _cells(row: Row, keys: Sequence[str], lower: Collection[str]) -> list[str]:
    if row.outcome is None:
        return ["FAILED", *[""] * (len(keys) - 1)]
    return [_cell(row.outcome.means.get(key), row.differences.get(key), key in lower) for key in keys]


def _cell(mean: Mean | None, difference: Difference | None, lower_is_better: bool) -> str:
    if mean is None or mean.value is None:
        return "–"
    if difference is None:
        return f"{mean.value:.3f}{' ' * 8}"
    sign = f"{difference.delta:+.3f}" if difference.changed else "="
    if not difference.beyond_noise:
        return f"{mean.value:.3f} {sign:>6} "
    colour = "green" if (difference.delta > 0) != lower_is_better else "red"
    return f"{mean.value:.3f} [{colour}]{sign:>6}*[/{colour}]"


def _over(mean: Mean) -> str:
    return f"{mean.n} of {mean.of}" + (f" ({mean.failed} failed)" if mean.failed else "")


def _footer(outcomes: Sequence[Outcome], folder: Any, ui: str | None) -> None:
    computed = sum(sum(outcome.computed.values()) for outcome in outcomes)
    reused = sum(sum(outcome.reused.values()) for outcome in outcomes)
    common = set.intersection(*(set(outcome.notes) for outcome in outcomes))
    for text in dict.fromkeys(text for outcome in outcomes for text in outcome.notes if text in common):
        note(f"note: {text}")
    for outcome in outcomes:
        for text in outcome.notes:
            if text not in common:
                note(f"note: {outcome.name}: {text}")
    told = f"{computed} stage outputs computed, {reused} read from the store"
    note(told if computed else f"nothing recomputed: all {reused} stage outputs were read from the store")
    note(f"Results: {folder}")
    if ui:
        note(f"Open the UI: {ui}")


def _outcome_data(outcome: Outcome) -> dict[str, Any]:
    return {
        "name": outcome.name,
        "run_id": outcome.run_id,
        "folder": str(outcome.folder),
        "dataset": dict(outcome.dataset),
        "means": {key: asdict(mean) for key, mean in outcome.means.items()},
        "fingerprints": dict(outcome.fingerprints),
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
        "differences": {key: asdict(value) for key, value in row.differences.items()},
    }


def _header(key: str) -> str:
    return key.removeprefix("labels/")


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


def _short(value: Any, length: int = 48) -> str:
    from rich.markup import escape

    text = "" if value is None else " ".join(str(value).split())
    return escape(text if len(text) <= length else f"{text[: length - 1]}…")


def _table(*columns: str, title: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number == 0 else "right", overflow="fold")
    return table


def _print(table: Table) -> None:
    from rich.console import Console

    Console(width=_width()).print(table)


def _width() -> int:
    from rich.console import Console

    screen = Console()
    return min(screen.width, WIDTH) if screen.is_terminal else WIDTH


def _print_json(value: Any, indent: int | None = 1) -> None:
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False) + "\n")
