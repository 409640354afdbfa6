"""MLflow's own pages on the tracked runs: `paribus ui`, and the command that a person is told."""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import webbrowser
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep
from urllib.error import URLError
from urllib.request import urlopen

from runner.config import Tracking
from runner.errors import ConfigError, DataError, StoreError
from runner.tracking.address import is_remote, tracking_uri, without_credentials
from runner.tracking.connection import Connection, impatient
from runner.tracking.view import page

PORT = 5000
"""MLflow's own default."""
START_WAIT = 120.0
"""Seconds until a server must have answered; on a busy machine it takes half a minute to import."""


def ui_command(settings: Tracking) -> str:
    """The command that shows the tracking data in a browser, with what differs from the defaults, without
    credentials."""
    given = {name: getattr(settings, name) for name in ("folder", "uri", "experiment")}
    shown = {name: value for name, value in given.items() if value != Tracking.model_fields[name].default}
    if settings.uri is not None:
        shown["uri"] = without_credentials(settings.uri)
    return shlex.join(["paribus", "ui", *(f"tracking.{name}={_hydra(value)}" for name, value in shown.items())])


def _hydra(value: str) -> str:
    """A value as Hydra's grammar reads it back."""
    quoted = value.replace("'", "\\'")
    return value if re.fullmatch(r"[\w./:-]+", value) else f"'{quoted}'"


def show(settings: Tracking, port: int | None, *, opens: bool, only_print: bool) -> None:
    """Serve MLflow's pages on this machine until Ctrl-C, or name the server that has the data; open a browser.

    port: None = MLflow's default, or another where that is taken. only_print: nothing is started or opened. Raises
    ConfigError for a port that is taken, DataError where nothing is tracked, StoreError.
    """
    from runner import console

    if not settings.enabled:
        raise ConfigError("tracking is off, so there is nothing that MLflow could show; leave tracking=off out")
    uri = tracking_uri(settings)
    if uri.startswith("sqlite:///") and not Path(uri.removeprefix("sqlite:///")).is_file():
        raise DataError(f"{without_credentials(uri)} does not exist; `paribus run` makes it")
    if is_remote(uri):
        address = f"{without_credentials(uri).rstrip('/')}{_page(settings)}"
        console.print_text(address)
        if opens and not only_print:
            webbrowser.open(address)
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the server must not outlive us
    port = _free_port(port)
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    command += ["--backend-store-uri", uri, "--artifacts-destination", (settings.root / "artifacts").as_uri()]
    if only_print:
        console.print_text(shlex.join(without_credentials(word) for word in command))
        return
    where = _page(settings)
    with _served(command, port, settings.root) as (address, process):
        console.print_text(f"{address}{where}")
        console.note("Ctrl-C ends it")
        if opens:
            webbrowser.open(f"{address}{where}")
        with suppress(KeyboardInterrupt):
            if process.wait():
                raise StoreError(f"the MLflow server ended with {process.returncode}; {address} is gone")


def _page(settings: Tracking) -> str:
    """The page of the experiment, below the address of the server; the first page where it does not exist yet."""
    with impatient():
        to = Connection(settings)
        found = to.call(to.client.get_experiment_by_name, settings.experiment)
    return page(str(found.experiment_id)) if found else "/"


def _free_port(asked: int | None) -> int:
    for port in (asked or PORT, *([] if asked else [0])):
        with closing(socket.socket()) as free, suppress(OSError):
            free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a server that has just ended is no server
            free.bind(("127.0.0.1", port))
            return int(free.getsockname()[1])
    raise ConfigError(f"port {asked} is taken on this machine; give another with --port, or leave it out")


@contextmanager
def _served(command: list[str], port: int, root: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The address of a server that answers, and its process, which is gone with its children at the end."""
    quiet = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    address = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            command, cwd=root, stdout=log, stderr=log, start_new_session=True, env={**os.environ, **quiet}
        )
        try:
            deadline = monotonic() + START_WAIT
            while not _answers(f"{address}/health"):
                if process.poll() is not None or monotonic() > deadline:
                    log.seek(0)
                    said = log.read().decode("utf-8", "replace").strip().splitlines() or ["it said nothing"]
                    raise StoreError(f"the MLflow server did not start: {without_credentials(said[-1])}")
                sleep(0.2)
            yield address, process
        finally:
            _end(process)


def _answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=2):
            return True
    except (URLError, OSError):
        return False


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process with the children in its session."""
    if not hasattr(os, "killpg"):  # Windows
        process.terminate()
        process.wait()
        return
    for number, seconds in ((signal.SIGTERM, 10.0), (signal.SIGKILL, None)):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
            break
    with suppress(ProcessLookupError):  # a child may outlive its parent
        os.killpg(process.pid, signal.SIGKILL)
