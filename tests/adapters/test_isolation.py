"""What the frameworks may not do to the process, the disk and the network, at import, while measuring and at exit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
IDS = {"ragas": "ragas/faithfulness", "deepeval": "deepeval/faithfulness", "trulens": "trulens/groundedness"}

WATCH = """
import asyncio, atexit, builtins, concurrent.futures, concurrent.futures.thread, json, logging, os, socket, subprocess
import sys, threading, warnings

seen = {"connects": [], "lookups": [], "programs": []}

def refused(kind):
    def refuse(*arguments, **settings):
        # The event loop's own pair of sockets is no way out.
        if kind == "connects" and arguments[0].family not in (socket.AF_INET, socket.AF_INET6):
            return connect(*arguments)
        seen[kind].append(repr(arguments[-1] if kind == "connects" else arguments[:1]))
        raise OSError("no network here")
    return refuse

connect = socket.socket.connect
socket.socket.connect = refused("connects")
socket.socket.connect_ex = refused("connects")
for name in ("getaddrinfo", "gethostbyname", "gethostbyname_ex"):
    setattr(socket, name, refused("lookups"))
popen = subprocess.Popen.__init__
def counted(self, *arguments, **settings):
    seen["programs"].append(repr(arguments[:1]))
    return popen(self, *arguments, **settings)
subprocess.Popen.__init__ = counted

def state():
    loggers = logging.root
    return {
        "Thread": threading.Thread, "ThreadPoolExecutor": concurrent.futures.ThreadPoolExecutor,
        "pool of thread": concurrent.futures.thread.ThreadPoolExecutor, "new_event_loop": asyncio.new_event_loop,
        "run": asyncio.run, "run_until_complete": asyncio.BaseEventLoop.run_until_complete, "Task": asyncio.Task,
        "policy": type(asyncio.get_event_loop_policy()), "filters": list(warnings.filters),
        "showwarning": warnings.showwarning, "root": (loggers.level, list(loggers.handlers), loggers.disabled),
        "last resort": logging.lastResort, "disabled": loggers.manager.disable, "logger": logging.getLoggerClass(),
        "excepthook": sys.excepthook, "thread excepthook": threading.excepthook, "path": list(sys.path),
        "stdout": sys.stdout, "stderr": sys.stderr, "cwd": os.getcwd(), "trace": sys.gettrace(),
    }

def changed(before):
    now = state()
    return [name for name in before if now[name] != before[name]]

# Written first, so that it runs last, after what the frameworks do at exit.
def told():
    with open(os.environ["REPORT"], "w") as file:
        json.dump({**report, **seen}, file)
report = {}
atexit.register(told)
import asyncio.events, asyncio.sslproto, multiprocessing.pool  # what any program has imported
before, environment = state(), dict(os.environ)
"""

MEASURE = """
from adapters.bench import Bench
from adapters.base import scorer
from adapters.isolation import SWITCHES
from tests.adapters.router import QUESTION, record
from tests.adapters.scripted import ScriptedJudge

EVIL = {"criteria": "open('ran', 'w')", "supporting_evidence": "__import__('os').system('touch ran')", "score": 3}
judge = ScriptedJudge(replies={
    "grades": EVIL,
    "statements": lambda call: {"statements": ["open('ran', 'w')"]} if "ragas" in call.definition else "x",
    "truths": {"truths": ["open('ran', 'w')"]},
    "claims": {"claims": ["open('ran', 'w')"]},
    "verdicts": lambda call: {"statements": [{"statement": "open('ran', 'w')", "reason": "r", "verdict": 1}]}
        if "ragas" in call.definition else {"verdicts": [{"verdict": "yes", "reason": "open('ran', 'w')"}]},
})

async def measured(identifier):
    async with Bench(judge) as bench:
        factory = asyncio.get_running_loop().get_task_factory()
        score = await scorer(identifier).measure(QUESTION, record(), bench)
        assert asyncio.get_running_loop().get_task_factory() is factory
        return [score.value, score.reason]
"""

AFTERWARDS = """
import multiprocessing.pool
from joblib import Parallel, delayed
ran = []
thread = threading.Thread(None, ran.append, "a name", (1,))
thread.start(); thread.join()
with multiprocessing.pool.ThreadPool(2) as pool:
    ran += pool.map(abs, [-2])
with concurrent.futures.ThreadPoolExecutor(1) as pool:
    ran.append(pool.submit(abs, -3).result())
