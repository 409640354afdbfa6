"""Whole sentences, packed."""

from __future__ import annotations

from itertools import accumulate, pairwise

from adapters.sentences import sentence_spans
from runner.chunkers.sized import SizedChunker, trimmed
from runner.tokens import count


class SentenceChunker(SizedChunker):
    """Packs whole sentences up to `size`; a longer sentence is cut into windows of `size`.

    overlap counts *sentences* of the chunk before, repeated as far as they fit beside a new one; none of a sentence
    that had to be cut.
    """

    packages = ("tokenizers", "sentencex")
    sources = ("runner.tokens", "adapters.sentences")

    language: str = "en"
    """ISO 639-1 code that chooses the rules for abbreviations (sentencex)."""

    def spans(self, text: str) -> list[tuple[int, int]]:
        """The packed sentences, trimmed of white space."""
        sentences = trimmed(text, sentence_spans(text, self.language))
        lengths = [count(text[start:end], self.unit) for start, end in sentences]
        # A sentence that is followed by another in the same chunk counts with the white space between them.
        steps = [count(text[a:b], self.unit) for (a, _), (b, _) in pairwise(sentences)]
        offset = list(accumulate(steps, initial=0))

        spans: list[tuple[int, int]] = []
        packed: list[int] = []

        def emit() -> None:
            if packed:
                spans.append((sentences[packed[0]][0], sentences[packed[-1]][1]))

        for i, (start, end) in enumerate(sentences):
            if lengths[i] > self.size:
                emit()
                packed = []
                spans += [(start + a, start + b) for a, b in self.windows(text[start:end], overlap=0)]
                continue
            if packed and offset[i] - offset[packed[0]] + lengths[i] > self.size:
                emit()
                packed = packed[-self.overlap :] if self.overlap else []
                while packed and offset[i] - offset[packed[0]] + lengths[i] > self.size:
                    packed.pop(0)
            packed.append(i)
        emit()
        return trimmed(text, spans)
