"""A chat model behind an OpenAI-compatible endpoint as the judge."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, Field, PrivateAttr, model_validator

from adapters.client import Client, ClientSettings, Prices
from adapters.endpoint import EndpointError
from adapters.judge import Call, JudgeFault, Reply, SampledJudge, Vectors, schema_text
from adapters.judges.model_names import model_warnings
from adapters.judges.vectors import CARD, HASHED, hashed
from adapters.schema import JudgeCard

Structure = Literal["json_schema", "tool", "json_object", "text"]
MODES: tuple[Structure, ...] = ("json_schema", "tool", "json_object", "text")
"""From the strictest way to ask for JSON to the loosest."""
UNTAKEN = (400, 404, 415, 422, 501)
"""HTTP status by which endpoints refuse a way that they do not know."""


class JudgePrices(Prices):
    """US dollars for a million tokens of the judge's models. embeddings: None = unknown."""

    embeddings: Annotated[float, Field(ge=0, strict=False)] | None = None


class OpenAIJudge(ClientSettings, SampledJudge):
    """Sends the frameworks' prompts as they are to a chat endpoint and asks for JSON of the schema of each call.

    The n-th sample of one prompt (Call.sample) is asked with seed + n. Raises JudgeFault where the endpoint gives
    no reply; what a reply holds is read by adapters.replies.
    """

    recorded: ClassVar[bool] = True
    keeps_time: ClassVar[bool] = True
    untaken: ClassVar[str] = "; where it takes no schemas, change judge.strict or judge.structured"
    """What is said of a refused call that asked for a schema."""

    max_tokens: Annotated[int, Field(ge=1)] | None = 4096
    """Tokens a reply may have; a reply that is cut off is no verdict. None = not sent."""
    revision: str | None = None
    """What says which weights answer, where the name does not: a digest, a date, a commit."""
    structured: Structure | Literal["auto"] = "auto"
    """How JSON is asked for: response_format with the schema; a tool that takes it; response_format without it; not at
    all. In the last two the schema is written below the prompt. auto = the first that the endpoint takes, found by
    small calls (they count in max_calls) and kept with the replies; the card says which."""
    strict: bool = True
    """json_schema only: ask for strict adherence, with every property required and no others, as OpenAI wants it."""
    repair_rounds: Annotated[int, Field(ge=0, le=3)] = 1
    """How often a reply that cannot be read is asked for again, with the fault named."""
    embeddings: Annotated[str, Field(min_length=1)] | None = None
    """An embedding model at the same endpoint; "hashed" = words, see adapters.judges.vectors; None = no embeddings."""
    prices: JudgePrices | None = None
    """None = unknown: no cost is shown."""
    _anew: bool = PrivateAttr(False)

    @model_validator(mode="after")
    def _cost_of_embeddings_is_known(self) -> OpenAIJudge:
        paid = self.embeddings not in (None, HASHED)
        if self.max_cost is not None and paid and self.prices and self.prices.embeddings is None:
            raise ValueError(
                f"max_cost={self.max_cost:g} needs prices.embeddings, what a million tokens of {self.embeddings} cost, "
                "or nobody knows when it is reached"
            )
        return self

    @property
    def card(self) -> JudgeCard:
        """What was asked, where, and how; nothing of the key."""
        return JudgeCard(
            provider="openai",
            model=self.model,
            revision=self.revision,
            temperature=self.temperature,
            seed=self.seed,
            max_tokens=self.max_tokens,
            host=self.host,
            embeddings=CARD if self.embeddings == HASHED else self.embeddings,
            settings={
                "structured": self._found.get("structured", self.structured),
                "strict": self.strict,
                "options": self.options,
                "repair_rounds": self.repair_rounds,
                **self.sampled(),
                **({} if self.path is None else {"path": self.path}),
            },
        )

    @property
    def repairs(self) -> int:
        """See Judge."""
        return self.repair_rounds

    def anew(self) -> OpenAIJudge:
        """See Judge."""
        copied = self.model_copy()
        copied.__dict__.update(client=self.client, _found=self._found)  # counts, limits and what was found out are one
        copied._anew = True
        return copied

    @property
    def spent(self) -> str | None:
        """See Judge."""
        return self.client.spent

    @property
    def weights(self) -> str | None:
        """See ClientSettings."""
        return self.revision

    @cached_property
    def _embedder(self) -> Client:
        # `options` are for the chat; an embedding endpoint refuses what it does not know.
        price = self.prices.embeddings if self.prices else None
        prices = None if price is None else Prices(input=price, output=0.0)
        settings = self.model_copy(update={"model": self.embeddings, "options": {}, "prices": prices})
        return Client(settings, self.client.limits)

    @cached_property
    def _found(self) -> dict[str, Structure]:
        return {}

    def check(self) -> None:
        """See Judge."""
        try:
            self.client.check()
        except EndpointError as error:
            raise JudgeFault(str(error)) from None

    async def prepare(self) -> None:
        """Find the strictest way to ask for JSON that the endpoint takes, if that is left to us and not yet known. What
        is found is kept beside the replies, so that an endpoint is asked once and not once a run."""
        if self.structured != "auto" or self._found:
            return
        what = f"structured, strict={self.strict}"
        try:
            mode = self.client.learned(what)
            if mode not in MODES:
                mode = await self._probed()
                await self.client.learn(what, mode)
        except (EndpointError, TimeoutError):
            mode = MODES[0]  # what is asked for then; the calls themselves will say what is wrong
        self._found["structured"] = mode

    async def _probed(self) -> Structure:
        """The first mode that the endpoint takes. Raises EndpointError, and TimeoutError after call_seconds."""
        for mode in MODES:
            try:
                asked = [{"role": "user", "content": PROBE}]
                await self.client.chat(asked, _asking(mode, Probe, self.strict), seconds=self.call_seconds)
                return mode
            except EndpointError as error:
                if error.status not in UNTAKEN or mode == MODES[-1]:
                    raise
        raise AssertionError("MODES is not empty")

    async def ask(self, call: Call) -> Reply:
        """The model's reply, with the tokens that the endpoint counted. Raises JudgeFault, and TimeoutError after
        call_seconds, in which waiting for requests_per_minute and tokens_per_minute does not count."""
        try:
            answered = await self.client.chat(*self._sent(call), call.sample, self._anew, self.call_seconds)
        except EndpointError as error:
            untaken = error.status in (400, 422) and call.schema
            raise JudgeFault(f"{error}{self.untaken if untaken else ''}") from None
        said = answered.reply
        text = _argument(said.body) or said.text
        return Reply(
            text, said.tokens_in, said.tokens_out, said.finish_reason, said.model, answered.cached, answered.cost
        )

    def forget(self, call: Call) -> None:
        """See Judge."""
        if not self._anew:
            self.client.forget(self._key(call))

    def believe(self, calls: Sequence[Call]) -> None:
        """See Judge."""
        if not self._anew:
            self.client.believe(list(map(self._key, calls)))

    def _key(self, call: Call) -> str:
        return self.client.key(*self._sent(call), call.sample)

    def _sent(self, call: Call) -> tuple[list[dict[str, str]], dict[str, Any]]:
        messages = [{"role": message.role, "content": message.content} for message in call.messages]
        options: dict[str, Any] = {}
        if call.schema:
            configured = self.structured if self.structured != "auto" else MODES[0]
            mode = self._found.get("structured", configured)
            options |= _asking(mode, call.schema, self.strict)
            if mode in ("json_object", "text"):
                messages[-1]["content"] += f"\n\nReply with one JSON object of this schema: {schema_text(call.schema)}"
        if call.sample and self.seed is not None:
            options["seed"] = self.seed + call.sample
        return messages, options

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """A vector for each text, in order. Raises JudgeFault."""
        return (await self.embedded(texts)).rows

    async def embedded(self, texts: Sequence[str]) -> Vectors:
        """See Judge. What hashed words cost is nothing."""
        if self.embeddings is None:
            raise JudgeFault(
                "this definition needs embeddings, and the judge has none; set judge.embeddings to an embedding model "
                f"at {self.host}, or to {HASHED}"
            )
        if self.embeddings == HASHED:
            return Vectors(hashed(texts), 0.0)
        try:
            found = await self._embedder.embed(texts, self._anew, self.call_seconds)
        except EndpointError as error:
            raise JudgeFault(f"no embeddings: {error}") from None
        return Vectors(found.vectors, found.cost)

    def warnings(self, generator_model: str | None) -> tuple[str, ...]:
        """An alias for changing weights, a judge of the generator's own family, samples that cannot differ, another
        model that answered, replies that could not be kept."""
        told = self.alike(self.temperature) + model_warnings(self.model, self.revision, generator_model)
        clients = [self.client, *([self._embedder] if "_embedder" in self.__dict__ else [])]
        return (*told, *dict.fromkeys(note for client in clients for note in client.notes()))

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        await self.client.close()
        if "_embedder" in self.__dict__:
            await self._embedder.close()


