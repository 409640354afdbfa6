"""The thresholds: what is refused, in which words, and what a stored run is read with."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.base import SCORERS
from runner.diagnosis.findings import FaultName
from runner.diagnosis.rules import FAULTS, Rules, as_key, check_levers, checked, default_rules, rules_of, untried
from runner.errors import ConfigError
from tests.compare.runs import run

DEFAULT = default_rules().model_dump()


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"burried_from": 4}, "diagnosis.burried_from is not a known key (did you mean diagnosis.buried_from?"),
        ({"buried_from": 1}, "diagnosis.buried_from=1 is not allowed"),
        ({"buried_from": 4.0}, "diagnosis.buried_from=4.0 is not allowed"),
        ({"found_from": 0.0}, "diagnosis.found_from=0.0 is not allowed"),
        ({"min_cover": float("nan")}, "diagnosis.min_cover=nan is not allowed"),
        ({"min_grade": 3}, "sufficient_grade=2 is below min_grade=3"),
        ({"claim_unsaid_below": 0.7}, "claim_unsaid_below=0.7 is above claim_said_from=0.6"),
        ({"format": "("}, "diagnosis.format: '(' is no regular expression"),
        ({"right": [{"definition": "rubric/correctnes", "yes_from": 1.0}]}, "did you mean rubric/correctness"),
        ({"right": [{"definition": "rubric/correctness", "yes_form": 1.0}]}, "did you mean diagnosis.right.0.yes_from"),
        ({"right": [{"definition": "rubric/correctness"}]}, "rubric/correctness says nothing: give yes_from"),
        (
            {"right": [{"definition": "rubric/correctness", "yes_from": 0.2, "no_below": 0.5}]},
            "no_below=0.5 is above yes_from=0.2",
        ),
        ({"levers": {"burried": []}}, "burried is no fault (did you mean buried?"),
        ({"levers": {"buried": ["reranker"]}}, "buried: 'reranker' is no override"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(changed: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as refused:
        checked({**DEFAULT, **changed})
    assert told in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("lever", "told"),
    [
        ("retriever=hybird", "hybird is no option of retriever; there are bm25, dense, hybrid"),
        ("retriever.kk=5", "no option of retriever has the key kk"),
        ("tracking=off", "tracking=off changes no variable"),
        ("retreiver=dense", "retreiver=dense changes no variable"),
    ],
)
def test_a_lever_must_exist(lever: str, told: str) -> None:
    with pytest.raises(ConfigError, match=r"diagnosis\.levers: ") as refused:
        check_levers(checked({**DEFAULT, "levers": {"buried": [lever]}}))
    assert told in str(refused.value)


def test_the_packaged_levers_exist_and_every_fault_has_one() -> None:
    check_levers(default_rules())
    assert all(default_rules().lever(fault) for fault in FAULTS)
    assert set(default_rules().levers) == {as_key(fault) for fault in FAULTS}


def test_every_threshold_stands_in_the_packaged_file() -> None:
    assert not any(field.default is None for field in Rules.model_fields.values())
    assert set(Rules.model_fields) == set(DEFAULT)
    named = {
        telling.definition
        for name in ("declined", "right", "grounded", "complete", "on_topic")
        for telling in getattr(default_rules(), name)
    }
    assert {key.partition(".")[0] for key in named} <= set(SCORERS)


def test_a_definition_of_ones_own_may_tell() -> None:
    rules = checked({**DEFAULT, "grounded": [{"definition": "mine/politeness", "no_below": 0.5}]})
    rules.fits({"mine/politeness": "higher"})
    with pytest.raises(ConfigError, match=r"diagnosis\.grounded names mine/politeness, whose lower values are better"):
        rules.fits({"mine/politeness": "lower"})


def test_a_run_is_read_with_its_own_rules_or_the_packaged_ones() -> None:
    values: dict[str, dict[str, float | None]] = {"labels/recall": {"q1": 1.0}}
    assert rules_of(run(values)) == default_rules()
    assert rules_of(run(values, config={"diagnosis": {**DEFAULT, "buried_from": 2}})).buried_from == 2
    with pytest.raises(ConfigError, match=r"diagnosis\.buried_from=0 is not allowed"):
        rules_of(run(values, config={"diagnosis": {**DEFAULT, "buried_from": 0}}))


def test_levers_leave_out_what_the_run_has_and_what_it_cannot_have() -> None:
    fault: FaultName = "missed top ranked"
    levers = {as_key(fault): ["retriever.k=10,20", "retriever=hybrid", "reranker=late_interaction"]}
    rules = checked({**DEFAULT, "levers": levers})
    made = run({"labels/recall": {"q1": 1.0}}, config={"retriever": {"k": 10}})
    made.summary["choices"] = {"retriever": "hybrid"}  # type: ignore[index]
    assert untried(rules, made) == {fault: ("retriever.k=20",)}  # it has no reranker at all
    unset = run({"labels/recall": {"q1": 1.0}}, config={"context": {"max_tokens": None}})
    rules = checked({**DEFAULT, "levers": {as_key(fault): ["context.max_tokens=null,6000"]}})
    assert untried(rules, unset) == {fault: ("context.max_tokens=6000",)}
