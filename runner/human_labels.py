"""Labels of people on answers: the format of a line, and reading a file or a table of them. docs/judges.md shows it in
full."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from io import StringIO
from math import isfinite
from pathlib import Path
from typing import Any, Literal

from adapters.judges.labels import JudgedClaim
from runner.datasets.faults import Fields, shown, unusable, validated
from runner.datasets.records import Filled, parse_line
from runner.errors import DataError

LISTED = 50
"""How many faults an error lists; it counts all of them."""
COLUMNS = ("id", "question", "answer", "contexts", "reference", "split", "record", "who", "when", "claim", "verdict")
"""A table of labels (.csv): one row a claim; contexts are a JSON list."""


class ClaimFields(Fields):
    """One claim of an answer, and what a person says of it: does the context support it, contradict it, or not say?"""

    text: Filled
    verdict: Literal["supported", "contradicted", "absent"]


class LabelFields(Fields):
    """One line of a file of labels: an answer with what was known, and what one person, or several together, say."""

    id: Filled
    question: Filled
    answer: Filled
    contexts: list[str]
    reference: str | None = None
    split: Literal["tune", "held_out"] = "tune"
    origin: Literal["human", "model"]
    who: Filled | None = None
    when: Filled | None = None
    record: Filled | None = None
    score: float | None = None
    scale: list[float] | None = None
    claims: list[dict[str, Any]] | None = None


@dataclass(frozen=True, slots=True)
class Label:
    """What people say of one answer: claims, or a score as a share of its scale. record: which record of which run it
    was, where that is known. line: where it stands, as file:line."""

    id: str
    question: str
    answer: str
    contexts: tuple[str, ...]
    reference: str | None
    split: Literal["tune", "held_out"]
    who: str | None
    when: str | None
    record: str | None
    claims: tuple[JudgedClaim, ...] | None
    score: float | None
    line: str

    @property
    def value(self) -> float:
        """The score as a share of its scale, or the share of supported claims."""
        if self.claims is None:
            assert self.score is not None
            return self.score
        return sum(claim.verdict == "supported" for claim in self.claims) / len(self.claims)

    def supported(self, supported_from: float) -> bool:
        """Whether every claim is supported, or the score reaches this share of its scale."""
        return self.value == 1.0 if self.claims is not None else self.value >= supported_from


def read_labels(path: Path) -> list[Label]:
    """The labels in a JSONL file, or in a table whose name ends in .csv. Raises DataError with every fault of the file,
    each with its line."""
    if path.suffix.lower() == ".csv":
        return _of_table(path)
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error
    entries = []
    for number, raw in enumerate(lines, 1):
        if raw.strip():
            fields, faults = parse_line(raw)
            entries.append((f"{shown(path.as_posix())}:{number}", fields, faults))
    return parsed_labels(path, entries)


Entry = tuple[str, Mapping[str, Any] | None, list[str]]
"""The place of one label in a file, its fields, and what is wrong already."""


def parsed_labels(path: Path, entries: Sequence[Entry]) -> list[Label]:
    """The labels that `entries` describe. Raises DataError with every fault, and for labels that a model made."""
    labels: list[Label] = []
    report: list[str] = []
    first: dict[str, str] = {}
    by_model: list[str] = []
    for place, fields, wrong in entries:
        label, faults = (None, list(wrong)) if fields is None else _label(fields, place, wrong)
        if fields is not None and isinstance(fields.get("id"), str):
            if first.setdefault(fields["id"], place) != place:
                faults.append(f"id {shown(fields['id'])} is taken already, at {first[fields['id']]}; ids are unique")
            if fields.get("origin") == "model":
                by_model.append(place)
        report += [f"{place}: {fault}" for fault in faults]
        if label and not faults:
            labels.append(label)
    if report:
        more = [f"and {len(report) - LISTED} more"] if len(report) > LISTED else []
        faults_in = f"{path} cannot be used: {len(report)} fault{'s' * (len(report) > 1)}"
        raise DataError("\n".join([faults_in, *report[:LISTED], *more]))
    if by_model:
        more = [f" and {len(by_model) - 1} more"] if len(by_model) > 1 else []
        raise DataError(
            f"{by_model[0]}{''.join(more)}: origin is model. Labels that a model made show how far two models agree "
            "and prove nothing about people; take those lines out, or have a person judge them"
        )
    if not labels:
        raise DataError(f"{path} has no label")
    return labels


# The table.

_ACTIVE = ("=", "+", "-", "@", "＝", "＋", "－", "＠", "\t", "\r", "\n", "'")
"""What a spreadsheet would take for a formula, and the mark that stops it."""


def guarded(text: str) -> str:
    """`text` as a cell that no spreadsheet takes for a formula; reading the table takes the mark away again."""
    return f"'{text}" if text.startswith(_ACTIVE) else text


def unguarded(text: str) -> str:
    """What `guarded` made a cell of."""
    return text[1:] if text.startswith("'") and text[1:].startswith(_ACTIVE) else text


def _of_table(path: Path) -> list[Label]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8: save the table as CSV UTF-8") from error
    csv.field_size_limit(sys.maxsize)  # contexts of long documents are longer than the module's limit
    # strict: a quotation mark that is lost would swallow the rows after it.
    rows = csv.DictReader(StringIO(text, newline=""), delimiter=_delimiter(text), strict=True)
    try:
        if absent := [name for name in COLUMNS if name not in (rows.fieldnames or ())]:
            raise DataError(f"{path}: the column {absent[0]} is missing; the columns are {', '.join(COLUMNS)}")
        entries = list(_of_rows(path, rows))
    except csv.Error as error:
        raise DataError(f"{path}: the table is broken near line {rows.line_num}: {error}; save it anew") from None
    if not entries:
        raise DataError(f"{path} has no label: no row has a verdict")
    return parsed_labels(path, entries)


def _delimiter(text: str) -> str:
    """Spreadsheets of many countries save with semicolons."""
    header = text.partition("\n")[0]
    return ";" if header.count(";") > header.count(",") else ","


def _of_rows(path: Path, rows: csv.DictReader[str]) -> Iterator[Entry]:
    """A label for each id with a verdict; rows without one are claims that nobody marked."""
    marked: dict[str, tuple[str, dict[str, Any], list[str]]] = {}
    said: dict[tuple[str, str], tuple[int, str]] = {}
    line = rows.line_num + 1  # of the table's text; a row ends where `line_num` says, and may have several lines
    for row in rows:
        began, line = line, rows.line_num + 1
        cells = {name: unguarded(row[name] or "") for name in COLUMNS}
        claim, verdict = cells.pop("claim"), cells.pop("verdict").strip().lower()
        if not verdict:
            continue
        label = {"origin": "human", "claims": []}
        place, fields, faults = marked.setdefault(cells["id"], (f"{path}:{began}", label, []))
        if None in row:
            faults.append(f"line {began} has more cells than there are columns; put texts with commas in quotes")
        for name, cell in cells.items():
            other, before = said.setdefault((cells["id"], name), (began, cell)) if cell else (began, "")
            if cell != before and name != "when":  # the first day stands
                faults.append(f"{name} is {shown(cell)} in line {began} and {shown(before)} in line {other}; keep one")
            elif cell and name not in fields:
                fields[name] = cell
        bare = f"claim {' '.join(claim.split())}"
        other, before = said.setdefault((cells["id"], bare), (began, verdict))
        if other == began:
            fields["claims"].append({"text": claim, "verdict": verdict})
        else:
            told = f"{verdict!r} in line {began} and {before!r} in line {other}"
            faults.append(f"the {shown(bare)} is marked {told}; keep one")
    for place, fields, faults in marked.values():
        try:
            fields["contexts"] = json.loads(fields.get("contexts", ""))
        except (ValueError, RecursionError):
            cut = "spreadsheets cut texts of more than 32,767 characters: use the page then"
            faults.append(f"contexts is no JSON list; leave that column as it was ({cut})")
        yield place, fields, faults


def _label(fields: Mapping[str, Any], place: str, wrong: Sequence[str]) -> tuple[Label | None, list[str]]:
    good, faults = validated(LabelFields, fields)
    faults = [*wrong, *unusable(fields), *faults]
    claims: list[JudgedClaim] = []
    for position, claim in enumerate(good.claims or () if good else ()):
        found, more = validated(ClaimFields, claim, f"claims[{position}]")
        faults += more
        if found:
            claims.append(JudgedClaim(text=found.text, verdict=found.verdict))
    faults += _marked_twice(claims)
    if good is None:
        return None, faults
    if (good.score is None) == (good.claims is None):
        what = "is missing: expected one of them" if good.score is None else "are both there: keep one"
        faults.append(f"score or claims {what}")
    if good.claims == []:
        faults.append("claims is empty; an answer without a claim shows nothing about the judge, take the line out")
    if good.when is not None and not _is_time(good.when):
        faults.append(f"when is {good.when!r}, expected a date or a time, as in 2026-11-30T10:15:00Z")
    low, high = 0.0, 1.0
    if good.scale is not None and (len(good.scale) != 2 or good.scale[0] >= good.scale[1]):
        faults.append("scale must be the lowest and the highest score, as in [1, 4]")
    elif good.scale is not None and not isfinite(good.scale[1] - good.scale[0]):
        faults.append("scale is wider than a number can be")
    elif good.scale is not None:
        low, high = good.scale
    if good.score is not None and not low <= good.score <= high:
        hint = "" if good.scale else '; another scale is written beside it, as in "scale": [1, 4]'
        faults.append(f"score is {good.score:g}, expected {low:g} to {high:g}{hint}")
    if faults:
        return None, faults
    label = Label(
        id=good.id,
        question=good.question,
        answer=good.answer,
        contexts=tuple(good.contexts),
        reference=good.reference,
        split=good.split,
        who=good.who,
        when=good.when,
        record=good.record,
        claims=tuple(claims) if good.claims is not None else None,
        score=None if good.score is None else (good.score - low) / (high - low),
        line=place,
    )
    return label, []


def _marked_twice(claims: Sequence[JudgedClaim]) -> list[str]:
    verdicts: dict[str, list[str]] = {}
    for claim in claims:
        verdicts.setdefault(" ".join(claim.text.split()), []).append(claim.verdict)
    return [
        f"claims has {shown(text)} {len(said)} times ({', '.join(said)}); keep one"
        for text, said in verdicts.items()
        if len(said) > 1
    ]


def _is_time(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True
