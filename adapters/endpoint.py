"""Any OpenAI-compatible endpoint (OpenAI, Ollama, vLLM, llama.cpp's server). The only file that knows openai."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite
from re import fullmatch
from typing import TYPE_CHECKING, Annotated, Any, NoReturn
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI


SHORTEST_SECRET = 12
"""Characters from which a key is looked for in settings and replies: a shorter one, such as "ollama" for a server that
wants any, is no secret and may be a word of an honest reply."""
KEY_MARK = "[key]"
"""Stands where a text of an endpoint repeated the key."""


class EndpointError(Exception):
    """An endpoint gave no usable reply. One sentence that names the setting to change; it never holds the key.

    status: the HTTP status where the endpoint refused. unreachable: no connection came about. silent: it took the call
    and did not answer in time.
    """

    status: int | None = None
    unreachable: bool = False
    silent: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """What a chat model wrote.

    tokens_in, tokens_out: as the endpoint counted them; None where it did not.
    finish_reason: "stop"; "length" = cut off at max_tokens. model: what the endpoint says it ran.
    body: the reply as it came, for what only some endpoints send (log-probabilities).
    """

    text: str
    tokens_in: int | None
    tokens_out: int | None
    finish_reason: str | None
    model: str
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Embedded:
    """Vectors of texts, in their order. tokens: as the endpoint counted them; None where it did not."""

    vectors: list[list[float]]
    tokens: int | None = None


def plain_address(address: str) -> str:
    """`address`, which may be stored. Raises ValueError where it is none, or may hold a secret."""
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise ValueError("must be an address like http://localhost:11434/v1")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ValueError(
            f"must not hold credentials, a query or a fragment (host {parts.hostname}); put the key into an "
            "environment variable and its name into api_key_env"
        )
    return address


def name_of_variable(name: str | None) -> str | None:
    """`name`, unless it looks like the key itself. Raises ValueError."""
    if name is not None and not fullmatch("[A-Z_][A-Z0-9_]*", name):
        raise ValueError(
            "must be the NAME of an environment variable in capitals, like OPENAI_API_KEY, never the key itself "
            f"(what was given has {len(name)} characters and is not shown)"
        )
    return name


class EndpointSettings(BaseModel):
    """Where a model is served and how it is asked. The key is read from the environment and kept nowhere."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)

    base_url: str
    """Address up to and including the version, as in https://api.openai.com/v1; without credentials or query."""
    model: Annotated[str, Field(min_length=1)]
    """The model, as the endpoint names it."""
    api_key_env: str | None = None
    """NAME of the environment variable that holds the key; None = the endpoint wants none."""
    temperature: Annotated[float, Field(ge=0, le=2, strict=False)] | None = 0.0
    """0 = the likeliest token; None = not sent (some reasoning models refuse it)."""
    seed: int | None = 0
    """Asks for the same sample again, where the endpoint can; None = not sent."""
    max_tokens: Annotated[int, Field(ge=1)] | None = 512
    """Tokens an answer may have; None = not sent."""
    options: dict[str, Any] = {}
    """More fields of the request body, sent as they are (max_completion_tokens, response_format, cache_prompt)."""
    timeout_seconds: Annotated[float, Field(gt=0, strict=False)] = 60.0
    """Seconds for one attempt."""
    max_attempts: Annotated[int, Field(ge=1)] = 5
    """Attempts at a call that fails by status 408, 409, 429 or 5xx, timeout or lost connection. Between them the client
    waits what Retry-After says, as seconds or as a date; a wait of more than 2 minutes is not made, and the call fails
    at once. Without Retry-After it waits 0.5 seconds, doubled each time up to 8, less up to a quarter by chance."""

    _plain_address = field_validator("base_url")(plain_address)
    _name_of_variable = field_validator("api_key_env")(name_of_variable)

    @field_validator("options")
    @classmethod
    def _no_keys(cls, options: dict[str, Any]) -> dict[str, Any]:
        for name in _names(options):
            if fullmatch(r"(?i).*(api[-_ ]?keys?|authorization|secret|password|credentials?|bearer|token)", name):
                raise ValueError(f"must not hold {name}: options are stored with the results; see api_key_env")
        return options

    @model_validator(mode="after")
    def _key_is_nowhere(self) -> EndpointSettings:
        secret = self._secret
        for name in type(self).model_fields if len(secret) >= SHORTEST_SECRET else ():
            if secret in repr(getattr(self, name)):
                raise ValueError(
                    f"{name} holds the key that {self.api_key_env} has in the environment, and settings are stored "
                    "with the results; take it out"
                )
        return self

    @property
    def _secret(self) -> str:
        """The key; empty = there is none."""
        return os.environ.get(self.api_key_env, "").strip() if self.api_key_env else ""

    @property
    def host(self) -> str:
        """Host and port of `base_url`: what may be stored and shown."""
        return urlsplit(self.base_url).netloc

    @property
    def path(self) -> str | None:
        """What follows the host, where it is not the usual `/v1`: another deployment may answer there. None = it is."""
        path = urlsplit(self.base_url).path.rstrip("/")
        return None if path == "/v1" else path


