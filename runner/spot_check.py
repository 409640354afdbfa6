"""Spot checks by people: a sample of a run's answers as a local page (or a table), and the verdicts back into the test
set.

The sample is stratified and every question has the same chance to be in it, so that figures over it hold for the run
(runner.agreement.corrected_mean asks for that).
"""

from __future__ import annotations

import csv
import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from random import Random
from typing import Any

from adapters.judges.labels import HumanVerdicts
from adapters.schema import Record, Score, fingerprint
from adapters.sentences import sentence_spans
from runner.align import OF_CLAIMS
from runner.errors import ConfigError, DataError
from runner.human_labels import COLUMNS, Label, guarded, read_labels
from runner.outputs import write_whole
from runner.results import StoredRun, read_run

TEMPLATE = Path(__file__).with_name("review.html")
PLACE = "{{ sample }}"
BANDS = ("low", "middle", "high")
"""Thirds of a definition's range."""
SCORE_ALONE = (
    "a score does not say which claims are supported, so it cannot be put into `human`: mark the claims in its place "
    "(`paribus judge sample` makes a page for that), or, where people were asked how far the answer agrees with the "
    "reference or addresses the question, write the score as a share of its scale into human.agreement or "
    "human.addresses_question by hand; `paribus judge align` takes the line as it is"
)


@dataclass(frozen=True, slots=True)
class Drawn:
    """One answer to judge, with the claims to mark; the judge's verdicts are left out, so that they sway nobody."""

    id: str
    question: str
    answer: str
    contexts: tuple[str, ...]
    reference: str | None
    split: str
    record: str
    claims: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Stratum:
    """Answers to questions of one first slice whose judged value is in one band (low, middle, high, failed,
    not_applicable)."""

    slice: str
    band: str
    of: int
    drawn: int


@dataclass(frozen=True)
class Sample:
    """What was drawn from a run. definition: whose claims and bands. unanswered: questions without an answer, which
    nobody can judge; they are in no stratum."""

    run: str
    definition: str
    seed: int
    drawn: tuple[Drawn, ...]
    strata: tuple[Stratum, ...]
    unanswered: int


def draw(folder: Path, share: float, definition: str | None = None, seed: int = 0) -> Sample:
    """Draw `share` of the answered questions of the run in `folder`, spread over slices and bands of the judge's value.

    Systematic sampling from a list in order of strata, shuffled within each: a stratum of m answers gives share * m of
    them, rounded down or up, and each answer has the same chance. Raises ParibusError.
    """
    if not 0 < share <= 1:
        raise ConfigError(f"--share {share:g} must be above 0 and at most 1")
    run = read_run(folder)
    key = _definition(run, definition)
    low, high = run.summary["definitions"][key]["range"]
    strata: dict[tuple[str, str], list[str]] = {}
    answered = [name for name, record in run.records.items() if (record.answer or "").strip()]
    for name in answered:
        group = next(iter(run.questions[name].slices), "no slice")
        strata.setdefault((group, _band(run.scores[key][name], low, high)), []).append(name)
    random = Random(seed)
    ordered = []
    for stratum in sorted(strata):
        ordered += random.sample(strata[stratum], len(strata[stratum]))
    start = random.random()
    # A place is drawn when a whole number lies in its stretch of `share`; the small number mends float error.
    counted = [math.floor(start + share * place + 1e-9) for place in range(len(ordered) + 1)]
    chosen = {name for place, name in enumerate(ordered) if counted[place + 1] > counted[place]}
    if not chosen:
        raise ConfigError(f"--share {share:g} of {len(answered)} answers is less than one; raise it")
    return Sample(
        run=folder.resolve().name,
        definition=key,
        seed=seed,
        # In the order of the run: that of the strata would tell what the judge thinks.
        drawn=tuple(_drawn(run, name, run.scores[key][name]) for name in answered if name in chosen),
        strata=tuple(
            Stratum(*stratum, len(strata[stratum]), sum(name in chosen for name in strata[stratum]))
            for stratum in sorted(strata)
        ),
        unanswered=len(run.records) - len(answered),
    )


def _definition(run: StoredRun, wanted: str | None) -> str:
    keys = run.judged()
    if not keys:
        raise ConfigError(f"{run.folder} has no judged definition; make a run with metrics=faithfulness")
    if wanted is not None and wanted not in keys:
        raise ConfigError(f"{wanted} is no judged definition of {run.folder}; they are {', '.join(keys)}")
    return wanted or keys[0]


def _band(score: Score, low: float, high: float) -> str:
    if score.value is None:
        return score.status
    return BANDS[min(int(3 * (score.value - low) / (high - low)), 2)]


def _drawn(run: StoredRun, name: str, score: Score) -> Drawn:
    question, record = run.questions[name], run.records[name]
    return Drawn(
        id=name,
        question=question.text,
        answer=record.answer or "",
        contexts=tuple(chunk.text for chunk in record.context),
        reference=question.reference_answer,
        split=question.split,
        record=f"{run.folder.resolve().name}/{name}",
        claims=_claims(record, score),
    )


def _claims(record: Record, score: Score) -> tuple[str, ...]:
    """The claims that the judge found, or the sentences of the answer where it found none."""
    found = [verdict.unit for verdict in score.evidence if verdict.ours in OF_CLAIMS and verdict.unit.strip()]
    answer = record.answer or ""
    sentences = [answer[start:end].strip() for start, end in sentence_spans(answer)]
    first: dict[str, str] = {}  # HumanVerdicts holds each text once, white space aside
    for unit in found or filter(None, sentences):
        first.setdefault(" ".join(unit.split()), unit)
    return tuple(first.values())


# The page and the table.


