"""A service behind HTTP as the system."""

from __future__ import annotations

import os
import re
from functools import cached_property
from time import sleep
from typing import TYPE_CHECKING, Any

from pydantic import Field, field_validator

from runner.errors import ComponentError
from runner.stage import System, SystemReply
from runner.systems.replies import FIELDS, read

if TYPE_CHECKING:
    from httpx import Client, Response

PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
"""Statuses after which the same request may succeed."""
LONGEST_WAIT = 120.0
"""Seconds; a service that asks for more (Retry-After) is taken at its word and the question fails."""
_SECRET = re.compile("auth|key|token|secret|cookie", re.IGNORECASE)


class HttpSystem(System):
    """Posts `{"question": …, **parameters}` as JSON to `url`, with `k` where it is set, and reads a JSON reply.

    What the reply may hold: see runner.systems.replies. A request that cannot be answered now (PASSING, no connection,
    no answer in `timeout`) is sent again up to `attempts` times, after what Retry-After says in seconds, or 0.5 s,
    doubled each time. The key is sent as `Authorization: Bearer …` and written nowhere. Raises ComponentError.
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
        """See Component."""
        self.told("url")
        return super().fingerprint

    @field_validator("url")
    @classmethod
    def _is_http(cls, url: str | None) -> str | None:
        if url and not re.match(r"https?://[^/@]+(/|$)", url):
            raise ValueError(f"{url.rpartition('@')[2]!r} is no http:// or https:// address without credentials")
        return url

    @field_validator("fields")
    @classmethod
    def _known(cls, fields: dict[str, str]) -> dict[str, str]:
        if unknown := fields.keys() - FIELDS.keys():
            raise ValueError(f"{sorted(unknown)[0]!r} is not a field of ours; they are {', '.join(FIELDS)}")
        return fields

    @field_validator("headers")
    @classmethod
    def _without_secrets(cls, headers: dict[str, str]) -> dict[str, str]:
        if secret := next((name for name in headers if _SECRET.search(name)), None):
            raise ValueError(f"{secret} would be written into every result; name the key's variable in api_key_env")
        return headers

    @cached_property
    def _client(self) -> Client:
        from httpx import Client

        key = os.environ.get(self.api_key_env) if self.api_key_env else None
        if self.api_key_env and not key:
            raise ComponentError(f"the environment variable {self.api_key_env} (system.api_key_env) is not set")
        return Client(
            headers={**self.headers, **({"Authorization": f"Bearer {key}"} if key else {})}, timeout=self.timeout
        )

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
            raise ComponentError(f"{self.url}: {error}") from None

    def _sent(self, body: dict[str, Any]) -> Response:
        """The first good response. Raises ComponentError."""
        from httpx import HTTPError

        for attempt in range(1, self.attempts + 1):
            wait = 0.5 * 2 ** (attempt - 1)
            try:
                response = self._client.post(self.told("url"), json=body)
            except HTTPError as error:
                fault = f"{type(error).__name__} {error}".strip()
            else:
                if response.is_success:
                    return response
                fault = f"status {response.status_code}: {self._said(response)}"
                asked = response.headers.get("retry-after", "")
                wait = float(asked) if asked.isdecimal() else wait
                if response.status_code not in PASSING or wait > LONGEST_WAIT:
                    raise ComponentError(f"{self.url}: {fault}")
            if attempt < self.attempts:
                sleep(wait)
        raise ComponentError(f"{self.url}: {fault} (asked {self.attempts} times)")

    def _said(self, response: Response) -> str:
        """How a response begins; a service may repeat the key."""
        key = os.environ.get(self.api_key_env or "")
        text = " ".join(response.text.split())
        return (text.replace(key, "[key]") if key else text)[:200] or "nothing"
