"""The definitions of DeepEval (deepeval.metrics), computed by DeepEval itself under our judge.

A metric object of DeepEval holds the state of one measurement, so each measurement makes its own. The only file that
imports deepeval.
"""

from __future__ import annotations

import re
import warnings
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache
from inspect import signature
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field
from typing_extensions import override

from adapters import asks, formulas
from adapters.base import Disbelieved, JudgedScorer, NothingToJudge, RankedScorer, Unavailable
from adapters.bench import CallSite, Measurement
from adapters.formulas import Formula
from adapters.inputs import visible
from adapters.isolation import framework, installed_version
from adapters.judge import JudgeFault, Message, schema_text
from adapters.schema import Verdict
from adapters.tasks import (
    Attribute,
    Findings,
    Relevance,
    RelevantStatements,
    Split,
    Support,
    Write,
)
from adapters.units import each_once, named

if TYPE_CHECKING:
    from types import ModuleType

    from pydantic import BaseModel

Ask = Callable[[str, "type[BaseModel]"], Awaitable[Any]]
"""A prompt and the schema that DeepEval wants -> an instance of the schema."""

COMMON_HAZARDS = (
    "deepeval's own reason for the score is never asked for (include_reason is always false); strict_mode and threshold"
    " are never set.",
    "Text such as [DEEPEVAL:IMAGE:x] is judged as it stands; deepeval itself would take it for an image and raise.",
)


@cache
def _deepeval() -> tuple[ModuleType, ModuleType]:
    """deepeval.metrics and deepeval.test_case. Raises Unavailable."""
    metrics, test_case = framework("deepeval", "deepeval.metrics", "deepeval.test_case")
    with warnings.catch_warnings():
        # The first of a process warns that its direction was turned round in 4.2, which the card says.
        warnings.simplefilter("ignore", DeprecationWarning)
        kind = metrics.HallucinationMetric
        kind(model=_judges()[1](), **_plainly(kind))
    return metrics, test_case


@cache
def _judges() -> tuple[Callable[[Ask], Any], Callable[[], Any]]:
    """DeepEval's judge that passes prompts on, and one that keeps them and gives sentinels. Raises Unavailable."""
    (base,) = framework("deepeval", "deepeval.models.base_model")

    class PassedOn(base.DeepEvalBaseLLM):  # type: ignore[misc,name-defined]
        def __init__(self, ask: Ask) -> None:
            super().__init__("paribus")
            self.ask = ask

        def load_model(self) -> None:
            return None

        def get_model_name(self) -> str:
            return "paribus"

        def generate(self, prompt: str, schema: type[BaseModel]) -> Any:
            raise RuntimeError("paribus asks its judge asynchronously")

        async def a_generate(self, prompt: str, schema: type[BaseModel]) -> Any:
            try:
                return await self.ask(prompt, schema)
            except TypeError as error:
                # DeepEval would take it for a judge without schemas, and ask again.
                raise JudgeFault(f"asking the judge failed: TypeError: {error}") from error

    class Kept(PassedOn):
        def __init__(self) -> None:
            super().__init__(self.generate)
            self.prompts: dict[str, str] = {}

        def generate(self, prompt: str, schema: type[BaseModel]) -> Any:
            self.prompts[_call(schema)] = f"{prompt}\n{schema_text(schema)}"
            return schema.model_validate(
                {
                    "truths": ["<truths>"],
                    "claims": ["<claims>"],
                    "statements": ["<statements>"],
                    "verdicts": [{"statement": "<statement>", "verdict": "yes", "reason": "<reason>"}],
                }
            )

    return PassedOn, Kept


@cache
def _plainly(kind: type) -> dict[str, Any]:
    """Arguments that keep the environment, which could choose another eval_mode, and thresholds out of a measurement.
    Versions without eval_mode have that mode alone, and a threshold that must be a number and changes no score."""
    return {"threshold": None, "eval_mode": "llm"} if "eval_mode" in signature(kind).parameters else {}


@cache
def _unclear() -> str:
    """DeepEval's third word, as its schema has it: borderline, and idk in 4.2.0 and earlier."""
    (schemas,) = framework("deepeval", "deepeval.metrics.faithfulness.schema")
    return "idk" if '"idk"' in schema_text(schemas.Verdicts) else "borderline"


