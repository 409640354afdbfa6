"""DeepEval's own code under our judge: golden numbers, evidence, and every reply or record that must not score."""

from __future__ import annotations

import asyncio
import json
import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pydantic import Field

from adapters import deepeval as adapter
from adapters.base import JudgedScorer, Unavailable, UnknownDefinition, scorer
from adapters.bench import Bench
from adapters.judge import Call, Judge, JudgeFault, Reply, schema_text
from adapters.schema import Chunk, JudgeCard, Question, Ranked, Record, Score, to_json
from adapters.tasks import (
    Attribute,
    Finding,
    Findings,
    Relevance,
    RelevantStatements,
    Split,
    Support,
    Task,
    Word,
)
from tests.adapters.router import ANSWER, CLAIMS, PASSAGES, QUESTION, REFERENCE, REFERENCE_CLAIMS, record
from tests.adapters.scripted import ScriptedJudge, measure

DEFINITIONS = (
    "deepeval/faithfulness",
    "deepeval/answer_relevancy",
    "deepeval/contextual_precision",
    "deepeval/contextual_recall",
    "deepeval/contextual_relevancy",
    "deepeval/hallucination",
)
USEFUL = (2, 4)
"""The chunks of the router record that help, by rank."""


class PeopleJudge(Judge):
    """Answers tasks with what people said of the router record; keeps every call."""

    seen: list[Any] = Field(default_factory=list)

    @property
    def card(self) -> JudgeCard:
        """A card that names no model."""
        return JudgeCard("people", "router")

    async def ask(self, call: Call) -> Reply:
        """The findings of people, written in the schema of the call."""
        self.seen.append(call)
        await asyncio.sleep(0)
        return Reply(json.dumps(call.write(_found(call.task()))), 10, 5)


def _found(task: Task) -> Findings:
    match task:
        case Split(text=text, source="context", into="facts"):
            assert text == "\n\n".join(PASSAGES)
            return tuple(Finding(passage) for passage in PASSAGES)
        case Split(text=text, source="answer"):
            assert text == ANSWER
            return tuple(Finding(claim) for claim, _ in CLAIMS)
        case Support(units=units, text=text, units_of="answer", source="context"):
            assert text == "\n\n".join(PASSAGES)
            said: dict[str, Any] = dict(CLAIMS)
            return tuple(Finding(unit, said[unit], "so people said") for unit in units)
        case Support(units=units, text=text, units_of="chunk", source="answer"):
            assert text == ANSWER
            words: tuple[Word, ...] = ("absent", "supported", "absent", "contradicted", "absent")
            return tuple(Finding(unit, word) for unit, word in zip(units, words, strict=True))
        case Relevance(question=QUESTION.text, passages=passages, answer=answer, units_of="chunk"):
            assert answer == REFERENCE
            return tuple(
                Finding(passage, "relevant" if PASSAGES.index(passage) + 1 in USEFUL else "not_relevant")
                for passage in passages
            )
        case Relevance(question=QUESTION.text, passages=passages, answer=None, units_of="answer"):
            return tuple(Finding(passage, "relevant") for passage in passages)
        case Attribute(text=text, context=context):
            assert (text, context) == (REFERENCE, "\n\n".join(PASSAGES))
            return tuple(
                Finding(claim, "attributed" if in_context else "not_attributed")
                for claim, in_context, _ in REFERENCE_CLAIMS
            )
        case RelevantStatements(question=QUESTION.text, passage=passage):
            useful = PASSAGES.index(passage) + 1 in USEFUL
            sentences = re.split(r"(?<=\.) ", passage)
            return tuple(Finding(sentence, "relevant" if useful else "not_relevant") for sentence in sentences)
    raise AssertionError(task)


def people(spec: Any, question: Question = QUESTION, of: Record | None = None) -> Score:
    return measure(spec, question, of or record(), PeopleJudge())


def verdicts(*words: str, reason: str | None = "r", **more: str) -> dict[str, Any]:
    told = {} if reason is None else {"reason": reason}
    return {"verdicts": [{"verdict": word, **told, **more} for word in words]}


def faithful(**replies: Any) -> ScriptedJudge:
    """A judge for faithfulness: three claims, all supported, unless told otherwise."""
    script = {
        "truths": {"truths": ["t"]},
        "claims": {"claims": ["A", "B", "C"]},
        "verdicts": verdicts("yes", "yes", "yes"),
    }
    return ScriptedJudge(replies={**script, **replies})


def texts(*chunks: str, answer: str | None = "A. B. C.") -> Record:
    made = tuple(Chunk(f"d{n}", 0, len(text), text) for n, text in enumerate(chunks))
    ranking = tuple(Ranked(chunk, 1.0, n) for n, chunk in enumerate(made, 1))
    return Record("q", len(chunks), ranking, ranking, made, answer=answer)


ASKED = Question("q", "Which?", reference_answer="A and B.")

