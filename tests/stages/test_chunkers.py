from __future__ import annotations

from itertools import pairwise
from time import perf_counter
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_text_splitters import RecursiveCharacterTextSplitter

from runner.chunkers.fixed import FixedChunker
from runner.chunkers.markdown import MarkdownChunker
from runner.chunkers.recursive import RecursiveChunker
from runner.chunkers.sentences import SentenceChunker
from runner.chunkers.sized import SizedChunker
from runner.errors import ConfigError
from runner.tokens import atoms, count
from tests.stages.contracts import ComponentContract, assert_nothing_forgotten
from tests.stages.test_tokens import HOSTILE, needs_bert

MARKUP = st.lists(
    st.sampled_from(
        ["# A\n", "## B b\r\n", "Title\n===\n", "```\n# no\n```\n", "> # q\n", "- # l\n", "\n", "word ", "I. "]
    )
    | HOSTILE,
    max_size=12,
).map("".join)
WARRANTY = "The warranty lasts exactly thirty-six months from purchase."
ENGLISH = (
    "# Heading\n\nThe first paragraph has two sentences. This is the second, which is a good deal longer.\n\n"
    "Another paragraph follows; it mentions Dr. Smith, who paid $3.50 at 5 p.m. on Monday.\n- a list\n- of points\n\n"
) * 8
quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.differing_executors])


class ChunkerContract(ComponentContract[SizedChunker]):
    kind = SizedChunker
    group = "chunker"
    refused: ClassVar[list[tuple[str, Any]]] = [
        ("size", 0),
        ("size", -5),
        ("size", "many"),
        ("overlap", -1),
        ("unit", "words"),
    ]
    keeps_size: ClassVar[set[str]] = {"characters", "llama2", "bert"}
    """Units in which a chunk, cut out and measured by itself, is at most `size` long, but for a single character."""

    def use(self, component: SizedChunker) -> list[tuple[int, int]]:
        return component.spans(ENGLISH)

    def check(self, chunker: SizedChunker, text: str) -> None:
        spans = chunker.spans(text)
        assert spans == chunker.spans(text)
        assert spans == sorted(spans, key=lambda span: span[0])
        assert all(0 <= start < end <= len(text) for start, end in spans)
        covered = {at for start, end in spans for at in range(start, end)}
        assert all(at in covered or character.isspace() for at, character in enumerate(text))
        for start, end in spans:
            assert text[start:end] == text[start:end].strip() != ""
            if end - start > 1 and chunker.unit in self.keeps_size:
                assert count(text[start:end], chunker.unit) <= chunker.size

    @quick
    @given(text=MARKUP, size=st.integers(1, 60), overlap=st.integers(0, 59))
    def test_spans_cover_the_text_and_keep_the_size_in_characters(self, text: str, size: int, overlap: int) -> None:
        self.check(self.build(size=size, overlap=min(overlap, size - 1)), text)

    @quick
    @given(text=MARKUP, size=st.integers(1, 30), overlap=st.integers(0, 29))
    def test_the_same_in_llama2_tokens(self, text: str, size: int, overlap: int) -> None:
        self.check(self.build(size=size, overlap=min(overlap, size - 1), unit="llama2"), text)

    @needs_bert
    @quick
    @given(text=MARKUP, size=st.integers(1, 30), overlap=st.integers(0, 29))
    def test_the_same_in_bert_tokens(self, text: str, size: int, overlap: int) -> None:
        self.check(self.build(size=size, overlap=min(overlap, size - 1), unit="bert"), text)

    @pytest.mark.parametrize(
        ("character", "unit"),
        [
            ("x", "characters"),
            ("#", "characters"),
            ("日", "llama2"),
            pytest.param("x", "bert", marks=needs_bert),
            pytest.param("\n", "bert", marks=needs_bert),
        ],
    )
    def test_much_text_without_spaces_takes_seconds(self, character: str, unit: str) -> None:
        text = character * 200_000
        began = perf_counter()
        spans = self.build(size=500, overlap=50, unit=unit).spans(text)
        assert perf_counter() - began < 15
        assert bool(spans) == bool(text.strip())
        assert max((end - start for start, end in spans), default=0) <= 500

    @pytest.mark.parametrize("text", ["", "  \n", "\u3000\x85\u2028"])
    def test_blank_text_has_no_chunk(self, text: str) -> None:
        assert self.build().spans(text) == []

    def test_short_text_is_one_chunk_without_the_space_around_it(self) -> None:
        assert self.build().spans("\n Short note. \n") == [(2, 13)]

    @pytest.mark.parametrize(("size", "overlap"), [(100, 100), (50, 64), (0, 0), (10, -1)])
    def test_impossible_limits_name_both_fields_and_values(self, size: int, overlap: int) -> None:
        with pytest.raises(ConfigError) as caught:
            self.build(size=size, overlap=overlap)
        assert all(part in str(caught.value) for part in ("size", "overlap", str(size), str(overlap)))

    def test_overlap_not_smaller_than_size_says_so(self) -> None:
        with pytest.raises(ConfigError, match=r"^chunker: overlap=64 must be smaller than size=50$"):
            self.build(size=50, overlap=64)

    def test_overlap_repeats_text(self) -> None:
        spans = self.build(size=120, overlap=30).spans("One two three four. " * 40)
        assert any(start < end for (_, end), (start, _) in pairwise(spans))


