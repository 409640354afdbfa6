"""What every definition is made of, and the registry by which configuration names one.

A scorer is a frozen pydantic model: its fields are the parameters of the definition, its class
variables are the prose of the card. Adding one is one class in one file and one line in SCORERS.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from importlib import import_module
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from adapters.schema import Definition, Question, Record, Score, Verdict

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
}
"""Definition id -> "module:Class"; the module is imported when the definition is selected."""


class UnknownDefinition(ValueError):
    """A definition id or one of its parameters is not known; the message names what is allowed."""


class Scorer(BaseModel, ABC):
    """A definition that can be computed. Subclasses declare parameters as fields and their card as class variables."""

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
    hazards: ClassVar[tuple[str, ...]] = ()

    @cached_property
    def definition(self) -> Definition:
        """The card of this scorer with these parameters."""
        return Definition(
            id=self.id,
            key=self.key,
            asks=self.asks,
            framework=self.framework,
            version=self.version,
            implementation=f"{type(self).__module__}.{type(self).__qualname__}",
            unit=self.unit_judged,
            hit=self.hit,
            formula=self.formula,
            nothing_to_judge=self.nothing_to_judge,
            aggregation=self.aggregation,
            range=self.value_range,
            direction=self.direction,
            requires=self.requires,
            parameters=self.model_dump(mode="json"),
            source=self.source,
            revision=self.revision,
            hazards=self.hazards,
        )

    @property
    def key(self) -> str:
        """`labels/recall@5.unit-document`: the id, the cutoff k, and each parameter that is not at its default."""
        cutoff = getattr(self, "k", None)
        changed = [
            f".{name}-{getattr(self, name)}"
            for name, declared in type(self).model_fields.items()
            if name != "k" and getattr(self, name) != declared.get_default()
        ]
        return self.id + (f"@{cutoff}" if cutoff is not None else "") + "".join(changed)

    @abstractmethod
    def score(self, question: Question, record: Record) -> Score:
        """The score of one record. Never raises for bad records: what cannot be computed says why."""

    def computed(
        self, record: Record, value: float, evidence: tuple[Verdict, ...] = (), reason: str | None = None
    ) -> Score:
        """A score with a value."""
        return Score(record.question_id, self.key, self.definition.fingerprint, value, reason=reason, evidence=evidence)

    def not_applicable(self, record: Record, reason: str) -> Score:
        """A score without a value because the record or question lacks what the definition needs."""
        return Score(record.question_id, self.key, self.definition.fingerprint, None, "not_applicable", reason)


def scorer(spec: str | Mapping[str, Any]) -> Scorer:
    """Build the scorer that `spec` names: an id, or a mapping with `id` and parameters.

    An id is one of SCORERS, or `module:Class` for a definition of your own. Raises UnknownDefinition naming the nearest
    known ids, or each wrong parameter with what is allowed.
    """
    from difflib import get_close_matches

    parameters = dict(spec) if isinstance(spec, Mapping) else {"id": spec}
    name = parameters.pop("id", None)
    target = SCORERS.get(name, name if ":" in name else None) if isinstance(name, str) else None
    if target is None:
        near = get_close_matches(str(name), SCORERS, n=3, cutoff=0.5)
        known = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(SCORERS)}"
        raise UnknownDefinition(f"no definition has the id {name!r}; {known}")
    module, _, attribute = target.partition(":")
    try:
        kind = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise UnknownDefinition(f"definition {name}: {error}") from error
    if not (isinstance(kind, type) and issubclass(kind, Scorer)):
        raise UnknownDefinition(f"definition {name}: {target} is not a subclass of adapters.base.Scorer")
    try:
        return kind(**parameters)
    except ValidationError as error:
        allowed = ", ".join(kind.model_fields) or "none"
        faults = "; ".join(
            f"{'.'.join(map(str, e['loc'])) or 'parameters'}={e['input']!r}: {e['msg']}" for e in error.errors()
        )
        raise UnknownDefinition(f"{name}: {faults}. Its parameters: {allowed}") from error
