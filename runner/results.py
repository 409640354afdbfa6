"""What one run found: scores, their means with the counts they are over, and all that is needed to compare it.

A result is a folder of plain files; tracking stores copies of them and never the other way round.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from io import BytesIO
from itertools import islice
from os import SEEK_END
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from adapters.schema import SCHEMA_VERSION, Definition, JudgeCard, Question, Record, Score, from_json, to_json
from runner.errors import DataError
from runner.stored import OF_LINES, Columns, Lines, StoredScores, columns_of, identity, parsed, refused

if TYPE_CHECKING:
    from runner.diagnosis.findings import Fault, FaultName
    from runner.drift import Drift, Standing

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean of one definition over one set of questions.

    value is None when no question has a value. n counts the questions with a value; failed and not_applicable count
    the others, so that n + failed + not_applicable is the number of questions.
    """

    value: float | None
    n: int
    failed: int
    not_applicable: int

    @property
    def of(self) -> int:
        """How many questions there are in all."""
        return self.n + self.failed + self.not_applicable


def mean(scores: Iterable[Score]) -> Mean:
    """The mean over the computed scores, with the counts of the others. Summed exactly (math.fsum), so that the order
    of questions does not change the last digit."""
    from math import fsum

    by_status: dict[str, list[Score]] = {"computed": [], "failed": [], "not_applicable": []}
    for score in scores:
        by_status[score.status].append(score)
    values = [score.value for score in by_status["computed"] if score.value is not None]
    return Mean(
        fsum(values) / len(values) if values else None,
        len(values),
        len(by_status["failed"]),
        len(by_status["not_applicable"]),
    )


@dataclass(frozen=True, slots=True)
class Usage:
    """What judging cost, or a stage that asks a model. calls: replies of the judge, those to `structured=auto` and
    embeddings not counted; cached of them were paid for before, repaired of them were asked for because the one before
    could not be read. tokens: in and out, of cached replies too; None where they are unknown for one reply. cost: US
    dollars, the judge's embeddings included; None = unknown. seconds: of all measurements (of all calls of a stage),
    which overlap.
    """

    calls: int = 0
    cached: int = 0
    repaired: int = 0
    tokens: int | None = None
    cost: float | None = None
    seconds: float = 0.0


def usage(parts: Iterable[Score | Usage]) -> Usage | None:
    """What scores or usages come to; None where nothing was judged."""
    from math import fsum

    asked = [part for part in parts if isinstance(part, Usage) or part.judge]
    if not asked:
        return None
    tokens = [part.tokens for part in asked if part.calls]
    costs = [part.cost for part in asked]  # embeddings cost without a call
    return Usage(
        calls=sum(part.calls for part in asked),
        cached=sum(part.cached for part in asked),
        repaired=sum(part.repaired for part in asked),
        tokens=sum(n for n in tokens if n is not None) if tokens and None not in tokens else None,
        cost=fsum(cost for cost in costs if cost is not None) if costs and None not in costs else None,
        seconds=fsum(part.seconds for part in asked),
    )


