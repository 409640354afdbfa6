"""Stored stage outputs: what was computed once is read back for as long as its causes stand.

An output is keyed by the fingerprint of its stage and the keys of what came before, so a change reaches exactly what
lies downstream of it. joblib.Memory does the storing: it writes to a temporary file and renames, so that a crash leaves
no half output and two writers of one output do not hurt each other.
"""

from __future__ import annotations

import os
import pickle
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, Generic, TypeVar, cast

from adapters.schema import fingerprint
from runner.errors import StoreError

T = TypeVar("T")


@dataclass(frozen=True)
class Output(Generic[T]):
    """A stage output that is loaded or computed when `value` is called, and only then."""

    key: str
    value: Callable[[], T]


@dataclass
class Calls:
    """How often each stage was computed and how often it was read back."""

    computed: Counter[str] = field(default_factory=Counter)
    reused: Counter[str] = field(default_factory=Counter)


class NotKept(Exception):
    """Raised by a computation whose result is used now and computed anew next time, because parts of it failed."""

    def __init__(self, value: Any) -> None:
        super().__init__("result not kept")
        self.value = value


class StageStore:
    """The folder of stored stage outputs.

    Raises StoreError at once where the folder cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        from joblib import Memory

        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"cannot make the folder for stage outputs {folder}: {error.strerror}") from error
        if not os.access(folder, os.W_OK | os.X_OK):
            raise StoreError(
                f"cannot write stage outputs to {folder}: permission denied; set tracking.folder elsewhere"
            )
        self.folder = folder
        self.calls = Calls()
        self._memory = Memory(folder, verbose=0)
        self._functions: dict[str, Callable[..., Any]] = {}
        self._lock = Lock()

    def output(self, stage: str, causes: tuple[str, ...], compute: Callable[[], T]) -> Output[T]:
        """The output of `stage` for these causes (fingerprints of configuration and keys of inputs). Nothing is read or
        computed before `.value()`; within a process it is read once."""
        key = fingerprint([stage, *causes])
        held: list[T] = []

        def value() -> T:
            if not held:
                held.append(self._read_or_compute(stage, key, compute))
            return held[0]

        return Output(key, value)

    def _read_or_compute(self, stage: str, key: str, compute: Callable[[], T]) -> T:
        stored = self._stage_function(stage)
        fresh: list[T] = []

        def counted() -> T:
            fresh.append(compute())
            return fresh[0]

        try:
            result = stored(key, counted)
        except NotKept as partial:
            fresh.append(partial.value)
        except OSError as error:
            raise StoreError(f"cannot store the output of {stage} in {self.folder}: {error}") from error
        with self._lock:
            (self.calls.computed if fresh else self.calls.reused)[stage] += 1
        return fresh[0] if fresh else cast(T, pickle.loads(result))

    def _stage_function(self, stage: str) -> Callable[..., Any]:
        with self._lock:
            if stage not in self._functions:
                # Pickled here: joblib's own pickler, made for arrays, is written in Python and slow on many objects.
                def compute_stage(key: str, compute: Callable[[], Any]) -> bytes:
                    return pickle.dumps(compute(), protocol=5)

                compute_stage.__name__ = compute_stage.__qualname__ = stage
                self._functions[stage] = self._memory.cache(compute_stage, ignore=["compute"])
            return self._functions[stage]
