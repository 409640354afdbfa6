"""Results: what is written can be read back, means count what they are over, differences are exact and repeatable."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.base import scorer
from adapters.labels.answers import AnswerF1
from adapters.schema import (
    SCHEMA_VERSION,
    Chunk,
    Question,
    Ranked,
    Record,
    Score,
    Verdict,
    from_json,
    json_schema,
    to_json,
)
from runner.results import Mean, RunResult, mean, read_scores, write
from runner.scoring import score
from runner.stats import Difference, difference

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ["a\u2028b\u2029c", "\x85\r\n", "\x00"]
)
NUMBER = st.floats(allow_nan=False, allow_infinity=False)
SCORES = st.builds(
    Score,
    TEXT,
    TEXT,
    TEXT,
    NUMBER,
    evidence=st.lists(st.builds(Verdict, TEXT, TEXT, reason=TEXT), max_size=2).map(tuple),
) | st.builds(Score, TEXT, TEXT, TEXT, st.none(), st.sampled_from(["failed", "not_applicable"]), st.just("why"))
CHUNKS = st.builds(Chunk, TEXT, st.integers(0, 5), st.integers(5, 9), TEXT)
RECORDS = st.builds(
    Record,
    TEXT,
    st.integers(0, 9),
    st.lists(st.builds(Ranked, CHUNKS, NUMBER, st.integers(1, 9)), max_size=2).map(tuple),
    answer=TEXT | st.none(),
    prompt=TEXT,
    refused=st.booleans() | st.none(),
)


@given(SCORES | RECORDS)
def test_one_line_of_json_reads_back_as_the_same(value: Any) -> None:
    line = to_json(value)
    assert "\n" not in line
    assert from_json(type(value), line) == value


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_score_is_never_nan_or_infinite(value: float) -> None:
    with pytest.raises(ValueError, match="is not a finite number"):
        Score("q", "d", "f", value)


def test_a_score_has_a_value_or_a_reason() -> None:
    with pytest.raises(ValueError, match="cannot go with value"):
        Score("q", "d", "f", None)
    with pytest.raises(ValueError, match="cannot go with value"):
        Score("q", "d", "f", 0.5, "failed")
    with pytest.raises(ValueError, match="needs a reason"):
        Score("q", "d", "f", None, "failed")


def result(questions: tuple[Question, ...], records: tuple[Record, ...]) -> RunResult:
    scorers = [scorer("labels/refusal_rate"), scorer("labels/answer_f1")]
    return RunResult(
        name="r", config={"a": "ä\u2028"}, config_fingerprint="f", choices={}, dataset={}, records=records,
        questions=questions,
        definitions={s.key: s.definition for s in scorers}, scores=score(scorers, questions, records), environment={},
        calls={"computed": {}, "reused": {}}, started="2026-01-01T00:00:00.000Z", seconds=0.1,
    )  # fmt: skip


QUESTIONS = (
    Question("q1", "a\u2028?", "yes", slices=("fact",), origin="synthetic"),
    Question("q2", "b?", "no", slices=("fact", "hard"), split="held_out"),
    Question("q3", "c?", answerable=False, slices=("hard",)),
)
ANSWERS = (
    Record("q1", answer="yes\u2028\u2029", refused=False),
    Record("q2", answer="I don't know", refused=True),
    Record("q3", error="no answer"),
)


def test_files_read_back_line_by_line_whatever_line_ends_stand_in_texts(tmp_path: Path) -> None:
    found = result(QUESTIONS, ANSWERS)
    write(found, tmp_path)
    assert read_scores(tmp_path / "scores.jsonl") == list(found.scores)
    lines = (tmp_path / "records.jsonl").read_bytes().decode().removesuffix("\n").split("\n")
    assert tuple(from_json(Record, line) for line in lines) == ANSWERS
    summary = json.loads((tmp_path / "summary.json").read_text(encoding="utf-8"), parse_constant=pytest.fail)
    assert set(summary["means"]) == {"labels/refusal_rate", "labels/answer_f1"}


def test_no_cell_of_the_table_of_questions_is_a_formula(tmp_path: Path) -> None:
    import csv

    spoken = result((Question("=1+1", "=HYPERLINK(1)"),), (Record("=1+1", answer="@SUM(A1)"),))
    write(spoken, tmp_path)
    with (tmp_path / "per_question.csv").open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["id"], row["question"], row["answer"]) == ("'=1+1", "'=HYPERLINK(1)", "'@SUM(A1)")


def test_means_count_what_they_are_over_by_slice_origin_and_split() -> None:
    found = result(QUESTIONS, ANSWERS)
    assert all(value.of == 3 for value in found.means().values())
    assert found.slices() == {
        "fact": ["q1", "q2"],
        "origin:synthetic": ["q1"],
        "split:tune": ["q1", "q3"],
        "hard": ["q2", "q3"],
        "origin:real": ["q2", "q3"],
        "split:held_out": ["q2"],
    }
    assert found.means(["q1"])["labels/answer_f1"].of == 1


@given(st.permutations([0.1, 0.2, 0.3, 1e16, -1e16, None]))
def test_a_mean_does_not_hang_on_the_order_and_leaves_no_failure_out(values: list[float | None]) -> None:
    scores = [
        Score(str(i), "d", "f", None, "failed", "why") if value is None else Score(str(i), "d", "f", value)
        for i, value in enumerate(values)
    ]
    assert mean(scores) == Mean(math.fsum([0.1, 0.2, 0.3]) / 5, 5, 1, 0)
    assert mean([]) == Mean(None, 0, 0, 0)


def test_a_definition_that_raises_costs_its_score_only() -> None:
    class Raises(AnswerF1):
        def score(self, question: Question, record: Record) -> Score:
            raise RuntimeError("boom")

    scores = score([Raises(), scorer("labels/answer_recall")], QUESTIONS[:1], ANSWERS[:1])
    assert (scores[0].status, scores[0].reason) == ("failed", "RuntimeError: boom")
    assert scores[1].status == "computed"


def test_a_question_without_a_record_stays_in_the_means() -> None:
    scores = score([scorer("labels/answer_f1")], QUESTIONS[:2], ANSWERS[:1])
    assert [s.question_id for s in scores] == ["q1", "q2"]


@pytest.mark.parametrize("kind", [Record, Score, Question, Chunk])
def test_the_json_schema_is_exported_with_its_version(kind: type) -> None:
    schema = json_schema(kind)
    assert schema["properties"]
    assert schema["$comment"] == f"paribus schema version {SCHEMA_VERSION}"
    assert json.loads(json.dumps(schema)) == schema


def test_a_difference_by_hand() -> None:
    assert difference([0.5, -0.25, 0.5, 0.25]).delta == 0.25
    assert difference([0.5]) == Difference(0.5, None, None, 1, 1)
    same = difference([0.25] * 9)
    assert (same.delta, same.low, same.high, same.n, same.beyond_noise) == (0.25, 0.25, 0.25, 9, True)
    assert not difference([1.0, -1.0]).beyond_noise


@pytest.mark.parametrize(("changed", "beyond"), [(5, False), (6, True)])
def test_fewer_than_six_changed_questions_decide_nothing(changed: int, beyond: bool) -> None:
    # Exact two-sided sign test, all in one direction: 2 / 2**5 = 0.0625 > 0.05 >= 2 / 2**6 = 0.03125.
    found = difference([1.0] * changed)
    assert found.low == 1.0
    assert (found.changed, found.beyond_noise) == (changed, beyond)


def test_the_interval_agrees_with_scipys_percentile_bootstrap() -> None:
    from scipy.stats import bootstrap

    values = np.random.default_rng(5).normal(0.1, 0.4, 80)
    ours = difference(values.tolist())
    theirs = bootstrap((values,), np.mean, n_resamples=20_000, method="percentile", rng=1).confidence_interval
    assert ours.low == pytest.approx(theirs.low, abs=0.012)
    assert ours.high == pytest.approx(theirs.high, abs=0.012)


def test_few_distinct_values_among_many_have_the_interval_of_any_others() -> None:
    differences = [1.0] * 300 + [-0.5] * 200 + [0.0] * 1500
    counted = difference(differences)
    # Each value made distinct by less than anything shows, so that each is drawn.
    drawn = difference([value + place * 1e-9 for place, value in enumerate(differences)])
    assert counted.delta == pytest.approx(0.1)
    assert (counted.low, counted.high) == pytest.approx((drawn.low, drawn.high), abs=2e-3)
    assert counted.changed == 500


@given(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.1, 0.2, 1.0]), min_size=2, max_size=12))
def test_a_difference_is_the_same_each_time_and_its_delta_in_any_order(values: list[float]) -> None:
    assert difference(values) == difference(values)
    assert difference(values[::-1]).delta == pytest.approx(difference(values).delta, abs=1e-15)