ran += Parallel(n_jobs=2, prefer="threads")(delayed(abs)(n) for n in [-4, -5])
report["ran"] = ran
"""


def child(folder: Path, *parts: str, status: int = 0) -> dict[str, Any]:
    """What a Python process reports that runs these parts to its end, in an empty folder that is also its home."""
    home = folder / "home"
    home.mkdir()
    (home / ".env").write_text("FROM_DOTENV=1\nOPENAI_API_KEY=sk-from-dotenv\n")
    (home / ".env.local").write_text("FROM_DOTENV_LOCAL=1\n")
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "LC_ALL", "VIRTUAL_ENV")}
    environment = {
        **kept,
        "HOME": str(home),
        "TMPDIR": str(home),
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        "REPORT": str(folder / "report.json"),
    }
    ran = subprocess.run(
        [sys.executable, "-c", "\n".join(map(textwrap.dedent, parts))],
        cwd=home,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == status, ran.stderr
    files = sorted(str(path.relative_to(home)) for path in home.rglob("*") if path.name not in (".env", ".env.local"))
    report: dict[str, Any] = json.loads((folder / "report.json").read_text())
    return {**report, "stdout": ran.stdout, "stderr": ran.stderr, "files": files}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One process that measures with all three frameworks, from import to exit."""
    return child(
        tmp_path_factory.mktemp("isolation"),
        WATCH,
        MEASURE,
        f"""
        report["scores"], report["changed"] = {{}}, {{}}
        for name, identifier in {IDS!r}.items():
            scorer(identifier).prepare()
            report["changed"][f"{{name}} imported"] = changed(before)
            report["scores"][name] = asyncio.run(measured(identifier))
            report["changed"][f"{{name}} measured"] = changed(before)
        report["environment"] = {{k: v for k, v in os.environ.items() if environment.get(k) != v}}
        report["gone"] = sorted(set(environment) - set(os.environ))
        report["switches"] = SWITCHES
        from concurrent.futures.process import _ExecutorManagerThread
        from tqdm._monitor import TMonitor
        report["derived"] = [kind.__base__.__module__ for kind in (_ExecutorManagerThread, TMonitor)]
        from deepeval.config.settings import get_settings
        from deepeval.telemetry.client import telemetry_opt_out
        from ragas._analytics import do_not_track
        report["opted out"] = [do_not_track(), telemetry_opt_out()]
        report["key"] = str(get_settings().OPENAI_API_KEY)
        """,
        AFTERWARDS,
    )


def test_each_framework_measures(run: dict[str, Any]) -> None:
    assert run["scores"] == {"ragas": [1.0, None], "deepeval": [1.0, None], "trulens": [1.0, None]}


def test_nothing_of_the_process_is_changed(run: dict[str, Any]) -> None:
    assert {when: what for when, what in run["changed"].items() if what} == {}


def test_the_environment_gains_the_switches_only(run: dict[str, Any]) -> None:
    assert run["environment"] == run["switches"]
    assert run["gone"] == []


def test_telemetry_is_off_and_no_env_file_is_read(run: dict[str, Any]) -> None:
    assert run["opted out"] == [True, True]
    assert run["key"] == "None"


def test_threads_of_every_kind_work_afterwards(run: dict[str, Any]) -> None:
    assert run["ran"] == [1, 2, 3, 4, 5]


def test_threads_that_others_derived_are_standard_ones(run: dict[str, Any]) -> None:
    assert run["derived"] == ["threading", "threading"]


def test_no_socket_is_opened_to_the_end(run: dict[str, Any]) -> None:
    assert run["connects"] == []
    assert run["lookups"] == []


def test_no_file_is_written_to_the_end(run: dict[str, Any]) -> None:
    assert run["files"] == []


def test_no_program_is_run(run: dict[str, Any]) -> None:
    assert run["programs"] == []


def test_nothing_is_printed(run: dict[str, Any]) -> None:
    assert run["stdout"] == ""
    assert run["stderr"] == ""


def test_case_61_a_framework_that_cannot_be_imported_costs_its_own_scores_only(tmp_path: Path) -> None:
    report = child(
        tmp_path,
        WATCH,
        """
        import importlib.abc

        tried = []
        class Lacking(importlib.abc.MetaPathFinder):
            def find_spec(self, name, path, target=None):
                if name == "langchain_community.chat_models.vertexai":
                    tried.append(name)
                    raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        sys.meta_path.insert(0, Lacking())
        """,
        MEASURE,
        f"""
        report["scores"] = {{name: asyncio.run(measured(identifier)) for name, identifier in {IDS!r}.items()}}
        once = len(tried)
        again = [asyncio.run(measured("ragas/faithfulness")) for _ in range(3)]
        report["again"], report["tries"] = again, len(tried) - once
        report["card"] = scorer("ragas/faithfulness").definition.card()["prompts"]
        report["changed"] = changed(before)[:]
        """,
    )
    reason = "ragas could not be imported: langchain_community.chat_models.vertexai"
    assert report["scores"] == {"ragas": [None, reason], "deepeval": [1.0, None], "trulens": [1.0, None]}
    assert report["again"] == [[None, reason]] * 3
    assert report["tries"] == 0
    assert report["card"] == {"unavailable": report["card"]["unavailable"]}


def test_trulens_that_was_imported_before_leaves_no_patched_threads(tmp_path: Path) -> None:
    report = child(
        tmp_path,
        WATCH,
        """
        import trulens.core
        assert changed(before)
        """,
        MEASURE,
        """
        report["score"] = asyncio.run(measured("trulens/groundedness"))
        report["changed"] = [name for name in changed(before) if name != "filters"]
        """,
        AFTERWARDS,
    )
    assert report["score"] == [1.0, None]
    assert report["changed"] == []
    assert report["ran"] == [1, 2, 3, 4, 5]


def test_two_threads_that_import_at_once_leave_the_standard_classes(tmp_path: Path) -> None:
    report = child(
        tmp_path,
        WATCH,
        """
        from adapters.isolation import framework

        gate, done = threading.Barrier(3), []
        def importing(package, module):
            gate.wait()
            framework(package, module)
            done.append(package)
        work = [("trulens", "trulens.feedback.llm_provider"), ("deepeval", "deepeval.metrics"),
                ("trulens", "trulens.feedback.groundtruth")]
        threads = [threading.Thread(target=importing, args=each) for each in work]
        for each in threads: each.start()
        for each in threads: each.join()
        report["done"], report["changed"] = sorted(done), changed(before)
        """,
        AFTERWARDS,
    )
    assert report["done"] == ["deepeval", "trulens", "trulens"]
    assert report["changed"] == []
    assert report["ran"] == [1, 2, 3, 4, 5]
