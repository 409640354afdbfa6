"""What is audited: finished answers from a file or from runs, with the scores that runs have already."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from adapters.schema import SCHEMA_VERSION, JudgeCard, Question, Record, Score
from runner.audit.answers import read_answers
from runner.audit.comparison import Stored
from runner.config import Tracking
from runner.errors import ConfigError, DataError
from runner.locate import LATEST, located
from runner.results import StoredRun, read_run


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
    if twice := [name for name, n in Counter(names).items() if n > 1]:
        raise ConfigError(f"--run names {twice[0]} twice; keep one")
    sources: list[str] = []
    for name in names:
        run = read_run(located(name, settings))
        # `latest` is another run tomorrow.
        sources.append(f"{name} ({run.folder.name})" if name == LATEST else name)
        summary = _whole(name, run)
        for id, question in run.questions.items():
            unique = f"{id} · {name}" if len(names) > 1 else id
            questions.append(replace(question, id=unique))
            records.append(replace(run.records[id], question_id=unique))
            if len(names) > 1:
                systems[unique] = name
            for key, by_id in run.scores.items():
                if id in by_id:
                    scores.setdefault(key, {})[unique] = replace(by_id[id], question_id=unique)
        for key, card in summary["definitions"].items():
            if cards.setdefault(key, card)["fingerprint"] != card["fingerprint"]:
                clash = f"{key} is not the same definition in the runs (fingerprints differ: another version or prompt)"
        if summary["judge"]:
            judge = JudgeCard(**summary["judge"])
            judges[judge.fingerprint] = judge
    if len(judges) > 1:
        clash = f"the runs were judged by {len(judges)} different judges"
    return Material(
        source=", ".join(sources),
        questions=tuple(questions),
        records=tuple(records),
        systems=systems,
        scores=scores,
        cards=cards,
        judge=next(iter(judges.values()), None),
        clash=clash,
    )


CARD = ("id", "framework", "asks", "unit", "formula", "range", "direction", "calls", "fingerprint")
"""What the audit takes from the card of a definition in a run."""


def _whole(name: str, run: StoredRun) -> Mapping[str, Any]:
    """The summary of a run. Raises DataError where it is of another version of the schema or lacks what an audit reads,
    or a question has no record or no score of a definition: files that were cut off at the end of a line."""
    summary = run.summary
    if (version := summary.get("schema_version")) != SCHEMA_VERSION:
        raise DataError(
            f"{name} was written with schema version {version}, and this paribus reads {SCHEMA_VERSION}: make the run "
            "again"
        )
    lacking = [field for field in ("definitions", "judge") if field not in summary]
    for key, card in summary.get("definitions", {}).items():
        lacking += [f"{field} of {key}" for field in CARD if field not in card]
    lacking += [f"definition of {key}" for key in run.scores if key not in summary.get("definitions", {})]
    lacking += [] if run.questions else ["question"]
    lacking += [f"record of {id}" for id in run.questions if id not in run.records]
    for key in summary.get("definitions", {}):
        lacking += [f"score of {key} for {id}" for id in run.questions if id not in run.scores.get(key, {})]
    try:
        JudgeCard(**summary.get("judge") or {"provider": "", "model": ""})
    except TypeError:
        lacking.append("card of its judge that can be read")
    if lacking:
        more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
        raise DataError(f"{name} cannot be audited: it has no {lacking[0]}{more}. Make the run again")
    return summary
