"""Weight files: on this machine or inside installed packages, which are not imported, and told apart by SHA-256."""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path

PACKAGE = "package://"
_PIECES = re.compile(r"\{(\d+)\.\.(\d+)\}")


class WeightsError(Exception):
    """A weight file cannot be used; one sentence that says which and what to do."""


class PackageMissing(WeightsError):
    """The package that carries the weights is not installed."""


def located(location: str, install: str) -> Path:
    """Where `location` is: `package://name/path/in/it` for a file inside an installed package, else a path.

    install: what to type where the package is missing. The file itself may be missing. Raises PackageMissing.
    """
    if not location.startswith(PACKAGE):
        return Path(location).expanduser()
    package, _, inside = location.removeprefix(PACKAGE).partition("/")
    # Importing would run the package's own code, which may load a model in a thread; find_spec of a top-level name
    # does not import it.
    spec = find_spec(package) if package.isidentifier() else None
    if spec is None or not spec.submodule_search_locations:
        raise PackageMissing(f"{location} needs the package {package}, which is not installed: {install}")
    return Path(spec.submodule_search_locations[0]) / inside


def sha256_of(path: Path, location: str) -> str:
    """SHA-256 of the file, 64 hex digits; read once a process while size and time of change stay. Raises
    WeightsError, which names `location`, where the file cannot be read."""
    try:
        status = path.stat()
        return _sha256(path, status.st_size, status.st_mtime_ns)
    except OSError as error:
        raise WeightsError(f"cannot read the weight file {location} ({path}): {error.strerror}") from error


def checked(location: str, sha256: str | None, install: str, joined: str | None = None) -> tuple[Path, str]:
    """The file at `location` and its SHA-256, which must be `sha256` unless that is None.

    A location with a range in braces, `package://name{1..22}/data/part{01..22}.bin`, names pieces of one file; they are
    joined once in the folder `joined`, under a name made of `sha256`, which pieces need.

    Raises PackageMissing, WeightsError.
    """
    path = _whole(location, sha256, install, joined) if _PIECES.search(location) else located(location, install)
    found = sha256_of(path, location)
    if sha256 is not None and found != sha256:
        raise WeightsError(
            f"{location} has the SHA-256 {found}, but {sha256} is declared; "
            f"declare what was found if this file ({path}) is meant"
        )
    return path, found


def pieces(location: str) -> list[str]:
    """The locations that ranges in braces stand for, all counted up together: {1..3} is 1, 2, 3, and {01..03} is 01,
    02, 03. Raises WeightsError where the ranges differ in length."""
    ranges = [range(int(first), int(last) + 1) for first, last in _PIECES.findall(location)]
    if len({len(numbers) for numbers in ranges}) != 1 or not ranges[0]:
        raise WeightsError(f"{location}: the ranges in braces must count up, and all equally far")

    def piece(step: int) -> str:
        return _PIECES.sub(lambda found: f"{int(found[1]) + step:0{len(found[1])}d}", location)

    return [piece(step) for step in range(len(ranges[0]))]


def _whole(location: str, sha256: str | None, install: str, joined: str | None) -> Path:
    if sha256 is None or joined is None:
        raise WeightsError(f"{location} names pieces of a file: give its SHA-256 and the folder to join them in")
    whole = Path(joined).expanduser() / f"{sha256[:16]}.gguf"
    if whole.exists():
        return whole
    parts = [located(piece, install) for piece in pieces(location)]
    try:
        whole.parent.mkdir(parents=True, exist_ok=True)
        # Under a name of its own until it is whole: another process may do the same, and either may be stopped.
        with tempfile.TemporaryDirectory(dir=whole.parent) as folder:
            made = Path(folder) / whole.name
            with made.open("wb") as out:
                for part in parts:
                    with part.open("rb") as piece:
                        shutil.copyfileobj(piece, out, 1 << 20)
            found = sha256_of(made, location)
            if found != sha256:
                raise WeightsError(f"the pieces {location} joined have the SHA-256 {found}, but {sha256} is declared")
            made.replace(whole)
    except OSError as error:
        raise WeightsError(f"the pieces {location} cannot be joined in {whole.parent}: {error}") from error
    return whole


@cache
def _sha256(path: Path, size: int, changed: int) -> str:
    """Hash of the file; size and time of change in the key make a replaced file be read again."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
