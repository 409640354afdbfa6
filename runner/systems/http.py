"""A service behind HTTP as the system."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cached_property
from time import sleep
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from adapters.endpoint import KEY_MARK, name_of_variable, plain_address
from runner.errors import ComponentError, ConfigError
from runner.stage import System, SystemReply
from runner.systems.loop import awaited
from runner.systems.replies import FIELDS, known, read

if TYPE_CHECKING:
    from httpx import AsyncClient, Response

PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
"""Statuses after which the same request may succeed."""
LONGEST_WAIT = 120.0
"""Seconds; a service that asks for more (Retry-After) is taken at its word and the question fails."""
_SECRET = re.compile("auth|key|token|secret|cookie", re.IGNORECASE)


class HttpSystem(System):
    """Posts `{"question": …, **parameters}` as JSON to `url`, with `k` where it is set, and reads a JSON reply.

    What the reply may hold: see runner.systems.replies. A request that cannot be answered now (PASSING, no connection,
    no answer in `timeout`) is sent again up to `attempts` times, after what Retry-After says, or 0.5 s, doubled each
    time. The key is sent as `Authorization: Bearer …` and written nowhere. Raises ComponentError.
    """

    url: str | None = None
    """Where the service listens, http:// or https://."""
    parameters: dict[str, Any] = Field(default_factory=dict)
    """More fields of the request; these can be swept."""
    question_field: str = "question"
    """The field of the request that holds the question."""
    k_field: str = "k"
    """The field of the request that holds `k`."""
    fields: dict[str, str] = Field(default_factory=dict)
    """Our field -> its path in the reply, where it is not of the same name: `{answer: result.text}`."""
    headers: dict[str, str] = Field(default_factory=dict)
    """More headers, without secrets."""
    api_key_env: str | None = None
    """Name of the environment variable that holds the key; null = none is sent."""
    timeout: float = Field(60.0, gt=0)
    """Seconds for one request."""
    attempts: int = Field(3, ge=1, le=10)
    """How often a question is sent before it fails."""

    incidental = System.incidental | {"timeout", "attempts", "api_key_env"}

    @property
    def fingerprint(self) -> str:
        """See Component. Raises ConfigError where the address or the key is missing."""
        self.told("url")
        if self.api_key_env and not self._key:
            raise ConfigError(f"the environment variable {self.api_key_env} (system.api_key_env) is not set")
        return super().fingerprint

    _is_name = field_validator("api_key_env")(name_of_variable)

    @field_validator("url")
    @classmethod
    def _is_plain(cls, url: str | None) -> str | None:
        return None if url is None else plain_address(url)

    @field_validator("fields")
    @classmethod
    def _ours(cls, fields: dict[str, str]) -> dict[str, str]:
        return known(fields)

    @field_validator("headers")
    @classmethod
    def _without_secrets(cls, headers: dict[str, str]) -> dict[str, str]:
        if secret := next((name for name in headers if _SECRET.search(name)), None):
            raise ValueError(f"{secret} would be written into every result; name the key's variable in api_key_env")
        return headers

    @property
    def _key(self) -> str:
        """The key; empty = there is none."""
        return os.environ.get(self.api_key_env, "").strip() if self.api_key_env else ""

    @cached_property
    def _client(self) -> AsyncClient:
        from httpx import AsyncClient

        key = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        return AsyncClient(headers={**self.headers, **key}, timeout=None)

    def answer(self, id: str, question: str) -> SystemReply:
        """See System."""
        body = {self.question_field: question, **self.parameters}
        response = self._sent(body if self.k is None else {**body, self.k_field: self.k})
        try:
            value = response.json()
        except ValueError:
            raise ComponentError(f"{self.url} sent no JSON: {self._said(response)}") from None
        try:
            return read(value, {**FIELDS, **self.fields})
        except ComponentError as error:
            raise ComponentError(self._without_key(f"{self.url}: {error}")) from None

    def _sent(self, body: dict[str, Any]) -> Response:
        """The first good response. Raises ComponentError."""
        from httpx import HTTPError

        for attempt in range(1, self.attempts + 1):
            wait = 0.5 * 2 ** (attempt - 1)
            try:
                response = awaited(self._client.post(self.told("url"), json=body), self.timeout)
            except TimeoutError:
                fault = f"no answer in {self.timeout:g} s"
            except (HTTPError, ValueError) as error:  # ValueError: a body that is no JSON
                fault = self._without_key(f"{type(error).__name__} {error}".strip())
            else:
                if response.is_success:
                    return response
                fault = f"status {response.status_code}: {self._said(response)}"
                wait = _asked(response.headers.get("retry-after", ""), wait)
                if response.status_code not in PASSING or wait > LONGEST_WAIT:
                    raise ComponentError(f"{self.url}: {fault}")
            if attempt < self.attempts:
                sleep(wait)
        raise ComponentError(f"{self.url}: {fault} (asked {self.attempts} times)")

    def _said(self, response: Response) -> str:
        """How a response begins, or where the service has moved to."""
        moved = urlsplit(response.headers.get("location", "")) if response.has_redirect_location else None
        text = f"it has moved to {moved._replace(query='', fragment='').geturl()}" if moved else response.text
        return self._without_key(" ".join(text.split()))[:200] or "nothing"

    def _without_key(self, text: str) -> str:
        """`text`; a service may repeat the key."""
        return text.replace(self._key, KEY_MARK) if self._key else text


def _asked(retry_after: str, otherwise: float) -> float:
    """Seconds that a service asks to wait, as a number or a date."""
    with suppress(ValueError):
        return max(float(retry_after), 0.0)
    with suppress(ValueError):
        return max((parsedate_to_datetime(retry_after) - datetime.now(UTC)).total_seconds(), 0.0)
    return otherwise
