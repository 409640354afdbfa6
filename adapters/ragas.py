"""The definitions of Ragas, computed by Ragas itself under our judge.

Those that ask a judge are the classes of ragas.metrics.collections; they hand back a number only, so verdicts are read
from the judge's replies within the measurement. The ID-based and non-LLM ones exist only among the older classes of
ragas.metrics. The only file that imports ragas.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property
from math import hypot, isfinite
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field
from typing_extensions import override

from adapters import asks, formulas
from adapters.base import Disbelieved, JudgedScorer, RankedScorer, Unavailable
from adapters.bench import CallSite, Measurement
from adapters.formulas import Formula
from adapters.inputs import visible
from adapters.isolation import framework, installed_version
from adapters.judge import JudgeFault, Message, schema_text
from adapters.labels.relevance import ListDefinition, nothing_labelled, nothing_retrieved
from adapters.schema import Chunk, Definition, Question, Ranked, Record, Score, Span, Verdict
from adapters.tasks import (
    Agree,
    AskBack,
    Attribute,
    Finding,
    Findings,
    Grade,
    Match,
    Relevance,
    Source,
    Split,
    Support,
    Task,
)
from adapters.units import alike, displaced, each_once, named, paired

if TYPE_CHECKING:
    from types import ModuleType

    from pydantic import BaseModel

CHUNK = Chunk("<document>", 0, len("<context>"), "<context>")
QUESTION = Question("<id>", "<question>", reference_answer="<reference>")
RECORD = Record(
    "<id>", retrieved=(Ranked(CHUNK, 1.0, 1),), reranked=(Ranked(CHUNK, 1.0, 1),), context=(CHUNK,), answer="<answer>"
)
"""What prompts are rendered with, to be hashed and shown."""

Beta = Annotated[float, Field(ge=0, le=100)]
"""Weight of recall; its square is multiplied, and beyond 100 it is recall alone."""


@cache
def _collections() -> ModuleType:
    """ragas.metrics.collections. Raises Unavailable."""
    return framework("ragas", "ragas.metrics.collections")[0]


@cache
def _judge_class() -> Callable[[RagasScorer, Measurement], Any]:
    """Ragas's judge that passes every prompt on to the measurement."""
    (base,) = framework("ragas", "ragas.llms.base")

    class MeasuredJudge(base.InstructorBaseRagasLLM):  # type: ignore[misc,name-defined]
        def __init__(self, scorer: RagasScorer, measurement: Measurement) -> None:
            self.scorer, self.measurement = scorer, measurement

        def generate(self, prompt: str, response_model: type[BaseModel]) -> Any:
            raise RuntimeError("paribus asks its judge asynchronously")

        async def agenerate(self, prompt: str, response_model: type[BaseModel]) -> Any:
            site = self.scorer.site(response_model.__name__, prompt)
            return await self.measurement.ask(site, [Message("user", prompt)], response_model)

    return MeasuredJudge


@cache
def _embedding_class() -> Callable[[Measurement], Any]:
    """Ragas's embedding that asks the measurement, one call for a list of texts."""
    (base,) = framework("ragas", "ragas.embeddings.base")

    class MeasuredEmbedding(base.BaseRagasEmbedding):  # type: ignore[misc,name-defined]
        def __init__(self, measurement: Measurement) -> None:
            super().__init__()
            self.measurement = measurement
            self.vectors: dict[str, list[float]] = {}

        def embed_text(self, text: str, **kwargs: Any) -> list[float]:
            """Of a text that was fetched before: it is called where waiting would hold up the loop."""
            return self.vectors[text]

        async def aembed_text(self, text: str, **kwargs: Any) -> list[float]:
            return (await self.aembed_texts([text]))[0]

        async def aembed_texts(self, texts: list[str], **kwargs: Any) -> list[list[float]]:
            vectors = await self.measurement.embed(texts)
            for text, vector in zip(texts, vectors, strict=True):
                if reason := self._unusable(vector):
                    self.measurement.fault = JudgeFault(f"the embedding of {text[:60]!r} {reason}")
                    raise self.measurement.fault
                self.vectors[text] = vector
            return vectors

        def _unusable(self, vector: Sequence[float]) -> str | None:
            """Why Ragas would make NaN, 0 or a made-up cosine of it; None = it would not. Ragas divides by the product
            of two norms, which overflows or becomes 0 long before the numbers themselves do."""
            if not any(vector):
                return "is zero, which has no direction"
            if not all(map(isfinite, vector)):
                return "is not finite"
            norm = hypot(*vector)
            if not 1e-100 <= norm <= 1e100:
                return f"has length {norm:g}, of which no cosine can be computed"
            known = next(iter(self.vectors.values()), vector)
            if len(vector) != len(known):
                return f"has {len(vector)} numbers, and the one before it {len(known)}"
            return None

    return MeasuredEmbedding


def given(prompt: str) -> dict[str, Any]:
    """The input at the end of a Ragas prompt: one JSON object, whose strings hold no bare line breaks."""
    found: dict[str, Any] = json.loads(prompt.rsplit("\ninput: ", 1)[1].rsplit("\nOutput:", 1)[0])
    return found


def _driven(work: Coroutine[Any, Any, Any]) -> Any:
    """The result of a coroutine that never waits. Needs no event loop, so it may run inside one."""
    try:
        work.send(None)
    except StopIteration as done:
        return done.value
    work.close()
    raise RuntimeError("ragas waits for something where it should only compute")


class _Rehearsal(Measurement):
    """A measurement that no judge sees: every call is answered at once, so that all prompts get written."""

    async def ask(self, site: CallSite, messages: Sequence[Message], schema: type[BaseModel] | None) -> Any:
        assert schema is not None
        exchange = self._begin(site, tuple(messages), schema)
        exchange.data = site.write(_rehearsed(exchange.call.task()))
        return schema.model_validate(exchange.data)

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [[1.0] for _ in texts]


def _rehearsed(task: Task) -> Findings:
    units: tuple[str, ...] = ("<unit>",)
    if isinstance(task, Support):
        units = task.units
    elif isinstance(task, Match):
        units = task.answer_claims + task.reference_claims
    return tuple(Finding(unit, "supported", "<reason>", 1.0) for unit in units)


class RagasScorer(JudgedScorer):
    """Base of the definitions that ask a judge. Subclasses name the class of ragas.metrics.collections and its calls.

    The fields of a subclass, other than ranking and k, are arguments of that class with its defaults.
    """

    framework: ClassVar[str] = "ragas"
    metric: ClassVar[str]
    """Class of ragas.metrics.collections."""
    arguments: ClassVar[tuple[str, ...]]
    """Of the metric's `ascore`."""
    sites: ClassVar[Mapping[str, CallSite]] = {}
    """Schema that Ragas asks for -> the call it belongs to."""

    def framework_version(self) -> str:
        """The installed version of ragas."""
        return installed_version("ragas")

    def implementation(self) -> str:
        """The class of Ragas."""
        return f"ragas.metrics.collections.{self.metric}"

    def prepare(self) -> None:
        """Import Ragas. Raises Unavailable."""
        _collections()

    def settings(self) -> dict[str, Any]:
        """The arguments of the metric's constructor besides judge and embeddings."""
        return self.model_dump(exclude={"ranking", "k"})

    async def injected(self, measurement: Measurement) -> dict[str, Any]:
        """The judge, or the embeddings, or both, as the metric's constructor names them."""
        return {"llm": _judge_class()(self, measurement)}

    def site(self, schema: str, prompt: str) -> CallSite:
        """The call that asks for `schema` with `prompt`."""
        return self.sites[schema]

    @override
    async def run(self, measurement: Measurement) -> float:
        # A metric is built in 5 microseconds and holds the judge: one for each measurement.
        injected = await self.injected(measurement)
        metric = getattr(_collections(), self.metric)(**injected, **self.settings())
        values = {
            "user_input": measurement.question.text,
            "response": measurement.record.answer,
            "reference": measurement.question.reference_answer,
            "retrieved_contexts": list(self.contexts(measurement.record)),
        }
        value = float((await metric.ascore(**{name: values[name] for name in self.arguments})).value)
        low, high = self.value_range
        # Rounding of floats takes the cosine of equal vectors past 1 by 2e-16.
        nearest = min(max(value, low), high)
        return nearest if abs(nearest - value) < 1e-9 else value

    def prompts(self) -> dict[str, str]:
        """Every text that the metric sends for a record of sentinels, each with its schema, as a judge would get it."""
        rehearsal = _Rehearsal(self.key, QUESTION, RECORD, None)  # type: ignore[arg-type]
        _driven(self.run(rehearsal))
        texts: dict[str, str] = {}
        for exchange in rehearsal.exchanges:
            text = f"{exchange.prompt}\n{schema_text(exchange.call.schema)}"
            if text not in texts.values():
                again = sum(name.split(" ")[0] == exchange.call.name for name in texts)
                texts[exchange.call.name + (f" {again + 1}" if again else "")] = text
        return texts


