"""A frozen sample: drawn, graded again before a run, and what a moved judge makes of comparisons."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adapters.base import scorer
from adapters.judge import Judge
from adapters.judges.openai import OpenAIJudge
from adapters.judges.replay import ReplayJudge
from adapters.schema import from_json
from runner import drift, results
from runner.cli import main
from runner.drift import Drift, Frozen, Standing, moved_between
from runner.errors import ConfigError, ParibusError
from runner.run_log import STANDING, BaselineView, RunLog, compare, described
from tests.judge.moods import ByCall, Moody, graded
from tests.spine.commands import Said, Say, scores_of, write_test_set, write_yaml
from tests.stages.openai_stub import OpenAIStub, StubReply, chat, embeddings, openai_stub

__all__ = ["openai_stub"]

POLITE, RATING = "tests.judge.moods:Polite", "tests.judge.moods:Rating"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_PROXY", "*")
    return tmp_path


def frozen(judge: Judge, answers: list[str], *definitions: Any, n: int = 30) -> Judge:
    """The judge with a frozen sample of its own run on these answers."""
    graded(judge, answers, definitions or (POLITE,), Path("graded"))
    drift.save(drift.freeze(Path("graded"), n), Path("frozen.json"))
    return judge.model_copy(update={"frozen": "frozen.json"})


def again(judge: Judge, *definitions: Any) -> Drift:
    return drift.graded_again(judge, [scorer(spec) for spec in definitions or (POLITE,)])


def test_a_judge_that_stayed_says_the_same() -> None:
    found = again(frozen(Moody(rude=["q1"]), ["Hi.\nYou there.", "Go."]))
    assert (found.n, found.verdicts, found.equal, found.verdicts_equal, found.moved) == (2, 3, 1.0, 1.0, False)
    assert str(found).startswith("the judge did not move: 0 of 3 verdicts on the sample frozen on ")


def test_a_moved_judge_is_named() -> None:
    before = frozen(Moody(), ["Hi.\nYou there.", "Go.", "Stop."])
    found = again(before.model_copy(update={"rude": ["q0", "q1"]}))
    # Of 4 lines those of q0 (2) and q1 (1) flip; the scores of q0 and q1 go from 1 to 0, that of q2 stays: mean 2/3.
    assert (found.n, found.verdicts, len(found.flips)) == (3, 4, 3)
    assert found.equal == pytest.approx(1 / 3)
    assert found.mean_difference == pytest.approx(2 / 3)
    assert found.verdicts_equal == 0.25
    assert found.moved
    assert "the judge moved, not the system: 3 of 4 verdicts on the sample frozen on" in str(found)
    assert "1 of 3 scores are equal, mean absolute difference 0.667" in str(found)
    flip = found.flips[-1]
    assert (flip.question_id, flip.unit, flip.before, flip.after) == ("q1", "Go.", "supported", "absent")


@pytest.mark.parametrize(("rude", "moved"), [(["q0"], False), (["q0", "q1"], True)])
def test_more_than_the_tolerated_share_of_verdicts_must_flip(rude: list[str], moved: bool) -> None:
    # 1 of 20 is 0.05, which is not more than the default; 2 of 20 is.
    before = frozen(Moody(), [f"Line {n}." for n in range(20)])
    assert again(before.model_copy(update={"rude": rude})).moved is moved
    assert not again(before.model_copy(update={"rude": rude, "drift_tolerance": 0.1})).moved


def test_ratings_move_without_a_verdict_that_flips() -> None:
    before = frozen(ByCall(says=lambda question, sample: 0.6, samples=1), ["Hi."], RATING)
    found = again(before.model_copy(update={"says": lambda question, sample: 0.9}), RATING)
    # Both lie above the middle, 0.5; they differ by 0.3 of a range of 1.
    assert (found.flips, found.verdicts) == ((), 1)
    assert found.mean_difference == pytest.approx(0.3)
    assert found.moved


def test_a_judge_that_finds_nothing_to_judge_now_flipped_and_one_that_fails_is_counted_apart() -> None:
    before = frozen(ByCall(says=lambda question, sample: [True], samples=1), ["Hi.", "Go.", "Stop."])
    answers: dict[str, Any] = {"q0": [True], "q1": [], "q2": "the judge is down"}
    found = again(before.model_copy(update={"says": lambda question, sample: answers[question]}))
    assert (found.n, found.failed, found.verdicts, found.equal, found.mean_difference) == (2, 1, 2, 0.5, 0.0)
    assert [(flip.question_id, flip.after) for flip in found.flips] == [("q1", "nothing to judge")]
    assert "; 1 could not be given again" in str(found)
    down = again(before.model_copy(update={"says": lambda question, sample: "the judge is down"}))
    assert down.unmeasured == "the judge gave no score again; the first: the judge is down"
    assert (down.moved, down.standing) == (False, None)


def test_another_judge_is_said_and_not_measured() -> None:
    found = again(frozen(Moody(), ["Hi."]).model_copy(update={"revision": "2"}))
    assert found.unmeasured is not None
    assert found.unmeasured.startswith("another judge than the one that was frozen (now moody m 2 ")
    assert (found.n, found.moved) == (0, False)


def test_definitions_that_mean_something_else_now_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.judge.moods import Polite

    before = frozen(Moody(), ["Hi."])
    assert again(before, RATING).unmeasured == "none of the frozen definitions is asked here as it was then"
    monkeypatch.setattr(Polite, "version", "2")
    changed = again(before)
    assert (changed.left_out, changed.n) == (("mood/polite",), 0)


def test_a_replay_does_not_claim_that_the_judge_stayed() -> None:
    class Recorded(Moody):
        recorded = True

    frozen(Recorded(), ["Hi."])
    replay = ReplayJudge(recording=f"graded/{results.RECORDING}", frozen="frozen.json")
    assert again(replay).unmeasured == "a recording says what it said before, so it cannot show whether the judge moved"


def stub_judge(stub: OpenAIStub, **fields: Any) -> OpenAIJudge:
    plain = {"model": "stub-1", "structured": "json_schema", "cache_file": "replies.sqlite", "concurrency": 1}
    return OpenAIJudge(**{"base_url": stub.base_url, **plain, **fields})


def said(*lines: bool) -> StubReply:
    return chat(json.dumps({"lines": lines}))


def test_a_frozen_sample_is_graded_without_the_cache(openai_stub: OpenAIStub) -> None:
    openai_stub.script(said(True))
    frozen(stub_judge(openai_stub), ["Hi."])
    openai_stub.script(said(False))
    judge = stub_judge(openai_stub, frozen="frozen.json", max_calls=1)
    found = again(judge)
    assert found.usage
    assert (found.moved, found.usage.calls, found.usage.tokens, len(openai_stub.requests)) == (True, 1, 10, 2)
    # The run after it scores as it did before: from what is kept, and within one budget.
    (score,) = graded(judge, ["Hi."], folder=Path("run")).scores
    assert (score.value, score.cached, len(openai_stub.requests)) == (1.0, 1, 2)
    assert again(judge).unmeasured == "the judge gave no score again; the first: max_calls=1 is used up"
    # What was recorded is what the run was scored by.
    replayed = graded(ReplayJudge(recording=f"run/{results.RECORDING}"), ["Hi."]).scores[0]
    assert (replayed.value, replayed.evidence) == (score.value, score.evidence)


def test_a_reply_to_the_frozen_sample_that_cannot_be_read_drops_nothing_that_is_kept(openai_stub: OpenAIStub) -> None:
    openai_stub.script(said(True))
    judge = frozen(stub_judge(openai_stub, repair_rounds=0), ["Hi."])
    openai_stub.script(chat("no JSON"))
    assert again(judge).failed == 1
    assert graded(judge, ["Hi."]).scores[0].cached == 1


def test_embeddings_of_the_frozen_sample_are_asked_anew(openai_stub: OpenAIStub) -> None:
    openai_stub.script(embeddings([1.0]), embeddings([2.0]))
    judge = stub_judge(openai_stub, embeddings="e")
    vectors = [asyncio.run(each.embed(["a"])) for each in (judge, judge.anew(), judge)]
    assert vectors == [[[1.0]], [[2.0]], [[1.0]]]


def test_low_scores_are_in_the_sample_too() -> None:
    rude = [f"q{n}" for n in range(3)]
    graded(Moody(rude=rude), [f"Line {n}." for n in range(60)], folder=Path("graded"))
    taken = drift.freeze(Path("graded"), 6)
    # 3 of 60 have 0, the others 1: six are drawn in turn from both.
    assert {score.question_id for score in taken.scores if score.value == 0.0} == {*rude}
    assert len(taken.scores) == len(taken.questions) == len(taken.records) == 6
    assert [s.question_id for s in drift.freeze(Path("graded"), 6).scores] == [s.question_id for s in taken.scores]
    other = drift.freeze(Path("graded"), 6, seed=1)
    assert {score.question_id for score in other.scores} != {score.question_id for score in taken.scores}


def test_flaky_questions_stay_out_of_the_sample() -> None:
    graded(Moody(samples=2, flips=["q0"]), ["Hi.", "Go."], folder=Path("graded"))
    taken = drift.freeze(Path("graded"))
    assert [score.question_id for score in taken.scores] == ["q1"]
    drift.save(taken, Path("frozen.json"))
    found = again(Moody(samples=2, frozen="frozen.json"))
    assert found.usage
    assert (found.n, found.usage.calls, found.moved) == (1, 2, False)


def test_a_sample_can_be_reviewed_and_read_back() -> None:
    frozen(Moody(), ["Hi.\nYou there."], {"id": POLITE, "wording": "Kind?"})
    text = Path("frozen.json").read_text()
    assert '\n "judge": {\n' in text
    written = json.loads(text)
    assert written["definitions"] == {"mood/polite.wording-Kind?": {"id": POLITE, "wording": "Kind?"}}
    assert [verdict["ours"] for verdict in written["scores"][0]["evidence"]] == ["supported"] * 2
    assert written["records"][0]["answer"] == "Hi.\nYou there."
    read, fresh = drift.load(Path("frozen.json")), drift.freeze(Path("graded"))
    assert replace(read, frozen="") == replace(fresh, frozen="")


def spoiled(change: Callable[[dict[str, Any]], object]) -> str:
    data = json.loads(Path("frozen.json").read_text())
    change(data)
    Path("spoiled.json").write_text(json.dumps(data))
    with pytest.raises(ConfigError) as fault:
        drift.load(Path("spoiled.json"))
    return str(fault.value)


def test_a_file_that_is_no_sample_is_told() -> None:
    frozen(Moody(), ["Hi."])
    assert "spoiled.json has schema_version 9, and 1 can be read" in spoiled(lambda data: data.update(schema_version=9))
    assert "has a score of q0, and not its question and record" in spoiled(lambda data: data.update(records=[]))
    told = spoiled(lambda data: data.pop("judge"))
    assert told == "judge.frozen: spoiled.json is no file of `paribus judge freeze`: judge: Field required"
    with pytest.raises(ConfigError, match=r"judge_gone\.json cannot be read: No such file"):
        drift.load(Path("judge_gone.json"))
    with pytest.raises(ConfigError, match=r"frozen\.json is there already"):
        drift.save(drift.freeze(Path("graded")), Path("frozen.json"))
    for field, of in (("questions", "question of q0"), ("records", "record of q0"), ("scores", "score of q0 by mood/")):
        assert f"has the {of}" in spoiled(lambda data, field=field: data[field].append(data[field][0]))
    failed = {"value": None, "status": "failed", "reason": "it broke"}
    assert "has a score of q0 without a value; freeze it anew" in spoiled(lambda data: data["scores"][0].update(failed))
    Path("spoiled.json").write_text("{")
    with pytest.raises(ConfigError, match=r"`paribus judge freeze`: Invalid JSON: EOF"):
        drift.load(Path("spoiled.json"))
    graded(Moody(), [""], folder=Path("blank"))
    with pytest.raises(ConfigError, match="blank holds no score that a judge gave"):
        drift.freeze(Path("blank"))
    with pytest.raises(ConfigError, match="must be at least 1"):
        drift.freeze(Path("graded"), 0)


@pytest.mark.parametrize("value", [5, -0.1, 1e308])
def test_a_frozen_value_that_no_judge_can_have_given_is_told(value: float) -> None:
    frozen(Moody(), ["Hi."])
    data = json.loads(Path("frozen.json").read_text())
    data["scores"][0]["value"] = value
    Path("frozen.json").write_text(json.dumps(data), encoding="utf-8-sig")  # an editor may add its mark
    with pytest.raises(ConfigError, match=r"as the mood/polite of q0, expected 0 to 1; freeze it anew"):
        again(Moody(frozen="frozen.json"))


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("summary.json", "{", "the result folder graded cannot be read"),
        ("config.yaml", "a: [", "the result folder graded cannot be read"),
        ("config.yaml", "a: 1", r"config\.yaml names no definitions"),
        ("config.yaml", "metrics: 5", r"config\.yaml names no definitions"),
        ("scores.jsonl", '{"question_id": ', "the result folder graded cannot be read"),
    ],
)
def test_a_result_folder_that_was_spoiled_is_told(name: str, content: str, told: str) -> None:
    graded(Moody(), ["Hi."], folder=Path("graded"))
    (Path("graded") / name).write_text(content)
    with pytest.raises(ParibusError, match=told):
        drift.freeze(Path("graded"))


def standing(flips: str, verdicts: int = 20, sample: str = "s", difference: float = 0.0) -> Standing:
    count = len(flips.split())
    return Standing(sample, count > verdicts * 0.05, 0.05, verdicts, count, difference, flips)


def test_two_runs_are_compared_on_one_side_of_a_move_only() -> None:
    stayed, moved = standing(""), standing("a b c")
    assert moved_between(None, None) is None
    assert moved_between(stayed, standing("a")) is None
    assert moved_between(moved, moved) is None
    # One of 20 verdicts between them: within the tolerance.
    assert moved_between(moved, standing("a b c d")) is None
    told = "the judge moved, not the system: on the frozen sample 3 of 20 verdicts flipped, for the baseline 0 of 20"
    assert str(moved_between(stayed, moved)).startswith(told)
    for before, after in ((moved, stayed), (moved, standing("d e f")), (moved, replace(moved, difference=0.2))):
        assert moved_between(before, after)
    for before, after in ((None, moved), (replace(moved, sample="t"), moved), (moved, None)):
        assert "was not held to the same sample" in str(moved_between(before, after))


def test_tracking_keeps_where_the_judge_stood_and_withholds_differences() -> None:
    before = frozen(Moody(), ["Hi.", "Go."])
    calm = graded(before, ["Hi.", "Go."], drift=again(before))
    upset = before.model_copy(update={"rude": ["q0", "q1"]})
    result = graded(upset, ["Hi.", "Go."], drift=again(upset))
    log = described(result, Path("run"))
    assert log.tags["paribus.drift"].startswith("the judge moved, not the system: 2 of 2 verdicts")
    figures = {name: value for name, value in log.metrics.items() if name.startswith("drift/")}
    assert figures == {
        "drift/n": 2.0,
        "drift/verdicts": 2.0,
        "drift/scores_equal": 0.0,
        "drift/verdicts_equal": 0.0,
        "drift/mean_difference": 1.0,
    }
    for baseline, comparable in ((calm, False), (result, True)):
        tags = described(baseline, Path("baseline")).tags
        view = BaselineView(
            "b",
            {"mood/polite": 1.0},
            {"mood/polite": 2},
            {"mood/polite": tags["paribus.definition.mood/polite"]},
            {"mood/polite": tags["paribus.judge.mood/polite"]},
            "c" * 64,
            from_json(Standing, tags[STANDING]),
        )
        compared = RunLog()
        compare(compared, result, view)
        assert ("delta/mood/polite" in compared.metrics) is comparable
        assert ("the judge moved" in compared.tags.get("paribus.not_comparable", "")) is not comparable


def test_a_standing_fits_into_a_tag() -> None:
    flips = tuple(drift.Flip("mood/polite", f"q{n}", "x" * 100, "supported", "absent") for n in range(5000))
    found = Drift("s" * 16, "2026-11-30T00:00:00Z", 0.05, None, 5000, 0, 0.0, 1.0, 5000, 0.0, True, flips)
    result = graded(Moody(), ["Hi."], drift=found)
    log = described(result, Path("run"))
    read = from_json(Standing, log.tags[STANDING])
    assert (read.flipped, read.verdicts, len(read.flips.split())) == (5000, 5000, drift.MARKS)


@pytest.fixture
def say(folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Say:
    """Runs `paribus …` in this process, on the tiny test set and with judge=moody."""
    write_test_set(folder / "data")
    own = {"concurrency": 8, "call_seconds": 9.0, "frozen": None, "drift_tolerance": 0.05}
    moody = {"samples": 1, "rude": [], "moves_at": None, "benches": str(folder / "benches.txt"), "flips": []}
    write_yaml(folder / "more", "judge/moody", _target_="tests.judge.moods.Moody", revision="1", **own, **moody)
    write_yaml(folder / "more", "metrics/mood", definitions=["labels/recall", POLITE], table=["mood/polite"])
    monkeypatch.setattr(sys, "argv", ["paribus"])
    monkeypatch.setattr(logging.root, "handlers", list(logging.root.handlers))
    fast = ("dataset=jsonl", "dataset.path=data", "chunker.size=60", "retriever=bm25", "tracking=off")

    def command(*arguments: str) -> Said:
        capfd.readouterr()
        ours = () if arguments[0] == "judge" else (f"--config-dir={folder / 'more'}", *fast, "metrics=mood")
        try:
            code = main([*arguments, *ours, *(() if arguments[0] == "judge" else ("judge=moody",))])
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        return Said(int(code), *capfd.readouterr())

    return command


def test_a_run_says_that_the_judge_moved(say: Say) -> None:
    first = say("run", "--json").json
    assert first["drift"] is None
    kept = say("judge", "freeze", "--run", first["folder"], "--to", "f/frozen.json", "--json")
    assert (kept.code, kept.json["scores"], kept.json["records"]) == (0, {"mood/polite": 4}, 4)
    assert "Runs with judge.frozen=" in say("judge", "freeze", "--run", first["folder"]).err

    same = say("run", "--json", "judge.frozen=f/frozen.json").json
    assert (same["drift"]["moved"], same["drift"]["n"]) == (False, 4)
    assert same["drift"]["sample"] == kept.json["sample"]
    assert scores_of(same) == scores_of(first)
    moved = say("run", "judge.frozen=f/frozen.json", "judge.rude=[q1,q2]")
    assert "note: the judge moved, not the system: " in moved.err
    (folder,) = [line.removeprefix("Results: ") for line in moved.err.split("\n") if line.startswith("Results: ")]
    summary = json.loads((Path(folder) / results.SUMMARY).read_text())
    assert summary["drift"]["moved"] is True
    assert {flip["question_id"] for flip in summary["drift"]["flips"]} == {"q1", "q2"}


def test_a_frozen_file_is_looked_at_before_any_work(say: Say) -> None:
    failed = say("run", "judge.frozen=gone.json")
    assert (failed.code, failed.err) == (2, "paribus: gone.json cannot be read: No such file or directory\n")
    assert say("judge", "freeze", "--run", "gone").code == 2


def test_a_sweep_withholds_differences_where_the_judge_moved_meanwhile(say: Say, folder: Path) -> None:
    first = say("run", "--json").json
    say("judge", "freeze", "--run", first["folder"])
    (folder / "benches.txt").unlink()
    sweep = ("sweep", "--json", "judge.frozen=judge_frozen.json", "retriever.k=4,5")
    # The baseline opens two benches, one for the frozen sample; the judge moves with the third.
    row = say(*sweep, "judge.moves_at=3").json["rows"][1]
    assert "labels/recall" in row["differences"]
    assert "mood/polite" not in row["differences"]
    assert row["not_comparable"].startswith("mood/polite: the judge moved, not the system: on the frozen sample")
    # Moved before the sweep: both rows are graded by the same judge, and both say so.
    after = say(*sweep, "judge.moves_at=1").json["rows"]
    assert (after[1]["not_comparable"], "mood/polite" in after[1]["differences"]) == (None, True)
    assert all(any(note.startswith("the judge moved") for note in row["outcome"]["notes"]) for row in after)
    shown = say(*(word for word in sweep if word != "--json"), "judge.moves_at=1")
    assert "note: the judge moved, not the system" in shown.err


def test_a_run_says_which_questions_are_flaky(say: Say) -> None:
    told = say("run", "judge.samples=2", "judge.flips=[q2]").err
    assert "note: mood/polite: 1 of 4 questions are flaky: a verdict flips between 2 samples (q2)" in told
    assert "note: mood/polite: no question of 4 is flaky in 2 samples" in say("run", "judge.samples=2").err


def test_a_frozen_sample_is_one_value() -> None:
    frozen(Moody(), ["Hi."])
    read = drift.load(Path("frozen.json"))
    assert from_json(Frozen, Path("frozen.json").read_text()).fingerprint == read.fingerprint
    assert replace(read, run="0" * 16).fingerprint != read.fingerprint
