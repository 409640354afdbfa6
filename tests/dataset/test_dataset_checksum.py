"""What a test set is survives writing, shuffling and reformatting; any change of content shows in the checksum."""

from __future__ import annotations

import json
import random
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.dataset import TestSet
from runner.datasets.jsonl import JsonlDataset

Records = list[dict[str, Any]]

text = st.text(st.characters(exclude_categories=["Cs"]))
filled = text.filter(lambda value: bool(value.strip()))
leaf = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text
metadata = st.dictionaries(text, leaf | st.lists(leaf, max_size=3), min_size=1, max_size=3)


def fields(required: dict[str, Any], optional: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(required, optional=optional)


@st.composite
def sources(draw: st.DrawFn) -> tuple[Records, Records]:
    """Documents and questions as they stand in files, every label inside its document."""
    document = fields({"doc_id": filled, "text": filled}, {"title": text, "metadata": metadata})
    documents = draw(st.lists(document, min_size=1, max_size=4, unique_by=lambda record: record["doc_id"]))
    question = fields(
        {"id": filled, "question": filled},
        {
            "reference_answer": text,
            "reference_claims": st.lists(text, max_size=3),
            "slices": st.lists(filled, max_size=3, unique=True),
            "origin": st.sampled_from(["real", "synthetic"]),
            "split": st.sampled_from(["tune", "held_out"]),
            "valid_until": st.dates().map(lambda day: day.isoformat()),
            "human": st.fixed_dictionaries(
                {"answer": filled}, optional={"declines": st.booleans(), "agreement": st.floats(0, 1)}
            ),
            "metadata": metadata,
        },
    )
    questions = draw(st.lists(question, min_size=1, max_size=4, unique_by=lambda record: record["id"]))
    for record in questions:
        spans = []
        for source in draw(st.lists(st.sampled_from(documents), max_size=3)):
            start = draw(st.integers(0, len(source["text"]) - 1))
            end = draw(st.integers(start + 1, len(source["text"])))
            spans.append({"doc_id": source["doc_id"], "start": start, "end": end, "text": source["text"][start:end]})
        grade = draw(st.integers(0, 3))
        record["relevant"] = [span | {"grade": grade} for span in spans]
        record["answerable"] = grade > 0
    return documents, questions


def loaded(documents: Records, questions: Records, ascii: bool = True, before: str = "", after: str = "\n") -> TestSet:
    with TemporaryDirectory() as folder:
        for name, records in (("documents", documents), ("questions", questions)):
            lines = "".join(json.dumps(record, ensure_ascii=ascii) + after for record in records)
            Path(folder, f"{name}.jsonl").write_text(before + lines, encoding="utf-8", newline="")
        return JsonlDataset(name="mine", path=folder).load()


def unique_spans(record: dict[str, Any]) -> list[tuple[Any, ...]]:
    return list(
        dict.fromkeys(tuple(span[key] for key in ("doc_id", "start", "end", "grade")) for span in record["relevant"])
    )


@settings(deadline=None)
@given(sources(), st.booleans())
def test_what_was_written_is_read_back(test_set: tuple[Records, Records], ascii: bool) -> None:
    documents, questions = test_set
    found = loaded(documents, questions, ascii)
    for record, document in zip(sorted(documents, key=lambda record: record["doc_id"]), found.documents, strict=True):
        assert (document.doc_id, document.text) == (record["doc_id"], record["text"])
        assert (document.title, document.metadata) == (record.get("title"), record.get("metadata"))
    for record, question in zip(questions, found.questions, strict=True):
        assert (question.id, question.text) == (record["id"], record["question"])
        assert question.reference_answer == record.get("reference_answer")
        assert question.reference_claims == (
            tuple(record["reference_claims"]) if "reference_claims" in record else None
        )
        assert question.slices == tuple(record.get("slices", ()))
        assert (question.origin, question.split) == (record.get("origin", "real"), record.get("split", "tune"))
        assert (question.valid_until and question.valid_until.isoformat()) == record.get("valid_until")
        assert (question.human, question.metadata) == (record.get("human"), record.get("metadata"))
        assert question.answerable == record["answerable"]
        spans = [(span.doc_id, span.start, span.end, span.grade) for span in question.relevant or ()]
        assert spans == unique_spans(record)


@settings(deadline=None)
@given(sources(), st.randoms(use_true_random=False))
def test_order_and_form_do_not_change_the_checksum(test_set: tuple[Records, Records], rng: random.Random) -> None:
    def shuffled(records: Records) -> Records:
        return [dict(rng.sample(list(record.items()), len(record))) for record in rng.sample(records, len(records))]

    documents, questions = test_set
    other = [
        record | {"relevant": rng.sample(record["relevant"], len(record["relevant"]))} for record in shuffled(questions)
    ]
    found = loaded(shuffled(documents), other, ascii=False, before="\ufeff", after=" \r\n\r\n")
    assert found.checksum == loaded(documents, questions).checksum


DOCUMENT = {"doc_id": "d1", "text": "Anna pays.", "title": "Rent", "metadata": {"by": "Bo"}}
QUESTION = {
    "id": "q1",
    "question": "Who?",
    "reference_answer": "Anna",
    "reference_claims": ["Anna pays."],
    "relevant": [{"doc_id": "d1", "start": 0, "end": 4, "grade": 1}],
    "answerable": True,
    "slices": ["a"],
    "origin": "real",
    "split": "tune",
    "valid_until": "2026-12-31",
    "human": {"answer": "Anna", "agreement": 1},
    "metadata": {"by": "Bo"},
}


@pytest.mark.parametrize(
    "change",
    [{"doc_id": "d2"}, {"text": "Anna pays!"}, {"title": None}, {"title": "rent"}, {"metadata": {"by": "bo"}}],
    ids=str,
)
def test_every_field_of_a_document_counts(change: dict[str, Any]) -> None:
    question = {"id": "q1", "question": "Who?"}
    before, after = loaded([DOCUMENT], [question]), loaded([DOCUMENT | change], [question])
    assert before.documents_checksum != after.documents_checksum
    assert before.questions_checksum == after.questions_checksum
    assert before.checksum != after.checksum


QUESTION_CHANGES: list[dict[str, Any]] = [
    {"id": "q2"},
    {"question": "who?"},
    {"reference_answer": None},
    {"reference_claims": None},
    {"reference_claims": []},
    {"relevant": None},
    {"relevant": []},
    {"relevant": [{"doc_id": "d1", "start": 1, "end": 4, "grade": 1}]},
    {"relevant": [{"doc_id": "d1", "start": 0, "end": 5, "grade": 1}]},
    {"relevant": [{"doc_id": "d1", "start": 0, "end": 4, "grade": 2}]},
    {"relevant": [{"doc_id": "d1", "start": 0, "end": 4, "grade": 0}], "answerable": False},
    {"slices": ["b"]},
    {"origin": "synthetic"},
    {"split": "held_out"},
    {"valid_until": "2027-01-01"},
    {"human": {"answer": "Anna", "agreement": 0.5}},
    {"metadata": None},
]


@pytest.mark.parametrize("change", QUESTION_CHANGES, ids=str)
def test_every_field_of_a_question_counts(change: dict[str, Any]) -> None:
    before, after = loaded([DOCUMENT], [QUESTION]), loaded([DOCUMENT], [QUESTION | change])
    assert before.questions_checksum != after.questions_checksum
    assert before.documents_checksum == after.documents_checksum
    assert before.checksum != after.checksum


def test_no_field_was_forgotten_above() -> None:
    assert {key for change in QUESTION_CHANGES for key in change} == set(QUESTION)


def test_name_version_folder_and_repeated_labels_do_not_count(tmp_path: Path) -> None:
    checksums = set()
    for version in ("1", "2"):
        folder = tmp_path / version
        folder.mkdir()
        (folder / "docs.jsonl").write_text(json.dumps(DOCUMENT))
        record = QUESTION | {"relevant": QUESTION["relevant"] * int(version)}  # type: ignore[operator]
        (folder / "questions.jsonl").write_text(json.dumps(record))
        checksums.add(JsonlDataset(name=version, version=version, path=str(folder)).load().checksum)
    assert len(checksums) == 1


def test_a_filter_is_another_set_of_questions_over_the_same_documents(tmp_path: Path) -> None:
    (tmp_path / "docs.jsonl").write_text(json.dumps(DOCUMENT))
    (tmp_path / "questions.jsonl").write_text(json.dumps(QUESTION) + "\n" + json.dumps(QUESTION | {"id": "q2"}))
    whole, first = (JsonlDataset(name="x", path=str(tmp_path), limit=limit).load() for limit in (None, 1))
    assert whole.documents_checksum == first.documents_checksum
    assert whole.questions_checksum != first.questions_checksum
