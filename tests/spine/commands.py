"""Commands, the tiny test set they run on, and what they leave behind."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from runner.results import read_scores

ROOT = Path(__file__).parents[2]
FAST = ("dataset=jsonl", "tracking=off", "chunker.size=60", "retriever=stub", "generator=echo")

DOCUMENTS = {
    "bikes": "Bicycles are parked in the yard behind the kitchen.\n\nVisitors lock their bicycle to the red rail.",
    "coffee": "The coffee machine is cleaned every Friday. Beans are bought by Ada.",
    "travel": "Train tickets are booked by the office.\n\nFlights need the consent of a manager in writing.",
}
QUESTIONS = [
    (
        "q1",
        "Where are bicycles parked ?",
        "In the yard behind the kitchen.",
        ("bikes", "in the yard behind the kitchen"),
    ),
    ("q2", "Who buys the coffee beans ?", "Ada.", ("coffee", "Beans are bought by Ada")),
    ("q3", "Which journeys need the consent of a manager ?", "Flights.", ("travel", "Flights need the consent")),
    ("q4", "What does a lorry cost ?", None, None),
]


@dataclass(frozen=True)
class Said:
    """How a command ended: exit code, stdout and stderr."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Say = Callable[..., Said]


def write_lines(path: Path, records: Sequence[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def write_test_set(folder: Path) -> None:
    write_lines(folder / "documents.jsonl", [{"doc_id": name, "text": text} for name, text in DOCUMENTS.items()])
    questions = []
    for name, text, reference, label in QUESTIONS:
        spans = []
        if label:
            start = DOCUMENTS[label[0]].index(label[1])
            spans = [{"doc_id": label[0], "start": start, "end": start + len(label[1]), "text": label[1]}]
        question = {"id": name, "question": text, "answerable": label is not None, "relevant": spans}
        slices = ["fact"] if label else ["unanswerable"]
        questions.append({**question, "slices": slices, **({"reference_answer": reference} if reference else {})})
    write_lines(folder / "questions.jsonl", questions)


def write_yaml(folder: Path, name: str, **keys: Any) -> None:
    path = folder / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(keys, allow_unicode=True, sort_keys=False), encoding="utf-8")


def values_of(plan: Any) -> list[tuple[str | None, str | None]]:
    """(variable, value) of each run of a plan that was printed as JSON."""
    return [(run["variable"], run["value"]) for run in plan["runs"]]


def config_of(outcome: dict[str, Any]) -> dict[str, Any]:
    """The configuration that a run wrote down."""
    found = yaml.safe_load((Path(outcome["folder"]) / "config.yaml").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def scores_of(outcome: dict[str, Any]) -> list[tuple[Any, ...]]:
    """The scores of a run, times aside."""
    scores = read_scores(Path(outcome["folder"]) / "scores.jsonl")
    return [(s.question_id, s.definition, s.fingerprint, s.value, s.status, s.reason, s.evidence) for s in scores]
