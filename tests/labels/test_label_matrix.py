"""What every labels/* definition says of records that give it little to judge; one that is not listed fails."""

from __future__ import annotations

from time import perf_counter

import pytest
from rankings import chunk, labelled, ranked, ranking

from adapters.base import SCORERS, scorer
from adapters.schema import Question, Record, Span

LABELS = sorted(name for name in SCORERS if name.startswith("labels/"))
NA = None
ANSWERED = {"answer": "yes", "refused": False}
SITUATIONS = {
    "unlabelled": (Question("q", "?"), ranked("a", **ANSWERED)),
    "empty_labels": (labelled({}), ranked("a", **ANSWERED)),
    "only_grade_0": (labelled({"a": 0}), ranked("a", labelled({"a": 0}), **ANSWERED)),
    "nothing_retrieved": (labelled({"a": 1}), ranked("", labelled({"a": 1}), **ANSWERED)),
    "error": (labelled({"a": 1}), Record("q", error="the server did not answer")),
    "fewer_than_k": (labelled({"a": 1}), ranked("a", labelled({"a": 1}), **ANSWERED)),
    "refused": (labelled({"a": 1}, reference_answer="yes"), ranked("xa", refused=True)),
    "error_with_reference": (labelled({"a": 1}, reference_answer="yes"), Record("q", error="timed out")),
    "unanswerable": (labelled({}, answerable=False, reference_answer="no"), ranked("a", refused=True)),
}
# The value at k = 5 where there is a k; NA = not applicable.
FINDS = (NA, NA, NA, 0.0, 0.0, 1.0)
EXPECTED = {
    # unlabelled, empty labels, only grade 0, nothing retrieved, error, fewer than k; refused, error, unanswerable
    "labels/recall": (*FINDS, 1.0, 0.0, NA),
    "labels/hit_rate_granular": (*FINDS, 1.0, 0.0, NA),
    "labels/success": (*FINDS, 1.0, 0.0, NA),
    "labels/precision": (NA, NA, 0.0, 0.0, 0.0, 0.2, 0.2, 0.0, NA),
    "labels/reciprocal_rank": (*FINDS, 0.5, 0.0, NA),
    "labels/reciprocal_rank_all": (*FINDS, 0.5, 0.0, NA),
    "labels/average_precision": (*FINDS, 0.5, 0.0, NA),
    "labels/rank_weighted_precision": (*FINDS, 0.5, 0.0, NA),
    "labels/ndcg": (*FINDS, 0.6309, 0.0, NA),
    "labels/judged": (NA, NA, 1.0, NA, NA, 1.0, 0.5, NA, NA),
    "labels/span_recall": (*FINDS, 1.0, 0.0, NA),
    "labels/span_precision": (*FINDS, 0.5, 0.0, NA),
    "labels/span_iou": (*FINDS, 0.5, 0.0, NA),
    "labels/span_precision_omega": (NA, NA, NA, 1.0, NA, 1.0, NA, NA, NA),
    "labels/refusal_rate": (NA, NA, NA, NA, NA, NA, NA, NA, 1.0),
    "labels/false_refusal_rate": (0.0, 0.0, 0.0, 0.0, NA, 0.0, 1.0, NA, NA),
    "labels/answer_f1": (NA, NA, NA, NA, NA, NA, 0.0, 0.0, NA),
    "labels/answer_precision": (NA, NA, NA, NA, NA, NA, 0.0, 0.0, NA),
    "labels/answer_recall": (NA, NA, NA, NA, NA, NA, 0.0, 0.0, NA),
    "labels/answer_exact_match": (NA, NA, NA, NA, NA, NA, 0.0, 0.0, NA),
}


def test_no_definition_is_forgotten():
    assert sorted(EXPECTED) == LABELS


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("name", LABELS)
def test_no_surprises(name, situation):
    question, record = SITUATIONS[situation]
    takes_k = "k" in type(scorer(name)).model_fields
    result = scorer({"id": name, "k": 5} if takes_k else name).score(question, record)
    expected = EXPECTED[name][list(SITUATIONS).index(situation)]
    if expected is NA:
        assert result.status == "not_applicable"
        assert result.reason
    else:
        assert result.status == "computed"
        assert result.value == pytest.approx(expected, abs=0.0001)
        if takes_k:
            assert ("asked 5, got" in result.reason) is bool(record.reranked)
            assert ("nothing retrieved" in result.reason) is not bool(record.reranked)


def test_ten_thousand_scores_take_less_than_two_seconds():
    text = "x" * 800
    questions = [
        (
            Question(f"q{n}", "?", "a few words", relevant=(Span(f"d{n}", 100, 260, 2), Span(f"d{n}", 900, 960))),
            Record(
                f"q{n}",
                reranked=ranking(chunk(f"d{n + place % 3}", 700 * place, 700 * place + 800) for place in range(10)),
                labelled=(chunk(f"d{n}", 0, 800), chunk(f"d{n}", 700, 1500)),
                answer=text,
                refused=False,
            ),
        )
        for n in range(500)
    ]
    scorers = [scorer({"id": name, "k": 10} if "k" in type(scorer(name)).model_fields else name) for name in LABELS]
    assert len(scorers) == 20
    started = perf_counter()
    scores = [each.score(question, record) for each in scorers for question, record in questions]
    seconds = perf_counter() - started
    assert len(scores) == 10_000
    assert seconds < 2, f"{seconds:.2f} s"
