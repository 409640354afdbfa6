"""Search by words and by vectors, fused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from runner.retrievers.bm25 import Bm25Retriever
from runner.retrievers.dense import DenseRetriever
from runner.retrievers.scoring import best
from runner.stage import Query

if TYPE_CHECKING:
    from runner.retrievers.scoring import Scored
    from runner.stage import Vectors

Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class HybridRetriever(Bm25Retriever, DenseRetriever):
    """Reciprocal rank fusion (Cormack et al. 2009) of `bm25` and `dense`: weight / (constant + rank), summed.

    A chunk that only one of the two ranks within `pool` gets that one's share. At most 2 * pool chunks are found.
    """

    uses_vectors: ClassVar[bool] = True

    constant: NonNegativeInt = 60
    """Higher values make the first places less different from later ones."""
    pool: PositiveInt = 100
    """How many chunks of each ranking take part; not the k that is passed on, so that k never changes the order."""
    bm25_weight: Weight = 1.0
    dense_weight: Weight = 1.0

    @model_validator(mode="after")
    def _some_weight(self) -> HybridRetriever:
        if self.bm25_weight == self.dense_weight == 0:
            raise ValueError("bm25_weight and dense_weight are both 0; at least one must be above 0")
        return self

    def scored(self, index: Any, vectors: Vectors | None, query: Query) -> Scored:
        """The chunks of both pools, scores in (0, (bm25_weight + dense_weight) / (constant + 1)]."""
        import numpy as np

        fused: dict[int, float] = {}
        for kind, weight in ((Bm25Retriever, self.bm25_weight), (DenseRetriever, self.dense_weight)):
            if weight:
                positions, _ = best(kind.scored(self, index, vectors, query), self.pool)
                for rank, position in enumerate(positions.tolist(), start=1):
                    fused[position] = fused.get(position, 0.0) + weight / (self.constant + rank)
        return np.array(list(fused), dtype=np.intp), np.array(list(fused.values()), dtype=np.float64)
