"""The accepted baseline: what a later run is compared with, in one small file that is committed and reviewed.

    baseline = accepted(read_run(folder))           # paribus accept RUN
    Path("baseline.json").write_text(encoded(baseline))
    baseline = read(Path("baseline.json"))

One line a definition, a slice and a question, so that a change of one is one line of a diff.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cached_property
from math import fsum, isnan, nan
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, model_validator

from runner.component import explain
from runner.drift import Standing
from runner.errors import ConfigError, DataError
from runner.results import Mean, StoredRun
from runner.whole import EPSILON

BASELINE_VERSION = 1
"""Changes when a field of the file changes its meaning."""


class Strict(BaseModel):
    """Read as it stands: no unknown key, no other type, no NaN."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class AcceptedRun(Strict):
    """Where the figures come from. results: the last two parts of the result folder's path. choices: the option chosen
    in each config group."""

    name: str
    results: str
    started: AwareDatetime
    config_fingerprint: str
    choices: dict[str, str]


class AcceptedDataset(Strict):
    """The test set. checksum decides whether a comparison is allowed."""

    name: str
    version: str | None = None
    checksum: str


class AcceptedDefinition(Strict):
    """What a value means, and the mean over all questions. version: of the framework. judges: fingerprints of those
    that gave the values; empty = no judge was asked."""

    key: str
    fingerprint: str
    framework: str
    version: str
    direction: Literal["higher", "lower"]
    range: tuple[float, float]
    judges: tuple[str, ...] = ()
    mean: Mean


class AcceptedQuestion(Strict):
    """The values of one question, in the order of the definitions; null = no value. flaky: keys of the definitions
    whose verdict flips between samples."""

    id: str
    origin: Literal["real", "synthetic"] = "real"
    split: Literal["tune", "held_out"] = "tune"
    slices: tuple[str, ...] = ()
    values: tuple[float | None, ...]
    flaky: tuple[str, ...] = ()

    @property
    def groups(self) -> tuple[str, ...]:
        """The slices that it is in, by origin and by split too."""
        return (*self.slices, f"origin:{self.origin}", f"split:{self.split}")


class AcceptedSlice(Strict):
    """The means over the questions of a slice, in the order of the definitions; null = no question has a value. n: how
    many have one, failed: on how many the definition failed."""

    means: tuple[float | None, ...]
    n: tuple[int, ...]
    failed: tuple[int, ...]


