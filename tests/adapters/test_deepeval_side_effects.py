"""What importing DeepEval and measuring with it leaves behind: nothing. One process of its own for all of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

CHILD = """
import os, sys

EVENTS, REPORT = sys.argv[1:]
WATCHED = ("socket.connect", "socket.bind", "socket.sendto", "socket.getaddrinfo", "socket.gethostbyname", "os.mkdir",
           "os.rename", "subprocess.Popen", "os.system", "os.posix_spawn", "os.fork", "os.exec")

def watch(event, arguments):
    if event == "socket.bind" and arguments[1][:2] == ("::1", 0):
        return  # urllib3 looks whether the machine has IPv6: nothing listens and nothing is sent.
    written = event == "open" and set(str(arguments[1])) & set("wax+") and arguments[0] not in (EVENTS, REPORT)
    if event in WATCHED or written:
        with open(EVENTS, "a") as told:
            told.write(f"{event} {str(arguments)[:200]}\\n")

sys.addaudithook(watch)

import asyncio, json, threading, warnings
from adapters.base import scorer
from adapters.bench import Bench
from adapters.isolation import SWITCHES
from tests.adapters.router import QUESTION, record
from tests.adapters.test_deepeval import GOLDEN, PeopleJudge

async def all_at_once():
    async with Bench(PeopleJudge()) as bench:
        measured = [scorer(golden.values[0]) for golden in GOLDEN]
        return await asyncio.gather(*(one.measure(QUESTION, record(), bench) for one in measured))

def process():
    loop = asyncio.new_event_loop()
    loop.close()
    return (asyncio.run, asyncio.Task, asyncio.Future, type(loop), type(loop).run_until_complete, type(loop)._run_once,
            threading.Thread, tuple(warnings.filters), hasattr(asyncio, "_nest_patched"))

assert "deepeval" not in sys.modules
environment, before = dict(os.environ), process()
scores = asyncio.run(all_at_once())
with open(REPORT, "w") as told:
    json.dump({
        "imported": "deepeval" in sys.modules,
        "scores": [[score.status, score.value, score.reason] for score in scores],
        "environment": sorted({name for name, _ in set(environment.items()) ^ set(os.environ.items())}),
        "switches": sorted(SWITCHES),
        "planted": os.environ.get("PLANTED"),
        "same_process": process() == before,
    }, told)
"""


@pytest.fixture(scope="module")
def child(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a process says that imports DeepEval and measures, in a folder with an .env, without a key, in an
    environment that would have DeepEval choose other models and another algorithm."""
    folder, told = tmp_path_factory.mktemp("empty"), tmp_path_factory.mktemp("told")
    (folder / ".env").write_text("PLANTED=1\nOPENAI_API_KEY=planted\n")
    (told / "events").touch()
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        "DEEPEVAL_EVAL_MODE": "hybrid",
        "DEEPEVAL_VERBOSE_MODE": "1",
        "TEMPERATURE": "1.5",
        "USE_LOCAL_MODEL": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(told / "events"), str(told / "report")],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {
        **json.loads((told / "report").read_text()),
        "printed": done.stdout + done.stderr,
        "events": (told / "events").read_text().splitlines(),
        "left": sorted(str(path.relative_to(folder)) for path in folder.rglob("*")),
    }


def test_it_measures_without_a_key_whatever_the_environment_says(child: dict[str, Any]) -> None:
    assert child["imported"]
    assert [score[:2] for score in child["scores"]] == [
        ["computed", value] for value in (0.8, 0.6, 1.0, 0.5, 0.5, 0.8, 0.5, 0.8)
    ], child["scores"]


def test_it_writes_no_file_opens_no_connection_and_starts_no_program(child: dict[str, Any]) -> None:
    """Until after the process ended: DeepEval sends and writes at exit."""
    assert child["left"] == [".env"]
    assert child["events"] == []


def test_the_env_file_is_not_read_and_the_environment_stays(child: dict[str, Any]) -> None:
    assert child["planted"] is None
    assert child["environment"] == child["switches"]


def test_asyncio_threads_and_warning_filters_stay(child: dict[str, Any]) -> None:
    assert child["same_process"]


def test_nothing_is_printed(child: dict[str, Any]) -> None:
    assert child["printed"] == ""
