"""The definitions of Ragas (ragas.metrics.collections), computed by Ragas itself under our judge.

Ragas hands back a number only; verdicts are read from the judge's replies within the measurement. The only file that
imports ragas.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, ClassVar

from adapters import asks
from adapters.base import Disbelieved, JudgedScorer, NothingToJudge
from adapters.bench import CallSite, Measurement
from adapters.isolation import framework
from adapters.judge import Message
from adapters.schema import Verdict
from adapters.tasks import Findings, Source, Split, Support

if TYPE_CHECKING:
    from types import ModuleType

    from pydantic import BaseModel


@cache
def _ragas() -> ModuleType:
    """ragas.metrics.collections. Raises Unavailable."""
    return framework("ragas", "ragas.metrics.collections")[0]


@cache
def _judge_class() -> Callable[[Measurement, Mapping[str, CallSite]], Any]:
    """Ragas's judge that passes every prompt on to the measurement."""
    (base,) = framework("ragas", "ragas.llms.base")

    class MeasuredJudge(base.InstructorBaseRagasLLM):  # type: ignore[misc,name-defined]
        def __init__(self, measurement: Measurement, sites: Mapping[str, CallSite]) -> None:
            self.measurement, self.sites = measurement, sites

        def generate(self, prompt: str, response_model: type[BaseModel]) -> Any:
            raise NotImplementedError("paribus asks its judge asynchronously")

        async def agenerate(self, prompt: str, response_model: type[BaseModel]) -> Any:
            site = self.sites[response_model.__name__]
            return await self.measurement.ask(site, [Message("user", prompt)], response_model)

    return MeasuredJudge


def given(prompt: str) -> dict[str, Any]:
    """The input at the end of a Ragas prompt: one JSON object."""
    found: dict[str, Any] = json.loads(prompt.rsplit("\ninput: ", 1)[1].rsplit("\nOutput:", 1)[0])
    return found


class RagasScorer(JudgedScorer):
    """Base of the definitions of Ragas. Subclasses name the class of ragas.metrics.collections and its calls."""

    framework: ClassVar[str] = "ragas"
    metric: ClassVar[str]
    """Class of ragas.metrics.collections."""
    sites: ClassVar[Mapping[str, CallSite]]
    """Schema that Ragas asks for -> the call it belongs to."""

    def framework_version(self) -> str:
        """The installed version of ragas."""
        return version("ragas")

    def implementation(self) -> str:
        """The class of Ragas."""
        return f"ragas.metrics.collections.{self.metric}"

    def prepare(self) -> None:
        """Import Ragas. Raises Unavailable."""
        _ragas()

    def fields(self, measurement: Measurement) -> dict[str, Any]:
        """The arguments of the metric's `ascore`."""
        raise NotImplementedError

    def settings(self) -> dict[str, Any]:
        """The arguments of the metric's constructor besides the judge."""
        return self.model_dump()

    async def _run(self, measurement: Measurement) -> float:
        metric = getattr(_ragas(), self.metric)(llm=_judge_class()(measurement, self.sites), **self.settings())
        result = await metric.ascore(**self.fields(measurement))
        return float(result.value)

    def prompts(self) -> dict[str, str]:
        """Every prompt of the metric, rendered with sentinels."""
        (prompt_module,) = framework("ragas", "ragas.prompt.metrics.base_prompt")
        metric = getattr(_ragas(), self.metric)(llm=_judge_class()(None, {}), **self.settings())  # type: ignore[arg-type]
        return {
            name: _rendered(prompt, metric)
            for name, prompt in vars(metric).items()
            if isinstance(prompt, prompt_module.BasePrompt)
        }


def _rendered(prompt: Any, metric: Any) -> str:
    values: dict[str, Any] = {}
    for name, declared in prompt.input_model.model_fields.items():
        is_list = "list" in str(declared.annotation).lower()
        values[name] = getattr(metric, name, [f"<{name}>"] if is_list else f"<{name}>")
    return str(prompt.to_string(prompt.input_model(**values)))


def statements_written(findings: Findings) -> object:
    """`{"statements": [...]}`."""
    return {"statements": [finding.unit for finding in findings]}


def nli_task(prompt: str, units_of: Source, source: Source) -> Support:
    """The task of a prompt that gives statements and a context."""
    sent = given(prompt)
    return Support(tuple(sent["statements"]), sent["context"], units_of, source)


def nli_written(findings: Findings) -> object:
    """Ragas's verdicts: 1 = can be inferred, 0 = cannot."""
    return {
        "statements": [
            {"statement": f.unit, "reason": f.reason, "verdict": int(f.word == "supported")} for f in findings
        ]
    }


OURS = {1: "supported", 0: "not_supported"}


def nli_verdicts(sent: list[str], reply: Any) -> tuple[Verdict, ...]:
    """Verdicts of one NLI reply, checked against the statements that were sent.

    Raises Disbelieved. Ragas has one word for contradicted and absent: `ours` is "not_supported" there.
    """
    items = reply["statements"]
    if len(items) != len(sent):
        raise Disbelieved(f"{len(items)} verdicts for {len(sent)} claims")
    for item in items:
        if item["verdict"] not in (0, 1, "0", "1"):
            raise Disbelieved(f"verdict {item['verdict']!r} is outside the range 0 to 1")
    return tuple(
        Verdict(
            unit,
            str(item["verdict"]),
            "supported" if int(item["verdict"]) else "not_supported",
            item.get("reason") or None,
        )
        for unit, item in zip(sent, items, strict=True)
    )


class Faithfulness(RagasScorer):
    """Share of the answer's statements that can be inferred from the context.

    Range 0 to 1. Source: Es et al. 2024, RAGAS; ragas/metrics/collections/faithfulness/metric.py (0.4.3).
    """

    id: ClassVar[str] = "ragas/faithfulness"
    asks: ClassVar[str] = asks.SUPPORTED
    metric: ClassVar[str] = "Faithfulness"
    unit_judged: ClassVar[str] = "claim"
    hit: ClassVar[str] = "a statement that the judge says can be inferred from the contexts joined into one text"
    formula: ClassVar[str] = "inferable statements / statements"
    nothing_to_judge: ClassVar[str] = "not applicable: ragas returns NaN for an answer without statements"
    requires: ClassVar[tuple[str, ...]] = ("question", "answer", "context")
    source: ClassVar[str] = "ragas/metrics/collections/faithfulness/metric.py of ragas 0.4.3"
    calls: ClassVar[str] = "2: statements, verdicts"
    hazards: ClassVar[tuple[str, ...]] = (
        "A claim that the context contradicts and one that it does not mention count the same (0).",
    )
    sites: ClassVar[Mapping[str, CallSite]] = {
        "StatementGeneratorOutput": CallSite(
            "statements", lambda prompt, m: Split(given(prompt)["answer"], "answer"), statements_written
        ),
        "NLIStatementOutput": CallSite(
            "verdicts",
            lambda prompt, m: Support(
                tuple(given(prompt)["statements"]), given(prompt)["context"], "answer", "context"
            ),
            nli_written,
        ),
    }

    def fields(self, measurement: Measurement) -> dict[str, Any]:
        """See RagasScorer."""
        return {
            "user_input": measurement.question.text,
            "response": measurement.record.answer,
            "retrieved_contexts": list(self.contexts(measurement.record)),
        }

    def _evidence(self, measurement: Measurement) -> tuple[Verdict, ...]:
        statements = measurement.replies("statements")[0]["statements"]
        if not statements:
            raise NothingToJudge("0 claims")
        return nli_verdicts(statements, measurement.replies("verdicts")[0])
