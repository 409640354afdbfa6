"""Any text of a judge becomes data that holds to the schema, or one reason that a person understands."""

from __future__ import annotations

import json
from time import perf_counter
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, field_validator

from adapters.judge import Reply
from adapters.replies import UnusableReply, excerpt, parse


class Item(BaseModel):
    verdict: Literal["yes", "no", "idk"]
    reason: str | None = None


class Verdicts(BaseModel):
    verdicts: list[Item]


class Rating(BaseModel):
    score: int


class Share(BaseModel):
    share: float


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")

    score: int


class Lenient(BaseModel):
    statements: list[str] = Field(default_factory=list)


class Anything(BaseModel):
    anything: Any


class Crooked(BaseModel):
    word: str

    @field_validator("word")
    @classmethod
    def _fails(cls, word: str) -> str:
        raise KeyError(word)


GOOD = '{"verdicts": [{"verdict": "yes"}, {"verdict": "no", "reason": "it says 5"}]}'
WANT = Verdicts(verdicts=[Item(verdict="yes"), Item(verdict="no", reason="it says 5")])


def refused(text: str, schema: type[BaseModel] = Verdicts, finish_reason: str | None = None) -> str:
    with pytest.raises(UnusableReply) as caught:
        parse(Reply(text, finish_reason=finish_reason), schema)
    said = str(caught.value)
    assert len(said) < 400
    assert "\n" not in said
    said.encode()
    return said


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"  \n{GOOD}\n",
        f"\ufeff{GOOD}",
        f"```json\n{GOOD}\n```",
        f"Sure, here is the result:\n```json\n{GOOD}\n```\nHope that helps.",
        f"Format {{as asked}}:\n{GOOD}",
        f"Format {{as asked: [1, 2]}}, see [3] and [the text]:\n{GOOD}",
        f"I open with {{ and then: {GOOD}",
        f'The 12" screen {{as asked}}: {GOOD}',
        f"{GOOD}\nAgain: {GOOD}",
        f'{GOOD} {{"note": 1}}',
        f"<think>Perhaps {{'verdicts': []}}? Or {GOOD.replace('yes', 'no')}</think>\n{GOOD}",
        f"<think>a</think><think>b</think>{GOOD}",
        f"the opening tag is missing {{}} </think>{GOOD}",
        f"<thinking>hm [</thinking>{GOOD}",
        GOOD.replace(", ", ",\n\t"),
    ],
)
def test_what_stands_around_it_does_not_matter(text: str) -> None:
    instance, data = parse(Reply(text), Verdicts)
    assert instance == WANT
    assert data == json.loads(GOOD)


def test_line_breaks_and_tags_inside_strings_are_text() -> None:
    raw = '{"verdicts": [{"verdict": "no", "reason": "first\nsecond </think> {"}]}'
    assert parse(Reply(raw), Verdicts)[0].verdicts[0].reason == "first\nsecond </think> {"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "it is empty"),
        ("   \n", "it is empty"),
        ("I am unable to assess this.", "no JSON in it: 'I am unable to assess this.'"),
        ("null", "no JSON in it: 'null'"),
        ("true", "no JSON in it"),
        ("yes", "no JSON in it"),
        ('{"verdicts": [{"verdict": "yes"}, {"verd', "its JSON ends in the middle"),
        ('{"verdicts": [{"verdict": "yes"}', "its JSON ends in the middle"),
        ("{", "its JSON ends in the middle"),
        (f'{GOOD} and {{"verdicts": [', "its JSON ends in the middle"),
        (f"{GOOD} or rather {GOOD.replace('yes', 'no')}", "2 different answers in it"),
        ('{"verdicts": [{"verdict": "yes"},]}', "no valid JSON in it"),
        ("{'verdicts': [{'verdict': 'yes'}]}", "property name enclosed in double quotes"),
        ('{"verdicts": [{"verdict": yes}]}', "no valid JSON in it"),
        ('{"verdicts": [{"verdict": "yes"}] // one', "no valid JSON in it"),
        ('{"verdicts": [{"verdict": "yes", "verdict": "no"}]}', "the key 'verdict' stands twice in one object"),
        ('{"verdicts": NaN}', "NaN is not a number that JSON has"),
        ('{"verdicts": -Infinity}', "-Infinity is not a number"),
        ('{"verdicts": 1e999}', "'1e999' is not a finite number"),
        (f'{{"verdicts": {"9" * 5000}}}', "a number of 5000 digits"),
        ("[" * 10_000, "nested too deep"),
        ("[" * 10_000 + "]" * 10_000, "nested too deep"),
        ('{"a":' * 10_000 + "1" + "}" * 10_000, "nested too deep"),
        ("{ " * 10_000, "more than 200 brackets"),
        ("{}" * 300 + GOOD, "more than 200 brackets"),
        (f"<think>so {GOOD} perhaps", "it thinks and does not answer"),
    ],
    ids=lambda text: text[:40],
)
def test_what_cannot_be_parsed_says_so(text: str, expected: str) -> None:
    began = perf_counter()
    said = refused(text)
    assert perf_counter() - began < 1
    assert said.startswith("the reply could not be parsed: ")
    assert expected in said


