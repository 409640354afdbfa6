"""Which fields a judged definition needs, and what is said of a record that lacks one.

The frameworks disagree here (they raise, or return 0, 1 or NaN, or score with no context at all), so it is decided
before any call, with the same words for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from unicodedata import category

from adapters.schema import Chunk, Question, Record


def missing(requires: Iterable[str], question: Question, record: Record) -> str | None:
    """Why a definition that requires these fields does not apply; None = all are there.

    Known names: those of CHECKS. Raises KeyError for another one, which is a mistake in a definition.
    """
    for name in requires:
        told = CHECKS[name](question, record)
        if told:
            return f"{told} ({name})"
    return None


def visible(text: str) -> bool:
    """Whether a text has a character that can be seen: by Unicode category neither white space (Z), nor control, format
    or unassigned (C: zero-width space, byte order mark), nor a mark that stands on nothing (M). U+3164 and its kind,
    letters that are drawn as nothing, are left out too."""
    return any(category(letter)[0] not in "ZCM" and letter not in _DRAWN_AS_NOTHING for letter in text)


_DRAWN_AS_NOTHING = "\u115f\u1160\u2800\u3164\uffa0"


def _text(question: Question, record: Record) -> str | None:
    return None if visible(question.text) else "the question is empty"


def _answer(question: Question, record: Record) -> str | None:
    if record.answer is None:
        return f"no answer: {record.error}" if record.error else "no answer"
    return None if visible(record.answer) else "the answer is blank"


def _reference(question: Question, record: Record) -> str | None:
    if question.reference_answer is None:
        return "no reference answer" if question.answerable else "no reference answer: the question is unanswerable"
    return None if visible(question.reference_answer) else "the reference answer is blank"


def _chunks(found: Iterable[Chunk], what: str) -> str | None:
    texts = [chunk.text for chunk in found]
    if not texts:
        return f"no context: {what}"
    return None if any(map(visible, texts)) else "every context is blank"


def _context(question: Question, record: Record) -> str | None:
    return _chunks(record.context, "no chunk reached the prompt")


def _reranked(question: Question, record: Record) -> str | None:
    return _chunks((ranked.chunk for ranked in record.reranked), "nothing was retrieved")


def _retrieved(question: Question, record: Record) -> str | None:
    return _chunks((ranked.chunk for ranked in record.retrieved), "nothing was retrieved")


def _relevant(question: Question, record: Record) -> str | None:
    if question.relevant is None:
        return "nobody labelled this question"
    return None if any(span.grade > 0 for span in question.relevant) else "the labels name nothing relevant"


def _citations(question: Question, record: Record) -> str | None:
    return None if record.citations else "the answer cites nothing"


CHECKS: dict[str, Callable[[Question, Record], str | None]] = {
    "question": _text,
    "answer": _answer,
    "reference_answer": _reference,
    "context": _context,
    "reranked": _reranked,
    "retrieved": _retrieved,
    "relevant": _relevant,
    "citations": _citations,
}
