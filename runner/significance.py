"""Is a difference between two runs on the same questions more than chance? Paired tests, on plain numbers.

Differences are candidate minus baseline, one a question. Zero differences carry no sign and move no p-value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import stdev
from typing import Literal

from runner.stats import SEED

EXACT = 16
"""Changed questions up to which every assignment of signs is counted (2**16 = 65,536)."""
FLIPS = 20_000
"""Random assignments of signs beyond that; a p-value near 0.05 is then right to about 0.003 (two standard errors)."""
POWER_AND_LEVEL = 0.8416 + 1.9600
"""Quantiles of the normal distribution at 80% and 97.5%: a true difference of this many standard errors is found in
four of five test sets, at 5% two-sided."""
SAME = 1e-12
"""Sums closer than this are equal: they differ by the order of additions."""

Method = Literal["exact permutation", "permutation", "exact McNemar"]


@dataclass(frozen=True, slots=True)
class PValue:
    """A two-sided p-value, and how it was computed."""

    value: float
    method: Method


def permutation(differences: Sequence[float]) -> PValue:
    """The paired permutation test of the mean (Fisher 1935; Pitman 1937): how often the differences, each with a random
    sign, have a mean as far from 0 as this one.

    Exact with up to EXACT changed questions; otherwise of FLIPS random assignments, (hits + 1) / (FLIPS + 1), with a
    fixed seed (Phipson & Smyth 2010: a p-value of random permutations is never 0). Where all changed by the same amount
    either way, as yes/no definitions do, it is the exact McNemar test (McNemar 1947), counted from the binomial.
    """
    import numpy as np

    changed = np.abs(np.asarray([each for each in differences if abs(each) > SAME], dtype=np.float64))
    total = abs(sum(each for each in differences if abs(each) > SAME))
    if not len(changed):
        return PValue(1.0, "exact permutation")
    if np.ptp(changed) < SAME:
        ups = sum(each > SAME for each in differences)
        return PValue(sign_test(ups, len(changed)), "exact McNemar")
    if len(changed) <= EXACT:
        patterns = (np.arange(2 ** len(changed))[:, None] >> np.arange(len(changed))) & 1
        sums = (2.0 * patterns - 1.0) @ changed
        return PValue(float(np.mean(np.abs(sums) >= total - SAME)), "exact permutation")
    generator = np.random.default_rng(SEED)
    hits, left = 0, FLIPS
    while left:
        some = min(left, max(1, 4_000_000 // len(changed)))
        signs = generator.integers(0, 2, size=(some, len(changed)), dtype=np.int8)
        hits += int(np.count_nonzero(np.abs((2.0 * signs - 1.0) @ changed) >= total - SAME))
        left -= some
    return PValue((hits + 1) / (FLIPS + 1), "permutation")


def sign_test(ups: int, changed: int) -> float:
    """Two-sided exact binomial p-value of `ups` of `changed` (McNemar 1947, on discordant pairs)."""
    from scipy.stats import binomtest

    return float(binomtest(ups, changed, 0.5).pvalue)


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """p-values adjusted for having looked at all of them (Holm 1979): the chance of any false claim stays below the
    level. The k-th smallest of m is multiplied by m - k + 1, never falls below the one before, and is at most 1."""
    adjusted, least = {}, 0.0
    for place, name in enumerate(sorted(p_values, key=lambda name: p_values[name])):
        least = max(least, min(1.0, p_values[name] * (len(p_values) - place)))
        adjusted[name] = least
    return {name: adjusted[name] for name in p_values}


def smallest_visible(differences: Sequence[float]) -> float | None:
    """The smallest true mean difference that a test set of this size would show in four of five cases at 5%, if
    questions vary as they do here: (z80 + z97.5) s / sqrt(n). None with fewer than two questions, or where none changed
    and the variation is unknown."""
    if len(differences) < 2 or all(abs(each) <= SAME for each in differences):
        return None
    return POWER_AND_LEVEL * stdev(differences) / sqrt(len(differences))
