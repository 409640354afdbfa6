"""Records x definitions -> scores."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

from adapters.base import JudgedScorer, Scorer, Unavailable
from adapters.bench import Bench
from adapters.judge import Judge
from adapters.judges.vectors import WARNING as WITHOUT_MEANING
from adapters.recording import Recorder
from adapters.schema import Question, Record, Score
from runner.progress import Progress

T = TypeVar("T")
Pair = tuple[Question, Record]
Job = tuple[JudgedScorer, Question, Record]
"""One score to be measured."""

STOP_SECONDS = 10.0
"""How long a stopped run is waited for."""
MEASUREMENTS_PER_CALL = 4
"""Measurements at once for each call in flight: most wait for their own earlier calls."""


def score(
    scorers: Sequence[Scorer | JudgedScorer],
    questions: Sequence[Question],
    records: Sequence[Record],
    judge: Judge | None = None,
    *,
    recording: Path | None = None,
    progress: Progress | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> tuple[Score, ...]:
    """A score for every definition and question, by definition, then in the order of `questions`.

    A question without a record is scored as a system that returned nothing. A definition that raises costs that score
    only: it becomes `failed` with the error as its reason. Judged definitions need `judge` and run at once, within its
    limit on calls in flight; the order in which they end changes nothing. recording: where the replies of a judge that
    costs money or minutes are written down as they come. tell: is told, before the first call, of definitions that
    cannot be computed here.

    May be called from a running event loop, from any thread and in any worker process. Raises ValueError for judged
    definitions without a judge, and for two records of one question.
    """
    by_question = {record.question_id: record for record in records}
    if len(by_question) < len(records):
        raise ValueError("several records have one question_id; give one record a question")
    pairs = [
        (question, by_question.get(question.id) or Record(question.id, error="the system returned no record"))
        for question in questions
    ]
    found: dict[str, list[Score]] = {}
    judged: list[JudgedScorer] = []
    for scorer in scorers:
        if isinstance(scorer, JudgedScorer):
            judged.append(scorer)
        else:
            found[scorer.key] = [_plain(scorer, *pair) for pair in pairs]
    if judged and judge is None:
        raise ValueError(f"{judged[0].key} asks a judge, and none is given")
    ready: list[JudgedScorer] = []
    for scorer in judged:
        try:
            scorer.prepare()
            if scorer.embeds and judge and judge.card.embeddings is None:
                raise Unavailable("it needs embeddings, and the judge has none; set judge.embeddings")
            ready.append(scorer)
        except Unavailable as error:
            tell(f"{scorer.key}: not computed: {error}")
            found[scorer.key] = [scorer.failed(record, str(error)) for _, record in pairs]
    if ready and judge:
        with _frameworks_left_alone():
            found |= in_own_loop(_judged(ready, pairs, judge, recording, progress or Progress()))
    return tuple(score for scorer in scorers for score in found[scorer.key])


def _plain(scorer: Scorer, question: Question, record: Record) -> Score:
    try:
        scorer.prepare()
        return scorer.score(question, record)
    except Unavailable as error:
        return scorer.failed(record, str(error))
    except Exception as error:
        return scorer.failed(record, f"{type(error).__name__}: {error}")


@contextmanager
def _frameworks_left_alone() -> Iterator[None]:
    """Keep the garbage collector off the 300,000 objects of the imported frameworks: each full collection goes through
    all of them, which takes a fifth of a second in which no call is answered."""
    if gc.get_freeze_count():
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


async def _judged(
    scorers: Sequence[JudgedScorer],
    pairs: Sequence[Pair],
    judge: Judge,
    recording: Path | None,
    progress: Progress,
) -> dict[str, list[Score]]:
    jobs = [(scorer, *pair) for pair in pairs for scorer in scorers]
    async with Bench(judge) as bench:
        with _recorded(judge, bench, recording):
            scores = await measured(jobs, bench, progress, "judge")
    return {scorer.key: scores[place :: len(scorers)] for place, scorer in enumerate(scorers)}


def unguarded(jobs: Sequence[Job], judge: Judge, recording: Path | None = None) -> list[float | None]:
    """What the frameworks return for records that lack what a definition needs, in the order of `jobs`; see
    JudgedScorer.unguarded. recording: continued with the replies."""

    async def asked() -> list[float | None]:
        async with Bench(judge) as bench:
            with _recorded(judge, bench, recording):
                return [await scorer.unguarded(question, record, bench) for scorer, question, record in jobs]

    return in_own_loop(asked()) if jobs else []


@contextmanager
def _recorded(judge: Judge, bench: Bench, recording: Path | None) -> Iterator[None]:
    """Write down what the judge replies, where it costs money or minutes."""
    if recording is None or not judge.recorded:
        yield
        return
    with Recorder(recording, bench.card) as written:
        bench.listen(written.reply, written.embedding)
        yield


async def measured(jobs: Sequence[Job], bench: Bench, progress: Progress, stage: str) -> list[Score]:
    """The score of each job, in order, measured at once within the judge's limit on calls in flight. stage: for the
    progress line."""
    work = iter(list(enumerate(jobs)))
    found: dict[int, Score] = {}
    # One tick starts the clock, then one for each score: most jobs are begun at once, which says nothing of the rate.
    ticks = progress.over(stage, range(len(jobs)))
    next(ticks, None)
    async with asyncio.TaskGroup() as group:
        for _ in range(min(len(jobs), MEASUREMENTS_PER_CALL * bench.judge.concurrency)):
            group.create_task(_work(work, bench, found, ticks))
            await asyncio.sleep(0)  # else all write their first prompts before the first call goes out
    return [found[place] for place in range(len(jobs))]


async def _work(work: Iterator[tuple[int, Job]], bench: Bench, found: dict[int, Score], ticks: Iterator[int]) -> None:
    for place, (scorer, question, record) in work:
        try:
            found[place] = await scorer.measure(question, record, bench)
        except (Exception, asyncio.CancelledError) as error:
            task = asyncio.current_task()
            if task and task.cancelling():
                raise
            found[place] = scorer.failed(record, f"{type(error).__name__}: {error}")
        next(ticks, None)


def in_own_loop(work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, run in an event loop of its own: in this thread, or in another where this one runs a
    loop already (a notebook)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    ends: list[T | BaseException] = []
    running: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any] | None]] = []

    async def noted() -> T:
        running.append((asyncio.get_running_loop(), asyncio.current_task()))
        return await work

    def apart() -> None:
        try:
            ends.append(asyncio.run(noted()))
        except BaseException as error:
            ends.append(error)

    thread = Thread(target=apart, name="paribus-judge", daemon=True)
    thread.start()
    outer = asyncio.current_task()
    try:
        while thread.is_alive():
            thread.join(0.1)
            if outer and outer.cancelling():  # by asyncio's own handler of Ctrl-C, which waits for this loop
                raise asyncio.CancelledError
    except BaseException:
        for loop, task in running:  # whoever stops the cell stops the judge
            if task:
                loop.call_soon_threadsafe(task.cancel)
        thread.join(STOP_SECONDS)
        raise
    (end,) = ends
    if isinstance(end, BaseException):
        raise end
    return end


def warnings(judge: Judge, scorers: Sequence[Scorer | JudgedScorer], generator: str | None = None) -> list[str]:
    """What a reader of these scores should know of the judge; see Judge.warnings. Vectors without meaning are told of
    only where a definition uses them."""
    embeds = any(isinstance(scorer, JudgedScorer) and scorer.embeds for scorer in scorers)
    return [told for told in judge.warnings(generator) if embeds or told != WITHOUT_MEANING]


def failures(scores: Iterable[Score]) -> dict[str, list[Score]]:
    """The failed scores by definition."""
    found: dict[str, list[Score]] = {}
    for score in scores:
        if score.status == "failed":
            found.setdefault(score.definition, []).append(score)
    return found
