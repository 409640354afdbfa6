"""Scores of several definitions laid side by side: rows, pairs, cross tables, records and hazards.

All of it is arithmetic on scores and their evidence; nothing here asks a judge or reads a file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from statistics import fmean

from adapters.formulas import Bounds, Formula
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
from runner.audit.parts import AGREES, Evidence, Judged, Parts, applied, credited, parts, same_evidence
from runner.definitions import differences
from runner.stats import Difference, difference

THRESHOLD = 0.5
UNJUDGED = "people gave no verdict on anything in it"
DETAILED = 1_000
"""Records of each question, those of the largest spread, that are kept with claims and parts; of the others, the values
only."""

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
    several systems answered. people: verdicts beside those of the definitions.

    Without any score, each formula is applied to the verdicts of people: what a definition would say if its judge
    agreed with them on every unit.
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
        people = self._of_people(subjects)
        if not any(scores.get(subject.key) for subject in subjects):
            return self._on_people(asks, subjects, people)
        own, odd = _own_sources(subjects, scores)
        sources = [*own.values(), *people.values()]
        found = {
            (left.key, right.key): self._parts(left, own[left.key], right, own[right.key])
            for left, right in combinations(subjects, 2)
            if _why_not(left, right) is None
        }
        return Group(
            asks=asks,
            rows=tuple(self._row(subject, scores.get(subject.key, {})) for subject in subjects),
            pairs=tuple(self._pairs(subjects, scores, found)),
            crosses=tuple(self._crosses(subjects, own, sources)),
            views=tuple(self._views(subjects, scores, sources, {}, found)),
            hazards=(*_hazards(subjects, scores), *odd),
        )

    def _on_people(self, asks: str, subjects: Sequence[Subject], people: Mapping[str, _Source]) -> Group:
        """What each formula makes of the verdicts of people, in the place of scores."""
        readers = {s.key: s for s in subjects if s.formula and s.formula.units in people}
        read = {key: _read(subject, people) for key, subject in readers.items()}
        scores = {
            key: {
                id: Score(id, key, "", by_id[id].middle)
                if id in by_id
                else Score(id, key, "", None, "not_applicable", UNJUDGED)
                for id in self.questions
            }
            for key, by_id in read.items()
        }
        same = cache(same_evidence)  # of thousands of records, few differ in this
        found = {
            (left.key, right.key): {
                id: same(_share_of(left, bounds), _share_of(right, read[right.key][id]), units)
                for id, (bounds, units) in _counted(left, read, people)
            }
            for left, right in combinations(readers.values(), 2)
            if _why_not(left, right, own=False) is None
        }
        return Group(
            asks=asks,
            rows=tuple(self._row(subject, scores.get(subject.key, {})) for subject in subjects),
            pairs=tuple(self._pairs(subjects, scores, found)),
            crosses=tuple(_cross(source, readers.values(), read) for source in people.values() if source.evidence),
            views=tuple(self._views(subjects, scores, [*people.values()], readers, found)),
            hazards=tuple(_hazards(subjects, scores)),
        )

    def _pairs(
        self,
        subjects: Sequence[Subject],
        scores: Scores,
        found: Mapping[tuple[str, str], Mapping[str, Parts]],
    ) -> Iterable[Pair]:
        shares = {subject.key: _shares(subject, scores) for subject in subjects}
        for left, right in combinations(subjects, 2):
            yield self._pair(left, right, shares, found.get((left.key, right.key), {}))

    def _of_people(self, subjects: Sequence[Subject]) -> dict[str, _Source]:
        units = {subject.formula.units for subject in subjects if subject.formula}
        return {
            kind: _Source(PEOPLE, kind, None, {id: Evidence(PEOPLE, found) for id, found in by_id.items() if found})
            for kind, by_id in self.people.items()
            if kind in units
        }

    def _row(self, subject: Subject, scores: Mapping[str, Score]) -> Row:
        by_id = {id: score.value for id, score in scores.items() if score.value is not None}
        values = list(by_id.values())
        failed = [score for score in scores.values() if score.status == "failed"]
        spread = self._spread(by_id)
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
            below=sum(not self._good(subject.share(value)) for value in values),
            first_failure=failed[0].reason if failed else None,
            id=subject.id,
            units=subject.formula.units if subject.formula else None,
            credits=dict(subject.formula.words) if subject.formula else {},
        )

    def _pair(
        self, left: Subject, right: Subject, shares: Mapping[str, Mapping[str, float]], found: Mapping[str, Parts]
    ) -> Pair:
        one, other = shares[left.key], shares[right.key]
        both = [id for id in one if id in other]
        x, y = [one[id] for id in both], [other[id] for id in both]
        apart = [a - b for a, b in zip(x, y, strict=True)]
        spread = self._spread(dict(zip(both, apart, strict=True)))
        sides = [self._good(a) != self._good(b) for a, b in zip(x, y, strict=True)]
        spearman, kendall = _correlated(x, y)
        why_not = None if found else _why_not(left, right)
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

    def _spread(self, values: Mapping[str, float]) -> Difference | None:
        """The mean with its interval. Where several systems answered, their answers to one question are drawn together:
        they are no more independent than the question makes them."""
        if not values:
            return None
        if not self.systems:
            return difference(list(values.values()))
        by_question: dict[str, list[float]] = {}
        for id, value in values.items():
            by_question.setdefault(self.questions[id].text, []).append(value)
        return replace(difference([fmean(found) for found in by_question.values()]), delta=fmean(values.values()))

    def _good(self, share: float) -> bool:
        """Whether a value reaches the threshold; Ragas's 0.4999999999 is 0.5."""
        return share >= self.threshold - AGREES

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
        in_shares = _in_shares(left), _in_shares(right)
        return {
            id: parts(in_shares[0], evidence, in_shares[1], other.evidence[id], self.similar)
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
        readers: Mapping[str, Subject],
        found: Mapping[tuple[str, str], Mapping[str, Parts]],
    ) -> Iterable[View]:
        """All records; those of the largest spread in detail. readers: see _claims."""
        shares = [_shares(subject, scores) for subject in subjects]
        spreads = {id: _spread([by_id[id] for by_id in shares if id in by_id]) for id in self.questions}
        detailed = set(sorted(spreads, key=lambda id: -spreads[id])[:DETAILED])
        for id, question in self.questions.items():
            mine = {subject.key: scores[subject.key][id] for subject in subjects if id in scores.get(subject.key, {})}
            shown = id in detailed
            yield View(
                id=id,
                question=question.text if shown else None,
                answer=self.answers.get(id) if shown else None,
                system=self.systems.get(id),
                values={key: score.value for key, score in mine.items()},
                reasons={key: score.reason for key, score in mine.items() if score.value is None and score.reason},
                claims=tuple(self._claims(id, sources, readers)) if shown else (),
                parts={f"{left} | {right}": by_id[id] for (left, right), by_id in found.items() if id in by_id}
                if shown
                else {},
                spread=spreads[id],
                detailed=shown,
            )

    def _claims(self, id: str, sources: Sequence[_Source], readers: Mapping[str, Subject]) -> Iterable[Claim]:
        """The units of all sources, those that are alike in one row: each source's are matched to the rows there are,
        and what has no counterpart makes a new row. readers: definitions whose formulas read the verdicts of people."""
        kinds: dict[str, list[tuple[Verdict, dict[str, Word]]]] = {}
        for source in sources:
            if id not in source.evidence:
                continue
            rows = kinds.setdefault(source.units, [])
            verdicts = source.evidence[id].verdicts
            to = matched(verdicts, [verdict for verdict, _ in rows], self.similar) if rows else {}
            for place, verdict in enumerate(verdicts):
                by = source.evidence[id].by
                credit = credited(Judged(by, source.formula), verdict, by).middle if source.formula else None
                words = {source.name: _word(verdict, credit)}
                for key, reader in readers.items():
                    if reader.formula and reader.formula.units == source.units:
                        words[key] = _word(verdict, reader.formula.credit(verdict.ours).middle)
                if place in to:
                    rows[to[place]][1].update(words)
                else:
                    rows.append((verdict, words))
        for units, found in kinds.items():
            for verdict, words in found:
                yield Claim(verdict.unit, units, words)


