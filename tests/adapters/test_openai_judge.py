"""The openai judge against a real local server: what is sent, what comes back, and what is said when it goes wrong."""

from __future__ import annotations

import asyncio
import pickle
import traceback
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

import pytest
from pydantic import BaseModel, ValidationError

from adapters.bench import Bench, Measurement
from adapters.endpoint import Endpoint, EndpointError
from adapters.judge import JudgeFault
from adapters.judges.model_names import family, pinned
from adapters.judges.openai import OpenAIJudge
from adapters.judges.yes_no import YesNoJudge
from adapters.schema import JudgeCard
from tests.adapters.calls import ask, call
from tests.adapters.router import QUESTION, record
from tests.stages.openai_stub import OpenAIStub, StubReply, chat, completion, embeddings, openai_stub, status

__all__ = ["openai_stub"]

KEY = "sk-test-DO-NOT-STORE-0002"


class Item(BaseModel):
    verdict: Literal["yes", "no"]
    reason: str | None = None


class Verdicts(BaseModel):
    verdicts: list[Item]
    note: str = "none"


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUB_KEY", KEY)
    monkeypatch.setenv("NO_PROXY", "*")


def judge(stub: OpenAIStub, **fields: Any) -> OpenAIJudge:
    plain = {
        "model": "stub-1",
        "api_key_env": "STUB_KEY",
        "max_attempts": 2,
        "timeout_seconds": 5.0,
        "structured": "json_schema",
    }
    return OpenAIJudge(**{"base_url": stub.base_url, **plain, **fields})


def fault(stub: OpenAIStub, *replies: StubReply, **fields: Any) -> str:
    """The message of the fault, once it is sure that the key is in no part of it."""
    stub.script(*replies)
    with pytest.raises(JudgeFault) as caught:
        ask(judge(stub, **fields), call())
    assert KEY not in "".join(traceback.format_exception(caught.value))
    return str(caught.value)


def test_a_plain_call_sends_the_prompt_as_it_is(openai_stub: OpenAIStub) -> None:
    openai_stub.script(chat("Score: 3", finish_reason="length"))
    (reply,) = ask(judge(openai_stub), call(prompt="Rate {this} 😀"))
    assert (reply.text, reply.tokens_in, reply.tokens_out) == ("Score: 3", 7, 3)
    assert (reply.finish_reason, reply.model) == ("length", "stub-1")
    (seen,) = openai_stub.requests
    assert seen.authorization == f"Bearer {KEY}"
    assert seen.body == {
        "model": "stub-1",
        "messages": [{"role": "user", "content": "Rate {this} 😀"}],
        "temperature": 0.0,
        "seed": 0,
        "max_tokens": 4096,
    }


def test_the_schema_is_asked_for_strictly(openai_stub: OpenAIStub) -> None:
    ask(judge(openai_stub), call(schema=Verdicts))
    wanted = openai_stub.requests[0].body["response_format"]
    assert wanted["type"] == "json_schema"
    assert (wanted["json_schema"]["name"], wanted["json_schema"]["strict"]) == ("Verdicts", True)
    sent = wanted["json_schema"]["schema"]
    item = sent["$defs"]["Item"]
    for closed, names in ((sent, ["verdicts", "note"]), (item, ["verdict", "reason"])):
        assert (closed["required"], closed["additionalProperties"]) == (names, False)
    assert "default" not in str(sent)


def test_without_strictness_the_schema_is_as_it_is(openai_stub: OpenAIStub) -> None:
    ask(judge(openai_stub, strict=False), call(schema=Verdicts))
    wanted = openai_stub.requests[0].body["response_format"]["json_schema"]
    assert (wanted["schema"], wanted["strict"]) == (Verdicts.model_json_schema(), False)


