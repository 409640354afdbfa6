"""How often `paribus compare` finds a difference where there is none.

    PYTHONPATH=. python benchmarks/significance.py [COMPARISONS]

Each comparison is of two runs of one system: 107 questions, of which six in ten get another score, and five definitions
whose scores come in steps, as shares of few claims or passages do, or do not, as overlaps of words do. All goes through
runner.compare.paired.compare. Two standard errors of 5% in 1,000 comparisons are 1.4%. The last part is of sweeps, one
for ten comparisons: VARIANTS of one system under DEFINITIONS definitions, of which the first five decide.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from numpy.random import Generator

from adapters.schema import Definition, Question, Record, Score
from runner.compare.findings import Comparison
from runner.compare.paired import compare, compare_sweep, deciding
from runner.results import StoredRun

QUESTIONS, CHANGED = 107, 0.6
VARIANTS, DEFINITIONS = 12, 16
STEPS = {"quarters": 4, "fifths": 5, "tenths": 10, "overlap": 0, "other overlap": 0}
"""Definitions, and the steps of their scores; 0 = none."""


@dataclass
class Rates:
    """What a number of comparisons said. single: rejections of each definition at 5%; any_plain, any_holm, any_word: of
    comparisons in which at least one was rejected, before and after Holm, and by the word."""

    comparisons: int
    single: Counter[str]
    any_plain: int = 0
    any_holm: int = 0
    any_word: int = 0

    def of(self, count: int) -> float:
        return count / self.comparisons


def simulated(comparisons: int, seed: int = 1, really_better: tuple[str, ...] = ()) -> Rates:
    """Compare two runs again and again. really_better: definitions of which each changed score rose; the others, on
    which the rates are, did not move."""
    generator = np.random.default_rng(seed)
    definitions = {name: _definition(name) for name in STEPS}
    questions = {f"q{n:03}": Question(f"q{n:03}", "?") for n in range(QUESTIONS)}
    rates = Rates(comparisons, Counter())
    for _ in range(comparisons):
        pairs = {name: _pair(generator, steps, name in really_better) for name, steps in STEPS.items()}
        runs = [_run(definitions, questions, {name: pair[side] for name, pair in pairs.items()}) for side in (0, 1)]
        _count(rates, compare(*runs, names=("baseline", "candidate")), really_better)
    return rates


@dataclass
class SweepRates:
    """What a number of sweeps said in which no variant differs: in how many a definition that decides is called better
    or worse for any variant, and in how many another one is."""

    sweeps: int
    deciding: int = 0
    others: int = 0


def simulated_sweeps(sweeps: int, seed: int = 3) -> SweepRates:
    """Compare the variants of a sweep with their baseline, again and again."""
    generator = np.random.default_rng(seed)
    steps = {f"{n}": [*STEPS.values()][n % len(STEPS)] for n in range(DEFINITIONS)}
    definitions = {name: _definition(name) for name in steps}
    questions = {f"q{n:03}": Question(f"q{n:03}", "?") for n in range(QUESTIONS)}
    rates = SweepRates(sweeps)
    for _ in range(sweeps):
        values = {name: _scores(generator, step) for name, step in steps.items()}
        baseline = _run(definitions, questions, values)
        variants = {}
        for n in range(VARIANTS):
            changed = {
                name: _changed(generator, values[name], _scores(generator, step)) for name, step in steps.items()
            }
            variants[f"variant {n}"] = _run(definitions, questions, changed)
        found = compare_sweep(baseline, variants, details=False)
        rows = [row for each in found.values() for row in each.rows if row.word in ("better", "worse")]
        decide = deciding(baseline)
        rates.deciding += any(row.definition in decide for row in rows)
        rates.others += any(row.definition not in decide for row in rows)
    return rates


def _count(rates: Rates, found: Comparison, really_better: tuple[str, ...]) -> None:
    rows = [row for row in found.rows if row.definition not in really_better]
    rates.single.update(row.definition for row in rows if row.p.value < 0.05)
    rates.any_plain += any(row.p.value < 0.05 for row in rows)
    rates.any_holm += any(row.adjusted < 0.05 for row in rows)
    rates.any_word += any(row.word in ("better", "worse") for row in rows)


def _scores(generator: Generator, steps: int) -> Any:
    found = generator.beta(2, 1.5, size=QUESTIONS)
    return np.round(found * steps) / steps if steps else found


def _changed(generator: Generator, before: Any, other: Any) -> Any:
    return np.where(generator.random(QUESTIONS) < CHANGED, other, before)


def _pair(generator: Generator, steps: int, better: bool) -> tuple[Any, Any]:
    """Scores before and after: which of the two a question has first is chance, unless the candidate is better."""
    one, other = _scores(generator, steps), _scores(generator, steps)
    other = _changed(generator, one, other)
    return (np.minimum(one, other), np.maximum(one, other)) if better else (one, other)


def _definition(name: str) -> Definition:
    return Definition(
        id=name,
        key=name,
        asks="?",
        framework="simulated",
        version="1",
        implementation="benchmarks.significance",
        unit="answer",
        hit="",
        formula="",
        nothing_to_judge="",
        aggregation="mean",
        range=(0.0, 1.0),
        direction="higher",
        requires=("answer",),
        parameters={},
        source="simulated",
    )


def _run(definitions: dict[str, Definition], questions: dict[str, Question], values: dict[str, Any]) -> StoredRun:
    return StoredRun(
        folder=Path("simulated"),
        summary={
            "name": "simulated",
            "started": "",
            "dataset": {},
            "judge": None,
            "definitions": {name: definition.card() for name, definition in definitions.items()},
        },
        config={},
        questions=questions,
        records={id: Record(id) for id in questions},
        scores={
            name: {
                id: Score(id, name, definitions[name].fingerprint, float(value))
                for id, value in zip(questions, values[name], strict=True)
            }
            for name in definitions
        },
    )


def main() -> None:
    comparisons = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    began = process_time()
    rates = simulated(comparisons)
    print(f"{comparisons:,} comparisons of a system with itself, {QUESTIONS} questions, {len(STEPS)} definitions")
    for name in STEPS:
        print(f"  {name:24} p < 0.05 in {100 * rates.of(rates.single[name]):.1f}%")
    print(f"  all of them{'':13} p < 0.05 in {100 * rates.of(sum(rates.single.values())) / len(STEPS):.1f}%")
    print(f"  at least one, plain p            {100 * rates.of(rates.any_plain):.1f}%")
    print(f"  at least one, after Holm         {100 * rates.of(rates.any_holm):.1f}%")
    print(f"  at least one better or worse     {100 * rates.of(rates.any_word):.1f}%")
    partly = simulated(comparisons // 4, seed=2, really_better=("quarters", "overlap"))
    print(f"{partly.comparisons:,} more in which two of the five definitions are really better: of the other three")
    print(f"  at least one, after Holm         {100 * partly.of(partly.any_holm):.1f}%")
    print(f"  at least one better or worse     {100 * partly.of(partly.any_word):.1f}%")
    sweeps = simulated_sweeps(comparisons // 10)
    of = f"{VARIANTS} variants, {DEFINITIONS} definitions of which {len(STEPS)} decide"
    print(f"{sweeps.sweeps:,} sweeps of a system with itself: {of}")
    print(f"  a deciding definition better or worse  {100 * sweeps.deciding / sweeps.sweeps:.1f}%")
    print(f"  another one better or worse            {100 * sweeps.others / sweeps.sweeps:.1f}%")
    print(f"{process_time() - began:.0f} s of CPU")


if __name__ == "__main__":
    main()
