"""What is kept, rejected, a trade-off or cannot be told, worked by hand, and the family of comparisons of a sweep."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

import numpy as np
import pytest

from runner.recommendation.findings import Considered
from runner.recommendation.recommend import needed, recommend
from runner.recommendation.wording import difference, front, grouped, headline, rounded
from tests.compare.runs import defined
from tests.recommendation.sweeps import TABLE, made, record, sweep, ups

RECALL, F1 = TABLE
SAME = [0.5] * 40


def decided(up: int = 0, down: int = 0, f1_up: int = 0, f1_down: int = 0, others: int = 1) -> Considered:
    """One variant of 40 questions. Each of the yes/no definitions has a family of 2 comparisons."""
    (before, after), (f1_before, f1_after) = ups(40, up, down), ups(40, f1_up, f1_down)
    found = recommend(
        sweep(made({RECALL: before, F1: f1_before}), {"retriever.k=10": made({RECALL: after, F1: f1_after})}), None
    )
    return found.variants[0]


def test_better_in_one_and_worse_in_none_is_kept() -> None:
    # 8 of 40 went up and none down: delta 0.2, McNemar 2 / 2**8 = 0.0078, Holm of 2: 0.0156.
    found = decided(up=8)
    assert found.decision == "keep"
    assert found.rows[0].adjusted == pytest.approx(2 * 2 / 2**8)
    assert found.why.startswith(f"better in {difference(found.rows[0])}; worse in none of the 2 that decide")
    assert difference(found.rows[0]).startswith("recall +0.200 [0.")


def test_worse_in_one_and_better_in_none_is_rejected() -> None:
    found = decided(down=8)
    assert found.decision == "reject"
    assert found.why.startswith(f"worse in {difference(found.rows[0])}; better in none of the 2 that decide")


def test_better_in_one_and_worse_in_another_is_a_trade_off_that_names_both() -> None:
    found = decided(up=8, f1_down=9)
    assert found.decision == "trade-off"
    assert "better in recall +0.200" in found.why
    assert "worse in answer_f1 −0.225" in found.why


def test_a_trade_off_names_what_is_worse_outside_the_table() -> None:
    # As prompt=strict: it declines more of what cannot be answered, and, outside the table, of what can. 12 of 40 down:
    # 2 / 2**12, below 5% after Holm of any of the 3 comparisons.
    (before, after), (f1_before, f1_after), (out_before, out_after) = ups(40, 8), ups(40, 0, 9), ups(40, 0, 12)
    found = recommend(
        sweep(
            made({RECALL: before, F1: f1_before, "labels/ndcg": out_before}),
            {"prompt=strict": made({RECALL: after, F1: f1_after, "labels/ndcg": out_after})},
        ),
        None,
    ).variants[0]
    assert found.decision == "trade-off"
    assert "; worse, without deciding, in ndcg" in found.why


def test_a_loss_that_its_own_interval_shows_is_not_kept() -> None:
    # 6 down and none up: 2 / 2**6 = 0.03125. Of three definitions it is the second smallest, times 2: 0.0625, and its
    # own interval excludes 0.
    third = {"labels/ndcg": SAME}
    (before, after), (f1_before, f1_after) = ups(40, 12), ups(40, 0, 6)
    found = recommend(
        sweep(
            made({RECALL: before, F1: f1_before, **third}, table=(*TABLE, *third)),
            {"retriever.k=10": made({RECALL: after, F1: f1_after, **third}, table=(*TABLE, *third))},
        ),
        None,
    ).variants[0]
    assert [row.word for row in found.rows] == ["better", "cannot tell", "unchanged"]
    assert found.rows[1].adjusted == pytest.approx(2 * 2 / 2**6)
    assert found.decision == "trade-off"
    assert f"perhaps worse in {difference(found.rows[1])}, by its own interval alone" in found.why


def test_what_is_kept_says_which_loss_is_not_excluded() -> None:
    # answer_f1: 2 up, 5 down: −0.075, far from shown.
    found = decided(up=8, f1_up=2, f1_down=5)
    assert found.decision == "keep"
    worst = -(found.rows[1].low or 0)
    assert 0.1 < worst < 0.25
    assert f"not excluded: answer_f1 worse by up to {worst:.3f}" in found.why


def test_lower_is_better_turns_the_words_round() -> None:
    lower = defined(RECALL, direction="lower")
    before, after = ups(40, 8)
    found = recommend(
        sweep(
            made({RECALL: before}, table=[RECALL], definitions=[lower]),
            {"k=10": made({RECALL: after}, table=[RECALL], definitions=[lower])},
        ),
        None,
    )
    assert found.variants[0].decision == "reject"
    assert [run.front for run in found.runs] == [False, False]  # nothing that costs differs


def test_what_cannot_be_told_says_what_could_be_seen_and_how_many_questions_it_takes() -> None:
    # 6 up, 2 down: delta 0.1; McNemar of 2 in 8: 2 (1 + 8 + 28) / 256 = 0.289.
    # s**2 = (8 - 40 * 0.01) / 39 = 0.194872, visible = 2.8016 * 0.441443 / sqrt(40) = 0.195547.
    # At 5% / 2: z = 2.2414 + 0.8416 = 3.0830: n = 40 (0.195547 * 3.0830 / 2.8016 / 0.1)**2 = 185.2; to two figures 190.
    found = decided(up=6, down=2)
    assert found.decision == "cannot tell"
    assert found.rows[0].p.value == pytest.approx(74 / 256)
    assert found.rows[0].visible == pytest.approx(0.195547, abs=1e-5)
    assert needed(found.rows[0]) == 190
    assert "nearest recall +0.100" in found.why
    assert "a true difference shows here from 0.196 on" in found.why
    assert "among the 2 comparisons that decide would take about 190 questions in place of 40" in found.why


@pytest.mark.parametrize("n", [1, 9.2, 10, 99.1, 185.2, 1001, 123456])
def test_questions_are_told_to_two_figures_upwards(n: float) -> None:
    assert rounded(n) >= n
    assert rounded(n) <= max(ceil(n), 1.1 * n + 1)
    assert str(rounded(n))[2:].strip("0") == ""


def test_needed_questions_are_those_at_which_a_difference_of_this_size_is_mostly_seen() -> None:
    """So many questions with the same share of ups and downs show it in about four of five test sets."""
    row = replace(decided(up=9, down=3).rows[0], family=1)
    n = needed(row)
    assert n is not None
    generator = np.random.default_rng(3)
    draws = generator.choice([1.0, -1.0, 0.0], p=[9 / 40, 3 / 40, 28 / 40], size=(4000, n))
    z = draws.mean(axis=1) / (draws.std(axis=1, ddof=1) / np.sqrt(n))
    assert 0.75 < np.mean(np.abs(z) > 1.96) < 0.9


@pytest.mark.parametrize(
    ("prompt", "decision"), [("p" * 80, "keep"), ("p" * 120, "reject"), ("p" * 100, "cannot tell")]
)
def test_the_same_scores_for_less_are_kept_and_for_more_rejected(prompt: str, decision: str) -> None:
    values = {RECALL: SAME, F1: SAME}
    found = recommend(sweep(made(values), {"prompt=concise": made(values, prompt=prompt)}), None).variants[0]
    assert found.decision == decision
    assert "no score of any question changed" in found.why
    assert ("characters of the prompt 100 → " in found.why) is (len(prompt) != 100)


def test_the_same_table_is_not_the_same_where_a_definition_outside_it_changed() -> None:
    values = {RECALL: SAME, F1: SAME}
    before, after = ups(40, 1)
    found = recommend(
        sweep(
            made({**values, "labels/ndcg": before}),
            {"prompt=concise": made({**values, "labels/ndcg": after}, prompt="p" * 80)},
        ),
        None,
    ).variants[0]
    assert (found.decision, found.why) == ("cannot tell", "no score of a deciding definition changed")


def test_time_alone_is_told_and_decides_nothing() -> None:
    values = {RECALL: SAME, F1: SAME}
    ids = [f"q{place}" for place in range(1, 41)]
    decisions, reasons = [], []
    for generate in (0.0022, 0.029):  # 3 ms -> 3.2 ms and 30 ms
        slower = [record(id, seconds=(0.001, 0, 0, generate)) for id in ids]
        found = recommend(sweep(made(values), {"retriever=mine": made(values, records=slower)}), None)
        decisions.append(found.variants[0].decision)
        reasons.append(found.variants[0].why)
    assert decisions == ["cannot tell", "cannot tell"]
    alike = "no score of any question changed, and neither money, tokens nor the prompt is known to differ"
    assert reasons == [alike, f"{alike}; seconds a question 3.0 ms → 30 ms"]


def test_what_does_not_mean_the_same_is_not_decided() -> None:
    before, after = ups(40, 8)
    other = {"name": "tiny", "version": "3", "checksum": "d" * 64}
    found = recommend(
        sweep(
            made({RECALL: before, F1: SAME}),
            {"dataset.limit=40": made({RECALL: after, F1: SAME}, dataset=other), "retriever=broken": "boom"},
        ),
        None,
    )
    assert [(each.decision, each.front) for each in found.variants] == [("not comparable", False), ("failed", False)]
    assert "the dataset differs" in found.variants[0].why
    assert found.variants[1].why == "boom"
    assert headline(found) == "Not comparable: dataset.limit=40. Failed: retriever=broken."


def test_one_definition_that_cannot_be_subtracted_leaves_the_others() -> None:
    before, after = ups(40, 8)
    other = defined(F1, version="2")
    found = recommend(
        sweep(
            made({RECALL: before, F1: SAME}),
            {"metrics=other": made({RECALL: after, F1: SAME}, definitions=[other])},
        ),
        None,
    ).variants[0]
    assert found.decision == "keep"
    assert found.why.endswith("Not compared: answer_f1")


def test_without_a_table_the_first_five_decide() -> None:
    keys = [f"labels/d{place}" for place in range(6)]
    before, after = ups(40, 10)
    values = dict.fromkeys(keys, SAME)
    found = recommend(
        sweep(
            made({**values, "labels/d5": before}, table=None),
            {"k=9": made({**values, "labels/d5": after}, table=None)},
        ),
        None,
    )
    assert found.decisive == tuple(keys[:5])
    assert found.variants[0].decision == "cannot tell"


def test_one_question_and_no_baseline() -> None:
    one = recommend(sweep(made({RECALL: [0.0], F1: [1.0]}), {"k=9": made({RECALL: [1.0], F1: [1.0]})}), None)
    assert one.variants[0].decision == "cannot tell"
    none = recommend(sweep(None, {"k=9": "not run: the baseline failed"}), None)
    assert [each.decision for each in none.runs] == [None, "failed"]
    assert none.next == ()
    alone = recommend(sweep(made({RECALL: SAME, F1: SAME}), {}), None)
    assert headline(alone) == "Nothing was swept, so nothing is recommended."
    lost = recommend(sweep(None, {"k=9": made({RECALL: SAME, F1: SAME})}), None)
    assert [each.decision for each in lost.variants] == ["not comparable"]


def test_the_front_says_whom_it_does_not_show_better() -> None:
    before, after = ups(40, 2)
    found = recommend(
        sweep(made({RECALL: before, F1: SAME}), {"prompt=concise": made({RECALL: after, F1: SAME}, prompt="p" * 120)}),
        None,
    )
    assert [run.front for run in found.runs] == [True, True]
    assert "that it differs in recall from the baseline is not shown for prompt=concise" in front(found)
    assert list(grouped(found)) == ["cannot tell"]


def test_holm_is_over_all_variants_and_definitions() -> None:
    """The k-th smallest of m times m - k + 1, never below the one before (Holm 1979)."""
    baseline, variants = made({RECALL: ups(40, 5)[0], F1: ups(40, 6)[0]}), {}
    for place, (recall, f1) in enumerate([(5, 6), (4, 1), (2, 3)]):
        values = {
            RECALL: [1.0] * recall + [0.0] * (5 - recall) + [1.0] * 35,
            F1: [1.0] * f1 + [0.0] * (6 - f1) + [1.0] * 34,
        }
        variants[f"k={place}"] = made(values)
    found = recommend(sweep(baseline, variants), None)
    rows = [row for each in found.variants for row in each.rows]
    raw = [row.p.value for row in rows]
    # 5, 6, 4, 1, 2 and 3 changes in one direction: 2 / 2**n.
    assert raw == pytest.approx([2 / 2**n for n in (5, 6, 4, 1, 2, 3)])
    # Sorted: 1/32 * 6, 1/16 * 5, 1/8 * 4, 1/4 * 3, 1/2 * 2, 1 * 1.
    assert [row.adjusted for row in rows] == pytest.approx([0.3125, 0.1875, 0.5, 1.0, 1.0, 0.75])
    assert found.family == 6


def test_of_sweeps_in_which_nothing_differs_few_have_a_mark() -> None:
    """12 variants x 2 definitions, 60 questions, each change as likely up as down: any mark in at most 5% of sweeps."""
    generator = np.random.default_rng(20_261_130)
    ids, sweeps, marked = 60, 80, 0
    for _ in range(sweeps):
        before = {key: generator.integers(0, 2, ids).astype(float) for key in TABLE}
        variants = {}
        for place in range(12):
            values = {}
            for key in TABLE:
                values[key] = np.where(generator.random(ids) < 0.5, generator.integers(0, 2, ids), before[key])
            variants[f"k={place}"] = made({key: list(map(float, each)) for key, each in values.items()}, records=[])
        base = made({key: list(map(float, each)) for key, each in before.items()}, records=[])
        comparisons = sweep(base, variants).comparisons.values()
        marked += any(row.word in ("better", "worse") for found in comparisons for row in found.rows)
    # Binomial: with a rate of 5%, more than 9 of 80 happen for 0.6% of all seeds; without Holm it would be every other
    # sweep.
    assert marked <= 9
