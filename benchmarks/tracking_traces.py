"""What the traces of a run cost: milliseconds a question, of the clock and of this process.

    python -m benchmarks.tracking_traces RESULT_FOLDER TRACKING

TRACKING is a folder, or the address of an MLflow server. The questions of the result folder are written three times;
the first includes imports and the first connection.
"""

from __future__ import annotations

import sys
from pathlib import Path
from time import perf_counter, process_time

from runner.config import Tracking, Trial
from runner.results import RunResult, read_run
from runner.tracking import Tracker
from runner.tracking.traces import log_traces


def main(folder: Path, target: str) -> None:
    """Write the questions of `folder` to `target` and print what each time cost."""
    stored = read_run(folder)
    scores = tuple(score for column in stored.scores.values() for score in column.values())
    made = RunResult(
        name=folder.name,
        config={},
        config_fingerprint="",
        choices={},
        dataset={},
        definitions=stored.definitions,
        scores=scores,
        records=tuple(stored.records.values()),
        questions=tuple(stored.questions.values()),
        environment={},
        calls={},
        started=stored.summary["started"],
        seconds=0.0,
    )
    tracker = Tracker(Tracking(uri=target) if "://" in target else Tracking(folder=target))
    for _ in range(3):
        with tracker.run("traces", Trial(), {}) as handle:
            began, spent = perf_counter(), process_time()
            n = log_traces(tracker._connection, handle.experiment_id, handle.run_id, made, len(made.questions))
            wall, cpu = (1000 * seconds / n for seconds in (perf_counter() - began, process_time() - spent))
        print(f"{n} questions, {len(scores) / n:.1f} scores each: {wall:.1f} ms a question, {cpu:.1f} ms of CPU")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
