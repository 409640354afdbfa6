"""The order of the stages, and what each is keyed by. The only file that knows both.

Every output hangs on the fingerprint of its stage and on the keys of the outputs that it reads, and is loaded or
computed only when something downstream asks for it: a sweep over k embeds nothing, a repeated sweep computes nothing.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from itertools import accumulate
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from adapters.schema import Chunk, Dropped, Question, Ranked, Record, StageUsage, fingerprint
from runner import whole_system
from runner.config import Experiment
from runner.dataset import Document, TestSet
from runner.errors import ComponentError
from runner.progress import Progress
from runner.stage import Answer, Chunker, Query, Request, TextEmbedder
from runner.store import NotKept, Output, StageStore

if TYPE_CHECKING:
    from runner.stage import Vectors

T = TypeVar("T")

PAID_BATCH = 64
"""Texts per stored piece of a paid embedder: what a crash can cost at most."""


@dataclass(frozen=True, slots=True)
class Hits:
    """A ranking as positions in the corpus with scores, best first, and the seconds it took; or the reason why there
    is none."""

    positions: tuple[int, ...]
    scores: tuple[float, ...]
    seconds: float
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Prompted:
    """Positions in the corpus that reach the prompt, in prompt order, and those dropped with the reason; error: why
    there was no ranking."""

    positions: tuple[int, ...]
    dropped: tuple[tuple[int, Literal["duplicate", "budget"]], ...]
    seconds: float
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Contexted:
    """The chunks that reach the prompt, in prompt order; error: why there was no ranking."""

    chunks: tuple[Chunk, ...]
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer, or text and refused None and the reason why there is none; with the prompt that was sent and the
    seconds it took.
    """

    prompt: str
    seconds: float
    error: str | None = None
    text: str | None = None
    refused: bool | None = None
    citations: tuple[int, ...] = ()
    tokens_in: int | None = None
    tokens_out: int | None = None


def records(
    experiment: Experiment,
    test_set: TestSet,
    store: StageStore,
    progress: Progress,
    frozen: Mapping[str, Record] | None = None,
) -> tuple[Record, ...]:
    """What the system of `experiment` does for every question of `test_set`, in the order of the questions.

    frozen: records of an earlier run by question id, from which everything before the prompt is taken as it is.
    """
    if experiment.system is not None:
        return whole_system.records(experiment.system, test_set, store, progress)
    system = Stages(experiment, test_set, store, progress)
    if frozen is not None:
        return _generated_anew(system, [frozen[question.id] for question in test_set.questions])
    chunks = system.chunks.value()
    retrieved, reranked = system.retrieved.value(), system.reranked.value()
    prompted, answers = system.prompted.value(), system.answers.value()
    labelled = _labelled(chunks, test_set.questions)
    k = experiment.retriever.k
    return tuple(
        Record(
            question_id=question.id,
            asked_k=k,
            retrieved=_ranking(chunks, retrieved[i]),
            reranked=_ranking(chunks, reranked[i])[:k],
            context=tuple(chunks[p] for p in prompted[i].positions),
            dropped=tuple(Dropped(chunks[p], reason) for p, reason in prompted[i].dropped),
            labelled=labelled[i],
            usage=(
                StageUsage("retrieve", retrieved[i].seconds),
                StageUsage("rerank", reranked[i].seconds),
                StageUsage("assemble", prompted[i].seconds),
                StageUsage("generate", answers[i].seconds, answers[i].tokens_in, answers[i].tokens_out),
            ),
            **_said(answers[i]),
        )
        for i, question in enumerate(test_set.questions)
    )


def _generated_anew(system: Stages, stored: Sequence[Record]) -> tuple[Record, ...]:
    """The records with new answers to their contexts."""
    answers = system.answers_to([_stored_context(record) for record in stored]).value()
    return tuple(
        replace(
            record,
            usage=(
                *(used for used in record.usage if used.stage != "generate"),
                StageUsage("generate", answer.seconds, answer.tokens_in, answer.tokens_out),
            ),
            **_said(answer),
        )
        for record, answer in zip(stored, answers, strict=True)
    )


