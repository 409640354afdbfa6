"""The frameworks beside each other on one record: what each says, however and wherever it is measured."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import joblib
import jsonschema
import pytest
from pyarrow import parquet

from adapters.base import SCORERS, JudgedScorer, scorer
from adapters.judge import Call, Judge, Reply
from adapters.judges.labels import LabelsJudge
from adapters.schema import Score, json_schema, to_json
from runner.results import write_parquet
from runner.scoring import score
from tests.adapters.router import QUESTION, record

# Worked by hand from the verdicts of tests/adapters/router.py:
ROUTER = {
    "ragas/faithfulness": 3 / 5,  # 3 supported of 5; contradicted and absent both count against
    "deepeval/faithfulness": 4 / 5,  # absent ("borderline") counts for, contradicted against
    "deepeval/faithfulness.penalize_ambiguous_claims-True": 3 / 5,  # absent counts against as well
    "trulens/groundedness.splitter-llm": 3 / 5,  # (3 + 3 + 3 + 0 + 0) / 3 / 5
    "ragas/context_precision": 1 / 2,  # relevant at ranks 2 and 4: (1/2 + 2/4) / 2
    "deepeval/contextual_precision": 1 / 2,
    "ragas/context_recall": 4 / 5,  # the chunks hold 4 claims of the reference's 5
    "deepeval/contextual_recall": 4 / 5,
    "ragas/factual_correctness": 3 / 5,  # P = R = 3/5, so F1 = 3/5
    "ragas/factual_correctness.mode-precision": 3 / 5,
    "ragas/factual_correctness.mode-recall": 3 / 5,
    "deepeval/answer_relevancy": 1.0,  # all five claims address the question
}
SPECS: list[Any] = [
    "ragas/faithfulness",
    "deepeval/faithfulness",
    {"id": "deepeval/faithfulness", "penalize_ambiguous_claims": True},
    {"id": "trulens/groundedness", "splitter": "llm"},
    "ragas/context_precision",
    "deepeval/contextual_precision",
    "ragas/context_recall",
    "deepeval/contextual_recall",
    "ragas/factual_correctness",
    {"id": "ragas/factual_correctness", "mode": "precision"},
    {"id": "ragas/factual_correctness", "mode": "recall"},
    "deepeval/answer_relevancy",
]


def measured(count: int = 1, judge: Judge | None = None, specs: Sequence[Any] = tuple(SPECS)) -> list[Score]:
    names = [f"router{number}" for number in range(count)]
    questions = [replace(QUESTION, id=name) for name in names]
    return list(score([scorer(spec) for spec in specs], questions, [*map(record, names)], judge or LabelsJudge()))


def values(scores: Sequence[Score], question: str = "router0") -> dict[str, float | None]:
    return {score.definition: score.value for score in scores if score.question_id == question}


@pytest.fixture(scope="module")
def alone() -> list[Score]:
    return measured()


def test_the_frameworks_own_code_gives_the_values_worked_by_hand(alone: list[Score]) -> None:
    assert {s.definition: s.reason for s in alone if s.reason} == {}
    assert values(alone) == pytest.approx(ROUTER, abs=1e-9)


def test_a_batch_of_fifty_gives_each_record_the_same_scores(alone: list[Score]) -> None:
    batch = measured(50)
    for number in range(50):
        assert values(batch, f"router{number}") == values(alone)


def test_a_running_event_loop_changes_nothing(alone: list[Score]) -> None:
    async def notebook() -> list[Score]:
        return measured()

    assert values(asyncio.run(notebook())) == values(alone)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_joblib_workers_give_the_same_scores(alone: list[Score], backend: str) -> None:
    for scores in joblib.Parallel(n_jobs=2, backend=backend)(joblib.delayed(measured)() for _ in range(2)):
        assert values(scores) == values(alone)


def test_every_score_says_its_definition_and_judge(alone: list[Score]) -> None:
    card = LabelsJudge().card
    for each in alone:
        assert each.judge == card
        assert each.fingerprint == scorer(SPECS[list(ROUTER).index(each.definition)]).definition.fingerprint
        assert each.evidence


class Breaking(LabelsJudge):
    """People's verdicts, spoiled for the calls of one question."""

    spoil: Any
    question: str

    async def ask(self, call: Call) -> Reply:
        """What people said, spoiled."""
        reply = await super().ask(call)
        if call.question.id != self.question:
            return reply
        spoiled: Callable[[str], str | Exception] = self.spoil
        text = spoiled(reply.text)
        if isinstance(text, Exception):
            raise text
        if text == "hang":
            await asyncio.sleep(60)
        return replace(reply, text=text)


