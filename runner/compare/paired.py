"""Two stored runs -> a Comparison: what may be subtracted, the paired figures, and what changed in each question."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from math import fsum
from statistics import fmean
from typing import Any, Literal

from adapters.schema import Chunk, Definition, JudgeCard, Question, Ranked, Record, Score, Verdict, from_json
from runner.audit.matching import matched
from runner.compare.findings import Change, Comparison, Flip, Moved, NotCompared, Row, Side, Slice, Word
from runner.config import flatten
from runner.drift import Drift, Standing, moved_between
from runner.errors import ConfigError
from runner.results import StoredRun
from runner.significance import PValue, holm, permutation, smallest_visible
from runner.stats import Difference, difference

LEVEL = 0.05
SAME = 1e-12
NOT_SETTINGS = ("trial", "tracking", "sweep")
"""Parts of a configuration that say where a run stands and what becomes of it, not what it does."""
OF_RETRIEVAL = {"relevant", "labelled", "retrieved", "reranked", "context"}
OF_GENERATION = {"answer", "refused", "citations"}
"""Fields that a definition requires, by what it looks at."""
TEXT = 160
"""Characters of a chunk that moved."""


@dataclass(frozen=True)
class _Pairs:
    """The values of one definition on the questions that both runs have one for."""

    definition: Definition
    ids: tuple[str, ...]
    before: tuple[float, ...]
    after: tuple[float, ...]
    only_before: int
    only_after: int

    @cached_property
    def differences(self) -> list[float]:
        return [after - before for before, after in zip(self.before, self.after, strict=True)]


def compare(
    baseline: StoredRun,
    candidate: StoredRun,
    *,
    names: tuple[str, str],
    anyway: bool = False,
    slices: Sequence[str] = (),
) -> Comparison:
    """Compare two runs question by question.

    Definitions that do not mean the same in both (another fingerprint, judge or test set), and judged ones where the
    judge moved, are named and not subtracted; `anyway` subtracts them all the same and says so. slices: only the
    questions of one of these. Raises ConfigError for a slice that no question has.
    """
    groups = _groups(candidate.questions.values())
    chosen = _chosen(slices, groups)
    notes = [*_other_texts(baseline, candidate)]
    if chosen is not None:
        notes.append(f"only the {len(chosen)} questions of {' or '.join(slices)} are compared")
    not_compared: list[NotCompared] = []
    pairs: dict[str, _Pairs] = {}
    for key in dict.fromkeys((*baseline.definitions, *candidate.definitions)):
        why = _differences(key, baseline, candidate)
        if why and not (anyway and key in baseline.definitions and key in candidate.definitions):
            not_compared.append(NotCompared(key, tuple(why)))
            continue
        if why:
            notes.append(f"{key} is subtracted although {'; '.join(why)}")
        found = _paired(key, baseline, candidate, chosen)
        if found.ids:
            pairs[key] = found
        else:
            not_compared.append(NotCompared(key, ("no question has a value in both runs",)))
    return Comparison(
        baseline=_side(baseline, names[0]),
        candidate=_side(candidate, names[1]),
        questions=len({id for found in pairs.values() for id in found.ids}),
        changed=_changed_settings(baseline, candidate),
        rows=_rows(pairs),
        not_compared=tuple(not_compared),
        slices=tuple(_slices(pairs, groups)),
        changes=tuple(_changes(pairs, baseline, candidate)),
        table=tuple((candidate.config.get("metrics") or {}).get("table") or ()),
        notes=tuple(notes),
    )


def _groups(questions: Iterable[Question]) -> dict[str, set[str]]:
    """Question ids by slice, real and synthetic apart, tuning and held-out apart."""
    groups: dict[str, set[str]] = {}
    for question in questions:
        for name in (f"origin:{question.origin}", f"split:{question.split}", *question.slices):
            groups.setdefault(name, set()).add(question.id)
    return dict(sorted(groups.items(), key=lambda item: not item[0].startswith(("origin:", "split:"))))


def _chosen(slices: Sequence[str], groups: Mapping[str, set[str]]) -> set[str] | None:
    if unknown := [name for name in slices if name not in groups]:
        raise ConfigError(f"no question is in a slice {unknown[0]!r}; there are {', '.join(groups)}")
    return set().union(*(groups[name] for name in slices)) if slices else None


def _other_texts(baseline: StoredRun, candidate: StoredRun) -> Iterable[str]:
    known = candidate.questions
    other = [id for id, question in baseline.questions.items() if id in known and known[id].text != question.text]
    if other:
        yield f"the text of {len(other)} questions differs, {other[0]} for one: other questions are compared there"


def _side(run: StoredRun, name: str) -> Side:
    judge = run.summary["judge"]
    return Side(
        name=name,
        called=run.summary["name"],
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
    """Why a definition may not be subtracted, every part with both its values."""
    for where, there, here in (("baseline", baseline, candidate), ("candidate", candidate, baseline)):
        if key not in there.definitions:
            ours = here.definitions[key]
            others = [other for other in there.definitions.values() if other.id == ours.id]
            hints = [f"{other.key} ({'; '.join(_apart(ours, other))})" for other in others]
            hint = f"; it has {', '.join(hints)}, which is another definition" if hints else ""
            return [f"the {where} does not have it{hint}"]
    why = []
    before, after = baseline.definitions[key], candidate.definitions[key]
    if before.fingerprint != after.fingerprint:
        why.append(f"the definition differs: {'; '.join(_apart(before, after))}")
    judges = [_judges(run, key) for run in (baseline, candidate)]
    if all(judges) and judges[0].keys() != judges[1].keys():
        why.append(f"the judge differs: {_judges_apart(*judges)}")
    datasets = [run.summary["dataset"] for run in (baseline, candidate)]
    if datasets[0].get("checksum") != datasets[1].get("checksum"):
        why.append(f"the dataset differs: {' and '.join(_test_set(dataset) for dataset in datasets)}")
    if before.calls != "0" and (moved := moved_between(_standing(baseline), _standing(candidate))):
        why.append(moved)
    return why


def _apart(before: Definition, after: Definition) -> list[str]:
    """The parts of a fingerprint that differ, with both values."""
    parts = [
        f"{name} {one} and {other}"
        for name in ("framework", "version", "implementation", "revision")
        if (one := getattr(before, name)) != (other := getattr(after, name))
    ]
    parts += [
        f"{name} {_json(before.parameters.get(name))} and {_json(after.parameters.get(name))}"
        for name in dict.fromkeys((*before.parameters, *after.parameters))
        if before.parameters.get(name) != after.parameters.get(name)
    ]
    prompts = [
        name
        for name in dict.fromkeys((*before.prompts, *after.prompts))
        if before.prompts.get(name) != after.prompts.get(name)
    ]
    return parts + ([f"other prompts: {', '.join(prompts)}"] if prompts else [])


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _judges_apart(before: Mapping[str, JudgeCard], after: Mapping[str, JudgeCard]) -> str:
    told = [", ".join(f"{card.provider} {card.model}" for card in cards.values()) for cards in (before, after)]
    if told[0] != told[1]:
        return " and ".join(told)
    (one, *_), (other, *_) = ([asdict(card) for card in cards.values()] for cards in (before, after))
    fields = [name for name in one if name != "fingerprint" and one[name] != other[name]]
    return f"{told[0]}, {'; '.join(f'{name} {_json(one[name])} and {_json(other[name])}' for name in fields)}"


def _test_set(dataset: Mapping[str, Any]) -> str:
    return f"{dataset.get('name')} {dataset.get('version')} (checksum {dataset.get('checksum')})"


def _standing(run: StoredRun) -> Standing | None:
    drift = run.summary.get("drift")
    return from_json(Drift, json.dumps(drift)).standing if drift else None


def _judges(run: StoredRun, key: str) -> dict[str, JudgeCard]:
    """The judges of the scores of a definition, by fingerprint."""
    return {score.judge.fingerprint: score.judge for score in run.scores.get(key, {}).values() if score.judge}


def _paired(key: str, baseline: StoredRun, candidate: StoredRun, chosen: set[str] | None) -> _Pairs:
    before, after = (
        {
            id: score.value
            for id, score in run.scores.get(key, {}).items()
            if score.value is not None and (chosen is None or id in chosen)
        }
        for run in (baseline, candidate)
    )
    # Sorted, so that the bootstrap draws the same questions whichever run comes first.
    ids = tuple(sorted(before.keys() & after.keys()))
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
        range=(found.definition.range[0], found.definition.range[1]),
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
    looked_at = set(definition.requires)
    return "retrieval" if looked_at & OF_RETRIEVAL and not looked_at & OF_GENERATION else "generation"


def _word(spread: Difference, adjusted: float, sign: int) -> Word:
    if not spread.changed:
        return "unchanged"
    if not spread.beyond_noise or adjusted >= LEVEL:
        return "cannot tell"
    return "better" if sign * spread.delta > 0 else "worse"


def _carries(differences: Sequence[float]) -> int | None:
    """The fewest questions whose changes, the largest first, make up the whole difference."""
    total = fsum(differences)
    if abs(total) <= SAME * max(1, len(differences)):
        return None
    so_far, enough = 0.0, abs(total) * (1 - 1e-9)
    sign = 1 if total > 0 else -1
    for count, change in enumerate(sorted((sign * each for each in differences), reverse=True), 1):
        so_far += change
        if so_far >= enough:
            return count
    raise AssertionError("the gains alone are at least the whole difference")


def _slices(pairs: Mapping[str, _Pairs], groups: Mapping[str, set[str]]) -> Iterable[Slice]:
    for name, members in groups.items():
        for key, found in pairs.items():
            places = [place for place, id in enumerate(found.ids) if id in members]
            if not places or len(places) == len(found.ids):
                continue  # nothing, or everything, which has a row
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
                changed=spread.changed,
            )


def _changes(pairs: Mapping[str, _Pairs], baseline: StoredRun, candidate: StoredRun) -> list[Change]:
    gains: dict[str, dict[str, float]] = {}
    for key, found in pairs.items():
        low, high = found.definition.range
        sign = 1 if found.definition.direction == "higher" else -1
        for id, change in zip(found.ids, found.differences, strict=True):
            if abs(change) > SAME:
                gains.setdefault(id, {})[key] = sign * change / (high - low)
    # The worst single loss first; of equal ones that which lost most in all.
    order = sorted(gains, key=lambda id: (min(0.0, *gains[id].values()), fsum(gains[id].values()), id))
    return [_change(id, gains[id], baseline, candidate) for id in order if id in candidate.questions]


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
        # Verdicts of labels say what the ranking says.
        flips=tuple(
            flip for key, one, other in scores if one and other and one.judge for flip in _flips(key, one, other)
        ),
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
            chunk=f"{chunk.doc_id}:{chunk.start}-{chunk.end}",
            text=chunk.text[:TEXT],
            before=before.get(chunk),
            after=after.get(chunk),
            relevant=_relevant(question, chunk),
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
