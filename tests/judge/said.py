"""A definition and labels of our own: small, without a framework, and the same for every test of agreement."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import BaseModel

from adapters import asks
from adapters.base import Disbelieved, JudgedScorer
from adapters.bench import CallSite, Measurement
from adapters.judge import Message
from adapters.schema import Verdict
from adapters.tasks import Support


class Said(BaseModel):
    verdicts: list[Literal["supported", "contradicted", "absent"]]
    reasons: list[str]


class Supported(JudgedScorer):
    """The share of an answer's sentences, one a line, that the judge finds in the context. "BREAK" breaks it."""

    id: ClassVar[str] = "mine/supported"
    asks: ClassVar[str] = asks.SUPPORTED
    framework: ClassVar[str] = "mine"
    version: ClassVar[str] = "1"
    unit_judged: ClassVar[str] = "line"
    hit: ClassVar[str] = "the judge says so"
    formula: ClassVar[str] = "hits / lines"
    nothing_to_judge: ClassVar[str] = "not applicable without an answer"
    requires: ClassVar[tuple[str, ...]] = ("answer", "context")
    source: ClassVar[str] = "a test"
    calls: ClassVar[str] = "1"

    def lines(self, measurement: Measurement) -> tuple[str, ...]:
        return tuple((measurement.record.answer or "").split("\n"))

    async def run(self, measurement: Measurement) -> float:
        context = "\n".join(self.contexts(measurement.record))
        site = CallSite(
            "said",
            lambda _, m: Support(self.lines(m), context, "answer", "context"),
            lambda found: {"verdicts": [each.word for each in found], "reasons": [each.reason for each in found]},
        )
        said = await measurement.ask(site, [Message("user", f"{measurement.record.answer}\n{context}")], Said)
        return float(sum(word == "supported" for word in said.verdicts) / len(said.verdicts))

    def evidence(self, measurement: Measurement) -> tuple[Verdict, ...]:
        if "BREAK" in (measurement.record.answer or ""):
            raise Disbelieved("it broke")
        (said,) = measurement.replies("said")
        rows = zip(self.lines(measurement), said["verdicts"], said["reasons"], strict=True)
        return tuple(Verdict(line, word, word, reason) for line, word, reason in rows)

    def prompts(self) -> dict[str, str]:
        return {"said": "no prompt of note"}


class Unsupported(Supported):
    """The share of lines that the judge does not find: lower is better."""

    id: ClassVar[str] = "mine/unsupported"
    direction: ClassVar[Literal["higher", "lower"]] = "lower"

    async def run(self, measurement: Measurement) -> float:
        return 1 - await super().run(measurement)


SUPPORTED, UNSUPPORTED = "tests.judge.said:Supported", "tests.judge.said:Unsupported"

YES, NO = "The shop opens at nine.", "Purple elephants dance on Mars."
CONTEXT = "The shop opens at nine. It closes at six."
"""The lexical judge finds YES in CONTEXT, and not NO."""


def label(name: str, lines: Sequence[str], says: Sequence[str] | float, **more: Any) -> dict[str, Any]:
    """A line of labels: an answer of these lines, and a word of people's for each, or a score."""
    fields: dict[str, Any] = {
        "id": name,
        "question": "When does the shop open?",
        "answer": "\n".join(lines),
        "contexts": [CONTEXT],
        "origin": "human",
    }
    if isinstance(says, float | int):
        fields["score"] = says
    else:
        fields["claims"] = [{"text": line, "verdict": word} for line, word in zip(lines, says, strict=True)]
    return {**fields, **more}


def written(path: Path, lines: Sequence[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path
