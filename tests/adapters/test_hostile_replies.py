"""What a judge writes, however odd, becomes a score that can be stored, or a reason; never a number made of it."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest
from pydantic import BaseModel

from adapters.base import SCORERS, Disbelieved, JudgedScorer, NothingToJudge, UnknownDefinition, scorer
from adapters.inputs import missing
from adapters.isolation import contained
from adapters.judge import Call, JudgeFault, Message, Reply
from adapters.judges.lexical import LexicalJudge
from adapters.replies import MOST_CHARACTERS, UnusableReply, parse, plain
from adapters.schema import LONGEST_REASON, Question, Record, Score, Verdict, from_json, to_json
from adapters.units import alike, each_once, named, paired
from runner.results import write_parquet
from tests.adapters.router import QUESTION, record
from tests.adapters.scripted import ScriptedJudge, measure

JUDGED = [name for name in SCORERS if isinstance(scorer(name), JudgedScorer)]
LONE = "\ud83d"


def _odd(data: Any) -> Any:
    if isinstance(data, dict):
        return {name: _odd(value) for name, value in data.items()}
    if isinstance(data, list):
        return [_odd(item) for item in data]
    return f"{data}{LONE}\0" if isinstance(data, str) and " " in data else data


class Odd(LexicalJudge):
    """The lexical judge, whose sentences end in half a character and a NUL."""

    way: str

    async def ask(self, call: Call) -> Reply:
        if self.way == "raises":
            raise ValueError(f"bad {LONE}" + "x" * 100_000)
        if self.way == "faults":
            raise JudgeFault(f"bad {LONE}")
        reply = await super().ask(call)
        if call.schema is None:
            return replace(reply, text=f"{reply.text}{LONE}")
        return replace(reply, text=json.dumps(_odd(json.loads(reply.text)), ensure_ascii=self.way == "escapes"))


@pytest.mark.parametrize("way", ["escapes", "writes", "raises", "faults"])
def test_every_score_of_a_judge_that_writes_half_characters_can_be_stored(way: str, tmp_path: Path) -> None:
    scores = tuple(measure(name, QUESTION, record(), Odd(way=way)) for name in JUDGED)
    assert any(score.evidence for score in scores) or way in ("raises", "faults")
    for score in scores:
        assert from_json(Score, to_json(score)) == score
        assert len(score.reason or "") <= LONGEST_REASON
    write_parquet(tmp_path / "scores.parquet", scores, "0-00000000")
    assert (tmp_path / "scores.parquet").stat().st_size


def test_a_verdict_and_a_reason_hold_no_half_characters_whoever_makes_them() -> None:
    verdict = Verdict(f"u{LONE}", f"n{LONE}", reason=f"r{LONE}")
    assert (verdict.unit, verdict.native, verdict.reason) == ("u\ufffd", "n\ufffd", "r\ufffd")
    score = Score("q", "d", "f", None, "failed", f"{LONE}{'x' * 600}")
    assert score.reason == "\ufffd" + "x" * 498 + "…"  # 1 + 498 + 1 = 500


def test_units_of_which_some_are_blank_are_refused_and_none_but_blank_ones_are_nothing() -> None:
    assert named(["a", "b"], "claims") == ["a", "b"]
    with pytest.raises(Disbelieved, match=r"^1 of 4 claims is blank$"):
        named(["a", "b", "\u200b", "c"], "claims")
    with pytest.raises(Disbelieved, match=r"^2 of 3 claims are blank$"):
        named(["a", "", " "], "claims")
    for none in ([], [""], ["\u200b", "\ufeff \n"]):
        with pytest.raises(NothingToJudge, match=r"^0 claims$"):
            named(none, "claims")


BLANK_AMONG = {
    "ragas/faithfulness": ("statements", {"statements": ["a", ""]}),
    "ragas/context_entity_recall": ("entities", {"entities": ["a", ""]}),
    "ragas/factual_correctness": ("claims", {"claims": ["a", ""]}),
    "ragas/noise_sensitivity": ("statements", {"statements": ["a", ""]}),
    "deepeval/faithfulness": ("claims", {"claims": ["a", ""]}),
    "deepeval/answer_relevancy": ("statements", {"statements": ["a", ""]}),
    "trulens/comprehensiveness": ("key points", "Key Point 1: a\nKey Point 2:"),
}


class Instead(LexicalJudge):
    """The lexical judge, with another reply to the calls of one name."""

    name: str
    reply: Any

    async def ask(self, call: Call) -> Reply:
        text = self.reply if isinstance(self.reply, str) else json.dumps(self.reply)
        return Reply(text) if call.name == self.name else await super().ask(call)


@pytest.mark.parametrize("name", BLANK_AMONG)
def test_no_framework_counts_a_blank_unit_among_others(name: str) -> None:
    call, reply = BLANK_AMONG[name]
    score = measure(name, QUESTION, record(), Instead(name=call, reply=reply))
    assert (score.status, score.value) == ("failed", None)
    assert score.reason is not None
    assert score.reason.startswith("1 of 2 ")
    assert score.reason.endswith(" is blank")


def test_case_space_and_final_punctuation_make_no_other_unit() -> None:
    assert alike(" The  R2 is covered. ") == alike("the r2 is covered") != alike("the r1 is covered")
    assert alike("It costs 5%.") != alike("It costs 5.")


def test_a_unit_with_more_verdicts_than_it_was_sent_is_refused() -> None:
    each_once(["a", "a.", "other words"], ["A", "a", "b"])
    with pytest.raises(Disbelieved, match="2 verdicts for 'a', which was sent 1 time"):
        each_once(["a", "A. ", "b"], ["a", "b", "c"])
    with pytest.raises(Disbelieved, match="2 verdicts for one statement: 'a'"):
        each_once(["a", "A."])


def test_verdicts_belong_to_the_units_that_they_repeat() -> None:
    sent = ["One.", "Two.", "Three.", "Four."]
    assert paired(["in other words", "two", "3", "4"], sent) == sent
    # Four and two changed places, "three" stands, so what is left over is about one.
    assert paired(["four", "once", "three", "two"], sent) == ["Four.", "One.", "Three.", "Two."]
    # Two are left over and two in other words: which is which nobody knows.
    assert paired(["two", "x", "one", "y"], sent) == ["Two.", "x", "One.", "y"]


def claims(*words: int, texts: tuple[str, ...]) -> dict[str, Any]:
    return {"statements": [{"statement": t, "reason": "r", "verdict": w} for t, w in zip(texts, words, strict=True)]}


def test_noise_sensitivity_refuses_a_statement_repeated_at_another_place() -> None:
    def verdicts(call: Call) -> Any:
        return claims(0, 1, 1, texts=("b", "C.", "the first one in other words"))

    judge = ScriptedJudge(replies={"statements": {"statements": ["A.", "B.", "C."]}, "verdicts": verdicts})
    score = measure("ragas/noise_sensitivity", QUESTION, record(), judge)
    assert score.reason == "the verdicts came in another order than the 3 claims of the reference"


@pytest.mark.parametrize(
    ("tp", "fn", "expected"),
    [
        ("a", "a.", "'a.' is one of its own"),
        ("a", "the moon", "'the moon' is none of the 1"),
        ("r", "r", "'r' is one of the reference"),
    ],
)
def test_answer_correctness_takes_no_claim_of_the_other_side(tp: str, fn: str, expected: str) -> None:
    found = {
        name: [{"statement": t, "reason": ""} for t in ts] for name, ts in (("TP", [tp]), ("FP", []), ("FN", [fn]))
    }
    replies = {"statements": [{"statements": ["A"]}, {"statements": ["R"]}], "classification": found}
    judge = ScriptedJudge(replies=replies)
    score = measure({"id": "ragas/answer_correctness", "weights": [1, 0]}, QUESTION, record(), judge)
    assert score.status == "failed"
    assert score.reason is not None
    assert score.reason.endswith(expected)


@pytest.mark.parametrize("name", ["ragas/context_recall", "deepeval/contextual_relevancy"])
def test_one_statement_counts_once(name: str) -> None:
    items = [
        {"statement": text, "reason": "r", "attributed": 1, "verdict": "yes"} for text in ("It is.", "Other", "it is")
    ]
    judge = ScriptedJudge(replies={"classifications": {"classifications": items}, "verdicts": {"verdicts": items}})
    score = measure(name, QUESTION, record(), judge)
    assert (score.status, score.reason) == ("failed", "2 verdicts for one statement: 'It is.'")


EXAMPLE = {"claims": ["Einstein won the Nobel Prize for the photoelectric effect.", "He was born in Ulm."]}
PROMPT = (
    "Extract the claims of the text below, each a short sentence that can be understood without the others, and reply "
    "with nothing but JSON. Leave out questions and courtesies; keep what is false as it stands.\nExample:\n"
    + json.dumps(EXAMPLE, indent=1)
    + "\n\nText: The R2 is covered for 24 months."
)


class Claims(BaseModel):
    claims: list[str]


class Said(BaseModel):
    verdict: str


def asked(*contents: str) -> tuple[Message, ...]:
    return tuple(Message("user", content) for content in contents)


def test_a_reply_that_repeats_its_prompt_is_refused() -> None:
    assert parse(Reply(PROMPT), Claims)[1] == EXAMPLE  # without the prompt, the example is taken for an answer
    with pytest.raises(UnusableReply, match="it repeats the prompt"):
        parse(Reply(f"Sure:\n{PROMPT}"), Claims, asked(PROMPT))
    with pytest.raises(UnusableReply, match="it repeats the prompt"):
        parse(Reply(PROMPT), Claims, asked("You are a judge.", PROMPT))
    with pytest.raises(UnusableReply, match="it repeats the prompt"):
        plain(Reply(PROMPT), asked(PROMPT))


def test_a_reply_that_is_the_example_of_its_prompt_is_refused() -> None:
    with pytest.raises(UnusableReply, match="it is the example of the prompt"):
        parse(Reply(json.dumps(EXAMPLE)), Claims, asked(PROMPT))
    with pytest.raises(UnusableReply, match="it is the example of the prompt"):
        parse(Reply('{"verdict": "..."}'), Said, asked('Reply like {"verdict": "..."}'))


@pytest.mark.parametrize(
    ("reply", "schema", "prompt"),
    [
        ('{"claims": ["The R2 is covered for 24 months."]}', Claims, PROMPT),
        ('{"verdict": "yes"}', Said, 'Reply {"verdict": "yes"} or {"verdict": "no"}'),
        (
            json.dumps({"claims": ["s" * 300]}),
            Claims,
            f"Judge these.\ninput: {json.dumps({'statements': ['s' * 300]})}",
        ),
        (json.dumps({"claims": ["p" * 300]}), Claims, "Text [with a bracket {: " + "p" * 300),
    ],
)
def test_an_honest_reply_may_quote_what_it_was_sent(reply: str, schema: type[BaseModel], prompt: str) -> None:
    assert parse(Reply(reply), schema, asked(prompt))[1] == json.loads(reply)


def test_a_plain_reply_may_be_the_text_that_it_was_sent() -> None:
    sentence = "The R2 is covered. " * 20
    assert plain(Reply(sentence + LONE), asked("Cut the text into sentences.", sentence)) == sentence + "\ufffd"
    for text, finish, expected in (("", None, "empty"), ("x", "length", "cut off"), ("x" * 200_001, None, "200001")):
        with pytest.raises(UnusableReply, match=expected):
            plain(Reply(text, finish_reason=finish))


@pytest.mark.parametrize("write", [lambda n: "[" * n, lambda n: '{"claims": ["' + "a" * n, lambda n: "<think>" * n])
def test_a_reply_that_is_too_long_is_refused_at_once(write: Callable[[int], str]) -> None:
    began = perf_counter()
    with pytest.raises(UnusableReply, match=f"more than {MOST_CHARACTERS}"):
        parse(Reply(write(5_000_000)), Claims, asked(PROMPT))
    with pytest.raises(UnusableReply):
        parse(Reply(write(20_000)), Claims, asked(PROMPT))
    assert perf_counter() - began < 5


class Embeds(LexicalJudge):
    """Vectors of two numbers that are `scale`, and of three for every text after the first."""

    scale: float
    ragged: bool = False

    async def embed(self, texts: Any) -> list[list[float]]:
        return [[self.scale] * (3 if self.ragged and n else 2) for n, _ in enumerate(texts)]


@pytest.mark.parametrize("scale", [1e308, 1e200, 1e-320])
def test_embeddings_without_a_cosine_give_no_score(scale: float) -> None:
    score = measure("ragas/semantic_similarity", QUESTION, record(), Embeds(scale=scale))
    assert score.status == "failed"
    assert score.reason is not None
    assert score.reason.endswith("of which no cosine can be computed")


def test_embeddings_of_two_sizes_give_no_score() -> None:
    score = measure("ragas/semantic_similarity", QUESTION, record(), Embeds(scale=1.0, ragged=True))
    assert score.reason is not None
    assert score.reason.endswith("has 3 numbers, and the one before it 2")


@pytest.mark.parametrize("text", ["\u200b", "\ufeff\u2060", " \u00ad\t", "\u3164", "\u0301", "\x00"])
def test_a_text_without_a_visible_character_is_blank(text: str) -> None:
    chunk = replace(record().context[0], text=text)
    blank = Record("q", context=(chunk,), answer=text)
    question = Question("q", text, reference_answer=text)
    for field in ("question", "answer", "reference_answer", "context"):
        assert missing((field,), question, blank) is not None
        assert missing((field,), QUESTION, record()) is None


@pytest.mark.parametrize(
    "spec",
    [
        {"id": "ragas/factual_correctness", "beta": 1e200},
        {"id": "ragas/answer_correctness", "beta": 1e200},
        {"id": "ragas/answer_correctness", "weights": [1e308, 1e308]},
        {"id": "ragas/answer_correctness", "weights": [1e-320, 0]},
    ],
)
def test_parameters_with_which_ragas_cannot_compute_are_refused(spec: dict[str, Any]) -> None:
    with pytest.raises(UnknownDefinition, match=r"less than or equal to 1000?|at least 0\.001 together"):
        scorer(spec)


def test_what_another_thread_writes_into_the_environment_stays() -> None:
    def write() -> None:
        os.environ["PARIBUS_TEST_OTHER"] = "kept"
        os.environ["PARIBUS_TEST_BOTH"] = "theirs"

    os.environ["PARIBUS_TEST_OLD"] = "old"
    with contained():
        os.environ["PARIBUS_TEST_OWN"] = os.environ["PARIBUS_TEST_BOTH"] = "ours"
        os.environ["PARIBUS_TEST_OLD"] = "new"
        other = threading.Thread(target=write)
        other.start()
        other.join()
    found = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("PARIBUS_TEST_")}
    assert found == {"PARIBUS_TEST_OTHER": "kept", "PARIBUS_TEST_BOTH": "theirs", "PARIBUS_TEST_OLD": "old"}


def test_nothing_is_put_back_once_a_framework_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = scorer("ragas/faithfulness")
    measured.prepare()
    monkeypatch.setattr("adapters.isolation.contained", lambda: pytest.fail("contained again"))
    measured.prepare()


def test_no_thread_of_ragas_is_left() -> None:
    scorer("ragas/faithfulness").prepare()
    deadline = perf_counter() + 5
    while any("_flush_loop" in thread.name for thread in threading.enumerate()) and perf_counter() < deadline:
        threading.Event().wait(0.1)
    assert not [thread for thread in threading.enumerate() if "_flush_loop" in thread.name]


def test_trulens_says_nothing_of_what_a_judge_wrote(caplog: pytest.LogCaptureFixture) -> None:
    judge = ScriptedJudge(replies={"agreement": "secret text 3 of 4, or 77"})
    assert measure("trulens/ground_truth_agreement", QUESTION, record(), judge).status == "failed"
    assert [message for message in caplog.messages if "secret" in message or "Rating must" in message] == []


def test_the_version_of_the_splitter_is_in_the_fingerprint_of_what_it_cuts() -> None:
    for name in ("rubric/citation_accuracy", "trulens/groundedness"):
        measured = scorer(name)
        assert isinstance(measured, JudgedScorer)
        assert "sentencex" in measured.prompts()["splitter"]
