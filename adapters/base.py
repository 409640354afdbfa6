"""What every definition is made of, and the registry by which configuration names one.

A scorer is a frozen pydantic model: its fields are the parameters of the definition, its class
variables are the prose of the card. Adding one is one class in one file and one line in SCORERS.

A `Scorer` computes from the record and its labels alone; a `JudgedScorer` asks a judge.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from importlib import import_module
from math import isfinite
from time import perf_counter
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from adapters.bench import SAMPLES_APART, Bench, Measurement, prompt_hash
from adapters.flips import together
from adapters.formulas import Formula
from adapters.inputs import missing, visible
from adapters.schema import Definition, Question, Ranked, Record, Score, Verdict

SCORERS: dict[str, str] = {
    "labels/recall": "adapters.labels.ranking:Recall",
    "labels/hit_rate_granular": "adapters.labels.ranking:GranularHitRate",
    "labels/success": "adapters.labels.ranking:Success",
    "labels/precision": "adapters.labels.ranking:Precision",
    "labels/reciprocal_rank": "adapters.labels.ranking:ReciprocalRank",
    "labels/reciprocal_rank_all": "adapters.labels.ranking:ReciprocalRankAll",
    "labels/average_precision": "adapters.labels.ranking:AveragePrecision",
    "labels/rank_weighted_precision": "adapters.labels.ranking:RankWeightedPrecision",
    "labels/ndcg": "adapters.labels.ranking:NDCG",
    "labels/judged": "adapters.labels.ranking:Judged",
    "labels/span_recall": "adapters.labels.spans:SpanRecall",
    "labels/span_precision": "adapters.labels.spans:SpanPrecision",
    "labels/span_iou": "adapters.labels.spans:SpanIoU",
    "labels/span_precision_omega": "adapters.labels.spans:SpanPrecisionOmega",
    "labels/refusal_rate": "adapters.labels.answers:RefusalRate",
    "labels/false_refusal_rate": "adapters.labels.answers:FalseRefusalRate",
    "labels/answer_f1": "adapters.labels.answers:AnswerF1",
    "labels/answer_precision": "adapters.labels.answers:AnswerPrecision",
    "labels/answer_recall": "adapters.labels.answers:AnswerRecall",
    "labels/answer_exact_match": "adapters.labels.answers:AnswerExactMatch",
    "ragas/faithfulness": "adapters.ragas:Faithfulness",
    "ragas/answer_relevancy": "adapters.ragas:AnswerRelevancy",
    "ragas/context_precision": "adapters.ragas:ContextPrecision",
    "ragas/context_utilization": "adapters.ragas:ContextUtilization",
    "ragas/context_recall": "adapters.ragas:ContextRecall",
    "ragas/context_entity_recall": "adapters.ragas:ContextEntityRecall",
    "ragas/factual_correctness": "adapters.ragas:FactualCorrectness",
    "ragas/noise_sensitivity": "adapters.ragas:NoiseSensitivity",
    "ragas/context_relevance": "adapters.ragas:ContextRelevance",
    "ragas/response_groundedness": "adapters.ragas:ResponseGroundedness",
    "ragas/answer_accuracy": "adapters.ragas:AnswerAccuracy",
    "ragas/semantic_similarity": "adapters.ragas:SemanticSimilarity",
    "ragas/answer_correctness": "adapters.ragas:AnswerCorrectness",
    "ragas/id_context_precision": "adapters.ragas:IDContextPrecision",
    "ragas/id_context_recall": "adapters.ragas:IDContextRecall",
    "ragas/non_llm_context_precision": "adapters.ragas:NonLLMContextPrecision",
    "ragas/non_llm_context_recall": "adapters.ragas:NonLLMContextRecall",
    "deepeval/faithfulness": "adapters.deepeval:Faithfulness",
    "deepeval/answer_relevancy": "adapters.deepeval:AnswerRelevancy",
    "deepeval/contextual_precision": "adapters.deepeval:ContextualPrecision",
    "deepeval/contextual_recall": "adapters.deepeval:ContextualRecall",
    "deepeval/contextual_relevancy": "adapters.deepeval:ContextualRelevancy",
    "deepeval/hallucination": "adapters.deepeval:Hallucination",
    "trulens/groundedness": "adapters.trulens:Groundedness",
    "trulens/context_relevance": "adapters.trulens:ContextRelevance",
    "trulens/answer_relevance": "adapters.trulens:AnswerRelevance",
    "trulens/comprehensiveness": "adapters.trulens:Comprehensiveness",
    "trulens/ground_truth_agreement": "adapters.trulens:GroundTruthAgreement",
    "rubric/relevance": "adapters.rubric:RelevanceRating",
    "rubric/context_contribution": "adapters.rubric:ContextContribution",
    "rubric/citation_accuracy": "adapters.rubric:CitationAccuracy",
    "rubric/correctness": "adapters.rubric:Correctness",
    "rubric/refusal_rate": "adapters.rubric:RefusalRate",
    "rubric/false_refusal_rate": "adapters.rubric:FalseRefusalRate",
    "rubric/worded_refusal_rate": "adapters.rubric:WordedRefusalRate",
    "rubric/worded_false_refusal_rate": "adapters.rubric:WordedFalseRefusalRate",
}
"""Definition id -> "module:Class"; the module is imported when the definition is selected."""


class UnknownDefinition(ValueError):
    """A definition id or one of its parameters is not known; the message names what is allowed."""


class Unavailable(Exception):
    """The package that computes a definition cannot be imported; the message names it and the module at fault."""


class Measure(BaseModel, ABC):
    """A definition. Subclasses declare parameters as fields and their card as class variables."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    id: ClassVar[str]
    asks: ClassVar[str]
    framework: ClassVar[str]
    version: ClassVar[str]
    unit_judged: ClassVar[str]
    hit: ClassVar[str]
    formula: ClassVar[str]
    nothing_to_judge: ClassVar[str]
    aggregation: ClassVar[str] = "mean over the questions with a value"
    value_range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    direction: ClassVar[Literal["higher", "lower"]] = "higher"
    requires: ClassVar[tuple[str, ...]]
    source: ClassVar[str]
    revision: ClassVar[int] = 1
    calls: ClassVar[str] = "0"
    hazards: ClassVar[tuple[str, ...]] = ()

    @cached_property
    def definition(self) -> Definition:
        """The card of this scorer with these parameters."""
        return Definition(
            id=self.id,
            key=self.key,
            asks=self.asks,
            framework=self.framework,
            version=self.framework_version(),
            implementation=self.implementation(),
            unit=self.unit_judged,
            hit=self.hit,
            formula=self.formula,
            nothing_to_judge=self.nothing_to_judge,
            aggregation=self.aggregation,
            range=self.value_range,
            direction=self.direction,
            requires=self.needs(),
            parameters=self.model_dump(mode="json"),
            source=self.source,
            revision=self.revision,
            calls=self.calls,
            prompts=self.prompt_hashes(),
            hazards=self.hazards,
        )

    @cached_property
    def key(self) -> str:
        """`labels/recall@5.unit-document`: the id, the cutoff k, and each parameter that is not at its default."""
        cutoff = getattr(self, "k", None)
        changed = [
            f".{name}-{_shown(getattr(self, name))}"
            for name, declared in type(self).model_fields.items()
            if name != "k" and getattr(self, name) != declared.get_default()
        ]
        return self.id + (f"@{cutoff}" if cutoff is not None else "") + "".join(changed)

    def needs(self) -> tuple[str, ...]:
        """The fields of Question and Record without which it does not apply."""
        return self.requires

    def framework_version(self) -> str:
        """The version that computes it: `version`, or that of an installed package."""
        return self.version

    def implementation(self) -> str:
        """The class or function that computes it, with its module."""
        return f"{type(self).__module__}.{type(self).__qualname__}"

    def prompt_hashes(self) -> dict[str, str]:
        """The hash of each prompt with its schema, by call; empty where no judge is asked."""
        return {}

    def arithmetic(self) -> Formula | None:
        """What it computes from its verdicts, for the audit; None = its value does not come from verdicts on units."""
        return None

    def prepare(self) -> None:
        """Import what computing needs, before any work. Raises Unavailable."""

    def not_applicable(self, record: Record, reason: str) -> Score:
        """A score without a value because the record or question lacks what the definition needs."""
        return Score(record.question_id, self.key, self.definition.fingerprint, None, "not_applicable", reason)

    def failed(self, record: Record, reason: str) -> Score:
        """A score without a value because something went wrong."""
        return Score(record.question_id, self.key, self.definition.fingerprint, None, "failed", reason)


