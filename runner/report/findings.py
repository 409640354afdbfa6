"""What a report shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from adapters.schema import JudgeCard
from runner.compare.findings import Change, Slice
from runner.diagnosis.findings import FaultName, JudgedOnly, Unjudged
from runner.recommendation.findings import Recommendation
from runner.results import Mean

Kind = Literal["sweep", "comparison", "run"]


@dataclass(frozen=True, slots=True)
class Example:
    """A question with a fault: its id and text, and the evidence."""

    id: str
    question: str
    evidence: str


@dataclass(frozen=True)
class Faults:
    """The diagnosis of one run, as runner.diagnosis.findings.Diagnosis has it. new, gone: how many questions have a
    fault as their first one in this run (in the baseline) only; examples: some of its questions, those that are new
    first. unjudged: some of the chunks without a label, those first that the baseline has not, of `unjudged_in_all`."""

    counts: Mapping[FaultName, int]
    before: Mapping[FaultName, int] | None
    new: Mapping[FaultName, int]
    gone: Mapping[FaultName, int]
    levers: Mapping[FaultName, tuple[str, ...]]
    missing: Mapping[FaultName, str]
    examples: Mapping[FaultName, tuple[Example, ...]]
    unjudged: tuple[Unjudged, ...]
    unjudged_in_all: int
    judged_only: tuple[JudgedOnly, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Run:
    """One run of the sweep beside what runner.recommendation.findings.Considered has of it.

    means: of every definition; slice_means: of the decisive ones, by slice. unanswered: questions without an answer.
    changed: settings that differ from the baseline's. slices: differences of the decisive definitions. worse, better:
    some of the questions with a lower (higher) score, of so many in all, the largest change first. command: what shows
    all of them. environment: what differs from the baseline's. notes: of the comparison."""

    name: str
    started: str
    seconds: float
    means: Mapping[str, Mean]
    slice_means: Mapping[str, Mapping[str, Mean]]
    unanswered: int
    changed: Mapping[str, tuple[Any, Any]]
    slices: tuple[Slice, ...]
    worse: tuple[Change, ...]
    better: tuple[Change, ...]
    worse_in_all: int
    better_in_all: int
    command: str | None
    environment: Mapping[str, tuple[Any, Any]]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Report:
    """All that a report shows. kind: of a sweep, of one run beside another, or of one run alone. folder: where it was
    read. headline: what was found, in a sentence or two.

    runs, faults: by the label of the run; one that failed is in neither, and why is in `recommendation` and `errors`.
    dataset: the card of the test set. judge: None where no definition asks one; warnings: what it says against itself.
    definitions: cards by key; about: what they look at, as in runner.compare.findings.Row. choices, settings,
    environment: of the baseline. notes: for a reader."""

    kind: Kind
    headline: str
    folder: Path
    recommendation: Recommendation
    runs: Mapping[str, Run]
    faults: Mapping[str, Faults]
    errors: Mapping[str, str]
    dataset: Mapping[str, Any]
    judge: JudgeCard | None
    warnings: tuple[str, ...]
    drift: str | None
    definitions: Mapping[str, Mapping[str, Any]]
    about: Mapping[str, Literal["retrieval", "generation"]]
    choices: Mapping[str, str]
    settings: Mapping[str, Any]
    environment: Mapping[str, Any]
    notes: tuple[str, ...]
