"""The diagnosis on a terminal, at most 100 columns wide, or its data for machines."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from runner import phrases
from runner.console import as_json, note, print_json, print_paragraphs, print_table, said, short, table_of
from runner.diagnosis import wording
from runner.diagnosis.findings import Diagnosed, Diagnosis
from runner.diagnosis.labelling import GRADES, Labelled

EXAMPLES, CHUNKS = 3, 5
"""Shown: questions of each fault, and chunks that nobody judged."""
TEXT = 160
"""Characters of a question or a chunk."""


def show(found: Diagnosis, written: Path | None) -> None:
    """Print what was found, the table first; written: the file of unjudged chunks."""
    if as_json():
        print_json(as_data(found))
        return
    print_paragraphs([f"{found.name} ({found.folder})", wording.headline(found), ""])
    _show_table(found)
    for text in wording.moved(found):
        note(f"against the baseline: {said(text)}")
    _show_examples(found)
    if found.missing:
        print_paragraphs(["", "Could not be looked for"])
        print_paragraphs(wording.missing(found), 2)
    _show_unjudged(found)
    for text in (*wording.HOW, *(f"note: {text}" for text in found.notes)):
        note(said(text))
    if written:
        note(f"Written: {written}. Fill in grade ({GRADES}), then:")
        note(f"  paribus diagnose --labels {written} --into QUESTIONS.jsonl")


def as_data(found: Diagnosis) -> dict[str, Any]:
    """The diagnosis ready for JSON; unjudged chunks are without their texts, which `--unjudged` writes."""
    return {
        "name": found.name,
        "folder": str(found.folder),
        "headline": wording.headline(found),
        "counts": dict(found.counts),
        "before": None if found.before is None else dict(found.before),
        "appeared": {fault: list(ids) for fault, ids in found.appeared.items()},
        "gone": {fault: list(ids) for fault, ids in found.gone.items()},
        "levers": {fault: list(levers) for fault, levers in found.levers.items()},
        "missing": dict(found.missing),
        "questions": [asdict(each) for each in found.questions],
        "unjudged": [
            {name: value for name, value in asdict(each).items() if name != "text"} for each in found.unjudged
        ],
        "judged_only": [asdict(each) for each in found.judged_only],
        "notes": list(found.notes),
    }


def _show_table(found: Diagnosis) -> None:
    if not (rows := wording.rows(found)):
        print_paragraphs(["No fault was found."])
        return
    change = [] if found.before is None else ["change"]
    table = table_of("fault", "questions", *change, "example", "try", title="Faults")
    table.columns[-2].justify = table.columns[-1].justify = "left"
    for row in rows:
        example = short(said(row.example.question_id), 14) if row.example else ""
        levers = "\n".join(short(lever, 44) for lever in row.levers)
        changed = [wording.change(row)] if change else []
        table.add_row(row.fault, str(row.count), *changed, example, levers)
    print_table(table)


def _show_examples(found: Diagnosis) -> None:
    for row in wording.rows(found):
        if not row.count:
            continue
        print_paragraphs(["", f"{row.fault}: {wording.MEANS[row.fault]}"])
        for each in [*wording.examples(found, row.fault)][:EXAMPLES]:
            _show_question(each)


def _show_question(each: Diagnosed) -> None:
    print_paragraphs([f"{phrases.cut(each.question_id, 60)}: {phrases.cut(each.question, TEXT)}"], 2)
    first, *others = each.faults
    more = f" (and: {', '.join(fault.name for fault in others)})" if others else ""
    print_paragraphs([f"{first.evidence}{more}"], 6)


def _show_unjudged(found: Diagnosis) -> None:
    print_paragraphs(["", f"Unjudged: {wording.unjudged(found.unjudged)}"])
    for each in found.unjudged[:CHUNKS]:
        place = f"{each.doc_id}[{each.start}:{each.end}] at rank {each.rank}"
        print_paragraphs([f"{each.question_id}: {place}: “{phrases.cut(each.text, TEXT)}”"], 2)
    differ, same = wording.judged_only(found.judged_only)
    if differ:
        before = found.before is not None
        head = ("value", "judged only", *(("baseline", "judged only") if before else ()), "over")
        print_paragraphs([""])
        table = table_of("definition", *head, title="Unjudged chunks as not relevant, and taken out")
        for row in differ:
            values = [row.value, row.judged_only, *((row.value_before, row.judged_only_before) if before else ())]
            table.add_row(short(row.definition, 40), *map(phrases.number, values), str(row.n))
        print_table(table)
    if same:
        note(f"{phrases.count(same, 'definition')} of ranking with the same value either way")


def show_labelled(done: Labelled, into: Path) -> None:
    """Which questions got labels."""
    if as_json():
        print_json({"added": dict(done.spans), "unchanged": done.unchanged, "ungraded": done.ungraded})
        return
    if done.spans:
        table = table_of("question", "passages", title=f"Labels put into {into}")
        for id, count in done.spans.items():
            table.add_row(short(said(id)), str(count))
        print_table(table)
    note(
        f"{into}: {phrases.count(sum(done.spans.values()), 'passage')} added; {done.unchanged} were there already; "
        f"{done.ungraded} without a grade"
    )
