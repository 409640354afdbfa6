"""Paired differences between two runs on the same questions, with an interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from runner.results import SCORES, read_scores

RESAMPLES = 2_000
SEED = 20_240_229
LEVEL = 0.95


@dataclass(frozen=True)
class Difference:
    """The mean over questions of candidate minus baseline, with a 95% percentile bootstrap interval over questions.

    n is the number of questions with a value on both sides. low and high are None with fewer than two of them.
    """

    delta: float
    low: float | None
    high: float | None
    n: int

    @property
    def beyond_noise(self) -> bool:
        """Whether the interval excludes 0. Resampling error aside, it excludes it by chance in one of twenty cases."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


def paired_differences(baseline: Path, candidate: Path, definitions: Sequence[str]) -> dict[str, Difference]:
    """The difference of each definition (by key) between two result folders; those without a common value are absent."""
    before, after = _values(baseline), _values(candidate)
    found = {}
    for key in definitions:
        mine, theirs = before.get(key, {}), after.get(key, {})
        pairs = [(mine[q], theirs[q]) for q in mine if q in theirs]
        if pairs:
            found[key] = difference([candidate - base for base, candidate in pairs])
    return found


def difference(differences: Sequence[float]) -> Difference:
    """The mean of paired differences with its bootstrap interval (Efron & Tibshirani 1993, ch. 13: percentile method).

    The random numbers are fixed by SEED, so the same differences give the same interval.
    """
    import numpy as np

    values = np.asarray(differences, dtype=np.float64)
    if len(values) < 2:
        return Difference(float(values.mean()), None, None, len(values))
    generator = np.random.default_rng(SEED)
    means = np.concatenate(
        [
            values[generator.integers(0, len(values), size=(count, len(values)))].mean(axis=1)
            for count in _batches(len(values))
        ]
    )
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return Difference(float(values.mean()), float(low), float(high), len(values))


def _batches(size: int, cells: int = 4_000_000) -> list[int]:
    """Resamples in batches whose index matrix stays under `cells`, to bound memory on large test sets."""
    at_once = max(1, min(RESAMPLES, cells // size))
    full, rest = divmod(RESAMPLES, at_once)
    return [at_once] * full + ([rest] if rest else [])


def _values(folder: Path) -> dict[str, dict[str, float]]:
    values: dict[str, dict[str, float]] = {}
    for score in read_scores(folder / SCORES):
        if score.value is not None:
            values.setdefault(score.definition, {})[score.question_id] = score.value
    return values
