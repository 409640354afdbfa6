"""Search by words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from runner.retrievers.scoring import ScoringRetriever
from runner.stage import Query

if TYPE_CHECKING:
    from runner.retrievers.scoring import Scored
    from runner.stage import Vectors

Language = Literal[
    "danish",
    "dutch",
    "english",
    "french",
    "german",
    "italian",
    "norwegian",
    "portuguese",
    "russian",
    "spanish",
    "swedish",
    "turkish",
]
"""Languages for which bm25s has stop words and PyStemmer a stemmer."""


class Bm25Retriever(ScoringRetriever):
    """BM25 (Robertson & Zaragoza 2009) by bm25s (Lù 2024), in the variants of Kamphuis et al. 2020.

    Words are runs of two or more letters, digits or underscores, in lower case; so text without spaces between words
    is not cut into words. A word that comes twice in the query counts twice. Chunks without any word of the query are
    not in the ranking, however large k is; a query without words finds nothing.
    """

    uses_vectors: ClassVar[bool] = False
    packages: ClassVar[tuple[str, ...]] = ("bm25s", "PyStemmer")

    method: Literal["robertson", "lucene", "atire", "bm25l", "bm25+"] = "lucene"
    k1: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.2
    """How slowly further occurrences of a word lose weight; 0 = only presence counts."""
    b: Annotated[float, Field(ge=0, le=1)] = 0.75
    """How much long chunks are held against; 0 = not at all."""
    delta: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.5
    """Lower bound for the weight of a word that occurs; only bm25l and bm25+ use it."""
    stop_words: Language | None = "english"
    stemmer: Language | None = "english"

    def index(self, texts: Sequence[str]) -> Any:
        """A bm25s.BM25, or None where no text has a word."""
        from bm25s import BM25

        tokens = self._tokens(texts)
        # Sorted, as bm25s numbers words in the order of a set, which changes from process to process.
        vocabulary = {word: number for number, word in enumerate(sorted({word for text in tokens for word in text}))}
        if not vocabulary:
            return None
        model = BM25(k1=self.k1, b=self.b, delta=self.delta, method=self.method, backend="numpy")
        ids = [[vocabulary[word] for word in text] for text in tokens]
        model.index((ids, vocabulary), create_empty_token=False, show_progress=False)
        return model

    def scored(self, index: Any, vectors: Vectors | None, query: Query) -> Scored:
        """The chunks that hold a word of the query."""
        import numpy as np

        words = index.get_tokens_ids(self._tokens([query.text])[0]) if index is not None else []
        if not words:
            return np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.float32)
        scores = index.get_scores_from_ids(words)
        postings = index.scores
        found = np.zeros(len(scores), dtype=bool)
        # By occurrence and not by score: robertson and atire give 0 to a frequent word, bm25l and bm25+ more than 0
        # to a chunk without any.
        for word in words:
            found[postings["indices"][postings["indptr"][word] : postings["indptr"][word + 1]]] = True
        positions = np.flatnonzero(found)
        return positions, scores[positions]

    def _tokens(self, texts: Sequence[str]) -> list[list[str]]:
        from bm25s import tokenize
        from Stemmer import Stemmer

        stemmer = Stemmer(self.stemmer) if self.stemmer else None
        tokens: list[list[str]] = tokenize(
            list(texts), stopwords=self.stop_words or [], stemmer=stemmer, return_ids=False, show_progress=False
        )
        return tokens
