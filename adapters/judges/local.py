"""A model on this machine as the judge: no network, no key, and as good as its weights are."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, PrivateAttr

from adapters.judge import Call, JudgeFault, Reply, SampledJudge, Vectors
from adapters.judges import yes_no
from adapters.judges.model_names import model_warnings
from adapters.judges.openai import OpenAIJudge
from adapters.judges.vectors import CARD, HASHED, hashed
from adapters.judges.yes_no import YesNoJudge
from adapters.local_server import LocalModel, LocalModelError, ServedSettings, served
from adapters.schema import JudgeCard
from adapters.weights import WeightsError

SMOLLM2 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
TINY = (
    "judge=local runs {model}, a tiny model that judges no better than chance: its scores show that paribus works from "
    "end to end, and nothing about your system. Name better weights in judge.weights, or use judge=openai"
)
UNMEASURED = (
    "judge=local runs {model} on this machine. Small models judge poorly; benchmarks/judges.py measures how far "
    "these weights agree with people"
)


class LocalJudge(LocalModel, SampledJudge):
    """Asks weights on this machine, through a server that starts with the first call and ends with the process.

    Schemas are sent with maxItems and maxLength, because a small model fills a list for ever where it may. A longer
    list than `max_items` cannot be written then, and a score that needs one fails, as a reply does that is cut off at
    max_tokens. Embeddings are hashed words. Raises JudgeFault for calls, WeightsError where the card is asked for and
    the weights or xllamacpp are missing.
    """

    recorded: ClassVar[bool] = True

    asks: Literal["prompts", "yes_no"] = "prompts"
    """prompts = those of the frameworks; yes_no = one question a unit, see YesNoJudge."""
    max_items: Annotated[int, Field(ge=1)] = 16
    """Items that a list of a reply may have, where its schema does not limit them; prompts only."""
    max_characters: Annotated[int, Field(ge=1)] = 400
    """Characters that a text of a reply may have, where its schema does not limit them; prompts only."""
    repair_rounds: Annotated[int, Field(ge=0, le=3)] = 0
    """How often a reply that cannot be read is asked for again, with the fault named; prompts only."""
    concurrency: Annotated[int, Field(ge=1)] = 1
    """Calls in flight at once; the server has one slot, so more of them wait there."""
    call_seconds: Annotated[float, Field(gt=0, strict=False)] = 1800.0
    """Seconds after which a call is given up."""
    _anew: bool = PrivateAttr(False)
    _judges: dict[str, OpenAIJudge | YesNoJudge] = PrivateAttr(default_factory=dict)

    @property
    def card(self) -> JudgeCard:
        """The weights by name and SHA-256, and all that can change what they answer. Raises WeightsError."""
        written = self.asks == "prompts"
        limits = {
            "max_items": self.max_items,
            "max_characters": self.max_characters,
            "repair_rounds": self.repair_rounds,
        }
        return JudgeCard(
            provider="local" if written else "yes_no",
            model=self.name,
            revision=f"sha256:{self.digest}",
            temperature=self.temperature,
            seed=self.seed,
            max_tokens=self.max_tokens if written else 1,
            host="local",
            embeddings=CARD,
            settings={**self.how, **(limits if written else yes_no.settings()), **self.sampled()},
        )

    @property
    def repairs(self) -> int:
        """See Judge."""
        return self.repair_rounds if self.asks == "prompts" else 0

    def anew(self) -> LocalJudge:
        """See Judge."""
        copied = self.model_copy()
        copied._anew = True
        return copied

    def check(self) -> None:
        """See Judge."""
        try:
            assert self.card
        except WeightsError as error:
            raise JudgeFault(str(error)) from None

    async def prepare(self) -> None:
        """Start the server, so that its start is in no call's time."""
        try:
            await self._judge()
        except JudgeFault:
            return  # every call will say so

    async def ask(self, call: Call) -> Reply:
        """The model's reply. Raises JudgeFault."""
        judge = await self._judge()
        try:
            return await judge.ask(call)
        except JudgeFault:
            if ended := await asyncio.to_thread(self._ended, judge.base_url):
                raise JudgeFault(f"{self.name} gave no reply: {ended}") from None
            raise

    def forget(self, call: Call) -> None:
        """See Judge."""
        for judge in () if self._anew else self._last():
            judge.forget(call)

    def believe(self, calls: Sequence[Call]) -> None:
        """See Judge."""
        for judge in () if self._anew else self._last():
            judge.believe(calls)

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """See adapters.judges.vectors.hashed. Raises JudgeFault."""
        return hashed(texts)

    async def embedded(self, texts: Sequence[str]) -> Vectors:
        """See Judge. Hashed words cost nothing."""
        return Vectors(hashed(texts), 0.0)

    def warnings(self, generator_model: str | None) -> tuple[str, ...]:
        """What these weights are worth as a judge, samples that cannot differ, replies that could not be kept."""
        told = TINY if self.digest == SMOLLM2 else UNMEASURED
        own = (yes_no.AGREEMENT,) if self.asks == "yes_no" else ()
        families = model_warnings(self.name, self.digest, generator_model)
        unkept = dict.fromkeys(note for judge in self._judges.values() for note in judge.client.notes())
        return (told.format(model=self.name), *own, *self.alike(self.temperature), *families, *unkept)

    def alike(self, temperature: float | None) -> tuple[str, ...]:
        """See SampledJudge."""
        if self.asks == "yes_no":
            return yes_no.read_off(self.samples)
        return super().alike(temperature)

    async def close(self) -> None:
        """Close the connections of the running event loop; the server stays for the next run of this process."""
        with suppress(JudgeFault):  # nothing was opened where it does not start
            await (await self._judge()).close()

    async def _judge(self) -> OpenAIJudge | YesNoJudge:
        judge = self._asking(await asyncio.to_thread(self._fields))
        return judge.anew() if self._anew else judge

    def _last(self) -> list[OpenAIJudge | YesNoJudge]:
        """The one that asked last, whether its server still runs or not: all of them keep replies in one place."""
        return list(self._judges.values())[-1:]

    def _asking(self, fields: str) -> OpenAIJudge | YesNoJudge:
        """One for each server of this judge, because another start has another address."""
        if fields not in self._judges:
            kind = _Written if self.asks == "prompts" else _YesNo
            self._judges.setdefault(fields, kind(**json.loads(fields)))
        return self._judges[fields]

    def _fields(self) -> str:
        """The settings of the judge that asks the server, as JSON. Starts the server. Raises JudgeFault."""
        try:
            fields = self.endpoint()
        except (WeightsError, LocalModelError) as error:
            raise JudgeFault(str(error)) from None
        fields |= {"call_seconds": self.call_seconds, "revision": self.digest}
        if self.asks == "yes_no":
            return json.dumps(fields | {"max_tokens": 1})
        limits = {"max_items": self.max_items, "max_characters": self.max_characters}
        return json.dumps(fields | limits | {"repair_rounds": self.repair_rounds, "embeddings": HASHED})

    def _ended(self, base_url: str) -> str | None:
        """How the server at `base_url` ended, if another one runs now; None = it still runs."""
        try:
            now = served(self)
        except (WeightsError, LocalModelError) as error:
            return str(error)
        return None if now.base_url == base_url else "its server ended in the middle of it and was started again"


class _Written(ServedSettings, OpenAIJudge):
    """The frameworks' prompts to the local server."""

    untaken: ClassVar[str] = "; prompt and reply together must fit into judge.context"

    structured: Literal["json_schema"] = "json_schema"
    max_items: int
    max_characters: int

    def _sent(self, call: Call) -> tuple[list[dict[str, str]], dict[str, Any]]:
        messages, options = super()._sent(call)
        return messages, bounded(options, self.max_items, self.max_characters)


class _YesNo(ServedSettings, YesNoJudge):
    """Yes/no questions to the local server."""


def bounded(schema: Any, max_items: int, max_characters: int) -> Any:
    """A JSON Schema, or what holds one, with maxItems for every list and maxLength for every free text that has none.
    Whatever holds to it holds to `schema`."""
    if isinstance(schema, list):
        return [bounded(part, max_items, max_characters) for part in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: bounded(part, max_items, max_characters) for name, part in schema.items()}
    if schema.get("type") == "array":
        made.setdefault("maxItems", max_items)
    if schema.get("type") == "string" and not schema.keys() & {"enum", "const", "format", "pattern"}:
        made.setdefault("maxLength", max_characters)
    return made
