from __future__ import annotations

import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from runner import results
from runner.config import Tracking, Trial
from runner.errors import StoreError
from runner.tracking import Tracker, database
from runner.tracking.ui import show
from tests.tracking.made_results import result


def python(code: str, *arguments: str) -> subprocess.Popen[str]:
    """A process without the marks by which MLflow knows that it is being tested and keeps telemetry off."""
    marks = ("CI", "PYTEST_CURRENT_TEST", "PYTEST_VERSION")
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={key: value for key, value in os.environ.items() if key not in marks},
    )


def test_importing_tracking_does_not_import_mlflow() -> None:
    process = python("import sys, runner.tracking; sys.exit('mlflow' in sys.modules)")
    assert process.wait(120) == 0


CHILD = """
import sys
from pathlib import Path
from runner.config import Tracking, Trial
from runner.tracking import Tracker, database
from tests.tracking.made_results import result

tracker = Tracker(Tracking(folder=sys.argv[1]))
Path(sys.argv[1], "kept").mkdir(exist_ok=True)
for _ in range(3):
    with tracker.run("run", Trial(), {}) as handle:
        handle.log(result({"labels/recall@5": [0.5] * 10}), Path(sys.argv[1], "kept"), None)
"""


@pytest.mark.slow
@pytest.mark.parametrize("initialised", [True, False], ids=["after the parent", "all at once"])
def test_six_processes_log_at_the_same_time(tmp_path: Path, initialised: bool) -> None:
    settings = Tracking(folder=str(tmp_path))
    if initialised:
        Tracker(settings)
    processes = [python(CHILD, str(tmp_path)) for _ in range(6)]
    for process in processes:
        said = process.communicate(timeout=300)
        assert process.returncode == 0, said
    found = Tracker(settings)._client.search_runs(["1"])
    assert [run.info.status for run in found] == ["FINISHED"] * 18
    assert all(run.data.metrics["n/labels/recall_at_5"] == 10 for run in found)


OFFLINE = """
import socket, sys
real = socket.socket.connect

def guarded(self, address):
    if self.family != socket.AF_UNIX and address[0] not in ("127.0.0.1", "::1", "localhost"):
        print("connects to", address, flush=True)
        raise OSError("no network in this test")
    return real(self, address)

def resolve(host, *rest, **more):
    print("resolves", host, flush=True)
    raise OSError("no network in this test")

socket.socket.connect = guarded
socket.getaddrinfo = resolve
"""


@pytest.mark.slow
def test_a_fresh_database_is_silent_and_opens_no_connection(tmp_path: Path) -> None:
    process = python(OFFLINE + CHILD + "import time; time.sleep(5)", str(tmp_path))
    assert process.communicate(timeout=300) == ("", "")
    assert process.returncode == 0


def refused(settings: Tracking) -> str:
    with pytest.raises(StoreError) as caught:
        Tracker(settings)
    said = str(caught.value)
    assert "\n" not in said
    assert "hunter2" not in said
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return said


def test_a_file_in_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    said = refused(Tracking(folder=str(tmp_path / "file" / "mlruns")))
    assert said.removeprefix(f"cannot use {tmp_path}/file/mlruns/mlflow.db: ") == (
        "Not a directory; set tracking.folder to another folder"
    )


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert "Permission denied" in refused(Tracking(folder=str(tmp_path)))


def test_a_folder_in_place_of_the_database(tmp_path: Path) -> None:
    (tmp_path / "mlflow.db").mkdir()
    assert "unable to open database file" in refused(Tracking(folder=str(tmp_path)))


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "mlflow.db").write_text("these are not the bytes of a database" * 99)
    assert "file is not a database" in refused(Tracking(folder=str(tmp_path)))


def test_an_old_file_store(tmp_path: Path) -> None:
    (tmp_path / "0").mkdir()
    (tmp_path / "0" / "meta.yaml").touch()
    assert "0/meta.yaml belongs to an old MLflow file store, which MLflow 3." in refused(Tracking(folder=str(tmp_path)))
    assert not (tmp_path / "mlflow.db").exists()


@pytest.mark.parametrize("uri", ["mlruns", "./mlruns", "file:///x/mlruns", "file:mlruns", "bob:hunter2@host:5000"])
def test_a_folder_as_uri(uri: str) -> None:
    assert "sqlite:///<folder>/mlflow.db" in refused(Tracking(uri=uri))


