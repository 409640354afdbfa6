"""A chat model behind an OpenAI-compatible endpoint as the judge."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, Field, PrivateAttr

from adapters.client import Client, ClientSettings
from adapters.endpoint import EndpointError
from adapters.judge import Call, Judge, JudgeFault, Reply, schema_text
from adapters.judges.model_names import model_warnings
from adapters.judges.vectors import CARD, HASHED, hashed
from adapters.schema import JudgeCard

Structure = Literal["json_schema", "tool", "json_object", "text"]
MODES: tuple[Structure, ...] = ("json_schema", "tool", "json_object", "text")
"""From the strictest way to ask for JSON to the loosest."""
SAMPLES_ALIKE = (
    "judge.samples={samples} with judge.temperature=0: each sample is the likeliest reply, so a verdict that flips "
    "shows the endpoint's noise only; set judge.temperature, for instance to 0.7"
)
UNTAKEN = (400, 404, 415, 422, 501)
"""HTTP status by which endpoints refuse a way that they do not know."""


class OpenAIJudge(ClientSettings, Judge):
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
    samples: Annotated[int, Field(ge=1, le=99)] = 1
    """How often each judgement is made, with other seeds; the value is the mean. Needs a temperature above 0."""
    embeddings: Annotated[str, Field(min_length=1)] | None = None
    """An embedding model at the same endpoint; "hashed" = words, see adapters.judges.vectors; None = no embeddings."""
    _anew: bool = PrivateAttr(False)

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
                **({"samples": self.samples} if self.samples > 1 else {}),
            },
        )

    @property
    def repairs(self) -> int:
        """See Judge."""
        return self.repair_rounds

    @property
    def repeats(self) -> int:
        """See Judge."""
        return self.samples

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
        return Client(self.model_copy(update={"model": self.embeddings, "options": {}}), self.client.limits)

    @cached_property
    def _found(self) -> dict[str, Structure]:
        return {}

    @cached_property
    def _answering(self) -> set[str]:
        return set()

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
            mode = self.client.learned(what) or await self._probed()
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
        self._answering.add(said.model)
        text = _argument(said.body) or said.text
        return Reply(
            text, said.tokens_in, said.tokens_out, said.finish_reason, said.model, answered.cached, answered.cost
        )

    def forget(self, call: Call) -> None:
        """See Judge."""
        if self._anew:
            return
        try:
            self.client.forget(self.client.key(*self._sent(call), call.sample))
        except EndpointError as error:
            raise JudgeFault(str(error)) from None

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
        if self.embeddings is None:
            raise JudgeFault(
                "this definition needs embeddings, and the judge has none; set judge.embeddings to an embedding model "
                f"at {self.host}, or to {HASHED}"
            )
        if self.embeddings == HASHED:
            return hashed(texts)
        try:
            return await self._embedder.embed(texts, self._anew, self.call_seconds)
        except EndpointError as error:
            raise JudgeFault(f"no embeddings: {error}") from None

    def warnings(self, generator_model: str | None) -> tuple[str, ...]:
        """An alias for changing weights, a judge of the generator's own family, samples that cannot differ, another
        model that answered, replies that could not be kept."""
        greedy = (SAMPLES_ALIKE.format(samples=self.samples),) if self.samples > 1 and self.temperature == 0 else ()
        told = greedy + model_warnings(self.model, self.revision, generator_model)
        if others := sorted(self._answering - {self.model}):
            answered = " and ".join(map(repr, others))
            told += (f"judge model {self.model!r} was asked, and {self.host} says that {answered} answered",)
        return told + ((f"replies are not kept any more: {self.client.unkept}",) if self.client.unkept else ())

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
