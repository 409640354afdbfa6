"""The command line as a person meets it: help, exit codes, what is printed and where things are written."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from time import perf_counter

import pytest

from tests.spine.commands import FAST, ROOT, Say, config_of, scores_of, write_yaml

PYTHON = Path(sys.executable)
PARIBUS = PYTHON.parent / "paribus"
HEAVY = [
    "mlflow",
    "ragas",
    "deepeval",
    "trulens",
    "torch",
    "sklearn",
    "pandas",
    "numpy",
    "hydra",
    "omegaconf",
    "pydantic",
    "joblib",
    "rich",
    "yaml",
    "openai",
]
FRAMEWORKS = ["ragas", "deepeval", "trulens", "torch", "mlflow", "pandas", "langchain", "openai"]


def imported(code: str, cwd: Path) -> set[str]:
    """The top-level modules that a fresh interpreter has after `code`."""
    done = subprocess.run(
        [PYTHON, "-c", f"import sys\n{code}\nprint('MODULES', *{{name.split('.')[0] for name in sys.modules}})"],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.splitlines()[-1].split()[1:])


HELP = "from runner.cli import main\ntry:\n    main({!r})\nexcept SystemExit:\n    pass"


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["sweep", "--help"], ["--version"], []], ids=str)
def test_help_imports_nothing_heavy(folder: Path, arguments: list[str]) -> None:
    assert not imported(HELP.format(arguments), folder) & set(HEAVY)


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["sweep", "--help"], ["--version"]], ids=str)
def test_help_answers_in_half_a_second(folder: Path, arguments: list[str]) -> None:
    seconds = []
    for _ in range(5):
        began = perf_counter()
        subprocess.run([PARIBUS, *arguments], cwd=folder, capture_output=True, check=True)
        seconds.append(perf_counter() - began)
        if seconds[-1] < 0.5:
            break
    assert min(seconds) < 0.5


def test_the_default_experiment_imports_no_framework(folder: Path) -> None:
    code = "from runner.cli import main\nassert main(['run', 'tracking=off', 'dataset=jsonl']) == 0"
    assert not imported(code, folder) & set(FRAMEWORKS)


def test_the_four_ways_to_type_it_do_the_same(typed: Say, folder: Path) -> None:
    options = [f"--config-dir={folder / 'more'}", *FAST]
    run = typed(PARIBUS, "run", "--json", *options)
    same = typed(PYTHON, "-m", "runner", "--json", *options)
    assert (run.code, same.code) == (0, 0), same.err
    assert scores_of(run.json) == scores_of(same.json)
    plan = ("--json", "--dry-run", *options, "retriever.k=1,2")
    sweep, habit = typed(PARIBUS, "sweep", *plan), typed(PYTHON, "-m", "runner", "-m", *plan)
    assert (sweep.code, habit.code) == (0, 0), habit.err
    assert sweep.out == habit.out


def test_a_run_and_the_baseline_of_a_sweep_have_the_same_scores(say: Say) -> None:
    baseline = say("sweep", "--json", "retriever.k=5,1").json["rows"][0]["outcome"]
    assert scores_of(say("run", "--json").json) == scores_of(baseline)


def test_exit_codes_tell_done_from_failed_from_wrong(say: Say) -> None:
    assert say("run").code == 0
    assert say("run", "chunker=backwards").code == 1
    assert say("run", "retriever.k=0").code == 2
    assert say("sweep", "reranker=none,shortest", "reranker.short_of=1").code == 2
    assert say("run", "--no-such-option").code == 2
    assert say("frobnicate", fast=False).code == 2


def test_a_person_never_sees_a_traceback(say: Say) -> None:
    for arguments in (
        ["chunker=backwards"],
        ["retriever.k=0"],
        ["dataset.path=nowhere"],
        ["tracking.folder=data/documents.jsonl"],
    ):
        said = say("run", *arguments)
        assert said.code in (1, 2)
        assert said.err.startswith("paribus: ")
        assert "Traceback" not in said.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "--json"],
        ["sweep", "--json", "retriever.k=1,5"],
        ["sweep", "--json", "--dry-run", "retriever.k=1,5"],
        ["sweep", "--json", "retriever.k=1,2", "retriever.at=[2]"],
    ],
    ids=" ".join,
)
def test_json_is_one_document_and_nothing_else_on_stdout(say: Say, arguments: list[str]) -> None:
    said = say(*arguments)
    assert isinstance(json.loads(said.out), dict)
    assert "NaN" not in said.out


def test_json_is_for_one_command_only(say: Say) -> None:
    assert say("sweep", "--json", "--dry-run", "retriever.k=1").json
    assert say("sweep", "--dry-run", "retriever.k=1").out.startswith("Plan: ")


def test_tables_fit_a_hundred_columns_and_carry_no_colour_codes(say: Say, folder: Path) -> None:
    long = "a_very_long_name_of_a_prompt_that_goes_on_and_on"
    keys = {"_target_": "runner.prompts.chat.ChatPrompt", "template": "{context} {question}", "passage": "{text}"}
    write_yaml(folder / "more", f"prompt/{long}", **keys)
    texts = "prompt.passage='{text} [bold]not markup[/bold]  ä',\"{text}\""
    said = say("sweep", "retriever.k=1,2", f"prompt={long}", "metrics=retrieval", texts)
    assert said.code == 0, said.err
    assert "[bold]" in said.out
    assert "\x1b" not in said.out + said.err
    # A word of a command that must be pasted is not broken.
    wide = [line for line in said.out.splitlines() if len(line) > 100]
    assert all(line.startswith("        ") and len(line.removesuffix("\\").split()) == 1 for line in wide), wide


def test_hydras_own_options_still_work(say: Say) -> None:
    said = say("run", "--cfg", "job")
    assert (said.code, said.out.splitlines()[0]) == (0, "dataset:")
    assert "VerbatimConfigSource" in say("run", "--info").out
    assert "Hydra" in say("run", "--hydra-help", fast=False).out
    assert "retriever" in say("sweep", "--cfg", "job").out


@pytest.mark.parametrize("launcher", ["serial", "joblib"])
def test_the_basic_sweeper_runs_the_product_and_marks_it(say: Say, folder: Path, launcher: str) -> None:
    said = say(
        "sweep",
        "hydra/sweeper=basic",
        f"launcher={launcher}",
        "retriever.k=1,2",
        "prompt=plain,cited",
        "context.order=rank",
    )
    assert said.code == 0, said.err
    configs = sorted((folder / "mlruns/results").glob("*/*/config.yaml"))
    trials = [config_of({"folder": str(path.parent)})["trial"] for path in configs]
    assert [trial["design"] for trial in trials] == ["cartesian"] * 4
    assert all(trial["changed"] == ["retriever.k", "prompt"] for trial in trials)
    assert {trial["value"] for trial in trials} == {
        f"retriever.k={k},prompt={prompt}" for k in (1, 2) for prompt in ("plain", "cited")
    }


def test_a_dry_run_of_the_product_runs_nothing(say: Say, folder: Path) -> None:
    said = say("sweep", "--dry-run", "hydra/sweeper=basic", "retriever.k=1,2")
    assert said.code == 2
    assert not list(folder.glob("mlruns/results/*/*/summary.json"))


def test_nothing_is_written_but_the_tracking_folder(say: Say, folder: Path) -> None:
    before = {path.name for path in folder.iterdir()}
    assert say("sweep", "retriever.k=1").code == say("run").code == 0
    assert say("sweep", "--dry-run", "retriever.k=1").code == 0
    assert {path.name for path in folder.iterdir()} - before == {"mlruns"}
    assert {path.name for path in (folder / "mlruns").iterdir()} == {"results", "store"}
    assert not list(folder.rglob(".hydra"))


def test_a_dry_run_writes_nothing(say: Say, folder: Path) -> None:
    assert say("sweep", "--dry-run", "retriever.k=1").code == 0
    assert not (folder / "mlruns").exists()


def test_relative_paths_are_relative_to_the_working_directory(
    say: Say, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "below").mkdir()
    monkeypatch.chdir(folder / "below")
    assert say("run", "dataset.path=../data", "tracking.folder=../results").code == 0
    assert not list((folder / "below").iterdir())
    assert (folder / "results/store").is_dir()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_working_directory_is_told(say: Say, folder: Path) -> None:
    folder.chmod(0o500)
    try:
        said = say("run")
    finally:
        folder.chmod(0o700)
    assert said.code == 1
    assert "Permission denied" in said.err
    assert "Traceback" not in said.err


@pytest.mark.parametrize(
    "command", [["run"], ["sweep", "retriever.k=1"], ["sweep", "retriever.k=1", "launcher=joblib"]]
)
def test_a_folder_that_cannot_be_made_is_told(say: Say, command: list[str]) -> None:
    said = say(*command, "tracking.folder=data/documents.jsonl")
    assert said.code == 1
    assert "data/documents.jsonl" in said.err
    assert "tracking.folder" in said.err
    assert "Traceback" not in said.err


def test_secrets_are_refused_or_removed_before_anything_is_written(say: Say, folder: Path) -> None:
    assert say("run", "+generator.api_key=sk-123").code == 2
    said = say("run", "--json", "tracking.uri=http://name:sk-123@host/")
    assert said.code == 0
    written = "".join(path.read_text(errors="replace") for path in folder.rglob("mlruns/**/*") if path.is_file())
    assert "sk-123" not in written + said.out + said.err
    assert "http://[removed]@host/" in written


def test_the_exit_codes_are_told_in_the_help_of_every_command(typed: Say) -> None:
    for arguments in ([], ["run"], ["sweep"]):
        said = typed(PARIBUS, *arguments, "--help")
        assert re.search(r"0 done; 1 .*; 2 .*; 130 interrupted", said.out)


def test_a_checkout_and_a_wheel_find_the_same_configuration() -> None:
    from runner.yaml_folders import conf_dir

    assert conf_dir() in (ROOT / "conf", ROOT / "runner/conf")
    assert (conf_dir() / "config.yaml").is_file()