class Accepted(Strict):
    """The accepted baseline.

    accepted: when. judges: fingerprint -> what people call the judge. standing: where the judge stood on its frozen
    sample; null = not measured. slices: by name, `origin:synthetic` and `split:held_out` among them.
    questions: may be empty, for means that come from elsewhere: then only means can be compared (`on: mean`), and only
    over as many questions.
    """

    schema_version: Literal[1]
    accepted: AwareDatetime
    run: AcceptedRun
    dataset: AcceptedDataset
    judges: dict[str, str] = Field(default_factory=dict)
    standing: Standing | None = None
    definitions: tuple[AcceptedDefinition, ...] = Field(min_length=1)
    slices: dict[str, AcceptedSlice] = Field(default_factory=dict)
    questions: tuple[AcceptedQuestion, ...] = ()

    @model_validator(mode="after")
    def _agree(self) -> Accepted:
        keys = [definition.key for definition in self.definitions]
        _refuse_twice("definitions", keys)
        _refuse_twice("questions", [question.id for question in self.questions])
        for place, question in enumerate(self.questions):
            if len(question.values) != len(keys):
                told = (
                    f"has {len(question.values)} for {len(keys)} definitions; give one each, null where there is none"
                )
                raise ValueError(f"questions.{place}.values of {question.id!r} {told}")
            if unknown := [key for key in question.flaky if key not in keys]:
                raise ValueError(f"questions.{place}.flaky of {question.id!r} names {unknown[0]!r}, no definition here")
        for place, definition in enumerate(self.definitions):
            if lost := [judge for judge in definition.judges if judge not in self.judges]:
                raise ValueError(f"definitions.{place}.judges of {definition.key} names {lost[0]!r}, not in `judges`")
            for id, value in self.values[definition.key].items():
                _refuse_outside(f"the value of {definition.key} for question {id!r}", value, definition.range)
            _refuse_other(f"definitions.{place}.mean", definition, definition.mean, self._values_of(definition.key))
        for name, slice in self.slices.items():
            if {len(slice.means), len(slice.n), len(slice.failed)} != {len(keys)}:
                raise ValueError(f"slices.{name} has not one mean, n and failed for each of {len(keys)} definitions")
            for definition in self.definitions:
                mean = self.mean(definition.key, name)
                assert mean
                _refuse_other(f"slices.{name}", definition, mean, self._values_of(definition.key, name))
        return self

    def _values_of(self, key: str, slice: str | None = None) -> list[float] | None:
        if not self.questions:
            return None
        members = self.members(slice)
        return [value for id, value in self.values[key].items() if id in members]

    @cached_property
    def by_key(self) -> dict[str, AcceptedDefinition]:
        """The definitions by key."""
        return {definition.key: definition for definition in self.definitions}

    @cached_property
    def values(self) -> dict[str, dict[str, float]]:
        """Values by definition key, then by question id; questions without one are absent."""
        found: dict[str, dict[str, float]] = {definition.key: {} for definition in self.definitions}
        for question in self.questions:
            for definition, value in zip(self.definitions, question.values, strict=True):
                if value is not None:
                    found[definition.key][question.id] = value
        return found

    @cached_property
    def _groups(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for question in self.questions:
            for name in question.groups:
                found.setdefault(name, set()).add(question.id)
        return found

    def members(self, slice: str | None) -> Collection[str]:
        """Ids of the questions in a slice; None = all."""
        return {question.id for question in self.questions} if slice is None else self._groups.get(slice, set())

    def flaky(self, key: str) -> set[str]:
        """Ids of the questions that are flaky under a definition."""
        return {question.id for question in self.questions if key in question.flaky}

    def mean(self, key: str, slice: str | None) -> Mean | None:
        """The mean of a definition, over all questions or over a slice; None where there is none."""
        if key not in self.by_key or (slice is not None and slice not in self.slices):
            return None
        if slice is None:
            return self.by_key[key].mean
        found, place = self.slices[slice], list(self.by_key).index(key)
        return Mean(found.means[place], found.n[place], found.failed[place], 0)

    def __str__(self) -> str:
        return f"{self.run.name} ({self.run.results}), accepted {self.accepted:%Y-%m-%d}"


def _refuse_twice(what: str, names: list[str]) -> None:
    if len({*names}) != len(names):
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise ValueError(f"{what} has {twice!r} twice; keep one")


def _refuse_outside(what: str, value: float, range: tuple[float, float]) -> None:
    if not range[0] - EPSILON <= value <= range[1] + EPSILON:
        raise ValueError(f"{what} is {value:g}, outside its range {range[0]:g} to {range[1]:g}")


def _refuse_other(place: str, definition: AcceptedDefinition, mean: Mean, values: list[float] | None) -> None:
    if (mean.value is None) != (mean.n == 0) or min(mean.n, mean.failed, mean.not_applicable) < 0:
        raise ValueError(f"{place} of {definition.key} is {mean.value} over {mean.n} questions, which cannot be")
    if mean.value is not None:
        _refuse_outside(f"{place} of {definition.key}", mean.value, definition.range)
    if values is None:
        return
    found = fsum(values) / len(values) if values else None
    if mean.n != len(values) or (found is not None and abs(found - (mean.value or 0.0)) > EPSILON):
        raise ValueError(
            f"{place} of {definition.key} is {mean.value} over {mean.n}, and the values of the questions come to "
            f"{found} over {len(values)}; accept the run again instead of editing one of them"
        )


def accepted(run: StoredRun, when: datetime | None = None) -> Accepted:
    """A run as a baseline. when: the time of acceptance; None = now. Raises DataError where the folder is not whole, or
    holds no definition."""
    if not run.definitions:
        raise DataError(f"no definition was computed in the run {run.folder}, so that nothing can be held to it")
    try:
        return Accepted.model_validate_json(json.dumps(_parts(run, when or datetime.now(UTC)), default=str))
    except (KeyError, TypeError, AttributeError) as error:
        told = f"is not whole ({type(error).__name__}: {error})"
        raise DataError(f"the result folder {run.folder} {told}; make the run again") from error
    except ValidationError as error:
        told = _explained(error, Accepted, "", "baseline")
        raise DataError(f"the result folder {run.folder} does not agree with itself: {told}") from None


def _parts(run: StoredRun, when: datetime) -> dict[str, Any]:
    summary = run.summary
    keys, columns = list(run.definitions), run.columns
    judges = {fingerprint: card for cards in columns.judges.values() for fingerprint, card in cards.items()}
    place = {id: place for place, id in enumerate(columns.ids)}
    values = {key: column.tolist() for key, column in columns.values.items()}
    flaky = {key: column.tolist() for key, column in columns.flaky.items()}

    def value(key: str, id: str) -> float | None:
        found = values[key][place[id]] if key in values and id in place else nan
        return None if isnan(found) else found

    return {
        "schema_version": BASELINE_VERSION,
        "accepted": when.isoformat(timespec="milliseconds"),
        "run": {
            "name": summary["name"],
            "results": "/".join(run.folder.resolve().parts[-2:]),
            "started": summary["started"],
            "config_fingerprint": summary["config_fingerprint"],
            "choices": summary["choices"],
        },
        "dataset": {name: summary["dataset"].get(name) for name in ("name", "version", "checksum")},
        "judges": {fingerprint: f"{card.provider} {card.model}" for fingerprint, card in judges.items()},
        "standing": asdict(run.standing) if run.standing else None,
        "definitions": [
            {
                "key": key,
                "fingerprint": definition.fingerprint,
                "framework": definition.framework,
                "version": definition.version,
                "direction": definition.direction,
                "range": definition.range,
                "judges": sorted(columns.judges.get(key, {})),
                "mean": summary["means"][key],
            }
            for key, definition in run.definitions.items()
        ],
        "slices": {
            name: {
                "means": [means.get(key, {}).get("value") for key in keys],
                "n": [means.get(key, {}).get("n", 0) for key in keys],
                "failed": [means.get(key, {}).get("failed", 0) for key in keys],
            }
            for name, means in summary["slices"].items()
        },
        "questions": [
            {
                "id": question.id,
                "origin": question.origin,
                "split": question.split,
                "slices": question.slices,
                "values": [value(key, question.id) for key in keys],
                "flaky": [
                    key for key in keys if key in flaky and question.id in place and flaky[key][place[question.id]]
                ],
            }
            for question in run.questions.values()
        ],
    }


def encoded(baseline: Accepted) -> str:
    """The text of the file."""
    whole = baseline.model_dump(mode="json")
    listed: Mapping[str, Callable[[Any], Iterable[str]]] = {
        "definitions": lambda rows: map(_line, rows),
        "questions": lambda rows: map(_line, rows),
        "slices": lambda rows: (f"{_line(name)}: {_line(means)}" for name, means in rows.items()),
    }
    parts = []
    for name, value in whole.items():
        if name in listed:
            opening, closing = "{}" if isinstance(value, dict) else "[]"
            inner = ",\n  ".join(listed[name](value))
            text = f"{opening}\n  {inner}\n {closing}" if inner else f"{opening}{closing}"
        else:
            text = _line(value)
        parts.append(f" {_line(name)}: {text}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def read(path: Path) -> Accepted:
    """Read an accepted baseline. Raises DataError that names the file, the key and what is allowed."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        raise DataError(f"cannot read {path}: {reason}; `paribus accept RUN --to {path}` writes it") from None
    version = _version(text, path)
    if version != BASELINE_VERSION:
        raise DataError(
            f"{path} has schema_version {version!r}, and {BASELINE_VERSION} can be read; accept the run again"
        )
    try:
        return Accepted.model_validate_json(text)
    except ValidationError as error:
        raise DataError(f"{path}: {_explained(error, Accepted, '', str(path))}") from None


def _version(text: str, path: Path) -> Any:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key for key, _ in pairs]
        if twice := [key for place, key in enumerate(keys) if key in keys[:place]]:
            raise ValueError(f"the key {twice[0]!r} stands twice")
        return dict(pairs)

    try:
        whole = json.loads(text, object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is no JSON ({error}); `paribus accept RUN --to {path}` writes it") from None
    if not isinstance(whole, dict) or "schema_version" not in whole:
        raise DataError(f"{path} has no schema_version, so it is no accepted baseline; `paribus accept` writes one")
    return whole["schema_version"]


def valid(kind: type[BaseModel], value: Any, prefix: str) -> Any:
    """`value` as `kind`. Raises ConfigError with every fault, each naming its key below `prefix`."""
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        raise ConfigError(_explained(error, kind, prefix, prefix)) from None


def _explained(error: ValidationError, kind: type[BaseModel], prefix: str, whole: str) -> str:
    """Every fault as one sentence; `whole` is what the outermost value is called."""
    told = []
    for fault in error.errors():
        if fault["loc"] or prefix:
            told.append(explain(fault, prefix, _keys(kind, fault["loc"][:-1])))
        elif fault["type"] == "value_error":
            told.append(str(fault["ctx"]["error"]))
        else:
            told.append(f"{whole}: {fault['msg']}")
    return "\n".join(told)


def _keys(kind: Any, place: Iterable[int | str]) -> tuple[str, ...]:
    """The keys that are known at a place below `kind`."""
    for step in place:
        fields = _model(kind)
        inner = fields.model_fields.get(str(step)) if fields else None
        kind = inner.annotation if inner else kind
    fields = _model(kind)
    return tuple(fields.model_fields) if fields else tuple(getattr(_dataclass(kind), "__slots__", ()))


def _model(kind: Any) -> type[BaseModel] | None:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return kind
    return next((found for part in get_args(kind) if (found := _model(part))), None)


def _dataclass(kind: Any) -> Any:
    if hasattr(kind, "__dataclass_fields__"):
        return kind
    return next((found for part in get_args(kind) if (found := _dataclass(part))), None)
