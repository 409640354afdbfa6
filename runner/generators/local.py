"""Answers of a model on this machine."""

from __future__ import annotations

import json
from typing import ClassVar

from pydantic import PrivateAttr

from adapters.client import Client
from adapters.local_server import LocalModel, LocalModelError, ServedSettings
from adapters.schema import fingerprint
from adapters.weights import PackageMissing, WeightsError
from runner.errors import ComponentError, ConfigError, MissingExtra
from runner.generators.endpoint import EndpointGenerator
from runner.stage import Answer, Generator, Request


class LocalGenerator(LocalModel, Generator):
    """Sends the prompt to weights on this machine, through a server that starts with the first request; judge=local
    shares it where weights, context and threads are the same. Citations and empty answers: see EndpointGenerator.

    Raises MissingExtra, ConfigError or ComponentError where there are no weights or the server does not run.
    """

    paid: ClassVar[bool] = True
    extra: ClassVar[str | None] = "local"
    packages: ClassVar[tuple[str, ...]] = ("xllamacpp",)
    sources: ClassVar[tuple[str, ...]] = (
        "adapters.local_server",
        "adapters.endpoint",
        "runner.generators.endpoint",
        "adapters.refusal",
    )
    incidental: ClassVar[frozenset[str]] = frozenset(
        # The first four count by what `fingerprint_without` adds.
        {"weights", "sha256", "joined", "threads", "timeout_seconds", "cache", "cache_file", "concurrency"}
    )

    _served: dict[str, _Served] = PrivateAttr(default_factory=dict)

    @property
    def model(self) -> str:
        """The weights as people call them."""
        try:
            return self.name
        except WeightsError as error:
            raise _explained(error) from error

    def fingerprint_without(self, *fields: str) -> str:
        """See Component; the weights count by their content."""
        try:
            return fingerprint([super().fingerprint_without(*fields), self.digest, self.how])
        except WeightsError as error:
            raise _explained(error) from error

    def generate(self, request: Request) -> Answer:
        """The answer of the model, with the tokens that the server counted."""
        try:
            fields = json.dumps(self.endpoint())
        except WeightsError as error:
            raise _explained(error) from error
        except LocalModelError as error:
            raise ComponentError(str(error)) from error
        if fields not in self._served:  # another start of the server has another address
            self._served.setdefault(fields, _Served(**json.loads(fields)))
        return self._served[fields].generate(request)

    @property
    def clients(self) -> tuple[Client, ...]:
        """See adapters.client.Asking."""
        return tuple(served.client for served in self._served.values())


class _Served(ServedSettings, EndpointGenerator):
    """The generator that asks the local server."""


def _explained(error: WeightsError) -> MissingExtra | ConfigError:
    return MissingExtra(str(error)) if isinstance(error, PackageMissing) else ConfigError(f"generator.weights: {error}")