class Probe(BaseModel):
    """What is asked for to see how an endpoint takes a schema."""

    ok: bool


PROBE = 'Reply with this JSON object and nothing else: {"ok": true}'


def _asking(mode: Structure, schema: type[BaseModel], strict: bool) -> dict[str, Any]:
    """The fields of a request that ask for JSON of `schema`."""
    match mode:
        case "json_schema":
            return {"response_format": _schema_format(schema, strict)}
        case "tool":
            form = _schema_format(schema, strict)["json_schema"]
            function = {"name": form["name"], "parameters": form["schema"], "strict": strict}
            chosen = {"type": "function", "function": {"name": form["name"]}}
            return {"tools": [{"type": "function", "function": function}], "tool_choice": chosen}
        case "json_object":
            return {"response_format": {"type": "json_object"}}
        case "text":
            return {}


def _argument(body: Mapping[str, Any]) -> str | None:
    """What a model passed to the tool that it was told to call."""
    calls = body["choices"][0]["message"].get("tool_calls") or []
    try:
        arguments = calls[0]["function"]["arguments"] if calls else None
    except (IndexError, KeyError, TypeError):
        return None
    return arguments if isinstance(arguments, str) else None


@lru_cache(maxsize=512)
def _schema_format(schema: type[BaseModel], strict: bool) -> dict[str, Any]:
    """`response_format` for a schema. The name may have 64 letters, digits, - and _."""
    written = schema.model_json_schema()
    return {
        "type": "json_schema",
        "json_schema": {
            "name": re.sub(r"[^A-Za-z0-9_-]", "_", schema.__name__)[:64],
            "schema": _closed(written) if strict else written,
            "strict": strict,
        },
    }


def _closed(schema: Any) -> Any:
    """`schema` with every property required, no others allowed and no defaults: what strict adherence wants. Whatever
    holds to it holds to `schema`."""
    if isinstance(schema, list):
        return [_closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: _closed(part) for name, part in schema.items() if name != "default" or isinstance(part, dict)}
    if "properties" in schema and isinstance(schema["properties"], dict):
        closed |= {"required": list(schema["properties"]), "additionalProperties": False}
    return closed
