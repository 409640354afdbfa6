from __future__ import annotations

import hashlib
import json
from pathlib import Path
from time import process_time
from typing import Any

import pytest

from runner import results
from runner.config import Tracking, Trial
from runner.errors import StoreError
from runner.run_log import BaselineView, definition_key
from runner.tracking import Tracker, ui_command
from tests.tracking.conftest import Logged
from tests.tracking.made_results import definition, result


def files(run: Any) -> Path:
    return Path(run.info.artifact_uri.removeprefix("file://"))


def test_a_run_holds_means_counts_and_what_they_mean(logged: Logged) -> None:
    run = logged(result({"labels/recall@5": [0.5, 1.0, "no label"], "ragas/faithfulness": [0.25] * 3}, judge="j1"))
    assert run.info.status == "FINISHED"
    assert {name: value for name, value in run.data.metrics.items() if not name.startswith("usage/")} == {
        "labels/recall_at_5": 0.75,
        "n/labels/recall_at_5": 2,
        "failed/labels/recall_at_5": 1,
        "ragas/faithfulness": 0.25,
        "n/ragas/faithfulness": 3,
    }
    tags = run.data.tags
    assert tags["paribus.definition.labels/recall_at_5"] == definition("labels/recall@5").fingerprint
    assert tags["paribus.judge.labels/recall_at_5"] == "j1"
    assert (tags["paribus.dataset.name"], tags["paribus.dataset.version"]) == ("tiny", "2")
    assert tags["paribus.dataset.checksum"] == "c" * 64
    assert tags["paribus.config_fingerprint"] == "f" * 16
    assert tags["paribus.environment.git_dirty"] == "true"
    assert tags["paribus.environment.packages.bm25s"] == "0.3.1"
    assert tags["mlflow.source.git.commit"] == "abc"
    assert run.data.params == {"chunker._target_": "x.Y", "chunker.size": "256", "choice/embedder": "wordllama"}


def test_the_result_folder_and_the_dataset_are_there(logged: Logged) -> None:
    run = logged(result({"labels/recall@5": [0.5]}))
    names = {path.name for path in (files(run) / "results").iterdir()}
    assert names >= {results.SUMMARY, results.CONFIG, results.RECORDS, results.SCORES, results.QUESTIONS, results.TABLE}
    assert "labels/recall@5" in json.loads((files(run) / "results" / results.SUMMARY).read_text())["means"]
    (used,) = run.inputs.dataset_inputs
    assert (used.dataset.name, used.dataset.digest) == ("tiny", "c" * 36)
    assert json.loads(used.dataset.profile) == {"questions": 1}


def test_nothing_that_is_not_a_number_is_logged(logged: Logged, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = ["recall@5", "ndcg@10", "faithfulness(ragas)", "P=1", "../x", ""]
    made = result({**{key: [0.5] for key in keys}, "precision@5": ["the judge refused"], "mrr": [0.5]})
    means = made.means()
    monkeypatch.setattr(type(made), "means", lambda self: {**means, "mrr": results.Mean(float("inf"), 1, 0, 0)})
    monkeypatch.setattr(results, "write", lambda result, folder: folder.mkdir())
    run = logged(made)
    assert {definition_key(name) for name, value in run.data.metrics.items() if value == 0.5} == set(keys)
    assert {"precision_at_5", "mrr"}.isdisjoint(run.data.metrics)
    assert run.data.tags["paribus.no_value.precision_at_5"] == (
        "0 of 1 questions have a value; the first: the judge refused"
    )
    assert run.data.tags["paribus.no_value.mrr"] == "the mean is inf, which is not a finite number"


def test_prompts_that_differ_at_the_end_are_kept_whole_and_apart(logged: Logged) -> None:
    runs = {}
    for ending in ("ONE", "TWO"):
        prompt = "A" * 7000 + ending
        run = logged(result({"labels/recall@5": [0.5]}, config={"prompt": {"template": prompt}}))
        runs[ending] = run.data.params["prompt.template"]
        assert hashlib.sha256(prompt.encode()).hexdigest() in runs[ending]
        assert (files(run) / "params" / "prompt.template.txt").read_text() == prompt
    assert runs["ONE"] != runs["TWO"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (["a", 1], '["a", 1]'),
        (None, "null"),
        (True, "true"),
        ("", ""),
        ({}, "{}"),
        ("é\ud800", "é\\ud800"),
        ("x" * 6000, "x" * 6000),
    ],
    ids=["list", "null", "bool", "empty", "mapping", "surrogate", "limit"],
)
def test_params_are_written_as_overrides_are_typed(logged: Logged, value: Any, text: str) -> None:
    run = logged(result({"labels/recall@5": [0.5]}, config={"a": {"b@c": 1, "value": value}}, environment={}))
    assert run.data.params == {"a.b_at_c": "1", "a.value": text, "choice/embedder": "wordllama"}


