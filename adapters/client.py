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
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from pathlib import Path
from time import monotonic, perf_counter
from typing import Annotated, Any, Literal, Protocol, TypeVar, runtime_checkable

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    FiniteFloat,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_validator,
)

from adapters.endpoint import Embedded, Endpoint, EndpointError, EndpointSettings, Reply
from adapters.reply_cache import CacheError, ReplyCache
from adapters.schema import fingerprint

T = TypeVar("T")
Found = TypeVar("Found", Reply, Embedded)
N = TypeVar("N", int, float)

GIVEN_UP_SECONDS = 30.0
"""How long an endpoint that does not answer is not asked again."""
UNREACHABLE_CALLS, SILENT_CALLS = 2, 16
"""Calls in a row, all attempts included, after which an endpoint is given up: those that could not connect, and those
that got no answer in time, of which a slow model has several at once."""
LONGEST_WAIT = 120.0
"""Seconds that an endpoint may ask to wait between two attempts; see EndpointSettings.max_attempts."""
MINUTE = 60.0


@dataclass(frozen=True, slots=True)
class _KeptVector:
    vector: list[FiniteFloat]


_REPLY, _VECTOR = TypeAdapter(Reply), TypeAdapter(_KeptVector)


class _GivenUp(EndpointError):
    """Who asked was cancelled before the reply came."""


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
    """Calls that one run may pay for, attempts at one call not counted; None = no limit."""
    max_cost: Annotated[float, Field(ge=0, strict=False)] | None = None
    """US dollars that one run may spend; needs `prices`. Calls in flight when it is reached are still paid for. None =
    no limit."""
    requests_per_minute: Annotated[int, Field(ge=1)] | None = None
    """None = no limit."""
    tokens_per_minute: Annotated[int, Field(ge=1)] | None = None
    """Tokens in and out, as the endpoint counts them; calls in flight count as the mean of those before. None = no
    limit."""
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

    @property
    def weights(self) -> str | None:
        """What says which weights answer, where the name of the model does not; None = nothing does."""
        return None

    @property
    def place(self) -> str:
        """What replies are kept under: the address, or what stays the same where that changes."""
        return self.base_url

    @cached_property
    def client(self) -> Client:
        """The client of these settings, with counts and budget of its own."""
        # Threads may come here at once, and cached_property does not keep them apart from Python 3.12 on.
        made: Client = self.__dict__.setdefault("client", Client(self))
        return made

    @property
    def clients(self) -> tuple[Client, ...]:
        """See Asking."""
        return (self.client,)

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


@dataclass(frozen=True, slots=True)
class AnsweredTexts:
    """Vectors of texts, in their order, with what those cost that were not kept from before, as in Answered."""

    vectors: list[list[float]]
    cost: float | None


@dataclass(frozen=True, slots=True)
class Used:
    """What the calls of a client came to. calls: those that were answered; cached of them cost nothing. tokens: in and
    out, of cached replies too, of vectors only when they are asked for; None = unknown for one call. cost: US dollars;
    None = unknown for one call. seconds: of all calls, which overlap, with their waiting."""

    calls: int = 0
    cached: int = 0
    tokens: int | None = 0
    cost: float | None = 0.0
    seconds: float = 0.0

    def __add__(self, other: Used) -> Used:
        return Used(
            self.calls + other.calls,
            self.cached + other.cached,
            _sum(self.tokens, other.tokens),
            _sum(self.cost, other.cost),
            self.seconds + other.seconds,
        )


def _sum(one: N | None, other: N | None) -> N | None:
    return None if one is None or other is None else one + other


