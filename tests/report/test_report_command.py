"""`paribus report` as a person types it, on a real sweep of the bundled test set."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.cli import main
from runner.results import read_run
from tests.spine.commands import Said

Cli = Callable[..., Said]
METRICS = (
    "metrics.definitions=[labels/recall,labels/answer_f1,rubric/correctness]",
    "metrics.table=[labels/recall,labels/answer_f1]",
)


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep over a numeric variable and one with names, then a single run."""
    folder = tmp_path_factory.mktemp("work")
    before, argv = Path.cwd(), sys.argv
    os.chdir(folder)
    sys.argv = ["paribus"]
    try:
        for command in (
            ("sweep", "tracking=off", "retriever=dense,bm25", "chunker.size=400,800", *METRICS),
            ("run", "tracking=off", "retriever.k=3", *METRICS),
        ):
            assert main(command) == 0
    finally:
        os.chdir(before)
        sys.argv = argv
    return folder


@pytest.fixture
def cli(work: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.chdir(work)
    monkeypatch.setattr(sys, "argv", ["paribus"])
    monkeypatch.setenv("PARIBUS_FORMAT", "text")  # which the command sets, and which ends with the test

    def command(*arguments: str) -> Said:
        capfd.readouterr()
        try:
            code = main(["report", *arguments, "tracking=off"])
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        return Said(int(code), *capfd.readouterr())

    return command


def folders(work: Path) -> tuple[Path, Path]:
    """Of the sweep and of the single run."""
    (sweep,) = (path for path in (work / "mlruns" / "results").iterdir() if path.name != "single")
    (single,) = (work / "mlruns" / "results" / "single").iterdir()
    return sweep, single


def test_the_newest_sweep_is_reported_beside_its_runs(cli: Cli, work: Path) -> None:
    sweep, _ = folders(work)
    said = cli()
    assert said.code == 0, said.err
    written = [Path(line.removeprefix("Written: ")) for line in said.err.splitlines() if line.startswith("Written: ")]
    assert [path.relative_to(sweep).as_posix() for path in written] == [
        "report/report.json",
        "report/report.md",
        "report/report.html",
        "report/charts/retriever.svg",
        "report/charts/chunker.size.svg",
        "report/charts/quality_and_cost.svg",
    ]
    data = json.loads(written[0].read_text("utf-8"))
    assert " ".join(data["headline"].split()) == " ".join(said.out.split())
    assert max(map(len, said.out.splitlines())) <= 100
    runs = data["recommendation"]["runs"]
    assert {run["label"] for run in runs} == {"baseline", "chunker.size=400", "retriever=bm25"}
    for place, label in ((0, "baseline"), *((n, runs[n]["label"]) for n in (1, 2))):
        means = read_run(sweep / str(place)).summary["means"]
        found = next(run for run in runs if run["label"] == label)
        assert found["means"] == pytest.approx({key: mean["value"] for key, mean in means.items()})
    assert data["faults"]["baseline"]["counts"]
    assert data["judge"]["provider"] == "lexical"
    html, markdown = written[2].read_text("utf-8"), written[1].read_text("utf-8")
    assert "rules without a model, and weak" in html
    assert len(markdown) < 65_536
    assert str(work) not in markdown


def test_a_sweep_may_be_named(cli: Cli, work: Path, tmp_path: Path) -> None:
    sweep, _ = folders(work)
    for name in (str(sweep), sweep.name, f"sweep {sweep.name}"):
        said = cli(name, "--json", "--out", str(tmp_path / "out"))
        assert said.code == 0, said.err
        assert said.json == json.loads((tmp_path / "out" / "report.json").read_text("utf-8"))
        assert said.json["recommendation"]["sweep"] == sweep.name


def test_a_run_is_reported_alone_or_beside_another(cli: Cli, work: Path, tmp_path: Path) -> None:
    sweep, single = folders(work)
    said = cli(str(single), "--json")
    assert said.code == 0, said.err
    assert said.json["kind"] == "run"
    assert (single / "report" / "report.html").is_file()
    said = cli(str(single), "--baseline", str(sweep / "0"), "--out", str(tmp_path), "--json")
    assert said.code == 0, said.err
    assert said.json["kind"] == "comparison"
    _, candidate = said.json["recommendation"]["runs"]
    assert [row["definition"] for row in candidate["rows"]] == [
        "labels/recall",
        "labels/answer_f1",
        "rubric/correctness",
    ]
    by_sweep = cli(str(sweep / "1"), "--baseline", "baseline", "--out", str(tmp_path), "--json")
    assert by_sweep.code == 0, by_sweep.err
    assert by_sweep.json["runs"]["candidate"]["command"].startswith("paribus compare baseline ")
    assert said.json["runs"]["candidate"]["command"] == (
        f"paribus compare {sweep.relative_to(work) / '0'} {single.relative_to(work)}"
    )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("nothing_here",), "nothing_here is no result folder, and tracking is off"),
        (("one", "two"), "two: no such argument; `paribus report --help` lists what there is"),
        (("--fast",), "--fast: no such argument; `paribus report --help` lists what there is"),
        (("mlruns/results",), "mlruns/results holds no sweep"),
    ],
)
def test_a_mistake_is_one_sentence(cli: Cli, arguments: tuple[str, ...], says: str) -> None:
    said = cli(*arguments)
    assert said.code == 2
    assert says in said.err
    assert "Traceback" not in said.err


def test_a_run_is_not_compared_with_itself(cli: Cli, work: Path) -> None:
    _, single = folders(work)
    said = cli(str(single), "--baseline", "latest")
    assert said.code == 2
    assert "are one run" in said.err


def test_a_variant_beside_its_baseline_has_the_words_of_its_sweep(
    cli: Cli, work: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Two variants in the sweep: Holm is over both, whoever shows one of them."""
    sweep, _ = folders(work)
    variant = str(sweep / "1")
    assert cli(variant, "--baseline", "baseline", "--out", str(tmp_path)).code == 0
    reported = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    rows = reported["recommendation"]["runs"][1]["rows"]
    capfd.readouterr()
    assert main(["compare", "baseline", variant, "tracking=off", "--json", "--out", str(tmp_path)]) == 0
    compared = json.loads(capfd.readouterr().out)["rows"]
    assert [(row["definition"], row["adjusted"], row["family"], row["word"]) for row in rows] == [
        (row["definition"], row["adjusted"], row["family"], row["word"]) for row in compared
    ]
    assert {row["family"] for row in rows} == {4, 6}