class EmbeddedScorer(RagasScorer):
    """Base of the definitions that need the judge's embeddings too. A cosine may be negative, and is not clipped."""

    value_range: ClassVar[tuple[float, float]] = (-1.0, 1.0)

    @property
    @override
    def embeds(self) -> bool:
        return True

    async def injected(self, measurement: Measurement) -> dict[str, Any]:
        """Judge and embeddings."""
        return {**await super().injected(measurement), "embeddings": _embedding_class()(measurement)}


def _source(text: str, measurement: Measurement) -> Source:
    """Where the text of a prompt was taken from."""
    if text == measurement.record.answer:
        return "answer"
    return "reference" if text == measurement.question.reference_answer else "context"


def _counted(count: int, one: str, many: str | None = None) -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"


def _binary(native: Any, what: str = "verdict") -> bool:
    """A verdict of 0 or 1. Ragas adds up whatever number it finds. Raises Disbelieved."""
    if native not in (0, 1, "0", "1"):
        raise Disbelieved(f"{what} {native!r} is outside the range 0 to 1")
    return int(native) == 1


def _support(
    units: Sequence[str], reply: Any, of: str = "", in_order: bool = False, rank: int | None = None
) -> tuple[Verdict, ...]:
    """The verdicts of one reply about statements, laid beside the statements that were sent.

    A judge may word a statement anew; one that it repeats belongs to the statement that it repeats. With in_order the
    place decides what Ragas computes, so that a statement repeated at another place is refused.

    Raises Disbelieved. Ragas has one word for contradicted and absent: `ours` is "not_supported" there.
    """
    items = reply["statements"]
    if len(items) != len(units):
        raise Disbelieved(f"{_counted(len(items), 'verdict')} for {_counted(len(units), 'claim')}{of}")
    told = [item["statement"] for item in items]
    each_once(told, units)
    if in_order and displaced(told, units):
        raise Disbelieved(f"the verdicts came in another order than the {_counted(len(units), 'claim')}{of}")
    return tuple(
        Verdict(
            unit,
            str(item["verdict"]),
            "supported" if _binary(item["verdict"]) else "not_supported",
            item["reason"] or None,
            rank,
        )
        for unit, item in zip(paired(told, units), items, strict=True)
    )


def _statements_site() -> CallSite:
    def task(prompt: str, measurement: Measurement) -> Task:
        text = given(prompt)["answer"]
        return Split(text, _source(text, measurement))

    return CallSite("statements", task, lambda findings: {"statements": [finding.unit for finding in findings]})


def _claims_in(sent: Mapping[str, Any], units_of: Source, source: Source) -> Support:
    """What is asked of the statements of a prompt; Ragas has one word for contradicted and absent."""
    return Support(tuple(sent["statements"]), sent["context"], units_of, source, apart=False)


def _write_support(findings: Findings) -> object:
    """1 = can be inferred, 0 = cannot."""
    return {
        "statements": [
            {"statement": f.unit, "reason": f.reason, "verdict": int(f.word == "supported")} for f in findings
        ]
    }


def _rating_site(task: Callable[[str, Measurement], Task], step: int) -> CallSite:
    """The call of a rating of 0, `step` or 2 * `step`."""
    return CallSite("rating", task, lambda findings: {"rating": step * int(findings[0].holds * 2 + 0.5)})


ONE_WORD = "A claim that is contradicted and one that is not mentioned count the same (0)."
JOINED = "The contexts are joined into one text; which one holds a claim is not asked."
EPSILON = "Ragas adds 1e-10 to the denominator: a perfect value is 0.9999999999, and 0.5 is 0.49999999998."
EMBEDDINGS = "The value hangs on the embeddings of the judge's card; other embeddings have other typical cosines."
ANYWAY = "A verdict other than 0 or 1 is added up by Ragas as it stands (2 gives a value of 2): failed here."


class Faithfulness(RagasScorer):
    """Share of the answer's statements that can be inferred from the context.

    Range 0 to 1. Source: Es et al. 2024, RAGAS; ragas/metrics/collections/faithfulness/metric.py (0.4.3).
    """

    id: ClassVar[str] = "ragas/faithfulness"
    asks: ClassVar[str] = asks.SUPPORTED
    metric: ClassVar[str] = "Faithfulness"
    arguments: ClassVar[tuple[str, ...]] = ("user_input", "response", "retrieved_contexts")
    unit_judged: ClassVar[str] = "claim"
    hit: ClassVar[str] = "a statement that the judge says can be inferred from the contexts joined into one text"
    formula: ClassVar[str] = "inferable statements / statements"
    nothing_to_judge: ClassVar[str] = "not applicable: ragas returns NaN for an answer without statements"
    requires: ClassVar[tuple[str, ...]] = ("question", "answer", "context")
    source: ClassVar[str] = "ragas/metrics/collections/faithfulness/metric.py of ragas 0.4.3; Es et al. 2024, RAGAS"
    calls: ClassVar[str] = "2: statements, verdicts"
    hazards: ClassVar[tuple[str, ...]] = (
        ONE_WORD,
        JOINED,
        "Ragas divides by the verdicts that came, not by the statements: 1 verdict for 5 gives 1.0. Failed here.",
        "Ragas counts a verdict other than 0 and 1 as 1: failed here.",
    )
    sites: ClassVar[Mapping[str, CallSite]] = {
        "StatementGeneratorOutput": _statements_site(),
        "NLIStatementOutput": CallSite(
            "verdicts",
            lambda prompt, m: _claims_in(given(prompt), "answer", "context"),
            _write_support,
        ),
    }

    def arithmetic(self) -> Formula:
        """See Measure."""
        return Formula(formulas.ANSWER_CLAIMS, formulas.ONE_OR_ZERO, formulas.SUPPORTED_ONLY)

    @override
    def evidence(self, measurement: Measurement) -> tuple[Verdict, ...]:
        statements = named(measurement.replies("statements")[0]["statements"], "claims in the answer")
        return _support(statements, measurement.replies("verdicts")[0])


