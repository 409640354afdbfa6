"""Sentences as spans of a text."""

from __future__ import annotations

import re
from importlib.metadata import version
from itertools import pairwise

_SURROGATE = re.compile("[\ud800-\udfff]")
_WIDE_SPACE = re.compile(r"[^\S\x00-\x7f]")


def well_formed(text: str) -> str:
    """`text` with lone surrogates as U+FFFD, so that it can be encoded; every offset stays the same."""
    return _SURROGATE.sub("\ufffd", text)


def splitter() -> str:
    """What cuts sentences, with its version, for the fingerprints of what hangs on it."""
    return f"adapters.sentences with sentencex {version('sentencex')}"


def sentence_spans(text: str, language: str = "en") -> list[tuple[int, int]]:
    """[start, end) in code points of every sentence by the rules of sentencex; the pieces concatenate to `text`.

    language: ISO 639-1 code; sentencex has rules for abbreviations in many languages and falls back to related ones
    or to English. White space belongs to the sentence before it; a blank line is a piece of its own.

    sentencex 1.0.32 panics on an initial before a wide space ("A\u2028.") and loses blank lines where it cuts texts of
    more than 10,000 bytes. So wide spaces are shown to it as plain ones, and what it loses goes with the next sentence.
    """
    from sentencex import segment

    shown = well_formed(_WIDE_SPACE.sub(" ", text))
    ends = [0]
    for sentence in segment(language, shown):
        found = shown.find(sentence, ends[-1])
        if sentence and found >= 0:
            ends.append(found + len(sentence))
    if ends[-1] < len(text):
        ends.append(len(text))
    return list(pairwise(ends))
