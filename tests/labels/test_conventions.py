"""Every library that is installed is asked, on random rankings, for what it is said to compute. This file imports
Ragas, DeepEval, TruLens and scikit-learn."""

from __future__ import annotations

import random

import pytest
from rankings import labelled, ranked

from adapters.base import Unavailable, scorer
from adapters.labels.conventions import AVERAGE_PRECISION, FAMILIES, NDCG, Listing, Usage, listing, usages
from runner.audit.rankings import families, ranking

DEPTH = 14
CUTOFFS = (None, 1, 3, 10, 20)


def random_pairs(count=150, seed=7):
    """Graded 0 to 3 with at least one relevant, some unjudged, some missed, some lists empty, none with a repeat."""
    draw = random.Random(seed)
    documents = [f"d{number:02}" for number in range(DEPTH)]
    pairs = []
    for _ in range(count):
        grades = {document: draw.choice((0, 1, 1, 2, 3)) for document in draw.sample(documents, draw.randint(1, 9))}
        grades[draw.choice(documents)] = draw.randint(1, 3)
        question = labelled(grades)
        pairs.append((question, ranked(draw.sample(documents, draw.randint(0, DEPTH)), question)))
    return pairs


PAIRS = random_pairs()
LISTINGS = [listing(*pair) for pair in PAIRS]


def otherwise(usage: Usage, listed: Listing, k: int | None) -> float | str | None:
    """What it gives where it does not give what its definition does: "no number", a number; None = it does."""
    if not listed.retrieved and (usage.library in ("scikit-learn", "LlamaIndex") or "precision_at_k" in usage.call):
        return "no number"
    if usage.call.startswith("ndcg_score") and len(listed.retrieved) < 2:
        return "no number"
    if usage.call.startswith("label_ranking") and not any(listed.cut(k).along):
        return 1.0
    return None


def asked(usage: Usage, listings=LISTINGS):
    if usage.values is None:
        pytest.skip(f"{usage.library} is not asked: {usage.source}")
    try:
        return list(usage.values(listings))
    except (ImportError, Unavailable):
        pytest.skip(f"{usage.library} is not installed")


def readings(key, pairs=PAIRS):
    return [scorer(key).score(*pair).value for pair in pairs]


NAMED = [
    pytest.param(number, id=f"{usage.library}-{usage.call}".replace(" ", ""))
    for number, usage in enumerate(usages(None, DEPTH))
    if usage.values
]


@pytest.mark.parametrize("number", NAMED)
def test_a_library_gives_what_the_definition_gives_that_it_is_said_to_equal(number):
    compared = 0
    for k in CUTOFFS:
        usage = usages(k, DEPTH)[number]
        if usage.same_as is None or (usage.library == "TruLens" and usage.family == NDCG and k is None):
            continue  # each has a test of its own below
        for listed, theirs, ours in zip(LISTINGS, asked(usage), readings(usage.same_as), strict=True):
            exception = otherwise(usage, listed, k)
            if exception is None:
                assert theirs == pytest.approx(ours, abs=1e-9), (usage.call, listed)
                compared += 1
            elif exception == "no number":
                assert isinstance(theirs, str), (usage.call, listed)
            else:
                assert theirs == exception != ours, (usage.call, listed)
    assert compared > 100


def test_every_usage_names_a_definition_of_its_family():
    for k in CUTOFFS:
        for usage in usages(k, DEPTH):
            keys = {scorer({**member, "k": k}).key for member in FAMILIES[usage.family]}
            assert usage.same_as is None or usage.same_as in keys, usage.call


def one(library, family, k=None):
    (usage,) = (usage for usage in usages(k, DEPTH) if (usage.library, usage.family) == (library, family))
    return usage


def test_the_ideal_of_trulens_without_k_is_as_long_as_the_list():
    usage = one("TruLens", NDCG)
    apart = []
    for listed, theirs, ours in zip(LISTINGS, asked(usage), readings(usage.same_as), strict=True):
        if not listed.retrieved:
            assert theirs == "NaN"
        elif len(listed.retrieved) >= len(listed.relevant):
            assert theirs == pytest.approx(ours, abs=1e-9)
        else:
            apart.append(theirs - ours)
    # A shorter ideal is never a larger one.
    assert apart
    assert min(apart) >= 0
    assert max(apart) > 0.1
    # One relevant of two, alone and first: all that a list of one can have. Over two: 1 / (1 + 1/log2(3)) = .613.
    (alone,) = usage.values([Listing(("a",), {"a": 1, "b": 1})])
    assert alone == 1.0
    (with_k,) = one("TruLens", NDCG, 2).values([Listing(("a",), {"a": 1, "b": 1})])
    assert with_k == pytest.approx(0.6131472)


