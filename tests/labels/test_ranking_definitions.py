"""Values worked out by hand, and the bug reports of people who do this job."""

from __future__ import annotations

from math import log2
from statistics import mean

import pytest
from pydantic import ValidationError
from rankings import chunk, drawn, labelled, ranked, ranking, score, value

from adapters.base import UnknownDefinition, scorer
from adapters.labels.ranking import NDCG
from adapters.schema import Chunk, Question, Record, Span

UNITS = ("chunk", "document")


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(
    ("pattern", "k", "expected"),
    [
        # Hits at 2 and 4, 3 relevant. P 2/5; R 2/3; RR 1/2; all RR (1/2 + 1/4)/2; AP (1/2 + 2/4)/3; RWP (1/2 + 2/4)/2;
        # nDCG (1/log2 3 + 1/log2 5) / (1 + 1/log2 3 + 1/log2 4) = 1.0616/2.1309;
        # 2002: (1/1 + 1/log2 4) / (1 + 1 + 1/log2 3) = 1.5/2.6309.
        pytest.param(
            ".R.R.",
            5,
            {
                "precision": 0.400,
                "recall": 0.667,
                "hit_rate_granular": 0.667,
                "success": 1.0,
                "reciprocal_rank": 0.500,
                "reciprocal_rank_all": 0.375,
                "average_precision": 0.333,
                "rank_weighted_precision": 0.500,
                "ndcg": 0.498,
                "ndcg 2002": 0.570,
            },
            id="two-of-three",
        ),
        # Only the hit at 2 is left. P 1/3; R 1/3; AP (1/2)/3; RWP (1/2)/1; nDCG (1/log2 3)/2.1309.
        pytest.param(
            ".R.R.",
            3,
            {
                "precision": 0.333,
                "recall": 0.333,
                "reciprocal_rank": 0.500,
                "ndcg": 0.296,
                "average_precision": 0.167,
                "rank_weighted_precision": 0.500,
            },
            id="its-top-3",
        ),
        # Reranked: hits at 1 and 2. AP (1 + 1)/3; RWP (1 + 1)/2; nDCG (1 + 1/log2 3)/2.1309.
        pytest.param(
            "RR...",
            5,
            {
                "precision": 0.400,
                "recall": 0.667,
                "reciprocal_rank": 1.000,
                "ndcg": 0.765,
                "average_precision": 0.667,
                "rank_weighted_precision": 1.000,
            },
            id="reranked",
        ),
        # Cut at 1, everything found is right, and two thirds are missing: AP 1/3, but nDCG and RWP know no better.
        pytest.param(
            "RR...",
            1,
            {
                "precision": 1.0,
                "recall": 0.333,
                "average_precision": 0.333,
                "rank_weighted_precision": 1.0,
                "ndcg": 1.0,
            },
            id="its-top-1",
        ),
    ],
)
def test_worked_rankings(pattern, k, expected, unit):
    question, record = drawn(pattern, relevant=3)
    for name, wanted in expected.items():
        definition, _, discount = name.partition(" ")
        parameters = {"discount": discount} if discount else {}
        got = value(definition, question, record, k=k, unit=unit, **parameters)
        assert got == pytest.approx(wanted, abs=0.0005), name


def test_means_over_six_questions():
    # P@5 (2+1+1+2+0+3)/30; R@5 (2/3 + 1 + 1 + 1 + 0 + 1)/6; hit 5/6; MRR (1/2 + 1 + 1/5 + 1 + 0 + 1)/6;
    # nDCG (.498 + 1 + 1/log2 6 + 1 + 0 + (1 + 1/2 + 1/log2 6)/2.1309)/6.
    drawings = [(".R.R.", 3), ("R....", 1), ("....R", 1), ("RR...", 2), (".....", 1), ("R.R.R", 3)]
    expected = {"precision": 0.300, "recall": 0.778, "success": 0.833, "reciprocal_rank": 0.617, "ndcg": 0.628}
    for definition, wanted in expected.items():
        got = mean(value(definition, *drawn(*drawing), k=5) for drawing in drawings)
        assert got == pytest.approx(wanted, abs=0.0005), definition


