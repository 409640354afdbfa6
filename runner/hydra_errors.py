"""Hydra's and OmegaConf's errors about a command line or a YAML, as one sentence with what to do."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches

QUOTING = (
    "A value with spaces, commas, braces or other special characters is quoted twice, once for the shell and once for "
    "Hydra: 'key=\"the text\"'. Long texts belong in a YAML of their group (conf/prompt)."
)


def explained(error: Exception) -> str | None:
    """What to tell the person who typed it; None for an error that is not about configuration."""
    from hydra.errors import HydraException, MissingConfigException, OverrideParseException
    from omegaconf.errors import OmegaConfBaseException

    if isinstance(error, OverrideParseException):
        return f"cannot read the override {error.override!r}: {_first(error)}. {QUOTING}"
    if isinstance(error, MissingConfigException) and error.missing_cfg_file and "/" in error.missing_cfg_file:
        return _unknown_option(error.missing_cfg_file, error.options or (), str(error))
    if isinstance(error, ValueError) and str(error).startswith("Config group override must be a string"):
        return "an option of a group is a name, and one here is a number or null: write chunker=fixed, not chunker=3"
    if isinstance(error, HydraException | OmegaConfBaseException):
        cause = error.__cause__
        return _told(str(error) if cause is None else f"{error}\n{cause}")
    return None


def _first(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".")


def _unknown_option(file: str, options: Sequence[str], text: str) -> str:
    from runner.config import known_keys

    group, _, option = file.rpartition("/")
    options = options or [known.partition("=")[2] for known in known_keys().get(group, ())]
    near = get_close_matches(option, options, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    known = f" ({hint}known here: {', '.join(options)})" if options else ""
    origin = re.match(r"In '([^']+)'", text)
    place = f"{origin[1]}, defaults list: " if origin and origin[1] != "config" else ""
    advice = f" A text for the model goes into {group}.template. {QUOTING}" if " " in option else ""
    return f"{place}{group}={option}: there is no such option{known}.{advice}"


def _told(text: str) -> str:
    if ambiguous := re.search(r"Ambiguous value for argument '(.+)'", text):
        return (
            f"{ambiguous[1]} is several values: `paribus sweep` (or -m) runs each, {_key(ambiguous[1])}=[…] is one "
            f"list. {QUOTING}"
        )
    missing = re.search(r"Key '([^']+)' is not in struct", text)
    wanted = re.search(r"Could not override '([^']+)'", text)
    if missing:
        return _unknown_key(wanted[1] if wanted else missing[1])
    place = re.search(r"^\s*full_key: (.+)$", text, re.MULTILINE)
    lines = [line.strip() for line in text.splitlines() if not re.match(r"\s*(full_key|object_type)[:=]", line)]
    return (f"{place[1]}: " if place else "") + " ".join(filter(None, lines))


def _key(override: str) -> str:
    return override.partition("=")[0]


def _unknown_key(key: str) -> str:
    from runner.config import known_keys

    known = known_keys()
    if files := known.get(key):
        group = key.partition(".")[0]
        return (
            f"{key} is not a key of the option that is chosen for {group}; it is one of {', '.join(files)}. "
            f"Choose one of them for all runs, or put the value into a YAML of your own and sweep that by name"
        )
    near = get_close_matches(key, known, n=1, cutoff=0.5)
    parent = key.rpartition(".")[0]
    hint = (
        f"did you mean {near[0]}?"
        if near
        else f"print what is known {f'under {parent} ' if parent else ''}with --cfg job"
    )
    return f"{key} is not a known key: {hint}"
