"""Judging the same again: which verdicts flipped, and what several samples of one judgement come to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import mean, stdev

from adapters.schema import Score, Verdict

WHOLE = "the whole"
"""The unit of a verdict that is the side of the middle of the range on which a value lies."""


@dataclass(frozen=True, slots=True)
class Flip:
    """One unit of which a judge said something else the second time. before, after: our words, or the side of the
    middle of the range, or that there was nothing to judge."""

    definition: str
    question_id: str
    unit: str
    before: str
    after: str


def verdict_pairs(one: Score, other: Score, middle: float) -> Iterator[tuple[str, str, str]]:
    """(unit, first word, second word) for each verdict that two judgements of one record can be compared on.

    Those are the units that both found, by text and rank, where we have a word for what was said; where there is none,
    as for ratings or claims that were cut otherwise, the side of `middle` on which each value lies.
    """
    if "not_applicable" in (one.status, other.status):
        yield WHOLE, _side(one, middle), _side(other, middle)
        return
    before, after = _words(one.evidence), _words(other.evidence)
    common = [unit for unit in before if unit in after]
    for unit in common:
        yield unit[0], before[unit], after[unit]
    if not common:
        yield WHOLE, _side(one, middle), _side(other, middle)


def together(scores: Sequence[Score], value_range: tuple[float, float]) -> Score:
    """One score of several samples of the same judgement, two or more.

    value: the mean over the samples that have one; spread: their standard deviation (n - 1). Evidence and judge are
    those of the first of them. flaky: between two samples a verdict flips, or the value changes the side of the middle
    of the range, or one finds nothing to judge and the other does. What they spent is added up.
    """
    middle = sum(value_range) / 2
    valued = [score for score in scores if score.value is not None]
    values = [score.value for score in valued if score.value is not None]
    without = [score for score in scores if score.value is None]
    chosen = valued[0] if valued else without[0]
    reason = chosen.reason
    if without:
        reason = f"{len(without)} of {len(scores)} samples have no value; the first: {without[0].reason}"
    spoken = [score for score in scores if score.status != "failed"]
    tokens, costs = [score.tokens for score in scores], [score.cost for score in scores]
    return replace(
        chosen,
        value=mean(values) if values else None,
        reason=reason,
        spread=stdev(values) if len(values) > 1 else None,
        flaky=any(_flipped(*pair, middle) for pair in combinations(spoken, 2)),
        samples=len(scores),
        samples_failed=sum(score.status == "failed" for score in scores),
        calls=sum(score.calls for score in scores),
        cached=sum(score.cached for score in scores),
        repaired=sum(score.repaired for score in scores),
        tokens=None if None in tokens else sum(count for count in tokens if count is not None),
        cost=None if None in costs else sum(cost for cost in costs if cost is not None),
        seconds=sum(score.seconds for score in scores),
    )


def _flipped(one: Score, other: Score, middle: float) -> bool:
    words = any(first != second for _, first, second in verdict_pairs(one, other, middle))
    return words or _side(one, middle) != _side(other, middle)


def _side(score: Score, middle: float) -> str:
    if score.value is None:
        return "nothing to judge"
    return f"{middle:g} or more" if score.value >= middle else f"less than {middle:g}"


def _words(evidence: Sequence[Verdict]) -> dict[tuple[str, int | None], str]:
    """Our words by unit and rank; a unit that stands there twice has both."""
    words: dict[tuple[str, int | None], str] = {}
    for verdict in evidence:
        if verdict.ours is not None:
            place = (verdict.unit, verdict.rank)
            words[place] = f"{words[place]}, {verdict.ours}" if place in words else verdict.ours
    return words