@cache
def _hallucination_turned() -> None:
    """Refuse versions in which HallucinationMetric is another quantity. Raises Unavailable."""
    found = installed_version("deepeval")
    if tuple(map(int, re.findall(r"\d+", found)[:2])) < (4, 2):
        raise Unavailable(
            f"before deepeval 4.2 (here: {found}) it is the share of contradicted chunks, lower is better; this "
            "definition is 1 minus that share"
        )


def _metric(name: str, judge: Any, *, async_mode: bool = True, **settings: Any) -> Any:
    """A metric of DeepEval for one measurement."""
    metrics, _ = _deepeval()
    kind = getattr(metrics, name)
    return kind(model=judge, include_reason=False, async_mode=async_mode, **_plainly(kind), **settings)


def _case(question: str, answer: str | None, reference: str | None, contexts: Sequence[str]) -> Any:
    """The test case; a metric reads the fields that it needs."""
    _, test_case = _deepeval()
    case = test_case.LLMTestCase(
        input=question,
        actual_output=answer,
        expected_output=reference,
        retrieval_context=list(contexts),
        context=list(contexts),
    )
    # Set where DeepEval found "[DEEPEVAL:IMAGE:x]" in a text. It is text here: put back, it reaches the judge verbatim.
    case.multimodal = False
    return case


def _call(schema: type[BaseModel]) -> str:
    """The name of the call that wants this schema: that of its only field (truths, claims, statements, verdicts)."""
    (name,) = schema.model_fields
    return name


def _told(count: int, unit: str) -> str:
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"


def _reply(measurement: Measurement, name: str) -> list[Any]:
    """The list in the only reply to the call of this name: its truths, claims, statements or verdicts."""
    replies = measurement.replies(name)
    if len(replies) != 1:
        raise LookupError(f"{_told(len(replies), 'reply')} to {name}, expected 1")
    found: list[Any] = replies[0][name]
    return found


def _units_written(name: str) -> Write:
    """Findings as `{name: [unit, ...]}`."""
    return lambda findings: {name: [finding.unit for finding in findings]}