@dataclass(frozen=True)
class RunResult:
    """One run, complete. `scores` holds a score for every definition and question; `definitions` is keyed by
    Definition.key; judge is None where no definition asks one; `calls` counts the stage outputs that were computed and
    reused; times are UTC with Z. drift: the judge on its frozen sample; None where it has none. stages: what the stages
    that ask a model cost in this run, by config group; what was read from the store was not asked. faults: what went
    wrong, by question id; see runner.diagnosis.findings.Diagnosed. tracking: the MLflow run that has a copy
    (experiment, run_id, parent_run_id, uri without credentials); None where tracking is off."""

    name: str
    config: Mapping[str, Any]
    config_fingerprint: str
    choices: Mapping[str, str]
    dataset: Mapping[str, Any]
    definitions: Mapping[str, Definition]
    scores: tuple[Score, ...]
    records: tuple[Record, ...]
    questions: tuple[Question, ...]
    environment: Mapping[str, Any]
    calls: Mapping[str, Mapping[str, int]]
    started: str
    seconds: float
    judge: JudgeCard | None = None
    drift: Drift | None = None
    stages: Mapping[str, Usage] = field(default_factory=dict)
    faults: Mapping[str, tuple[Fault, ...]] = field(default_factory=dict)
    tracking: Mapping[str, str | None] | None = None

    def by_definition(self) -> dict[str, dict[str, Score]]:
        """Scores by definition key, then by question id."""
        table: dict[str, dict[str, Score]] = {key: {} for key in self.definitions}
        for score in self.scores:
            table[score.definition][score.question_id] = score
        return table

    def means(self, questions: Iterable[str] | None = None) -> dict[str, Mean]:
        """The mean of every definition, over all questions or over those with the given ids."""
        wanted = None if questions is None else set(questions)
        return {
            key: mean(s for s in scores.values() if wanted is None or s.question_id in wanted)
            for key, scores in self.by_definition().items()
        }

    def usage(self) -> dict[str, Usage]:
        """What judging each definition cost; those that ask no judge are left out."""
        found = {key: usage(scores.values()) for key, scores in self.by_definition().items()}
        return {key: used for key, used in found.items() if used}

    def slices(self) -> dict[str, list[str]]:
        """Question ids by slice, by origin (`origin:synthetic`) and by split (`split:held_out`)."""
        groups: dict[str, list[str]] = {}
        for question in self.questions:
            for name in (*question.slices, f"origin:{question.origin}", f"split:{question.split}"):
                groups.setdefault(name, []).append(question.id)
        return groups

    def fault_counts(self) -> dict[FaultName, int]:
        """Questions by their first fault; those that no question has are left out."""
        from runner.diagnosis.findings import counted

        return counted(found[0].name for found in self.faults.values() if found)

    def summary(self) -> dict[str, Any]:
        """Everything but the records and the single scores, ready for JSON."""
        return {
            "schema_version": SCHEMA_VERSION,
            "name": self.name,
            "config_fingerprint": self.config_fingerprint,
            "choices": dict(self.choices),
            "dataset": dict(self.dataset),
            "means": {key: asdict(value) for key, value in self.means().items()},
            "slices": {
                name: {key: asdict(value) for key, value in self.means(ids).items() if value.n}
                for name, ids in self.slices().items()
            },
            "definitions": {key: definition.card() for key, definition in self.definitions.items()},
            "judge": asdict(self.judge) if self.judge else None,
            "drift": asdict(self.drift) if self.drift else None,
            "faults": self.fault_counts(),
            "usage": {
                "run": asdict(total) if (total := usage(self.scores)) else None,
                "definitions": {key: asdict(used) for key, used in self.usage().items()},
                "stages": {stage: asdict(used) for stage, used in self.stages.items()},
            },
            "environment": dict(self.environment),
            "calls": {kind: dict(counts) for kind, counts in self.calls.items()},
            "tracking": dict(self.tracking) if self.tracking else None,
            "started": self.started,
            "seconds": self.seconds,
        }


SUMMARY, CONFIG, RECORDS, SCORES, SCORES_TABLE, QUESTIONS, TABLE = (
    "summary.json",
    "config.yaml",
    "records.jsonl",
    "scores.jsonl",
    "scores.parquet",
    "questions.jsonl",
    "per_question.csv",
)
FILES = (SUMMARY, CONFIG, RECORDS, SCORES, SCORES_TABLE, QUESTIONS, TABLE)
"""The files of a result folder."""
RECORDING = "judge_replies.jsonl"
"""What a judge that costs money or minutes replied, written as it came; `judge=replay` answers from it."""


def write(result: RunResult, folder: Path) -> list[Path]:
    """Write the files of `result` into `folder` and return their paths; the summary comes last, so a folder that has
    one is whole. The configuration must already be free of secrets."""
    folder.mkdir(parents=True, exist_ok=True)
    _write_text(folder / CONFIG, _yaml(result.config))
    _write_text(folder / RECORDS, _lines(result.records))
    scores = _lines(result.scores)
    _write_text(folder / SCORES, scores)
    write_parquet(folder / SCORES_TABLE, result.scores, identity([scores.encode("utf-8")]))
    _write_text(folder / QUESTIONS, _lines(result.questions))
    _write_table(folder / TABLE, result)
    _write_text(folder / SUMMARY, json.dumps(result.summary(), ensure_ascii=False, indent=1, allow_nan=False) + "\n")
    return [folder / name for name in FILES]


def read_scores(path: Path) -> list[Score]:
    """The scores of a result folder's scores.jsonl."""
    return [from_json(Score, line) for line in path.read_text(encoding="utf-8").split("\n") if line]


