"""Every way in which a test set can be wrong, and what the message says about it."""

from __future__ import annotations

import io
import os
import re
from pathlib import Path
from typing import Any

import pytest

from runner.component import build
from runner.dataset import Dataset
from runner.datasets.jsonl import JsonlDataset
from runner.errors import ConfigError, DataError
from tests.dataset.files import Load, write

param = pytest.param

DOCUMENT = {"doc_id": "d1", "text": "Anna pays the rent. Anna pays late."}
SPAN = {"doc_id": "d1", "start": 0, "end": 4}


def refused(load: Load, *args: Any, **config: Any) -> list[str]:
    with pytest.raises(DataError) as caught:
        load(*args, **config)
    return str(caught.value).split("\n")


def question(**fields: Any) -> dict[str, Any]:
    return {"id": "q1", "question": "Who?"} | fields


def labelled(**fields: Any) -> dict[str, Any]:
    return question(relevant=[SPAN | fields])


def judged(**fields: Any) -> dict[str, Any]:
    return question(human={"answer": "Anna"} | fields)


QUESTION_FAULTS = [
    param(question(id=7), 'id is the number 7, expected text: write it in quotes, "7"', id="number-id"),
    param(question(id=" "), "id is ' ', expected text that is not blank", id="blank-id"),
    param(question(id=None), "id is null, expected text", id="null-id"),
    param({"question": "Who?"}, "id is missing", id="no-id"),
    param({"id": "q1"}, "question q1: question is missing", id="no-question"),
    param(question(question="\n\t"), r"question is '\n\t', expected text that is not blank", id="blank-question"),
    param(question(text="Who?"), "question and text are the same field; keep one", id="two-names"),
    param(question(question=["Who?"]), "question is a list, expected text", id="question-type"),
    param(
        question(referense_answer="x"),
        "referense_answer is not a known field; did you mean reference_answer?",
        id="near",
    ),
    param(question(zzz=1), "zzz is not a known field (known: id, question, text, ", id="unknown"),
    param(question(zzz=1), "dataset.ignore_fields keeps it as metadata", id="unknown-advice"),
    param(question(relevant="['d1']"), "relevant is text, expected a list", id="list-as-text"),
    param(question(relevant=["d1"]), "relevant[0] is text, expected an object", id="label-type"),
    param(question(reference_answer=3), "reference_answer is the number 3, expected text", id="answer-type"),
    param(question(reference_claims="a"), "reference_claims is text, expected a list", id="claims-type"),
    param(question(reference_claims=["a", 1]), "reference_claims[1] is the number 1, expected text", id="claim-type"),
    param(question(answerable="no"), "answerable is text, expected true or false", id="answerable-type"),
    param(question(answerable=None), "answerable is null, expected true or false", id="answerable-null"),
    param(question(answerable=0), "answerable is the number 0, expected true or false", id="answerable-number"),
    param(question(slice="a", slices=["b"]), "slice and slices are the same field; keep one", id="two-slices"),
    param(question(slices="a"), "slices is text, expected a list", id="slices-type"),
    param(question(slice=""), "slice is '', expected text that is not blank", id="blank-slice"),
    param(question(origin="human"), "origin is 'human', expected 'real' or 'synthetic'", id="origin"),
    param(question(split="test"), "split is 'test', expected 'tune' or 'held_out'", id="split"),
    param(
        question(valid_until="31.12.2026"), "valid_until is '31.12.2026', expected a date in quotes, as in", id="date"
    ),
    param(question(valid_until="20261231"), "valid_until is '20261231', expected a date", id="date-form"),
    param(question(valid_until="2026-02-30"), "valid_until is '2026-02-30', expected a date", id="no-such-day"),
    param(question(valid_until=20261231), "valid_until is the number 20261231, expected a date", id="date-type"),
    param(question(human=[1]), "human is a list, expected an object", id="human-type"),
    param(question(human={}), "human.answer is missing", id="human-no-answer"),
    param(question(human={"answer": " "}), "human.answer is ' ', expected text that is not blank", id="human-blank"),
    param(judged(claim=[]), "human.claim is not a known field; did you mean claims?", id="human-field"),
    param(
        judged(claims=[{"text": "b", "verdict": "supported", "evidense": []}]),
        "human.claims[0].evidense is not a known field; did you mean evidence? (known: text, verdict, in_reference,",
        id="human-inner-field",
    ),
    param(judged(claims="b"), "human.claims is text, expected a list", id="human-claims"),
    param(judged(claims=["b"]), "human.claims[0] is text, expected an object", id="human-claim"),
    param(
        judged(claims=[{"text": "b", "verdict": "maybe"}]),
        "human.claims[0].verdict is 'maybe', expected 'supported', 'contradicted' or 'absent'",
        id="human-verdict",
    ),
    param(
        judged(claims=[{"text": "b c", "verdict": v} for v in ("supported", "absent")]),
        "human.claims is a list, expected each text once; 'b c' stands there twice",
        id="human-claim-twice",
    ),
    param(judged(context="a"), "human.context is text, expected a list", id="human-context"),
    param(judged(declines="no"), "human.declines is text, expected true or false", id="human-declines"),
    param(judged(addresses_question="1"), "human.addresses_question is text, expected a number", id="human-number"),
    param(judged(agreement=2), "human.agreement is 2, expected 1.0 or less", id="human-range"),
    param(
        judged(reference_claims=[{"text": "b", "evidence": [SPAN | {"doc_id": "d9"}]}]),
        "human.reference_claims[0].evidence[0].doc_id: labelled document d9 is not in the corpus",
        id="human-evidence-document",
    ),
    param(
        judged(claims=[{"text": "b", "verdict": "supported", "evidence": [SPAN | {"text": "Bert"}]}]),
        "human.claims[0].evidence[0].text is 'Bert', but d1 has 'Anna' at 0 to 4",
        id="human-evidence-text",
    ),
    param(
        judged(claims=[{"text": "b", "verdict": "supported", "evidence": []}]),
        "human.claims[0] is an object, expected evidence for what is supported or contradicted",
        id="human-evidence-none",
    ),
    param(question(metadata="x"), "metadata is text, expected an object", id="metadata-type"),
    param(labelled(doc_id="d99"), "relevant[0].doc_id: labelled document d99 is not in the corpus", id="no-document"),
    param(
        labelled(doc_id="D1.md"), "labelled document D1.md is not in the corpus; did you mean d1?", id="near-document"
    ),
    param(
        labelled(doc_id=1),
        'relevant[0].doc_id is the number 1, expected text: write it in quotes, "1"',
        id="doc-id-type",
    ),
    param(labelled(start=True), "relevant[0].start is true, expected a whole number", id="bool-start"),
    param(labelled(start=0.0), "relevant[0].start is the number 0.0, expected a whole number", id="float-start"),
    param(labelled(end="4"), "relevant[0].end is text, expected a whole number", id="text-end"),
    param(labelled(start=-1), "relevant[0].start is -1, expected 0 or more", id="negative-start"),
    param(labelled(start=4), "relevant[0].start is 4, expected less than end, which is 4", id="empty-span"),
    param(labelled(end=36), "relevant[0].end is 36, but d1 has 35 characters", id="beyond"),
    param(labelled(grade=-1), "relevant[0].grade is -1, expected 0 or more", id="negative-grade"),
    param(labelled(grade=1.5), "relevant[0].grade is the number 1.5, expected a whole number", id="float-grade"),
    param(
        labelled(score=1),
        "relevant[0].score is not a known field (known: doc_id, start, end, grade, text)",
        id="label-field",
    ),
    param(question(relevant=[{"doc_id": "d1", "start": 0}]), "relevant[0].end is missing", id="no-end"),
    param(labelled(text="Bert"), "relevant[0].text is 'Bert', but d1 has 'Anna' at 0 to 4", id="text"),
    param(labelled(text="rent"), "; the text stands once in the document, at 14 to 18", id="text-elsewhere"),
    param(
        labelled(end=99, text="rent"),
        "35 characters; the text stands once in the document, at 14 to 18",
        id="beyond-hint",
    ),
    param(
        question(relevant=[SPAN, SPAN | {"grade": 2}]),
        "relevant[1].grade is 2, but relevant[0] is the same span with grade 1",
        id="two-grades",
    ),
    param(
        question(answerable=False, relevant=[SPAN | {"end": 3, "grade": 0}, SPAN]),
        "answerable is false, but relevant has a passage of grade 1 in d1; expected answerable: true, or grade 0 only",
        id="unanswerable-but-labelled",
    ),
    param(
        r'{"id": "r3", "question": "ok \ud83d end"}',
        "question r3: question has half a surrogate pair (U+D83D) at character 3",
        id="surrogate",
    ),
    param(
        r'{"id": "q\udc00", "question": "x"}',
        r"question 'q\udc00': id has half a surrogate pair (U+DC00) at character 1",
        id="surrogate-id",
    ),
    param(
        r'{"id": "r", "question": "x", "metadata": {"a": ["\ud83d"]}}',
        "metadata.a[0] has half a surrogate",
        id="surrogate-inside",
    ),
    param(
        r'{"id": "r", "question": "x", "\ud83d": 1}',
        "has half a surrogate pair (U+D83D) at character 0",
        id="surrogate-name",
    ),
    param(
        '{"id": "q1", "question": "a", "question": "b"}',
        "question q1: question stands twice in one object",
        id="key-twice",
    ),
    param(
        '{"id": "q1", "question": "a", "metadata": {"k": 1, "k": 1}}',
        "k stands twice in one object",
        id="inner-key-twice",
    ),
    param('{"id": "q1", "question": "a", "metadata": {"k": NaN}}', "NaN is not a number in JSON", id="nan"),
    param(
        '{"id": "q1", "question": "a", "metadata": {"k": -Infinity}}',
        "-Infinity is not a number in JSON",
        id="infinity",
    ),
    param(
        '{"id": "q1", "question": "a", "metadata": {"k": 1e999}}',
        "metadata.k is a number beyond the range",
        id="overflow",
    ),
    param(
        '{"id": "q1", "question": "a", "metadata": {"k": ' + "9" * 5000 + "}}",
        "not valid JSON: Exceeds the limit",
        id="digits",
    ),
    param(
        '{"id": "q1", "question": "a", "metadata": {"k": ' + "[" * 60 + "]" * 60 + "}}",
        "metadata is nested deeper than 50",
        id="deep",
    ),
    param("[" * 200_000 + "]" * 200_000, "nested deeper than 50 levels", id="bottomless"),
    param('{"id": 001, "question": "a"}', "not valid JSON at column 9", id="leading-zeros"),
    param('{"id": ', "not valid JSON at column", id="half"),
    param('{"id": "q1",}', "not valid JSON at column", id="trailing-comma"),
    param('{"id": "a"} {"id": "b"}', "(Extra data); a line must be one whole JSON object", id="two-objects"),
    param("[]", "the line is a list, expected an object", id="list-line"),
    param("null", "the line is null, expected an object", id="null-line"),
]