class DeepEvalScorer(JudgedScorer):
    """Base of the definitions of DeepEval. Subclasses name the class of deepeval.metrics, its calls and its words."""

    framework: ClassVar[str] = "deepeval"
    metric: ClassVar[str]
    """Class of deepeval.metrics."""
    ours: ClassVar[Mapping[str, str | None]]
    """DeepEval's words -> ours, for evidence."""
    native: ClassVar[Mapping[str | None, str]]
    """A finding's word -> DeepEval's, for judges without a model."""

    def framework_version(self) -> str:
        """The installed version of deepeval."""
        return installed_version("deepeval")

    def implementation(self) -> str:
        """The class of DeepEval."""
        return f"deepeval.metrics.{self.metric}"

    def prepare(self) -> None:
        """Import DeepEval. Raises Unavailable."""
        _deepeval()

    def settings(self) -> dict[str, Any]:
        """The arguments of the metric's constructor that are parameters of the definition."""
        return {}

    @abstractmethod
    def sites(self, measurement: Measurement) -> tuple[CallSite, ...]:
        """The calls of this measurement, named after the only field of their schema."""

    @abstractmethod
    def units(self, measurement: Measurement) -> Sequence[str]:
        """What the verdicts are about, in order. Raises NothingToJudge."""

    def rank(self, place: int) -> int | None:
        """The rank of the unit at this place (from 1), where units are ranked chunks."""
        return None

    def written(self, findings: Findings) -> object:
        """Findings as `{"verdicts": [...]}`."""
        return {"verdicts": [{"verdict": self._spoken(self.native[f.word]), "reason": f.reason} for f in findings]}

    def _spoken(self, word: str) -> str:
        """A word of `ours` or `native` as the installed version writes it."""
        return _unclear() if word == "borderline" else word

    @override
    async def run(self, measurement: Measurement) -> float:
        async def ask(prompt: str, schema: type[BaseModel]) -> Any:
            sites = {site.name: site for site in self.sites(measurement)}
            return await measurement.ask(sites[_call(schema)], [Message("user", prompt)], schema)

        question, record = measurement.question, measurement.record
        metric = _metric(self.metric, _judges()[0](ask), **self.settings())
        case = _case(question.text, record.answer, question.reference_answer, self.contexts(record))
        return float(await metric.a_measure(case, _show_indicator=False))

    def prompts(self) -> dict[str, str]:
        """Every prompt with its schema, as DeepEval renders it for a record of sentinels.

        The metric itself runs, so these are the calls that it makes with these parameters, with every fragment and
        phrase in place. `measure` is safe here: it touches the event loop in async mode only.
        """
        _deepeval()  # before the judges, so that a package that is missing is named in one way
        judge = _judges()[1]()
        metric = _metric(self.metric, judge, async_mode=False, **self.settings())
        metric.measure(_case("<question>", "<answer>", "<reference>", ["<context>"]), _show_indicator=False)
        prompts: dict[str, str] = judge.prompts
        return prompts

    @override
    def evidence(self, measurement: Measurement) -> tuple[Verdict, ...]:
        units = self.units(measurement)
        items = _reply(measurement, "verdicts")
        if len(items) != len(units):
            raise Disbelieved(f"{_told(len(items), 'verdict')} for {_told(len(units), self.unit_judged)}")
        return tuple(
            self._verdict(unit, item, self.rank(place))
            for place, (unit, item) in enumerate(zip(units, items, strict=True), 1)
        )

    def _verdict(self, unit: str, item: Mapping[str, Any], rank: int | None) -> Verdict:
        word = item["verdict"]
        words = {self._spoken(known): ours for known, ours in self.ours.items()}
        if word not in words:
            raise Disbelieved(f"verdict {word!r} is none of {', '.join(words)}")
        return Verdict(unit, word, words[word], item.get("reason") or None, rank)


SUPPORT = {"yes": "supported", "no": "contradicted", "borderline": "absent"}
RELEVANCE = {"yes": "relevant", "no": "not_relevant"}
ATTRIBUTION = {"yes": "attributed", "no": "not_attributed"}


def _turned(words: Mapping[str, str]) -> dict[str | None, str]:
    return {ours: native for native, ours in words.items()}


class Faithfulness(DeepEvalScorer):
    """Share of the answer's claims that do not contradict the truths which the judge drew from the context.

    Range 0 to 1. truths_extraction_limit: how many truths the prompt asks for; None = no number.
    penalize_ambiguous_claims: True = a claim that the context neither holds nor contradicts does not count as a hit.
    Source: deepeval/metrics/faithfulness/faithfulness.py (4.3.1).
    """

    id: ClassVar[str] = "deepeval/faithfulness"
    asks: ClassVar[str] = asks.SUPPORTED
    metric: ClassVar[str] = "FaithfulnessMetric"
    unit_judged: ClassVar[str] = "claim"
    hit: ClassVar[str] = (
        "a claim of the answer that the judge calls yes or borderline (yes only with penalize_ambiguous_claims) against"
        " the truths that it extracted from the contexts joined into one text"
    )
    formula: ClassVar[str] = "hits / claims"
    nothing_to_judge: ClassVar[str] = (
        "not applicable: deepeval returns 1 for an answer without claims; not applicable without truths too, because "
        "the claims would be judged against an empty text"
    )
    requires: ClassVar[tuple[str, ...]] = ("answer", "context")
    source: ClassVar[str] = "deepeval/metrics/faithfulness/faithfulness.py of deepeval 4.3.1"
    calls: ClassVar[str] = "3: truths, claims, verdicts"
    hazards: ClassVar[tuple[str, ...]] = (
        "Claims are judged against truths that the judge extracted, not against the chunks: what it did not extract"
        " supports nothing and contradicts nothing.",
        "borderline, which the prompt asks for when the context does not mention a claim, counts as a hit unless"
        " penalize_ambiguous_claims is set.",
        "truths_extraction_limit changes a phrase of the prompt only; surplus truths are used.",
        "The list of claims is written into the prompt as Python writes lists, with its quotes and escapes.",
        *COMMON_HAZARDS,
    )
    ours: ClassVar[Mapping[str, str | None]] = SUPPORT
    native: ClassVar[Mapping[str | None, str]] = _turned(SUPPORT)

    truths_extraction_limit: Annotated[int, Field(ge=1)] | None = None
    penalize_ambiguous_claims: bool = False

    def settings(self) -> dict[str, Any]:
        """See DeepEvalScorer."""
        return self.model_dump()

    def arithmetic(self) -> Formula:
        """See Measure."""
        borderline = 0.0 if self.penalize_ambiguous_claims else 1.0
        return Formula(
            formulas.ANSWER_CLAIMS,
            {**formulas.YES_ONLY, "borderline": borderline, "idk": borderline},
            formulas.SUPPORTED_ONLY if self.penalize_ambiguous_claims else formulas.NOT_CONTRADICTED,
        )

    def sites(self, measurement: Measurement) -> tuple[CallSite, ...]:
        """See DeepEvalScorer."""
        record = measurement.record
        context = "\n\n".join(self.contexts(record))
        return (
            CallSite("truths", lambda _, m: Split(context, "context", "facts"), _units_written("truths")),
            CallSite("claims", lambda _, m: Split(record.answer or "", "answer"), _units_written("claims")),
            CallSite(
                "verdicts", lambda _, m: Support(tuple(_reply(m, "claims")), context, "answer", "context"), self.written
            ),
        )

    def units(self, measurement: Measurement) -> Sequence[str]:
        """See DeepEvalScorer."""
        claims = _reply(measurement, "claims")
        if claims and not any(map(visible, _reply(measurement, "truths"))):
            raise NothingToJudge("0 truths in the context")
        return named(claims, "claims")


