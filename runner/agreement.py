"""Agreement between a judge and people, on plain arrays: rates, kappa, correlations, a threshold, and the mean that a
few human labels correct. Nothing here reads a file or asks a judge.

Values are oriented: a higher one is better. In verdicts True is "supported".
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, sqrt
from typing import TYPE_CHECKING, Any

from runner.stats import LEVEL, RESAMPLES, SEED

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEAST_DEFINED = 0.9
"""Share of resamples in which a figure must be defined for its interval to be told."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure with its 95% percentile bootstrap interval over lines (Efron & Tibshirani 1993, ch. 13).

    None stands where it is undefined: a precision without a verdict "unsupported", a correlation with a constant, the
    interval of fewer than two lines or of resamples of which more than a tenth leave the figure undefined.
    """

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Confusion:
    """How often people and the judge said what. Names: people's word, then the judge's."""

    supported_supported: int
    supported_unsupported: int
    unsupported_supported: int
    unsupported_unsupported: int

    @property
    def n(self) -> int:
        """All verdicts."""
        return sum(
            (
                self.supported_supported,
                self.supported_unsupported,
                self.unsupported_supported,
                self.unsupported_unsupported,
            )
        )


@dataclass(frozen=True, slots=True)
class Threshold:
    """From which value on the judge's word counts as "supported".

    balanced_accuracy is that on the lines it was chosen on. tied: all thresholds that reach it, the chosen one (the
    highest, which is the strictest) included.
    """

    value: float
    balanced_accuracy: float
    tied: tuple[float, ...]
    n: int


@dataclass(frozen=True, slots=True)
class CorrectedMean:
    """The mean of people's values over all records, estimated from the judge's values on all of them and people's on
    some.

    raw: the judge's mean over all. labels: the mean of people's values alone. corrected: both together. Each with a 95%
    interval from the normal approximation. weight: how far the judge is used, from 0 (not at all: corrected = labels)
    to 1. n: records with both values; rest: records with the judge's only.
    """

    raw: Figure
    labels: Figure
    corrected: Figure
    weight: float
    n: int
    rest: int


def confusion(people: Sequence[bool], judged: Sequence[bool]) -> Confusion:
    """Counts of the four pairs of verdicts."""
    from sklearn.metrics import confusion_matrix

    if not len(people):
        return Confusion(0, 0, 0, 0)
    (both, only_people), (only_judge, neither) = confusion_matrix(list(people), list(judged), labels=[True, False])
    return Confusion(int(both), int(only_people), int(only_judge), int(neither))


def rates(people: Sequence[bool], judged: Sequence[bool]) -> dict[str, Figure]:
    """Accuracy, balanced accuracy, precision and recall of "unsupported", and Cohen's kappa.

    Balanced accuracy is the mean of the recalls of both words; it needs both among people's. Kappa needs two words in
    all. The figures are scikit-learn's; a call of it for each of thousands of resamples would take a minute, so theirs
    come from counts.
    """
    import numpy as np
    from sklearn.metrics import (
        accuracy_score,
        balanced_accuracy_score,
        cohen_kappa_score,
        precision_score,
        recall_score,
    )

    said, found = np.asarray(people, dtype=bool), np.asarray(judged, dtype=bool)
    if not len(said):
        return dict.fromkeys(_RATES, Figure(None))
    unsupported = {"pos_label": False, "zero_division": np.nan}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of undefined figures: they are None here
        values = (
            accuracy_score(said, found),
            balanced_accuracy_score(said, found) if len(set(said)) == 2 else np.nan,
            precision_score(said, found, **unsupported),
            recall_score(said, found, **unsupported),
            cohen_kappa_score(said, found, labels=[False, True]),
        )
    again = rates_of_rows(*_resampled(said, found))
    return {name: _figure(float(value), again[name]) for name, value in zip(_RATES, values, strict=True)}


def correlations(people: Sequence[float], judged: Sequence[float]) -> dict[str, Figure]:
    """Pearson's r, Spearman's rho and Kendall's tau-b, all from SciPy."""
    import numpy as np

    said, found = np.asarray(people, dtype=np.float64), np.asarray(judged, dtype=np.float64)
    if len(said) < 2:
        return dict.fromkeys(_CORRELATIONS, Figure(None))
    values = _correlated(said[None], found[None])
    again = _correlated(*_resampled(said, found))
    return {name: _figure(float(values[name][0]), again[name]) for name in _CORRELATIONS}


_RATES = ("accuracy", "balanced_accuracy", "precision_unsupported", "recall_unsupported", "kappa")
_CORRELATIONS = ("pearson", "spearman", "kendall")


