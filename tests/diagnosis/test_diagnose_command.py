"""The sample run, from end to end through the command line."""

from __future__ import annotations

import csv
import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from runner.cli import main
from runner.diagnosis.rules import FAULTS
from runner.errors import ExitCode
from tests.spine.commands import ROOT

SAMPLE = ROOT / "runner" / "sample"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a sweep of the sample: 0 is the baseline, 1 has prompt=strict."""
    folder = tmp_path_factory.mktemp("sweep")
    at = f"tracking.folder={folder}"
    assert main(["sweep", "--json", "tracking=off", at, "retriever=bm25", "prompt=plain,strict"]) == ExitCode.OK
    (results,) = (folder / "results").iterdir()
    return results


def said(capsys: pytest.CaptureFixture[str], *arguments: str | Path, code: ExitCode = ExitCode.OK) -> tuple[str, str]:
    capsys.readouterr()
    assert main(["diagnose", *map(str, arguments)]) == code
    captured = capsys.readouterr()
    return captured.out, captured.err


def diagnosed(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(said(capsys, *arguments, "--json")[0])
    return found


def test_table_summary_and_spreadsheet_say_the_same(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = diagnosed(capsys, made / "0", "tracking=off")
    assert list(found["counts"]) == [fault for fault in FAULTS if fault in found["counts"]]
    assert found["counts"] == json.loads((made / "0" / "summary.json").read_text(encoding="utf-8"))["faults"]
    with (made / "0" / "per_question.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["id"]: row for row in csv.DictReader(file)}
    assert Counter(row["fault"] for row in rows.values() if row["fault"]) == found["counts"]
    for each in found["questions"]:
        first = each["faults"][0] if each["faults"] else {"name": "", "evidence": ""}
        assert (rows[each["question_id"]]["fault"], rows[each["question_id"]]["evidence"]) == (
            first["name"],
            first["evidence"],
        )
    assert len(found["questions"]) == 107
    # 17 questions are unanswerable, and the extractive generator answers all but one of them.
    assert found["counts"]["should have declined"] == sum(
        row["answerable"] == "False" and row["refused"] == "False" for row in rows.values()
    )
    missed = [row for row in rows.values() if row["fault"] == "missed top ranked"]
    assert missed
    assert all(float(row["labels/recall"]) < 1 for row in missed)


def test_the_terminal_fits_and_shows_baseline_examples_and_what_is_missing(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, err = said(capsys, made / "1", "--baseline", "baseline", "tracking=off")
    assert max(map(len, out.splitlines())) <= 100
    for words in ("Faults", "declined wrongly", "change", "Could not be looked for", "needs, in", "Unjudged: "):
        assert words in out
    assert "against the baseline: should have declined: gone" in err
    assert "prompt=strict" not in out.partition("Faults")[2]  # the run has it already
    data = diagnosed(capsys, made / "1", "--baseline", made / "0", "tracking=off")
    assert data["before"] == json.loads((made / "0" / "summary.json").read_text(encoding="utf-8"))["faults"]
    assert data["appeared"]["declined wrongly"]
    assert {row["value_before"] is None for row in data["judged_only"]} == {False}


def test_thresholds_are_read_from_the_command_line(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def buried(*overrides: str) -> int:
        found = diagnosed(capsys, made / "0", "tracking=off", *overrides)
        return sum(fault["name"] == "buried" for each in found["questions"] for fault in each["faults"])

    assert buried("diagnosis.buried_from=2") > buried("diagnosis.buried_from=3") > buried("diagnosis.buried_from=6")
    assert buried("diagnosis.buried_from=6") == 0  # k is 5
    levers = diagnosed(capsys, made / "0", "tracking=off", "diagnosis.levers.buried=['retriever.k=7']")["levers"]
    assert levers["buried"] == ["retriever.k=7"]
    assert "missed top ranked" in levers
    told = said(capsys, made / "0", "tracking=off", "diagnosis.burried_from=2", code=ExitCode.USAGE)[1]
    assert "did you mean diagnosis.buried_from?" in told
    told = said(
        capsys, made / "0", "tracking=off", "diagnosis.levers.buried=['retriever=hybird']", code=ExitCode.USAGE
    )[1]
    assert "hybird is no option of retriever" in told


def test_unjudged_chunks_go_out_and_their_grades_come_back(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, copy = tmp_path / "unjudged.csv", tmp_path / "sample"
    said(capsys, made / "1", "--baseline", "baseline", "--unjudged", table, "tracking=off")
    shutil.copytree(SAMPLE, copy)
    with table.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows[:3]:
        row["grade"] = "0"
    with table.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    data = json.loads(said(capsys, "--labels", table, "--into", copy / "questions.jsonl", "--json")[0])
    assert (sum(data["added"].values()), data["ungraded"]) == (3, len(rows) - 3)
    before = (SAMPLE / "questions.jsonl").read_bytes().split(b"\n")
    after = (copy / "questions.jsonl").read_bytes().split(b"\n")
    assert sum(one != other for one, other in zip(before, after, strict=True)) == len(data["added"])
    # The test set is whole: a run reads it, and the three are no longer unjudged.
    at = (f"tracking.folder={tmp_path / 'runs'}", "tracking=off", "retriever=bm25", "prompt=strict")
    assert main(["run", "--json", "dataset=jsonl", f"dataset.path={copy}", "dataset.documents=docs", *at]) == 0
    again = diagnosed(capsys, "latest", *at[:2])
    assert len(again["unjudged"]) == len(rows) - 3


def test_frozen_records_have_the_faults_of_the_live_ones(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    at = (f"tracking.folder={tmp_path}", "tracking=off")
    frozen = ("retriever=bm25", "prompt=strict", "records=frozen", f"records.path={made / '0'}")
    assert main(["run", "--json", *at, *frozen]) == ExitCode.OK
    live, again = diagnosed(capsys, made / "1", at[1]), diagnosed(capsys, "latest", *at)
    assert again["questions"] == live["questions"]
    assert again["missing"] == live["missing"]


def test_a_run_tells_its_faults_in_a_note(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    at = (f"tracking.folder={tmp_path}", "tracking=off", "retriever=bm25", "dataset.limit=20")
    assert main(["run", *at]) == ExitCode.OK
    (note,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("note: faults: ")]
    assert note.endswith("; `paribus diagnose latest` says more")
    counts = diagnosed(capsys, "latest", *at[:2])["counts"]
    told = note.removeprefix("note: faults: ").partition(";")[0]
    assert dict(part.rsplit(" ", 1) for part in told.split(", ")) == {key: str(n) for key, n in counts.items()}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "diagnose takes a run, or --labels FILE"),
        (["latest", "--labels", "a.csv", "--into", "q.jsonl"], "diagnose takes a run, or --labels FILE"),
        (["--labels", "a.csv"], "go together"),
        (["--labels", "a.csv", "--into", "q.jsonl", "--baseline", "latest"], "--baseline needs a run"),
        (["latest", "whatever"], "whatever: no such argument"),
        (["latest", "--fast"], "--fast: no such argument"),
        (["--labels", "no.csv", "--into", "q.jsonl"], "cannot read no.csv"),
    ],
)
def test_mistakes_are_told(arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert told in said(capsys, *arguments, code=ExitCode.USAGE)[1]


def test_one_run_is_no_baseline_of_its_own(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = said(capsys, made / "0", "--baseline", made / "0", "tracking=off", code=ExitCode.USAGE)[1]
    assert "are one run" in told
    told = said(capsys, made / "0", "--baseline", "baseline", "tracking=off", code=ExitCode.USAGE)[1]
    assert "is the baseline of its sweep" in told
