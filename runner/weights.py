"""Weight files of components; see adapters.weights."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import StringConstraints

from adapters import weights
from runner.errors import ConfigError, MissingExtra

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
"""SHA-256 of a file, 64 lower-case hex digits, as `sha256sum` prints it."""


def weight_file(location: str, sha256: str, install: str) -> Path:
    """The file at `location`, once its SHA-256 has been found right.

    location: `package://name/path/in/it` for a file inside an installed package, else a path on this machine.
    install: what to type where the package is missing.

    Raises MissingExtra where the package is not installed, ConfigError where the file is missing or another one.
    """
    try:
        return weights.checked(location, sha256, install)[0]
    except weights.PackageMissing as error:
        raise MissingExtra(str(error)) from error
    except weights.WeightsError as error:
        raise ConfigError(str(error)) from error