def _word(verdict: Verdict, credit: float | None) -> Word:
    return Word(verdict.unit, verdict.native, verdict.ours, verdict.reason, credit)


def _read(subject: Subject, people: Mapping[str, _Source]) -> dict[str, Bounds]:
    """The formula on the verdicts of people, by question id. The same words in the same order are computed once."""
    assert subject.judged
    known: dict[tuple[str | None, ...], Bounds] = {}
    found = {}
    for id, evidence in people[subject.judged.formula.units].evidence.items():
        words = tuple(verdict.ours for verdict in evidence.verdicts)
        if words not in known:
            known[words] = applied(subject.judged, evidence)
        found[id] = known[words]
    return found


def _counted(
    subject: Subject, read: Mapping[str, Mapping[str, Bounds]], people: Mapping[str, _Source]
) -> Iterable[tuple[str, tuple[Bounds, int]]]:
    assert subject.formula
    evidence = people[subject.formula.units].evidence
    return ((id, (bounds, len(evidence[id].verdicts))) for id, bounds in read[subject.key].items())


def _in_shares(subject: Subject) -> Judged:
    """The formula of a definition that has one, with its values as shares of the range, 1 = best."""
    assert subject.formula
    formula = subject.formula
    if (subject.range, subject.direction) == ((0.0, 1.0), "higher"):
        return Judged(subject.id, formula)
    return Judged(subject.id, replace(formula, combine=lambda credits: subject.share(formula.combine(credits))))


