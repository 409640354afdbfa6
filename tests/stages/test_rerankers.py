from __future__ import annotations

import math
import re
from typing import Any, ClassVar

import pytest

from runner.component import build
from runner.errors import ComponentError, ConfigError, MissingExtra
from runner.rerankers.llm import rating
from runner.stage import Reranker
from tests.stages.answering_stub import AnsweringStub, answering_stub  # noqa: F401
from tests.stages.contracts import (
    HOSTILE,
    PASSAGES,
    QUERIES,
    ComponentContract,
    assert_nothing_forgotten,
    config_of,
    in_another_process,
    needs_onnx,
)
from tests.stages.openai_stub import chat, status


class RerankerContract(ComponentContract[Reranker]):
    kind = Reranker
    group = "reranker"

    def use(self, component: Reranker) -> list[float] | None:
        return component.scores(QUERIES[0], PASSAGES)

    def test_no_passages(self) -> None:
        assert self.build().scores(QUERIES[0], []) in ([], None)


class ScoringContract(RerankerContract):
    refused: ClassVar[list[tuple[str, Any]]] = [("candidates", 0), ("candidates", -1), ("candidates", "20")]

    def scores(self, query: str, passages: Any) -> list[float]:
        scores = self.build().scores(query, passages)
        assert scores is not None
        return scores

    def test_one_finite_float_a_passage(self) -> None:
        scores = self.scores(QUERIES[0], PASSAGES)
        assert len(scores) == len(PASSAGES)
        assert all(type(score) is float and math.isfinite(score) for score in scores)

    def test_the_passage_that_answers_scores_highest(self) -> None:
        for query, best in zip(QUERIES, (2, 4), strict=True):
            scores = self.scores(query, PASSAGES)
            assert scores.index(max(scores)) == best

    def test_equal_calls_give_equal_bits(self) -> None:
        assert self.scores(QUERIES[0], PASSAGES) == self.scores(QUERIES[0], PASSAGES)

    def test_a_score_depends_on_nothing_but_its_pair(self) -> None:
        passages = [*PASSAGES, *HOSTILE.values()]
        together = self.scores(QUERIES[0], passages)
        assert self.scores(QUERIES[0], passages[::-1]) == together[::-1]
        assert [self.scores(QUERIES[0], [passage])[0] for passage in passages] == together

    def test_equal_passages_score_alike(self) -> None:
        first, *_, last = self.scores(QUERIES[0], [PASSAGES[2], *PASSAGES, PASSAGES[2]])
        assert first == last

    @pytest.mark.parametrize("name", HOSTILE)
    def test_hostile_texts(self, name: str) -> None:
        hostile = HOSTILE[name]
        for query, passages in ((hostile, PASSAGES), (QUERIES[0], [hostile]), (hostile, [hostile])):
            scores = self.scores(query, passages)
            assert len(scores) == len(passages)
            assert all(map(math.isfinite, scores))

    def test_scores_do_not_depend_on_the_process_or_its_threads(self) -> None:
        if not self.embedded:
            pytest.skip("the other process has no stub")
        code = (
            f"from runner.stage import Reranker; r = build(config_of('reranker', {self.conf!r}), Reranker, '')\n"
            "print(r.scores(QUERIES[0], PASSAGES))"
        )
        threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        assert in_another_process(code, **threads) == str(self.scores(QUERIES[0], PASSAGES))


class TestNone(RerankerContract):
    conf = "none"
    changes: ClassVar[dict[str, Any]] = {}
    refused: ClassVar[list[tuple[str, Any]]] = [("candidates", 20)]

    def test_every_field_that_counts_changes_the_fingerprint(self) -> None:
        assert set(type(self.build()).model_fields) == {"candidates"}, "its only value is 0"

    def test_it_keeps_the_order(self) -> None:
        assert self.build().scores(QUERIES[0], PASSAGES) is None


class TestLateInteraction(ScoringContract):
    conf = "late_interaction"
    changes: ClassVar[dict[str, Any]] = {"candidates": 30, "dimensions": 64, "weight_power": 1.0}
    refused: ClassVar[list[tuple[str, Any]]] = [
        *ScoringContract.refused,
        ("dimensions", 32),
        ("weight_power", -1.0),
        ("weight_power", math.nan),
    ]

    def test_a_passage_scores_1_against_itself_and_blanks_score_by_rule(self) -> None:
        assert self.scores(PASSAGES[0], [PASSAGES[0], ""]) == [pytest.approx(1, abs=1e-6), -1.0]
        assert self.scores("", PASSAGES[:2]) == [0.0, 0.0]

    def test_rare_words_of_the_query_outweigh_frequent_ones(self) -> None:
        rare, frequent = self.scores("the photosynthesis of the", ["photosynthesis", "the of the of"])
        assert rare > frequent


