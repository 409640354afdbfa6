"""The one way to a model behind an endpoint, for judge, generator, reranker and embeddings.

    answered = await settings.client.chat(messages)             # in an event loop
    answered = settings.client.chat_blocking(messages)          # anywhere else

It keeps replies on disk, makes identical calls in flight once, holds to limits and a budget, stops asking an endpoint
that is gone, and counts tokens and money. Retries with backoff, jitter and Retry-After are the openai client's.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from pathlib import Path
from time import monotonic
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from adapters.endpoint import Endpoint, EndpointError, EndpointSettings, Reply
from adapters.reply_cache import CacheError, ReplyCache
from adapters.schema import fingerprint

T = TypeVar("T")

GIVEN_UP_SECONDS = 30.0
"""How long an endpoint that two calls in a row could not reach is not asked again."""
MINUTE = 60.0


class BudgetReached(EndpointError):
    """max_calls or max_cost is used up: nothing more is asked, and the run is to stop."""


class Prices(BaseModel):
    """US dollars for a million tokens."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    input: Annotated[float, Field(ge=0, strict=False)]
    output: Annotated[float, Field(ge=0, strict=False)]


class ClientSettings(EndpointSettings):
    """How an endpoint is asked, and how often at most."""

    cache: Literal["read", "refresh", "off"] = "read"
    """read = a reply that is kept is not paid for again; refresh = ask again and keep the new one; off = keep none."""
    cache_file: str | None = None
    """Where replies are kept; None = nowhere."""
    max_calls: Annotated[int, Field(ge=0)] | None = None
    """Calls that one run may pay for; None = no limit."""
    max_cost: Annotated[float, Field(ge=0, strict=False)] | None = None
    """US dollars that one run may spend; needs `prices`. None = no limit."""
    requests_per_minute: Annotated[int, Field(ge=1)] | None = None
    """None = no limit."""
    tokens_per_minute: Annotated[int, Field(ge=1)] | None = None
    """Tokens in and out as the endpoint counts them; None = no limit."""
    prices: Prices | None = None
    """None = unknown: no cost is shown."""

    @field_validator("cache_file")
    @classmethod
    def _a_path(cls, path: str | None) -> str | None:
        if path is not None and ("${" in path or not path.strip()):
            raise ValueError(f"must be a path or null, not {path!r}")
        return path

    @model_validator(mode="after")
    def _cost_is_known(self) -> ClientSettings:
        if self.max_cost is not None and self.prices is None:
            raise ValueError(f"max_cost={self.max_cost:g} needs prices, or nobody knows when it is reached")
        return self

    @cached_property
    def client(self) -> Client:
        """The client of these settings, with counts and budget of its own."""
        return Client(self)

    def __getstate__(self) -> dict[Any, Any]:
        """The configuration alone: connections and locks stay in their process."""
        state = super().__getstate__()
        fields = {name: value for name, value in state["__dict__"].items() if name in type(self).model_fields}
        return state | {"__dict__": fields}


INCIDENTAL = frozenset(
    {
        "api_key_env",
        "timeout_seconds",
        "max_attempts",
        "cache",
        "cache_file",
        "max_calls",
        "max_cost",
        "requests_per_minute",
        "tokens_per_minute",
        "prices",
    }
)
"""Settings that never change a reply."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A reply with what it cost. cached: it was kept from before, or another call in flight got it, and cost nothing.
    cost: US dollars; None = the price or the tokens are unknown."""

    reply: Reply
    cached: bool
    cost: float | None


