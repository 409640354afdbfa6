"""Ragas's own code under our judge: known numbers, equality with Ragas called directly, prompts, evidence."""

from __future__ import annotations

import asyncio
import json
import socket
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from math import sqrt
from pathlib import Path
from typing import Any

import pytest

from adapters.base import SCORERS, JudgedScorer, Scorer, scorer
from adapters.bench import Bench
from adapters.judge import Call, JudgeFault, Reply, schema_text
from adapters.ragas import QUESTION as SENTINEL_QUESTION
from adapters.ragas import RECORD as SENTINEL_RECORD
from adapters.ragas import LegacyScorer, RagasScorer, passage_text
from adapters.schema import Chunk, Question, Record, Score, Span, from_json, to_json
from adapters.tasks import (
    Agree,
    AskBack,
    Attribute,
    Finding,
    Findings,
    Grade,
    Match,
    Relevance,
    Split,
    Support,
    Task,
)
from tests.adapters import router
from tests.adapters.scripted import ScriptedJudge, measure

pytest.importorskip("ragas")

HOLDS_CLAIM = {router.CLAIMS[0][0]: 1, router.CLAIMS[1][0]: 1, router.CLAIMS[2][0]: 3}
"""Claim of the answer -> the chunk that holds it."""
HOLDS_REFERENCE = dict(zip((text for text, _, _ in router.REFERENCE_CLAIMS), (1, 1, 3, 3, None), strict=True))
USEFUL = (router.PASSAGES[1], router.PASSAGES[3])
REFERENCE_ENTITIES = ("R2", "24 months", "14 months", "5 business days", "lightning")
CONTEXT_ENTITIES = ("R1", "R2", "12 months", "24 months", "30 days", "5 business days")


def people_say(task: Task, question: Question) -> Findings:
    """The verdicts of router.py as findings."""
    human: Any = question.human
    claims = {claim["text"]: claim for claim in human["claims"]}
    reference = {claim["text"]: claim for claim in human["reference_claims"]}
    match task:
        case Split(into="entities", source=source):
            return tuple(map(Finding, REFERENCE_ENTITIES if source == "reference" else CONTEXT_ENTITIES))
        case Split(source=source):
            return tuple(map(Finding, claims if source == "answer" else reference))
        case Support(units, text, units_of, source):
            if source == "chunk":
                place = router.PASSAGES.index(text)
                held = {**HOLDS_CLAIM, **HOLDS_REFERENCE}
                return tuple(Finding(u, "supported" if held.get(u) == place else "absent", "read") for u in units)
            if units_of == "reference":
                return tuple(Finding(u, "supported" if reference[u]["in_answer"] else "absent", "read") for u in units)
            if source == "reference":
                return tuple(Finding(u, "supported" if claims[u]["in_reference"] else "absent", "read") for u in units)
            return tuple(Finding(u, claims[u]["verdict"], "read") for u in units)
        case Attribute():
            return tuple(
                Finding(u, "attributed" if c["in_context"] else "not_attributed", "read") for u, c in reference.items()
            )
        case Relevance(passages=passages):
            return tuple(Finding(p, "relevant" if p in USEFUL else "not_relevant", "read") for p in passages)
        case AskBack():
            return (Finding(question.text),)
        case Match(_, answer_claims, reference_claims):
            return tuple(
                [Finding(u, "supported" if claims[u]["in_reference"] else "absent") for u in answer_claims]
                + [Finding(u, "supported" if reference[u]["in_answer"] else "absent") for u in reference_claims]
            )
        case Grade() | Agree():
            return (Finding("", grade=0.5),)
    raise AssertionError(task)


class People(ScriptedJudge):
    """Answers every task with the verdicts of the question's `human`."""

    async def ask(self, call: Call) -> Reply:
        self.seen.append(call)
        await asyncio.sleep(0)
        reply = Reply(json.dumps(call.write(people_say(call.task(), call.question))))
        self.replies.setdefault(call.messages[-1].content, []).append(reply.text)
        return reply


class Sentinels(ScriptedJudge):
    """Answers every task about the sentinel record."""

    async def ask(self, call: Call) -> Reply:
        self.seen.append(call)
        match call.task():
            case Support(units=units):
                found = tuple(Finding(unit, "supported") for unit in units)
            case Match(answer_claims=one, reference_claims=two):
                found = tuple(Finding(unit, "supported") for unit in one + two)
            case _:
                found = (Finding("<unit>", "supported", grade=1.0),)
        return Reply(json.dumps(call.write(found)))