class AnswerRelevancy(DeepEvalScorer):
    """Share of the answer's statements that are relevant to the question.

    Range 0 to 1. Source: deepeval/metrics/answer_relevancy/answer_relevancy.py (4.3.1).
    """

    id: ClassVar[str] = "deepeval/answer_relevancy"
    asks: ClassVar[str] = asks.ADDRESSES
    metric: ClassVar[str] = "AnswerRelevancyMetric"
    unit_judged: ClassVar[str] = "statement"
    hit: ClassVar[str] = "a statement of the answer that the judge calls relevant (yes) or ambiguous (borderline)"
    formula: ClassVar[str] = "hits / statements"
    nothing_to_judge: ClassVar[str] = "not applicable: deepeval returns 1 for an answer without statements"
    requires: ClassVar[tuple[str, ...]] = ("question", "answer")
    source: ClassVar[str] = "deepeval/metrics/answer_relevancy/answer_relevancy.py of deepeval 4.3.1"
    calls: ClassVar[str] = "2: statements, verdicts"
    hazards: ClassVar[tuple[str, ...]] = (
        "borderline counts as relevant, and no parameter changes that.",
        "It does not look at whether the question is answered: one relevant statement scores 1.",
        "The list of statements is written into the prompt as Python writes lists, with its quotes and escapes.",
        *COMMON_HAZARDS,
    )
    ours: ClassVar[Mapping[str, str | None]] = {**RELEVANCE, "borderline": None}
    native: ClassVar[Mapping[str | None, str]] = _turned(RELEVANCE)

    def arithmetic(self) -> Formula:
        """See Measure."""
        return Formula(
            formulas.ANSWER_STATEMENTS,
            {**formulas.YES_ONLY, "borderline": 1.0, "idk": 1.0},
            formulas.RELEVANT_ONLY,
        )

    def sites(self, measurement: Measurement) -> tuple[CallSite, ...]:
        """See DeepEvalScorer."""
        question, record = measurement.question, measurement.record
        return (
            CallSite("statements", lambda _, m: Split(record.answer or "", "answer"), _units_written("statements")),
            CallSite(
                "verdicts",
                lambda _, m: Relevance(question.text, tuple(_reply(m, "statements")), units_of="answer"),
                self.written,
            ),
        )

    def units(self, measurement: Measurement) -> Sequence[str]:
        """See DeepEvalScorer."""
        return named(_reply(measurement, "statements"), "statements")