@pytest.mark.parametrize(("structured", "format_"), [("json_object", {"type": "json_object"}), ("text", None)])
def test_endpoints_without_schemas_get_it_below_the_prompt(
    openai_stub: OpenAIStub, structured: str, format_: Any
) -> None:
    ask(judge(openai_stub, structured=structured), call(schema=Verdicts), call())
    with_schema = next(seen.body for seen in openai_stub.requests if "JSON" in seen.body["messages"][0]["content"])
    plain = next(seen.body for seen in openai_stub.requests if seen.body != with_schema)
    assert with_schema.get("response_format") == format_
    assert with_schema["messages"][0]["content"].startswith(
        "Judge this.\n\nReply with one JSON object of this schema: {"
    )
    assert "response_format" not in plain
    assert plain["messages"][0]["content"] == "Judge this."


def test_another_sample_has_another_seed(openai_stub: OpenAIStub) -> None:
    ask(judge(openai_stub, seed=5), call(sample=2))
    ask(judge(openai_stub, seed=None), call(sample=2))
    assert openai_stub.requests[0].body["seed"] == 7
    assert "seed" not in openai_stub.requests[1].body


def test_options_are_sent(openai_stub: OpenAIStub) -> None:
    ask(judge(openai_stub, max_tokens=None, options={"max_completion_tokens": 9}), call())
    body = openai_stub.requests[0].body
    assert body["max_completion_tokens"] == 9
    assert "max_tokens" not in body


def test_rate_limits_and_server_errors_are_tried_again(openai_stub: OpenAIStub) -> None:
    openai_stub.script(status(429, {"retry-after": "0.05"}), status(500, {"retry-after": "0.05"}), chat("ok"))
    assert ask(judge(openai_stub, max_attempts=3), call())[0].text == "ok"
    assert len(openai_stub.requests) == 3


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (status(401, message=f"Bad {KEY}"), "refused the key in STUB_KEY (status 401); check it. It said: Bad [key]"),
        (status(404), "does not know model='stub-1' or has nothing at this base_url (status 404)"),
        (status(400, message="no schemas"), "refused the request with status 400"),
        (status(429, {"retry-after": "0.01"}), "limits the rate after 2 attempts (status 429)"),
        (StubReply(raw=b"{oops"), "no JSON of this interface; check base_url"),
        (StubReply(raw=b"<html>", headers={"content-type": "text/html"}), "often in /v1"),
        (StubReply(payload=[]), "base_url"),
        (completion(choices=[]), "without a choice that holds a message"),
        (completion(choices=[{"message": {"content": 5}}]), "without a choice that holds a message"),
    ],
    ids=["401", "404", "400", "429", "broken", "html", "list", "no choices", "number"],
)
def test_faults_name_the_setting_to_change(openai_stub: OpenAIStub, reply: StubReply, expected: str) -> None:
    assert expected in fault(openai_stub, reply)


def test_an_endpoint_without_schemas_names_the_setting(openai_stub: OpenAIStub) -> None:
    openai_stub.script(status(400, message="unknown field response_format"))
    with pytest.raises(JudgeFault, match=r"response_format; where it takes no schemas, change judge\.strict or"):
        ask(judge(openai_stub), call(schema=Verdicts))
    assert "takes no schemas" not in fault(openai_stub, status(400))


