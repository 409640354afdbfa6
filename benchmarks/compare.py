"""Seconds and memory of `paribus compare` on two large runs, as a whole process.

    python benchmarks/compare.py                       100,000 questions, 10 definitions
    python benchmarks/compare.py --questions 10000 --values yes_no --keep FOLDER

Each record has 5 chunks of 500 characters in its ranking, its context and its prompt; two of the definitions ask a
judge and have three verdicts a question; six questions of ten get another score under each definition. values: `many` =
as many distinct ones as overlaps of words have; `yes_no` = 0 and 1. The last line is of runs without scores.parquet.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adapters.schema import (
    SCHEMA_VERSION,
    Chunk,
    Definition,
    JudgeCard,
    Question,
    Ranked,
    Record,
    Score,
    Span,
    Verdict,
    to_json,
)
from runner.results import CONFIG, QUESTIONS, RECORDS, SCORES, SCORES_TABLE, SUMMARY, Mean, write_parquet
from runner.stored import identity

CHANGED, DEPTH, CHARACTERS, PASSAGES, SLICES = 0.6, 5, 500, 5_000, 10
JUDGE = JudgeCard("openai", "a-model", temperature=0.0, seed=0, max_tokens=2_000, host="localhost")
WORDS = ("the", "report", "says", "that", "a", "passage", "of", "this", "size", "holds", "what", "was", "asked", "for")


def write_pair(folder: Path, questions: int, definitions: int, values: str, seed: int = 1) -> tuple[Path, Path]:
    """Two result folders below `folder`: a baseline, and a candidate of another k."""
    generator = np.random.default_rng(seed)
    cards = [_definition(n, judged=n >= definitions - 2) for n in range(definitions)]
    passages = [
        Chunk(f"d{n}", 0, CHARACTERS, " ".join(generator.choice(WORDS, CHARACTERS // 3))[:CHARACTERS])
        for n in range(PASSAGES)
    ]
    one = _values(generator, (definitions, questions), values)
    other = np.where(generator.random(one.shape) < CHANGED, _values(generator, one.shape, values), one)
    sides = []
    for name, found in (("baseline", one), ("candidate", other)):
        ranking = generator.integers(0, PASSAGES, size=(questions, DEPTH))
        sides.append(_write(folder / name, name, cards, found, passages, ranking))
    return sides[0], sides[1]


def _values(generator: np.random.Generator, shape: tuple[int, ...], values: str) -> NDArray[Any]:
    found = generator.beta(2, 1.5, size=shape)
    return np.round(found) if values == "yes_no" else found


def _definition(n: int, judged: bool) -> Definition:
    return Definition(
        id=f"made/{n}",
        key=f"made/{n}",
        asks="is it found?",
        framework="made",
        version="1",
        implementation="benchmarks.compare",
        unit="passage",
        hit="a labelled passage",
        formula="hits / labelled",
        nothing_to_judge="not applicable",
        aggregation="mean",
        range=(0.0, 1.0),
        direction="higher",
        requires=("answer",) if judged else ("relevant",),
        parameters={},
        source="made",
        calls="1" if judged else "0",
    )


def _write(
    folder: Path,
    name: str,
    cards: list[Definition],
    values: NDArray[Any],
    passages: list[Chunk],
    ranking: NDArray[Any],
) -> Path:
    ids = [f"question-{n:06}" for n in range(values.shape[1])]
    folder.mkdir(parents=True)
    _lines(folder / QUESTIONS, (_question(id, n) for n, id in enumerate(ids)))
    _lines(
        folder / RECORDS, (_record(id, [passages[at] for at in ranks]) for id, ranks in zip(ids, ranking, strict=True))
    )
    _lines(folder / SCORES, _scores(cards, ids, values))
    with (folder / SCORES).open("rb") as file:
        lines = identity(iter(lambda: file.read(1_000_000), b""))
    write_parquet(folder / SCORES_TABLE, _scores(cards, ids, values), lines)
    (folder / CONFIG).write_text(f"retriever:\n  k: {DEPTH}\n  name: {name}\n", encoding="utf-8")
    summary = {
        "schema_version": SCHEMA_VERSION,
        "name": name,
        "config_fingerprint": name,
        "choices": {},
        "dataset": {"name": "made", "version": "1", "checksum": "c" * 64},
        "definitions": {card.key: card.card() for card in cards},
        "means": {
            card.key: asdict(Mean(float(column.mean()), len(ids), 0, 0))
            for card, column in zip(cards, values, strict=True)
        },
        "slices": {},
        "judge": None,
        "drift": None,
        "started": "2026-11-30T10:15:00.000Z",
    }
    (folder / SUMMARY).write_text(json.dumps(summary), encoding="utf-8")
    return folder


def _lines(path: Path, values: Iterator[Any]) -> None:
    with path.open("w", encoding="utf-8") as file:
        for value in values:
            file.write(to_json(value) + "\n")


def _question(id: str, n: int) -> Question:
    return Question(
        id,
        f"What does passage {n} say?",
        "It says so.",
        None,
        (Span(f"d{n % PASSAGES}", 0, 80),),
        slices=(f"topic {n % SLICES}",),
    )


def _record(id: str, chunks: list[Chunk]) -> Record:
    ranked = tuple(Ranked(chunk, 1.0 / rank, rank) for rank, chunk in enumerate(chunks, 1))
    prompt = "\n\n".join(chunk.text for chunk in chunks)
    answer = chunks[0].text[:200]
    return Record(id, DEPTH, ranked, ranked, tuple(chunks), prompt=prompt, answer=answer, refused=False)


def _scores(cards: list[Definition], ids: list[str], values: NDArray[Any]) -> Iterator[Score]:
    verdicts = tuple(Verdict(f"the {n} claim of the answer", "1", "supported", "the passage says so") for n in "123")
    for card, column in zip(cards, values, strict=True):
        evidence, judge = (verdicts, JUDGE) if card.calls != "0" else ((), None)
        for id, value in zip(ids, column, strict=True):
            yield Score(
                id, card.key, card.fingerprint, float(value), evidence=evidence, judge=judge, calls=len(evidence)
            )


def measured(baseline: Path, candidate: Path, out: Path) -> str:
    """Exit code, seconds and peak memory of `paribus compare` of two folders."""
    command = [sys.executable, "-m", "runner", "compare", str(baseline), str(candidate), "--out", str(out)]
    began = perf_counter()
    process = subprocess.Popen([*command, "tracking=off"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    times = f"{perf_counter() - began:.1f} s, {used.ru_utime + used.ru_stime:.1f} s of CPU"
    return f"exit {os.waitstatus_to_exitcode(status)}, {times}, {used.ru_maxrss / 1_024:,.0f} MB"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=100_000)
    parser.add_argument("--definitions", type=int, default=10)
    parser.add_argument("--values", choices=("many", "yes_no"), action="append")
    parser.add_argument("--keep", type=Path, help="folder for the two runs, used again where it is there")
    parser.add_argument("--times", type=int, default=3)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        for values in asked.values or ("many", "yes_no"):
            folder = (asked.keep or Path(scratch)) / f"{values}-{asked.questions}-{asked.definitions}"
            if folder.is_dir():
                sides = folder / "baseline", folder / "candidate"
            else:
                sides = write_pair(folder, asked.questions, asked.definitions, values)
            size = sum(file.stat().st_size for side in sides for file in side.iterdir()) / 1e9
            made = f"{asked.questions:,} questions x {asked.definitions} definitions"
            print(f"{made}, {values}, {size:.1f} GB in two folders")
            for _ in range(asked.times):
                print(f"  {measured(*sides, Path(scratch) / 'out')}", flush=True)
            for side in sides:
                (side / SCORES_TABLE).rename(side / "aside")
            print(f"  {measured(*sides, Path(scratch) / 'out')} without {SCORES_TABLE}", flush=True)
            for side in sides:
                (side / "aside").rename(side / SCORES_TABLE)


if __name__ == "__main__":
    main()
