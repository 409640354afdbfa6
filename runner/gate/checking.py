"""Whether a run holds to the rules, against an accepted baseline. Pure: files in, checks out."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from math import fsum
from typing import Any

from runner.config import VARIABLES
from runner.drift import moved_between
from runner.gate.accepted import Accepted, accepted
from runner.gate.findings import Check, Verdict
from runner.gate.rules import Rule, Rules, Scope
from runner.results import StoredRun
from runner.stats import Difference, difference
from runner.whole import EPSILON

SHOWN = 5


def gate(baseline: Accepted, run: StoredRun, rules: Rules, *, names: tuple[str, str], anyway: bool = False) -> Verdict:
    """Hold a run to the rules.

    A definition that the baseline has and the run lacks, one that means something else, and questions without a value
    are errors and never pass; `anyway` subtracts values of another definition, judge or test set all the same, and the
    verdict says so. Raises DataError where the result folder is not whole.
    """
    holder = _Holder(baseline, accepted(run), run, anyway)
    checks = [*_unknown(holder, rules, None)]
    for slice, scope in ((None, rules), *rules.slices.items()):
        if slice is not None:
            checks += _unknown(holder, scope, slice)
            if slice not in baseline.slices and not holder.candidate.members(slice):
                told = f"neither side has this slice{_near(slice, baseline.slices)}"
                checks.append(Check("every definition", slice, "comparable", "error", told))
                continue
        for key in dict.fromkeys((*baseline.by_key, *scope.definitions)):
            rule = scope.rule(key)
            if rule is not None and (key in baseline.by_key or key in holder.candidate.by_key):
                checks += holder.checks(key, slice, rule, named=key in scope.definitions)
    if not checks:
        told = "the rules look at nothing that the baseline has; give `default` or one of `definitions` a limit"
        checks.append(Check("every definition", None, "comparable", "error", told))
    return Verdict(*names, tuple(checks), tuple(_notes(holder, rules, checks)), anyway)


def _unknown(holder: _Holder, scope: Scope, slice: str | None) -> Iterator[Check]:
    known = {*holder.baseline.by_key, *holder.candidate.by_key}
    for key in scope.definitions:
        if key not in known:
            told = f"the rules name it, and neither side has it{_near(key, known)}"
            yield Check(key, slice, "comparable", "error", told)


def _near(name: str, known: Collection[str]) -> str:
    near = get_close_matches(name, known, n=1, cutoff=0.5)
    return f"; did you mean {near[0]}?" if near else f"; there are {', '.join(sorted(known)) or 'none'}"


@dataclass(frozen=True)
class _Holder:
    baseline: Accepted
    candidate: Accepted
    run: StoredRun
    anyway: bool

    def checks(self, key: str, slice: str | None, rule: Rule, *, named: bool) -> Iterator[Check]:
        """The checks of one rule on one definition over one set of questions."""
        blank = Check(key, slice, "comparable", "error", "")
        why = self.differences(key, rule)
        if why and not (self.anyway and key in self.baseline.by_key and key in self.candidate.by_key):
            yield replace(blank, told="; ".join(why))
            return
        members = self.candidate.members(slice)
        after = {id: value for id, value in self.candidate.values[key].items() if id in members}
        before = {id: value for id, value in self.baseline.values.get(key, {}).items() if id in members}
        unscored = tuple(id for id in self.run.questions if id in members and id not in after)
        blank = replace(blank, of=len(members), n=len(after), unscored=unscored)
        lost = [id for id in unscored if id in before or self.status(key, id) != "not_applicable"]
        accepted_mean = self.baseline.mean(key, slice)
        if not after and not lost and slice is not None and not named and not (accepted_mean and accepted_mean.n):
            return  # a slice on which this definition says nothing, and did not at the baseline either
        if not after:
            yield replace(blank, told=f"no question has a value{self._reasons(key, unscored)}")
            return
        coverage = len(after) / (len(after) + len(lost))
        if coverage < rule.min_coverage - EPSILON:
            told = (
                f"incomplete: {len(after)} of {len(after) + len(lost)} questions have a value{self._reasons(key, lost)}"
            )
            yield replace(blank, told=f"{told}; min_coverage is {rule.min_coverage:g}")
            return
        if accepted_mean and accepted_mean.failed and rule.max_drop is not None:
            had, should = accepted_mean.n, accepted_mean.n + accepted_mean.failed
            if had / should < rule.min_coverage - EPSILON:
                told = (
                    f"the baseline is incomplete: {had} of {should} questions have a value; accept a run that is whole"
                )
                yield replace(blank, told=f"{told}, or lower min_coverage, which is {rule.min_coverage:g}")
                return
        if rule.max_drop is not None:
            yield self._drop(replace(blank, rule="max_drop", limit=rule.max_drop), before, after, rule)
        if rule.floor is not None:
            yield self._floor(replace(blank, rule="floor", limit=rule.floor), after, rule.floor)

    def differences(self, key: str, rule: Rule) -> list[str]:
        """Why the two sides may not be compared under a definition, with both values."""
        before, after = self.baseline.by_key.get(key), self.candidate.by_key.get(key)
        if after is None:
            return [f"missing: the run does not have it{self._other(key, self.candidate)}"]
        if before is None:
            if rule.max_drop is None:
                return []
            found = f"missing: the baseline does not have it{self._other(key, self.baseline)}"
            return [f"{found}; accept a run that has it, or give it a floor and max_drop: null"]
        pairs: list[tuple[str, Any, Any]] = [
            ("definition", _named(before), _named(after)),
            ("direction", before.direction, after.direction),
            ("range", before.range, after.range),
            ("judge", _judges(self.baseline, key), _judges(self.candidate, key)),
            ("dataset", _dataset(self.baseline), _dataset(self.candidate)),
        ]
        why = [f"the {what} differs: {one} in the baseline, {two} in the run" for what, one, two in pairs if one != two]
        if (before.judges or after.judges) and (
            moved := moved_between(self.baseline.standing, self.candidate.standing)
        ):
            why.append(moved)
        return why

    def _other(self, key: str, side: Accepted) -> str:
        id = key.partition("@")[0].partition(".")[0]
        others = [other for other in side.by_key if other.partition("@")[0].partition(".")[0] == id]
        return f"; it has {', '.join(others)}, which is another definition" if others else ""

    def status(self, key: str, id: str) -> str:
        score = self.run.scores.get(key, {}).get(id)
        return score.status if score else "failed"

    def _reasons(self, key: str, ids: Sequence[str]) -> str:
        if not ids:
            return ""
        score = self.run.scores.get(key, {}).get(ids[0])
        reason = score.reason if score else "the run has no score of it"
        return f" (without: {_some(ids)}; the first: {reason})"

    def _drop(self, blank: Check, before: Mapping[str, float], after: Mapping[str, float], rule: Rule) -> Check:
        definition = self.candidate.by_key[blank.definition]
        if not self.baseline.questions:
            return self._drop_of_means(blank, after, rule)
        common = [id for id in before if id in after]
        if not common:
            return replace(blank, rule="comparable", n=0, told="no question has a value on both sides")
        sign = 1.0 if definition.direction == "lower" else -1.0
        losses = {id: sign * (after[id] - before[id]) for id in common}
        found = difference([*losses.values()])
        check = replace(
            blank,
            baseline=_mean([before[id] for id in common]),
            candidate=_mean([after[id] for id in common]),
            loss=found.delta,
            low=found.low,
            high=found.high,
            n=len(common),
        )
        if rule.on == "interval" and found.low is None:
            told = "one common question has no interval; use on: mean, or more questions"
            return replace(check, rule="comparable", told=told)
        allowed = blank.limit or 0.0
        told = _dropped(check)
        if found.delta <= allowed + EPSILON:
            return replace(check, result="passed", told=told)
        if not _fails(found, rule, allowed):
            unsure = f"{told}, but its 95% interval {found.low:.6g} to {found.high:.6g} does not exclude that"
            return replace(check, result="warning", told=unsure)
        flaky = self._flaky(blank.definition)
        steady = [loss for id, loss in losses.items() if id not in flaky]
        if len(steady) < len(losses) and steady and not _fails(difference(steady), rule, allowed):
            without = f"{told}; it is gone without the {len(losses) - len(steady)} flaky questions"
            return replace(check, result="warning", told=f"{without} ({_some([id for id in common if id in flaky])})")
        return replace(check, result="regression", told=told)

    def _drop_of_means(self, blank: Check, after: Mapping[str, float], rule: Rule) -> Check:
        """Against a baseline that has no values of single questions."""
        blank = replace(blank, rule="comparable")
        accepted_mean = self.baseline.mean(blank.definition, blank.slice)
        if accepted_mean is None or accepted_mean.value is None:
            return replace(blank, told="the baseline has no mean of it")
        if accepted_mean.n != len(after):
            told = f"the baseline's mean is over {accepted_mean.n} questions, the run's over {len(after)}"
            return replace(blank, told=f"{told}, and it has no values of single questions to pair them by")
        if rule.on == "interval":
            told = "the baseline has means only, and an interval needs the values of single questions; use on: mean"
            return replace(blank, told=told)
        mean = _mean([*after.values()])
        lower = self.candidate.by_key[blank.definition].direction == "lower"
        loss = mean - accepted_mean.value if lower else accepted_mean.value - mean
        check = replace(blank, rule="max_drop", baseline=accepted_mean.value, candidate=mean, loss=loss)
        passed = loss <= (blank.limit or 0.0) + EPSILON
        return replace(check, result="passed" if passed else "regression", told=_dropped(check))

    def _floor(self, blank: Check, after: Mapping[str, float], floor: float) -> Check:
        lower = self.candidate.by_key[blank.definition].direction == "lower"

        def short(values: Sequence[float]) -> float:
            return _mean(values) - floor if lower else floor - _mean(values)

        word = "above the highest" if lower else "below the lowest"
        mean = _mean([*after.values()])
        check = replace(blank, candidate=mean, loss=short([*after.values()]))
        if short([*after.values()]) <= EPSILON:
            return replace(check, result="passed", told=f"{mean:.6g} holds to the floor {floor:g}")
        told = f"{mean:.6g} is {word} allowed mean, {floor:g}"
        flaky = self._flaky(blank.definition)
        steady = [value for id, value in after.items() if id not in flaky]
        if len(steady) < len(after) and steady and short(steady) <= EPSILON:
            without = f"{told}; not so without the {len(after) - len(steady)} flaky questions"
            return replace(check, result="warning", told=f"{without} ({_some([id for id in after if id in flaky])})")
        return replace(check, result="regression", told=told)

    def _flaky(self, key: str) -> set[str]:
        return self.baseline.flaky(key) | self.candidate.flaky(key)


def _fails(found: Difference, rule: Rule, allowed: float) -> bool:
    least = found.delta if rule.on == "mean" else found.low
    return least is not None and least > allowed + EPSILON


def _dropped(check: Check) -> str:
    change = f"{check.baseline:.6g} -> {check.candidate:.6g}"
    if (check.loss or 0.0) <= EPSILON:
        return f"{change}, not worse"
    return f"{change}, worse by {check.loss:.6g}, allowed {check.limit:g}"


def _mean(values: Sequence[float]) -> float:
    return fsum(values) / len(values)


def _named(definition: Any) -> str:
    return f"{definition.framework} {definition.version}, fingerprint {definition.fingerprint}"


def _judges(side: Accepted, key: str) -> str:
    return " and ".join(f"{side.judges[judge]} {judge}" for judge in side.by_key[key].judges) or "none"


def _dataset(side: Accepted) -> str:
    return f"checksum {side.dataset.checksum}"


def _some(ids: Sequence[str]) -> str:
    return ", ".join(ids[:SHOWN]) + (f" and {len(ids) - SHOWN} more" if len(ids) > SHOWN else "")


def _notes(holder: _Holder, rules: Rules, checks: Sequence[Check]) -> Iterator[str]:
    baseline, candidate = holder.baseline, holder.candidate
    if holder.anyway:
        for key in baseline.by_key:
            if key in candidate.by_key and (why := holder.differences(key, Rule(max_drop=0))):
                yield f"{key} is compared although {'; '.join(why)}"
    if new := [key for key in candidate.by_key if key not in baseline.by_key and key not in rules.definitions]:
        yield f"new in this run and not looked at: {', '.join(new)}; accept a run to hold later ones to it"
    if free := [key for key in baseline.by_key if rules.rule(key) is None]:
        yield f"not looked at over all questions, because the rules say so: {', '.join(free)}"
    choices = baseline.run.choices, candidate.run.choices
    changed = {name: tuple(side.get(name) for side in choices) for name in dict.fromkeys((*choices[0], *choices[1]))}
    if differ := [f"{name} {one} -> {two}" for name, (one, two) in changed.items() if one != two and name in VARIABLES]:
        yield f"changed since the baseline: {', '.join(differ)}"
    elif baseline.run.config_fingerprint != candidate.run.config_fingerprint:
        yield "changed since the baseline: settings inside the chosen groups; `paribus compare` lists them"
    if baseline.run.started == candidate.run.started and baseline.run.results == candidate.run.results:
        yield "the run is the baseline itself"
    by_ids: dict[tuple[str, ...], list[str]] = {}
    for check in checks:
        if check.slice is None and check.unscored and check.rule != "comparable":
            keys = by_ids.setdefault(check.unscored, [])
            keys += [check.definition] if check.definition not in keys else []
    for ids, keys in by_ids.items():
        yield f"unscored: {_some(ids)} ({len(ids)} of {len(holder.run.questions)} questions) under {', '.join(keys)}"
