"""Late interaction over static token vectors: light, no network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, PositiveInt

from runner.stage import Reranker
from runner.token_vectors import TokenVectors

if TYPE_CHECKING:
    from numpy import float32, int64
    from numpy.typing import NDArray


class LateInteractionReranker(TokenVectors, Reranker):
    """MaxSim of ColBERT (Khattab & Zaharia 2020): each token of the query takes its nearest token of the passage by
    cosine; the score is their weighted mean. The tokens are those of wordllama, so they know no context.

    The weight is the length of the query token's vector to the power `weight_power`: frequent tokens have short vectors
    (`the` 1.6, a middling token 13), so that it does the work of inverse document frequency without a corpus.
    """

    candidates: PositiveInt
    weight_power: Annotated[float, Field(ge=0, le=10)] = 2.0

    def scores(self, query: str, passages: Sequence[str]) -> list[float]:
        """In [-1, 1]; a passage without a token has -1. A query without a token: all 0."""
        import numpy as np

        def directions(tokens: NDArray[int64]) -> NDArray[float32]:
            vectors: NDArray[float32] = self.vectors[tokens]
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
            return vectors

        asked, counts = np.unique(np.array(next(self.tokens([query])), dtype=np.int64), return_counts=True)
        if not len(asked):
            return [0.0] * len(passages)
        weights = counts * np.linalg.norm(self.vectors[asked], axis=1) ** self.weight_power
        wanted = directions(asked)[:, np.newaxis]

        def score(tokens: list[int]) -> float:
            if not tokens:
                return -1.0
            # Not a matrix product: that may round a pair differently with its place and the number of threads.
            cosines = np.vecdot(wanted, directions(np.unique(np.array(tokens, dtype=np.int64))))
            return float(np.average(cosines.max(axis=1), weights=weights))

        return [score(tokens) for tokens in self.tokens(passages)]
