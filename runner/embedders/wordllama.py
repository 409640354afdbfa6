"""Means of static token vectors: small, fast, no network; the default."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from runner.stage import TextEmbedder
from runner.token_vectors import TokenVectors

if TYPE_CHECKING:
    from runner.stage import Vectors


class WordLlamaEmbedder(TokenVectors, TextEmbedder):
    """Mean of the token vectors of wordllama, of length 1. Blind to word order.

    A blank text has the zero vector.
    """

    def encode(self, texts: Sequence[str], role: Literal["passage", "query"]) -> Vectors:
        """Shape (texts, dimensions); passages and queries are treated alike."""
        import numpy as np

        vectors: Vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        # Text by text: padding to the longest of a batch would let one long text fill the memory.
        for row, tokens in zip(vectors, self.tokens(texts), strict=True):
            if tokens:
                row[:] = self.vectors[tokens].mean(axis=0)
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return vectors
