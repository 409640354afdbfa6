"""Progress of long work, on stderr, with rate and time left: one line kept up on a terminal, a new one now and then
elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator
from time import monotonic
from typing import TypeVar

T = TypeVar("T")

QUIET_SECONDS = 2.0
"""Work that is done sooner says nothing."""
LINE_SECONDS = 15.0
"""Time between two lines where there is no terminal."""


class Progress:
    """Reports on loops. `label` stands before the name of the stage, so that a person knows which variant works."""

    def __init__(self, label: str = "") -> None:
        self.label = label
        self._terminal = sys.stderr.isatty()

    def over(self, stage: str, items: Iterable[T], total: int | None = None) -> Iterator[T]:
        """Yield `items`, reporting on the way. `total` is taken from `items` where they know their number."""
        count = total if total is not None else len(items) if isinstance(items, Collection) else None
        began = last = monotonic()
        shown = False
        for done, item in enumerate(items):
            now = monotonic()
            if now - began > QUIET_SECONDS and now - last > (0.2 if self._terminal else LINE_SECONDS):
                self._show(stage, done, count, now - began)
                shown, last = True, now
            yield item
        if shown and self._terminal:
            sys.stderr.write("\r\x1b[K")

    def _show(self, stage: str, done: int, total: int | None, seconds: float) -> None:
        rate = done / seconds
        left = f", {_clock((total - done) / rate)} left" if total and rate else ""
        label = f"{self.label}: " if self.label else ""
        text = f"{label}{stage} {done}{f'/{total}' if total else ''}, {rate:.1f}/s{left}"
        sys.stderr.write(f"\r\x1b[K{text}" if self._terminal else f"{text}\n")
        sys.stderr.flush()


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"
