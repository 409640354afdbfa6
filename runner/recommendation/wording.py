"""A recommendation in words: the terminal, the Markdown and the page say the same with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil

from runner import phrases
from runner.compare.findings import Row
from runner.compare.wording import shown
from runner.recommendation.findings import Considered, Cost, CostName, Decision, Recommendation

TITLES: Mapping[Decision, str] = {
    "keep": "Keep",
    "trade-off": "Trade-off",
    "reject": "Reject",
    "cannot tell": "Cannot tell",
    "not comparable": "Not comparable",
    "failed": "Failed",
}
"""Decisions in the order in which they are told."""
COSTS: Mapping[CostName, str] = {
    "dollars": "dollars per 1,000 questions",
    "tokens": "tokens a question",
    "prompt_characters": "characters of the prompt",
    "p50": "median seconds a question",
}
ALONE = ", by its own interval alone"
DECISIONS = (
    "keep: better in a definition of the table, worse in none. reject: worse, and better in none.",
    "trade-off: better in one, worse in another, one of them perhaps by its own 95% interval alone.",
    "cannot tell: this test set shows neither.",
)
LATENCY = "p50, p95: seconds a question, retrieve to generate, as measured when each stage was computed."
TALLER = 1.1
"""A cost is told where it is this many times another's."""
SLOWER, SECONDS = 1.5, 0.005
"""Times differ by themselves: they are told from this ratio and this difference on."""


def gain(row: Row) -> float:
    """The difference, positive where it is an improvement."""
    return row.delta if row.direction == "higher" else -row.delta


def difference(row: Row) -> str:
    """`recall +0.150 [0.078, 0.227]`."""
    return f"{shown(row.definition)} {phrases.signed(row.delta)} {phrases.interval(row.low, row.high)}"


def differences(rows: Sequence[Row]) -> str:
    """Several of them."""
    return phrases.listed([difference(row) for row in rows])


def decided(
    sides: Mapping[str, Sequence[Row]], decisive: Sequence[Row], others: Sequence[Row], decision: Decision
) -> str:
    """Why a variant is kept, rejected or a trade-off. sides: rows of deciding definitions by `better`, `worse`, and
    `perhaps better`, `perhaps worse` for those whose own interval alone says so; decisive: all rows of deciding
    definitions, others: the rest."""
    told = [
        f"{side} in {differences(rows)}{ALONE if side.startswith('perhaps') else ''}"
        for side, rows in sides.items()
        if rows
    ]
    against = {"keep": ["worse"], "reject": ["better"]}.get(decision, ["worse", "better"])
    if decision != "trade-off":
        told.append(f"{against[0]} in none of the {len(decisive)} that decide" if len(decisive) > 1 else "")
    if decision == "keep" and (loss := largest_possible_loss(decisive)):
        told.append(loss)
    for word in against:
        if outside := [shown(row.definition) for row in others if row.word == word]:
            told.append(f"{word}, without deciding, in {phrases.some(outside, 4)}")
    return "; ".join(filter(None, told))


def largest_possible_loss(rows: Iterable[Row]) -> str:
    """What is not excluded though nothing is shown: of means that got worse, the interval that reaches furthest."""
    losses = {
        row.definition: abs(end)
        for row in rows
        if gain(row) < 0 and (end := row.low if row.direction == "higher" else row.high) is not None
    }
    if not losses:
        return ""
    ranges = {row.definition: row.range[1] - row.range[0] for row in rows}
    key = max(losses, key=lambda key: losses[key] / ranges[key])
    return f"not excluded: {shown(key)} worse by up to {phrases.number(losses[key])}"


def undecided(rows: Sequence[Row], needed: Mapping[str, int | None]) -> str:
    """Why it cannot be told, by the deciding definition that comes nearest. needed: questions, by definition."""
    changed = [row for row in rows if row.changed]
    if not changed:
        return "no score of a deciding definition changed"
    row = min(changed, key=lambda row: row.p.value)
    told = f"nearest {difference(row)}, {phrases.count(row.changed, 'question')} of {row.n} changed"
    if row.visible is None:
        return told
    told += f"; a true difference shows here from {phrases.number(row.visible)} on"
    if (n := needed.get(row.definition)) is not None:
        among = f" among the {row.family} comparisons that decide" if row.family > 1 else ""
        told += f", and one of this size{among} would take about {n:,} questions in place of {row.n}"
    return told


