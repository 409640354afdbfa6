"""Errors that a person can mend, and the exit codes of the command line."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What the shell gets. Documented in README.md; a test keeps the two alike."""

    OK = 0
    FAILED = 1
    """Something ran and did not finish: a variant failed, or a gate found a regression."""
    USAGE = 2
    """Nothing ran: the command, the configuration or the data is wrong."""
    INTERRUPTED = 130
    """Stopped by Ctrl-C or SIGTERM; what was finished is kept."""


TRACEBACK = "PARIBUS_TRACEBACK"
"""Environment variable that has an unforeseen error printed with its traceback."""


def unforeseen(error: Exception) -> str:
    """An error that no code expected, in one sentence, with the place where it was raised."""
    from traceback import extract_tb

    frames = extract_tb(error.__traceback__)
    place = f"{frames[-1].filename}:{frames[-1].lineno}: " if frames else ""
    return f"{place}{type(error).__name__}: {error} ({TRACEBACK}=1 prints where from)"


class ParibusError(Exception):
    """A mistake in what paribus was given. The message says what was found, where, what is allowed and what to do.

    The command line prints the message without a traceback and ends with `exit_code`.
    """

    exit_code = ExitCode.USAGE


class ConfigError(ParibusError):
    """A key, a value or a combination of values in the configuration is not allowed."""


class DataError(ParibusError):
    """The test set cannot be used; the message lists every fault with file and line."""


class MissingExtra(ParibusError):
    """A component needs packages that are not installed; the message names the install command."""


class StoreError(ParibusError):
    """The folder for stage outputs or tracking data cannot be read or written."""

    exit_code = ExitCode.FAILED


class SweepIncomplete(ParibusError):
    """Some runs of a sweep failed; what the others found is kept."""

    exit_code = ExitCode.FAILED


class ComponentError(ParibusError):
    """A component broke its contract or could not do its work on this input."""

    exit_code = ExitCode.FAILED
