"""The comparison as Markdown that GitHub renders, for a pull request."""

from __future__ import annotations

from collections.abc import Sequence

from runner import phrases
from runner.compare import wording
from runner.compare.findings import Change, Comparison, Row
from runner.markdown import escaped, fitted, table

QUESTIONS = 50
"""Questions that got worse; each is left out where there is no room for it."""
FLIPS, MOVES = 20, 8
"""Verdicts that flipped and moves in ranking and context, of one question."""


def text(found: Comparison) -> str:
    """The comparison in at most runner.markdown.LONGEST characters: what does not fit is left out, and said so."""
    parts: list[tuple[str | None, str]] = [(None, _top(found))]
    if found.changed:
        parts.append(("the settings that differ", _settings(found)))
    for about, title in wording.TABLES.items():
        if rows := [row for row in found.rows if row.about == about]:
            parts.append((title, f"\n## {title}\n\n{_rows(rows)}"))
    if found.not_compared:
        parts.append(("what is not compared", _not_compared(found)))
    for about, title in wording.TABLES.items():
        keys, slices = wording.slices(found, about)
        if keys:
            rows_of = [[escaped(name), *(_cell(cells, key) for key in keys)] for name, cells in slices.items()]
            head = ("slice", *(escaped(wording.shown(key)) for key in keys))
            parts.append((f"{title} by slice", f"\n### {title} by slice: delta\n\n{table(head, rows_of)}"))
    if found.worse:
        parts.append((None, f"\n## Questions that got worse, the worst first ({found.worse_questions})"))
        parts += [(f"question {change.id}", change_text(change)) for change in found.worse[:QUESTIONS]]
        if (more := len(found.worse) - QUESTIONS) > 0:
            parts.append((None, f"\n{phrases.count(more, 'more question')} in compare.json."))
    return fitted(parts, _foot(found), "compare.json")


def _cell(cells: wording.Cells, key: str) -> str:
    return escaped(wording.slice_cell(cells.get(key)))


def _top(found: Comparison) -> str:
    sides = f"Baseline {escaped(wording.side(found.baseline))}, candidate {escaped(wording.side(found.candidate))}"
    return (
        f"# {escaped(found.candidate.called)} against {escaped(found.baseline.called)}\n\n"
        f"**{escaped(wording.headline(found), 2_000)}**\n\n{sides}, {phrases.count(found.questions, 'question')}."
    )


def _settings(found: Comparison) -> str:
    rows = [
        (escaped(key), *(escaped(wording.setting(value), 120) for value in values))
        for key, values in found.changed.items()
    ]
    return f"\n## What differs in the settings\n\n{table(('setting', 'baseline', 'candidate'), rows, texts=3)}"


def _rows(rows: Sequence[Row]) -> str:
    head = (
        "definition",
        "",
        "baseline",
        "candidate",
        "delta",
        "95% interval",
        "p",
        "Holm",
        "w/t/l",
        "carry",
        "visible",
    )
    return table(
        head,
        [
            (
                f"{escaped(row.definition)}{' ↓' if row.direction == 'lower' else ''}",
                f"**{row.word}**" if row.word in ("better", "worse") else row.word,
                phrases.number(row.baseline),
                phrases.number(row.candidate),
                f"**{phrases.signed(row.delta)}**",
                escaped(phrases.interval(row.low, row.high)),
                escaped(wording.p(row.p)),
                escaped(wording.p(row.adjusted)),
                wording.counts(row),
                wording.carries(row),
                wording.visible(row),
            )
            for row in rows
        ],
        texts=2,
    )


def _not_compared(found: Comparison) -> str:
    lines = [f"- {escaped(each.definition)}: {escaped('; '.join(each.why), 1_000)}" for each in found.not_compared]
    return "\n## Not compared\n\n" + "\n".join(lines)


def change_text(change: Change) -> str:
    """One question: its scores, what moved, the answers, the verdicts that turned round."""
    moves = wording.moves(change)
    lines = [escaped(wording.scores(change), 1_000), *(f"{where}: {escaped(told)}" for where, told in moves[:MOVES])]
    if len(moves) > MOVES:
        lines.append(f"and {len(moves) - MOVES} more")
    if change.before != change.after:
        lines += [
            f"{name}: {escaped(text or 'no answer')}" for name, text in (("old", change.before), ("new", change.after))
        ]
    flips = wording.flips(change)
    lines += [escaped(flip, 500) for flip in flips[:FLIPS]]
    if (more := len(flips) - FLIPS) > 0:
        lines.append(f"and {phrases.count(more, 'more verdict')}")
    points = "\n".join(f"- {line}" for line in lines)
    return f"\n**{escaped(change.id, 80)}** {escaped(change.question)}\n\n{points}"


def _foot(found: Comparison) -> str:
    notes = [f"- {escaped(note, 500)}" for note in (*wording.uneven(found), *found.notes[:20])]
    how = [*wording.HOW, *([wording.SLICES] if found.slices else [])] if found.rows else []
    return "\n".join(["", *notes, "", *(f"{escaped(line)}  " for line in how), ""])
