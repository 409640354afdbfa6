"""One run, from a composed configuration to a result folder and a tracked run."""

from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from adapters.client import Asking, Used
from adapters.recording import RecordingError
from runner import __version__, console, pipeline, results
from runner.config import (
    Experiment,
    asked_judge,
    components,
    experiment,
    experiment_fingerprint,
    fingerprints,
    redacted,
    resolve,
    used,
)
from runner.diagnosis.diagnose import faults_by_question
from runner.diagnosis.wording import in_short
from runner.drift import Drift, graded_again
from runner.errors import ComponentError
from runner.frozen import stored_records
from runner.phrases import cut, plain
from runner.placed import is_placed
from runner.progress import Progress
from runner.record import recording_file, replay
from runner.results import Mean, RunResult, Usage, usage
from runner.scoring import failures, score, warnings
from runner.store import StageStore

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from adapters.judge import Judge
    from adapters.schema import Chunk, Record
    from runner.dataset import TestSet


@dataclass(frozen=True)
class Outcome:
    """What is left of a run when its process ends: small enough to send between processes.

    judge: fingerprint of the judge, None where none was asked; judge_name: what people call it; judged: keys of the
    definitions that asked it. usage: what that cost; stages: what the stages that ask a model cost, by stage and
    model. drift: the judge on its frozen sample, None without one. errors counts the questions without an answer.
    run_id, and ui (the command that opens the tracking UI), are None where
    tracking is off. notes are sentences for the person who started it.
    """

    name: str
    folder: Path
    run_id: str | None
    ui: str | None
    means: Mapping[str, Mean]
    fingerprints: Mapping[str, str]
    judge: str | None
    judge_name: str | None
    judged: frozenset[str]
    usage: Usage | None
    stages: Mapping[str, Usage]
    drift: Drift | None
    table: tuple[str, ...]
    lower_is_better: frozenset[str]
    errors: int
    dataset: Mapping[str, Any]
    computed: Mapping[str, int]
    reused: Mapping[str, int]
    seconds: float
    notes: tuple[str, ...]


def run(
    config: DictConfig | Mapping[str, Any], choices: Mapping[str, str], folder: Path, record_to: str | None = None
) -> Outcome:
    """Run one experiment, write its result folder, and track it.

    choices: the option chosen in each config group. folder: where the result folder is made. record_to: the recording
    to write, empty = in the result folder, and then the scores must come out of it again; None = the judge decides
    whether there is one. Raises ParibusError for what a person can mend; the tracked run is then FAILED with the
    reason.
    """
    composed = resolve(config)
    built = experiment(composed)
    plain = used(composed)
    choices = {group: choice for group, choice in choices.items() if group in plain or group not in composed}
    fingerprints(built)
    judge = asked_judge(built)
    test_set = built.dataset.load()
    frozen = stored_records(built.records, test_set, plain)

    recording = folder / results.RECORDING if record_to is None else recording_file(judge, record_to, folder)

    def measure(tracking: Mapping[str, str | None] | None = None) -> RunResult:
        return _measure(built, plain, choices, test_set, judge, folder, recording, frozen, tracking)

    def whole(result: RunResult) -> RunResult:
        _whole(result, judge, folder)
        if record_to is not None:
            replay(built, result, recording)
        return result

    if not built.tracking.enabled:
        return _outcome(built, whole(measure()), folder, None, None)
    from runner.tracking import Tracker, ui_command

    tracker = Tracker(built.tracking)
    if built.trial.sweep is None:
        tracker.close_stale()
    with tracker.run(_name(built), built.trial, {"paribus.results": str(folder)}) as handle:
        result = measure(handle.place)
        baseline = tracker.load_baseline(built.trial.baseline_run_id) if built.trial.baseline_run_id else None
        handle.log(result, folder, baseline)
        whole(result)
    return _outcome(built, result, folder, handle.run_id, ui_command(built.tracking))