@pytest.mark.parametrize(("line", "message"), QUESTION_FAULTS)
def test_a_faulty_question_is_named_with_its_line(load: Load, line: dict[str, Any] | str, message: str) -> None:
    heading, *faults = refused(load, ["", line], [DOCUMENT])
    assert heading == "test set mine cannot be used: " + ("1 fault" if len(faults) == 1 else f"{len(faults)} faults")
    assert message in faults[0]
    assert all(fault.startswith("questions.jsonl:2: ") for fault in faults)


DOCUMENT_FAULTS = [
    param({"doc_id": 1, "text": "x"}, 'doc_id is the number 1, expected text: write it in quotes, "1"', id="number-id"),
    param({"doc_id": "", "text": "x"}, "doc_id is '', expected text that is not blank", id="blank-id"),
    param({"doc_id": "d2"}, "document d2: text is missing", id="no-text"),
    param({"doc_id": "d2", "text": None}, "document d2: text is null, expected text", id="null-text"),
    param({"doc_id": "d2", "text": "x", "titel": "T"}, "titel is not a known field; did you mean title?", id="unknown"),
    param({"doc_id": "d2", "text": "x", "metadata": 1}, "metadata is the number 1, expected an object", id="metadata"),
    param({"doc_id": "d1", "text": "x"}, "document d1: doc_id is taken already, at documents.jsonl:1", id="twice"),
    param(
        '{"doc_id": "d2", "text": "\\udfff"}', "document d2: text has half a surrogate pair (U+DFFF) at", id="surrogate"
    ),
]


