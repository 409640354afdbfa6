"""langchain's recursive splitter with offsets and an overlap in words; the default."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from runner.chunkers.sized import SEPARATORS, SizedChunker, trimmed


class RecursiveChunker(SizedChunker):
    """Cuts at the first separator that makes the parts small enough, else at the next one, then packs the parts.

    The cutting is langchain's RecursiveCharacterTextSplitter at `size - overlap`; each chunk is then extended backwards
    by up to `overlap` units, to the start of a word. With overlap 0 the chunks are langchain's own. (Its own overlap
    repeats whole parts only: none at all where parts are long.)

    Tokens are summed over the parts. In bert that is what the chunk has; in llama2, whose pieces cross words, a chunk
    has fewer.
    """

    separators: Annotated[tuple[str, ...], Field(strict=False, min_length=1)] = SEPARATORS
    """Tried in this order; one stays at the start of the part that it precedes. "" = between any two characters; where
    it is missing, a part without a separator stays whole, however long."""
    special_tokens: Annotated[int, Field(ge=0)] = 0
    """What a model adds to every text ([CLS] and [SEP]: 2). Like the length functions that users hand to langchain, it
    counts on every part that is measured, so chunks come out shorter than `size`. Chroma's report on chunking (Smith
    and Troynikov 2024) measured so: size 200, unit bert, special_tokens 2 and its separators give its 2,523 chunks."""

    def spans(self, text: str) -> list[tuple[int, int]]:
        """The pieces, trimmed of white space; blank ones left out."""
        return trimmed(text, self.pieces(text, self.separators, self.special_tokens))
