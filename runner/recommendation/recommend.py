"""A stored sweep -> a Recommendation: a decision for each variant, costs, the front, and what to sweep next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import NormalDist
from typing import get_args

from runner.compare.findings import NotCompared, Row
from runner.compare.paired import deciding
from runner.compare.wording import shown
from runner.diagnosis.findings import Diagnosis
from runner.recommendation import wording
from runner.recommendation.costs import cost
from runner.recommendation.findings import Considered, Cost, CostName, Decision, Recommendation
from runner.recommendation.next_sweep import next_sweeps
from runner.results import mean
from runner.significance import POWER_AND_LEVEL
from runner.stats import Difference
from runner.sweep_folder import StoredRow, StoredSweep

LEVEL, POWER = 0.05, 0.8
ALIKE = 1.01
"""A cost is the same up to this ratio: less is no reason to keep or to reject."""
SAME = 1e-12


def recommend(sweep: StoredSweep, diagnosis: Diagnosis | None) -> Recommendation:
    """What to keep, reject and sweep next. diagnosis: of the baseline; None = its faults are not known.

    Decisions rest on the definitions that the baseline's configuration shows in its table, in compare's words. Without
    results of the baseline there are none.
    """
    baseline = sweep.baseline
    first = baseline or next((row.run for row in sweep.variants if row.run), None)
    decisive = deciding(first) if first else ()
    costs = {row.label: cost(row.run) for row in sweep.rows if row.run}
    own = costs.get(sweep.rows[0].label)
    runs = tuple(_considered(row, sweep, decisive, costs.get(row.label), own) for row in sweep.rows)
    quality = decisive[0] if decisive else ""
    axis = front_cost([costs[row.label] for row in sweep.rows if row.run])
    lower = bool(first and quality in first.definitions and first.definitions[quality].direction == "lower")
    runs = _with_front(runs, quality, axis or "prompt_characters", lower) if axis else runs
    found = Recommendation(
        sweep=sweep.name,
        questions=len(first.questions) if first else 0,
        decisive=decisive,
        family=max((row.family for each in runs for row in each.rows if row.definition in decisive), default=0),
        quality=quality,
        cost=axis or "prompt_characters",
        runs=runs,
        next=(),
        notes=(*sweep.notes, *_notes(runs, axis)),
    )
    return replace(found, next=next_sweeps(sweep, found, diagnosis))


def _considered(
    row: StoredRow, sweep: StoredSweep, decisive: Sequence[str], cost: Cost | None, baseline: Cost | None
) -> Considered:
    found = sweep.comparisons.get(row.label)
    rows, missing = (found.rows, found.not_compared) if found else ((), ())
    decision: Decision | None
    if row.variable is None:
        decision, why = None, ""
    elif row.run is None:
        decision, why = "failed", row.error or "it has no results"
    elif found is None:
        decision, why = "not comparable", "the baseline has no results"
    else:
        decision, why = decide(rows, missing, decisive, cost, baseline)
    return Considered(
        label=row.label,
        variable=row.variable,
        value=row.value,
        from_value=row.from_value,
        folder=row.folder,
        run_id=row.run_id,
        decision=decision,
        why=why,
        means={key: mean(row.run.scores.get(key, {}).values()).value for key in row.run.definitions} if row.run else {},
        rows=rows,
        not_compared=missing,
        cost=cost,
        front=False,
    )


def decide(
    rows: Sequence[Row],
    missing: Sequence[NotCompared],
    decisive: Sequence[str],
    cost: Cost | None,
    baseline: Cost | None,
) -> tuple[Decision, str]:
    """The decision on a variant, and why. rows: its comparison with the baseline; missing: what was not compared."""
    of = [row for row in rows if row.definition in decisive]
    others = [row for row in rows if row.definition not in decisive]
    left_out = [each for each in missing if each.definition in decisive]
    if not of:
        reasons = dict.fromkeys("; ".join(each.why) for each in left_out or missing)
        return "not comparable", " / ".join(reasons) or "no deciding definition has a value in both runs"
    sides = {
        "better": [row for row in of if row.word == "better"],
        "perhaps better": [row for row in of if _perhaps(row) and wording.gain(row) > 0],
        "worse": [row for row in of if row.word == "worse"],
        "perhaps worse": [row for row in of if _perhaps(row) and wording.gain(row) < 0],
    }
    more = f". Not compared: {', '.join(shown(each.definition) for each in left_out)}" if left_out else ""
    if sides["better"] or sides["worse"]:
        good, bad = (sides[word] or sides[f"perhaps {word}"] for word in ("better", "worse"))
        decision: Decision = "trade-off" if good and bad else "keep" if good else "reject"
        told = wording.decided(sides, of, others, decision)
        costs = wording.costs(cost, baseline)
        return decision, f"{told}{f'; {costs}' if costs else ''}{more}"
    if not missing and not any(row.changed for row in rows):
        name = differs(cost, baseline)
        why = wording.same(name, cost, baseline)
        if name is None:
            return "cannot tell", why
        return ("keep" if getattr(cost, name) < getattr(baseline, name) else "reject"), why
    return "cannot tell", wording.undecided(of, {row.definition: needed(row) for row in of}) + more


def _perhaps(row: Row) -> bool:
    return row.word == "cannot tell" and Difference(row.delta, row.low, row.high, row.n, row.changed).beyond_noise


def needed(row: Row) -> int | None:
    """About how many questions would show a true difference of the observed size in four of five cases, when it is one
    of the family's comparisons: n (visible / delta)**2, the level of `visible`, 5%, divided by the family, as Holm does
    for the smallest p-value. Two figures, upwards. None where nothing can be said: no difference, an unknown variation,
    or a number that the test set has already."""
    if row.visible is None or abs(row.delta) <= SAME:
        return None
    strict = NormalDist().inv_cdf(1 - LEVEL / 2 / row.family) + NormalDist().inv_cdf(POWER)
    n = row.n * (row.visible * strict / POWER_AND_LEVEL / abs(row.delta)) ** 2
    return wording.rounded(n) if n > row.n else None


def differs(cost: Cost | None, baseline: Cost | None) -> CostName | None:
    """The first cost that is known for both and differs; None where none does. Time does not count: it hangs on what
    else the machine did, and nothing says how much."""
    names: tuple[CostName, ...] = get_args(CostName)
    for name in names:
        here, there = (None if each is None else getattr(each, name) for each in (cost, baseline))
        if name == "p50" or here is None or there is None:
            continue
        if max(here, there) > ALIKE * min(here, there):
            return name
    return None


def front_cost(costs: Sequence[Cost | None]) -> CostName | None:
    """The first cost that is known for all runs and differs between them, time clearly; None where none does."""
    names: tuple[CostName, ...] = get_args(CostName)
    for name in names:
        values = [value for cost in costs if cost is not None and (value := getattr(cost, name)) is not None]
        if len(values) < len(costs) or len(set(values)) < 2:
            continue
        if name != "p50" or wording.apart(name, min(values), max(values)):
            return name
    return None


def front(points: Sequence[tuple[float | None, float | None]]) -> list[bool]:
    """Whether no other point is at least as good and at most as dear, and better in one of them. points: quality, the
    higher the better, and cost; None = unknown, and then the point is not on the front and in nobody's way."""
    known = [(quality, cost) for quality, cost in points if quality is not None and cost is not None]

    def beaten(quality: float, cost: float) -> bool:
        return any(q >= quality and c <= cost and (q, c) != (quality, cost) for q, c in known)

    return [quality is not None and cost is not None and not beaten(quality, cost) for quality, cost in points]


