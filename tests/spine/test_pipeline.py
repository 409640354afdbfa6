"""What the stages owe each other: spans checked, labels found, orders kept, nothing lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.schema import Chunk, Question, Record, Span, from_json
from runner.chunkers.fixed import FixedChunker
from runner.dataset import Document
from runner.errors import ComponentError
from runner.pipeline import _labelled, cut
from runner.stage import Chunker
from tests.spine.commands import Say, write_lines


class Given(Chunker):
    found: list[tuple[int, int]]

    def spans(self, text: str) -> list[tuple[int, int]]:
        return self.found


@pytest.mark.parametrize("found", [[(0, 0)], [(3, 2)], [(-1, 2)], [(0, 11)], [(4, 6), (0, 2)]], ids=str)
def test_a_chunker_that_breaks_its_contract_is_refused_by_name(found: list[tuple[int, int]]) -> None:
    with pytest.raises(ComponentError, match=r"Given returned the span .* for document 'd' of 10 characters"):
        cut(Given(found=found), Document("d", "0123456789"))


def test_a_chunk_is_its_slice_and_blank_ones_are_left_out() -> None:
    chunks = cut(Given(found=[(0, 3), (3, 6), (5, 9)]), Document("d", "abc   def"))
    assert [(chunk.start, chunk.end, chunk.text) for chunk in chunks] == [(0, 3, "abc"), (5, 9, " def")]


SPANS = st.tuples(st.integers(0, 30), st.integers(1, 10)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@given(
    st.dictionaries(st.sampled_from("abc"), st.lists(SPANS, max_size=6)),
    st.lists(st.lists(st.tuples(st.sampled_from("abcd"), SPANS), max_size=3) | st.none(), max_size=3),
)
def test_labelled_chunks_are_those_that_share_a_character_with_a_label(
    corpus: dict[str, list[tuple[int, int]]], labels: list[list[tuple[str, tuple[int, int]]] | None]
) -> None:
    chunks = [Chunk(doc, start, end, "x") for doc in sorted(corpus) for start, end in sorted(corpus[doc])]
    questions = [
        Question(str(i), "?", relevant=None if spans is None else tuple(Span(doc, a, b) for doc, (a, b) in spans))
        for i, spans in enumerate(labels)
    ]
    expected = [
        tuple(
            chunk
            for chunk in chunks
            if any(
                s.doc_id == chunk.doc_id and s.start < chunk.end and chunk.start < s.end
                for s in question.relevant or ()
            )
        )
        for question in questions
    ]
    assert _labelled(chunks, questions) == expected


def records_of(outcome: dict[str, Any]) -> list[Record]:
    lines = (Path(outcome["folder"]) / "records.jsonl").read_text(encoding="utf-8").split("\n")
    return [from_json(Record, line) for line in lines if line]


def test_case_21_k_beyond_the_corpus_gives_what_there_is_and_says_so(say: Say) -> None:
    said = say("run", "--json", "chunker.size=500", "retriever.k=5")
    assert said.json["notes"] == [
        "questions with fewer chunks than asked: 4 (asked 5, fewest got 3)",
        "faults: should have declined 1; `paribus diagnose latest` says more",
    ]
    assert [(record.asked_k, len(record.reranked)) for record in records_of(said.json)] == [(5, 3)] * 4


def test_case_34_blank_documents_are_noted_and_an_all_blank_corpus_is_refused(say: Say, folder: Path) -> None:
    documents = [{"doc_id": "a", "text": ""}, {"doc_id": "b", "text": "  \n"}, {"doc_id": "c", "text": "Short note."}]
    write_lines(folder / "blank/documents.jsonl", documents)
    write_lines(folder / "blank/questions.jsonl", [{"id": "q", "question": "Note ?"}])
    said = say("run", "--json", "dataset.path=blank", "retriever.k=1", "retriever=dense")
    assert said.code == 0, said.err
    assert said.json["notes"][0].startswith("blank documents, not indexed: a, b (2 in all)")
    assert [ranked.chunk.doc_id for ranked in records_of(said.json)[0].retrieved] == ["c"]
    write_lines(folder / "blank/documents.jsonl", documents[:2])
    assert "only blank documents" in say("run", "dataset.path=blank").err


def test_a_reranker_changes_the_order_and_not_the_set(say: Say) -> None:
    said = say("sweep", "--json", "retriever.k=4", "reranker=none,shortest")
    plain, reranked = (records_of(row["outcome"]) for row in said.json["rows"])
    for before, after in zip(plain, reranked, strict=True):
        assert before.reranked == before.retrieved
        assert after.retrieved == before.retrieved
        assert {r.chunk for r in after.reranked} == {r.chunk for r in before.reranked}
        lengths = [len(ranked.chunk.text) for ranked in after.reranked]
        assert lengths == sorted(lengths)
        assert [ranked.rank for ranked in after.reranked] == [1, 2, 3, 4]


def test_every_ranked_chunk_reaches_the_prompt_or_is_recorded_as_dropped(say: Say) -> None:
    said = say(
        "run",
        "--json",
        "context.max_tokens=25",
        "retriever.k=4",
        "chunker=fixed",
        "chunker.size=30",
        "chunker.overlap=10",
    )
    assert said.code == 0, said.err
    records = records_of(said.json)
    assert any(record.dropped for record in records)
    for record in records:
        dropped = [dropped.chunk for dropped in record.dropped]
        assert [ranked.chunk for ranked in record.reranked] == [*record.context, *dropped]
        assert {dropped.reason for dropped in record.dropped} <= {"budget", "duplicate"}
        assert all(chunk.text in (record.prompt or "") for chunk in record.context)


def test_case_29_braces_of_documents_and_questions_reach_the_model_as_they_are(say: Say, folder: Path) -> None:
    text = "limit = {max}; price $5 ${x} %s {{y}} {question} {context}"
    write_lines(folder / "braces/documents.jsonl", [{"doc_id": "d", "text": text}])
    write_lines(folder / "braces/questions.jsonl", [{"id": "q", "question": "What {context} is {max} ?"}])
    template = 'prompt.template="Use {context} to answer {question}. Reply as {\\"a\\": 1}."'
    said = say("run", "--json", "dataset.path=braces", "chunker.size=200", template)
    assert said.code == 0, said.err
    prompt = records_of(said.json)[0].prompt or ""
    assert f'Use [1] {text} to answer What {{context}} is {{max}} ?. Reply as {{"a": 1}}.' in prompt


def test_threads_give_what_one_thread_gives(say: Say) -> None:
    one = say("run", "--json", "+generator.concurrency=1", "tracking.folder=one").json
    four = say("run", "--json", "+generator.concurrency=4", "tracking.folder=four").json
    assert four["computed"] == one["computed"]
    timeless = [
        [(r.question_id, r.answer, r.prompt, r.context) for r in records_of(outcome)] for outcome in (one, four)
    ]
    assert timeless[0] == timeless[1]


def test_the_corpus_is_in_order_of_document_and_place() -> None:
    chunker = FixedChunker(size=4)
    chunks = [chunk for name in ("a", "b") for chunk in cut(chunker, Document(name, "abcdefgh"))]
    assert [(chunk.doc_id, chunk.start) for chunk in chunks] == [("a", 0), ("a", 4), ("b", 0), ("b", 4)]
