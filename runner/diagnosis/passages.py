"""Where the labelled passages of a question are: in a chunk at all, in the ranking, in the prompt."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from adapters.labels.relevance import holds, shared
from adapters.schema import Chunk, Question, Record, Span
from runner.diagnosis.rules import Rules


def named(piece: Span | Chunk) -> str:
    """`travel_policy[120:184]`, as labels/* name it."""
    return f"{piece.doc_id}[{piece.start}:{piece.end}]"


def listed(spans: Iterable[Span]) -> str:
    """The names of passages, two at most."""
    names = [named(span) for span in spans]
    return f"{', '.join(names[:2])} and {len(names) - 2} more" if len(names) > 2 else " and ".join(names)


@dataclass(frozen=True)
class Passages:
    """The labelled passages of one question beside what a system did with them; its labels are not None.

    needed: the passages that answer by themselves, of which one is enough, where any is labelled (`one_is_enough`);
    else all relevant ones, of which `rules.found_from` are needed. rejected: those below min_grade.
    """

    question: Question
    record: Record
    rules: Rules

    @cached_property
    def relevant(self) -> tuple[Span, ...]:
        """All relevant passages."""
        return tuple(span for span in self.question.relevant or () if span.grade >= self.rules.min_grade)

    @cached_property
    def rejected(self) -> tuple[Span, ...]:
        """The passages that were judged and rejected."""
        return tuple(span for span in self.question.relevant or () if span.grade < self.rules.min_grade)

    @cached_property
    def needed(self) -> tuple[Span, ...]:
        """See the class."""
        enough = self.rules.sufficient_grade
        sufficient = tuple(span for span in self.relevant if enough is not None and span.grade >= enough)
        return sufficient or self.relevant

    @property
    def one_is_enough(self) -> bool:
        """See the class."""
        enough = self.rules.sufficient_grade
        return enough is not None and self.needed[0].grade >= enough

    def within(self, chunks: Iterable[Chunk]) -> tuple[Span, ...]:
        """Which of the needed passages the chunks hold, each passage by one chunk."""
        near = [chunk for chunk in chunks if chunk.doc_id in self._documents]
        return tuple(span for span in self.needed if any(self.hold(chunk, span) for chunk in near))

    @cached_property
    def _documents(self) -> frozenset[str]:
        return frozenset(span.doc_id for span in self.question.relevant or ())

    def hold(self, chunk: Chunk, span: Span) -> bool:
        """Whether the chunk holds the passage."""
        return holds(chunk, span, self.rules.min_cover, self.rules.cover_of)

    def enough(self, spans: tuple[Span, ...]) -> bool:
        """Whether these of the needed passages are enough to answer from."""
        if self.one_is_enough:
            return bool(spans)
        return len(spans) / len(self.needed) >= self.rules.found_from

    @cached_property
    def ranked(self) -> tuple[Chunk, ...]:
        """The ranking that the system stands by."""
        return tuple(ranked.chunk for ranked in self.record.reranked)

    @cached_property
    def found(self) -> tuple[Span, ...]:
        """The needed passages in that ranking."""
        return self.within(self.ranked)

    @cached_property
    def held(self) -> tuple[Span, ...]:
        """The needed passages that some chunk is known to hold, found or not."""
        everywhere = (*self.record.labelled, *self.ranked, *(ranked.chunk for ranked in self.record.retrieved))
        return self.within(everywhere)

    @cached_property
    def prompted(self) -> tuple[Span, ...]:
        """The needed passages in the prompt. A chunk that was left out as a duplicate is in it with its twin's text."""
        texts = {" ".join(chunk.text.split()) for chunk in self.record.context}
        twins = (
            drop.chunk
            for drop in self.record.dropped
            if drop.reason == "duplicate" and " ".join(drop.chunk.text.split()) in texts
        )
        return self.within((*self.record.context, *twins))

    @property
    def context_known(self) -> bool:
        """Whether the record says what reached the prompt."""
        return bool(self.record.context or self.record.dropped or self.record.prompt is not None)

    def rank_of(self, spans: Iterable[Span], chunks: Iterable[Chunk]) -> tuple[int, Chunk] | None:
        """The first place, from 1, of a chunk that holds one of the passages."""
        wanted = tuple(spans)
        for rank, chunk in enumerate(chunks, 1):
            if any(self.hold(chunk, span) for span in wanted):
                return rank, chunk
        return None

    def holding_rejected(self, chunks: Iterable[Chunk]) -> tuple[int, Span] | None:
        """The first chunk that holds a rejected passage and no relevant one: its place and the passage."""
        for rank, chunk in enumerate(chunks, 1):
            bad = [span for span in self.rejected if self.hold(chunk, span)]
            if bad and not any(self.hold(chunk, span) for span in self.relevant):
                return rank, bad[0]
        return None

    def longest_piece(self, span: Span) -> int:
        """How many characters of the passage the best chunk has."""
        return max((shared(span, chunk) for chunk in (*self.record.labelled, *self.ranked)), default=0)