@pytest.mark.parametrize(("line", "message"), DOCUMENT_FAULTS)
def test_a_faulty_document_is_named_with_its_line(load: Load, line: dict[str, Any] | str, message: str) -> None:
    _, fault = refused(load, None, [DOCUMENT, line])
    assert fault.startswith("documents.jsonl:2: ")
    assert message in fault


def test_all_faults_are_raised_at_once_with_their_places(load: Load) -> None:
    _, *faults = refused(
        load,
        [question(origin="x", relevant=[SPAN | {"end": 99}, SPAN | {"doc_id": "d9", "start": "0"}]), question(), "[]"],
        [DOCUMENT, {"doc_id": "d2"}],
    )
    assert [re.sub(r"( is | are |: labelled).*", "", fault) for fault in faults] == [
        "documents.jsonl:2: document d2: text",
        "questions.jsonl:1: question q1: origin",
        "questions.jsonl:1: question q1: relevant[0].end",
        "questions.jsonl:1: question q1: relevant[1].start",
        "questions.jsonl:1: question q1: relevant[1].doc_id",
        "questions.jsonl:2: question q1: id",
        "questions.jsonl:3: the line",
    ]
    assert faults[5].endswith("id is taken already, at questions.jsonl:1; ids are unique")


def test_the_label_of_a_faulty_document_is_not_a_second_fault(load: Load) -> None:
    _, *faults = refused(load, [labelled(doc_id="d2")], [DOCUMENT, {"doc_id": "d2"}])
    assert len(faults) == 1


