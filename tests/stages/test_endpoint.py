from __future__ import annotations

import json
import pickle
import socket
import traceback
from typing import Any

import pytest
from pydantic import ValidationError

from adapters.endpoint import Embedded, Endpoint, EndpointError
from tests.stages.contracts import in_another_process
from tests.stages.openai_stub import OpenAIStub, StubReply, chat, completion, embeddings, openai_stub, status

__all__ = ["openai_stub"]

KEY = "sk-test-DO-NOT-STORE-0001"
HELLO = [{"role": "user", "content": "Hello 😀 {x}"}]


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUB_KEY", KEY)
    monkeypatch.setenv("NO_PROXY", "*")


def endpoint(stub: OpenAIStub, **fields: Any) -> Endpoint:
    plain = {"model": "stub-1", "api_key_env": "STUB_KEY", "max_attempts": 2, "timeout_seconds": 5.0}
    return Endpoint(**{"base_url": stub.base_url, **plain, **fields})


def refusal(stub: OpenAIStub, *replies: StubReply, **fields: Any) -> str:
    """The message of the error, once it is sure that the key is in no part of it."""
    stub.script(*replies)
    with pytest.raises(EndpointError) as caught:
        endpoint(stub, **fields).chat(HELLO)
    assert KEY not in "".join(traceback.format_exception(caught.value))
    return str(caught.value)


def test_a_reply_comes_with_its_counts(openai_stub: OpenAIStub) -> None:
    openai_stub.script(chat("Bonjour 😀"))
    reply = endpoint(openai_stub).chat(HELLO)
    assert (reply.text, reply.tokens_in, reply.tokens_out) == ("Bonjour 😀", 7, 3)
    assert (reply.finish_reason, reply.model) == ("stop", "stub-1")
    assert json.loads(json.dumps(reply.body))["choices"][0]["message"]["content"] == "Bonjour 😀"
    (seen,) = openai_stub.requests
    assert seen.path == "/v1/chat/completions"
    assert seen.authorization == f"Bearer {KEY}"
    assert seen.body == {"model": "stub-1", "messages": HELLO, "temperature": 0.0, "seed": 0, "max_tokens": 512}


def test_null_settings_are_not_sent_and_options_are(openai_stub: OpenAIStub) -> None:
    silent = endpoint(openai_stub, temperature=None, seed=None, max_tokens=None, options={"max_completion_tokens": 9})
    silent.chat(HELLO, {"logprobs": True})
    sent = openai_stub.requests[0].body
    assert sent == {"model": "stub-1", "messages": HELLO, "max_completion_tokens": 9, "logprobs": True}


def test_usage_may_be_missing(openai_stub: OpenAIStub) -> None:
    openai_stub.script(completion(choices=[{"message": {"content": "a"}}], usage=None))
    reply = endpoint(openai_stub).chat(HELLO)
    assert (reply.text, reply.tokens_in, reply.tokens_out) == ("a", None, None)


def test_a_refusal_of_the_model_is_its_text(openai_stub: OpenAIStub) -> None:
    openai_stub.script(chat(None, refusal="I can't help with that."))
    assert endpoint(openai_stub).chat(HELLO).text == "I can't help with that."


def test_retry_after_is_honoured(openai_stub: OpenAIStub) -> None:
    openai_stub.script(status(429, {"retry-after": "1"}), chat("ok"))
    assert endpoint(openai_stub).chat(HELLO).text == "ok"
    first, second = openai_stub.requests
    assert second.at - first.at >= 1.0


def test_a_rate_limit_without_end_says_so_after_the_last_attempt(openai_stub: OpenAIStub) -> None:
    said = refusal(openai_stub, status(429, {"retry-after": "0.05"}, "slow down"), max_attempts=3)
    assert len(openai_stub.requests) == 3
    assert "limits the rate after 3 attempts (status 429); lower concurrency or raise max_attempts" in said
    assert said.endswith("It said: slow down")


def test_server_errors_are_tried_again(openai_stub: OpenAIStub) -> None:
    openai_stub.script(status(500, {"retry-after": "0.05"}), status(503, {"retry-after": "0.05"}), chat("ok"))
    assert endpoint(openai_stub, max_attempts=3).chat(HELLO).text == "ok"
    assert "failed with status 500 after 1 attempt" in refusal(openai_stub, status(500), max_attempts=1)


