"""`paribus compare` as a person types it, on real runs of the bundled test set."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from runner.cli import main
from runner.results import read_run
from runner.stats import difference
from tests.spine.commands import Said, write_test_set

Cli = Callable[..., Said]
DEFINITIONS = "[labels/recall,{id: labels/recall, k: %d},labels/reciprocal_rank,labels/answer_f1,rubric/correctness]"


def metrics(k: int) -> tuple[str, ...]:
    return (f"metrics.definitions={DEFINITIONS % k}", "metrics.table=[labels/recall,labels/answer_f1]")


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep over two retrievers, a run with another cutoff, and one on another test set."""
    folder = tmp_path_factory.mktemp("work")
    write_test_set(folder / "data")
    before, argv = Path.cwd(), sys.argv
    os.chdir(folder)
    sys.argv = ["paribus"]
    try:
        for command in (
            ("sweep", "tracking=off", "retriever=dense,bm25", *metrics(5)),
            ("run", "tracking=off", "retriever=bm25", *metrics(10)),
            ("run", "tracking=off", "tracking.folder=other", "dataset=jsonl", "dataset.path=data", *metrics(5)),
        ):
            assert main(command) == 0
    finally:
        os.chdir(before)
        sys.argv = argv
    return folder


@pytest.fixture
def cli(work: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cli:
    monkeypatch.chdir(work)
    monkeypatch.setattr(sys, "argv", ["paribus"])
    monkeypatch.setenv("PARIBUS_FORMAT", "text")  # which the command sets, and which ends with the test

    def command(*arguments: str) -> Said:
        capfd.readouterr()
        try:
            code = main(["compare", *arguments, "--out", str(tmp_path / "out"), "tracking=off"])
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        return Said(int(code), *capfd.readouterr())

    return command


def runs(work: Path) -> list[str]:
    """The baseline of the sweep, its variant, the run with another cutoff, and that on another test set."""
    (sweep,) = (path for path in (work / "mlruns" / "results").iterdir() if path.name != "single")
    (cutoff,) = (work / "mlruns" / "results" / "single").iterdir()
    (other,) = (work / "other" / "results" / "single").iterdir()
    return [str(path) for path in (sweep / "0", sweep / "1", cutoff, other)]


def test_a_variant_is_compared_with_the_baseline_of_its_sweep(cli: Cli, work: Path, tmp_path: Path) -> None:
    baseline, variant, *_ = runs(work)
    said = cli("baseline", variant)
    assert said.code == 0, said.err
    shown = " ".join(said.out.split())
    assert "retriever._target_ runner.retriev…enseRetriever runner.retriev…Bm25Retriever" in shown
    for title in ("Retrieval, 90 questions", "Generation, 90 questions", "Retrieval by slice", "split:held_out"):
        assert title in shown
    assert "Questions that got worse, the worst first" in shown
    lines = (said.out + said.err.replace(str(tmp_path), "")).splitlines()
    assert [line for line in lines if len(line) > 100] == []
    assert "\x1b" not in said.out
    data = json.loads((tmp_path / "out" / "compare.json").read_text("utf-8"))
    rows = {row["definition"]: row for row in data["rows"]}
    assert list(rows) == [
        "labels/recall",
        "labels/recall@5",
        "labels/reciprocal_rank",
        "labels/answer_f1",
        "rubric/correctness",
    ]
    before, after = (read_run(Path(name)).scores for name in (baseline, variant))
    for key, row in rows.items():
        pairs = [
            (score.value, after[key][id].value) for id, score in sorted(before[key].items()) if score.value is not None
        ]
        found = difference([float(b) - float(a) for a, b in pairs if a is not None and b is not None])
        assert (row["delta"], row["low"], row["high"], row["n"]) == (found.delta, found.low, found.high, found.n)
        assert row["wins"] + row["ties"] + row["losses"] == row["n"]
    assert not data["not_compared"]
    judged = [flip for change in data["changes"] for flip in change["flips"]]
    assert judged
    assert {flip["definition"] for flip in judged} == {"rubric/correctness"}
    assert set(data["changed"]) >= {"retriever._target_", "retriever.k1"}
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == [
        "compare.html",
        "compare.json",
        "compare.md",
    ]
    markdown = (tmp_path / "out" / "compare.md").read_text("utf-8")
    assert markdown.startswith("# retriever=bm25 against baseline\n")
    assert len(markdown) < 65_536


def test_json_is_the_file_and_one_slice_is_a_comparison_of_its_own(cli: Cli, work: Path, tmp_path: Path) -> None:
    baseline, variant, *_ = runs(work)
    said = cli(baseline, variant, "--slice", "split:held_out", "--json")
    assert said.code == 0, said.err
    assert said.json == json.loads((tmp_path / "out" / "compare.json").read_text("utf-8"))
    held_out = {q.id for q in read_run(Path(variant)).questions.values() if q.split == "held_out"}
    assert {change["id"] for change in said.json["changes"]} <= held_out
    assert said.json["questions"] <= len(held_out)


def test_another_cutoff_is_named_and_the_rest_is_compared(cli: Cli, work: Path) -> None:
    _, variant, cutoff, _ = runs(work)
    said = cli(variant, cutoff)
    assert said.code == 0, said.err
    shown = " ".join(said.out.split())
    assert "Not compared: labels/recall@5: the candidate does not have it; it has" in shown
    assert "labels/recall@10 (k 5 and 10), which is another definition" in shown
    assert "No score of any question changed, under 4 definitions." in shown


def test_another_test_set_leaves_nothing_to_compare(cli: Cli, work: Path) -> None:
    baseline, _, _, other = runs(work)
    said = cli(baseline, other)
    assert said.code == 1
    assert "Nothing could be compared." in said.out
    assert "the dataset differs: " in said.out


def test_latest_is_the_run_that_began_last(cli: Cli, work: Path) -> None:
    baseline, _, cutoff, _ = runs(work)
    os.utime(Path(baseline) / "summary.json")  # what a copy of the folder would do
    said = cli(baseline, "latest", "--json")
    assert said.code == 0, said.err
    assert said.json["candidate"]["folder"] == cutoff


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("BASELINE",), "compare takes two runs, got tracking=off as the second"),
        (("nothing", "BASELINE"), "nothing is no result folder, and tracking is off"),
        (("baseline", "BASELINE"), "is the baseline of its sweep, and no run is tracked as accepted, so that"),
        (("baseline", "CUTOFF"), "is no variant of a sweep"),
        (("BASELINE", "BASELINE"), "are one run"),
        (("BASELINE/scores.jsonl", "BASELINE"), "are one run"),
        (("data/questions.jsonl", "BASELINE"), "no file of a result folder: there is no summary.json beside it"),
        (("BASELINE/other.txt", "BASELINE"), "the files of one are summary.json, config.yaml, records.jsonl, scores"),
        (("SWEEP", "BASELINE"), "name one of the runs in it: 0, 1"),
        (
            ("BASELINE", "VARIANT", "--slice", "fakt"),
            "no question is in a slice 'fakt'; there are origin:synthetic, split:tune, split:held_out",
        ),
        (("BASELINE", "VARIANT", "VARIANT"), "no such argument"),
        (("BASELINE", "VARIANT", "--anywhere"), "--anywhere: no such argument"),
        (("BASELINE", "VARIANT", "tracking.foldr=x"), "foldr"),
    ],
)
def test_wrong_input_is_told_and_ends_with_2(cli: Cli, work: Path, arguments: tuple[str, ...], says: str) -> None:
    baseline, variant, cutoff, _ = runs(work)
    named = {"BASELINE": baseline, "VARIANT": variant, "CUTOFF": cutoff, "SWEEP": str(Path(baseline).parent)}
    (Path(baseline) / "other.txt").write_text("another file")
    parts = [word.partition("/") for word in arguments]
    said = cli(*(f"{named.get(first, first)}{slash}{rest}" for first, slash, rest in parts))
    assert says in " ".join(said.err.split())
    assert said.code == 2


