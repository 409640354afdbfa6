"""Reading what a system of one's own hands back: a text, or a mapping with the fields of FIELDS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runner.errors import ComponentError
from runner.stage import Passage, SystemReply

FIELDS: Mapping[str, str] = {
    "answer": "answer",
    "retrieved": "retrieved",
    "contexts": "contexts",
    "text": "text",
    "doc_id": "doc_id",
    "start": "start",
    "score": "score",
    "citations": "citations",
    "refused": "refused",
    "prompt": "prompt",
    "tokens_in": "tokens_in",
    "tokens_out": "tokens_out",
}
"""Our field -> where it stands by default. text, doc_id, start and score are looked for in each passage. contexts: what
reached the prompt; retrieved: the whole ranking, where it is more than that."""


def read(value: Any, fields: Mapping[str, str] = FIELDS) -> SystemReply:
    """What `value` says: a text is an answer without passages; a mapping has `answer`, and what else it has of
    `fields`, whose names may be paths (`choices.0.text`). A passage is a text or a mapping.

    Raises ComponentError for a value without an answer, or with a field of another kind.
    """
    if isinstance(value, str):
        return SystemReply(value)
    if not isinstance(value, Mapping):
        raise ComponentError(f"it returned {_kind(value)}; expected a text, or a mapping with {fields['answer']!r}")
    answer = _at(value, fields["answer"])
    if not isinstance(answer, str):
        has = ", ".join(map(str, value)) or "nothing"
        raise ComponentError(
            f"it returned {_kind(answer)} as {fields['answer']!r}; expected a text (the reply has: {has})"
        )
    contexts, retrieved = (_passages(value, name, fields) for name in ("contexts", "retrieved"))
    return SystemReply(
        answer=answer,
        retrieved=retrieved if retrieved is not None else contexts or (),
        context=contexts,
        citations=_citations(value, fields["citations"], len(contexts if contexts is not None else retrieved or ())),
        refused=_typed(value, fields["refused"], bool),
        prompt=_typed(value, fields["prompt"], str),
        tokens_in=_typed(value, fields["tokens_in"], int),
        tokens_out=_typed(value, fields["tokens_out"], int),
    )


def _at(value: Any, path: str) -> Any:
    """What stands at a path; None where nothing does."""
    if isinstance(value, Mapping) and path in value:
        return value[path]
    for part in path.split("."):
        if isinstance(value, Mapping):
            value = value.get(part)
        elif isinstance(value, Sequence) and not isinstance(value, str) and part.isdecimal():
            value = value[int(part)] if int(part) < len(value) else None
        else:
            return None
    return value


def _typed(value: Any, path: str, kind: type[Any]) -> Any:
    found = _at(value, path)
    if found is None or (isinstance(found, kind) and (kind is bool or not isinstance(found, bool))):
        return found
    raise ComponentError(f"it returned {_kind(found)} as {path!r}; expected {kind.__name__}")


def _passages(value: Any, name: str, fields: Mapping[str, str]) -> tuple[Passage, ...] | None:
    found = _at(value, fields[name])
    if found is None:
        return None
    if not isinstance(found, Sequence) or isinstance(found, str | bytes):
        raise ComponentError(f"it returned {_kind(found)} as {fields[name]!r}; expected a list of passages")
    return tuple(_passage(each, f"{fields[name]}[{place}]", fields) for place, each in enumerate(found))


def _passage(value: Any, where: str, fields: Mapping[str, str]) -> Passage:
    if isinstance(value, str):
        return Passage(value)
    text = _at(value, fields["text"]) if isinstance(value, Mapping) else None
    if not isinstance(text, str):
        raise ComponentError(f"{where} is {_kind(value)}; expected a text, or a mapping with {fields['text']!r}")
    doc_id, score = _at(value, fields["doc_id"]), _at(value, fields["score"])
    return Passage(
        text=text,
        doc_id=None if doc_id is None else str(doc_id),
        start=_typed(value, fields["start"], int),
        score=float(score) if isinstance(score, int | float) and not isinstance(score, bool) else None,
    )


def _citations(value: Any, path: str, passages: int) -> tuple[int, ...]:
    found = _at(value, path)
    if found is None:
        return ()
    if not isinstance(found, Sequence) or not all(type(each) is int and 0 <= each < passages for each in found):
        raise ComponentError(
            f"it returned {found!r} as {path!r}; expected places in the context, which count from 0 and are "
            f"below {passages}"
        )
    return tuple(dict.fromkeys(found))


def _kind(value: Any) -> str:
    return "nothing" if value is None else f"{type(value).__name__} {str(value)[:60]!r}"