def test_graded_ndcg_takes_its_ideal_from_all_that_is_judged():
    # DCG 3/1 + 1/log2 3 = 3.6309; ideal of {2, 2, 1}: 3/1 + 3/log2 3 + 1/log2 4 = 5.3928.
    question = labelled({"a": 2, "b": 1, "c": 0, "missed": 2})
    record = ranked("abc", question)
    assert value("ndcg", question, record, k=3) == pytest.approx(0.673, abs=0.0005)
    assert value("ndcg", question, record, k=3, ideal="retrieved") == 1.0
    # Linear: (2 + 1/log2 3) / (2 + 2/log2 3 + 1/2); binary: (1 + 1/log2 3) / (1 + 1/log2 3 + 1/2).
    linear = (2 + 1 / log2(3)) / (2 + 2 / log2(3) + 0.5)
    assert value("ndcg", question, record, k=3, gain="linear") == pytest.approx(linear)
    assert value("ndcg", question, record, k=3, gain="binary") == pytest.approx(0.765, abs=0.0005)


def test_four_questions_with_grades_one_of_them_without_anything_relevant():
    qrels = {"q1": {"a": 2, "b": 1}, "q2": {"c": 1}, "q3": {"d": 2, "e": 2, "f": 1}, "q4": {"g": 0}}
    run = {"q1": "xaybz", "q2": "vwxyz", "q3": "dfxye", "q4": "gwxyz"}
    questions = {name: labelled(grades) for name, grades in qrels.items()}
    scores = {
        definition: [
            score(definition, question, ranked(run[name], question), k=5) for name, question in questions.items()
        ]
        for definition in ("recall", "reciprocal_rank", "ndcg")
    }
    # nDCG: q1 (3/log2 3 + 1/log2 5)/(3 + 1/log2 3) = .6399; q2 0; q3 (3 + 1/log2 3 + 3/log2 6)/5.3928 = .8885.
    for definition, wanted in {"recall": 0.667, "reciprocal_rank": 0.5, "ndcg": 0.509}.items():
        values = [result.value for result in scores[definition] if result.value is not None]
        assert len(values) == 3, definition
        assert mean(values) == pytest.approx(wanted, abs=0.0005), definition
        assert scores[definition][3].status == "not_applicable"
        assert "relevant" in scores[definition][3].reason


def test_case_17_a_document_ranked_twice_counts_once():
    for grades in ((Span("d1", 0, 10),), (Span("d1", 0, 10), Span("d1", 0, 10))):
        question = Question("q", "?", relevant=grades)
        record = ranked(["d1", "d1", "d2"], question)
        for unit in UNITS:
            assert value("recall", question, record, k=3, unit=unit) == 1.0
            assert value("hit_rate_granular", question, record, k=3, unit=unit) == 1.0
            assert value("reciprocal_rank", question, record, k=3, unit=unit) == 1.0
            assert value("ndcg", question, record, k=3, unit=unit) == 1.0
            assert value("precision", question, record, k=3, unit=unit) == pytest.approx(1 / 3)
        assert value("recall", question, record, k=3) == 1.0


def test_repeats_keep_their_place_among_chunks_and_vanish_among_documents():
    question = labelled({"d2": 1})
    record = ranked(["d1", "d1", "d2"], question)
    assert value("reciprocal_rank", question, record) == pytest.approx(1 / 3)
    assert value("reciprocal_rank", question, record, unit="document") == pytest.approx(1 / 2)
    assert value("success", question, record, k=2) == 0.0
    assert value("success", question, record, k=2, unit="document") == 1.0
    assert [v.native for v in score("success", question, record).evidence] == ["unjudged", "repeat", "1"]


@pytest.mark.parametrize("other", ["k02", "p31"])
def test_case_20_equal_scores_keep_the_order_of_the_ranking(other):
    question = labelled({"m07": 1})
    tied = tuple(type(r)(r.chunk, 1.0, r.rank) for r in ranking([chunk("m07"), chunk(other)]))
    record = Record("q", reranked=tied)
    assert value("reciprocal_rank", question, record) == 1.0
    assert value("ndcg", question, record, k=2) == 1.0
    assert "never re-sorted" in " ".join(scorer("labels/ndcg").definition.hazards)