class Limits:
    """What one run may ask of one endpoint, and what it has asked. Safe for threads; clients may share it.

    calls: asked, those in flight included. cost: US dollars, as far as they are known.
    """

    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._starts: deque[float] = deque()
        self._tokens: deque[tuple[float, int]] = deque()
        self._in_flight, self._replies, self._all_tokens = 0, 0, 0
        self._unreachable, self._silent, self._until, self._known = 0, 0, 0.0, False
        self._why: str | None = None
        self.calls, self.cost = 0, 0.0
        self.spent: str | None = None
        """Why nothing more is asked; None = the budget is not used up, or nothing was asked since it was."""

    def admitted(self) -> float:
        """0 = go on, and tell `ended` afterwards; else seconds to wait before asking again. Raises EndpointError where
        waiting does not help."""
        settings, now = self._settings, monotonic()
        with self._lock:
            if now < self._until:
                told = f"{settings.host} did not answer the calls before; it is asked again in a while"
                raise EndpointError(f"{told}. The last said: {self._why}" if self._why else told)
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
            if settings.tokens_per_minute:
                expected = self._in_flight * self._all_tokens / max(self._replies, 1)
                if expected + sum(count for _, count in self._tokens) >= settings.tokens_per_minute:
                    return self._tokens[0][0] + MINUTE - now if self._tokens else MINUTE / 60
            self._starts.append(now)
            self.calls += 1
            self._in_flight += 1
            return 0.0

    def ended(
        self, *, reached: bool = False, unreachable: bool = False, silent: bool = False, why: str | None = None
    ) -> None:
        """A call that was admitted is over. All False: it was given up, which says nothing of the endpoint. why: what
        is told of an endpoint that is given up."""
        with self._lock:
            self._in_flight -= 1
            if reached:
                self._unreachable = self._silent = 0
                self._known = True
            self._why = why
            self._unreachable += unreachable
            self._silent += silent
            # One call, with all its attempts, is enough where nothing was ever reached.
            if self._unreachable >= (UNREACHABLE_CALLS if self._known else 1) or self._silent >= SILENT_CALLS:
                self._until = monotonic() + GIVEN_UP_SECONDS

    def count(self, tokens: int | None, cost: float | None) -> None:
        """Add what a call came to; None = unknown."""
        known = tokens or 0
        with self._lock:
            self._tokens.append((monotonic(), known))
            self._replies, self._all_tokens = self._replies + 1, self._all_tokens + known
            self.cost += cost or 0.0
            if self._settings.max_cost is not None and cost is None:
                self.spent = (
                    f"max_cost={self._settings.max_cost:g} cannot be held to, because {self._settings.host} counts no "
                    "tokens (set max_calls in its place)"
                )


def priced(found: Reply | Embedded, prices: Prices | None) -> float | None:
    """What was found cost in US dollars; None = the price or the tokens are unknown."""
    counts = (found.tokens_in, found.tokens_out) if isinstance(found, Reply) else (found.tokens, 0)
    if prices is None or counts[0] is None or counts[1] is None:
        return None
    return (counts[0] * prices.input + counts[1] * prices.output) / 1e6


def counted(found: Reply | Embedded) -> int | None:
    """The tokens of what was found, in and out; None = unknown."""
    return _sum(found.tokens_in, found.tokens_out) if isinstance(found, Reply) else found.tokens


