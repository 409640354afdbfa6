"""Large result folders are read piece by piece: the same as reading all, and what is broken is told with its line."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import parquet

from adapters.schema import Record, Score
from benchmarks.compare import write_pair
from runner import results, stored
from runner.compare import files
from runner.compare.paired import DETAILED, GAINED, compare, compare_sweep
from runner.errors import DataError
from runner.results import RECORDS, SCORES, SCORES_TABLE, StoredRun, read_run

N, DEFINITIONS = 60, 3
FILES = ("questions.jsonl", RECORDS, SCORES)


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Two result folders; from here on every file counts as large."""
    found = write_pair(tmp_path / "runs", N, DEFINITIONS, "many")
    monkeypatch.setattr(results, "SMALL", 0)
    return found


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> dict[type, int]:
    """How many lines of each kind were parsed."""
    counts: dict[type, int] = {}
    parsed = stored.parsed

    def count(kind: type, *rest: Any) -> Any:
        counts[kind] = counts.get(kind, 0) + 1
        return parsed(kind, *rest)

    monkeypatch.setattr(stored, "parsed", count)
    return counts


def whole(folder: Path, monkeypatch: pytest.MonkeyPatch) -> StoredRun:
    with monkeypatch.context() as patched:
        patched.setattr(results, "SMALL", 10**12)
        return read_run(folder)


def plain(scores: Mapping[str, Mapping[str, Score]]) -> dict[str, dict[str, Score]]:
    return {key: dict(by_id) for key, by_id in scores.items()}


def same(one: StoredRun, other: StoredRun) -> None:
    assert dict(one.questions) == dict(other.questions)
    assert dict(one.records) == dict(other.records)
    assert plain(one.scores) == plain(other.scores)
    assert one.slices == other.slices
    assert list(one.columns.ids) == list(other.columns.ids)
    assert one.columns.judges == other.columns.judges
    for name in ("values", "flaky"):
        columns, others = getattr(one.columns, name), getattr(other.columns, name)
        assert list(columns) == list(others)
        for key in columns:
            np.testing.assert_array_equal(columns[key], others[key])


def edited(path: Path, line: int, change: Callable[[str], str]) -> None:
    lines = path.read_text(encoding="utf-8").split("\n")
    lines[line - 1] = change(lines[line - 1])
    path.write_text("\n".join(lines), encoding="utf-8")


@pytest.mark.parametrize("table", ["there", "gone", "of other lines", "no parquet"])
def test_read_piece_by_piece_a_run_is_the_same(
    pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, counted: dict[type, int], table: str
) -> None:
    folder = pair[0]
    without = {"question_id": "question-000007", "definition": "made/1", "fingerprint": "f", "value": None}
    edited(folder / SCORES, N + 8, lambda _: json.dumps({**without, "status": "failed", "reason": "it broke"}))
    match table:
        case "there":
            lines = stored.identity([(folder / SCORES).read_bytes()])
            scores = [score for by_id in whole(folder, monkeypatch).scores.values() for score in by_id.values()]
            results.write_parquet(folder / SCORES_TABLE, scores, lines)
        case "gone":
            (folder / SCORES_TABLE).unlink()
        case "no parquet":
            (folder / SCORES_TABLE).write_bytes(b"nothing")
    expected = whole(folder, monkeypatch)
    counted.clear()
    found = read_run(folder)
    assert np.isnan(found.columns.values["made/1"][7])
    # The table says all but who judged made/1 and made/2; where it does not belong to the lines, each of them is read.
    assert counted[Score] == 2 + (table != "there") * N * DEFINITIONS
    same(found, expected)
    assert "nothing" not in found.records
    assert found.scores["made/1"].get("nothing") is None


def test_a_value_that_a_person_edited_counts_and_not_the_table(pair: tuple[Path, Path]) -> None:
    values = parquet.read_table(pair[0] / SCORES_TABLE)["value"].to_pylist()
    edited(pair[0] / SCORES, 3, lambda line: line.replace(f'"value":{values[2]!r}', '"value":0.125'))
    assert read_run(pair[0]).columns.values["made/0"][2] == 0.125 != values[2]