class Endpoint(EndpointSettings):
    """Calls to an endpoint. `achat` and `aembed` are the same calls for an event loop; `aclose` when it is done."""

    def chat(self, messages: Sequence[Mapping[str, str]], options: Mapping[str, Any] | None = None) -> Reply:
        """The reply to `messages`, mappings of `role` and `content`. options: on top of those of the configuration.

        Raises EndpointError.
        """
        return self._reply(self._post("/chat/completions", self._chat_body(messages, options)))

    async def achat(self, messages: Sequence[Mapping[str, str]], options: Mapping[str, Any] | None = None) -> Reply:
        """See chat."""
        return self._reply(await self._apost("/chat/completions", self._chat_body(messages, options)))

    def embed(self, texts: Sequence[str]) -> Embedded:
        """A vector for each text, in the given order. Raises EndpointError."""
        if not texts:
            return Embedded([], 0)
        return self._vectors(self._post("/embeddings", self._embed_body(texts)), len(texts))

    async def aembed(self, texts: Sequence[str]) -> Embedded:
        """See embed."""
        if not texts:
            return Embedded([], 0)
        return self._vectors(await self._apost("/embeddings", self._embed_body(texts)), len(texts))

    async def aclose(self) -> None:
        """Close what the running event loop holds open to this endpoint; calls in flight end first."""
        try:
            connection = self._connection()
        except EndpointError:  # without a key nothing was opened
            return
        await _release(connection)

    def _chat_body(self, messages: Sequence[Mapping[str, str]], options: Mapping[str, Any] | None) -> dict[str, Any]:
        fields = {"temperature": self.temperature, "seed": self.seed, "max_tokens": self.max_tokens}
        sent = {name: value for name, value in fields.items() if value is not None} | self.options | dict(options or {})
        return {"model": self.model, "messages": [dict(message) for message in messages]} | sent

    def _embed_body(self, texts: Sequence[str]) -> dict[str, Any]:
        return {"model": self.model, "input": list(texts), "encoding_format": "float"} | self.options

    # `client.post` with cast_to=object gives the plain JSON; `client.chat.completions.create` builds a model of each
    # reply besides, for half as much CPU again.

    def _post(self, path: str, body: Mapping[str, Any]) -> Any:
        import openai

        client = _client(*self._connection())
        try:
            return self._without_key(client.post(path, cast_to=object, body=body))
        except (openai.OpenAIError, ValueError, RecursionError) as error:
            self._explain(error)

    async def _apost(self, path: str, body: Mapping[str, Any]) -> Any:
        import openai

        line = _line(self._connection())
        line.in_flight += 1
        try:
            return self._without_key(await line.client.post(path, cast_to=object, body=body))
        except (openai.OpenAIError, ValueError, RecursionError) as error:
            self._explain(error)
        finally:
            line.in_flight -= 1
            if line.released and not line.in_flight:
                await line.client.close()

    def _reply(self, body: Any) -> Reply:
        try:
            choice, usage = body["choices"][0], body.get("usage")
            text = choice["message"].get("content") or choice["message"].get("refusal") or ""
            reason, model = choice.get("finish_reason"), body.get("model") or self.model
        except (AttributeError, IndexError, KeyError, TypeError):
            raise self._not_a_reply("a choice that holds a message", body) from None
        if not all(isinstance(part, str) for part in (text, model, reason or "")):
            raise self._not_a_reply("a choice that holds a message", body)
        counts = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
        return Reply(text, *counts, finish_reason=reason, model=model, body=body)

    def _vectors(self, body: Any, wanted: int) -> Embedded:
        try:
            vectors = {item["index"]: [float(value) for value in item["embedding"]] for item in body["data"]}
            whole = set(vectors) == set(range(wanted)) and len({len(vector) for vector in vectors.values()}) == 1
        except (AttributeError, KeyError, TypeError, ValueError):
            whole = False
        if not whole or not all(isfinite(value) for vector in vectors.values() for value in vector):
            raise self._not_a_reply(f"{wanted} vectors of one length", body)
        tokens = _count(body.get("usage"), "prompt_tokens")
        return Embedded([vectors[position] for position in range(wanted)], tokens)

    def _connection(self) -> _Connection:
        key = os.environ.get(self.api_key_env, "") if self.api_key_env else "none"
        if not key.strip():
            raise EndpointError(f"api_key_env names {self.api_key_env}, which is not set in the environment; export it")
        if not (key.strip().isascii() and key.strip().isprintable()):
            raise EndpointError(
                f"{self.api_key_env} in the environment is no key: it has a line break, or a character that is not "
                "ASCII; export it anew"
            )
        return self.base_url, key.strip(), self.timeout_seconds, self.max_attempts - 1

    def _without_key(self, body: Any) -> Any:
        """`body` with [key] where the endpoint repeats the key: what it says is kept, recorded and shown."""
        secret = self._secret

        def cleaned(part: Any) -> Any:
            match part:
                case str():
                    return part.replace(secret, KEY_MARK)
                case list():
                    return [cleaned(item) for item in part]
                case dict():
                    return {cleaned(name): cleaned(value) for name, value in part.items()}
                case _:
                    return part

        return cleaned(body) if len(secret) >= SHORTEST_SECRET else body

    def _not_a_reply(self, expected: str, found: object) -> EndpointError:
        what = (
            f"{self.host} answered, but without {expected} (got {type(found).__name__}); check that base_url ends "
            f"where the OpenAI interface begins, often in /v1, and that model={self.model!r} is of the right kind"
        )
        return EndpointError(self._with_words(what, found))

    def _explain(self, error: Exception) -> NoReturn:
        import openai

        attempts = _attempts(error)
        tried = f"after {attempts} attempt{'s' if attempts > 1 else ''}"
        connecting = type(error.__cause__).__name__ in ("ConnectError", "ConnectTimeout")
        match error:
            case openai.APITimeoutError() if not connecting:
                what = f"{self.host} did not answer within timeout_seconds={self.timeout_seconds:g} {tried}; raise it"
            case openai.APIConnectionError() if connecting:
                what = f"cannot connect to {self.host} {tried}; check base_url and that the server runs"
            case openai.APIConnectionError():
                what = f"{self.host} closed the connection before it had answered {tried}; its own log may say why"
            case openai.AuthenticationError() | openai.PermissionDeniedError():
                what = f"{self.host} refused a call without a key (status {error.status_code}); set api_key_env"
                if self.api_key_env:
                    what = f"{self.host} refused the key in {self.api_key_env} (status {error.status_code}); check it"
            case openai.NotFoundError():
                what = f"{self.host} does not know model={self.model!r} or has nothing at this base_url (status 404)"
            case openai.RateLimitError():
                what = f"{self.host} limits the rate {tried} (status 429); lower concurrency or raise max_attempts"
            case openai.APIStatusError() if error.status_code in (408, 409) or error.status_code >= 500:
                what = f"{self.host} failed with status {error.status_code} {tried}"
            case openai.APIStatusError():
                what = (
                    f"{self.host} refused the request with status {error.status_code}; check model, temperature, seed, "
                    "max_tokens and options"
                )
            case UnicodeEncodeError():
                what = f"nothing was sent to {self.host}: the messages hold half an emoji (a lone surrogate)"
            case _:
                what = f"{self.host} answered with something that is no JSON of this interface; check base_url"
        if isinstance(error, openai.APIStatusError) and attempts < self.max_attempts:
            wait = error.response.headers.get("retry-after")
            what += f" (Retry-After: {wait}, and no wait is longer than 2 minutes)" if wait else ""
        told = EndpointError(self._with_words(what, getattr(error, "body", None)))
        told.status = getattr(error, "status_code", None)
        told.unreachable = isinstance(error, openai.APIConnectionError) and connecting
        told.silent = isinstance(error, openai.APITimeoutError) and not connecting
        raise told from None

    def _with_words(self, what: str, body: object) -> str:
        """`what`, and the endpoint's own message from `body`, on one line, at most 200 characters, without the key."""
        while isinstance(body, Mapping):
            body = body.get("message") or body.get("error") or body.get("detail")
        said, key = " ".join(body.split()) if isinstance(body, str) else "", self._secret
        said = (said.replace(key, KEY_MARK) if key else said)[:200]
        what = self._without_key(what)  # Retry-After is the endpoint's word too
        return f"{what}. It said: {said}" if said else what


