"""A chat model behind an OpenAI-compatible endpoint as the judge."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, Field

from adapters.endpoint import Endpoint, EndpointError, EndpointSettings
from adapters.judge import Call, Judge, JudgeFault, Reply, schema_text
from adapters.judges.model_names import model_warnings
from adapters.judges.vectors import CARD, HASHED, hashed
from adapters.schema import JudgeCard


class OpenAIJudge(EndpointSettings, Judge):
    """Sends the frameworks' prompts as they are to a chat endpoint and asks for JSON of the schema of each call.

    A second sample of one prompt (Call.sample) is asked with the next seed. Raises JudgeFault where the endpoint gives
    no reply; what a reply holds is read by adapters.replies.
    """

    recorded: ClassVar[bool] = True

    max_tokens: Annotated[int, Field(ge=1)] | None = 4096
    """Tokens a reply may have; a reply that is cut off is no verdict. None = not sent."""
    revision: str | None = None
    """What says which weights answer, where the name does not: a digest, a date, a commit."""
    structured: Literal["json_schema", "json_object", "text"] = "json_schema"
    """How JSON is asked for: response_format with the schema; response_format without it; not at all. In the last two
    the schema is written below the prompt."""
    strict: bool = True
    """json_schema only: ask for strict adherence, with every property required and no others, as OpenAI wants it."""
    embeddings: Annotated[str, Field(min_length=1)] | None = None
    """An embedding model at the same endpoint; "hashed" = words, see adapters.judges.vectors; None = no embeddings."""

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
            settings={"structured": self.structured, "strict": self.strict, "options": self.options},
        )

    async def ask(self, call: Call) -> Reply:
        """The model's reply, with the tokens that the endpoint counted. Raises JudgeFault."""
        messages = [{"role": message.role, "content": message.content} for message in call.messages]
        options: dict[str, Any] = {}
        if call.schema and self.structured == "json_schema":
            options["response_format"] = _schema_format(call.schema, self.strict)
        elif call.schema:
            messages[-1]["content"] += f"\n\nReply with one JSON object of this schema: {schema_text(call.schema)}"
            if self.structured == "json_object":
                options["response_format"] = {"type": "json_object"}
        if call.sample and self.seed is not None:
            options["seed"] = self.seed + call.sample
        try:
            reply = await self._endpoint().achat(messages, options)
        except EndpointError as error:
            untaken = error.status in (400, 422) and "response_format" in options
            hint = "; where it takes no schemas, change judge.strict or judge.structured" if untaken else ""
            raise JudgeFault(f"{error}{hint}") from None
        return Reply(reply.text, reply.tokens_in, reply.tokens_out, reply.finish_reason, reply.model)

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
            # `options` are for the chat; an embedding endpoint refuses what it does not know.
            return await self._endpoint(model=self.embeddings, options={}).aembed(texts)
        except EndpointError as error:
            raise JudgeFault(f"no embeddings: {error}") from None

    def warnings(self, generator_model: str | None) -> tuple[str, ...]:
        """An alias for changing weights, and a judge of the generator's own family."""
        return model_warnings(self.model, self.revision, generator_model)

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        await self._endpoint().aclose()

    def _endpoint(self, **changed: Any) -> Endpoint:
        return Endpoint(**{name: getattr(self, name) for name in EndpointSettings.model_fields} | changed)


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