def test_lines_in_another_form_and_order_are_read_too(pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in FILES:
        path = pair[0] / name
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        turned = [json.dumps(dict(reversed(line.items()))) for line in reversed(lines)]
        path.write_text("\n" + "\n\n".join(turned), encoding="utf-8")
    same(read_run(pair[0]), whole(pair[0], monkeypatch))


def test_a_comparison_of_large_runs_is_that_of_small_ones(
    pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    large = compare(*map(read_run, pair), names=("a", "b"))
    small = compare(*(whole(folder, monkeypatch) for folder in pair), names=("a", "b"))
    assert files.encoded(large) == files.encoded(small)
    assert large.changes
    assert large.slices


def test_only_what_is_shown_is_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, counted: dict[type, int]
) -> None:
    monkeypatch.setattr("benchmarks.compare.CHARACTERS", 20)
    n = 10_000
    baseline, candidate = map(read_run, write_pair(tmp_path / "runs", n, 10, "many"))
    counted.clear()
    compare_sweep(baseline, {"candidate": candidate}, details=False)
    # The judge of each of two definitions on either side.
    assert counted == {Score: 4}
    found = compare(baseline, candidate, names=("a", "b"))
    assert found.changed_questions > 9_000
    assert len(found.changes) == DETAILED + GAINED
    assert counted[Record] == 2 * (DETAILED + GAINED)
    assert counted[Score] <= 4 + 2 * 10 * (DETAILED + GAINED)


@pytest.mark.parametrize(
    ("file", "line", "change", "told"),
    [
        (RECORDS, 5, lambda line: line.replace('"asked_k":5', '"asked_k":"five"'), "records.jsonl, line 5: "),
        (
            RECORDS,
            5,
            lambda line: line.replace("000004", "000003"),
            "records.jsonl, line 5: 'question-000003' stands in",
        ),
        (RECORDS, 5, lambda line: "[]", "records.jsonl, line 5: "),
        (RECORDS, 5, lambda line: line[:-1] + ',"question_id":"other"}', "records.jsonl, line 5: it is of 'other' and"),
        ("questions.jsonl", 2, lambda line: line.replace('"text":', '"txt":'), "questions.jsonl, line 2: "),
        ("questions.jsonl", 2, lambda line: line[:9], "questions.jsonl, line 2: "),
        (SCORES, 4, lambda line: line.replace('"value":', '"value":NaN,"v":'), "scores.jsonl, line 4: "),
        (SCORES, 4, lambda line: line.replace("000003", "000002"), "scores.jsonl, line 4: made/0 on 'question-000002'"),
        (SCORES, 4, lambda line: line.replace("computed", "failed"), "scores.jsonl, line 4: "),
    ],
)
@pytest.mark.parametrize("small", [0, 10**12])
def test_a_broken_line_is_told_with_its_number(
    pair: tuple[Path, Path],
    monkeypatch: pytest.MonkeyPatch,
    small: int,
    file: str,
    line: int,
    change: Callable[[str], str],
    told: str,
) -> None:
    edited(pair[1] / file, line, change)
    monkeypatch.setattr(results, "SMALL", small)
    with pytest.raises(DataError, match="Make the run again") as caught:
        compare(*map(read_run, pair), names=("a", "b"))
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("file", FILES)
def test_a_file_that_was_cut_off_is_told_before_anything_is_read(pair: tuple[Path, Path], file: str) -> None:
    path = pair[0] / file
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match=f"{file} was cut off: its last line has no end"):
        read_run(pair[0])


def test_a_file_that_changes_while_it_is_read_is_told(pair: tuple[Path, Path]) -> None:
    run = read_run(pair[0])
    assert len(run.records) == len(run.scores["made/0"]) == N
    for name in (RECORDS, SCORES):
        path = pair[0] / name
        path.write_bytes(b"".join(reversed(path.read_bytes().splitlines(keepends=True))))
    with pytest.raises(DataError, match=r"records\.jsonl, line"):
        run.records["question-000001"]
    with pytest.raises(DataError, match=r"scores\.jsonl, line"):
        run.scores["made/0"]["question-000001"]