def test_a_missing_key_is_named_before_any_call(openai_stub: OpenAIStub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STUB_KEY")
    assert "api_key_env names STUB_KEY, which is not set" in fault(openai_stub, chat("ok"))
    assert openai_stub.requests == []


def test_a_lone_surrogate_is_a_fault_of_one_call(openai_stub: OpenAIStub) -> None:
    with pytest.raises(JudgeFault, match="lone surrogate"):
        ask(judge(openai_stub), call(prompt="half \ud83d"))
    assert ask(judge(openai_stub), call())[0].text == "ok"


def test_a_server_that_hangs_ends_at_timeout_seconds(openai_stub: OpenAIStub) -> None:
    said = fault(openai_stub, StubReply(hang_seconds=30), timeout_seconds=0.2, max_attempts=1)
    assert "did not answer within timeout_seconds=0.2 after 1 attempt" in said


def test_call_seconds_end_retries_and_the_judge_goes_on(openai_stub: OpenAIStub) -> None:
    async def both() -> tuple[str, str]:
        async with Bench(judge(openai_stub, call_seconds=0.3, max_attempts=50)) as bench:
            with pytest.raises(JudgeFault) as caught:
                await bench.ask(call())
            openai_stub.script(chat("ok"))
            return str(caught.value), (await bench.ask(call())).text

    openai_stub.script(status(500, {"retry-after": "0.05"}))
    began = perf_counter()
    said, then = asyncio.run(both())
    assert "did not answer within judge.call_seconds=0.3" in said
    assert then == "ok"
    assert perf_counter() - began < 3


def test_a_bench_that_ends_leaves_the_calls_of_another_alone(openai_stub: OpenAIStub) -> None:
    used = judge(openai_stub, max_attempts=1)

    async def overlapping() -> list[str]:
        async def one(calls: int) -> str:
            async with Bench(used) as bench:
                return [await bench.ask(call()) for _ in range(calls)][-1].text

        return await asyncio.gather(*(one(calls) for calls in (1, 3, 5)))

    openai_stub.script(*[StubReply(hang_seconds=0.02, payload=chat("ok").payload)] * 2)
    assert asyncio.run(overlapping()) == ["ok"] * 3


def test_closing_leaves_no_connection_behind(openai_stub: OpenAIStub) -> None:
    from adapters import endpoint

    async def used_and_closed() -> int:
        used = judge(openai_stub)
        await used.ask(call())
        await used.close()
        await used.close()
        return len(endpoint._lines[asyncio.get_running_loop()])

    assert asyncio.run(used_and_closed()) == 0


def test_embeddings_of_a_model_at_the_endpoint(openai_stub: OpenAIStub) -> None:
    openai_stub.script(embeddings([1, 2], [3, 4]))
    used = judge(openai_stub, embeddings="small", options={"max_completion_tokens": 9})
    assert asyncio.run(used.embed(["a", "b"])) == [[1.0, 2.0], [3.0, 4.0]]
    assert openai_stub.requests[0].body == {"model": "small", "input": ["a", "b"], "encoding_format": "float"}
    assert asyncio.run(used.embed([])) == []
    openai_stub.script(StubReply(raw=b'{"data": [{"index": 0, "embedding": [NaN]}]}'))
    with pytest.raises(JudgeFault, match=r"no embeddings: .* without 1 vectors"):
        asyncio.run(used.embed(["a"]))


def test_hashed_embeddings_and_none(openai_stub: OpenAIStub) -> None:
    assert len(asyncio.run(judge(openai_stub, embeddings="hashed").embed(["a b"]))[0]) == 4096
    with pytest.raises(JudgeFault, match=r"set judge\.embeddings to an embedding model at 127\.0\.0\.1"):
        asyncio.run(judge(openai_stub).embed(["a"]))
    assert openai_stub.requests == []


CHANGES: dict[str, Any] = {
    "base_url": "http://elsewhere:1/v1",
    "model": "other",
    "revision": "sha256:abc",
    "temperature": 0.5,
    "seed": 1,
    "max_tokens": 9,
    "options": {"top_p": 0.5},
    "structured": "text",
    "strict": False,
    "repair_rounds": 0,
    "embeddings": "hashed",
    "samples": 3,
}
SAME: dict[str, Any] = {
    "api_key_env": None,
    "timeout_seconds": 1.0,
    "max_attempts": 9,
    "concurrency": 2,
    "call_seconds": 5.0,
    "frozen": "frozen.json",
    "drift_tolerance": 0.5,
    "cache": "off",
    "cache_file": "elsewhere.sqlite",
    "max_calls": 7,
    "max_cost": None,
    "requests_per_minute": 9,
    "tokens_per_minute": 9,
    "prices": {"input": 1.0, "output": 2.0},
}


def test_the_fingerprint_changes_with_what_can_change_an_answer() -> None:
    plain: dict[str, Any] = {"base_url": "http://localhost:1/v1", "model": "m", "api_key_env": "STUB_KEY"}
    card = OpenAIJudge(**plain).card
    assert set(CHANGES) | set(SAME) == set(OpenAIJudge.model_fields), "every field must be in one of the two"
    prints = [OpenAIJudge(**plain | {name: value}).card.fingerprint for name, value in CHANGES.items()]
    assert len({card.fingerprint, *prints}) == len(CHANGES) + 1
    for name, value in SAME.items():
        assert OpenAIJudge(**plain | {name: value}).card == card
    assert (card.provider, card.model, card.host, card.embeddings) == ("openai", "m", "localhost:1", None)


def test_two_deployments_on_one_host_are_two_judges() -> None:
    def card(base_url: str, kind: type[OpenAIJudge | YesNoJudge] = OpenAIJudge) -> JudgeCard:
        return kind(base_url=base_url, model="m").card

    # As they were before the path counted: stored scores stay comparable.
    assert card("http://h/v1").fingerprint == card("http://h/v1/").fingerprint == "2cec73b80e294360"
    # Not by number: that of yes_no hangs on the rules of judge=lexical too, by which it cuts claims.
    assert "path" not in card("http://h/v1", YesNoJudge).settings
    for kind in (OpenAIJudge, YesNoJudge):
        urls = [f"http://h{path}" for path in ("", "/v1", "/openai/deployments/a", "/openai/deployments/b", "/v2")]
        assert len({card(url, kind).fingerprint for url in urls}) == len(urls)
    assert card("http://h/openai/deployments/a/").settings["path"] == "/openai/deployments/a"


def test_max_cost_needs_the_price_of_the_embedding_model_too(openai_stub: OpenAIStub) -> None:
    prices = {"input": 1.0, "output": 1.0}
    with pytest.raises(ValidationError, match=r"max_cost=1 needs prices\.embeddings, what a million tokens of small"):
        judge(openai_stub, embeddings="small", max_cost=1.0, prices=prices)
    for known in ({"embeddings": "hashed"}, {"embeddings": "small", "prices": {**prices, "embeddings": 0.0}}):
        assert judge(openai_stub, **{"max_cost": 1.0, "prices": prices, **known}).max_cost == 1.0


@pytest.mark.parametrize(
    ("fields", "cost"),
    [
        # 1 token of the stub at 3 dollars a million; the second time it is kept.
        ({"embeddings": "small", "prices": {"input": 1.0, "output": 1.0, "embeddings": 3.0}}, 3e-6),
        ({"embeddings": "small", "prices": {"input": 1.0, "output": 1.0}}, None),
        ({"embeddings": "small"}, None),
        ({"embeddings": "hashed"}, 0.0),
    ],
    ids=["known", "no price of embeddings", "no prices", "hashed"],
)
def test_the_cost_of_a_score_holds_its_embeddings(
    openai_stub: OpenAIStub, tmp_path: Path, fields: dict[str, Any], cost: float | None
) -> None:
    async def spent() -> Any:
        async with Bench(judge(openai_stub, cache_file=str(tmp_path / "r.sqlite"), **fields)) as bench:
            measurement = Measurement("mine/definition", QUESTION, record(), bench)
            await measurement.embed(["word"])
            return measurement.spent()["cost"]

    openai_stub.script(embeddings([1.0]))
    assert asyncio.run(spent()) == (cost if cost is None else pytest.approx(cost))
    assert asyncio.run(spent()) == 0.0, "what is kept cost nothing, whatever its price"


def test_the_key_is_nowhere(openai_stub: OpenAIStub) -> None:
    used = judge(openai_stub)
    ask(used, call())
    assert pickle.loads(pickle.dumps(used)) == used
    assert KEY not in repr(used) + used.model_dump_json() + str(pickle.dumps(used)) + str(asdict(used.card))
    with pytest.raises(ValidationError) as caught:
        judge(openai_stub, api_key_env=KEY)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("gpt-4o-mini", False),
        ("gpt-4o-mini-2024-07-18", True),
        ("gpt-4-0613", True),
        ("chatgpt-4o-latest", False),
        ("o3-mini", False),
        ("openai/gpt-4o", False),
        ("claude-3-5-haiku-20241022", True),
        ("claude-3-5-haiku-latest", False),
        ("anthropic.claude-3-haiku-20240307-v1:0", True),
        ("gemini-2.0-flash-001", True),
        ("gemini-2.0-flash", False),
        ("mistral-large-2411", True),
        ("command-r-08-2024", True),
        ("command-r-plus", False),
        ("qwen2.5:latest", False),
        ("qwen2.5", False),
        ("qwen2.5:7b-instruct", False),
        ("qwen2.5:7b-instruct-q4_K_M", True),
        ("llama3.1:8b-instruct-fp16", True),
        ("/models/Qwen2.5-7B-Instruct-Q8_0.gguf", True),
        ("TheBloke/Llama-2-7B-GPTQ", True),
        ("meta-llama/Llama-3.1-8B-Instruct", False),
        ("m@sha256:0123456789abcdef", True),
    ],
)
def test_a_name_says_which_weights_or_it_does_not(model: str, expected: bool) -> None:
    assert pinned(model) is expected


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("openai/gpt-4o", "gpt"),
        ("o1-mini", "gpt"),
        ("gpt-oss:20b", "gpt"),
        ("anthropic.claude-3-haiku-20240307-v1:0", "claude"),
        ("meta-llama/Llama-3.1-8B-Instruct", "llama"),
        ("accounts/x/models/llama-v3p1-8b", "llama"),
        ("codellama:7b", "llama"),
        ("ollama/qwen2.5:7b", "qwen"),
        ("ollama-own:1", "ollama-own"),
        ("Qwen/QwQ-32B", "qwen"),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", "mistral"),
        ("ministral-8b-latest", "mistral"),
        ("google/gemma-2-9b-it", "gemma"),
        ("gemini-1.5-pro", "gemini"),
        ("microsoft/phi-4", "phi"),
        ("dolphin-x", "dolphin-x"),
        ("command-r-plus", "command"),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", "deepseek qwen"),
        ("TheBloke/Llama-2-7B-GPTQ", "llama"),
    ],
)
def test_families_by_name(model: str, expected: str) -> None:
    assert family(model) == frozenset(expected.split())