class TestFixed(ChunkerContract):
    conf = "fixed"
    changes: ClassVar[dict[str, Any]] = {"size": 100, "overlap": 10, "unit": "llama2"}

    keeps_size: ClassVar[set[str]] = {"characters"}

    def check(self, chunker: SizedChunker, text: str) -> None:
        super().check(chunker, text)
        pieces = atoms(text, chunker.unit)
        for start, end in chunker.spans(text):
            inside = [piece for piece in pieces if start < piece.end and piece.start < end]
            assert len(inside) == 1 or sum(piece.tokens for piece in inside) <= chunker.size

    def test_a_boundary_inside_a_label_stays_where_it_is(self) -> None:
        assert FixedChunker(size=30).spans(WARRANTY) == [(0, 30), (30, 59)]

    def test_windows_start_size_minus_overlap_apart(self) -> None:
        assert FixedChunker(size=4, overlap=1).spans("abcdefghij") == [(0, 4), (3, 7), (6, 10)]

    def test_a_character_is_never_cut(self) -> None:
        assert FixedChunker(size=3, unit="llama2").spans("a😀b") == [(0, 1), (1, 2), (2, 3)]


class TestRecursive(ChunkerContract):
    conf = "recursive"
    changes: ClassVar[dict[str, Any]] = {
        "size": 100,
        "overlap": 10,
        "unit": "llama2",
        "separators": ["\n", ""],
        "special_tokens": 2,
    }
    refused: ClassVar[list[tuple[str, Any]]] = [
        *ChunkerContract.refused,
        ("separators", []),
        ("separators", "\n"),
        ("special_tokens", -1),
    ]

    @quick
    @given(text=HOSTILE, size=st.integers(1, 40))
    def test_without_overlap_it_is_langchains_own(self, text: str, size: int) -> None:
        splitter = RecursiveCharacterTextSplitter(chunk_size=size, chunk_overlap=0)
        assert [text[start:end] for start, end in RecursiveChunker(size=size).spans(text)] == [
            chunk.strip() for chunk in splitter.split_text(text) if chunk.strip()
        ]

    def test_an_overlap_begins_at_a_word_where_it_can(self) -> None:
        text = "alpha beta gamma delta epsilon"
        spans = RecursiveChunker(size=16, overlap=6).spans(text)
        assert [text[start:end] for start, end in spans] == ["alpha beta", "beta gamma", "gamma delta", "delta epsilon"]
        assert RecursiveChunker(size=4, overlap=2).spans("abcdef") == [(0, 2), (0, 4), (2, 6)]

    @needs_bert
    def test_special_tokens_count_on_every_part(self) -> None:
        text = "one two three four five six seven eight"
        plain = RecursiveChunker(size=8, unit="bert").spans(text)
        assert plain == [(0, len(text))]
        assert len(RecursiveChunker(size=8, unit="bert", special_tokens=2).spans(text)) > 1


