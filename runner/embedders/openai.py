"""Embeddings of a model behind an OpenAI-compatible endpoint."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field, PositiveInt, ValidationError, model_validator

from adapters.client import INCIDENTAL, Client, ClientSettings
from adapters.endpoint import EndpointError
from runner.component import explain
from runner.errors import ComponentError
from runner.stage import TextEmbedder

if TYPE_CHECKING:
    from runner.stage import Vectors


class EndpointEmbedder(TextEmbedder):
    """Asks for vectors in batches and scales them to length 1; a blank text has the zero vector.

    The fields are those of adapters.client.ClientSettings that matter for embeddings. Whether a text has the same
    vector in every batch is up to the endpoint.

    Raises ComponentError where the endpoint gives none.
    """

    model_config = ConfigDict(hide_input_in_errors=True)

    packages: ClassVar[tuple[str, ...]] = ("openai",)
    sources: ClassVar[tuple[str, ...]] = ("adapters.endpoint",)
    paid: ClassVar[bool] = True
    incidental: ClassVar[frozenset[str]] = INCIDENTAL

    base_url: str
    model: str
    api_key_env: str | None = None
    options: dict[str, Any] = Field(default_factory=dict)
    """More fields of the request body, sent as they are (dimensions)."""
    timeout_seconds: Annotated[float, Field(gt=0)] = 60.0
    max_attempts: PositiveInt = 5
    cache: Literal["read", "refresh", "off"] = "read"
    cache_file: str | None = None
    max_calls: PositiveInt | None = None
    requests_per_minute: PositiveInt | None = None
    batch_size: PositiveInt = 64
    """Texts in one request."""
    query_prefix: str = ""
    passage_prefix: str = ""

    @model_validator(mode="after")
    def _endpoint_takes_it(self) -> EndpointEmbedder:
        try:
            assert self._settings
        except ValidationError as error:
            raise ValueError("; ".join(explain(fault, "", ()) for fault in error.errors())) from None
        return self

    def encode(self, texts: Sequence[str], role: Literal["passage", "query"]) -> Vectors:
        """Shape (texts, dimensions of the model)."""
        import numpy as np

        prefix = self.query_prefix if role == "query" else self.passage_prefix
        # Endpoints refuse empty texts; the full stop holds the place, and its vector is dropped.
        asked = [prefix + text if text.strip() else "." for text in texts]
        (client,) = self.clients
        try:
            batches = [
                np.asarray(client.embed_blocking(asked[start : start + self.batch_size]).vectors, dtype=np.float64)
                for start in range(0, len(asked), self.batch_size)
            ]
        except EndpointError as error:
            raise ComponentError(str(error)) from None
        if len({batch.shape[1] for batch in batches}) > 1 or not all(np.isfinite(batch).all() for batch in batches):
            raise ComponentError(f"{self._settings.host} gave vectors for {self.model} of unlike lengths or not finite")
        vectors = np.concatenate(batches) if batches else np.zeros((0, 1))
        vectors[[not text.strip() for text in texts]] = 0
        unit: Vectors = (vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)).astype(np.float32)
        return unit

    @property
    def clients(self) -> tuple[Client, ...]:
        """See adapters.client.Asking."""
        return (self._settings.client,)

    @cached_property
    def _settings(self) -> ClientSettings:
        return ClientSettings(
            **{name: getattr(self, name) for name in ClientSettings.model_fields if hasattr(self, name)}
        )
