"""What is recommended after a sweep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from runner import phrases
from runner.compare.findings import NotCompared, Row

Decision = Literal["keep", "reject", "trade-off", "cannot tell", "not comparable", "failed"]
"""keep: better than the baseline in a decisive definition and worse in none, or the same scores for less. reject: worse
and better in none, or the same scores for more. trade-off: better in one and worse in another; for one of the two the
definition's own interval is enough, so that what a variant gains is not kept, nor what it loses rejected, where the
other side shows as soon as fewer comparisons are made. cannot tell: this test set shows neither. not comparable:
nothing may be subtracted. failed: the run has no results."""


CostName = Literal["dollars", "tokens", "prompt_characters", "p50"]
"""The fields of Cost that runs are told apart by: money first, then what it is paid for, and last time, which hangs on
the machine and decides nothing."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What answering costs, judging not counted, over n questions with an answer.

    p50, p95: seconds a question, retrieve to generate, as measured when it was computed; None where nothing measured
    them. prompt_characters: mean length of the prompt. tokens: mean in and out a question; None where nothing counted
    them. dollars: a thousand questions; None = unknown, 0 where no stage asks a paid model. unknown: why a field is
    None."""

    n: int
    p50: float | None
    p95: float | None
    prompt_characters: float | None
    tokens: float | None
    dollars: float | None
    unknown: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Considered:
    """One run of the sweep, the baseline too. label: `baseline` or `chunker.size=400`; variable, value, from_value:
    what it changes, as typed, and what the baseline has there. rows: its comparison with the baseline, in the order of
    the definitions; adjusted over the whole sweep. decision, why: None and "" for the baseline. front: whether no other
    run is at least as good and as cheap, and better in one of them, by the definition and the cost that the
    recommendation names."""

    label: str
    variable: str | None
    value: str | None
    from_value: str | None
    folder: Path | None
    run_id: str | None
    decision: Decision | None
    why: str
    means: dict[str, float | None]
    rows: tuple[Row, ...]
    not_compared: tuple[NotCompared, ...]
    cost: Cost | None
    front: bool

    @property
    def name(self) -> str:
        """The label as it stands in a sentence: on one line, and short where a prompt is in it."""
        return phrases.shortened(self.label)


@dataclass(frozen=True, slots=True)
class NextSweep:
    """A sweep to run next: the command as it is typed, and why, in one sentence."""

    command: str
    why: str


@dataclass(frozen=True)
class Recommendation:
    """sweep: its name. questions: how many the test set has. decisive: keys of the definitions that decide, those of
    the configuration's table. family: how many comparisons the p-values are adjusted for. quality, cost: the definition
    and the field of Cost whose front is drawn; no run is on it where no cost is known for all of them. runs: the
    baseline first. notes: sentences for a reader."""

    sweep: str
    questions: int
    decisive: tuple[str, ...]
    family: int
    quality: str
    cost: CostName
    runs: tuple[Considered, ...]
    next: tuple[NextSweep, ...]
    notes: tuple[str, ...]

    @property
    def baseline(self) -> Considered:
        """The run that the others are compared with."""
        return self.runs[0]

    @property
    def variants(self) -> tuple[Considered, ...]:
        """All but the baseline."""
        return self.runs[1:]
