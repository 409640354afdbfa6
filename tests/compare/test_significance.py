"""Paired tests: against SciPy, against numbers worked by hand, and by simulation under a true null."""

from __future__ import annotations

from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, permutation_test
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

from benchmarks.significance import STEPS, simulated
from runner import significance
from runner.significance import holm, permutation, smallest_visible


def scipys(differences: list[float], **options: object) -> float:
    found = permutation_test(
        (differences,), fmean_of, permutation_type="samples", n_resamples=np.inf, vectorized=False, **options
    )
    return float(found.pvalue)


def fmean_of(sample: np.ndarray) -> float:
    return float(np.mean(sample))


# Eighths, whose sums are exact: where rounding makes a sum of 0 a hair larger, scipy does not count the equal ones.
@given(st.lists(st.sampled_from((-0.75, -0.5, -0.25, 0.0, 0.125, 0.375, 1.0)), min_size=2, max_size=9))
def test_the_exact_test_agrees_with_scipy(differences: list[float]) -> None:
    assert permutation(differences).value == pytest.approx(scipys(differences), abs=1e-12)


def test_worked_by_hand() -> None:
    # |d| = 1, 2, 3, observed sum 6. Of 8 signings only +++ and --- reach 6: p = 2/8.
    assert permutation([1.0, 2.0, 3.0]).value == 0.25
    # Observed sum 1 + 2 - 3 = 0: every signing is as far.
    assert permutation([1.0, 2.0, -3.0]).value == 1.0


def test_yes_or_no_definitions_get_the_exact_mcnemar_test() -> None:
    # 9 questions turned to yes, 2 to no, 30 stayed: two-sided binomial of 9 in 11 = 2 * (55 + 11 + 1) / 2048.
    found = permutation([1.0] * 9 + [-1.0] * 2 + [0.0] * 30)
    assert found.method == "exact McNemar"
    assert found.value == pytest.approx(2 * (55 + 11 + 1) / 2048)
    assert found.value == pytest.approx(binomtest(9, 11, 0.5).pvalue)


def test_many_changed_questions_are_sampled_and_close_to_the_exact_value() -> None:
    generator = np.random.default_rng(5)
    differences = list(generator.normal(0.1, 0.4, size=60))
    found = permutation(differences)
    # The normal approximation of the sign-flip distribution, whose variance is sum d^2.
    from scipy.stats import norm

    z = abs(sum(differences)) / float(np.sqrt(sum(d * d for d in differences)))
    assert found.method == "permutation"
    assert found.value == pytest.approx(2 * float(norm.sf(z)), abs=0.02)
    assert permutation(differences) == found


def test_nothing_changed_is_no_evidence() -> None:
    assert permutation([0.0] * 10).value == 1.0
    assert smallest_visible([0.0] * 10) is None


def test_holm_worked_by_hand() -> None:
    # Sorted .01 .02 .03 .04: x4 = .04, x3 = .06, x2 = .06, x1 = .04 -> raised to .06.
    assert holm({"a": 0.04, "b": 0.01, "c": 0.03, "d": 0.02}) == pytest.approx(
        {"a": 0.06, "b": 0.04, "c": 0.06, "d": 0.06}
    )
    assert holm({"a": 0.9, "b": 0.8}) == {"a": 1.0, "b": 1.0}


@given(st.lists(st.floats(0, 1) | st.sampled_from((0.0, 0.01, 0.025, 0.05, 1.0)), min_size=1, max_size=20))
def test_holm_agrees_with_statsmodels(values: list[float]) -> None:
    found = holm(dict(enumerate(values)))
    assert [*found.values()] == pytest.approx(multipletests(values, method="holm")[1].tolist(), abs=1e-12)