def test_a_long_list_of_faults_is_cut_and_counted(load: Load) -> None:
    heading, *faults = refused(load, ["[]"] * 63)
    assert heading.endswith("63 faults")
    assert len(faults) == 51
    assert faults[49].startswith("questions.jsonl:50: ")
    assert faults[50] == "and 13 more"


def test_a_broken_line_is_named_by_its_physical_number(load: Load) -> None:
    lines = [question(id="a"), "", question(id="b"), '{"id": ', "[]", '{"id":"c","question":"z",}']
    _, *faults = refused(load, lines)
    assert [fault.split(": ")[0] for fault in faults] == [f"questions.jsonl:{line}" for line in (4, 5, 6)]


def test_bytes_that_are_not_utf8_are_named_with_their_line(load: Load) -> None:
    _, fault = refused(load, b'{"id": "q1", "question": "Who?"}\n{"id": "q2", "question": "caf\xe9"}\n')
    assert fault == "questions.jsonl:2: byte 0xe9 at position 29 is not UTF-8; save the file as UTF-8"


def test_utf16_is_recognised(load: Load) -> None:
    _, fault = refused(load, '{"id": "q1", "question": "Who?"}\n{"id": "q2", "question": "Who?"}\n'.encode("utf-16"))
    assert fault == "questions.jsonl:1: the file is UTF-16; save it as UTF-8"


