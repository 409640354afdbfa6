"""A result folder that a decision hangs on is whole, or refused in one sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.errors import DataError
from runner.results import write
from runner.whole import read_whole
from tests.tracking.made_results import result


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(result({"labels/recall": [1.0, 0.5, 0.75, "it broke"]}), tmp_path / "run")
    return tmp_path / "run"


def test_a_run_as_it_was_written_is_whole(folder: Path) -> None:
    assert read_whole(folder).columns.values["labels/recall"][:3].tolist() == [1.0, 0.5, 0.75]


@pytest.mark.parametrize(
    ("values", "n"), [({}, 0), ({"labels/recall": []}, 0), ({"labels/recall": ["x"]}, 1), ({"labels/recall": [0.5]}, 1)]
)
def test_a_run_of_nothing_is_whole(tmp_path: Path, values: dict[str, list[float | str]], n: int) -> None:
    write(result(values), tmp_path / "run")
    assert len(read_whole(tmp_path / "run").columns.ids) == n


def card(**changed: Any) -> dict[str, Any]:
    return {"definitions": {"labels/recall": changed}}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"schema_version": "2"}, "another version of paribus (schema_version '2', and 2 can be read)"),
        ({"name": None}, "name in summary.json is None"),
        ({"started": 5}, "started in summary.json is 5"),
        ({"started": "today"}, "started in summary.json is 'today', no time"),
        ({"dataset": "x"}, "dataset in summary.json is 'x'"),
        ({"judge": {"model": "m"}}, "judge in summary.json has no provider"),
        ({"drift": "x"}, "summary.json: drift: "),
        ({"definitions": []}, "definitions in summary.json is []"),
        ({"definitions": {}}, "there are scores of labels/recall and no definition of it"),
        ({"definitions": {"labels/recall": 3}}, "the card of labels/recall in summary.json cannot be read"),
        (card(range=None), "the card of labels/recall in summary.json cannot be read"),
        (card(range=[1, 1]), "the range of labels/recall in summary.json is [1.0, 1.0]"),
        (card(range=[0, 0.9]), "the value of labels/recall for question 'q0' is 1, outside its range 0 to 0.9"),
        (card(direction="up"), "the card of labels/recall in summary.json cannot be read"),
        (card(colour="red"), "the card of labels/recall in summary.json cannot be read"),
        ({"means": {}}, "the mean of labels/recall in summary.json is None"),
        # (1 + .5 + .75) / 3 = .75
        ({"means": {"labels/recall": {"value": 0.75, "n": 4}}}, "is 0.75 over 4, and its scores come to 0.75 over 3"),
        ({"means": {"labels/recall": {"value": 0.7, "n": 3}}}, "is 0.7 over 3, and its scores come to 0.75 over 3"),
        ({"means": {"labels/recall": {"value": None, "n": 3}}}, "is None over 3, and its scores come to 0.75 over 3"),
    ],
)
def test_a_summary_that_was_edited_is_refused(folder: Path, change: dict[str, Any], told: str) -> None:
    path = folder / "summary.json"
    summary = json.loads(path.read_text(encoding="utf-8"))
    if "direction" in str(change) or "range" in str(change) or "colour" in str(change):
        summary["definitions"]["labels/recall"] |= change["definitions"]["labels/recall"]
    else:
        summary |= change
    path.write_text(json.dumps(summary), encoding="utf-8")
    refused(folder, told)


@pytest.mark.parametrize(
    ("file", "change", "told"),
    [
        ("summary.json", lambda text: "", "summary.json: Expecting value"),
        ("summary.json", lambda text: "[" * 100_000, "summary.json: maximum recursion depth"),
        ("summary.json", lambda text: "[]", "summary.json: it holds no mapping"),
        ("config.yaml", lambda text: "a: [", "config.yaml: "),
        ("config.yaml", lambda text: "- a", "config.yaml: it holds no mapping"),
        (
            "scores.jsonl",
            lambda text: text.replace("q1", "q0"),
            "scores.jsonl, line 2: labels/recall on 'q0' stands tw",
        ),
        ("scores.jsonl", lambda text: text.replace("q1", "zz"), "there are scores of 'zz' and no such question"),
        ("scores.jsonl", lambda text: text.replace(":0.75", ":0.25"), "and its scores come to 0.58333"),
        ("scores.jsonl", lambda text: text.replace(":0.75", ":NaN"), "scores.jsonl, line 3: "),
        ("scores.jsonl", lambda text: f"<<<<<<< HEAD\n{text}", "scores.jsonl, line 1: "),
        (
            "scores.jsonl",
            lambda text: text[: text.index("\n") + 1],
            "is 0.75 over 3, and its scores come to 1.0 over 1",
        ),
        ("scores.jsonl", lambda text: text[:-9], "scores.jsonl was cut off"),
        ("questions.jsonl", lambda text: "", "there are scores of 'q0' and no such question"),
        # The last score has no value, so that the mean still holds.
        (
            "scores.jsonl",
            lambda text: text[: text.rindex("{")],
            "there is no score of labels/recall for question 'q3'",
        ),
        ("records.jsonl", lambda text: text[: text.rindex("\n{") + 1], "there is no record of question 'q3'"),
        ("records.jsonl", lambda text: "", "there is no record of question 'q0'"),
        ("records.jsonl", lambda text: text.replace("q1", "zz"), "there is no record of question 'q1'"),
        (
            "records.jsonl",
            lambda text: text + text[: text.index("\n") + 1].replace("q0", "zz"),
            "there is a record of 'zz' and no such question",
        ),
        (
            "records.jsonl",
            lambda text: text.replace("q1", "q0"),
            "records.jsonl, line 2: 'q0' stands in an earlier line",
        ),
    ],
)
def test_a_file_that_was_edited_is_refused(folder: Path, file: str, change: Callable[[str], str], told: str) -> None:
    path = folder / file
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")
    refused(folder, told)


@pytest.mark.parametrize("file", ["summary.json", "config.yaml", "scores.jsonl", "questions.jsonl", "records.jsonl"])
def test_a_file_that_is_missing_or_a_loop_is_refused(folder: Path, file: str) -> None:
    (folder / file).unlink()
    refused(folder, f"has no {file}")
    (folder / file).symlink_to(file)
    refused(folder, f"has no {file}")


def refused(folder: Path, told: str) -> None:
    with pytest.raises(DataError) as caught:
        read_whole(folder)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)
