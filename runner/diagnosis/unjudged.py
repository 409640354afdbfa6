"""Chunks that no label speaks of: which they are, and what the definitions of ranking say without them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum

from adapters.base import UnknownDefinition, scorer
from adapters.labels.ranking import RankingDefinition
from adapters.labels.relevance import shared
from adapters.schema import Chunk, Question
from runner.diagnosis.findings import JudgedOnly, Unjudged
from runner.placed import is_placed
from runner.results import StoredRun


def unjudged(run: StoredRun, baseline: StoredRun | None = None) -> tuple[Unjudged, ...]:
    """The chunks in the rankings of a run that share no character with a label of any grade: first those that the
    ranking of the baseline does not have, then by rank, then in the order of the questions.

    A question whose labels are empty has none: they say that nothing is relevant. One without labels has all. A passage
    of a system of one's own that stands in no document is left out: no label could hang on it.
    """
    found: list[Unjudged] = []
    for id, question in run.questions.items():
        record = run.records.get(id)
        if record is None or question.relevant == ():
            continue
        theirs = baseline.records.get(id) if baseline else None
        known = {_place(ranked.chunk) for ranked in theirs.reranked} if theirs else set()
        seen: set[tuple[str, int, int]] = set()
        for ranked in record.reranked:
            chunk, place = ranked.chunk, _place(ranked.chunk)
            if place in seen or _labelled(question, chunk) or not is_placed(chunk):
                continue
            seen.add(place)
            in_baseline = (place in known) if theirs else None
            found.append(Unjudged(id, question.text, *place, ranked.rank, chunk.text, in_baseline))
    return tuple(sorted(found, key=lambda each: (bool(each.in_baseline), each.rank)))


def _place(chunk: Chunk) -> tuple[str, int, int]:
    return chunk.doc_id, chunk.start, chunk.end


def _labelled(question: Question, chunk: Chunk) -> bool:
    return any(shared(span, chunk) for span in question.relevant or ())


@dataclass(frozen=True)
class BothWays:
    """A run whose definitions of ranking are computed with unjudged chunks as not relevant, and without them."""

    run: StoredRun

    @cached_property
    def pairs(self) -> Mapping[str, Mapping[str, tuple[float, float]]]:
        """By definition and question, both values where a question has them."""
        return _values(self.run, dict(_without_unjudged(self.run)))


def judged_only(ours: BothWays, theirs: BothWays | None = None) -> tuple[JudgedOnly, ...]:
    """The run's definitions of ranking that count unjudged chunks as not relevant, beside their values without them,
    and beside both in a baseline that has the same definition, over the questions that have all four."""
    rows = []
    for key, pairs in ours.pairs.items():
        there = theirs.pairs.get(key, {}) if theirs and _same(ours.run, theirs.run, key) else {}
        common = [id for id in pairs if id in there]
        now = [pairs[id] for id in common] or [*pairs.values()]
        if now:
            before = _means([there[id] for id in common]) if common else (None, None)
            rows.append(JudgedOnly(key, len(now), *_means(now), *before))
    return tuple(rows)


def _without_unjudged(run: StoredRun) -> Iterator[tuple[str, RankingDefinition]]:
    """The definitions as they stand in the run, each with judged_only; those that a later paribus reads otherwise are
    left out."""
    for key, definition in run.definitions.items():
        if definition.framework != "labels" or definition.parameters.get("judged_only") is not False:
            continue
        try:
            same = scorer({"id": definition.id, **definition.parameters})
            other = scorer({"id": definition.id, **definition.parameters, "judged_only": True})
        except UnknownDefinition:
            continue
        if isinstance(other, RankingDefinition) and same.definition.fingerprint == definition.fingerprint:
            yield key, other


def _same(run: StoredRun, other: StoredRun, key: str) -> bool:
    theirs = other.definitions.get(key)
    return theirs is not None and theirs.fingerprint == run.definitions[key].fingerprint


def _values(run: StoredRun, scorers: Mapping[str, RankingDefinition]) -> dict[str, dict[str, tuple[float, float]]]:
    """By definition, the value and the one over judged chunks only, of each question that has both."""
    pairs: dict[str, dict[str, tuple[float, float]]] = {key: {} for key in scorers}
    for id, question in run.questions.items():
        record = run.records.get(id)
        if record is None:
            continue
        for key, without in scorers.items():
            score = run.scores.get(key, {}).get(id)
            if score is None or score.value is None:
                continue
            only = without.score(question, record).value
            if only is not None:
                pairs[key][id] = (score.value, only)
    return pairs


def _means(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return fsum(value for value, _ in pairs) / len(pairs), fsum(only for _, only in pairs) / len(pairs)
