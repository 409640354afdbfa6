"""judge.samples: the same judgement made several times, and what flips between the times."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from math import sqrt
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from adapters.judges.openai import OpenAIJudge
from adapters.judges.replay import ReplayJudge
from adapters.schema import Score
from runner import results
from runner.component import build
from runner.config import PARTS
from runner.errors import ConfigError
from tests.judge.moods import ByCall, graded
from tests.stages.openai_stub import OpenAIStub, chat, openai_stub

__all__ = ["openai_stub"]

POLITE, RATING = "tests.judge.moods:Polite", "tests.judge.moods:Rating"
THREE_LINES = "Good day.\nPlease sit.\nThank you."


def one(says: Callable[[int], Any], definition: str = POLITE, samples: int = 3) -> Score:
    """The score of one answer of three lines; `says` gives what is said from the sample number of a call."""
    judge = ByCall(says=lambda question, sample: says(sample), samples=samples)
    (score,) = graded(judge, [THREE_LINES], [definition]).scores
    return score


def lines(*verdicts: str) -> Callable[[int], list[bool]]:
    """`lines("yyn", "yyy")`: the verdicts of the first judgement, then of the second."""
    return lambda sample: [letter == "y" for letter in verdicts[sample // 1000]]


def test_the_value_is_the_mean_and_the_spread_the_standard_deviation() -> None:
    # 1, 0, 1: mean 2/3; deviations 1/3, -2/3, 1/3; their squares sum to 6/9; over n - 1 = 2: 1/3.
    score = one(lines("yyy", "nnn", "yyy"))
    assert score.value == pytest.approx(2 / 3)
    assert score.spread == pytest.approx(sqrt(1 / 3))
    assert (score.samples, score.samples_failed, score.calls, score.flaky) == (3, 0, 3, True)
    assert [verdict.ours for verdict in score.evidence] == ["supported"] * 3


def test_samples_that_agree_give_the_value_of_one_of_them() -> None:
    score = one(lines("yyn", "yyn", "yyn"))
    assert (score.value, score.spread, score.flaky) == (one(lines("yyn"), samples=1).value, 0.0, False)


def test_a_verdict_that_flips_is_flaky_though_the_value_stays() -> None:
    score = one(lines("yyn", "nyy"), samples=2)
    assert (score.value, score.spread, score.flaky) == (pytest.approx(2 / 3), 0.0, True)


@pytest.mark.parametrize(("ratings", "flaky"), [((0.4, 0.6), True), ((0.6, 0.9), False), ((0.5, 0.9), False)])
def test_a_rating_is_flaky_when_it_changes_sides_of_the_middle(ratings: tuple[float, float], flaky: bool) -> None:
    score = one(lambda sample: ratings[sample // 1000], RATING, samples=2)
    assert score.flaky is flaky
    assert score.value == pytest.approx(sum(ratings) / 2)


def test_failed_samples_are_counted_and_leave_the_mean_to_the_others() -> None:
    score = one(lambda sample: "the judge is down" if sample == 1000 else [True, True, sample > 0])
    # 2/3 and 1, of which the mean is 5/6.
    assert (score.value, score.samples, score.samples_failed) == (pytest.approx(5 / 6), 3, 1)
    assert score.reason == "1 of 3 samples have no value; the first: the judge is down"
    nothing = one(lambda sample: "the judge is down")
    assert (nothing.value, nothing.status, nothing.samples_failed, nothing.spread) == (None, "failed", 3, None)
    assert nothing.reason == "3 of 3 samples have no value; the first: the judge is down"


def test_a_sample_that_finds_nothing_to_judge_makes_the_question_flaky() -> None:
    score = one(lambda sample: [] if sample == 1000 else [True] * 3, samples=2)
    assert (score.value, score.samples_failed, score.flaky) == (1.0, 0, True)
    alike = one(lambda sample: [], samples=2)
    assert (alike.status, alike.flaky) == ("not_applicable", False)


def test_equal_prompts_within_a_judgement_stay_apart_from_those_of_the_next() -> None:
    seen: list[int] = []
    one(lambda sample: seen.append(sample) or 0.5, RATING, samples=2)
    assert seen == [0, 1, 1000, 1001]


def stub_judge(stub: OpenAIStub, folder: Path, **fields: Any) -> OpenAIJudge:
    plain = {"model": "stub-1", "structured": "json_schema", "temperature": 0.7, "samples": 3}
    kept = str(folder / "replies.sqlite")
    return OpenAIJudge(**{"base_url": stub.base_url, "cache_file": kept, "concurrency": 1, **plain, **fields})


def said(*verdicts: str) -> list[Any]:
    return [chat(json.dumps({"lines": [letter == "y" for letter in each]})) for each in verdicts]


def test_a_replayed_run_with_samples_gives_the_same_scores(
    openai_stub: OpenAIStub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "*")
    openai_stub.script(*said("yyy", "nyy", "nnn"))
    judge = stub_judge(openai_stub, tmp_path)
    (live,) = graded(judge, [THREE_LINES], folder=tmp_path / "run").scores
    assert (live.value, live.flaky, live.samples, live.cached) == (pytest.approx(5 / 9), True, 3, 0)
    assert [seen.body["seed"] for seen in openai_stub.requests] == [0, 1000, 2000]

    (kept,) = graded(stub_judge(openai_stub, tmp_path), [THREE_LINES]).scores
    assert (kept.cached, len(openai_stub.requests)) == (3, 3)
    recorded = ReplayJudge(recording=str(tmp_path / "run" / results.RECORDING))
    (replayed,) = graded(recorded, [THREE_LINES]).scores
    for again in (kept, replayed):
        assert replace(again, seconds=live.seconds, cached=0, cost=live.cost) == live


def test_one_sample_changes_nothing(openai_stub: OpenAIStub, tmp_path: Path) -> None:
    # The fingerprint of this card before judge.samples and judge.frozen came.
    plain = OpenAIJudge(base_url="http://localhost:11434/v1", model="stub-1")
    assert plain.card.fingerprint == "3b9d4c807c323192"
    assert plain.model_copy(update={"frozen": "f.json", "drift_tolerance": 0.5}).card == plain.card
    assert plain.model_copy(update={"samples": 3}).card.fingerprint != plain.card.fingerprint
    score = one(lines("yyn"), samples=1)
    assert (score.samples, score.samples_failed, score.spread, score.flaky) == (1, 0, None, False)
    result = graded(ByCall(says=lambda question, sample: [True], samples=1), ["Hi."], folder=tmp_path)
    with (tmp_path / results.TABLE).open() as file:
        assert next(csv.reader(file))[-1] == "mood/polite"
    assert result.scores[0].value == 1.0


@pytest.mark.parametrize("name", ["lexical.LexicalJudge", "labels.LabelsJudge"])
def test_judges_that_say_the_same_each_time_refuse_samples(name: str) -> None:
    with pytest.raises(ConfigError, match=r"judge\.samples is not a known key"):
        build({"_target_": f"adapters.judges.{name}", "samples": 3}, PARTS["judge"], "judge")


def test_samples_without_a_temperature_are_warned_of() -> None:
    judge = OpenAIJudge(base_url="http://localhost:1/v1", model="m-2024-07-18", samples=3)
    assert any("judge.temperature=0: each sample is the likeliest reply" in told for told in judge.warnings(None))
    assert not judge.model_copy(update={"temperature": 0.7}).warnings(None)


def test_the_files_of_a_run_say_which_questions_are_flaky(tmp_path: Path) -> None:
    judge = ByCall(says=lambda question, sample: [sample == 0 or question == "q0"], samples=2)
    graded(judge, ["Hi.", "Go."], folder=tmp_path)
    with (tmp_path / results.TABLE).open() as file:
        rows = list(csv.DictReader(file))
    assert [row["mood/polite flaky"] for row in rows] == ["False", "True"]
    # 1 and 0: deviations of 1/2, squares sum to 1/2, over n - 1 = 1.
    assert [float(row["mood/polite spread"]) for row in rows] == [0.0, pytest.approx(sqrt(0.5))]
    table = parquet.read_table(tmp_path / results.SCORES_TABLE).to_pylist()
    assert [(row["flaky"], row["samples"], row["samples_failed"]) for row in table] == [(False, 2, 0), (True, 2, 0)]
    read = results.read_scores(tmp_path / results.SCORES)
    assert [(score.flaky, score.spread) for score in read] == [(False, 0.0), (True, pytest.approx(sqrt(0.5)))]
