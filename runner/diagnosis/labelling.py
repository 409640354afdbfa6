"""Unjudged chunks as a file for people to grade, and the grades back into the `relevant` of a test set."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from runner import phrases
from runner.datasets.faults import shown
from runner.datasets.records import parse_line
from runner.diagnosis.findings import Unjudged
from runner.errors import DataError
from runner.human_labels import guarded, unguarded
from runner.outputs import write_whole

COLUMNS = ("id", "question", "rank", "in_baseline", "doc_id", "start", "end", "text", "grade")
GRADES = "0 = judged and rejected, 1 = helps, 2 = answers by itself, or higher"


@dataclass(frozen=True, slots=True)
class Graded:
    """One passage that a person graded. line: where it stands, as file:line."""

    id: str
    doc_id: str
    start: int
    end: int
    text: str
    grade: int
    line: str

    def span(self) -> dict[str, Any]:
        """As it stands in `relevant`."""
        return {
            "doc_id": self.doc_id,
            "start": self.start,
            "end": self.end,
            "grade": self.grade,
            "text": self.text,
        }


@dataclass(frozen=True, slots=True)
class Labelled:
    """What was put into a test set: how many spans into which questions, and how many were there already."""

    spans: Mapping[str, int]
    unchanged: int
    ungraded: int


def write(found: Iterable[Unjudged], path: Path) -> None:
    """Write the chunks with an empty grade, one a line: a table where the name ends in .csv, else JSONL. A person fills
    `grade` in, and may narrow start, end and text to the sentence that counts. Raises StoreError."""
    rows = [
        {
            "id": each.question_id,
            "question": each.question,
            "rank": each.rank,
            "in_baseline": each.in_baseline,
            "doc_id": each.doc_id,
            "start": each.start,
            "end": each.end,
            "text": each.text,
            "grade": None,
        }
        for each in found
    ]
    if path.suffix.lower() != ".csv":
        write_whole(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
        return
    text = StringIO()
    table = csv.writer(text)
    table.writerow(COLUMNS)
    for row in rows:
        table.writerow([guarded(cell) if isinstance(cell := row[name], str) else cell for name in COLUMNS])
    write_whole(path, text.getvalue().encode("utf-8-sig"))  # spreadsheets take the mark for "UTF-8"


def put_into(labels: Path, questions: Path) -> Labelled:
    """Add the graded passages of `labels` to the `relevant` of the questions of their ids; every other byte of
    `questions` stays. Lines without a grade are passed over. Raises DataError naming every passage that cannot be put
    in, and StoreError; nothing is written then."""
    graded, ungraded = _read(labels)
    try:
        lines = questions.read_bytes().splitlines(keepends=True)
    except OSError as error:
        raise DataError(f"cannot read {questions}: {error.strerror}") from error
    by_question: dict[str, list[Graded]] = {}
    for each in graded:
        by_question.setdefault(each.id, []).append(each)
    faults: list[str] = []
    added: dict[str, int] = {}
    seen: set[str] = set()
    for place, raw in enumerate(lines):
        fields, _ = parse_line(raw) if raw.strip() else (None, [])
        id = fields.get("id") if fields else None
        if fields is None or not isinstance(id, str) or id not in by_question:
            continue
        if id in seen:
            faults.append(f"question {shown(id)} stands twice in {questions}, again in line {place + 1}; keep one")
        seen.add(id)
        new, wrong = _new(by_question[id], fields)
        faults += wrong
        if new:
            lines[place] = _inserted(raw.decode("utf-8"), [each.span() for each in new]).encode()
            added[id] = len(new)
    faults += [
        f"{each[0].line}: question {shown(id)} is not in {questions}"
        for id, each in by_question.items()
        if id not in seen
    ]
    if faults:
        count = f"{len(faults)} fault{'s' * (len(faults) > 1)}"
        raise DataError("\n".join([f"nothing was put into {questions}: {count}", *faults]))
    if added:
        write_whole(questions, b"".join(lines))
    return Labelled(added, len(graded) - sum(added.values()), ungraded)


def _new(graded: Sequence[Graded], fields: Mapping[str, Any]) -> tuple[list[Graded], list[str]]:
    """Which of the passages the question does not have yet, and what speaks against them."""
    stored = fields.get("relevant")
    known = {
        (span.get("doc_id"), span.get("start"), span.get("end")): span.get("grade", 1)
        for span in (stored if isinstance(stored, list) else ())
        if isinstance(span, dict)
    }
    new, faults = [], []
    for each in graded:
        place = (each.doc_id, each.start, each.end)
        if each.grade and fields.get("answerable") is False:
            faults.append(
                f"{each.line}: question {shown(each.id)} is unanswerable (answerable: false), and grade {each.grade} "
                "says that a passage answers it; mend one of the two"
            )
        elif place not in known:
            known[place] = each.grade
            new.append(each)
        elif known[place] != each.grade:
            faults.append(
                f"{each.line}: {each.doc_id}[{each.start}:{each.end}] has grade {known[place]} already, here "
                f"{each.grade}; keep one"
            )
    return new, faults


def _inserted(line: str, spans: Sequence[Mapping[str, Any]]) -> str:
    """The line of JSON, an object, with the spans at the end of its `relevant`, and nothing else changed."""
    texts = ", ".join(json.dumps(span, ensure_ascii=False) for span in spans)
    last, at = None, line.index("{") + 1
    decoder = json.JSONDecoder()
    while (at := _skip(line, at, ",")) < len(line) and line[at] != "}":
        key, at = decoder.raw_decode(line, at)
        start = _skip(line, at, ":")
        value, at = decoder.raw_decode(line, start)
        if key == "relevant":
            if value is None:
                return f"{line[:start]}[{texts}]{line[at:]}"
            before = line[: at - 1].rstrip() if value else line[: at - 1]
            return f"{before}{', ' if value else ''}{texts}{line[len(before) : at - 1]}{line[at - 1 :]}"
        last = at
    end = last if last is not None else line.index("{") + 1
    return f'{line[:end]}{", " if last is not None else ""}"relevant": [{texts}]{line[end:]}'


def _skip(line: str, at: int, mark: str) -> int:
    while at < len(line) and line[at] in f" \t\r\n{mark}":
        at += 1
    return at


# Reading the file of grades.


def _read(path: Path) -> tuple[list[Graded], int]:
    """The passages with a grade, and how many lines have none. Raises DataError with every fault."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error
    rows = list(_table(path, raw) if path.suffix.lower() == ".csv" else _lines(path, raw))
    graded: list[Graded] = []
    faults: list[str] = []
    ungraded = 0
    for place, fields, wrong in rows:
        if fields is None:
            faults += [f"{place}: {fault}" for fault in wrong]
        elif fields.get("grade") in (None, ""):
            ungraded += 1
        else:
            found, more = _graded(fields, place)
            faults += [f"{place}: {fault}" for fault in (*wrong, *more)]
            graded += [found] if found else []
    if faults:
        count = f"{len(faults)} fault{'s' * (len(faults) > 1)}"
        raise DataError("\n".join([f"{path} cannot be used: {count}", *faults]))
    if not graded:
        raise DataError(f"{path} has no grade; fill in the column grade: {GRADES}")
    return graded, ungraded


