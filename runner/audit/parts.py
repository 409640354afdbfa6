"""Why two scores of one record differ: the part of other claims, of other verdicts on the same claims, of the formula.

Three things make a score: the claims into which the text was cut (C), the verdicts on them (V), and the formula (F).
Each can be taken from either definition, which gives eight values; between the two scores lies a walk that exchanges
one after the other. A walk in one order favours what comes first, so the parts are means over the orders. Claims and
verdicts are the evidence and stay together, which leaves four: CVF, VCF, FCV, FVC. That is the Owen value (Owen 1977,
"Values of games with a priori unions"), the Shapley value (Shapley 1953) of evidence and formula, with the evidence's
part divided between claims and verdicts by the same rule. So the part of the formula is what the cross table of
evidence and formula shows, and the three parts sum to the difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

from adapters.formulas import MAY_MEAN, Bounds, Formula
from adapters.schema import Verdict
from runner.audit.matching import SIMILAR, Pairs, matched

AGREES = 1e-9
"""How far a formula on a definition's own verdicts may be from its score."""

Side = Literal[0, 1]


@dataclass(frozen=True, slots=True)
class Evidence:
    """The verdicts of one definition, or of people, on one record. by: the id whose native words they hold."""

    by: str
    verdicts: tuple[Verdict, ...]


@dataclass(frozen=True, slots=True)
class Judged:
    """A definition's formula. id: whose native words it knows."""

    id: str
    formula: Formula


@dataclass(frozen=True, slots=True)
class Parts:
    """Why the left score differs from the right one; claims + verdicts + formula = left - right. All are values of the
    formulas, which the audit turns into shares of their ranges, 1 = best, before.

    cross: the value of each formula on each evidence: [evidence][formula], 0 = left. matched, only_left, only_right:
    units with a counterpart, and without one. undetermined: verdicts whose word leaves open what the other formula
    must know ("not supported": contradicted, or absent?) and whose counterpart does not say it either; each counts in
    the middle of what it may be, and `slack` is how far the part of the formula may be off for that.
    """

    claims: float
    verdicts: float
    formula: float
    cross: tuple[tuple[float, float], tuple[float, float]]
    matched: int
    only_left: int
    only_right: int
    undetermined: int
    slack: float

    @property
    def difference(self) -> float:
        """Left minus right, as the parts sum to it."""
        return self.claims + self.verdicts + self.formula


def applied(formula: Judged, evidence: Evidence, counterparts: Sequence[Verdict | None] = ()) -> Bounds:
    """The value of a formula on evidence that has at least one verdict.

    On its own native words it is determined. A verdict of others counts by our word for it; where that is coarser than
    the formula needs, the word of its counterpart is taken if it is one that the coarse word may mean.
    """
    beside = counterparts or [None] * len(evidence.verdicts)
    return formula.formula.value(
        [
            credited(formula, verdict, evidence.by, other)
            for verdict, other in zip(evidence.verdicts, beside, strict=True)
        ]
    )


def credited(formula: Judged, verdict: Verdict, by: str, other: Verdict | None = None) -> Bounds:
    """What a formula counts for one verdict of `by`. other: its counterpart, see `applied`."""
    if by == formula.id and verdict.native in formula.formula.native:
        known = formula.formula.own(verdict)
        return Bounds(known, known)
    word = verdict.ours
    # What a definition says is its own, so that its value does not hang on what it is laid beside.
    if by != formula.id and other is not None and other.ours is not None and word not in formula.formula.words:
        finer = MAY_MEAN.get(word, (other.ours,) if word is None else ())
        word = other.ours if other.ours in finer else word
    return formula.formula.credit(word)


def parts(
    left: Judged, left_evidence: Evidence, right: Judged, right_evidence: Evidence, similar: float = SIMILAR
) -> Parts:
    """The parts of the difference between two definitions of the same units on one record. Both evidences have at least
    one verdict. similar: likeness from which on two units are taken for one, see runner.audit.matching."""
    pairs = matched(left_evidence.verdicts, right_evidence.verdicts, similar)
    formulas, evidences = (left, right), (left_evidence, right_evidence)
    others: tuple[Pairs, Pairs] = (pairs, {there: here for here, there in pairs.items()})

    def bounds(claims: Side, verdicts: Side, formula: Side) -> tuple[Bounds, int]:
        own, foreign = evidences[claims].verdicts, evidences[1 - claims].verdicts
        to = others[claims]
        credits = []
        for place, verdict in enumerate(own):
            other = foreign[to[place]] if place in to else None
            # A claim that only one side made has only that side's verdict, whoever's verdicts are asked for.
            if verdicts == claims or other is None:
                credits.append(credited(formulas[formula], verdict, evidences[claims].by, other))
            else:
                credits.append(credited(formulas[formula], other, evidences[1 - claims].by, verdict))
        return formulas[formula].formula.value(credits), sum(credit.open for credit in credits)

    found = {sides: bounds(*sides) for sides in product((0, 1), repeat=3)}  # type: ignore[arg-type]
    value = {sides: bound.middle for sides, (bound, _) in found.items()}
    # Each order walks from all right (1, 1, 1) to all left (0, 0, 0).
    formula = (value[0, 0, 0] - value[0, 0, 1] + value[1, 1, 0] - value[1, 1, 1]) / 2
    claims = (
        (value[0, 1, 1] - value[1, 1, 1])  # C V F
        + (value[0, 0, 1] - value[1, 0, 1])  # V C F
        + (value[0, 1, 0] - value[1, 1, 0])  # F C V
        + (value[0, 0, 0] - value[1, 0, 0])  # F V C
    ) / 4
    verdicts = (
        (value[0, 0, 1] - value[0, 1, 1])
        + (value[1, 0, 1] - value[1, 1, 1])
        + (value[0, 0, 0] - value[0, 1, 0])
        + (value[1, 0, 0] - value[1, 1, 0])
    ) / 4
    crossed = (found[0, 0, 1], found[1, 1, 0])
    return Parts(
        claims=claims,
        verdicts=verdicts,
        formula=formula,
        cross=((value[0, 0, 0], value[0, 0, 1]), (value[1, 1, 0], value[1, 1, 1])),
        matched=len(pairs),
        only_left=len(left_evidence.verdicts) - len(pairs),
        only_right=len(right_evidence.verdicts) - len(pairs),
        undetermined=sum(count for _, count in crossed),
        slack=sum(bound.high - bound.low for bound, _ in crossed) / 4,
    )


def same_evidence(left: Bounds, right: Bounds, units: int) -> Parts:
    """The parts where both formulas looked at the same verdicts, on so many units: all is the formula's. left, right:
    the values that they gave."""
    one, other = left.middle, right.middle
    return Parts(
        claims=0.0,
        verdicts=0.0,
        formula=one - other,
        cross=((one, other), (one, other)),
        matched=units,
        only_left=0,
        only_right=0,
        undetermined=0,
        slack=(left.high - left.low + right.high - right.low) / 2,
    )
