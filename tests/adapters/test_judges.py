"""What every judge promises, whoever answers."""

from __future__ import annotations

import asyncio
import json
import pickle
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from pydantic import ValidationError

from adapters import tasks as t
from adapters.judge import Judge, JudgeFault, Reply
from adapters.judges.labels import LabelsJudge
from adapters.judges.lexical import LexicalJudge
from adapters.judges.openai import OpenAIJudge
from adapters.judges.replay import ReplayJudge
from adapters.judges.vectors import hashed
from adapters.recording import Recorder
from adapters.schema import Chunk, JudgeCard, Question, Ranked, Record, from_json, to_json
from runner.component import build
from tests.adapters.calls import TASKS, VOCABULARY, ask, call, count
from tests.stages.openai_stub import OpenAIStub, chat, openai_stub

__all__ = ["openai_stub"]

NAMES = ["lexical", "labels", "replay", "openai"]
CONF = Path(__file__).parents[2] / "conf" / "judge"


@pytest.fixture(params=NAMES)
def judge(request: pytest.FixtureRequest, openai_stub: OpenAIStub, tmp_path: Path) -> Judge:
    """Each judge, able to answer `call(TASKS["split"])`."""
    openai_stub.script(chat('{"claims": ["one"]}'))
    if request.param == "replay":
        with Recorder(tmp_path / "replies.jsonl", JudgeCard("openai", "m-2024-07-18")) as recorder:
            recorder.reply(call(), Reply('{"claims": ["one"]}', 7, 3, "stop", "m"))
    judges: dict[str, Callable[[], Judge]] = {
        "lexical": LexicalJudge,
        "labels": LabelsJudge,
        "replay": lambda: ReplayJudge(recording=str(tmp_path / "replies.jsonl")),
        "openai": lambda: OpenAIJudge(base_url=openai_stub.base_url, model="m", max_attempts=1),
    }
    return judges[request.param]()


def test_the_card_is_stable_and_survives_json(judge: Judge) -> None:
    assert judge.card == judge.card
    assert from_json(JudgeCard, to_json(judge.card)) == judge.card
    json.dumps(asdict(judge.card), allow_nan=False)
    assert len(judge.card.fingerprint) == 16
    assert pickle.loads(pickle.dumps(judge)).card == judge.card


def test_speed_settings_do_not_change_the_card(judge: Judge) -> None:
    faster = judge.model_copy(update={"concurrency": 1, "call_seconds": 1.0})
    assert faster.card.fingerprint == judge.card.fingerprint


def test_two_event_loops_in_turn_and_many_calls_at_once(judge: Judge) -> None:
    first, second = ask(judge, call()), ask(judge, *[call()] * 5)
    assert {reply.text for reply in second} == {first[0].text}
    assert json.loads(first[0].text)


def test_threads_with_loops_of_their_own(judge: Judge) -> None:
    with ThreadPoolExecutor(4) as pool:
        replies = list(pool.map(lambda _: ask(judge, call())[0], range(16)))
    assert len({reply.text for reply in replies}) == 1


def test_warnings_are_sentences(judge: Judge) -> None:
    for warning in (*judge.warnings(None), *judge.warnings("gpt-4o")):
        assert warning
        assert "\n" not in warning


def test_settings_are_checked(judge: Judge) -> None:
    for wrong in ({"concurrency": 0}, {"call_seconds": 0}, {"nonsense": 1}):
        with pytest.raises(ValidationError):
            type(judge)(**{**judge.model_dump(), **wrong})


@pytest.mark.parametrize("name", NAMES)
def test_each_yaml_builds_its_judge_and_comments_every_key(name: str) -> None:
    text = (CONF / f"{name}.yaml").read_text(encoding="utf-8")
    config = yaml.safe_load(text)
    if "cache_file" in config:
        assert config["cache_file"] == "${tracking.folder}/store/replies.sqlite"  # Hydra fills it in
        config["cache_file"] = None
    built = build(config, Judge, "judge")  # type: ignore[type-var]
    assert set(config) - {"_target_"} == set(type(built).model_fields)
    for line in text.splitlines():
        assert "#" in line or line.startswith("_target_: "), line
    fields = {n: f.default for n, f in type(built).model_fields.items() if not f.is_required()}
    assert {n: getattr(built, n) for n in fields} == {n: ({} if n == "options" else d) for n, d in fields.items()}


# Judges without a model: every kind of task, and hostile ones.


