from __future__ import annotations

from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters.schema import Chunk, Ranked
from runner.assemblers.budget import BudgetAssembler
from runner.stage import Assembler, Context
from tests.stages.contracts import ComponentContract, assert_nothing_forgotten


def ranking(*texts: str) -> list[Ranked]:
    return [Ranked(Chunk("d", 100 * i, 100 * i + len(text), text), 1 / (i + 1), i + 1) for i, text in enumerate(texts)]


def texts(context: Context) -> list[str]:
    return [chunk.text for chunk in context.chunks]


def reasons(context: Context) -> list[tuple[str, str]]:
    return [(dropped.chunk.text, dropped.reason) for dropped in context.dropped]


class AssemblerContract(ComponentContract[Assembler]):
    kind = Assembler
    group = "context"
    changes: ClassVar[dict[str, Any]] = {
        "max_tokens": None,
        "tokenizer": "characters",
        "order": "rank",
        "drop_duplicates": False,
    }
    refused: ClassVar[list[tuple[str, Any]]] = [
        ("max_tokens", 0),
        ("max_tokens", "10"),
        ("tokenizer", "gpt"),
        ("order", "random"),
    ]

    def use(self, component: Assembler) -> Context:
        return component.assemble(ranking("one", "two", "one"))

    @settings(deadline=None, suppress_health_check=[HealthCheck.differing_executors])
    @given(texts=st.lists(st.text(max_size=6), max_size=9), budget=st.integers(1, 20) | st.none(), drop=st.booleans())
    def test_every_chunk_is_in_the_context_or_dropped_once(
        self, texts: list[str], budget: int | None, drop: bool
    ) -> None:
        given = ranking(*texts)
        assembler = self.build(max_tokens=budget, tokenizer="characters", drop_duplicates=drop)
        context = assembler.assemble(given)
        out = [id(chunk) for chunk in context.chunks] + [id(dropped.chunk) for dropped in context.dropped]
        assert sorted(out) == sorted(id(ranked.chunk) for ranked in given)
        assert budget is None or sum(len(chunk.text) for chunk in context.chunks) <= budget
        assert context == assembler.assemble(given)

    def test_nothing_retrieved_is_an_empty_context(self) -> None:
        assert self.build().assemble([]) == Context((), ())


class TestBudget(AssemblerContract):
    conf = "budget"
    changes: ClassVar[dict[str, Any]] = {**AssemblerContract.changes, "order": "edges"}


class TestEdges(AssemblerContract):
    conf = "edges"


class TestReversed(AssemblerContract):
    conf = "reversed"


@pytest.mark.parametrize(
    ("order", "expected"),
    [("rank", "abcde"), ("reversed", "edcba"), ("edges", "acedb")],
    ids=["rank", "reversed", "edges"],
)
def test_order(order: Any, expected: str) -> None:
    assert "".join(texts(BudgetAssembler(order=order).assemble(ranking(*"abcde")))) == expected


def test_the_first_that_does_not_fit_ends_the_taking() -> None:
    context = BudgetAssembler(max_tokens=10, tokenizer="characters").assemble(ranking("12345", "123456", "1"))
    assert texts(context) == ["12345"]
    assert reasons(context) == [("123456", "budget"), ("1", "budget")]


def test_a_budget_that_is_met_exactly_is_kept() -> None:
    assert texts(BudgetAssembler(max_tokens=4, tokenizer="characters").assemble(ranking("12", "34", "5"))) == [
        "12",
        "34",
    ]


def test_a_best_chunk_beyond_the_budget_leaves_nothing() -> None:
    context = BudgetAssembler(max_tokens=3, tokenizer="characters").assemble(ranking("1234", "1"))
    assert texts(context) == []
    assert reasons(context) == [("1234", "budget"), ("1", "budget")]


@settings(deadline=None)
@given(lengths=st.lists(st.integers(1, 9), max_size=8), budget=st.integers(1, 40))
def test_a_larger_budget_holds_all_that_a_smaller_one_held(lengths: list[int], budget: int) -> None:
    given = ranking(*(str(i) * length for i, length in enumerate(lengths)))
    small, large = (
        BudgetAssembler(max_tokens=limit, tokenizer="characters").assemble(given) for limit in (budget, budget + 5)
    )
    assert texts(large)[: len(small.chunks)] == texts(small)


def test_a_duplicate_is_the_same_text_or_the_same_span_and_costs_nothing() -> None:
    given = ranking("a  b\n", "a b", "c")
    given.append(Ranked(Chunk("d", 0, 5, "of another tool"), 0.1, 4))
    context = BudgetAssembler(max_tokens=6, tokenizer="characters").assemble(given)
    assert texts(context) == ["a  b\n", "c"]
    assert reasons(context) == [("a b", "duplicate"), ("of another tool", "duplicate")]


def test_duplicates_stay_where_that_is_asked_for() -> None:
    assert texts(BudgetAssembler(drop_duplicates=False).assemble(ranking("a", "a"))) == ["a", "a"]


def test_the_same_place_of_another_document_is_no_duplicate() -> None:
    given = [Ranked(Chunk(doc, 0, 1, text), 1.0, i) for i, (doc, text) in enumerate([("d", "a"), ("e", "b")], 1)]
    assert texts(BudgetAssembler().assemble(given)) == ["a", "b"]


def test_every_yaml_has_a_suite() -> None:
    assert_nothing_forgotten("context", [TestBudget, TestEdges, TestReversed])
