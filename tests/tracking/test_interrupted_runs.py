from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runner.config import Trial
from runner.errors import ConfigError, StoreError
from runner.tracking import Tracker, process_started

SWEEP = """
import signal, sys, time
from runner.config import Tracking, Trial
from runner.tracking import Tracker

def stop(number, frame):
    raise SystemExit(130)

signal.signal(signal.SIGTERM, stop)
tracker = Tracker(Tracking(folder=sys.argv[1]))
with tracker.sweep("sweep", {}, []) as parent:
    with tracker.run("k=3", Trial(parent_run_id=parent.run_id), {}) as child:
        print(parent.run_id, child.run_id, flush=True)
        time.sleep(120)
"""


def statuses(client: Any, ids: list[str]) -> list[str]:
    return [client.get_run(id).info.status for id in ids]


@pytest.fixture
def sweeping(tracker: Tracker, folder: Path) -> Any:
    """A process in the second run of a sweep, and the ids of its runs."""
    with subprocess.Popen([sys.executable, "-c", SWEEP, str(folder)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process, process.stdout.readline().split()
        process.kill()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_an_interrupted_sweep_is_killed(sweeping: Any, client: Any, number: int) -> None:
    process, ids = sweeping
    process.send_signal(number)
    process.wait(60)
    assert statuses(client, ids) == ["KILLED", "KILLED"]
    assert client.get_run(ids[1]).data.tags["paribus.reason"].startswith(("SystemExit", "KeyboardInterrupt"))


@pytest.mark.slow
def test_a_killed_sweep_is_closed_at_the_next_start(sweeping: Any, client: Any, tracker: Tracker) -> None:
    process, ids = sweeping
    with tracker.run("mine", Trial(), {}) as mine:
        assert tracker.close_stale() == [], "the process is alive"
        process.kill()
        process.wait(60)
        assert statuses(client, ids) == ["RUNNING", "RUNNING"]
        assert set(tracker.close_stale()) == set(ids)
        assert statuses(client, [*ids, mine.run_id]) == ["KILLED", "KILLED", "RUNNING"]
    assert "ended without closing" in client.get_run(ids[0]).data.tags["paribus.reason"]
    assert tracker.close_stale() == []


@pytest.mark.parametrize(
    ("tags", "closed"),
    [
        ({"paribus.process_started": "before"}, True),
        ({"paribus.pid": str(2**30)}, True),
        ({"paribus.pid": str(2**30), "paribus.host": "elsewhere"}, False),
        ({"paribus.pid": str(2**30), "paribus.process_started": ""}, False),
        ({"paribus.pid": "unreadable"}, False),
        ({}, False),
    ],
    ids=["reused pid", "no process", "other host", "start unknown", "strange tag", "alive"],
)
def test_which_runs_are_stale(tracker: Tracker, client: Any, tags: dict[str, str], closed: bool) -> None:
    with tracker.run("run", Trial(), {}) as handle:
        for key, value in tags.items():
            client.set_tag(handle.run_id, key, value)
        assert tracker.close_stale() == ([handle.run_id] if closed else [])


def test_a_process_that_nobody_waited_for_is_gone() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert process_started(process.pid) not in ("", "gone", process_started(os.getpid()))
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert process_started(process.pid) == "gone"
    process.communicate()


@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [
        (ConfigError("k=0 is not allowed"), "FAILED", "k=0 is not allowed"),
        (ValueError("bad"), "FAILED", "ValueError: bad"),
        (KeyboardInterrupt(), "KILLED", "KeyboardInterrupt"),
        (SystemExit(1), "KILLED", "SystemExit: 1"),
        (ValueError("lone \ud800 and long " + "x" * 9000), "FAILED", None),
    ],
    ids=["paribus", "other", "ctrl-c", "exit", "awkward"],
)
def test_how_a_run_ends(tracker: Tracker, client: Any, error: BaseException, status: str, reason: str | None) -> None:
    with pytest.raises(type(error)), tracker.run("run", Trial(), {}) as handle:
        raise error
    run = client.get_run(handle.run_id)
    assert run.info.status == status
    assert run.info.end_time is not None
    assert reason is None or run.data.tags["paribus.reason"] == reason


def test_a_second_ctrl_c_does_not_leave_the_run_open(
    tracker: Tracker, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    end = tracker._client.set_terminated

    def impatient(*arguments: str) -> None:
        calls.append(arguments)
        if len(calls) == 1:
            raise KeyboardInterrupt
        end(*arguments)

    monkeypatch.setattr(tracker._client, "set_terminated", impatient)
    with pytest.raises(KeyboardInterrupt), tracker.run("run", Trial(), {}) as handle:
        raise KeyboardInterrupt
    assert client.get_run(handle.run_id).info.status == "KILLED"


def test_a_run_that_cannot_be_ended_does_not_hide_why_it_failed(
    tracker: Tracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: object) -> None:
        raise OSError("the disk is gone")

    monkeypatch.setattr(tracker._client, "set_terminated", broken)
    with pytest.raises(ValueError, match="the real reason") as caught, tracker.run("run", Trial(), {}):
        raise ValueError("the real reason")
    assert "may still say RUNNING" in caught.value.__notes__[0]
    with pytest.raises(StoreError, match="the disk is gone"), tracker.run("run", Trial(), {}):
        pass
