"""Whole runs with a judge behind an endpoint: budgets, what is kept when it goes wrong, what it cost, recordings."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from re import fullmatch, search
from shlex import split
from typing import Any

import pytest

from adapters.schema import JudgeCard, Score
from runner.cli import main
from runner.results import usage
from tests.spine.commands import ROOT, Said, scores_of, write_test_set
from tests.stages.openai_stub import OpenAIStub, Seen, StubReply, chat, completion, openai_stub, status

__all__ = ["openai_stub"]

KEY = "sk-test-DO-NOT-STORE-0004"
YES = chat('{"polite": true}')
Run = Callable[..., Said]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with four questions."""
    write_test_set(tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STUB_KEY", KEY)
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setattr(sys, "argv", ["paribus"])
    return tmp_path


def words(stub: OpenAIStub, *more: str) -> list[str]:
    plain = [
        "dataset=jsonl",
        "tracking=off",
        "chunker.size=60",
        "retriever=bm25",
        'metrics.definitions=["tests.adapters.polite:Polite"]',
        "metrics.table=[mine/polite]",
        "judge=openai",
        f"judge.base_url={stub.base_url}",
        "judge.model=stub-1-q4_0",
        "judge.api_key_env=STUB_KEY",
        "judge.structured=json_schema",
        "judge.concurrency=1",
        "judge.max_attempts=1",
        "judge.timeout_seconds=5",
    ]
    return [*plain, *more]


@pytest.fixture
def run(folder: Path, openai_stub: OpenAIStub, capfd: pytest.CaptureFixture[str]) -> Run:
    """`paribus run`, in this process."""
    openai_stub.script(YES)

    def command(*more: str, name: str = "run", options: tuple[str, ...] = ()) -> Said:
        capfd.readouterr()
        code = main([name, *options, *words(openai_stub, *more)])
        return Said(int(code), *capfd.readouterr())

    return command


def asked(stub: OpenAIStub) -> int:
    """How many calls the stub has seen since it was asked this."""
    count = len(stub.requests)
    stub.requests.clear()
    return count


def results(folder: Path) -> list[Path]:
    return sorted((folder / "mlruns" / "results" / "single").iterdir())


def test_a_budget_ends_a_run_and_a_larger_one_goes_on_from_there(folder: Path, openai_stub: OpenAIStub) -> None:
    openai_stub.script(YES)

    def typed(*more: str) -> Said:
        done = subprocess.run(
            [sys.executable, "-m", "runner", "run", *words(openai_stub, *more)],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=120,
        )
        return Said(done.returncode, done.stdout, done.stderr)

    said = typed("judge.max_calls=3")
    assert (said.code, asked(openai_stub)) == (1, 3)
    assert said.err.splitlines()[-1].startswith(
        "paribus: judge.max_calls=3 is used up. Scores missing: 1. What was paid for is kept: the same command with "
        "more goes on from there. So far: "
    )
    (so_far,) = results(folder)
    assert len((so_far / "judge_replies.jsonl").read_text().splitlines()) == 1 + 3, "the card, and what was paid for"
    said = typed("judge.max_calls=4")
    assert (said.code, asked(openai_stub)) == (0, 1)
    assert ": 4 calls, 3 from the cache, 40 tokens, " in said.err


def test_max_cost_ends_a_run_and_shows_what_was_spent(run: Run, openai_stub: OpenAIStub) -> None:
    # 7 tokens in at 1 dollar and 3 out at 2: 13 dollars a call, so that the second call passes 20.
    prices = "judge.prices={input: 1000000, output: 2000000}"
    said = run(prices, "judge.max_cost=20")
    assert (said.code, asked(openai_stub)) == (1, 2)
    assert "judge.max_cost=20 is used up: 26.0000 US dollars are spent. Scores missing: 2." in said.err
    said = run(prices, "judge.max_cost=40")
    assert (said.code, asked(openai_stub)) == (0, 2)
    assert ": 4 calls, 2 from the cache, 40 tokens, $26.00, " in said.err


def test_usage_is_kept_by_definition_and_run_and_unknown_cost_is_no_zero(run: Run, openai_stub: OpenAIStub) -> None:
    openai_stub.script(chat("no idea"), YES)
    outcome = run(options=("--json",)).json
    found = json.loads((Path(outcome["folder"]) / "summary.json").read_text())["usage"]
    assert found["run"] == found["definitions"]["mine/polite"] == outcome["usage"]
    counts = {name: found["run"][name] for name in ("calls", "cached", "repaired", "tokens", "cost")}
    assert counts == {"calls": 5, "cached": 0, "repaired": 1, "tokens": 50, "cost": None}
    assert found["run"]["seconds"] > 0
    said = run("judge.cache=off")
    assert ": 4 calls, 40 tokens, " in said.err
    openai_stub.script(completion(choices=YES.payload["choices"], usage=None))
    said = run("judge.cache=refresh")
    assert search(r": 4 calls, (under 0\.1 s|\d+\.\d s added up)\n", said.err), "tokens that nobody counted are no zero"


def test_a_run_without_a_judge_says_nothing_of_one(run: Run) -> None:
    said = run("metrics.definitions=[labels/recall]", "metrics.table=[labels/recall]", options=("--json",))
    assert (said.json["usage"], "judge:" in said.err) == (None, False)
    assert json.loads((Path(said.json["folder"]) / "summary.json").read_text())["usage"] == {
        "run": None,
        "definitions": {},
        "stages": {},
    }


def test_what_stages_that_ask_a_model_cost_is_told_beside_the_judge(run: Run, openai_stub: OpenAIStub) -> None:
    def either(seen: Seen) -> StubReply:
        prompt = str(seen.body["messages"])
        return YES if "polite?" in prompt else chat("7") if "Rate how useful" in prompt else chat("An answer.")

    openai_stub.answers(either)
    url, stub = f"base_url={openai_stub.base_url}", "model=stub-1"
    words = [f"generator=openai generator.{url} generator.{stub} generator.prices={{input:1000000,output:1000000}}"]
    words += [
        f"reranker=llm reranker.{url} reranker.{stub} reranker.candidates=3 retriever.k=2 generator.concurrency=1"
    ]
    typed = [word for line in words for word in line.split()]
    outcome = run(*typed, options=("--json",))
    stages = json.loads((Path(outcome.json["folder"]) / "summary.json").read_text())["usage"]["stages"]
    # 4 questions: an answer each, at 10 tokens and 10 dollars, as many ratings as there are chunks.
    generator = {name: stages["generator"][name] for name in ("calls", "cached", "tokens", "cost")}
    assert generator == {"calls": 4, "cached": 0, "tokens": 40, "cost": 40.0}
    asked_to_rate = sum("Rate how useful" in str(seen.body["messages"]) for seen in openai_stub.requests)
    assert (stages["reranker"]["calls"], stages["reranker"]["cost"]) == (asked_to_rate, None)
    assert stages["generator"]["seconds"] > 0
    assert outcome.json["stages"] == {"generator: stub-1": stages["generator"], "reranker: stub-1": stages["reranker"]}
    said = run(*typed, "generator.max_tokens=9")
    (line,) = [line for line in said.err.splitlines() if line.startswith("generator: ")]
    assert fullmatch(r"generator: stub-1: 4 calls, 40 tokens, \$40\.00, (under 0\.1 s|\d+\.\d s added up)", line)
    assert "reranker: " not in said.err, "what is read from the store was not asked"


def test_a_stage_says_that_another_model_answered_and_that_replies_could_not_be_kept(
    run: Run, folder: Path, openai_stub: OpenAIStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    from adapters.reply_cache import CacheError, ReplyCache

    def full(*_: Any) -> None:
        raise CacheError("the disk is full")

    monkeypatch.setattr(ReplyCache, "put", full)
    typed = ["generator=openai", f"generator.base_url={openai_stub.base_url}", "generator.model=big"]
    outcome = run(*typed, options=("--json",)).json
    assert [note for note in outcome["notes"] if note.startswith("generator: model 'big' was asked, and 127.0.0.1:")]
    told = [note for note in outcome["notes"] if "not kept" in note]
    assert told == [
        "generator: replies are not kept any more: the disk is full",
        "replies are not kept any more: the disk is full",
    ]


@pytest.mark.parametrize(("cost", "total"), [(0.25, 0.75), (None, None)])
def test_embeddings_count_in_the_cost_of_a_run_where_no_reply_was_asked_for(
    cost: float | None, total: float | None
) -> None:
    card = JudgeCard("openai", "m")
    asked = Score("q1", "d", "f", 1.0, judge=card, calls=1, tokens=10, cost=0.5)
    embedded = Score("q2", "e", "f", 1.0, judge=card, calls=0, tokens=0, cost=cost)
    found = usage([asked, embedded])
    assert found is not None
    assert (found.calls, found.tokens, found.cost) == (1, 10, total)


def test_usage_is_in_mlflow(run: Run) -> None:
    from mlflow import MlflowClient

    found = run("tracking=local", "judge.prices={input: 1, output: 1}", options=("--json",)).json
    metrics = MlflowClient(f"sqlite:///{Path('mlruns/mlflow.db').resolve()}").get_run(found["run_id"]).data.metrics
    assert {name: metrics[f"usage/{name}"] for name in ("calls", "cached", "repaired", "tokens")} == {
        "calls": 4,
        "cached": 0,
        "repaired": 0,
        "tokens": 40,
    }
    assert metrics["usage/cost"] == pytest.approx(0.00004)


def test_a_setting_that_leaves_the_prompts_alone_asks_nothing_again(run: Run, openai_stub: OpenAIStub) -> None:
    run()
    asked(openai_stub)
    assert run("judge.concurrency=4").code == 0
    # The answers stay, so that what is asked about them stays.
    assert run("retriever.k=4").code == 0
    assert asked(openai_stub) == 0


def test_case_52_a_rate_limit_costs_the_score_that_it_hit_and_a_rerun_asks_for_that_alone(
    run: Run, openai_stub: OpenAIStub
) -> None:
    def limited(seen: Seen) -> StubReply:
        text = seen.body["messages"][0]["content"]
        tried = sum(text == earlier.body["messages"][0]["content"] for earlier in openai_stub.requests)
        if "bicycles" in text and tried == 1:
            return status(429, {"retry-after": "2"})
        return status(429, {"retry-after": "0.01"}) if "lorry" in text else YES

    openai_stub.answers(limited)
    outcome = run("judge.max_attempts=3", options=("--json",)).json
    scores = {name: (value, state, reason) for name, _, _, value, state, reason, _ in scores_of(outcome)}
    assert [scores[name][:2] for name in ("q1", "q2", "q3", "q4")] == [(1.0, "computed")] * 3 + [(None, "failed")]
    assert "limits the rate after 3 attempts (status 429)" in scores["q4"][2]
    assert (outcome["means"]["mine/polite"]["n"], outcome["means"]["mine/polite"]["failed"]) == (3, 1)
    first, second = (seen.at for seen in openai_stub.requests if "bicycles" in str(seen.body["messages"]))
    assert second - first >= 2
    openai_stub.script(YES)
    openai_stub.requests.clear()
    assert run().code == 0
    assert ["lorry" in str(seen.body["messages"]) for seen in openai_stub.requests] == [True]


def test_an_endpoint_that_goes_away_in_the_middle_of_a_sweep_loses_nothing_that_was_paid_for(
    run: Run, openai_stub: OpenAIStub
) -> None:
    # The baseline is judged whole; of the variant two calls come through before the server is gone.
    def two_more(seen: Seen) -> StubReply:
        return YES if len(openai_stub.requests) <= 6 else StubReply(close=True)

    openai_stub.answers(two_more)
    said = run("judge.temperature=0.0,0.5", name="sweep", options=("--json",))
    (row,) = [row for row in said.json["rows"] if row["variable"]]
    reasons = [reason for *_, reason, _ in scores_of(row["outcome"]) if reason]
    assert len(reasons) == 2
    assert all("closed the connection before it had answered" in reason for reason in reasons)
    openai_stub.script(YES)
    openai_stub.requests.clear()
    again = run("judge.temperature=0.0,0.5", name="sweep", options=("--json",))
    assert (again.code, len(openai_stub.requests)) == (0, 2)


def test_another_model_than_asked_is_one_note_of_the_run_and_stands_by_each_reply(
    run: Run, openai_stub: OpenAIStub
) -> None:
    outcome = run(options=("--json",)).json
    (told,) = [note for note in outcome["notes"] if "was asked" in note]
    assert told.startswith("model 'stub-1-q4_0' was asked, and 127.0.0.1:")
    assert told.endswith(" says that 'stub-1' answered")
    lines = (Path(outcome["folder"]) / "judge_replies.jsonl").read_text().splitlines()[1:]
    assert [json.loads(line)["model"] for line in lines] == ["stub-1"] * 4


def test_a_corrupt_cache_is_one_sentence_before_any_work(run: Run, folder: Path, openai_stub: OpenAIStub) -> None:
    path = folder / "mlruns" / "store" / "replies.sqlite"
    path.parent.mkdir(parents=True)
    path.write_text("no database" * 100)
    said = run()
    assert (said.code, len(said.err.splitlines()), asked(openai_stub)) == (2, 1, 0)
    assert said.err.startswith("paribus: judge: the cache ")
    assert said.err.endswith("; remove it or set cache=off\n")
    assert run("judge.cache=off").code == 0


def test_case_53_the_key_is_in_nothing_that_a_run_writes_or_says(
    run: Run, folder: Path, openai_stub: OpenAIStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARIBUS_TRACEBACK", "1")
    other = "sk-test-DO-NOT-STORE-0005"
    openai_stub.script(YES, status(401, message=f"Incorrect API key provided: {KEY}"))
    said = [
        run("tracking=local"),
        run("judge.cache=off", "tracking=local"),
        run(f"++judge.api_key={other}"),
        run(f"judge.api_key_env={other}"),
        run(f"judge.base_url=http://bob:{other}@127.0.0.1/v1"),
        run(f"++judge.options.api_key={other}"),
    ]
    assert [each.code for each in said] == [0, 1, 2, 2, 2, 2]
    assert all(seen.authorization == f"Bearer {KEY}" for seen in openai_stub.requests)
    assert len(openai_stub.requests) == 8
    files = [path for path in folder.rglob("*") if path.is_file() and "data" not in path.relative_to(folder).parts[:1]]
    assert {"replies.sqlite", "judge_replies.jsonl", "mlflow.db", "summary.json"} <= {path.name for path in files}
    for secret in (KEY, other):
        assert [path for path in files if secret.encode() in path.read_bytes()] == []
        assert not any(secret in each.out + each.err for each in said)


def test_record_leaves_a_file_that_replays_without_the_endpoint(
    run: Run, folder: Path, openai_stub: OpenAIStub
) -> None:
    run()  # so that all replies come from the cache
    asked(openai_stub)
    said = run(name="record", options=("--json", "--to", "kept/judge.jsonl"))
    assert (said.code, asked(openai_stub)) == (0, 0)
    assert said.err.splitlines()[-1].startswith("Every score came out of the recording again. Replay it without a ")
    command = said.err.splitlines()[-1].partition("paribus run ")[2]
    assert command.endswith(f"judge=replay judge.recording={folder}/kept/judge.jsonl")
    assert "judge.base_url" not in command
    openai_stub.close()
    assert main(["run", *split(command)]) == 0
    first, again = (json.loads(path.joinpath("summary.json").read_text()) for path in results(folder)[-2:])
    assert first["means"] == again["means"]
    assert first["judge"] == again["judge"]
    scores = [path.joinpath("scores.jsonl").read_text().splitlines() for path in results(folder)[-2:]]
    assert [[json.loads(line)["value"] for line in lines] for lines in scores] == [[1.0] * 4] * 2


def test_record_fails_where_a_reply_is_missing_and_goes_on_from_there(run: Run, openai_stub: OpenAIStub) -> None:
    openai_stub.script(YES, YES, YES, status(500))
    said = run(name="record", options=("--to", "judge.jsonl"))
    assert said.code == 1
    assert "1 of 4 scores do not come out of " in said.err
    assert "mine/polite of question q4: failed, " in said.err
    assert "failed with status 500 after 1 attempt" in said.err
    assert "is not in " in said.err
    openai_stub.script(YES)
    asked(openai_stub)
    assert run(name="record", options=("--to", "judge.jsonl")).code == 0
    assert asked(openai_stub) == 1


def test_record_continues_no_recording_of_another_judge(run: Run) -> None:
    assert run(name="record", options=("--to", "judge.jsonl")).code == 0
    said = run("judge.temperature=0.5", name="record", options=("--to", "judge.jsonl"))
    assert said.code == 1
    assert "holds replies of another judge" in said.err
    assert said.err.splitlines()[-1].endswith("choose another file")


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (("metrics.definitions=[labels/recall]", "metrics.table=[labels/recall]"), "no definition of this run asks a"),
        (("-m", "retriever.k=3,4"), "record takes one run, not a sweep"),
    ],
    ids=["no judge", "sweep"],
)
def test_record_says_what_it_cannot_record(run: Run, more: tuple[str, ...], expected: str) -> None:
    said = run(*more, name="record")
    assert said.code == 2
    assert expected in said.err


def test_record_refuses_a_judge_whose_replies_cost_nothing(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    plain: list[Any] = [
        "dataset=jsonl",
        "tracking=off",
        'metrics.definitions=["tests.adapters.polite:Polite"]',
        "metrics.table=[mine/polite]",
    ]
    assert main(["record", *plain, "judge=lexical"]) == 2
    assert "the judge lexical is no model" in capfd.readouterr().err


def test_progress_of_judging_shows_rate_and_time_left_on_a_terminal(
    run: Run, openai_stub: OpenAIStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    from runner import progress

    monkeypatch.setattr(progress, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr(progress.sys.stderr, "isatty", lambda: True, raising=False)
    openai_stub.script(StubReply(hang_seconds=0.3, payload=YES.payload))
    said = run()
    assert said.code == 0
    shown = [text for text in said.err.replace("\x1b[K", "").split("\r") if text.startswith("run: judge ")]
    assert [text.split(",")[0] for text in shown] == [f"run: judge {n}/4" for n in (1, 2, 3)]
    assert all(fullmatch(r"run: judge ./4, \d+\.\d/s, 0:0\d left", text) for text in shown)
