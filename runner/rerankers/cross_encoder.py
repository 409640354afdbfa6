"""A cross-encoder reads question and passage together."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import PositiveInt

from runner.errors import ComponentError
from runner.onnx_models import OnnxModel
from runner.stage import Reranker


class CrossEncoderReranker(OnnxModel, Reranker):
    """The relevance logit of a BERT-like ONNX cross-encoder (Nogueira & Cho 2019) for each pair.

    A pair that is too long for `max_length` loses the end of its longer text.
    """

    candidates: PositiveInt

    def scores(self, query: str, passages: Sequence[str]) -> list[float]:
        """Logits: any real number; above 0 the model holds the passage for relevant.

        Raises ComponentError where the model has not exactly one output a pair.
        """
        scores = []
        for output in self.outputs([(query, passage) for passage in passages]):
            if output.size != 1:
                raise ComponentError(f"{self.model} gives {output.size} numbers a pair; a cross-encoder gives one")
            scores.append(float(output.reshape(())))
        return scores
