"""Paired differences between two runs on the same questions, with an interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

RESAMPLES = 2_000
SEED = 20_240_229
LEVEL = 0.95
MANY, FEW = 1_000, 100
"""Values from which on a bootstrap counts up to FEW distinct ones in place of drawing each, and of more takes the
quantiles from the moments."""
SMALL = 0.1
"""Skewness and kurtosis of the resampled mean up to which its quantiles may be taken from its moments: what is left out
is below a hundredth of its standard deviation, and RESAMPLES draws miss by six."""
Z = 1.959964
"""The 97.5% quantile of the normal distribution."""
KEPT = 200
"""Values up to which the draws are kept for the next ones; 32 sizes of them take 100 MB at most."""
SAME = 1e-12
"""Values closer than this are equal: they differ by the order of additions."""
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
        return self.low > SAME or self.high < -SAME


def difference(differences: Sequence[float] | NDArray[Any]) -> Difference:
    """The mean of paired differences with its bootstrap interval (Efron & Tibshirani 1993, ch. 13: percentile method).

    The random numbers are fixed by SEED, so the same differences give the same interval. With MANY values of more than
    FEW distinct ones it is what the percentiles come to with endless draws, from the first four moments (Cornish &
    Fisher 1938), where these are small.
    """
    import numpy as np

    paired = np.asarray(differences, dtype=np.float64)
    changed = int(np.count_nonzero(np.abs(paired) > SAME))
    if len(paired) < 2:
        return Difference(float(paired.mean()), None, None, len(paired), changed)
    distinct, counts = np.unique(paired, return_counts=True)
    if len(paired) >= MANY and len(distinct) > FEW and (expanded := _expanded(paired)):
        return Difference(float(paired.mean()), *expanded, len(paired), changed)
    generator = np.random.default_rng(SEED)
    if len(paired) >= MANY and len(distinct) <= len(paired) // 10:
        # How often each distinct value is drawn is multinomial: the same distribution of means, without the draws.
        drawn = generator.multinomial(len(paired), counts / len(paired), size=RESAMPLES)
        means = drawn @ distinct / len(paired)
    elif len(paired) <= KEPT:
        means = _draws(len(paired)) @ paired / len(paired)
    else:
        means = _resampled_means(paired, generator)
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return Difference(float(paired.mean()), float(low), float(high), len(paired), changed)


def _expanded(paired: NDArray[Any]) -> tuple[float, float] | None:
    """The 2.5% and 97.5% quantiles of the resampled mean from its moments; None where they are not small."""
    mean, spread = float(paired.mean()), float(paired.std())
    standard = (paired - mean) / spread
    skewness = float((standard**3).mean()) / len(paired) ** 0.5
    kurtosis = (float((standard**4).mean()) - 3.0) / len(paired)
    if max(abs(skewness), abs(kurtosis)) > SMALL:
        return None
    shift = skewness * (Z**2 - 1) / 6
    reach = Z + kurtosis * (Z**3 - 3 * Z) / 24 - skewness**2 * (2 * Z**3 - 5 * Z) / 36
    error = spread / len(paired) ** 0.5
    return mean + error * (shift - reach), mean + error * (shift + reach)


@lru_cache(maxsize=32)
def _draws(size: int) -> NDArray[Any]:
    """How often each of `size` values is in each resample: (RESAMPLES, size). The seed is fixed, so these are the same
    for all definitions and slices with as many values."""
    import numpy as np

    drawn = np.random.default_rng(SEED).integers(0, size, size=(RESAMPLES, size))
    places = drawn + size * np.arange(RESAMPLES)[:, None]
    return np.bincount(places.ravel(), minlength=RESAMPLES * size).reshape(RESAMPLES, size).astype(np.float64)


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
