"""The built wheel works by itself: configuration, sample and plugins are inside it."""

from __future__ import annotations

import json
import os
import site
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.slow


def _run(*command: str | Path, cwd: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment that has the wheel, and the dependencies of this one; returns its bin folder."""
    folder = tmp_path_factory.mktemp("wheel")
    _run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder / "dist", cwd=ROOT)
    (wheel,) = (folder / "dist").glob("paribus-*.whl")
    venv.create(folder / "env", with_pip=True)
    bin_folder = folder / "env" / "bin"
    _run(bin_folder / "pip", "install", "-q", "--no-deps", "--no-index", wheel, cwd=folder)
    # A plain path in a .pth file brings the dependencies but not this environment's editable install of paribus.
    (packages,) = (folder / "env" / "lib").glob("python*/site-packages")
    (packages / "dependencies.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    return bin_folder


def test_the_wheel_runs_a_tracked_sweep_in_an_empty_folder(installed: Path, tmp_path: Path) -> None:
    out = _run(installed / "paribus", "sweep", "--json", "retriever.k=3,5", "dataset.limit=8", cwd=tmp_path)
    rows = json.loads(out)["rows"]
    assert [row["run"] for row in rows] == ["baseline", "retriever.k=3"]
    assert all(row["outcome"]["run_id"] for row in rows)
    assert [path.name for path in tmp_path.iterdir()] == ["mlruns"]


def test_the_wheel_is_what_ran(installed: Path, tmp_path: Path) -> None:
    code = "import runner; from runner.yaml_folders import conf_dir; print(runner.__file__); print(conf_dir())"
    module, conf = _run(installed / "python", "-c", code, cwd=tmp_path).split()
    assert Path(module).is_relative_to(installed.parent)
    assert Path(conf) == Path(module).parent / "conf"
