"""The types that cross the border between a RAG system and the definitions that score it.

Inside the process they are frozen dataclasses; where data enters or leaves (files, tracking, other programs),
`from_json` and `json_schema` hold them to the same declaration with pydantic. `SCHEMA_VERSION` changes when a field
changes its meaning.

All offsets are Unicode code points, half open: `document.text[start:end]`.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import date
from functools import cached_property
from typing import Any, Literal, TypeVar, cast

from adapters.sentences import well_formed

SCHEMA_VERSION = 2
LONGEST_REASON = 500
"""Characters of a score's reason; what an exception or a judge said beyond them is cut off."""

T = TypeVar("T")

JsonValue = str | int | float | bool | None | list[Any] | dict[str, Any]


def fingerprint(value: Any) -> str:
    """SHA-256 of the canonical JSON of `value`, first 16 hex digits.

    The order of mapping keys does not count, the order of sequences does. Raises TypeError for a
    value that JSON cannot hold, so that nothing is hashed by its memory address.
    """
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Span:
    """A relevance label: the characters [start, end) of a document, with a grade.

    grade: 0 = judged and rejected; 1, 2, ... = relevant, more is better.
    """

    doc_id: str
    start: int
    end: int
    grade: int = 1


@dataclass(frozen=True, slots=True)
class Question:
    """One question of a test set with what people know about it.

    relevant: None = nobody labelled this question; () = labelled, nothing in the corpus is relevant.
    answerable: False = the right answer is to decline.
    origin: "synthetic" = a model wrote the question or its labels.
    split: "tune" = may be looked at while tuning; "held_out" = only for the last word.
    valid_until: the last day on which the reference answer holds.
    human: verdicts of people on stored answers, by name; read by the judges that replay people.
    """

    id: str
    text: str
    reference_answer: str | None = None
    reference_claims: tuple[str, ...] | None = None
    relevant: tuple[Span, ...] | None = None
    answerable: bool = True
    slices: tuple[str, ...] = ()
    origin: Literal["real", "synthetic"] = "real"
    split: Literal["tune", "held_out"] = "tune"
    valid_until: date | None = None
    human: Mapping[str, Any] | None = None
    metadata: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    """What a splitter made of a document: `text == document.text[start:end]`. The one exception: a passage of a system
    of one's own that stands in no document has no length (start == end) and its own text, so that it holds no label."""

    doc_id: str
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Ranked:
    """A chunk at its place in a ranking. rank counts from 1; a higher score is better."""

    chunk: Chunk
    score: float
    rank: int


@dataclass(frozen=True, slots=True)
class Dropped:
    """A ranked chunk that did not reach the prompt, and why."""

    chunk: Chunk
    reason: Literal["duplicate", "budget"]