def contextual_precision(verdicts: Sequence[bool]) -> float:
    """DeepEval's own arithmetic of ContextualPrecisionMetric on given verdicts, best rank first. Raises Unavailable."""
    metric = _metric("ContextualPrecisionMetric", _judges()[1]())
    metric.verdicts = [SimpleNamespace(verdict="yes" if verdict else "no") for verdict in verdicts]
    return float(metric._calculate_score())


class ContextualPrecision(DeepEvalScorer, RankedScorer):
    """Average precision of the ranking, with the judge's word on each chunk as its label.

    Range 0 to 1. Source: deepeval/metrics/contextual_precision/contextual_precision.py (4.3.1).
    """

    id: ClassVar[str] = "deepeval/contextual_precision"
    asks: ClassVar[str] = asks.RANKED_FIRST
    metric: ClassVar[str] = "ContextualPrecisionMetric"
    unit_judged: ClassVar[str] = "chunk"
    hit: ClassVar[str] = "a chunk that the judge calls useful (yes) in arriving at the reference answer"
    formula: ClassVar[str] = "sum over hits of (hits up to its rank / its rank) / hits; 0 without hits"
    nothing_to_judge: ClassVar[str] = "not applicable without chunks: deepeval would ask the judge all the same"
    requires: ClassVar[tuple[str, ...]] = ("question", "reference_answer", "reranked")
    source: ClassVar[str] = "deepeval/metrics/contextual_precision/contextual_precision.py of deepeval 4.3.1"
    calls: ClassVar[str] = "1: verdicts on all chunks"
    hazards: ClassVar[tuple[str, ...]] = (
        "It divides by the useful chunks that were found, so what was not retrieved costs nothing.",
        "A verdict does not name its chunk, so it cannot be checked that they came in the order of the ranking.",
        "All chunks stand in one prompt, as Python writes lists, with its quotes and escapes.",
        *COMMON_HAZARDS,
    )
    ours: ClassVar[Mapping[str, str | None]] = RELEVANCE
    native: ClassVar[Mapping[str | None, str]] = _turned(RELEVANCE)

    def arithmetic(self) -> Formula:
        """See Measure."""
        return Formula(formulas.USEFUL_CHUNKS, formulas.YES_ONLY, formulas.RELEVANT_ONLY, formulas.precision_at_hits())

    def sites(self, measurement: Measurement) -> tuple[CallSite, ...]:
        """See DeepEvalScorer."""
        question = measurement.question
        contexts = self.contexts(measurement.record)
        return (
            CallSite(
                "verdicts", lambda _, m: Relevance(question.text, contexts, question.reference_answer), self.written
            ),
        )

    def units(self, measurement: Measurement) -> Sequence[str]:
        """See DeepEvalScorer."""
        return self.contexts(measurement.record)

    def rank(self, place: int) -> int | None:
        """See DeepEvalScorer."""
        return place


