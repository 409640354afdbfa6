"""`paribus accept` and `paribus gate` as a person and a CI server see them."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from runner import results
from runner.cli import main
from runner.config import Tracking, Trial
from tests.spine.commands import Said, Say
from tests.tracking import conftest as tracking_fixtures
from tests.tracking.made_results import result

migrated = tracking_fixtures.migrated

Wrote = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Wrote:
    """Writes a result folder; the working directory is an empty one."""
    monkeypatch.chdir(tmp_path)

    def folder(name: str, **values: list[float | str]) -> Path:
        made = result({f"labels/{key}": column for key, column in values.items()})
        results.write(replace(made, name=name, started=f"2026-01-01T00:00:0{len(name) % 10}.000Z"), tmp_path / name)
        return tmp_path / name

    return folder


@pytest.fixture
def say(write: Wrote, capfd: pytest.CaptureFixture[str]) -> Say:
    """Runs `paribus …` in this process, without tracking."""

    def command(*arguments: str | Path, tracking: str = "tracking=off") -> Said:
        capfd.readouterr()
        try:
            code = main([*map(str, arguments), tracking])
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        return Said(int(code), *capfd.readouterr())

    return command


def test_a_run_is_accepted_and_later_ones_are_held_to_it(write: Wrote, say: Say, tmp_path: Path) -> None:
    base = write("base", recall=[0.8, 0.8], ndcg=[0.5, 0.5])
    worse = write("worse", recall=[0.7, 0.7], ndcg=[0.5, 0.5])
    assert "there is no baseline.json" in say("gate", base).err
    said = say("accept", base, "--json")
    assert (said.code, said.json["file"], said.json["run_id"]) == (0, "baseline.json", None)
    assert said.json["means"] == {"labels/recall": 0.8, "labels/ndcg": 0.5}
    assert say("gate", base).code == 0
    said = say("gate", worse, "--junit", "out/gate.xml", "--summary", "gate.md", "--json")
    assert said.code == 1
    assert "REGRESSION labels/recall: 0.8 -> 0.7, worse by 0.1, allowed 0.02\n" in said.err
    assert said.err.splitlines()[-1] == "Gate: regression (1 regression, 1 of 2 checks passed)"
    assert (said.json["result"], said.json["exit_code"]) == ("regression", 1)
    assert [check["result"] for check in said.json["checks"]] == ["regression", "passed"]
    summary = Path("gate.md").read_text(encoding="utf-8")
    assert "## Gate: regression" in summary
    assert "- **REGRESSION** labels/recall: 0.8 -&gt; 0.7, worse by 0.1, allowed 0.02" in summary
    assert "| labels/recall | max\\_drop | 0.8 | 0.7 | 0.1 | 0.02 | 2 of 2 | REGRESSION |" in summary
    # Another run as the baseline, and a loss in the other direction.
    assert say("gate", base, "--baseline", worse).code == 0
    assert say("gate", worse, "--baseline", base).code == 1


def test_junit_is_what_servers_read(write: Wrote, say: Say) -> None:
    """As Jenkins' schema (junit-10.xsd of xunit-plugin), GitLab and the actions for GitHub take it."""
    say("accept", write("base", recall=[0.8, 0.8], ndcg=[0.5, 0.5], success=[1.0, 1.0]))
    worse = write("worse", recall=[0.7, 0.7], ndcg=[0.5, "a reply with \x00 and </error>"], success=[1.0, 1.0])
    assert say("gate", worse, "--junit", "gate.xml").code == 2
    root = ElementTree.parse("gate.xml").getroot()
    (suite,) = root
    assert (root.tag, suite.tag) == ("testsuites", "testsuite")
    counts = {"tests": "3", "failures": "1", "errors": "1"}
    assert root.attrib == {"name": "paribus gate", "time": "0", **counts}
    assert suite.attrib == {"name": "paribus gate", "time": "0", "skipped": "0", **counts}
    cases = {case.attrib["name"]: case for case in suite}
    assert set(cases) == {"labels/recall max_drop", "labels/ndcg comparable", "labels/success max_drop"}
    for case in cases.values():
        assert set(case.attrib) == {"classname", "name", "time"}
        assert len(case) == 1
        assert case[0].tag in ("failure", "error", "system-out")
        assert set(case[0].attrib) == (set() if case[0].tag == "system-out" else {"message", "type"})
    failure, error = cases["labels/recall max_drop"][0], cases["labels/ndcg comparable"][0]
    assert (failure.tag, failure.attrib["message"]) == ("failure", "0.8 -> 0.7, worse by 0.1, allowed 0.02")
    assert error.tag == "error"
    assert "a reply with \ufffd and </error>" in error.attrib["message"]


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ("default: {max_dorp: 0.1}", "default.max_dorp is not a known key (did you mean rules.yaml.default.max_drop?"),
        ("defualt: {max_drop: 0.1}", "defualt is not a known key (did you mean rules.yaml.default?"),
        ("default: {max_drop: -0.1}", "default.max_drop=-0.1 is not allowed"),
        ("default: {max_drop: .nan}", "default.max_drop=nan is not allowed"),
        ("default: {max_drop: a lot}", "default.max_drop='a lot' is not allowed"),
        ("default: {on: median}", "default.on='median' is not allowed"),
        ("default: {max_drop: 0.1, max_drop: 0.2}", "the key 'max_drop' stands twice"),
        ("slices: {'origin:real': {max_drop: 0.1}}", "slices.origin:real.max_drop is not a known key"),
        ("- 1", "is not allowed"),
        ("", "is not allowed"),
        ("{", "cannot read the rules"),
        ("slices: {fact: {default: {max_drop: 0.1}}}", "ERROR every definition in fact: neither side has this slice"),
        ("definitions: {labels/recal: {floor: 0.1}}", "did you mean labels/recall?"),
    ],
)
def test_rules_with_a_typo_are_refused(write: Wrote, say: Say, rules: str, message: str) -> None:
    base = write("base", recall=[0.8])
    Path("rules.yaml").write_text(rules, encoding="utf-8")
    said = say("gate", base, "--baseline", base, "--rules", "rules.yaml")
    assert said.code == 2
    assert message in said.err


