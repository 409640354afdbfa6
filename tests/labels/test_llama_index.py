"""What LlamaIndex's own tests record (0f3f958), call by call."""

from __future__ import annotations

import json

import pytest
from rankings import labelled, ranked, score, value

DEFINITIONS = {
    ("hit_rate", False): ("success", {}),
    ("hit_rate", True): ("hit_rate_granular", {}),
    ("mrr", False): ("reciprocal_rank", {}),
    ("mrr", True): ("reciprocal_rank_all", {}),
    ("precision", False): ("precision", {}),
    ("recall", False): ("recall", {}),
    ("ap", False): ("average_precision", {}),
    ("ndcg", False): ("ndcg", {}),
}


def calls(shared_data):
    return [json.loads(line) for line in shared_data("data/llama_index/cases.jsonl").open()]


@pytest.mark.parametrize("unit", ["chunk", "document"])
def test_every_recorded_value(unit, shared_data):
    seen = set()
    for call in calls(shared_data):
        if "raises" in call:
            continue
        name = call["metric"], call["options"].get("granular", False)
        definition, parameters = DEFINITIONS[name]
        if call["metric"] == "ndcg":
            parameters = {"gain": call["options"]["mode"]}
        question = labelled(dict.fromkeys(call["expected_ids"], 1))
        got = value(definition, question, ranked(call["retrieved_ids"], question), unit=unit, **parameters)
        assert got == pytest.approx(call["score"], abs=1e-12), call
        seen.add(name)
    assert seen == set(DEFINITIONS)


def test_where_llama_index_raises_a_status_says_why(shared_data):
    raising = [call for call in calls(shared_data) if "raises" in call]
    assert [(bool(call["expected_ids"]), bool(call["retrieved_ids"])) for call in raising] == [
        (False, True),
        (True, False),
        (False, False),
    ]
    # No ids expected: nothing can be said. Ids expected and none retrieved: that is a 0, or hard questions drop out.
    assert score("recall", labelled({}), ranked("a")).status == "not_applicable"
    assert value("recall", labelled({"a": 1}), ranked("")) == 0.0


def test_granular_hit_rate_does_not_pass_one_on_repeats():
    # LlamaIndex: 2 hits / 1 expected = 2.0.
    question = labelled({"a": 1})
    assert value("hit_rate_granular", question, ranked("aa", question)) == 1.0


def test_ndcg_with_a_cutoff_caps_the_ideal_where_llama_index_does_not():
    # The recorded call ["id5", "id1"] of four expected gives .2463; at k = 2 only two can be found: .6309/1.6309.
    question = labelled(dict.fromkeys(("id1", "id2", "id3", "id4"), 1))
    record = ranked(["id5", "id1"], question)
    assert value("ndcg", question, record) == pytest.approx(0.24630238874073)
    assert value("ndcg", question, record, k=2) == pytest.approx(0.3868528)
