"""The audit on a terminal, at most 100 columns wide, or its data for machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from runner import phrases
from runner.audit import files, wording
from runner.audit.findings import Audit, Claim, Family, Group, View
from runner.audit.wording import Name, Told
from runner.console import as_json, broken, note, print_paragraphs, print_table, print_text, said, short, table_of

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
    note(said(wording.scope(audit)))
    for text in audit.notes:
        note(f"note: {said(text)}")
    for path in written:
        note(f"Written: {path}")


def _show_group(audit: Audit, group: Group) -> None:
    called, found = wording.names(group), wording.told(group)
    print_paragraphs(["", wording.asked(group), "", wording.headline(group, found), ""])
    _show_rows(audit, group, called)
    if found:
        _show_why(found, called)
    without: dict[str, list[str]] = {}
    for pair in group.pairs:
        if pair.why_not:
            without.setdefault(pair.why_not, []).append(f"{called[pair.left].letter} − {called[pair.right].letter}")
    print_paragraphs(f"Not taken apart: {', '.join(pairs)}: {reason}" for reason, pairs in without.items())
    print_paragraphs(wording.winners(group, called, REASONS))
    views = [view for view in wording.most_apart(group, RECORDS) if view.claims and wording.apart(view)]
    if views:
        print_paragraphs(["", "Records that are furthest apart (✓ counts for the score, ✗ against it)"])
    for view in views:
        _show_record(group, view, called)
    hazards = wording.hazards(group, called)
    if hazards:
        print_paragraphs(["", "Hazards"])
        for who, what, ids in hazards[:HAZARDS]:
            names = str(who[0]) if len(who) == 1 else ", ".join(name.letter for name in who)
            records = f"{phrases.count(len(ids), 'record')}: {phrases.some(ids, 3)}"
            print_paragraphs([f"{names}: {phrases.cut(what, 240)} ({records})"], 2)
        if (more := len(hazards) - HAZARDS) > 0:
            print_paragraphs([f"and {phrases.count(more, 'more hazard')}"], 2)


def _show_rows(audit: Audit, group: Group, called: Mapping[str, Name]) -> None:
    under = f"under {audit.threshold:g}"
    table = table_of("", "definition", "mean", "95% interval", "records", "failed", "n/a", under, title="Definitions")
    table.columns[1].justify = "left"
    for row in group.rows:
        mean = f"[bold]{phrases.number(row.mean)}[/bold]{' ↓' if row.direction == 'lower' else ''}"
        interval = short(phrases.interval(row.low, row.high))
        counts = (str(each) for each in (row.n, row.failed, row.not_applicable, row.below))
        table.add_row(called[row.definition].letter, _key(row.definition), mean, interval, *counts)
    print_table(table)


def _key(key: str) -> str:
    return "\n".join(short(line, KEY) for line in broken(said(key), KEY).split("\n"))


def _show_why(found: Sequence[Told], called: Mapping[str, Name]) -> None:
    head = ("records", "first", "second", "difference", "= formula", "+ verdicts", "+ splitting")
    table = table_of("pair", *head, title="Why they differ")
    for one in found:
        parts = (wording.part(one.parts[name], getattr(one.why, name)) for name in wording.PARTS)
        table.add_row(
            f"{called[one.pair.left].letter} − {called[one.pair.right].letter}",
            str(one.why.n),
            phrases.number(one.why.left),
            phrases.number(one.why.right),
            f"[bold]{phrases.signed(one.difference)}[/bold]",
            *parts,
        )
    print_table(table)
    for one in found[:REASONS]:
        pair = f"{called[one.pair.left].letter} − {called[one.pair.right].letter}"
        print_paragraphs([f"{pair}: {one.in_words}"])


def _show_record(group: Group, view: View, called: Mapping[str, Name]) -> None:
    of = f" of {view.system}" if view.system and view.system not in view.id else ""
    values = "  ".join(f"{called[key].letter} {phrases.number(value)}" for key, value in view.values.items())
    print_paragraphs(["", phrases.cut(f"Record {view.id}{of}", 120), values, phrases.cut(view.question or "", 160)])
    shown = more = 0
    quiet: dict[tuple[str, str], int] = {}
    for units in dict.fromkeys(claim.units for claim in view.claims):
        spoke = wording.spoke(view, units, called)
        for claim in (claim for claim in view.claims if claim.units == units):
            remark = wording.remark(claim, called, spoke, group)
            if not remark:
                by = "and counted alike by all"
                if len(claim.words) == 1:
                    by = f"by {called[next(iter(claim.words))].short} alone"
                quiet[units, by] = quiet.get((units, by), 0) + 1
            elif shown < CLAIMS:
                shown += 1
                said = (_cell(claim, key, called) for key in spoke if key in claim.words)
                print_paragraphs([phrases.cut(claim.text, 160)], 2)
                print_paragraphs(["; ".join(said), remark], 6)
            else:
                more += 1
    if more:
        print_paragraphs([f"and {more} more that they do not count alike"], 2)
    for (units, by), n in quiet.items():
        print_paragraphs([f"{wording.many(n, units)} judged {by}"], 2)


def _cell(claim: Claim, key: str, called: Mapping[str, Name]) -> str:
    word, side = wording.says(claim.words[key])
    mark = {"for": "✓ ", "against": "✗ "}.get(side, "")
    return f"{called[key].letter or called[key].short} {mark}{phrases.cut(word, 40)}"


def _show_family(family: Family) -> None:
    print_paragraphs(["", wording.family(family)])
    if len({phrases.number(reading.mean) for reading in family.readings}) == 1:
        return  # who computes which makes no difference here; the files tell it
    table = table_of("definition", "mean", "rankings", "is", title=f"Rankings: {short(family.name)}")
    table.columns[3].justify = "left"
    for reading in family.readings:
        table.add_row(
            _key(reading.definition), phrases.number(reading.mean), str(reading.n), short(reading.formula, 200)
        )
    print_table(table)
    calls: dict[str, list[str]] = {}
    for each in family.conventions:
        measured = f" (called here: {phrases.number(each.mean)})" if each.mean is not None else ""
        calls.setdefault(each.same_as or "none of these", []).append(f"{each.library}: {each.call}{measured}")
    for definition in sorted(calls, key=[*(each.definition for each in family.readings), *calls].index):
        print_paragraphs([f"computed as {definition} by"], 2)
        print_paragraphs(calls[definition], 6)
