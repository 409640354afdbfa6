"""Audits built from verdicts that are written down here, so that no framework is imported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from adapters.base import scorer
from adapters.schema import Question, Record, Score, Verdict
from runner.audit.findings import Subject
from runner.definitions import entry

NATIVE = {
    "ragas/faithfulness": {"supported": "1", "contradicted": "0", "absent": "0"},
    "deepeval/faithfulness": {"supported": "yes", "contradicted": "no", "absent": "borderline"},
    "trulens/groundedness": {"supported": "3", "contradicted": "0", "absent": "0"},
}
"""The frameworks' own words."""
COARSE = ("ragas/faithfulness", "trulens/groundedness")
"""Those whose one word is for contradicted and absent."""

Claims = Sequence[tuple[str, str]]
"""Texts with our words."""


def subject(spec: str | Mapping[str, Any]) -> Subject:
    """A definition with its real formula."""
    measure = scorer(spec)
    return Subject(
        measure.key,
        measure.id,
        measure.framework,
        measure.asks,
        measure.unit_judged,
        measure.formula,
        measure.value_range,
        measure.direction,
        entry(measure),
        measure.arithmetic(),
    )


def verdicts(id: str, claims: Claims) -> tuple[Verdict, ...]:
    """What the framework of a definition says, in its words."""
    return tuple(
        Verdict(text, NATIVE[id][word], "not_supported" if id in COARSE and word != "supported" else word)
        for text, word in claims
    )


def score(of: Subject, question_id: str, claims: Claims) -> Score:
    """A score whose value is worked out here from the credits that the definition's documentation gives."""
    strict = "penalize_ambiguous_claims" in of.key or of.id != "deepeval/faithfulness"
    hits = sum(word == "supported" or (word == "absent" and not strict) for _, word in claims)
    return Score(question_id, of.key, "f", hits / len(claims), evidence=verdicts(of.id, claims))


def records(*ids: str) -> tuple[list[Question], list[Record]]:
    """Questions with these ids, and answers to them."""
    return [Question(id, f"What of {id}?") for id in ids], [Record(id, answer=f"This of {id}.") for id in ids]
