"""Where judged definitions are measured: one judge, one limit on calls in flight, and the threads for blocking code.

    async with Bench(judge) as bench:
        score = await scorer.measure(question, record, bench)

A measurement is one definition on one record. It collects every call and reply, which is all the evidence that some
frameworks leave, and it remembers the first fault, because frameworks swallow and retry what a judge raises.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field, replace
from time import perf_counter
from types import TracebackType
from typing import Any, Self, TypeVar

from pydantic import BaseModel

from adapters.judge import Call, Judge, JudgeFault, Message, Reply, Vectors
from adapters.replies import UnusableReply, parse, plain
from adapters.schema import Question, Record
from adapters.tasks import Findings, Task

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")

REPAIR = (
    "That cannot be used: {fault}. Answer the same request again, with one JSON value of its schema and nothing else."
)
SAMPLES_APART = 1000
"""Between the sample numbers of two judgements of one record: a judgement sends fewer equal prompts than that."""
THREADS = 64
"""Threads for frameworks that block; each waits for one call most of the time."""


def _only_a_model(prompt: str, measurement: Measurement) -> Task:
    raise JudgeFault(f"a call of {measurement.definition} can be answered by a model only; choose judge=openai")


@dataclass(frozen=True)
class CallSite:
    """One kind of call that a definition makes.

    name: stable, for messages and recordings. task: what the prompt asks for, from the prompt and what is known of the
    measurement. write: findings in the schema of the call. Both serve judges without a model; those cannot answer a
    call that leaves them out.
    """

    name: str
    task: Callable[[str, Measurement], Task] = _only_a_model
    write: Callable[[Findings], object] = tuple


@dataclass
class Exchange:
    """One call of a measurement and what came back. replies: the last one counts, those before it could not be read;
    asked: the call for each of them, as it was sent. data: the JSON of the reply, the text itself where no schema was
    asked; None until the reply is there. seconds: waiting for a free place included."""

    call: Call
    replies: list[Reply] = field(default_factory=list)
    asked: list[Call] = field(default_factory=list)
    data: Any = None
    seconds: float = 0.0

    @property
    def prompt(self) -> str:
        """All messages, one after the other."""
        return "\n\n".join(message.content for message in self.call.messages)


Listener = Callable[[Call, Reply], None]
"""Is told every reply as soon as it is there."""
EmbedListener = Callable[[str, list[float]], None]
"""Is told every text that the judge embedded, and its vector."""


class Bench:
    """The surroundings of measurements in one event loop. Use as an async context manager."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self._on_reply: Listener | None = None
        self._on_embedding: EmbedListener | None = None
        self._slots = asyncio.Semaphore(judge.concurrency)
        self._refused: list[Call] = []

    async def __aenter__(self) -> Self:
        self.loop = asyncio.get_running_loop()
        with suppress(TimeoutError):  # the calls themselves will tell
            async with self._in_time():
                await self.judge.prepare()
        self.card = self.judge.card
        self._threads = ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="paribus-bench")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        for call in self._refused:
            await asyncio.to_thread(self.judge.forget, call)
        await self.judge.close()

    def _in_time(self) -> asyncio.Timeout:
        return asyncio.timeout(None if self.judge.keeps_time else self.judge.call_seconds)

    def listen(self, on_reply: Listener, on_embedding: EmbedListener) -> None:
        """Have every reply and every embedded text told as soon as it is there."""
        self._on_reply, self._on_embedding = on_reply, on_embedding

    async def in_thread(self, work: Callable[..., T], *arguments: Any) -> T:
        """The result of blocking `work` of a framework, without holding up the loop."""
        return await self.loop.run_in_executor(self._threads, work, *arguments)

    async def ask(self, call: Call) -> Reply:
        """The judge's reply, within the limits. Raises JudgeFault, and nothing else, for whatever the judge does."""

        async def asked() -> Reply:
            reply = await self.judge.ask(call)
            if not isinstance(reply, Reply) or not isinstance(reply.text, str):
                raise TypeError(f"it replied with {type(reply).__name__} instead of a Reply with a text")
            if self._on_reply:
                self._on_reply(call, reply)
            return reply

        return await self._limited(asked, f"the judge ({call.name})")

    async def settle(self, calls: Sequence[Call], believed: bool) -> None:
        """Say what became of replies: a score rests on them, or a definition refused what they say. Refused ones are
        forgotten at the end, so that the next run asks anew, unless another measurement believes them by then."""
        if believed:
            await asyncio.to_thread(self.judge.believe, calls)
        else:
            self._refused += calls

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """A vector for each text. Raises JudgeFault, and nothing else."""

        async def embedded() -> Vectors:
            vectors = await self.judge.embedded(texts)
            if len(vectors.rows) != len(texts):
                raise ValueError(f"{len(vectors.rows)} vectors for {len(texts)} texts")
            if self._on_embedding:
                for text, vector in zip(texts, vectors.rows, strict=True):
                    self._on_embedding(text, vector)
            return vectors

        return await self._limited(embedded, "the judge (embeddings)")

    async def _limited(self, work: Callable[[], Coroutine[Any, Any, T]], who: str) -> T:
        """The result of `work` within the limits on time and on calls in flight. Raises JudgeFault for all that goes
        wrong; a cancellation passes only where it comes from outside, since libraries leak their own."""
        async with self._slots:
            limit = self._in_time()
            try:
                async with limit:
                    return await work()
            except JudgeFault:
                raise
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if task is None or task.cancelling():
                    raise
                raise JudgeFault(f"{who} was cancelled from within") from None
            except Exception as error:
                if limit.expired() or (self.judge.keeps_time and isinstance(error, TimeoutError)):
                    seconds = self.judge.call_seconds
                    raise JudgeFault(f"{who} did not answer within judge.call_seconds={seconds:g}") from None
                raise JudgeFault(f"{who} failed: {type(error).__name__}: {error}") from error


