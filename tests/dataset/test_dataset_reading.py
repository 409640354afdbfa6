"""What a good test set looks like once it is read."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapters.schema import Question, Span
from runner.component import build
from runner.dataset import Dataset, Document, TestSet
from runner.datasets.jsonl import JsonlDataset
from runner.yaml_folders import conf_dir
from tests.dataset.files import Load, write

REAL = Path(__file__).parents[2].parent / "shared" / "data"


def test_every_field_is_read(load: Load) -> None:
    full = {
        "id": "001",
        "question": "Who pays?",
        "reference_answer": "Anna",
        "reference_claims": ["Anna pays."],
        "relevant": [{"doc_id": "d1", "start": 0, "end": 4, "grade": 2, "text": "Anna"}],
        "answerable": True,
        "slices": ["a", "b", "a"],
        "origin": "synthetic",
        "split": "held_out",
        "valid_until": "2026-12-31",
        "human": {"answer": "Anna", "declines": False},
        "metadata": {"by": "Bo"},
        "rank": 3,
    }
    found = load([full], ignore_fields=["rank", "absent"], version="7")
    assert found.version == "7"
    assert found.documents == (Document("d1", "Anna pays the rent."),)
    assert found.questions == (
        Question(
            id="001",
            text="Who pays?",
            reference_answer="Anna",
            reference_claims=("Anna pays.",),
            relevant=(Span("d1", 0, 4, 2),),
            slices=("a", "b"),
            origin="synthetic",
            split="held_out",
            valid_until=date(2026, 12, 31),
            human={"answer": "Anna", "declines": False},
            metadata={"by": "Bo", "rank": 3},
        ),
    )


def test_what_is_left_out_or_null_has_its_default(load: Load) -> None:
    names = ("reference_answer", "reference_claims", "relevant", "slice", "slices", "valid_until", "human", "metadata")
    found = load([{"id": "a", "text": "Who?"}, {"id": "b", "question": "Who?"} | dict.fromkeys(names)])
    assert found.questions == (Question("a", "Who?"), Question("b", "Who?"))


def test_no_labels_differ_from_labelled_with_nothing_relevant(load: Load) -> None:
    found = load([{"id": "a", "question": "?"}, {"id": "b", "question": "?", "relevant": [], "slice": "s"}])
    assert [question.relevant for question in found.questions] == [None, ()]
    assert found.questions[1].slices == ("s",)


def test_a_label_listed_twice_counts_once(load: Load) -> None:
    span = {"doc_id": "d1", "start": 0, "end": 4}
    found = load([{"id": "a", "question": "?", "relevant": [span, span | {"grade": 1}, span | {"end": 5}]}])
    assert found.questions[0].relevant == (Span("d1", 0, 4), Span("d1", 0, 5))


def test_ids_are_opaque(load: Load) -> None:
    ids = ["../../x", "/etc/x", "a/b", "a_b", "C:\\data\\a.txt", "C:/data/a.txt", "001", "1", " 1", "é", "e\u0301"]
    found = load(
        [{"id": name, "question": "?", "relevant": [{"doc_id": name, "start": 0, "end": 1}]} for name in ids],
        [{"doc_id": name, "text": "x"} for name in ids],
    )
    assert [question.id for question in found.questions] == ids
    assert [document.doc_id for document in found.documents] == sorted(ids)


def test_bom_crlf_blank_lines_and_a_missing_last_line_end_are_fine(load: Load) -> None:
    bom = b"\xef\xbb\xbf"
    lines = b'{"id": "a", "question": "x"}\r\n\r\n  \n' + bom + b'\n{"id": "b", "question": "y\xe2\x80\xa8\xc2\x85"}'
    found = load(bom + lines)
    assert [question.text for question in found.questions] == ["x", "y\u2028\x85"]
    assert found.questions_read.read == 2


def test_bad_lines_are_skipped_counted_and_reported(load: Load) -> None:
    lines = [
        {"id": "a", "question": "x"},
        "",
        {"id": "b", "question": "y"},
        '{"id": ',
        "[]",
        '{"id":"c","question":"z",}',
    ]
    found = load(lines, skip_bad_lines=True)
    assert [question.id for question in found.questions] == ["a", "b"]
    reading = found.questions_read
    assert (reading.read, reading.kept, reading.skipped) == (5, 2, 3)
    assert [fault.split(": ")[0] for fault in found.faults] == [f"questions.jsonl:{line}" for line in (4, 5, 6)]
    assert found.card()["questions_read"] == {"read": 5, "kept": 2, "skipped": 3}


def test_a_question_about_a_skipped_document_is_skipped_too(load: Load) -> None:
    label = {"doc_id": "d2", "start": 0, "end": 1}
    found = load(
        [{"id": "a", "question": "x"}, {"id": "b", "question": "y", "relevant": [label]}],
        [{"doc_id": "d1", "text": "x"}, {"doc_id": "d2", "text": 2}],
        skip_bad_lines=True,
    )
    assert [question.id for question in found.questions] == ["a"]
    assert found.faults[1] == (
        "questions.jsonl:2: question b: relevant[0].doc_id: labelled document d2 was skipped (documents.jsonl:2)"
    )


def test_split_comes_before_limit(load: Load) -> None:
    lines: list[Any] = [{"id": str(n), "question": "?", "split": ("tune", "held_out")[n % 2]} for n in range(6)]
    ids: Callable[..., list[str]] = lambda **config: [question.id for question in load(lines, **config).questions]  # noqa: E731
    assert ids(limit=2) == ["0", "1"]
    assert ids(split="held_out") == ["1", "3", "5"]
    assert ids(split="held_out", limit=2) == ["1", "3"]
    assert ids(limit=100) == ["0", "1", "2", "3", "4", "5"]


def test_blank_documents_are_listed(load: Load) -> None:
    found = load(None, [{"doc_id": "b", "text": ""}, {"doc_id": "a", "text": "\n\u2003"}, {"doc_id": "c", "text": "x"}])
    assert found.blank_documents == ("a", "b")
    assert found.card()["blank_documents"] == ["a", "b"]


def test_a_folder_of_text_files(load: Load, tmp_path: Path) -> None:
    for name, content in {
        "b.md": b"\xef\xbb\xbfone\r\ntwo\rthree\n",
        "a/v1.2.MD": "ümlaut".encode(),
        "a/c.txt": b"",
        "a/picture.png": b"\xff",
        ".hidden/x.md": b"\xff",
        "._b.md": b"\xff",
    }.items():
        (tmp_path / "notes" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "notes" / name).write_bytes(content)
    label = {"doc_id": "b", "start": 5, "end": 8, "text": "two"}
    found = load([{"id": "q", "question": "?", "relevant": [label]}], documents="notes")
    assert found.documents == (
        Document("a/c", ""),
        Document("a/v1.2", "ümlaut"),
        Document("b", "one\r\ntwo\rthree\n"),
    )


@pytest.mark.parametrize("name", ["documents.jsonl", "docs.jsonl", "documents", "docs"])
def test_documents_are_found_where_they_usually_are(tmp_path: Path, name: str) -> None:
    write(tmp_path / "questions.jsonl", [{"id": "q", "question": "?"}])
    if name.endswith(".jsonl"):
        write(tmp_path / name, [{"doc_id": "d", "text": "x"}])
    else:
        (tmp_path / name).mkdir()
        write(tmp_path / name / "d.txt", b"x")
    assert JsonlDataset(name="mine", path=str(tmp_path)).load().documents == (Document("d", "x"),)


def test_the_card_counts(load: Load) -> None:
    span = {"doc_id": "d1", "start": 0, "end": 4}
    card = load(
        [
            {"id": "a", "question": "?", "relevant": [span, span | {"end": 3, "grade": 0}], "slices": ["x", "y"]},
            {"id": "b", "question": "?", "relevant": [], "answerable": False, "slice": "x", "split": "held_out"},
            {"id": "c", "question": "?", "origin": "synthetic"},
        ]
    ).card()
    assert {key: value for key, value in card.items() if "checksum" not in key} == {
        "name": "mine",
        "version": None,
        "documents": 1,
        "blank_documents": [],
        "characters": 19,
        "questions": 3,
        "answerable": 2,
        "unanswerable": 1,
        "labelled": 2,
        "unlabelled": 1,
        "slices": {"x": 2, "y": 1},
        "origins": {"real": 2, "synthetic": 1},
        "splits": {"held_out": 1, "tune": 2},
        "spans_by_grade": {"0": 1, "1": 1},
        "documents_read": {"read": 1, "kept": 1, "skipped": 0},
        "questions_read": {"read": 3, "kept": 3, "skipped": 0},
        "faults": [],
    }


@pytest.mark.parametrize("name", ["sample", "jsonl"])
def test_every_key_of_the_yaml_has_a_comment_and_the_default_of_its_class(name: str) -> None:
    text = (conf_dir() / "dataset" / f"{name}.yaml").read_text(encoding="utf-8")
    config = yaml.safe_load(text)
    lines = text.splitlines()
    assert lines[0].startswith("# ")
    assert all(lines[at - 1].startswith("# ") for at, line in enumerate(lines) if not line.startswith("#"))
    assert set(config) == {"_target_", *JsonlDataset.model_fields}
    assert isinstance(build(config, Dataset, "dataset"), JsonlDataset)


def test_the_sample_is_without_fault_wherever_it_is_loaded_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config = yaml.safe_load((conf_dir() / "dataset" / "sample.yaml").read_text(encoding="utf-8"))
    sample = build(config, Dataset, "dataset").load()
    assert not sample.faults
    assert sample.blank_documents == ()
    assert all(question.relevant is not None for question in sample.questions)


def real(name: str, **config: Any) -> TestSet:
    if not (REAL / name).is_dir():
        pytest.skip(f"{REAL / name} is not here; it holds data that is not part of this repository")
    return JsonlDataset(name=name, path=str(REAL / name), **config).load()


@pytest.mark.parametrize(
    ("name", "documents", "characters", "questions", "unanswerable", "grades"),
    [
        ("chroma_chunking", 5, 1_444_328, 472, 0, {"1": 790}),
        ("clapnq_dev", 597, 609_957, 600, 300, {"1": 572, "2": 313, "4": 1, "6": 1, "7": 6}),
        ("xquad_en", 48, 188_746, 1190, 0, {"1": 1190}),
    ],
)
def test_real_test_sets(
    name: str, documents: int, characters: int, questions: int, unanswerable: int, grades: dict[str, int]
) -> None:
    ignored = ["alt_answers", "near_miss_doc", "evidence_missing"] if name == "clapnq_dev" else []
    card = real(name, ignore_fields=ignored).card()
    assert (card["documents"], card["characters"], card["questions"]) == (documents, characters, questions)
    assert (card["unanswerable"], card["spans_by_grade"]) == (unanswerable, grades)