class AnswerRelevancy(EmbeddedScorer):
    """Mean cosine between the question and the questions that the judge asks back from the answer.

    Range -1 to 1, not clipped; 0 where every reply calls the answer noncommittal. strictness: how many questions are
    asked back. Source: Es et al. 2024, RAGAS; ragas/metrics/collections/answer_relevancy/metric.py (0.4.3).
    """

    id: ClassVar[str] = "ragas/answer_relevancy"
    asks: ClassVar[str] = asks.ADDRESSES
    metric: ClassVar[str] = "AnswerRelevancy"
    arguments: ClassVar[tuple[str, ...]] = ("user_input", "response")
    unit_judged: ClassVar[str] = "question asked back"
    hit: ClassVar[str] = "as far as the embedding of the question asked back points the way of the real question's"
    formula: ClassVar[str] = "mean cosine over the questions asked back; 0 if all replies say noncommittal"
    nothing_to_judge: ClassVar[str] = "0 where the judge finds the answer noncommittal each time: a real 0"
    requires: ClassVar[tuple[str, ...]] = ("question", "answer")
    source: ClassVar[str] = "ragas/metrics/collections/answer_relevancy/metric.py of ragas 0.4.3; Es et al. 2024, RAGAS"
    calls: ClassVar[str] = "strictness (3), with the same prompt, and embeddings"
    hazards: ClassVar[tuple[str, ...]] = (
        "Noncommittal counts only when all replies say it: 2 of 3 cost nothing.",
        "Nothing is clipped: opposite embeddings give -1.",
        "The prompt is the same each time: a judge at temperature 0 writes the same question strictness times.",
        "Ragas leaves out an empty question that the judge wrote, and divides by the rest: failed here.",
        "It does not see whether the answer is true.",
        EMBEDDINGS,
    )
    sites: ClassVar[Mapping[str, CallSite]] = {
        "AnswerRelevanceOutput": CallSite(
            "question",
            lambda prompt, m: AskBack(given(prompt)["response"]),
            lambda findings: {"question": findings[0].unit, "noncommittal": int(findings[0].word == "absent")},
        )
    }

    strictness: Annotated[int, Field(ge=1)] = 3

    @override
    def evidence(self, measurement: Measurement) -> tuple[Verdict, ...]:
        replies = measurement.replies("question")
        asked = [reply["question"] for reply in replies if visible(reply["question"])]
        if len(asked) != self.strictness:
            raise Disbelieved(f"{_counted(len(asked), 'question')} asked back, {self.strictness} expected")
        for reply in replies:
            _binary(reply["noncommittal"], "noncommittal")
        return tuple(Verdict(reply["question"], str(reply["noncommittal"])) for reply in replies)


def _precision_site() -> CallSite:
    def task(prompt: str, measurement: Measurement) -> Task:
        sent = given(prompt)
        return Relevance(sent["question"], (sent["context"],), sent["answer"])

    return CallSite(
        "verdict",
        task,
        lambda findings: {"reason": findings[0].reason, "verdict": int(findings[0].word == "relevant")},
    )


def context_precision(verdicts: Sequence[bool]) -> float:
    """Ragas's own arithmetic of ContextPrecision on given verdicts, best rank first. Raises Unavailable."""
    metric = _collections().ContextPrecision
    return float(metric._calculate_average_precision(None, [int(verdict) for verdict in verdicts]))


class ContextPrecision(RagasScorer, RankedScorer):
    """Average precision of the ranking, by the judge's verdict whether a chunk helped to arrive at the reference.

    Range 0 to 1. Source: ragas/metrics/collections/context_precision/metric.py (0.4.3), ContextPrecision.
    """

    id: ClassVar[str] = "ragas/context_precision"
    asks: ClassVar[str] = asks.RANKED_FIRST
    metric: ClassVar[str] = "ContextPrecision"
    arguments: ClassVar[tuple[str, ...]] = ("user_input", "reference", "retrieved_contexts")
    unit_judged: ClassVar[str] = "chunk"
    hit: ClassVar[str] = "a chunk that the judge says was useful in arriving at the reference answer"
    formula: ClassVar[str] = "sum over useful ranks r of (useful among the first r / r) / (useful chunks + 1e-10)"
    nothing_to_judge: ClassVar[str] = (
        "0 where no chunk is useful; the denominator is what was retrieved, not the corpus"
    )
    requires: ClassVar[tuple[str, ...]] = ("question", "reference_answer", "reranked")
    source: ClassVar[str] = "ragas/metrics/collections/context_precision/metric.py of ragas 0.4.3, ContextPrecision"
    calls: ClassVar[str] = "1 a chunk"
    hazards: ClassVar[tuple[str, ...]] = (
        EPSILON,
        ANYWAY,
        "A relevant chunk that was not retrieved costs nothing.",
        "Chunks behind the last useful one cost nothing.",
        "A chunk that is ranked twice is judged and counted twice.",
    )
    sites: ClassVar[Mapping[str, CallSite]] = {"ContextPrecisionOutput": _precision_site()}

    def arithmetic(self) -> Formula:
        """See Measure."""
        return Formula(
            formulas.USEFUL_CHUNKS,
            formulas.ONE_OR_ZERO,
            formulas.RELEVANT_ONLY,
            formulas.precision_at_hits(epsilon=1e-10),
        )

    @override
    def evidence(self, measurement: Measurement) -> tuple[Verdict, ...]:
        chunks, replies = self.contexts(measurement.record), measurement.replies("verdict")
        if len(replies) != len(chunks):
            raise Disbelieved(f"{_counted(len(replies), 'verdict')} for {_counted(len(chunks), 'chunk')}")
        return tuple(
            Verdict(
                chunk,
                str(reply["verdict"]),
                "relevant" if _binary(reply["verdict"]) else "not_relevant",
                reply["reason"] or None,
                rank,
            )
            for rank, (chunk, reply) in enumerate(zip(chunks, replies, strict=True), 1)
        )


class ContextUtilization(ContextPrecision):
    """Average precision of the ranking, by the judge's verdict whether a chunk helped to arrive at the answer given.

    Range 0 to 1. Source: ragas/metrics/collections/context_precision/metric.py (0.4.3), ContextUtilization.
    """

    id: ClassVar[str] = "ragas/context_utilization"
    metric: ClassVar[str] = "ContextUtilization"
    arguments: ClassVar[tuple[str, ...]] = ("user_input", "response", "retrieved_contexts")
    hit: ClassVar[str] = "a chunk that the judge says was useful in arriving at the answer given"
    requires: ClassVar[tuple[str, ...]] = ("question", "answer", "reranked")
    source: ClassVar[str] = "ragas/metrics/collections/context_precision/metric.py of ragas 0.4.3, ContextUtilization"
    hazards: ClassVar[tuple[str, ...]] = (
        "It measures the ranking by the answer: a wrong answer makes the chunks useful that misled it.",
        *ContextPrecision.hazards,
    )

    def arithmetic(self) -> Formula:
        """See Measure."""
        return replace(super().arithmetic(), units=formulas.CHUNKS_USED)


def _recall_site() -> CallSite:
    def task(prompt: str, measurement: Measurement) -> Task:
        sent = given(prompt)
        return Attribute(sent["answer"], sent["context"])

    def write(findings: Findings) -> object:
        return {
            "classifications": [
                {"statement": f.unit, "reason": f.reason, "attributed": int(f.word == "attributed")} for f in findings
            ]
        }

    return CallSite("classifications", task, write)