# Worked by hand from tests/adapters/router.py.
GOLDEN = [
    # Claims: supported x3 -> yes, contradicted -> no, absent -> borderline. (3 + 1 borderline) / 5.
    pytest.param("deepeval/faithfulness", 4 / 5, 3, id="faithfulness"),
    # Only yes counts: 3 / 5.
    pytest.param(
        {"id": "deepeval/faithfulness", "penalize_ambiguous_claims": True}, 3 / 5, 3, id="faithfulness-penalised"
    ),
    # All five claims address the question: 5 / 5.
    pytest.param("deepeval/answer_relevancy", 1.0, 2, id="answer_relevancy"),
    # Useful at ranks 2 and 4: (1/2 + 2/4) / 2.
    pytest.param("deepeval/contextual_precision", 0.5, 1, id="contextual_precision"),
    # The first two chunks: useful at rank 2 only: (1/2) / 1.
    pytest.param({"id": "deepeval/contextual_precision", "k": 2}, 0.5, 1, id="contextual_precision@2"),
    # Five sentences, the chunks hold four: 4 / 5.
    pytest.param("deepeval/contextual_recall", 4 / 5, 1, id="contextual_recall"),
    # Sentences: 1, 1 useful, 1, 2 useful, 1: 3 / 6. (By chunk it would be 2 / 5.)
    pytest.param("deepeval/contextual_relevancy", 3 / 6, 5, id="contextual_relevancy"),
    # One of five chunks is contradicted (5 business days): 4 / 5, higher is better.
    pytest.param("deepeval/hallucination", 4 / 5, 1, id="hallucination"),
]


@pytest.mark.parametrize(("spec", "value", "calls"), GOLDEN)
def test_golden_numbers_on_the_router_record(spec: Any, value: float, calls: int) -> None:
    score = people(spec)
    assert (score.status, score.value) == ("computed", pytest.approx(value, abs=1e-12)), score.reason
    assert score.calls == calls
    assert score.tokens == 15 * calls
    assert score.judge is not None
    low, high = scorer(spec).definition.range
    assert low <= value <= high


def _direct(spec: Any) -> tuple[float, list[str]]:
    """What DeepEval itself returns for the router record, called without the adapter, and the prompts it sends."""
    import deepeval.metrics
    from deepeval.models.base_model import DeepEvalBaseLLM
    from deepeval.test_case import LLMTestCase

    prompts: list[str] = []
    scripted = _script_of(spec)

    class Plain(DeepEvalBaseLLM):
        def load_model(self) -> Any:
            return self

        def get_model_name(self) -> str:
            return "plain"

        def generate(self, prompt: str, schema: Any = None) -> Any:
            raise NotImplementedError

        async def a_generate(self, prompt: str, schema: Any = None) -> Any:
            prompts.append(prompt)
            return schema.model_validate(scripted.pop(0))

    settings = {
        name: value for name, value in scorer(spec).definition.parameters.items() if name not in ("k", "ranking")
    }
    name = scorer(spec).definition.implementation.rsplit(".", 1)[1]
    metric = getattr(deepeval.metrics, name)(model=Plain(), include_reason=False, eval_mode="llm", **settings)
    chunks = list(PASSAGES)[: scorer(spec).definition.parameters.get("k")]  # type: ignore[misc]
    case = LLMTestCase(
        input=QUESTION.text, actual_output=ANSWER, expected_output=REFERENCE, retrieval_context=chunks, context=chunks
    )
    return asyncio.run(metric.a_measure(case, _show_indicator=False)), prompts


def _script_of(spec: Any) -> list[Any]:
    """The replies of people to every call of a definition, in the order in which they were asked."""
    judge = PeopleJudge()
    measure(spec, QUESTION, record(), judge)
    return [call.write(_found(call.task())) for call in judge.seen]


@pytest.mark.parametrize(("spec", "value", "calls"), GOLDEN)
def test_the_adapter_gives_what_deepeval_gives_and_sends_what_it_sends(spec: Any, value: float, calls: int) -> None:
    judge = PeopleJudge()
    score = measure(spec, QUESTION, record(), judge)
    direct, prompts = _direct(spec)
    assert score.value == direct
    assert [call.messages[0].content for call in judge.seen] == prompts
    assert len(prompts) == calls


# Evidence


def test_evidence_of_faithfulness_has_deepevals_word_first_and_ours_beside_it() -> None:
    evidence = people("deepeval/faithfulness").evidence
    assert [(v.unit, v.native, v.ours) for v in evidence] == [
        (CLAIMS[0][0], "yes", "supported"),
        (CLAIMS[1][0], "yes", "supported"),
        (CLAIMS[2][0], "yes", "supported"),
        (CLAIMS[3][0], "no", "contradicted"),
        (CLAIMS[4][0], "borderline", "absent"),
    ]
    assert {v.reason for v in evidence} == {"so people said"}
    assert {v.rank for v in evidence} == {None}


def test_evidence_of_relevancy_leaves_borderline_without_a_counterpart() -> None:
    judge = ScriptedJudge(
        replies={"statements": {"statements": ["A", "B", "C"]}, "verdicts": verdicts("yes", "no", "borderline")},
        seen=[],
    )
    score = measure("deepeval/answer_relevancy", ASKED, texts("x"), judge)
    # yes and borderline count: 2 / 3.
    assert score.value == pytest.approx(2 / 3)
    assert [(v.unit, v.native, v.ours, v.reason) for v in score.evidence] == [
        ("A", "yes", "relevant", "r"),
        ("B", "no", "not_relevant", "r"),
        ("C", "borderline", None, "r"),
    ]


