"""What answering costs, by hand, and the front of quality against it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.recommendation.costs import cost
from runner.recommendation.findings import Cost
from runner.recommendation.recommend import differs, front, front_cost, recommend
from runner.recommendation.terminal import show
from runner.recommendation.wording import costs, price, seconds
from runner.results import StoredRun
from tests.compare.runs import defined
from tests.recommendation.sweeps import TABLE, made, record, sweep

OURS: dict[str, Any] = {
    "embedder": {"_target_": "runner.embedders.lsa.LsaEmbedder"},
    "retriever": {"_target_": "runner.retrievers.dense.DenseRetriever", "k": 5},
    "reranker": {"_target_": "runner.rerankers.none.NoReranker"},
    "generator": {"_target_": "runner.generators.extractive.ExtractiveGenerator"},
}
ENDPOINT = {
    "_target_": "runner.generators.endpoint.EndpointGenerator",
    "base_url": "http://localhost:11434/v1",
    "prices": {"input": 0.5, "output": 2.0},
}
RATER = {**ENDPOINT, "_target_": "runner.rerankers.llm.LlmReranker"}
ASKED = {"calls": 4, "cached": 0, "repaired": 0, "tokens": 400, "cost": 0.002, "seconds": 1.0}
ALL_NEW = {"computed": {"rerank": 1}, "reused": {}}


def stored(
    config: dict[str, Any] | None = None,
    stages: dict[str, Any] | None = None,
    calls: dict[str, Any] | None = None,
    tokens: Sequence[tuple[int, int] | None] = (None,) * 4,
) -> StoredRun:
    """Four questions that take 1, 2, 3 and 10 ms in all."""
    spent = ((0.001, 0, 0, 0), (0.001, 0.001, 0, 0), (0, 0, 0, 0.003), (0.002, 0.003, 0.004, 0.001))
    records = [
        record(f"q{place}", "p" * (place * 10), seconds, counted)
        for place, (seconds, counted) in enumerate(zip(spent, tokens, strict=True), 1)
    ]
    run = made({key: [1.0] * 4 for key in TABLE}, config={**OURS, **(config or {})}, records=records)
    summary = {**run.summary, "usage": {"stages": stages or {}}, "calls": calls or ALL_NEW}
    return replace(run, summary=summary)


def of(run: StoredRun) -> Cost:
    found = cost(run)
    assert found is not None
    return found


def test_time_and_prompt_are_over_the_questions_with_an_answer() -> None:
    found = of(stored())
    assert (found.n, found.p50, found.p95) == (4, pytest.approx(0.0025), pytest.approx(0.01))
    assert found.prompt_characters == 25.0  # (10 + 20 + 30 + 40) / 4
    assert (found.tokens, found.dollars) == (None, 0.0)
    assert found.unknown == {"tokens": "the generator counts no tokens"}
    failed = replace(stored(), records={"q1": record("q1", "p" * 8), "q2": record("q2", error="no answer")})
    assert (of(failed).n, of(failed).prompt_characters) == (1, 8.0)
    assert cost(replace(stored(), records={"q2": record("q2", error="no answer")})) is None


def test_money_is_what_answering_takes_whatever_this_run_was_charged() -> None:
    # Tokens in 100, 200, 300, 400 and out 10 each: means 250 and 10. $0.50 and $2 a million:
    # 250 * 0.5 / 1e6 + 10 * 2 / 1e6 = 0.000145 a question, $0.145 a thousand.
    tokens = [(100, 10), (200, 10), (300, 10), (400, 10)]
    for stages in ({}, {"generator": {**ASKED, "cost": 0.0}}):
        found = of(stored({"generator": ENDPOINT}, stages, tokens=tokens))
        assert (found.tokens, found.dollars) == (260.0, pytest.approx(0.145))
    kept = of(stored({"generator": ENDPOINT}, {"generator": {**ASKED, "cached": 3}}, tokens=tokens))
    assert (kept.p50, kept.p95, kept.dollars) == (None, None, pytest.approx(0.145))
    assert kept.unknown["p50"] == "3 of 4 replies to the generator were kept from before and took no time"


@pytest.mark.parametrize(
    ("changed", "more", "why"),
    [
        ({"generator": {**ENDPOINT, "prices": None}}, {}, "generator.prices is not set"),
        ({"generator": ENDPOINT}, {}, "the generator counts no tokens"),
        ({"generator": {"_target_": "mine.Generator"}}, {}, "nothing says whether mine.Generator asks a paid model"),
        (
            {"reranker": RATER},
            {},
            "this run did not pay for all that the reranker takes: some of it was kept from before",
        ),
        (
            {"reranker": RATER},
            {"stages": {"reranker": ASKED}, "calls": {"computed": {"rerank": 1}, "reused": {"rerank_one": 1}}},
            "this run did not pay for all that the reranker takes: some of it was kept from before",
        ),
        (
            {"embedder": {"_target_": "runner.embedders.openai.EndpointEmbedder", "base_url": "http://localhost/v1"}},
            {},
            "what embedding a question costs is not kept apart from the documents",
        ),
    ],
)
def test_money_that_is_unknown_is_not_0(changed: dict[str, Any], more: dict[str, Any], why: str) -> None:
    found = of(stored(changed, **more))
    assert (found.dollars, found.unknown["dollars"]) == (None, why)


def test_a_reranker_that_asks_counts_where_all_of_it_was_asked_in_this_run() -> None:
    # $0.002 for 4 questions: $0.50 a thousand; 400 tokens: 100 a question beside the 11 of the generator.
    found = of(stored({"reranker": RATER}, {"reranker": ASKED}, ALL_NEW, tokens=[(10, 1)] * 4))
    assert (found.dollars, found.tokens) == (pytest.approx(0.5), 111.0)


def test_weights_on_this_machine_cost_no_money_and_frozen_contexts_nothing_more() -> None:
    local = {"_target_": "runner.generators.local.LocalGenerator", "weights": "w.gguf"}
    assert of(stored({"generator": local})).dollars == 0.0
    assert of(stored({"reranker": RATER})).dollars is None
    assert of(stored({"reranker": RATER, "records": {"frozen": True}})).dollars == 0.0


def priced(dollars: float | None = None, tokens: float | None = None, prompt: float = 1.0, p50: float = 1.0) -> Cost:
    return Cost(1, p50, p50, prompt, tokens, dollars)


def test_the_front_is_drawn_against_the_first_cost_that_is_known_for_all_and_differs() -> None:
    assert front_cost([priced(1.0), priced(2.0)]) == "dollars"
    assert front_cost([priced(0.0, 5.0), priced(0.0, 6.0)]) == "tokens"
    assert front_cost([priced(None, 5.0), priced(1.0, 5.0, 3.0)]) == "prompt_characters"
    assert front_cost([priced(p50=1.0), priced(p50=2.0)]) == "p50"
    assert front_cost([priced(), priced()]) is None
    assert front_cost([priced(1.0), None]) is None


def test_a_cost_differs_from_the_first_that_is_known_for_both() -> None:
    assert differs(priced(0.0, None, 5.0), priced(0.0, 3.0, 4.0)) == "prompt_characters"
    assert differs(priced(p50=1.1), priced(p50=1.0)) is None
    assert differs(priced(p50=9.0), priced(p50=1.0)) is None  # the machine did something else
    assert differs(priced(0.0, 100.0), priced(0.0, 100.5)) is None
    assert differs(priced(0.0, 100.0), priced(0.0, 102.0)) == "tokens"
    assert differs(None, priced()) is None


def test_costs_in_words() -> None:
    assert costs(priced(0.145, 260, 1000, 0.010), priced(0.145, 130, 1050, 0.004)) == (
        "tokens a question 130 → 260; seconds a question 4.0 ms → 10 ms"
    )
    assert costs(priced(0.2), priced(0.0)) == "dollars per 1,000 questions 0 → 0.20"
    assert price(priced(0.0042), "dollars") == "0.0042"
    assert price(priced(), "tokens") == "–"
    assert [seconds(value) for value in (None, 0.00004, 0.0123, 0.9, 1.25)] == [
        "–",
        "0.0 ms",
        "12 ms",
        "900 ms",
        "1.25 s",
    ]


def test_all_costs_and_decisions_fit_into_100_columns(capsys: pytest.CaptureFixture[str]) -> None:
    tokens = [(12_345, 678)] * 4
    dear = {**ENDPOINT, "prices": {"input": 50, "output": 200}}
    base = stored({"generator": dear}, tokens=tokens)
    other = replace(base, summary={**base.summary, "dataset": {"name": "tiny", "version": "3", "checksum": "d" * 64}})
    show(recommend(sweep(base, {"retriever.a_parameter_of_a_long_name=12345": other}), None))
    told = capsys.readouterr().out
    assert max(map(len, told.splitlines())) <= 100
    assert "752.85" in told  # (12345 * 50 + 678 * 200) / 1e6 * 1000
    assert "13,023" in told
    assert "Not comparable retriever.a_parameter_of_a_long_name=12345: the dataset differs" in told


def test_lower_is_better_on_the_front_too() -> None:
    key = TABLE[0]
    lower = defined(key, direction="lower")

    def one(value: float, prompt: int) -> StoredRun:
        return made({key: [value] * 10}, table=[key], definitions=[lower], prompt="p" * prompt)

    found = recommend(sweep(one(0.5, 100), {"a=1": one(0.4, 100), "a=2": one(0.3, 200), "a=3": one(0.4, 300)}), None)
    assert [each.front for each in found.runs] == [False, True, True, False]
    assert (found.quality, found.cost) == (key, "prompt_characters")


points = st.lists(
    st.tuples(st.one_of(st.none(), st.integers(0, 4).map(float)), st.one_of(st.none(), st.integers(0, 4).map(float))),
    max_size=12,
)


def dominates(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return one[0] >= other[0] and one[1] <= other[1] and one != other


@given(points)
def test_on_the_front_is_exactly_who_is_known_and_not_dominated(found: list[tuple[float | None, float | None]]) -> None:
    known = [(high, low) for high, low in found if high is not None and low is not None]
    on = front(found)
    for point, is_on in zip(found, on, strict=True):
        if point[0] is None or point[1] is None:
            assert not is_on
        else:
            assert is_on is not any(dominates(other, (point[0], point[1])) for other in known)
    # Every one that is not on it is dominated by one that is.
    best = [(point[0], point[1]) for point, is_on in zip(found, on, strict=True) if is_on]
    for point in known:
        assert point in best or any(dominates((q, c), point) for q, c in best if q is not None and c is not None)
    assert bool(best) is bool(known)


@given(points, st.randoms())
def test_the_front_does_not_hang_on_the_order(found: list[tuple[float | None, float | None]], random: Any) -> None:
    order = list(range(len(found)))
    random.shuffle(order)
    on = front(found)
    assert front([found[place] for place in order]) == [on[place] for place in order]
