"""Answers of a model behind an OpenAI-compatible endpoint."""

from __future__ import annotations

import re
from typing import ClassVar

from adapters.client import INCIDENTAL, ClientSettings
from adapters.endpoint import EndpointError
from adapters.refusal import declines
from runner.errors import ComponentError
from runner.stage import Answer, Generator, Request

_CITATION = re.compile(r"\[(\d{1,4}(?:\s*[,;]\s*\d{1,4})*)\]")


class EndpointGenerator(Generator, ClientSettings):
    """Sends the prompt to a chat endpoint; its settings are those of adapters.client.ClientSettings.

    Citations are the numbers in square brackets that name a passage. An answer cut off at max_tokens counts as it is.
    Raises ComponentError where the endpoint gives none or an empty one.
    """

    paid: ClassVar[bool] = True
    packages: ClassVar[tuple[str, ...]] = ("openai",)
    sources: ClassVar[tuple[str, ...]] = ("adapters.endpoint", "adapters.refusal")
    incidental: ClassVar[frozenset[str]] = INCIDENTAL | {"concurrency"}

    def generate(self, request: Request) -> Answer:
        """The answer of the model, with the tokens that the endpoint counted."""
        messages = [{"role": message.role, "content": message.content} for message in request.messages]
        try:
            reply = self.client.chat_blocking(messages).reply
        except EndpointError as error:
            raise ComponentError(str(error)) from None
        text = reply.text.strip()
        if not text:
            self.client.forget(self.client.key(messages))
            raise ComponentError(
                f"{self.model} wrote an empty answer (finish_reason={reply.finish_reason})"
                + (f"; raise max_tokens={self.max_tokens}" if reply.finish_reason == "length" else "")
            )
        return Answer(text, declines(text), _citations(text, len(request.passages)), reply.tokens_in, reply.tokens_out)


def _citations(text: str, passages: int) -> tuple[int, ...]:
    numbers = (int(number) for group in _CITATION.findall(text) for number in re.findall(r"\d+", group))
    return tuple(dict.fromkeys(number - 1 for number in numbers if 1 <= number <= passages))
