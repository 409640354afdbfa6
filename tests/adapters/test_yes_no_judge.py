"""judge=yes_no against a real local server: what is asked, how a grade is read, and what becomes of it in each task."""

from __future__ import annotations

import asyncio
import json
import pickle
from math import log
from pathlib import Path
from typing import Any

import pytest

from adapters import client as client_module
from adapters import tasks as t
from adapters.bench import Bench
from adapters.judge import JudgeFault, Reply
from adapters.judges import yes_no
from adapters.judges.yes_no import YesNoJudge
from tests.adapters.calls import TASKS, VOCABULARY, ask, call, count, found, words
from tests.stages.openai_stub import OpenAIStub, StubReply, chat, completion, openai_stub

__all__ = ["openai_stub"]


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "*")


def judge(stub: OpenAIStub, **fields: Any) -> YesNoJudge:
    plain = {"model": "stub-1", "max_attempts": 1, "timeout_seconds": 5.0}
    return YesNoJudge(**{"base_url": stub.base_url, **plain, **fields})


def said(**probabilities: float) -> StubReply:
    """A reply of one token with the probabilities of the likeliest; "_" in front stands for a space."""
    top = [
        {"token": token.replace("_", " "), "logprob": log(probability)} for token, probability in probabilities.items()
    ]
    content = [{**top[0], "top_logprobs": top}]
    message = {"role": "assistant", "content": top[0]["token"]}
    return completion(
        choices=[{"index": 0, "finish_reason": "length", "message": message, "logprobs": {"content": content}}]
    )


YES, NO = said(Yes=0.9, No=0.1), said(No=0.8, Yes=0.2)


def grade(stub: OpenAIStub, reply: StubReply) -> float:
    stub.script(reply)
    return asyncio.run(judge(stub).yes("support", unit="The sky is {blue}.", text="Blue it is."))


def test_the_grade_is_the_share_of_yes(openai_stub: OpenAIStub) -> None:
    # Yes, "yes" and " Yes" are one word: (.30 + .08 + .02) / (.40 + .10) = .80; what is neither does not count.
    assert grade(openai_stub, said(The=0.5, Yes=0.3, No=0.1, yes=0.08, _Yes=0.02)) == pytest.approx(0.8)
    (seen,) = openai_stub.requests
    asked = "Text:\nBlue it is.\n\nClaim: The sky is {blue}.\n\nIs the claim supported by the text? "
    assert seen.body == {
        "model": "stub-1",
        "messages": [{"role": "user", "content": asked + "Answer with one word, Yes or No."}],
        "temperature": 0.0,
        "seed": 0,
        "max_tokens": 1,
        "logprobs": True,
        "top_logprobs": 20,
    }


def test_a_word_that_is_not_among_the_likeliest_has_no_probability(openai_stub: OpenAIStub) -> None:
    assert grade(openai_stub, said(No=0.9)) == 0.0
    assert grade(openai_stub, said(yes=0.4, Maybe=0.3)) == 1.0


@pytest.mark.parametrize("logprobs", [{}, {"logprobs": None}, {"logprobs": {"content": []}}])
def test_without_log_probabilities_the_fault_names_the_setting(openai_stub: OpenAIStub, logprobs: Any) -> None:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Yes"}, **logprobs}
    with pytest.raises(JudgeFault, match=r"sent no log-probabilities.*judge\.model or judge\.base_url"):
        grade(openai_stub, completion(choices=[choice]))


def test_a_model_that_answers_neither_gives_no_grade(openai_stub: OpenAIStub) -> None:
    with pytest.raises(JudgeFault, match=r"stub-1 answered neither Yes nor No: they have 0\.02%.*'The', 'No'"):
        grade(openai_stub, said(The=0.99, No=0.0002))


def test_only_a_claim_that_is_not_supported_is_asked_about_twice(openai_stub: OpenAIStub) -> None:
    openai_stub.script(YES, NO, NO, NO, YES)
    (reply,) = ask(judge(openai_stub), call(t.Support(("a", "b", "c"), "the text", "answer", "context")))
    assert (reply.tokens_in, reply.tokens_out, reply.cached) == (5 * 7, 5 * 3, False)
    ends = [seen.body["messages"][0]["content"].splitlines()[-1].partition("?")[0] for seen in openai_stub.requests]
    supported, compatible = "Is the claim supported by the text", "Can the text and the claim both be true"
    assert ends == [supported, supported, compatible, supported, compatible]


def test_nothing_is_asked_twice_for_a_framework_that_has_one_word_for_contradicted_and_absent(
    openai_stub: OpenAIStub,
) -> None:
    openai_stub.script(YES, NO)
    task = t.Support(("a", "b"), "the text", "answer", "context", apart=False)
    assert words(judge(openai_stub), task) == ["supported", "absent"]
    assert len(openai_stub.requests) == 2


def test_support_has_three_words_and_a_grade(openai_stub: OpenAIStub) -> None:
    openai_stub.script(YES, NO, NO, NO, YES)
    assert found(judge(openai_stub), t.Support(("a", "b", "c"), "the text", "answer", "context")) == [
        ("a", "supported", "P(yes) = 0.90", pytest.approx(0.9)),
        ("b", "contradicted", "P(yes) = 0.20; that both can be true: 0.20", pytest.approx(0.2)),
        ("c", "absent", "P(yes) = 0.20; that both can be true: 0.90", pytest.approx(0.2)),
    ]