def test_the_ideal_of_llama_index_is_not_cut():
    # A list of two, the second relevant, of three expected: .6309 / (1 + .6309 + .5) = .2961. Cut at 2 it is
    # .6309 / 1.6309 = .3869.
    usage = one("LlamaIndex", NDCG, 2)
    assert usage.same_as is None
    (value,) = asked(usage, [Listing(("x", "a", "b"), {"a": 1, "b": 1, "c": 1})])
    assert value == pytest.approx(0.2960819)


def test_llama_index_counts_repeats():
    granular = next(usage for usage in usages(None, 2) if "use_granular_hit_rate" in usage.call)
    assert asked(granular, [Listing(("a", "a"), {"a": 1})]) == [2.0]


def test_a_claim_that_is_wrong_does_not_hold_on_the_same_rankings():
    """Average precision as scikit-learn computes it is not that of trec_eval, whatever its name says."""
    usage = next(usage for usage in usages(None, DEPTH) if usage.call.startswith("average_precision_score"))
    theirs, ours = asked(usage), readings("labels/average_precision")
    assert usage.family == AVERAGE_PRECISION
    assert any(abs(a - b) > 0.1 for a, b in zip(theirs, ours, strict=True) if not isinstance(a, str))


def test_trec_eval_leaves_out_a_query_that_ir_measures_counts_as_0():
    pytrec_eval, ir_measures = pytest.importorskip("pytrec_eval"), pytest.importorskip("ir_measures")
    qrels, run = {"a": {"x": 1}, "b": {"y": 1}}, {"a": {"x": 1.0}}
    assert set(pytrec_eval.RelevanceEvaluator(qrels, {"recip_rank"}).evaluate(run)) == {"a"}
    assert ir_measures.calc_aggregate([ir_measures.RR], qrels, run) == {ir_measures.RR: 0.5}


def test_what_a_listing_is_made_of():
    # Retrieved: grade 2, rejected, unjudged; not retrieved: a grade 3, and a rejected one, which plays no part.
    question = labelled({"a": 2, "b": 0, "c": 3, "z": 0})
    listed = listing(question, ranked(["a", "b", "n"], question))
    assert listed.retrieved == ("a[0:10]", "b[0:10]", "n[0:10]")
    assert listed.along == [2, 0, 0]
    assert listed.grades == {"a[0:10]": 2, "b[0:10]": 0, "not retrieved 1": 3}
    assert listed.relevant == ["a[0:10]", "not retrieved 1"]


def test_one_name_and_several_values_of_one_ranking():
    # .R.R. of three relevant. Average precision (1/2 + 2/4) / 3, or / 2 of those found; nDCG 1.0616 / 2.1309 with all
    # three in the ideal, 1.0616 / 1.6309 with the two retrieved.
    found = {family.name: family for family in families(*([part] for part in ranking(".R.R.", 3)))}
    given = {
        (family.name, convention.library): f"{convention.mean:.3f}"
        for family in found.values()
        for convention in family.conventions
        if convention.mean is not None
    }
    expected = {
        ("average precision", "trec_eval (pytrec_eval)"): "0.333",
        ("average precision", "scikit-learn"): "0.500",
        ("average precision", "Ragas"): "0.500",
        ("average precision", "DeepEval"): "0.500",
        ("nDCG", "ir_measures"): "0.498",
        ("nDCG", "TruLens"): "0.498",
        ("nDCG", "scikit-learn"): "0.651",
        ("reciprocal rank", "TruLens"): "0.500",
    }
    assert {name: value for name, value in given.items() if name in expected} == {
        name: value for name, value in expected.items() if name in given
    }
    assert ("average precision", "scikit-learn") in given
    for family in found.values():
        for convention in family.conventions:
            if convention.mean is not None:
                assert convention.n == 1
                assert convention.version


@pytest.mark.slow
@pytest.mark.parametrize("k", [None, 3, 20])
def test_ranx(k):
    ranx = pytest.importorskip("ranx")
    for usage in usages(k, DEPTH):
        if usage.library != "ranx":
            continue
        measure = usage.call.split('"')[1]
        qrels = ranx.Qrels({f"q{number:03}": dict(listed.grades) for number, listed in enumerate(LISTINGS)})
        run = ranx.Run(
            {
                f"q{number:03}": {id: -float(rank) for rank, id in enumerate(listed.retrieved)}
                for number, listed in enumerate(LISTINGS)
            }
        )
        ranx.evaluate(qrels, run, measure, make_comparable=True)
        theirs = [run.scores[measure][f"q{number:03}"] for number in range(len(LISTINGS))]
        assert theirs == pytest.approx(readings(usage.same_as), abs=1e-9), usage.call