@pytest.mark.parametrize(
    ("reply", "fields", "expected"),
    [
        (
            status(401, message=f"Bad {KEY}"),
            {},
            "refused the key in STUB_KEY (status 401); check it. It said: Bad [key]",
        ),
        (status(403), {}, "refused the key in STUB_KEY (status 403)"),
        (status(401), {"api_key_env": None}, "refused a call without a key (status 401); set api_key_env"),
        (status(404), {"model": "nope"}, "does not know model='nope' or has nothing at this base_url (status 404)"),
        (
            status(400, message="no temperature"),
            {},
            "temperature, seed, max_tokens and options. It said: no temperature",
        ),
        (completion(choices=[]), {}, "without a choice that holds a message"),
        (completion(choices=None), {}, "without a choice that holds a message"),
        (completion(choices=[{"message": None}]), {}, "without a choice that holds a message"),
        (completion(usage="x", choices=[{"message": {"content": 5}}]), {}, "without a choice that holds a message"),
        (StubReply(payload=[]), {}, "base_url"),
        (StubReply(raw=b""), {}, "base_url"),
        (StubReply(raw=b"{oops"), {}, "no JSON of this interface; check base_url"),
        (StubReply(raw=b"[" * 100_000 + b"]" * 100_000), {}, "no JSON of this interface; check base_url"),
        (StubReply(raw=b"\xff\xfe"), {}, "base_url"),
        (StubReply(raw=b"<html>", headers={"content-type": "text/html"}), {}, "often in /v1"),
    ],
    ids=[
        "401",
        "403",
        "401 without key",
        "404",
        "400",
        "no choices",
        "null choices",
        "null message",
        "wrong types",
        "list",
        "nothing",
        "broken json",
        "deep json",
        "bytes",
        "html",
    ],
)
def test_errors_name_the_setting_to_change(
    openai_stub: OpenAIStub, reply: StubReply, fields: Any, expected: str
) -> None:
    said = refusal(openai_stub, reply, **fields)
    assert expected in said
    assert said.startswith(endpoint(openai_stub).host)
    assert len(openai_stub.requests) == 1, "an error that will not pass is not tried again"


def test_a_server_that_hangs_is_a_timeout(openai_stub: OpenAIStub) -> None:
    said = refusal(openai_stub, StubReply(hang_seconds=30), timeout_seconds=0.2, max_attempts=1)
    assert "did not answer within timeout_seconds=0.2 after 1 attempt" in said


def test_a_connection_that_closes_is_tried_again(openai_stub: OpenAIStub) -> None:
    openai_stub.script(StubReply(close=True), chat("ok"))
    assert endpoint(openai_stub).chat(HELLO).text == "ok"
    said = refusal(openai_stub, StubReply(close=True), max_attempts=1)
    assert "closed the connection before it had answered after 1 attempt" in said


def test_no_server_names_host_and_base_url(openai_stub: OpenAIStub) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nowhere = f"127.0.0.1:{free.getsockname()[1]}"
    said = refusal(openai_stub, chat("ok"), base_url=f"http://{nowhere}/v1", max_attempts=1)
    assert said.startswith(f"cannot connect to {nowhere} after 1 attempt; check base_url")


@pytest.mark.parametrize("value", [None, "", "  "])
def test_a_key_that_is_not_set_is_named_before_any_call(
    openai_stub: OpenAIStub, monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    monkeypatch.delenv("STUB_KEY") if value is None else monkeypatch.setenv("STUB_KEY", value)
    with pytest.raises(EndpointError, match="api_key_env names STUB_KEY, which is not set"):
        endpoint(openai_stub).chat(HELLO)
    assert openai_stub.requests == []


@pytest.mark.parametrize("value", ["sk-two\nlines-of-a-key", "schlüssel-of-some-length", "sk-\x00-zero-byte-key"])
def test_a_key_that_no_header_can_carry_is_named_and_not_shown(
    openai_stub: OpenAIStub, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setattr("adapters.endpoint.os.environ", {"STUB_KEY": value})
    with pytest.raises(EndpointError, match="STUB_KEY in the environment is no key: it has a line break, or") as caught:
        endpoint(openai_stub).chat(HELLO)
    assert value not in str(caught.value)
    assert openai_stub.requests == []


def test_a_key_that_the_endpoint_repeats_is_in_no_reply(openai_stub: OpenAIStub) -> None:
    choices = [{"message": {"content": f"You sent {KEY}."}, "finish_reason": "stop"}]
    openai_stub.script(completion(choices=choices, model=f"m {KEY}", debug={f"Bearer {KEY}": [KEY, 1, None]}))
    reply = endpoint(openai_stub).chat(HELLO)
    assert (reply.text, reply.model) == ("You sent [key].", "m [key]")
    assert reply.body["debug"] == {"Bearer [key]": ["[key]", 1, None]}
    assert KEY not in repr(reply)


def test_a_key_too_short_for_a_secret_leaves_replies_alone(
    openai_stub: OpenAIStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STUB_KEY", "ollama")  # what servers that want any key are given
    openai_stub.script(chat("ollama runs models"))
    assert endpoint(openai_stub).chat(HELLO).text == "ollama runs models"


def test_a_header_that_repeats_the_key_is_not_shown(openai_stub: OpenAIStub) -> None:
    headers = {"retry-after": f"Bearer {KEY}", "x-should-retry": "false"}
    assert "(Retry-After: Bearer [key]," in refusal(openai_stub, status(429, headers))


@pytest.mark.parametrize(
    "fields",
    [
        {"options": {"user": f"me {KEY}"}},
        {"options": {"metadata": {"of": [{"tenant": KEY}]}}},
        {"base_url": f"http://localhost:1/{KEY}/v1"},
        {"model": KEY},
    ],
    ids=["option", "deep option", "address", "model"],
)
def test_a_setting_that_holds_the_key_is_refused_without_showing_it(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="holds the key that STUB_KEY has in the environment") as caught:
        Endpoint(**{"base_url": "http://localhost:1/v1", "model": "m", "api_key_env": "STUB_KEY", **fields})
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("api-key", {"api-key": "hunter2"}),
        ("X-Api-Keys", {"X-Api-Keys": "hunter2"}),
        ("Authorization", {"extra_headers": {"Authorization": "hunter2"}}),
        ("client_secret", {"tools": [{"auth": {"client_secret": "hunter2"}}]}),
        ("credentials", {"credentials": "hunter2"}),
    ],
)
def test_options_hold_no_name_of_a_secret_at_any_depth(name: str, options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=f"must not hold {name}: options are stored") as caught:
        Endpoint(base_url="http://localhost:1/v1", model="m", options=options)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        ("x", (None, None)),
        ([1], (None, None)),
        ({"prompt_tokens": -5, "completion_tokens": True}, (None, None)),
        ({"prompt_tokens": 5.5, "completion_tokens": 1}, (None, 1)),
    ],
    ids=str,
)
def test_counts_that_are_none_cost_no_reply(
    openai_stub: OpenAIStub, usage: Any, counts: tuple[int | None, int | None]
) -> None:
    openai_stub.script(completion(choices=[{"message": {"content": "a"}}], usage=usage))
    reply = endpoint(openai_stub).chat(HELLO)
    assert (reply.text, reply.tokens_in, reply.tokens_out) == ("a", *counts)


