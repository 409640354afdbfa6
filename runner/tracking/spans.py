"""What a trace shows of one question: its steps with their inputs, outputs and times, and its scores in words.

Nothing here talks to MLflow. Kinds of steps are those of mlflow/entities/span.py in MLflow 3.17.2, and documents have
the shape that its pages render (mlflow/entities/document.py).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Literal

from adapters.schema import Chunk, Definition, Question, Ranked, Record, Score, Verdict
from runner.config import redacted
from runner.phrases import number

PREVIEW_LIMIT = 1_000
"""Characters of the request by which MLflow's evaluation view pairs the rows of two runs."""

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Step:
    """One span. start, end: seconds from the start of the question. error: why there is no output. attributes: what
    MLflow's pages read (`mlflow.chat.tokenUsage`) and what people look at. steps: those inside it."""

    name: str
    kind: Literal["CHAIN", "RETRIEVER", "RERANKER", "PARSER", "LLM", "EVALUATOR"]
    start: float
    end: float
    inputs: Any
    outputs: Any
    error: str | None = None
    attributes: dict[str, Any] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()


def laid_out(question: Question, record: Record, scores: Iterable[Score]) -> Step:
    """One question as a step that holds retrieve, rerank, assemble, generate and, where a judge was asked, `judge` with
    one step for each definition. A system of one's own, which is timed as a whole, is one step `answer` that holds what
    it told of its passages.

    Times are those of Record.usage and Score.seconds, one after the other: what was read from the store is as long as
    it was when it was computed, and judgements, which overlap in fact, follow each other. The frozen contexts of
    another run have its times.
    """
    asked, judged = request(question), [score for score in scores if score.judge]
    seconds = {used.stage: used.seconds for used in record.usage}
    names = ("answer",) if "answer" in seconds else ("retrieve", "rerank", "assemble", "generate")
    ends = list(accumulate(seconds.get(name, 0.0) for name in names))
    times = list(zip([0.0, *ends], ends, strict=False))
    ranking = [_place(hit.chunk) for hit in record.reranked]
    dropped = [{"document": _place(chunk.chunk), "reason": chunk.reason} for chunk in record.dropped]
    assembled = {"prompt": record.prompt, "documents": [_document(c) for c in record.context], "dropped": dropped}
    answer = {"answer": record.answer, "refused": record.refused, "citations": list(record.citations)}
    retrieved = [_document(hit.chunk, hit) for hit in record.retrieved]
    if "answer" in seconds:
        given = {"prompt": record.prompt, "documents": assembled["documents"]}
        told = [Step("retrieve", "RETRIEVER", 0.0, 0.0, asked, retrieved)] if retrieved else []
        told += [Step("assemble", "PARSER", 0.0, 0.0, asked, given)] if any(given.values()) else []
        steps = [Step("answer", "CHAIN", *times[0], asked, answer, record.error, _tokens(record), tuple(told))]
    else:
        steps = [
            Step("retrieve", "RETRIEVER", *times[0], asked, retrieved),
            Step("rerank", "RERANKER", *times[1], asked, [_document(hit.chunk, hit) for hit in record.reranked]),
            Step("assemble", "PARSER", *times[2], {**asked, "documents": ranking}, assembled),
            Step("generate", "LLM", *times[3], {"prompt": record.prompt}, answer, record.error, _tokens(record)),
        ]
    if judged:
        ends = list(accumulate((score.seconds for score in judged), initial=ends[-1]))
        judgements = tuple(_judgement(score, start, record.answer) for score, start in zip(judged, ends, strict=False))
        values = {score.definition: score.value for score in judged}
        answered = {**asked, "answer": record.answer}
        steps.append(Step("judge", "EVALUATOR", ends[0], ends[-1], answered, values, steps=judgements))
    return Step("question", "CHAIN", 0.0, ends[-1], asked, record.answer, record.error, steps=tuple(steps))


def request(question: Question) -> dict[str, str]:
    """The input of a question's trace: the same in every run of a test set, because MLflow pairs two runs by it."""
    return {"question": question.text}


def preview(question: Question) -> str:
    """`request` as JSON of at most PREVIEW_LIMIT characters. One that was cut ends in a hash of the whole, so that two
    questions that begin alike stay two."""
    whole = encoded(request(question))
    if len(whole) <= PREVIEW_LIMIT:
        return whole
    ending = f" … (cut; sha256 {hashlib.sha256(whole.encode()).hexdigest()[:16]})"
    return f"{whole[: PREVIEW_LIMIT - len(ending)]}{ending}"


def encoded(value: Any) -> str:
    """JSON without secrets, and with lone surrogates, which no database stores, as backslash escapes."""
    text = json.dumps(redacted(value), ensure_ascii=False)
    return _LONE_SURROGATE.sub(lambda found: f"\\\\u{ord(found[0]):x}", text)


def rationale(score: Score, definition: Definition) -> str:
    """Why a score is what it is, for a person: its reason, then each claim or chunk with the framework's word and ours;
    where there is neither, the formula."""
    said = [score.reason] if score.reason else []
    if score.samples > 1:
        apart = f", standard deviation {number(score.spread)}" if score.spread is not None else ""
        flips = "; flaky: a verdict flips between two samples" if score.flaky else ""
        said.append(f"Mean of {score.samples - score.samples_failed} of {score.samples} samples{apart}{flips}.")
    said += [_told(place, verdict) for place, verdict in enumerate(score.evidence, 1)]
    return "\n".join(said or [f"{definition.formula}. A hit is: {definition.hit}."])


def _told(place: int, verdict: Verdict) -> str:
    ours = (verdict.ours or "").replace("_", " ")
    word = f"{verdict.native} ({ours})" if ours and ours != verdict.native else verdict.native
    rank = f" rank {verdict.rank}:" if verdict.rank is not None else ""
    why = f"\n   Reason: {verdict.reason}" if verdict.reason else ""
    return f"{place}. [{word}]{rank} {verdict.unit}{why}"


def _judgement(score: Score, start: float, answer: str | None) -> Step:
    judge = score.judge
    assert judge is not None
    verdicts = [
        {"unit": v.unit, "native": v.native, "ours": v.ours, "reason": v.reason, "rank": v.rank} for v in score.evidence
    ]
    said = {"value": score.value, "status": score.status, "reason": score.reason, "verdicts": verdicts}
    spent = {"judge": f"{judge.provider} {judge.model}", "calls": score.calls, "cached": score.cached}
    failed = score.reason if score.status == "failed" else None
    end = start + score.seconds
    return Step(score.definition, "EVALUATOR", start, end, {"answer": answer}, said, failed, spent)


def _tokens(record: Record) -> dict[str, Any]:
    for used in record.usage:
        if used.stage in ("generate", "answer") and used.tokens_in is not None and used.tokens_out is not None:
            total = used.tokens_in + used.tokens_out
            counts = {"input_tokens": used.tokens_in, "output_tokens": used.tokens_out, "total_tokens": total}
            return {"mlflow.chat.tokenUsage": counts}
    return {}


def _place(chunk: Chunk) -> str:
    return f"{chunk.doc_id}[{chunk.start}:{chunk.end}]"


def _document(chunk: Chunk, hit: Ranked | None = None) -> dict[str, Any]:
    where = {"doc_uri": chunk.doc_id, "chunk_id": _place(chunk)}
    found = {"rank": hit.rank, "score": hit.score} if hit else {}
    return {"page_content": chunk.text, "metadata": {**where, **found}, "id": _place(chunk)}
