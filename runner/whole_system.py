"""The records of a system of one's own, question by question: what the pipeline is for our stages."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from math import isfinite
from time import perf_counter

from adapters.refusal import declines
from adapters.schema import Chunk, Question, Ranked, Record, StageUsage, fingerprint
from adapters.sentences import well_formed
from runner.dataset import TestSet
from runner.errors import ComponentError
from runner.placed import Places
from runner.progress import Progress
from runner.stage import Passage, System, SystemReply
from runner.store import StageStore

Answered = tuple[SystemReply, float] | ComponentError
"""A reply with its seconds, or why there is none."""


def records(system: System, test_set: TestSet, store: StageStore, progress: Progress) -> tuple[Record, ...]:
    """What `system` does for every question, in order. Each answer is stored as it comes, under the fingerprint of the
    system and the question; those that fail are not."""
    identity = system.fingerprint

    def answered(question: Question) -> Answered:
        def ask() -> tuple[SystemReply, float]:
            began = perf_counter()
            reply = system.answer(question.id, question.text)
            if not isinstance(reply, SystemReply):
                raise ComponentError(f"{system.target} returned {type(reply).__name__}; expected a SystemReply")
            return reply, perf_counter() - began

        causes = (identity, fingerprint([question.id, question.text]))
        try:
            return store.output("answer_one", causes, ask).value()
        except ComponentError as error:
            return error

    questions = test_set.questions
    with redirect_stdout(sys.stderr):  # what a system prints is no result
        if system.concurrency == 1:
            ends = [answered(question) for question in progress.over("answer", questions)]
        else:
            pool = ThreadPoolExecutor(system.concurrency)
            try:
                ends = list(progress.over("answer", pool.map(answered, questions), total=len(questions)))
            finally:
                pool.shutdown(wait=True, cancel_futures=True)
    places = Places(test_set.documents)
    return tuple(
        Record(question.id, asked_k=system.k or 0, error=well_formed(str(end)))
        if isinstance(end, ComponentError)
        else _record(system, question.id, *end, places)
        for question, end in zip(questions, ends, strict=True)
    )


def _record(system: System, id: str, reply: SystemReply, seconds: float, places: Places) -> Record:
    chunks = [places.chunk(passage) for passage in reply.retrieved]
    retrieved = _ranking(reply.retrieved, chunks)
    context = chunks if reply.context in (None, reply.retrieved) else [places.chunk(each) for each in reply.context]
    k = len(retrieved) if system.k is None else system.k
    return Record(
        question_id=id,
        asked_k=k,
        retrieved=retrieved,
        reranked=retrieved[:k],
        context=tuple(context),
        prompt=None if reply.prompt is None else well_formed(reply.prompt),
        answer=well_formed(reply.answer),
        citations=reply.citations,
        refused=declines(reply.answer) if reply.refused is None else reply.refused,
        usage=(StageUsage("answer", seconds, reply.tokens_in, reply.tokens_out),),
    )


def _ranking(passages: Sequence[Passage], chunks: Sequence[Chunk]) -> tuple[Ranked, ...]:
    """Scores are the system's; where one has none, or NaN, those of all are the order alone."""
    given = [passage.score for passage in passages if passage.score is not None and isfinite(passage.score)]
    scores = given if len(given) == len(passages) else [-rank for rank in range(1, len(passages) + 1)]
    return tuple(
        Ranked(chunk, float(score), rank) for rank, (chunk, score) in enumerate(zip(chunks, scores, strict=True), 1)
    )
