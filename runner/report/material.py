"""Stored runs -> a Report: the figures of the recommendation, the comparisons and the diagnoses, and some of the
questions behind them."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adapters.judge import Judge, JudgeFault
from adapters.schema import JudgeCard
from adapters.weights import WeightsError
from runner import phrases
from runner.compare import wording as compared
from runner.compare.findings import Change, Comparison
from runner.compare.paired import about_of, detailed
from runner.component import build
from runner.config import PARTS, Metrics, flatten
from runner.diagnosis import wording as diagnosing
from runner.diagnosis.findings import Diagnosis, FaultName, Unjudged
from runner.errors import DataError, ParibusError
from runner.locate import BASELINE
from runner.recommendation.findings import Recommendation
from runner.recommendation.next_sweep import values_left
from runner.report import wording
from runner.report.findings import Example, Faults, Kind, Report, Run
from runner.results import Mean, StoredRun
from runner.scoring import warnings

if TYPE_CHECKING:
    from runner.sweep_folder import StoredSweep

NOT_SETTINGS = ("trial", "tracking", "sweep")
"""Parts of a configuration that say where a run stands and what becomes of it."""
QUESTIONS, ALL_QUESTIONS = 5, 120
"""Questions that got worse, and as many that got better, of one variant and of all of them."""
EXAMPLES, UNJUDGED = 3, 20
"""Questions shown of one fault, and chunks without a label of one run."""


def material(sweep: StoredSweep) -> Report:
    """What the report of a sweep, or of one run as a sweep without variants, shows. Raises DataError where the baseline
    has no results."""
    from runner.diagnosis.diagnose import diagnose_sweep
    from runner.diagnosis.rules import rules_of
    from runner.recommendation.recommend import recommend

    if sweep.baseline is None:
        why = next((row.error for row in sweep.rows if row.error), "it was not run")
        raise DataError(f"the baseline of {sweep.folder} has no results ({why}), so there is nothing to report")
    variants = {row.label: row.run for row in sweep.variants if row.run is not None}
    diagnoses: dict[str, Diagnosis] = {}
    notes = []
    try:
        diagnosed = diagnose_sweep(sweep.baseline, variants, rules_of(sweep.baseline))
        diagnoses = dict(zip((BASELINE, *variants), diagnosed, strict=True))
    except ParibusError as error:  # rules of another version of paribus: the rest is worth as much without them
        notes.append(f"what goes wrong in the answers is not shown: {error}")
    recommended = recommend(sweep, diagnoses.get(BASELINE))
    comparisons = {}
    each = _questions(len(variants))
    for label, found in sweep.comparisons.items():
        try:
            comparisons[label] = detailed(found, sweep.baseline, variants[label], recommended.decisive, each)
        except DataError as error:
            comparisons[label] = found
            notes.append(f"{label}: its questions and slices are not shown: {error}")
    return gathered(
        recommended,
        sweep.baseline,
        variants,
        comparisons,
        diagnoses,
        {row.label: row.error for row in sweep.variants if row.error},
        sweep.folder,
        notes,
    )


def _questions(variants: int) -> int:
    """How many questions of one variant are shown on each side."""
    return max(1, min(QUESTIONS, ALL_QUESTIONS // max(variants, 1)))


def gathered(
    recommended: Recommendation,
    baseline: StoredRun,
    variants: Mapping[str, StoredRun],
    comparisons: Mapping[str, Comparison],
    diagnoses: Mapping[str, Diagnosis],
    errors: Mapping[str, str],
    folder: Path,
    notes: Sequence[str] = (),
) -> Report:
    """The report from its parts, all by the label of a run; errors: why a run has no results."""
    summary = baseline.summary
    each = _questions(len(variants))
    ids = {considered.label: considered.run_id for considered in recommended.variants if considered.variable}
    runs = {BASELINE: _run(baseline, recommended.decisive)} | {
        label: _run(run, recommended.decisive, baseline, comparisons[label], each, ids.get(label))
        for label, run in variants.items()
    }
    # The baseline's last, so that its cards stand where a variant has another of the same key.
    everyone = (*variants.values(), baseline)
    tried = {each.label for each in recommended.variants}
    cards = {key: card for run in everyone for key, card in run.definitions.items()}
    decided = any(each.decision for each in recommended.variants)
    kind: Kind = "sweep" if decided else "comparison" if variants else "run"
    judge = JudgeCard(**summary["judge"]) if summary["judge"] else None
    return Report(
        kind=kind,
        headline=_headline(kind, recommended, comparisons),
        folder=folder,
        recommendation=recommended,
        runs=runs,
        faults={label: _faults(found, tried if label == BASELINE else ()) for label, found in diagnoses.items()},
        errors=errors,
        dataset=summary["dataset"],
        judge=judge,
        warnings=_warnings(baseline) if judge else (),
        drift=str(baseline.drift) if baseline.drift else None,
        definitions={key: card.card() for key, card in cards.items()},
        about={key: about_of(card) for key, card in cards.items()},
        choices=summary.get("choices") or {},
        settings=_settings(baseline),
        environment=flatten(summary.get("environment") or {}),
        notes=(*recommended.notes, *notes),
    )


def _headline(kind: Kind, recommended: Recommendation, comparisons: Mapping[str, Comparison]) -> str:
    if kind == "sweep":
        return wording.headline(recommended)
    if kind == "comparison":
        return compared.headline(next(iter(comparisons.values())))
    return wording.of_one(recommended)


def _run(
    run: StoredRun,
    decisive: Sequence[str],
    baseline: StoredRun | None = None,
    found: Comparison | None = None,
    each: int = 0,
    run_id: str | None = None,
) -> Run:
    summary = run.summary
    worse = [change for change in found.changes if change.worst < 0] if found else []
    better = sorted((change for change in found.changes if change.best > 0), key=_gain) if found else []
    return Run(
        name=summary["name"],
        started=summary["started"],
        seconds=summary.get("seconds") or 0.0,
        means={key: Mean(**mean) for key, mean in (summary.get("means") or {}).items()},
        slice_means={
            name: {key: Mean(**means[key]) for key in decisive if key in means}
            for name, means in sorted((summary.get("slices") or {}).items(), key=_origin_and_split_first)
        },
        unanswered=sum(record.error is not None for record in run.records.values()),
        changed=found.changed if found else {},
        slices=found.slices if found else (),
        worse=tuple(worse[:each]),
        better=tuple(better[:each]),
        worse_in_all=found.worse_questions if found else 0,
        better_in_all=found.better_questions if found else 0,
        command=_command(baseline, run, run_id) if baseline else None,
        environment=_apart(baseline, run) if baseline else {},
        notes=found.notes if found else (),
    )


def _command(baseline: StoredRun, run: StoredRun, run_id: str | None) -> str:
    """What compares the two, by their place in a sweep where they have one."""
    first = BASELINE if run.trial.get("baseline") else _place(baseline.folder)
    tracked = run_id or (run.summary.get("tracking") or {}).get("run_id")
    return f"paribus compare {first} {tracked or _place(run.folder)}"


def _place(folder: Path) -> str:
    """A folder as it is typed here: from the working directory where it is in it."""
    here = Path.cwd()
    return shlex.quote(str(folder.relative_to(here) if folder.is_relative_to(here) else folder))


def _origin_and_split_first(slice: tuple[str, Any]) -> tuple[bool, str]:
    return not slice[0].startswith(("origin:", "split:")), slice[0]


def _gain(change: Change) -> tuple[float, float, str]:
    return -change.best, -change.worst, change.id


def _apart(baseline: StoredRun, run: StoredRun) -> dict[str, tuple[Any, Any]]:
    before, after = (flatten(each.summary.get("environment") or {}) for each in (baseline, run))
    keys = dict.fromkeys((*before, *after))
    return {key: (before.get(key), after.get(key)) for key in keys if before.get(key) != after.get(key)}


def _settings(run: StoredRun) -> dict[str, Any]:
    return {key: value for key, value in flatten(run.config).items() if key.partition(".")[0] not in NOT_SETTINGS}


def _faults(found: Diagnosis, tried: Collection[str]) -> Faults:
    """tried: what the sweep has around this run, as `variable=value`."""
    new_first = sorted(found.unjudged, key=lambda chunk: (chunk.in_baseline is not False, chunk.rank))
    return Faults(
        counts=found.counts,
        before=found.before,
        new={name: len(ids) for name, ids in found.appeared.items()},
        gone={name: len(ids) for name, ids in found.gone.items()},
        levers={name: left for name, levers in found.levers.items() if (left := _left(levers, tried))},
        missing=found.missing,
        examples={name: tuple(_examples(found, name)) for name in found.counts},
        unjudged=tuple(_of_many_questions(new_first)),
        unjudged_in_all=len(found.unjudged),
        judged_only=found.judged_only,
        notes=found.notes,
    )


def _left(levers: Sequence[str], tried: Collection[str]) -> tuple[str, ...]:
    left = {lever.partition("=")[0]: values_left(lever, tried) for lever in levers}
    return tuple(f"{name}={','.join(values)}" for name, values in left.items() if values)


def _of_many_questions(chunks: Iterable[Unjudged]) -> list[Unjudged]:
    """The first chunk of each question, then the second, up to UNJUDGED."""
    seen: dict[str, int] = {}
    places = []
    for chunk in chunks:
        seen[chunk.question_id] = place = seen.get(chunk.question_id, 0) + 1
        places.append((place, chunk))
    return [chunk for _, chunk in sorted(places, key=lambda each: each[0])[:UNJUDGED]]


def _examples(found: Diagnosis, name: FaultName) -> Iterable[Example]:
    for each in islice(diagnosing.examples(found, name), EXAMPLES):
        yield Example(each.question_id, each.question, each.faults[0].evidence)


def _warnings(run: StoredRun) -> tuple[str, ...]:
    """What the judge of a run says against itself, asked again: a result folder does not hold it."""
    try:
        judge = build(run.config["judge"], PARTS["judge"], "judge")
        assert isinstance(judge, Judge)
        scorers = Metrics(**run.config["metrics"]).scorers()
        model = (run.config.get("generator") or {}).get("model")
        return tuple(warnings(judge, scorers, model if isinstance(model, str) else None))
    except (ParibusError, JudgeFault, WeightsError, ValueError, KeyError) as error:
        told = phrases.cut(phrases.plain(str(error)), 200)
        return (f"what is known of this judge cannot be looked up here: {told}",)