class ContextRecall(RagasScorer, RankedScorer):
    """Share of the reference's statements that can be attributed to the retrieved chunks.

    Range 0 to 1. Source: ragas/metrics/collections/context_recall/metric.py (0.4.3).
    """

    id: ClassVar[str] = "ragas/context_recall"
    asks: ClassVar[str] = asks.CONTEXT_SUFFICES
    metric: ClassVar[str] = "ContextRecall"
    arguments: ClassVar[tuple[str, ...]] = ("user_input", "reference", "retrieved_contexts")
    unit_judged: ClassVar[str] = "claim of the reference"
    hit: ClassVar[str] = "a statement of the reference that the judge attributes to the contexts joined into one text"
    formula: ClassVar[str] = "attributed statements / statements"
    nothing_to_judge: ClassVar[str] = "not applicable: ragas returns NaN for a reference without statements"
    requires: ClassVar[tuple[str, ...]] = ("question", "reference_answer", "reranked")
    source: ClassVar[str] = "ragas/metrics/collections/context_recall/metric.py of ragas 0.4.3"
    calls: ClassVar[str] = "1"
    hazards: ClassVar[tuple[str, ...]] = (
        "One call both splits the reference and judges: what the judge leaves out of the reference is not missed.",
        ANYWAY,
        JOINED,
        "A reference that is a poor answer makes a poor yardstick for the ranking.",
    )
    sites: ClassVar[Mapping[str, CallSite]] = {"ContextRecallOutput": _recall_site()}

    def arithmetic(self) -> Formula:
        """See Measure."""
        return Formula(formulas.REFERENCE_CLAIMS, formulas.ONE_OR_ZERO, formulas.ATTRIBUTED_ONLY)

    @override
    def evidence(self, measurement: Measurement) -> tuple[Verdict, ...]:
        items = measurement.replies("classifications")[0]["classifications"]
        each_once(named([item["statement"] for item in items], "claims in the reference"))
        return tuple(
            Verdict(
                item["statement"],
                str(item["attributed"]),
                "attributed" if _binary(item["attributed"], "attributed") else "not_attributed",
                item["reason"] or None,
            )
            for item in items
        )


class ContextEntityRecall(RagasScorer, RankedScorer):
    """Share of the reference's entities that the judge also lists for the retrieved chunks.

    Range 0 to 1. Source: ragas/metrics/collections/context_entity_recall/metric.py (0.4.3).
    """

    id: ClassVar[str] = "ragas/context_entity_recall"
    asks: ClassVar[str] = asks.CONTEXT_SUFFICES
    metric: ClassVar[str] = "ContextEntityRecall"
    arguments: ClassVar[tuple[str, ...]] = ("reference", "retrieved_contexts")
    unit_judged: ClassVar[str] = "entity of the reference"
    hit: ClassVar[str] = "an entity of the reference that stands, letter by letter, among those of the contexts"
    formula: ClassVar[str] = "distinct entities in both lists / (distinct entities of the reference + 1e-8)"
    nothing_to_judge: ClassVar[str] = "not applicable: ragas returns 0 for a reference without entities"
    requires: ClassVar[tuple[str, ...]] = ("reference_answer", "reranked")
    source: ClassVar[str] = "ragas/metrics/collections/context_entity_recall/metric.py of ragas 0.4.3"
    calls: ClassVar[str] = "2: entities of the reference, entities of the contexts"
    hazards: ClassVar[tuple[str, ...]] = (
        "Entities are compared as strings: a difference in case, hyphen or article is a miss.",
        "The two lists come from two calls that do not see each other.",
        "Ragas adds 1e-8 to the denominator: 3 of 5 is 0.5999999988.",
        "Ragas checks no input: without contexts it asks the judge about an empty text. Not applicable here.",
    )
    sites: ClassVar[Mapping[str, CallSite]] = {
        "EntitiesList": CallSite(
            "entities",
            lambda prompt, m: Split(given(prompt)["text"], _source(given(prompt)["text"], m), "entities"),
            lambda findings: {"entities": [finding.unit for finding in findings]},
        )
    }

    def arithmetic(self) -> Formula:
        """See Measure."""
        return Formula(
            formulas.REFERENCE_ENTITIES,
            {"in both lists": 1.0, "in the reference only": 0.0},
            formulas.ATTRIBUTED_ONLY,
            formulas.padded_share(epsilon=1e-8),
        )

    @override
    def evidence(self, measurement: Measurement) -> tuple[Verdict, ...]:
        of_reference, of_contexts = measurement.replies("entities")
        entities = named(of_reference["entities"], "entities in the reference")
        found = set(of_contexts["entities"])
        return tuple(
            Verdict(entity, "in both lists", "attributed")
            if entity in found
            else Verdict(entity, "in the reference only", "not_attributed")
            for entity in dict.fromkeys(entities)
        )


def _claims_site() -> CallSite:
    def task(prompt: str, measurement: Measurement) -> Task:
        text = given(prompt)["response"]
        return Split(text, _source(text, measurement))

    return CallSite("claims", task, lambda findings: {"claims": [finding.unit for finding in findings]})


def _claim_verdicts_site() -> CallSite:
    def task(prompt: str, measurement: Measurement) -> Task:
        sent = given(prompt)
        if sent["context"] == measurement.question.reference_answer:
            return _claims_in(sent, "answer", "reference")
        return _claims_in(sent, "reference", "answer")

    return CallSite("verdicts", task, _write_support)


class FactualCorrectness(RagasScorer):
    """Agreement of answer and reference, claim by claim: precision, recall or F-beta.

    Range 0 to 1, rounded to two decimals by Ragas. mode: precision = claims of the answer that the reference supports;
    recall and f1 look at the reference's claims too. beta: weight of recall in f1. atomicity, coverage: which examples
    the judge is shown for splitting into claims.
    Source: ragas/metrics/collections/factual_correctness/metric.py (0.4.3).
    """

    id: ClassVar[str] = "ragas/factual_correctness"
    asks: ClassVar[str] = asks.CORRECT
    metric: ClassVar[str] = "FactualCorrectness"
    arguments: ClassVar[tuple[str, ...]] = ("response", "reference")
    unit_judged: ClassVar[str] = "claim"
    hit: ClassVar[str] = "a claim of the answer that the judge says can be inferred from the reference, and vice versa"
    formula: ClassVar[str] = "F-beta of precision and recall (see mode), rounded to 2 decimals"
    nothing_to_judge: ClassVar[str] = (
        "not applicable: ragas returns 0 for an answer, and 0 or 1 for a reference, without claims"
    )
    requires: ClassVar[tuple[str, ...]] = ("answer", "reference_answer")
    source: ClassVar[str] = "ragas/metrics/collections/factual_correctness/metric.py of ragas 0.4.3"
    calls: ClassVar[str] = "4: claims and verdicts of the answer, of the reference"
    hazards: ClassVar[tuple[str, ...]] = (
        "Recall mixes units: supported claims of the answer / (those + missed claims of the reference). 10 of 10 in "
        "the answer and 0 of 2 of the reference give 0.83.",
        "Ragas rounds to 2 decimals, so differences below 0.01 are lost.",
        ONE_WORD,
        "The question is not shown: a claim that is true and beside the point is false here.",
        "Ragas counts a verdict other than 0 and 1 as 1, and divides by the verdicts that came: failed here.",
    )
    sites: ClassVar[Mapping[str, CallSite]] = {
        "ClaimDecompositionOutput": _claims_site(),
        "NLIStatementOutput": _claim_verdicts_site(),
    }

    mode: Literal["f1", "precision", "recall"] = "f1"
    beta: Beta = 1.0
    atomicity: Literal["low", "high"] = "low"
    coverage: Literal["low", "high"] = "low"

    @cached_property
    def definition(self) -> Definition:
        """See Measure; what it asks depends on the mode."""
        if self.mode == "precision":
            return replace(
                super().definition,
                asks=asks.PRECISE,
                formula="supported claims of the answer / claims of the answer, rounded to 2 decimals",
                calls="2: claims and verdicts of the answer",
            )
        if self.mode == "recall":
            return replace(
                super().definition,
                asks=asks.COMPLETE,
                formula="supported claims of the answer / (those + claims of the reference that the answer does not "
                "support), rounded to 2 decimals",
            )
        return super().definition

    def evidence(self, measurement: Measurement) -> tuple[Verdict, ...]:
        """The claims of the answer, then those of the reference."""
        sides = ("answer",) if self.mode == "precision" else ("answer", "reference")
        claims = [
            named(reply["claims"], f"claims in the {side}")
            for side, reply in zip(sides, measurement.replies("claims"), strict=True)
        ]
        return tuple(
            verdict
            for side, units, reply in zip(sides, claims, measurement.replies("verdicts"), strict=True)
            for verdict in _support(units, reply, f" of the {side}")
        )