def test_a_run_of_another_version_is_told(cli: Cli, work: Path, tmp_path: Path) -> None:
    baseline, variant, *_ = runs(work)
    old = tmp_path / "old"
    shutil.copytree(variant, old)
    summary: dict[str, Any] = json.loads((old / "summary.json").read_text("utf-8"))
    (old / "summary.json").write_text(json.dumps({**summary, "schema_version": 1}))
    said = cli(baseline, str(old))
    assert said.code == 2
    assert "was written by another version of paribus (schema_version 1, and 2 can be read)" in said.err


def test_a_baseline_whose_folder_is_gone_is_looked_up_where_it_was_tracked(
    cli: Cli, work: Path, tmp_path: Path
) -> None:
    _, variant, *_ = runs(work)
    moved = tmp_path / "moved"
    shutil.copytree(variant, moved)
    config = yaml.safe_load((moved / "config.yaml").read_text("utf-8"))
    for run_id, asked in ((None, "gone"), ("0" * 32, "0" * 32)):
        config["trial"] |= {"baseline": "gone", "baseline_run_id": run_id}
        (moved / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
        said = cli("baseline", str(moved))
        assert said.code == 2
        assert f"{asked} is no result folder, and tracking is off" in said.err


@pytest.mark.parametrize("file", ["scores.jsonl", "summary.json", "scores.parquet", "per_question.csv"])
def test_a_file_of_a_result_folder_names_the_run(cli: Cli, work: Path, file: str) -> None:
    baseline, variant, *_ = runs(work)
    said = cli(f"{baseline}/{file}", f"{variant}/{file}", "--json")
    assert said.code == 0, said.err
    assert (said.json["baseline"]["folder"], said.json["candidate"]["folder"]) == (baseline, variant)


def copied(work: Path, to: Path) -> tuple[Path, Path, Path]:
    """The sweep with its variant twice: the baseline, the variant and its copy."""
    baseline, variant, *_ = runs(work)
    shutil.copytree(Path(baseline).parent, to)
    shutil.copytree(variant, to / "2")
    return to / Path(baseline).name, to / Path(variant).name, to / "2"


def test_holm_is_over_all_variants_of_the_sweep(cli: Cli, work: Path, tmp_path: Path) -> None:
    baseline, variant, _ = copied(work, tmp_path / "sweep")
    alone, together = cli(*runs(work)[:2], "--json"), cli(str(baseline), str(variant), "--json")
    assert (alone.code, together.code) == (0, 0), together.err
    # Two of the five definitions are in the table; with the copy, whose p-values are the same, there are twice as many
    # of each family, and the smallest p-value is taken twice as many times.
    decide = set(alone.json["table"])
    assert {row["definition"] in decide: row["family"] for row in alone.json["rows"]} == {True: 2, False: 5}
    assert {row["definition"] in decide: row["family"] for row in together.json["rows"]} == {True: 4, False: 10}
    smallest = min(row["p"]["value"] for row in alone.json["rows"] if row["definition"] in decide)
    adjusted = [
        min(row["adjusted"] for row in said.json["rows"] if row["definition"] in decide) for said in (alone, together)
    ]
    assert adjusted == [pytest.approx(min(1.0, times * smallest)) for times in (2, 4)]
    (note,) = (note for note in together.json["notes"] if "Holm" in note)
    told = "the 4 comparisons in definitions of the table, and all 10 for the others"
    assert note == f"Holm is over 2 variants of this sweep with its baseline: {told}"
    assert not any("Holm" in note for note in alone.json["notes"])


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda folder: (folder / "scores.jsonl").write_text('{"question_id": "1"'), "was cut off"),
        (lambda folder: (folder / "scores.jsonl").write_text("nonsense}\n"), "scores.jsonl, line 1: "),
        (lambda folder: (folder / "config.yaml").write_text("trial: ["), "cannot be read"),
        (lambda folder: (folder / "summary.json").write_text("{}"), "summary.json has no name"),
        (lambda folder: (folder / "records.jsonl").unlink(), "has no records.jsonl"),
        (lambda folder: shutil.rmtree(folder), None),
    ],
)
def test_a_broken_sibling_is_left_out_and_told(
    cli: Cli, work: Path, tmp_path: Path, change: Callable[[Path], object], told: str | None
) -> None:
    baseline, variant, other = copied(work, tmp_path / "sweep")
    change(other)
    said = cli(str(baseline), str(variant), "--json")
    assert said.code == 0, said.err
    assert {row["family"] for row in said.json["rows"]} == {2, 5}
    notes = [note for note in said.json["notes"] if note.startswith("not among the variants that Holm is over: ")]
    assert len(notes) == (told is not None)
    assert told is None or told in notes[0]


def test_a_comparison_outside_of_the_sweep_keeps_its_own_family(cli: Cli, work: Path, tmp_path: Path) -> None:
    _, variant, other = copied(work, tmp_path / "sweep")
    said = cli(str(other), str(variant), "--json")  # two variants
    assert {row["family"] for row in said.json["rows"]} == {2, 5}