def _whole(result: RunResult, judge: Judge | None, folder: Path) -> RunResult:
    """`result`, unless its scores say little about the system: no question has an answer, the judge's budget ended
    before all was judged, or nothing could be judged. Raises ComponentError."""
    errors = [record.error for record in result.records if record.error]
    if len(errors) == len(result.records):
        raise ComponentError(f"no question of {len(errors)} was answered; the first: {errors[0]}. Records: {folder}")
    if judge and judge.spent:
        missing = sum(score.status == "failed" for score in result.scores)
        raise ComponentError(
            f"judge.{judge.spent}. Scores missing: {missing}. What was paid for is kept: the same command with more "
            f"goes on from there. So far: {folder}"
        )
    judged = [score for score in result.scores if result.definitions[score.definition].calls != "0"]
    failed = [score for score in judged if score.status == "failed"]
    if failed and not any(score.status == "computed" for score in judged):
        raise ComponentError(
            f"nothing could be judged: {len(failed)} scores failed; the first: {failed[0].definition} of "
            f"{failed[0].question_id}: {failed[0].reason}. Records: {folder}"
        )
    return result


def _measure(
    built: Experiment,
    plain: Mapping[str, Any],
    choices: Mapping[str, str],
    test_set: TestSet,
    judge: Judge | None,
    folder: Path,
    recording: Path,
    frozen: Mapping[str, Record] | None,
    tracking: Mapping[str, str | None] | None,
) -> RunResult:
    began, started = perf_counter(), datetime.now(UTC)
    store = StageStore(built.tracking.root / "store")
    progress = Progress(_name(built))
    records = pipeline.records(built, test_set, store, progress, frozen)
    scorers = built.metrics.scorers()
    drift = graded_again(judge, scorers, progress) if judge and judge.frozen else None
    try:
        scores = score(
            scorers, test_set.questions, records, judge, recording=recording, progress=progress, tell=console.note
        )
    except RecordingError as error:
        raise ComponentError(str(error)) from None
    asking = _asking(built)
    result = RunResult(
        name=_name(built),
        config=redacted(plain),
        config_fingerprint=experiment_fingerprint(plain),
        choices=choices,
        dataset=test_set.card(),
        definitions={scorer.key: scorer.definition for scorer in scorers},
        scores=scores,
        records=records,
        questions=test_set.questions,
        environment=environment(built),
        calls={"computed": dict(store.calls.computed), "reused": dict(store.calls.reused)},
        started=started.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        seconds=perf_counter() - began,
        judge=judge.card if judge else None,
        drift=drift,
        stages={name: _came_to(part) for name, part in asking.items() if _came_to(part).calls},
        faults=faults_by_question(test_set.questions, records, scores, built.diagnosis),
        tracking=tracking,
    )
    results.write(result, folder)
    return result


def _name(built: Experiment) -> str:
    trial = built.trial
    match trial.design:
        case "variant":
            return f"{trial.variable}={trial.value}"
        case "cartesian":
            return trial.value or "cartesian"
        case _:
            return trial.design if trial.sweep else "run"


def _outcome(built: Experiment, result: RunResult, folder: Path, run_id: str | None, ui: str | None) -> Outcome:
    asking = _asking(built)
    return Outcome(
        name=result.name,
        folder=folder,
        run_id=run_id,
        ui=ui,
        means=result.means(),
        fingerprints={key: definition.fingerprint for key, definition in result.definitions.items()},
        judge=result.judge.fingerprint if result.judge else None,
        judge_name=f"{result.judge.provider} {result.judge.model}" if result.judge else None,
        judged=frozenset(score.definition for score in result.scores if score.judge),
        usage=usage(result.scores),
        stages={f"{name}: {asking[name].model}": used for name, used in result.stages.items()},
        drift=result.drift,
        table=tuple(built.metrics.shown),
        lower_is_better=frozenset(key for key, d in result.definitions.items() if d.direction == "lower"),
        errors=sum(record.error is not None for record in result.records),
        dataset=result.dataset,
        computed=result.calls["computed"],
        reused=result.calls["reused"],
        seconds=result.seconds,
        notes=(
            *_notes(result),
            *_faults(built, result),
            *_unkept(asking),
            *_untraced(built, result),
            *(_judge_notes(built, result) if result.judge else ()),
        ),
    )


def _untraced(built: Experiment, result: RunResult) -> list[str]:
    traces, of = built.tracking.traces, len(result.questions)
    if not built.tracking.enabled or not 0 < traces < of:
        return []
    return [
        f"MLflow shows the first {traces:,} of {of:,} questions one by one (tracking.traces); per_question.csv has all"
    ]


def _faults(built: Experiment, result: RunResult) -> list[str]:
    """What is wrong with the questions, in one note. The report of a sweep has those of its variants."""
    counts = result.fault_counts()
    if not counts or built.trial.design == "variant":
        return []
    more = "; `paribus diagnose latest` says more" if built.trial.design == "single" else ""
    return [f"faults: {in_short(counts)}{more}"]


