"""Environments that each hold one version of a framework, with what paribus needs to score, in a cache folder."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from time import monotonic

from adapters.isolation import installed_version
from runner.errors import ConfigError, StoreError

DISTRIBUTIONS = {
    "ragas": ("ragas",),
    "deepeval": ("deepeval",),
    "trulens": ("trulens-core", "trulens-feedback"),
}
"""Package of a framework -> what is installed of it, all in one version."""
ONLY_FOR = {"langchain-community": "ragas"}
"""What paribus needs for one framework alone."""
UNUSED = {"mlflow", "bm25s", "wordllama", "tokenizers", "langchain-text-splitters"}
"""What paribus needs to make and track a run, and neither to read cards nor to score."""

TAIL = 6
"""Lines of an installer that failed that are shown."""
TELL_SECONDS = 15.0
LINE = 120
"""Characters of an installer's line that are told."""

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Release:
    """One version of a package, asked for by exact requirement."""

    package: str
    version: str

    @property
    def name(self) -> str:
        """`deepeval==4.2.6`."""
        return f"{self.package}=={self.version}"

    @property
    def distributions(self) -> tuple[str, ...]:
        """What is installed of it."""
        return DISTRIBUTIONS.get(self.package, (self.package,))

    @property
    def here(self) -> bool:
        """Whether this environment holds it."""
        return all(installed_version(name) == self.version for name in self.distributions)


def release(requirement: str) -> Release:
    """`deepeval==4.2.6` as a release; trulens-core and trulens-feedback stand for trulens. Raises ConfigError."""
    found = re.fullmatch(r"\s*([A-Za-z0-9][\w.-]*)\s*==\s*([A-Za-z0-9][\w.!+-]*)\s*", requirement)
    if not found:
        raise ConfigError(f"--versions {requirement!r} is no exact version; write it like deepeval==4.2.6")
    package = re.sub(r"[-_.]+", "-", found[1]).lower()
    whole = next((whole for whole, parts in DISTRIBUTIONS.items() if package in parts), package)
    return Release(whole, found[2])


def default_cache() -> Path:
    """Where environments are kept: paribus/versions in the user's cache folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "paribus" / "versions"


def environment(asked: Release, cache: Path, tell: Tell) -> Path:
    """The python of an environment in `cache` that holds `asked` and what paribus needs.

    Where it is not there yet it is made, with uv where there is one, else with venv and pip, from whatever index those
    are set up for. It gets its name only when it is whole, so that one that was interrupted is never used. tell: is
    told what takes long.

    Raises ConfigError where it cannot be installed, StoreError where `cache` cannot be written.
    """
    wanted = [*(f"{name}=={asked.version}" for name in asked.distributions), *needs(asked.package)]
    key = hashlib.sha256(json.dumps([platform.python_version(), *wanted]).encode()).hexdigest()[:12]
    folder = cache.expanduser().absolute() / f"{asked.package}-{asked.version}-{key}"
    if _python(folder).exists():
        return _python(folder)
    began = monotonic()
    uv = found_uv()
    by = "uv" if uv else "pip, which takes minutes where uv takes seconds"
    tell(f"{asked.name}: installing it, once, into an environment of its own with {by}")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".making-", dir=folder.parent) as aside:
            made = Path(aside) / "env"
            _install(asked, made, wanted, uv, tell)
            size = sum(path.stat().st_size for path in made.rglob("*") if path.is_file() and not path.is_symlink())
            if not _python(folder).exists():
                shutil.rmtree(folder, ignore_errors=True)
            try:
                made.rename(folder)
            except OSError:
                if not _python(folder).exists():  # else another process was first
                    raise
    except OSError as error:
        raise StoreError(f"the environment for {asked.name} cannot be kept in {cache}: {error}") from error
    tell(f"{asked.name}: installed in {monotonic() - began:.0f} s, {size / 1e6:.0f} MB, kept in {folder}")
    return _python(folder)


def found_uv() -> str | None:
    """uv, on PATH or beside this python; None = there is none."""
    return shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))


def needs(package: str) -> list[str]:
    """The requirements of paribus itself without extras, what UNUSED names, and the frameworks other than `package`."""
    try:
        told = requires("paribus") or []
    except PackageNotFoundError:
        raise ConfigError("paribus is not installed here as a package, so what it needs is not known") from None
    frameworks = {name for names in DISTRIBUTIONS.values() for name in names}
    kept = []
    for line in told:
        name = re.split(r"[^\w.-]", line, maxsplit=1)[0].lower()
        if "extra ==" not in line and name not in frameworks | UNUSED and ONLY_FOR.get(name, package) == package:
            kept.append(line)
    return kept


def _python(folder: Path) -> Path:
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def _install(asked: Release, folder: Path, wanted: Sequence[str], uv: str | None, tell: Tell) -> None:
    if uv:
        steps = [
            [uv, "venv", "--quiet", "--python", sys.executable, str(folder)],
            [uv, "pip", "install", "--python", str(_python(folder)), *wanted],
        ]
    else:
        steps = [
            [sys.executable, "-m", "venv", str(folder)],
            [str(_python(folder)), "-m", "pip", "install", "--disable-pip-version-check", *wanted],
        ]
    # pip would take what lies on PYTHONPATH for installed.
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    for step in steps:
        code, tail = listened(step, clean, asked.name, lambda text: tell(text[:LINE]))
        if code:
            said = "\n".join(f"  {line}" for line in tail)
            raise ConfigError(
                f"{asked.name} cannot be installed beside what paribus needs: {'uv' if uv else 'pip'} ended with "
                f"{code}. See that there is such a version and that the index can be reached; it said last:\n{said}"
            )


def listened(
    command: Sequence[str], variables: dict[str, str], label: str, tell: Tell, every: float = TELL_SECONDS
) -> tuple[int, list[str]]:
    """Run `command`: its exit code, and the last lines of what it wrote. A line is told every `every` seconds.

    Its stdin stays open until this process ends, and nothing is written there.
    """
    tail: deque[str] = deque(maxlen=TAIL)
    last = monotonic()
    with subprocess.Popen(
        command,
        env=variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    ) as child:
        assert child.stdout
        try:
            for line in child.stdout:
                if not line.strip():
                    continue
                tail.append(line.rstrip())
                if monotonic() - last >= every:
                    tell(f"{label}: {line.strip()}")
                    last = monotonic()
        except BaseException:
            child.kill()
            raise
    return child.returncode, list(tail)