@pytest.mark.parametrize(
    ("stored", "labelled_on", "hint"),
    [
        param("a\r\nb\r\nc here", "a\nb\nc here", "; it fits once CRLF is read as LF", id="stored-crlf"),
        param("a\nb\nc here", "a\r\nb\r\nc here", "; it fits a copy with CRLF line ends", id="stored-lf"),
    ],
)
def test_labels_made_on_other_line_ends_do_not_shift_unseen(
    load: Load, stored: str, labelled_on: str, hint: str
) -> None:
    start = labelled_on.index("here")
    label = {"doc_id": "d", "start": start, "end": start + 4, "text": "here"}
    _, fault = refused(load, [question(relevant=[label])], [{"doc_id": "d", "text": stored}])
    assert hint in fault


def test_a_long_mismatch_is_shown_where_it_begins(load: Load) -> None:
    text = "x" * 500 + "tail" + "y" * 500
    label = {"doc_id": "d", "start": 0, "end": len(text), "text": text.replace("tail", "head")}
    _, fault = refused(load, [question(relevant=[label])], [{"doc_id": "d", "text": text}])
    assert "head" in fault
    assert "tail" in fault
    assert len(fault) < 300


def test_ignored_fields_must_be_unknown_and_not_be_metadata_already(load: Load) -> None:
    _, fault = refused(load, [question(rank=1, metadata={"rank": 2})], ignore_fields=["rank"])
    assert "question q1: rank is both an ignored field and a key of metadata" in fault
    with pytest.raises(
        ConfigError, match=r"dataset\.ignore_fields: paribus reads relevant itself; take it off the list"
    ):
        build(
            {"_target_": "runner.datasets.jsonl.JsonlDataset", "name": "x", "path": ".", "ignore_fields": ["relevant"]},
            Dataset,
            "dataset",
        )


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        param(b"\n \n", "documents.jsonl has no document: read 0, kept 0, skipped 0", id="empty"),
        param(
            [{"doc_id": "d1", "text": " \n"}], "documents.jsonl has only blank documents: read 1, kept 1", id="blank"
        ),
    ],
)
def test_a_corpus_without_text_is_refused(load: Load, documents: Any, message: str) -> None:
    _, fault = refused(load, None, documents)
    assert message in fault


def test_a_test_set_without_questions_is_refused(load: Load) -> None:
    assert "questions.jsonl has no question: read 0, kept 0, skipped 0" in refused(load, b"")[1]
    assert (
        "questions.jsonl has no question: read 1, kept 0, skipped 1" in refused(load, ["[]"], skip_bad_lines=True)[-1]
    )
    fault = refused(load, split="held_out")[1]
    assert "questions.jsonl has no question of split held_out; set dataset.split=all: read 1, kept 1" in fault


MISSING = [
    param(
        {"documents": "document.jsonl"},
        "dataset.documents: there is no {0}/document.jsonl; did you mean documents.jsonl?",
        id="documents",
    ),
    param(
        {"questions": "question.jsonl"},
        "dataset.questions: there is no {0}/question.jsonl; did you mean questions.jsonl?",
        id="questions",
    ),
    param({"questions": "sub"}, "dataset.questions: {0}/sub is a folder, expected a JSONL file", id="folder-for-file"),
    param({"path": "sbu"}, "dataset.path: there is no {0}/sbu; did you mean sub?", id="path"),
    param({"path": "no/such"}, "dataset.path: there is no {0}/no/such", id="path-nowhere-near"),
    param(
        {"path": "questions.jsonl"},
        "dataset.path: {0}/questions.jsonl is a file, expected the folder",
        id="file-for-folder",
    ),
    param({"path": "x" * 5000}, "File name too long", id="name-too-long"),
    param(
        {"path": "pkg://no_such_package/x"},
        "dataset.path=pkg://no_such_package/x: there is no installed package",
        id="package",
    ),
    param({"path": "pkg://runner/smaple"}, "/runner/smaple; did you mean sample?", id="folder-in-package"),
]


