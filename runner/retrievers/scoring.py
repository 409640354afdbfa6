"""The tie rule, in one place: retrievers score chunks, this ranks them."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from runner.stage import Query, Retriever

if TYPE_CHECKING:
    from numpy import floating, intp
    from numpy.typing import NDArray

    from runner.stage import Vectors

    Scored = tuple[NDArray[intp], NDArray[floating[Any]]]
    """Positions in the corpus and the score of each, in any order."""


class ScoringRetriever(Retriever):
    """A retriever that scores chunks independently of how many are asked for."""

    @abstractmethod
    def scored(self, index: Any, vectors: Vectors | None, query: Query) -> Scored:
        """The chunks that can be found for `query`, each once, with finite scores; higher is better."""

    def search(self, index: Any, vectors: Vectors | None, query: Query, depth: int) -> list[tuple[int, float]]:
        """The best `depth` of what `scored` gives; equal scores: the smaller position first."""
        positions, scores = best(self.scored(index, vectors, query), depth)
        return list(zip(positions.tolist(), scores.tolist(), strict=True))


def best(scored: Scored, depth: int) -> Scored:
    """The `depth` best of `scored`, best first; equal scores: the smaller position first, also where the cut falls."""
    import numpy as np

    positions, scores = scored
    if 0 < depth < len(scores):
        # Everything that ties with the last place stays in until positions have decided.
        kept = scores >= np.partition(scores, -depth)[-depth]
        positions, scores = positions[kept], scores[kept]
    order = np.lexsort((positions, -scores))[:depth]
    return positions[order], scores[order]
