"""People's verdicts as the judge, on the router example."""

from __future__ import annotations

import asyncio
import re
import runpy
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from adapters import tasks as t
from adapters.base import SCORERS, JudgedScorer, scorer
from adapters.bench import Bench
from adapters.judge import JudgeFault
from adapters.judges.labels import LabelsJudge, human_verdicts
from adapters.judges.vectors import WARNING
from adapters.schema import Chunk, Question, Record, Span
from tests.adapters.calls import ANSWER_CLAIMS, CLAIMS_OF_REFERENCE, CONTEXT, TASKS, ask, call, found, words
from tests.adapters.router import ANSWER, PASSAGES, QUESTION, REFERENCE, record
from tests.adapters.scripted import measure

JUDGE = LabelsJudge()
YES, NO, GONE = "supported", "contradicted", "absent"


def refused(task: t.Task, question: Question = QUESTION, measured: Record | None = None) -> str:
    with pytest.raises(JudgeFault) as caught:
        ask(JUDGE, call(task, question=question, measured=measured))
    return str(caught.value)


def human(**changes: Any) -> Question:
    """The question, with other fields of `human`; None leaves a field out."""
    assert QUESTION.human is not None
    fields = {**QUESTION.human, **changes}
    return replace(QUESTION, human={name: value for name, value in fields.items() if value is not None})


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("support", [YES, YES, YES, NO, GONE]),
        ("support by reference", [YES, YES, YES, GONE, GONE]),
        ("support of reference", [YES, YES, YES, YES, GONE]),
        ("support by answer", [YES, YES, YES, GONE, GONE]),
        ("attribute", ["attributed"] * 4 + ["not_attributed"]),
        ("relevance", ["not_relevant", "relevant", "not_relevant", "relevant", "not_relevant"]),
        ("relevance of context", ["relevant"]),
        ("relevance of statements", ["relevant"] * 5),
        ("relevant statements", ["relevant"] * 2),
        ("match", [YES, YES, YES, GONE, GONE] * 2),
        ("decline", [GONE]),
        ("ask back", [None]),
    ],
)
def test_verdicts_of_people_answer_tasks(name: str, expected: list[Any]) -> None:
    assert words(JUDGE, TASKS[name]) == expected


@pytest.mark.parametrize(
    ("name", "units"),
    [
        ("split", ANSWER_CLAIMS),
        ("split sentences", ANSWER_CLAIMS),
        ("split reference", CLAIMS_OF_REFERENCE),
        ("split context", PASSAGES),
        ("ask back", (QUESTION.text,)),
        ("attribute", CLAIMS_OF_REFERENCE),
    ],
)
def test_units_are_those_that_people_judged(name: str, units: tuple[str, ...]) -> None:
    assert tuple(unit for unit, *_ in found(JUDGE, TASKS[name])) == units


@pytest.mark.parametrize(
    ("name", "grade"),
    [
        ("grade relevance", 1.0),
        ("grade groundedness", 0.6),  # 3 of 5 claims
        ("grade relevance of context", 1.0),
    ],
)
def test_grades_are_shares_of_verdicts(name: str, grade: float) -> None:
    assert found(JUDGE, TASKS[name])[0][3] == pytest.approx(grade)


def test_agreement_is_what_people_gave() -> None:
    assert found(JUDGE, TASKS["agree"], question=human(agreement=0.4))[0][3] == 0.4


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        (TASKS["split entities"], "nobody judged which entities the answer names"),
        (TASKS["support by chunk"], "nobody judged which single chunk supports each claim of the answer"),
        (TASKS["support of chunks"], "nobody judged whether the answer supports each unit of the chunk"),
        (TASKS["agree"], "nobody judged how far it says what the reference says"),
        (TASKS["contribution"], "nobody judged which chunks contributed to the answer"),
        (t.Support(("The moon is far.",), CONTEXT, "answer", "context"), "the claim 'The moon is far.' of the answer"),
        (t.Support(("The moon.",), CONTEXT, "reference", "context"), "the claim 'The moon.' of the reference"),
        (t.Relevance("q", ("Nowhere.",)), "the passage 'Nowhere.', which is no chunk of the record"),
        (t.Split("Another answer.", "answer"), "people judged another answer"),
        (t.Split("Another reference.", "reference"), "'Another reference.', which is not the reference answer"),
        (t.Decline("q", "Another answer."), "people judged another answer"),
        (t.Grade("groundedness", "Another.", "answer"), "the claim 'Another.' of the answer"),
        (t.Grade("relevance", REFERENCE, "reference"), "the relevance of the reference"),
        (t.Grade("groundedness", CONTEXT, "context"), "the groundedness of the context"),
    ],
    ids=str,
)
def test_what_nobody_judged_is_named(task: t.Task, expected: str) -> None:
    said = refused(task)
    assert expected in said
    assert "question router" in said


