"""Scores of several definitions laid side by side: rows, pairs, cross tables, records and hazards.

All of it is arithmetic on scores and their evidence; nothing here asks a judge or reads a file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean

from adapters.formulas import Formula
from adapters.schema import JudgeCard, Question, Record, Score, Verdict
from runner.audit.findings import (
    PEOPLE,
    Audit,
    Claim,
    Cross,
    Family,
    Group,
    Hazard,
    Pair,
    Row,
    Subject,
    Systems,
    View,
    Why,
    Word,
)
from runner.audit.matching import SIMILAR, matched
from runner.audit.parts import AGREES, Evidence, Parts, applied, parts
from runner.definitions import differences
from runner.stats import difference

THRESHOLD = 0.5

Scores = Mapping[str, Mapping[str, Score]]
"""Scores by key of the definition, then by question id."""
Stored = Mapping[str, Mapping[str, tuple[Verdict, ...]]]
"""Verdicts of people: by units (adapters.formulas), then by question id."""


def audit(
    subjects: Sequence[Subject],
    questions: Sequence[Question],
    records: Sequence[Record],
    scores: Scores,
    *,
    source: str,
    people: Stored | None = None,
    systems: Mapping[str, str] | None = None,
    judge: JudgeCard | None = None,
    threshold: float = THRESHOLD,
    similar: float = SIMILAR,
    families: Sequence[Family] = (),
    notes: Sequence[str] = (),
) -> Audit:
    """Lay the scores of `subjects` side by side. questions and records run in parallel; systems: by question id, where
    several systems answered. people: verdicts beside those of the definitions, or in their place where there are none.
    """
    groups: dict[str, list[Subject]] = {}
    for subject in subjects:
        groups.setdefault(subject.asks, []).append(subject)
    answered = {record.question_id: record.answer for record in records}
    table = _Table(
        {question.id: question for question in questions}, answered, systems or {}, people or {}, threshold, similar
    )
    return Audit(
        source=source,
        records=len(records),
        systems=tuple(dict.fromkeys((systems or {}).values())),
        judge=judge,
        threshold=threshold,
        similar=similar,
        groups=tuple(table.group(asks, found, scores) for asks, found in groups.items()),
        families=tuple(families),
        notes=tuple(notes),
    )


@dataclass(frozen=True)
class _Source:
    """Where verdicts on one kind of unit come from: a definition, under its key and with its formula, or people."""

    name: str
    units: str
    formula: Formula | None
    evidence: Mapping[str, Evidence]


@dataclass(frozen=True)
class _Table:
    """What all groups look at."""

    questions: Mapping[str, Question]
    answers: Mapping[str, str | None]
    systems: Mapping[str, str]
    people: Stored
    threshold: float
    similar: float

    def group(self, asks: str, subjects: Sequence[Subject], scores: Scores) -> Group:
        """One question asked, with all that is found about it."""
        own, odd = _own_sources(subjects, scores)
        sources = [*own.values(), *self._of_people(subjects)]
        pairs = list(combinations(subjects, 2))
        found = {
            (left.key, right.key): self._parts(left, own[left.key], right, own[right.key])
            for left, right in pairs
            if _why_not(left, right) is None
        }
        return Group(
            asks=asks,
            rows=tuple(self._row(subject, scores.get(subject.key, {})) for subject in subjects),
            pairs=tuple(self._pair(left, right, scores, found.get((left.key, right.key), {})) for left, right in pairs),
            crosses=tuple(self._crosses(subjects, own, sources)),
            views=tuple(self._views(subjects, scores, sources, found)),
            hazards=(*_hazards(subjects, scores), *odd),
        )

    def _of_people(self, subjects: Sequence[Subject]) -> Iterable[_Source]:
        units = {subject.formula.units for subject in subjects if subject.formula}
        for kind, by_id in self.people.items():
            if kind in units:
                found = {id: Evidence(PEOPLE, verdicts) for id, verdicts in by_id.items() if verdicts}
                yield _Source(PEOPLE, kind, None, found)

    def _row(self, subject: Subject, scores: Mapping[str, Score]) -> Row:
        values = [score.value for score in scores.values() if score.value is not None]
        failed = [score for score in scores.values() if score.status == "failed"]
        spread = difference(values) if values else None
        return Row(
            definition=subject.key,
            framework=subject.framework,
            unit=subject.unit,
            formula=subject.wording,
            range=subject.range,
            direction=subject.direction,
            mean=spread.delta if spread else None,
            low=spread.low if spread else None,
            high=spread.high if spread else None,
            n=len(values),
            failed=len(failed),
            not_applicable=sum(score.status == "not_applicable" for score in scores.values()),
            below=sum(subject.share(value) < self.threshold for value in values),
            first_failure=failed[0].reason if failed else None,
        )

    def _pair(self, left: Subject, right: Subject, scores: Scores, found: Mapping[str, Parts]) -> Pair:
        one, other = _shares(left, scores), _shares(right, scores)
        both = [id for id in one if id in other]
        x, y = [one[id] for id in both], [other[id] for id in both]
        apart = [a - b for a, b in zip(x, y, strict=True)]
        spread = difference(apart) if apart else None
        sides = [(a >= self.threshold) != (b >= self.threshold) for a, b in zip(x, y, strict=True)]
        spearman, kendall = _correlated(x, y)
        why_not = _why_not(left, right)
        if why_not is None and not found:
            why_not = "no record has a value and verdicts of both"
        return Pair(
            left=left.key,
            right=right.key,
            n=len(both),
            difference=spread.delta if spread else None,
            low=spread.low if spread else None,
            high=spread.high if spread else None,
            apart=fmean(map(abs, apart)) if apart else None,
            sides=fmean(sides) if sides else None,
            spearman=spearman,
            kendall=kendall,
            systems=self._by_system(one, other, both),
            why=_why(found.values()) if found else None,
            why_not=why_not,
            paper=differences(left.card, right.card),
        )

    def _by_system(self, one: Mapping[str, float], other: Mapping[str, float], ids: Sequence[str]) -> Systems | None:
        members: dict[str, list[str]] = {}
        for id in ids:
            if id in self.systems:
                members.setdefault(self.systems[id], []).append(id)
        if len(members) < 2:
            return None
        means = {
            system: (fmean(one[id] for id in found), fmean(other[id] for id in found))
            for system, found in sorted(members.items())
        }
        left, right = ([pair[side] for pair in means.values()] for side in (0, 1))
        return Systems(
            means=means,
            kendall=_correlated(left, right)[1],
            left_best=tuple(system for system, pair in means.items() if max(left) - pair[0] < AGREES),
            right_best=tuple(system for system, pair in means.items() if max(right) - pair[1] < AGREES),
        )

    def _parts(self, left: Subject, one: _Source, right: Subject, other: _Source) -> dict[str, Parts]:
        assert left.judged
        assert right.judged
        return {
            id: parts(left.judged, evidence, right.judged, other.evidence[id], self.similar)
            for id, evidence in one.evidence.items()
            if id in other.evidence
        }

    def _crosses(
        self, subjects: Sequence[Subject], own: Mapping[str, _Source], sources: Sequence[_Source]
    ) -> Iterable[Cross]:
        kinds: dict[str, list[Subject]] = {}
        for subject in subjects:
            if subject.formula:
                kinds.setdefault(subject.formula.units, []).append(subject)
        for units, counting in kinds.items():
            speaking = [source for source in sources if source.units == units and source.evidence]
            ids = (
                [id for id in speaking[0].evidence if all(id in source.evidence for source in speaking)]
                if speaking
                else []
            )
            alone = len(counting) == len(speaking) == 1 and speaking[0].name == counting[0].key
            if not ids or alone:
                continue
            cells = [
                [self._cell(source, subject, own[subject.key], ids) for subject in counting] for source in speaking
            ]
            yield Cross(
                units=units,
                sources=tuple(source.name for source in speaking),
                formulas=tuple(subject.key for subject in counting),
                n=len(ids),
                cells=tuple(tuple((low + high) / 2 for low, high in row) for row in cells),
                low=tuple(tuple(low for low, _ in row) for row in cells),
                high=tuple(tuple(high for _, high in row) for row in cells),
            )

    def _cell(self, source: _Source, subject: Subject, beside: _Source, ids: Sequence[str]) -> tuple[float, float]:
        """The formula of `subject` on the verdicts of `source`, the least and the most that the mean can be. beside:
        the subject's own verdicts, which tell what a coarser word of the source means on the same unit."""
        assert subject.judged
        bounds = []
        for id in ids:
            verdicts, counterparts = source.evidence[id].verdicts, list[Verdict | None]()
            if source is not beside and id in beside.evidence:
                others = beside.evidence[id].verdicts
                to = matched(verdicts, others, self.similar)
                counterparts = [others[to[place]] if place in to else None for place in range(len(verdicts))]
            bounds.append(applied(subject.judged, source.evidence[id], counterparts))
        return fmean(bound.low for bound in bounds), fmean(bound.high for bound in bounds)

    def _views(
        self,
        subjects: Sequence[Subject],
        scores: Scores,
        sources: Sequence[_Source],
        found: Mapping[tuple[str, str], Mapping[str, Parts]],
    ) -> Iterable[View]:
        by_key = {subject.key: subject for subject in subjects}
        for id, question in self.questions.items():
            mine = {subject.key: scores[subject.key][id] for subject in subjects if id in scores.get(subject.key, {})}
            shares = [by_key[key].share(score.value) for key, score in mine.items() if score.value is not None]
            yield View(
                id=id,
                question=question.text,
                answer=self.answers.get(id),
                system=self.systems.get(id),
                values={key: score.value for key, score in mine.items()},
                reasons={key: score.reason for key, score in mine.items() if score.value is None and score.reason},
                claims=tuple(self._claims(id, sources)),
                parts={f"{left} | {right}": by_id[id] for (left, right), by_id in found.items() if id in by_id},
                spread=max(shares) - min(shares) if shares else 0.0,
            )

    def _claims(self, id: str, sources: Sequence[_Source]) -> Iterable[Claim]:
        """The units of all sources, those that are alike in one row: each source's are matched to the rows there are,
        and what has no counterpart makes a new row."""
        kinds: dict[str, list[tuple[Verdict, dict[str, Word]]]] = {}
        for source in sources:
            if id not in source.evidence:
                continue
            rows = kinds.setdefault(source.units, [])
            verdicts = source.evidence[id].verdicts
            to = matched(verdicts, [verdict for verdict, _ in rows], self.similar)
            for place, verdict in enumerate(verdicts):
                credit = source.formula.own(verdict) if source.formula else None
                word = Word(verdict.unit, verdict.native, verdict.ours, verdict.reason, credit)
                if place in to:
                    rows[to[place]][1][source.name] = word
                else:
                    rows.append((verdict, {source.name: word}))
        for units, found in kinds.items():
            for verdict, words in found:
                yield Claim(verdict.unit, units, words)