Row = tuple[str, Mapping[str, Any] | None, list[str]]


def _lines(path: Path, raw: bytes) -> Iterable[Row]:
    for number, line in enumerate(raw.split(b"\n"), 1):
        if line.strip():
            fields, faults = parse_line(line)
            yield f"{path}:{number}", fields, faults


def _table(path: Path, raw: bytes) -> Iterable[Row]:
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: byte {error.start} is not UTF-8; save the table as UTF-8") from error
    head = text.partition("\n")[0]
    table = csv.DictReader(StringIO(text, newline=""), delimiter=";" if head.count(";") > head.count(",") else ",")
    lost = [name for name in COLUMNS if name not in (table.fieldnames or ()) and name not in ("rank", "in_baseline")]
    if lost:
        raise DataError(f"{path} has no column {', '.join(lost)}; keep the columns that were written")
    for number, row in enumerate(table, 2):
        yield f"{path}: row {number}", {name: unguarded(cell or "") for name, cell in row.items() if name}, []


def _graded(fields: Mapping[str, Any], place: str) -> tuple[Graded | None, list[str]]:
    faults = [f"{name} is missing" for name in ("id", "doc_id", "text") if not isinstance(fields.get(name), str)]
    numbers = {}
    for name in ("start", "end", "grade"):
        try:
            numbers[name] = _whole(fields.get(name))
        except ValueError:
            hint = f": {GRADES}" if name == "grade" else ""
            faults.append(
                f"{name} is {phrases.cut(repr(fields.get(name)), 60)}, expected a whole number, 0 or more{hint}"
            )
    if faults:
        return None, faults
    start, end, text = numbers["start"], numbers["end"], fields["text"]
    if end - start != len(text):
        return None, [f"text has {len(text)} characters, and start to end are {end - start}; narrow all three alike"]
    return Graded(fields["id"], fields["doc_id"], start, end, text, numbers["grade"], place), []


def _whole(value: Any) -> int:
    number = int(value.strip()) if isinstance(value, str) else value
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise ValueError
    return number
