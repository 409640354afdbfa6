"""The judge: what all three frameworks ask, whoever answers.

A judge answers one call at a time with text; structure is asked for by schema and read by `adapters.replies`, the same
way for every judge and framework. Judges are frozen configuration like every other part; `conf/judge` names them.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from adapters.schema import JsonValue, JudgeCard, Question, Record, fingerprint
from adapters.tasks import Findings, Task


class JudgeFault(Exception):
    """The judge gave nothing that can be used; one sentence that a person understands. It costs one score."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a chat."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Call:
    """One question to a judge.

    definition, name: which call of which definition it is (`deepeval/faithfulness`, `verdicts`), for messages.
    schema: the pydantic model that the reply must be JSON of; None = plain text is wanted.
    sample: 0 for the first call with this prompt within one measurement, 1 for the next: another sample on purpose. A
        judgement that is made again counts from another number on (adapters.bench.SAMPLES_APART).
    question, record: what is being measured. task, write: for judges without a model, see `adapters.tasks`; calling
    them may raise JudgeFault.
    """

    definition: str
    name: str
    messages: tuple[Message, ...]
    schema: type[BaseModel] | None
    sample: int
    question: Question
    record: Record
    task: Callable[[], Task] = field(compare=False)
    write: Callable[[Findings], object] = field(compare=False)

    @property
    def key(self) -> str:
        """Hash of what is asked: messages, schema and sample; neither the judge nor the definition."""
        return fingerprint([[(m.role, m.content) for m in self.messages], schema_text(self.schema), self.sample])

    def __str__(self) -> str:
        return f"{self.definition} {self.name} of question {self.question.id}"


@lru_cache(maxsize=512)
def schema_text(schema: type[BaseModel] | None) -> str:
    """The JSON Schema of a model on one line, keys sorted; empty for None."""
    return "" if schema is None else json.dumps(schema.model_json_schema(), sort_keys=True, ensure_ascii=True)


@dataclass(frozen=True, slots=True)
class Vectors:
    """A vector for each text, in order. cost: US dollars; None = unknown."""

    rows: list[list[float]]
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What a judge wrote. tokens are None where nothing counted them; finish_reason "length" = cut off.

    cached: it was kept from an earlier call and cost nothing. cost: US dollars; None = unknown.
    """

    text: str
    tokens_in: int | None = None
    tokens_out: int | None = None
    finish_reason: str | None = None
    model: str | None = None
    cached: bool = False
    cost: float | None = None


class Judge(BaseModel, ABC):
    """Base of all judges. Fields are configuration; a judge may be asked from several threads and event loops."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)

    recorded: ClassVar[bool] = False
    """Whether its replies cost money or minutes, so that a run writes each down as it comes."""
    keeps_time: ClassVar[bool] = False
    """Whether it holds to call_seconds itself, with TimeoutError, because not all of its waiting counts."""

    concurrency: Annotated[int, Field(ge=1)] = 8
    """Calls in flight at once."""
    call_seconds: Annotated[float, Field(gt=0, strict=False)] = 300.0
    """Seconds after which a call is given up, retries included."""
    frozen: Annotated[str, Field(min_length=1)] | None = None
    """A file of `paribus judge freeze`: each run grades it again first, to see whether the judge moved. None = no."""
    drift_tolerance: Annotated[float, Field(ge=0, le=1, strict=False)] = 0.05
    """A judge moved when more than this share of its verdicts on the frozen sample flipped, or its scores differ by
    more than this share of their range on average."""

    @property
    @abstractmethod
    def card(self) -> JudgeCard:
        """Which judge this is; stored beside every score."""

    @property
    def repairs(self) -> int:
        """How often a reply that cannot be read is asked for again, with the fault named."""
        return 0

    @property
    def repeats(self) -> int:
        """How often each judgement is made, with other samples. More than 1 belongs on the card, as `samples` of its
        settings: it changes the value."""
        return 1

    def anew(self) -> Judge:
        """This judge, with limits, budget and what it found out, but no reply is taken from those that were kept, and
        none is kept or forgotten. Raises JudgeFault where it has no replies but those."""
        return self

    @property
    def spent(self) -> str | None:
        """Why nothing more is asked, where a budget is used up; None otherwise."""
        return None

    def check(self) -> None:
        """See that it can be used at all, before any work. Raises JudgeFault."""

    async def prepare(self) -> None:
        """Find out what the card must say, before the first call. Raises nothing: what fails, fails with the calls."""

    @abstractmethod
    async def ask(self, call: Call) -> Reply:
        """The reply to one call. Raises JudgeFault, and TimeoutError where it keeps time."""

    def forget(self, call: Call) -> None:
        """Keep no reply to this call: it was of no use. Where that fails, `warnings` tells."""

    def believe(self, calls: Sequence[Call]) -> None:
        """A score rests on the replies to these calls: `forget` leaves them from now on, in later runs too."""

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """A vector for each text, in order. Raises JudgeFault."""
        raise JudgeFault(f"judge {self.card.provider} has no embeddings, and this definition needs them")

    async def embedded(self, texts: Sequence[str]) -> Vectors:
        """`embed` with what it cost; for judges that know."""
        return Vectors(await self.embed(texts))

    def warnings(self, generator_model: str | None) -> tuple[str, ...]:
        """What a person should know before believing this judge. generator_model: the model that wrote the answers;
        None = no model did."""
        return ()

    async def close(self) -> None:
        """Release what was opened for the running event loop."""


SAMPLES_ALIKE = (
    "judge.samples={samples} with judge.temperature=0: each sample is the likeliest reply, so a verdict that flips "
    "shows the endpoint's noise only; set judge.temperature, for instance to 0.7"
)


class SampledJudge(Judge):
    """A judge that can be told to judge several times, with other seeds."""

    samples: Annotated[int, Field(ge=1, le=99)] = 1
    """How often each judgement is made, with other seeds; the value is the mean. Needs a temperature above 0."""

    @property
    def repeats(self) -> int:
        """See Judge."""
        return self.samples

    def sampled(self) -> dict[str, JsonValue]:
        """What the settings of a card say of it."""
        return {"samples": self.samples} if self.samples > 1 else {}

    def alike(self, temperature: float | None) -> tuple[str, ...]:
        """What to know of samples that cannot differ."""
        return (SAMPLES_ALIKE.format(samples=self.samples),) if self.samples > 1 and temperature == 0 else ()