class Client:
    """Calls to one endpoint within the limits of one run. Safe for threads and event loops.

    limits: those of another client at the same endpoint, to share; None = its own.
    """

    def __init__(self, settings: ClientSettings, limits: Limits | None = None) -> None:
        self.settings = settings
        self.limits = limits or Limits(settings)
        plain = {name: getattr(settings, name) for name in EndpointSettings.model_fields}
        self.endpoint = Endpoint(**plain)
        keeps = settings.cache_file is not None and settings.cache != "off"
        self._cache = ReplyCache(Path(settings.cache_file)) if keeps and settings.cache_file else None
        self._asked: set[str] = set()
        self._answering: set[str] = set()
        self._in_flight: dict[tuple[int, bool, str], asyncio.Future[Reply]] = {}
        self._lock = threading.Lock()
        self.used = Used()
        self.unkept: str | None = None
        """Why replies are not kept any more, though they should be; None = they are."""

    @property
    def spent(self) -> str | None:
        """See Limits."""
        return self.limits.spent

    def check(self) -> None:
        """See that kept replies can be read, before any work. Raises EndpointError."""
        if self._cache:
            self._told(self._cache.get, "")

    def notes(self) -> tuple[str, ...]:
        """What a person should know: another model that answered, and replies that could not be kept."""
        unkept = (f"replies are not kept any more: {self.unkept}",) if self.unkept else ()
        others = " and ".join(map(repr, sorted(self._answering - {self.settings.model})))
        asked = f"model {self.settings.model!r} was asked, and {self.endpoint.host} says that {others} answered"
        return ((asked,) if others else ()) + unkept

    async def chat(
        self,
        messages: Sequence[Mapping[str, str]],
        options: Mapping[str, Any] | None = None,
        sample: int = 0,
        anew: bool = False,
        seconds: float | None = None,
    ) -> Answered:
        """The reply to `messages`. sample: the n-th reply wanted to the same messages; each is kept by itself. anew:
        ask, whatever is kept, and keep nothing. seconds: for all attempts together, without the waiting for the limits
        of a minute; None = what `max_attempts` can take.

        Raises EndpointError (BudgetReached among them), and TimeoutError after `seconds`.
        """
        began = perf_counter()
        answered = await self._answered(messages, options, sample, anew, seconds)
        self._answering.add(answered.reply.model)
        self._count(answered.cached, counted(answered.reply), answered.cost, began)
        return answered

    async def _answered(
        self,
        messages: Sequence[Mapping[str, str]],
        options: Mapping[str, Any] | None,
        sample: int,
        anew: bool,
        seconds: float | None,
    ) -> Answered:
        key = self.key(messages, options, sample)
        if not anew and (kept := self._kept(key)) is not None:
            return Answered(self._read(_REPLY, kept), True, 0.0)
        place = (id(asyncio.get_running_loop()), anew, key)
        while place in self._in_flight:
            with suppress(_GivenUp):  # by who asked, not by the endpoint: one of those who wait asks in its place
                return Answered(await asyncio.shield(self._in_flight[place]), True, 0.0)
        shared: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._in_flight[place] = shared
        try:
            reply = await self._within_limits(lambda: self.endpoint.achat(messages, options), seconds)
            # It is kept before it leaves the list of calls in flight: nobody may ask in between.
            if not anew:
                await self._keep(key, asdict(reply))
        except BaseException as error:
            known = isinstance(error, EndpointError | TimeoutError)
            shared.set_exception(error if known else _GivenUp("the call was given up"))
            shared.exception()  # whoever waits is told; nobody has to
            raise
        finally:
            del self._in_flight[place]
        shared.set_result(reply)
        return Answered(reply, False, priced(reply, self.settings.prices))

    async def embed(self, texts: Sequence[str], anew: bool = False, seconds: float | None = None) -> AnsweredTexts:
        """A vector for each text, kept one by one; those kept are not asked for again. For the rest see chat."""
        s, began = self.settings, perf_counter()
        found = Embedded([], 0)
        keys = [fingerprint(["embed", s.place, s.model, s.weights, s.options, text]) for text in texts]
        vectors = (
            {}
            if anew
            else {key: self._read(_VECTOR, kept).vector for key in keys if (kept := self._kept(key)) is not None}
        )
        wanted = {key: text for key, text in zip(keys, texts, strict=True) if key not in vectors}
        if wanted:
            found = await self._within_limits(lambda: self.endpoint.aembed(list(wanted.values())), seconds)
            vectors |= dict(zip(wanted, found.vectors, strict=True))
            for key in () if anew else wanted:
                await self._keep(key, {"vector": vectors[key]})
        cost = priced(found, s.prices) if wanted else 0.0
        self._count(not wanted, found.tokens, cost, began)
        return AnsweredTexts([vectors[key] for key in keys], cost)

    def key(
        self, messages: Sequence[Mapping[str, str]], options: Mapping[str, Any] | None = None, sample: int = 0
    ) -> str:
        """What a reply is kept under: a hash of all that can change it, the n-th sample apart from the others."""
        s = self.settings
        asked = {"temperature": s.temperature, "seed": s.seed, "max_tokens": s.max_tokens} | s.options
        messages = [dict(message) for message in messages]
        return fingerprint([s.place, s.model, s.weights, messages, asked | dict(options or {}), sample])

    def forget(self, key: str) -> None:
        """Drop a kept reply that turned out to be of no use, so that it is asked for again, unless it is believed."""
        self._noted(lambda cache: cache.forget(key))

    def believe(self, keys: Sequence[str]) -> None:
        """Have kept replies stay, because something rests on them, whoever else finds them of no use."""
        self._noted(lambda cache: cache.believe(keys))

    def learned(self, what: str) -> Any:
        """What was kept of this endpoint and model by `learn`; None = nothing."""
        kept = self._kept(self._place(what))
        return kept.get("learned") if kept else None

    async def learn(self, what: str, found: Any) -> None:
        """Keep what was found out about this endpoint and model, as JSON can hold it."""
        await self._keep(self._place(what), {"learned": found})

    def chat_blocking(self, messages: Sequence[Mapping[str, str]]) -> Answered:
        """See chat; for code without an event loop, from as many threads as it likes."""
        return asyncio.run_coroutine_threadsafe(self.chat(messages), _background()).result()

    def embed_blocking(self, texts: Sequence[str]) -> AnsweredTexts:
        """See embed; for code without an event loop."""
        return asyncio.run_coroutine_threadsafe(self.embed(texts), _background()).result()

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        await self.endpoint.aclose()

    def _place(self, what: str) -> str:
        return fingerprint(["learned", self.settings.place, self.settings.model, self.settings.weights, what])

    def _kept(self, key: str) -> dict[str, Any] | None:
        """What is kept under `key`, if it may be used: with cache=refresh, what this client itself asked for."""
        if self._cache and (self.settings.cache == "read" or key in self._asked):
            return self._told(self._cache.get, key)
        return None

    async def _keep(self, key: str, found: Mapping[str, Any]) -> None:
        """Keep what was paid for."""
        if self._cache:
            await asyncio.to_thread(self._noted, lambda cache: cache.put(key, found))
            if not self.unkept:
                self._asked.add(key)

    def _noted(self, change: Callable[[ReplyCache], None]) -> None:
        """Change what is kept. Where that fails no reply is lost, and `unkept` says why nothing changes from then."""
        if self._cache and not self.unkept:
            try:
                change(self._cache)
            except CacheError as error:
                self.unkept = str(error)

    def _count(self, cached: bool, tokens: int | None, cost: float | None, began: float) -> None:
        with self._lock:
            self.used += Used(1, int(cached), tokens, cost, perf_counter() - began)

    def _read(self, shape: TypeAdapter[T], kept: Any) -> T:
        """What is kept, in the shape in which it was put there."""
        try:
            return shape.validate_python(kept)
        except ValidationError as error:
            raise EndpointError(
                f"the cache {self.settings.cache_file} holds something else than what was kept there "
                f"({error.errors()[0]['msg']}); remove it, or ask again with cache=refresh"
            ) from None

    def _told(self, work: Callable[..., T], *arguments: Any) -> T:
        try:
            return work(*arguments)
        except CacheError as error:
            raise EndpointError(str(error)) from None

    async def _within_limits(self, call: Callable[[], Awaitable[Found]], seconds: float | None) -> Found:
        while wait := self.limits.admitted():
            await asyncio.sleep(min(wait, 1.0))  # calls that end sooner, or use up the budget, change what is right
        longest = self.settings.max_attempts * (self.settings.timeout_seconds + LONGEST_WAIT)
        ended: dict[str, Any] = {}
        try:
            async with asyncio.timeout(longest if seconds is None else seconds):
                found = await call()
            ended = {"reached": True}
        except TimeoutError:
            ended = {"silent": True}
            if seconds is not None:
                raise
            raise EndpointError(f"{self.endpoint.host} did not end its answer within {longest:g} seconds") from None
        except EndpointError as error:
            ended = {"unreachable": error.unreachable, "silent": error.silent}
            ended["reached"] = not any(ended.values())
            ended["why"] = str(error) if error.unreachable else None
            raise
        finally:
            self.limits.ended(**ended)
        self.limits.count(counted(found), priced(found, self.settings.prices))
        return found


@runtime_checkable
class Asking(Protocol):
    """A part that asks a model."""

    @property
    def model(self) -> str:
        """The model as people call it."""

    @property
    def clients(self) -> tuple[Client, ...]:
        """Those by which it asks, as far as there are any yet."""


_background_lock = threading.Lock()


def _background() -> asyncio.AbstractEventLoop:
    """One event loop of this process, in a thread of its own."""
    with _background_lock:  # threads that come first at once would make one each
        return _background_loop()


@cache
def _background_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="paribus-client", daemon=True).start()
    return loop
