"""What `paribus sweep` says at its end, and what it leaves for the report and for machines."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from runner.results import SUMMARY
from runner.sweep_folder import SWEEP, read_sweep
from tests.spine.commands import Say


@pytest.mark.slow
def test_a_sweep_of_the_bundled_test_set_is_decided(say: Say, folder: Path) -> None:
    said = say("sweep", "reranker=none,late_interaction", "retriever.k=5,10", "tracking=off", fast=False)
    assert said.code == 0, said.err
    told = " ".join(said.out.split())
    assert "Keep reranker=late_interaction: better in recall +0.150" in told
    assert "Trade-off retriever.k=10: better in recall +0.130" in told
    assert "recall is best at retriever.k=10, the end of what was tried (5 to 10): go on" in told
    (command,) = [line.strip() for line in said.out.splitlines() if line.strip().endswith("retriever.k=10,15,20")]
    assert say(*shlex.split(command)[1:], "--dry-run", fast=False).code == 0
    assert max(map(len, said.out.replace(command, "").splitlines())) <= 100
    assert "after Holm for the 10 comparisons in definitions of the table" in " ".join(said.err.split())

    (path,) = Path("mlruns/results").glob(f"*/{SWEEP}")
    found = read_sweep(path.parent)
    assert [row.label for row in found.rows] == ["baseline", "reranker=late_interaction", "retriever.k=10"]
    assert all(row.run for row in found.rows)
    assert {file.suffix for file in (path.parent / "report").iterdir() if file.is_file()} == {".html", ".md", ".json"}
    assert found.overrides == ("tracking=off",)


def test_json_carries_the_recommendation(say: Say) -> None:
    said = say("sweep", "--json", "retriever.k=5,1")
    assert said.code == 0, said.err
    found = said.json["recommendation"]
    assert [run["label"] for run in found["runs"]] == ["baseline", "retriever.k=1"]
    assert found["runs"][1]["decision"] == "cannot tell"
    assert found["questions"] == 4
    assert (
        found["runs"][0]["cost"]["unknown"]["dollars"] == "nothing says whether spine_stubs.Overlap asks a paid model"
    )
    row = said.json["rows"][1]
    assert {"delta", "low", "high", "n", "changed", "adjusted", "word"} <= set(row["differences"]["labels/recall"])
    families = {key: each["family"] for key, each in row["differences"].items()}
    assert {families[key] for key in found["decisive"]} == {found["family"]} == {5}
    assert {n for key, n in families.items() if key not in found["decisive"]} == {len(families)}
    assert json.loads((Path(said.json["report"]) / "report.json").read_text())


def test_where_all_variants_failed_or_the_baseline_did_nothing_is_recommended(say: Say) -> None:
    said = say("sweep", "retriever.k=5,1", "retriever.at=[1]")
    assert said.code == 1
    assert "Keep" not in said.out
    assert "Next:" not in said.out
    assert "Traceback" not in said.err
    said = say("sweep", "retriever.k=5,1", "retriever.at=[5]", "tracking.folder=mlruns/other")
    assert said.code == 1
    assert "Traceback" not in said.err
    files = [*Path("mlruns/results").glob(f"*/{SWEEP}"), *Path("mlruns/other/results").glob(f"*/{SWEEP}")]
    assert [[row.error is None for row in read_sweep(file.parent).rows] for file in files] == [
        [True, False],
        [False, False],
    ]


def test_a_report_that_cannot_be_written_costs_nothing_else(say: Say, folder: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    from runner.report import files

    def broken(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "write_report", broken)
    said = say("sweep", "retriever.k=5,1")
    assert said.code == 0
    assert "there is no report: [Errno 28] No space left on device" in said.err
    assert "Cannot tell with 4 questions: retriever.k=1" in said.out


def test_what_nobody_foresaw_after_the_runs_costs_neither_table_nor_exit_code(
    say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("a fault of paribus")

    monkeypatch.setattr("runner.report.material.gathered", broken)
    said = say("sweep", "retriever.k=5,1")
    assert said.code == 0
    assert "there is no report: " in said.err
    assert "KeyError: 'a fault of paribus' (PARIBUS_TRACEBACK=1 prints where from)" in said.err
    assert "Traceback" not in said.err
    assert "Cannot tell with 4 questions: retriever.k=1" in said.out

    monkeypatch.setattr("runner.recommendation.recommend.next_sweeps", broken)
    monkeypatch.setenv("PARIBUS_TRACEBACK", "1")
    said = say("sweep", "--json", "retriever.k=5,1")
    assert said.code == 0
    assert (said.json["recommendation"], said.json["report"]) == (None, None)
    assert "Traceback" in said.err
    assert said.json["rows"][1]["differences"]


def test_the_path_of_the_page_is_told(say: Say) -> None:
    (told,) = [line for line in say("sweep", "retriever.k=5,1").err.splitlines() if line.startswith("Report: ")]
    assert Path(told.removeprefix("Report: ")).name == "report.html"
    assert Path(told.removeprefix("Report: ")).is_file()


def test_one_question_is_swept_without_a_fault(say: Say) -> None:
    said = say("sweep", "retriever.k=5,1", "dataset.limit=1")
    assert said.code == 0, said.err
    assert "Cannot tell with 1 question" in said.out


def test_an_interrupted_sweep_is_read_as_far_as_it_went(say: Say, folder: Path) -> None:
    assert say("sweep", "retriever.k=5,1,2").code == 0
    (path,) = Path("mlruns/results").glob(f"*/{SWEEP}")
    path.unlink()
    (path.parent / "2" / SUMMARY).unlink()
    found = read_sweep(path.parent)
    assert [row.label for row in found.rows] == ["baseline", "retriever.k=1"]
    assert found.rows[1].from_value == "5"
    assert "1 more run has no results" in found.notes[0]