def _own_sources(subjects: Sequence[Subject], scores: Scores) -> tuple[dict[str, _Source], list[Hazard]]:
    """The verdicts of each definition that has a formula, where the formula gives its score; where it does not, a
    hazard instead. Of a judgement in several samples the verdicts are those of one and the score is the mean of all."""
    found: dict[str, _Source] = {}
    broken: list[Hazard] = []
    for subject in subjects:
        if subject.judged is None:
            continue
        by_id: dict[str, Evidence] = {}
        odd: list[str] = []
        for id, score in scores.get(subject.key, {}).items():
            if score.value is None or not score.evidence or score.samples > 1:
                continue
            evidence = Evidence(subject.id, score.evidence)
            if abs(applied(subject.judged, evidence).middle - score.value) <= AGREES:
                by_id[id] = evidence
            else:
                odd.append(id)
        if odd:
            what = "its formula, on its own verdicts, does not give its score, so that the difference has no parts here"
            broken.append(Hazard(subject.key, what, None, tuple(odd)))
        found[subject.key] = _Source(subject.key, subject.judged.formula.units, subject.judged.formula, by_id)
    return found, broken


def _why_not(left: Subject, right: Subject) -> str | None:
    """Why the difference of two definitions has no parts."""
    for subject in (left, right):
        if subject.formula is None:
            return f"{subject.key} does not count verdicts on units ({subject.wording})"
    assert left.formula
    assert right.formula
    if left.formula.units != right.formula.units:
        return f"they judge different things: {left.formula.units}; {right.formula.units}"
    return None


