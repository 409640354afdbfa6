from __future__ import annotations

import math
import pickle
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pytest

from runner.component import build
from runner.embedders.wordllama import WordLlamaEmbedder
from runner.errors import ComponentError, ConfigError
from runner.retrievers.scoring import best
from runner.stage import Query, Retriever
from tests.stages.contracts import HOSTILE, PASSAGES, QUERIES, ComponentContract, assert_nothing_forgotten, config_of

Ranking = list[tuple[int, float]]


class RetrieverContract(ComponentContract[Retriever]):
    kind = Retriever
    group = "retriever"
    refused: ClassVar[list[tuple[str, Any]]] = [("k", 0), ("k", -1), ("k", 2.5), ("k", "5")]

    def use(self, component: Retriever) -> Ranking:
        return self.search(PASSAGES, QUERIES[0], depth=3, retriever=component)

    def search(
        self, passages: Sequence[str], query: str, depth: int, retriever: Retriever | None = None, **changes: Any
    ) -> Ranking:
        """Index, a pickle as the store makes it, and a search; vectors are those of wordllama."""
        retriever = retriever or self.build(**changes)
        index = pickle.loads(pickle.dumps(retriever.index(passages)))
        if not retriever.uses_vectors:
            return retriever.search(index, None, Query(query), depth)
        embedding = WordLlamaEmbedder().embed(passages, [query])
        return retriever.search(index, embedding.passages, Query(query, embedding.queries[0]), depth)

    def test_the_passage_that_answers_comes_first(self) -> None:
        assert self.search(PASSAGES, QUERIES[0], 5)[0][0] == 2
        assert self.search(PASSAGES, QUERIES[1], 5)[0][0] == 4

    def test_a_ranking_is_positions_and_finite_scores_best_first(self) -> None:
        ranking = self.search(PASSAGES, "The central bank and the dog", 5)
        positions, scores = zip(*ranking, strict=True)
        assert all(type(position) is int for position in positions)
        assert all(type(score) is float and math.isfinite(score) for score in scores)
        assert len(set(positions)) == len(positions)
        assert list(scores) == sorted(scores, reverse=True)

    def test_equal_scores_put_the_smaller_position_first_also_at_the_cut(self) -> None:
        passages = [PASSAGES[0], *[PASSAGES[2]] * 40, PASSAGES[4]]
        for depth in (1, 3, 39, 40):
            assert [position for position, _ in self.search(passages, QUERIES[0], depth)] == list(range(1, depth + 1))

    def test_a_smaller_depth_is_the_start_of_a_larger_one(self) -> None:
        full = self.search(PASSAGES, "bank dog sugar cat", 5)
        assert len(full) > 2
        for depth in range(1, 6):
            assert self.search(PASSAGES, "bank dog sugar cat", depth) == full[:depth]

    def test_depth_beyond_the_corpus_gives_what_there_is(self) -> None:
        assert self.search(PASSAGES, QUERIES[0], 1000) == self.search(PASSAGES, QUERIES[0], 5)

    def test_k_does_not_change_a_search(self) -> None:
        assert self.search(PASSAGES, QUERIES[0], 5, k=1) == self.search(PASSAGES, QUERIES[0], 5, k=50)
        assert self.build(k=1).fingerprint_without("k") == self.build(k=50).fingerprint_without("k")

    def test_equal_searches_give_equal_bits(self) -> None:
        assert repr(self.search(PASSAGES, QUERIES[0], 5)) == repr(self.search(PASSAGES, QUERIES[0], 5))

    def test_other_queries_leave_no_trace(self) -> None:
        retriever = self.build()
        alone = self.search(PASSAGES, QUERIES[0], 5, retriever)
        for text in HOSTILE.values():
            self.search(PASSAGES, text, 5, retriever)
        assert self.search(PASSAGES, QUERIES[0], 5, retriever) == alone

    @pytest.mark.parametrize("name", HOSTILE)
    def test_hostile_queries_and_passages(self, name: str) -> None:
        ranking = self.search([*PASSAGES, HOSTILE[name]], HOSTILE[name], 10)
        assert all(0 <= position <= len(PASSAGES) for position, _ in ranking)
        if not HOSTILE[name].strip():
            assert ranking == []

    @pytest.mark.parametrize("passage", ["The plants make sugar.", "", "?!", "a"])
    def test_corpus_of_one_chunk(self, passage: str) -> None:
        ranking = self.search([passage], "plants", 5)
        assert [position for position, _ in ranking] in ([0], [])
        if "plants" in passage:
            assert ranking

    def test_corpus_without_a_word(self) -> None:
        ranking = self.search(["", "?!", " "], "plants", 5)
        assert sorted(position for position, _ in ranking) in ([0, 1, 2], [])

    def test_corpus_without_a_chunk(self) -> None:
        assert self.search([], "plants", 5) == []