def cosine(one: list[float], two: list[float]) -> float:
    return sum(a * b for a, b in zip(one, two, strict=True)) / sqrt(sum(a * a for a in one) * sum(b * b for b in two))


def letters(text: str) -> list[float]:
    return [float(text.lower().count(letter)) for letter in "abcdefghijklmnopqrstuvwxyz"]


SIMILARITY = cosine(letters(router.ANSWER), letters(router.REFERENCE))
JUDGED: list[tuple[Any, float, int]] = [
    # 3 of 5 claims are supported.
    ("ragas/faithfulness", 3 / 5, 2),
    # All three questions asked back are the question itself: cosine 1.
    ("ragas/answer_relevancy", 1.0, 3),
    # Useful at ranks 2 and 4: (1/2 + 2/4) / (2 + 1e-10) = 0.499999999975.
    ("ragas/context_precision", 1 / (2 + 1e-10), 5),
    ("ragas/context_utilization", 1 / (2 + 1e-10), 5),
    # Of the first 3 only rank 2 is useful: 1/2 / (1 + 1e-10).
    ({"id": "ragas/context_precision", "k": 3}, 0.5 / (1 + 1e-10), 3),
    # 4 of 5 claims of the reference are in the chunks.
    ("ragas/context_recall", 4 / 5, 1),
    # R2, 24 months and 5 business days of 5 entities.
    ("ragas/context_entity_recall", 3 / (5 + 1e-8), 2),
    # TP = 3, FP = 2 of the answer; FN = 2 of the reference: P = 3/5, R = 3/(3+2), F1 = 3/5.
    ("ragas/factual_correctness", 0.6, 4),
    ({"id": "ragas/factual_correctness", "mode": "precision"}, 0.6, 2),
    ({"id": "ragas/factual_correctness", "mode": "recall"}, 0.6, 4),
    ({"id": "ragas/factual_correctness", "atomicity": "high", "coverage": "high"}, 0.6, 4),
    # Both wrong claims are in no chunk.
    ("ragas/noise_sensitivity", 0.0, 13),
    ({"id": "ragas/noise_sensitivity", "mode": "irrelevant"}, 0.0, 13),
    # Ratings 1 and 1 of 2; 2 and 2 of 4.
    ("ragas/context_relevance", 0.5, 2),
    ("ragas/response_groundedness", 0.5, 2),
    ("ragas/answer_accuracy", 0.5, 2),
    ("ragas/semantic_similarity", SIMILARITY, 0),
    # Letters of two texts on one matter are alike beyond 0.5.
    ({"id": "ragas/semantic_similarity", "threshold": 0.5}, 1.0, 0),
    # TP = 3, FP = 2, FN = 2: F1 = 0.6; 0.75 * 0.6 + 0.25 * cosine.
    ("ragas/answer_correctness", 0.45 + 0.25 * SIMILARITY, 3),
    ({"id": "ragas/answer_correctness", "weights": [1.0, 0.0]}, 0.6, 3),
]
KEYS = [scorer(spec).key for spec, _, _ in JUDGED]
ARGUMENTS: dict[str, tuple[str, str]] = {
    "ragas/faithfulness": ("Faithfulness", "user_input response retrieved_contexts"),
    "ragas/answer_relevancy": ("AnswerRelevancy", "user_input response"),
    "ragas/context_precision": ("ContextPrecision", "user_input reference retrieved_contexts"),
    "ragas/context_utilization": ("ContextUtilization", "user_input response retrieved_contexts"),
    "ragas/context_recall": ("ContextRecall", "user_input reference retrieved_contexts"),
    "ragas/context_entity_recall": ("ContextEntityRecall", "reference retrieved_contexts"),
    "ragas/factual_correctness": ("FactualCorrectness", "response reference"),
    "ragas/noise_sensitivity": ("NoiseSensitivity", "user_input response reference retrieved_contexts"),
    "ragas/context_relevance": ("ContextRelevance", "user_input retrieved_contexts"),
    "ragas/response_groundedness": ("ResponseGroundedness", "response retrieved_contexts"),
    "ragas/answer_accuracy": ("AnswerAccuracy", "user_input response reference"),
    "ragas/semantic_similarity": ("SemanticSimilarity", "response reference"),
    "ragas/answer_correctness": ("AnswerCorrectness", "user_input response reference"),
}