def _shown(value: Any) -> str:
    return "+".join(map(str, value)) if isinstance(value, tuple) else str(value)


class Scorer(Measure):
    """A definition computed from the record and its labels, without a judge."""

    @abstractmethod
    def score(self, question: Question, record: Record) -> Score:
        """The score of one record. Never raises for bad records: what cannot be computed says why."""

    def computed(
        self, record: Record, value: float, evidence: tuple[Verdict, ...] = (), reason: str | None = None
    ) -> Score:
        """A score with a value."""
        return Score(record.question_id, self.key, self.definition.fingerprint, value, reason=reason, evidence=evidence)


class Disbelieved(Exception):
    """A framework's number must not be believed: its evidence is incomplete, or the number is no value of the
    definition. One sentence that says what was found and what was expected."""


class NothingToJudge(Exception):
    """The judge found no unit to judge (an answer without claims); whatever the framework returns then is a convention
    and no measurement. The message names the unit: "0 claims"."""


class JudgedScorer(Measure):
    """A definition that asks a judge.

    Subclasses give `run`, which lets the framework's own code compute the number, and `evidence`, which reads the
    verdicts and refuses numbers that they do not carry. What is missing, failed or out of range is decided here, the
    same way for all frameworks.
    """

    sentinels: ClassVar[frozenset[float]] = frozenset()
    """Values by which the framework says that it has none."""

    @property
    def embeds(self) -> bool:
        """Whether it needs the judge's embeddings."""
        return False

    @abstractmethod
    async def run(self, measurement: Measurement) -> float:
        """The framework's own value. May raise whatever the framework raises."""

    @abstractmethod
    def evidence(self, measurement: Measurement) -> tuple[Verdict, ...]:
        """The verdicts behind the value, checked: as many as units, inside vocabulary and scale.

        Raises Disbelieved, or NothingToJudge.
        """

    @abstractmethod
    def prompts(self) -> dict[str, str]:
        """The text of every prompt and schema that it sends, by call, read from the installed package, with sentinels
        in the place of a record's fields."""

    def prompt_hashes(self) -> dict[str, str]:
        """See Measure. A package that cannot be imported has no prompts to read; the reason stands in their place."""
        try:
            return {name: prompt_hash(text) for name, text in sorted(self.prompts().items())}
        except Unavailable as error:
            return {"unavailable": str(error)}

    def lacking(self, question: Question, record: Record) -> str | None:
        """Why it does not apply to a record; None = it does."""
        return missing(self.needs(), question, record)

    def contexts(self, record: Record) -> tuple[str, ...]:
        """The texts that the definition looks at as context, in order: what reached the prompt."""
        return tuple(chunk.text for chunk in record.context)

    async def measure(self, question: Question, record: Record, bench: Bench) -> Score:
        """The score of one record, judged as often as the judge is told to. Never raises for bad records, judges or
        frameworks: what cannot be computed says why."""
        lacking = self.lacking(question, record)
        if lacking:
            return self.not_applicable(record, lacking)
        firsts = [judgement * SAMPLES_APART for judgement in range(bench.judge.repeats)]
        scores = [await self._judgement(Measurement(self.key, question, record, bench, first_sample=n)) for n in firsts]
        return scores[0] if len(scores) == 1 else together(scores, self.value_range)

    async def unguarded(self, question: Question, record: Record, bench: Bench) -> float | None:
        """What the framework itself returns for a record that `lacking` keeps from it; None = it raises or returns no
        number, or the judge does not answer. For the audit, which shows what others take for a score."""
        measurement = Measurement(self.key, question, record, bench)
        try:
            self.prepare()
            value = float(await self.run(measurement))
        except Exception:
            return None
        return value if isfinite(value) and not measurement.fault else None

    async def _judgement(self, measurement: Measurement) -> Score:
        began = perf_counter()
        value, error = None, None
        try:
            self.prepare()
            value = float(await self.run(measurement))
        except Exception as raised:
            error = raised
        if isinstance(error, Unavailable):
            return self.failed(measurement.record, str(error))
        score = self._believed(measurement, value, error)
        await measurement.settle(score.status == "failed")
        return replace(
            score,
            judge=measurement.bench.card,
            seconds=perf_counter() - began,
            **measurement.spent(),
        )

    def _believed(self, measurement: Measurement, value: float | None, error: Exception | None) -> Score:
        record = measurement.record
        native = value if value is not None and isfinite(value) else None
        if measurement.fault:
            return self.failed(record, str(measurement.fault))
        try:
            evidence = self.evidence(measurement)
        except NothingToJudge as nothing:
            convention = "no number" if native is None else f"{native:g}"
            what = f"raised {_told(error)}" if error else f"returned {convention}"
            reason = f"nothing to judge: {nothing} (here {self.framework} {what}, which is kept out of means)"
            return replace(self.not_applicable(record, reason), native_value=native)
        except Disbelieved as doubt:
            return replace(self.failed(record, str(doubt)), native_value=native)
        except Exception as broken:
            reason = f"the replies cannot be read as evidence: {_told(broken)}"
            if error:
                # A framework that stopped halfway left no evidence; what stopped it says more.
                reason = f"{self.framework} raised {_told(error)}"
            return replace(self.failed(record, reason), native_value=native)
        if error:
            return replace(self.failed(record, f"{self.framework} raised {_told(error)}"), evidence=evidence)
        low, high = self.value_range
        if native is None:
            return replace(self.failed(record, f"{self.framework} returned no number"), evidence=evidence)
        if native in self.sentinels:
            reason = f"{self.framework} returned {native:g}, which is how it says that it has no score"
            return replace(self.failed(record, reason), evidence=evidence)
        if not low <= native <= high:
            reason = f"{self.framework} returned {native:g}, outside the range {low:g} to {high:g}"
            return replace(self.failed(record, reason), evidence=evidence, native_value=native)
        return Score(record.question_id, self.key, self.definition.fingerprint, native, evidence=evidence)