def _stored_context(record: Record) -> Contexted:
    """Where a record has an error and no prompt, a stage before the prompt failed."""
    return Contexted(record.context, record.error if not record.prompt else None)


def _said(answer: Answered) -> dict[str, Any]:
    """The fields of a record that generation fills."""
    return {
        "prompt": answer.prompt,
        "answer": answer.text,
        "citations": answer.citations,
        "refused": answer.refused,
        "error": answer.error,
    }


class Stages:
    """The graph of stage outputs of one experiment; building it computes nothing."""

    def __init__(self, experiment: Experiment, test_set: TestSet, store: StageStore, progress: Progress) -> None:
        self.experiment, self.test_set, self.store, self.progress = experiment, test_set, store, progress
        self.questions = test_set.questions
        asked = fingerprint([[question.id, question.text] for question in self.questions])
        e = experiment
        self.chunks = store.output("chunk", (e.chunker.fingerprint, test_set.documents_checksum), self._chunk)
        corpus = self.chunks.key
        self.passages, self.queries = self._embedding(corpus, asked)
        self.index = store.output("index", (e.retriever.fingerprint_without("k"), corpus), self._index)
        depth = max(e.retriever.k, e.reranker.candidates)
        self.retrieved: Output[list[Hits]] = store.output(
            "retrieve",
            (e.retriever.fingerprint_without("k"), str(depth), self.index.key, self.passages.key, asked),
            lambda: self._retrieve(depth),
        )
        self.reranked: Output[list[Hits]] = store.output(
            "rerank", (e.reranker.fingerprint, self.retrieved.key), self._rerank
        )
        self.prompted: Output[list[Prompted]] = store.output(
            "assemble", (e.context.fingerprint, str(e.retriever.k), self.reranked.key), self._assemble
        )
        self.answers: Output[list[Answered]] = self._answers(self.prompted.key, self._contexts)

    def _chunk(self) -> tuple[Chunk, ...]:
        documents = self.progress.over("chunk", self.test_set.documents)
        chunks = tuple(chunk for document in documents for chunk in cut(self.experiment.chunker, document))
        if not chunks:
            raise ComponentError(
                f"{self.experiment.chunker.target} made no chunk of {len(self.test_set.documents)} documents: "
                "they are blank"
            )
        return chunks

    def _embedding(self, corpus: str, asked: str) -> tuple[Output[Vectors | None], Output[Vectors | None]]:
        embedder = self.experiment.embedder
        if not self.experiment.retriever.uses_vectors:
            return Output("no vectors", lambda: None), Output("no vectors", lambda: None)
        cause = embedder.fingerprint
        if isinstance(embedder, TextEmbedder):
            return (
                self.store.output("embed_passages", (cause, corpus), lambda: self._encode("passage")),
                self.store.output("embed_queries", (cause, asked), lambda: self._encode("query")),
            )
        both = self.store.output(
            "embed", (cause, corpus, asked), lambda: embedder.embed(self._texts(), [q.text for q in self.questions])
        )
        return Output(both.key, lambda: both.value().passages), Output(both.key, lambda: both.value().queries)

    def _texts(self) -> list[str]:
        return [chunk.text for chunk in self.chunks.value()]

    def _encode(self, role: Literal["passage", "query"]) -> Vectors:
        from numpy import concatenate

        embedder = self.experiment.embedder
        assert isinstance(embedder, TextEmbedder)
        texts = self._texts() if role == "passage" else [question.text for question in self.questions]
        size = PAID_BATCH if embedder.paid else max(len(texts), 1)
        batches = [texts[start : start + size] for start in range(0, len(texts), size)]

        def encode(batch: list[str]) -> Vectors:
            if not embedder.paid:
                return embedder.encode(batch, role)
            causes = (embedder.fingerprint, role, fingerprint(batch))
            return self.store.output("embed_batch", causes, lambda: embedder.encode(batch, role)).value()

        return concatenate([encode(batch) for batch in self.progress.over(f"embed {role}", batches)])

    def _index(self) -> Any:
        return self.experiment.retriever.index(self._texts())

    def _retrieve(self, depth: int) -> list[Hits]:
        retriever, index = self.experiment.retriever, self.index.value()
        passages, queries = self.passages.value(), self.queries.value()

        def search(i: int) -> Hits:
            query = Query(self.questions[i].text, None if queries is None else queries[i])
            found, seconds = _timed(lambda: retriever.search(index, passages, query, depth))
            return Hits(tuple(p for p, _ in found), tuple(float(s) for _, s in found), seconds)

        return [search(i) for i in self.progress.over("retrieve", range(len(self.questions)))]

    def _rerank(self) -> list[Hits]:
        reranker, texts, retrieved = self.experiment.reranker, self._texts(), self.retrieved.value()

        def rerank(i: int) -> Hits:
            hits, question = retrieved[i], self.questions[i].text
            passages = [texts[p] for p in hits.positions]

            def scores() -> list[float] | None:
                if not reranker.paid:
                    return reranker.scores(question, passages)
                causes = (reranker.fingerprint, fingerprint([question, passages]))
                return self.store.output("rerank_one", causes, lambda: reranker.scores(question, passages)).value()

            try:
                new, seconds = _timed(scores)
            except ComponentError as error:
                return Hits((), (), 0.0, str(error))
            if new is None:
                return replace(hits, seconds=seconds)
            if len(new) != len(passages):
                raise ComponentError(f"{reranker.target} returned {len(new)} scores for {len(passages)} passages")
            order = sorted(range(len(new)), key=lambda j: (-new[j], j))
            return Hits(tuple(hits.positions[j] for j in order), tuple(float(new[j]) for j in order), seconds)

        return _whole([rerank(i) for i in self.progress.over("rerank", range(len(self.questions)))])

    def _assemble(self) -> list[Prompted]:
        chunks, k = self.chunks.value(), self.experiment.retriever.k

        def assemble(hits: Hits) -> Prompted:
            if hits.error:
                return Prompted((), (), 0.0, hits.error)
            ranking = _ranking(chunks, hits)[:k]
            position = {id(ranked.chunk): p for ranked, p in zip(ranking, hits.positions, strict=False)}
            context, seconds = _timed(lambda: self.experiment.context.assemble(ranking))
            return Prompted(
                tuple(position[id(chunk)] for chunk in context.chunks),
                tuple((position[id(dropped.chunk)], dropped.reason) for dropped in context.dropped),
                seconds,
            )

        return _whole([assemble(hits) for hits in self.progress.over("assemble", self.reranked.value())])

    def _contexts(self) -> list[Contexted]:
        chunks = self.chunks.value()
        return [Contexted(tuple(chunks[p] for p in each.positions), each.error) for each in self.prompted.value()]

    def answers_to(self, contexts: Sequence[Contexted]) -> Output[list[Answered]]:
        """The answers to given contexts, one for each question in order."""
        asked = zip(self.questions, contexts, strict=True)
        given = fingerprint([[q.id, q.text, [asdict(chunk) for chunk in c.chunks], c.error] for q, c in asked])
        return self._answers(given, lambda: contexts)

    def _answers(self, cause: str, contexts: Callable[[], Sequence[Contexted]]) -> Output[list[Answered]]:
        e = self.experiment
        causes = (e.generator.fingerprint, e.prompt.fingerprint, cause)
        return self.store.output("generate", causes, lambda: self._generate(contexts()))

    def _generate(self, contexts: Sequence[Contexted]) -> list[Answered]:
        generator, prompt = self.experiment.generator, self.experiment.prompt

        def generate(i: int) -> Answered:
            if error := contexts[i].error:
                return Answered("", 0.0, error)
            passages = tuple(chunk.text for chunk in contexts[i].chunks)
            messages = prompt.messages(self.questions[i].text, contexts[i].chunks)
            request = Request(self.questions[i].text, passages, messages)
            sent = "\n\n".join(f"[{message.role}]\n{message.content}" for message in messages)

            def answer() -> tuple[Answer, float]:
                return _timed(lambda: generator.generate(request))

            try:
                if generator.paid:
                    causes = (generator.fingerprint, fingerprint([sent, request.question, passages]))
                    found, seconds = self.store.output("generate_one", causes, answer).value()
                else:
                    found, seconds = answer()
            except ComponentError as error:
                return Answered(sent, 0.0, str(error))
            return Answered(
                sent, seconds, None, found.text, found.refused, found.citations, found.tokens_in, found.tokens_out
            )

        return _whole(list(self._concurrently(generate, generator.concurrency)))

    def _concurrently(self, task: Callable[[int], T], workers: int) -> Iterable[T]:
        indices = range(len(self.questions))
        if workers == 1:
            yield from (task(i) for i in self.progress.over("generate", indices))
            return
        pool = ThreadPoolExecutor(workers)
        try:
            yield from self.progress.over("generate", pool.map(task, indices), total=len(indices))
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def cut(chunker: Chunker, document: Document) -> list[Chunk]:
    """The chunks of a document, blank ones left out.

    Raises ComponentError when the chunker breaks its contract (a span outside the document or out of order).
    """
    spans = chunker.spans(document.text)
    size = len(document.text)
    for (start, end), (before, _) in zip(spans, [(0, 0), *spans], strict=False):
        if not (0 <= start < end <= size and before <= start):
            raise ComponentError(
                f"{chunker.target} returned the span [{start}, {end}) after one that starts at {before}, for document "
                f"{document.doc_id!r} of {size} characters: spans must be sorted by start, not empty, and inside"
            )
    return [
        Chunk(document.doc_id, start, end, document.text[start:end])
        for start, end in spans
        if document.text[start:end].strip()
    ]


