from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from runner.cli import main
from tests.spine.commands import FAST, Said, Say, write_test_set, write_yaml


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory: `data` holds the test set, `more` YAML of the stubs, for --config-dir."""
    work = tmp_path / "work"
    write_test_set(work / "data")
    stubs = {
        "retriever/stub": {"_target_": "spine_stubs.Overlap", "k": 5, "at": [], "fault": "none"},
        "generator/echo": {"_target_": "spine_stubs.Echo", "log": None, "fails": [], "stops_at": None},
        "reranker/shortest": {"_target_": "spine_stubs.Shortest", "candidates": 4, "short_of": 0},
        "chunker/backwards": {"_target_": "spine_stubs.Backwards", "size": 9},
    }
    for name, keys in stubs.items():
        write_yaml(work / "more", name, **keys)
    monkeypatch.chdir(work)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    return work


@pytest.fixture
def say(folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Say:
    """Runs `paribus …` in this process, on the test set and the stubs."""
    monkeypatch.setattr(sys, "argv", ["paribus"])
    monkeypatch.setattr(logging.root, "handlers", list(logging.root.handlers))  # Hydra's --info leaves one behind

    def command(name: str, *arguments: str, fast: bool = True) -> Said:
        capfd.readouterr()
        try:
            code = main([name, *((f"--config-dir={folder / 'more'}", *FAST) if fast else ()), *arguments])
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        return Said(int(code), *capfd.readouterr())

    return command


@pytest.fixture
def typed(folder: Path) -> Say:
    """Runs a command line as a person types it, in a process of its own."""

    def command(*arguments: str | Path, cwd: Path = folder, **environment: str) -> Said:
        done = subprocess.run(
            [str(argument) for argument in arguments],
            cwd=cwd,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=120,
        )
        return Said(done.returncode, done.stdout, done.stderr)

    return command
