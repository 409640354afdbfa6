"""`paribus audit`: what a person asks for, from input to files, table and tracking."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from adapters.recording import RecordingError
from runner import console
from runner.app import composed
from runner.audit import files, material, scored, terminal
from runner.audit.comparison import THRESHOLD, audit
from runner.audit.findings import Audit, Family
from runner.audit.matching import SIMILAR
from runner.config import Tracking
from runner.definitions import specs
from runner.errors import ConfigError, DataError, StoreError
from runner.results import RECORDING, SUMMARY

OVERRIDES = ("judge", "tracking", "metrics", "hydra")
EXAMPLE = Path(__file__).parents[1] / "sample" / "router.jsonl"
"""One answer of five claims with the verdicts of people: three supported, one contradicted, one in no chunk."""
EXAMPLE_DEFINITIONS = (
    *("ragas/faithfulness", "deepeval/faithfulness"),
    *("deepeval/faithfulness", "penalize_ambiguous_claims=true", "trulens/groundedness", "splitter=llm"),
)


@dataclass(frozen=True)
class Asked:
    """What a person wants audited.

    files: finished answers, in anybody's columns, or a result folder. runs: tracked runs or result folders; several
    are several systems. columns: our field -> theirs. definitions: ids, each followed by its parameters (`k=3`); empty
    = those of metrics=audit, or those that the runs have. formulas_only: no judge is asked, formulas are applied to
    the verdicts there are. versions: requirements of one package. ranking, relevant, call_libraries: see
    runner.audit.rankings. example: the answer in EXAMPLE, judged by people.
    out: where files go; None = a new folder below tracking.folder.
    """

    files: tuple[Path, ...] = ()
    runs: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    definitions: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    formulas_only: bool = False
    versions: tuple[str, ...] = ()
    example: bool = False
    ranking: str | None = None
    relevant: int | None = None
    call_libraries: bool = False
    threshold: float = THRESHOLD
    similar: float = SIMILAR
    out: Path | None = None


def is_override(word: str) -> bool:
    """Whether a word of the command line is meant for Hydra and not a file, a column or a parameter."""
    head = word.lstrip("+~").partition("=")[0].partition(".")[0].partition("/")[0]
    return word.startswith("--config-dir") or ("=" in word and head in OVERRIDES)


def columns(words: Sequence[str]) -> dict[str, str]:
    """`ours=theirs`, as a mapping; an empty `theirs` leaves a field out. Raises ConfigError."""
    found: dict[str, str] = {}
    for word in words:
        ours, equals, theirs = word.partition("=")
        if not equals or not ours:
            raise ConfigError(f"--columns {word}: write it as question=user_query, our name first")
        if found.setdefault(ours, theirs) != theirs:
            raise ConfigError(f"--columns names {ours} twice; keep one")
    return found


def run(asked: Asked) -> bool:
    """Audit, write the files, track them and print the table; whether anything could be said. Raises ParibusError."""
    _refuse_unclear(asked)
    if asked.example:
        named = asked.definitions or (() if asked.formulas_only else EXAMPLE_DEFINITIONS)
        asked = replace(asked, files=(EXAMPLE,), definitions=named, overrides=("judge=labels", *asked.overrides))
    plain = composed(["metrics=audit", *asked.overrides])
    tracking = Tracking(**plain["tracking"])
    folder = asked.out or tracking.root / "audits" / datetime.now(UTC).strftime("%Y%m%dT%H%M%S-%f")
    _refuse_unwritable(folder)
    if asked.versions:
        return _versions(asked, plain, tracking, folder)
    with _uncollected() if asked.formulas_only else nullcontext():
        found = _found(asked, plain, tracking, folder)
    at_a_glance = asked.ranking is not None
    with _written(folder):
        written = files.write(found, folder) if asked.out or not at_a_glance else []
    if tracking.enabled and not at_a_glance:
        from runner.audit.tracked import track

        try:
            run_id, ui = track(found, folder, tracking)
        except StoreError as error:
            raise StoreError(f"{error}. Nothing is lost: the audit is in {folder}") from None
        console.note(f"MLflow run {run_id}; {ui}")
    terminal.show(found, written)
    rows = [row for group in found.groups for row in group.rows]
    return any(row.n for row in rows) or (bool(found.families) and not any(row.failed for row in rows))


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without the garbage collector, which would walk through all records, kept to the end, again and again: a fifth of
    the time for thousands of them."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _refuse_unwritable(folder: Path) -> None:
    """Raise StoreError where no file can be written into `folder`: before anything is judged, not after it."""
    there = next(place for place in (folder.absolute(), *folder.absolute().parents) if os.path.lexists(place))
    if not there.is_dir():
        raise StoreError(f"{folder} cannot be written: {there} is no folder; name another one with --out")
    if not os.access(there, os.W_OK | os.X_OK):
        raise StoreError(f"{folder} cannot be written: {there} may not be changed; name another folder with --out")


@contextmanager
def _written(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"{folder} cannot be written: {error.strerror or error}; name another one with --out"
        ) from error


def _refuse_unclear(asked: Asked) -> None:
    for name, value in (("--threshold", asked.threshold), ("--similar", asked.similar)):
        if not 0 < value <= 1:
            raise ConfigError(f"{name} {value:g} must be above 0 and at most 1")
    if len(asked.files) > 1:
        raise ConfigError(
            f"audit takes one file of answers, got {', '.join(map(str, asked.files))}; several systems go into one "
            "file with a column `system`"
        )
    if asked.relevant is not None and asked.ranking is None:
        raise ConfigError("--relevant belongs to --ranking")
    inputs = [
        name
        for name, given in (
            ("a file", asked.files),
            ("--run", asked.runs),
            ("--ranking", asked.ranking is not None),
            ("--example", asked.example),
        )
        if given
    ]
    if len(inputs) > 1:
        raise ConfigError(f"audit takes one input, got {' and '.join(inputs)}")
    if not inputs and not asked.versions:
        raise ConfigError(
            "audit needs a file of answers, --run, --ranking or --versions; `paribus audit --help` shows each"
        )
    if asked.columns and not asked.files:
        raise ConfigError("--columns is for a file of answers")
    if asked.formulas_only and asked.ranking:
        raise ConfigError("--ranking asks no judge in any case; leave --formulas-only out")
    if asked.versions and (asked.formulas_only or asked.ranking or asked.example):
        raise ConfigError("--versions goes together with a file of answers or --run, or stands alone")


def _found(asked: Asked, plain: Mapping[str, Any], tracking: Tracking, folder: Path) -> Audit:
    from runner.audit import rankings

    if asked.ranking is not None:
        try:
            question, record = rankings.ranking(asked.ranking, asked.relevant)
        except ValueError as error:
            raise ConfigError(f"--ranking: {error}") from None
        return audit(
            [],
            [question],
            [record],
            {},
            source=asked.ranking,
            families=rankings.families([question], [record], call_libraries=asked.call_libraries),
        )
    given = _material(asked, tracking)
    named = _named(asked)
    anew = bool(named) or any(word.lstrip("+~").startswith(("judge", "metrics")) for word in asked.overrides)
    kept = asked.formulas_only or (not anew and any(card["calls"] != "0" for card in given.cards.values()))
    if kept and given.clash:
        raise DataError(
            f"{given.clash}; audit them one by one, or score them anew with one judge: --definitions ID ..."
        )
    listed = plain["metrics"]["definitions"]
    if asked.formulas_only:
        found = scored.formulas_only(named, listed, given)
    elif kept:
        found = scored.stored(given)
    else:
        chosen = scored.scorers(named or listed)
        try:
            found = scored.measured(chosen, scored.judge_for(chosen, plain["judge"]), given, folder / RECORDING)
        except RecordingError as error:
            raise StoreError(f"{error}, or another folder with --out") from error
    labelled = any(question.relevant for question in given.questions)
    families: tuple[Family, ...] = (
        rankings.families(given.questions, given.records, call_libraries=asked.call_libraries) if labelled else ()
    )
    return audit(
        found.subjects,
        given.questions,
        given.records,
        found.scores,
        source=given.source,
        people=given.people,
        systems=given.systems,
        judge=found.judge,
        threshold=asked.threshold,
        similar=asked.similar,
        families=families,
        notes=(*given.notes, *found.notes),
    )


def _versions(asked: Asked, plain: Mapping[str, Any], tracking: Tracking, folder: Path) -> bool:
    """Compare versions of a package: cards and prompts, and the scores of the answers where some are given."""
    from runner.audit import versions

    given = _material(asked, tracking) if asked.files or asked.runs else None
    found = versions.compare_versions(
        asked.versions,
        _named(asked),
        questions=given.questions if given else (),
        records=given.records if given else (),
        judge=plain["judge"] if given else None,
        source=given.source if given else "",
        systems=given.systems if given else None,
        threshold=asked.threshold,
        similar=asked.similar,
    )
    with _written(folder):
        written = versions.write(found, folder)
    versions.show(found, written)
    return True


def _named(asked: Asked) -> list[dict[str, Any]]:
    if files := [word for word in asked.definitions if "=" not in word and Path(word).is_file()]:
        raise ConfigError(f"{files[0]} is a file; put it before --definitions")
    return specs(asked.definitions, sum("=" not in word for word in asked.definitions)) if asked.definitions else []


def _material(asked: Asked, tracking: Tracking) -> material.Material:
    if asked.runs:
        return material.of_runs(asked.runs, tracking)
    (path,) = asked.files
    if (path / SUMMARY).is_file():
        return material.of_runs([str(path)], tracking)
    return material.of_file(path, asked.columns)