def test_evidence_of_contextual_precision_is_the_ranking() -> None:
    evidence = people("deepeval/contextual_precision").evidence
    assert [(v.unit, v.rank) for v in evidence] == [(text, rank) for rank, text in enumerate(PASSAGES, 1)]
    assert [v.ours for v in evidence] == ["not_relevant", "relevant", "not_relevant", "relevant", "not_relevant"]


def test_evidence_of_contextual_recall_counts_the_sentences_that_the_judge_made() -> None:
    evidence = people("deepeval/contextual_recall").evidence
    assert [v.unit for v in evidence] == [f"sentence {n} of the reference" for n in range(1, 6)]
    assert [v.native for v in evidence] == ["yes", "yes", "yes", "yes", "no"]
    assert evidence[4].ours == "not_attributed"
    assert evidence[4].reason == REFERENCE_CLAIMS[4][0]


def test_evidence_of_contextual_relevancy_names_the_chunk_of_each_statement() -> None:
    evidence = people("deepeval/contextual_relevancy").evidence
    assert [v.rank for v in evidence] == [1, 2, 3, 4, 4, 5]
    assert all(v.unit in PASSAGES[(v.rank or 0) - 1] for v in evidence)


def test_evidence_of_contextual_relevancy_holds_when_replies_come_in_another_order() -> None:
    """The first chunk's reply comes last; each statement still stands beside its own chunk."""

    class Uneven(PeopleJudge):
        async def ask(self, call: Call) -> Reply:
            passage = call.task()
            assert isinstance(passage, RelevantStatements)
            await asyncio.sleep(0.02 * (5 - PASSAGES.index(passage.passage)))
            return await super().ask(call)

    score = measure("deepeval/contextual_relevancy", QUESTION, record(), Uneven())
    assert score.evidence == people("deepeval/contextual_relevancy").evidence


def test_evidence_of_hallucination_takes_yes_for_no_more_than_it_says() -> None:
    evidence = people("deepeval/hallucination").evidence
    assert [(v.native, v.ours) for v in evidence] == [
        ("yes", None), ("yes", None), ("yes", None), ("no", "contradicted"), ("yes", None),
    ]  # fmt: skip
    assert [v.unit for v in evidence] == list(PASSAGES)


# Which chunks are looked at


def test_retrieval_definitions_look_at_the_ranking_and_the_others_at_the_prompt() -> None:
    shown = replace(record(), context=record().context[:1])
    judge = faithful()
    measure("deepeval/faithfulness", QUESTION, shown, judge)
    truths = next(call for call in judge.seen if call.name == "truths").messages[0].content
    assert PASSAGES[0] in truths
    assert PASSAGES[1] not in truths
    assert people("deepeval/contextual_precision", of=shown).value == 0.5
    only = measure(
        {"id": "deepeval/contextual_precision", "ranking": "context"},
        QUESTION,
        shown,
        ScriptedJudge(replies={"verdicts": verdicts("yes")}),
    )
    assert [v.unit for v in only.evidence] == [PASSAGES[0]]


# Missing input: not applicable, without a call (case 13)

NO_ANSWER = {"deepeval/faithfulness", "deepeval/answer_relevancy", "deepeval/hallucination"}
NO_CONTEXT = set(DEFINITIONS) - {"deepeval/answer_relevancy"}
NO_REFERENCE = {"deepeval/contextual_precision", "deepeval/contextual_recall"}
NO_QUESTION = {"deepeval/answer_relevancy", "deepeval/contextual_precision", "deepeval/contextual_relevancy"}

LACKING = [
    *(pytest.param(d, ASKED, texts(), "context", id=f"{d}-no-chunks") for d in sorted(NO_CONTEXT)),
    *(pytest.param(d, ASKED, texts(""), "context", id=f"{d}-empty-chunk") for d in sorted(NO_CONTEXT)),
    *(pytest.param(d, ASKED, texts("   ", "\n"), "context", id=f"{d}-blank-chunks") for d in sorted(NO_CONTEXT)),
    *(
        pytest.param(d, ASKED, texts("x", answer=answer), "answer", id=f"{d}-answer-{answer!r}")
        for d in sorted(NO_ANSWER)
        for answer in (None, "", "   ")
    ),
    *(
        pytest.param(
            d, replace(ASKED, reference_answer=reference), texts("x"), "reference", id=f"{d}-ref-{reference!r}"
        )
        for d in sorted(NO_REFERENCE)
        for reference in (None, "", " \n")
    ),
    *(pytest.param(d, replace(ASKED, text=" "), texts("x"), "question", id=f"{d}-no-q") for d in sorted(NO_QUESTION)),
]


@pytest.mark.parametrize(("definition", "question", "of", "named"), LACKING)
def test_a_record_that_lacks_something_is_not_applicable_before_any_call(
    definition: str, question: Question, of: Record, named: str
) -> None:
    judge = ScriptedJudge()
    score = measure(definition, question, of, judge)
    assert (score.status, score.value, score.native_value) == ("not_applicable", None, None)
    assert score.reason is not None
    assert named in score.reason
    assert judge.seen == []


