"""The folder of a sweep: what is written is read back, and what is no whole sweep says so."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from runner.errors import DataError
from runner.results import CONFIG, SUMMARY, RunResult, write
from runner.sweep_folder import SWEEP, StoredRow, StoredSweep, read_sweep
from runner.sweep_folder import write as write_sweep
from tests.tracking.made_results import result

RECALL = "labels/recall"


def stored(folder: Path, trial: dict[str, Any], values: list[float | str]) -> RunResult:
    config = {"metrics": {"table": [RECALL]}, "retriever": {"k": 5}, "trial": trial}
    found = replace(result({RECALL: values}, config=config), choices={"retriever": "dense"})
    write(found, folder)
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A baseline and one variant; the sweep.json is not written."""
    sweep = tmp_path / "20261130T101500-000000"
    common = {"sweep": sweep.name, "parent_run_id": "a" * 32}
    stored(sweep / "0", {"design": "baseline", **common}, [0.0, 1.0])
    variant = {"design": "variant", "variable": "retriever.k", "value": "10", "baseline_run_id": "b" * 32}
    stored(sweep / "1", variant | common, [1.0, 1.0])
    return sweep


def written(folder: Path, overrides: tuple[str, ...] = ("tracking=off",)) -> StoredSweep:
    found = read_sweep(folder)
    failed = StoredRow("retriever=broken", "retriever", "broken", "dense", "retriever=broken", None, None, None, "boom")
    sweep = replace(found, overrides=overrides, rows=(*found.rows, failed), notes=())
    write_sweep(sweep)
    return sweep


def test_what_is_written_is_read_back(folder: Path) -> None:
    sweep = written(folder)
    found = read_sweep(folder)
    assert (found.name, found.parent_run_id, found.overrides, found.notes) == (
        folder.name,
        "a" * 32,
        ("tracking=off",),
        (),
    )
    assert [(row.label, row.folder, row.run_id, row.error) for row in found.rows] == [
        ("baseline", folder / "0", "b" * 32, None),
        ("retriever.k=10", folder / "1", None, None),
        ("retriever=broken", None, None, "boom"),
    ]
    assert found.baseline is not None
    assert found.baseline.summary["name"] == sweep.rows[0].run.summary["name"]  # type: ignore[union-attr]
    assert found.comparisons["retriever.k=10"].rows[0].delta == 0.5
    assert list(found.comparisons) == ["retriever.k=10"]


def test_a_folder_that_was_moved_is_read_where_it_is(folder: Path) -> None:
    written(folder)
    moved = folder.rename(folder.with_name("elsewhere"))
    assert [row.run is not None for row in read_sweep(moved).rows] == [True, True, False]


def test_credentials_in_overrides_are_left_out(folder: Path) -> None:
    written(folder, ("generator.base_url=http://me:secret@host/v1", "chunker.size=400"))
    assert "secret" not in (folder / SWEEP).read_text()
    assert read_sweep(folder).overrides == ("generator.base_url=http://[removed]@host/v1", "chunker.size=400")


def test_an_interrupted_sweep_is_read_from_its_result_folders(folder: Path) -> None:
    (folder / "2").mkdir()
    found = read_sweep(folder)
    assert [(row.label, row.from_value, row.override) for row in found.rows] == [
        ("baseline", None, None),
        ("retriever.k=10", "5", "retriever.k=10"),
    ]
    assert found.overrides is None
    assert found.notes == (
        "the sweep has no sweep.json: it was interrupted, or older; it is read from 2 result folders; 1 more run has "
        "no results",
    )


def test_without_its_baseline_the_variants_stay_apart(folder: Path) -> None:
    (folder / "0" / SUMMARY).unlink()
    found = read_sweep(folder)
    assert (found.baseline, found.rows[0].error) == (None, "it has no result folder")
    assert found.comparisons == {}


def test_a_plan_that_was_edited_is_not_believed(folder: Path) -> None:
    written(folder)
    plan = json.loads((folder / SWEEP).read_text())
    (folder / SWEEP).write_text("\ufeff" + json.dumps(plan), encoding="utf-8")  # as some editors save it
    assert read_sweep(folder).baseline
    (folder / SWEEP).write_text(json.dumps({**plan, "runs": plan["runs"][1:]}))
    with pytest.raises(DataError, match=r"begins with retriever\.k=10 and not with the baseline"):
        read_sweep(folder)
    (folder / SWEEP).write_text(json.dumps({**plan, "runs": [*plan["runs"], plan["runs"][1]]}))
    with pytest.raises(DataError, match=r"has the run retriever\.k=10 twice"):
        read_sweep(folder)


def test_a_result_folder_that_is_gone_costs_its_row_only(folder: Path) -> None:
    written(folder)
    (folder / "1" / SUMMARY).unlink()
    row = read_sweep(folder).rows[1]
    assert row.run is None
    assert "is no result folder" in (row.error or "")


def test_combinations_are_refused(folder: Path) -> None:
    path = folder / "1" / CONFIG
    config = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump({**config, "trial": {"design": "cartesian"}}))
    with pytest.raises(DataError, match="holds combinations of several variables, of which none can be said"):
        read_sweep(folder)


def test_what_is_no_sweep_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"holds no sweep: it has no sweep.json and no result folder"):
        read_sweep(tmp_path / "nowhere")
    with pytest.raises(
        DataError, match=f"is the result folder of one run; name the folder of a sweep, such as {folder}"
    ):
        read_sweep(folder / "0")
    stored(tmp_path / "single" / "1", {"design": "single"}, [1.0])
    with pytest.raises(DataError, match="holds single runs and no sweep"):
        read_sweep(tmp_path / "single")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"schema_version": 9}, "has schema version 9 and this paribus reads 1"),
        ({"runs": []}, "holds no run"),
        ({"runs": 5}, "cannot be read: runs: Input should be "),
        (None, "cannot be read: "),
    ],
)
def test_a_broken_file_says_what_is_wrong(folder: Path, changed: dict[str, Any] | None, said: str) -> None:
    written(folder)
    path = folder / SWEEP
    path.write_text("{" if changed is None else json.dumps({**json.loads(path.read_text()), **changed}))
    with pytest.raises(DataError, match=said):
        read_sweep(folder)