def fewer(text: str) -> str:
    """The same reply with one entry in each list that had several."""
    data = json.loads(text) if text.startswith("{") else {}
    return json.dumps({name: value[:1] if isinstance(value, list) else value for name, value in data.items()})


def with_words(old: str, new: str) -> Callable[[str], str]:
    return lambda text: text.replace(old, new)


ILL = {
    "times out": (lambda text: "hang", "call_seconds"),
    "raises": (lambda text: RuntimeError("the line is dead"), "the line is dead"),
    "prose": (lambda text: "I am unable to assess this.", "pars"),
    "half an object": (lambda text: text[: len(text) // 2] if text.startswith("{") else "{", "pars"),
    "null": (lambda text: "null", "pars"),
    "nothing": (lambda text: "", "pars"),
}


@pytest.mark.parametrize("name", ILL)
def test_an_ill_judge_costs_only_that_score(alone: list[Score], name: str) -> None:
    spoil, said = ILL[name]
    judge = Breaking(spoil=spoil, question="router1", call_seconds=0.5 if name == "times out" else 60)
    specs = ["ragas/faithfulness", "deepeval/faithfulness", "ragas/context_precision", "deepeval/contextual_recall"]
    scores = measured(3, judge, specs)
    for each in scores:
        if each.question_id == "router1":
            assert (each.value, each.status) == (None, "failed")
            assert said in (each.reason or "")
        else:
            assert each.value == values(alone)[each.definition]


@pytest.mark.parametrize(
    ("spec", "spoil", "said"),
    [
        ("ragas/faithfulness", with_words('"verdict": 0', '"verdict": 7'), ("7", "range")),
        ("ragas/context_precision", with_words('"verdict": 1', '"verdict": 2'), ("2", "range")),
        ("ragas/context_recall", with_words('"attributed": 1', '"attributed": 5'), ("5", "range")),
        ("deepeval/faithfulness", with_words('"yes"', '"Yes."'), ("Yes.", "yes")),
        ({"id": "trulens/groundedness", "splitter": "llm"}, with_words('"score": 3', '"score": 7'), ("7", "range")),
        ({"id": "trulens/groundedness", "splitter": "llm"}, with_words('"score": 3', '"score": null'), ("score",)),
        ("trulens/context_relevance", with_words('"score": 3', '"score": "high"'), ("score", "high")),
        ("ragas/context_recall", lambda text: '{"classifications": []}', ("0",)),
    ],
)
def test_words_and_numbers_outside_the_scale_are_no_scores(spec: Any, spoil: Any, said: tuple[str, ...]) -> None:
    (other, spoiled) = measured(2, Breaking(spoil=spoil, question="router1"), [spec])
    assert other.value is not None
    assert spoiled.value is None
    for word in said:
        assert word in (spoiled.reason or "")


def test_scores_hold_to_the_exported_schema_and_both_files_hold_the_same_rows(
    alone: list[Score], tmp_path: Path
) -> None:
    broken = measured(2, Breaking(spoil=ILL["prose"][0], question="router1"), ["ragas/faithfulness"])
    blank = score([scorer("deepeval/faithfulness")], [QUESTION], [record(answer=" ")], LabelsJudge())
    scores = [*alone, *broken, *blank]
    assert {each.status for each in scores} == {"computed", "failed", "not_applicable"}
    schema = json_schema(Score)
    rows = [json.loads(to_json(each)) for each in scores]
    for row in rows:
        jsonschema.validate(row, schema)
    write_parquet(tmp_path / "scores.parquet", scores, "0-00000000")
    table = parquet.read_table(tmp_path / "scores.parquet").to_pylist()
    for row in table:
        if row["judge"]:
            row["judge"]["settings"] = json.loads(row["judge"]["settings"])
    assert table == rows


def test_every_registered_definition_has_a_whole_card() -> None:
    for name in SCORERS:
        card = scorer(name).definition
        for prose in (card.asks, card.unit, card.hit, card.formula, card.nothing_to_judge, card.source, card.version):
            assert prose.strip(), name
        low, high = card.range
        assert low < high
        if isinstance(scorer(name), JudgedScorer):
            assert card.prompts or "embed" in card.calls, name
            assert "unavailable" not in card.prompts, card.prompts
