"""Figures of agreement: against scikit-learn and SciPy, against numbers worked by hand, and by simulation."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite, sqrt

import numpy as np
import pytest
from scipy.stats import kendalltau, pearsonr, spearmanr
from sklearn.metrics import accuracy_score, balanced_accuracy_score, cohen_kappa_score, precision_score, recall_score

from runner.agreement import (
    Figure,
    best_threshold,
    confusion,
    corrected_mean,
    correlations,
    rates,
    rates_of_rows,
)

S, U = True, False
# People's word and the judge's:         both say S x 4      people only x 1  judge only x 2  both say U x 3
PEOPLE, JUDGED = [S] * 4 + [S] + [U] * 2 + [U] * 3, [S] * 4 + [U] + [S] * 2 + [U] * 3


def test_the_confusion_table_counts_peoples_word_first() -> None:
    table = confusion(PEOPLE, JUDGED)
    assert (table.supported_supported, table.supported_unsupported) == (4, 1)
    assert (table.unsupported_supported, table.unsupported_unsupported) == (2, 3)
    assert table.n == 10


def test_rates_by_hand() -> None:
    found = rates(PEOPLE, JUDGED)
    assert found["accuracy"].value == pytest.approx(7 / 10)
    assert found["balanced_accuracy"].value == pytest.approx((4 / 5 + 3 / 5) / 2)
    assert found["precision_unsupported"].value == pytest.approx(3 / 4)
    assert found["recall_unsupported"].value == pytest.approx(3 / 5)
    # Chance: 0.5 * 0.6 for "supported" + 0.5 * 0.4 for "unsupported" = 0.5; (0.7 - 0.5) / (1 - 0.5) = 0.4
    assert found["kappa"].value == pytest.approx(0.4)


def test_rates_of_resamples_are_those_of_scikit_learn() -> None:
    random = np.random.default_rng(3)
    people, judged = random.random((60, 30)) < 0.6, random.random((60, 30)) < 0.4
    found = rates_of_rows(people, judged)
    unsupported = {"pos_label": False}
    for row, (said, judge) in enumerate(zip(people, judged, strict=True)):
        assert found["accuracy"][row] == pytest.approx(accuracy_score(said, judge))
        assert found["balanced_accuracy"][row] == pytest.approx(balanced_accuracy_score(said, judge))
        assert found["precision_unsupported"][row] == pytest.approx(precision_score(said, judge, **unsupported))
        assert found["recall_unsupported"][row] == pytest.approx(recall_score(said, judge, **unsupported))
        assert found["kappa"][row] == pytest.approx(cohen_kappa_score(said, judge))


def test_correlations_are_those_of_scipy() -> None:
    random = np.random.default_rng(4)
    people = list(random.integers(0, 4, 40) / 3)
    judged = [min(1.0, max(0.0, value + noise)) for value, noise in zip(people, random.normal(0, 0.4, 40), strict=True)]
    found = correlations(people, judged)
    assert found["pearson"].value == pytest.approx(pearsonr(people, judged).statistic)
    assert found["spearman"].value == pytest.approx(spearmanr(people, judged).statistic)
    assert found["kendall"].value == pytest.approx(kendalltau(people, judged).statistic)
    for figure in found.values():
        assert figure.value is not None
        assert figure.low is not None
        assert figure.high is not None
        assert figure.low < figure.value < figure.high


def test_an_interval_is_the_same_each_time_and_narrower_with_more_lines() -> None:
    assert rates(PEOPLE, JUDGED) == rates(PEOPLE, JUDGED)
    few, many = (rates(PEOPLE * times, JUDGED * times)["accuracy"] for times in (3, 30))
    assert few.low is not None
    assert few.high is not None
    assert many.low is not None
    assert many.high is not None
    assert many.value == few.value
    # Ten times the lines: an interval sqrt(10) = 3.2 times as narrow.
    assert (few.high - few.low) / (many.high - many.low) == pytest.approx(sqrt(10), rel=0.25)


def test_a_bootstrap_interval_of_a_share_is_near_the_normal_one() -> None:
    people, judged = PEOPLE * 20, JUDGED * 20
    figure = rates(people, judged)["accuracy"]
    reach = 1.96 * sqrt(0.7 * 0.3 / 200)  # 0.0635
    assert figure.low == pytest.approx(0.7 - reach, abs=0.01)
    assert figure.high == pytest.approx(0.7 + reach, abs=0.01)


@pytest.mark.parametrize(
    ("people", "judged", "undefined"),
    [
        ([], [], {"accuracy", "balanced_accuracy", "precision_unsupported", "recall_unsupported", "kappa"}),
        ([S, S, S], [S, S, S], {"balanced_accuracy", "precision_unsupported", "recall_unsupported", "kappa"}),
        ([S, U, S], [S, S, S], {"precision_unsupported"}),
        ([S, S, S], [S, U, S], {"balanced_accuracy", "recall_unsupported"}),
    ],
    ids=["no line", "one word in all", "the judge has one word", "people have one word"],
)
def test_what_is_undefined_has_no_number(people: list[bool], judged: list[bool], undefined: set[str]) -> None:
    assert {name for name, figure in rates(people, judged).items() if figure.value is None} == undefined


def test_constants_and_single_lines_have_no_correlation() -> None:
    nothing = dict.fromkeys(("pearson", "spearman", "kendall"), Figure(None))
    assert correlations([0.5, 0.5, 0.5], [0.1, 0.2, 0.3]) == nothing
    assert correlations([0.5], [0.1]) == nothing
    assert correlations([], []) == nothing


def test_an_interval_that_many_resamples_leave_undefined_is_not_told() -> None:
    # One "unsupported" of four: (3/4)^4 = 32% of resamples miss it, and have no recall.
    figure = rates([U, S, S, S], [U, S, S, S])["recall_unsupported"]
    assert figure == Figure(1.0, None, None)


def test_the_threshold_with_the_best_balanced_accuracy_is_chosen() -> None:
    # From 0.5 on: supported 2 of 3, unsupported 2 of 2 -> 5/6. From 0.2: 3/3 and 1/2 -> 3/4. From 0.9: 1/3, 2/2 -> 2/3.
    found = best_threshold([U, S, U, S, S], [0.1, 0.2, 0.2, 0.5, 0.9])
    assert found is not None
    assert (found.value, found.tied, found.n) == (0.5, (0.5,), 5)
    assert found.balanced_accuracy == pytest.approx(5 / 6)


def test_tied_thresholds_are_all_told_and_the_strictest_is_taken() -> None:
    # From 0.4: S 2/2, U 1/2 -> 3/4. From 0.6: 1/2, 1/2 -> 1/2. From 0.8: 1/2, 2/2 -> 3/4.
    found = best_threshold([U, S, U, S], [0.2, 0.4, 0.6, 0.8])
    assert found is not None
    assert found.tied == (0.4, 0.8)
    assert found.value == 0.8


@pytest.mark.parametrize(("people", "values"), [([S, S], [0.1, 0.9]), ([S, U], [0.5, 0.5]), ([], [])])
def test_no_threshold_is_chosen_where_nothing_tells_them_apart(people: list[bool], values: list[float]) -> None:
    assert best_threshold(people, values) is None


def test_the_corrected_mean_by_hand() -> None:
    # people 1 0 1 1, judge 1 0 0 1 on them, judge 1 0 1 0 on four others.
    # cov(people, judge), n - 1: means 3/4 and 1/2; products of deviations: 1/4*1/2 + -3/4*-1/2 + 1/4*-1/2 + 1/4*1/2
    #   = 1/2; / 3 = 1/6. Variance of all eight judge values (four 1, four 0): 8 * 1/4 / 7 = 2/7.
    # weight = (1/6) / ((1 + 4/4) * 2/7) = 7/24.
    # mean(rest) = 1/2; mean(people) - w mean(judge) = 3/4 - 7/48. Together 7/48 + 3/4 - 7/48 = 3/4.
    # people - w judge: 17/24, 0, 1, 17/24: mean 29/48; variance = (2 * (5/48)^2 + (29/48)^2 + (19/48)^2) / 3
    #   = (50 + 841 + 361) / 2304 / 3 = 1252/6912. var(rest) = 1/3.
    # var = (7/24)^2 * (1/3)/4 + (1252/6912)/4
    found = corrected_mean([1, 0, 1, 1], [1, 0, 0, 1], [1, 0, 1, 0])
    assert (found.n, found.rest) == (4, 4)
    assert found.weight == pytest.approx(7 / 24)
    assert found.raw.value == pytest.approx(0.5)
    assert found.labels.value == pytest.approx(0.75)
    assert found.corrected.value == pytest.approx(0.75)
    error = sqrt((7 / 24) ** 2 / 12 + 1252 / 6912 / 4)
    assert found.corrected.high == pytest.approx(0.75 + 1.959964 * error)
    assert found.corrected.low == pytest.approx(0.75 - 1.959964 * error)


def test_a_biased_judge_is_corrected_by_its_bias_on_the_labelled() -> None:
    # The judge says 0.2 more than people, always; it varies as they do, so it is used as far as n/N allows:
    # cov = var(people) = 5/3 * 0.01; var of all eight = 8 * 0.0125 / 7; weight = (1/60) / (2 * 1/70) = 7/12.
    people = [0.1, 0.2, 0.3, 0.4]
    judged = [0.3, 0.4, 0.5, 0.6]
    found = corrected_mean(people, judged, judged)
    assert found.weight == pytest.approx(7 / 12)
    assert found.raw.value == pytest.approx(0.45)
    # 7/12 * 0.45 + 0.25 - 7/12 * 0.45
    assert found.corrected.value == pytest.approx(0.25)


def test_a_judge_that_is_wrong_the_other_way_round_or_constant_is_not_used() -> None:
    for judged, rest in (([1, 0, 1, 0], [1, 0, 1]), ([1, 1, 1, 1], [1, 1, 1])):
        found = corrected_mean([0, 1, 0, 1], judged, rest)
        assert found.weight == 0
        assert found.corrected == found.labels


@pytest.mark.parametrize(("labelled", "rest"), [(1, 5), (5, 1), (0, 0)])
def test_too_few_records_are_refused(labelled: int, rest: int) -> None:
    with pytest.raises(ValueError, match=f"{labelled} labelled and {rest} other records"):
        corrected_mean([0.5] * labelled, [0.5] * labelled, [0.5] * rest)


Judge = Callable[[np.random.Generator, "np.ndarray[tuple[int], np.dtype[np.float64]]"], list[float]]


def simulated(judge: Judge) -> tuple[float, float]:
    """Coverage of the true mean 0.7 by the corrected interval, and its width as a share of that of labels alone."""
    random = np.random.default_rng(11)
    covered, widths = 0, []
    for _ in range(500):
        truth = (random.random(1_200) < 0.7).astype(np.float64)
        judged = judge(random, truth)
        found = corrected_mean(list(truth[:200]), judged[:200], judged[200:])
        low, high = found.corrected.low, found.corrected.high
        assert low is not None
        assert high is not None
        assert found.labels.low is not None
        assert found.labels.high is not None
        assert isfinite(low)
        covered += low <= 0.7 <= high
        widths.append((high - low) / (found.labels.high - found.labels.low))
    return covered / 500, float(np.mean(widths))


# 500 draws: the standard error of a coverage of 0.95 is 0.0097.


def test_a_good_and_biased_judge_narrows_the_interval_and_coverage_holds() -> None:
    def judge(random: np.random.Generator, truth: np.ndarray[tuple[int], np.dtype[np.float64]]) -> list[float]:
        return list(np.where(random.random(len(truth)) < 0.05, 1 - truth, truth) * 0.8)

    coverage, width = simulated(judge)
    assert 0.92 <= coverage <= 0.98
    # Correlation with the truth about 0.88: sqrt(1 - 0.88^2 * N / (n + N)) = sqrt(1 - 0.78 * 1000/1200) = 0.59
    assert width == pytest.approx(0.59, abs=0.04)


def test_noise_as_a_judge_does_not_widen_the_interval_and_coverage_holds() -> None:
    def judge(random: np.random.Generator, truth: np.ndarray[tuple[int], np.dtype[np.float64]]) -> list[float]:
        return list(random.random(len(truth)))

    coverage, width = simulated(judge)
    assert 0.92 <= coverage <= 0.98
    assert width <= 1.0