def _chunk_verdicts_site() -> CallSite:
    def task(prompt: str, measurement: Measurement) -> Task:
        sent = given(prompt)
        of_reference = measurement.replies("statements")[0]["statements"]
        if sent["context"] == measurement.question.reference_answer:
            return _claims_in(sent, "answer", "reference")
        units_of: Source = "reference" if sent["statements"] == of_reference else "answer"
        return _claims_in(sent, units_of, "chunk")

    return CallSite("verdicts", task, _write_support)


class NoiseSensitivity(RagasScorer):
    """Share of the answer's statements that are wrong by the reference and come from a chunk.

    Range 0 to 1; lower is better. mode: relevant = from a chunk that supports a statement of the reference, irrelevant
    = from other chunks only. Evidence: the answer's statements against the reference (rank None), then for each chunk
    of the prompt, under its place as rank, the reference's statements and the answer's.
    Source: ragas/metrics/collections/noise_sensitivity/metric.py (0.4.3).
    """

    id: ClassVar[str] = "ragas/noise_sensitivity"
    asks: ClassVar[str] = asks.MISLED
    metric: ClassVar[str] = "NoiseSensitivity"
    arguments: ClassVar[tuple[str, ...]] = ("user_input", "response", "reference", "retrieved_contexts")
    unit_judged: ClassVar[str] = "claim"
    hit: ClassVar[str] = (
        "a statement of the answer that the reference does not support and a chunk does: one that supports a statement "
        "of the reference (mode=relevant), or only ones that support none (mode=irrelevant)"
    )
    formula: ClassVar[str] = "such statements / statements of the answer"
    nothing_to_judge: ClassVar[str] = "not applicable: ragas raises for an answer or a reference without statements"
    requires: ClassVar[tuple[str, ...]] = ("question", "answer", "reference_answer", "context")
    direction: ClassVar[Literal["higher", "lower"]] = "lower"
    source: ClassVar[str] = "ragas/metrics/collections/noise_sensitivity/metric.py of ragas 0.4.3"
    calls: ClassVar[str] = "3 + 2 a chunk"
    hazards: ClassVar[tuple[str, ...]] = (
        "A wrong statement that no chunk supports, the worst kind, is not counted in either mode.",
        "A true statement that the reference leaves out counts as wrong.",
        ONE_WORD,
        "Verdicts are laid beside statements by their place: a reply in another order is refused here.",
        "Ragas raises where a verdict is missing: failed here, with the count.",
        "Its prompts are written by hand, show a schema of another name than the one asked for, and escape all "
        "letters beyond ASCII.",
    )
    sites: ClassVar[Mapping[str, CallSite]] = {
        "StatementGeneratorOutput": _statements_site(),
        "StatementFaithfulnessOutput": _chunk_verdicts_site(),
    }

    mode: Literal["relevant", "irrelevant"] = "relevant"

    @override
    def evidence(self, measurement: Measurement) -> tuple[Verdict, ...]:
        # Ragas asks for the reference first, and for each chunk likewise.
        of_reference, of_answer = measurement.replies("statements")
        reference = named(of_reference["statements"], "claims in the reference")
        answer = named(of_answer["statements"], "claims in the answer")
        asked: list[tuple[list[str], str, int | None]] = []
        for rank, _ in enumerate(self.contexts(measurement.record), 1):
            asked += [(reference, "reference", rank), (answer, "answer", rank)]
        asked.append((answer, "answer", None))
        replies = measurement.replies("verdicts")
        # A missing verdict makes ragas stop before its last call: counts first, then whether all calls were made.
        *of_chunks, by_reference = [
            _support(units, reply, f" of the {side}", in_order=True, rank=rank)
            for (units, side, rank), reply in zip(asked, replies, strict=False)
        ]
        if len(replies) != len(asked):
            raise Disbelieved(f"{_counted(len(replies), 'reply', 'replies')} with verdicts for {len(asked)} calls")
        return by_reference + tuple(verdict for verdicts in of_chunks for verdict in verdicts)


class RatedTwice(RagasScorer):
    """Base of the definitions that take the mean of two ratings of one thing, by two prompts."""

    scale: ClassVar[tuple[int, int, int]]
    """The ratings that there are, worst first."""
    words: ClassVar[tuple[str, str]]
    """Ours for the worst and the best of them; the middle one has no counterpart."""
    rated: ClassVar[str]

    def settings(self) -> dict[str, Any]:
        """One attempt: retries are the judge's, and a rating out of scale is a fault to be told, not repeated."""
        return {"max_retries": 1}

    @override
    def evidence(self, measurement: Measurement) -> tuple[Verdict, ...]:
        ratings = [reply["rating"] for reply in measurement.replies("rating")]
        worst, _, best = self.scale
        for rating in ratings:
            if int(rating) not in range(best + 1):
                raise Disbelieved(f"rating {rating} is outside the range {worst} to {best}")
            if int(rating) not in self.scale:
                raise Disbelieved(f"rating {rating} is within the range {worst} to {best} and none of {self.scale}")
        if len(ratings) != 2:
            # Ragas would take the one that it has for the score.
            raise Disbelieved(f"{_counted(len(ratings), 'rating')}, 2 expected")
        ours = {worst: self.words[0], best: self.words[1]}
        return tuple(
            Verdict(f"{self.rated} (prompt {n})", str(rating), ours.get(int(rating)))
            for n, rating in enumerate(ratings, 1)
        )


NO_RETRIES = (
    "Ragas retries 5 times whatever goes wrong, then lets the other rating stand alone; here both must be there."
)


class ContextRelevance(RatedTwice, RankedScorer):
    """Two ratings of all chunks together: do they hold what answers the question.

    Range 0 to 1 in steps of 0.25. Source: ragas/metrics/collections/context_relevance/metric.py (0.4.3).
    """

    id: ClassVar[str] = "ragas/context_relevance"
    asks: ClassVar[str] = asks.CONTEXT_RELEVANT
    metric: ClassVar[str] = "ContextRelevance"
    arguments: ClassVar[tuple[str, ...]] = ("user_input", "retrieved_contexts")
    unit_judged: ClassVar[str] = "all chunks as one text"
    hit: ClassVar[str] = "rating: 0 = nothing relevant, 1 = partly, 2 = fully relevant"
    formula: ClassVar[str] = "(rating by prompt 1 + rating by prompt 2) / 4"
    nothing_to_judge: ClassVar[str] = "0, without a call, where the question contains all of the context"
    requires: ClassVar[tuple[str, ...]] = ("question", "reranked")
    source: ClassVar[str] = "ragas/metrics/collections/context_relevance/metric.py of ragas 0.4.3"
    calls: ClassVar[str] = "2; none where the question contains the context"
    hazards: ClassVar[tuple[str, ...]] = (
        "Context that is contained in the question gives 0 with no call.",
        "One relevant chunk among many can be rated as highly as all relevant.",
        NO_RETRIES,
    )
    scale: ClassVar[tuple[int, int, int]] = (0, 1, 2)
    words: ClassVar[tuple[str, str]] = ("not_relevant", "relevant")
    rated: ClassVar[str] = "the context"
    sites: ClassVar[Mapping[str, CallSite]] = {
        "ContextRelevanceOutput": _rating_site(
            lambda prompt, m: Grade(
                "relevance", given(prompt)["context"], "context", question=given(prompt)["user_input"]
            ),
            step=1,
        )
    }

    @override
    def evidence(self, measurement: Measurement) -> tuple[Verdict, ...]:
        context = "\n".join(self.contexts(measurement.record)).strip()
        if not measurement.exchanges and context in measurement.question.text.strip():
            return ()
        return super().evidence(measurement)