class TestDense(RetrieverContract):
    conf = "dense"
    changes: ClassVar[dict[str, Any]] = {"k": 6}

    def ranked(self, passages: Any, query: Any, depth: int = 10) -> Ranking:
        vectors = np.array(passages, dtype=np.float32)
        return self.build().search(None, vectors, Query("", np.array(query, dtype=np.float32)), depth)

    def test_scores_are_inner_products(self) -> None:
        ranking = self.ranked([[1, 0], [0.6, 0.8], [0, 1], [-1, 0]], [1, 0])
        assert ranking == [(0, 1.0), (1, pytest.approx(0.6)), (2, 0.0), (3, -1.0)]

    def test_against_a_full_sort(self) -> None:
        generator = np.random.default_rng(0)
        vectors = generator.integers(-2, 3, size=(2000, 3)).astype(np.float32)
        query = np.array([1, 2, -1], dtype=np.float32)
        expected = sorted(range(2000), key=lambda i: (-float(vectors[i] @ query), i))
        for depth in (1, 7, 100, 1999, 2000, 5000):
            assert [position for position, _ in self.ranked(vectors, query, depth)] == expected[:depth]

    def test_equal_rows_tie_wherever_they_stand(self) -> None:
        generator = np.random.default_rng(1)
        vectors = generator.normal(size=(1003, 257)).astype(np.float32)
        twins = [0, 3, 500, 997, 1001, 1002]
        vectors[twins] = vectors[0]
        assert [position for position, _ in self.ranked(vectors, vectors[0], 6)] == twins

    def test_the_zero_query_finds_nothing(self) -> None:
        assert self.ranked([[1, 0], [0, 1]], [0, 0]) == []

    @pytest.mark.parametrize(
        ("vectors", "query", "message"),
        [(None, [1, 0], "needs vectors"), ([[1, 0]], None, "needs vectors"), ([[1, 0]], [1, 0, 0], "of 2 dimensions")],
    )
    def test_missing_or_unlike_vectors_are_refused(self, vectors: Any, query: Any, message: str) -> None:
        passages = None if vectors is None else np.array(vectors, dtype=np.float32)
        asked = Query("q", None if query is None else np.array(query, dtype=np.float32))
        with pytest.raises(ComponentError, match=message):
            self.build().search(None, passages, asked, 5)


class TestBm25(RetrieverContract):
    conf = "bm25"
    changes: ClassVar[dict[str, Any]] = {
        "k": 6,
        "method": "bm25+",
        "k1": 0.9,
        "b": 0.4,
        "delta": 1.0,
        "stop_words": None,
        "stemmer": None,
    }
    refused: ClassVar[list[tuple[str, Any]]] = [
        *RetrieverContract.refused,
        ("method", "bm26"),
        ("k1", -0.1),
        ("k1", math.inf),
        ("b", 1.5),
        ("delta", -1.0),
        ("stop_words", "klingon"),
        ("stemmer", "en"),
    ]

    @pytest.mark.parametrize("method", ["robertson", "lucene", "atire", "bm25l", "bm25+"])
    def test_chunks_without_a_word_of_the_query_are_not_ranked(self, method: str) -> None:
        passages = ["sugar", "sugar and light", "rain", "wind", "sun"]
        ranking = self.search(passages, "sugar sugar unknownword", 5, method=method)
        assert [position for position, _ in ranking] == [0, 1]

    @pytest.mark.parametrize("method", ["robertson", "atire"])
    def test_a_word_in_every_chunk_scores_0_and_is_ranked(self, method: str) -> None:
        assert self.search(["rain", "rain"], "rain", 5, method=method) == [(0, 0.0), (1, 0.0)]

    def test_the_formula_of_lucene(self) -> None:
        """By hand: idf = ln(1 + (N - df + .5) / (df + .5)), tf / (k1 (1 - b + b dl / avgdl) + tf)."""
        passages = ["sugar light sugar", "light rain", "rain wind storm cloud"]
        ranking = dict(self.search(passages, "sugar", 5, stemmer=None))
        expected = math.log(1 + 2.5 / 1.5) * 2 / (1.2 * (0.25 + 0.75 * 3 / 3) + 2)
        assert ranking == {0: pytest.approx(expected, rel=1e-6)}

    def test_stemmer_and_stop_words(self) -> None:
        passages = ["plants", "the rain"]
        assert [p for p, _ in self.search(passages, "planting the", 5)] == [0]
        assert [p for p, _ in self.search(passages, "planting the", 5, stop_words=None, stemmer=None)] == [1]

    def test_the_index_is_the_same_whatever_the_hash_seed(self) -> None:
        index = self.build().index(PASSAGES)
        assert list(index.vocab_dict) == sorted(index.vocab_dict)


