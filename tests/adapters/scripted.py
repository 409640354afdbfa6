"""A judge that plays a script, for tests of what adapters do with any reply."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

from pydantic import Field

from adapters.base import JudgedScorer, scorer
from adapters.bench import Bench
from adapters.judge import Call, Judge, JudgeFault, Reply
from adapters.schema import JudgeCard, Question, Record, Score
from adapters.tasks import Finding

Answer = Callable[[Call], Any]
"""Gives the data of a reply (written as JSON), a str (sent as it is), or an exception to raise."""


class ScriptedJudge(Judge):
    """Answers calls by name (`verdicts`): each with what its script gives, or with the tasks' own findings.

    replies: call name -> data, str, exception, a function of the call, or a list of them, one a call, in turn.
    """

    replies: dict[str, Any] = Field(default_factory=dict)
    seen: list[Any] = Field(default_factory=list)

    @property
    def card(self) -> JudgeCard:
        """A card that names no model."""
        return JudgeCard("scripted", "script")

    async def ask(self, call: Call) -> Reply:
        """What the script says for the name of the call."""
        self.seen.append(call)
        await asyncio.sleep(0)
        if call.name not in self.replies:
            raise JudgeFault(f"no script for {call.name}; asked: {call.messages[-1].content[-300:]}")
        answer = self.replies[call.name]
        if isinstance(answer, list):
            answer = answer[sum(earlier.name == call.name for earlier in self.seen) - 1]
        if callable(answer):
            answer = answer(call)
        if isinstance(answer, Exception):
            raise answer
        return Reply(answer if isinstance(answer, str) else json.dumps(answer, default=_plain))

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Letter counts: equal texts have equal vectors."""
        return [[float(text.lower().count(letter)) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]


def _plain(value: object) -> object:
    if isinstance(value, Finding):
        return value.unit
    raise TypeError(type(value))


def measure(spec: Any, question: Question, record: Record, judge: Judge) -> Score:
    """The score of one record, alone, in an event loop of its own."""
    measured = scorer(spec)
    assert isinstance(measured, JudgedScorer)

    async def alone() -> Score:
        async with Bench(judge) as bench:
            return await measured.measure(question, record, bench)

    return asyncio.run(alone())