@dataclass(frozen=True, slots=True)
class StageUsage:
    """What one stage spent on one question. seconds is wall time when it was computed, not when it
    was read back from the store; tokens are None where nothing counted them."""

    stage: str
    seconds: float
    tokens_in: int | None = None
    tokens_out: int | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """What one run of a system did for one question.

    asked_k: how many chunks the system was asked for (it may return fewer).
    retrieved: the candidates of the first stage, best first.
    reranked: the ranking that the system stands by, at most asked_k long (equal to the first asked_k
        of `retrieved` where no reranker runs).
    context: the chunks that reached the prompt, in prompt order; dropped: those of `reranked` that did not.
    labelled: every chunk of this run's chunking that shares a character with a label of the question,
        retrieved or not, so that definitions know what could have been found.
    citations: positions in `context`, from 0, that the answer cites.
    refused: True = the system declined to answer.
    error: why the system has no answer for this question; None = it has one.
    """

    question_id: str
    asked_k: int = 0
    retrieved: tuple[Ranked, ...] = ()
    reranked: tuple[Ranked, ...] = ()
    context: tuple[Chunk, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    labelled: tuple[Chunk, ...] = ()
    prompt: str | None = None
    answer: str | None = None
    citations: tuple[int, ...] = ()
    refused: bool | None = None
    usage: tuple[StageUsage, ...] = ()
    error: str | None = None


@dataclass(frozen=True)
class Definition:
    """What a score means. Two scores are comparable only when `fingerprint` agrees.

    key: the name a person sees: id, cutoff and the parameters that differ from their defaults.
    asks: the question it answers; definitions that ask the same are audited side by side.
    unit: what is counted (claim, statement, sentence, chunk, passage, document, character, answer).
    hit: what counts as a hit. formula: in words and symbols.
    nothing_to_judge: what the value is when there is nothing to judge, and why.
    direction: whether a higher or a lower value is better.
    requires: the fields of Question and Record without which it is not applicable.
    parameters: all of them, defaults included.
    calls: how many calls to a judge one record takes, in words ("1 + 1 a chunk"); "0" = it asks no judge.
    prompts: hash of each prompt and schema that it sends to a judge, by call.
    source: the paper, page or package file that the definition is taken from, with its date.
    revision: the number of our own adapter's reading of it; raised when a number may change.
    """

    id: str
    key: str
    asks: str
    framework: str
    version: str
    implementation: str
    unit: str
    hit: str
    formula: str
    nothing_to_judge: str
    aggregation: str
    range: tuple[float, float]
    direction: Literal["higher", "lower"]
    requires: tuple[str, ...]
    parameters: Mapping[str, JsonValue]
    source: str
    revision: int = 1
    calls: str = "0"
    prompts: Mapping[str, str] = field(default_factory=dict)
    hazards: tuple[str, ...] = ()

    @cached_property
    def fingerprint(self) -> str:
        """Hash of all that can change the number; prose about it does not count."""
        return fingerprint(
            {
                "id": self.id,
                "framework": self.framework,
                "version": self.version,
                "implementation": self.implementation,
                "parameters": dict(self.parameters),
                "prompts": dict(self.prompts),
                "revision": self.revision,
            }
        )

    def card(self) -> dict[str, Any]:
        """Every field and the fingerprint, ready for JSON."""
        return {**asdict(self), "fingerprint": self.fingerprint}


@dataclass(frozen=True)
class JudgeCard:
    """Which judge gave a score. Two judged scores are comparable only when `fingerprint` agrees.

    provider: openai (any compatible endpoint), lexical, labels, ... model and revision: which one answered.
    temperature, seed, max_tokens: as sent; None = not sent. host: where an endpoint is served, without credentials.
    embeddings: what turns texts into vectors, for definitions that need them; None = nothing does.
    settings: all else that can change an answer. fingerprint: hash of all of it, filled in where it is not given.
    """

    provider: str
    model: str
    revision: str | None = None
    temperature: float | None = None
    seed: int | None = None
    max_tokens: int | None = None
    host: str | None = None
    embeddings: str | None = None
    settings: Mapping[str, JsonValue] = field(default_factory=dict)
    fingerprint: str = ""

    def __post_init__(self) -> None:
        if not self.fingerprint:
            parts = {name: value for name, value in asdict(self).items() if name != "fingerprint"}
            object.__setattr__(self, "fingerprint", fingerprint(parts))


@dataclass(frozen=True, slots=True)
class Verdict:
    """One judged unit: the framework's own word first, ours beside it.

    native: the word or number as it came (`idk`, `2`, `yes`).
    ours: supported | contradicted | absent, or not_supported where the framework has one word for the last two;
        relevant | not_relevant; attributed | not_attributed; None where the native word has no counterpart.
    rank: the place in the ranking, from 1, where the unit is a ranked chunk.
    """

    unit: str
    native: str
    ours: str | None = None
    reason: str | None = None
    rank: int | None = None

    def __post_init__(self) -> None:
        for name in ("unit", "native", "reason"):
            _write_well_formed(self, name)


def _write_well_formed(thing: Any, name: str) -> None:
    """Lone surrogates, which a judge's JSON and exceptions may hold, can be written to no file."""
    text = getattr(thing, name)
    if text is not None and not text.isascii():
        object.__setattr__(thing, name, well_formed(text))


Status = Literal["computed", "not_applicable", "failed"]


@dataclass(frozen=True, slots=True)
class Score:
    """One definition's word on one record.

    value is a finite number exactly when status is "computed"; otherwise it is None and `reason` says why in
    one sentence, of at most LONGEST_REASON characters. native_value: what the framework itself returned where paribus
    does not take it for the value (1 for an answer without claims); None where that was no number. judge: None where
    the definition asks none. calls: replies of the judge; cached of them were kept from earlier and cost nothing,
    repaired of them were asked for because the one before could not be read. tokens: in and out; None where nothing
    counted them. cost: US dollars; None = unknown. seconds: wall time.
    samples: how often the judgement was made; with more than one, value is the mean over those that have one, evidence
    that of the first of them, and the counts are those of all. samples_failed of them failed. spread: standard
    deviation (n - 1) of the value over the samples; None with fewer than two values. flaky: between two samples a
    verdict on the same unit flips, the value changes sides of the middle of the range, or one found nothing to judge.
    """

    question_id: str
    definition: str
    fingerprint: str
    value: float | None
    status: Status = "computed"
    reason: str | None = None
    evidence: tuple[Verdict, ...] = ()
    native_value: float | None = None
    judge: JudgeCard | None = None
    calls: int = 0
    cached: int = 0
    repaired: int = 0
    tokens: int | None = None
    cost: float | None = None
    seconds: float = 0.0
    samples: int = 1
    samples_failed: int = 0
    spread: float | None = None
    flaky: bool = False

    def __post_init__(self) -> None:
        if (self.value is not None) != (self.status == "computed"):
            raise ValueError(
                f"{self.definition} on {self.question_id}: status {self.status} cannot go with value {self.value}"
            )
        if self.value is not None and not math.isfinite(self.value):
            raise ValueError(f"{self.definition} on {self.question_id}: {self.value} is not a finite number")
        if self.native_value is not None and not math.isfinite(self.native_value):
            raise ValueError(f"{self.definition} on {self.question_id}: native_value must be finite or None")
        if self.value is None and not self.reason:
            raise ValueError(f"{self.definition} on {self.question_id}: a score without a value needs a reason")
        _write_well_formed(self, "reason")
        if self.reason and len(self.reason) > LONGEST_REASON:
            object.__setattr__(self, "reason", f"{self.reason[: LONGEST_REASON - 1]}…")


_type_adapters: dict[type, Any] = {}


def _type_adapter(kind: type) -> Any:
    from pydantic import TypeAdapter

    if kind not in _type_adapters:
        _type_adapters[kind] = TypeAdapter(kind)
    return _type_adapters[kind]


def to_json(value: Any) -> str:
    """One line of JSON of any of these types, with non-ASCII text left as it is."""
    return cast(bytes, _type_adapter(type(value)).dump_json(value)).decode("utf-8")


def from_json(kind: type[T], line: str) -> T:
    """Rebuild a value of `kind` from `to_json`; raises pydantic.ValidationError naming every wrong field."""
    return cast(T, _type_adapter(kind).validate_json(line))


def json_schema(kind: type) -> dict[str, Any]:
    """The JSON Schema of `kind`, with the schema version in it."""
    return {**_type_adapter(kind).json_schema(), "$comment": f"paribus schema version {SCHEMA_VERSION}"}