class ContextualRecall(DeepEvalScorer, RankedScorer):
    """Share of the reference answer's sentences that can be attributed to the chunks.

    Range 0 to 1. Source: deepeval/metrics/contextual_recall/contextual_recall.py (4.3.1).
    """

    id: ClassVar[str] = "deepeval/contextual_recall"
    asks: ClassVar[str] = asks.CONTEXT_SUFFICES
    metric: ClassVar[str] = "ContextualRecallMetric"
    unit_judged: ClassVar[str] = "sentence"
    hit: ClassVar[str] = "a sentence of the reference answer that the judge attributes (yes) to some chunk"
    formula: ClassVar[str] = "hits / sentences"
    nothing_to_judge: ClassVar[str] = "not applicable: deepeval returns 0 when the judge finds no sentence"
    requires: ClassVar[tuple[str, ...]] = ("reference_answer", "reranked")
    source: ClassVar[str] = "deepeval/metrics/contextual_recall/contextual_recall.py of deepeval 4.3.1"
    calls: ClassVar[str] = "1: verdicts on all sentences"
    hazards: ClassVar[tuple[str, ...]] = (
        "The judge cuts the reference into sentences in the same call and names none of them, so the number of verdicts"
        " cannot be checked against anything.",
        "All chunks stand in one prompt, as Python writes lists, with its quotes and escapes.",
        *COMMON_HAZARDS,
    )
    ours: ClassVar[Mapping[str, str | None]] = ATTRIBUTION
    native: ClassVar[Mapping[str | None, str]] = _turned(ATTRIBUTION)

    def arithmetic(self) -> Formula:
        """See Measure."""
        return Formula(formulas.REFERENCE_CLAIMS, formulas.YES_ONLY, formulas.ATTRIBUTED_ONLY, named=False)

    def sites(self, measurement: Measurement) -> tuple[CallSite, ...]:
        """See DeepEvalScorer."""
        reference = measurement.question.reference_answer or ""
        context = "\n\n".join(self.contexts(measurement.record))
        return (CallSite("verdicts", lambda _, m: Attribute(reference, context), self.written),)

    def written(self, findings: Findings) -> object:
        """See DeepEvalScorer; a verdict does not name its sentence, so the reason does."""
        return {"verdicts": [{"verdict": self.native[f.word], "reason": f.reason or f.unit} for f in findings]}

    def units(self, measurement: Measurement) -> Sequence[str]:
        """See DeepEvalScorer."""
        return named(
            [f"sentence {n} of the reference" for n, _ in enumerate(_reply(measurement, "verdicts"), 1)], "sentences"
        )


class ContextualRelevancy(DeepEvalScorer, RankedScorer):
    """Share of the statements in all chunks that are relevant to the question.

    Range 0 to 1. Source: deepeval/metrics/contextual_relevancy/contextual_relevancy.py (4.3.1).

    The prompt asks for at least one verdict a chunk ("no" for one without statements). So a chunk with text and without
    a verdict was not judged; DeepEval leaves it out of the denominator, which favours the system, and the score fails.
    """

    id: ClassVar[str] = "deepeval/contextual_relevancy"
    asks: ClassVar[str] = asks.CONTEXT_RELEVANT
    metric: ClassVar[str] = "ContextualRelevancyMetric"
    unit_judged: ClassVar[str] = "statement"
    hit: ClassVar[str] = "a statement in a chunk that the judge calls relevant to the question (yes)"
    formula: ClassVar[str] = "hits in all chunks / statements in all chunks"
    nothing_to_judge: ClassVar[str] = (
        "not applicable: deepeval returns 0 when the judge finds no statement in any chunk; failed when it finds none "
        "in one chunk with text, because the prompt asks for a verdict on each"
    )
    requires: ClassVar[tuple[str, ...]] = ("question", "reranked")
    source: ClassVar[str] = "deepeval/metrics/contextual_relevancy/contextual_relevancy.py of deepeval 4.3.1"
    calls: ClassVar[str] = "1 a chunk"
    hazards: ClassVar[tuple[str, ...]] = (
        "Statements of all chunks are counted together, so a chunk with many statements weighs more, and rank does not"
        " count.",
        "The judge cuts a chunk into statements in the same call, so their number cannot be checked against anything.",
        *COMMON_HAZARDS,
    )
    ours: ClassVar[Mapping[str, str | None]] = RELEVANCE
    native: ClassVar[Mapping[str | None, str]] = _turned(RELEVANCE)

    def arithmetic(self) -> Formula:
        """See Measure."""
        return Formula(formulas.CHUNK_STATEMENTS, formulas.YES_ONLY, formulas.RELEVANT_ONLY)

    def sites(self, measurement: Measurement) -> tuple[CallSite, ...]:
        """See DeepEvalScorer. DeepEval asks about the chunks in their order; `evidence` checks that it did."""
        question = measurement.question.text
        chunk = self.contexts(measurement.record)[len(measurement.exchanges)]
        return (CallSite("verdicts", lambda _, m: RelevantStatements(question, chunk), self.written),)

    def written(self, findings: Findings) -> object:
        """See DeepEvalScorer."""
        return {
            "verdicts": [{"statement": f.unit, "verdict": self.native[f.word], "reason": f.reason} for f in findings]
        }

    def units(self, measurement: Measurement) -> Sequence[str]:
        """The chunks; each has a call with verdicts on statements of its own."""
        return self.contexts(measurement.record)

    @override
    def evidence(self, measurement: Measurement) -> tuple[Verdict, ...]:
        contexts, asked = self.units(measurement), measurement.exchanges
        if len(asked) != len(contexts) or not all(exchange.data for exchange in asked):
            raise LookupError(
                f"{_told(len(measurement.replies('verdicts')), 'reply')} for {_told(len(contexts), 'chunk')}"
            )
        found: list[Verdict] = []
        unjudged: list[int] = []
        for rank, (chunk, exchange) in enumerate(zip(contexts, asked, strict=True), 1):
            if chunk not in exchange.prompt:
                raise Disbelieved(f"call {rank} is not about chunk {rank}")
            items = exchange.data["verdicts"]
            statements = [item["statement"] for item in items]
            # For a chunk without text the prompt asks for one verdict, with that text as its statement.
            if visible(chunk):
                if not any(map(visible, statements)):
                    unjudged.append(rank)
                    continue
                each_once(named(statements, f"statements in chunk {rank}"))
            found += [self._verdict(item["statement"], item, rank) for item in items]
        if not found:
            raise NothingToJudge(_told(0, self.unit_judged))
        if unjudged:
            places = ", ".join(map(str, unjudged))
            raise Disbelieved(f"0 verdicts for chunk {places} of {len(contexts)}, expected at least 1 for each chunk")
        return tuple(found)