def test_verdicts_hold_for_the_answer_they_were_given_on() -> None:
    for name in ("support", "support by reference", "match", "relevance of statements"):
        assert "people judged another answer" in refused(TASKS[name], measured=record(answer="It is covered."))
    # White space is no other answer; what is said of chunks and of the reference holds for any.
    assert words(JUDGE, TASKS["support"], measured=record(answer=f" {ANSWER}\n"))[0] == YES
    assert words(JUDGE, TASKS["support of reference"], measured=record(answer="Other."))[4] == GONE


ELSEWHERE = replace(record(), context=(Chunk("doc9", 0, 20, "Bananas are yellow."),))


@pytest.mark.parametrize(
    "task",
    [
        t.Support(ANSWER_CLAIMS, "Bananas are yellow.", "answer", "context"),
        t.Support(ANSWER_CLAIMS, f"{CONTEXT}\n\nBananas are yellow.", "answer", "context"),
        t.Support(ANSWER_CLAIMS, "\n".join(PASSAGES[:4]), "answer", "context"),
        t.Support(ANSWER_CLAIMS, PASSAGES[1], "answer", "chunk"),
        t.Support(CLAIMS_OF_REFERENCE, "Bananas are yellow.", "reference", "context"),
        t.Attribute(REFERENCE, PASSAGES[0]),
        t.Grade("groundedness", ANSWER, "answer", against="Bananas are yellow."),
    ],
    ids=str,
)
def test_verdicts_hold_for_the_context_that_people_saw(task: t.Task) -> None:
    assert "people judged another context for question router" in refused(task, measured=ELSEWHERE)
    assert "does not say which `context` people saw" in refused(task, human(context=None), measured=ELSEWHERE)


def test_the_order_of_the_passages_and_white_space_are_no_other_context() -> None:
    shuffled = t.Support(ANSWER_CLAIMS, "\n".join(f" {text} " for text in reversed(PASSAGES)), "answer", "context")
    assert words(JUDGE, shuffled) == [YES, YES, YES, NO, GONE]


def test_verdicts_hold_for_the_reference_that_people_saw() -> None:
    other = replace(QUESTION, reference_answer="Bananas.")
    compared = [
        t.Support(ANSWER_CLAIMS, "Bananas.", "answer", "reference"),
        t.Support(CLAIMS_OF_REFERENCE, CONTEXT, "reference", "context"),
        t.Split("Bananas.", "reference"),
        t.Attribute("Bananas.", CONTEXT),
        t.Agree("?", ANSWER, "Bananas."),
        TASKS["match"],
    ]
    for task in compared:
        assert "people judged another reference answer to question router" in refused(task, other)
    for name in ("support by reference", "attribute", "agree", "match", "split reference"):
        assert "does not say which `reference` answer people saw" in refused(TASKS[name], human(reference=None))


def spans(*numbers: int) -> list[dict[str, Any]]:
    return [{"doc_id": f"doc{n}", "start": 0, "end": len(PASSAGES[n - 1])} for n in numbers]


EVIDENCE = ([2], [2], [4], [4], [])
"""The passages on which the verdicts on the five claims rest; those on the reference's rest on the same."""


def with_evidence(**changes: Any) -> Question:
    """What people said with the passages that it rests on, and without the context that they saw."""
    assert QUESTION.human is not None
    claims = [
        {**claim, "evidence": spans(*rests)} for claim, rests in zip(QUESTION.human["claims"], EVIDENCE, strict=True)
    ]
    of_reference = [
        {"text": text, "evidence": spans(*rests)} for text, rests in zip(CLAIMS_OF_REFERENCE, EVIDENCE, strict=True)
    ]
    return human(**{"context": None, "claims": claims, "reference_claims": of_reference, **changes})


@pytest.mark.parametrize(
    ("cut", "expected"),
    [
        # Another chunk size: passages 2 and 4 in three chunks each; then passage 2 alone, passage 4 but for a part.
        ([(2, 0, 20), (2, 20, 50), (2, 50, 74), (4, 0, 40), (4, 40, 80), (4, 70, 111)], [YES, YES, YES, NO, GONE]),
        ([(2, 0, 74)], [YES, YES, GONE, GONE, GONE]),
        ([(2, 0, 74), (4, 0, 40)], [YES, YES, GONE, GONE, GONE]),
        ([(5, 0, 58)], [GONE] * 5),
    ],
    ids=["other cuts", "one passage", "a part", "another passage"],
)
def test_evidence_holds_for_any_context(cut: list[tuple[int, int, int]], expected: list[str]) -> None:
    assert (len(PASSAGES[1]), len(PASSAGES[3]), len(PASSAGES[4])) == (74, 111, 58)
    chunks = tuple(Chunk(f"doc{n}", start, end, PASSAGES[n - 1][start:end]) for n, start, end in cut)
    measured = replace(record(), context=chunks, reranked=(), retrieved=())
    text = "\n".join(chunk.text for chunk in chunks)
    for source in ("context", "chunk"):
        task = t.Support(ANSWER_CLAIMS, text, "answer", source)
        assert words(JUDGE, task, question=with_evidence(), measured=measured) == expected
    # What the answer contradicts, the reference says: in its place stands what the context supports.
    held = ["attributed" if word in (YES, NO) else "not_attributed" for word in expected]
    assert words(JUDGE, t.Attribute(REFERENCE, text), question=with_evidence(), measured=measured) == held


