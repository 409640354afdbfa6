"""What the chunkers that know a size share: the unit, the limits, and the two ways to cut a text that is too long."""

from __future__ import annotations

import re
from abc import ABC
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import ClassVar

from pydantic import model_validator

from runner.errors import ComponentError
from runner.stage import Chunker
from runner.tokens import TokenizerName, atoms, count

SEPARATORS = ("\n\n", "\n", " ", "")
"""langchain's own: paragraphs, lines, words, characters."""

_WORD_START = re.compile(r"(?<!\S)\S")


class SizedChunker(Chunker, ABC):
    """A chunker whose chunks are at most `size` long."""

    packages: ClassVar[tuple[str, ...]] = ("tokenizers", "langchain-text-splitters")
    sources: ClassVar[tuple[str, ...]] = ("runner.tokens",)

    size: int
    """The longest chunk, in `unit`; at least 1."""
    overlap: int = 0
    """How much of the chunk before is repeated, in `unit`; from 0 to size - 1."""
    unit: TokenizerName = "characters"
    """characters = code points; llama2, bert = tokens of that tokenizer."""

    @model_validator(mode="after")
    def _limits(self) -> SizedChunker:
        if self.size < 1:
            raise ValueError(f"size={self.size} must be at least 1 (overlap={self.overlap})")
        if self.overlap < 0:
            raise ValueError(f"overlap={self.overlap} must not be negative (size={self.size})")
        if self.overlap >= self.size:
            raise ValueError(f"overlap={self.overlap} must be smaller than size={self.size}")
        return self

    def windows(self, text: str, overlap: int) -> list[tuple[int, int]]:
        """`text` as windows of at most `size` tokens of its own tokenization, each repeating up to `overlap` of them.

        A character that is more tokens than `size` stands alone.
        """
        parts = atoms(text, self.unit)
        spans: list[tuple[int, int]] = []
        first = 0
        while first < len(parts):
            after, tokens = first + 1, parts[first].tokens
            while after < len(parts) and tokens + parts[after].tokens <= self.size:
                tokens += parts[after].tokens
                after += 1
            spans.append((parts[first].start, parts[after - 1].end))
            if after == len(parts):
                break
            again, repeated = after, 0
            while again - 1 > first and repeated + parts[again - 1].tokens <= overlap:
                again -= 1
                repeated += parts[again].tokens
            first = again
        return spans

    def pieces(
        self, text: str, separators: Sequence[str] = SEPARATORS, special_tokens: int = 0
    ) -> list[tuple[int, int]]:
        """`text` cut by langchain at `size - overlap`, each piece then extended backwards by up to `overlap`.

        Blank pieces are left out. An extension begins at the start of a word, or of a token where it holds no start of
        a word. special_tokens: added to the length of every part that is measured. A single character that is longer
        than that stands alone.
        """
        from langchain_text_splitters import RecursiveCharacterTextSplitter

        @lru_cache(maxsize=1 << 16)
        def length(part: str) -> int:
            # A part of length 0 (white space in bert) would be repeated by langchain at the start of the next chunk.
            return count(part, self.unit) + special_tokens or min(len(part), 1)

        splitter = RecursiveCharacterTextSplitter(
            separators=list(separators),
            chunk_size=self.size - self.overlap,
            chunk_overlap=0,
            length_function=len if self.unit == "characters" and not special_tokens else length,
            keep_separator=True,
            strip_whitespace=False,
        )
        ends = list(accumulate(map(len, splitter.split_text(text)), initial=0))
        if ends[-1] != len(text):
            raise ComponentError(
                f"langchain's splitter made {ends[-1]} characters of {len(text)} with separators={list(separators)}; "
                "offsets cannot be known"
            )
        spans = [(start, end) for start, end in pairwise(ends) if not text[start:end].isspace()]
        if not self.overlap:
            return spans

        parts = atoms(text, self.unit)
        starts = [part.start for part in parts]
        tokens_before = list(accumulate((part.tokens for part in parts), initial=0))
        extended = spans[:1]
        for start, end in spans[1:]:
            here = bisect_left(starts, start)
            first = bisect_left(tokens_before, tokens_before[here] - self.overlap)
            begin = max(starts[first] if first < here else start, extended[-1][0])
            if word := _WORD_START.search(text, begin, start):
                begin = word.start()
            while begin < start and length(text[begin:end]) > self.size:
                following = bisect_right(starts, begin)
                begin = min(starts[following], start) if following < len(starts) else start
            extended.append((begin, end))
        return extended


def trimmed(text: str, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """`spans` without the white space at their ends; those that are blank, or inside the one before, are left out."""
    kept: list[tuple[int, int]] = []
    for start, end in spans:
        piece = text[start:end]
        body = piece.strip()
        start += len(piece) - len(piece.lstrip())
        end = start + len(body)
        if body and not (kept and kept[-1][0] <= start and end <= kept[-1][1]):
            kept.append((start, end))
    return kept