class Client:
    """Calls to one endpoint within the limits of one run. Safe for threads and event loops."""

    def __init__(self, settings: ClientSettings) -> None:
        self.settings = settings
        plain = {name: getattr(settings, name) for name in EndpointSettings.model_fields}
        self.endpoint = Endpoint(**plain)
        keeps = settings.cache_file is not None and settings.cache != "off"
        self._cache = ReplyCache(Path(settings.cache_file)) if keeps and settings.cache_file else None
        self._lock = threading.Lock()
        self._in_flight: dict[tuple[int, str], asyncio.Future[Reply]] = {}
        self._starts: deque[float] = deque()
        self._tokens: deque[tuple[float, int]] = deque()
        self._unreachable, self._until = 0, 0.0
        self.calls, self.cost = 0, 0.0
        self.spent: str | None = None
        """Why nothing more is asked; None = the budget is not used up."""

    async def chat(
        self, messages: Sequence[Mapping[str, str]], options: Mapping[str, Any] | None = None, sample: int = 0
    ) -> Answered:
        """The reply to `messages`. sample: the n-th reply wanted to the same messages; each is kept by itself.

        Raises EndpointError (BudgetReached among them).
        """
        key = self.key(messages, options, sample)
        if self._cache and self.settings.cache == "read" and (kept := self._kept(key)):
            return Answered(kept, True, 0.0)
        place = (id(asyncio.get_running_loop()), key)
        if place in self._in_flight:
            return Answered(await asyncio.shield(self._in_flight[place]), True, 0.0)
        shared: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._in_flight[place] = shared
        try:
            reply = await self._within_limits(lambda: self.endpoint.achat(messages, options))
        except BaseException as error:
            shared.set_exception(error if isinstance(error, EndpointError) else EndpointError("the call was given up"))
            shared.exception()  # whoever waits is told; nobody has to
            raise
        finally:
            del self._in_flight[place]
        shared.set_result(reply)
        if self._cache:
            await asyncio.to_thread(self._told, self._cache.put, key, asdict(reply))
        return Answered(reply, False, self._spent(reply))

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """A vector for each text, kept one by one; those kept are not asked for again. Raises EndpointError."""
        keys = [fingerprint(["embed", self.settings.base_url, self.settings.model, text]) for text in texts]
        vectors: dict[str, list[float]] = {}
        if self._cache and self.settings.cache == "read":
            vectors = {key: kept["vector"] for key in keys if (kept := self._told(self._cache.get, key))}
        wanted = {key: text for key, text in zip(keys, texts, strict=True) if key not in vectors}
        if wanted:
            found = await self._within_limits(lambda: self.endpoint.aembed(list(wanted.values())))
            vectors |= dict(zip(wanted, found, strict=True))
            if self._cache:
                for key in wanted:
                    await asyncio.to_thread(self._told, self._cache.put, key, {"vector": vectors[key]})
        return [vectors[key] for key in keys]

    def key(
        self, messages: Sequence[Mapping[str, str]], options: Mapping[str, Any] | None = None, sample: int = 0
    ) -> str:
        """What a reply is kept under: a hash of all that can change it, the n-th sample apart from the others."""
        s = self.settings
        asked = {"temperature": s.temperature, "seed": s.seed, "max_tokens": s.max_tokens} | s.options
        messages = [dict(message) for message in messages]
        return fingerprint([s.base_url, s.model, messages, asked | dict(options or {}), sample])

    def forget(self, key: str) -> None:
        """Drop a kept reply that turned out to be of no use, so that it is asked for again."""
        if self._cache:
            self._told(self._cache.forget, key)

    def chat_blocking(self, messages: Sequence[Mapping[str, str]]) -> Answered:
        """See chat; for code without an event loop, from as many threads as it likes."""
        return asyncio.run_coroutine_threadsafe(self.chat(messages), _background()).result()

    def embed_blocking(self, texts: Sequence[str]) -> list[list[float]]:
        """See embed; for code without an event loop."""
        return asyncio.run_coroutine_threadsafe(self.embed(texts), _background()).result()

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        await self.endpoint.aclose()

    def _kept(self, key: str) -> Reply | None:
        assert self._cache
        kept = self._told(self._cache.get, key)
        return Reply(**kept) if kept else None

    def _told(self, work: Callable[..., T], *arguments: Any) -> T:
        try:
            return work(*arguments)
        except CacheError as error:
            raise EndpointError(str(error)) from None

    async def _within_limits(self, call: Callable[[], Awaitable[T]]) -> T:
        while seconds := self._admitted():
            await asyncio.sleep(seconds)
        try:
            found = await call()
        except EndpointError as error:
            self._reached(not error.unreachable)
            raise
        self._reached(True)
        if isinstance(found, Reply):
            self._count(found)
        return found

    def _admitted(self) -> float:
        """0 = go on; else seconds to wait before asking again. Raises EndpointError where waiting does not help."""
        settings, now = self.settings, monotonic()
        with self._lock:
            if now < self._until:
                told = f"{self.endpoint.host} could not be reached by the calls before; it is asked again in a while"
                raise EndpointError(told)
            if settings.max_calls is not None and self.calls >= settings.max_calls:
                self.spent = f"max_calls={settings.max_calls} is used up"
            if settings.max_cost is not None and self.cost >= settings.max_cost:
                self.spent = f"max_cost={settings.max_cost:g} is used up: {self.cost:.4f} US dollars are spent"
            if self.spent:
                raise BudgetReached(self.spent)
            while self._starts and now - self._starts[0] >= MINUTE:
                self._starts.popleft()
            while self._tokens and now - self._tokens[0][0] >= MINUTE:
                self._tokens.popleft()
            if settings.requests_per_minute and len(self._starts) >= settings.requests_per_minute:
                return self._starts[0] + MINUTE - now
            if settings.tokens_per_minute and sum(count for _, count in self._tokens) >= settings.tokens_per_minute:
                return self._tokens[0][0] + MINUTE - now
            self._starts.append(now)
            self.calls += 1
            return 0.0

    def _count(self, reply: Reply) -> None:
        with self._lock:
            self._tokens.append((monotonic(), (reply.tokens_in or 0) + (reply.tokens_out or 0)))
            self.cost += self._spent(reply) or 0.0

    def _reached(self, reached: bool) -> None:
        with self._lock:
            self._unreachable = 0 if reached else self._unreachable + 1
            if self._unreachable >= 2:
                self._until = monotonic() + GIVEN_UP_SECONDS

    def _spent(self, reply: Reply) -> float | None:
        prices = self.settings.prices
        if prices is None or reply.tokens_in is None or reply.tokens_out is None:
            return None
        return (reply.tokens_in * prices.input + reply.tokens_out * prices.output) / 1e6


@cache
def _background() -> asyncio.AbstractEventLoop:
    """One event loop of this process, in a thread of its own."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="paribus-client", daemon=True).start()
    return loop