def test_what_nests_without_end_is_refused(write: Wrote, say: Say, tmp_path: Path) -> None:
    run = write("run", recall=[0.8])
    for name, option in (("deep.yaml", "--rules"), ("deep.json", "--baseline")):
        (tmp_path / name).write_text("[" * 100_000, encoding="utf-8")
        assert say("accept", run).code == 0
        said = say("gate", run, option, name)
        assert (said.code, name in said.err, "recursion" in said.err) == (2, True, True)
        assert ".py:" not in said.err


def test_rules_are_named_or_a_file(write: Wrote, say: Say, tmp_path: Path) -> None:
    base, worse = write("base", recall=[1.0] * 10), write("worse", recall=[0.0] + [1.0] * 9)
    # `on`, which YAML 1.1 takes for true, is a key like any other.
    Path("rules.yaml").write_text("default:\n  max_drop: 0.05\n  on: interval\n", encoding="utf-8")
    assert say("gate", worse, "--baseline", base).code == 1
    said = say("gate", worse, "--baseline", base, "--rules", "rules.yaml")
    assert (said.code, "WARNING labels/recall: 1 -> 0.9, worse by 0.1, allowed 0.05" in said.err) == (0, True)
    (tmp_path / "more/gate").mkdir(parents=True)
    (tmp_path / "more/gate/mine.yaml").write_text("default: {max_drop: 0.5}", encoding="utf-8")
    assert say("gate", worse, "--baseline", base, "--rules", "mine", "--config-dir=more").code == 0
    assert "--rules strict: there are default" in say("gate", worse, "--baseline", base, "--rules", "strict").err