class ResponseGroundedness(RatedTwice):
    """Two ratings of the whole answer: is it backed by the context.

    Range 0 to 1 in steps of 0.25. Source: ragas/metrics/collections/response_groundedness/metric.py (0.4.3).
    """

    id: ClassVar[str] = "ragas/response_groundedness"
    asks: ClassVar[str] = asks.SUPPORTED
    metric: ClassVar[str] = "ResponseGroundedness"
    arguments: ClassVar[tuple[str, ...]] = ("response", "retrieved_contexts")
    unit_judged: ClassVar[str] = "answer"
    hit: ClassVar[str] = "rating: 0 = not grounded, 1 = partly, 2 = fully grounded in the contexts joined into one text"
    formula: ClassVar[str] = "(rating by prompt 1 + rating by prompt 2) / 4"
    nothing_to_judge: ClassVar[str] = "an answer is always rated, also one that claims nothing"
    requires: ClassVar[tuple[str, ...]] = ("answer", "context")
    source: ClassVar[str] = "ragas/metrics/collections/response_groundedness/metric.py of ragas 0.4.3"
    calls: ClassVar[str] = "2"
    hazards: ClassVar[tuple[str, ...]] = (
        "One rating for the whole answer: a single invented claim among many may leave it at 1.",
        NO_RETRIES,
    )
    scale: ClassVar[tuple[int, int, int]] = (0, 1, 2)
    words: ClassVar[tuple[str, str]] = ("not_supported", "supported")
    rated: ClassVar[str] = "the answer"
    sites: ClassVar[Mapping[str, CallSite]] = {
        "ResponseGroundednessOutput": _rating_site(
            lambda prompt, m: Grade(
                "groundedness", given(prompt)["response"], "answer", against=given(prompt)["context"]
            ),
            step=1,
        )
    }


class AnswerAccuracy(RatedTwice):
    """Two ratings of how far answer and reference say the same; the second one with their places swapped.

    Range 0 to 1 in steps of 0.25. Source: ragas/metrics/collections/answer_accuracy/metric.py (0.4.3).
    """

    id: ClassVar[str] = "ragas/answer_accuracy"
    asks: ClassVar[str] = asks.CORRECT
    metric: ClassVar[str] = "AnswerAccuracy"
    arguments: ClassVar[tuple[str, ...]] = ("user_input", "response", "reference")
    unit_judged: ClassVar[str] = "answer"
    hit: ClassVar[str] = "rating: 0 = no match, 2 = partial match, 4 = match with the reference"
    formula: ClassVar[str] = "(rating of the answer + rating with answer and reference swapped) / 8"
    nothing_to_judge: ClassVar[str] = "an answer is always rated, also one that claims nothing"
    requires: ClassVar[tuple[str, ...]] = ("question", "answer", "reference_answer")
    source: ClassVar[str] = "ragas/metrics/collections/answer_accuracy/metric.py of ragas 0.4.3"
    calls: ClassVar[str] = "2"
    hazards: ClassVar[tuple[str, ...]] = (
        "The second prompt shows the reference as the answer and the answer as the reference.",
        "Three steps only: most answers with one small mistake and with many get the same 2.",
        NO_RETRIES,
    )
    scale: ClassVar[tuple[int, int, int]] = (0, 2, 4)
    words: ClassVar[tuple[str, str]] = ("not_supported", "supported")
    rated: ClassVar[str] = "the answer"
    sites: ClassVar[Mapping[str, CallSite]] = {
        "AnswerAccuracyOutput": _rating_site(
            lambda prompt, m: Agree(
                given(prompt)["query"], given(prompt)["user_answer"], given(prompt)["reference_answer"]
            ),
            step=2,
        )
    }


class SemanticSimilarity(EmbeddedScorer):
    """Cosine of the embeddings of answer and reference; 0 or 1 where a threshold is given.

    Range -1 to 1. Source: ragas/metrics/collections/_semantic_similarity.py (0.4.3); Risch et al. 2021, Semantic Answer
    Similarity.
    """

    id: ClassVar[str] = "ragas/semantic_similarity"
    asks: ClassVar[str] = asks.CORRECT
    metric: ClassVar[str] = "SemanticSimilarity"
    arguments: ClassVar[tuple[str, ...]] = ("reference", "response")
    unit_judged: ClassVar[str] = "answer"
    hit: ClassVar[str] = "as far as the embeddings of answer and reference point the same way"
    formula: ClassVar[str] = "cosine(answer, reference); with a threshold: 1 if cosine >= threshold else 0"
    nothing_to_judge: ClassVar[str] = "an answer is always compared, also one that claims nothing"
    requires: ClassVar[tuple[str, ...]] = ("answer", "reference_answer")
    source: ClassVar[str] = "ragas/metrics/collections/_semantic_similarity.py of ragas 0.4.3"
    calls: ClassVar[str] = "0, and embeddings"
    hazards: ClassVar[tuple[str, ...]] = (
        "A wrong number or a 'not' hardly moves an embedding.",
        "Ragas makes NaN of an embedding of zeros: failed here.",
        EMBEDDINGS,
    )

    # Ragas takes a threshold of 0 for none, so that it cannot be asked for.
    threshold: Annotated[float, Field(gt=0, le=1)] | None = None

    async def injected(self, measurement: Measurement) -> dict[str, Any]:
        """Embeddings only, fetched beforehand: Ragas asks for them without awaiting."""
        embedding = _embedding_class()(measurement)
        await embedding.aembed_texts([measurement.question.reference_answer, measurement.record.answer])
        return {"embeddings": embedding}

    @override
    def evidence(self, measurement: Measurement) -> tuple[Verdict, ...]:
        return ()


def _weighted(weights: tuple[float, float]) -> tuple[float, float]:
    if sum(weights) < 0.001:
        raise ValueError("the two weights must be at least 0.001 together")
    return weights


Weight = Annotated[float, Field(ge=0, le=1000)]