@dataclass(frozen=True)
class StoredRun:
    """A result folder: its summary, its configuration, and records, questions and scores (by definition) by question
    id. Of large files these are read when they are asked for, and then raise DataError where a line is broken."""

    folder: Path
    summary: Mapping[str, Any]
    config: Mapping[str, Any]
    questions: Mapping[str, Question]
    records: Mapping[str, Record]
    scores: Mapping[str, Mapping[str, Score]]

    @cached_property
    def definitions(self) -> dict[str, Definition]:
        """The cards of the definitions, by key."""
        cards = self.summary["definitions"]
        return {
            key: Definition(**{name: value for name, value in card.items() if name != "fingerprint"})
            for key, card in cards.items()
        }

    @cached_property
    def columns(self) -> Columns:
        """The scores as arrays, without reading each line of a large file."""
        return self.scores.columns if isinstance(self.scores, StoredScores) else columns_of(self.scores)

    @cached_property
    def slices(self) -> dict[str, list[str]]:
        """Question ids by origin (`origin:synthetic`), by split (`split:held_out`) and by slice."""
        groups: dict[str, list[str]] = {}
        if isinstance(self.questions, Lines):
            found = (
                (each["id"], each.get("origin", "real"), each.get("split", "tune"), each.get("slices", ()))
                for each in self.questions.fields()
            )
        else:
            found = ((each.id, each.origin, each.split, each.slices) for each in self.questions.values())
        for id, origin, split, slices in found:
            for name in (f"origin:{origin}", f"split:{split}", *slices):
                groups.setdefault(name, []).append(id)
        return groups

    @property
    def trial(self) -> Mapping[str, Any]:
        """The place of the run in its sweep (runner.config.Trial); empty where the configuration says nothing."""
        found = self.config.get("trial")
        return found if isinstance(found, dict) else {}

    @property
    def drift(self) -> Drift | None:
        """What was measured of the judge on its frozen sample; None where it has none, or nothing was measured. Raises
        DataError."""
        from pydantic import ValidationError

        from runner.drift import Drift

        found = self.summary.get("drift")
        try:
            return from_json(Drift, json.dumps(found)) if found else None
        except ValidationError as error:
            fault = error.errors()[0]
            place = ".".join(map(str, ("drift", *fault["loc"])))
            told = f"{SUMMARY}: {place}: {fault['msg']}"
            raise DataError(f"the result folder {self.folder} cannot be read: {told}. Make the run again") from error

    @property
    def standing(self) -> Standing | None:
        """Where the judge stood on its frozen sample; None where it has none, or it was not measured. Raises
        DataError."""
        return self.drift.standing if self.drift else None

    def judged(self) -> list[str]:
        """Keys of the definitions that ask a judge."""
        return [key for key, card in self.summary["definitions"].items() if card["calls"] != "0"]


SMALL = 4_000_000
"""Bytes up to which a file is read as a whole, so that all that is wrong with it is told at once."""


def read_run(folder: Path) -> StoredRun:
    """Read a result folder; see StoredRun. Raises DataError."""
    import yaml

    missing = [name for name in (SUMMARY, QUESTIONS, RECORDS, SCORES, CONFIG) if not (folder / name).is_file()]
    if missing:
        raise DataError(f"{folder} is no result folder: it has no {' and no '.join(missing)}")
    summary = _mapping(folder / SUMMARY, json.loads)
    if lost := [key for key in ("name", "started", "dataset", "definitions", "judge") if key not in summary]:
        told = f"{SUMMARY} has no {' and no '.join(lost)}"
        raise DataError(f"the result folder {folder} cannot be read: {told}. Make the run again")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast, where PyYAML was built with it
    config = _mapping(folder / CONFIG, lambda text: yaml.load(text, loader))
    try:
        return StoredRun(
            folder=folder,
            summary=summary,
            config=config,
            questions=_by_id(folder / QUESTIONS, Question, "id"),
            records=_by_id(folder / RECORDS, Record, "question_id"),
            scores=_scores(folder),
        )
    except OSError as error:
        raise DataError(f"the result folder {folder} cannot be read: {error}. Make the run again") from error


def _mapping(path: Path, load: Callable[[str], Any]) -> dict[str, Any]:
    from yaml import YAMLError

    try:
        found = load(path.read_text(encoding="utf-8"))
        if not isinstance(found, dict):
            raise ValueError("it holds no mapping")
        return found
    except (OSError, ValueError, RecursionError, YAMLError) as error:
        said = " ".join(str(error).split())
        raise DataError(
            f"the result folder {path.parent} cannot be read: {path.name}: {said[:300]}. Make the run again"
        ) from error


def _by_id(path: Path, kind: type[T], field: str) -> Mapping[str, T]:
    lines = Lines(path, kind, field)
    return lines if _large(path) else lines.whole()


def _scores(folder: Path) -> Mapping[str, Mapping[str, Score]]:
    path = folder / SCORES
    if _large(path):
        return StoredScores(path, folder / SCORES_TABLE)
    scores: dict[str, dict[str, Score]] = {}
    start = 0
    for line in BytesIO(path.read_bytes()):
        if line != b"\n":
            score = parsed(Score, line, path, start)
            if scores.setdefault(score.definition, {}).setdefault(score.question_id, score) is not score:
                raise refused(path, start, f"{score.definition} on {score.question_id!r} stands twice")
        start += len(line)
    return scores