def test_more_of_everything_than_fits_one_call(logged: Logged) -> None:
    values = {f"labels/d{number}": [0.5, "none"] for number in range(400)}
    run = logged(result(values, config={"a": {f"k{number}": number for number in range(250)}}))
    assert len(run.data.metrics) == 1200
    assert len(run.data.params) == 251
    assert sum(tag.startswith("paribus.definition.") for tag in run.data.tags) == 400


def test_a_tag_that_is_too_long_is_kept_whole(logged: Logged) -> None:
    told = "because " * 2000
    run = logged(result({"labels/recall@5": [0.5]}, environment={"note": told}))
    (kept,) = (files(run) / "tags").iterdir()
    assert kept.read_text().endswith(told)
    assert f"whole in tags/{kept.name}" in run.data.tags["paribus.environment.note"]


def baseline_of(tracker: Tracker, run: Any) -> BaselineView:
    return tracker.load_baseline(run.info.run_id)


def test_a_baseline_reads_back_from_tracking_alone(tracker: Tracker, logged: Logged) -> None:
    made = result({"labels/recall@5": [0.1, 0.2, 0.7], "labels/mrr": ["no label"] * 3}, judge="j1")
    run = logged(made)
    read = baseline_of(tracker, run)
    assert read.means == {"labels/recall@5": made.means()["labels/recall@5"].value}
    assert read.fingerprints == {key: card.fingerprint for key, card in made.definitions.items()}
    assert read.judges == {"labels/recall@5": "j1", "labels/mrr": "j1"}
    assert read.dataset_checksum == "c" * 64


def test_differences_are_logged_beside_a_comparable_baseline(tracker: Tracker, logged: Logged) -> None:
    baseline = baseline_of(tracker, logged(result({"labels/recall@5": [0.5], "labels/mrr": [0.5]})))
    run = logged(result({"labels/recall@5": [0.75], "labels/mrr": ["no label"], "labels/new": [1.0]}), baseline)
    assert run.data.metrics["baseline/labels/recall_at_5"] == 0.5
    assert run.data.metrics["delta/labels/recall_at_5"] == 0.25
    assert sum(name.startswith(("delta/", "baseline/")) for name in run.data.metrics) == 2
    assert "paribus.not_comparable" not in run.data.tags


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"checksum": "d" * 64}, f"dataset: {'d' * 64}, in the baseline {'c' * 64}"),
        ({"version": "2"}, f"labels/mrr: definition {definition('labels/mrr', version='2').fingerprint}, in the"),
        ({"judge": "j2"}, "labels/mrr: judge j2, in the baseline j1"),
    ],
    ids=["dataset", "definition", "judge"],
)
def test_what_is_not_comparable_is_not_subtracted(
    tracker: Tracker, logged: Logged, changed: dict[str, Any], said: str
) -> None:
    baseline = baseline_of(tracker, logged(result({"labels/mrr": [0.5]}, judge="j1")))
    run = logged(result({"labels/mrr": [0.75]}, **({"judge": "j1"} | changed)), baseline)
    assert not any(name.startswith(("delta/", "baseline/")) for name in run.data.metrics)
    assert said in run.data.tags["paribus.not_comparable"]


def test_only_finished_results_of_ours_are_baselines(tracker: Tracker, client: Any) -> None:
    with pytest.raises(StoreError, match="not found"):
        tracker.load_baseline("0" * 32)
    with tracker.run("run", Trial(), {}) as handle, pytest.raises(StoreError, match="is RUNNING"):
        tracker.load_baseline(handle.run_id)
    with pytest.raises(StoreError, match="no results of paribus"):
        tracker.load_baseline(handle.run_id)


def test_a_sweep_holds_its_runs_its_plan_and_its_table(tracker: Tracker, client: Any) -> None:
    plan = [{"run": "baseline", "value": None}, {"run": "k=3", "value": "3"}]
    with tracker.sweep("sweep", {"paribus.sweep": "s1"}, plan) as parent:
        trial = Trial(
            design="variant", sweep="s1", variable="k", value="3", parent_run_id=parent.run_id, baseline_run_id="b"
        )
        with tracker.run("k=3", trial, {}) as child:
            pass
        table = [{"run": "baseline", "variable": None, "definition": "a/b", "mean": 0.5}]
        failed = {"run": "k=3", "variable": "k", "value": "3", "baseline_value": "5", "error": "no, not today"}
        parent.log([*table, failed], failed=1)
    run = client.get_run(parent.run_id)
    assert run.data.metrics == {"runs/finished": 1, "runs/failed": 1}
    assert (files(run) / "plan.csv").read_text() == "run,value\nbaseline,\nk=3,3\n"
    assert (files(run) / "sweep.csv").read_text() == (
        'run,variable,definition,mean,value,baseline_value,error\nbaseline,,a/b,0.5,,,\nk=3,k,,,3,5,"no, not today"\n'
    )
    tags = client.get_run(child.run_id).data.tags
    assert tags["mlflow.parentRunId"] == parent.run_id
    assert tags["mlflow.evaluation.baselineRunId"] == tags["paribus.baseline_run_id"] == "b"
    assert [tags[f"paribus.{name}"] for name in ("design", "variable", "value", "sweep")] == ["variant", "k", "3", "s1"]


