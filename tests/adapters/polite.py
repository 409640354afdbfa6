"""A judged definition without a framework, so that tests of judges and runs import none."""

from __future__ import annotations

from pydantic import BaseModel

from adapters.base import JudgedScorer
from adapters.bench import CallSite, Measurement
from adapters.judge import Message, schema_text
from adapters.schema import Verdict

PROMPT = "Is this answer to '{question}' polite? {answer}"


class Said(BaseModel):
    polite: bool


class Polite(JudgedScorer):
    """Whether a judge finds the answer polite. strict: another parameter, the same prompt."""

    id = "mine/polite"
    asks = "is the answer polite?"
    framework = "mine"
    version = "1"
    unit_judged = "answer"
    hit = "the judge says so"
    formula = "1 if polite else 0"
    nothing_to_judge = "not applicable without an answer"
    requires = ("answer",)
    source = "tests"
    calls = "1"

    strict: bool = False

    async def run(self, measurement: Measurement) -> float:
        text = PROMPT.format(question=measurement.question.text, answer=measurement.record.answer)
        said = await measurement.ask(CallSite("polite"), [Message("user", text)], Said)
        return float(said.polite)

    def evidence(self, measurement: Measurement) -> tuple[Verdict, ...]:
        return tuple(Verdict("answer", str(said["polite"])) for said in measurement.replies("polite"))

    def prompts(self) -> dict[str, str]:
        return {"polite": PROMPT + schema_text(Said)}
