"""Two stored runs -> a Comparison: what may be subtracted, the paired figures, and what changed in each question."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Literal

from adapters.schema import Chunk, Definition, Question, Ranked, Record, Score, Verdict, from_json
from runner.audit.matching import matched
from runner.compare.findings import Change, Comparison, Flip, Moved, NotCompared, Row, Side, Slice, Word
from runner.config import flatten
from runner.drift import Drift, Standing, moved_between
from runner.results import StoredRun
from runner.significance import PValue, holm, permutation, smallest_visible
from runner.stats import FEWEST_CHANGED, Difference, difference

LEVEL = 0.05
SAME = 1e-12
NOT_SETTINGS = ("trial", "tracking", "sweep")
"""Parts of a configuration that say where a run stands and what becomes of it, not what it does."""


@dataclass(frozen=True, slots=True)
class _Pairs:
    """The values of one definition on the questions that both runs have one for."""

    definition: Definition
    ids: tuple[str, ...]
    before: tuple[float, ...]
    after: tuple[float, ...]
    only_before: int
    only_after: int

    @property
    def differences(self) -> list[float]:
        return [after - before for before, after in zip(self.before, self.after, strict=True)]


def compare(baseline: StoredRun, candidate: StoredRun, *, names: tuple[str, str], anyway: bool = False) -> Comparison:
    """Compare two runs question by question.

    Definitions that do not mean the same in both (another fingerprint, judge or test set), and judged ones where the
    judge moved, are named and not subtracted; `anyway` subtracts them all the same and says so.
    """
    notes: list[str] = []
    not_compared: list[NotCompared] = []
    pairs: dict[str, _Pairs] = {}
    for key in dict.fromkeys((*baseline.definitions, *candidate.definitions)):
        why = _differences(key, baseline, candidate)
        if why and not (anyway and key in baseline.definitions and key in candidate.definitions):
            not_compared.append(NotCompared(key, tuple(why)))
            continue
        if why:
            notes.append(f"{key} is subtracted although {'; '.join(why)}")
        found = _paired(key, baseline, candidate)
        if found.ids:
            pairs[key] = found
        else:
            not_compared.append(NotCompared(key, ("no question has a value in both runs",)))
    rows = _rows(pairs)
    return Comparison(
        baseline=_side(baseline, names[0]),
        candidate=_side(candidate, names[1]),
        changed=_changed_settings(baseline, candidate),
        rows=rows,
        not_compared=tuple(not_compared),
        slices=tuple(_slices(pairs, candidate)),
        changes=tuple(_changes(pairs, baseline, candidate)),
        notes=tuple(notes),
    )


def _side(run: StoredRun, name: str) -> Side:
    judge = run.summary["judge"]
    return Side(
        name=name,
        folder=run.folder,
        started=run.summary["started"],
        dataset=run.summary["dataset"],
        judge=f"{judge['provider']} {judge['model']}" if judge else None,
        settings=flatten(run.config),
    )


def _changed_settings(baseline: StoredRun, candidate: StoredRun) -> dict[str, tuple[Any, Any]]:
    before, after = flatten(baseline.config), flatten(candidate.config)
    return {
        key: (before.get(key), after.get(key))
        for key in dict.fromkeys((*before, *after))
        if key.partition(".")[0] not in NOT_SETTINGS and before.get(key) != after.get(key)
    }


def _differences(key: str, baseline: StoredRun, candidate: StoredRun) -> list[str]:
    """Why a definition may not be subtracted."""
    for where, there, here in (("baseline", baseline, candidate), ("candidate", candidate, baseline)):
        if key not in there.definitions:
            id = here.definitions[key].id
            others = [other for other, definition in there.definitions.items() if definition.id == id]
            hint = f"; it has {', '.join(others)}, which is another definition" if others else ""
            return [f"the {where} does not have it{hint}"]
    before, after = baseline.definitions[key], candidate.definitions[key]
    why = []
    if before.fingerprint != after.fingerprint:
        parts = [
            part
            for part in ("version", "implementation", "parameters", "prompts", "revision")
            if getattr(before, part) != getattr(after, part)
        ]
        why.append(f"the definition differs ({', '.join(parts)})")
    judges = [_judges(run, key) for run in (baseline, candidate)]
    if judges[0] != judges[1]:
        why.append(f"the judge differs ({' and '.join(_named(judge) for judge in judges)})")
    checksums = [str(run.summary["dataset"].get("checksum")) for run in (baseline, candidate)]
    if checksums[0] != checksums[1]:
        why.append(f"the test set differs (checksums {checksums[0][:12]} and {checksums[1][:12]})")
    if judges[0] and (moved := moved_between(_standing(baseline), _standing(candidate))):
        why.append(moved)
    return why


def _standing(run: StoredRun) -> Standing | None:
    drift = run.summary.get("drift")
    return from_json(Drift, json.dumps(drift)).standing if drift else None


def _judges(run: StoredRun, key: str) -> set[str]:
    return {score.judge.fingerprint for score in run.scores.get(key, {}).values() if score.judge}


def _named(judges: set[str]) -> str:
    return ", ".join(sorted(judges)) or "none"


def _paired(key: str, baseline: StoredRun, candidate: StoredRun) -> _Pairs:
    before, after = (
        {id: score.value for id, score in run.scores.get(key, {}).items() if score.value is not None}
        for run in (baseline, candidate)
    )
    ids = tuple(id for id in before if id in after)
    return _Pairs(
        definition=candidate.definitions[key],
        ids=ids,
        before=tuple(before[id] for id in ids),
        after=tuple(after[id] for id in ids),
        only_before=len(before) - len(ids),
        only_after=len(after) - len(ids),
    )


def _rows(pairs: Mapping[str, _Pairs]) -> tuple[Row, ...]:
    p_values = {key: permutation(found.differences) for key, found in pairs.items()}
    adjusted = holm({key: p.value for key, p in p_values.items()})
    return tuple(_row(key, found, p_values[key], adjusted[key], len(pairs)) for key, found in pairs.items())


def _row(key: str, found: _Pairs, p: PValue, adjusted: float, family: int) -> Row:
    spread = difference(found.differences)
    sign = 1 if found.definition.direction == "higher" else -1
    gains = [sign * each for each in found.differences]
    wins, losses = sum(gain > SAME for gain in gains), sum(gain < -SAME for gain in gains)
    return Row(
        definition=key,
        asks=found.definition.asks,
        about=_about(found.definition),
        direction=found.definition.direction,
        baseline=fmean(found.before),
        candidate=fmean(found.after),
        delta=spread.delta,
        low=spread.low,
        high=spread.high,
        p=p,
        adjusted=adjusted,
        family=family,
        wins=wins,
        ties=len(gains) - wins - losses,
        losses=losses,
        carries=_carries(found.differences),
        visible=smallest_visible(found.differences),
        n=len(found.ids),
        only_baseline=found.only_before,
        only_candidate=found.only_after,
        word=_word(spread, adjusted, sign),
    )


def _about(definition: Definition) -> Literal["retrieval", "generation"]:
    return "generation" if {"answer", "refused"} & set(definition.requires) else "retrieval"


def _word(spread: Difference, adjusted: float, sign: int) -> Word:
    if not spread.changed:
        return "unchanged"
    if not spread.beyond_noise or adjusted >= LEVEL or spread.changed < FEWEST_CHANGED:
        return "cannot tell"
    return "better" if sign * spread.delta > 0 else "worse"


def _carries(differences: Sequence[float]) -> int | None:
    """The fewest questions whose changes, the largest first, make up the whole difference."""
    total = sum(differences)
    if abs(total) <= SAME:
        return None
    sign = 1 if total > 0 else -1
    so_far = 0.0
    for count, change in enumerate(sorted((sign * each for each in differences), reverse=True), 1):
        so_far += change
        if so_far >= abs(total) - SAME:
            return count
    return len(differences)


def _slices(pairs: Mapping[str, _Pairs], run: StoredRun) -> Iterable[Slice]:
    groups: dict[str, set[str]] = {}
    for question in run.questions.values():
        for name in (*question.slices, f"origin:{question.origin}", f"split:{question.split}"):
            groups.setdefault(name, set()).add(question.id)
    for name, members in groups.items():
        if len(members) == len(run.questions):
            continue  # the slice is everything
        for key, found in pairs.items():
            places = [place for place, id in enumerate(found.ids) if id in members]
            if not places:
                continue
            spread = difference([found.differences[place] for place in places])
            yield Slice(
                slice=name,
                definition=key,
                n=len(places),
                baseline=fmean(found.before[place] for place in places),
                candidate=fmean(found.after[place] for place in places),
                delta=spread.delta,
                low=spread.low,
                high=spread.high,
            )


def _changes(pairs: Mapping[str, _Pairs], baseline: StoredRun, candidate: StoredRun) -> list[Change]:
    gains: dict[str, dict[str, float]] = {}
    for key, found in pairs.items():
        low, high = found.definition.range
        sign = 1 if found.definition.direction == "higher" else -1
        for id, change in zip(found.ids, found.differences, strict=True):
            if abs(change) > SAME:
                gains.setdefault(id, {})[key] = sign * change / (high - low)
    changes = [_change(id, by_key, baseline, candidate) for id, by_key in gains.items() if id in candidate.questions]
    return sorted(changes, key=lambda change: (change.worst, -change.best, change.id))


def _change(id: str, gains: Mapping[str, float], baseline: StoredRun, candidate: StoredRun) -> Change:
    question = candidate.questions[id]
    before, after = baseline.records.get(id) or Record(id), candidate.records.get(id) or Record(id)
    scores = [(key, baseline.scores[key].get(id), candidate.scores[key].get(id)) for key in gains]
    return Change(
        id=id,
        question=question.text,
        slices=question.slices,
        scores={key: (_value(one), _value(other)) for key, one, other in scores},
        worst=min(0.0, *gains.values()),
        best=max(0.0, *gains.values()),
        ranking=_moved(question, _ranks(before.reranked), _ranks(after.reranked)),
        context=_moved(question, _places(before.context), _places(after.context)),
        before=before.answer,
        after=after.answer,
        flips=tuple(flip for key, one, other in scores if one and other for flip in _flips(key, one, other)),
    )


def _value(score: Score | None) -> float | None:
    return score.value if score else None


def _ranks(ranking: Sequence[Ranked]) -> dict[Chunk, int]:
    return {item.chunk: item.rank for item in reversed(ranking)}


def _places(context: Sequence[Chunk]) -> dict[Chunk, int]:
    return {chunk: place for place, chunk in reversed([*enumerate(context, 1)])}


def _moved(question: Question, before: Mapping[Chunk, int], after: Mapping[Chunk, int]) -> tuple[Moved, ...]:
    """The chunks at other places, those of the baseline first."""
    return tuple(
        Moved(
            f"{chunk.doc_id}:{chunk.start}-{chunk.end}", before.get(chunk), after.get(chunk), _relevant(question, chunk)
        )
        for chunk in dict.fromkeys((*before, *after))
        if before.get(chunk) != after.get(chunk)
    )


def _relevant(question: Question, chunk: Chunk) -> bool | None:
    if question.relevant is None:
        return None
    return any(
        span.doc_id == chunk.doc_id and span.grade > 0 and span.start < chunk.end and chunk.start < span.end
        for span in question.relevant
    )


def _flips(key: str, before: Score, after: Score) -> Iterable[Flip]:
    to = matched(before.evidence, after.evidence)
    for place, was in enumerate(before.evidence):
        now = after.evidence[to[place]] if place in to else None
        if now is None or _said(was) != _said(now):
            yield Flip(key, was.unit, _said(was), _said(now) if now else None, now.reason if now else was.reason)
    for place, new in enumerate(after.evidence):
        if place not in to.values():
            yield Flip(key, new.unit, None, _said(new), new.reason)


def _said(verdict: Verdict) -> str:
    return verdict.ours or verdict.native
