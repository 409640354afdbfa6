"""A definition that asks for one verdict a line of the answer, one that asks for a rating, and judges with moods."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from adapters.base import JudgedScorer, NothingToJudge, Scorer
from adapters.bench import CallSite, Measurement
from adapters.judge import Call, Judge, JudgeFault, Message, Reply
from adapters.schema import Chunk, JudgeCard, Question, Record, Score, Verdict
from runner import results
from runner.drift import Drift
from runner.results import RunResult
from runner.scoring import score


class Said(BaseModel):
    lines: list[bool]


class Rated(BaseModel):
    rating: float


class Polite(JudgedScorer):
    """The share of the lines of an answer that the judge finds polite."""

    id = "mood/polite"
    asks = "is the answer polite?"
    framework = "mood"
    version = "1"
    unit_judged = "line"
    hit = "the judge says so"
    formula = "polite lines / lines"
    nothing_to_judge = "not applicable without lines"
    requires = ("answer",)
    source = "tests"
    calls = "1"

    wording: str = "Polite?"

    async def run(self, measurement: Measurement) -> float:
        prompt = f"{self.wording}\n{measurement.record.answer}"
        said = await measurement.ask(CallSite("polite"), [Message("user", prompt)], Said)
        return sum(said.lines) / max(len(said.lines), 1)

    def evidence(self, measurement: Measurement) -> tuple[Verdict, ...]:
        (said,) = measurement.replies("polite")
        if not said["lines"]:
            raise NothingToJudge("0 lines")
        lines = (measurement.record.answer or "").split("\n")
        pairs = zip(lines, said["lines"], strict=True)
        return tuple(Verdict(line, str(yes), "supported" if yes else "absent") for line, yes in pairs)

    def prompts(self) -> dict[str, str]:
        return {"polite": self.wording}


class Rating(Polite):
    """A rating from 0 to 1, asked for twice in the same words; no verdict of it has a word of ours."""

    id = "mood/rating"
    unit_judged = "answer"
    calls = "2"

    async def run(self, measurement: Measurement) -> float:
        asked = [Message("user", f"Rate: {measurement.record.answer}")]
        first = await measurement.ask(CallSite("rate"), asked, Rated)
        second = await measurement.ask(CallSite("rate"), asked, Rated)
        return float(first.rating + second.rating) / 2

    def evidence(self, measurement: Measurement) -> tuple[Verdict, ...]:
        return tuple(Verdict("answer", str(said["rating"])) for said in measurement.replies("rate"))


class Moody(Judge):
    """Finds every line polite but those in `rude`, which are not on its card, and from the bench numbered `moves_at` on
    (counted in the file `benches`) none. A judgement that is made again has the mood of its number in `moods`."""

    samples: int = 1
    rude: list[str] = Field(default_factory=list)
    moves_at: int | None = None
    benches: str = "benches.txt"
    flips: list[str] = Field(default_factory=list)
    revision: str = "1"

    @property
    def card(self) -> JudgeCard:
        settings: dict[str, Any] = {"samples": self.samples} if self.samples > 1 else {}
        return JudgeCard("moody", "m", self.revision, settings=settings)

    @property
    def repeats(self) -> int:
        return self.samples

    async def prepare(self) -> None:
        with Path(self.benches).open("a") as file:
            file.write("x")

    async def ask(self, call: Call) -> Reply:
        answer = call.record.answer or ""
        moved = self.moves_at is not None and Path(self.benches).stat().st_size >= self.moves_at
        if moved or call.question.id in self.rude or (call.question.id in self.flips and call.sample):
            return Reply(json.dumps({"lines": [False for _ in answer.split("\n")]}))
        return Reply(json.dumps({"lines": [True for _ in answer.split("\n")]}))


class ByCall(Judge):
    """Answers by a function of question and sample number: verdicts on the lines, a rating, or why there is none."""

    says: Any
    samples: int = 3

    @property
    def card(self) -> JudgeCard:
        return JudgeCard("by call", "f")

    @property
    def repeats(self) -> int:
        return self.samples

    async def ask(self, call: Call) -> Reply:
        said = self.says(call.question.id, call.sample)
        if isinstance(said, str):
            raise JudgeFault(said)
        return Reply(json.dumps({"lines": said} if isinstance(said, list) else {"rating": said}))


def material(answers: Sequence[str]) -> tuple[tuple[Question, ...], tuple[Record, ...]]:
    """A question and a record for each answer, q0, q1, ..."""
    questions = tuple(Question(f"q{n}", f"Question {n}?") for n in range(len(answers)))
    chunk = Chunk("d", 0, 4, "text")
    return questions, tuple(Record(f"q{n}", context=(chunk,), answer=answer) for n, answer in enumerate(answers))


def graded(
    judge: Judge,
    answers: Sequence[str],
    definitions: Sequence[str | dict[str, Any]] = ("tests.judge.moods:Polite",),
    folder: Path | None = None,
    drift: Drift | None = None,
) -> RunResult:
    """A run of `judge` on these answers, written into `folder`; its replies are recorded there."""
    from adapters.base import scorer

    scorers: list[Scorer | JudgedScorer] = [scorer(spec) for spec in definitions]
    questions, records = material(answers)
    recording = folder / results.RECORDING if folder else None
    scores: tuple[Score, ...] = score(scorers, questions, records, judge, recording=recording)
    result = RunResult(
        name="run",
        config={"metrics": {"definitions": list(definitions), "table": []}},
        config_fingerprint="f" * 16,
        choices={},
        dataset={"name": "tiny", "version": "1", "checksum": "c" * 64},
        definitions={each.key: each.definition for each in scorers},
        scores=scores,
        records=records,
        questions=questions,
        environment={},
        calls={},
        started="2026-01-01T00:00:00.000Z",
        seconds=1.0,
        judge=judge.card,
        drift=drift,
    )
    if folder:
        results.write(result, folder)
    return result
