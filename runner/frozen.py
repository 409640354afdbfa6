"""Frozen retrieval: the contexts of an earlier run stand in for the stages before the prompt, so that only generation
varies."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adapters.schema import Record
from runner.config import REPLAYED, Records, flatten, redacted
from runner.errors import ConfigError
from runner.results import read_run

if TYPE_CHECKING:
    from runner.dataset import TestSet


def stored_records(settings: Records, test_set: TestSet, plain: Mapping[str, Any]) -> Mapping[str, Record] | None:
    """The records that `settings` names, by question id; None = the stages run.

    plain: the configuration of this run, whose stages before the prompt must be those of the earlier one, because its
    results will say so. Raises ConfigError where they are not, or the test set is another; DataError for a folder that
    cannot be read.
    """
    if not settings.frozen:
        if settings.path is not None:
            raise ConfigError(f"records.path={settings.path} is read with records=frozen only")
        return None
    if settings.path is None:
        raise ConfigError("records.path is missing: records=frozen replays the contexts of a result folder; name it")
    run = read_run(Path(settings.path).expanduser())
    if run.config.get("system"):
        raise ConfigError(
            f"records.path: {settings.path} is a run of a system of your own, whose contexts no chunker or retriever "
            "of this configuration made; name a run with system=stages, or vary the prompt inside your system "
            "(system.parameters)"
        )
    frozen, found = run.summary["dataset"].get("checksum"), test_set.checksum
    if frozen != found:
        raise ConfigError(
            f"records.path: the contexts in {settings.path} were stored on another test set (checksum {frozen}, here "
            f"{found}); run it live once and name that result folder"
        )
    then, now = (flatten({name: side.get(name) for name in REPLAYED}) for side in (run.config, redacted(dict(plain))))
    for key in dict.fromkeys((*then, *now)):
        if then.get(key) != now.get(key):
            raise ConfigError(
                f"{key}={now.get(key)!r} cannot vary with records=frozen: the contexts in {settings.path} were made "
                f"with {then.get(key)!r}"
            )
    if lost := [question.id for question in test_set.questions if question.id not in run.records]:
        raise ConfigError(f"records.path: {settings.path} has no record of question {lost[0]}; make the run again")
    return run.records
