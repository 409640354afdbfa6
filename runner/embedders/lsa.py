"""Latent semantic analysis: vectors learnt from the corpus itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from pydantic import NonNegativeInt, PositiveInt

from runner.stage import Embedder, Embedding

if TYPE_CHECKING:
    from runner.stage import Vectors


class LsaEmbedder(Embedder):
    """TF-IDF of words, projected on the largest singular directions of the passages (Deerwester et al. 1990), of
    length 1. A text without a word of the passages has the zero vector.

    Plain TF-IDF is not offered: as dense vectors it outgrows memory with the vocabulary, and `bm25` does its work.
    """

    packages: ClassVar[tuple[str, ...]] = ("scikit-learn", "scipy", "numpy")

    dimensions: PositiveInt = 512
    """At most; a corpus of fewer passages or words gives fewer."""
    iterations: NonNegativeInt = 4
    """Power iterations of the randomised decomposition (Halko et al. 2011); more are more exact and slower."""
    seed: NonNegativeInt = 0

    def embed(self, passages: Sequence[str], queries: Sequence[str]) -> Embedding:
        """Fits to the passages, whatever their order; shape (texts, at most dimensions)."""
        import numpy as np
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.utils.extmath import randomized_svd
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

        words = TfidfVectorizer(sublinear_tf=True, stop_words="english")
        analyse = words.build_analyzer()
        if not any(map(analyse, passages)):
            return Embedding(*(np.zeros((len(texts), 1), dtype=np.float32) for texts in (passages, queries)))
        # One thread, or the last bits would depend on how many there are.
        with threadpool_limits(limits=1):
            matrix = words.fit_transform(sorted(passages))
            size = min(self.dimensions, *matrix.shape)
            _, _, directions = randomized_svd(matrix, size, n_iter=self.iterations, random_state=self.seed)

        def project(texts: Sequence[str]) -> Vectors:
            vectors = (words.transform(texts) @ directions.T) if len(texts) else np.zeros((0, size))
            lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
            # What is left of a text outside the kept directions is rounding noise, not a direction.
            unit: Vectors = np.where(lengths > 1e-9, vectors / np.maximum(lengths, 1e-12), 0).astype(np.float32)
            return unit

        return Embedding(project(passages), project(queries))
