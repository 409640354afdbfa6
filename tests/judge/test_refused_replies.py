"""Replies that a definition refuses though they hold to their schema: asked for anew, and what others rest on stays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from adapters.base import Disbelieved
from adapters.bench import CallSite, Measurement
from adapters.judge import Message
from adapters.judges.openai import OpenAIJudge
from adapters.judges.replay import ReplayJudge
from adapters.schema import Score, Verdict
from runner import results
from tests.judge.moods import Polite, Rated, graded
from tests.stages.openai_stub import OpenAIStub, Seen, StubReply, chat, openai_stub, status

__all__ = ["openai_stub"]

POLITE, FUSSY = "tests.judge.moods:Polite", "tests.judge.test_refused_replies:Fussy"
TWO_STEPS = "tests.judge.test_refused_replies:TwoSteps"


class Fussy(Polite):
    """Asks what Polite asks, and believes no line that is polite."""

    id = "mood/fussy"

    def evidence(self, measurement: Measurement) -> tuple[Verdict, ...]:
        if any(measurement.replies("polite")[0]["lines"]):
            raise Disbelieved("a polite line")
        return super().evidence(measurement)


class TwoSteps(Polite):
    """Asks what Polite asks, and for a rating after it, which must be 1."""

    id = "mood/two_steps"
    calls = "2"

    async def run(self, measurement: Measurement) -> float:
        await super().run(measurement)
        rated = await measurement.ask(CallSite("rate"), [Message("user", "Rate it.")], Rated)
        return float(rated.rating)

    def evidence(self, measurement: Measurement) -> tuple[Verdict, ...]:
        if measurement.replies("rate") != [{"rating": 1.0}]:
            raise Disbelieved("the rating is not 1")
        return super().evidence(measurement)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_PROXY", "*")
    return tmp_path


def said(*lines: bool) -> StubReply:
    return chat(json.dumps({"lines": lines}))


def run(stub: OpenAIStub, *definitions: str, answer: str = "Hi.\nYou there.", **fields: Any) -> tuple[list[Score], int]:
    """The scores of a run of its own, and how many calls it made."""
    before = len(stub.requests)
    plain = {"model": "stub-1", "structured": "json_schema", "cache_file": "replies.sqlite", "max_attempts": 1}
    judge = OpenAIJudge(**{"base_url": stub.base_url, **plain, **fields})
    scores = list(graded(judge, [answer], definitions, folder=Path("run")).scores)
    return scores, len(stub.requests) - before


def test_a_reply_that_a_definition_refuses_is_asked_for_again_by_the_next_run(openai_stub: OpenAIStub) -> None:
    openai_stub.script(said(True))  # one verdict on two lines
    (failed,), calls = run(openai_stub, POLITE)
    assert (failed.status, calls) == ("failed", 1)
    assert "argument 2 is shorter" in str(failed.reason)
    openai_stub.script(said(True, False))
    (again,), calls = run(openai_stub, POLITE)
    assert (again.value, again.cached, calls) == (0.5, 0, 1)
    (kept,), calls = run(openai_stub, POLITE)
    assert (kept.value, kept.cached, calls) == (0.5, 1, 0)
    # The recording of the folder goes on behind the refused reply, and the good one stands.
    replayed = graded(ReplayJudge(recording=f"run/{results.RECORDING}"), ["Hi.\nYou there."]).scores[0]
    assert (replayed.value, replayed.evidence) == (again.value, again.evidence)


def test_a_refused_reply_stays_where_another_measurement_rests_on_it(openai_stub: OpenAIStub) -> None:
    openai_stub.script(said(True, True))
    for definitions in ((POLITE, FUSSY), (FUSSY, POLITE)):
        scores, _ = run(openai_stub, *definitions)
        assert {score.definition: score.status for score in scores} == {
            "mood/polite": "computed",
            "mood/fussy": "failed",
        }
    assert len(openai_stub.requests) == 1
    # Nor does a run of the refusing definition alone lose it.
    assert run(openai_stub, FUSSY)[0][0].status == "failed"
    (kept,), calls = run(openai_stub, POLITE)
    assert (kept.value, calls) == (1.0, 0)


def test_two_measurements_that_refuse_one_reply_ask_anew(openai_stub: OpenAIStub) -> None:
    openai_stub.script(said(True))
    assert {score.status for score in run(openai_stub, POLITE, FUSSY)[0]} == {"failed"}
    openai_stub.script(said(False, False))
    assert [score.value for score in run(openai_stub, POLITE, FUSSY)[0]] == [0.0, 0.0]


def test_what_was_paid_for_stays_where_a_later_call_brings_nothing(openai_stub: OpenAIStub) -> None:
    def at(seen: Seen) -> StubReply:
        return status(500) if "Rate it." in str(seen.body["messages"]) else said(True, True)

    openai_stub.answers(at)
    assert run(openai_stub, TWO_STEPS)[0][0].status == "failed"
    openai_stub.script(chat('{"rating": 1.0}'))
    (found,), calls = run(openai_stub, TWO_STEPS)
    assert (found.value, found.calls, found.cached, calls) == (1.0, 2, 1, 1)


def test_all_replies_of_a_refused_measurement_are_asked_for_again_but_those_of_others(openai_stub: OpenAIStub) -> None:
    rating = "0.5"

    def at(seen: Seen) -> StubReply:
        return chat(f'{{"rating": {rating}}}') if "Rate it." in str(seen.body["messages"]) else said(True, True)

    openai_stub.answers(at)
    assert run(openai_stub, TWO_STEPS)[1] == 2
    assert run(openai_stub, POLITE)[1] == 1, "nobody rested on it before"
    assert run(openai_stub, TWO_STEPS)[1] == 1, "Polite rests on the first now"
    rating = "1.0"
    (found,), calls = run(openai_stub, TWO_STEPS)
    assert (found.value, calls) == (1.0, 1)


def test_a_reply_that_was_asked_for_anew_is_not_believed_for_the_one_before(openai_stub: OpenAIStub) -> None:
    openai_stub.script(said(True, True))
    run(openai_stub, POLITE)
    openai_stub.script(said(True))
    assert run(openai_stub, POLITE, cache="refresh")[0][0].status == "failed"
    openai_stub.script(said(False, True))
    (found,), calls = run(openai_stub, POLITE)
    assert (found.value, calls) == (0.5, 1)


def test_each_sample_that_is_refused_is_asked_for_again(openai_stub: OpenAIStub) -> None:
    def at(seen: Seen) -> StubReply:
        return said(True) if seen.body["seed"] else said(True, True)

    openai_stub.answers(at)
    more: dict[str, Any] = {"samples": 2, "temperature": 0.7}
    (score,), calls = run(openai_stub, POLITE, **more)
    assert (score.value, score.samples_failed, calls) == (1.0, 1, 2)
    openai_stub.script(said(False, False))
    (score,), calls = run(openai_stub, POLITE, **more)
    assert (score.value, score.samples_failed, score.cached, calls) == (0.5, 0, 1, 1)
