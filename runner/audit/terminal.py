"""The audit on a terminal, at most 100 columns wide, or its data for machines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from adapters.sentences import well_formed
from runner.audit import files, wording
from runner.audit.findings import Audit, Claim, Family, Group, View
from runner.audit.wording import Name, Told
from runner.console import as_json, broken, note, print_lines, print_table, print_text, short, table_of

RECORDS, CLAIMS, HAZARDS, REASONS = 3, 3, 6, 3
"""Shown of each question asked: records, claims of a record that are not counted alike, hazards, and pairs whose
reasons are told in words."""
KEY = 34
"""Columns for the key of a definition."""


def show(audit: Audit, written: Sequence[Path]) -> None:
    """Print what was found, the largest differences first; written: the files that hold all of it."""
    if as_json():
        print_text(files.encoded(audit))
        return
    for group in audit.groups:
        _show_group(audit, group)
    for family in audit.families:
        _show_family(family)
    note(_said(wording.scope(audit)))
    for text in audit.notes:
        note(f"note: {_said(text)}")
    for path in written:
        note(f"Written: {path}")


def _said(text: str) -> str:
    return well_formed(wording.plain(text))


def _print(texts: Iterable[str], indent: int = 0) -> None:
    """Foreign texts below one another, each on as many lines as it takes."""
    for text in texts:
        print_lines([("", _said(text))] if indent else [(_said(text),)], (indent, 92 - indent) if indent else (94,))


def _show_group(audit: Audit, group: Group) -> None:
    called, found = wording.names(group), wording.told(group)
    _print(["", wording.asked(group), "", wording.headline(group, found), ""])
    _show_rows(audit, group, called)
    if found:
        _show_why(found, called)
    without: dict[str, list[str]] = {}
    for pair in group.pairs:
        if pair.why_not:
            without.setdefault(pair.why_not, []).append(f"{called[pair.left].letter} − {called[pair.right].letter}")
    _print(f"Not taken apart: {', '.join(pairs)}: {reason}" for reason, pairs in without.items())
    changed = [pair for pair in group.pairs if pair.systems and not pair.systems.same_winner]
    if any(pair.systems for pair in group.pairs):
        _print([f"The choice of the definition changes the winner in {wording.count(len(changed), 'pair')}."])
    for pair in changed[:REASONS]:
        if pair.systems:
            _print([wording.winner(pair.systems, called[pair.left].short, called[pair.right].short)], 2)
    views = [view for view in wording.most_apart(group, RECORDS) if view.claims]
    for view in views:
        _show_record(view, called)
    if group.hazards:
        _print(["", "Hazards"])
        for hazard in group.hazards[:HAZARDS]:
            told = wording.cut(wording.hazard(hazard), 200)
            records = f"{wording.count(len(hazard.ids), 'record')}: {wording.some(hazard.ids, 3)}"
            _print([f"{called[hazard.definition]}: {told} ({records})"], 2)
        if (more := len(group.hazards) - HAZARDS) > 0:
            _print([f"and {wording.count(more, 'more hazard')}"], 2)


def _show_rows(audit: Audit, group: Group, called: Mapping[str, Name]) -> None:
    under = f"under {audit.threshold:g}"
    table = table_of("", "definition", "mean", "95% interval", "records", "failed", "n/a", under, title="Definitions")
    table.columns[1].justify = "left"
    for row in group.rows:
        mean = f"[bold]{wording.number(row.mean)}[/bold]{' ↓' if row.direction == 'lower' else ''}"
        interval = short(wording.interval(row.low, row.high))
        counts = (str(each) for each in (row.n, row.failed, row.not_applicable, row.below))
        table.add_row(called[row.definition].letter, _key(row.definition), mean, interval, *counts)
    print_table(table)


def _key(key: str) -> str:
    return "\n".join(short(line, KEY) for line in broken(_said(key), KEY).split("\n"))


def _show_why(found: Sequence[Told], called: Mapping[str, Name]) -> None:
    head = ("records", "first", "second", "difference", "= formula", "+ verdicts", "+ splitting")
    table = table_of("pair", *head, title="Why they differ")
    for one in found:
        parts = (wording.part(one.parts[name], getattr(one.why, name)) for name in wording.PARTS)
        table.add_row(
            f"{called[one.pair.left].letter} − {called[one.pair.right].letter}",
            str(one.why.n),
            wording.number(one.why.left),
            wording.number(one.why.right),
            f"[bold]{wording.signed(one.difference)}[/bold]",
            *parts,
        )
    print_table(table)
    for one in found[:REASONS]:
        pair = f"{called[one.pair.left].letter} − {called[one.pair.right].letter}"
        _print([f"{pair}: {one.in_words}"])


def _show_record(view: View, called: Mapping[str, Name]) -> None:
    of = f" of {view.system}" if view.system else ""
    values = "  ".join(f"{called[key].letter} {wording.number(value)}" for key, value in view.values.items())
    _print(["", wording.cut(f"Record {view.id}{of}", 120), values, wording.cut(view.question or "", 160)])
    alike = 0
    shown = 0
    for units in dict.fromkeys(claim.units for claim in view.claims):
        spoke = wording.spoke(view, units, called)
        for claim in (claim for claim in view.claims if claim.units == units):
            remark = wording.remark(claim, called, spoke)
            if not remark:
                alike += 1
            elif shown < CLAIMS:
                shown += 1
                said = (_cell(claim, key, called) for key in spoke if key in claim.words)
                _print([wording.cut(claim.text, 160)], 2)
                _print(["; ".join(said), remark], 6)
    if more := len(view.claims) - shown - alike:
        _print([f"and {more} more that they do not count alike"], 2)
    if alike:
        _print([f"{wording.count(alike, 'claim is', 'claims are')} judged and counted alike by all"], 2)


def _cell(claim: Claim, key: str, called: Mapping[str, Name]) -> str:
    word, side = wording.says(claim.words[key])
    mark = {"for": "✓ ", "against": "✗ "}.get(side, "")
    return f"{called[key].letter or called[key].short} {mark}{wording.cut(word, 40)}"


def _show_family(family: Family) -> None:
    _print(["", wording.family(family)])
    if len({wording.number(reading.mean) for reading in family.readings}) == 1:
        return  # who computes which makes no difference here; the files tell it
    table = table_of("definition", "mean", "rankings", "is", title=f"Rankings: {short(family.name)}")
    table.columns[3].justify = "left"
    for reading in family.readings:
        table.add_row(
            _key(reading.definition), wording.number(reading.mean), str(reading.n), short(reading.formula, 200)
        )
    print_table(table)
    for each in family.conventions:
        equals = each.same_as or "none of these"
        measured = f" ({wording.number(each.mean)})" if each.mean is not None else ""
        _print([f"{each.library} {each.call}: {equals}{measured}"], 2)