@pytest.mark.parametrize(
    ("text", "schema", "expected"),
    [
        ('{"verdicts": null}', Verdicts, "verdicts is null: input should be a valid list"),
        ('{"verdicts": [{"verdict": "Yes."}]}', Verdicts, """verdicts.0.verdict is "Yes.": input should be 'yes',"""),
        ('{"verdict": "yes"}', Verdicts, "verdicts is missing in"),
        ("{}", Verdicts, "verdicts is missing in '{}'"),
        ('[{"verdict": "yes"}]', Verdicts, "reply is"),
        ('[1] {"verdicts": [{"verdict": 1}]}', Verdicts, "verdicts.0.verdict is 1"),
        ('{"result": {"score": 3}}', Rating, "score is missing"),
        ('{"score": true}', Rating, "score is true, not a number"),
        ('{"share": false}', Share, "share is false, not a number"),
        ('{"score": "high"}', Rating, 'score is "high": input should be a valid integer'),
        ('{"score": 2.5}', Rating, "score is 2.5"),
        ('{"score": null}', Rating, "score is null"),
        ('{"score": 3, "note": ""}', Closed, "note is"),
        ('{"score": "\\ud83d"}', Rating, "score is"),
        ('{"\\ud83d": 1, "score": 3}', Closed, "extra inputs are not permitted"),
        ('{"word": "x"}', Crooked, "KeyError"),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_what_breaks_the_schema_names_the_place(text: str, schema: type[BaseModel], expected: str) -> None:
    said = refused(text, schema)
    assert said.startswith("the reply does not hold to its schema: ")
    assert expected in said


def test_a_value_inside_a_broken_one_is_no_answer() -> None:
    # {} alone would hold to the schema, by its default.
    assert parse(Reply("{}"), Lenient)[0].statements == []
    assert "no valid JSON" in refused('{"statements": ["a",], "note": {}}', Lenient)
    assert "no valid JSON" in refused('{"statements": ["a" "b"], "note": {}', Lenient)


def test_numbers_keep_their_size() -> None:
    assert parse(Reply(f'{{"score": {2**70}}}'), Rating)[0].score == 2**70
    assert parse(Reply('{"share": 1}'), Share)[0].share == 1.0
    for infinite in ('"inf"', '"nan"', f'"{10**400}"'):
        assert "not a number" in refused(f'{{"share": {infinite}}}', Share)


def test_a_cut_off_reply_names_max_tokens() -> None:
    for text in ('{"verdicts": [', "Let me think", '{"verdict": 1}', ""):
        assert refused(text, finish_reason="length").endswith("it was cut off at max_tokens; raise it")
    assert parse(Reply(GOOD, finish_reason="length"), Verdicts)[0] == WANT


def test_deep_but_allowed_values_end_in_a_reply_or_a_reason() -> None:
    for depth in (50, 500, 900, 990):
        text = '{"anything": ' + "[" * depth + "]" * depth + "}"
        try:
            parse(Reply(text), Anything)
        except UnusableReply as fault:
            said = str(fault)
        else:
            said = "too deep or read"
        assert "too deep" in said


def test_hostile_replies_take_bounded_time() -> None:
    hostile = [
        "[1," * 100_000,
        '{"a":[' * 100_000,
        '"{' * 100_000,
        "{" + "x" * 2_000_000,
        "</think>" * 200_000,
        '{"' * 9999,
        '"\\' * 1_000_000,
        ('{"a":"' + "x" * 9000) * 200,
        "[[[" * 300 + "x",
    ]
    for text in hostile:
        began = perf_counter()
        refused(text)
        assert perf_counter() - began < 3


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet=st.one_of(st.characters(), st.sampled_from('{}[]",:\\ntrue10.eE-`<>/think')), max_size=200))
def test_any_text_is_an_answer_or_an_unusable_reply(text: str) -> None:
    for schema in (Verdicts, Rating, Lenient, Anything):
        try:
            parse(Reply(text), schema)
        except UnusableReply as fault:
            str(fault).encode()


words = st.text(alphabet=st.characters(exclude_characters="{}[]<", exclude_categories=["Cs"]), max_size=60)
items = st.builds(Item, verdict=st.sampled_from(["yes", "no", "idk"]), reason=st.none() | st.text(max_size=20))


@settings(max_examples=200, deadline=None)
@given(before=words, after=words, wanted=st.lists(items, max_size=4))
def test_json_in_prose_is_found(before: str, after: str, wanted: list[Item]) -> None:
    value = Verdicts(verdicts=wanted)
    written = json.dumps(value.model_dump())
    assert parse(Reply(f"{before}{written}{after}"), Verdicts)[0] == value


@settings(max_examples=100, deadline=None)
@given(wanted=st.lists(items, min_size=1, max_size=3), data=st.data())
def test_half_of_it_is_never_an_answer(wanted: list[Item], data: st.DataObject) -> None:
    written = Verdicts(verdicts=wanted).model_dump_json()
    cut = data.draw(st.integers(0, len(written) - 1))
    assert "pars" in refused(written[:cut])


def test_an_excerpt_is_short_and_on_one_line() -> None:
    assert excerpt("a\nb") == "'a b'"
    assert len(excerpt("x" * 10**6)) == 82
