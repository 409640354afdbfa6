"""Scores laid side by side: golden numbers of the router example, pairs, systems, hazards, and what may not be done."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau, spearmanr

from adapters import formulas
from adapters.base import SCORERS, scorer
from adapters.schema import Score, Verdict
from runner.audit.comparison import audit
from runner.audit.findings import PEOPLE, Group
from tests.adapters.router import CLAIMS
from tests.audit.said import records, score, subject, verdicts

RAGAS, DEEPEVAL, TRULENS = (
    subject(id) for id in ("ragas/faithfulness", "deepeval/faithfulness", "trulens/groundedness")
)
PENALISED = subject({"id": "deepeval/faithfulness", "penalize_ambiguous_claims": True})
ALL = (RAGAS, DEEPEVAL, PENALISED, TRULENS)


def router() -> Group:
    questions, answers = records("router")
    scores = {each.key: {"router": score(each, "router", CLAIMS)} for each in ALL}
    return audit(ALL, questions, answers, scores, source="router").groups[0]


def test_the_router_example_gives_60_80_60_60_and_all_of_the_20_to_the_formula() -> None:
    group = router()
    assert [row.mean for row in group.rows] == pytest.approx([0.6, 0.8, 0.6, 0.6])
    (pair,) = [pair for pair in group.pairs if (pair.left, pair.right) == (RAGAS.key, DEEPEVAL.key)]
    assert pair.difference == pytest.approx(-0.2)
    assert pair.why is not None
    assert (pair.why.claims, pair.why.verdicts) == (0.0, 0.0)
    assert pair.why.formula == pytest.approx(-0.2)


def test_each_record_shows_who_counts_a_claim_against() -> None:
    (view,) = router().views
    free = next(claim for claim in view.claims if claim.text == "Shipping is free of charge.")
    assert {key: (word.native, word.credit) for key, word in free.words.items()} == {
        RAGAS.key: ("0", 0.0),
        DEEPEVAL.key: ("borderline", 1.0),
        PENALISED.key: ("borderline", 0.0),
        TRULENS.key: ("0", 0.0),
    }


def test_the_cross_table_has_the_frameworks_own_scores_on_its_diagonal() -> None:
    (cross,) = router().crosses
    assert cross.sources == cross.formulas
    for place, row in enumerate(router().rows):
        assert cross.cells[place][place] == pytest.approx(row.mean, abs=1e-9)
    # Every evidence is the same five verdicts, so each column is constant.
    assert all(cells == pytest.approx(cross.cells[0]) for cells in cross.cells)


def test_formulas_on_the_verdicts_of_people_need_no_score() -> None:
    questions, answers = records("router", "unlabelled")
    people = {formulas.ANSWER_CLAIMS: {"router": tuple(Verdict(text, word, word) for text, word in CLAIMS)}}
    group = audit(ALL, questions, answers, {}, source="people", people=people).groups[0]
    assert [(row.mean, row.n) for row in group.rows] == [(pytest.approx(v), 1) for v in (0.6, 0.8, 0.6, 0.6)]
    assert [row.not_applicable for row in group.rows] == [1] * 4
    assert {hazard.ids for hazard in group.hazards} == {("unlabelled",)}
    (cross,) = group.crosses
    assert cross.sources == (PEOPLE,)
    assert cross.cells == ((pytest.approx(0.6), pytest.approx(0.8), pytest.approx(0.6), pytest.approx(0.6)),)
    free = next(claim for claim in group.views[0].claims if claim.text == "Shipping is free of charge.")
    assert [free.words[key.key].credit for key in ALL] == [0.0, 1.0, 0.0, 0.0]
    assert free.words[PEOPLE].credit is None


def test_people_stand_beside_the_judge_as_another_source_of_verdicts() -> None:
    questions, answers = records("router")
    lenient = [(text, "supported") for text, _ in CLAIMS]  # a judge that believes everything
    scores = {each.key: {"router": score(each, "router", lenient)} for each in (RAGAS, DEEPEVAL)}
    people = {formulas.ANSWER_CLAIMS: {"router": tuple(Verdict(text, word, word) for text, word in CLAIMS)}}
    (cross,) = audit((RAGAS, DEEPEVAL), questions, answers, scores, source="r", people=people).groups[0].crosses
    assert cross.sources == (RAGAS.key, DEEPEVAL.key, PEOPLE)
    assert cross.cells[2] == (pytest.approx(0.6), pytest.approx(0.8))
    assert cross.cells[0] == (1.0, 1.0)


WORDS = st.sampled_from(("supported", "contradicted", "absent"))
ANSWERS = st.lists(
    st.tuples(st.lists(WORDS, min_size=1, max_size=5), st.lists(WORDS, min_size=1, max_size=5)), min_size=2, max_size=8
)


@given(ANSWERS)
def test_pairs_agree_with_scipy_and_their_parts_sum(answers: list[tuple[list[str], list[str]]]) -> None:
    ids = [f"q{n}" for n in range(len(answers))]
    questions, answered = records(*ids)
    scores: dict[str, dict[str, Score]] = {RAGAS.key: {}, DEEPEVAL.key: {}}
    for id, sides in zip(ids, answers, strict=True):
        for each, words in zip((RAGAS, DEEPEVAL), sides, strict=True):
            claims = [(f"Claim number {n}.", word) for n, word in enumerate(words)]
            scores[each.key][id] = score(each, id, claims)
    (pair,) = audit((RAGAS, DEEPEVAL), questions, answered, scores, source="x").groups[0].pairs
    x, y = ([by_id[id].value or 0.0 for id in ids] for by_id in scores.values())
    assert pair.difference == pytest.approx(fmean(x) - fmean(y))
    assert pair.apart == pytest.approx(fmean(abs(a - b) for a, b in zip(x, y, strict=True)))
    assert pair.sides == fmean((a >= 0.5) != (b >= 0.5) for a, b in zip(x, y, strict=True))
    if len(set(x)) > 1 and len(set(y)) > 1:
        assert pair.spearman == pytest.approx(spearmanr(x, y).statistic)
        assert pair.kendall == pytest.approx(kendalltau(x, y).statistic)
    else:
        assert (pair.spearman, pair.kendall) == (None, None)
    assert pair.why is not None
    assert pair.why.claims + pair.why.verdicts + pair.why.formula == pytest.approx(pair.difference, abs=1e-12)


def test_another_definition_may_have_chosen_another_winner() -> None:
    # System A invents (absent), system B contradicts. Ragas: A 0, B 1/2. DeepEval: A 1, B 1/2.
    said = {
        "a1": ["absent"],
        "a2": ["absent"],
        "b1": ["supported", "contradicted"],
        "b2": ["contradicted", "supported"],
    }
    questions, answers = records(*said)
    scores = {
        each.key: {id: score(each, id, [(f"{n}.", word) for n, word in enumerate(words)]) for id, words in said.items()}
        for each in (RAGAS, DEEPEVAL)
    }
    systems = {id: id[0].upper() for id in said}
    (pair,) = audit((RAGAS, DEEPEVAL), questions, answers, scores, source="x", systems=systems).groups[0].pairs
    assert pair.systems is not None
    assert pair.systems.means == {"A": (0.0, 1.0), "B": (0.5, 0.5)}
    assert (pair.systems.left_best, pair.systems.right_best) == (("B",), ("A",))
    assert not pair.systems.same_winner
    assert pair.systems.kendall == pytest.approx(-1.0)


def test_a_formula_that_does_not_give_the_score_is_told_and_has_no_parts() -> None:
    questions, answers = records("router")
    wrong = replace(score(RAGAS, "router", CLAIMS), value=0.61)
    scores = {RAGAS.key: {"router": wrong}, DEEPEVAL.key: {"router": score(DEEPEVAL, "router", CLAIMS)}}
    group = audit((RAGAS, DEEPEVAL), questions, answers, scores, source="x").groups[0]
    assert group.pairs[0].why is None
    assert [(hazard.definition, hazard.ids) for hazard in group.hazards] == [(RAGAS.key, ("router",))]


def test_definitions_that_judge_other_things_have_no_parts_and_say_so() -> None:
    chunks, rated = subject("deepeval/hallucination"), subject("ragas/response_groundedness")
    group = audit((RAGAS, chunks, rated), *records("q"), {RAGAS.key: {"q": score(RAGAS, "q", CLAIMS)}}, source="x")
    told = {(pair.left, pair.right): pair.why_not or "" for pair in group.groups[0].pairs}
    assert "judge different things" in told[RAGAS.key, chunks.key]
    assert "does not count verdicts on units" in told[RAGAS.key, rated.key]


def test_scores_without_a_value_are_counted_and_grouped_by_what_was_wrong() -> None:
    ids = ("a", "b", "c", "d")
    questions, answers = records(*ids)
    scores = {
        RAGAS.key: {
            "a": Score("a", RAGAS.key, "f", None, "failed", "1 verdicts for 5 claims", native_value=1.0),
            "b": Score("b", RAGAS.key, "f", None, "failed", "2 verdicts for 3 claims", native_value=0.5),
            "c": Score("c", RAGAS.key, "f", None, "not_applicable", "no context"),
            "d": score(RAGAS, "d", CLAIMS),
        }
    }
    group = audit((RAGAS,), questions, answers, scores, source="x").groups[0]
    row = group.rows[0]
    assert (row.n, row.failed, row.not_applicable) == (1, 2, 1)
    assert [(hazard.ids, hazard.native) for hazard in group.hazards] == [(("a", "b"), (0.5, 1.0)), (("c",), None)]


def test_a_judgement_in_several_samples_has_no_parts() -> None:
    questions, answers = records("q")
    sampled = replace(score(RAGAS, "q", CLAIMS), samples=3, value=0.7)
    scores = {RAGAS.key: {"q": sampled}, DEEPEVAL.key: {"q": score(DEEPEVAL, "q", CLAIMS)}}
    group = audit((RAGAS, DEEPEVAL), questions, answers, scores, source="x").groups[0]
    assert group.pairs[0].why is None
    assert group.hazards == ()


@pytest.mark.parametrize("id", [id for id in SCORERS if scorer(id).arithmetic()])
def test_every_formula_stays_in_its_range_and_knows_its_own_words(id: str) -> None:
    measure = scorer(id)
    formula = measure.arithmetic()
    assert formula is not None
    low, high = measure.value_range
    for size in (1, 3):
        for natives in product(formula.native, repeat=size):
            value = formula.combine([formula.native[native] for native in natives])
            assert low <= value <= high
    worst, best = formula.value([formula.credit(None)] * 2)
    assert low <= worst <= best <= high


def test_a_word_that_the_formula_must_know_more_of_is_open_between_what_it_may_mean() -> None:
    formula = DEEPEVAL.formula
    assert formula is not None
    assert formula.credit("not_supported") == (0.0, 1.0)
    assert formula.credit("absent") == (1.0, 1.0)
    assert verdicts("ragas/faithfulness", [("x", "absent")])[0].ours == "not_supported"


def test_verdicts_that_name_no_unit_are_laid_beside_nothing_but_peoples_are_read() -> None:
    ragas, deepeval = subject("ragas/context_recall"), subject("deepeval/contextual_recall")
    questions, answers = records("q")
    own = {
        ragas.key: (Verdict("It rains.", "1", "attributed"), Verdict("It snows.", "0", "not_attributed")),
        deepeval.key: (Verdict("sentence 1 of the reference", "yes", "attributed"),),
    }
    scores = {
        key: {"q": Score("q", key, "f", value, evidence=own[key])}
        for key, value in ((ragas.key, 0.5), (deepeval.key, 1.0))
    }
    (pair,) = audit((ragas, deepeval), questions, answers, scores, source="x").groups[0].pairs
    assert pair.why is None
    assert pair.why_not == "the verdicts of deepeval/contextual_recall do not say which sentence they are about"
    people = {formulas.REFERENCE_CLAIMS: {"q": tuple(Verdict(v.unit, v.ours or "", v.ours) for v in own[ragas.key])}}
    (pair,) = audit((ragas, deepeval), questions, answers, {}, source="x", people=people).groups[0].pairs
    assert pair.why is not None
    assert pair.why.formula == 0.0


def test_an_epsilon_in_a_formula_is_no_order() -> None:
    ids = ("a", "b", "c")
    ragas, deepeval = subject("ragas/context_precision"), subject("deepeval/contextual_precision")
    # 1, 2 and no useful chunk, all ranked first: Ragas 1 / (1 + 1e-10), 2 / (2 + 1e-10) and 0, DeepEval 1, 1 and 0.
    values = {ragas.key: (1 / (1 + 1e-10), 2 / (2 + 1e-10), 0.0), deepeval.key: (1.0, 1.0, 0.0)}
    scores = {
        key: {id: Score(id, key, "f", value) for id, value in zip(ids, found, strict=True)}
        for key, found in values.items()
    }
    (pair,) = audit((ragas, deepeval), *records(*ids), scores, source="x").groups[0].pairs
    assert (pair.spearman, pair.kendall) == (pytest.approx(1.0), pytest.approx(1.0))


def test_a_cosine_is_compared_as_it_is() -> None:
    cosine, graded = subject("ragas/answer_relevancy"), subject("trulens/answer_relevance")
    scores = {cosine.key: {"q": Score("q", cosine.key, "f", 0.3)}, graded.key: {"q": Score("q", graded.key, "f", 1.0)}}
    group = audit((cosine, graded), *records("q"), scores, source="x").groups[0]
    assert group.pairs[0].difference == pytest.approx(0.3 - 1.0)
    assert [row.below for row in group.rows] == [1, 0]


def test_parts_are_shares_of_the_range_whatever_range_and_direction_a_definition_has() -> None:
    formula = RAGAS.formula
    assert formula
    ten = replace(formula, combine=lambda credits: 10 * fmean(credits))
    turned = replace(formula, combine=lambda credits: 1 - fmean(credits))
    out_of_ten = replace(RAGAS, key="mine/ten", id="mine/ten", range=(0.0, 10.0), formula=ten)
    down = replace(RAGAS, key="mine/down", id="mine/down", direction="lower", formula=turned)
    subjects = (DEEPEVAL, out_of_ten, down)
    own = verdicts("ragas/faithfulness", CLAIMS)
    # Three of five claims are supported: 6 of 10, and 0.4 where less is better. DeepEval forgives the absent one: 0.8.
    scores = {
        DEEPEVAL.key: {"q": score(DEEPEVAL, "q", CLAIMS)},
        "mine/ten": {"q": Score("q", "mine/ten", "f", 6.0, evidence=own)},
        "mine/down": {"q": Score("q", "mine/down", "f", 0.4, evidence=own)},
    }
    group = audit(subjects, *records("q"), scores, source="x").groups[0]
    for pair, difference in zip(group.pairs, (0.2, 0.2, 0.0), strict=True):
        assert pair.why is not None
        assert pair.difference == pytest.approx(difference, abs=1e-12)
        assert (pair.why.claims, pair.why.verdicts) == (0.0, 0.0)
        assert pair.why.formula == pytest.approx(difference, abs=1e-12)
    assert group.hazards == ()
    # The cross table has each formula's own values.
    assert group.crosses[0].cells[1] == pytest.approx((0.8, 6.0, 0.4))
    people = {formulas.ANSWER_CLAIMS: {"q": tuple(Verdict(text, word, word) for text, word in CLAIMS)}}
    group = audit(subjects, *records("q"), {}, source="x", people=people).groups[0]
    assert [row.mean for row in group.rows] == pytest.approx([0.8, 6.0, 0.4])
    assert [pair.why.formula for pair in group.pairs if pair.why] == pytest.approx([0.2, 0.2, 0.0])


def test_a_native_word_that_its_formula_does_not_know_counts_in_the_middle() -> None:
    known = verdicts("ragas/faithfulness", [("It rains.", "supported")])
    # 1 and an unknown word, which may count 0 or 1: 0.75.
    odd = Score("q", RAGAS.key, "f", 0.75, evidence=(*known, Verdict("It snows.", "perhaps", None)))
    (view,) = audit([RAGAS], *records("q"), {RAGAS.key: {"q": odd}}, source="x").groups[0].views
    assert [claim.words[RAGAS.key].credit for claim in view.claims] == [1.0, 0.5]


def test_answers_of_several_systems_to_one_question_are_drawn_together() -> None:
    """Twice the same answers are no more evidence: the interval stays, where that of single records would shrink."""
    ids = [f"q{n}" for n in range(20)]
    claims = {id: [("a", "supported" if n % 3 else "absent"), ("b", "supported")] for n, id in enumerate(ids)}
    once = {RAGAS.key: {id: score(RAGAS, id, claims[id]) for id in ids}}
    (alone,) = audit((RAGAS,), *records(*ids), once, source="x").groups[0].rows
    questions, answers = records(*ids)
    both = [replace(each, id=f"{each.id} · {system}") for system in "AB" for each in questions]
    twice = {RAGAS.key: {each.id: score(RAGAS, each.id, claims[each.id.split()[0]]) for each in both}}
    (row,) = (
        audit(
            (RAGAS,),
            both,
            [replace(each, question_id=f"{each.question_id} · {system}") for system in "AB" for each in answers],
            twice,
            source="x",
            systems={each.id: each.id[-1] for each in both},
        )
        .groups[0]
        .rows
    )
    assert (row.n, row.mean) == (40, pytest.approx(alone.mean))
    assert (row.low, row.high) == (pytest.approx(alone.low), pytest.approx(alone.high))
