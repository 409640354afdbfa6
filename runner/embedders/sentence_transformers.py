"""Embeddings of any model that the package sentence-transformers loads."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import PositiveInt

from runner.errors import ConfigError
from runner.stage import TextEmbedder

if TYPE_CHECKING:
    from runner.stage import Vectors


class SentenceTransformersEmbedder(TextEmbedder):
    """A model of the Hugging Face hub (downloaded once, to the hub's own cache) or of a folder, of length 1.

    The weights are known by `model` and `revision`: name a commit, as a branch or a folder may change its content
    without changing the fingerprint. A blank text has the zero vector.

    Raises MissingExtra without the extra `torch`, ConfigError where the model cannot be loaded.
    """

    extra: ClassVar[str | None] = "torch"
    packages: ClassVar[tuple[str, ...]] = ("sentence-transformers", "torch", "transformers")
    paid: ClassVar[bool] = True

    model: str
    revision: str | None = None
    device: str = "cpu"
    batch_size: PositiveInt = 1
    """Texts at once; above 1 the last digits of a vector depend on the texts it shares a batch with."""
    query_prefix: str = ""
    passage_prefix: str = ""

    def encode(self, texts: Sequence[str], role: Literal["passage", "query"]) -> Vectors:
        """Shape (texts, dimensions of the model)."""
        import numpy as np

        for package in self.packages:
            self._version(package)
        prefix = self.query_prefix if role == "query" else self.passage_prefix
        vectors: Vectors = np.asarray(
            _load(self.model, self.revision, self.device).encode(
                [prefix + text for text in texts],
                batch_size=self.batch_size,
                normalize_embeddings=True,
                convert_to_numpy=True,
                show_progress_bar=False,
            ),
            dtype=np.float32,
        )
        vectors[[not text.strip() for text in texts]] = 0
        return vectors


@cache
def _load(model: str, revision: str | None, device: str) -> Any:
    from sentence_transformers import SentenceTransformer

    try:
        return SentenceTransformer(model, revision=revision, device=device)
    except Exception as error:
        raise ConfigError(
            f"sentence-transformers cannot load model={model!r}, revision={revision!r} on device={device!r}: {error}"
        ) from error