@given(st.integers(0, 400), st.integers(0, 400), st.integers(0, 50))
def test_mcnemar_agrees_with_statsmodels(ups: int, downs: int, same: int) -> None:
    found = permutation([1.0] * ups + [-1.0] * downs + [0.0] * same)
    # Rows: yes and no before; columns: yes and no after.
    assert found.value == pytest.approx(float(mcnemar([[same, downs], [ups, 0]], exact=True).pvalue), rel=1e-9)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_keeps_the_order_and_never_lowers(values: list[float]) -> None:
    given_ = {str(place): value for place, value in enumerate(values)}
    found = holm(given_)
    assert all(value <= found[name] <= 1 for name, value in given_.items())
    ordered = sorted(given_, key=lambda name: given_[name])
    assert [found[name] for name in ordered] == sorted(found.values())


def test_the_smallest_visible_difference_is_seen_in_four_of_five_test_sets() -> None:
    generator = np.random.default_rng(11)
    n, spread = 100, 0.3
    effect = smallest_visible(list(generator.normal(0.0, spread, size=n)))
    assert effect is not None
    seen = fmean(permutation(list(generator.normal(effect, spread, size=n))).value < 0.05 for _ in range(200))
    # 200 draws: two standard errors of 0.8 are 0.057; the estimate of the spread adds some.
    assert 0.7 < seen < 0.9


def test_compare_itself_holds_the_level_and_after_holm_the_family() -> None:
    rates = simulated(200)
    single = sum(rates.single.values()) / (rates.comparisons * len(STEPS))
    # 1,000 p-values: two standard errors of 5% are 1.4%. Five independent definitions: 1 - .95**5 = 23% have one.
    assert 0.035 <= single <= 0.065
    assert 0.15 <= rates.of(rates.any_plain) <= 0.30
    # Of 200, two standard errors are 3%.
    assert rates.of(rates.any_holm) <= 0.08
    assert rates.any_word <= rates.any_holm
    partly = simulated(40, seed=2, really_better=("quarters",))
    assert partly.of(partly.any_holm) <= 0.125


@pytest.mark.parametrize("seed", [1, 2])
def test_every_way_to_the_p_value_comes_to_the_same(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    # 14 changes of few sizes: counted, drawn by size, and drawn by sign; 20,000 draws are right to .007.
    differences = list(np.random.default_rng(seed).choice([-0.5, -0.25, 0.25, 0.5, 0.75], size=14))
    exact = permutation(differences)
    monkeypatch.setattr(significance, "EXACT", 0)
    by_sign = permutation(differences)
    monkeypatch.setattr(significance, "ALIKE", 1)
    by_size = permutation(differences)
    assert [exact.method, by_sign.method, by_size.method] == ["exact permutation", "permutation", "permutation"]
    assert by_sign.value == pytest.approx(exact.value, abs=0.01)
    assert by_size.value == pytest.approx(exact.value, abs=0.01)


def test_thousands_of_sizes_are_normal() -> None:
    differences = list(np.random.default_rng(4).normal(0.006, 0.3, size=9_000))
    found = permutation(differences)
    assert found.method == "normal approximation of the permutation"
    generator = np.random.default_rng(9)
    sizes = np.abs(differences)
    sums = [abs(float((2.0 * generator.integers(0, 2, size=9_000) - 1) @ sizes)) for _ in range(4_000)]
    assert found.value == pytest.approx(fmean(each >= abs(sum(differences)) for each in sums), abs=0.02)
    # One change outweighs all others, so signs are drawn. Whichever way it goes, the others must reach their sum on its
    # side: half of their two-sided p-value.
    heavy = permutation([*(each / 1000 for each in differences), 50.0])
    assert heavy.method == "permutation"
    assert heavy.value == pytest.approx(found.value / 2, abs=0.01)


def test_under_a_true_null_five_of_a_hundred_reject() -> None:
    generator = np.random.default_rng(3)
    rejected = fmean(permutation(list(generator.normal(0.0, 1.0, size=12))).value < 0.05 for _ in range(1000))
    assert 0.035 <= rejected <= 0.065
