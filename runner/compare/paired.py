"""Two stored runs -> a Comparison: what may be subtracted, the paired figures, and what changed in each question."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from math import fsum
from typing import TYPE_CHECKING, Any, Literal

from adapters.schema import Chunk, Definition, JudgeCard, Question, Ranked, Record, Score, Verdict
from runner.audit.matching import matched
from runner.compare.findings import Change, Comparison, Flip, Moved, NotCompared, Row, Side, Slice, Word
from runner.config import flatten
from runner.drift import moved_between
from runner.errors import ConfigError, DataError
from runner.results import StoredRun
from runner.significance import PValue, holm, permutation, smallest_visible
from runner.stats import Difference, difference
from runner.stored import Columns, same_lines

if TYPE_CHECKING:
    from numpy import float64, int64
    from numpy.typing import NDArray

LEVEL = 0.05
SAME = 1e-12
NOT_SETTINGS = ("trial", "tracking", "sweep", "diagnosis")
"""Parts of a configuration that say where a run stands and what becomes of it, not what it does."""
OF_RETRIEVAL = {"relevant", "labelled", "retrieved", "reranked", "context"}
OF_GENERATION = {"answer", "refused", "citations"}
"""Fields that a definition requires, by what it looks at."""
TEXT = 160
"""Characters of a chunk that moved."""
DETAILED, GAINED = 1_000, 100
"""Questions of which all that changed is told: the first in the order of losses, and of the others those that gained
most."""
POINTS = 2_000
"""Questions of which the values under one definition are given."""


@dataclass(frozen=True)
class _Pairs:
    """The values of one definition on the questions that both runs have one for. places: of these among the questions
    that both runs scored."""

    definition: Definition
    places: NDArray[int64]
    before: NDArray[float64]
    after: NDArray[float64]
    only_before: int
    only_after: int

    @cached_property
    def differences(self) -> NDArray[float64]:
        return self.after - self.before

    @property
    def gains(self) -> NDArray[float64]:
        """By how much the candidate does better."""
        return self.differences if self.definition.direction == "higher" else -self.differences

    def at(self, place: int) -> tuple[float, float]:
        """Both values of a question that has them."""
        row = int(self.places.searchsorted(place))
        return float(self.before[row]), float(self.after[row])


@dataclass(frozen=True)
class _Matched:
    """A baseline and one candidate: the definitions that may be subtracted, the others, and what a reader must know.
    ids: the questions that both scored, sorted, so that the bootstrap draws the same ones whichever run comes first."""

    baseline: StoredRun
    candidate: StoredRun
    names: tuple[str, str]
    ids: Sequence[str]
    pairs: Mapping[str, _Pairs]
    not_compared: tuple[NotCompared, ...]
    notes: tuple[str, ...]


def compare(
    baseline: StoredRun,
    candidate: StoredRun,
    *,
    names: tuple[str, str],
    anyway: bool = False,
    slices: Sequence[str] = (),
    siblings: Mapping[str, StoredRun] = {},
) -> Comparison:
    """Compare two runs question by question.

    Definitions that do not mean the same in both (another fingerprint, judge or test set), and judged ones where the
    judge moved, are named and not subtracted; `anyway` subtracts them all the same and says so. slices: only the
    questions of one of these. siblings: the other variants of the candidate's sweep, by name: p-values are adjusted
    over what is compared of them too. Raises ConfigError for a slice that no question has.
    """
    matched = _matched(baseline, candidate, names, anyway, slices)
    others = {name: _matched(baseline, run, (names[0], name), anyway, slices) for name, run in siblings.items()}
    others = {name: other for name, other in others.items() if other.pairs}
    (found, *_) = _adjusted([matched, *others.values()])
    if not others:
        return _comparison(matched, found, details=True)
    told = f"Holm is over {len(others) + 1} variants of this sweep with its baseline: {families(found.values())}"
    return _comparison(matched, found, details=True, notes=(told,) if found else ())


def compare_sweep(
    baseline: StoredRun, variants: Mapping[str, StoredRun], *, details: bool = True
) -> dict[str, Comparison]:
    """Compare each variant of a sweep, by name, with its baseline.

    p-values are adjusted over all definitions of all variants that are compared (`Row.family` of them). Without
    `details` the comparisons have no slices and no changes, and records are not looked at.
    """
    matched = {name: _matched(baseline, run, ("baseline", name)) for name, run in variants.items()}
    return {
        name: _comparison(matched[name], found, details=details)
        for name, found in zip(matched, _adjusted([*matched.values()]), strict=True)
    }


def detailed(
    found: Comparison, baseline: StoredRun, candidate: StoredRun, of: Collection[str], questions: int
) -> Comparison:
    """A comparison of `compare_sweep` without details, with slices of the definitions `of`, and with as many
    `questions` of those that lost most and of those that gained most."""
    matched = _matched(baseline, candidate, (found.baseline.name, found.candidate.name))
    changes = _changes(matched, _changed(matched), questions, questions)
    return replace(found, slices=tuple(_slices(matched, of)), changes=tuple(changes))


@dataclass(frozen=True, slots=True)
class _Tested:
    p: PValue
    adjusted: float
    family: int


def deciding(run: StoredRun) -> tuple[str, ...]:
    """The definitions that decide: those of the table of the configuration; as there, the first five where it names
    none."""
    return _table(run.config.get("metrics")) or tuple(run.definitions)[:5]


def _adjusted(together: Sequence[_Matched]) -> list[dict[str, _Tested]]:
    """The p-values of each definition of each pair of runs, adjusted: those of the definitions that decide over one
    another, so that what else a run computes costs a decision nothing; the others over all."""
    p_values = {
        (place, key): permutation(found.differences)
        for place, matched in enumerate(together)
        for key, found in matched.pairs.items()
    }
    decide = deciding(together[0].baseline) if together else ()
    tested: dict[tuple[int, str], _Tested] = {}
    for family in ([*p_values], [name for name in p_values if name[1] in decide]):
        adjusted = holm({name: p_values[name].value for name in family})
        tested |= {name: _Tested(p_values[name], adjusted[name], len(family)) for name in family}
    return [{key: tested[place, key] for key in matched.pairs} for place, matched in enumerate(together)]


def families(tested: Iterable[_Tested | Row]) -> str:
    """How many comparisons p-values are adjusted for."""
    of = sorted({each.family for each in tested})
    if len(of) == 1:
        return f"all {of[0]} comparisons"
    return f"the {of[0]} comparisons in definitions of the table, and all {of[-1]} for the others"


def _matched(
    baseline: StoredRun,
    candidate: StoredRun,
    names: tuple[str, str],
    anyway: bool = False,
    slices: Sequence[str] = (),
) -> _Matched:
    notes = [*_other_texts(baseline, candidate)]
    before, after = baseline.columns, candidate.columns
    ids = sorted({*before.ids} & {*after.ids})
    chosen: set[str] | None = None
    if slices:
        chosen = _chosen(slices, candidate.slices)
        notes.append(f"only the {len(chosen)} questions of {' or '.join(slices)} are compared")
    sides = tuple(_aligned(columns, ids, chosen) for columns in (before, after))
    not_compared: list[NotCompared] = []
    pairs: dict[str, _Pairs] = {}
    for key in dict.fromkeys((*baseline.definitions, *candidate.definitions)):
        why = _differences(key, baseline, candidate)
        if why and not (anyway and key in baseline.definitions and key in candidate.definitions):
            not_compared.append(NotCompared(key, tuple(why)))
            continue
        if why:
            notes.append(f"{key} is subtracted although {'; '.join(why)}")
        found = _paired(candidate.definitions[key], *(side.get(key) for side in sides))
        if len(found.places):
            pairs[key] = found
        else:
            not_compared.append(NotCompared(key, ("no question has a value in both runs",)))
    return _Matched(baseline, candidate, names, ids, pairs, tuple(not_compared), tuple(notes))


def _comparison(
    matched: _Matched, tested: Mapping[str, _Tested], *, details: bool, notes: tuple[str, ...] = ()
) -> Comparison:
    baseline, candidate, pairs = matched.baseline, matched.candidate, matched.pairs
    changed = _changed(matched)
    return Comparison(
        baseline=_side(baseline, matched.names[0]),
        candidate=_side(candidate, matched.names[1]),
        questions=len({place for found in pairs.values() for place in found.places.tolist()}),
        changed=_changed_settings(baseline, candidate),
        rows=tuple(_row(key, found, tested[key]) for key, found in pairs.items()),
        not_compared=matched.not_compared,
        slices=tuple(_slices(matched, pairs)) if details else (),
        changes=tuple(_changes(matched, changed, DETAILED, GAINED)) if details else (),
        changed_questions=len(changed.places),
        worse_questions=changed.worse,
        better_questions=changed.better,
        points=_points(matched, changed) if details else {},
        table=_table(candidate.config.get("metrics")),
        notes=(*matched.notes, *notes),
    )


def _chosen(slices: Sequence[str], groups: Mapping[str, Sequence[str]]) -> set[str]:
    if unknown := [name for name in slices if name not in groups]:
        raise ConfigError(f"no question is in a slice {unknown[0]!r}; there are {', '.join(_ordered(groups))}")
    return set().union(*(groups[name] for name in slices))


def _ordered(groups: Mapping[str, Sequence[str]]) -> list[str]:
    """Real and synthetic apart, and tuning and held-out apart, come first."""
    return sorted(groups, key=lambda name: not name.startswith(("origin:", "split:")))


def _other_texts(baseline: StoredRun, candidate: StoredRun) -> Iterable[str]:
    if same_lines(baseline.questions, candidate.questions):
        return
    known = candidate.questions
    other = [id for id, question in baseline.questions.items() if id in known and known[id].text != question.text]
    if other:
        yield f"the text of {len(other)} questions differs, {other[0]} for one: other questions are compared there"


def _table(metrics: Any) -> tuple[str, ...]:
    table = metrics.get("table") if isinstance(metrics, dict) else None
    return tuple(key for key in table if isinstance(key, str)) if isinstance(table, list) else ()


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
    judges = [run.columns.judges.get(key, {}) for run in (baseline, candidate)]
    if all(judges) and judges[0].keys() != judges[1].keys():
        why.append(f"the judge differs: {_judges_apart(*judges)}")
    datasets = [run.summary["dataset"] for run in (baseline, candidate)]
    if datasets[0].get("checksum") != datasets[1].get("checksum"):
        why.append(f"the dataset differs: {' and '.join(_test_set(dataset) for dataset in datasets)}")
    if before.calls != "0" and (moved := moved_between(baseline.standing, candidate.standing)):
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


def _aligned(columns: Columns, ids: Sequence[str], chosen: set[str] | None) -> dict[str, tuple[NDArray[float64], int]]:
    """By definition, the values in the order of `ids`, NaN = none, and how many there are in all."""
    import numpy as np

    place = {id: place for place, id in enumerate(columns.ids)}
    order = np.array([place[id] for id in ids], dtype=np.int64)
    found = {}
    wanted = np.array([chosen is None or id in chosen for id in columns.ids], dtype=np.bool_)
    for key, every in columns.values.items():
        values = np.where(wanted, every, np.nan)
        found[key] = values[order], int(np.count_nonzero(~np.isnan(values)))
    return found


def _paired(
    definition: Definition, before: tuple[NDArray[float64], int] | None, after: tuple[NDArray[float64], int] | None
) -> _Pairs:
    import numpy as np

    none: tuple[NDArray[float64], int] = (np.full(len((before or after or ((), 0))[0]), np.nan), 0)
    (one, of_one), (other, of_other) = before or none, after or none
    places = np.flatnonzero(~(np.isnan(one) | np.isnan(other)))
    return _Pairs(definition, places, one[places], other[places], of_one - len(places), of_other - len(places))


def _row(key: str, found: _Pairs, tested: _Tested) -> Row:
    import numpy as np

    spread = difference(found.differences)
    sign = 1 if found.definition.direction == "higher" else -1
    wins, losses = int(np.count_nonzero(found.gains > SAME)), int(np.count_nonzero(found.gains < -SAME))
    return Row(
        definition=key,
        asks=found.definition.asks,
        about=about_of(found.definition),
        direction=found.definition.direction,
        range=(found.definition.range[0], found.definition.range[1]),
        baseline=float(found.before.mean()),
        candidate=float(found.after.mean()),
        delta=spread.delta,
        low=spread.low,
        high=spread.high,
        p=tested.p,
        adjusted=tested.adjusted,
        family=tested.family,
        wins=wins,
        ties=len(found.places) - wins - losses,
        losses=losses,
        carries=_carries(found.differences),
        visible=smallest_visible(found.differences),
        n=len(found.places),
        only_baseline=found.only_before,
        only_candidate=found.only_after,
        word=_word(spread, tested.adjusted, sign),
    )


def about_of(definition: Definition) -> Literal["retrieval", "generation"]:
    """See Row.about."""
    looked_at = set(definition.requires)
    return "retrieval" if looked_at & OF_RETRIEVAL and not looked_at & OF_GENERATION else "generation"


def _word(spread: Difference, adjusted: float, sign: int) -> Word:
    if not spread.changed:
        return "unchanged"
    if not spread.beyond_noise or adjusted >= LEVEL:
        return "cannot tell"
    return "better" if sign * spread.delta > 0 else "worse"


def _carries(differences: NDArray[float64]) -> int | None:
    """The fewest questions whose changes, the largest first, make up the whole difference."""
    import numpy as np

    total = fsum(differences)
    if abs(total) <= SAME * max(1, len(differences)):
        return None
    largest_first = -np.sort(-differences if total > 0 else differences)
    # The gains alone are at least the whole difference, so that one of the sums is.
    return int(np.argmax(np.cumsum(largest_first) >= abs(total) * (1 - 1e-9))) + 1


def _slices(matched: _Matched, of: Collection[str]) -> Iterable[Slice]:
    import numpy as np

    place = {id: place for place, id in enumerate(matched.ids)}
    for name in _ordered(matched.candidate.slices):
        within = np.zeros(len(place), dtype=np.bool_)
        within[[place[id] for id in matched.candidate.slices[name] if id in place]] = True
        for key, found in matched.pairs.items():
            if key not in of:
                continue
            here = within[found.places]
            n = int(np.count_nonzero(here))
            if n in (0, len(here)):
                continue  # nothing, or everything, which has a row
            spread = difference(found.differences[here])
            yield Slice(
                slice=name,
                definition=key,
                n=n,
                baseline=float(found.before[here].mean()),
                candidate=float(found.after[here].mean()),
                delta=spread.delta,
                low=spread.low,
                high=spread.high,
                changed=spread.changed,
            )


@dataclass(frozen=True)
class _Changed:
    """The questions with a changed score, the worst loss first. places: among the questions that both runs scored;
    gains: a row a definition, a share of its range for each of these, 0 where it did not change; worse, better: how
    many have a score that got worse, which are the first ones, and better."""

    places: NDArray[int64]
    gains: NDArray[float64]
    worse: int
    better: int


def _changed(matched: _Matched) -> _Changed:
    import numpy as np

    shares = np.zeros((len(matched.pairs), len(matched.ids)))
    for row, found in enumerate(matched.pairs.values()):
        low, high = found.definition.range
        shares[row, found.places] = np.where(np.abs(found.differences) > SAME, found.gains / (high - low), 0.0)
    worst = shares.min(axis=0, initial=0.0)
    places = np.flatnonzero(shares.any(axis=0))
    # The worst single loss first; of equal ones that which lost most in all, to the last digit but three, because
    # their sums differ by the order of additions; then by id.
    total = shares.sum(axis=0).round(12)
    places = places[np.lexsort((places, total[places], worst[places]))]
    better = np.count_nonzero((shares > 0).any(axis=0))
    return _Changed(places, shares[:, places], int(np.count_nonzero(worst < 0)), int(better))


def _points(matched: _Matched, changed: _Changed) -> dict[str, tuple[tuple[str, float, float], ...]]:
    import numpy as np

    found = {}
    for (key, pairs), gains in zip(matched.pairs.items(), changed.gains, strict=True):
        places = changed.places[gains != 0]
        if len(places) > POINTS:
            places = places[np.linspace(0, len(places) - 1, POINTS).astype(np.int64)]
        at = np.searchsorted(pairs.places, places)
        sides = zip(places.tolist(), pairs.before[at].tolist(), pairs.after[at].tolist(), strict=True)
        found[key] = tuple((matched.ids[place], before, after) for place, before, after in sides)
    return found


def _changes(matched: _Matched, changed: _Changed, first: int, gained: int) -> Iterable[Change]:
    import numpy as np

    baseline, candidate = matched.baseline, matched.candidate
    best = changed.gains.max(axis=0, initial=0.0)[first:]
    rows = [*range(len(changed.places))][:first] + (first + np.argsort(-best, kind="stable")[:gained]).tolist()
    for row in rows:
        place = int(changed.places[row])
        id = matched.ids[place]
        if id in candidate.questions:
            gains = {key: gain for key, gain in zip(matched.pairs, changed.gains[:, row].tolist(), strict=True) if gain}
            yield _change(id, {key: matched.pairs[key].at(place) for key in gains}, gains, baseline, candidate)


def _change(
    id: str,
    values: Mapping[str, tuple[float, float]],
    gains: Mapping[str, float],
    baseline: StoredRun,
    candidate: StoredRun,
) -> Change:
    question = candidate.questions[id]
    before, after = _record(baseline, id), _record(candidate, id)
    # Verdicts of labels say what the ranking says.
    judged = [key for key in gains if baseline.columns.judges.get(key)]
    verdicts = [(key, baseline.scores[key].get(id), candidate.scores[key].get(id)) for key in judged]
    return Change(
        id=id,
        question=question.text,
        slices=question.slices,
        scores=values,
        worst=min(0.0, *gains.values()),
        best=max(0.0, *gains.values()),
        ranking=_moved(question, _ranks(before.reranked), _ranks(after.reranked)),
        context=_moved(question, _places(before.context), _places(after.context)),
        before=before.answer,
        after=after.answer,
        flips=tuple(
            flip for key, one, other in verdicts if one and other and one.judge for flip in _flips(key, one, other)
        ),
    )


def _record(run: StoredRun, id: str) -> Record:
    if id not in run.records:
        raise DataError(f"the result folder {run.folder} has scores of {id!r} and no record of it; make the run again")
    return run.records[id]


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
