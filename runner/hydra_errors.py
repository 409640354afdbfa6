"""Hydra's and OmegaConf's errors about a command line or a YAML, as one sentence with what to do."""

from __future__ import annotations

import re
from difflib import get_close_matches

QUOTING = (
    "A value with spaces, commas, braces or other special characters is quoted twice, once for the shell and once for "
    "Hydra: 'key=\"the text\"'. Long texts belong in a YAML of their group (conf/prompt)."
)


def explained(error: Exception) -> str | None:
    """What to tell the person who typed it; None for an error that is not about configuration."""
    from hydra.errors import HydraException, OverrideParseException
    from omegaconf.errors import OmegaConfBaseException

    if isinstance(error, OverrideParseException):
        return f"cannot read the override {error.override!r}: {_first(error)}. {QUOTING}"
    if isinstance(error, HydraException | OmegaConfBaseException):
        cause = error.__cause__
        text = str(error) if cause is None else f"{error}\n{cause}"
        return _with_nearest(text)
    return None


def _first(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".")


def _with_nearest(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip() and not re.match(r"\s*(full_key|object_type)=", line)]
    told = " ".join(line.strip() for line in lines)
    missing = re.search(r"Key '([^']+)' is not in struct", text)
    if not missing:
        return told + (f" {QUOTING}" if "sweep" in told.lower() and "multirun" in told.lower() else "")
    from runner.config import known_keys

    wanted = re.search(r"Could not override '([^']+)'", text)
    key = wanted[1] if wanted else missing[1]
    parent = key.rpartition(".")[0]
    near = get_close_matches(key, known_keys(), n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else f"print what is known {f'under {parent} ' if parent else ''}with --cfg job"
    return f"{key} is not a known key: {hint}"