def judged(spec: Any) -> RagasScorer:
    made = scorer(spec)
    assert isinstance(made, RagasScorer)
    return made


def plain_score(spec: Any, replies: dict[str, list[str]]) -> float:
    """Ragas called as its own pages say, with a judge that looks its replies up by prompt."""
    import ragas.metrics.collections as collections
    from ragas.embeddings.base import BaseRagasEmbedding
    from ragas.llms.base import InstructorBaseRagasLLM

    asked: defaultdict[str, int] = defaultdict(int)

    class Plain(InstructorBaseRagasLLM):  # type: ignore[misc]
        def generate(self, prompt: str, response_model: Any) -> Any:
            raise AssertionError

        async def agenerate(self, prompt: str, response_model: Any) -> Any:
            asked[prompt] += 1
            return response_model.model_validate_json(replies[prompt][asked[prompt] - 1])

    class Letters(BaseRagasEmbedding):  # type: ignore[misc]
        def embed_text(self, text: str, **kwargs: Any) -> list[float]:
            return letters(text)

        async def aembed_text(self, text: str, **kwargs: Any) -> list[float]:
            return letters(text)

    parameters = {"id": spec} if isinstance(spec, str) else dict(spec)
    name, arguments = ARGUMENTS[parameters.pop("id")]
    cut = parameters.pop("k", None)
    injected: dict[str, Any] = {} if name == "SemanticSimilarity" else {"llm": Plain()}
    if name in ("SemanticSimilarity", "AnswerRelevancy", "AnswerCorrectness"):
        injected["embeddings"] = Letters()
    values = {
        "user_input": router.QUESTION.text,
        "response": router.ANSWER,
        "reference": router.REFERENCE,
        "retrieved_contexts": list(router.PASSAGES)[:cut],
    }
    metric = getattr(collections, name)(**injected, **parameters)
    return float(asyncio.run(metric.ascore(**{key: values[key] for key in arguments.split()})).value)


@pytest.mark.parametrize(("spec", "value", "calls"), JUDGED, ids=KEYS)
def test_people_give_the_known_numbers_and_ragas_alone_gives_the_same(spec: Any, value: float, calls: int) -> None:
    judge = People()
    score = measure(spec, router.QUESTION, router.record(), judge)
    assert (score.status, score.reason) == ("computed", None)
    assert score.value == pytest.approx(value, abs=1e-12)
    assert score.calls == calls
    assert score.judge == judge.card
    assert score.definition == judged(spec).key
    assert plain_score(spec, judge.replies) == pytest.approx(score.value, abs=1e-15)
    assert from_json(Score, to_json(score)) == score


def test_every_definition_is_built_and_described() -> None:
    for name in (name for name in SCORERS if name.startswith("ragas/")):
        made = scorer(name)
        card = made.definition
        assert (card.id, card.framework, card.version) == (name, "ragas", made.framework_version())
        assert all((card.asks, card.unit, card.hit, card.formula, card.nothing_to_judge, card.source, card.hazards))
        assert "0.4.3" in card.source
        assert (card.direction == "lower") is (name == "ragas/noise_sensitivity")
        assert (card.calls == "0") is isinstance(made, LegacyScorer)
    assert {spec if isinstance(spec, str) else spec["id"] for spec, _, _ in JUDGED} == set(ARGUMENTS)
    assert judged({"id": "ragas/answer_correctness", "weights": [1, 0]}).definition.parameters["weights"] == [1.0, 0.0]


