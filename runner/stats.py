"""Paired differences between two runs on the same questions, with an interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.results import SCORES, read_scores

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

RESAMPLES = 2_000
SEED = 20_240_229
LEVEL = 0.95
MANY = 1_000
"""Values from which on a bootstrap of few distinct ones counts them in place of drawing each."""
NORMAL = 20_000
"""Values of many distinct ones from which on the mean is normal as far as RESAMPLES draws could tell."""
FEWEST_CHANGED = 6
"""With five changed questions, all in one direction, an exact sign test still has p = 2 / 2**5 = 0.0625; a bootstrap
interval over so few is far too short."""


@dataclass(frozen=True)
class Difference:
    """The mean over questions of candidate minus baseline, with a 95% percentile bootstrap interval over questions.

    n is the number of questions with a value on both sides, changed the number of those whose value differs. low and
    high are None with fewer than two of them.
    """

    delta: float
    low: float | None
    high: float | None
    n: int
    changed: int

    @property
    def beyond_noise(self) -> bool:
        """Whether the interval excludes 0 and at least FEWEST_CHANGED questions changed; by chance so in about one of
        twenty cases."""
        if self.low is None or self.high is None or self.changed < FEWEST_CHANGED:
            return False
        return self.low > 0 or self.high < 0


Values = Mapping[str, Mapping[str, float]]
"""Values by definition key, then by question id; scores without a value are absent."""


def values(folder: Path) -> Values:
    """The values of a result folder."""
    found: dict[str, dict[str, float]] = {}
    for score in read_scores(folder / SCORES):
        if score.value is not None:
            found.setdefault(score.definition, {})[score.question_id] = score.value
    return found


def paired_differences(baseline: Values, candidate: Values, definitions: Sequence[str]) -> dict[str, Difference]:
    """The difference of each definition (by key) between two runs; those without a common question are absent."""
    found = {}
    for key in definitions:
        before, after = baseline.get(key, {}), candidate.get(key, {})
        differences = [after[question] - before[question] for question in before if question in after]
        if differences:
            found[key] = difference(differences)
    return found


def difference(differences: Sequence[float]) -> Difference:
    """The mean of paired differences with its bootstrap interval (Efron & Tibshirani 1993, ch. 13: percentile method).

    The random numbers are fixed by SEED, so the same differences give the same interval. With NORMAL values of many
    distinct ones it is the normal interval, which the percentiles come to.
    """
    import numpy as np

    paired = np.asarray(differences, dtype=np.float64)
    changed = int(np.count_nonzero(np.abs(paired) > 1e-12))
    if len(paired) < 2:
        return Difference(float(paired.mean()), None, None, len(paired), changed)
    generator = np.random.default_rng(SEED)
    distinct, counts = np.unique(paired, return_counts=True)
    if len(paired) >= MANY and len(distinct) <= len(paired) // 10:
        # How often each distinct value is drawn is multinomial: the same distribution of means, without the draws.
        drawn = generator.multinomial(len(paired), counts / len(paired), size=RESAMPLES)
        means = drawn @ distinct / len(paired)
    elif len(paired) >= NORMAL:
        mean, reach = float(paired.mean()), 1.959964 * float(paired.std()) / len(paired) ** 0.5
        return Difference(mean, mean - reach, mean + reach, len(paired), changed)
    else:
        means = _resampled_means(paired, generator)
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return Difference(float(paired.mean()), float(low), float(high), len(paired), changed)


def _resampled_means(paired: NDArray[Any], generator: Generator) -> NDArray[Any]:
    import numpy as np

    return np.concatenate(
        [
            paired[generator.integers(0, len(paired), size=(count, len(paired)))].mean(axis=1)
            for count in _batches(len(paired))
        ]
    )


def _batches(size: int, cells: int = 4_000_000) -> list[int]:
    """Resamples in batches whose index matrix stays under `cells`, to bound memory on large test sets."""
    at_once = max(1, min(RESAMPLES, cells // size))
    full, rest = divmod(RESAMPLES, at_once)
    return [at_once] * full + ([rest] if rest else [])