class AnswerCorrectness(EmbeddedScorer):
    """Weighted mean of the F-beta of claims and of the cosine between answer and reference.

    Range -1 to 1 (a cosine may be negative; with the default weights not below -0.25). weights: of claims and of the
    cosine. beta: weight of recall. Source: ragas/metrics/collections/answer_correctness/metric.py (0.4.3).
    """

    id: ClassVar[str] = "ragas/answer_correctness"
    asks: ClassVar[str] = asks.CORRECT
    metric: ClassVar[str] = "AnswerCorrectness"
    arguments: ClassVar[tuple[str, ...]] = ("user_input", "response", "reference")
    unit_judged: ClassVar[str] = "claim, and the answer as a whole"
    hit: ClassVar[str] = "a claim of the answer that the judge calls TP: the reference's claims support it"
    formula: ClassVar[str] = (
        "weighted mean of F-beta(TP / (TP + FP), TP / (TP + FN)) and cosine(answer, reference), weights 0.75 and 0.25"
    )
    nothing_to_judge: ClassVar[str] = (
        "not applicable: ragas takes the claims for a perfect match (1.0) when answer or reference yields none"
    )
    requires: ClassVar[tuple[str, ...]] = ("question", "answer", "reference_answer")
    source: ClassVar[str] = "ragas/metrics/collections/answer_correctness/metric.py of ragas 0.4.3"
    calls: ClassVar[str] = "3: statements twice, classification; and embeddings unless their weight is 0"
    hazards: ClassVar[tuple[str, ...]] = (
        "Recall mixes units: TP are claims of the answer, FN claims of the reference.",
        "Ragas counts whatever the judge lists: an FN that is no claim of the reference, or that is one of the answer, "
        "fails here.",
        "Ragas checks no input: an empty answer gets 0.75. Not applicable here.",
        "The cosine of two unrelated texts is seldom 0, which lifts every value.",
        "Ragas takes the cosine of an embedding of zeros for 0: failed here.",
        EMBEDDINGS,
    )
    sites: ClassVar[Mapping[str, CallSite]] = {
        "StatementGeneratorOutput": _statements_site(),
        "ClassificationWithReason": CallSite(
            "classification",
            lambda prompt, m: Match(
                given(prompt)["question"], tuple(given(prompt)["answer"]), tuple(given(prompt)["ground_truth"])
            ),
            lambda findings: {},
        ),
    }

    weights: Annotated[tuple[Weight, Weight], Field(strict=False), AfterValidator(_weighted)] = (0.75, 0.25)
    beta: Beta = 1.0

    @property
    @override
    def embeds(self) -> bool:
        return self.weights[1] > 0

    def site(self, schema: str, prompt: str) -> CallSite:
        """See RagasScorer. How many of the findings are of the answer is known from the prompt only."""
        site = super().site(schema, prompt)
        if site.name != "classification":
            return site
        claims = len(given(prompt)["answer"])

        def write(findings: Findings) -> object:
            def told(which: Findings, supported: bool) -> list[dict[str, str]]:
                return [
                    {"statement": f.unit, "reason": f.reason} for f in which if (f.word == "supported") is supported
                ]

            of_answer, of_reference = findings[:claims], findings[claims:]
            return {"TP": told(of_answer, True), "FP": told(of_answer, False), "FN": told(of_reference, False)}

        return replace(site, write=write)

    def settings(self) -> dict[str, Any]:
        """See RagasScorer."""
        return {"weights": list(self.weights), "beta": self.beta}

    def evidence(self, measurement: Measurement) -> tuple[Verdict, ...]:
        """The claims of the answer (TP, FP), then those of the reference that the answer lacks (FN)."""
        of_answer, of_reference = measurement.replies("statements")
        answer = named(of_answer["statements"], "claims in the answer")
        reference = named(of_reference["statements"], "claims in the reference")
        found = measurement.replies("classification")[0]
        judged = len(found["TP"]) + len(found["FP"])
        if judged != len(answer):
            raise Disbelieved(
                f"{_counted(judged, 'verdict')} (TP, FP) for {_counted(len(answer), 'claim')} of the answer"
            )
        if len(found["FN"]) > len(reference):
            raise Disbelieved(
                f"{_counted(len(found['FN']), 'verdict')} (FN) for {_counted(len(reference), 'claim')} of the reference"
            )
        told = {name: [item["statement"] for item in found[name]] for name in ("TP", "FP", "FN")}
        each_once(told["TP"] + told["FP"], answer)
        each_once(told["FN"], reference)
        own, others = set(map(alike, answer)), set(map(alike, reference))
        for text in told["TP"] + told["FP"]:
            if alike(text) in others - own:
                raise Disbelieved(f"TP and FP are for claims of the answer, and {text[:60]!r} is one of the reference")
        for text in told["FN"]:
            if alike(text) in own:
                raise Disbelieved(f"FN is for claims that the answer lacks, and {text[:60]!r} is one of its own")
            if alike(text) not in others:
                raise Disbelieved(
                    f"FN is for claims of the reference, and {text[:60]!r} is none of the {len(reference)}"
                )
        ours = {"TP": "supported", "FP": "not_supported", "FN": "absent"}
        return tuple(
            Verdict(item["statement"], name, word, item["reason"] or None)
            for name, word in ours.items()
            for item in found[name]
        )


class LegacyScorer(ListDefinition):
    """Base of the definitions without a judge. They exist only among the older classes of ragas.metrics.

    Their public methods report to an analytics host, write a file and patch asyncio; what is called here is the
    coroutine beneath, `_single_turn_ascore`, which computes and never waits, so that it needs no event loop.
    """

    framework: ClassVar[str] = "ragas"
    unit_judged: ClassVar[str] = "document"
    nothing_to_judge: ClassVar[str] = (
        "not applicable where no passage is labelled as relevant; 0 where nothing was retrieved (ragas raises, or "
        "returns NaN or 0), and the question stays in the mean"
    )
    module: ClassVar[str]
    metric: ClassVar[str]
    """Module and class of Ragas."""

    def framework_version(self) -> str:
        """The installed version of ragas."""
        return installed_version("ragas")

    def implementation(self) -> str:
        """The class of Ragas."""
        return f"{self.module}.{self.metric}"

    def prepare(self) -> None:
        """Import Ragas. Raises Unavailable."""
        framework("ragas", self.module, "ragas.dataset_schema")

    @abstractmethod
    def _compared(self, question: Question, record: Record) -> tuple[list[str], list[str]] | str:
        """What was retrieved and what is labelled, to be compared; or why that is not known."""

    @abstractmethod
    def _native(self, retrieved: list[str], labelled: list[str]) -> tuple[float, tuple[Verdict, ...]]:
        """Ragas's own value with its evidence."""

    def score(self, question: Question, record: Record) -> Score:
        """The score of one ranking."""
        if reason := nothing_labelled(question, 1):
            return self.not_applicable(record, reason)
        if not self.chunks(record):
            return self.computed(record, 0.0, reason=nothing_retrieved(record))
        compared = self._compared(question, record)
        if isinstance(compared, str):
            return self.not_applicable(record, compared)
        try:
            value, evidence = self._native(*compared)
        except Unavailable as unavailable:
            return self.failed(record, str(unavailable))
        except Exception as error:
            return self.failed(record, f"ragas raised {type(error).__name__}: {error}")
        if not 0.0 <= value <= 1.0:
            return self.failed(record, f"ragas returned {value}, outside the range 0 to 1")
        return self.computed(record, value, evidence, "; ".join(self.shortfall(len(self.chunks(record)))) or None)

    def _ragas(self, sample: Mapping[str, list[str]], **settings: Any) -> float:
        module, samples = framework("ragas", self.module, "ragas.dataset_schema")
        metric = getattr(module, self.metric)(**settings)
        return float(_driven(metric._single_turn_ascore(samples.SingleTurnSample(**sample), [])))


class IDScorer(LegacyScorer):
    """Base of the two that compare ids."""

    requires: ClassVar[tuple[str, ...]] = ("relevant",)
    hazards: ClassVar[tuple[str, ...]] = (
        "An id is a document id, since labels outlive chunkers: any chunk of a labelled document is a hit, whether it "
        "holds the labelled passage or not.",
        "Ids are taken as sets: neither ranks nor repeats count.",
    )

    def _compared(self, question: Question, record: Record) -> tuple[list[str], list[str]] | str:
        labelled = [span.doc_id for span in question.relevant or () if span.grade > 0]
        return [chunk.doc_id for chunk in self.chunks(record)[: self.k]], labelled

    def _value(self, retrieved: list[str], labelled: list[str]) -> float:
        return self._ragas({"retrieved_context_ids": retrieved, "reference_context_ids": labelled})


class IDContextPrecision(IDScorer):
    """Share of the retrieved documents that are labelled as relevant.

    Range 0 to 1. Source: ragas/metrics/_context_precision.py (0.4.3), IDBasedContextPrecision.
    """

    id: ClassVar[str] = "ragas/id_context_precision"
    asks: ClassVar[str] = asks.CONTEXT_RELEVANT
    module: ClassVar[str] = "ragas.metrics._context_precision"
    metric: ClassVar[str] = "IDBasedContextPrecision"
    hit: ClassVar[str] = "a retrieved document with a passage that is labelled as relevant (grade above 0)"
    formula: ClassVar[str] = "distinct retrieved documents that are labelled / distinct retrieved documents"
    source: ClassVar[str] = "ragas/metrics/_context_precision.py of ragas 0.4.3, IDBasedContextPrecision"

    def _native(self, retrieved: list[str], labelled: list[str]) -> tuple[float, tuple[Verdict, ...]]:
        evidence = tuple(
            Verdict(doc_id, "labelled", "relevant", rank=retrieved.index(doc_id) + 1)
            if doc_id in labelled
            else Verdict(doc_id, "not labelled", "not_relevant", rank=retrieved.index(doc_id) + 1)
            for doc_id in dict.fromkeys(retrieved)
        )
        return self._value(retrieved, labelled), evidence


