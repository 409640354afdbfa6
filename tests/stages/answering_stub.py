"""The stub endpoint, with replies that are computed from the request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.stages.openai_stub import OpenAIStub, StubReply


class AnsweringStub(OpenAIStub):
    def answer_with(self, reply: Callable[[dict[str, Any]], StubReply]) -> None:
        stub = self

        class Computed(list[StubReply]):
            def __getitem__(self, _: Any) -> Any:
                return reply(stub.requests[-1].body)

        self._script = Computed([StubReply()])


@pytest.fixture
def answering_stub() -> Iterator[AnsweringStub]:
    stub = AnsweringStub()
    yield stub
    stub.close()