class TestSentences(ChunkerContract):
    conf = "sentences"
    changes: ClassVar[dict[str, Any]] = {"size": 100, "overlap": 1, "unit": "llama2", "language": "de"}
    keeps_size: ClassVar[set[str]] = {"characters"}

    def test_whole_sentences_are_packed(self) -> None:
        text = "Aaa bbb. Ccc ddd.  Eee fff. Ggg."
        assert SentenceChunker(size=17).spans(text) == [(0, 17), (19, 32)]
        assert SentenceChunker(size=16).spans(text) == [(0, 8), (9, 17), (19, 32)]

    def test_overlap_is_in_sentences(self) -> None:
        text = "Aaa bbb. Ccc ddd. Eee fff. Ggg hhh."
        spans = SentenceChunker(size=18, overlap=1).spans(text)
        assert spans == [(0, 17), (9, 26), (18, 35)]

    def test_overlap_never_blocks_the_way(self) -> None:
        text = "Aaa bbb. Ccc ddd. Eee fff. Ggg hhh."
        assert SentenceChunker(size=8, overlap=3).spans(text) == [(0, 8), (9, 17), (18, 26), (27, 35)]

    def test_a_sentence_too_long_is_cut_into_windows(self) -> None:
        assert SentenceChunker(size=30).spans("Ok. " + WARRANTY) == [(0, 3), (4, 34), (34, 63)]

    def test_overlap_repeats_text(self) -> None:
        spans = self.build(size=60, overlap=1).spans("One two three four. " * 40)
        assert all(start < end for (_, end), (start, _) in pairwise(spans))


class TestMarkdown(ChunkerContract):
    conf = "markdown"
    changes: ClassVar[dict[str, Any]] = {"size": 100, "overlap": 10, "unit": "llama2", "levels": 2}
    refused: ClassVar[list[tuple[str, Any]]] = [*ChunkerContract.refused, ("levels", 0), ("levels", 7)]

    def sections(self, text: str, **fields: Any) -> list[str]:
        return [text[start:end] for start, end in MarkdownChunker(size=1000, **fields).spans(text)]

    def test_sections_begin_at_headings(self) -> None:
        assert self.sections("Intro.\n\n# A\ntext\n\nB\n===\nmore\n## C\nend\n") == [
            "Intro.",
            "# A\ntext",
            "B\n===\nmore",
            "## C\nend",
        ]

    def test_what_only_looks_like_a_heading_begins_nothing(self) -> None:
        text = "# A\n```sh\n# comment\n```\n> # quoted\n\n- # listed\n\n#hashtag\n\n    # indented"
        assert self.sections(text) == [text]

    def test_a_heading_with_nothing_beneath_goes_with_the_next(self) -> None:
        assert self.sections("# A\n\n## B\ntext\n\n## C\nmore") == ["# A\n\n## B\ntext", "## C\nmore"]

    def test_levels(self) -> None:
        assert self.sections("# A\na\n## B\nb\n### C\nc", levels=2) == ["# A\na", "## B\nb\n### C\nc"]

    @pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
    def test_any_end_of_line(self, end: str) -> None:
        assert self.sections(f"😀{end}{end}# A{end}a{end}{end}# B{end}b") == ["😀", f"# A{end}a", f"# B{end}b"]

    def test_a_long_section_is_cut_like_recursive(self) -> None:
        body = "one two three four five six seven"
        spans = MarkdownChunker(size=12).spans(f"# A\nx\n\n# B\n{body}")
        assert spans[0] == (0, 5)
        assert all(end - start <= 12 for start, end in spans)


def test_every_chunker_has_a_suite() -> None:
    assert_nothing_forgotten("chunker", [TestFixed, TestRecursive, TestSentences, TestMarkdown])