class IDContextRecall(IDScorer):
    """Share of the documents labelled as relevant that were retrieved.

    Range 0 to 1. Source: ragas/metrics/_context_recall.py (0.4.3), IDBasedContextRecall.
    """

    id: ClassVar[str] = "ragas/id_context_recall"
    asks: ClassVar[str] = asks.FOUND
    module: ClassVar[str] = "ragas.metrics._context_recall"
    metric: ClassVar[str] = "IDBasedContextRecall"
    hit: ClassVar[str] = "a document with a passage labelled as relevant (grade above 0) of which a chunk was retrieved"
    formula: ClassVar[str] = "distinct labelled documents that were retrieved / distinct labelled documents"
    source: ClassVar[str] = "ragas/metrics/_context_recall.py of ragas 0.4.3, IDBasedContextRecall"

    def _native(self, retrieved: list[str], labelled: list[str]) -> tuple[float, tuple[Verdict, ...]]:
        evidence = tuple(
            Verdict(doc_id, "retrieved", "attributed", rank=retrieved.index(doc_id) + 1)
            if doc_id in retrieved
            else Verdict(doc_id, "not retrieved", "not_attributed")
            for doc_id in dict.fromkeys(labelled)
        )
        return self._value(retrieved, labelled), evidence


@cache
def _likeness_class() -> Callable[[], Any]:
    """Ragas's string similarity without its wrapping, which reports every comparison to analytics."""
    framework("rapidfuzz, which Ragas needs for this definition,", "rapidfuzz")
    (strings,) = framework("ragas", "ragas.metrics._string")

    class Likeness(strings.NonLLMStringSimilarity):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.seen: list[float] = []

        async def single_turn_ascore(self, sample: Any, callbacks: Any = None, timeout: float | None = None) -> float:
            value = float(await self._single_turn_ascore(sample, callbacks))
            self.seen.append(value)
            return value

    return Likeness


def passage_text(span: Span, chunks: Sequence[Chunk]) -> str | None:
    """The text of a labelled passage as far as the chunks that share a character with it hold it, in order.

    A character that no chunk holds (white space between chunks, as a rule) becomes one space for each gap. None = no
    chunk holds any of it.
    """
    text, position = "", span.start
    for chunk in sorted(chunks, key=lambda chunk: (chunk.start, chunk.end)):
        start, end = max(position, chunk.start), min(span.end, chunk.end)
        if chunk.doc_id == span.doc_id and start < end:
            gap = " " if text and start > position else ""
            text += gap + chunk.text[start - chunk.start : end - chunk.start]
            position = end
    return text or None


class NonLLMScorer(LegacyScorer):
    """Base of the two that compare texts letter by letter. threshold: the likeness from which two texts match."""

    requires: ClassVar[tuple[str, ...]] = ("relevant",)
    hazards: ClassVar[tuple[str, ...]] = (
        "Likeness is 1 - Levenshtein distance / longer length: a chunk that holds a short passage among much else is a "
        "miss, and one that differs in one number (another model, another year) is a hit.",
        "The passage's text is put together from Record.labelled, the chunks of this run that share a character with "
        "it; a system that does not report them cannot be scored.",
    )

    threshold: Annotated[float, Field(ge=0, le=1)] = 0.5

    def prepare(self) -> None:
        """Import Ragas and rapidfuzz. Raises Unavailable."""
        super().prepare()
        _likeness_class()

    def _compared(self, question: Question, record: Record) -> tuple[list[str], list[str]] | str:
        spans = list(dict.fromkeys(span for span in question.relevant or () if span.grade > 0))
        passages = [passage_text(span, record.labelled) for span in spans]
        unknown = passages.count(None)
        if unknown:
            return f"the text of {unknown} of {len(passages)} labelled passages is in no chunk of Record.labelled"
        return [chunk.text for chunk in self.chunks(record)[: self.k]], [text for text in passages if text]

    def _likest(self, retrieved: list[str], labelled: list[str], distance: str, of: int) -> tuple[float, list[float]]:
        """Ragas's value, and for each of its `of` units the likeness that it looked at."""
        likeness = _likeness_class()()
        value = self._ragas(
            {"retrieved_contexts": retrieved, "reference_contexts": labelled},
            **{distance: likeness},
            threshold=self.threshold,
        )
        each = len(likeness.seen) // of
        return value, [max(likeness.seen[n * each : (n + 1) * each]) for n in range(of)]


class NonLLMContextPrecision(NonLLMScorer):
    """Average precision of the ranking; a chunk is useful when its text is like that of a labelled passage.

    Range 0 to 1. Source: ragas/metrics/_context_precision.py (0.4.3), NonLLMContextPrecisionWithReference.
    """

    id: ClassVar[str] = "ragas/non_llm_context_precision"
    asks: ClassVar[str] = asks.RANKED_FIRST
    module: ClassVar[str] = "ragas.metrics._context_precision"
    metric: ClassVar[str] = "NonLLMContextPrecisionWithReference"
    unit_judged: ClassVar[str] = "chunk"
    hit: ClassVar[str] = "a chunk whose likeness to a labelled passage is at least the threshold"
    formula: ClassVar[str] = "sum over hits at ranks r of (hits among the first r / r) / (hits + 1e-10)"
    source: ClassVar[str] = "ragas/metrics/_context_precision.py of ragas 0.4.3, NonLLMContextPrecisionWithReference"
    hazards: ClassVar[tuple[str, ...]] = (EPSILON, *NonLLMScorer.hazards)

    def _native(self, retrieved: list[str], labelled: list[str]) -> tuple[float, tuple[Verdict, ...]]:
        value, likest = self._likest(retrieved, labelled, "distance_measure", len(retrieved))
        return value, tuple(
            Verdict(text, f"{like:.3f}", "relevant" if like >= self.threshold else "not_relevant", rank=rank)
            for rank, (text, like) in enumerate(zip(retrieved, likest, strict=True), 1)
        )


class NonLLMContextRecall(NonLLMScorer):
    """Share of the labelled passages to which the text of a retrieved chunk is alike.

    Range 0 to 1. Source: ragas/metrics/_context_recall.py (0.4.3), NonLLMContextRecall.
    """

    id: ClassVar[str] = "ragas/non_llm_context_recall"
    asks: ClassVar[str] = asks.FOUND
    module: ClassVar[str] = "ragas.metrics._context_recall"
    metric: ClassVar[str] = "NonLLMContextRecall"
    unit_judged: ClassVar[str] = "passage"
    hit: ClassVar[str] = "a labelled passage to which the likeness of a retrieved chunk is above the threshold"
    formula: ClassVar[str] = "passages that are hit / labelled passages"
    source: ClassVar[str] = "ragas/metrics/_context_recall.py of ragas 0.4.3, NonLLMContextRecall"

    def _native(self, retrieved: list[str], labelled: list[str]) -> tuple[float, tuple[Verdict, ...]]:
        value, likest = self._likest(retrieved, labelled, "_distance_measure", len(labelled))
        return value, tuple(
            Verdict(text, f"{like:.3f}", "attributed" if like > self.threshold else "not_attributed")
            for text, like in zip(labelled, likest, strict=True)
        )