def test_what_is_broken_ends_with_2_and_is_told_in_the_files_too(write: Wrote, say: Say, tmp_path: Path) -> None:
    base = write("base", recall=[0.8])
    for arguments, message in (
        (("gate", base, "--baseline", "nowhere.json"), "cannot read nowhere.json: No such file or directory"),
        (("gate", "nowhere", "--baseline", base), "nowhere is no result folder"),
        (("gate", base, "--baseline", base, "--frist"), "--frist: no such argument"),
        (("gate", base, "--baseline", base, "--junit", "/dev/null/gate.xml"), "cannot write /dev/null/gate.xml"),
    ):
        said = say(*arguments)
        assert (said.code, message in said.err) == (2, True), said.err
    Path("baseline.json").write_text("{", encoding="utf-8")
    said = say("gate", base, "--junit", "gate.xml", "--summary", "gate.md")
    assert (said.code, "baseline.json is no JSON" in said.err) == (2, True)
    assert "baseline.json is no JSON" in Path("gate.md").read_text(encoding="utf-8")
    assert ElementTree.parse("gate.xml").getroot().attrib["errors"] == "1"
    summary = json.loads((base / "summary.json").read_text(encoding="utf-8"))
    for name in ("means", "dataset", "slices"):
        (base / "summary.json").write_text(json.dumps({**summary, name: None}), encoding="utf-8")
        said = say("gate", base, "--baseline", base)
        assert (said.code, "make the run again" in said.err) == (2, True), said.err
    summary["means"]["labels/recall"]["value"] = 0.9
    (base / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    assert "is 0.9 over 1, and its scores come to 0.8 over 1" in say("accept", base).err


@pytest.mark.parametrize("file", ["records.jsonl", "scores.jsonl"])
def test_a_run_that_lacks_a_line_is_neither_accepted_nor_compared(write: Wrote, say: Say, file: str) -> None:
    base, run = write("base", recall=[0.8, "no reply"]), write("run", recall=[0.8, "no reply"])
    assert say("accept", run).code == 0
    (run / file).write_text((run / file).read_text(encoding="utf-8").splitlines(True)[0], encoding="utf-8")
    for command in (("accept", run, "--to", "other.json"), ("gate", run), ("compare", base, run)):
        said = say(*command)
        assert (said.code, "for question 'q1'" in said.err or "of question 'q1'" in said.err) == (2, True), said.err
        assert len(said.err.splitlines()) == 1
    assert not Path("other.json").exists()


def test_an_unforeseen_fault_is_no_regression(write: Wrote, say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    from runner.gate import command

    def fails(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("unforeseen")

    monkeypatch.setattr(command, "gate", fails)
    base = write("base", recall=[0.8])
    said = say("gate", base, "--baseline", base)
    assert (said.code, "ZeroDivisionError: unforeseen" in said.err) == (2, True)


def test_what_is_not_comparable_may_be_compared_on_demand(write: Wrote, say: Say) -> None:
    base, other = write("base", recall=[0.8]), write("other", recall=[0.5])
    summary = json.loads((other / "summary.json").read_text(encoding="utf-8"))
    summary["dataset"]["checksum"] = "bbb"
    (other / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    said = say("gate", other, "--baseline", base)
    assert (said.code, "REGRESSION" in said.err) == (2, False)
    assert f"the dataset differs: checksum {'c' * 64} in the baseline, checksum bbb in the run" in said.err
    said = say("gate", other, "--baseline", base, "--anyway", "--json", "--summary", "gate.md")
    assert (said.code, said.json["anyway"]) == (1, True)
    assert "is compared although the dataset differs" in Path("gate.md").read_text(encoding="utf-8")


@pytest.fixture(params=["UTC", "Asia/Tokyo", "America/New_York"])
def zone(request: pytest.FixtureRequest) -> Iterator[None]:
    """The time zone of this process."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TZ", request.param)
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("zone")
def test_the_run_that_was_accepted_last_is_the_baseline(write: Wrote, say: Say, migrated: Path, tmp_path: Path) -> None:
    """By instant: 04:30Z, 02:00Z and 01:00Z, which neither text nor local time puts in this order."""
    from runner.tracking import ACCEPTED, Tracker

    (tmp_path / "mlruns").mkdir()
    shutil.copy(migrated, tmp_path / "mlruns/mlflow.db")
    settings = Tracking(folder=str(tmp_path / "mlruns"))
    tracker = Tracker(settings)
    made = {}
    for name, value in (("first", 0.9), ("second", 0.5), ("third", 0.5)):
        folder = write(name, recall=[value])
        with tracker.run(name, Trial(), {"paribus.results": str(folder)}) as handle:
            handle.log(result({"labels/recall": [value]}), folder, None)
        made[name] = handle.run_id
    run = write("run", recall=[0.6])
    here = f"tracking.folder={tmp_path / 'mlruns'}"
    said = say("gate", run, tracking=here)
    assert (said.code, "no run of the experiment 'paribus'" in said.err) == (2, True)
    said = say("compare", "baseline", run, tracking=here)
    assert said.code == 2
    assert "is no variant of a sweep, and no run of the experiment 'paribus' in" in said.err
    said = say("accept", "first", "--to", "elsewhere.json", "--json", tracking=here)
    assert said.json["run_id"] == made["first"]
    tagged = tracker._client.get_run(made["first"]).data.tags[ACCEPTED]
    assert tagged.endswith("Z")
    said = say("gate", run, tracking=here)
    assert (said.code, "0.9 -> 0.6" in said.err) == (1, True)
    said = say("compare", "baseline", run, "--out", "difference", "--json", tracking=here)  # of no sweep
    assert (said.code, said.json["baseline"]["folder"]) == (0, str(tmp_path / "first")), said.err
    told = f"{run} is no variant of a sweep: baseline is the accepted run, {tmp_path / 'first'}"
    assert told in said.json["notes"]
    times = ("2026-03-01T23:30:00-05:00", "2026-03-02T02:00:00Z", "2026-03-02T03:00:00+02:00")
    for name, when in zip(made, times, strict=True):
        tracker._client.set_tag(made[name], ACCEPTED, when)
    assert tracker.accepted_results() == tmp_path / "first"
    tracker._client.set_tag(made["third"], ACCEPTED, "true")  # by hand: when the run began counts
    assert tracker.accepted_results() == tmp_path / "third"


def test_looking_for_a_tracked_baseline_makes_no_database(write: Wrote, say: Say, tmp_path: Path) -> None:
    base = write("base", recall=[0.8])
    here = f"tracking.folder={tmp_path / 'mlruns'}"
    assert say("gate", base, tracking=here).code == 2
    assert say("accept", base, tracking=here).code == 0
    assert not (tmp_path / "mlruns").exists()