def _why(found: Iterable[Parts]) -> Why:
    every = list(found)

    def mean(of: Callable[[Parts], float]) -> float:
        return fmean(map(of, every))

    def count(of: Callable[[Parts], int]) -> int:
        return sum(map(of, every))

    return Why(
        n=len(every),
        difference=mean(lambda part: part.cross[0][0] - part.cross[1][1]),
        claims=mean(lambda part: part.claims),
        verdicts=mean(lambda part: part.verdicts),
        formula=mean(lambda part: part.formula),
        matched=count(lambda part: part.matched),
        only_left=count(lambda part: part.only_left),
        only_right=count(lambda part: part.only_right),
        undetermined=count(lambda part: part.undetermined),
        slack=mean(lambda part: part.slack),
    )


def _shares(subject: Subject, scores: Scores) -> dict[str, float]:
    return {
        id: subject.share(score.value) for id, score in scores.get(subject.key, {}).items() if score.value is not None
    }


def _correlated(x: Sequence[float], y: Sequence[float]) -> tuple[float | None, float | None]:
    from scipy.stats import kendalltau, spearmanr

    if len(x) < 2 or len(set(x)) < 2 or len(set(y)) < 2:
        return None, None
    return float(spearmanr(x, y).statistic), float(kendalltau(x, y).statistic)


def _hazards(subjects: Sequence[Subject], scores: Scores) -> Iterable[Hazard]:
    """Scores without a value, by what was wrong; counts in the sentences do not make another hazard."""
    for subject in subjects:
        alike: dict[str, list[Score]] = {}
        for score in scores.get(subject.key, {}).values():
            if score.value is None:
                alike.setdefault(re.sub(r"\d+(\.\d+)?", "#", score.reason or ""), []).append(score)
        for found in alike.values():
            natives = [score.native_value for score in found if score.native_value is not None]
            yield Hazard(
                definition=subject.key,
                what=f"{found[0].status.replace('_', ' ')}: {found[0].reason}",
                native=(min(natives), max(natives)) if natives else None,
                ids=tuple(score.question_id for score in found),
            )