class Hallucination(DeepEvalScorer):
    """Share of the chunks which the answer does not contradict: higher is better.

    Range 0 to 1. Source: deepeval/metrics/hallucination/hallucination.py (4.3.1).
    """

    id: ClassVar[str] = "deepeval/hallucination"
    asks: ClassVar[str] = asks.SUPPORTED
    metric: ClassVar[str] = "HallucinationMetric"
    unit_judged: ClassVar[str] = "chunk"
    hit: ClassVar[str] = "a chunk with which the judge says that the answer agrees (yes), lacking detail forgiven"
    formula: ClassVar[str] = "hits / chunks"
    nothing_to_judge: ClassVar[str] = "not applicable without chunks: deepeval would ask the judge all the same"
    requires: ClassVar[tuple[str, ...]] = ("answer", "context")
    source: ClassVar[str] = "deepeval/metrics/hallucination/hallucination.py of deepeval 4.3.1"
    calls: ClassVar[str] = "1: verdicts on all chunks"
    hazards: ClassVar[tuple[str, ...]] = (
        "Higher is better since deepeval 4.2.0: 1 means that nothing is contradicted. Up to 4.1 it was the share of"
        " contradicted chunks, and lower was better; that is refused here.",
        "It counts chunks, not claims: an invention that no chunk contradicts costs nothing, and each further chunk"
        " about something else raises the value.",
        "deepeval's `context` means known truths; here it is what reached the prompt.",
        "All chunks stand in one prompt, as Python writes lists, with its quotes and escapes.",
        *COMMON_HAZARDS,
    )
    # "yes" says no more than that nothing is contradicted, for which we have no word.
    ours: ClassVar[Mapping[str, str | None]] = {"yes": None, "no": "contradicted"}
    native: ClassVar[Mapping[str | None, str]] = {"supported": "yes", "absent": "yes", "contradicted": "no"}

    def prepare(self) -> None:
        """See DeepEvalScorer."""
        super().prepare()
        _hallucination_turned()

    def arithmetic(self) -> Formula:
        """See Measure."""
        return Formula(formulas.CONTRADICTED_CHUNKS, formulas.YES_ONLY, formulas.NOT_CONTRADICTED)

    def sites(self, measurement: Measurement) -> tuple[CallSite, ...]:
        """See DeepEvalScorer."""
        contexts, answer = self.contexts(measurement.record), measurement.record.answer or ""
        return (CallSite("verdicts", lambda _, m: Support(contexts, answer, "chunk", "answer"), self.written),)

    def units(self, measurement: Measurement) -> Sequence[str]:
        """See DeepEvalScorer."""
        return self.contexts(measurement.record)