def test_a_database_without_its_driver(tmp_path: Path) -> None:
    said = refused(Tracking(uri="postgresql://bob:hunter2@127.0.0.1:1/db", folder=str(tmp_path)))
    assert said.startswith("MLflow could not use postgresql://127.0.0.1:1/db: ")


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("90e64c465722", "copy the file, then run: mlflow db upgrade sqlite:///"),
        ("f00", "was made by a newer MLflow than 3."),
    ],
    ids=["older", "newer"],
)
def test_a_database_of_another_mlflow(folder: Path, version: str, said: str) -> None:
    with closing(sqlite3.connect(folder / "mlflow.db", isolation_level=None)) as database:
        database.execute("UPDATE alembic_version SET version_num = ?", [version])
    before = (folder / "mlflow.db").read_bytes()
    assert said in refused(Tracking(folder=str(folder)))
    assert (folder / "mlflow.db").read_bytes() == before


def test_a_database_that_stays_locked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "LOCK_WAIT", 0.2)
    with closing(sqlite3.connect(folder / "mlflow.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert "mlflow.db is locked by another program (waited 0.2 s)" in refused(Tracking(folder=str(folder)))


@pytest.mark.slow
def test_a_database_that_is_locked_while_a_run_is_logged(
    tracker: Tracker, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(database, "LOCK_WAIT", 0.0)
    made = result({"labels/recall@5": [0.5]})
    results.write(made, tmp_path / "kept")
    with closing(sqlite3.connect(folder / "mlflow.db", isolation_level=None)) as other:

        def log_while_locked() -> None:
            with tracker.run("run", Trial(), {}) as handle:
                other.execute("BEGIN IMMEDIATE")
                handle.log(made, tmp_path / "kept", None)

        with pytest.raises(StoreError, match=r"is locked by another program.*the results are in .*kept") as caught:
            log_while_locked()
    assert "may still say RUNNING" in caught.value.__notes__[0]
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("said", ["database is locked", "UNIQUE constraint failed: datasets.name, datasets.digest"])
def test_what_passes_is_waited_for(tracker: Tracker, said: str) -> None:
    from mlflow.exceptions import MlflowException

    tries = []

    def in_the_way_twice() -> str:
        tries.append(1)
        if len(tries) < 3:
            raise MlflowException(said)
        return "done"

    assert tracker._call(in_the_way_twice) == "done"


def test_a_deleted_experiment(tracker: Tracker, client: Any, folder: Path) -> None:
    client.delete_experiment(client.get_experiment_by_name("paribus").experiment_id)
    assert "mlflow experiments restore --experiment-id 2" in refused(Tracking(folder=str(folder)))


def test_a_folder_that_was_moved(tracker: Tracker, folder: Path, tmp_path: Path) -> None:
    folder.rename(tmp_path / "moved")
    said = refused(Tracking(folder=str(tmp_path / "moved")))
    assert f"keeps its files in {folder}/artifacts, which is gone; move the folder back" in said


@pytest.mark.parametrize("name", ["a b", "50%", "été", "#1", "it's"])
def test_folders_with_awkward_names(migrated: Path, tmp_path: Path, name: str) -> None:
    folder, kept = tmp_path / name, tmp_path / "kept"
    folder.mkdir()
    (folder / "mlflow.db").write_bytes(migrated.read_bytes())
    made = result({"labels/recall@5": [0.5]})
    results.write(made, kept)
    tracker = Tracker(Tracking(folder=str(folder)))
    with tracker.run("run", Trial(), {}) as handle:
        handle.log(made, kept, None)
    assert len(list((folder / "artifacts").rglob("summary.json"))) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([name, "kept"])
    assert [file.path for file in tracker._client.list_artifacts(handle.run_id)] == ["results"]


def test_a_question_mark_in_the_folder(tmp_path: Path) -> None:
    assert "cannot hold a '?'" in refused(Tracking(folder=str(tmp_path / "why?")))


def test_no_server() -> None:
    began = time.perf_counter()
    said = refused(Tracking(uri="http://bob:hunter2@127.0.0.1:9"))
    assert said.startswith("the tracking server at http://127.0.0.1:9 cannot be reached (Connection refused); start it")
    assert time.perf_counter() - began < 20
    assert not [name for name in os.environ if name.startswith("MLFLOW_HTTP")]


@pytest.fixture
def server(tmp_path: Path, migrated: Path) -> Iterator[str]:
    """The address of a real MLflow server on a free port: `paribus ui`, which SIGTERM ends with its children."""
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    home = tmp_path / "server"
    home.mkdir()
    shutil.copy(migrated, home / "mlflow.db")
    command = [sys.executable, "-m", "runner", "ui", "--no-open", "--port", str(port), f"tracking.folder={home}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == f"http://127.0.0.1:{port}/\n", process.communicate()
            yield f"127.0.0.1:{port}"
            process.terminate()
            assert process.wait(60) == 0
            with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port), 5):
                pass
        finally:
            process.kill()


@pytest.mark.slow
def test_a_real_server(server: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    settings = Tracking(uri=f"http://bob:hunter2@{server}", folder=str(tmp_path / "mlruns"))
    made = result({"labels/recall@5": [0.1, 0.2, 0.7]}, config={"a": "", "p": "é" * 7000})
    results.write(made, tmp_path / "kept")
    tracker = Tracker(settings)
    baseline = None
    for _ in range(2):
        with tracker.run("run", Trial(), {}) as handle:
            handle.log(made, tmp_path / "kept", baseline)
        baseline = Tracker(settings).load_baseline(handle.run_id)
        assert baseline.means == {"labels/recall@5": made.means()["labels/recall@5"].value}
    run = tracker._client.get_run(handle.run_id)
    assert run.data.metrics["delta/labels/recall_at_5"] == 0
    assert run.data.params["a"] == ""
    assert Path(tracker._client.download_artifacts(handle.run_id, "params/p.txt")).read_text() == "é" * 7000
    assert len(tracker._client.list_artifacts(handle.run_id, "results")) == 7
    assert "A single run." in run.data.tags["mlflow.note.content"]
    query = f"request_metadata.`mlflow.sourceRun` = '{handle.run_id}'"
    stored = tracker._client.search_traces(locations=[run.info.experiment_id], filter_string=query)
    assert sorted(trace.data.request for trace in stored) == [f'{{"question": "Question {n}?"}}' for n in range(3)]
    assert [len(trace.data.spans) for trace in stored] == [5, 5, 5]
    assert sorted(trace.info.assessments[0].value for trace in stored) == [0.1, 0.2, 0.7]
    point = {"run": "baseline", "variable": None, "definition": "labels/recall@5", "mean": 0.5, "run_id": handle.run_id}
    changed = {"run": "k=3", "variable": "k", "value": "3", "baseline_value": "5", "mean": 0.25, "delta": -0.25}
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "report.html").write_text("<h1>found</h1>")
    with tracker.sweep("sweep", {}, [{}, {}]) as parent:
        parent.log([point, {**point, **changed}], failed=0, report=tmp_path / "report")
    series = tracker._client.get_metric_history(parent.run_id, "by/k/labels/recall_at_5")
    assert sorted((metric.step, metric.value) for metric in series) == [(3, 0.25), (5, 0.5)]
    assert [file.path for file in tracker._client.list_artifacts(parent.run_id, "report")] == ["report/report.html"]
    assert "mlflow.sharedViewState.paribus" in tracker._client.get_experiment(run.info.experiment_id).tags
    assert tracker.close_stale() == []
    show(settings, None, opens=False, only_print=False)
    page = f"#/experiments/{run.info.experiment_id}/runs?viewStateShareKey=paribus"
    assert capfd.readouterr() == (f"http://{server}/{page}\n", "")
    with pytest.raises(StoreError, match=f"MLflow could not use http://{server}: .*not found"):
        tracker.load_baseline("0" * 32)
    assert capfd.readouterr() == ("", "")
    files = [path for path in tmp_path.rglob("*") if path.is_file() and path.parent.name != "kept"]
    assert [path for path in files if b"hunter2" in path.read_bytes()] == []
    assert not (tmp_path / "mlruns").exists()


def test_a_folder_that_mlflow_would_decode_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot hold '%20'"):
        Tracker(Tracking(folder=str(tmp_path / "a%20b")))
    assert not (tmp_path / "a b").exists()


def test_an_interrupted_first_start_leaves_a_folder_that_works(tmp_path: Path) -> None:
    (tmp_path / "mlflow.new").write_bytes(b"half a database")
    Tracker(Tracking(folder=str(tmp_path)))
    assert (tmp_path / "mlflow.db").exists()
    assert not (tmp_path / "mlflow.new").exists()


@pytest.mark.parametrize("uri", ["sqlite://", "sqlite:///:memory:"])
def test_a_database_that_keeps_nothing_is_refused(uri: str) -> None:
    with pytest.raises(StoreError, match="keeps nothing"):
        Tracker(Tracking(uri=uri))