def test_evidence_is_in_the_words_of_ragas_and_in_ours() -> None:
    def words(spec: Any) -> list[tuple[Any, ...]]:
        score = measure(spec, router.QUESTION, router.record(), People())
        return [(v.native, v.ours, v.rank) for v in score.evidence]

    assert words("ragas/faithfulness") == [("1", "supported", None)] * 3 + [("0", "not_supported", None)] * 2
    relevance = ["not_relevant", "relevant", "not_relevant", "relevant", "not_relevant"]
    assert words("ragas/context_precision") == [
        (str(int(word == "relevant")), word, rank) for rank, word in enumerate(relevance, 1)
    ]
    assert words("ragas/context_recall") == [("1", "attributed", None)] * 4 + [("0", "not_attributed", None)]
    assert words("ragas/context_entity_recall") == [
        ("in both lists", "attributed", None),
        ("in both lists", "attributed", None),
        ("in the reference only", "not_attributed", None),
        ("in both lists", "attributed", None),
        ("in the reference only", "not_attributed", None),
    ]
    assert words("ragas/answer_relevancy") == [("0", None, None)] * 3
    assert words("ragas/answer_correctness") == (
        [("TP", "supported", None)] * 3 + [("FP", "not_supported", None)] * 2 + [("FN", "absent", None)] * 2
    )
    assert words("ragas/response_groundedness") == [("1", None, None)] * 2
    assert words("ragas/semantic_similarity") == []
    # Both directions: the answer's claims by the reference, then the reference's by the answer.
    assert [ours for _, ours, _ in words("ragas/factual_correctness")] == (
        ["supported"] * 3 + ["not_supported"] * 2
    ) * 2
    # 5 claims by the reference, then 5 + 5 for each of 5 chunks.
    noise = words("ragas/noise_sensitivity")
    assert [rank for _, _, rank in noise] == [None] * 5 + [rank for rank in range(1, 6) for _ in range(10)]
    evidence = measure("ragas/faithfulness", router.QUESTION, router.record(), People()).evidence
    assert [(v.unit, v.reason) for v in evidence] == [(text, "read") for text, _ in router.CLAIMS]


def test_noise_sensitivity_tells_the_kinds_of_chunks_apart() -> None:
    chunks = tuple(Chunk("d", n, n + 1, text) for n, text in enumerate(("c1", "c2")))
    question = Question("q", "Q?", reference_answer="R")
    record = Record("q", context=chunks, answer="A and B")

    def value(mode: str, b_in_first: int) -> float | None:
        def verdicts(*words: int) -> dict[str, Any]:
            return {"statements": [{"statement": str(n), "reason": "r", "verdict": w} for n, w in enumerate(words)]}

        judge = ScriptedJudge(
            replies={
                "statements": [{"statements": ["R"]}, {"statements": ["A", "B"]}],
                # c1: reference, answer; c2: reference, answer; then the answer by the reference.
                "verdicts": [verdicts(1), verdicts(1, b_in_first), verdicts(0), verdicts(0, 1), verdicts(1, 0)],
            }
        )
        return measure({"id": "ragas/noise_sensitivity", "mode": mode}, question, record, judge).value

    # c1 is relevant (it supports R), c2 is not. B is the wrong one of two statements.
    assert value("irrelevant", 0) == 0.5  # B comes from c2 alone
    assert value("relevant", 0) == 0.0
    assert value("irrelevant", 1) == 0.0  # B comes from c1 too
    assert value("relevant", 1) == 0.5


def test_factual_recall_mixes_units_as_the_card_says() -> None:
    def verdicts(count: int, word: int) -> dict[str, Any]:
        return {"statements": [{"statement": str(n), "reason": "r", "verdict": word} for n in range(count)]}

    replies = {
        "claims": [{"claims": [str(n) for n in range(10)]}, {"claims": ["0", "1"]}],
        "verdicts": [verdicts(10, 1), verdicts(2, 0)],
    }
    score = measure(
        {"id": "ragas/factual_correctness", "mode": "recall"},
        router.QUESTION,
        router.record(),
        ScriptedJudge(replies=replies),
    )
    # 10 of 10 claims of the answer, 0 of 2 of the reference: 10 / (10 + 2) = 0.8333, rounded by ragas.
    assert score.value == 0.83
    assert any("0.83" in hazard for hazard in judged("ragas/factual_correctness").definition.hazards)


@pytest.mark.parametrize("spec", [spec for spec, _, _ in JUDGED], ids=KEYS)
def test_prompts_are_what_a_judge_receives(spec: Any) -> None:
    judge = Sentinels()
    score = measure(spec, SENTINEL_QUESTION, SENTINEL_RECORD, judge)
    assert score.status == "computed", score.reason
    received = {f"{call.messages[0].content}\n{schema_text(call.schema)}" for call in judge.seen}
    assert set(judged(spec).prompts().values()) == received
    assert set(judged(spec).definition.prompts) == set(judged(spec).prompts())