@needs_onnx
class TestCrossEncoder(ScoringContract):
    conf = "cross_encoder"
    changes: ClassVar[dict[str, Any]] = {
        "candidates": 30,
        "model_sha256": "0" * 64,
        "tokenizer_sha256": "0" * 64,
        "max_length": 128,
    }
    refused: ClassVar[list[tuple[str, Any]]] = [*ScoringContract.refused, ("max_length", 1), ("threads", 0)]

    def test_relevant_is_above_0_and_irrelevant_below(self) -> None:
        scores = self.scores(QUERIES[0], PASSAGES)
        assert scores[2] > 0 > max(scores[0], scores[1], scores[3])

    def test_a_model_with_more_than_one_output_is_refused(self) -> None:
        embedder = config_of("embedder", "bge_small")
        with pytest.raises(ComponentError, match="a cross-encoder gives one"):
            self.build(model=embedder["model"], model_sha256=embedder["model_sha256"]).scores("a", ["b"])


def test_without_onnxruntime_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.metadata import PackageNotFoundError

    def version(package: str) -> str:
        raise PackageNotFoundError(package)

    monkeypatch.setattr("runner.component.version", version)
    with pytest.raises(MissingExtra, match=r'pip install "paribus\[onnx\]"'):
        build(config_of("reranker", "cross_encoder"), Reranker, "reranker").scores("a", ["b"])


def rate(body: dict[str, Any]) -> Any:
    """Plays a model: the share of the question's words that the passage has, times 10."""
    parts = r"Question: (.*?)\n\nPassage:\n<passage>\n(.*)\n</passage>"
    question, passage = re.findall(parts, body["messages"][0]["content"], re.DOTALL)[0]
    words = set(re.findall(r"\w{4,}", question.lower()))
    return chat(str(round(10 * len(words & set(re.findall(r"\w{4,}", passage.lower()))) / max(len(words), 1))))


class TestLlm(ScoringContract):
    conf = "llm"
    embedded = False
    changes: ClassVar[dict[str, Any]] = {
        "candidates": 30,
        "base_url": "http://localhost:8080/v1",
        "model": "other",
        "temperature": 0.5,
        "seed": 1,
        "max_tokens": 16,
        "options": {"logprobs": True},
    }
    refused: ClassVar[list[tuple[str, Any]]] = [
        *ScoringContract.refused,
        ("base_url", "localhost"),
        ("concurrency", 0),
        ("temperature", 3.0),
    ]

    @pytest.fixture(autouse=True)
    def _server(self, answering_stub: AnsweringStub) -> None:  # noqa: F811
        self.stub = answering_stub
        answering_stub.answer_with(rate)

    def build(self, **changes: Any) -> Any:
        return super().build(**{"base_url": self.stub.base_url, **changes})

    def test_the_fingerprint_is_the_same_in_another_process(self) -> None:
        pytest.skip("the address of the stub differs; the generator with the same fields is held to it")

    def test_concurrency_changes_nothing(self) -> None:
        one, eight = self.build(concurrency=1), self.build(concurrency=8)
        assert one.scores(QUERIES[0], PASSAGES) == eight.scores(QUERIES[0], PASSAGES)
        assert one.fingerprint == eight.fingerprint

    def test_equal_passages_are_rated_once(self) -> None:
        assert self.build().scores(QUERIES[0], ["a", "a", "b"]) == [0.0, 0.0, 0.0]
        assert len(self.stub.requests) == 2

    @pytest.mark.parametrize(
        ("reply", "message"),
        [
            (chat("It depends."), "the reply is 'It depends.'"),
            (chat("7", finish_reason="length"), r"raise max_tokens=256"),
            (status(401), "api_key_env"),
        ],
    )
    def test_what_is_no_rating_is_an_error_and_no_number(self, reply: Any, message: str) -> None:
        self.stub.script(reply)
        with pytest.raises(ComponentError, match=message):
            self.build().scores(QUERIES[0], PASSAGES)


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("7", 7),
        (" 10\n", 10),
        ("0", 0),
        ("**8**", 8),
        ("7.5", 7.5),
        ("8/10", 8),
        ("8 out of 10.", 8),
        ("Rating: 6", 6),
        ('{"rating": 9}', 9),
        ("Score = 3\nThe passage names the year 2020 and 4 banks.", 3),
        ("<think>Maybe 3, maybe 4.</think>\n5", 5),
        ("4. I stand by 4.", 4),
    ],
)
def test_a_readable_rating(reply: str, value: float) -> None:
    assert rating(reply) == value


@pytest.mark.parametrize(
    "reply",
    ["", "high", "11", "-1", "1e9", "NaN", "7 or 8", "between 3 and 5", "Rating: 3\nRating: 4", "1,000", "12/10"],
)
def test_an_unreadable_rating(reply: str) -> None:
    with pytest.raises(ComponentError, match="a rating from 0 to 10 was asked for"):
        rating(reply)


def test_every_reranker_has_a_suite() -> None:
    assert_nothing_forgotten("reranker", [TestNone, TestLateInteraction, TestCrossEncoder, TestLlm])


def test_a_wrong_number_of_candidates_is_a_sentence() -> None:
    with pytest.raises(ConfigError, match=r"reranker\.candidates=0 is not allowed"):
        build({**config_of("reranker", "late_interaction"), "candidates": 0}, Reranker, "reranker")
