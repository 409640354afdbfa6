"""Sweeps made by hand, as they are read back from their folders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from adapters.schema import Chunk, JudgeCard, Question, Ranked, Record, Span, StageUsage
from runner.report.files import write_report
from runner.report.material import material
from runner.results import StoredRun, mean
from runner.sweep_folder import StoredRow, StoredSweep
from tests.audit.stored import HOSTILE
from tests.compare.runs import DATASET, RIGHT, defined, ranked, run

RECALL = defined("labels/recall", asks="how much of what is relevant was found?", hazards=("a label may be wrong",))
F1 = defined("labels/answer_f1", requires=("answer", "reference_answer"), parameters={"k": 5, "lower": True})
REFUSED = defined("labels/refusal_rate", requires=("refused",), direction="lower")
DECISIVE = ("labels/recall", "labels/answer_f1", "labels/refusal_rate")
CHUNK = Chunk("right", 0, 10, "the answer")
ENVIRONMENT = {"paribus": "0.1", "python": "3.13.5", "platform": "linux", "git_commit": "abc"}
CARD = {
    **DATASET,
    "questions": 8,
    "answerable": 7,
    "unanswerable": 1,
    "labelled": 8,
    "unlabelled": 0,
    "slices": {"fact": 4},
    "origins": {"real": 6, "synthetic": 2},
    "splits": {"tune": 5, "held_out": 3},
    "documents": 3,
    "characters": 1200,
    "blank_documents": ["empty"],
    "questions_read": {"read": 9, "kept": 8, "skipped": 1},
    "documents_read": {"read": 3, "kept": 3, "skipped": 0},
    "faults": ["questions.jsonl:4: id is missing"],
}


def whole(made: StoredRun, *, size: int = 800, slices: Mapping[str, Sequence[str]] | None = None) -> StoredRun:
    """A made run with the parts of a summary that a real one has, and prompts of `size` characters."""
    of = {"fact": list(made.questions)[::2], **(slices or {})}
    means = {key: asdict(mean(by_id.values())) for key, by_id in made.scores.items()}
    by_slice = {
        name: {
            key: asdict(found)
            for key, by_id in made.scores.items()
            if (found := mean(by_id[id] for id in ids if id in by_id)).n
        }
        for name, ids in of.items()
    }
    summary = {**made.summary, "means": means, "slices": by_slice, "environment": ENVIRONMENT, "seconds": 3.0}
    records = {
        id: replace(
            record, prompt="p" * size, answer=record.answer or "An answer.", usage=(StageUsage("generate", 0.5),)
        )
        for id, record in made.records.items()
    }
    return replace(made, summary=summary, records=records)


def scored(recall: Sequence[float], f1: Sequence[float], *, name: str, size: int = 800, **changed: Any) -> StoredRun:
    """A run of as many questions as values: the right chunk is first where recall is 1, and else missing."""
    ids = [f"q{place}" for place in range(1, len(recall) + 1)]
    return whole(
        run(
            {
                "labels/recall": dict(zip(ids, recall, strict=True)),
                "labels/answer_f1": dict(zip(ids, f1, strict=True)),
                "labels/refusal_rate": dict.fromkeys(ids, 0.0),
            },
            definitions=[RECALL, F1, REFUSED],
            questions=[Question(id, f"Question {id}?", relevant=(RIGHT,), slices=("fact",)) for id in ids],
            records=[
                replace(ranked(id, 1 if found else None), labelled=(CHUNK,))
                for id, found in zip(ids, recall, strict=True)
            ],
            name=name,
            config={
                "metrics": {"definitions": list(DECISIVE), "table": list(DECISIVE)},
                "chunker": {"size": size},
                "retriever": {"k": 5},
                "generator": {"_target_": "runner.generators.extractive.ExtractiveGenerator"},
            },
            **{"dataset": CARD, **changed},
        ),
        size=size,
    )


def row(label: str, made: StoredRun | None, from_value: str | None = "256", error: str | None = None) -> StoredRow:
    variable, _, value = label.partition("=")
    varied = label != "baseline"
    return StoredRow(
        label,
        variable if varied else None,
        value if varied else None,
        from_value if varied else None,
        label if varied else None,
        made.folder if made else None,
        None,
        made,
        error,
    )


def swept(*rows: StoredRow, name: str = "20261130T101500-000000") -> StoredSweep:
    return StoredSweep(name, Path(name), None, (), (), rows)


def written(sweep: StoredSweep, folder: Path) -> list[Path]:
    """The files of the sweep's report."""
    return write_report(material(sweep), folder)


def beside(label: str, made: StoredRun | None) -> StoredRow:
    """A run that is no variant."""
    return StoredRow(label, None, None, None, None, made.folder if made else None, None, made, None)