def _with_front(runs: tuple[Considered, ...], quality: str, axis: CostName, lower: bool) -> tuple[Considered, ...]:
    def point(each: Considered) -> tuple[float | None, float | None]:
        value = each.means.get(quality)
        comparable = each.variable is None or any(row.definition == quality for row in each.rows)
        known = value is not None and each.cost is not None and comparable
        return (round(-value if lower else value, 12) if known and value is not None else None), (
            getattr(each.cost, axis) if known else None
        )

    return tuple(replace(each, front=on) for each, on in zip(runs, front([point(each) for each in runs]), strict=True))


def _notes(runs: Sequence[Considered], axis: CostName | None) -> list[str]:
    reasons: dict[str, list[str]] = {}
    names: Mapping[str, str] = {str(name): what for name, what in wording.COSTS.items()}
    for each in runs:
        for name, why in (each.cost.unknown if each.cost else {}).items():
            if name != "tokens" or "counts no tokens" not in why:
                reasons.setdefault(f"{names.get(name, name)} unknown: {why}", []).append(each.name)
    told = [why if len(labels) == len(runs) else f"{', '.join(labels)}: {why}" for why, labels in reasons.items()]
    if axis is None and len(runs) > 1:
        told.append("no front is drawn: no cost is known for all runs that differs between them")
    return told
