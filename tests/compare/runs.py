"""Runs made by hand, as they are read back, with scores by definition and question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from adapters.schema import Chunk, Definition, JudgeCard, Question, Ranked, Record, Score, Span, Verdict
from runner.results import StoredRun
from tests.tracking.made_results import definition

DATASET = {"name": "tiny", "version": "2", "checksum": "c" * 64}
Values = Mapping[str, Mapping[str, float | None]]


def defined(key: str, **changed: Any) -> Definition:
    return definition(key, **{"requires": ("relevant",), **changed})


def run(
    values: Values,
    *,
    definitions: Sequence[Definition] = (),
    questions: Sequence[Question] = (),
    records: Sequence[Record] = (),
    judge: JudgeCard | None = None,
    evidence: Mapping[tuple[str, str], tuple[Verdict, ...]] | None = None,
    config: Mapping[str, Any] | None = None,
    dataset: Mapping[str, Any] = DATASET,
    drift: Mapping[str, Any] | None = None,
    name: str = "run",
) -> StoredRun:
    """values: definition -> question -> value; None = it failed. What is not given is made."""
    known = {each.key: each for each in definitions}
    cards = {key: known.get(key) or defined(key) for key in values}
    asked = {each.id: each for each in questions}
    ids = dict.fromkeys(id for by_id in values.values() for id in by_id)
    scores: dict[str, dict[str, Score]] = {}
    for key, by_id in values.items():
        for id, value in by_id.items():
            judged = judge if cards[key].calls != "0" else None
            score = Score(
                id, key, cards[key].fingerprint, 0.0, judge=judged, evidence=(evidence or {}).get((key, id), ())
            )
            scores.setdefault(key, {})[id] = (
                replace(score, value=None, status="failed", reason="it broke")
                if value is None
                else replace(score, value=value)
            )
    summary = {
        "name": name,
        "started": "2026-11-30T10:15:00.000Z",
        "dataset": dataset,
        "judge": asdict(judge) if judge else None,
        "drift": drift,
        "definitions": {key: card.card() for key, card in cards.items()},
    }
    return StoredRun(
        folder=Path(name),
        summary=summary,
        config=config or {},
        questions={id: asked.get(id) or Question(id, f"Question {id}?") for id in ids},
        records={each.question_id: each for each in records} or {id: Record(id) for id in ids},
        scores=scores,
    )


RIGHT = Span("right", 0, 10)


def ranked(id: str, rank: int | None, of: int = 3, answer: str | None = None) -> Record:
    """A ranking of `of` chunks with the right passage at `rank`; None = it is not there."""
    chunks = [
        Chunk("right", 0, 10, "the answer") if place == rank else Chunk(f"d{place}", 0, 5, "other")
        for place in range(1, of + 1)
    ]
    items = tuple(Ranked(chunk, 1.0 / place, place) for place, chunk in enumerate(chunks, 1))
    return Record(id, of, items, items, tuple(chunks), answer=answer)


def by_rank(ranks: Sequence[int | None], name: str) -> StoredRun:
    """A run in which the right passage of q1, q2, … is at these ranks, with its recall and reciprocal rank."""
    ids = [f"q{place}" for place in range(1, len(ranks) + 1)]
    return run(
        {
            "labels/recall": {id: float(rank is not None) for id, rank in zip(ids, ranks, strict=True)},
            "labels/reciprocal_rank": {id: 1 / rank if rank else 0.0 for id, rank in zip(ids, ranks, strict=True)},
        },
        questions=[Question(id, f"Question {id}?", relevant=(RIGHT,)) for id in ids],
        records=[ranked(id, rank) for id, rank in zip(ids, ranks, strict=True)],
        name=name,
    )