def _share_of(subject: Subject, bounds: Bounds) -> Bounds:
    """Values that are left open, as shares of the range."""
    return Bounds(*sorted(map(subject.share, bounds)))


def _cross(people: _Source, readers: Iterable[Subject], read: Mapping[str, Mapping[str, Bounds]]) -> Cross:
    """The one row of the cross table that the verdicts of people make."""
    counting = [reader.key for reader in readers if reader.formula and reader.formula.units == people.units]
    low, high = (tuple(fmean(bounds[side] for bounds in read[key].values()) for key in counting) for side in (0, 1))
    return Cross(
        units=people.units,
        sources=(PEOPLE,),
        formulas=tuple(counting),
        n=len(people.evidence),
        cells=(tuple((least + most) / 2 for least, most in zip(low, high, strict=True)),),
        low=(low,),
        high=(high,),
    )


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


def _why_not(left: Subject, right: Subject, own: bool = True) -> str | None:
    """Why the difference of two definitions has no parts. own: on verdicts of their own, not on those of people."""
    for subject in (left, right):
        if subject.formula is None:
            return f"{subject.key} does not count verdicts on units ({subject.wording})"
    assert left.formula
    assert right.formula
    if left.formula.units != right.formula.units:
        return f"they judge different things: {left.formula.units}; {right.formula.units}"
    for subject in (left, right) if own else ():
        if subject.formula and not subject.formula.named:
            return f"the verdicts of {subject.key} do not say which {subject.unit} they are about"
    return None


def _why(found: Iterable[Parts]) -> Why:
    every = list(found)

    def mean(of: Callable[[Parts], float]) -> float:
        return fmean(map(of, every))

    def count(of: Callable[[Parts], int]) -> int:
        return sum(map(of, every))

    return Why(
        n=len(every),
        left=mean(lambda part: part.cross[0][0]),
        right=mean(lambda part: part.cross[1][1]),
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


def _spread(values: Sequence[float]) -> float:
    return max(values) - min(values) if values else 0.0


def _shares(subject: Subject, scores: Scores) -> dict[str, float]:
    return {
        id: subject.share(score.value) for id, score in scores.get(subject.key, {}).items() if score.value is not None
    }


def _correlated(x: Sequence[float], y: Sequence[float]) -> tuple[float | None, float | None]:
    """Spearman and Kendall (tau-b); None where one of them is constant. Values that agree are ties: what Ragas adds to
    a denominator would make an order of perfect scores."""
    from scipy.stats import kendalltau, spearmanr

    ranks = _ranks(x), _ranks(y)
    if any(len(set(side)) < 2 for side in ranks):
        return None, None
    return float(spearmanr(*ranks).statistic), float(kendalltau(*ranks).statistic)


def _ranks(values: Sequence[float]) -> list[int]:
    """The place of each value in their order, from 0, one for values that agree with the next lower."""
    places: dict[float, int] = {}
    before = None
    for value in sorted(set(values)):
        places[value] = len(places) and places[before] + (value - before > AGREES)  # type: ignore[index,operator]
        before = value
    return [places[value] for value in values]


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
