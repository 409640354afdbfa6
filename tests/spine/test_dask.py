"""The variants of a sweep run on the workers of a Dask cluster."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

distributed = pytest.importorskip("distributed", reason="needs the extra `dask`")
pytestmark = pytest.mark.slow

WITNESS = '''
from pathlib import Path

from runner.stage import Chunker


class WitnessChunker(Chunker):
    """One chunk a document; leaves a file that says whether a Dask worker made it."""

    folder: str
    number: int

    def spans(self, text: str) -> list[tuple[int, int]]:
        from distributed import get_worker

        try:
            place = get_worker().address
        except ValueError:
            place = "no worker"
        Path(self.folder, str(self.number)).write_text(place)
        return [(0, len(text))]
'''


@pytest.fixture
def scheduler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    (tmp_path / "witness.py").write_text(WITNESS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))  # for the command
    monkeypatch.syspath_prepend(tmp_path)  # for the workers, which get the path of this process
    cluster = distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None, host="127.0.0.1")
    yield cluster.scheduler_address
    cluster.close()


def _sweep(folder: Path, *overrides: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "runner", "sweep", "--json", "tracking=off", "launcher=dask", *overrides]
    return subprocess.run(command, cwd=folder, env=os.environ, capture_output=True, text=True, check=False)


def test_variants_run_on_dask_workers_and_results_come_back(scheduler: str, tmp_path: Path) -> None:
    (tmp_path / "chunker").mkdir()
    (tmp_path / "seen").mkdir()
    yaml = f"_target_: witness.WitnessChunker\nfolder: {tmp_path / 'seen'}\nnumber: 0\n"
    (tmp_path / "chunker" / "witness.yaml").write_text(yaml)
    done = _sweep(
        tmp_path,
        *("--config-dir", ".", "chunker=witness", "chunker.number=0,1,2", "dataset.limit=5"),
        f"hydra.launcher.scheduler={scheduler}",
    )
    assert done.returncode == 0, done.stderr
    assert [row["run"] for row in json.loads(done.stdout)["rows"]] == [
        "baseline",
        "chunker.number=1",
        "chunker.number=2",
    ]
    places = {path.name: path.read_text() for path in (tmp_path / "seen").iterdir()}
    assert set(places) == {"0", "1", "2"}
    assert all(place.startswith("tcp://127.0.0.1") for place in places.values()), places


def test_a_scheduler_that_does_not_answer_is_named(tmp_path: Path) -> None:
    done = _sweep(tmp_path, "retriever.k=3,5", "dataset.limit=5", "hydra.launcher.scheduler=tcp://127.0.0.1:9")
    assert done.returncode == 2
    assert "tcp://127.0.0.1:9: no Dask scheduler answers" in done.stderr
    assert "Traceback" not in done.stderr
