"""Vectors without a model: hashed words, the same on every machine."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from typing import Any

from adapters.judge import JudgeFault
from adapters.sentences import well_formed

HASHED = "hashed"
"""How configuration asks for these vectors."""
CARD = f"hashed words and word pairs, 4096 dimensions, 1, scikit-learn {version('scikit-learn')}"
"""What a card says of them; the number before the package is raised when a vector may change."""
WARNING = (
    "scores by embeddings (ragas/semantic_similarity, ragas/answer_relevancy, ragas/answer_correctness) compare hashed "
    "words here, which have no meaning: a low one says that other words were used, not that something else was said"
)
"""What people should know before they read a similarity of such vectors as a finding."""


def hashed(texts: Sequence[str]) -> list[list[float]]:
    """A vector of length 1 for each text, shape (texts, 4096), no value below 0.

    Counts of lower-case words and pairs of neighbouring words, each put into a dimension by its hash (MurmurHash3), by
    sklearn's HashingVectorizer. Texts are near each other when they use the same words, whatever these mean.

    Raises JudgeFault for a text without a word: it has no direction.
    """
    if not texts:
        return []
    counted = _vectorizer().transform([well_formed(text) for text in texts])
    for text, length in zip(texts, counted.getnnz(axis=1), strict=True):
        if not length:
            raise JudgeFault(f"a text without a word has no hashed vector: {text[:40]!r}")
    vectors: list[list[float]] = counted.toarray().tolist()
    return vectors


@cache
def _vectorizer() -> Any:
    from sklearn.feature_extraction.text import HashingVectorizer

    return HashingVectorizer(
        n_features=4096, ngram_range=(1, 2), token_pattern=r"\b\w+\b", alternate_sign=False, norm="l2"
    )
