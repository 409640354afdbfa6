"""What a system may hand back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from runner.errors import ComponentError
from runner.stage import Passage, SystemReply
from runner.systems.replies import FIELDS, read


def test_a_text_is_an_answer() -> None:
    assert read("Two years.") == SystemReply("Two years.")


def test_passages_are_texts_or_mappings() -> None:
    reply = read({"answer": "a", "contexts": ["one", {"text": "two", "doc_id": 7, "start": 3, "score": 0.5}]})
    assert reply.context == (Passage("one"), Passage("two", "7", 3, 0.5))
    assert reply.retrieved == reply.context


def test_the_ranking_may_be_longer_than_what_reached_the_prompt() -> None:
    reply = read({"answer": "a", "retrieved": ["one", "two"], "contexts": ["two"], "citations": [0, 0]})
    assert [passage.text for passage in reply.retrieved] == ["one", "two"]
    assert reply.context == (Passage("two"),)
    assert reply.citations == (0,)


def test_fields_are_found_at_their_paths() -> None:
    value = {"result": [{"message": "hello"}], "usage": {"in": 5}, "hits": [{"page": {"content": "p"}}]}
    paths = {"answer": "result.0.message", "tokens_in": "usage.in", "contexts": "hits", "text": "page.content"}
    assert read(value, {**FIELDS, **paths}) == SystemReply("hello", (Passage("p"),), (Passage("p"),), tokens_in=5)


class Page:
    def __init__(self, page_content: str, **metadata: Any) -> None:
        self.page_content, self.metadata = page_content, metadata


def test_objects_are_read_by_their_attributes() -> None:
    value = {"result": "a", "source_documents": [Page("one", source="x.md")]}
    paths = {"answer": "result", "contexts": "source_documents", "text": "page_content", "doc_id": "metadata.source"}
    assert read(value, {**FIELDS, **paths}).context == (Passage("one", "x.md"),)
    assert read(SystemReply("a")) == SystemReply("a")


def test_numbers_of_numpy_are_numbers() -> None:
    hit = {"text": "t", "score": np.float32(0.5), "start": np.int64(3)}
    reply = read({"answer": "a", "contexts": [hit], "refused": np.bool_(True), "tokens_in": np.int32(4)})
    assert reply.context == (Passage("t", None, 3, 0.5),)
    assert (reply.refused, reply.tokens_in) == (True, 4)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"answer": "a", "contexts": [{"text": "t", "score": "high"}]}, "it returned str 'high' as 'score'"),
        ({"answer": "a", "contexts": [{"text": "t", "score": 10**400}]}, "as 'score'; expected float"),
        (("a", ["b"]), "it returned tuple .* an object with 'answer'"),
        ([1], "it returned list"),
    ],
)
def test_what_cannot_be_meant_is_refused(value: Any, said: str) -> None:
    with pytest.raises(ComponentError, match=said):
        read(value)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (5, "it returned int '5'; expected a text, or a mapping or an object with 'answer'"),
        (None, "it returned nothing; expected a text"),
        ({"output": "a"}, r"it returned nothing as 'answer'; expected a text \(the reply has: output;"),
        ({"answer": ["a"]}, r"it returned list \"\['a'\]\" as 'answer'"),
        ({"answer": "a", "contexts": "one"}, "it returned str 'one' as 'contexts'; expected a list"),
        (
            {"answer": "a", "contexts": [{"content": "x"}]},
            r"contexts\[0\] is dict .* an object with 'text'",
        ),
        ({"answer": "a", "contexts": ["x"], "citations": [1]}, r"\[1\] as 'citations'.* count from 0 and are below 1"),
        ({"answer": "a", "refused": "no"}, "it returned str 'no' as 'refused'; expected bool"),
        ({"answer": "a", "tokens_in": True}, "it returned bool 'True' as 'tokens_in'; expected int"),
    ],
)
def test_what_cannot_be_read_is_refused_in_a_sentence(value: Any, said: str) -> None:
    with pytest.raises(ComponentError, match=said):
        read(value)
