"""Weight files: found inside installed packages without importing them, and checked before they are used."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from pydantic import StringConstraints

from runner.errors import ConfigError, MissingExtra

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
"""SHA-256 of a file, 64 lower-case hex digits, as `sha256sum` prints it."""


def weight_file(location: str, sha256: str, install: str) -> Path:
    """The file at `location`, once its SHA-256 has been found right.

    location: `package://name/path/in/it` for a file inside an installed package, else a path on this machine.
    install: what to type where the package is missing.

    Raises MissingExtra where the package is not installed, ConfigError where the file is missing or another one.
    """
    path = _find(location, install)
    try:
        status = path.stat()
        found = _sha256(path, status.st_size, status.st_mtime_ns)
    except OSError as error:
        raise ConfigError(f"cannot read the weight file {location} ({path}): {error.strerror}") from error
    if found != sha256:
        raise ConfigError(
            f"{location} has the SHA-256 {found}, but {sha256} is declared; "
            f"declare what was found if this file ({path}) is meant"
        )
    return path


def _find(location: str, install: str) -> Path:
    if not location.startswith("package://"):
        return Path(location).expanduser()
    package, _, inside = location.removeprefix("package://").partition("/")
    # Importing would run the package's own code, which may load a model in a thread; find_spec of a top-level name
    # does not import it.
    spec = find_spec(package) if package.isidentifier() else None
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtra(f"{location} needs the package {package}, which is not installed: {install}")
    return Path(spec.submodule_search_locations[0]) / inside


@cache
def _sha256(path: Path, size: int, changed: int) -> str:
    """Hash of the file; size and time of change in the key make a replaced file be read again."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
