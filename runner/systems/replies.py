"""Reading what a system of one's own hands back: a text, or a mapping or object with the fields of FIELDS."""

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


def known(fields: dict[str, str]) -> dict[str, str]:
    """`fields`, whose names are ours. Raises ValueError."""
    if unknown := fields.keys() - FIELDS.keys():
        raise ValueError(f"{sorted(unknown)[0]!r} is not a field of ours; they are {', '.join(FIELDS)}")
    return fields


def read(value: Any, fields: Mapping[str, str] = FIELDS) -> SystemReply:
    """What `value` says: a text is an answer without passages; a mapping, or an object with attributes, has `answer`,
    and what else it has of `fields`, whose names may be paths (`choices.0.text`). A passage is a text, a mapping or an
    object. NumPy's numbers are numbers.

    Raises ComponentError for a value without an answer, or with a field of another kind.
    """
    if isinstance(value, str):
        return SystemReply(value)
    answer = _at(value, fields["answer"])
    if not isinstance(answer, str):
        if not isinstance(value, Mapping) and answer is None:
            raise ComponentError(
                f"it returned {_kind(value)}; expected a text, or a mapping or an object with {fields['answer']!r}"
            )
        has = ", ".join(map(str, value)) or "nothing" if isinstance(value, Mapping) else type(value).__name__
        raise ComponentError(
            f"it returned {_kind(answer)} as {fields['answer']!r}; expected a text (the reply has: {has}; "
            "system.fields says where it stands)"
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
    for part in [path] if isinstance(value, Mapping) and path in value else path.split("."):
        if isinstance(value, Mapping):
            value = value.get(part)
        elif isinstance(value, Sequence) and part.isdecimal():
            value = value[int(part)] if not isinstance(value, str) and int(part) < len(value) else None
        else:
            value = None if _is_plain(value) else getattr(value, part, None)
    return value.item() if type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0 else value


def _is_plain(value: Any) -> bool:
    """Whether its attributes are not data: those of a list, a text or a number, and methods."""
    return isinstance(value, str | bytes | Sequence | int | float | None) or callable(value)


def _typed(value: Any, path: str, kind: type[Any]) -> Any:
    found = _at(value, path)
    if kind is float and type(found) is int and abs(found) < 2**63:
        return float(found)
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
    text = _at(value, fields["text"])
    if not isinstance(text, str):
        raise ComponentError(
            f"{where} is {_kind(value)}; expected a text, or a mapping or an object with {fields['text']!r} "
            "(system.fields says where it stands)"
        )
    doc_id = _at(value, fields["doc_id"])
    return Passage(
        text=text,
        doc_id=None if doc_id is None else str(doc_id),
        start=_typed(value, fields["start"], int),
        score=_typed(value, fields["score"], float),
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