def _resampled(one: NDArray[Any], other: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """RESAMPLES rows of pairs drawn with replacement; the same for the same number of pairs."""
    import numpy as np

    drawn = np.random.default_rng(SEED).integers(0, len(one), size=(RESAMPLES, len(one)))
    return one[drawn], other[drawn]


def _figure(value: float, again: NDArray[Any]) -> Figure:
    import numpy as np

    if not isfinite(value):
        return Figure(None)
    defined = again[np.isfinite(again)]
    if len(defined) < LEAST_DEFINED * len(again):
        return Figure(value)
    low, high = np.quantile(defined, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Figure(value, float(low), float(high))


def rates_of_rows(people: NDArray[Any], judged: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """The values of `rates` for each row of two boolean arrays of shape (rows, lines); NaN = undefined."""
    import numpy as np

    with np.errstate(invalid="ignore", divide="ignore"):
        accuracy = (people == judged).mean(axis=1)
        said, found = people.mean(axis=1), judged.mean(axis=1)
        both_not = (~people & ~judged).mean(axis=1)
        recalled, specific = both_not / (1 - said), (people & judged).mean(axis=1) / said
        chance = said * found + (1 - said) * (1 - found)
        return {
            "accuracy": accuracy,
            "balanced_accuracy": (recalled + specific) / 2,
            "precision_unsupported": both_not / (1 - found),
            "recall_unsupported": recalled,
            "kappa": (accuracy - chance) / (1 - chance),
        }


def _correlated(people: NDArray[Any], judged: NDArray[Any]) -> dict[str, NDArray[Any]]:
    from scipy.stats import kendalltau, pearsonr, rankdata

    ranks = rankdata(people, axis=1), rankdata(judged, axis=1)  # Spearman's rho is Pearson's r of ranks
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of constant rows
        return {
            "pearson": pearsonr(people, judged, axis=1).statistic,
            "spearman": pearsonr(*ranks, axis=1).statistic,
            "kendall": kendalltau(people, judged, axis=1).statistic,
        }


def best_threshold(people: Sequence[bool], values: Sequence[float]) -> Threshold | None:
    """The value of the judge from which on "supported" agrees best with people, by balanced accuracy; of several, the
    highest. None where people used one word only, or the judge gave one value only: then nothing can be chosen."""
    import numpy as np
    from sklearn.metrics import balanced_accuracy_score

    truth, found = np.asarray(people, dtype=bool), np.asarray(values, dtype=np.float64)
    candidates = np.unique(found)[1:]  # the lowest would call everything supported
    if len(set(people)) < 2 or not len(candidates):
        return None
    reached = [float(balanced_accuracy_score(truth, found >= each)) for each in candidates]
    best = max(reached)
    tied = [float(each) for each, reach in zip(candidates, reached, strict=True) if best - reach < 1e-12]
    return Threshold(tied[-1], best, tuple(tied), len(truth))


def corrected_mean(people: Sequence[float], judged: Sequence[float], rest: Sequence[float]) -> CorrectedMean:
    """Prediction-powered estimate of a mean, with power tuning.

    people, judged: values of people and judge on the n labelled records; rest: the judge's on the N others. The
    labelled ones must be a random draw from all of them.

        theta = w mean(rest) + mean(people - w judged)
        var   = w^2 var(rest) / N + var(people - w judged) / n
        w     = cov(people, judged) / ((1 + n/N) var(judged and rest)), kept within 0 and 1

    With w = 1 this is prediction-powered inference (Angelopoulos, Bates, Fannjiang, Jordan and Zrnic, Science 382:669,
    2023); the w that makes var least is that of PPI++ (Angelopoulos, Duchi and Zrnic, arXiv:2311.01453, 2023).
    Sample variances divide by n - 1. Raises ValueError with fewer than two labelled or two other records.
    """
    import numpy as np

    y, f, more = (np.asarray(values, dtype=np.float64) for values in (people, judged, rest))
    n, size = len(y), len(more)
    if n < 2 or size < 2:
        raise ValueError(f"{n} labelled and {size} other records; a corrected mean needs two of each")
    everything = np.concatenate([f, more])
    spread = float(everything.var(ddof=1))
    tuned = float(np.cov(y, f)[0, 1]) / ((1 + n / size) * spread) if spread else 0.0
    weight = min(max(tuned, 0.0), 1.0)
    left = y - weight * f
    estimate = weight * float(more.mean()) + float(left.mean())
    error = sqrt(weight**2 * float(more.var(ddof=1)) / size + float(left.var(ddof=1)) / n)
    return CorrectedMean(
        raw=_normal(float(everything.mean()), sqrt(spread / len(everything))),
        labels=_normal(float(y.mean()), sqrt(float(y.var(ddof=1)) / n)),
        corrected=_normal(estimate, error),
        weight=weight,
        n=n,
        rest=size,
    )


def _normal(value: float, error: float) -> Figure:
    from scipy.stats import norm

    reach = float(norm.ppf((1 + LEVEL) / 2)) * error
    return Figure(value, value - reach, value + reach)