def test_what_a_definition_does_not_show_its_judge_is_not_required() -> None:
    """DeepEval wants an input for each of them, but the prompts of three do not contain it."""
    unasked = replace(ASKED, text=" ")
    assert measure("deepeval/faithfulness", unasked, texts("x"), faithful()).value == 1.0
    yes = ScriptedJudge(replies={"verdicts": verdicts("yes")})
    assert measure("deepeval/contextual_recall", unasked, texts("x", answer=None), yes).value == 1.0
    assert measure("deepeval/hallucination", unasked, texts("x"), yes).value == 1.0


# Nothing to judge (case 15)


def test_an_answer_without_claims_is_not_applicable_with_deepevals_one_beside_it() -> None:
    score = measure(
        "deepeval/faithfulness", ASKED, texts("x", answer="I do not know."), faithful(claims={"claims": []})
    )
    assert (score.status, score.value, score.native_value) == ("not_applicable", None, 1.0)
    assert score.reason is not None
    assert "0 claims" in score.reason
    assert score.calls == 2


def test_an_answer_without_statements_is_not_applicable() -> None:
    judge = ScriptedJudge(replies={"statements": {"statements": []}})
    score = measure("deepeval/answer_relevancy", ASKED, texts("x"), judge)
    assert (score.status, score.native_value) == ("not_applicable", 1.0)
    assert "0 statements" in str(score.reason)


def test_a_context_without_truths_is_not_applicable() -> None:
    """DeepEval judges the claims against an empty text then, and borderline counts: 1."""
    judge = faithful(truths={"truths": []}, verdicts=verdicts("borderline", "borderline", "borderline"))
    score = measure("deepeval/faithfulness", ASKED, texts("x"), judge)
    assert (score.status, score.native_value) == ("not_applicable", 1.0)
    assert "0 truths" in str(score.reason)


def test_a_reference_in_which_the_judge_finds_no_sentence_is_not_applicable() -> None:
    judge = ScriptedJudge(replies={"verdicts": verdicts()})
    score = measure("deepeval/contextual_recall", ASKED, texts("x"), judge)
    assert (score.status, score.native_value) == ("not_applicable", 0.0)
    assert "0 sentences" in str(score.reason)


def test_chunks_in_which_the_judge_finds_no_statement() -> None:
    def found(call: Call) -> Any:
        task = call.task()
        assert isinstance(task, RelevantStatements)
        return verdicts("yes", statement="s") if task.passage == "full" else verdicts()

    judge = ScriptedJudge(replies={"verdicts": found})
    nowhere = measure("deepeval/contextual_relevancy", ASKED, texts("x", "y"), judge)
    assert (nowhere.status, nowhere.native_value) == ("not_applicable", 0.0)
    assert "0 statements" in str(nowhere.reason)
    # DeepEval drops the chunk from the denominator: 1 / 1, although the judge said nothing of y.
    partly = measure("deepeval/contextual_relevancy", ASKED, texts("full", "y"), judge)
    assert (partly.status, partly.native_value) == ("failed", 1.0)
    assert "chunk 2 of 2" in str(partly.reason)
    # A blank chunk has no statement to judge.
    blank = measure("deepeval/contextual_relevancy", ASKED, texts("full", " "), judge)
    assert (blank.status, blank.value) == ("computed", 1.0)


# Fewer or more verdicts than units (cases 07, 09)

COUNTS: list[Any] = [
    pytest.param(
        "deepeval/faithfulness", faithful(verdicts=verdicts("yes")), 1, ("1 verdict ", "3 claims"), id="fewer"
    ),
    pytest.param("deepeval/faithfulness", faithful(verdicts=verdicts()), 1, ("0 verdicts", "3 claims"), id="empty"),
    pytest.param(
        "deepeval/faithfulness",
        faithful(claims={"claims": ["A"]}, verdicts=verdicts("yes", "no", "no")),
        1 / 3,
        ("3 verdicts", "1 claim"),
        id="more",
    ),
    pytest.param(
        "deepeval/answer_relevancy",
        ScriptedJudge(replies={"statements": {"statements": ["A", "B"]}, "verdicts": verdicts("yes")}),
        1,
        ("1 verdict ", "2 statements"),
        id="relevancy",
    ),
    pytest.param(
        # 1/1, 2/3, 3/5: their mean, over ranks that do not exist.
        "deepeval/contextual_precision",
        ScriptedJudge(replies={"verdicts": verdicts("yes", "no", "yes", "no", "yes")}),
        (1 + 2 / 3 + 3 / 5) / 3,
        ("5 verdicts", "2 chunks"),
        id="precision-more",
    ),
    pytest.param(
        "deepeval/contextual_precision",
        ScriptedJudge(replies={"verdicts": verdicts()}),
        0,
        ("0 verdicts", "2 chunks"),
        id="precision-empty",
    ),
    pytest.param(
        "deepeval/hallucination",
        ScriptedJudge(replies={"verdicts": verdicts("yes")}),
        1,
        ("1 verdict ", "2 chunks"),
        id="hallucination",
    ),
]


