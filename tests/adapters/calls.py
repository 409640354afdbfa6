"""Calls as adapters make them, one for each kind of task, for tests of judges."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel

from adapters import tasks as t
from adapters.judge import Call, Judge, Message, Reply
from adapters.schema import Question, Record
from tests.adapters.router import ANSWER, CLAIMS, PASSAGES, QUESTION, REFERENCE, REFERENCE_CLAIMS, record

CONTEXT = "\n\n".join(PASSAGES)
ANSWER_CLAIMS = tuple(text for text, _ in CLAIMS)
CLAIMS_OF_REFERENCE = tuple(text for text, _, _ in REFERENCE_CLAIMS)

TASKS: dict[str, t.Task] = {
    "split": t.Split(ANSWER, "answer"),
    "split reference": t.Split(REFERENCE, "reference"),
    "split context": t.Split(CONTEXT, "context", "facts"),
    "split sentences": t.Split(ANSWER, "answer", "sentences"),
    "split entities": t.Split(ANSWER, "answer", "entities"),
    "support": t.Support(ANSWER_CLAIMS, CONTEXT, "answer", "context"),
    "support by chunk": t.Support(ANSWER_CLAIMS, PASSAGES[1], "answer", "chunk"),
    "support by reference": t.Support(ANSWER_CLAIMS, REFERENCE, "answer", "reference"),
    "support of reference": t.Support(CLAIMS_OF_REFERENCE, CONTEXT, "reference", "context"),
    "support by answer": t.Support(CLAIMS_OF_REFERENCE, ANSWER, "reference", "answer"),
    "support of chunks": t.Support(PASSAGES, ANSWER, "chunk", "answer"),
    "attribute": t.Attribute(REFERENCE, CONTEXT),
    "relevance": t.Relevance(QUESTION.text, PASSAGES, REFERENCE),
    "relevance of statements": t.Relevance(QUESTION.text, ANSWER_CLAIMS, units_of="answer"),
    "relevance of context": t.Relevance(QUESTION.text, (CONTEXT,), units_of="context"),
    "relevant statements": t.RelevantStatements(QUESTION.text, PASSAGES[3]),
    "ask back": t.AskBack(ANSWER),
    "agree": t.Agree(QUESTION.text, ANSWER, REFERENCE),
    "grade relevance": t.Grade("relevance", ANSWER, "answer", QUESTION.text),
    "grade relevance of context": t.Grade("relevance", CONTEXT, "context", QUESTION.text),
    "grade groundedness": t.Grade("groundedness", ANSWER, "answer", against=CONTEXT),
    "match": t.Match(QUESTION.text, ANSWER_CLAIMS, CLAIMS_OF_REFERENCE),
    "decline": t.Decline(QUESTION.text, ANSWER),
    "contribution": t.Contribution(QUESTION.text, ANSWER, PASSAGES),
}
VOCABULARY = {
    t.Split: {None},
    t.Support: {"supported", "contradicted", "absent"},
    t.Attribute: {"attributed", "not_attributed"},
    t.Relevance: {"relevant", "not_relevant"},
    t.RelevantStatements: {"relevant", "not_relevant"},
    t.AskBack: {None, "absent"},
    t.Agree: {None},
    t.Grade: {None},
    t.Match: {"supported", "absent"},
    t.Decline: {"supported", "absent"},
    t.Contribution: {"relevant", "not_relevant"},
}


def count(task: t.Task) -> int | None:
    """How many findings a task wants; None = as many as the judge finds units."""
    match task:
        case t.Support():
            return len(task.units)
        case t.Relevance():
            return len(task.passages)
        case t.Match():
            return len(task.answer_claims) + len(task.reference_claims)
        case t.Contribution():
            return len(task.chunks)
        case t.Split() | t.Attribute() | t.RelevantStatements():
            return None
    return 1


def written(findings: t.Findings) -> object:
    return [[finding.unit, finding.word, finding.reason, finding.holds] for finding in findings]


def call(
    task: t.Task | Callable[[], t.Task] = TASKS["split"],
    prompt: str = "Judge this.",
    schema: type[BaseModel] | None = None,
    sample: int = 0,
    question: Question = QUESTION,
    measured: Record | None = None,
    write: Callable[[t.Findings], object] = written,
) -> Call:
    return Call(
        definition="mine/definition",
        name="verdicts",
        messages=(Message("user", prompt),),
        schema=schema,
        sample=sample,
        question=question,
        record=measured or record(),
        task=task if callable(task) else lambda: task,
        write=write,
    )


def ask(judge: Judge, *calls: Call) -> list[Reply]:
    """The replies to calls made at once, in an event loop of their own."""

    async def alone() -> list[Reply]:
        try:
            return list(await asyncio.gather(*map(judge.ask, calls)))
        finally:
            await judge.close()

    return asyncio.run(alone())


def found(judge: Judge, task: t.Task, **fields: Any) -> list[tuple[str, Any, str, float]]:
    """Unit, word, reason and grade of each finding."""
    return [tuple(finding) for finding in json.loads(ask(judge, call(task, **fields))[0].text)]


def words(judge: Judge, task: t.Task, **fields: Any) -> list[Any]:
    return [word for _, word, _, _ in found(judge, task, **fields)]
