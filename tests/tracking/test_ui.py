from __future__ import annotations

import socket
from contextlib import closing
from pathlib import Path
from time import perf_counter

import pytest

from runner.config import Tracking
from runner.errors import ConfigError, DataError, StoreError
from runner.tracking import Tracker
from runner.tracking.ui import show


def shown(settings: Tracking, port: int | None = None, only_print: bool = True) -> None:
    show(settings, port, opens=False, only_print=only_print)


def test_the_command_that_would_serve_is_printed_and_nothing_is_started(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown(Tracking(folder=str(folder)), 5123)
    said = capsys.readouterr().out
    assert f"--host 127.0.0.1 --port 5123 --workers 1 --backend-store-uri sqlite:///{folder}/mlflow.db" in said
    assert not (folder / "artifacts").exists()


def test_nothing_tracked_makes_no_database(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"mlflow\.db does not exist; `paribus run` makes it"):
        shown(Tracking(folder=str(tmp_path)))
    assert list(tmp_path.iterdir()) == []


def test_tracking_that_is_off_has_nothing_to_show() -> None:
    with pytest.raises(ConfigError, match="tracking is off"):
        shown(Tracking(enabled=False))


def test_a_port_that_is_taken_is_named(tracker: Tracker, folder: Path) -> None:
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"port {port} is taken on this machine; give another"):
            shown(Tracking(folder=str(folder)), port)


def test_a_server_that_is_down_is_named_without_its_password() -> None:
    began = perf_counter()
    with pytest.raises(StoreError, match=r"http://127\.0\.0\.1:9 cannot be reached"):
        shown(Tracking(uri="http://bob:hunter2@127.0.0.1:9"))
    assert perf_counter() - began < 60  # MLflow by itself tries for four minutes
