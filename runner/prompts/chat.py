"""A chat prompt made of templates."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pydantic import field_validator

from adapters.schema import Chunk
from runner.component import Component
from runner.stage import Message


class ChatPrompt(Component):
    """What the generator is told.

    Only these placeholders are filled, in one pass: any other brace, `$`, `%` or quote, in the template, the question
    or a document, arrives as it is written.
    """

    system: str | None = None
    """The system message; knows {context} and {question}. None = no system message."""
    template: str
    """The user message; knows {context} and {question}. Without {context} the model answers from what it knows by
    itself (closed book)."""
    passage: str = "[{n}] {text}"
    """One chunk of the context; knows {n} (its place, from 1), {text} and {doc_id}."""
    separator: str = "\n\n"
    """What stands between passages."""

    @field_validator("template")
    @classmethod
    def _asks(cls, template: str) -> str:
        if "{question}" not in template:
            raise ValueError("must contain the placeholder {question}, or the model never sees the question")
        return template

    @field_validator("passage")
    @classmethod
    def _shows(cls, passage: str) -> str:
        if "{text}" not in passage:
            raise ValueError("must contain the placeholder {text}, or the model never sees a passage")
        return passage

    def messages(self, question: str, passages: Sequence[Chunk]) -> tuple[Message, ...]:
        """The messages for `question` with `passages` in prompt order; the system message first, if there is one."""
        context = self.separator.join(
            _filled(self.passage, {"n": str(n), "text": chunk.text, "doc_id": chunk.doc_id})
            for n, chunk in enumerate(passages, 1)
        )
        values = {"context": context, "question": question}
        user = Message("user", _filled(self.template, values))
        return (user,) if self.system is None else (Message("system", _filled(self.system, values)), user)


def _filled(template: str, values: Mapping[str, str]) -> str:
    return re.sub(r"\{(" + "|".join(values) + r")\}", lambda found: values[found[1]], template)
