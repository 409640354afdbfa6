"""Every digit that trec_eval 10.0-rc3 printed for its own test files, and random rankings against its Python ports."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rankings import labelled, ranked, steady, value

# measure of trec_eval -> our definition; nDCG and unjudged ignore -l, the grade from which a document is relevant.
MEASURES = {
    r"P_(\d+)": ("precision", {}),
    r"recall_(\d+)": ("recall", {}),
    r"success_(\d+)": ("success", {}),
    r"map_cut_(\d+)": ("average_precision", {}),
    r"ndcg_cut_(\d+)": ("ndcg", {"gain": "linear", "min_grade": 1}),
    r"map": ("average_precision", {}),
    r"recip_rank": ("reciprocal_rank", {}),
    r"ndcg": ("ndcg", {"gain": "linear", "min_grade": 1}),
    r"set_P": ("precision", {}),
    r"set_recall": ("recall", {}),
}
CASES = ("out.test.aq", "out.test.aqc", "out.test.aqcM", "out.test.aql", "out.test.meas_params")


def read_qrels(path):
    qrels = defaultdict(dict)
    for line in path.read_text().splitlines():
        query, _, document, grade = line.split()
        # trec_eval keeps -1 for documents that are not in the pool.
        if int(grade) >= 0:
            qrels[query][document] = int(grade)
    return {query: labelled(grades) for query, grades in qrels.items()}


def read_run(path, depth):
    run = defaultdict(list)
    for line in path.read_text().splitlines():
        query, _, document, _, score = line.split()[:5]
        run[query].append((float(score), document))
    # trec_eval's rule: by score, then by document id, both descending; the rank column is ignored.
    return {query: [document for _, document in sorted(pairs, reverse=True)[:depth]] for query, pairs in run.items()}


@pytest.mark.parametrize("unit", ["document", "chunk"])
@pytest.mark.parametrize("case", CASES)
def test_every_digit_that_trec_eval_prints(case, unit, shared_data):
    folder = shared_data("data/ir_trec_eval/expected.jsonl").parent
    rows = [row for line in (folder / "expected.jsonl").open() if (row := json.loads(line))["case"] == case]
    options = " ".join(rows[0]["options"])
    depth = int(found[1]) if (found := re.search(r"-M(\d+)", options)) else None
    min_grade = int(found[1]) if (found := re.search(r"-l(\d+)", options)) else 1
    questions, run = read_qrels(folder / rows[0]["qrels"]), read_run(folder / rows[0]["run"], depth)
    records = {query: ranked(run.get(query, []), question) for query, question in questions.items()}
    expected = {row["query"]: row["measures"] for row in rows}
    compared = 0
    for measure in expected["301"]:
        match = next((m for pattern in MEASURES if (m := re.fullmatch(pattern, measure))), None)
        if match is None:
            continue
        definition, parameters = MEASURES[match.re.pattern]
        cutoff = {"k": int(match[1])} if match.groups() else {}
        parameters = {"unit": unit, "min_grade": min_grade, **cutoff, **parameters}
        got = {query: value(definition, questions[query], records[query], **parameters) for query in questions}
        got["all"] = mean(got.values())
        printed = {query: f"{measures[measure]:.4f}" for query, measures in expected.items()}
        assert {query: f"{number:.4f}" for query, number in got.items()} == printed, measure
        compared += 1
    assert compared >= 10


@pytest.mark.parametrize("case", CASES[:4])
def test_counts_of_trec_eval(case, shared_data):
    """num_rel_ret and num_nonrel_judged_ret follow from precision and judged over the whole list."""
    folder = shared_data("data/ir_trec_eval/expected.jsonl").parent
    rows = [row for line in (folder / "expected.jsonl").open() if (row := json.loads(line))["case"] == case]
    depth = 100 if "-M100" in rows[0]["options"] else None
    min_grade = 2 if "-l2" in rows[0]["options"] else 1
    questions, run = read_qrels(folder / rows[0]["qrels"]), read_run(folder / rows[0]["run"], depth)
    for row in rows:
        found, judged = 0.0, 0.0
        # A list of no length holds no documents of any kind.
        for query in run if row["query"] == "all" else run.keys() & {row["query"]}:
            pair = questions[query], ranked(run[query], questions[query])
            found += value("precision", *pair, min_grade=min_grade) * len(run[query])
            judged += value("judged", *pair) * len(run[query])
        assert found == pytest.approx(row["measures"]["num_rel_ret"])
        assert judged - found == pytest.approx(row["measures"]["num_nonrel_judged_ret"])


DOCUMENTS = [f"d{number:02}" for number in range(12)]
RANKINGS = st.lists(st.sampled_from(DOCUMENTS), unique=True, min_size=1)
QRELS = st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(0, 3), min_size=1).filter(lambda q: any(q.values()))


def as_run(documents):
    return {"q": {document: float(len(documents) - rank) for rank, document in enumerate(documents)}}


@steady
@given(documents=RANKINGS, grades=QRELS, k=st.sampled_from([1, 3, 5, 10]))
def test_pytrec_eval_on_random_rankings(documents, grades, k):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    ours = {
        f"P_{k}": ("precision", {"k": k}),
        f"recall_{k}": ("recall", {"k": k}),
        f"success_{k}": ("success", {"k": k}),
        f"map_cut_{k}": ("average_precision", {"k": k}),
        "map": ("average_precision", {}),
        "recip_rank": ("reciprocal_rank", {}),
        f"ndcg_cut_{k}": ("ndcg", {"k": k, "gain": "linear"}),
        "ndcg": ("ndcg", {"gain": "linear"}),
    }
    families = {"P", "recall", "success", "map_cut", "ndcg_cut"}
    names = {f"{n.rpartition('_')[0]}.{k}" if n.rpartition("_")[0] in families else n for n in ours}
    theirs = pytrec_eval.RelevanceEvaluator({"q": grades}, names).evaluate(as_run(documents))["q"]
    question = labelled(grades)
    for name, (definition, parameters) in ours.items():
        for unit in ("chunk", "document"):
            got = value(definition, question, ranked(documents, question), unit=unit, **parameters)
            assert got == pytest.approx(theirs[name], abs=1e-9), name


@steady
@given(documents=RANKINGS, grades=QRELS, k=st.sampled_from([1, 3, 5, 10]))
def test_ir_measures_on_random_rankings(documents, grades, k):
    ir_measures = pytest.importorskip("ir_measures")
    from ir_measures import AP, RR, Judged, P, R, Success, nDCG

    question = labelled(grades)
    ours = {
        P @ k: ("precision", {"k": k}),
        R @ k: ("recall", {"k": k}),
        Success @ k: ("success", {"k": k}),
        AP: ("average_precision", {}),
        RR: ("reciprocal_rank", {}),
        nDCG @ k: ("ndcg", {"k": k, "gain": "linear"}),
        nDCG(cutoff=k, gains={1: 1, 2: 3, 3: 7}): ("ndcg", {"k": k}),
        Judged @ k: ("judged", {"k": k}),
        nDCG(judged_only=True) @ k: ("ndcg", {"k": k, "gain": "linear", "judged_only": True}),
    }
    for measure, (definition, parameters) in ours.items():
        # One by one: asked together, ir_measures 0.4.3 mixes up variants of nDCG with the same cutoff.
        theirs = ir_measures.calc_aggregate([measure], {"q": grades}, as_run(documents))
        got = value(definition, question, ranked(documents, question), **parameters)
        assert got == pytest.approx(theirs[measure], abs=1e-9), str(measure)


@steady
@given(documents=RANKINGS, grades=QRELS, k=st.sampled_from([1, 3, 5, 10]))
def test_scikit_learn_on_random_rankings(documents, grades, k):
    sklearn = pytest.importorskip("sklearn.metrics")
    # scikit-learn's ideal is the best order of what it was given, with linear gain; it needs two documents.
    if len(documents) < 2:
        return
    truth = [[grades.get(document, 0) for document in documents]]
    order = [list(range(len(documents), 0, -1))]
    question = labelled(grades)
    got = value("ndcg", question, ranked(documents, question), k=k, gain="linear", ideal="retrieved")
    assert got == pytest.approx(sklearn.ndcg_score(truth, order, k=k), abs=1e-9)
