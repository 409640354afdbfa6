"""Components for the tests of the spine. In a file of its own, so that workers and subprocesses can import it."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from runner.errors import ComponentError
from runner.stage import Answer, Chunker, Generator, Query, Request, Reranker, Retriever


class Overlap(Retriever):
    """Ranks by the number of words in common; the fault that `fault` names happens for the k in `at`."""

    uses_vectors: ClassVar[bool] = False
    at: tuple[int, ...] = Field((), strict=False)
    fault: str = "none"
    mended_by: str | None = None
    """A file that takes the fault away; incidental, so that mending changes no key."""
    pause: float = 0.0

    incidental: ClassVar[frozenset[str]] = frozenset({"at", "fault", "mended_by", "pause"})

    def search(self, index: Any, vectors: Any, query: Query, depth: int) -> list[tuple[int, float]]:
        time.sleep(self.pause)
        if self.k in self.at and not (self.mended_by and Path(self.mended_by).exists()):
            if self.fault == "kill":
                os._exit(3)
            if self.k % 2:
                raise ValueError(f"boom at k={self.k}")
            raise ComponentError(f"other boom at k={self.k}")
        words = set(query.text.lower().split())
        scored = [(position, float(len(words & set(text.lower().split())))) for position, text in enumerate(index)]
        return sorted(scored, key=lambda pair: (-pair[1], pair[0]))[:depth]

    def index(self, texts: Sequence[str]) -> list[str]:
        return list(texts)


class Echo(Generator):
    """Answers with the first passage. paid, so that each answer is stored; writes a line into `log` for each call."""

    paid: ClassVar[bool] = True
    incidental: ClassVar[frozenset[str]] = frozenset({"concurrency", "log", "fails", "stops_at"})
    log: str | None = None
    fails: tuple[str, ...] = Field((), strict=False)
    """Questions (by a word in them) for which there is no answer."""
    stops_at: str | None = None
    """A word in a question at which the process is interrupted."""

    def generate(self, request: Request) -> Answer:
        if self.stops_at and self.stops_at in request.question:
            raise KeyboardInterrupt
        if self.log:
            with Path(self.log).open("a") as file:
                file.write(request.question + "\n")
        for word in self.fails:
            if word in request.question:
                raise ComponentError(f"no answer for {word}")
        return Answer(request.passages[0] if request.passages else "I don't know.", not request.passages)


class Backwards(Chunker):
    """Breaks the contract: spans out of order."""

    size: int

    def spans(self, text: str) -> list[tuple[int, int]]:
        return [(5, 9), (0, 4)]


class Shortest(Reranker):
    """Shorter passages first."""

    candidates: int = 4
    short_of: int = 0
    """How many scores it leaves out: a broken contract."""

    def scores(self, query: str, passages: Sequence[str]) -> list[float]:
        return [-float(len(passage)) for passage in passages][: len(passages) - self.short_of]
