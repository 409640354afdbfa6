"""Reading a result folder of which all parts must be there and agree, because decisions hang on it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any

from adapters.schema import SCHEMA_VERSION, Definition, from_json
from runner.errors import DataError
from runner.results import SUMMARY, StoredRun, read_run

EPSILON = 1e-9
"""Two values of a definition that are closer than this are equal: floating point noise is far below, a change of one
verdict on one question of a million far above."""


def read_whole(folder: Path) -> StoredRun:
    """Read a result folder that this version of paribus wrote, to compare or accept it.

    Raises DataError, in one sentence, where a file cannot be read, a part is missing or is no such part, a question has
    no record or no score of a definition, scores have no definition or question, lie outside of their range, or come to
    another mean than the summary says.
    """
    run = read_run(folder)
    version = run.summary.get("schema_version")
    if version != SCHEMA_VERSION:
        told = f"schema_version {version!r}, and {SCHEMA_VERSION} can be read"
        raise DataError(f"{folder} was written by another version of paribus ({told}); make the run again")
    # Questions and scores are looked at only where the summary has no fault.
    fault = next(chain(_faults_of_summary(run), _faults_of_scores(run), _faults_of_questions(run)), None)
    if fault:
        raise DataError(f"the result folder {folder} is not whole: {fault}; make the run again")
    return run


def _faults_of_summary(run: StoredRun) -> Iterator[str]:
    from pydantic import ValidationError

    found = run.summary
    kinds: dict[str, Any] = {
        "name": str,
        "started": str,
        "dataset": dict,
        "judge": (dict, type(None)),
        "definitions": dict,
    }
    kinds |= {"means": dict, "slices": dict, "choices": dict, "config_fingerprint": str}
    for name, kind in kinds.items():
        if name not in found:
            yield f"{SUMMARY} has no {name}"
        elif not isinstance(found[name], kind):
            yield f"{name} in {SUMMARY} is {found[name]!r:.80}"
    if isinstance(found.get("started"), str):
        try:
            datetime.fromisoformat(found["started"])
        except ValueError:
            yield f"started in {SUMMARY} is {found['started']!r:.80}, no time"
    if isinstance(found.get("judge"), dict) and not {"provider", "model"} <= found["judge"].keys():
        yield f"judge in {SUMMARY} has no provider or no model"
    for key, card in found["definitions"].items() if isinstance(found.get("definitions"), dict) else ():
        try:
            definition = from_json(Definition, json.dumps(card))
            _ = run.definitions
        except (ValidationError, TypeError, AttributeError) as error:
            yield f"the card of {key} in {SUMMARY} cannot be read ({_said(error)})"
        else:
            if not definition.range[0] < definition.range[1]:
                yield f"the range of {key} in {SUMMARY} is {list(definition.range)}"
    _ = run.drift  # raises


def _said(error: Exception) -> str:
    return " ".join(str(error).partition("For further information")[0].split())[:200]


def _faults_of_scores(run: StoredRun) -> Iterator[str]:
    import numpy as np

    columns = run.columns
    lost = next((id for id in columns.ids if id not in run.questions), None)
    if lost is not None:
        yield f"there are scores of {lost!r} and no such question"
    for key, column in columns.values.items():
        if key not in run.definitions:
            yield f"there are scores of {key} and no definition of it"
            continue
        low, high = run.definitions[key].range
        outside = np.flatnonzero((column < low - EPSILON) | (column > high + EPSILON))
        if len(outside):
            id, value = columns.ids[int(outside[0])], float(column[outside[0]])
            yield f"the value of {key} for question {id!r} is {value:g}, outside its range {low:g} to {high:g}"
    for key in run.definitions:
        yield from _other_mean(key, run.summary["means"].get(key), columns.values.get(key, np.empty(0)))


def _faults_of_questions(run: StoredRun) -> Iterator[str]:
    for key in run.definitions:
        scores = run.scores.get(key, {})
        if len(scores) != len(run.questions):
            lost = next(id for id in run.questions if id not in scores)
            yield f"there is no score of {key} for question {lost!r}"
    for one, other, told in (
        (run.questions, run.records, "there is no record of question {!r}"),
        (run.records, run.questions, "there is a record of {!r} and no such question"),
    ):
        if (left := next((id for id in one if id not in other), None)) is not None:
            yield told.format(left)


def _other_mean(key: str, said: Any, column: Any) -> Iterator[str]:
    values = column[column == column]  # NaN is not itself
    mean = float(values.mean()) if len(values) else None
    if not isinstance(said, dict) or not isinstance(said.get("value"), (int, float, type(None))):
        yield f"the mean of {key} in {SUMMARY} is {said!r:.80}"
    elif said.get("n") != len(values) or not _same(said["value"], mean):
        told = f"the mean of {key} is {said['value']} over {said.get('n')}"
        yield f"{told}, and its scores come to {mean} over {len(values)}"


def _same(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return abs(one - other) <= EPSILON