def test_white_space_between_chunks_is_missed_only_without_its_text() -> None:
    text = "Ada swims. Ada sings."
    chunks = (Chunk("d", 0, 10, text[:10]), Chunk("d", 11, 21, text[11:]))
    measured = Record("q", context=chunks, answer="Ada swims and sings.")
    for known, word in ((text, YES), (None, GONE)):
        span = {"doc_id": "d", "start": 0, "end": 21, "text": known}
        claim = {"text": "Ada swims and sings.", "verdict": YES, "evidence": [span]}
        question = Question("q", "?", human={"answer": "Ada swims and sings.", "claims": [claim]})
        task = t.Support(("Ada swims and sings.",), "Ada swims.\nAda sings.", "answer", "context")
        assert words(JUDGE, task, question=question, measured=measured) == [word]


def test_equal_chunks_with_other_labels_cannot_be_told_apart() -> None:
    two = tuple(Chunk(name, 0, 9, "Ada sings") for name in ("d", "e"))
    measured = Record("q", context=two)
    for task in (t.Relevance("?", ("Ada sings",)), t.RelevantStatements("?", "Ada sings")):
        one = Question("q", "?", relevant=(Span("d", 0, 9),))
        assert "d and e hold the same text with different labels" in refused(task, one, measured)
        both = Question("q", "?", relevant=(Span("d", 0, 9), Span("e", 0, 9)))
        assert words(JUDGE, task, question=both, measured=measured) == ["relevant"]


@pytest.mark.parametrize(
    ("question", "task", "expected"),
    [
        (replace(QUESTION, human=None), "support", "it has no `human`"),
        (human(claims=None), "split", "nobody judged the claims of the answer"),
        (human(reference_claims=None), "attribute", "nobody judged the claims of the reference"),
        (human(declines=None), "decline", "nobody judged whether the answer declines"),
        (human(declines=None), "ask back", "nobody judged whether the answer declines"),
        (human(addresses_question=None), "grade relevance", "nobody judged whether the answer addresses the question"),
        (human(addresses_question=0.5), "relevance of statements", "the whole answer got 0.5"),
        (human(addresses_question=0.5), "ask back", "which question the answer answers"),
        (human(claims=[]), "grade groundedness", "nobody judged a claim of the answer"),
        (human(claims=[{"text": c, "verdict": YES} for c in ANSWER_CLAIMS]), "match", "whether the reference says"),
        (human(reference_claims=[{"text": c} for c in CLAIMS_OF_REFERENCE]), "attribute", "whether the context holds"),
        (replace(QUESTION, relevant=None), "relevance", "nobody judged which passages are relevant"),
    ],
    ids=str,
)
def test_a_missing_verdict_is_named(question: Question, task: str, expected: str) -> None:
    assert expected in refused(TASKS[task], question)


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ({}, "answer: field required"),
        ({"answer": "a", "claim": []}, "claim: extra inputs are not permitted"),
        (
            {"answer": "a", "claims": [{"text": "b", "verdict": "maybe"}]},
            "claims.0.verdict: input should be 'supported'",
        ),
        (
            {"answer": "a", "claims": [{"text": "b", "verdict": YES}, {"text": " b", "verdict": NO}]},
            "claims: expected each text once; 'b' stands there twice",
        ),
        (
            {
                "answer": "a",
                "claims": [{"text": "b", "verdict": GONE, "evidence": [{"doc_id": "d", "start": 0, "end": 1}]}],
            },
            "claims.0: expected evidence for what is supported or contradicted, and an empty list",
        ),
        ({"answer": "a", "claims": [{"text": " ", "verdict": YES}]}, "claims.0.text: expected text that is not blank"),
        ({"answer": "a", "addresses_question": 2}, "addresses_question: input should be less than or equal to 1"),
        ({"answer": "a", "reference_claims": [{"in_answer": True}]}, "reference_claims.0.text: field required"),
    ],
)
def test_faulty_verdicts_name_question_and_field(wrong: dict[str, Any], expected: str) -> None:
    with pytest.raises(JudgeFault) as caught:
        human_verdicts(Question("q7", "?", human=wrong))
    assert str(caught.value).startswith("`human` of question q7 cannot be used: ")
    assert expected in str(caught.value)