def test_case_21_fewer_than_k():
    question = labelled({"a": 1, "b": 1})
    record = ranked("a", question)
    expected = {"precision": 0.2, "recall": 0.5, "ndcg": 0.6131, "reciprocal_rank": 1.0}
    for definition, wanted in expected.items():
        result = score(definition, question, record, k=5)
        assert result.value == pytest.approx(wanted, abs=0.0001), definition
        assert result.reason == "asked 5, got 1"
    # What TruLens does: the divisor is the list.
    assert value("precision", question, record, k=5, divide_by="returned") == 1.0
    assert score("precision", question, record).reason is None


def test_case_23_nothing_retrieved_stays_in_the_mean():
    answered, lost = labelled({"a": 1}), labelled({"b": 1})
    for record in (ranked("", lost), Record("q", error="the server did not answer")):
        expected = {"recall": 0.5, "reciprocal_rank": 0.5, "ndcg": 0.5, "precision": 1 / 6}
        for definition, wanted in expected.items():
            scores = [score(definition, answered, ranked("a", answered), k=3), score(definition, lost, record, k=3)]
            assert mean(result.value for result in scores) == pytest.approx(wanted), definition
            assert scores[1].reason.startswith("nothing retrieved")


def test_an_error_after_retrieval_leaves_the_ranking_its_score():
    question = labelled({"a": 1})
    assert value("recall", question, ranked("a", question, error="the generator timed out")) == 1.0


def test_case_25_all_grades_zero():
    question = labelled({"a": 0})
    record = ranked("a", question)
    for definition in ("recall", "success", "reciprocal_rank", "average_precision", "ndcg", "span_recall", "span_iou"):
        result = score(definition, question, record)
        assert result.status == "not_applicable"
        assert "no relevant passage is labelled" in result.reason
    assert value("precision", question, record, k=1) == 0.0
    unanswerable = labelled({"a": 0}, answerable=False)
    assert score("precision", unanswerable, record, k=1).status == "not_applicable"


def test_case_32_a_chunk_border_cuts_the_passage():
    question = Question("q", "?", relevant=(Span("w", 27, 58),))
    chunks = (chunk("w", 0, 30), chunk("w", 30, 59))
    record = Record("q", reranked=ranking(chunks), labelled=chunks)
    marks = [v.ours for v in score("precision", question, record, min_cover=0.0).evidence]
    assert marks == ["relevant", "relevant"]
    first, second = score("precision", question, record, min_cover=0.5).evidence
    assert (first.unit, first.native, first.ours) == ("w[0:30]", "unjudged", None)
    assert first.reason == "shares 3 of the 31 characters of a label"
    assert (second.unit, second.native, second.ours, second.rank) == ("w[30:59]", "1", "relevant", 2)
    assert value("reciprocal_rank", question, record) == 0.5
    assert value("span_recall", question, record, k=1) == pytest.approx(3 / 31)
    unreachable = score("recall", question, record, min_cover=1.0)
    assert (unreachable.value, unreachable.reason) == (0.0, "no chunk holds 1 of 1 relevant passages")


@pytest.mark.parametrize("definition", ["recall", "average_precision", "ndcg", "success", "precision"])
def test_a_passage_longer_than_the_chunks_is_a_miss_that_says_so(definition):
    question = Question("q", "?", relevant=(Span("long", 0, 900),))
    chunks = tuple(chunk("long", start, start + 300) for start in (0, 300, 600))
    record = Record("q", reranked=ranking(chunks), labelled=chunks)
    result = score(definition, question, record)
    assert (result.value, result.reason) == (0.0, "no chunk holds 1 of 1 relevant passages")
    assert value(definition, question, record, cover_of="smaller") == 1.0
    assert value("span_recall", question, record) == 1.0


def test_an_unreachable_passage_stays_in_the_denominator():
    question = Question("q", "?", relevant=(Span("long", 0, 900), Span("short", 0, 10)))
    chunks = (chunk("short"), chunk("long", 0, 300))
    record = Record("q", reranked=ranking(chunks), labelled=chunks)
    for parameters in ({"unit": "passage"}, {"unit": "chunk"}):
        assert value("recall", question, record, **parameters) == 0.5
    assert value("average_precision", question, record) == 0.5


