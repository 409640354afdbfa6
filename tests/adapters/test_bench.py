"""What a bench promises of any judge: one fault costs one score, and stopping stops."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from threading import Thread
from threading import enumerate as threads
from time import monotonic, sleep
from typing import Any

import pytest

from adapters.base import scorer
from adapters.judge import Call, Judge, JudgeFault, Reply
from adapters.judges.labels import LabelsJudge
from adapters.schema import JudgeCard, Score, to_json
from runner.scoring import score
from tests.adapters.router import QUESTION, record


class Faulty(LabelsJudge):
    """People's verdicts; for one question whatever `does` does."""

    does: Any

    async def ask(self, call: Call) -> Reply:
        """What people said, or what `does` does."""
        if call.question.id == "q1":
            await self.does()
        return await super().ask(call)


def measured(judge: Judge) -> dict[str, Score]:
    questions = [replace(QUESTION, id=f"q{number}") for number in range(3)]
    records = [record(question.id) for question in questions]
    return {each.question_id: each for each in score([scorer("deepeval/contextual_recall")], questions, records, judge)}


async def raises_cancelled() -> None:
    raise asyncio.CancelledError


async def cancels_an_inner_task() -> None:
    inner = asyncio.ensure_future(asyncio.sleep(5))
    asyncio.get_running_loop().call_soon(inner.cancel)
    await inner


async def raises_timeout() -> None:
    raise TimeoutError("of the library's own")


async def raises_half_an_emoji() -> None:
    raise RuntimeError("bad \ud83d" + "x" * 5_000)


@pytest.mark.parametrize(
    ("does", "said"),
    [
        (raises_cancelled, "cancelled from within"),
        (cancels_an_inner_task, "cancelled from within"),
        (raises_timeout, "TimeoutError: of the library's own"),
        (raises_half_an_emoji, "RuntimeError: bad"),
    ],
)
def test_whatever_a_judge_raises_costs_one_score(does: Callable[[], Any], said: str) -> None:
    found = measured(Faulty(does=does))
    assert found["q0"].value == found["q2"].value == pytest.approx(0.8)
    assert found["q1"].status == "failed"
    assert said in (found["q1"].reason or "")
    assert len(found["q1"].reason or "") < 600
    json.loads(to_json(found["q1"]))


class Odd(Judge):
    """Replies with something that is no reply."""

    reply: Any = None

    @property
    def card(self) -> JudgeCard:
        """A card."""
        return JudgeCard("odd", "odd")

    async def ask(self, call: Call) -> Reply:
        """No reply."""
        reply: Reply = self.reply
        return reply


@pytest.mark.parametrize("reply", [None, "text", Reply(None)])  # type: ignore[arg-type]
def test_a_judge_that_returns_no_reply_is_told_so(reply: Any) -> None:
    for each in measured(Odd(reply=reply)).values():
        assert each.status == "failed"
        assert "instead of a Reply with a text" in (each.reason or "")


def test_two_records_of_one_question_are_refused() -> None:
    with pytest.raises(ValueError, match="one record a question"):
        score([scorer("rubric/correctness")], [QUESTION], [record(), record()], LabelsJudge())


class Slow(Odd):
    """Counts calls, a tenth of a second each."""

    calls: list[float]

    async def ask(self, call: Call) -> Reply:
        """Nothing, slowly."""
        self.calls.append(monotonic())
        await asyncio.sleep(0.1)
        raise JudgeFault("nothing")


def test_stopping_a_notebook_cell_stops_the_judge() -> None:
    judge = Slow(concurrency=2, calls=[])
    questions = [replace(QUESTION, id=f"q{number}") for number in range(400)]
    records = [record(question.id) for question in questions]

    async def cell() -> None:
        score([scorer("rubric/correctness")], questions, records, judge)

    def interrupt() -> None:
        import _thread

        while not judge.calls:
            sleep(0.01)
        _thread.interrupt_main()

    Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(cell())
    asked = len(judge.calls)
    sleep(0.5)
    assert len(judge.calls) == asked < 100
    assert not [thread for thread in threads() if thread.name == "paribus-judge"]
