"""The families of ranking measures, and what is said of libraries that do not give what they should. No library is
imported here; tests/labels/test_conventions.py asks them."""

from __future__ import annotations

from time import perf_counter

import pytest

from adapters.labels import conventions
from adapters.schema import Chunk, Question, Ranked, Record, Span
from runner.audit import rankings
from runner.audit.rankings import families, ranking


def audited(text, relevant, **settings):
    question, record = ranking(text, relevant)
    return {family.name: family for family in families([question], [record], call_libraries=False, **settings)}


def values(text, relevant, **settings):
    found = audited(text, relevant, **settings).values()
    return {reading.definition: reading.mean for family in found for reading in family.readings}


def test_the_example_of_five_places_and_three_relevant():
    found = values(".R.R.", 3)
    # Hits at ranks 2 and 4, one relevant missed.
    # log2(rank + 1): 1/log2(3) + 1/log2(5) = .6309 + .4307 = 1.0616, ideal 1 + .6309 + .5 = 2.1309.
    # 2002: 1/max(1, log2 2) + 1/log2(4) = 1.5, ideal 1 + 1 + 1/log2(3) = 2.6309.
    # ideal of the two retrieved alone: 1 + .6309 = 1.6309; 2002: 1 + 1 = 2.
    assert found["labels/success"] == 1.0
    assert found["labels/hit_rate_granular"] == found["labels/recall"] == found["labels/recall.unit-chunk"]
    assert found["labels/recall"] == pytest.approx(2 / 3)
    assert found["labels/reciprocal_rank"] == 1 / 2
    assert found["labels/reciprocal_rank_all"] == (1 / 2 + 1 / 4) / 2
    assert found["labels/average_precision"] == pytest.approx((1 / 2 + 2 / 4) / 3)
    assert found["labels/rank_weighted_precision"] == (1 / 2 + 2 / 4) / 2
    assert found["labels/precision"] == found["labels/precision.divide_by-returned"] == 2 / 5
    for gain in ("", ".gain-linear", ".gain-binary"):
        assert found[f"labels/ndcg{gain}"] == pytest.approx(1.0616 / 2.1309, abs=1e-4)
        assert found[f"labels/ndcg{gain}.discount-2002"] == pytest.approx(1.5 / 2.6309, abs=1e-4)
        assert found[f"labels/ndcg{gain}.ideal-retrieved"] == pytest.approx(1.0616 / 1.6309, abs=1e-4)
        assert found[f"labels/ndcg{gain}.discount-2002.ideal-retrieved"] == pytest.approx(1.5 / 2)
    shown = [f"{found[key]:.3f}" for key in ("labels/ndcg", "labels/ndcg.discount-2002", "labels/average_precision")]
    assert shown == ["0.498", "0.570", "0.333"]


def test_grades_part_the_gains():
    found = values("13", 2)
    # Grades 1 then 3. Exponential 1 + 7/log2(3) = 5.4165 of 7 + .6309 = 7.6309; linear 1 + 3/log2(3) = 2.8928 of
    # 3 + .6309 = 3.6309; binary: both relevant, 1.
    assert found["labels/ndcg"] == pytest.approx(5.4165 / 7.6309, abs=1e-4)
    assert found["labels/ndcg.gain-linear"] == pytest.approx(2.8928 / 3.6309, abs=1e-4)
    assert found["labels/ndcg.gain-binary"] == 1.0


def test_a_cutoff_stands_in_every_reading_and_call():
    found = audited(".R", 1, k=5)
    assert all("@5" in reading.definition for family in found.values() for reading in family.readings)
    readings = {reading.definition: reading.mean for reading in found["precision"].readings}
    assert readings == {"labels/precision@5": 1 / 5, "labels/precision@5.divide_by-returned": 1 / 2}
    calls = [convention.call for convention in found["hit rate"].conventions]
    assert 'RelevanceEvaluator(qrels, {"success.5"}).evaluate(run)' in calls


def test_what_stands_in_a_family():
    found = audited(".R.R.", 3)
    assert list(found) == ["hit rate", "recall", "reciprocal rank", "nDCG", "average precision", "precision"]
    assert len(found["nDCG"].readings) == 3 * 2 * 2
    assert len({reading.formula for reading in found["nDCG"].readings}) == 12
    libraries = {convention.library for family in found.values() for convention in family.conventions}
    assert libraries == {
        "trec_eval (pytrec_eval)",
        "ir_measures",
        "ranx",
        "LlamaIndex",
        "TruLens",
        "scikit-learn",
        "Ragas",
        "DeepEval",
    }
    for family in found.values():
        keys = {reading.definition for reading in family.readings}
        for convention in family.conventions:
            assert convention.same_as is None or convention.same_as in keys
            assert (convention.mean, convention.version, convention.n) == (None, None, 0)
            assert convention.source


def test_means_are_over_the_rankings_that_labels_can_judge():
    pairs = [
        ranking("R", 1),
        ranking("..", 1),
        (Question("unlabelled", "?"), Record("unlabelled")),
        # Labelled, and all of it rejected: precision has a value, 0, and nothing else has.
        (Question("rejected", "?", relevant=(Span("d", 0, 1, 0),)), ranking("R", 1)[1]),
    ]
    found = {family.name: family for family in families(*zip(*pairs, strict=True), call_libraries=False)}
    assert [(reading.mean, reading.n) for reading in found["hit rate"].readings] == [(0.5, 2), (0.5, 2)]
    assert [reading.n for reading in found["precision"].readings] == [3, 3]
    assert found["precision"].readings[0].mean == pytest.approx((1 + 0 + 0) / 3)
    assert families([Question("q", "?")], [Record("q")]) == ()


