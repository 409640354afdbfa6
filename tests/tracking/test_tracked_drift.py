"""Where a judge stood on its frozen sample, read back from a tracked baseline."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from runner import results
from runner.config import Trial
from runner.drift import Drift
from runner.tracking import Tracker
from tests.tracking.made_results import result

MOVED = Drift("s" * 16, "2026-11-30T00:00:00Z", 0.05, None, 20, 0, 0.9, 0.1, 20, 0.9, True)


def test_a_tracked_baseline_is_read_back_with_where_its_judge_stood(tracker: Tracker, tmp_path: Path) -> None:
    read = []
    for drift in (MOVED, None):
        made = replace(result({"ragas/faithfulness": [0.5]}, judge="j"), drift=drift)
        results.write(made, tmp_path / "run")
        with tracker.run("run", Trial(), {}) as handle:
            handle.log(made, tmp_path / "run", None)
        read.append(tracker.load_baseline(handle.run_id).standing)
    assert read == [MOVED.standing, None]
