"""Records x definitions -> scores."""

from __future__ import annotations

from collections.abc import Sequence

from adapters.base import Scorer
from adapters.schema import Question, Record, Score


def score(scorers: Sequence[Scorer], questions: Sequence[Question], records: Sequence[Record]) -> tuple[Score, ...]:
    """A score for every definition and question, by definition, then in the order of `questions`.

    A question without a record is scored as a system that returned nothing. A definition that raises costs that score
    only: it becomes `failed` with the error as its reason.
    """
    by_question = {record.question_id: record for record in records}
    pairs = [
        (question, by_question.get(question.id) or Record(question.id, error="the system returned no record"))
        for question in questions
    ]
    return tuple(_score_one(scorer, question, record) for scorer in scorers for question, record in pairs)


def _score_one(scorer: Scorer, question: Question, record: Record) -> Score:
    try:
        return scorer.score(question, record)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        return Score(question.id, scorer.key, scorer.definition.fingerprint, None, "failed", reason)