def _notes(result: RunResult) -> list[str]:
    notes = []
    faults = result.dataset.get("faults") or []
    if faults:
        notes.append(f"faulty records skipped: {len(faults)}; the first: {faults[0]}")
    expired = [q.id for q in result.questions if q.valid_until and q.valid_until.isoformat() < result.started[:10]]
    if expired:
        notes.append(
            "questions whose reference answer no longer holds (valid_until has passed): "
            f"{', '.join(expired[:5])} ({len(expired)} in all)"
        )
    blank = result.dataset.get("blank_documents") or []
    if blank:
        notes.append(f"blank documents, not indexed: {', '.join(map(str, blank[:5]))} ({len(blank)} in all)")
    failed = [record for record in result.records if record.error]
    if failed:
        notes.append(
            f"questions without an answer: {len(failed)}; the first: {failed[0].question_id}: {failed[0].error}"
        )
    short = [record for record in result.records if len(record.reranked) < record.asked_k and not record.error]
    if short:
        got = min(len(record.reranked) for record in short)
        notes.append(
            f"questions with fewer chunks than asked: {len(short)} (asked {short[0].asked_k}, fewest got {got})"
        )
    if lost := [
        chunk for record in result.records for chunk in (*record.context, *_ranked(record)) if not is_placed(chunk)
    ]:
        notes.append(
            f"passages of the system without a place in the test set: {len(set(lost))} (they stand in no document, or "
            "in several and their doc_id does not say in which); labels count them "
            f"as not relevant. The first: {cut(plain(lost[0].text), 80)!r}"
        )
    return notes


def _ranked(record: Record) -> list[Chunk]:
    return [ranked.chunk for ranked in record.reranked]


def _asking(built: Experiment) -> dict[str, Asking]:
    """The stages that ask a model, by config group."""
    return {name: part for name, part in components(built).items() if isinstance(part, Asking)}


def _came_to(part: Asking) -> Usage:
    """What its calls cost so far."""
    used = sum((client.used for client in part.clients), Used())
    return Usage(used.calls, used.cached, 0, used.tokens, used.cost, used.seconds)


def _unkept(asking: Mapping[str, Asking]) -> list[str]:
    """Notes on replies that could not be kept."""
    return [f"{name}: {note}" for name, part in asking.items() for client in part.clients for note in client.notes()]


def _judge_notes(built: Experiment, result: RunResult) -> list[str]:
    model = getattr(components(built).get("generator"), "model", None)
    notes = warnings(built.judge, built.metrics.scorers(), model if isinstance(model, str) else None)
    for key, failed in failures(result.scores).items():
        of = len(result.questions)
        notes.append(f"{key}: {len(failed)} of {of} failed; the first: {failed[0].question_id}: {failed[0].reason}")
    for key, scores in result.by_definition().items():
        sampled = [score for score in scores.values() if score.samples > 1]
        if flaky := [score.question_id for score in sampled if score.flaky]:
            notes.append(
                f"{key}: {len(flaky)} of {len(sampled)} questions are flaky: a verdict flips between "
                f"{sampled[0].samples} samples ({', '.join(flaky[:5])}{', ...' if len(flaky) > 5 else ''})"
            )
        elif sampled:
            notes.append(f"{key}: no question of {len(sampled)} is flaky in {sampled[0].samples} samples")
    return [str(result.drift), *notes] if result.drift else notes


def environment(built: Experiment) -> dict[str, Any]:
    """What the numbers hang on besides the configuration: versions of paribus, Python and the packages in use, and the
    git commit of the working directory."""
    packages = {package for component in components(built).values() for package in component.packages}
    return {
        "paribus": __version__,
        "python": platform.python_version(),
        "platform": sys.platform,
        "packages": {package: version(package) for package in sorted(packages)},
        **git_state(Path.cwd()),
    }


@lru_cache(maxsize=4)
def git_state(folder: Path) -> dict[str, Any]:
    """The commit of the repository around `folder` and whether files differ from it; both None outside a repository."""

    def git(*arguments: str) -> str | None:
        try:
            done = subprocess.run(["git", "-C", folder, *arguments], capture_output=True, text=True, timeout=20)
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    commit, status = git("rev-parse", "HEAD"), git("status", "--porcelain", "--untracked-files=no")
    return {"git_commit": commit, "git_dirty": None if status is None else bool(status)}