@pytest.mark.parametrize(("definition", "judge", "native", "named"), COUNTS)
def test_a_wrong_number_of_verdicts_fails_and_keeps_deepevals_number_beside_it(
    definition: str, judge: ScriptedJudge, native: float, named: tuple[str, ...]
) -> None:
    score = measure(definition, ASKED, texts("x", "y"), judge)
    assert (score.status, score.value) == ("failed", None)
    assert score.native_value == pytest.approx(native)
    assert all(part in str(score.reason) for part in named), score.reason


@pytest.mark.parametrize("reply", [{"verdicts": None}, {"results": []}, {}, []], ids=json.dumps)
def test_no_list_of_verdicts_fails(reply: Any) -> None:
    score = measure("deepeval/faithfulness", ASKED, texts("x"), faithful(verdicts=reply))
    assert (score.status, score.value, score.native_value) == ("failed", None, None)
    assert "verdicts" in str(score.reason) or "pars" in str(score.reason) or "schema" in str(score.reason)


# Words outside the vocabulary (case 10)


@pytest.mark.parametrize("word", ["Yes.", "YES", "idk", "maybe", "no, it is not", "", "1"])
def test_a_word_outside_the_vocabulary_fails_and_is_named_with_the_allowed_ones(word: str) -> None:
    score = measure("deepeval/faithfulness", ASKED, texts("x"), faithful(verdicts=verdicts("yes", word, "yes")))
    assert (score.status, score.value) == ("failed", None)
    assert json.dumps(word) in str(score.reason)
    assert all(allowed in str(score.reason) for allowed in ("'yes'", "'no'", "'borderline'"))


@pytest.mark.parametrize("word", [True, None, 1, 15, -3, 0.9])
def test_a_verdict_that_is_no_word_fails(word: Any) -> None:
    score = measure("deepeval/faithfulness", ASKED, texts("x"), faithful(verdicts=verdicts("yes", word, "yes")))
    assert (score.status, score.value) == ("failed", None)
    assert json.dumps(word) in str(score.reason)


@pytest.mark.parametrize(
    "definition", ["deepeval/contextual_precision", "deepeval/contextual_recall", "deepeval/hallucination"]
)
def test_borderline_is_no_word_of_the_definitions_that_have_two(definition: str) -> None:
    judge = ScriptedJudge(replies={"verdicts": verdicts("borderline", "yes")})
    score = measure(definition, ASKED, texts("x", "y"), judge)
    assert score.status == "failed"
    assert all(part in str(score.reason) for part in ('"borderline"', "'yes'", "'no'"))
    assert "'borderline'" not in str(score.reason)


def test_a_verdict_without_the_reason_that_its_schema_wants_fails() -> None:
    judge = ScriptedJudge(replies={"verdicts": verdicts("yes", reason=None)})
    score = measure("deepeval/contextual_precision", ASKED, texts("x"), judge)
    assert score.status == "failed"
    assert "reason" in str(score.reason)


def test_a_new_word_of_deepeval_is_not_taken_for_one_we_know(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter.Faithfulness, "ours", {"yes": "supported", "no": "contradicted"})
    judge = faithful(verdicts=verdicts("yes", "borderline", "yes"))
    score = measure("deepeval/faithfulness", ASKED, texts("x"), judge)
    assert (score.status, score.native_value) == ("failed", 1.0)
    assert "'borderline' is none of yes, no" in str(score.reason)


# The form of replies (cases 01, 05)


def test_a_refusal_costs_its_own_record_only_and_says_so() -> None:
    async def both() -> list[Score]:
        def claims(call: Call) -> Any:
            return {"claims": ["A"]} if call.record.question_id == "r1" else "I am unable to assess this."

        judge = faithful(claims=claims, verdicts=verdicts("yes"))
        measured = scorer("deepeval/faithfulness")
        assert isinstance(measured, JudgedScorer)
        async with Bench(judge) as bench:
            return [
                await measured.measure(replace(ASKED, id=name), replace(texts("x"), question_id=name), bench)
                for name in ("r1", "r2")
            ]

    good, refused = asyncio.run(both())
    assert (good.status, good.value) == ("computed", 1.0)
    assert (refused.status, refused.value) == ("failed", None)
    assert "pars" in str(refused.reason)
    assert "unable to assess" in str(refused.reason)
    assert "NaN" not in to_json(refused)


REPLY = json.dumps(verdicts("yes", "no", "yes", reason=None))


@pytest.mark.parametrize(
    "reply",
    [
        f"Sure, here is the result:\n```json\n{REPLY}\n```\nHope that helps.",
        f"Format {{as asked}}: {REPLY}",
        f"<think>Is it {{}}?</think>{REPLY}",
    ],
    ids=["fence", "braces", "thought"],
)
def test_a_reply_in_prose_is_read(reply: str) -> None:
    score = measure("deepeval/faithfulness", ASKED, texts("x"), faithful(verdicts=reply))
    assert score.value == pytest.approx(2 / 3)


@pytest.mark.parametrize("reply", [REPLY[:-5], REPLY.replace("]", ",]"), f"{REPLY} or {json.dumps(verdicts('no'))}"])
def test_a_reply_that_is_cut_off_broken_or_double_fails(reply: str) -> None:
    score = measure("deepeval/faithfulness", ASKED, texts("x"), faithful(verdicts=reply))
    assert (score.status, score.value) == ("failed", None)
    assert "pars" in str(score.reason)


