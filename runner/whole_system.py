"""The records of a system of one's own, question by question: what the pipeline is for our stages."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

from adapters.refusal import declines
from adapters.schema import Chunk, Question, Ranked, Record, StageUsage, fingerprint
from runner.dataset import TestSet
from runner.errors import ComponentError
from runner.placed import Places
from runner.progress import Progress
from runner.stage import Passage, System, SystemReply
from runner.store import StageStore


def records(system: System, test_set: TestSet, store: StageStore, progress: Progress) -> tuple[Record, ...]:
    """What `system` does for every question, in order. Each answer is stored as it comes, under the fingerprint of the
    system and the question; those that fail are not."""
    places = Places(test_set.documents)

    def answered(question: Question) -> Record:
        def ask() -> tuple[SystemReply, float]:
            began = perf_counter()
            return system.answer(question.id, question.text), perf_counter() - began

        causes = (system.fingerprint, fingerprint([question.id, question.text]))
        try:
            reply, seconds = store.output("answer_one", causes, ask).value()
        except ComponentError as error:
            return Record(question.id, asked_k=system.k or 0, error=str(error))
        return _record(system, question.id, reply, seconds, places)

    questions = test_set.questions
    if system.concurrency == 1:
        return tuple(answered(question) for question in progress.over("answer", questions))
    pool = ThreadPoolExecutor(system.concurrency)
    try:
        return tuple(progress.over("answer", pool.map(answered, questions), total=len(questions)))
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _record(system: System, id: str, reply: SystemReply, seconds: float, places: Places) -> Record:
    retrieved = _ranking(reply.retrieved, [places.chunk(passage) for passage in reply.retrieved])
    context = reply.retrieved if reply.context is None else reply.context
    k = len(retrieved) if system.k is None else system.k
    return Record(
        question_id=id,
        asked_k=k,
        retrieved=retrieved,
        reranked=retrieved[:k],
        context=tuple(places.chunk(passage) for passage in context),
        prompt=reply.prompt,
        answer=reply.answer,
        citations=reply.citations,
        refused=declines(reply.answer) if reply.refused is None else reply.refused,
        usage=(StageUsage("answer", seconds, reply.tokens_in, reply.tokens_out),),
    )


def _ranking(passages: Sequence[Passage], chunks: Sequence[Chunk]) -> tuple[Ranked, ...]:
    """Scores are the system's; where one has none, those of all are the order alone."""
    given = [passage.score for passage in passages]
    scores = [float(-rank) for rank in range(1, len(given) + 1)] if None in given else given
    return tuple(
        Ranked(chunk, float(score or 0.0), rank)
        for rank, (chunk, score) in enumerate(zip(chunks, scores, strict=True), 1)
    )