def sizes() -> StoredSweep:
    """256 is the baseline, of which ten of twenty questions miss the right chunk. 512 finds it for all and answers two
    worse: better in recall. 128 changes nothing but the prompt. bm25 swaps two questions. One variant failed, one is on
    another test set."""
    base, flat = (0.0,) * 10 + (1.0,) * 10, (0.5,) * 20
    other = {**CARD, "checksum": "d" * 64}
    return swept(
        row("baseline", scored(base, flat, name="baseline")),
        row("chunker.size=128", scored(base, flat, name="chunker.size=128", size=400)),
        row("chunker.size=512", scored((1.0,) * 20, (0.4, 0.4, *flat[2:]), name="chunker.size=512", size=1600)),
        row("retriever=bm25", scored((1.0, *base[1:10], 0.0, *base[11:]), flat, name="retriever=bm25"), "dense"),
        row("retriever=broken", None, "dense", "ConfigError: no such retriever"),
        row("retriever=other", scored(base, flat, name="retriever=other", dataset=other), "dense"),
    )


def one_question() -> StoredSweep:
    return swept(
        row("baseline", scored((0.0,), (0.5,), name="baseline")),
        row("retriever.k=3", scored((1.0,), (0.5,), name="retriever.k=3"), "5"),
    )


def forty() -> StoredSweep:
    """Forty variants of one numeric variable and of one with names, on 30 questions."""
    base = tuple(float(n % 3 == 0) for n in range(30))
    rows = [row("baseline", scored(base, base, name="baseline"))]
    for n in range(1, 21):
        found = tuple(float(id % (n + 1) == 0) for id in range(30))
        rows.append(row(f"retriever.k={n}", scored(found, base, name=f"retriever.k={n}", size=100 * n), "5"))
        named = f"retriever=option_with_a_long_name_{n}"
        rows.append(row(named, scored(found, found, name=named, size=50 * n), "dense"))
    return swept(*rows)


def alone() -> StoredSweep:
    """One run whose questions have no labels."""
    ids = ["q1", "q2"]
    made = run(
        {"labels/answer_f1": dict.fromkeys(ids, 0.5), "labels/recall": {}},
        definitions=[F1],
        questions=[Question(id, f"Question {id}?") for id in ids],
        name="single",
        dataset={**CARD, "labelled": 0, "unlabelled": 2, "questions": 2},
    )
    return swept(row("baseline", whole(made)), name="Run single")


def judged() -> StoredSweep:
    """Five definitions with long names, under the judge by rules."""
    ids = [f"q{n}" for n in range(1, 9)]
    keys = [
        *("ragas/faithfulness", "deepeval/faithfulness", "deepeval/faithfulness.penalize_ambiguous_claims-True"),
        *("trulens/groundedness", "ragas/response_groundedness"),
    ]
    parts = {
        "metrics": {
            "definitions": [*keys[:2], {"id": keys[1], "penalize_ambiguous_claims": True}, *keys[3:]],
            "table": keys,
        },
        "judge": {"_target_": "adapters.judges.lexical.LexicalJudge"},
    }
    cards = [defined(key, calls="1 + 1", requires=("answer", "context")) for key in keys]
    return swept(
        *(
            row(
                label,
                whole(
                    run(
                        {key: dict.fromkeys(ids, value) for key in keys},
                        definitions=cards,
                        judge=JudgeCard("lexical", "rules"),
                        config=parts,
                        name=label,
                    )
                ),
                "plain",
            )
            for label, value in (("baseline", 0.25), ("prompt=strict", 0.75))
        )
    )


def hostile() -> StoredSweep:
    """Every text of questions, chunks, answers, labels, settings and errors would do harm."""
    text = "\n".join(HOSTILE)
    ids = [f"q{n} {HOSTILE[n % len(HOSTILE)][:200]}" for n in range(8)]
    chunk = Chunk(HOSTILE[1], 0, len(text), text)
    dataset = {**CARD, "name": HOSTILE[0], "faults": HOSTILE, "slices": dict.fromkeys(HOSTILE, 1)}

    def side(name: str, value: float, ranking: tuple[Ranked, ...]) -> StoredRun:
        made = run(
            {"labels/recall": dict.fromkeys(ids, value), "labels/answer_f1": dict.fromkeys(ids, value)},
            definitions=[RECALL, F1],
            questions=[Question(id, text, relevant=(Span(HOSTILE[1], 0, 9),), slices=(HOSTILE[0],)) for id in ids],
            records=[Record(id, 1, reranked=ranking, answer=f"{value} {text}") for id in ids],
            config={
                "prompt": {"system": f"{value} {text}"},
                "metrics": {"table": ["labels/recall", "labels/answer_f1"]},
            },
            dataset=dataset,
            name=name,
        )
        return whole(made, slices=dict.fromkeys(HOSTILE, ids))

    named = [f"prompt={each[:3_000]}" for each in HOSTILE]
    return swept(
        row("baseline", side("baseline", 1.0, (Ranked(chunk, 1.0, 1),)), HOSTILE[0]),
        *(row(label, side(label, 0.0, ()), HOSTILE[n % len(HOSTILE)]) for n, label in enumerate(named)),
        row(f"retriever={HOSTILE[0]}", None, HOSTILE[1], text),
        name=HOSTILE[0],
    )


SWEEPS = {
    "sizes": sizes,
    "one question": one_question,
    "forty": forty,
    "alone": alone,
    "judged": judged,
    "hostile": hostile,
}
