"""What a judge replied, written down and played back without it."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters.base import JudgedScorer, scorer
from adapters.bench import Bench
from adapters.judge import Judge, JudgeFault, Reply
from adapters.judges.openai import OpenAIJudge
from adapters.judges.replay import ReplayJudge
from adapters.recording import Recorder, RecordingError, load
from adapters.schema import JudgeCard, Score
from tests.adapters.calls import ask, call
from tests.adapters.router import CLAIMS, QUESTION, record
from tests.stages.openai_stub import OpenAIStub, chat, openai_stub

__all__ = ["openai_stub"]

CARD = JudgeCard("openai", "m-2024-07-18", host="h:1")
REPLY = Reply('{"a": "\u00e9 \u2028"}', 7, None, "stop", "m")
KEY = "sk-test-DO-NOT-STORE-0003"


def recorded(path: Path, *lines: str) -> str:
    """A recording with one reply and these lines after it."""
    with Recorder(path, CARD) as recorder:
        recorder.reply(call(), REPLY)
    with path.open("a", encoding="utf-8") as file:
        file.writelines(lines)
    return str(path)


def faithfulness(judge: Judge, recorder: Recorder | None = None) -> Score:
    measured = scorer("ragas/faithfulness")
    assert isinstance(measured, JudgedScorer)

    async def alone() -> Score:
        async with Bench(judge) as bench:
            if recorder:
                bench.listen(recorder.reply, recorder.embedding)
            return await measured.measure(QUESTION, record(), bench)

    return asyncio.run(alone())


def test_a_replay_gives_the_same_score_without_the_judge(
    openai_stub: OpenAIStub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STUB_KEY", KEY)
    monkeypatch.setenv("NO_PROXY", "*")
    statements = {"statements": [text for text, _ in CLAIMS]}
    verdicts = [{"statement": text, "reason": "r", "verdict": int(word == "supported")} for text, word in CLAIMS]
    openai_stub.script(chat(json.dumps(statements)), chat(json.dumps({"statements": verdicts})))
    judge = OpenAIJudge(base_url=openai_stub.base_url, model="stub-1", api_key_env="STUB_KEY", structured="json_schema")
    path = tmp_path / "run" / "replies.jsonl"
    with Recorder(path, judge.card) as recorder:
        live = faithfulness(judge, recorder)
    assert (live.value, live.calls, live.tokens) == (pytest.approx(0.6), 2, 20)

    def no_socket(*_: Any, **__: Any) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket.socket, "connect", no_socket)
    replayed = faithfulness(ReplayJudge(recording=str(path)))
    assert replace(replayed, seconds=live.seconds) == live
    written = path.read_text(encoding="utf-8")
    assert KEY not in written
    assert QUESTION.text not in written
    first = json.loads(written.splitlines()[1])
    assert (first["definition"], first["call"], first["question"]) == ("ragas/faithfulness", "statements", "router")


def test_replies_come_back_as_they_were(tmp_path: Path) -> None:
    judge = ReplayJudge(recording=recorded(tmp_path / "r.jsonl"))
    assert judge.card == CARD
    assert ask(judge, call()) == [REPLY]


def test_what_changed_and_what_was_never_recorded_are_told_apart(tmp_path: Path) -> None:
    judge = ReplayJudge(recording=recorded(tmp_path / "r.jsonl"))
    with pytest.raises(JudgeFault) as changed:
        ask(judge, call(prompt="Judge that."))
    said = str(changed.value)
    assert said.startswith("mine/definition verdicts of question router is not in ")
    assert "another prompt or schema, so one of them changed since; record it by a run with the judge itself" in said
    with pytest.raises(JudgeFault, match=r"of question other .* it was never recorded; record it by"):
        ask(judge, call(prompt="Judge that.", question=replace(QUESTION, id="other")))
    with pytest.raises(JudgeFault, match="is not in"):
        ask(judge, call(sample=1))


def test_vectors_come_back_bit_for_bit(tmp_path: Path) -> None:
    vectors = {"a": [0.1, 1 / 3, -1e-300], "half \ud83d": [1.0]}
    with Recorder(tmp_path / "r.jsonl", CARD) as recorder:
        for text, vector in vectors.items():
            recorder.embedding(text, vector)
    judge = ReplayJudge(recording=str(tmp_path / "r.jsonl"))
    assert asyncio.run(judge.embed(list(vectors))) == list(vectors.values())
    with pytest.raises(JudgeFault, match="the embedding of 'b' is not in"):
        asyncio.run(judge.embed(["b"]))


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.text(st.characters(exclude_categories=[])), finish=st.none() | st.text(), tokens=st.none() | st.integers()
)
def test_any_reply_survives(tmp_path: Path, text: str, finish: str | None, tokens: int | None) -> None:
    path = tmp_path / "any.jsonl"
    path.unlink(missing_ok=True)
    reply = Reply(text, tokens, tokens, finish, None)
    with Recorder(path, CARD) as recorder:
        recorder.reply(call(), reply)
    assert load(path).replies[call().key].reply == reply


def test_the_last_of_one_key_stands_and_the_same_is_written_once(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    for text in ("refused", "good", "good"):
        with Recorder(path, CARD) as recorder:
            recorder.reply(call(), Reply(text))
            recorder.reply(call(), Reply(text))
            recorder.embedding("a", [1.0])
    assert [json.loads(line).get("text", "vector") for line in path.read_text().splitlines()[1:]] == [
        "refused",
        "vector",
        "good",
    ]
    assert load(path).replies[call().key].text == "good"


def test_every_reply_is_on_disk_as_soon_as_it_came(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "r.jsonl", CARD)
    recorder.reply(call(), REPLY)
    assert load(tmp_path / "r.jsonl").replies[call().key].reply == REPLY
    recorder.close()


def test_threads_write_whole_lines(tmp_path: Path) -> None:
    with Recorder(tmp_path / "r.jsonl", CARD) as recorder, ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: recorder.reply(call(prompt=f"{n % 50}"), Reply("x" * 10_000)), range(200)))
    assert len(load(tmp_path / "r.jsonl").replies) == 50
    assert len((tmp_path / "r.jsonl").read_text().splitlines()) == 51


def test_a_last_line_that_was_cut_off_is_told_and_taken_away(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    judge = ReplayJudge(recording=recorded(path, '{"key": "half'))
    assert ask(judge, call()) == [REPLY]
    assert judge.warnings(None) == (f"line 3 of the recording {path} is cut off, and what it held is lost",)
    with Recorder(path, CARD) as recorder:
        recorder.reply(call(prompt="next"), REPLY)
    again = load(path)
    assert (len(again.replies), again.lost) == (2, None)


def test_a_whole_last_line_counts_though_an_editor_took_its_newline_away(tmp_path: Path) -> None:
    path = Path(recorded(tmp_path / "r.jsonl"))
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    assert (len(load(path).replies), load(path).lost) == (1, None)
    with Recorder(path, CARD) as recorder:
        recorder.reply(call(), REPLY)
        recorder.reply(call(prompt="next"), REPLY)
    assert len(path.read_text().splitlines()) == 3
    assert (len(load(path).replies), load(path).lost) == (2, None)


def test_a_header_that_was_cut_off_is_begun_again(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text('{"schema_ver')
    assert load(recorded(path)).card == CARD


def test_a_recording_of_another_judge_is_not_continued(tmp_path: Path) -> None:
    path = recorded(tmp_path / "r.jsonl")
    with pytest.raises(RecordingError, match=r"holds replies of another judge \(openai m-2024-07-18"):
        Recorder(path, JudgeCard("openai", "other"))


def _without(field: str) -> Callable[[str], str]:
    return lambda line: json.dumps({name: value for name, value in json.loads(line).items() if name != field})


@pytest.mark.parametrize(
    ("number", "change", "expected"),
    [
        (1, lambda line: "", "it is no JSON"),
        (1, lambda line: "[]", "it is no JSON object"),
        (1, _without("schema_version"), "schema_version is None, and 1 can be read"),
        (1, _without("judge"), "judge is no card of a judge"),
        (1, lambda line: line.replace('"provider": "openai", ', ""), "judge is no card of a judge: provider"),
        (2, lambda line: line[:20], "it is no JSON"),
        (2, lambda line: "[" * 100_000, "it is no JSON"),
        (2, _without("key"), "key: field required"),
        (2, lambda line: line.replace(": 7,", ': "x",'), "tokens_in: input should be a valid integer"),
        (2, lambda line: '{"embed": "x", "vector": ["y"]}', "vector.0: input should be a valid number"),
        (2, lambda line: '{"embed": "x", "vector": [1, NaN]}', "vector.1: input should be a finite number"),
    ],
)
def test_faults_name_file_and_line(tmp_path: Path, number: int, change: Callable[[str], str], expected: str) -> None:
    path = Path(recorded(tmp_path / "r.jsonl"))
    lines = path.read_text().splitlines()
    lines[number - 1] = change(lines[number - 1])
    path.write_text("".join(f"{line}\n" for line in lines))
    with pytest.raises(RecordingError) as caught:
        load(path)
    assert str(caught.value).startswith(f"line {number} of the recording {path} cannot be used: ")
    assert expected in str(caught.value)
    with pytest.raises(JudgeFault, match="cannot be used"):
        ask(ReplayJudge(recording=str(path)), call())


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    judge = ReplayJudge(recording=str(tmp_path / "none.jsonl"))
    with pytest.raises(RecordingError, match=r"none\.jsonl cannot be read: No such file"):
        _ = judge.card
    with pytest.raises(JudgeFault, match=r"none\.jsonl cannot be read"):
        ask(judge, call())
    (tmp_path / "none.jsonl").write_text("")
    with pytest.raises(RecordingError, match="there is no whole line in it"):
        _ = judge.card
    with pytest.raises(RecordingError, match="cannot be written"):
        Recorder(tmp_path / "none.jsonl" / "below.jsonl", CARD)


def test_warnings_are_those_of_the_recorded_model(tmp_path: Path) -> None:
    with Recorder(tmp_path / "r.jsonl", JudgeCard("openai", "gpt-4o")):
        pass
    judge = ReplayJudge(recording=str(tmp_path / "r.jsonl"))
    assert judge.warnings(None) == ()  # that its name is an alias matters to who asks it
    assert ["one family" in warning for warning in judge.warnings("gpt-4.1")] == [True]