@pytest.mark.parametrize("without_model", [LexicalJudge(), LabelsJudge()], ids=["lexical", "labels"])
@pytest.mark.parametrize("name", TASKS)
def test_every_task_is_answered_in_its_vocabulary_or_refused(without_model: Judge, name: str) -> None:
    task = TASKS[name]
    try:
        (reply,) = ask(without_model, call(task))
    except JudgeFault as fault:
        said = str(fault)
        assert isinstance(without_model, LabelsJudge)
    else:
        said = "nobody judged"
        findings = json.loads(reply.text)
        assert findings
        assert {word for _, word, _, _ in findings} <= VOCABULARY[type(task)]
        assert count(task) in (None, len(findings))
        assert all(0 <= grade <= 1 for _, _, _, grade in findings)
        assert ask(without_model, call(task))[0] == reply
        assert (reply.tokens_in, reply.tokens_out) == (0, 0)
    assert "nobody judged" in said


def test_every_kind_of_task_is_tried() -> None:
    assert {type(task) for task in TASKS.values()} == set(get_args(t.Task)) == set(VOCABULARY)


HOSTILE = {
    "empty": "",
    "blank": " \n\t",
    "surrogate": "a \ud83d b. Not c!",
    "marks": "!!! ??? ...",
    "digits": "9" * 5000 + " days, " + "٣ ² ½ 1,000,000,000 1e9 .5 -0",
    "control": "\x00\x07\u2028A\u2029.\u200b",
    "units": "% $ € 5% $5 €5 km 5km twenty one zero hundred",
    "two megabytes": "The R2 is not covered for 24 months; it was, and 5 km is far. " * 32_000,
}


@pytest.mark.parametrize("without_model", [LexicalJudge(), LabelsJudge()], ids=["lexical", "labels"])
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_end_in_a_reply_or_a_fault(without_model: Judge, name: str) -> None:
    text = HOSTILE[name]
    chunk = Chunk("d", 0, len(text), text)
    ranked = (Ranked(chunk, 1.0, 1),)
    question = Question("q", text, text, relevant=(), human={"answer": text, "claims": [], "declines": False})
    measured = Record("q", 1, ranked, ranked, (chunk,), answer=text)
    few = (text,)
    for task in (
        t.Split(text, "answer"),
        t.Split(text, "context", "facts"),
        t.Split(text, "answer", "entities"),
        t.Support((text[:200], "The R2 is covered."), text, "answer", "context"),
        t.Attribute(text[:2000], text),
        t.Relevance(text, few, text),
        t.Relevance(text, few, units_of="answer"),
        t.RelevantStatements(text, text),
        t.AskBack(text),
        t.Agree(text, text[:2000], text[:2000]),
        t.Grade("relevance", text, "answer", text),
        t.Grade("groundedness", text[:2000], "answer", against=text),
        t.Match(text, (text[:200],), (text[:200],)),
        t.Decline(text, text),
        t.Contribution(text, text[:2000], few),
    ):
        try:
            (reply,) = ask(without_model, call(task, question=question, measured=measured))
            json.loads(reply.text)
        except JudgeFault:
            if not isinstance(without_model, LabelsJudge):
                raise


@pytest.mark.parametrize("without_model", [LexicalJudge(), LabelsJudge()], ids=["lexical", "labels"])
def test_a_fault_of_the_task_reaches_the_caller(without_model: Judge) -> None:
    def broken() -> t.Task:
        raise JudgeFault("the prompt has no context")

    with pytest.raises(JudgeFault, match="the prompt has no context"):
        ask(without_model, call(broken))


def test_a_text_is_written_as_it_is_where_no_schema_is_asked() -> None:
    assert ask(LexicalJudge(), call(write=lambda findings: "Score: 3"))[0].text == "Score: 3"


def test_no_socket_is_opened_by_judges_without_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_socket(*_: Any, **__: Any) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket.socket, "connect", no_socket)
    for without_model in (LexicalJudge(), LabelsJudge()):
        ask(without_model, call())
        asyncio.run(without_model.embed(["a"]))


def test_hashed_vectors_have_length_one_and_follow_the_words() -> None:
    same, twin, near, far = hashed(["The R2 is covered", "the r2, is COVERED!", "The R2 is new", "Ships sail"])
    assert same == twin

    def product(a: list[float], b: list[float]) -> float:
        return sum(x * y for x, y in zip(a, b, strict=True))

    assert product(same, same) == pytest.approx(1)
    assert product(same, far) < product(same, near) < 1
    assert min(min(vector) for vector in (same, near, far)) >= 0
    assert hashed([]) == []
    # Worked by hand: {a, b, "a b"} and {a, c, "a c"} share 1 of 3 counts each: 1 / (sqrt(3) sqrt(3)).
    assert product(*hashed(["a b", "a c"])) == pytest.approx(1 / 3)
    with pytest.raises(JudgeFault, match="without a word"):
        hashed(["a", "?!"])