def test_a_fault_of_the_judge_is_not_asked_again() -> None:
    judge = faithful(claims=JudgeFault("the server is down"))
    score = measure("deepeval/faithfulness", ASKED, texts("x"), judge)
    assert (score.status, score.reason) == ("failed", "the server is down")
    assert sorted(call.name for call in judge.seen) == ["claims", "truths"]


def test_a_type_error_does_not_make_deepeval_ask_again_without_the_schema() -> None:
    async def alone() -> Score:
        def broken(call: Call, reply: Reply) -> None:
            raise TypeError("a bug in what listens")

        measured = scorer("deepeval/contextual_recall")
        assert isinstance(measured, JudgedScorer)
        async with Bench(judge) as bench:
            bench.listen(broken, lambda text, vector: None)
            return await measured.measure(ASKED, texts("x"), bench)

    judge = ScriptedJudge(replies={"verdicts": verdicts("yes")})
    score = asyncio.run(alone())
    assert score.status == "failed"
    assert "a bug in what listens" in str(score.reason)
    assert len(judge.seen) == 1


def test_what_deepeval_raises_itself_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from deepeval.metrics import FaithfulnessMetric

    def stops(*_: Any, **__: Any) -> None:
        raise ValueError("no such template")

    monkeypatch.setattr(FaithfulnessMetric, "_get_prompt", stops)
    monkeypatch.setattr(adapter.Faithfulness, "prompts", lambda self: {})
    score = measure("deepeval/faithfulness", ASKED, texts("x"), faithful())
    assert (score.status, score.reason) == ("failed", "deepeval raised ValueError: no such template")


# Texts


@pytest.mark.parametrize("mark", ["[DEEPEVAL:IMAGE:x]", "[DEEPEVAL:PDF:a.pdf]"])
@pytest.mark.parametrize("definition", DEFINITIONS)
def test_marks_that_deepeval_takes_for_images_are_judged_as_text(definition: str, mark: str) -> None:
    """DeepEval raises on them. The judge gets the prompts that it gets for a harmless mark, with this mark in them."""
    prompts: dict[str, list[str]] = {}
    for shown in (mark, "HARMLESS"):
        question = replace(ASKED, text=f"Which? {shown}", reference_answer=f"A and B. {shown}")
        replies = {
            "truths": {"truths": [f"t {shown}"]},
            "claims": {"claims": [shown]},
            "statements": {"statements": [shown]},
            "verdicts": verdicts("yes", statement=shown),
        }
        judge = ScriptedJudge(replies=replies)
        score = measure(definition, question, texts(f"see {shown} here", answer=f"A {shown}."), judge)
        assert (score.status, score.value) == ("computed", 1.0), score.reason
        prompts[shown] = [call.messages[0].content for call in judge.seen]
        assert all(shown in prompt for prompt in prompts[shown])
    assert prompts[mark] == [prompt.replace("HARMLESS", mark) for prompt in prompts["HARMLESS"]]


HOSTILE = '{{ 7*7 }} {% raw %} {# c #} {"a": 1} \'q\' "s" \\n 漢字 🤖 \u202e </s>'


def test_braces_and_templates_in_a_text_reach_the_judge_as_they_stand() -> None:
    judge = faithful()
    score = measure("deepeval/faithfulness", ASKED, texts(HOSTILE, "x" * 200_000, answer=HOSTILE), judge)
    assert score.value == 1.0
    shown = {call.name: call.messages[0].content for call in judge.seen}
    assert HOSTILE in shown["truths"]
    assert HOSTILE in shown["claims"]


def test_lists_stand_in_the_prompt_as_python_writes_them() -> None:
    judge = ScriptedJudge(replies={"verdicts": verdicts("yes")})
    measure("deepeval/contextual_precision", ASKED, texts('it\'s "so"\nnew line'), judge)
    assert repr(['it\'s "so"\nnew line']) in judge.seen[0].messages[0].content


def test_the_limit_of_truths_is_a_phrase_of_the_prompt_and_cuts_nothing() -> None:
    judge = faithful(truths={"truths": ["t1", "t2", "t3"]})
    score = measure({"id": "deepeval/faithfulness", "truths_extraction_limit": 1}, ASKED, texts("x"), judge)
    shown = {call.name: call.messages[0].content for call in judge.seen}
    assert "the single most important FACTUAL" in shown["truths"]
    assert "t1\n\nt2\n\nt3" in shown["verdicts"]
    assert score.value == 1.0


@pytest.mark.parametrize("wrong", [{"truths_extraction_limit": 0}, {"strict_mode": True}, {"threshold": 0.5}])
def test_parameters_that_it_does_not_have_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UnknownDefinition, match=next(iter(wrong))):
        scorer({"id": "deepeval/faithfulness", **wrong})


# The environment


