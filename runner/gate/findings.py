"""What a gate finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from runner.errors import ExitCode

Result = Literal["passed", "warning", "regression", "error"]
"""error: it cannot be told whether the run holds to the rule, because a value, a question or a definition is missing,
or two values do not mean the same. It is never taken for passed."""


@dataclass(frozen=True, slots=True)
class Check:
    """One rule on one definition, over all questions (slice None) or a slice.

    rule: which part of the rule; "comparable": whether there is something to hold to it at all. baseline, candidate:
    the means that are compared, over n common questions for max_drop, over the n with a value for floor. loss: how much
    worse the candidate is than the baseline, or than the floor, in the direction of the definition; low, high: its 95%
    paired bootstrap interval against the baseline; limit: what is allowed. of: questions in scope; unscored: ids of
    those that have no value in the candidate. told: the outcome in a sentence.
    """

    definition: str
    slice: str | None
    rule: Literal["max_drop", "floor", "comparable"]
    result: Result
    told: str
    baseline: float | None = None
    candidate: float | None = None
    loss: float | None = None
    low: float | None = None
    high: float | None = None
    limit: float | None = None
    n: int = 0
    of: int = 0
    unscored: tuple[str, ...] = ()

    @property
    def where(self) -> str:
        """The definition and the slice, for a reader."""
        return self.definition if self.slice is None else f"{self.definition} in {self.slice}"

    def __str__(self) -> str:
        return f"{self.where}: {self.told}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """All checks. notes: what a reader should know besides. anyway: the run was compared although it is not comparable,
    because somebody said so."""

    baseline: str
    candidate: str
    checks: tuple[Check, ...]
    notes: tuple[str, ...] = ()
    anyway: bool = False

    def of(self, result: Result) -> tuple[Check, ...]:
        """The checks that ended so."""
        return tuple(check for check in self.checks if check.result == result)

    @property
    def result(self) -> Result:
        """The worst there is: error before regression, because the rest of the run was not looked at."""
        for result in RESULTS:
            if self.of(result):
                return result
        return "passed"

    @property
    def exit_code(self) -> ExitCode:
        """0 passed (with warnings too), 1 regression, 2 not comparable or broken input."""
        match self.result:
            case "error":
                return ExitCode.USAGE
            case "regression":
                return ExitCode.FAILED
            case _:
                return ExitCode.OK

    @property
    def headline(self) -> str:
        """The outcome in a sentence."""
        count = {result: len(self.of(result)) for result in RESULTS}
        failed = [f"{count[result]} {result}{'s' * (count[result] > 1)}" for result in RESULTS if count[result]]
        held = f"{count_passed} of {len(self.checks)} checks passed" if (count_passed := len(self.of("passed"))) else ""
        words = {"error": "cannot tell", "regression": "regression", "warning": "passed with warnings"}
        return f"Gate: {words.get(self.result, 'passed')} ({', '.join(filter(None, (*failed, held)))})"


RESULTS: tuple[Result, ...] = ("error", "regression", "warning")
"""The results that are not "passed", the worst first."""
