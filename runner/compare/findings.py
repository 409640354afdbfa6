"""What a comparison of two runs finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from runner.significance import PValue

Word = Literal["better", "worse", "cannot tell", "unchanged"]
"""better, worse: the interval excludes 0, the adjusted p-value is below 5%, and six questions changed. unchanged: no
question changed."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two runs. name: as it was asked for; called: as the run calls itself. settings: flattened
    configuration."""

    name: str
    called: str
    folder: Path
    started: str
    dataset: Mapping[str, Any]
    judge: str | None
    settings: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """One definition over the n questions that have a value in both runs; delta = candidate - baseline, in the
    definition's own values, with its 95% paired bootstrap interval.

    about: "retrieval" where the definition does not look at the answer, else "generation". p: paired permutation test;
    adjusted: Holm's, over the `family` of comparisons that it is one of: a definition that decides (see
    runner.compare.paired.deciding) over all that do, another over all definitions, of this comparison or of all
    variants of its sweep. wins, ties, losses: questions that the
    candidate does better, as well, worse. carries: the fewest questions whose changes together make up the delta; None
    where it is 0. visible: the smallest true difference that this test set would show in four of five cases; None where
    the variation is unknown. only_baseline, only_candidate: questions with a value in one run only.
    """

    definition: str
    asks: str
    about: Literal["retrieval", "generation"]
    direction: Literal["higher", "lower"]
    range: tuple[float, float]
    baseline: float
    candidate: float
    delta: float
    low: float | None
    high: float | None
    p: PValue
    adjusted: float
    family: int
    wins: int
    ties: int
    losses: int
    carries: int | None
    visible: float | None
    n: int
    only_baseline: int
    only_candidate: int
    word: Word

    @property
    def changed(self) -> int:
        """How many questions changed."""
        return self.wins + self.losses

    @property
    def swapped(self) -> bool:
        """Whether the means are equal although questions changed."""
        return abs(self.delta) < 1e-9 and self.changed > 0

    def share(self, value: float) -> float:
        """A value as a share of the range."""
        low, high = self.range
        return (value - low) / (high - low)


@dataclass(frozen=True, slots=True)
class NotCompared:
    """A definition that is not subtracted, and why, one sentence a reason."""

    definition: str
    why: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Slice:
    """One definition over the questions of a slice (`origin:synthetic`, `split:held_out`, or one of the test set).
    changed: how many of the n changed."""

    slice: str
    definition: str
    n: int
    baseline: float
    candidate: float
    delta: float
    low: float | None
    high: float | None
    changed: int


@dataclass(frozen=True, slots=True)
class Moved:
    """A chunk that is in one ranking and not in the other, or at another rank; None = not in it. chunk: its document
    and characters; text: how it begins. relevant: whether it shares characters with a label; None where the question
    has none."""

    chunk: str
    text: str
    before: int | None
    after: int | None
    relevant: bool | None


@dataclass(frozen=True, slots=True)
class Flip:
    """A unit on which the verdict of a judged definition changed; None = the unit is not there."""

    definition: str
    unit: str
    before: str | None
    after: str | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class Change:
    """One question whose scores changed. scores: definition -> before, after (None = no value). worst: the largest loss
    as a share of a range, negative or 0; best: the largest gain. ranking, context: what moved. before, after: the
    answers, equal where the answer is the same."""

    id: str
    question: str
    slices: tuple[str, ...]
    scores: Mapping[str, tuple[float | None, float | None]]
    worst: float
    best: float
    ranking: tuple[Moved, ...]
    context: tuple[Moved, ...]
    before: str | None
    after: str | None
    flips: tuple[Flip, ...]


@dataclass(frozen=True)
class Comparison:
    """All that a comparison found. questions: how many were compared. changed: settings that differ, baseline's and
    candidate's. rows are in the order of the definitions. changed_questions, worse_questions, better_questions: how
    many have a changed score, one that got worse, one that got better. changes: the first thousand of them, the worst
    loss first, then of the others the hundred that gained most. points: by definition, the
    questions that changed, with both values; of more than two thousand a sample over the whole order. table: the
    definitions that the candidate's configuration shows first. notes: for a reader."""

    baseline: Side
    candidate: Side
    questions: int
    changed: Mapping[str, tuple[Any, Any]]
    rows: tuple[Row, ...]
    not_compared: tuple[NotCompared, ...]
    slices: tuple[Slice, ...]
    changes: tuple[Change, ...]
    changed_questions: int
    worse_questions: int
    better_questions: int
    points: Mapping[str, tuple[tuple[str, float, float], ...]]
    table: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def worse(self) -> tuple[Change, ...]:
        """The questions among `changes` of which a score got worse, the worst loss first."""
        return tuple(change for change in self.changes if change.worst < 0)
