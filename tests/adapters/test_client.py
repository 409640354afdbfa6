"""The client against a real local server: what is kept, what is asked once, and what an endpoint may do wrong."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
import traceback
from collections.abc import Awaitable, Callable
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from adapters import client as client_module
from adapters.bench import Bench
from adapters.client import BudgetReached, Client, ClientSettings
from adapters.endpoint import EndpointError
from adapters.judge import JudgeFault
from adapters.judges.openai import OpenAIJudge
from adapters.schema import Score
from tests.adapters.calls import call
from tests.adapters.polite import Polite, Said
from tests.adapters.router import QUESTION, record
from tests.stages.openai_stub import OpenAIStub, Seen, StubReply, chat, completion, embeddings, openai_stub, status

__all__ = ["openai_stub"]

KEY = "sk-test-DO-NOT-STORE-0003"
ASKED = [{"role": "user", "content": "Hello"}]
YES = chat('{"polite": true}')


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUB_KEY", KEY)
    monkeypatch.setenv("NO_PROXY", "*")


@pytest.fixture
def settings(openai_stub: OpenAIStub, tmp_path: Path) -> Callable[..., ClientSettings]:
    def made(**fields: Any) -> ClientSettings:
        plain = {"model": "stub-1", "api_key_env": "STUB_KEY", "max_attempts": 2, "timeout_seconds": 5.0}
        kept = {"cache_file": str(tmp_path / "replies.sqlite")}
        return ClientSettings(**{"base_url": openai_stub.base_url, **plain, **kept, **fields})

    return made


Settings = Callable[..., ClientSettings]


def run(client: Client, work: Callable[[], Awaitable[Any]]) -> Any:
    """The result of `work` in an event loop of its own, and connections closed."""

    async def alone() -> Any:
        try:
            return await work()
        finally:
            await client.close()

    return asyncio.run(alone())


def say(client: Client, *arguments: Any, **more: Any) -> Any:
    return run(client, lambda: client.chat(*(arguments or (ASKED,)), **more))


# What is kept


def test_a_reply_is_paid_for_once_and_comes_back_whole(openai_stub: OpenAIStub, settings: Settings) -> None:
    openai_stub.script(chat("Bonjour 😀"), chat("never asked for"))
    prices = {"input": 1_000_000, "output": 2_000_000}
    first = say(Client(settings(prices=prices)))
    again = say(Client(settings(prices=prices)))
    assert len(openai_stub.requests) == 1
    assert again.reply == first.reply
    assert (first.cached, first.cost) == (False, 7.0 + 2 * 3), "7 tokens in at 1 dollar, 3 out at 2"
    assert (again.cached, again.cost) == (True, 0.0)


@pytest.mark.parametrize(
    "fields",
    [
        {"model": "stub-2"},
        {"temperature": 0.5},
        {"temperature": None},
        {"seed": 1},
        {"max_tokens": 7},
        {"options": {"top_p": 0.5}},
    ],
    ids=str,
)
def test_a_setting_that_can_change_a_reply_has_replies_of_its_own(
    openai_stub: OpenAIStub, settings: Settings, fields: dict[str, Any]
) -> None:
    say(Client(settings()))
    assert not say(Client(settings(**fields))).cached
    assert len(openai_stub.requests) == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ([{"role": "user", "content": "hello"}],),
        ([{"role": "system", "content": "Hello"}],),
        ([*ASKED, *ASKED],),
        (ASKED, {"response_format": {"type": "json_object"}}),
        (ASKED, {"tools": []}),
        (ASKED, {"seed": 5}),
        (ASKED, None, 1),
    ],
    ids=["words", "role", "messages", "response_format", "tools", "seed of the call", "sample"],
)
def test_a_call_that_differs_in_anything_has_replies_of_its_own(
    openai_stub: OpenAIStub, settings: Settings, arguments: tuple[Any, ...]
) -> None:
    say(Client(settings()))
    assert not say(Client(settings()), *arguments).cached
    assert len(openai_stub.requests) == 2


def test_another_address_and_other_weights_have_replies_of_their_own(openai_stub: OpenAIStub, tmp_path: Path) -> None:
    def key(**fields: Any) -> str:
        plain = {"base_url": openai_stub.base_url, "model": "stub-1"}
        return OpenAIJudge(**{**plain, **fields}).client.key(ASKED)

    assert len({key(), key(base_url="http://elsewhere:1/v1"), key(revision="sha256:abc")}) == 3


@pytest.mark.parametrize(
    "fields",
    [
        {"api_key_env": None},
        {"timeout_seconds": 9.0},
        {"max_attempts": 1},
        {"max_calls": 0},
        {"requests_per_minute": 1},
        {"prices": {"input": 1, "output": 1}},
    ],
    ids=str,
)
def test_a_setting_that_changes_no_reply_shares_them(
    openai_stub: OpenAIStub, settings: Settings, fields: dict[str, Any]
) -> None:
    say(Client(settings()))
    assert say(Client(settings(**fields))).cached


def test_refresh_asks_again_once_a_run_and_keeps_the_new_reply(openai_stub: OpenAIStub, settings: Settings) -> None:
    openai_stub.script(chat("old"), chat("new"), chat("newer"))
    say(Client(settings()))
    refreshing = Client(settings(cache="refresh"))
    assert [say(refreshing).reply.text for _ in range(2)] == ["new", "new"]
    assert say(Client(settings())).reply.text == "new"
    assert len(openai_stub.requests) == 2


def test_off_neither_reads_nor_writes_and_null_is_nowhere(
    openai_stub: OpenAIStub, settings: Settings, tmp_path: Path
) -> None:
    for fields in ({"cache": "off"}, {"cache_file": None}):
        assert [say(Client(settings(**fields))).cached for _ in range(2)] == [False, False]
    assert not (tmp_path / "replies.sqlite").exists()


def test_anew_asks_whatever_is_kept_and_leaves_it_alone(openai_stub: OpenAIStub, settings: Settings) -> None:
    openai_stub.script(chat("kept"), chat("anew"))
    used = Client(settings())
    assert [say(used, ASKED, anew=anew).reply.text for anew in (False, True, False)] == ["kept", "anew", "kept"]


def test_identical_calls_in_flight_are_made_once_and_samples_apart(openai_stub: OpenAIStub, settings: Settings) -> None:
    openai_stub.script(StubReply(hang_seconds=0.2, payload=chat("ok").payload))
    for fields in ({}, {"cache": "off"}):
        openai_stub.requests.clear()
        used = Client(settings(**fields))

        async def at_once(used: Client = used) -> list[Any]:
            same = [used.chat(ASKED) for _ in range(5)]
            return list(await asyncio.gather(*same, used.chat(ASKED, None, 1), used.chat(ASKED, None, 2)))

        answered = run(used, at_once)
        assert [each.cached for each in answered] == [False, *[True] * 4, False, False]
        assert len(openai_stub.requests) == 3
        assert used.limits.calls == 3


def test_threads_share_calls_in_flight(openai_stub: OpenAIStub, settings: Settings) -> None:
    from concurrent.futures import ThreadPoolExecutor

    openai_stub.script(StubReply(hang_seconds=0.2, payload=chat("ok").payload))
    used = Client(settings())
    with ThreadPoolExecutor(6) as threads:
        answered = list(threads.map(lambda _: used.chat_blocking(ASKED), range(6)))
    assert sum(not each.cached for each in answered) == len(openai_stub.requests) == 1


def test_whoever_waits_for_a_call_that_fails_is_told_why(openai_stub: OpenAIStub, settings: Settings) -> None:
    openai_stub.script(StubReply(401, {"error": {"message": "no"}}, hang_seconds=0.1))
    used = Client(settings())

    async def at_once() -> list[Any]:
        return list(await asyncio.gather(*(used.chat(ASKED) for _ in range(3)), return_exceptions=True))

    assert [str(error) for error in run(used, at_once)] == [
        f"{used.endpoint.host} refused the key in STUB_KEY (status 401); check it. It said: no"
    ] * 3
    assert len(openai_stub.requests) == 1


def test_whoever_waits_for_a_call_that_was_cancelled_asks_in_its_place(
    openai_stub: OpenAIStub, settings: Settings
) -> None:
    openai_stub.script(StubReply(payload=YES.payload, hang_seconds=0.5))
    used = Client(settings())

    async def three() -> list[bool]:
        first, *others = [asyncio.create_task(used.chat(ASKED)) for _ in range(3)]
        while not openai_stub.requests:
            await asyncio.sleep(0.01)
        first.cancel()
        return sorted(answered.cached for answered in await asyncio.gather(*others))

    assert run(used, three) == [False, True]
    assert len(openai_stub.requests) == 2


def test_embeddings_are_kept_by_text_model_and_options(openai_stub: OpenAIStub, settings: Settings) -> None:
    def embed(*texts: str, **fields: Any) -> Any:
        used = Client(settings(**fields))
        return run(used, lambda: used.embed(texts)).vectors

    openai_stub.script(embeddings([1.0], [2.0]), embeddings([3.0]), embeddings([4.0]))
    assert embed("a", "b") == [[1.0], [2.0]]
    assert embed("b", "c", "b") == [[2.0], [3.0], [2.0]]
    assert openai_stub.requests[-1].body["input"] == ["c"]
    assert embed("a", options={"dimensions": 1}) == [[4.0]]


def test_a_cache_that_cannot_be_read_costs_no_call(openai_stub: OpenAIStub, settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "replies.sqlite").write_text("no database" * 100)
    with pytest.raises(EndpointError, match=r"replies\.sqlite cannot be used .*; remove it or set cache=off"):
        say(Client(settings()))
    with pytest.raises(EndpointError, match=r"cannot be used"):
        Client(settings()).check()
    assert openai_stub.requests == []


@pytest.mark.parametrize(
    "row",
    ['{"vector": [1]}', '{"text": "a"}', '{"text": 5, "model": "m"}', "{}", "null", "[1]", "[" * 100_000],
    ids=["a vector", "a part", "a number", "nothing", "null", "a list", "deep"],
)
def test_a_row_that_is_no_reply_is_a_sentence_and_refresh_mends_it(
    openai_stub: OpenAIStub, settings: Settings, tmp_path: Path, row: str
) -> None:
    say(Client(settings()))
    with sqlite3.connect(tmp_path / "replies.sqlite") as file:
        file.execute("UPDATE replies SET reply = ?", (row,))
    with pytest.raises(EndpointError, match=r"^the cache .*replies\.sqlite (holds something else|cannot be used)"):
        say(Client(settings()))
    assert say(Client(settings(cache="refresh"))).reply.text == "ok"
    assert say(Client(settings())).cached


def test_a_row_that_is_no_vector_is_a_sentence(openai_stub: OpenAIStub, settings: Settings, tmp_path: Path) -> None:
    openai_stub.script(embeddings([1.0, 2.0]))
    used = Client(settings())
    run(used, lambda: used.embed(["a"]))
    for row in ('{"vector": ["x"]}', '{"vector": [NaN]}', '{"text": "a"}', "{}"):
        with sqlite3.connect(tmp_path / "replies.sqlite") as file:
            file.execute("UPDATE replies SET reply = ?", (row,))
        with pytest.raises(EndpointError, match=r"replies\.sqlite holds something else than what was kept there"):
            run(used, lambda: used.embed(["a"]))


def test_a_reply_that_cannot_be_kept_is_not_lost(
    openai_stub: OpenAIStub, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from adapters import reply_cache

    monkeypatch.setattr(reply_cache, "BUSY_SECONDS", 1.0)
    used = Client(settings())
    used.check()
    other = sqlite3.connect(tmp_path / "replies.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    began = time.monotonic()
    for n in range(20):
        assert say(used, ASKED, None, n).reply.text == "ok"
    assert time.monotonic() - began < 10, "it waits for the file once"
    assert "database is locked" in str(used.unkept)
    other.close()


# What an endpoint may do wrong


def fault(used: Client, **more: Any) -> str:
    """The message of the error, once it is sure that the key is in no part of it."""
    with pytest.raises((EndpointError, TimeoutError)) as caught:
        say(used, ASKED, **more)
    assert KEY not in "".join(traceback.format_exception(caught.value))
    return str(caught.value)


@pytest.mark.parametrize("code", [408, 409, 429, 500, 502, 503, 504])
def test_faults_that_may_pass_are_tried_again(openai_stub: OpenAIStub, settings: Settings, code: int) -> None:
    openai_stub.script(status(code, {"retry-after": "0.01"}), chat("ok"))
    assert say(Client(settings())).reply.text == "ok"
    openai_stub.script(status(code, {"retry-after": "0.01"}))
    said = fault(Client(settings()), sample=1)
    assert f"status {code}" in said
    assert "after 2 attempts" in said


@pytest.mark.parametrize(
    ("code", "expected"),
    [(400, "max_tokens and options"), (401, "STUB_KEY"), (403, "STUB_KEY"), (404, "model='stub-1'")],
)
def test_faults_that_will_not_pass_end_at_once_and_name_the_setting(
    openai_stub: OpenAIStub, settings: Settings, code: int, expected: str
) -> None:
    openai_stub.script(status(code))
    assert expected in fault(Client(settings(max_attempts=5)))
    assert len(openai_stub.requests) == 1


def test_retries_wait_longer_each_time_and_not_equally_long(openai_stub: OpenAIStub, settings: Settings) -> None:
    # 0.5 s, then 1 s, each less up to a quarter.
    openai_stub.script(status(500), status(500), chat("ok"), status(500), status(500), chat("ok"))
    for sample in (0, 1):
        say(Client(settings(max_attempts=3)), ASKED, None, sample)
    at = [seen.at for seen in openai_stub.requests]
    waits = [at[1] - at[0], at[2] - at[1], at[4] - at[3], at[5] - at[4]]
    for wait, (low, high) in zip(waits, [(0.37, 0.8), (0.74, 1.4)] * 2, strict=True):
        assert low < wait < high
    assert abs(waits[0] - waits[2]) > 1e-4


def test_retry_after_may_be_a_date(openai_stub: OpenAIStub, settings: Settings) -> None:
    # A date has whole seconds, so that one 3 seconds ahead is 2 to 3 seconds away; without it the wait is 0.5 at most.
    openai_stub.answers(
        lambda seen: (
            chat("ok")
            if len(openai_stub.requests) > 1
            else status(429, {"retry-after": formatdate(time.time() + 3, usegmt=True)})
        )
    )
    assert say(Client(settings())).reply.text == "ok"
    first, second = openai_stub.requests
    assert 1.9 < second.at - first.at < 3.5


@pytest.mark.parametrize("wait", ["300", formatdate(time.time() + 3600, usegmt=True)], ids=["seconds", "date"])
def test_a_wait_of_more_than_two_minutes_is_not_made_and_is_named(
    openai_stub: OpenAIStub, settings: Settings, wait: str
) -> None:
    openai_stub.script(status(429, {"retry-after": wait}))
    began = time.monotonic()
    said = fault(Client(settings(max_attempts=5)))
    assert time.monotonic() - began < 2
    assert "limits the rate after 1 attempt (status 429)" in said
    assert f"(Retry-After: {wait}, and no wait is longer than 2 minutes)" in said


def test_status_200_with_an_error_in_it_says_what_the_endpoint_said(
    openai_stub: OpenAIStub, settings: Settings
) -> None:
    for body in ({"error": {"message": f"overloaded {KEY}", "code": 502}}, {"detail": "overloaded [key]"}):
        openai_stub.script(StubReply(payload=body))
        said = fault(Client(settings()))
        assert "answered, but without a choice that holds a message" in said
        assert said.endswith("It said: overloaded [key]")
    openai_stub.script(StubReply(payload={"error": {"message": "x" * 190 + KEY}}))
    assert KEY[:8] not in fault(Client(settings())), "nor half of the key, where a long message is cut"
    assert not say_is_kept(settings)


def say_is_kept(settings: Settings) -> bool:
    """Whether a client finds the reply, with nobody to ask."""
    used = Client(settings(max_calls=0))
    try:
        return bool(say(used).cached)
    except BudgetReached:
        return False


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (StubReply(close=True), "closed the connection before it had answered after 2 attempts"),
        (StubReply(payload=chat("ok").payload, sent_bytes=40), "closed the connection before it had answered"),
        (StubReply(hang_seconds=60), "did not answer within timeout_seconds=0.3 after 2 attempts"),
    ],
    ids=["closes", "closes midway", "hangs"],
)
def test_an_endpoint_that_stops_midway_is_tried_again_and_named(
    openai_stub: OpenAIStub, settings: Settings, reply: StubReply, expected: str
) -> None:
    openai_stub.script(reply)
    assert expected in fault(Client(settings(timeout_seconds=0.3)))
    assert len(openai_stub.requests) == 2
    openai_stub.script(reply, chat("ok"))
    assert say(Client(settings(timeout_seconds=0.3))).reply.text == "ok"


def test_an_endpoint_that_trickles_for_ever_ends(
    openai_stub: OpenAIStub, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each byte comes within timeout_seconds, so that no single read is too slow.
    monkeypatch.setattr(client_module, "LONGEST_WAIT", 0.1)
    openai_stub.script(StubReply(payload=chat("ok" * 500).payload, trickle_seconds=0.1))
    assert "did not end its answer within 0.6 seconds" in fault(Client(settings(timeout_seconds=0.5, max_attempts=1)))
    with pytest.raises(TimeoutError):
        say(Client(settings(timeout_seconds=0.5)), ASKED, seconds=0.3)


def test_an_endpoint_that_is_gone_is_not_waited_for_by_every_call(
    openai_stub: OpenAIStub, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = Client(settings(max_attempts=1))
    say(used)
    openai_stub.close()
    assert "cannot connect to" in fault(used, sample=1)
    assert "cannot connect to" in fault(used, sample=2)
    assert f"{used.endpoint.host} did not answer the calls before" in fault(used, sample=3)
    assert used.limits.calls == 3, "nobody was asked"
    assert say(used).cached, "what is kept is still there"
    monkeypatch.setattr(used.limits, "_until", 0.0)
    assert "cannot connect to" in fault(used, sample=3), "after a while it is asked again"


def test_an_endpoint_that_was_never_there_is_given_up_after_one_call(settings: Settings) -> None:
    used = Client(settings(base_url="http://127.0.0.1:9/v1", max_attempts=1))
    assert "cannot connect to" in fault(used, sample=1)
    said = fault(used, sample=2)
    assert "did not answer the calls before" in said
    assert "cannot connect to 127.0.0.1:9" in said
    assert used.limits.calls == 1


def test_two_slow_calls_do_not_give_an_endpoint_up_and_sixteen_do(openai_stub: OpenAIStub, settings: Settings) -> None:
    used = Client(settings(max_attempts=1, timeout_seconds=1.0))

    async def calls(first: int, count: int) -> list[str]:
        asked = (used.chat(ASKED, None, n) for n in range(first, first + count))
        return [str(each) for each in await asyncio.gather(*asked, return_exceptions=True)]

    openai_stub.script(StubReply(hang_seconds=60))
    run(used, lambda: calls(0, 10))
    openai_stub.script(chat("ok"))
    assert say(used, ASKED, None, 50).reply.text == "ok"
    openai_stub.script(StubReply(hang_seconds=60))
    run(used, lambda: calls(100, 16))
    (said,) = run(used, lambda: calls(200, 1))
    assert said.endswith("did not answer the calls before; it is asked again in a while")


# Judges over it


def judge(stub: OpenAIStub, tmp_path: Path, **fields: Any) -> OpenAIJudge:
    plain = {"model": "stub-1", "api_key_env": "STUB_KEY", "max_attempts": 2, "timeout_seconds": 5.0}
    kept = {"cache_file": str(tmp_path / "replies.sqlite"), "structured": "json_schema"}
    return OpenAIJudge(**{"base_url": stub.base_url, **plain, **kept, **fields})


def judged(used: OpenAIJudge, *scorers: Polite) -> list[Score]:
    async def alone() -> list[Score]:
        async with Bench(used) as bench:
            measured = (scorer.measure(QUESTION, record(), bench) for scorer in scorers or (Polite(),))
            return list(await asyncio.gather(*measured))

    return asyncio.run(alone())


@pytest.mark.parametrize(
    ("reply", "value", "reason"),
    [
        (chat('Sure, here it is:\n```json\n{"polite": true}\n```\nHope that helps.'), 1.0, None),
        (chat('Format {as asked}: {"polite": true}'), 1.0, None),
        (chat('{"polite": tr', finish_reason="length"), None, "it was cut off at max_tokens; raise it"),
        (chat(""), None, "the reply could not be parsed: it is empty"),
        (chat(None), None, "the reply could not be parsed: it is empty"),
        (chat(None, refusal="I can't assess that."), None, "I can't assess that."),
        (chat("I am unable to assess this."), None, "I am unable to assess this."),
    ],
    ids=["fence", "braces in prose", "cut off", "empty", "null", "refusal", "no json"],
)
def test_what_a_model_may_write_is_read_or_named(
    openai_stub: OpenAIStub, tmp_path: Path, reply: StubReply, value: float | None, reason: str | None
) -> None:
    openai_stub.script(reply)
    (score,) = judged(judge(openai_stub, tmp_path))
    assert score.value == value
    assert reason is None or reason in str(score.reason)
    assert (score.status, score.repaired) == (("computed", 0) if reason is None else ("failed", 1))


def test_replies_that_cannot_be_read_are_asked_for_again_next_time(openai_stub: OpenAIStub, tmp_path: Path) -> None:
    openai_stub.script(chat("no idea"))
    assert judged(judge(openai_stub, tmp_path))[0].status == "failed"
    openai_stub.script(YES)
    (score,) = judged(judge(openai_stub, tmp_path))
    assert (score.value, score.calls, score.cached, score.repaired) == (1.0, 1, 0, 0)


def test_a_repaired_reply_is_repaired_from_what_is_kept(openai_stub: OpenAIStub, tmp_path: Path) -> None:
    openai_stub.script(chat("no idea"), YES)
    (first,) = judged(judge(openai_stub, tmp_path))
    openai_stub.script(status(500))
    (again,) = judged(judge(openai_stub, tmp_path))
    assert (first.value, first.calls, first.cached, first.repaired) == (1.0, 2, 0, 1)
    assert (again.value, again.calls, again.cached, again.repaired) == (1.0, 2, 2, 1)
    assert first.tokens == 20, "what the unreadable reply cost counts too"


def test_definitions_that_ask_the_same_share_the_call(openai_stub: OpenAIStub, tmp_path: Path) -> None:
    openai_stub.script(StubReply(hang_seconds=0.1, payload=YES.payload))
    scores = judged(judge(openai_stub, tmp_path), Polite(), Polite(strict=True))
    assert [(score.calls, score.cached) for score in scores] == [(1, 0), (1, 1)]
    assert len(openai_stub.requests) == 1


def test_how_json_is_asked_for_is_found_once_and_not_once_a_run(openai_stub: OpenAIStub, tmp_path: Path) -> None:
    def without_schemas(seen: Seen) -> StubReply:
        form = seen.body.get("response_format", {}).get("type")
        return status(400) if form == "json_schema" or "tools" in seen.body else YES

    openai_stub.answers(without_schemas)
    first, again = (judge(openai_stub, tmp_path, structured="auto") for _ in range(2))
    judged(first)
    assert first.client.limits.calls == 4, "three modes tried, and the call itself: all count in the budget"
    judged(again)
    assert again.client.limits.calls == 0
    assert first.card == again.card
    assert again.card.settings["structured"] == "json_object"
    others = judge(openai_stub, tmp_path, structured="auto", strict=False), judge(openai_stub, tmp_path, model="m")
    assert all(other.client.learned("structured, strict=False") is None for other in others)


def test_a_way_of_asking_that_was_kept_and_is_none_is_found_anew(openai_stub: OpenAIStub, tmp_path: Path) -> None:
    openai_stub.script(YES)
    used = judge(openai_stub, tmp_path, structured="auto")
    asyncio.run(used.client.learn("structured, strict=True", "of another version"))
    assert judged(used)[0].value == 1.0
    assert used.client.learned("structured, strict=True") == "json_schema"


def test_an_endpoint_that_cannot_be_probed_is_told_of_by_the_calls(openai_stub: OpenAIStub, tmp_path: Path) -> None:
    openai_stub.script(status(401))
    used = judge(openai_stub, tmp_path, structured="auto")
    assert "refused the key in STUB_KEY" in str(judged(used)[0].reason)
    assert used.client.learned("structured, strict=True") is None


def test_another_model_than_asked_is_named_once_with_both_names(openai_stub: OpenAIStub, tmp_path: Path) -> None:
    openai_stub.script(completion(choices=YES.payload["choices"], model="cheaper-1"))
    for _ in range(2):  # from the endpoint, and from what is kept
        used = judge(openai_stub, tmp_path)
        judged(used)
        told = [warning for warning in used.warnings(None) if "cheaper-1" in warning]
        assert told == [f"model 'stub-1' was asked, and {used.host} says that 'cheaper-1' answered"]
    openai_stub.script(YES)
    used = judge(openai_stub, tmp_path, cache="refresh")
    judged(used)
    assert not any("was asked" in warning for warning in used.warnings(None))


def test_replies_that_could_not_be_kept_are_told_of(
    openai_stub: OpenAIStub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from adapters import reply_cache

    monkeypatch.setattr(reply_cache, "BUSY_SECONDS", 0.1)
    openai_stub.script(YES)
    used = judge(openai_stub, tmp_path)
    used.check()
    other = sqlite3.connect(tmp_path / "replies.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert judged(used)[0].value == 1.0
    assert any("replies are not kept any more: the cache" in warning for warning in used.warnings(None))
    other.close()


def test_waiting_for_a_rate_limit_is_not_waiting_for_the_judge(
    openai_stub: OpenAIStub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "MINUTE", 1.0)
    openai_stub.script(YES)
    used = judge(openai_stub, tmp_path, requests_per_minute=2, call_seconds=0.8, cache="off")

    async def five() -> list[str]:
        async with Bench(used) as bench:
            calls = (call(prompt=f"Judge {n}.", schema=Said) for n in range(5))
            return [reply.text for reply in await asyncio.gather(*map(bench.ask, calls))]

    assert len(asyncio.run(five())) == 5
    at = [seen.at for seen in openai_stub.requests]
    assert at[2] - at[0] >= 0.8
    assert at[4] - at[2] >= 0.8
    assert at[4] - at[0] < 5


def test_call_seconds_end_a_call_with_all_its_attempts(openai_stub: OpenAIStub, tmp_path: Path) -> None:
    openai_stub.script(status(500, {"retry-after": "0.05"}))
    used = judge(openai_stub, tmp_path, call_seconds=0.3, max_attempts=500)

    async def one() -> None:
        async with Bench(used) as bench:
            await bench.ask(call())

    with pytest.raises(JudgeFault, match=r"did not answer within judge\.call_seconds=0\.3"):
        asyncio.run(one())


def test_tokens_per_minute_hold_back_calls_until_the_minute_is_over(
    openai_stub: OpenAIStub, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each reply has 10 tokens, so that 20 a minute are two calls.
    monkeypatch.setattr(client_module, "MINUTE", 1.0)
    used = Client(settings(tokens_per_minute=20))

    async def in_turn_then_at_once() -> None:
        await used.chat(ASKED)
        await asyncio.gather(*(used.chat(ASKED, None, n) for n in range(1, 5)))

    run(used, in_turn_then_at_once)
    at = [seen.at for seen in openai_stub.requests]
    assert at[1] - at[0] < 0.5
    assert at[2] - at[0] >= 0.9, "two calls have used up the minute"
    assert at[4] - at[2] >= 0.9
    assert at[4] - at[0] < 10


def test_a_budget_ends_asking_and_not_what_is_kept(openai_stub: OpenAIStub, settings: Settings) -> None:
    used = Client(settings(max_calls=2))
    for n in (0, 1, 0):
        say(used, ASKED, None, n)
    assert used.spent is None, "it is enough so far"
    assert fault(used, sample=2) == used.spent == "max_calls=2 is used up"
    assert say(used, ASKED, None, 1).cached
    assert len(openai_stub.requests) == 2


def test_max_cost_counts_what_is_paid(openai_stub: OpenAIStub, settings: Settings) -> None:
    # 7 tokens in and 3 out at 1 dollar each a million: 0.00001 dollars a call.
    used = Client(settings(max_cost=0.00002, prices={"input": 1, "output": 1}))
    for n in (0, 1, 0, 1):
        say(used, ASKED, None, n)
    assert fault(used, sample=2) == "max_cost=2e-05 is used up: 0.0000 US dollars are spent"


def test_a_cost_that_nobody_counts_ends_the_run_and_does_not_run_on(
    openai_stub: OpenAIStub, settings: Settings
) -> None:
    openai_stub.script(completion(choices=chat("ok").payload["choices"], usage=None))
    used = Client(settings(max_cost=5, prices={"input": 1, "output": 1}))
    assert say(used).cost is None
    assert "max_cost=5 cannot be held to, because" in fault(used, sample=1)
    with pytest.raises(ValueError, match="max_cost=5 needs prices"):
        settings(max_cost=5)


def test_embeddings_and_chat_of_a_judge_have_one_budget(openai_stub: OpenAIStub, tmp_path: Path) -> None:
    used = judge(openai_stub, tmp_path, embeddings="small", max_calls=1)
    openai_stub.script(embeddings([1.0]))

    async def both() -> None:
        await used.embed(["a"])
        with pytest.raises(JudgeFault, match="max_calls=1 is used up"):
            await used.ask(call())

    asyncio.run(both())
    assert used.spent == "max_calls=1 is used up"


def test_embeddings_count_in_cost_and_in_the_tokens_of_a_minute(openai_stub: OpenAIStub, settings: Settings) -> None:
    # The stub counts 1 token for each request: 2 dollars a million, so 2e-6 each.
    openai_stub.script(embeddings([1.0]))
    used = Client(settings(prices={"input": 2, "output": 0}, max_cost=4e-6, tokens_per_minute=1000))
    costs = [run(used, lambda text=text: used.embed([text])).cost for text in ("a", "b", "a")]
    assert costs == [pytest.approx(2e-6), pytest.approx(2e-6), 0.0]
    assert sum(count for _, count in used.limits._tokens) == 2
    with pytest.raises(EndpointError, match="max_cost=4e-06 is used up"):
        run(used, lambda: used.embed(["c"]))
    assert (used.used.calls, used.used.cached, used.used.tokens) == (3, 1, 2)
    assert used.used.cost == pytest.approx(4e-6)


def test_what_a_client_used_is_unknown_where_one_call_is(openai_stub: OpenAIStub, settings: Settings) -> None:
    used = Client(settings(prices={"input": 1, "output": 1}))
    for n in (0, 0):
        say(used, ASKED, None, n)
    assert (used.used.calls, used.used.cached, used.used.tokens) == (2, 1, 20)
    assert used.used.cost == pytest.approx(1e-5)  # 7 in and 3 out at a dollar a million; the second cost nothing
    assert used.used.seconds > 0
    openai_stub.script(completion(choices=chat("ok").payload["choices"], usage=None))
    say(used, ASKED, None, 1)
    assert (used.used.calls, used.used.tokens, used.used.cost) == (3, None, None)


def test_the_key_is_in_no_row_of_the_cache(openai_stub: OpenAIStub, settings: Settings, tmp_path: Path) -> None:
    say(Client(settings()))
    (found,) = sqlite3.connect(tmp_path / "replies.sqlite").execute("SELECT key, reply FROM replies").fetchall()
    assert json.loads(found[1])["text"] == "ok"
    assert not any(KEY.encode() in path.read_bytes() for path in tmp_path.iterdir())
