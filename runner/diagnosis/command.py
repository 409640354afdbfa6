"""`paribus diagnose`: what a person asks for, from the name of a run to table and files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.app import composed
from runner.config import Tracking
from runner.diagnosis import labelling, terminal
from runner.diagnosis.diagnose import diagnose
from runner.diagnosis.rules import GROUP, Rules, check_levers, checked, rules_of
from runner.errors import DataError
from runner.locate import beside, whole_run
from runner.results import StoredRun


@dataclass(frozen=True)
class Asked:
    """What a person wants diagnosed.

    run: a result folder, the id or name of a tracked run, or `latest`. baseline: the same, or `baseline`: that of the
    run's sweep; None = no baseline. unjudged: where the chunks that nobody judged go, .csv or JSONL; None = nowhere.
    overrides: of diagnosis (thresholds) and of tracking (where runs are).
    """

    run: str
    baseline: str | None = None
    unjudged: Path | None = None
    overrides: tuple[str, ...] = ()


def run(asked: Asked) -> None:
    """Diagnose, write the file that was asked for and print the table. Raises ParibusError."""
    config = composed(asked.overrides)
    tracking = Tracking(**config["tracking"])
    looked_at = whole_run(asked.run, tracking)
    baseline = None if asked.baseline is None else beside(looked_at, asked.run, asked.baseline, tracking)
    found = diagnose(looked_at, _rules(looked_at, config, asked.overrides), baseline)
    if asked.unjudged is not None:
        if not found.unjudged:
            raise DataError(f"{asked.unjudged} is not written: {looked_at.folder} has no unjudged chunk")
        labelling.write(found.unjudged, asked.unjudged)
    terminal.show(found, asked.unjudged)


def _rules(looked_at: StoredRun, config: Mapping[str, Any], overrides: Sequence[str]) -> Rules:
    """The rules of the run, with what the overrides say of them."""
    names = [override.partition("=")[0].lstrip("+~") for override in overrides]
    if GROUP in names:
        rules = checked(config[GROUP])
    elif own := [name for name in names if name.startswith(f"{GROUP}.")]:
        values: dict[str, Any] = rules_of(looked_at).model_dump()
        for name in own:
            *above, last = name.split(".")[1:]
            ours, given = values, config[GROUP]
            for key in above:
                ours, given = ours.setdefault(key, {}), given[key]
            ours[last] = given[last]
        rules = checked(values)
    else:
        return rules_of(looked_at)
    check_levers(rules)
    return rules


def put_into(labels: Path, questions: Path) -> None:
    """Put graded chunks into the labels of a test set. Raises DataError, StoreError."""
    terminal.show_labelled(labelling.put_into(labels, questions), questions)
