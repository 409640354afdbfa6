"""No reranking."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from runner.stage import Reranker


class NoReranker(Reranker):
    """Keeps the order of the retriever."""

    candidates: Literal[0] = 0

    def scores(self, query: str, passages: Sequence[str]) -> None:
        """None, always."""
        return