class _Fallible(Protocol):
    @property
    def error(self) -> str | None: ...


F = TypeVar("F", bound=_Fallible)


def _whole(results: list[F]) -> list[F]:
    """`results`, unless one of them is an error: then they are used now, and all that hangs on them is computed anew
    next time. Raises NotKept."""
    if any(result.error for result in results):
        raise NotKept(results)
    return results


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    began = perf_counter()
    result = work()
    return result, perf_counter() - began


def _ranking(chunks: Sequence[Chunk], hits: Hits) -> tuple[Ranked, ...]:
    return tuple(
        Ranked(chunks[position], score, rank)
        for rank, (position, score) in enumerate(zip(hits.positions, hits.scores, strict=True), 1)
    )


def _labelled(chunks: Sequence[Chunk], questions: Sequence[Question]) -> list[tuple[Chunk, ...]]:
    """For each question the chunks that share a character with one of its labels, in corpus order."""
    by_document: dict[str, list[int]] = defaultdict(list)
    for position, chunk in enumerate(chunks):
        by_document[chunk.doc_id].append(position)
    starts = {doc_id: [chunks[p].start for p in positions] for doc_id, positions in by_document.items()}
    reach = {doc_id: list(accumulate((chunks[p].end for p in ps), max)) for doc_id, ps in by_document.items()}

    def touching(question: Question) -> tuple[Chunk, ...]:
        found: set[int] = set()
        for span in question.relevant or ():
            positions = by_document.get(span.doc_id, [])
            first = bisect_right(reach.get(span.doc_id, []), span.start)
            last = bisect_left(starts.get(span.doc_id, []), span.end)
            found.update(p for p in positions[first:last] if chunks[p].end > span.start)
        return tuple(chunks[p] for p in sorted(found))

    return [touching(question) for question in questions]
