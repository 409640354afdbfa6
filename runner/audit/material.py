"""What is audited: finished answers from a file or from runs, with the scores that runs have already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from adapters.schema import JudgeCard, Question, Record, Score
from runner.audit.answers import read_answers
from runner.audit.comparison import Stored
from runner.config import Tracking
from runner.locate import located
from runner.results import read_run


@dataclass(frozen=True)
class Material:
    """Answers of one or several systems; questions and records are parallel.

    systems: by question id, where there are several. people: verdicts of people. scores, cards, judge: what runs have,
    by key of the definition; clash: why the scores of these runs may not be laid side by side. run_ids: of those that
    are tracked.
    """

    source: str
    questions: tuple[Question, ...]
    records: tuple[Record, ...]
    systems: Mapping[str, str] = field(default_factory=dict)
    people: Stored = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    scores: Mapping[str, Mapping[str, Score]] = field(default_factory=dict)
    cards: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    judge: JudgeCard | None = None
    clash: str | None = None


def of_file(path: Path, columns: Mapping[str, str]) -> Material:
    """The answers in a file. columns: our field -> the column. Raises DataError."""
    found = read_answers(path, columns)
    return Material(path.name, found.questions, found.records, found.systems, found.people, found.notes)


def of_runs(names: Sequence[str], settings: Tracking) -> Material:
    """The answers of one run, or of several as systems; question ids then name the run too. Raises ParibusError."""
    questions: list[Question] = []
    records: list[Record] = []
    systems: dict[str, str] = {}
    scores: dict[str, dict[str, Score]] = {}
    cards: dict[str, Mapping[str, Any]] = {}
    judges: dict[str, JudgeCard] = {}
    clash: str | None = None
    for name in names:
        run = read_run(located(name, settings))
        for id, question in run.questions.items():
            unique = f"{id} · {name}" if len(names) > 1 else id
            questions.append(replace(question, id=unique))
            records.append(replace(run.records[id], question_id=unique))
            if len(names) > 1:
                systems[unique] = name
            for key, by_id in run.scores.items():
                if id in by_id:
                    scores.setdefault(key, {})[unique] = replace(by_id[id], question_id=unique)
        for key, card in run.summary["definitions"].items():
            if cards.setdefault(key, card)["fingerprint"] != card["fingerprint"]:
                clash = f"{key} is not the same definition in the runs (fingerprints differ: another version or prompt)"
        if run.summary["judge"]:
            judge = JudgeCard(**run.summary["judge"])
            judges[judge.fingerprint] = judge
    if len(judges) > 1:
        clash = f"the runs were judged by {len(judges)} different judges"
    return Material(
        source=", ".join(names),
        questions=tuple(questions),
        records=tuple(records),
        systems=systems,
        scores=scores,
        cards=cards,
        judge=next(iter(judges.values()), None),
        clash=clash,
    )