@dataclass
class Measurement:
    """One definition on one record: what was asked, what came back, and the first fault.

    first_sample: the sample number of the first of equal prompts; another one keeps a judgement that is made again
    apart from the first, in caches and recordings too.
    """

    definition: str
    question: Question
    record: Record
    bench: Bench
    exchanges: list[Exchange] = field(default_factory=list)
    fault: JudgeFault | None = None
    embedding_costs: list[float | None] = field(default_factory=list)
    first_sample: int = 0

    async def ask(self, site: CallSite, messages: Sequence[Message], schema: type[BaseModel] | None) -> Any:
        """An instance of `schema`, or the text where it is None, as the judge answered.

        Raises JudgeFault; after the first one every later call raises it again without asking, so that a framework's
        own retries cost nothing.
        """
        if self.fault:
            raise self.fault
        exchange = self._begin(site, tuple(messages), schema)
        began = perf_counter()
        try:
            return await self._readable(exchange)
        except JudgeFault as fault:
            self.fault = self.fault or fault
            raise
        finally:
            exchange.seconds = perf_counter() - began

    async def _readable(self, exchange: Exchange) -> Any:
        """What the reply says, asked for again as often as the judge allows while it cannot be read."""
        call, judge = exchange.call, self.bench.judge
        while True:
            reply = await self.bench.ask(call)
            exchange.replies.append(reply)
            exchange.asked.append(call)
            try:
                if call.schema is None:
                    exchange.data = plain(reply, exchange.call.messages)
                    return exchange.data
                instance, exchange.data = parse(reply, call.schema, exchange.call.messages)
                return instance
            except UnusableReply as fault:
                if len(exchange.asked) > judge.repairs:
                    # Only now: a reply that was repaired leads to its repair again, without asking.
                    for useless in exchange.asked:
                        judge.forget(useless)
                    raise
                told = (Message("assistant", reply.text), Message("user", REPAIR.format(fault=fault)))
                call = replace(call, messages=(*call.messages, *told))

    def ask_blocking(self, site: CallSite, messages: Sequence[Message], schema: type[BaseModel] | None) -> Any:
        """`ask`, from one of the bench's threads or a thread that a framework made; never from the loop itself."""
        asked = asyncio.run_coroutine_threadsafe(self.ask(site, messages, schema), self.bench.loop)
        while True:
            wait([asked], timeout=1.0)
            if asked.done():
                return asked.result()
            if self.bench.loop.is_closed():  # an interrupted run: nobody will answer, and the thread must end
                raise JudgeFault("the run was stopped")

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """A vector for each text, in order. Raises JudgeFault."""
        if self.fault:
            raise self.fault
        try:
            vectors = await self.bench.embed(texts)
        except JudgeFault as fault:
            self.fault = self.fault or fault
            raise
        self.embedding_costs.append(vectors.cost)
        return vectors.rows

    async def settle(self, failed: bool) -> None:
        """Say whether the score of this measurement failed. Where no call did, it failed by what the replies say."""
        if not (failed and self.fault):
            await self.bench.settle([call for exchange in self.exchanges for call in exchange.asked], not failed)

    def replies(self, name: str) -> list[Any]:
        """The data of every reply to calls of this name, in the order in which they were asked."""
        return [e.data for e in self.exchanges if e.call.name == name and e.data is not None]

    def spent(self) -> dict[str, Any]:
        """What the replies cost, as the fields of a Score: calls, cached, repaired, tokens (these without embeddings)
        and cost with them; the last two None where they are unknown for one reply."""
        replies = [reply for exchange in self.exchanges for reply in exchange.replies]
        tokens = [count for reply in replies for count in (reply.tokens_in, reply.tokens_out)]
        costs = [*(reply.cost for reply in replies), *self.embedding_costs]
        return {
            "calls": len(replies),
            "cached": sum(reply.cached for reply in replies),
            "repaired": sum(max(len(exchange.replies) - 1, 0) for exchange in self.exchanges),
            "tokens": None if None in tokens else sum(count for count in tokens if count is not None),
            "cost": None if None in costs else sum(cost for cost in costs if cost is not None),
        }

    def _begin(self, site: CallSite, messages: tuple[Message, ...], schema: type[BaseModel] | None) -> Exchange:
        equal = sum(e.call.messages == messages and e.call.schema is schema for e in self.exchanges)
        prompt = messages[-1].content
        call = Call(
            definition=self.definition,
            name=site.name,
            messages=messages,
            schema=schema,
            sample=self.first_sample + equal,
            question=self.question,
            record=self.record,
            task=lambda: site.task(prompt, self),
            write=site.write,
        )
        exchange = Exchange(call)
        self.exchanges.append(exchange)
        return exchange


def prompt_hash(text: str) -> str:
    """The hash by which a prompt enters a definition's fingerprint: SHA-256, first 16 hex digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
