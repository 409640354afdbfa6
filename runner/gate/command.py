"""`paribus accept` and `paribus gate`: what a person asks for, from names to files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from runner import console
from runner.app import composed
from runner.config import Tracking
from runner.errors import ConfigError, DataError, ParibusError
from runner.gate import reports
from runner.gate.accepted import Accepted, accepted, encoded, read
from runner.gate.checking import gate
from runner.gate.findings import Check, Verdict
from runner.gate.rules import Rules, read_rules
from runner.locate import BASELINE as OF_SWEEP
from runner.locate import LATEST, beside, has_data, whole_run
from runner.outputs import write_whole
from runner.results import FILES, SUMMARY
from runner.whole import read_whole
from runner.yaml_folders import conf_dir, extra_folders

BASELINE = Path("baseline.json")
YAML = (".yaml", ".yml")


@dataclass(frozen=True)
class Asked:
    """What a person wants decided.

    run: a result folder, `latest`, or the id or name of a tracked run. baseline: a file of `paribus accept`, or a run;
    None = BASELINE where it is, else the tracked run that was accepted last. rules: a name in conf/gate or in the gate
    folder of a --config-dir, or a YAML file. junit, summary: files to write. anyway: compare what is not comparable.
    """

    run: str
    baseline: str | None = None
    rules: str = "default"
    junit: Path | None = None
    summary: Path | None = None
    anyway: bool = False
    overrides: tuple[str, ...] = ()


def decide(asked: Asked) -> Verdict:
    """Compare, print, and write the files that were asked for, which tell of broken input too. Raises ParibusError."""
    try:
        verdict = _verdict(asked)
    except ParibusError as error:
        check = Check("every definition", None, "comparable", "error", str(error))
        _write(Verdict(asked.baseline or "the baseline", asked.run, (check,)), asked)
        raise
    reports.show(verdict)
    _write(verdict, asked)
    return verdict


def _verdict(asked: Asked) -> Verdict:
    held, tracking = _settings(asked)
    run = whole_run(asked.run, tracking)
    if asked.baseline == OF_SWEEP:
        baseline = accepted(beside(run, asked.run, OF_SWEEP, tracking))
    else:
        baseline = _baseline(asked.baseline, tracking)
    return gate(baseline, run, held, names=(str(baseline), str(run.folder)), anyway=asked.anyway)


def _write(verdict: Verdict, asked: Asked) -> None:
    if asked.junit:
        write_whole(asked.junit, reports.junit(verdict))
    if asked.summary:
        write_whole(asked.summary, reports.markdown(verdict))


def _settings(asked: Asked) -> tuple[Rules, Tracking]:
    tracking = Tracking(**composed(asked.overrides)["tracking"])
    if asked.rules.endswith(YAML):
        return read_rules(Path(asked.rules)), tracking
    files = [folder / "gate" / f"{asked.rules}.yaml" for folder in (*reversed(extra_folders), conf_dir())]
    found = next((file for file in files if file.is_file()), None)
    if found is None:
        known = sorted({file.stem for folder in (conf_dir(), *extra_folders) for file in folder.glob("gate/*.yaml")})
        raise ConfigError(f"--rules {asked.rules}: there are {', '.join(known)}; or name a file that ends in .yaml")
    return read_rules(found), tracking


def _baseline(name: str | None, tracking: Tracking) -> Accepted:
    if name is None and BASELINE.is_file():
        return read(BASELINE)
    if name is None:
        if not has_data(tracking):
            raise DataError(f"there is no {BASELINE} and no tracked run; `paribus accept RUN` makes a baseline")
        from runner.tracking import Tracker

        return accepted(read_whole(Tracker(tracking).accepted_results()))
    file = Path(name).expanduser()
    of_a_run = file.name in FILES and (file.parent / SUMMARY).is_file()
    if not of_a_run and (file.is_file() or (file.suffix == ".json" and not (file / SUMMARY).is_file())):
        return read(file)
    return accepted(whole_run(name, tracking))


def accept(name: str, to: Path, overrides: Sequence[str]) -> None:
    """Write a run as the accepted baseline into `to`, and tag it where it is tracked. Raises ParibusError."""
    tracking = Tracking(**composed(overrides)["tracking"])
    run = whole_run(name, tracking)
    baseline = accepted(run)
    write_whole(to, encoded(baseline))
    tagged = None
    if has_data(tracking):
        from runner.tracking import Tracker

        path = Path(name).expanduser()
        called = None if name == LATEST or path.is_file() or (path / SUMMARY).is_file() else name
        tagged = Tracker(tracking).accept(called, run.folder, baseline.run.config_fingerprint, baseline.accepted)
    _show_accepted(baseline, to, tagged)


def _show_accepted(baseline: Accepted, to: Path, tagged: str | None) -> None:
    if console.as_json():
        means = {definition.key: definition.mean.value for definition in baseline.definitions}
        console.print_json({"file": str(to), "run": baseline.run.results, "run_id": tagged, "means": means})
    else:
        console.print_text(
            f"{to}: {baseline.run.name} ({baseline.run.results}), {len(baseline.definitions)} definitions over "
            f"{len(baseline.questions)} questions. Commit it; `paribus gate RUN` holds runs to it."
        )
    console.note(f"MLflow run {tagged} is tagged as accepted" if tagged else "no tracked run has these results")
    for definition in baseline.definitions:
        mean = definition.mean
        if mean.failed or not mean.n:
            told = f"{mean.failed} of {mean.of} questions failed" if mean.failed else "no question has a value"
            console.note(f"note: {definition.key}: {told}, so that a gate on it cannot pass by the rules' defaults")
