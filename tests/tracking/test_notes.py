from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from runner.config import Trial
from runner.run_log import TAG_LIMIT, RunLog, assessment_name, numeric_series
from runner.tracking.notes import Pairing, run_note, sweep_note
from runner.tracking.view import saved_view

KEY = "labels/recall@5"
BASE = {"run": "baseline", "variable": None, "value": None, "baseline_value": None, "run_id": "r0", "definition": KEY}


def row(variable: str, value: str, mean: float | None, start: str | None = "800") -> dict[str, object]:
    label = f"{variable}={value}"
    common = {"run": label, "variable": variable, "value": value, "baseline_value": start, "run_id": f"id {value}"}
    return {**common, "definition": KEY, "mean": mean, "delta": None if mean is None else mean - 0.5}


def test_whole_numbers_make_a_series_with_the_baselines_own_point() -> None:
    table = [{**BASE, "mean": 0.5}, row("chunker.size", "1600", 0.75), row("chunker.size", "200", 0.25)]
    (series,) = numeric_series(table)
    assert series.points == ((200, 0.25), (800, 0.5), (1600, 0.75))
    assert (series.level, series.factor) == (0.5, 1)
    assert series.name == "by/chunker.size/labels/recall_at_5"
    assert series.level_name == "baseline_by/chunker.size/labels/recall_at_5"


def test_fractions_are_multiplied_and_the_name_says_so() -> None:
    table = [
        {**BASE, "mean": 0.5},
        row("judge.temperature", "0.25", 0.1, "0.0"),
        row("judge.temperature", "1", 0.2, "0.0"),
    ]
    (series,) = numeric_series(table)
    assert series.points == ((0, 0.5), (25, 0.1), (100, 0.2))
    assert series.name == "by/judge.temperature x 100/labels/recall_at_5"


@pytest.mark.parametrize(
    ("value", "start"),
    [("sentences", "800"), ("400", None), ("nan", "800"), ("0.00000001", "0"), ("1e300", "0"), ("true", "false")],
    ids=["a word", "a baseline without a value", "nan", "too fine", "too large", "a switch"],
)
def test_what_is_no_number_for_an_axis_makes_no_series(value: str, start: str | None) -> None:
    assert numeric_series([{**BASE, "mean": 0.5}, row("x.y", value, 0.1, start)]) == []


def test_runs_without_a_mean_leave_a_gap() -> None:
    failed = {"run": "k=9", "variable": "k", "value": "9", "baseline_value": "5", "error": "down"}
    table = [{**BASE, "mean": None}, row("k", "3", 0.25, "5"), row("k", "7", None, "5"), failed]
    (series,) = numeric_series(table)
    assert (series.points, series.level) == (((3, 0.25),), None)


def test_assessments_keep_their_framework() -> None:
    assert assessment_name("ragas/faithfulness") == "ragas:faithfulness"
    assert assessment_name("labels/recall@5") == "labels:recall@5"
    assert len(assessment_name("a/" + "k" * 400)) == 200


def variant() -> Trial:
    return Trial(design="variant", sweep="s1", variable="k", value="3", parent_run_id="p", baseline_run_id="base")


def note(trial: Trial, pairing: Pairing | None, traced: tuple[int, int] = (9, 9)) -> str:
    log = RunLog({"labels/recall_at_5": 0.75, "n/labels/recall_at_5": 9, "delta/labels/recall_at_5": 0.25})
    return run_note(log, [KEY], trial, "#/experiments/1/runs/me", Path("/x/results/0"), traced, pairing)


def test_a_variant_says_what_differs_and_leads_to_the_comparison() -> None:
    told = note(variant(), Pairing(7, ("q8",), ("q9", "q10")))
    assert told.startswith("**k=3**; all else is as in the [baseline](#/experiments/1/runs/base) of sweep s1.")
    assert "(#/experiments/1/evaluation-runs?selectedRunUuid=me&compareToRunUuid=base)" in told
    assert "7 questions stand in both runs; 1 only here (q8); 2 only in the baseline (q9, q10)." in told
    assert "`paribus compare base me`" in told
    assert "Result folder: `/x/results/0`" in told
    assert "| 0.750 | 9 | – | +0.250 |" in told


def test_a_single_run_has_no_comparison_and_says_what_was_left_out() -> None:
    told = note(Trial(), None, (2, 9))
    assert told.startswith("A single run.")
    assert "ompare" not in told
    assert "Only the first 2 of 9 questions are here" in told


def test_a_sweep_lists_its_runs_and_leads_to_charts_of_both_series() -> None:
    table = [{**BASE, "mean": 0.5, "delta": None}, row("chunker.size", "400", 0.75)]
    table.append({"run": "k=9", "variable": "k", "value": "9", "baseline_value": "5", "error": "it is down"})
    told = sweep_note(table, [KEY], numeric_series(table[:2]), "#/experiments/1/runs/p", True)
    assert "[Report](#/experiments/1/runs/p/artifacts/report/report.html)" in told
    (link,) = [word for word in told.split("(") if word.startswith("#/metric?")]
    asked = parse_qs(link.partition("?")[2].partition(")")[0])
    assert json.loads(asked["plot_metric_keys"][0]) == [
        "by/chunker.size/labels/recall_at_5",
        "baseline_by/chunker.size/labels/recall_at_5",
    ]
    assert asked["x_axis"] == ["step"]
    assert "| [chunker.size=400](#/experiments/1/runs/id 400) | 0.750 (+0.250) |" in told
    assert "| k=9 | failed: it is down |" in told


def test_a_long_description_fits_and_says_how_much_is_missing() -> None:
    table = [{**BASE, "mean": 0.5}, *(row("k", str(value), 0.5) for value in range(400))]
    told = sweep_note(table, [KEY], [], "#/experiments/1/runs/p", False)
    assert TAG_LIMIT - 300 < len(told) <= TAG_LIMIT
    assert "more lines; see the artifacts" in told


def test_the_saved_view_has_variable_value_and_differences() -> None:
    view = json.loads(saved_view([KEY]))
    assert view["name"] == "paribus"
    state = json.loads(zlib.decompress(base64.b64decode(view["state"].removeprefix("deflate;"))))
    assert state["selectedColumns"] == [
        "tags.`paribus.variable`",
        "tags.`paribus.value`",
        "metrics.`labels/recall_at_5`",
        "metrics.`delta/labels/recall_at_5`",
    ]