def test_covering_exactly_the_share_is_enough():
    question = Question("q", "?", relevant=(Span("d", 0, 30),))
    record = Record("q", reranked=ranking([chunk("d", 15, 40)]))
    assert value("recall", question, record) == 1.0
    assert value("recall", question, record, min_cover=0.51) == 0.0


def test_units_of_recall():
    # One chunk holds two passages, two overlapping chunks hold the third; the last document is not found.
    spans = (Span("a", 0, 5), Span("a", 5, 10), Span("b", 4, 8), Span("c", 0, 5))
    question = Question("q", "?", relevant=spans)
    found = (chunk("a"), chunk("b", 0, 10))
    record = Record("q", reranked=ranking(found), labelled=(*found, chunk("b", 2, 12), chunk("c")))
    assert value("recall", question, record) == pytest.approx(3 / 4)
    assert value("recall", question, record, unit="chunk") == pytest.approx(2 / 4)
    assert value("recall", question, record, unit="document") == pytest.approx(2 / 3)


def test_which_list_is_judged():
    question = labelled({"a": 1})
    record = Record(
        "q",
        retrieved=ranking([chunk("x"), chunk("y"), chunk("a")]),
        reranked=ranking([chunk("x"), chunk("a")]),
        context=(chunk("a"), chunk("x")),
    )
    got = {
        name: value("reciprocal_rank", question, record, ranking=name) for name in ("retrieved", "reranked", "context")
    }
    assert got == {"retrieved": pytest.approx(1 / 3), "reranked": 0.5, "context": 1.0}


def test_min_grade_and_unjudged():
    question = labelled({"a": 1, "b": 2, "c": 0})
    record = ranked("xacb", question)
    assert value("reciprocal_rank", question, record) == 0.5
    assert value("reciprocal_rank", question, record, min_grade=2) == 0.25
    assert value("judged", question, record) == 0.75
    assert value("judged", question, record, k=1) == 0.0
    # Condensed: a, c, b.
    assert value("reciprocal_rank", question, record, judged_only=True) == 1.0
    assert value("precision", question, record, k=3, judged_only=True) == pytest.approx(2 / 3)
    nothing = score("recall", question, ranked("xyz", question), judged_only=True)
    assert (nothing.value, nothing.reason) == (0.0, "nothing judged among what was retrieved")


def test_a_percentage_taken_for_a_grade_does_not_overflow():
    question = labelled({"a": 2000, "b": 1000})
    record = ranked("ba", question)
    assert "use gain=linear" in score("ndcg", question, record).reason
    assert value("ndcg", question, record, gain="linear") == pytest.approx(0.86, abs=0.005)
    assert value("ndcg", labelled({"a": 1000, "b": 1000}), record) == 1.0


def test_ndcg_variants_of_an_ideal_without_gain():
    question = labelled({"a": 1})
    assert value("ndcg", question, ranked("xy", question), ideal="retrieved") == 0.0


def test_parameters_are_declared_and_change_the_fingerprint():
    fingerprints = {
        scorer({"id": "labels/ndcg", **parameters}).definition.fingerprint
        for parameters in ({}, {"k": 5}, {"gain": "linear"}, {"min_grade": 2}, {"ranking": "context"})
    }
    assert len(fingerprints) == 5
    assert scorer({"id": "labels/recall", "k": 5, "unit": "document"}).key == "labels/recall@5.unit-document"
    with pytest.raises(UnknownDefinition, match="k=0"):
        scorer({"id": "labels/recall", "k": 0})
    with pytest.raises(UnknownDefinition, match="passage"):
        scorer({"id": "labels/precision", "unit": "passage"})
    with pytest.raises(ValidationError):
        NDCG(min_cover=1.5)


def test_a_span_without_characters_is_held_by_nothing():
    question = Question("q", "?", relevant=(Span("a", 3, 3),))
    record = Record("q", reranked=ranking([Chunk("a", 0, 10, "x" * 10)]))
    assert value("recall", question, record) == 0.0
    assert score("span_recall", question, record).status == "not_applicable"