def test_a_declining_answer_is_noncommittal() -> None:
    assert words(JUDGE, TASKS["ask back"], question=human(declines=True)) == ["absent"]
    assert words(JUDGE, TASKS["decline"], question=human(declines=True)) == [YES]


def test_an_answer_beside_the_question_is_of_no_relevance() -> None:
    beside = human(addresses_question=0)
    assert words(JUDGE, TASKS["relevance of statements"], question=beside) == ["not_relevant"] * 5


def test_chunks_are_relevant_by_the_labelled_characters() -> None:
    """A document of two sentences, the second labelled: [20, 39) of it."""
    text = "First sentence here. Second one is it."
    question = Question("q", "?", relevant=(Span("d", 21, 38), Span("d", 0, 20, grade=0), Span("e", 0, 99)))
    first, second, whole = (Chunk("d", a, b, text[a:b]) for a, b in ((0, 20), (20, 38), (0, 38)))
    measured = Record("q", context=(first, second, whole))
    passages = (first.text, second.text, whole.text, second.text.strip())
    expected = ["not_relevant", "relevant", "relevant", "relevant"]
    assert words(JUDGE, t.Relevance("?", passages), question=question, measured=measured) == expected
    statements = found(JUDGE, t.RelevantStatements("?", whole.text), question=question, measured=measured)
    assert [(unit, word) for unit, word, *_ in statements] == [
        ("First sentence here.", "not_relevant"),
        ("Second one is it.", "relevant"),
    ]


def test_statements_that_people_wrote_come_before_sentences() -> None:
    judged = [{"chunk": PASSAGES[3], "statements": [{"text": "A unit comes.", "relevant": False}]}]
    (statement,) = found(JUDGE, TASKS["relevant statements"], question=human(chunks=judged))
    assert statement[:2] == ("A unit comes.", "not_relevant")


def test_the_only_chunk_of_a_context_is_the_context() -> None:
    alone = replace(record(), context=record().context[1:2])
    saw = human(context=[PASSAGES[1]])
    assert words(JUDGE, TASKS["support by chunk"], question=saw, measured=alone) == [YES, YES, YES, NO, GONE]


def test_reference_claims_of_the_test_set_serve_where_nobody_judged() -> None:
    question = replace(QUESTION, human=None, reference_claims=("One.", "Two."))
    assert [unit for unit, *_ in found(JUDGE, TASKS["split reference"], question=question)] == ["One.", "Two."]


def test_ragas_computes_faithfulness_from_the_verdicts() -> None:
    """3 of 5 claims are supported: 0.6, alone and 20 at once in one loop."""
    score = measure("ragas/faithfulness", QUESTION, record(), JUDGE)
    assert (score.value, score.reason) == (pytest.approx(0.6), None)
    assert score.judge == JUDGE.card
    assert [verdict.unit for verdict in score.evidence] == list(ANSWER_CLAIMS)
    faithfulness = scorer("ragas/faithfulness")
    assert isinstance(faithfulness, JudgedScorer)

    async def many() -> list[float | None]:
        async with Bench(JUDGE) as bench:
            scores = await asyncio.gather(*(faithfulness.measure(QUESTION, record(), bench) for _ in range(20)))
        return [score.value for score in scores]

    assert asyncio.run(many()) == [score.value] * 20


def test_what_hashed_words_cannot_tell_is_said() -> None:
    assert JUDGE.warnings(None) == (WARNING,)
    assert f"scikit-learn {version('scikit-learn')}" in str(JUDGE.card.embeddings)


def test_the_example_of_the_documentation_gives_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "test_sets.md").read_text(encoding="utf-8")
    files = dict(re.findall(r"^```\w+ file=(\S+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    assert sorted(files) == ["documents.jsonl", "questions.jsonl", "scored.py"]
    assert set(re.findall(r"`((?:ragas|deepeval|trulens|rubric)/\w+)`", page)) <= set(SCORERS)
    monkeypatch.chdir(tmp_path)
    for name, body in files.items():
        Path(name).write_text(body, encoding="utf-8")
    runpy.run_path("scored.py")
    (printed,) = re.findall(r"^```text\n(.*?)^```$", page[page.index("file=scored.py") :], re.MULTILINE | re.DOTALL)
    assert capsys.readouterr().out == printed
    assert [line.rpartition(" ")[2] for line in printed.splitlines()] == ["0.60", "0.80", "0.60"]


def test_another_answer_costs_its_score_only() -> None:
    score = measure("ragas/faithfulness", QUESTION, record(answer="It is covered."), JUDGE)
    assert score.status == "failed"
    assert "people judged another answer to question router" in str(score.reason)
