"""What a diagnosis of a run finds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

FaultName = Literal[
    "missing content",
    "stale source",
    "missed top ranked",
    "buried",
    "not in context",
    "should have declined",
    "declined wrongly",
    "wrong format",
    "not extracted",
    "unsupported claim",
    "incomplete",
    "wrong specificity",
]
"""In the order in which they are looked for: on the way from the documents to the answer. Most are the failure points
of Barnett et al. 2024, Seven Failure Points When Engineering a Retrieval Augmented Generation System."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What went wrong, and the evidence in one sentence: the values, ranks, claims and thresholds it was told by."""

    name: FaultName
    evidence: str


@dataclass(frozen=True, slots=True)
class Diagnosed:
    """One question. faults: all that were found, in the order of FaultName, so that the first is the one to mend first;
    empty = none. right: whether the answer is right, by the definition and threshold that `why` names; None = unknown,
    and `why` says what is missing."""

    question_id: str
    question: str
    faults: tuple[Fault, ...]
    right: bool | None
    why: str


@dataclass(frozen=True, slots=True)
class Unjudged:
    """A chunk in the top k on which no label says anything. chunk: document and characters. in_baseline: whether the
    baseline has it in its top k too; None without a baseline."""

    question_id: str
    question: str
    doc_id: str
    start: int
    end: int
    rank: int
    text: str
    in_baseline: bool | None


@dataclass(frozen=True, slots=True)
class JudgedOnly:
    """A definition of ranking with unjudged chunks counted as not relevant (`value`) and with them taken out of the
    rankings first (`judged_only`), as means over the n questions that have both; *_before: the same in the baseline,
    None without one."""

    definition: str
    n: int
    value: float
    judged_only: float
    value_before: float | None = None
    judged_only_before: float | None = None


@dataclass(frozen=True)
class Diagnosis:
    """All that a diagnosis found. counts: questions by their first fault, faults that no question has left out. before:
    the same in the baseline; None without one. appeared, gone: ids of questions that have (had) a fault as their first
    one in this run (in the baseline) only. levers: what to try, as overrides, by fault. missing: why a fault could not
    be looked for, by fault."""

    name: str
    folder: Path
    questions: tuple[Diagnosed, ...]
    counts: Mapping[FaultName, int]
    before: Mapping[FaultName, int] | None
    appeared: Mapping[FaultName, tuple[str, ...]]
    gone: Mapping[FaultName, tuple[str, ...]]
    levers: Mapping[FaultName, tuple[str, ...]]
    missing: Mapping[FaultName, str]
    unjudged: tuple[Unjudged, ...]
    judged_only: tuple[JudgedOnly, ...]
    notes: tuple[str, ...] = field(default=())


def counted(first: Iterable[FaultName | None]) -> dict[FaultName, int]:
    """How many questions have each fault as their first one, in the order of FaultName; those that none has are left
    out."""
    found = [name for name in first if name]
    return {name: found.count(name) for name in get_args(FaultName) if name in found}