class RankedScorer(JudgedScorer):
    """A judged definition of retrieval: it looks at a ranking, not at the prompt."""

    ranking: Literal["reranked", "retrieved", "context"] = Field(
        "reranked", description="the ranking to look at, as in labels/*"
    )
    k: Annotated[int, Field(ge=1)] | None = Field(None, description="its first k chunks; null = all")

    def needs(self) -> tuple[str, ...]:
        """See JudgedScorer; "reranked" stands for the ranking that was chosen."""
        return tuple(self.ranking if name == "reranked" else name for name in self.requires)

    def lacking(self, question: Question, record: Record) -> str | None:
        """See JudgedScorer; blank chunks within the first k are no context, whatever follows them."""
        blank = not any(map(visible, self.contexts(record)))
        return super().lacking(question, record) or (f"every context is blank ({self.ranking})" if blank else None)

    def contexts(self, record: Record) -> tuple[str, ...]:
        """The texts of the ranking, best first, at most k."""
        if self.ranking == "context":
            return super().contexts(record)[: self.k]
        ranked: tuple[Ranked, ...] = getattr(record, self.ranking)
        return tuple(item.chunk.text for item in ranked[: self.k])


def _told(error: Exception | None) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:200]}" if text else type(error).__name__


def scorer(spec: str | Mapping[str, Any]) -> Scorer | JudgedScorer:
    """Build the scorer that `spec` names: an id, a key as results show it, or a mapping with `id` and parameters.

    An id is one of SCORERS, or `module:Class` for a definition of your own. A key is an id with its cutoff and
    parameters: `labels/recall@5.unit-document`. Raises UnknownDefinition naming the nearest known ids, or each wrong
    parameter with what is allowed.
    """
    from difflib import get_close_matches

    parameters = dict(spec) if isinstance(spec, Mapping) else {"id": spec}
    if "id" not in parameters:
        raise UnknownDefinition(f"{parameters!r} names no definition; write {{id: ..., parameter: value}}")
    name = parameters.pop("id")
    id, tail = _id_and_tail(name) if isinstance(name, str) else (name, "")
    target = SCORERS.get(id, id if ":" in id else None) if isinstance(id, str) else None
    if target is None:
        near = get_close_matches(str(name), SCORERS, n=3, cutoff=0.5)
        known = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(SCORERS)}"
        raise UnknownDefinition(f"no definition has the id {name!r}; {known}")
    module, _, attribute = target.partition(":")
    try:
        kind = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise UnknownDefinition(f"definition {name}: {error}") from error
    if not (isinstance(kind, type) and issubclass(kind, Scorer | JudgedScorer)):
        raise UnknownDefinition(
            f"definition {name}: {target} is not a subclass of adapters.base.Scorer or JudgedScorer"
        )
    try:
        built = kind(**(_parameters(tail, kind) | parameters))
    except ValidationError as error:
        allowed = ", ".join(kind.model_fields) or "none"
        faults = "; ".join(
            f"{'.'.join(map(str, e['loc'])) or 'parameters'}={e['input']!r}: {e['msg']}" for e in error.errors()
        )
        raise UnknownDefinition(f"{name}: {faults}. Its parameters: {allowed}") from error
    if tail and built.key != name and not parameters:
        raise UnknownDefinition(f"{name} is no key of {id}, whose parameters are: {', '.join(kind.model_fields)}")
    return built


def _id_and_tail(name: str) -> tuple[str, str]:
    """`labels/recall@5.unit-document` -> `labels/recall`, `@5.unit-document`; ids and module:Class have no tail."""
    if name in SCORERS or ":" in name:
        return name, ""
    id = re.split(r"[@.]", name, maxsplit=1)[0]
    return id, name[len(id) :]


def _parameters(tail: str, kind: type[Measure]) -> dict[str, Any]:
    """The parameters that the tail of a key tells, the reverse of Measure.key."""
    cutoff, *parts = re.split(rf"\.(?=(?:{'|'.join(kind.model_fields)})-)", tail)
    told = {"k": cutoff.removeprefix("@")} if cutoff.startswith("@") else {}
    told |= dict(part.split("-", 1) for part in parts)
    return {name: _value(text) for name, text in told.items()}


def _value(text: str) -> Any:
    if "+" in text:
        return tuple(map(_value, text.split("+")))
    words: dict[str, Any] = {"True": True, "False": False, "None": None}
    for read in (words.__getitem__, int, float):
        with suppress(KeyError, ValueError):
            return read(text)
    return text
