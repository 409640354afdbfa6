"""Questions and records made by hand, on documents of which every character is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adapters.schema import Chunk, Dropped, Question, Ranked, Record, Score, Span, Verdict
from runner.diagnosis.diagnose import faults_of
from runner.diagnosis.findings import Fault
from runner.diagnosis.rules import Rules, default_rules

NEW = "The badge is renewed after 45 months."
OLD = "Badges are swapped every 90 weeks by the porter."
OTHER = "Soup is served at noon."
TEXTS = {"new": NEW, "old": OLD, **{f"other{n}": f"{OTHER} {n}" for n in range(9)}}

ANSWERS = Span("new", 0, len(NEW), 2)
REJECTED = Span("old", 0, len(OLD), 0)


def whole(doc_id: str) -> Chunk:
    """The whole document as one chunk."""
    return Chunk(doc_id, 0, len(TEXTS[doc_id]), TEXTS[doc_id])


def ranking(doc_ids: Sequence[str]) -> tuple[Ranked, ...]:
    return tuple(Ranked(whole(doc_id), 1 / rank, rank) for rank, doc_id in enumerate(doc_ids, 1))


def others(count: int) -> list[str]:
    return [f"other{n}" for n in range(count)]


def question(**changed: Any) -> Question:
    fields = {
        "id": "q1",
        "text": "When is the badge renewed?",
        "reference_answer": "After 45 months.",
        "relevant": (ANSWERS, REJECTED),
        **changed,
    }
    return Question(**fields)


def record(passed_on: Sequence[str] = ("new", "other0"), **changed: Any) -> Record:
    """What a system did that passed these documents on, and put them all into the prompt."""
    ranked = ranking(passed_on)
    fields = {
        "question_id": "q1",
        "asked_k": max(1, len(passed_on)),
        "retrieved": ranked,
        "reranked": ranked,
        "context": tuple(each.chunk for each in ranked),
        "labelled": (whole("new"), whole("old")),
        "prompt": "the prompt",
        "answer": "It is renewed after 45 months.",
        "refused": False,
        **changed,
    }
    return Record(**fields)


def score(key: str, value: float | None, *evidence: Verdict) -> dict[str, Score]:
    """A score of one definition, by its key; None = it failed."""
    if value is None:
        return {key: Score("q1", key, "f" * 16, None, "failed", "it broke")}
    return {key: Score("q1", key, "f" * 16, value, evidence=evidence)}


def rules(**changed: Any) -> Rules:
    return default_rules().model_copy(update=changed)


def found(asked: Question, did: Record, scores: dict[str, Score] | None = None, **changed: Any) -> dict[str, str]:
    """The faults of a question with their evidence, in order. changed: rules that are not the default ones."""
    faults: tuple[Fault, ...] = faults_of(asked, did, scores or {}, rules(**changed))
    return {fault.name: fault.evidence for fault in faults}


BUDGET, DUPLICATE = "budget", "duplicate"


def dropped(doc_id: str, reason: Any) -> Dropped:
    return Dropped(whole(doc_id), reason)