def usage(values, same_as="labels/average_precision"):
    return conventions.Usage(
        "average precision", "a library", "no-such-package", "call()", "as it likes", same_as, "a page, read", values
    )


def convention(monkeypatch, values, pairs, same_as="labels/average_precision"):
    monkeypatch.setattr(rankings, "usages", lambda k, depth: (usage(values, same_as),))
    (found,) = (family for family in families(*zip(*pairs, strict=True)) if family.name == "average precision")
    (convention,) = found.conventions
    return convention


PAIRS = [ranking(".R.R.", 3), ranking("R", 1)]  # average precision 1/3 and 1, rank-weighted 1/2 and 1


def test_a_library_that_gives_what_it_should_keeps_its_definition(monkeypatch):
    found = convention(monkeypatch, lambda listings: [1 / 3, 1.0], PAIRS)
    assert (found.same_as, found.n, found.convention) == ("labels/average_precision", 2, "as it likes")
    assert found.mean == pytest.approx(2 / 3)


def test_a_library_that_gives_something_else_loses_it_and_says_how_far_off(monkeypatch):
    found = convention(monkeypatch, lambda listings: [0.5, 1.0], PAIRS)
    assert found.same_as is None
    assert found.mean == 0.75
    assert found.convention == (
        "as it likes; here 1 of 2 rankings differ from labels/average_precision, by up to 0.167"
    )
    right = convention(monkeypatch, lambda listings: [0.5, 1.0], PAIRS, "labels/rank_weighted_precision")
    assert right.same_as == "labels/rank_weighted_precision"


def test_what_a_library_does_not_answer_is_said(monkeypatch):
    found = convention(monkeypatch, lambda listings: [1 / 3, "ValueError: too short"], PAIRS)
    assert (found.n, found.same_as) == (1, "labels/average_precision")
    assert found.source == "a page, read; no value for 1 of 2 rankings (ValueError: too short)"

    def broken(listings):
        raise RuntimeError("no such measure")

    found = convention(monkeypatch, broken, PAIRS)
    assert (found.mean, found.version, found.n) == (None, None, 0)
    assert found.source == "a page, read; calling it raised RuntimeError: no such measure"

    def absent(listings):
        raise ModuleNotFoundError("No module named 'a_library'")

    assert convention(monkeypatch, absent, PAIRS).source == "a page, read; not installed here"
    assert convention(monkeypatch, None, PAIRS).source == "a page, read"

    def short(listings):
        return [1 / 3]

    assert "raised ValueError" in convention(monkeypatch, short, PAIRS).source


def test_an_exception_or_nan_on_one_ranking_leaves_the_others():
    values = conventions._each(lambda listing: 1 / (len(listing.retrieved) - 1))
    listings = [conventions.listing(*ranking(text, 1)) for text in ("R.", "R", "R..")]
    assert list(values(listings)) == [1.0, "ZeroDivisionError: division by zero", 0.5]
    assert list(conventions._each(lambda listing: float("nan"))(listings[:1])) == ["NaN"]


def test_a_drawn_ranking():
    question, record = ranking(".R2?0", 4)
    grades = {span.doc_id: span.grade for span in question.relevant}
    # Places 1 and 5 are rejected, 4 is judged by nobody, two relevant ones are missed.
    assert grades == {"1": 0, "2": 1, "3": 2, "5": 0, "missed 1": 1, "missed 2": 1}
    assert [place.chunk.doc_id for place in record.reranked] == ["1", "2", "3", "4", "5"]
    assert {chunk.doc_id for chunk in record.labelled} == set(grades)
    assert values("", 2)["labels/recall"] == 0.0
    # Without a number there are as many as are shown.
    assert ranking(".R2?0") == ranking(".R2?0", 2)


@pytest.mark.parametrize(
    ("text", "relevant", "message"),
    [
        (".x", 1, r"'\.x' has 'x' at place 2; a place is '\.' \(not relevant\), 'R' or a digit"),
        ("R²", 2, r"has '²' at place 2"),
        ("RR", 1, r"'RR' shows 2 relevant of 1 in all; give as many as there are, at least 2"),
        ("..", 0, r"shows 0 relevant of 0 in all; give as many as there are, at least 1"),
        ("..", None, r"shows 0 relevant of 0 in all; give as many as there are, at least 1"),
    ],
)
def test_what_cannot_be_a_ranking(text, relevant, message):
    with pytest.raises(ValueError, match=message):
        ranking(text, relevant)


def test_a_repeat_and_a_passage_that_no_chunk_holds():
    # Chunk a twice, then b; the passage of c is more than twice its chunk, so nothing holds it: 2 of 3 can be found.
    spans = (Span("a", 0, 10), Span("b", 0, 10), Span("c", 0, 30))
    chunks = [Chunk("a", 0, 10, "x" * 10), Chunk("a", 0, 10, "x" * 10), Chunk("b", 0, 10, "x" * 10)]
    places = tuple(Ranked(chunk, -float(rank), rank) for rank, chunk in enumerate(chunks, 1))
    labelled = (*chunks[1:], Chunk("c", 0, 10, "x" * 10))
    listed = conventions.listing(Question("q", "?", relevant=spans), Record("q", reranked=places, labelled=labelled))
    assert listed.retrieved == ("a[0:10]", "a[0:10]", "b[0:10]")
    assert listed.grades == {"a[0:10]": 1, "b[0:10]": 1, "not retrieved 1": 1}


def test_a_thousand_rankings_take_seconds():
    pairs = [ranking("".join(".R?2"[(number >> place) % 4] for place in range(10)), 11) for number in range(1000)]
    start = perf_counter()
    found = families(*zip(*pairs, strict=True), call_libraries=False)
    assert found[0].readings[0].n == 1000
    # 1.7 s alone on one core; the bound leaves room for a busy machine.
    assert perf_counter() - start < 20
