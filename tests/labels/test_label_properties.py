"""What must hold of every ranking, whatever it holds."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rankings import chunk, labelled, ranked, ranking, score, steady, value

from adapters.base import SCORERS, scorer
from adapters.schema import Question, Record, Span

RANKING_DEFINITIONS = (
    "recall",
    "hit_rate_granular",
    "success",
    "precision",
    "reciprocal_rank",
    "reciprocal_rank_all",
    "average_precision",
    "rank_weighted_precision",
    "ndcg",
)
SPAN_DEFINITIONS = ("span_recall", "span_precision", "span_iou")
NAMES = [f"d{number}" for number in range(8)]
GRADES = st.dictionaries(st.sampled_from(NAMES), st.integers(0, 3), min_size=1).filter(lambda g: any(g.values()))
DOCUMENTS = st.lists(st.sampled_from(NAMES), unique=True, min_size=1)
CUTOFFS = st.none() | st.integers(1, 10)
PLACES = st.tuples(st.sampled_from("ab"), st.integers(0, 30), st.integers(1, 30))
CHUNKS = st.lists(PLACES.map(lambda p: chunk(p[0], p[1], p[1] + p[2])), max_size=8)
SPANS = st.lists(st.tuples(PLACES, st.integers(0, 3)), min_size=1, max_size=5).map(
    lambda drawn: tuple(Span(doc_id, start, start + size, grade) for (doc_id, start, size), grade in drawn)
)
PARAMETERS = st.fixed_dictionaries(
    {
        "unit": st.sampled_from(["chunk", "document"]),
        "min_grade": st.integers(1, 3),
        "min_cover": st.sampled_from([0.0, 0.5, 1.0]),
        "cover_of": st.sampled_from(["span", "smaller"]),
        "judged_only": st.booleans(),
        "k": CUTOFFS,
    }
)


@steady
@given(spans=SPANS, chunks=CHUNKS, more=CHUNKS, parameters=PARAMETERS)
def test_values_stay_in_range(spans, chunks, more, parameters):
    """Overlapping chunks, repeats, overlapping labels, with and without Record.labelled."""
    question = Question("q", "?", relevant=spans)
    for labelled_chunks in ((), tuple(chunks + more)):
        record = Record("q", reranked=ranking(chunks), labelled=labelled_chunks)
        for definition in RANKING_DEFINITIONS:
            result = score(definition, question, record, **parameters)
            assert result.value is None or 0 <= result.value <= 1, definition
            assert len(result.evidence) <= len(chunks[: parameters["k"]])
        for ideal in ("judged", "retrieved"):
            for discount in ("log2", "2002"):
                result = score("ndcg", question, record, ideal=ideal, discount=discount, **parameters)
                assert result.value is None or 0 <= result.value <= 1
        for definition in (*SPAN_DEFINITIONS, "span_precision_omega", "judged"):
            result = score(definition, question, record)
            assert result.value is None or 0 <= result.value <= 1, definition


@steady
@given(spans=SPANS, chunks=CHUNKS, unit=st.sampled_from(["passage", "chunk", "document"]))
def test_what_is_found_never_falls_with_k(spans, chunks, unit):
    question, record = Question("q", "?", relevant=spans), Record("q", reranked=ranking(chunks))
    for definition, parameters in [("recall", {"unit": unit}), ("span_recall", {}), ("success", {})]:
        values = [score(definition, question, record, k=k, **parameters).value for k in range(1, 10)]
        if None not in values:
            assert all(before <= after for before, after in pairwise(values)), definition


@steady
@given(grades=GRADES, documents=DOCUMENTS, k=CUTOFFS, data=st.data())
def test_documents_of_equal_grade_may_change_places(grades, documents, k, data):
    question = labelled(grades)
    first, second = data.draw(st.sampled_from(documents)), data.draw(st.sampled_from(documents))
    if grades.get(first) != grades.get(second):
        return
    swap = {first: second, second: first}
    swapped = [swap.get(document, document) for document in documents]
    for definition in RANKING_DEFINITIONS:
        before, after = (value(definition, question, ranked(order, question), k=k) for order in (documents, swapped))
        assert before == after, definition


@steady
@given(grades=GRADES, documents=DOCUMENTS)
def test_irrelevant_chunks_at_the_end_change_only_what_divides_by_the_list(grades, documents):
    question = labelled(grades)
    longer = [*documents, "irrelevant", "off"]
    for definition in (*RANKING_DEFINITIONS, "span_recall"):
        before, after = (value(definition, question, ranked(order, question)) for order in (documents, longer))
        assert after < before or before == 0 if definition == "precision" else after == before, definition


@steady
@given(grades=GRADES, documents=DOCUMENTS, k=CUTOFFS, unit=st.sampled_from(["chunk", "document"]), data=st.data())
def test_a_repeat_never_raises_a_value(grades, documents, k, unit, data):
    question = labelled(grades)
    at = data.draw(st.integers(1, len(documents)))
    again = data.draw(st.sampled_from(documents[:at]))
    inserted = [*documents[:at], again, *documents[at:]]
    for definition in (*RANKING_DEFINITIONS, "judged"):
        before, after = (
            value(definition, question, ranked(d, question), k=k, unit=unit) for d in (documents, inserted)
        )
        # Granular MRR rises when a late hit leaves the top k, repeats or not: see its card.
        if k is None or definition not in ("reciprocal_rank_all", "rank_weighted_precision"):
            assert after <= before, definition
    for definition in SPAN_DEFINITIONS:
        before, after = (value(definition, question, ranked(d, question)) for d in (documents, inserted))
        assert after <= before, definition


@steady
@given(grades=GRADES, documents=DOCUMENTS, k=CUTOFFS, data=st.data())
def test_a_repeat_among_chunks_is_worth_no_more_than_a_stranger(grades, documents, k, data):
    question = labelled(grades)
    at = data.draw(st.integers(1, len(documents)))
    with_repeat = [*documents[:at], data.draw(st.sampled_from(documents[:at])), *documents[at:]]
    with_stranger = [*documents[:at], "stranger", *documents[at:]]
    for definition in (*RANKING_DEFINITIONS, "judged"):
        repeat, stranger = (value(definition, question, ranked(d, question), k=k) for d in (with_repeat, with_stranger))
        assert repeat == stranger, definition


@pytest.mark.parametrize("definition", [name for name in SCORERS if name.startswith("labels/")])
def test_every_card_is_complete(definition):
    card = scorer(definition).definition
    assert card.id == definition
    assert card.framework == "labels"
    for prose in (card.asks, card.unit, card.hit, card.formula, card.nothing_to_judge, card.source):
        assert len(prose) > 4
    assert any(year in card.source for year in ("19", "20"))
    assert card.hazards
    kind = type(scorer(definition))
    assert all(field.description for field in kind.model_fields.values())