def test_a_unit_holds_from_one_half(openai_stub: OpenAIStub) -> None:
    openai_stub.script(said(Yes=0.5, No=0.5), said(Yes=0.49, No=0.51))
    assert words(judge(openai_stub), t.Relevance("Why?", ("one", "two"))) == ["relevant", "not_relevant"]


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
@pytest.mark.parametrize("reply", [YES, NO], ids=["yes", "no"])
def test_every_task_is_answered_in_its_words(openai_stub: OpenAIStub, task: t.Task, reply: StubReply) -> None:
    openai_stub.script(reply)
    findings = found(judge(openai_stub), task)
    assert {word for _, word, _, _ in findings} <= VOCABULARY[type(task)]
    assert count(task) in (None, len(findings))
    if not isinstance(task, t.Split | t.AskBack):
        assert {round(holds, 6) for *_, holds in findings} == {0.9 if reply is YES else 0.2}
        assert openai_stub.requests


def test_texts_are_cut_by_rules_without_asking(openai_stub: OpenAIStub) -> None:
    assert [unit for unit, *_ in found(judge(openai_stub), t.Split("One is. Two was.", "answer"))] == [
        "One is.",
        "Two was.",
    ]
    assert not openai_stub.requests


def test_kept_replies_are_used_unless_it_is_asked_anew(openai_stub: OpenAIStub, tmp_path: Path) -> None:
    openai_stub.script(YES, NO)
    keeps = judge(openai_stub, cache_file=str(tmp_path / "replies.sqlite"))
    decline = call(t.Decline("Why?", "No idea."))
    replies = [ask(keeps, decline)[0], ask(keeps, decline)[0], ask(keeps.anew(), decline)[0], ask(keeps, decline)[0]]
    assert [reply.cached for reply in replies] == [False, True, False, True]
    assert ["supported" in reply.text for reply in replies] == [True, True, False, True]


def test_a_refused_call_says_why(openai_stub: OpenAIStub) -> None:
    openai_stub.script(StubReply(400, {"error": {"message": "logprobs are not supported"}}))
    with pytest.raises(JudgeFault, match="logprobs are not supported"):
        ask(judge(openai_stub), call(t.Decline("Why?", "No idea.")))


def test_a_reply_without_text_is_still_read(openai_stub: OpenAIStub) -> None:
    reply = chat("")
    reply.payload["choices"][0]["logprobs"] = YES.payload["choices"][0]["logprobs"]
    assert grade(openai_stub, reply) == pytest.approx(0.9)


def test_the_card_covers_what_is_asked(openai_stub: OpenAIStub, monkeypatch: pytest.MonkeyPatch) -> None:
    before = judge(openai_stub).card
    assert (before.provider, before.model, before.max_tokens) == ("yes_no", "stub-1", 1)
    assert judge(openai_stub, revision="r2").card.fingerprint != before.fingerprint
    monkeypatch.setitem(yes_no.QUESTIONS, "support", "Is {unit} in {text}?")
    assert judge(openai_stub).card.fingerprint != before.fingerprint


def test_it_says_that_the_prompts_are_not_the_frameworks(openai_stub: OpenAIStub) -> None:
    (told, alias) = judge(openai_stub, model="gpt-4o").warnings(None)
    assert "not the prompts of the frameworks" in told
    assert "alias" in alias


async def at_a_bench(used: YesNoJudge) -> Reply:
    """The reply to three questions."""
    async with Bench(used) as bench:
        return await bench.ask(call(t.Support(("A.", "B.", "C."), "A. B. C.", "answer", "context")))


def test_waiting_for_a_rate_limit_is_not_waiting_for_the_judge(
    openai_stub: OpenAIStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "MINUTE", 0.6)
    openai_stub.script(YES)
    used = judge(openai_stub, requests_per_minute=1, call_seconds=0.5)

    assert [word for _, word, _, _ in json.loads(asyncio.run(at_a_bench(used)).text)] == ["supported"] * 3
    at = [seen.at for seen in openai_stub.requests]
    assert at[2] - at[0] > 0.8, "it waited longer than call_seconds"


def test_a_question_that_is_not_answered_in_time_ends_the_call(openai_stub: OpenAIStub) -> None:
    openai_stub.script(YES, StubReply(hang_seconds=30))
    used = judge(openai_stub, call_seconds=0.5)

    with pytest.raises(JudgeFault, match=r"did not answer within judge\.call_seconds=0\.5"):
        asyncio.run(at_a_bench(used))
    assert len(openai_stub.requests) == 2


def test_another_model_than_asked_is_told(openai_stub: OpenAIStub) -> None:
    openai_stub.script(YES)
    used = judge(openai_stub, model="big-20250101")
    asyncio.run(used.yes("support", unit="Blue.", text="Blue."))
    assert used.warnings(None)[-1] == f"model 'big-20250101' was asked, and {used.host} says that 'stub-1' answered"


def test_it_travels_between_processes(openai_stub: OpenAIStub) -> None:
    openai_stub.script(YES)
    used = judge(openai_stub)
    ask(used, call(t.Decline("Why?", "No idea.")))
    assert pickle.loads(pickle.dumps(used)).card == used.card


def test_a_reply_that_is_neither_is_asked_for_again_by_the_next_run(openai_stub: OpenAIStub, tmp_path: Path) -> None:
    kept = str(tmp_path / "replies.sqlite")
    openai_stub.script(said(The=0.9, A=0.1))
    with pytest.raises(JudgeFault, match="answered neither Yes nor No"):
        ask(judge(openai_stub, cache_file=kept), call(TASKS["decline"]))
    openai_stub.script(YES)
    assert [ask(judge(openai_stub, cache_file=kept), call(TASKS["decline"]))[0].cached for _ in range(2)] == [
        False,
        True,
    ]
