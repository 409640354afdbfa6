"""Is a difference between two runs on the same questions more than chance? Paired tests, on plain numbers.

Differences are candidate minus baseline, one a question. Zero differences carry no sign and move no p-value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import erfc, fsum, sqrt
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from runner.stats import SEED

if TYPE_CHECKING:
    from numpy.typing import NDArray

EXACT = 16
"""Changed questions up to which every assignment of signs is counted (2**16 = 65,536)."""
FLIPS = 20_000
"""Random assignments of signs beyond that; a p-value near 0.05 is then right to about 0.003 (two standard errors)."""
FEW, ALIKE = 100, 50
"""Sizes of change up to which, and changed questions for each of them from which on, one draws how many of each size go
up, which is binomial, in place of each sign."""
MANY = 300
"""Changed questions of about the same weight from which on the normal distribution is closer than FLIPS assignments:
the sum is symmetric, so the first term that it leaves out is below 0.1 / MANY, and 20,000 draws miss by 0.0015."""
POWER_AND_LEVEL = 0.8416 + 1.9600
"""Quantiles of the normal distribution at 80% and 97.5%: a true difference of this many standard errors is found in
four of five test sets, at 5% two-sided."""
SAME = 1e-12
"""Values closer than this are equal: they differ by the order of additions."""

Name = TypeVar("Name")
Method = Literal["exact permutation", "permutation", "normal approximation of the permutation", "exact McNemar"]


@dataclass(frozen=True, slots=True)
class PValue:
    """A two-sided p-value, and how it was computed."""

    value: float
    method: Method


def permutation(differences: Sequence[float] | NDArray[Any]) -> PValue:
    """The paired permutation test of the mean (Fisher 1935; Pitman 1937): how often the differences, each with a random
    sign, have a mean as far from 0 as this one.

    Exact with up to EXACT changed questions; otherwise of FLIPS random assignments, (hits + 1) / (FLIPS + 1), with a
    fixed seed (Phipson & Smyth 2010: a p-value of random permutations is never 0), or, with MANY changes of many sizes,
    by the normal distribution with the variance of these assignments, sum(d**2). Where all changed by the same amount
    either way, as yes/no definitions do, it is the exact McNemar test (McNemar 1947), counted from the binomial.
    """
    import numpy as np

    every = np.asarray(differences, dtype=np.float64)
    changes = every[np.abs(every) > SAME]
    if not len(changes):
        return PValue(1.0, "exact permutation")
    sizes = np.abs(changes)
    if np.ptp(sizes) < SAME:
        return PValue(sign_test(int(np.count_nonzero(changes > 0)), len(changes)), "exact McNemar")
    # Sums that are this close are the same sum, added up in another order.
    reached = abs(fsum(changes)) - SAME * max(1.0, float(sizes.sum()))
    if len(sizes) <= EXACT:
        patterns = (np.arange(2 ** len(sizes))[:, None] >> np.arange(len(sizes))) & 1
        return PValue(float(np.mean(np.abs((2.0 * patterns - 1.0) @ sizes) >= reached)), "exact permutation")
    generator = np.random.default_rng(SEED)
    of_each, counts = np.unique(sizes.round(12), return_counts=True)
    if len(of_each) <= FEW and len(sizes) >= ALIKE * len(of_each):
        ups = generator.binomial(counts, 0.5, size=(FLIPS, len(counts)))
        hits = int(np.count_nonzero(np.abs((2.0 * ups - counts) @ of_each) >= reached))
        return PValue((hits + 1) / (FLIPS + 1), "permutation")
    squares = sizes**2
    if squares.sum() ** 2 / (squares**2).sum() >= MANY:
        return PValue(erfc(abs(fsum(changes)) / sqrt(2.0 * squares.sum())), "normal approximation of the permutation")
    # Eight signs a byte: `sums` has what the sizes under each byte come to for each of its 256 values.
    width = (len(sizes) + 7) // 8
    padded = np.zeros(8 * width)
    padded[: len(sizes)] = sizes
    sums = padded.reshape(width, 8) @ np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).T
    hits = 0
    for some in _batches(FLIPS, max(1, 2_000_000 // width)):
        drawn = np.frombuffer(generator.bytes(some * width), dtype=np.uint8).reshape(some, width)
        ups = sums[np.arange(width), drawn].sum(axis=1)
        hits += int(np.count_nonzero(np.abs(2.0 * ups - sizes.sum()) >= reached))
    return PValue((hits + 1) / (FLIPS + 1), "permutation")


def _batches(n: int, at_once: int) -> list[int]:
    full, rest = divmod(n, at_once)
    return [at_once] * full + ([rest] if rest else [])


def sign_test(ups: int, changed: int) -> float:
    """Two-sided exact binomial p-value of `ups` of `changed` (McNemar 1947, on discordant pairs)."""
    from scipy.special import bdtr

    # At one half the two tails are alike. scipy.stats.binomtest says the same after a second of import.
    return min(1.0, 2.0 * float(bdtr(min(ups, changed - ups), changed, 0.5)))


def holm(p_values: Mapping[Name, float]) -> dict[Name, float]:
    """p-values adjusted for having looked at all of them (Holm 1979): the chance of any false claim stays below the
    level. The k-th smallest of m is multiplied by m - k + 1, never falls below the one before, and is at most 1."""
    adjusted: dict[Name, float] = {}
    least = 0.0
    for place, name in enumerate(sorted(p_values, key=lambda name: p_values[name])):
        least = max(least, min(1.0, p_values[name] * (len(p_values) - place)))
        adjusted[name] = least
    return {name: adjusted[name] for name in p_values}


def smallest_visible(differences: Sequence[float] | NDArray[Any]) -> float | None:
    """The smallest true mean difference that a test set of this size would show in four of five cases at 5%, if
    questions vary as they do here: (z80 + z97.5) s / sqrt(n). None with fewer than two questions, or where none changed
    and the variation is unknown."""
    import numpy as np

    if len(differences) < 2 or not np.any(np.abs(differences) > SAME):
        return None
    return POWER_AND_LEVEL * float(np.std(differences, ddof=1)) / sqrt(len(differences))
