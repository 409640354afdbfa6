"""Where the passages of a system of one's own stand in the documents, so that labels can judge them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import takewhile
from pathlib import PurePosixPath
from typing import TYPE_CHECKING
from unicodedata import combining, normalize
from zlib import crc32

from adapters.schema import Chunk
from adapters.sentences import well_formed
from runner.dataset import Document
from runner.stage import Passage

if TYPE_CHECKING:
    from numpy import int64, uint32
    from numpy.typing import NDArray

BLOCK = 12
"""Letters of the blocks by which the documents are indexed: a run of 2 * BLOCK - 1 letters holds a whole one."""
SHORTEST = 2 * BLOCK
"""Letters that a part of a passage has in common with a document at least; a whole passage may be shorter."""
GAP = 200
"""Letters of a document that a system may have taken out between two parts of a passage: a tag, a link's address."""
MOST_TRIED = 1000
"""Places that are compared letter by letter for one passage, the likeliest first."""
EDGE = 200
"""Characters around a run of letters that are looked through for the marks that belong to it."""

_MARKS = re.compile(r"[\W_]+")


class Places:
    """Looks passages up in documents: at the place they name, then by the longest run of words in common. Only letters
    and digits count there, because systems put titles and summaries before what they cut out, strip mark-up, and
    change white space, quotes and capitals."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self._documents = documents
        self._numbers = {document.doc_id: number for number, document in enumerate(documents)}

    def chunk(self, passage: Passage) -> Chunk:
        """The passage as a chunk of its document: the document's own characters. One that stands in no document, or in
        several and does not say in which, is a chunk without a place (see `is_placed`)."""
        text, start = passage.text, passage.start
        number = self._numbers.get(passage.doc_id or "")
        if number is not None and start is not None and start >= 0:
            document = self._documents[number]
            if text and document.text.startswith(text, start):
                return Chunk(document.doc_id, start, start + len(text), text)
        for looked_at in (*self._by_path(passage.doc_id or ""), None) if number is None else (number,):
            if found := self._found(text, looked_at, start or 0):
                return found
        text = well_formed(text)
        place = crc32(text.encode())
        return Chunk(well_formed(passage.doc_id or "(not in the documents)"), place, place, text)

    def _by_path(self, name: str) -> list[int]:
        """The one document that a path means: `docs/warranty.md` means `warranty`, and the other way round."""
        parts = _parts(name)
        found = [
            number
            for theirs, number in self._by_last_part.get(parts[:1], ())
            if all(mine == other for mine, other in zip(parts, theirs, strict=False))
        ]
        return found if len(found) == 1 else []

    @cached_property
    def _by_last_part(self) -> Mapping[tuple[str, ...], list[tuple[tuple[str, ...], int]]]:
        found: dict[tuple[str, ...], list[tuple[tuple[str, ...], int]]] = {}
        for doc_id, number in self._numbers.items():
            found.setdefault(_parts(doc_id)[:1], []).append((_parts(doc_id), number))
        return found

    @cached_property
    def _corpus(self) -> _Corpus:
        return _Corpus([letters(document.text) for document in self._documents])

    def _found(self, text: str, number: int | None, start: int) -> Chunk | None:
        """The part of one document that `text` is; where it is several, the one that is the same to the character, then
        the one nearest to `start`."""
        corpus, asked, stand = self._corpus, letters(text), _standing(text)
        words = [0, *_first_of_words(stand), len(asked)]
        longest = corpus.longest(asked, words, number)
        if len({corpus.number(run.at) for run in longest}) != 1:
            return None
        number = corpus.number(longest[0].at)
        if longest[0].length < len(asked):
            others = list(corpus.runs(asked, words, number))
            longest = [_chained(run, others) for run in longest]
        document = self._documents[number]
        found = [_cut(document, run, corpus.starts[number], text, stand) for run in longest]
        return min(found, key=lambda chunk: (chunk.text != text, abs(chunk.start - start), chunk.start))


@dataclass(frozen=True, slots=True, order=True)
class _Run:
    """Letters [first, end) of a passage and [at, until) of the corpus that are the same, but for what a system took out
    or put in between."""

    first: int
    end: int
    at: int
    until: int

    @property
    def length(self) -> int:
        return self.end - self.first


class _Corpus:
    """The letters of all documents, and where each of their blocks stands. starts: of each document, and of the end."""

    def __init__(self, documents: Sequence[str]) -> None:
        import numpy as np

        self._text = "\n".join(documents)
        lengths = [0, *(len(document) + 1 for document in documents)]
        self.starts: list[int] = np.cumsum(lengths).tolist()
        blocks = (hash(self._text[place : place + BLOCK]) for place in range(0, len(self._text), BLOCK))
        hashes = np.fromiter(blocks, np.int64)
        self._order = np.argsort(hashes, kind="stable")
        self._hashes = hashes[self._order]

    def number(self, at: int) -> int:
        """Which document holds this letter."""
        return bisect_right(self.starts, at) - 1

    def longest(self, asked: str, words: Sequence[int], number: int | None) -> list[_Run]:
        """The longest runs of whole words of `asked` in one document, or in all; none where that is too short, or where
        the whole of `asked` stands in two documents."""
        found: list[_Run] = []
        for place, most in self._places(asked, number):
            if found and most < found[0].length:
                break
            for run in self._common(asked, words, place):
                if not found or run.length > found[0].length:
                    found = [run]
                elif run.length == found[0].length:
                    found.append(run)
            if len(found) > 1 and found[0].length == len(asked) and self.number(place) != self.number(found[0].at):
                return []
        return found

    def runs(self, asked: str, words: Sequence[int], number: int) -> Iterator[_Run]:
        """All runs in one document that are long enough."""
        for place, _ in self._places(asked, number):
            yield from self._common(asked, words, place)

    def _places(self, asked: str, number: int | None) -> Iterable[tuple[int, int]]:
        """Where `asked` may begin in the corpus, the likeliest first, and how long a run there is at most."""
        low, high = (0, len(self._text)) if number is None else (self.starts[number], self.starts[number + 1] - 1)
        if len(asked) < SHORTEST:
            return self._whole(asked, low, high)
        import numpy as np

        blocks = (hash(asked[place : place + BLOCK]) for place in range(len(asked) - BLOCK + 1))
        hashes = np.fromiter(blocks, np.int64)
        left, right = (np.searchsorted(self._hashes, hashes, side) for side in ("left", "right"))
        there = np.flatnonzero(right > left)
        stand = [self._order[left[offset] : right[offset]] * BLOCK for offset in there]
        begins = [at[(at >= low) & (at < high)] - offset for at, offset in zip(stand, there, strict=True)]
        places, votes = np.unique(np.concatenate([np.empty(0, np.int64), *begins]), return_counts=True)
        likeliest = np.lexsort((places, -votes))[:MOST_TRIED]
        return zip(places[likeliest].tolist(), ((votes[likeliest] + 2) * BLOCK).tolist(), strict=True)

    def _whole(self, asked: str, low: int, high: int) -> Iterator[tuple[int, int]]:
        at = self._text.find(asked, low, high) if asked else -1
        for _ in range(MOST_TRIED):
            if at < 0:
                return
            yield at, len(asked)
            at = self._text.find(asked, at + 1, high)

    def _common(self, asked: str, words: Sequence[int], place: int) -> list[_Run]:
        """The runs of whole words where `asked` is laid upon the corpus at `place`; it may stand out on either side."""
        import numpy as np

        before = max(-place, 0)
        here = self._text[place + before : place + len(asked)]
        if here == asked:
            return [_Run(0, len(asked), place, place + len(asked))]
        same = np.concatenate(([0], _codes(asked[before : before + len(here)]) == _codes(here), [0]))
        edges = np.flatnonzero(np.diff(same)).reshape(-1, 2) + before
        found = []
        for begin, finish in edges[edges[:, 1] - edges[:, 0] >= SHORTEST].tolist():
            first = words[bisect_right(words, begin - 1)]
            end = words[bisect_right(words, finish) - 1]
            if end - first >= SHORTEST:
                found.append(_Run(first, end, place + first, place + end))
        return found


def is_placed(chunk: Chunk) -> bool:
    """Whether a chunk is a part of a document; one that is not has no length, so that it holds no label."""
    return chunk.end > chunk.start or not chunk.text


def letters(text: str) -> str:
    """The letters and digits of a text, without accents and capitals; each character by itself."""
    return _MARKS.sub("", normalize("NFKD", text).casefold())


@lru_cache(maxsize=32)
def _standing(text: str) -> NDArray[int64]:
    """For each of the letters of a text the place of its character."""
    import numpy as np

    kinds, which = np.unique(_codes(text), return_inverse=True)
    counts = np.array([len(letters(chr(kind))) for kind in kinds], np.int64)
    return np.repeat(np.arange(len(text)), counts[which])


def _first_of_words(stand: NDArray[int64]) -> list[int]:
    """Which letters have marks before them."""
    import numpy as np

    first: list[int] = (np.flatnonzero(np.diff(stand) > 1) + 1).tolist()
    return first


def _codes(text: str) -> NDArray[uint32]:
    import numpy as np

    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def _chained(run: _Run, others: Iterable[_Run]) -> _Run:
    """`run` with what stands before and behind it, in the order of the passage and close enough in the document."""
    first, end, at, until = run.first, run.end, run.at, run.until
    ordered = sorted(others)
    for other in ordered:
        if other.first >= end and 0 <= other.at - until <= GAP:
            end, until = other.end, other.until
    for other in reversed(ordered):
        if other.end <= first and 0 <= at - other.until <= GAP:
            first, at = other.first, other.at
    return _Run(first, end, at, until)


def _cut(document: Document, run: _Run, offset: int, text: str, stand: NDArray[int64]) -> Chunk:
    """What a run is in its document, with the marks around it that the passage has as well."""
    theirs, whole = _standing(document.text), document.text
    start, end = int(theirs[run.at - offset]), int(theirs[run.until - offset - 1]) + 1
    while combining(whole[end : end + 1] or " "):
        end += 1
    first, last = int(stand[run.first]), int(stand[run.end - 1]) + 1
    before = _shared(text[max(first - EDGE, 0) : first][::-1], whole[max(start - EDGE, 0) : start][::-1])
    after = _shared(text[last : last + EDGE], whole[end : end + EDGE])
    start, end = start - len(before), end + len(after)
    return Chunk(document.doc_id, start, end, whole[start:end])


def _shared(mine: str, theirs: str) -> str:
    """The marks with which both begin; white space only where it is all that the passage has there."""
    pairs = takewhile(lambda pair: pair[0] == pair[1] and _MARKS.match(pair[0]), zip(mine, theirs, strict=False))
    marks = "".join(mark for mark, _ in pairs)
    return marks if len(marks) == len(mine) else marks.rstrip()


def _parts(name: str) -> tuple[str, ...]:
    """The parts of a path, the last first and without its suffix."""
    path = PurePosixPath(name.replace("\\", "/"))
    return tuple(reversed((*path.parts[:-1], path.stem)))