@pytest.mark.parametrize(
    ("model", "revision", "generator", "expected"),
    [
        ("gpt-4o-mini", None, None, ["like gpt-4o-mini-2024-07-18"]),
        ("gpt-4o-mini", "2024-07-18", None, []),
        ("qwen2.5:latest", None, None, ["like qwen2.5:7b-instruct-q4_K_M"]),
        ("qwen2.5:7b-instruct", None, None, ["like qwen2.5:7b-instruct-q4_K_M"]),
        ("qwen2.5:7b-instruct-q4_K_M", None, "Qwen/Qwen2.5-72B-Instruct", ["one family (qwen)"]),
        ("qwen2.5:7b-instruct-q4_K_M", None, "gpt-4o", []),
        ("gpt-4o", None, "azure/gpt-4.1-mini", ["alias", "one family (gpt)"]),
        ("llama-3.1-8B", None, None, ["like llama-3.1-8B-q4_K_M"]),
        ("m", None, None, ["Write the full tag with its quantisation, or the digest"]),
        ("my-model-q4_0", None, "my-model-q4_0", ["one family (my-model-q)"]),
    ],
)
def test_warnings_say_what_to_do(model: str, revision: str | None, generator: str | None, expected: list[str]) -> None:
    told = OpenAIJudge(base_url="http://h/v1", model=model, revision=revision).warnings(generator)
    assert len(told) == len(expected)
    for warning, part in zip(told, expected, strict=True):
        assert part in warning


def test_the_endpoint_says_the_same_from_a_loop(openai_stub: OpenAIStub) -> None:
    hello = [{"role": "user", "content": "Hello"}]
    used = Endpoint(base_url=openai_stub.base_url, model="stub-1", max_attempts=1)

    async def from_a_loop() -> Any:
        try:
            return await used.achat(hello)
        finally:
            await used.aclose()

    assert asyncio.run(from_a_loop()) == used.chat(hello)
    assert openai_stub.requests[0].body == openai_stub.requests[1].body
    openai_stub.script(status(404))
    with pytest.raises(EndpointError) as blocking:
        used.chat(hello)
    with pytest.raises(EndpointError) as waiting:
        asyncio.run(from_a_loop())
    assert str(blocking.value) == str(waiting.value)
