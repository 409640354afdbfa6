"""Windows of equal size: the plainest baseline."""

from __future__ import annotations

from runner.chunkers.sized import SizedChunker, trimmed


class FixedChunker(SizedChunker):
    """Windows of `size` units, each starting `size - overlap` units after the one before, whatever the text says there.

    Tokens are those of the whole document. A window cut out and tokenized again can count one more, since its first
    word may be cut in two; a character is never cut, so one of more tokens than `size` stands alone.
    """

    def spans(self, text: str) -> list[tuple[int, int]]:
        """The windows, trimmed of white space; blank ones left out."""
        return trimmed(text, self.windows(text, self.overlap))