class TestHybrid(RetrieverContract):
    conf = "hybrid"
    changes: ClassVar[dict[str, Any]] = {
        **TestBm25.changes,
        "pool": 50,
        "constant": 10,
        "bm25_weight": 2.0,
        "dense_weight": 0.5,
    }
    refused: ClassVar[list[tuple[str, Any]]] = [
        *TestBm25.refused,
        ("pool", 0),
        ("constant", -1),
        ("bm25_weight", -0.5),
        ("dense_weight", math.inf),
    ]

    def test_scores_are_sums_of_reciprocal_ranks(self) -> None:
        words = [position for position, _ in TestBm25().search(PASSAGES, QUERIES[1], 5)]
        vectors = [position for position, _ in TestDense().search(PASSAGES, QUERIES[1], 5)]
        expected = {p: (2 / (61 + words.index(p)) if p in words else 0) + 1 / (61 + vectors.index(p)) for p in vectors}
        assert dict(self.search(PASSAGES, QUERIES[1], 5, bm25_weight=2.0)) == pytest.approx(expected)

    def test_one_weight_of_0_leaves_the_other_ranking(self) -> None:
        def order(ranking: Ranking) -> list[int]:
            return [position for position, _ in ranking]

        assert order(self.search(PASSAGES, QUERIES[1], 5, bm25_weight=0.0)) == order(
            TestDense().search(PASSAGES, QUERIES[1], 5)
        )
        assert order(self.search(PASSAGES, QUERIES[1], 5, dense_weight=0.0)) == order(
            TestBm25().search(PASSAGES, QUERIES[1], 5)
        )

    def test_two_weights_of_0_are_refused(self) -> None:
        with pytest.raises(ConfigError, match="at least one must be above 0"):
            self.build(bm25_weight=0.0, dense_weight=0.0)

    def test_the_pool_bounds_what_is_found(self) -> None:
        assert len(self.search(PASSAGES, QUERIES[1], 5, pool=1)) <= 2

    def test_a_query_without_a_word_still_has_vectors(self) -> None:
        assert [position for position, _ in self.search(PASSAGES, "zyzzyva", 5)] == [
            position for position, _ in TestDense().search(PASSAGES, "zyzzyva", 5)
        ]


def test_best_decides_ties_at_the_cut_by_position() -> None:
    positions, scores = np.array([9, 4, 7, 2]), np.array([1.0, 2.0, 1.0, 1.0])
    chosen, kept = best((positions, scores), 3)
    assert (chosen.tolist(), kept.tolist()) == ([4, 2, 7], [2.0, 1.0, 1.0])


def test_every_retriever_has_a_suite() -> None:
    assert_nothing_forgotten("retriever", [TestDense, TestBm25, TestHybrid])


def test_a_key_of_another_retriever_is_refused_with_what_is_known() -> None:
    with pytest.raises(ConfigError, match=r"retriever\.k1"):
        build({**config_of("retriever", "dense"), "k1": 1.2}, Retriever, "retriever")
