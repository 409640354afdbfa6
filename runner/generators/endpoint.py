"""Answers of a model behind an OpenAI-compatible endpoint."""

from __future__ import annotations

import re
from typing import ClassVar

from adapters.endpoint import Endpoint, EndpointError
from adapters.refusal import declines
from runner.errors import ComponentError
from runner.stage import Answer, Generator, Request

_CITATION = re.compile(r"\[(\d{1,4}(?:\s*[,;]\s*\d{1,4})*)\]")


class EndpointGenerator(Generator, Endpoint):
    """Sends the prompt to a chat endpoint; its settings are those of adapters.endpoint.Endpoint.

    Citations are the numbers in square brackets that name a passage. An answer cut off at max_tokens counts as it is.
    Raises ComponentError where the endpoint gives none or an empty one.
    """

    paid: ClassVar[bool] = True
    packages: ClassVar[tuple[str, ...]] = ("openai",)
    sources: ClassVar[tuple[str, ...]] = ("adapters.endpoint", "adapters.refusal")
    incidental: ClassVar[frozenset[str]] = frozenset({"concurrency", "api_key_env", "timeout_seconds", "max_attempts"})

    def generate(self, request: Request) -> Answer:
        """The answer of the model, with the tokens that the endpoint counted."""
        try:
            reply = self.chat([{"role": message.role, "content": message.content} for message in request.messages])
        except EndpointError as error:
            raise ComponentError(str(error)) from None
        text = reply.text.strip()
        if not text:
            raise ComponentError(
                f"{self.model} wrote an empty answer (finish_reason={reply.finish_reason})"
                + (f"; raise max_tokens={self.max_tokens}" if reply.finish_reason == "length" else "")
            )
        return Answer(text, declines(text), _citations(text, len(request.passages)), reply.tokens_in, reply.tokens_out)


def _citations(text: str, passages: int) -> tuple[int, ...]:
    numbers = (int(number) for group in _CITATION.findall(text) for number in re.findall(r"\d+", group))
    return tuple(dict.fromkeys(number - 1 for number in numbers if 1 <= number <= passages))
