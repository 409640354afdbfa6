"""Importing the frameworks without what they do on the side.

Telemetry and `.env` files are switched off before the import; what an import changes in the process (threads, warning
filters, environment) is put back after it. Facts measured on ragas 0.4.3, deepeval 4.3.1, trulens 2.16.0.
"""

from __future__ import annotations

import concurrent.futures
import concurrent.futures.thread
import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType

from adapters.base import Unavailable

SWITCHES = {
    # Any other value than "true" is ignored, and it is read once. Posts to an analytics host, writes ragas/uuid.json.
    "RAGAS_DO_NOT_TRACK": "true",
    # posthog and sentry; ~/.deepeval and lsb_release.
    "DEEPEVAL_TELEMETRY_OPT_OUT": "1",
    "ERROR_REPORTING": "0",
    # .env, .env.local of the working directory into os.environ.
    "DEEPEVAL_DISABLE_DOTENV": "1",
    # .deepeval/ in the working directory.
    "DEEPEVAL_DISABLE_LEGACY_KEYFILE": "1",
    "DEEPEVAL_UPDATE_WARNING_OPT_IN": "0",
    "TRULENS_OTEL_TRACING": "0",
}
"""Environment variables that stay set, because the frameworks read some of them later."""

_lock = threading.RLock()


def framework(package: str, *modules: str) -> tuple[ModuleType, ...]:
    """The modules, imported in isolation; cheap once they are there. package: the name that messages give.

    Raises Unavailable naming the package and the module that could not be imported.
    """
    with _lock, contained():
        try:
            return tuple(import_module(module) for module in modules)
        except Exception as error:
            at_fault = getattr(error, "name", None) or f"{type(error).__name__}: {error}"
            raise Unavailable(f"{package} could not be imported: {at_fault}") from error


@contextmanager
def contained() -> Iterator[None]:
    """Put back what the body changes of the process: the environment, the classes of the thread modules (TruLens
    replaces them, after which joblib's threads fail), the warning filters."""
    os.environ.update(SWITCHES)
    environment = dict(os.environ)
    thread, pool, pool_of_thread = (
        threading.Thread,
        concurrent.futures.ThreadPoolExecutor,
        concurrent.futures.thread.ThreadPoolExecutor,
    )
    filters = warnings.filters[:]
    try:
        yield
    finally:
        threading.Thread = thread  # type: ignore[misc]
        concurrent.futures.ThreadPoolExecutor = pool  # type: ignore[misc]
        concurrent.futures.thread.ThreadPoolExecutor = pool_of_thread  # type: ignore[misc]
        warnings.filters[:] = filters  # type: ignore[index]
        for name in set(os.environ) - set(environment):
            del os.environ[name]
        os.environ.update(environment)
