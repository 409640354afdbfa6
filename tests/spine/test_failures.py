"""What fails costs only itself: other runs go on, finished work is kept, and everything is told."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.spine.commands import FAST, Say, config_of, scores_of

PARIBUS = Path(sys.executable).parent / "paribus"


def computed(rows: list[dict[str, Any]]) -> dict[str, dict[str, int]]:
    """Stage calls by run, of the runs that computed something."""
    return {row["run"]: row["outcome"]["computed"] for row in rows if row["outcome"] and row["outcome"]["computed"]}


def test_case_50_two_of_four_points_fail_and_only_they_run_again(say: Say, folder: Path) -> None:
    points = ("sweep", "--json", "retriever.k=5,7,8,9", "retriever.at=[7,8]", "++retriever.mended_by=mended")
    first = say(*points)
    assert first.code == 1
    rows = {row["run"]: row for row in first.json["rows"]}
    assert [run for run, row in rows.items() if row["outcome"]] == ["baseline", "retriever.k=9"]
    for run, error in {"retriever.k=7": "ValueError: boom at k=7", "retriever.k=8": "other boom at k=8"}.items():
        assert rows[run]["error"] == error
        assert f"{run}: {error}" in first.err
    assert "Traceback" not in first.err
    (folder / "mended").touch()
    second = say(*points)
    assert second.code == 0, second.err
    assert sorted(computed(second.json["rows"])) == ["retriever.k=7", "retriever.k=8"]
    assert computed(second.json["rows"])["retriever.k=7"]["retrieve"] == 1


def test_a_failed_baseline_stops_its_variants_and_says_so(say: Say, folder: Path) -> None:
    said = say("sweep", "--json", "retriever.k=5,6", "retriever.at=[5]")
    assert said.code == 1
    assert [row["error"] for row in said.json["rows"]] == ["ValueError: boom at k=5", "not run: the baseline failed"]
    assert "Traceback" not in said.err
    assert not list(folder.glob("mlruns/results/*/1/summary.json"))


def test_processes_give_what_one_process_gives_bit_for_bit(say: Say) -> None:
    values = ("retriever.k=1,2,3", "prompt=cited")
    one = say("sweep", "--json", *values, "tracking.folder=one").json["rows"]
    many = say("sweep", "--json", *values, "tracking.folder=many", "launcher=joblib", "hydra.launcher.n_jobs=2")
    assert many.code == 0, many.err
    assert [row["run"] for row in one] == [row["run"] for row in many.json["rows"]]
    for serial, parallel in zip(one, many.json["rows"], strict=True):
        assert scores_of(serial["outcome"]) == scores_of(parallel["outcome"])
        assert serial["differences"] == parallel["differences"]
        assert config_of(serial["outcome"])["trial"]["value"] == config_of(parallel["outcome"])["trial"]["value"]


@pytest.mark.slow
def test_a_killed_worker_costs_its_own_run_only(say: Say) -> None:
    said = say(
        "sweep", "--json", "retriever.k=5,6,7,8", "retriever.at=[7]", "retriever.fault=kill", "launcher=joblib",
        "hydra.launcher.n_jobs=2", "++retriever.mended_by=mended",
    )  # fmt: skip
    assert said.code == 1
    rows = {row["run"]: row for row in said.json["rows"]}
    assert [run for run, row in rows.items() if not row["outcome"]] == ["retriever.k=7"]
    assert "worker" in rows["retriever.k=7"]["error"]
    assert "Traceback" not in said.err


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [PARIBUS, "sweep", f"--config-dir={folder / 'more'}", *FAST, *arguments]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sent", "launcher"), [(signal.SIGINT, "serial"), (signal.SIGTERM, "joblib")], ids=["ctrl-c", "sigterm, processes"]
)
def test_an_interrupted_sweep_says_so_and_goes_on_from_there(
    typed: Say, folder: Path, sent: int, launcher: str
) -> None:
    points = ("retriever.k=1,2,3", f"launcher={launcher}", "++retriever.pause=0.5")
    process = start(folder, *points)
    deadline = time.monotonic() + 60
    while not list(folder.glob("mlruns/results/*/0/summary.json")) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(1)
    os.kill(process.pid, sent)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "What was finished is kept" in err
    assert "Traceback" not in err
    # In a process of its own too: fingerprints hold the source code, and an edit meanwhile would make the two differ.
    again = typed(
        PARIBUS, "sweep", "--json", f"--config-dir={folder / 'more'}", *FAST, *points, "++retriever.pause=0.0"
    )
    assert again.code == 0, again.err
    rows = again.json["rows"]
    assert "baseline" not in computed(rows)
    assert all("chunk" not in calls and "index" not in calls for calls in computed(rows).values())


def test_a_failed_question_costs_only_itself_and_is_tried_again(say: Say, folder: Path) -> None:
    log = folder / "log"
    first = say("run", "--json", f"generator.log={log}", "generator.fails=[coffee]")
    assert first.code == 0, first.err
    assert first.json["notes"] == [
        "questions without an answer: 1; the first: q2: no answer for coffee",
        "faults: should have declined 1; `paribus diagnose latest` says more",
    ]
    assert len(log.read_text().splitlines()) == 4
    second = say("run", "--json", f"generator.log={log}")
    assert second.json["notes"] == [
        "faults: should have declined 1, not extracted 1; `paribus diagnose latest` says more"
    ]
    assert log.read_text().splitlines()[4:] == ["Who buys the coffee beans ?"]


def test_a_run_without_any_answer_is_a_failed_run(say: Say, folder: Path) -> None:
    # The empty word is in every question.
    said = say("sweep", f"generator.log={folder / 'log'}", "generator.fails=['']", "retriever.k=1,2")
    assert said.code == 1
    assert "baseline: no question of 4 was answered; the first: no answer for " in said.err


def test_questions_without_an_answer_are_marked_in_the_table(say: Say, folder: Path) -> None:
    said = say("sweep", f"generator.log={folder / 'log'}", "generator.fails=[coffee]", "retriever.k=1,2")
    assert said.code == 0
    assert "!1" in said.out
    assert "! questions without an answer" in said.err


def test_data_faults_stop_a_sweep_before_anything_runs(say: Say, folder: Path) -> None:
    said = say("sweep", "dataset.path=nowhere", "retriever.k=1,2")
    assert said.code == 2
    assert "nowhere" in said.err
    assert "Plan" not in said.out
    assert not list((folder / "mlruns").rglob("results/*/*"))


def test_an_interrupt_in_the_middle_repeats_no_paid_call(say: Say, folder: Path) -> None:
    log = folder / "log"
    first = say("run", f"generator.log={log}", "generator.stops_at=journeys")
    assert first.code == 130
    assert "What was finished is kept" in first.err
    assert say("run", f"generator.log={log}").code == 0
    assert len(log.read_text().splitlines()) == len(set(log.read_text().splitlines())) == 4


def test_a_broken_chunker_and_reranker_are_named(say: Say) -> None:
    said = say("run", "chunker=backwards")
    assert said.code == 1
    assert "spine_stubs.Backwards returned the span [0, 4) after one that starts at 5, for document 'bikes'" in said.err
    said = say("run", "reranker=shortest", "retriever.k=3", "reranker.short_of=1")
    assert said.code == 1
    assert "spine_stubs.Shortest returned 3 scores for 4 passages" in said.err


def test_a_variable_swept_twice_is_refused(say: Say) -> None:
    said = say("sweep", "--dry-run", "retriever.k=1,2", "retriever.k=3,4")
    assert said.code == 2
    assert "retriever.k is swept twice" in said.err


def test_failures_under_hydras_own_sweeper_are_all_named(say: Say) -> None:
    said = say("sweep", "hydra/sweeper=basic", "retriever.k=0,2,-1")
    assert said.code == 1
    assert "retriever.k=0 is not allowed" in said.err
    assert "retriever.k=-1 is not allowed" in said.err


def test_a_number_for_an_option_is_told_as_such(say: Say) -> None:
    said = say("sweep", "chunker=3,4")
    assert said.code == 2
    assert "an option of a group is a name" in said.err


def test_a_reader_who_has_enough_costs_no_result(folder: Path) -> None:
    """`paribus sweep … | head -1`: the table cannot be written to the end, the sweep ends as if it were."""
    process = start(folder, "retriever.k=1,2")
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(120) == 0
    assert len(list(folder.glob("mlruns/results/*/sweep.json"))) == 1
