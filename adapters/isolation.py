"""Importing the frameworks without what they do on the side.

Telemetry and `.env` files are switched off before the import; what an import changes in the process (threads, event
loops, warning filters, environment) is put back after it. Facts measured on ragas 0.4.3, deepeval 4.3.1, trulens
2.16.0.

What stays: once DeepEval has measured, it keeps a daemon thread, a timer of its telemetry that finds nothing to send.
While a framework is imported, which is once in a process, warning filters that another thread sets are lost; variables
of the environment that another thread sets are kept, unless it sets one that the import also sets.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import concurrent.futures.thread
import logging
import os
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType
from typing import Any

from adapters.base import Unavailable

SWITCHES = {
    # Any other value than "true" is ignored, and it is read once. Posts to an analytics host, writes ragas/uuid.json.
    "RAGAS_DO_NOT_TRACK": "true",
    # posthog; ~/.deepeval, .deepeval/ in the working directory, and lsb_release.
    "DEEPEVAL_TELEMETRY_OPT_OUT": "1",
    # .env, .env.local of the working directory into os.environ.
    "DEEPEVAL_DISABLE_DOTENV": "1",
    # Settings in .deepeval of the working directory into os.environ.
    "DEEPEVAL_DISABLE_LEGACY_KEYFILE": "1",
    # "1" asks the package index at import.
    "DEEPEVAL_UPDATE_WARNING_OPT_IN": "0",
}
"""Environment variables that stay set, because the frameworks read some of them later. TruLens needs none: it records
only in a session, which is never made here."""

FRAMEWORKS = ("ragas", "deepeval", "trulens")

_PATCHED: tuple[tuple[ModuleType, str], ...] = (
    (threading, "Thread"),
    (concurrent.futures, "ThreadPoolExecutor"),
    (concurrent.futures.thread, "ThreadPoolExecutor"),
    (asyncio, "new_event_loop"),
)
"""What TruLens replaces in the standard library when it is imported. With its Thread in place, joblib's threads and
`multiprocessing.pool.ThreadPool` fail, because its arguments stand in another order."""

_SILENT = logging.CRITICAL + 1
_lock = threading.RLock()
_imported: dict[tuple[str, ...], tuple[ModuleType, ...]] = {}
_failures: dict[tuple[str, ...], str] = {}


def framework(package: str, *modules: str) -> tuple[ModuleType, ...]:
    """The modules, imported in isolation; cheap once they are there. package: the name that messages give.

    Raises Unavailable naming the package and the module that could not be imported; an import that failed is not tried
    again, because it may take seconds and is asked for with every record.
    """
    if modules not in _imported:
        with contained():
            if modules in _failures:
                raise Unavailable(_failures[modules])
            try:
                _imported[modules] = tuple(import_module(module) for module in modules)
            except Exception as error:
                name = error.name if isinstance(error, ModuleNotFoundError) else None
                at_fault = name or f"{type(error).__name__}: {error}"
                _failures[modules] = f"{package} could not be imported: {at_fault}"
                raise Unavailable(_failures[modules]) from error
    return _imported[modules]


def installed_version(package: str) -> str:
    """The version of an installed distribution, or "not installed"."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


@contextmanager
def contained() -> Iterator[None]:
    """Put back what the body, in this thread, changes of the process; one thread at a time.

    That is the environment, the warning filters, and the classes and functions of the standard library that TruLens
    replaces: the standard ones are in place afterwards, also where somebody else imported TruLens before. What the
    frameworks warn and log while they are imported is not shown.
    """
    with _lock:
        os.environ.update(SWITCHES)
        loggers = [logging.getLogger(name) for name in FRAMEWORKS]
        levels = [logger.level for logger in loggers]
        factory = _task_factory()
        try:
            with warnings.catch_warnings(), _environment_kept():
                warnings.simplefilter("ignore")
                for logger in loggers:
                    logger.setLevel(_SILENT)
                yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                if logger.level == _SILENT:
                    logger.setLevel(level)
            _standard_library_again(factory)
            _end_ragas_thread()


@contextmanager
def _environment_kept() -> Iterator[None]:
    """Take back what this thread writes into os.environ, and nothing that other threads write meanwhile."""
    writer, before = threading.get_ident(), dict(os.environ)
    written: dict[str, str | None] = {}
    usual = type(os.environ)

    class Watched(usual):  # type: ignore[misc,valid-type]
        def __setitem__(self, name: str, value: str) -> None:
            super().__setitem__(name, value)
            if threading.get_ident() == writer:
                written[name] = value

        def __delitem__(self, name: str) -> None:
            super().__delitem__(name)
            if threading.get_ident() == writer:
                written[name] = None

    os.environ.__class__ = Watched
    try:
        yield
    finally:
        os.environ.__class__ = usual
        for name, value in written.items():
            if os.environ.get(name) != value:  # another thread has written it since
                continue
            os.environ.pop(name, None)
            if name in before:
                os.environ[name] = before[name]


def _end_ragas_thread() -> None:
    """Ragas starts a thread at import that sends what it counted, every second; nothing is counted here."""
    analytics: Any = sys.modules.get("ragas._analytics")
    batcher = getattr(analytics, "_analytics_batcher", None)
    if batcher is not None:
        batcher.shutdown()


def _standard_library_again(factory: Any) -> None:
    for module, name in _PATCHED:
        found = getattr(module, name)
        standard = _standard(found)
        if standard is found:
            continue
        setattr(module, name, standard)
        if isinstance(found, type):
            # Classes that other packages derived while it was in place (tqdm's monitor, loky's manager thread).
            subclasses: list[type] = found.__subclasses__()
            for derived in subclasses:
                if not _of_trulens(derived):
                    derived.__bases__ = tuple(standard if base is found else base for base in derived.__bases__)
    if _task_factory() is not factory and _of_trulens(_task_factory()):
        asyncio.get_running_loop().set_task_factory(factory)


def _of_trulens(thing: Any) -> bool:
    return (getattr(thing, "__module__", None) or "").startswith("trulens.")


def _standard(thing: Any) -> Any:
    """What stood in the standard library before TruLens replaced it by `thing`; `thing` itself where it did not."""
    if not _of_trulens(thing):
        return thing
    return thing.__base__ if isinstance(thing, type) else sys.modules[thing.__module__].original_new_event_loop


def _task_factory() -> Any:
    """That of the running event loop; None where none runs, or for the usual one."""
    try:
        return asyncio.get_running_loop().get_task_factory()
    except RuntimeError:
        return None