def test_half_an_emoji_is_named_before_it_is_sent(openai_stub: OpenAIStub) -> None:
    with pytest.raises(EndpointError, match="lone surrogate"):
        endpoint(openai_stub).chat([{"role": "user", "content": "\ud83d"}])


def test_vectors_come_in_the_order_of_the_texts(openai_stub: OpenAIStub) -> None:
    openai_stub.script(embeddings([1, 2], [3, 4]))
    assert endpoint(openai_stub).embed(["a", "b"]) == Embedded([[1.0, 2.0], [3.0, 4.0]], tokens=1)
    assert openai_stub.requests[0].body == {"model": "stub-1", "input": ["a", "b"], "encoding_format": "float"}
    assert endpoint(openai_stub).embed([]) == Embedded([], 0)


@pytest.mark.parametrize("usage", [None, "x", {}, {"prompt_tokens": None}, {"prompt_tokens": True}])
def test_tokens_of_vectors_that_nobody_counted_are_unknown(openai_stub: OpenAIStub, usage: Any) -> None:
    openai_stub.script(StubReply(payload={"data": [{"index": 0, "embedding": [1.0]}], "usage": usage}))
    assert endpoint(openai_stub).embed(["a"]) == Embedded([[1.0]], None)


@pytest.mark.parametrize("vectors", [[], [[1.0]], [[1.0], [1.0, 2.0]]], ids=["none", "too few", "two lengths"])
def test_vectors_that_do_not_fit_the_texts_are_refused(openai_stub: OpenAIStub, vectors: list[list[float]]) -> None:
    openai_stub.script(embeddings(*vectors))
    with pytest.raises(EndpointError, match="without 2 vectors of one length"):
        endpoint(openai_stub).embed(["a", "b"])


@pytest.mark.parametrize(
    "fields",
    [
        {"base_url": "http://bob:hunter2@localhost/v1"},
        {"base_url": "https://localhost/v1?key=hunter2"},
        {"base_url": "localhost/hunter2"},
        {"base_url": "ftp://localhost/hunter2"},
        {"api_key_env": "sk-hunter2"},
        {"api_key_env": "hunter2"},
        {"api_key": "hunter2"},
        {"temperature": 3},
        {"max_attempts": 0},
        {"timeout_seconds": 0},
        {"max_tokens": 0},
        {"model": ""},
    ],
    ids=str,
)
def test_wrong_settings_are_refused_without_showing_secrets(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as caught:
        Endpoint(**{"base_url": "http://localhost:1/v1", "model": "m", **fields})
    assert "hunter2" not in str(caught.value)


def test_no_field_holds_the_key_and_it_survives_a_pickle(openai_stub: OpenAIStub) -> None:
    used = endpoint(openai_stub)
    used.chat(HELLO)
    assert pickle.loads(pickle.dumps(used)) == used
    assert KEY not in repr(used) + used.model_dump_json() + str(pickle.dumps(used))


def test_openai_is_imported_only_when_it_is_called() -> None:
    assert in_another_process("import sys, adapters.endpoint; print('openai' in sys.modules)", imports="") == "False"