def rounded(n: float) -> int:
    """A number of questions to two figures, upwards: more of them would say more than is known."""
    unit = int(10 ** max(0, len(str(ceil(n))) - 2))
    return ceil(n / unit) * unit


def price(cost: Cost, name: CostName) -> str:
    """A cost as a number, a dash where it is unknown."""
    value: float | None = getattr(cost, name)
    if value is None:
        return "–"
    if name == "dollars":
        return f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"  # what costs little does not cost nothing
    return seconds(value) if name == "p50" else f"{value:,.0f}"


def seconds(value: float | None) -> str:
    """`3.2 ms`, `1.24 s`, a dash for none."""
    if value is None:
        return "–"
    return (
        f"{value:.2f} s" if value >= 0.9995 else f"{value * 1000:.0f} ms" if value >= 0.01 else f"{value * 1000:.1f} ms"
    )


def costs(cost: Cost | None, baseline: Cost | None) -> str:
    """What costs clearly more or less than in the baseline; "" for nothing."""
    if cost is None or baseline is None:
        return ""
    told = []
    for name, what in COSTS.items():
        before, after = getattr(baseline, name), getattr(cost, name)
        if before is not None and after is not None and apart(name, before, after):
            told.append(f"{what.removeprefix('median ')} {price(baseline, name)} → {price(cost, name)}")
    return "; ".join(told)


def apart(name: CostName, one: float, other: float) -> bool:
    """Whether two values of a cost are clearly apart."""
    less, more = sorted((one, other))
    if name == "p50":
        return more >= SLOWER * less and more - less >= SECONDS
    return more > less and more >= TALLER * less


def same(name: CostName | None, cost: Cost | None, baseline: Cost | None) -> str:
    """Why a variant with the same scores is kept or rejected; name: the cost that differs, None where none does."""
    alike = "no score of any question changed"
    if name is None or cost is None or baseline is None:
        told = costs(cost, baseline)  # of time alone
        return f"{alike}, and neither money, tokens nor the prompt is known to differ{f'; {told}' if told else ''}"
    return f"{alike}, for {COSTS[name]} {price(baseline, name)} → {price(cost, name)}"


def grouped(found: Recommendation) -> dict[Decision, list[Considered]]:
    """The variants by decision, in the order in which they are told; decisions that no variant has are left out."""
    groups: dict[Decision, list[Considered]] = {
        decision: [each for each in found.variants if each.decision == decision] for decision in TITLES
    }
    return {decision: members for decision, members in groups.items() if members}


def nearest(members: Sequence[Considered], decisive: Sequence[str]) -> Considered | None:
    """Of variants that cannot be told apart, the one whose gain comes nearest to being one; None where none gains."""
    best: dict[str, float] = {}
    for each in members:
        gains = [row.p.value for row in each.rows if row.definition in decisive and row.changed and gain(row) > 0]
        if gains:
            best[each.label] = min(gains)
    return min((each for each in members if each.label in best), key=lambda each: best[each.label], default=None)


def headline(found: Recommendation) -> str:
    """The decisions in one sentence: `Keep reranker=late_interaction. Trade-off: retriever.k=10. …`."""
    groups = grouped(found)
    told = [
        f"{TITLES[decision]}: {phrases.listed([each.name for each in members])}."
        for decision, members in groups.items()
    ]
    return " ".join(told) if told else "Nothing was swept, so nothing is recommended."


def front(found: Recommendation) -> str:
    """What the front is, and what it does not say."""
    on = [each for each in found.runs if each.front]
    if not on:
        return ""
    axes = f"{shown(found.quality)} against {COSTS[found.cost]}"
    told = f"Front of {axes}: no other run is as good and as cheap, and better in one: "
    told += phrases.listed([each.name for each in on])
    doubtful = [each.name for each in on if each.variable is not None and not _told(each, found.quality)]
    if doubtful:
        whether = "it" if len(doubtful) == 1 else "any of them"
        told += (
            f". It goes by the means; that {whether} differs in {shown(found.quality)} from the baseline is not shown"
        )
        told += f" for {phrases.listed(doubtful)}"
    return f"{told}."


def _told(each: Considered, quality: str) -> bool:
    return any(row.definition == quality and row.word in ("better", "worse") for row in each.rows)