def write(sample: Sample, page: Path, table: Path | None = None) -> list[Path]:
    """Write the page, and the table where it is wanted; returns what was written. Raises StoreError."""
    write_whole(page, page_text(sample))
    if table is None:
        return [page]
    write_whole(table, table_text(sample).encode("utf-8-sig"))  # spreadsheets take the mark for "UTF-8"
    return [page, table]


def _fields(drawn: Drawn) -> dict[str, Any]:
    return {
        "id": drawn.id,
        "question": drawn.question,
        "answer": drawn.answer,
        "contexts": list(drawn.contexts),
        "reference": drawn.reference,
        "split": drawn.split,
        "record": drawn.record,
    }


def page_text(sample: Sample) -> str:
    """The page: one file that asks for nothing from anywhere. Texts stand in it as JSON and are shown as text only."""
    items = [{**_fields(drawn), "claims": list(drawn.claims)} for drawn in sample.drawn]
    data = {"name": fingerprint(items), "items": items}
    # "<" would let a text of others close the script element.
    embedded = json.dumps(data, ensure_ascii=True).replace("<", "\\u003c")
    return TEMPLATE.read_text(encoding="utf-8").replace(PLACE, embedded)


def table_text(sample: Sample) -> str:
    """The table as CSV, to be filled in: who, when and verdict (supported, contradicted, absent; empty = no claim)."""
    out = StringIO()
    rows = csv.writer(out)
    rows.writerow(COLUMNS)
    for drawn in sample.drawn:
        fields = {**_fields(drawn), "contexts": json.dumps(drawn.contexts, ensure_ascii=False)}
        for claim in drawn.claims:
            rows.writerow([guarded(str({**fields, "claim": claim}.get(name) or "")) for name in COLUMNS])
    return out.getvalue()


# Back into the test set.


@dataclass(frozen=True, slots=True)
class PutBack:
    """What `put_back` did: (question id, who, when, record) of each line that changed, and how many were the same."""

    changed: tuple[tuple[str, str | None, str | None, str | None], ...]
    unchanged: int


def put_back(review: Path, questions: Path, replace: bool = False) -> PutBack:
    """Write the verdicts of `review` into the field `human` of the questions of their ids, and no other line.

    The shape is adapters.judges.labels.HumanVerdicts, which judge=labels reads. What people said of the same answer
    besides its claims stays. replace: whether claims that are there already, or verdicts on another answer, may go.
    Raises DataError naming every label that cannot be put back, and StoreError; nothing is written then.
    """
    labels = {label.id: label for label in read_labels(review)}
    try:
        lines = questions.read_bytes().splitlines(keepends=True)
    except OSError as error:
        raise DataError(f"cannot read {questions}: {error.strerror}") from error
    faults = [f"{label.line}: {SCORE_ALONE}" for label in labels.values() if label.claims is None]
    found: Counter[str] = Counter()
    changed: list[Label] = []
    for place, raw in enumerate(lines):
        row = _row(raw)
        label = labels.get(row.get("id", "")) if row is not None else None
        if row is None or label is None or label.claims is None:
            continue
        found[label.id] += 1
        human, fault = _merged(row.get("human"), label, replace)
        if fault:
            faults.append(f"{label.line}: question {label.id} ({questions}:{place + 1}) {fault}")
        elif human != row.get("human"):
            text = json.dumps({**row, "human": human}, ensure_ascii=False)
            mark = b"\xef\xbb\xbf" if raw.startswith(b"\xef\xbb\xbf") else b""
            lines[place] = mark + text.encode() + raw[len(raw.rstrip(b"\r\n")) :]
            changed.append(label)
    for label in labels.values():
        if label.claims is not None and found[label.id] != 1:
            where = f"stands {found[label.id]} times" if found[label.id] else "is not"
            faults.append(f"{label.line}: question {label.id} {where} in {questions}")
    if faults:
        count = f"{len(faults)} fault{'s' * (len(faults) > 1)}"
        raise DataError("\n".join([f"nothing was put into {questions}: {count}", *faults]))
    if changed:
        write_whole(questions, b"".join(lines))
    return PutBack(
        tuple((label.id, label.who, label.when, label.record) for label in changed), len(labels) - len(changed)
    )


def _row(raw: bytes) -> dict[str, Any] | None:
    """The object on a line; None where there is none, which is for the reader of test sets to complain about."""
    try:
        row = json.loads(raw.decode("utf-8-sig"))
    except ValueError:
        return None
    return row if isinstance(row, dict) else None


def _merged(old: Any, label: Label, replace: bool) -> tuple[dict[str, Any], str | None]:
    """The new `human` of a question, and why it must not take the place of the old one."""
    verdicts = HumanVerdicts(
        answer=label.answer,
        context=tuple(text for text in label.contexts if text.strip()),
        claims=label.claims,
        who=label.who,
        when=label.when,
        record=label.record,
    )
    new = verdicts.model_dump(mode="json", exclude_unset=True, exclude_none=True)
    if not isinstance(old, Mapping) or old == new:
        return new, None
    # What was said of the reference's claims holds for the context beside it, and must not get another one.
    same = _alike(old.get("answer"), new["answer"]) and (
        old.get("context") == new["context"] or not {"context", "reference_claims"} & set(old)
    )
    if same and "claims" not in old:
        return {**old, **new}, None
    if same and {**old, **new} == old:
        return dict(old), None
    if replace:
        return ({**old, **new} if same else new), None
    what = "has claims of the same answer" if same else "has what people said of another answer or context"
    return {}, f"{what} in `human`; --replace puts these in their place"


def _alike(text: Any, other: str) -> bool:
    return str(text).split() == other.split()