def test_prompts_hold_the_package_s_own_text() -> None:
    from ragas.metrics.collections.answer_accuracy.util import AnswerAccuracyJudge1Prompt, AnswerAccuracyJudge2Prompt
    from ragas.metrics.collections.factual_correctness.util import ClaimDecompositionInput, ClaimDecompositionPrompt

    rating, swapped = judged("ragas/answer_accuracy").prompts().values()
    assert rating.startswith(AnswerAccuracyJudge1Prompt.instruction)
    assert swapped.startswith(AnswerAccuracyJudge2Prompt.instruction)
    assert swapped.index('"user_answer": "<reference>"') < swapped.index('"reference_answer": "<answer>"')
    asked = judged({"id": "ragas/factual_correctness", "atomicity": "high"}).prompts()["claims"]
    text = ClaimDecompositionPrompt().to_string(
        ClaimDecompositionInput(response="<answer>", atomicity="high", coverage="low")
    )
    assert asked.startswith(text)
    assert list(judged("ragas/noise_sensitivity").prompts()) == ["statements", "statements 2", "verdicts", "verdicts 2"]


@pytest.mark.parametrize(
    ("name", "owner"),
    [
        ("ragas/faithfulness", "faithfulness.util.NLIStatementPrompt"),
        ("ragas/answer_accuracy", "answer_accuracy.util.AnswerAccuracyJudge2Prompt"),
        ("ragas/context_recall", "context_recall.util.ContextRecallPrompt"),
    ],
)
def test_an_edited_prompt_moves_the_fingerprint(name: str, owner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = judged(name).definition.fingerprint
    assert judged(name).definition.fingerprint == before
    monkeypatch.setattr(f"ragas.metrics.collections.{owner}.instruction", "Say 1.")
    assert judged(name).definition.fingerprint != before


def test_edited_noise_prompt_and_edited_examples_move_the_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    noise = judged("ragas/noise_sensitivity").definition.fingerprint
    claims = judged({"id": "ragas/factual_correctness", "coverage": "high"}).definition.fingerprint
    plain = judged("ragas/factual_correctness").definition.fingerprint
    module = "ragas.metrics.collections"
    with monkeypatch.context() as patch:
        from ragas.metrics.collections.noise_sensitivity import util

        kept = util.nli_statement_prompt
        patch.setattr(
            util, "nli_statement_prompt", lambda context, statements: "Be strict. " + kept(context, statements)
        )
        assert judged("ragas/noise_sensitivity").definition.fingerprint != noise
    from ragas.metrics.collections.factual_correctness.util import ClaimDecompositionPrompt

    examples = ClaimDecompositionPrompt._all_examples
    monkeypatch.setattr(
        f"{module}.factual_correctness.util.ClaimDecompositionPrompt._all_examples",
        {**examples, ("low", "high"): examples["low", "low"]},
    )
    assert judged({"id": "ragas/factual_correctness", "coverage": "high"}).definition.fingerprint != claims
    assert judged("ragas/factual_correctness").definition.fingerprint == plain


def test_parameters_and_versions_move_the_fingerprint_and_key_order_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    prints = {scorer(spec).definition.fingerprint for spec, _, _ in JUDGED}
    assert len(prints) == len(JUDGED)
    one = judged({"id": "ragas/factual_correctness", "mode": "recall", "beta": 2})
    two = judged({"beta": 2.0, "mode": "recall", "id": "ragas/factual_correctness"})
    assert one.definition.fingerprint == two.definition.fingerprint
    assert one.key == "ragas/factual_correctness.mode-recall.beta-2.0"
    monkeypatch.setattr("adapters.ragas.installed_version", lambda package: "0.4.4")
    assert judged({"id": "ragas/factual_correctness"}).definition.fingerprint not in prints
    assert scorer("ragas/id_context_recall").definition.version == "0.4.4"


def test_wrong_parameters_are_refused_before_work() -> None:
    for wrong in (
        {"id": "ragas/answer_relevancy", "strictness": 0},
        {"id": "ragas/answer_correctness", "weights": [0, 0]},
        {"id": "ragas/answer_correctness", "weights": [-1, 2]},
        {"id": "ragas/semantic_similarity", "threshold": 0.0},
        {"id": "ragas/context_relevance", "max_retries": 3},
        {"id": "ragas/factual_correctness", "mode": "F1"},
    ):
        with pytest.raises(ValueError, match=str(wrong["id"])):
            scorer(wrong)


def variant(number: int) -> tuple[Question, Record]:
    """The router question under an id of its own; in every second one only two claims are supported."""
    human: Any = router.QUESTION.human
    claims = [dict(claim) for claim in human["claims"]]
    if number % 2:
        claims[0]["verdict"] = "absent"
    name = f"r{number}"
    return replace(router.QUESTION, id=name, human={**human, "claims": claims}), router.record(name)


def test_fifty_records_at_once_get_what_each_gets_alone() -> None:
    scorers = [judged(name) for name in ARGUMENTS]
    pairs = [variant(number) for number in range(50)]

    async def together() -> list[Score]:
        async with Bench(People(concurrency=32)) as bench:
            return await asyncio.gather(*(made.measure(*pair, bench) for made in scorers for pair in pairs))

    scores = asyncio.run(together())
    alone = {
        (made.key, parity): measure(made.id, *variant(parity), People()).value for made in scorers for parity in (0, 1)
    }
    assert (alone["ragas/faithfulness", 0], alone["ragas/faithfulness", 1]) == (0.6, 0.4)
    for score in scores:
        assert score.value == alone[score.definition, int(score.question_id[1:]) % 2], score


def test_prompts_can_be_read_inside_a_running_loop() -> None:
    async def inside() -> dict[str, str]:
        return {name: scorer(name).definition.fingerprint for name in (*ARGUMENTS, "ragas/id_context_recall")}

    assert asyncio.run(inside()) == {
        name: scorer(name).definition.fingerprint for name in (*ARGUMENTS, "ragas/id_context_recall")
    }


def test_slow_embeddings_hold_up_nobody() -> None:
    class Slow(ScriptedJudge):
        async def embed(self, texts: Any) -> list[list[float]]:
            await asyncio.sleep(0.3)
            return await super().embed(texts)

    async def ticks() -> int:
        async with Bench(Slow()) as bench:
            made = judged("ragas/semantic_similarity")
            work = asyncio.ensure_future(made.measure(router.QUESTION, router.record(), bench))
            count = 0
            while not work.done():
                await asyncio.sleep(0.01)
                count += 1
            assert (await work).status == "computed"
            return count

    assert asyncio.run(ticks()) >= 10


LABELLED = replace(router.record(), labelled=(router.record().context[1], router.record().context[3]))


def legacy(spec: Any, question: Question, record: Record) -> Score:
    made = scorer(spec)
    assert isinstance(made, Scorer)
    return made.score(question, record)


# Documents doc1 ... doc5 are retrieved, doc2 and doc4 are labelled. Likeness by Levenshtein: the passages of R1 and R2
# differ in 2 characters, so doc1 is like doc2 and is a hit; hits at ranks 1, 2, 4: (1 + 1 + 3/4) / 3 = 0.9167.
LEGACY = [
    ("ragas/id_context_precision", 2 / 5, ["not_relevant", "relevant", "not_relevant", "relevant", "not_relevant"]),
    ({"id": "ragas/id_context_precision", "k": 2}, 1 / 2, ["not_relevant", "relevant"]),
    ("ragas/id_context_recall", 1.0, ["attributed", "attributed"]),
    ({"id": "ragas/id_context_recall", "k": 3}, 1 / 2, ["attributed", "not_attributed"]),
    (
        "ragas/non_llm_context_precision",
        2.75 / (3 + 1e-10),
        ["relevant", "relevant", "not_relevant", "relevant", "not_relevant"],
    ),
    (
        {"id": "ragas/non_llm_context_precision", "threshold": 0.99},
        1 / (2 + 1e-10),
        ["not_relevant", "relevant", "not_relevant", "relevant", "not_relevant"],
    ),
    ("ragas/non_llm_context_recall", 1.0, ["attributed", "attributed"]),
    ({"id": "ragas/non_llm_context_recall", "k": 1}, 1 / 2, ["attributed", "not_attributed"]),
]


@pytest.mark.parametrize(("spec", "value", "words"), LEGACY, ids=[scorer(spec).key for spec, _, _ in LEGACY])
def test_definitions_without_a_judge(spec: Any, value: float, words: list[str]) -> None:
    pytest.importorskip("rapidfuzz")
    score = legacy(spec, router.QUESTION, LABELLED)
    assert score.status == "computed", score.reason
    assert score.value == pytest.approx(value, abs=1e-12)
    assert [verdict.ours for verdict in score.evidence] == words

    async def inside() -> float | None:
        return legacy(spec, router.QUESTION, LABELLED).value

    assert asyncio.run(inside()) == score.value
    assert not hasattr(asyncio, "_nest_patched")


@pytest.mark.parametrize(
    "name", ["id_context_precision", "id_context_recall", "non_llm_context_precision", "non_llm_context_recall"]
)
def test_definitions_without_a_judge_where_something_is_missing(name: str) -> None:
    nothing = legacy(f"ragas/{name}", router.QUESTION, Record("router", asked_k=5))
    assert (nothing.value, nothing.reason) == (0.0, "nothing retrieved")
    unlabelled = legacy(f"ragas/{name}", replace(router.QUESTION, relevant=None), LABELLED)
    assert unlabelled.status == "not_applicable"
    assert "unlabelled" in str(unlabelled.reason)
    unreported = legacy(f"ragas/{name}", router.QUESTION, router.record())
    if name.startswith("non_llm"):
        assert unreported.reason == "the text of 2 of 2 labelled passages is in no chunk of Record.labelled"
    else:
        assert unreported.status == "computed"


def test_a_passage_is_put_together_from_its_chunks() -> None:
    text = "One two.  Three four five."
    chunks = [Chunk("d", 0, 8, text[0:8]), Chunk("d", 10, 20, text[10:20]), Chunk("d", 16, 26, text[16:26])]
    assert passage_text(Span("d", 0, 26), chunks[::-1]) == "One two. Three four five."
    assert passage_text(Span("d", 4, 15), chunks) == "two. Three"
    assert passage_text(Span("e", 0, 5), chunks) is None


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Home and working directory are empty; every connection or name look-up is noted and refused."""
    reached: list[Any] = []

    def refuse(*arguments: Any, **named: Any) -> Any:
        reached.append(arguments)
        raise OSError("no network in tests")

    from ragas import _analytics

    _analytics.get_userid.cache_clear()
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    yield reached
    _analytics.get_userid.cache_clear()


def test_nothing_is_written_and_nobody_is_called(watched: list[Any], tmp_path: Path) -> None:
    for name in ARGUMENTS:
        assert measure(name, router.QUESTION, router.record(), People()).status == "computed"
    for spec, _, _ in LEGACY:
        assert legacy(spec, router.QUESTION, LABELLED).status == "computed"
    assert (watched, list(tmp_path.rglob("*"))) == ([], [])
    # What is avoided: the public way of the older classes does write.
    from ragas.dataset_schema import SingleTurnSample
    from ragas.metrics._string import NonLLMStringSimilarity

    asyncio.run(NonLLMStringSimilarity().single_turn_ascore(SingleTurnSample(reference="a", response="a")))
    assert [path.name for path in tmp_path.rglob("*.json")] == ["uuid.json"]


def test_a_machine_without_ragas_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.metadata import PackageNotFoundError

    from adapters import ragas
    from adapters.base import Unavailable

    def gone(*modules: str) -> Any:
        raise Unavailable("ragas could not be imported: langchain_community")

    def no_version(package: str) -> str:
        raise PackageNotFoundError(package)

    monkeypatch.setattr(ragas, "_collections", gone)
    monkeypatch.setattr(ragas, "framework", gone)
    monkeypatch.setattr("adapters.isolation.version", no_version)
    score = measure("ragas/faithfulness", router.QUESTION, router.record(), People())
    assert (score.status, score.reason) == ("failed", "ragas could not be imported: langchain_community")
    assert scorer("ragas/faithfulness").definition.version == "not installed"
    assert legacy("ragas/id_context_recall", router.QUESTION, LABELLED).status == "failed"


def test_a_judge_s_fault_costs_one_score_and_one_call() -> None:
    for name, call in (("context_relevance", "rating"), ("faithfulness", "statements")):
        judge = ScriptedJudge(replies={call: JudgeFault("the judge is out")})
        score = measure(f"ragas/{name}", router.QUESTION, router.record(), judge)
        assert (score.status, score.reason) == ("failed", "the judge is out")
        assert len(judge.seen) == 1


def test_all_kinds_of_scorer_are_covered() -> None:
    judged_names = {n for n in SCORERS if n.startswith("ragas/") and isinstance(scorer(n), JudgedScorer)}
    assert judged_names == set(ARGUMENTS)
