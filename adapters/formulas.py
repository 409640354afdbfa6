"""What a definition computes from its verdicts, apart from the framework that computes it.

A framework's own code gives its scores. These formulas let the audit apply the arithmetic of one definition to the
verdicts of another; on a definition's own verdicts they must give its own score, to 1e-9, which the audit checks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

from adapters.schema import Verdict

ANSWER_CLAIMS = "claims of the answer, held against the context"
ANSWER_STATEMENTS = "statements of the answer, held against the question"
REFERENCE_CLAIMS = "claims of the reference, held against the context"
REFERENCE_ENTITIES = "entities of the reference, looked for in the context"
KEY_POINTS = "key points of the reference, looked for in the answer"
CHUNK_STATEMENTS = "statements of the chunks, held against the question"
USEFUL_CHUNKS = "ranked chunks, by their use for the reference answer"
CHUNKS_USED = "ranked chunks, by their use for the answer given"
RELEVANT_CHUNKS = "ranked chunks, held against the question"
CONTRADICTED_CHUNKS = "chunks, held against the answer"

MAY_MEAN: Mapping[str | None, tuple[str, ...]] = {"not_supported": ("contradicted", "absent")}
"""Which finer words a coarse one of ours may stand for. None (a native word without a counterpart, such as a grade
between the ends of its scale) may stand for any."""


class Bounds(NamedTuple):
    """A value that verdicts leave open: low and high are the least and the most that it can be."""

    low: float
    high: float

    @property
    def middle(self) -> float:
        """What stands for it where one number is needed."""
        return (self.low + self.high) / 2

    @property
    def open(self) -> bool:
        """Whether the verdicts leave it open."""
        return self.low != self.high


@dataclass(frozen=True, slots=True)
class Formula:
    """The arithmetic of a definition: each verdict has a credit, and the credits make the value.

    units: what is counted; only formulas of the same units can be applied to each other's verdicts.
    native: credit, 0 to 1, of the framework's own words. words: credit of ours, for the verdicts of others.
    combine: credits, in the order of the verdicts, to the value. named: whether the framework's verdicts say which unit
    they are about; where they do not, they cannot be laid beside those of others.
    """

    units: str
    native: Mapping[str, float]
    words: Mapping[str, float]
    combine: Callable[[Sequence[float]], float] = fmean
    named: bool = True

    def own(self, verdict: Verdict) -> float:
        """The credit of one of the framework's own verdicts. Raises KeyError for a word that it does not have."""
        return self.native[verdict.native]

    def credit(self, word: str | None) -> Bounds:
        """The credit of a verdict in our words; open where the formula must know more than the word says."""
        known = None if word is None else self.words.get(word)
        if known is not None:
            return Bounds(known, known)
        possible = [self.words[finer] for finer in MAY_MEAN.get(word, tuple(self.words)) if finer in self.words]
        return Bounds(min(possible), max(possible)) if possible else Bounds(0.0, 1.0)

    def value(self, credits: Sequence[Bounds]) -> Bounds:
        """The value that the credits of a record's verdicts, at least one, make."""
        one = self.combine([credit.low for credit in credits])
        if not any(credit.open for credit in credits):
            return Bounds(one, one)
        other = self.combine([credit.high for credit in credits])
        return Bounds(min(one, other), max(one, other))


SUPPORTED_ONLY = {"supported": 1.0, "contradicted": 0.0, "absent": 0.0, "not_supported": 0.0}
NOT_CONTRADICTED = {"supported": 1.0, "contradicted": 0.0, "absent": 1.0}
RELEVANT_ONLY = {"relevant": 1.0, "not_relevant": 0.0}
ATTRIBUTED_ONLY = {"attributed": 1.0, "not_attributed": 0.0}
YES_ONLY = {"yes": 1.0, "no": 0.0}
ONE_OR_ZERO = {"1": 1.0, "0": 0.0}


def grades(top: int) -> dict[str, float]:
    """Credits of the grades 0 to `top`, as shares of it."""
    return {str(grade): grade / top for grade in range(top + 1)}


def padded_share(epsilon: float) -> Callable[[Sequence[float]], float]:
    """Sum of credits / (number of verdicts + epsilon)."""
    return lambda credits: sum(credits) / (len(credits) + epsilon)


def precision_at_hits(epsilon: float = 0.0) -> Callable[[Sequence[float]], float]:
    """Mean over the hits of (hits up to its rank / its rank), the denominator padded by epsilon; 0 without hits.

    Credits in rank order, a hit is a credit of 1.
    """

    def combine(credits: Sequence[float]) -> float:
        hits, total = 0, 0.0
        for rank, credit in enumerate(credits, 1):
            if credit == 1.0:
                hits += 1
                total += hits / rank
        return total / (hits + epsilon) if hits else 0.0

    return combine