def test_mlflow_run_id_in_the_environment_is_not_followed(
    tracker: Tracker, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tracker.sweep("sweep", {}, []) as parent:
        monkeypatch.setenv("MLFLOW_RUN_ID", parent.run_id)
        monkeypatch.setenv("MLFLOW_TRACKING_URI", "sqlite:////nowhere/else.db")
        with tracker.run("run", Trial(parent_run_id=parent.run_id), {}) as child:
            assert child.run_id != parent.run_id
    assert client.get_run(parent.run_id).info.status == "FINISHED"


def test_no_secret_reaches_any_file(
    tracker: Tracker, folder: Path, client: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    key, password, token = secrets = "sk-test-PLANTED-0001", "hunter2", "ghp_PLANTED"
    url = f"http://bob:{password}@127.0.0.1:5000"
    made = result(
        {"labels/recall@5": [f"GET {url} failed"]},
        config={
            "generator": {"api_key": key, "headers": [{"auth_token": token}], "base_url": url},
            "tracking": {"uri": url},
        },
        environment={"index_url": url, "api_key": key},
    )
    (tmp_path / "kept").mkdir()
    with tracker.run("run", Trial(), {"note": url}) as handle:
        handle.log(made, tmp_path / "kept", None)
    with pytest.raises(OSError, match="refused"), tracker.run("run", Trial(), {}):
        raise OSError(f"{url} refused")
    assert client.get_run(handle.run_id).data.params["generator.base_url"] == "http://[removed]@127.0.0.1:5000"
    output = "".join(capfd.readouterr())
    for secret in secrets:
        assert secret not in output
        files = [path for path in folder.rglob("*") if path.is_file()]
        assert [path for path in files if secret.encode() in path.read_bytes()] == []


def timed(folder: Path, kept: Path, made: Any, traces: int) -> float:
    """Seconds of this process that logging takes; its first run is not counted."""
    tracker = Tracker(Tracking(folder=str(folder), traces=traces))
    results.write(made, kept)
    seconds = 0.0
    for _ in range(2):
        with tracker.run(made.name, Trial(), {}) as handle:
            began = process_time()
            handle.log(made, kept, None)
            seconds = process_time() - began
    return seconds


def test_logging_sixty_questions_is_quick(folder: Path, tmp_path: Path) -> None:
    """Measured 0.25 s on two cores; the limit leaves room for a busy machine."""
    made = result({f"labels/definition{number}@5": [0.5] * 60 for number in range(25)}, judge="j")
    assert timed(folder, tmp_path / "kept", made, traces=0) < 3


def test_a_trace_costs_milliseconds(folder: Path, tmp_path: Path) -> None:
    """Measured 16 ms a question with six assessments on two cores; the limit leaves room for a busy machine."""
    made = result({f"labels/definition{number}@5": [0.5] * 60 for number in range(5)})
    kept = tmp_path / "kept"
    assert timed(folder, kept, made, traces=60) - timed(folder, kept, made, traces=0) < 60 * 0.145


def test_two_thousand_questions(tracker: Tracker, client: Any, tmp_path: Path) -> None:
    made = result({f"labels/definition{number}@5": [0.5] * 2000 for number in range(5)})
    results.write(made, tmp_path / "kept")
    began = process_time()
    with tracker.run("run", Trial(), {}) as handle:
        handle.log(made, tmp_path / "kept", None)
    assert process_time() - began < 20
    run = client.get_run(handle.run_id)
    assert run.data.metrics["n/labels/definition0_at_5"] == 2000
    assert run.data.tags["paribus.traces"] == "200 of 2000 questions"


def test_a_failure_in_the_middle_loses_nothing(
    tracker: Tracker, client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, kept = result({"labels/recall@5": [0.5]}), tmp_path / "kept"
    results.write(made, kept)
    before = {path.name: path.read_bytes() for path in kept.iterdir()}

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tracker._client, "log_artifacts", full)
    said = "No space left on device.*Nothing is lost: the results are in .*kept"
    with pytest.raises(StoreError, match=said), tracker.run("run", Trial(), {}) as handle:
        handle.log(made, kept, None)
    assert {path.name: path.read_bytes() for path in kept.iterdir()} == before
    run = client.get_run(handle.run_id)
    assert run.info.status == "FAILED"
    assert "No space left" in run.data.tags["paribus.reason"]


def test_the_command_that_opens_the_tracking_data() -> None:
    assert ui_command(Tracking()) == "paribus ui"
    assert ui_command(Tracking(folder="/a b")) == "paribus ui 'tracking.folder='\"'\"'/a b'\"'\"''"
    assert ui_command(Tracking(experiment="mine")) == "paribus ui tracking.experiment=mine"
    remote = ui_command(Tracking(uri="http://bob:h/unter@2@host:5000"))
    assert remote == "paribus ui tracking.uri=http://host:5000"