@pytest.mark.parametrize(("config", "message"), MISSING)
def test_a_missing_place_is_named_in_full_with_a_near_name(
    load: Load, tmp_path: Path, config: dict[str, str], message: str
) -> None:
    (tmp_path / "sub").mkdir()
    _, fault = refused(load, **config)
    assert message.format(tmp_path) in fault


def test_where_nothing_is_named_every_usual_place_is(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        JsonlDataset(name="mine", path=str(tmp_path)).load()
    names = " or ".join(f"{tmp_path}/{name}" for name in ("documents.jsonl", "docs.jsonl", "documents", "docs"))
    assert f"dataset.documents: there is no {names}" in str(caught.value)
    assert f"dataset.questions: there is no {tmp_path}/questions.jsonl" in str(caught.value)


def test_two_usual_places_at_once_are_not_guessed_between(load: Load, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    assert f"{tmp_path} has documents.jsonl and docs: name the one to use in dataset.documents" in refused(load)[1]


def test_two_files_of_one_id_are_named(load: Load, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    write(tmp_path / "notes/a.md", b"x")
    write(tmp_path / "notes/a.txt", b"x")
    _, fault = refused(load, documents="notes")
    assert fault == "notes/a.txt: document a: doc_id is taken already, at notes/a.md; ids are unique"


def test_a_text_file_that_is_not_utf8_is_named_with_its_line(load: Load, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    write(tmp_path / "notes/a.md", b"one\ntwo \xe9\n")
    _, fault = refused(load, [question(relevant=[SPAN | {"doc_id": "a"}])], documents="notes")
    assert fault == "notes/a.md:2: document a: byte 0xe9 is not UTF-8; save the file as UTF-8"


def test_a_folder_without_text_files_says_what_is_read(load: Load, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    write(tmp_path / "notes/a.pdf", b"%PDF")
    assert "notes has no document (.md and .txt files are read): read 0" in refused(load, documents="notes")[1]


@pytest.mark.skipif(os.name == "nt", reason="Windows refuses such file names")
def test_a_file_name_that_is_not_utf8_is_shown_escaped(load: Load, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    try:
        (tmp_path / "notes" / os.fsdecode(b"caf\xe9.md")).write_bytes(b"x")
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    _, fault = refused(load, documents="notes")
    assert "doc_id has half a surrogate pair (U+DCE9) at character 3" in fault
    fault.encode()


@pytest.mark.parametrize("name", ["questions.jsonl", "documents.jsonl", "notes/a.md"])
def test_a_file_without_permission_is_named(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "notes").mkdir()
    write(tmp_path / "notes/a.md", b"x")
    opened = io.open

    def closed(file: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(file, Path) and "r" in (args or ("r",))[0] and file.as_posix() == name:
            raise PermissionError(13, "Permission denied", str(file))
        return opened(file, *args, **kwargs)

    monkeypatch.setattr(io, "open", closed)  # root, under which tests may run, is never denied
    faults = refused(load, documents="notes" if "notes" in name else "documents.jsonl")
    assert f"cannot read {tmp_path}/{name}: Permission denied" in faults[1]


def test_a_folder_without_permission_is_named(load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "notes" / "inner").mkdir(parents=True)
    listed = os.scandir

    def closed(folder: Any) -> Any:
        if str(folder).endswith("inner"):
            raise PermissionError(13, "Permission denied", str(folder))
        return listed(folder)

    monkeypatch.setattr(os, "scandir", closed)
    _, fault = refused(load, documents="notes")
    assert fault == f"notes/inner: cannot read {tmp_path}/notes/inner: Permission denied"


@pytest.mark.parametrize("config", [{"limit": 0}, {"split": "test"}, {"path": 3}, {"pth": "."}])
def test_configuration_is_checked(config: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=rf"dataset\.{next(iter(config))}"):
        build({"_target_": "runner.datasets.jsonl.JsonlDataset", "name": "x", "path": "."} | config, Dataset, "dataset")
