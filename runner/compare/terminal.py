"""The comparison on a terminal, at most 100 columns wide, or its data for machines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from runner import phrases
from runner.charts import shortened
from runner.compare import files, wording
from runner.compare.findings import Change, Comparison, Row
from runner.console import as_json, broken, note, print_paragraphs, print_table, print_text, said, short, table_of

QUESTIONS, FLIPS, MOVES = 10, 6, 6
"""Shown: questions that got worse, verdicts of one that flipped, and what moved in its ranking and context."""
TEXT = 220
"""Characters of a question or an answer."""
KEY, SLICE, CELLS = 19, 24, 4
"""Columns for a definition and for a slice; definitions in a table of slices."""
COLOUR = {"better": "green", "worse": "red", "cannot tell": "yellow", "unchanged": "dim"}


def show(found: Comparison, written: Sequence[Path]) -> None:
    """Print what was found, the table first; written: the files that hold all of it."""
    if as_json():
        print_text(files.encoded(found))
        return
    print_paragraphs([f"Baseline:  {wording.side(found.baseline)}", f"Candidate: {wording.side(found.candidate)}"])
    print_paragraphs(["", wording.headline(found), ""])
    _show_settings(found)
    for about, title in wording.TABLES.items():
        if rows := [row for row in found.rows if row.about == about]:
            _show_rows(rows, f"{title}, {phrases.count(found.questions, 'question')}")
    for each in found.not_compared:
        print_paragraphs([f"Not compared: {each.definition}: {'; '.join(each.why)}"])
    for about, title in wording.TABLES.items():
        _show_slices(found, about, f"{title} by slice: delta")
    _show_worse(found)
    if found.rows:
        for line in wording.HOW:
            note(line)
    if found.slices:
        note(wording.SLICES)
    for text in (*wording.uneven(found), *found.notes):
        note(f"note: {said(text)}")
    for path in written:
        note(f"Written: {path}")


def _show_settings(found: Comparison) -> None:
    if not found.changed:
        print_paragraphs(["The settings of the two runs are the same.", ""])
        return
    table = table_of("setting", "baseline", "candidate", title="What differs in the settings")
    for key, values in found.changed.items():
        table.add_row(short(key, 34), *(short(shortened(wording.setting(value), 28), 28) for value in values))
    print_table(table)


def _show_rows(rows: Sequence[Row], title: str) -> None:
    head = ("base-\nline", "candi-\ndate", "delta and\n95% interval", "p\nHolm", "w/t/l", "car-\nry", "visible", "")
    table = table_of("definition", *head, title=title)
    for row in rows:
        lower = " ↓" if row.direction == "lower" else ""
        table.add_row(
            _key(f"{wording.shown(row.definition)}{lower}"),
            phrases.number(row.baseline),
            phrases.number(row.candidate),
            f"[bold]{phrases.signed(row.delta)}[/bold]\n{short(phrases.interval(row.low, row.high))}",
            f"{wording.p(row.p)}\n{wording.p(row.adjusted)}",
            wording.counts(row),
            wording.carries(row),
            wording.visible(row),
            f"[{COLOUR[row.word]}]{row.word}[/{COLOUR[row.word]}]",
        )
    print_table(table)


def _key(key: str) -> str:
    return "\n".join(short(line, KEY) for line in broken(said(key), KEY).split("\n"))


def _show_slices(found: Comparison, about: Literal["retrieval", "generation"], title: str) -> None:
    keys, slices = wording.slices(found, about)
    some = [key for key in found.table if key in keys][:CELLS] or keys[:CELLS]
    if not some:
        return
    table = table_of("slice", *(broken(said(wording.shown(key)), 16) for key in some), title=title)
    for name, cells in slices.items():
        if any(key in cells for key in some):
            table.add_row(short(said(name), SLICE), *(wording.slice_cell(cells.get(key)) for key in some))
    print_table(table)
    if more := len(keys) - len(some):
        print_paragraphs([f"{phrases.count(more, 'more definition')} by slice: in {files.PAGE}", ""])


def _show_worse(found: Comparison) -> None:
    worse = found.worse
    if not worse:
        if found.rows:
            print_paragraphs(["No question got worse."])
        return
    shown = min(len(worse), QUESTIONS)
    more = f"{'all' if len(worse) == found.worse_questions else f'{len(worse):,}'} are in {files.DATA}"
    of = "" if shown == len(worse) else f": the first {shown} of {found.worse_questions:,}; {more}"
    print_paragraphs([f"Questions that got worse, the worst first{of}"])
    for change in worse[:QUESTIONS]:
        _show_change(change)


def _show_change(change: Change) -> None:
    print_paragraphs(["", f"{phrases.cut(change.id, 60)}: {phrases.cut(change.question, TEXT)}"])
    moves = wording.moves(change)
    lines = [wording.scores(change), *(f"{where}: {told}" for where, told in moves[:MOVES])]
    if len(moves) > MOVES:
        lines.append(f"and {len(moves) - MOVES} more")
    if change.before != change.after:
        lines += [f"{name}: {_answer(text)}" for name, text in (("old", change.before), ("new", change.after))]
    flips = wording.flips(change)
    lines += flips[:FLIPS]
    if (more := len(flips) - FLIPS) > 0:
        lines.append(f"and {phrases.count(more, 'more verdict')}")
    print_paragraphs(lines, 2)


def _answer(text: str | None) -> str:
    return "no answer" if text is None else phrases.cut(text, TEXT)
