"""The audit as Markdown that GitHub renders, for pull requests and documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from runner import phrases
from runner.audit import wording
from runner.audit.findings import Audit, Family, Group, View
from runner.audit.wording import Name, Told
from runner.markdown import escaped, fitted, table

RECORDS = 10
"""Records with their claims, for each question asked."""
CLAIMS = 20
"""Claims of one record."""
PAIRS = 45
"""Pairs of one question asked: those of ten definitions."""


def text(audit: Audit) -> str:
    """The audit in at most LONGEST characters: what does not fit is left out, and said at the end."""
    parts: list[tuple[str | None, str]] = [(None, _top(audit))]
    for group in audit.groups:
        parts += _group(audit, group)
    parts += [(f"the rankings by {family.name}", _family(family)) for family in audit.families]
    return fitted(parts, _foot(audit), "audit.json")


def _top(audit: Audit) -> str:
    lines = [f"# What the scores of {escaped(audit.source)} mean, and why they differ", ""]
    for group in audit.groups:
        title = f"**{escaped(wording.asked(group))}** " if len(audit.groups) > 1 else ""
        lines += [f"{title}{escaped(wording.headline(group, wording.told(group)), 2_000)}", ""]
    lines += [f"{escaped(wording.family(family))}\n" for family in audit.families] if not audit.groups else []
    return "\n".join([*lines, f"{escaped(wording.scope(audit))}."])


def _group(audit: Audit, group: Group) -> list[tuple[str | None, str]]:
    """The sections of a group, each with the name under which it is left out; None = it never is."""
    called, found = wording.names(group), wording.told(group)
    asked = group.asks
    sections: list[tuple[str | None, str]] = [
        (f"the definitions ({asked})", f"\n## {escaped(wording.asked(group))}\n\n{_rows(audit, group, called)}")
    ]
    if found:
        sections.append((f"why the definitions differ ({asked})", _why(found, called)))
    sections += [(f"the cross table ({asked})", _cross(group, called))] if group.crosses else []
    if group.pairs:
        sections.append((f"the pairs ({asked})", _pairs(audit, group, called)))
    if any(pair.systems for pair in group.pairs):
        sections.append((f"the systems ({asked})", _systems(group, called)))
    if group.hazards:
        sections.append((f"the hazards ({asked})", _hazards(group, called)))
    views = wording.most_apart(group, RECORDS)
    if views:
        more = len(group.views) - len(views)
        told = f"\n\nThe {len(views)} that are furthest apart; {more:,} more are in audit.json." if more else ""
        sections.append((f"the records ({asked})", f"\n### Claim by claim{told}"))
        sections += [(f"record {view.id}", _record(group, view, called)) for view in views]
    if group.pairs:
        sections.append((f"the cards ({asked})", _paper(group, called)))
    return sections


def _rows(audit: Audit, group: Group, called: Mapping[str, Name]) -> str:
    head = ("definition", "counts for", "counts against", "mean", "95% interval", "records", "failed")
    rows = []
    for row in group.rows:
        good, bad = wording.sides(row) if row.units else (row.formula, "")
        rows.append(
            (
                f"**{called[row.definition].letter}** {escaped(row.definition)}",
                escaped(good),
                escaped(bad),
                f"**{phrases.number(row.mean)}**{' ↓' if row.direction == 'lower' else ''}",
                escaped(phrases.interval(row.low, row.high)),
                str(row.n),
                str(row.failed),
                str(row.not_applicable),
                str(row.below),
            )
        )
    return table((*head, "not applicable", f"under {phrases.number(audit.threshold, 2)}"), rows, texts=3)


def _why(found: Sequence[Told], called: Mapping[str, Name]) -> str:
    rows = []
    for one in found[:PAIRS]:
        parts = [wording.part(one.parts[name], getattr(one.why, name)) for name in wording.PARTS]
        rows.append(
            (
                f"{called[one.pair.left].letter} − {called[one.pair.right].letter}",
                escaped(one.in_words, 2_000),
                str(one.why.n),
                phrases.number(one.why.left),
                phrases.number(one.why.right),
                f"**{phrases.signed(one.difference)}**",
                *parts,
            )
        )
    head = ("pair", "in words", "records", "first", "second", "difference", "= formula", "+ verdicts", "+ splitting")
    return f"\n### Why they differ\n\n{table(head, rows, texts=2)}{_more(len(found), PAIRS, 'pair')}"


def _more(n: int, shown: int, noun: str) -> str:
    return f"\n\n{phrases.count(n - shown, f'more {noun}')} in audit.json." if n > shown else ""


def _cross(group: Group, called: Mapping[str, Name]) -> str:
    found = []
    for cross in group.crosses:
        rows = []
        for down, source in enumerate(cross.sources):
            cells = []
            for across, formula in enumerate(cross.formulas):
                low, high = cross.low[down][across], cross.high[down][across]
                told = phrases.number(cross.cells[down][across])
                told += f" ({phrases.number(low, 2)}–{phrases.number(high, 2)})" if high - low > wording.NOTHING else ""
                cells.append(f"**{told}**" if source == formula else told)
            rows.append((escaped(str(called[source])), *cells))
        head = ("verdicts of", *(f"formula of {called[formula].letter}" for formula in cross.formulas))
        over = phrases.count(cross.n, "record")
        found.append(f"Over {over}: {escaped(cross.units)}{wording.other_means(group, cross)}.\n\n{table(head, rows)}")
    return "\n".join(
        ["\n### Every formula on everyone's verdicts\n", "\n\n".join(found), "", escaped(wording.COARSE, 500)]
    )


def _pairs(audit: Audit, group: Group, called: Mapping[str, Name]) -> str:
    pairs = [pair for pair in group.pairs if pair.n]
    rows = [
        (
            f"{called[pair.left].letter} − {called[pair.right].letter}",
            str(pair.n),
            phrases.signed(pair.difference),
            escaped(phrases.interval(pair.low, pair.high)),
            phrases.number(pair.apart),
            "–" if pair.sides is None else f"{100 * pair.sides:.1f}%",
            phrases.number(pair.spearman),
            phrases.number(pair.kendall),
        )
        for pair in pairs[:PAIRS]
    ]
    other_side = f"other side of {phrases.number(audit.threshold, 2)}"
    head = ("pair", "records", "difference", "95% interval", "distance", other_side, "Spearman", "Kendall")
    without = dict.fromkeys(pair.why_not for pair in group.pairs if pair.why_not)
    reasons = "".join(f"\n- not taken apart: {escaped(reason, 500)}" for reason in without if reason)
    laid_out = table(head, rows)
    return f"\n### Record by record\n\n{laid_out}{_more(len(pairs), PAIRS, 'pair')}{reasons and f'{chr(10)}{reasons}'}"


def _systems(group: Group, called: Mapping[str, Name]) -> str:
    lines = ["\n### Would another definition have changed the winner?\n"]
    for pair in group.pairs[:PAIRS]:
        if pair.systems:
            told = wording.winner(pair.systems, called[pair.left].short, called[pair.right].short)
            lines.append(f"- {escaped(told, 1_000)} (Kendall {phrases.number(pair.systems.kendall)})")
    lines.append(f"\n{wording.BY_MEANS}")
    if other := wording.other_questions(group):
        lines.append(f"\n{escaped(other)}")
    return "\n".join(lines)


def _record(group: Group, view: View, called: Mapping[str, Name]) -> str:
    of = f" of {escaped(view.system, 60)}" if view.system else ""
    values = ", ".join(
        f"{called[key].letter} {'no value' if value is None else f'**{phrases.number(value)}**'}"
        for key, value in view.values.items()
    )
    lines = [f"\n**{escaped(view.id, 80)}**{of}: {values}", f"\n> {escaped(view.question or '')}"]
    if view.answer is not None:
        lines.append(f">\n> {escaped(view.answer)}")
    lines += [f"\n{called[key].letter} has no value: {escaped(reason)}" for key, reason in view.reasons.items()]
    for units in dict.fromkeys(claim.units for claim in view.claims):
        spoke = wording.spoke(view, units, called)
        claims = [claim for claim in view.claims if claim.units == units]
        rows = []
        for claim in claims[:CLAIMS]:
            cells = []
            for key in spoke:
                if key in claim.words:
                    said, side = wording.says(claim.words[key])
                    mark = {"for": "✓ ", "against": "✗ "}.get(side, "")
                    cells.append(f"{mark}{escaped(said, 60)}")
                else:
                    cells.append("–")
            remark = wording.remark(claim, called, spoke, group)
            rows.append((escaped(claim.text) + (f"<br>*{escaped(remark, 500)}*" if remark else ""), *cells))
        head = (escaped(units), *(called[key].letter or called[key].short for key in spoke))
        lines.append(f"\n{table(head, rows, texts=len(head))}{_more(len(claims), CLAIMS, 'claim')}")
    return "\n".join(lines)


def _hazards(group: Group, called: Mapping[str, Name]) -> str:
    lines = [
        f"- **{', '.join(name.letter for name in who)}** {phrases.count(len(ids), 'record')}: "
        f"{escaped(what)} ({escaped(phrases.some(ids, 5))})"
        for who, what, ids in wording.hazards(group, called)
    ]
    return "\n### Hazards\n\n" + "\n".join(lines)


def _paper(group: Group, called: Mapping[str, Name]) -> str:
    found = []
    for pair in group.pairs[:PAIRS]:
        rows = [
            (escaped(name), *(escaped(wording.field(value)) for value in values)) for name, values in pair.paper.items()
        ]
        fields = phrases.count(len(rows), "field differs", "fields differ")
        title = f"{called[pair.left].letter} and {called[pair.right].letter}: {fields}"
        laid_out = table(("field", called[pair.left].letter, called[pair.right].letter), rows, texts=3)
        found.append(f"<details><summary>{title}</summary>\n\n{laid_out}\n\n</details>")
    return "\n".join([f"\n### What the definitions say on paper\n\n{wording.ON_PAPER}\n", *found])


def _family(family: Family) -> str:
    readings = [
        (escaped(each.definition), escaped(each.formula), phrases.number(each.mean), str(each.n))
        for each in family.readings
    ]
    lines = [f"\n## Rankings: {escaped(family.name)}\n", table(("definition", "is", "mean", "rankings"), readings, 2)]
    if family.conventions:
        rows = [
            (
                escaped(" ".join(filter(None, (each.library, each.version)))),
                escaped(each.call),
                escaped(each.convention),
                escaped(each.same_as or "none of these"),
                phrases.number(each.mean),
                escaped(each.source),
            )
            for each in family.conventions
        ]
        head = ("library", "call", "what it computes", "equals", "measured", "known from")
        lines += ["", table(head, rows, texts=6)]
    return "\n".join(lines)


def _foot(audit: Audit) -> str:
    lines = ["\n## How this was made\n"]
    if audit.judge:
        lines += [
            f"Judge: {escaped(', '.join(f'{name} {value}' for name, value in wording.judge(audit.judge)), 1_000)}.\n"
        ]
    lines += [f"{escaped(note, 500)}\n" for note in audit.notes[:20]]
    return "\n".join([*lines, wording.HOW, "", wording.REFERENCE, ""])