def _names(options: Any) -> Iterator[str]:
    """Every name in a mapping, at any depth."""
    for part in options.values() if isinstance(options, Mapping) else options if isinstance(options, list) else ():
        yield from _names(part)
    yield from map(str, options if isinstance(options, Mapping) else ())


def _count(usage: Any, name: str) -> int | None:
    """Tokens that an endpoint counted; None where that is no count, which costs no reply."""
    count = usage.get(name) if isinstance(usage, Mapping) else None
    return count if isinstance(count, int) and not isinstance(count, bool) and count >= 0 else None


def _attempts(error: Exception) -> int:
    """How often the client of openai had asked before it gave up."""
    request = getattr(error, "request", None)
    return int(request.headers.get("x-stainless-retry-count", 0)) + 1 if request is not None else 1


_Connection = tuple[str, str, float, int]
"""base_url, key, timeout in seconds, attempts after the first."""


@lru_cache(maxsize=16)
def _client(base_url: str, key: str, timeout_seconds: float, max_retries: int) -> OpenAI:
    """One client a process, so that connections are used again; safe for threads."""
    from openai import OpenAI

    return OpenAI(base_url=base_url, api_key=key, timeout=timeout_seconds, max_retries=max_retries)


@dataclass
class _Line:
    """A client of one event loop: it cannot serve another. released: whoever ends the last call closes it."""

    client: AsyncOpenAI
    in_flight: int = 0
    released: bool = False


_lines: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[_Connection, _Line]] = WeakKeyDictionary()
_lines_lock = threading.Lock()


def _line(connection: _Connection) -> _Line:
    """The client of the running loop, so that connections are used again."""
    from openai import AsyncOpenAI

    with _lines_lock:
        lines = _lines.setdefault(asyncio.get_running_loop(), {})
    if connection not in lines:
        base_url, key, timeout_seconds, max_retries = connection
        client = AsyncOpenAI(base_url=base_url, api_key=key, timeout=timeout_seconds, max_retries=max_retries)
        lines[connection] = _Line(client)
    return lines[connection]


async def _release(connection: _Connection) -> None:
    with _lines_lock:
        line = _lines.get(asyncio.get_running_loop(), {}).pop(connection, None)
    if line:
        line.released = True
        if not line.in_flight:
            await line.client.close()
