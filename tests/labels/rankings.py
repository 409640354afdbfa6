"""Short ways to write a question with labels and the record of a ranking; a document is one chunk of ten characters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hypothesis import settings

from adapters.base import scorer
from adapters.schema import Chunk, Question, Ranked, Record, Score, Span

# The first example pays for imports of seconds; the same examples every time, so that a red test stays red.
steady = settings(deadline=None, derandomize=True)


def chunk(doc_id: str, start: int = 0, end: int = 10) -> Chunk:
    return Chunk(doc_id, start, end, "x" * (end - start))


def ranking(chunks: Iterable[Chunk]) -> tuple[Ranked, ...]:
    return tuple(Ranked(chunk, -float(rank), rank) for rank, chunk in enumerate(chunks, 1))


def labelled(grades: Mapping[str, int], **fields: Any) -> Question:
    """A question whose labels are whole documents with these grades."""
    relevant = tuple(Span(doc_id, 0, 10, grade) for doc_id, grade in grades.items())
    return Question("q", "?", relevant=relevant, **fields)


def ranked(documents: Iterable[str], question: Question | None = None, **fields: Any) -> Record:
    """The record of a system that ranked these documents."""
    spans = (question.relevant or ()) if question else ()
    touching = tuple(chunk(doc_id) for doc_id in dict.fromkeys(span.doc_id for span in spans))
    return Record("q", reranked=ranking(map(chunk, documents)), labelled=touching, **fields)


def drawn(pattern: str, relevant: int) -> tuple[Question, Record]:
    """`.R.R.` with 3 relevant: hits at ranks 2 and 4, one relevant document not retrieved."""
    documents = [f"{mark}{rank}" for rank, mark in enumerate(pattern, 1)]
    found = [doc_id for doc_id in documents if doc_id.startswith("R")]
    missed = [f"missed{number}" for number in range(relevant - len(found))]
    question = labelled(dict.fromkeys(found + missed, 1))
    return question, ranked(documents, question)


def score(definition: str, question: Question, record: Record, **parameters: Any) -> Score:
    return scorer({"id": f"labels/{definition}", **parameters}).score(question, record)


def value(definition: str, question: Question, record: Record, **parameters: Any) -> float:
    result = score(definition, question, record, **parameters)
    assert result.value is not None, result.reason
    return result.value
