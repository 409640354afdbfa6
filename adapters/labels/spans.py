"""Definitions in characters: how much of the labelled text reached the reader, and at what cost in other text.

They ask nothing of chunk borders, so they compare chunkers. All values are floats in [0, 1], lengths are Unicode code
points. Notation: L = labelled characters (the union of the relevant spans of each document), C = those of them that
the first k chunks cover, T = summed length of the first k chunks.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import ClassVar, NamedTuple

from adapters import asks
from adapters.labels.relevance import (
    LabelDefinition,
    ListDefinition,
    MinGrade,
    nothing_labelled,
    nothing_retrieved,
    shared,
)
from adapters.schema import Chunk, Question, Record, Score, Span, Verdict

CHROMA = (
    "Smith and Troynikov 2024, Evaluating Chunking Strategies for Retrieval, Chroma technical report, 3 July 2024, "
    "research.trychroma.com/evaluating-chunking"
)
Segments = dict[str, list[tuple[int, int]]]


def union(pieces: Iterable[Span | Chunk]) -> Segments:
    """The characters of all pieces by document, as sorted segments that neither overlap nor touch."""
    merged: Segments = defaultdict(list)
    for piece in sorted(pieces, key=lambda piece: (piece.start, piece.end)):
        segments = merged[piece.doc_id]
        if segments and piece.start <= segments[-1][1]:
            segments[-1] = (segments[-1][0], max(segments[-1][1], piece.end))
        elif piece.start < piece.end:
            segments.append((piece.start, piece.end))
    return merged


def length(segments: Segments) -> int:
    """How many characters the segments hold."""
    return sum(end - start for pieces in segments.values() for start, end in pieces)


class Coverage(NamedTuple):
    """Characters: labelled, covered of those, in all chunks with overlap counted twice; and one verdict per chunk."""

    labelled: int
    covered: int
    total: int
    verdicts: tuple[Verdict, ...]


@lru_cache(maxsize=2048)
def cover(relevant: tuple[Span, ...], chunks: tuple[Chunk, ...], min_grade: int) -> Coverage:
    """Lay the chunks over the relevant spans."""
    labels = union(span for span in relevant if span.grade >= min_grade)
    pieces: list[Span] = []
    verdicts = []
    for rank, chunk in enumerate(chunks, 1):
        segments = (Span(chunk.doc_id, start, end) for start, end in labels.get(chunk.doc_id, ()))
        common = [
            Span(s.doc_id, max(s.start, chunk.start), min(s.end, chunk.end)) for s in segments if shared(s, chunk)
        ]
        pieces += common
        name, size = f"{chunk.doc_id}[{chunk.start}:{chunk.end}]", chunk.end - chunk.start
        native = f"{sum(piece.end - piece.start for piece in common)} of {size} characters"
        verdicts.append(Verdict(name, native, "relevant" if common else "not_relevant", rank=rank))
    total = sum(chunk.end - chunk.start for chunk in chunks)
    return Coverage(length(labels), length(union(pieces)), total, tuple(verdicts))


class SpanDefinition(ListDefinition):
    """Base of the definitions over the characters of the first k chunks; subclasses give `_value`."""

    unit_judged: ClassVar[str] = "character"
    hit: ClassVar[str] = "a character of a relevant span (grade >= min_grade) that one of the first k chunks covers"
    nothing_to_judge: ClassVar[str] = (
        "not applicable where the question is unlabelled or no passage of grade >= min_grade is labelled; 0 where "
        "nothing was retrieved, and the question stays in the mean"
    )
    source: ClassVar[str] = CHROMA
    hazards: ClassVar[tuple[str, ...]] = (
        "A text that stands in two places is labelled in one: a chunk with the same words elsewhere covers nothing.",
        "A chunk ranked twice covers once, but its length is in T twice, as any overlap is; k counts places.",
        "The ranking's own order decides what the first k are: equal scores are never re-sorted.",
    )

    min_grade: MinGrade = 1

    @abstractmethod
    def _value(self, coverage: Coverage) -> float:
        """The value in [0, 1]; at least one character is labelled."""

    def score(self, question: Question, record: Record) -> Score:
        """The score of the first k chunks, with the characters that each shares with the labels."""
        if reason := nothing_labelled(question, self.min_grade):
            return self.not_applicable(record, reason)
        ranked = self.chunks(record)
        if not ranked:
            return self.computed(record, 0.0, reason=nothing_retrieved(record))
        coverage = cover(question.relevant or (), ranked[: self.k], self.min_grade)
        if not coverage.labelled:
            return self.not_applicable(record, "no relevant passage is labelled: the labelled spans have no characters")
        notes = self.shortfall(len(ranked))
        return self.computed(record, self._value(coverage), coverage.verdicts, "; ".join(notes) or None)


class SpanRecall(SpanDefinition):
    """Share of the labelled characters that the first k chunks cover, pieces added up: C / L, in [0, 1].

    Unit: the character. Source: Smith and Troynikov 2024 (Chroma), recall.
    """

    id: ClassVar[str] = "labels/span_recall"
    asks: ClassVar[str] = asks.FOUND
    formula: ClassVar[str] = "C / L: labelled characters covered by the first k chunks / labelled characters"

    def _value(self, coverage: Coverage) -> float:
        return coverage.covered / coverage.labelled


class SpanPrecision(SpanDefinition):
    """Share of the retrieved text that is labelled: C / T, in [0, 1], overlap between chunks counted twice in T.

    Unit: the character. Source: Smith and Troynikov 2024 (Chroma), precision.
    """

    id: ClassVar[str] = "labels/span_precision"
    asks: ClassVar[str] = asks.FOUND_RELEVANT
    formula: ClassVar[str] = "C / T: labelled characters covered by the first k chunks / summed length of these chunks"
    hazards: ClassVar[tuple[str, ...]] = (
        "Its ceiling is set by the chunk size: see labels/span_precision_omega.",
        *SpanDefinition.hazards,
    )

    def _value(self, coverage: Coverage) -> float:
        return coverage.covered / coverage.total if coverage.total else 0.0


class SpanIoU(SpanDefinition):
    """Overlap of labelled and retrieved text over all of both: C / (T + L - C), in [0, 1].

    Unit: the character. Source: Smith and Troynikov 2024 (Chroma), intersection over union.
    """

    id: ClassVar[str] = "labels/span_iou"
    asks: ClassVar[str] = "how well does what was retrieved match what is relevant?"
    formula: ClassVar[str] = (
        "C / (T + L - C): covered / (length of the first k chunks + labelled characters not covered)"
    )

    def _value(self, coverage: Coverage) -> float:
        return coverage.covered / (coverage.total + coverage.labelled - coverage.covered)


class SpanPrecisionOmega(LabelDefinition):
    """Precision if exactly the chunks that touch a label were retrieved: what the chunker allows, in [0, 1].

    Unit: the character; independent of embedder, ranking and k. Source: Smith and Troynikov 2024 (Chroma), precision
    omega.
    """

    id: ClassVar[str] = "labels/span_precision_omega"
    asks: ClassVar[str] = "how precise could retrieval be with these chunks?"
    unit_judged: ClassVar[str] = "character"
    hit: ClassVar[str] = "a character of a relevant span (grade >= min_grade) that a chunk of Record.labelled covers"
    formula: ClassVar[str] = "labelled characters in chunks that touch a label / summed length of these chunks"
    nothing_to_judge: ClassVar[str] = (
        "not applicable where the question is unlabelled, no passage of grade >= min_grade is labelled, or the record "
        "names no chunk that touches one"
    )
    requires: ClassVar[tuple[str, ...]] = ("relevant", "labelled")
    source: ClassVar[str] = CHROMA
    hazards: ClassVar[tuple[str, ...]] = (
        "It says nothing of retrieval: it is the ceiling of labels/span_precision at full recall.",
        "Chroma's code differs from its report: a chunk that ends where a label begins touches it (which lowers the "
        "published MiniLM row by a point), and overlap between chunks counts once.",
    )

    min_grade: MinGrade = 1

    def score(self, question: Question, record: Record) -> Score:
        """The ceiling for one question; the ranking is not looked at, so an error does not matter."""
        if reason := nothing_labelled(question, self.min_grade):
            return self.not_applicable(record, reason)
        relevant = question.relevant or ()
        chunks = tuple({(chunk.doc_id, chunk.start, chunk.end): chunk for chunk in record.labelled}.values())
        laid = zip(chunks, cover(relevant, chunks, self.min_grade).verdicts, strict=True)
        touching = tuple(chunk for chunk, verdict in laid if verdict.ours == "relevant")
        if not touching:
            return self.not_applicable(record, "the record names no chunk that touches a relevant passage (labelled)")
        coverage = cover(relevant, touching, self.min_grade)
        evidence = tuple(replace(verdict, rank=None) for verdict in coverage.verdicts)
        return self.computed(record, coverage.covered / coverage.total, evidence)