@pytest.mark.parametrize("definition", DEFINITIONS)
def test_the_environment_changes_no_score(definition: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = people(definition)
    for name, value in {
        "DEEPEVAL_EVAL_MODE": "hybrid",
        "TEMPERATURE": "1.5",
        "USE_LOCAL_MODEL": "1",
        "USE_OPENAI_MODEL": "1",
        "DEEPEVAL_VERBOSE_MODE": "1",
    }.items():
        monkeypatch.setenv(name, value)
    score = people(definition)
    assert (score.status, score.value, score.evidence) == ("computed", expected.value, expected.evidence)


def test_the_turned_direction_is_said_on_the_card_and_not_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    from deepeval.metrics.utils import metrics

    monkeypatch.setattr(metrics, "_score_direction_warned", set())
    adapter._deepeval.cache_clear()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert people("deepeval/hallucination").value == 0.8
    assert [str(warning.message) for warning in told] == []


# Concurrency


@pytest.mark.parametrize("definition", DEFINITIONS)
def test_fifty_records_at_once_score_as_they_score_alone(definition: str) -> None:
    """Record n holds n in every text, and the judge says no to one unit in three: where a record's replies or state got
    mixed up with another's, its evidence or value would differ."""

    def reply(kind: str) -> Callable[[Call], Any]:
        def said(call: Call) -> Any:
            n = int(call.record.question_id)
            if n == 13:
                raise JudgeFault("the server is down")
            assert f"text {n}." in call.messages[0].content or f"unit {n}-" in call.messages[0].content
            if kind != "verdicts":
                return {kind: [f"unit {n}-{i}" for i in range(n % 4 + 1)]}
            unlisted = definition in ("deepeval/contextual_recall", "deepeval/contextual_relevancy")
            count = len(call.record.context) if "contextual" in definition or "halluc" in definition else n % 4 + 1
            words = ["no" if (n + i) % 3 == 0 else "yes" for i in range(n % 5 + 1 if unlisted else count)]
            items = verdicts(*words, reason=f"of {n}")["verdicts"]
            return {"verdicts": [{**item, "statement": f"unit {n}-{i}"} for i, item in enumerate(items)]}

        return said

    names = ("truths", "claims", "statements", "verdicts")
    judge = ScriptedJudge(replies={name: reply(name) for name in names}, seen=[], concurrency=200)
    measured = scorer(definition)
    assert isinstance(measured, JudgedScorer)

    def one(n: int) -> tuple[Question, Record]:
        chunks = [f"text {n}. chunk {i}" for i in range(n % 3 + 1)]
        question = Question(str(n), f"text {n}.", reference_answer=f"text {n}. reference")
        return question, replace(texts(*chunks, answer=f"text {n}. answer"), question_id=str(n))

    async def together() -> list[Score]:
        async with Bench(judge) as bench:
            return await asyncio.gather(*(measured.measure(*one(n), bench) for n in range(50)))

    scores = asyncio.run(together())
    for n, score in enumerate(scores):
        if n == 13:
            assert (score.status, score.reason) == ("failed", "the server is down")
            continue
        alone = measure(definition, *one(n), judge)
        assert (score.status, score.value, score.evidence) == (alone.status, alone.value, alone.evidence)
        assert score.status == "computed", score.reason
        assert {v.reason for v in score.evidence} == {f"of {n}"}
    assert len({score.value for score in scores}) > 2


# The card and the fingerprint


@pytest.mark.parametrize("definition", DEFINITIONS)
def test_the_card_says_what_the_number_means(definition: str) -> None:
    card = scorer(definition).definition
    assert (card.framework, card.version) == ("deepeval", "4.3.1")
    assert card.implementation.startswith("deepeval.metrics.")
    assert (card.direction, card.range) == ("higher", (0.0, 1.0))
    assert "4.3.1" in card.source
    assert len(card.prompts) == (1 if card.calls == "1 a chunk" else int(card.calls[0]))
    assert any("include_reason" in hazard for hazard in card.hazards)
    assert any("DEEPEVAL:IMAGE" in hazard for hazard in card.hazards)
    assert json.loads(json.dumps(card.card()))["fingerprint"] == card.fingerprint


def test_the_card_of_hallucination_says_that_higher_is_better() -> None:
    assert any(
        "Higher is better since deepeval 4.2.0" in hazard
        for hazard in scorer("deepeval/hallucination").definition.hazards
    )


def _literals(definition: str, name: str) -> list[str]:
    """The literal pieces of the raw templates of a definition for text, from the installed package."""
    from deepeval.templates.resolver import _registry, get_raw_template

    metric = scorer(definition).definition.implementation.rsplit(".", 1)[1]
    raw = get_raw_template("metrics", metric, f"generate_{name}")  # type: ignore[arg-type]
    fragments = _registry.get_base_templates("metrics")["_fragments"]
    raw = re.sub(r"{% if multimodal %}.*?(?:{% else %}(.*?))?{% endif %}", lambda m: m[1] or "", raw, flags=re.DOTALL)
    raw = re.sub(r"{% if not multimodal %}(.*?){% endif %}", r"\1", raw, flags=re.DOTALL)
    raw = re.sub(r"{{ _fragments\.(\w+) }}", lambda m: fragments[m[1]], raw)
    return [piece for piece in re.split(r"{{.*?}}", raw) if piece.strip()]


@pytest.mark.parametrize("definition", DEFINITIONS)
def test_the_prompts_that_are_hashed_are_the_prompts_that_arrive(definition: str) -> None:
    measured = scorer(definition)
    assert isinstance(measured, JudgedScorer)
    hashed = measured.prompts()
    judge = PeopleJudge()
    measure(definition, QUESTION, record(), judge)
    assert {call.name for call in judge.seen} == set(hashed)
    for call in judge.seen:
        arrived = call.messages[0].content
        assert schema_text(call.schema) in hashed[call.name]
        pieces = _literals(definition, call.name)
        assert sum(map(len, pieces)) > 500
        for piece in pieces:
            # Jinja drops the last newline of a template.
            assert piece.rstrip("\n") in arrived
            assert piece.rstrip("\n") in hashed[call.name]
        # All that is hashed, phrases included, arrives in this order around the record's own texts.
        text = hashed[call.name].removesuffix(schema_text(call.schema)).rstrip("\n")
        text = text.replace(" (1 document)", f" ({len(PASSAGES)} documents)").replace("EQUAL TO 1.", "EQUAL TO 5.")
        place = 0
        for piece in re.split(r"\['<\w+>'\]|<(?:question|answer|reference|context|truths)>", text):
            place = arrived.index(piece, place) + len(piece)


def _edited(definition: str, name: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The fingerprint of a definition after a word was added to one of DeepEval's templates."""
    from deepeval.templates.resolver import _registry

    templates = _registry.get_base_templates("metrics")
    metric = scorer(definition).definition.implementation.rsplit(".", 1)[1]
    monkeypatch.setitem(templates[metric], name, "Please. " + templates[metric][name])
    monkeypatch.setattr(_registry, "_compiled", {})
    return scorer(definition).definition.fingerprint


@pytest.mark.parametrize(
    ("definition", "name"),
    [
        *(("deepeval/faithfulness", f"generate_{name}") for name in ("truths", "claims", "verdicts")),
        *(("deepeval/answer_relevancy", f"generate_{name}") for name in ("statements", "verdicts")),
        *((definition, "generate_verdicts") for definition in DEFINITIONS[2:]),
    ],
)
def test_an_edited_template_is_another_definition(definition: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = scorer(definition).definition.fingerprint
    assert _edited(definition, name, monkeypatch) != before


@pytest.mark.parametrize("name", ["generate_reason", "_experimental_system_one_verdict"])
def test_a_template_that_is_never_sent_does_not_count(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = scorer("deepeval/faithfulness").definition.fingerprint
    assert _edited("deepeval/faithfulness", name, monkeypatch) == before


def test_an_edited_fragment_is_another_definition(monkeypatch: pytest.MonkeyPatch) -> None:
    from deepeval.templates.resolver import _registry

    before = scorer("deepeval/faithfulness").definition.fingerprint
    fragments = _registry.get_base_templates("metrics")["_fragments"]
    monkeypatch.setitem(fragments, "faithfulness_verdicts_guidelines_text_only", "Be kind.")
    assert scorer("deepeval/faithfulness").definition.fingerprint != before


def test_parameters_and_version_are_part_of_the_fingerprint_and_key_order_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    specs: list[Any] = [
        "deepeval/faithfulness",
        {"id": "deepeval/faithfulness", "penalize_ambiguous_claims": True},
        {"id": "deepeval/faithfulness", "truths_extraction_limit": 1},
        {"id": "deepeval/faithfulness", "truths_extraction_limit": 2},
        {"id": "deepeval/contextual_precision", "k": 3},
        {"id": "deepeval/contextual_precision", "k": 3, "ranking": "retrieved"},
    ]
    prints = [scorer(spec).definition.fingerprint for spec in specs]
    assert len(set(prints)) == len(specs)
    one = scorer({"id": "deepeval/faithfulness", "truths_extraction_limit": 2, "penalize_ambiguous_claims": True})
    other = scorer({"penalize_ambiguous_claims": True, "truths_extraction_limit": 2, "id": "deepeval/faithfulness"})
    assert one.definition.fingerprint == other.definition.fingerprint
    assert (
        scorer({"id": "deepeval/faithfulness", "penalize_ambiguous_claims": False}).definition.fingerprint == prints[0]
    )
    limited = [scorer(specs[n]).definition.prompts for n in (0, 2, 3)]
    assert len({prompts["truths"] for prompts in limited}) == 3
    assert len({prompts["verdicts"] for prompts in limited}) == 1
    monkeypatch.setattr(adapter, "installed_version", lambda package: "4.3.2")
    assert scorer("deepeval/faithfulness").definition.fingerprint != prints[0]


def test_a_deepeval_that_cannot_be_imported_fails_its_scores_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: str) -> None:
        raise Unavailable("deepeval could not be imported: some_module")

    monkeypatch.setattr(adapter, "_deepeval", gone)
    measured = scorer("deepeval/faithfulness")
    assert measured.definition.prompts == {"unavailable": "deepeval could not be imported: some_module"}
    judge = faithful()
    score = measure("deepeval/faithfulness", ASKED, texts("x"), judge)
    assert (score.status, score.reason) == ("failed", "deepeval could not be imported: some_module")
    assert judge.seen == []