def _large(path: Path) -> bool:
    """Whether a file is read piece by piece. Raises DataError where the end of its last line is missing."""
    with path.open("rb") as file:
        size = file.seek(0, SEEK_END)
        file.seek(max(0, size - 3))
        if size and not file.read().rstrip().endswith(b"}"):
            told = f"{path.name} was cut off: its last line has no end"
            raise DataError(f"the result folder {path.parent} cannot be read: {told}. Make the run again")
    return size > SMALL


def _yaml(config: Mapping[str, Any]) -> str:
    import yaml

    return str(yaml.safe_dump(dict(config), allow_unicode=True, sort_keys=False, width=110))


def _lines(values: Sequence[Any]) -> str:
    return "".join(to_json(value) + "\n" for value in values)


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")


ROWS = 50_000
"""Scores that are written at once."""


def write_parquet(path: Path, scores: Iterable[Score], lines: str) -> None:
    """The rows of scores.jsonl with the same columns; `judge.settings`, which has no fixed shape, is JSON text. lines:
    the identity of that file, by which a reader knows that the table belongs to it."""
    import pyarrow
    from pyarrow import json as pyarrow_json
    from pyarrow import parquet

    text, whole, number = pyarrow.string(), pyarrow.int64(), pyarrow.float64()
    verdict = {"unit": text, "native": text, "ours": text, "reason": text, "rank": whole}
    judge = {
        **dict.fromkeys(("provider", "model", "revision"), text),
        "temperature": number,
        "seed": whole,
        "max_tokens": whole,
        **dict.fromkeys(("host", "embeddings", "settings", "fingerprint"), text),
    }
    schema = pyarrow.schema(
        [
            *((name, text) for name in ("question_id", "definition", "fingerprint")),
            ("value", number),
            ("status", text),
            ("reason", text),
            ("evidence", pyarrow.list_(pyarrow.struct(list(verdict.items())))),
            ("native_value", number),
            ("judge", pyarrow.struct(list(judge.items()))),
            *((name, whole) for name in ("calls", "cached", "repaired", "tokens")),
            *((name, number) for name in ("cost", "seconds")),
            *((name, whole) for name in ("samples", "samples_failed")),
            ("spread", number),
            ("flaky", pyarrow.bool_()),
        ]
    )
    explicit = pyarrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error")
    remaining = iter(scores)
    with parquet.ParquetWriter(path, schema.with_metadata({OF_LINES: lines})) as file:
        while rows := [asdict(score) for score in islice(remaining, ROWS)]:
            for row in rows:
                if row["judge"]:
                    row["judge"]["settings"] = json.dumps(row["judge"]["settings"], ensure_ascii=False, sort_keys=True)
            # Not Table.from_pylist: it imports pandas, for two seconds, to ask whether a value is one of its own.
            text = "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows).encode()
            table = pyarrow_json.read_json(BytesIO(text), pyarrow_json.ReadOptions(block_size=len(text)), explicit)
            file.write_table(table)


def _write_table(path: Path, result: RunResult) -> None:
    """One row a question: what a person reads beside the means. An empty cell is a score without a value, or a question
    in which no fault was found; `fault` is the first one. Judgements of several samples have their spread, and whether
    they are flaky, in columns of their own."""
    import csv

    from runner.human_labels import guarded

    scores = result.by_definition()
    records = {record.question_id: record for record in result.records}
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        sampled = [key for key in scores if any(score.samples > 1 for score in scores[key].values())]
        more = [f"{key} {what}" for key in sampled for what in ("spread", "flaky")]
        rows.writerow(
            [
                *("id", "question", "slices", "answerable", "answer", "reference_answer", "refused"),
                *("fault", "evidence", *scores, *more),
            ]
        )
        for question in result.questions:
            record = records[question.id]
            fault = next(iter(result.faults.get(question.id, ())), None)
            texts = (question.id, question.text, " ".join(question.slices), record.answer, question.reference_answer)
            id, text, slices, answer, reference = (guarded(each) if each else each for each in texts)
            rows.writerow(
                [
                    id,
                    text,
                    slices,
                    question.answerable,
                    answer,
                    reference,
                    record.refused,
                    fault.name if fault else None,
                    guarded(fault.evidence) if fault else None,
                    *(scores[key][question.id].value for key in scores),
                    *(cell for key in sampled for cell in _sampled(scores[key][question.id])),
                ]
            )


def _sampled(score: Score) -> tuple[float | None, bool | None]:
    return (score.spread, score.flaky) if score.samples > 1 else (None, None)
