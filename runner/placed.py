"""Where the passages of a system of one's own stand in the documents, so that labels can judge them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from zlib import crc32

from adapters.schema import Chunk
from runner.dataset import Document
from runner.stage import Passage

SHORTEST = 24
"""Characters, white space left out, from which a line of a passage is looked for by itself in all documents."""
SHORTEST_IN_NAMED = 8
"""The same, in the document that the passage names."""


class Places:
    """Looks passages up in documents: at the place they name, then as they are, then whatever their white space, then
    by their longest line and the lines around it, because systems put titles and summaries before what they cut out."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self._documents: Mapping[str, Document] = {document.doc_id: document for document in documents}

    def chunk(self, passage: Passage) -> Chunk:
        """The passage as a chunk of its document: the document's own characters. One that stands in no document is a
        chunk without a place (see `is_placed`)."""
        named = self._documents.get(passage.doc_id or "")
        text = passage.text
        if named and passage.start is not None and passage.start >= 0 and named.text.startswith(text, passage.start):
            return _cut(named, passage.start, passage.start + len(text))
        looked_at = [named] if named else list(self._documents.values())
        for search in (_as_it_is, self._squeezed, self._by_lines):
            for document in looked_at if text.strip() else ():
                if found := search(document, text, bool(named)):
                    return found
        place = crc32(text.encode("utf-8", "surrogatepass"))
        return Chunk(passage.doc_id or "(not in the documents)", place, place, text)

    @cached_property
    def _without_space(self) -> Mapping[str, tuple[str, list[int]]]:
        """Every document without white space, and where each of these characters stands."""
        found = {}
        for doc_id, document in self._documents.items():
            places = [place for place, char in enumerate(document.text) if not char.isspace()]
            found[doc_id] = ("".join(document.text[place] for place in places), places)
        return found

    def _squeezed(self, document: Document, text: str, named: bool) -> Chunk | None:
        whole, places = self._without_space[document.doc_id]
        squeezed = _squeeze(text)
        at = whole.find(squeezed)
        return None if at < 0 else _cut(document, places[at], places[at + len(squeezed) - 1] + 1)

    def _by_lines(self, document: Document, text: str, named: bool) -> Chunk | None:
        whole, places = self._without_space[document.doc_id]
        lines = [squeezed for line in text.splitlines() if (squeezed := _squeeze(line))]
        longest = max(lines, key=len)
        start = whole.find(longest)
        if len(longest) < (SHORTEST_IN_NAMED if named else SHORTEST) or start < 0:
            return None
        end, at = start + len(longest), lines.index(longest)
        for before in reversed(lines[:at]):
            if not whole.endswith(before, 0, start):
                break
            start -= len(before)
        for after in lines[at + 1 :]:
            if not whole.startswith(after, end):
                break
            end += len(after)
        return _cut(document, places[start], places[end - 1] + 1)


def is_placed(chunk: Chunk) -> bool:
    """Whether a chunk is a part of a document; one that is not has no length, so that it holds no label."""
    return chunk.end > chunk.start or not chunk.text


def _squeeze(text: str) -> str:
    return re.sub(r"\s+", "", text)


def _as_it_is(document: Document, text: str, named: bool) -> Chunk | None:
    at = document.text.find(text)
    return None if at < 0 else _cut(document, at, at + len(text))


def _cut(document: Document, start: int, end: int) -> Chunk:
    return Chunk(document.doc_id, start, end, document.text[start:end])
