from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.schema import Chunk
from runner.component import build
from runner.errors import ConfigError
from runner.generators.extractive import ExtractiveGenerator, Orders
from runner.prompts.chat import ChatPrompt
from runner.stage import Message, Request
from tests.stages.contracts import ROOT, config_of

PROMPTS = sorted(path.stem for path in Path(ROOT, "conf", "prompt").glob("*.yaml"))


def chunk(text: str, doc_id: str = "d") -> Chunk:
    return Chunk(doc_id, 0, len(text), text)


def user(prompt: ChatPrompt, question: str, *passages: str) -> str:
    return prompt.messages(question, [chunk(text) for text in passages])[-1].content


@pytest.mark.parametrize("name", PROMPTS)
def test_every_yaml_is_a_commented_prompt(name: str) -> None:
    lines = (ROOT / "conf" / "prompt" / f"{name}.yaml").read_text().splitlines()
    assert lines[0].startswith("# ")
    assert lines[0].endswith(".")
    assert all(" # " in line for line in lines[2:] if line and not line.startswith(" ")), "a key has no comment"
    prompt = build(config_of("prompt", name), ChatPrompt, "prompt")
    assert set(config_of("prompt", name)) - {"_target_"} == set(ChatPrompt.model_fields)
    system, message = prompt.messages("Why?", [chunk("Because."), chunk("Perhaps.")])
    assert (system.role, message.role) == ("system", "user")
    assert all(part in message.content for part in ("[1] Because.\n\n[2] Perhaps.", "Question: Why?"))
    assert "{" not in system.content + message.content


def test_prompts_differ_in_what_they_ask_for() -> None:
    def orders(name: str) -> Orders:
        prompt = build(config_of("prompt", name), ChatPrompt, "prompt")
        return ExtractiveGenerator().orders(Request("q", (), prompt.messages("q", [])))

    assert {name: orders(name) for name in PROMPTS} == {
        "plain": Orders(2, cite=False, strict=False),
        "concise": Orders(1, cite=False, strict=False),
        "cited": Orders(2, cite=True, strict=False),
        "strict": Orders(2, cite=False, strict=True),
        "detailed": Orders(4, cite=False, strict=False),
    }


def test_braces_of_template_and_documents_arrive_as_written() -> None:
    prompt = ChatPrompt(template='Use {context} to answer {question}. Reply as {"a": 1}.', passage="{text}")
    text = "limit = {max}; price $5 ${x} %s {{y}} \\1 \\g<0>"
    assert user(prompt, "What is the limit?", text) == f'Use {text} to answer What is the limit?. Reply as {{"a": 1}}.'


def test_what_looks_like_an_interpolation_arrives_as_written() -> None:
    prompt = ChatPrompt(template="Cost is ${price}; pattern ${a; k=${retriever.k}. {question}")
    assert user(prompt, "Q?") == "Cost is ${price}; pattern ${a; k=${retriever.k}. Q?"


def test_text_that_was_filled_in_is_not_filled_again() -> None:
    prompt = ChatPrompt(template="{context}|{question}", passage="{n}:{doc_id}:{text}")
    sent = prompt.messages("{context} {n}", [chunk("{question} {doc_id}", "{text}")])[-1].content
    assert sent == "1:{text}:{question} {doc_id}|{context} {n}"


@settings(deadline=None)
@given(before=st.text(), after=st.text(), question=st.text(), text=st.text(), doc_id=st.text())
def test_any_text_arrives_as_it_is(before: str, after: str, question: str, text: str, doc_id: str) -> None:
    known = ("{context}", "{question}")
    prompt = ChatPrompt(template=before + "{question}\0{context}" + after, passage="{doc_id}\0{text}")
    if not any(name in part for name in known for part in (before, after)):
        sent = prompt.messages(question, [chunk(text, doc_id)])[-1].content
        assert sent == f"{before}{question}\0{doc_id}\0{text}{after}"


def test_a_placeholder_may_stand_twice_and_in_the_system_message() -> None:
    prompt = ChatPrompt(system="On {question}", template="{question} {question}")
    assert prompt.messages("Q", []) == (Message("system", "On Q"), Message("user", "Q Q"))


def test_closed_book_prompts_have_no_context_and_may_have_no_system_message() -> None:
    assert ChatPrompt(template="{question}").messages("Q", [chunk("text")]) == (Message("user", "Q"),)


def test_passages_are_numbered_and_separated() -> None:
    prompt = ChatPrompt(template="{context}{question}", passage="<{n}|{doc_id}|{text}>", separator="--")
    assert prompt.messages("?", [chunk("a", "x"), chunk("b", "y")])[-1].content == "<1|x|a>--<2|y|b>?"
    assert prompt.messages("?", [])[-1].content == "?"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"template": "no place"}, r"prompt\.template: must contain the placeholder \{question\}"),
        ({"template": "{Question} {{question }}"}, r"prompt\.template: must contain"),
        ({"template": "{question}", "passage": "{n}"}, r"prompt\.passage: must contain the placeholder \{text\}"),
        ({"template": 5}, r"prompt\.template=5 is not allowed"),
        ({}, r"prompt\.template is missing"),
        ({"template": "{question}", "sytem": "x"}, r"prompt\.sytem is not a known key \(did you mean prompt\.system"),
    ],
    ids=["no question", "misspelt", "no text", "number", "missing", "typo"],
)
def test_faults_name_the_key(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build({"_target_": "runner.prompts.chat.ChatPrompt", **fields}, ChatPrompt, "prompt")


def test_every_field_changes_the_fingerprint() -> None:
    plain = {"system": "s", "template": "{question}", "passage": "{text}", "separator": " "}
    prints = {ChatPrompt(**{**plain, field: value + "!"}).fingerprint for field, value in plain.items()}
    assert len(prints | {ChatPrompt(**plain).fingerprint}) == 5
