"""Chunks that nobody judged, the values without them, and the way of grades back into a test set."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.base import scorer
from adapters.schema import Chunk, Question, Ranked, Record, Span
from runner.diagnosis.findings import Unjudged
from runner.diagnosis.labelling import put_into, write
from runner.diagnosis.unjudged import BothWays, judged_only, unjudged
from runner.errors import DataError
from runner.results import StoredRun
from tests.compare.runs import run

LABELS = (Span("a", 10, 20, 1), Span("b", 0, 5, 0))


def chunk(doc_id: str, start: int, end: int) -> Chunk:
    return Chunk(doc_id, start, end, "x" * (end - start))


def stored(
    rankings: dict[str, list[Chunk]], relevant: tuple[Span, ...] | None = LABELS, name: str = "run"
) -> StoredRun:
    """A run with these rankings, and labels/reciprocal_rank and labels/precision@2 computed from them."""
    records = []
    for id, chunks in rankings.items():
        ranked = tuple(Ranked(each, 1 / rank, rank) for rank, each in enumerate(chunks, 1))
        records.append(Record(id, 5, ranked, ranked, tuple(chunks), labelled=(chunk("a", 0, 20),)))
    questions = [Question(id, f"Question {id}?", relevant=relevant) for id in rankings]
    scorers = [scorer(spec) for spec in ("labels/reciprocal_rank", "labels/precision@2", "labels/answer_f1")]
    values = {
        each.key: {q.id: each.score(q, r).value for q, r in zip(questions, records, strict=True)} for each in scorers
    }
    return run(
        values,
        definitions=[each.definition for each in scorers],
        questions=questions,
        records=records,
        name=name,
    )


def test_unjudged_is_what_shares_no_character_with_any_label() -> None:
    ranking = [chunk("a", 0, 10), chunk("a", 19, 30), chunk("b", 4, 9), chunk("c", 0, 9), chunk("a", 0, 10)]
    # a[0:10] ends where the label begins; a[19:30] shares one character; b[4:9] shares one with a grade of 0; the last
    # is a repeat.
    found = unjudged(stored({"q1": ranking}))
    assert [(each.doc_id, each.start, each.rank, each.in_baseline) for each in found] == [
        ("a", 0, 1, None),
        ("c", 0, 4, None),
    ]
    assert found[0].text == "x" * 10


def test_what_the_baseline_does_not_have_comes_first() -> None:
    here = {"q1": [chunk("c", 0, 9), chunk("d", 0, 9)], "q2": [chunk("c", 0, 9)]}
    there = {"q1": [chunk("c", 0, 9)], "q2": [chunk("c", 0, 8)]}
    found = unjudged(stored(here), stored(there, name="base"))
    assert [(each.question_id, each.doc_id, each.rank, each.in_baseline) for each in found] == [
        ("q2", "c", 1, False),
        ("q1", "d", 2, False),
        ("q1", "c", 1, True),
    ]


def test_labels_that_say_that_nothing_is_relevant_leave_nothing_unjudged() -> None:
    rankings = {"q1": [chunk("c", 0, 9)]}
    assert unjudged(stored(rankings, relevant=())) == ()
    assert len(unjudged(stored(rankings, relevant=None))) == 1


def test_a_passage_that_stands_in_no_document_cannot_be_labelled() -> None:
    nowhere = Chunk("(not in the documents)", 7, 7, "words of a system's own")
    assert [each.doc_id for each in unjudged(stored({"q1": [nowhere, chunk("c", 0, 9)]}))] == ["c"]


PIECES = st.builds(
    lambda doc, start, length: chunk(doc, start, start + length),
    st.sampled_from(["a", "b"]),
    st.integers(0, 25),
    st.integers(1, 12),
)


@given(st.lists(PIECES, max_size=8))
def test_the_list_is_exact(ranking: list[Chunk]) -> None:
    def overlaps(piece: Chunk) -> bool:
        characters = {(piece.doc_id, at) for at in range(piece.start, piece.end)}
        return any((span.doc_id, at) in characters for span in LABELS for at in range(span.start, span.end))

    listed = {(each.doc_id, each.start, each.end) for each in unjudged(stored({"q1": ranking}))}
    assert listed == {(piece.doc_id, piece.start, piece.end) for piece in ranking if not overlaps(piece)}


def test_judged_only_worked_by_hand() -> None:
    # q1: unjudged, relevant. RR is 1/2; without the unjudged 1. P@2 is 1/2; without, [relevant] of k = 2: 1/2.
    # q2: relevant, rejected. RR is 1 either way; P@2 is 1/2 either way.
    rankings = {"q1": [chunk("c", 0, 9), chunk("a", 0, 20)], "q2": [chunk("a", 0, 20), chunk("b", 0, 5)]}
    rows = {row.definition: row for row in judged_only(BothWays(stored(rankings)))}
    assert set(rows) == {"labels/reciprocal_rank", "labels/precision@2"}  # answers have no ranking
    rank = rows["labels/reciprocal_rank"]
    assert (rank.n, rank.value, rank.judged_only, rank.value_before) == (2, 0.75, 1.0, None)
    precision = rows["labels/precision@2"]
    assert (precision.value, precision.judged_only) == (0.5, 0.5)
    before = {"q1": [chunk("a", 0, 20)], "q2": [chunk("c", 0, 9)]}  # RR 1 and 0; without the unjudged 1 and 0
    rank = judged_only(BothWays(stored(rankings)), BothWays(stored(before, name="base")))[0]
    assert (rank.value_before, rank.judged_only_before) == (0.5, 0.5)
    # Of a baseline that has q1 alone: q1 on both sides, RR 1/2 and without the unjudged 1; before 1 and 1.
    rank = judged_only(BothWays(stored(rankings)), BothWays(stored({"q1": before["q1"]}, name="base")))[0]
    assert (rank.n, rank.value, rank.judged_only, rank.value_before, rank.judged_only_before) == (1, 0.5, 1, 1, 1)


# Grades and the way back.

FOUND = [
    Unjudged("q1", "Question, one?", "notes", 3, 9, 1, "=a\nb,c", None),
    Unjudged("q2", "Two?", "déjà", 0, 5, 2, "vu 灯台", True),
]
QUESTIONS = (
    b'\xef\xbb\xbf{"id": "q1", "question": "Question, one?",   "relevant" : [ {"doc_id": "a", "start": 0, "end": 2} ] ,'
    b' "note": "\\u00e9 relevant"}\r\n'
    b'{"id":"q2","relevant":null,"text":"Two?"}\n'
    b'{"id": "q3", "question": "no labels"}\n'
    b"\n"
    b'{"id": "q4", "relevant": [], "question": "Four?"}'
)


def graded(path: Path, grades: dict[str, object]) -> Path:
    """The file of FOUND with these grades by question id."""
    write(FOUND, path)
    if path.suffix == ".csv":
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
        for row in rows:
            row["grade"] = str(grades.get(row["id"], ""))
        with path.open("w", encoding="utf-8", newline="") as file:
            table = csv.DictWriter(file, list(rows[0]))
            table.writeheader()
            table.writerows(rows)
        return path
    rows_ = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    path.write_text("".join(json.dumps({**row, "grade": grades.get(row["id"])}) + "\n" for row in rows_))
    return path


@pytest.mark.parametrize("name", ["labels.csv", "labels.jsonl"])
def test_grades_go_back_and_every_other_byte_stays(name: str, tmp_path: Path) -> None:
    questions = tmp_path / "questions.jsonl"
    questions.write_bytes(QUESTIONS)
    done = put_into(graded(tmp_path / name, {"q1": 2, "q2": 0}), questions)
    assert (done.spans, done.unchanged, done.ungraded) == ({"q1": 1, "q2": 1}, 0, 0)
    one = b'{"doc_id": "notes", "start": 3, "end": 9, "grade": 2, "text": "=a\\nb,c"}'
    two = '{"doc_id": "déjà", "start": 0, "end": 5, "grade": 0, "text": "vu 灯台"}'.encode()
    assert questions.read_bytes() == QUESTIONS.replace(b" ] ,", b", " + one + b" ] ,").replace(
        b"null", b"[" + two + b"]"
    )
    again = put_into(tmp_path / name, questions)
    assert (again.spans, again.unchanged) == ({}, 2)


def test_a_question_without_labels_gets_some(tmp_path: Path) -> None:
    questions = tmp_path / "questions.jsonl"
    for line, expected in (
        ('{"id": "q1", "question": "Q"}', '{"id": "q1", "question": "Q", "relevant": [SPAN]}'),
        ('{"id": "q1", "relevant": [ ]}', '{"id": "q1", "relevant": [ SPAN]}'),
        (
            '{ "relevant": [{"x": "]"}\n], "id": "q1" }'.replace("\n", " "),
            '{ "relevant": [{"x": "]"}, SPAN ], "id": "q1" }',
        ),
    ):
        questions.write_text(line, encoding="utf-8")
        put_into(graded(tmp_path / "l.jsonl", {"q1": 1}), questions)
        span = '{"doc_id": "notes", "start": 3, "end": 9, "grade": 1, "text": "=a\\nb,c"}'
        assert questions.read_text(encoding="utf-8") == expected.replace("SPAN", span)


def test_what_cannot_be_put_back_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    questions = tmp_path / "questions.jsonl"
    labels = graded(tmp_path / "l.jsonl", {"q1": 1})

    def refused(text: str) -> str:
        questions.write_text(text, encoding="utf-8")
        with pytest.raises(DataError) as error:
            put_into(labels, questions)
        assert questions.read_text(encoding="utf-8") == text
        return str(error.value)

    assert "question q1 is not in" in refused('{"id": "q9"}\n')
    assert "is unanswerable (answerable: false), and grade 1" in refused('{"id": "q1", "answerable": false}\n')
    other = '{"id": "q1", "relevant": [{"doc_id": "notes", "start": 3, "end": 9, "grade": 0}]}\n'
    assert "notes[3:9] has grade 0 already, here 1; keep one" in refused(other)
    assert "stands twice" in refused('{"id": "q1"}\n{"id": "q1"}\n')
    write(FOUND, labels)
    assert "has no grade; fill in the column grade: 0 = judged and rejected" in refused('{"id": "q1"}\n')
    for field, value, told in (
        ("grade", -1, "grade is -1, expected a whole number, 0 or more"),
        ("grade", True, "grade is True"),
        ("end", 8, "text has 6 characters, and start to end are 5; narrow all three alike"),
        ("text", None, "text is missing"),
    ):
        row = {"id": "q1", "doc_id": "notes", "start": 3, "end": 9, "text": "abcdef", "grade": 1, field: value}
        labels.write_text(json.dumps(row), encoding="utf-8")
        assert told in refused('{"id": "q1"}\n')


def test_a_passage_may_be_narrowed(tmp_path: Path) -> None:
    questions, labels = tmp_path / "questions.jsonl", tmp_path / "l.jsonl"
    questions.write_text('{"id": "q1"}\n')
    labels.write_text(json.dumps({"id": "q1", "doc_id": "d", "start": 4, "end": 6, "text": "ab", "grade": 2}) + "\n")
    assert put_into(labels, questions).spans == {"q1": 1}
    assert '"start": 4, "end": 6' in questions.read_text()
