"""Sections of Markdown, by heading."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field

from runner.chunkers.sized import SizedChunker, trimmed
from runner.tokens import count

_LINE_END = re.compile(r"\r\n?|\n")


class MarkdownChunker(SizedChunker):
    """One chunk for each section of a Markdown document; a section longer than `size` is cut like RecursiveChunker's.

    A section runs from its heading to the next one, of whatever level; a heading with nothing beneath it goes with the
    section that follows. Headings are those of CommonMark (`#` and underlined), so a `#` in a code block, or a heading
    in a list or quotation, begins no section. A text without headings is one section.

    overlap is repeated between the parts of one long section, never between sections.
    """

    packages = ("tokenizers", "langchain-text-splitters", "markdown-it-py")

    levels: Annotated[int, Field(ge=1, le=6)] = 6
    """Headings down to this level begin a section."""

    def spans(self, text: str) -> list[tuple[int, int]]:
        """The sections or their parts, trimmed of white space."""
        starts = self._sections(text)
        sections = trimmed(text, list(zip(starts, [*starts[1:], len(text)], strict=True)))
        spans: list[tuple[int, int]] = []
        for start, end in sections:
            section = text[start:end]
            parts = [(0, end - start)] if count(section, self.unit) <= self.size else self.pieces(section)
            spans += [(start + a, start + b) for a, b in parts]
        return trimmed(text, spans)

    def _sections(self, text: str) -> list[int]:
        from markdown_it import MarkdownIt

        lines = [0, *(end.end() for end in _LINE_END.finditer(text))]
        parser = MarkdownIt("commonmark").disable(["inline", "text_join"])
        starts = [0]
        after_heading = False
        for token in parser.parse(text):
            if token.level or token.type == "inline":
                continue
            if token.type == "heading_open" and token.map and int(token.tag[1:]) <= self.levels and not after_heading:
                starts.append(lines[token.map[0]])
            after_heading = token.type == "heading_close" or (after_heading and token.type == "heading_open")
        return sorted(set(starts))
