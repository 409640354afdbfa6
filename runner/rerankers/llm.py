"""A chat model rates each passage."""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

from pydantic import PositiveInt

from adapters.client import INCIDENTAL, ClientSettings
from adapters.endpoint import EndpointError
from runner.errors import ComponentError
from runner.stage import Reranker

_PROMPT = """\
Rate how useful the passage is for answering the question, as a whole number from 0 to 10.
0 = it has nothing to do with the question, 5 = it is on the topic but does not answer, 10 = it holds the full answer.

Question: {query}

Passage:
<passage>
{passage}
</passage>

Reply with the number alone."""

_NUMBER = r"(?<![\d.,-])(-?\d+(?:\.\d+)?)(?:\s*(?:/|out of)\s*10)?(?![\d.,]*\d)"
_LABELLED = re.compile(rf"(?:rating|score|relevance)[\"'*:= ]*{_NUMBER}[\s.*\"'}}]*$", re.IGNORECASE | re.MULTILINE)
_ANY = re.compile(_NUMBER)
_THOUGHT = re.compile(r"<think>.*?</think>", re.DOTALL)


class LlmReranker(Reranker, ClientSettings):
    """Pointwise relevance from 0 to 10 by a chat endpoint (as in Thomas et al. 2024), one call a passage; its settings
    are those of adapters.client.ClientSettings. Ratings are coarse: ties keep the retriever's order.

    Raises ComponentError where the endpoint gives no reply, a reply that was cut off, or not one rating in range.
    """

    packages: ClassVar[tuple[str, ...]] = ("openai",)
    sources: ClassVar[tuple[str, ...]] = ("adapters.endpoint",)
    paid: ClassVar[bool] = True
    incidental: ClassVar[frozenset[str]] = INCIDENTAL | {"concurrency"}

    candidates: PositiveInt
    concurrency: PositiveInt = 4
    """Calls at once."""

    def scores(self, query: str, passages: Sequence[str]) -> list[float]:
        """Ratings in [0, 10]; equal passages are rated once."""
        unique = list(dict.fromkeys(passages))
        with ThreadPoolExecutor(self.concurrency) as pool:
            ratings = dict(zip(unique, pool.map(lambda passage: self._rating(query, passage), unique), strict=True))
        return [ratings[passage] for passage in passages]

    def _rating(self, query: str, passage: str) -> float:
        messages = [{"role": "user", "content": _PROMPT.format(query=query, passage=passage)}]
        try:
            reply = self.client.chat_blocking(messages).reply
        except EndpointError as error:
            raise ComponentError(str(error)) from None
        try:
            if reply.finish_reason == "length":
                raise ComponentError(f"{self.model} did not finish its rating; raise max_tokens={self.max_tokens}")
            return rating(reply.text)
        except ComponentError:
            self.client.forget(self.client.key(messages))
            raise


def rating(reply: str) -> float:
    """The one rating that a reply holds; a number behind `rating`, `score` or `relevance` at the end of a line goes
    before others.

    Raises ComponentError where there is none, more than one, or one outside 0 to 10.
    """
    text = _THOUGHT.sub("", reply)
    found = {float(number) for number in _LABELLED.findall(text) or _ANY.findall(text)}
    if len(found) != 1 or not 0 <= (value := found.pop()) <= 10:
        raise ComponentError(f"a rating from 0 to 10 was asked for, but the reply is {reply.strip()[:200]!r}")
    return value
