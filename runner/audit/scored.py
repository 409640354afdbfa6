"""The definitions of an audit with their scores: measured anew, those of a run, or formulas on stored verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from adapters.base import JudgedScorer, Measure, Scorer, UnknownDefinition, scorer
from adapters.judge import Judge
from adapters.schema import JudgeCard, Score
from runner import console
from runner.audit.comparison import Scores
from runner.audit.findings import Subject
from runner.audit.material import Material
from runner.component import build
from runner.config import usable_judge
from runner.definitions import catalogue, entry
from runner.errors import ConfigError, DataError
from runner.scoring import unguarded, warnings

Specs = Sequence[str | Mapping[str, Any]]


@dataclass(frozen=True)
class Scored:
    """The definitions with their scores by key and question id, and who judged."""

    subjects: tuple[Subject, ...]
    scores: Scores
    judge: JudgeCard | None
    notes: tuple[str, ...]


def scorers(specs: Specs) -> list[Scorer | JudgedScorer]:
    """A scorer for each. Raises ConfigError for one that is unknown or named twice."""
    found: dict[str, Scorer | JudgedScorer] = {}
    for spec in specs:
        try:
            built = scorer(spec)
        except UnknownDefinition as error:
            raise ConfigError(str(error)) from error
        if built.key in found:
            raise ConfigError(f"{built.key} is named twice")
        found[built.key] = built
    return list(found.values())


def judge_for(chosen: Sequence[Scorer | JudgedScorer], config: Mapping[str, Any]) -> Judge | None:
    """The judge that `config` describes, if a definition asks one. Raises ConfigError where it cannot be used."""
    if not any(isinstance(each, JudgedScorer) for each in chosen):
        return None
    return usable_judge(build(config, Judge, "judge"))  # type: ignore[type-abstract]


def measured(
    chosen: Sequence[Scorer | JudgedScorer], judge: Judge | None, material: Material, recording: Path | None = None
) -> Scored:
    """The answers scored with one judge, which must be given where a definition asks one. Raises ConfigError for its
    frozen sample."""
    from runner.drift import graded_again
    from runner.progress import Progress
    from runner.scoring import score

    subjects = [subject(each, each.definition.card()) for each in chosen]
    progress = Progress("audit")
    drift = graded_again(judge, chosen, progress) if judge and judge.frozen else None
    found = score(
        chosen,
        material.questions,
        material.records,
        judge,
        recording=recording,
        progress=progress,
        tell=console.note,
    )
    if judge:
        found = _with_what_frameworks_say(found, chosen, material, judge, recording)
    by_key: dict[str, dict[str, Score]] = {}
    for each in found:
        by_key.setdefault(each.definition, {})[each.question_id] = each
    notes = [str(drift)] if drift else []
    if judge:
        if judge.spent:
            notes.append(f"judge.{judge.spent}: the scores that are missing count as failed")
        notes += warnings(judge, chosen)
    return Scored(*_applicable(subjects, by_key, notes), judge.card if judge else None, tuple(notes))


def _with_what_frameworks_say(
    scores: Sequence[Score],
    chosen: Sequence[Measure],
    material: Material,
    judge: Judge,
    recording: Path | None,
) -> tuple[Score, ...]:
    """The scores, with the framework's own value where a record lacks what the definition needs; one record for each
    definition and reason is asked about."""
    judged = {each.key: each for each in chosen if isinstance(each, JudgedScorer)}
    first: dict[tuple[str, str], int] = {}
    for place, each in enumerate(scores):
        if (
            each.status == "not_applicable"
            and each.native_value is None
            and not each.calls
            and each.definition in judged
        ):
            # What stands behind a colon is of one record: the error for which it has no answer.
            first.setdefault((each.definition, (each.reason or "").partition(":")[0]), place)
    records = {record.question_id: record for record in material.records}
    questions = {question.id: question for question in material.questions}
    jobs = [
        (judged[scores[place].definition], questions[scores[place].question_id], records[scores[place].question_id])
        for place in first.values()
    ]
    told = list(scores)
    for place, value in zip(first.values(), unguarded(jobs, judge, recording), strict=True):
        told[place] = replace(told[place], native_value=value)
    return tuple(told)


def stored(material: Material) -> Scored:
    """The scores that the runs have, of the questions that some judged definition asks."""
    asked = {card["asks"] for card in material.cards.values() if card["calls"] != "0"}
    subjects = [_subject_of_card(key, card) for key, card in material.cards.items() if card["asks"] in asked]
    notes = ["the scores are those that the run has; nothing was asked"]
    return Scored(*_applicable(subjects, material.scores, notes), material.judge, tuple(notes))


def formulas_only(named: Specs, listed: Specs, material: Material) -> Scored:
    """Every formula that can be applied to the verdicts there are: of people, or behind the scores of runs, which are
    taken as they are. named: the definitions that were asked for; empty = `listed` and all in the registry."""
    units = set(material.people)
    for key in material.scores:
        formula = _subject_of_card(key, material.cards[key]).formula
        units |= {formula.units} if formula else set()
    if not units:
        raise DataError(
            "--formulas-only needs verdicts, and there are none: give `claims` in the file, as docs/audit.md shows, or "
            "a run with judged scores"
        )
    chosen: Iterable[Measure] = scorers(named)
    if not named:
        chosen = {each.key: each for each in (*scorers(listed), *catalogue()[0])}.values()
    subjects: list[Subject] = []
    for each in chosen:
        formula = each.arithmetic()
        if formula is None or formula.units not in units:
            continue
        if each.key in material.cards:
            subjects.append(_subject_of_card(each.key, material.cards[each.key]))
        # Parameters that change how a judge is asked make no other formula.
        elif named or not any((each.id, formula) == (there.id, there.formula) for there in subjects):
            subjects.append(subject(each, entry(each)))
    if not subjects:
        raise ConfigError(f"no definition that was named counts {' or '.join(sorted(units))}")
    note = "formulas only: nothing was asked"
    return Scored(tuple(subjects), material.scores, material.judge, (note,))


def subject(measure: Measure, card: Mapping[str, Any]) -> Subject:
    """A definition as the audit takes it. card: see Subject. Raises ConfigError for a range without width."""
    return _with_a_range(
        Subject(
            key=measure.key,
            id=measure.id,
            framework=measure.framework,
            asks=card["asks"],
            unit=measure.unit_judged,
            wording=card["formula"],
            range=measure.value_range,
            direction=measure.direction,
            card=card,
            formula=measure.arithmetic(),
        )
    )


def _with_a_range(subject: Subject) -> Subject:
    low, high = subject.range
    if not low < high:
        raise ConfigError(
            f"{subject.key} has the range {low:g} to {high:g}, in which nothing can be compared; give its value_range "
            "the least and the most that it can be"
        )
    return subject


def _subject_of_card(key: str, card: Mapping[str, Any]) -> Subject:
    try:
        formula = scorer(key).arithmetic()
    except UnknownDefinition:
        formula = None  # somebody's own definition, whose module is not here
    return _with_a_range(
        Subject(
            key=key,
            id=card["id"],
            framework=card["framework"],
            asks=card["asks"],
            unit=card["unit"],
            wording=card["formula"],
            range=tuple(card["range"]),
            direction=card["direction"],
            card=card,
            formula=formula,
        )
    )


def _applicable(subjects: Sequence[Subject], scores: Scores, notes: list[str]) -> tuple[tuple[Subject, ...], Scores]:
    """The subjects but those of questions of which no record has a score, which `notes` tells; all, where none has."""
    by_asks: dict[str, list[Subject]] = {}
    for subject in subjects:
        by_asks.setdefault(subject.asks, []).append(subject)
    kept: list[Subject] = []
    left_out: list[str] = []
    for asks, group in by_asks.items():
        every = [score for subject in group for score in scores.get(subject.key, {}).values()]
        if any(score.status == "computed" for score in every):
            kept += group
            continue
        told = next((score for score in every if score.status == "failed"), every[0] if every else None)
        reason = f" ({told.definition}: {told.reason})" if told else ""
        left_out.append(f"left out: {asks} No record has a score{reason}")
    if not kept:
        return tuple(subjects), scores
    notes += left_out
    return tuple(kept), scores
