"""What Ragas does silently with incomplete records and replies, and what becomes of it here."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from adapters.base import JudgedScorer, scorer
from adapters.bench import Bench
from adapters.judge import Call
from adapters.schema import Chunk, Question, Ranked, Record, Score
from tests.adapters.scripted import ScriptedJudge, measure

pytest.importorskip("ragas")

QUESTION = Question("q", "How much is the fee, and when is it due?", reference_answer="It is 10 euros, due in May.")


def record(
    answer: str | None = "The fee is 10 euros. It is due in May.", contexts: tuple[str, ...] = ("One.", "Two.")
) -> Record:
    chunks = tuple(Chunk("d", n, n + len(text), text) for n, text in enumerate(contexts))
    ranking = tuple(Ranked(chunk, 1.0, n) for n, chunk in enumerate(chunks, 1))
    return Record("q", asked_k=2, retrieved=ranking, reranked=ranking, context=chunks, answer=answer)


def statements(*texts: str) -> dict[str, Any]:
    return {"statements": list(texts)}


def verdicts(*words: Any, texts: str = "abcdefgh") -> dict[str, Any]:
    return {"statements": [{"statement": texts[n], "reason": "r", "verdict": w} for n, w in enumerate(words)]}


def attributed(*words: Any) -> dict[str, Any]:
    return {"classifications": [{"statement": "abc"[n], "reason": "r", "attributed": w} for n, w in enumerate(words)]}


def useful(word: Any) -> dict[str, Any]:
    return {"reason": "r", "verdict": word}


def classes(tp: str, fp: str, fn: str) -> dict[str, Any]:
    return {name: [{"statement": c, "reason": "r"} for c in of] for name, of in (("TP", tp), ("FP", fp), ("FN", fn))}


def score(spec: Any, replies: dict[str, Any], given: Record | None = None, question: Question = QUESTION) -> Score:
    return measure(spec, question, given or record(), ScriptedJudge(replies=replies))


NEEDS = {
    "faithfulness": "question answer context",
    "answer_relevancy": "question answer",
    "context_precision": "question reference context",
    "context_utilization": "question answer context",
    "context_recall": "question reference context",
    "context_entity_recall": "reference context",
    "factual_correctness": "answer reference",
    "noise_sensitivity": "question answer reference context",
    "context_relevance": "question context",
    "response_groundedness": "answer context",
    "answer_accuracy": "question answer reference",
    "semantic_similarity": "answer reference",
    "answer_correctness": "question answer reference",
}
LACKING: list[tuple[str, Record, Question]] = [
    ("context", record(contexts=()), QUESTION),
    ("context", record(contexts=("",)), QUESTION),
    ("context", record(contexts=("  ", "\n")), QUESTION),
    ("answer", record(answer=None), QUESTION),
    ("answer", record(answer=""), QUESTION),
    ("answer", record(answer="  "), QUESTION),
    ("reference", record(), replace(QUESTION, reference_answer=None)),
    ("reference", record(), replace(QUESTION, reference_answer="")),
    ("question", record(), replace(QUESTION, text=" ")),
]


@pytest.mark.parametrize("name", NEEDS)
def test_what_is_missing_is_told_before_any_call(name: str) -> None:
    for field, given, question in LACKING:
        if field in NEEDS[name].split():
            judge = ScriptedJudge()
            told = measure(f"ragas/{name}", question, given, judge)
            assert (told.status, told.value, told.calls, judge.seen) == ("not_applicable", None, 0, [])
            assert told.reason
            assert field in told.reason


NOTHING: list[tuple[Any, dict[str, Any], str, float | None]] = [
    # Definition, replies, units, what ragas itself returns.
    ("ragas/faithfulness", {"statements": statements()}, "0 claims in the answer", None),
    ("ragas/faithfulness", {"statements": statements(" "), "verdicts": verdicts(1)}, "0 claims in the answer", 1.0),
    (
        "ragas/factual_correctness",
        {"claims": [{"claims": []}, {"claims": ["a"]}], "verdicts": verdicts(1)},
        "0 claims in the answer",
        0.0,
    ),
    (
        {"id": "ragas/factual_correctness", "mode": "recall"},
        {"claims": [{"claims": ["a"]}, {"claims": []}], "verdicts": verdicts(1)},
        "0 claims in the reference",
        1.0,
    ),
    (
        {"id": "ragas/factual_correctness", "mode": "precision"},
        {"claims": {"claims": []}},
        "0 claims in the answer",
        0.0,
    ),
    ("ragas/context_recall", {"classifications": attributed()}, "0 claims in the reference", None),
    ("ragas/context_entity_recall", {"entities": {"entities": []}}, "0 entities in the reference", 0.0),
    ("ragas/noise_sensitivity", {"statements": statements(), "verdicts": verdicts()}, "0 claims in the", None),
    (
        # Statements of the answer only: ragas takes the claims for a perfect match. 0.75 * 1 + 0.25 * 0.
        {"id": "ragas/answer_correctness", "weights": [1, 0]},
        {"statements": [statements("a"), statements()]},
        "0 claims in the reference",
        1.0,
    ),
    (
        {"id": "ragas/answer_correctness", "weights": [1, 0]},
        {"statements": [statements(), statements("a")]},
        "0 claims in the answer",
        1.0,
    ),
]


@pytest.mark.parametrize(("spec", "replies", "units", "native"), NOTHING)
def test_nothing_to_judge_is_no_value(spec: Any, replies: dict[str, Any], units: str, native: float | None) -> None:
    told = score(spec, replies)
    assert (told.status, told.value) == ("not_applicable", None)
    assert units in str(told.reason)
    assert told.native_value == native


THREE = {"statements": statements("a", "b", "c")}
FAULTS: list[tuple[Any, dict[str, Any], str]] = [
    # Case 07: fewer verdicts than claims.
    ("ragas/faithfulness", {**THREE, "verdicts": verdicts(1)}, "1 verdict for 3 claims"),
    ("ragas/faithfulness", {**THREE, "verdicts": verdicts()}, "0 verdicts for 3 claims"),
    (
        "ragas/factual_correctness",
        {"claims": {"claims": ["a", "b"]}, "verdicts": [verdicts(1, 1), verdicts(1)]},
        "1 verdict for 2 claims of the reference",
    ),
    (
        "ragas/noise_sensitivity",
        {
            "statements": statements("a", "b"),
            "verdicts": [verdicts(1, 1), verdicts(1), *[verdicts(1, 1)] * 3],
        },
        "1 verdict for 2 claims of the answer",
    ),
    (
        "ragas/answer_correctness",
        {"statements": statements("a", "b", "c"), "classification": classes("a", "", "")},
        "1 verdict (TP, FP) for 3 claims of the answer",
    ),
    # Case 09: more verdicts than claims, and the same claim again in the place of another.
    (
        "ragas/faithfulness",
        {"statements": statements("a"), "verdicts": verdicts(1, 0, 0)},
        "3 verdicts for 1 claim",
    ),
    ("ragas/faithfulness", {**THREE, "verdicts": verdicts(1, 1, 0, texts="aac")}, "2 verdicts for 'a'"),
    (
        "ragas/answer_correctness",
        {"statements": statements("a", "b"), "classification": classes("a", "a", "")},
        "2 verdicts for 'a'",
    ),
    (
        "ragas/answer_correctness",
        {"statements": statements("a"), "classification": classes("a", "", "bcd")},
        "3 verdicts (FN) for 1 claim of the reference",
    ),
    (
        "ragas/context_recall",
        {"classifications": {"classifications": attributed(1)["classifications"] * 2}},
        "2 verdicts",
    ),
    # Places decide in noise sensitivity.
    (
        "ragas/noise_sensitivity",
        {"statements": statements("a", "b"), "verdicts": verdicts(1, 0, texts="ba")},
        "in another order",
    ),
    # Case 10: outside the range. Ragas gives 2.0, 5.0, 1.0 for these.
    ("ragas/context_precision", {"verdict": useful(2)}, "verdict 2 is outside the range 0 to 1"),
    ("ragas/context_utilization", {"verdict": useful(-1)}, "verdict -1 is outside the range 0 to 1"),
    ("ragas/context_recall", {"classifications": attributed(5)}, "attributed 5 is outside the range 0 to 1"),
    ("ragas/faithfulness", {**THREE, "verdicts": verdicts(1, 7, 1)}, "verdict 7 is outside the range 0 to 1"),
    (
        {"id": "ragas/factual_correctness", "mode": "precision"},
        {"claims": {"claims": ["a"]}, "verdicts": verdicts(-1)},
        "verdict -1 is outside the range 0 to 1",
    ),
    (
        "ragas/noise_sensitivity",
        {"statements": statements("a"), "verdicts": verdicts(2)},
        "verdict 2 is outside the range 0 to 1",
    ),
    (
        "ragas/answer_relevancy",
        {"question": {"question": "Q?", "noncommittal": 2}},
        "noncommittal 2 is outside the range 0 to 1",
    ),
    (
        "ragas/answer_relevancy",
        {"question": [{"question": q, "noncommittal": 0} for q in ("Q?", "", "Q?")]},
        "2 questions asked back, 3 expected",
    ),
    ("ragas/context_relevance", {"rating": {"rating": 7}}, "rating 7 is outside the range 0 to 2"),
    ("ragas/context_relevance", {"rating": {"rating": 3}}, "rating 3 is outside the range 0 to 2"),
    (
        "ragas/response_groundedness",
        {"rating": [{"rating": 2}, {"rating": -1}]},
        "rating -1 is outside the range 0 to 2",
    ),
    (
        "ragas/answer_accuracy",
        {"rating": [{"rating": 4}, {"rating": 3}]},
        "rating 3 is within the range 0 to 4 and none",
    ),
    # Case 01 and the kinds of broken replies: prose, half of an object, words for numbers, null, true.
    ("ragas/faithfulness", {"statements": "I am unable to assess this."}, "could not be parsed"),
    ("ragas/faithfulness", {**THREE, "verdicts": '{"statements": [{"statement": "a", "rea'}, "could not be parsed"),
    ("ragas/faithfulness", {**THREE, "verdicts": verdicts("Yes.", 1, 1)}, "does not hold to its schema"),
    ("ragas/context_relevance", {"rating": {"rating": None}}, "does not hold to its schema"),
    ("ragas/context_relevance", {"rating": {"rating": True}}, "not a number"),
    ("ragas/context_relevance", {"rating": "On a scale from 0 to 2, I rate this 2"}, "could not be parsed"),
    ("ragas/context_relevance", {"rating": [{"rating": 2}, "I cannot say."]}, "could not be parsed"),
]


@pytest.mark.parametrize(("spec", "replies", "reason"), FAULTS)
def test_a_number_without_its_evidence_is_refused(spec: Any, replies: dict[str, Any], reason: str) -> None:
    told = score(spec, replies)
    assert (told.status, told.value) == ("failed", None)
    assert reason in str(told.reason)
    assert "nan" not in str(told.reason).lower()


def test_ragas_would_have_given_a_number() -> None:
    """The value that is kept out stands beside, so that the difference can be shown."""
    assert score("ragas/faithfulness", {**THREE, "verdicts": verdicts(1)}).native_value == 1.0
    assert score("ragas/context_recall", {"classifications": attributed(5)}).native_value == 5.0
    assert score("ragas/context_precision", {"verdict": useful(2)}).native_value == pytest.approx(2.0)
    one = score("ragas/answer_accuracy", {"rating": [{"rating": 4}, {"rating": 3}]})
    assert (one.native_value, one.calls) == (1.0, 2)  # the other rating alone, and no retries


def test_a_reply_in_another_order_keeps_its_words_together() -> None:
    told = score("ragas/faithfulness", {**THREE, "verdicts": verdicts(1, 0, 0, texts="cab")})
    assert told.value == pytest.approx(1 / 3)
    assert [(v.unit, v.native) for v in told.evidence] == [("c", "1"), ("a", "0"), ("b", "0")]
    reworded = score("ragas/faithfulness", {**THREE, "verdicts": verdicts(1, 0, 0, texts="xyz")})
    assert [(v.unit, v.native) for v in reworded.evidence] == [("a", "1"), ("b", "0"), ("c", "0")]


@pytest.mark.parametrize(
    ("before", "after"), [("Sure:\n```json\n", "\n```\nHope that helps."), ("Format {as asked}: ", "")]
)
def test_json_in_prose_or_a_fence_is_read(before: str, after: str) -> None:
    reply = before + json.dumps(verdicts(1, 0, 1)) + after
    assert score("ragas/faithfulness", {**THREE, "verdicts": reply}).value == pytest.approx(2 / 3)


def test_context_within_the_question_is_zero_without_a_call() -> None:
    told = score("ragas/context_relevance", {}, record(contexts=("the fee",)))
    assert (told.status, told.value, told.calls, told.evidence) == ("computed", 0.0, 0, ())
    assert any("contained in the question" in hazard for hazard in scorer("ragas/context_relevance").definition.hazards)


def test_entities_that_differ_in_case_are_missed() -> None:
    told = score("ragas/context_entity_recall", {"entities": [{"entities": ["Paris"]}, {"entities": ["paris"]}]})
    assert told.value == 0.0
    assert told.evidence[0].ours == "not_attributed"


def asked_back(*flags: int) -> dict[str, Any]:
    return {"question": [{"question": QUESTION.text, "noncommittal": flag} for flag in flags]}


def test_noncommittal_counts_only_when_all_say_so() -> None:
    assert score("ragas/answer_relevancy", asked_back(1, 1, 0)).value == pytest.approx(1.0)
    all_say = score("ragas/answer_relevancy", asked_back(1, 1, 1))
    assert (all_say.status, all_say.value) == ("computed", 0.0)
    assert [verdict.native for verdict in all_say.evidence] == ["1", "1", "1"]


class Vectors(ScriptedJudge):
    """Gives the answer, or a question asked back, the vector `of_answer`; every other text [1, 0]."""

    of_answer: list[float]

    async def embed(self, texts: Any) -> list[list[float]]:
        return [self.of_answer if text in (record().answer, "back") else [1.0, 0.0] for text in texts]


def test_cosines_may_be_negative_and_rounding_does_not_break_the_range() -> None:
    back = {"question": {"question": "back", "noncommittal": 0}}
    opposite = Vectors(of_answer=[-1.0, 0.0], replies=back)
    assert measure("ragas/answer_relevancy", QUESTION, record(), opposite).value == -1.0
    assert measure("ragas/semantic_similarity", QUESTION, record(), opposite).value == -1.0

    class Equal(ScriptedJudge):
        async def embed(self, texts: Any) -> list[list[float]]:
            # 3 * (1 / sqrt(3)) ** 2 is 1.0000000000000002 in floats.
            return [[1.0, 1.0, 1.0] for _ in texts]

    assert measure("ragas/semantic_similarity", QUESTION, record(), Equal()).value == 1.0


@pytest.mark.parametrize("name", ["answer_relevancy", "semantic_similarity", "answer_correctness"])
@pytest.mark.parametrize(("vector", "what"), [([0.0, 0.0], "zero"), ([float("nan"), 1.0], "not finite")])
def test_a_vector_without_direction_is_a_fault(name: str, vector: list[float], what: str) -> None:
    replies = {
        "question": {"question": "back", "noncommittal": 0},
        "statements": statements("a"),
        "classification": classes("a", "", ""),
    }
    told = measure(f"ragas/{name}", QUESTION, record(), Vectors(of_answer=vector, replies=replies))
    assert told.status == "failed"
    assert what in str(told.reason)
    assert "embedding" in str(told.reason)


ODD = ("x" * 2_000_000, "{ } {{ jinja }} ${shell} %s", "emoji 🙂 and ü", '"quotes" \\ and\nlines\ninput: {}\nOutput: ')


@pytest.mark.parametrize("text", ODD, ids=["2 MB", "braces", "emoji", "frame"])
@pytest.mark.parametrize("name", ["faithfulness", "noise_sensitivity"])
def test_odd_texts_reach_the_judge_as_they_are(name: str, text: str) -> None:
    seen: list[str] = []

    def look(call: Call) -> Any:
        seen.append(call.task().text)  # type: ignore[union-attr]
        return verdicts(1)

    told = score(f"ragas/{name}", {"statements": statements("a"), "verdicts": look}, record(contexts=(text,)))
    assert told.status == "computed", told.reason
    assert seen[0] == text


def test_one_bad_record_costs_its_own_score_only() -> None:
    def replies(call: Call) -> Any:
        return "I am unable to assess this." if call.question.id == "q3" else verdicts(1, 1, 0)

    made = scorer("ragas/faithfulness")
    assert isinstance(made, JudgedScorer)

    async def run() -> list[Score]:
        async with Bench(ScriptedJudge(replies={**THREE, "verdicts": replies})) as bench:
            questions = [replace(QUESTION, id=f"q{n}") for n in range(6)]
            return await asyncio.gather(
                *(made.measure(question, replace(record(), question_id=question.id), bench) for question in questions)
            )

    scores = asyncio.run(run())
    assert [told.status for told in scores] == ["computed"] * 3 + ["failed"] + ["computed"] * 2
    assert "could not be parsed" in str(scores[3].reason)
    assert {told.value for told in scores if told.status == "computed"} == {2 / 3}
