"""Embeddings of a BERT-like ONNX model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from runner.onnx_models import OnnxModel
from runner.stage import TextEmbedder

if TYPE_CHECKING:
    from runner.stage import Vectors


class OnnxEmbedder(OnnxModel, TextEmbedder):
    """Pooled token states of a transformer encoder (Reimers & Gurevych 2019, Sentence-BERT), of length 1.

    A blank text has the zero vector: the model would give it a direction that means nothing.
    """

    pooling: Literal["cls", "mean"]
    """cls = the state of the first token; mean = the mean over all tokens. The model was trained for one of them."""
    query_prefix: str = ""
    passage_prefix: str = ""

    def encode(self, texts: Sequence[str], role: Literal["passage", "query"]) -> Vectors:
        """Shape (texts, hidden size of the model)."""
        import numpy as np

        prefix = self.query_prefix if role == "query" else self.passage_prefix
        # A text that comes twice is computed once: corpora repeat themselves.
        rows = {text: row for row, text in enumerate(dict.fromkeys(texts))}
        states = self.outputs([prefix + text for text in rows])
        vectors = [
            (state[0] if self.pooling == "cls" else state.mean(axis=0)) * bool(text.strip())
            for text, state in zip(rows, states, strict=True)
        ]
        if not vectors:
            return np.zeros((0, 1), dtype=np.float32)
        unique = np.array(vectors, dtype=np.float32)
        unique /= np.maximum(np.linalg.norm(unique, axis=1, keepdims=True), 1e-12)
        return unique[[rows[text] for text in texts]]
