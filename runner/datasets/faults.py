"""What is wrong with a value, in words: each sentence starts with the field, then says what was found and expected."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, ClassVar, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

MAX_DEPTH = 50
"""How deep metadata may nest: far below the depth at which Python's own recursion ends."""

SHOWN = 60
"""How many characters of a value a sentence shows."""


class Fields(BaseModel):
    """What the fields of a record may be; `advice` ends the sentence about an unknown one."""

    model_config = ConfigDict(strict=True, extra="forbid")

    advice: ClassVar[str] = ""


F = TypeVar("F", bound=BaseModel)


def validated(kind: type[F], fields: Mapping[str, Any], prefix: str = "") -> tuple[F | None, list[str]]:
    """`fields` as `kind`, None where they are not, and what is wrong; `prefix` is their place in the record."""
    try:
        return kind.model_validate(fields), []
    except ValidationError as error:
        sentences = [_sentence(fault, prefix, kind) for fault in error.errors()]
        return None, [sentence for sentence in sentences if sentence]


EXPECTED = {
    "string_type": "text",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "float_type": "a number",
}
"""What pydantic's error types ask for, in words."""


def _sentence(fault: Any, prefix: str, fields: type[BaseModel]) -> str | None:
    """One fault that pydantic found, as a sentence; None where `unusable` has said it already."""
    kind, value, loc = fault["type"], fault["input"], fault["loc"]
    field = _dotted(prefix, loc)
    if kind == "string_unicode" or (isinstance(value, float) and not math.isfinite(value)):
        return None
    if kind == "missing":
        return f"{field} is missing"
    if kind == "extra_forbidden":
        owner = _owner(fields, loc[:-1])
        known = tuple(owner.model_fields)
        near = get_close_matches(str(loc[-1]), known, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        return f"{field} is not a known field{hint} (known: {', '.join(known)}){getattr(owner, 'advice', '')}"
    if kind in EXPECTED:
        quoted = f': write it in quotes, "{value}"' if loc[-1] in ("id", "doc_id") and type(value) is int else ""
        return f"{field} is {kind_of(value)}, expected {EXPECTED[kind]}{quoted}"
    context = fault.get("ctx", {})
    if kind == "greater_than_equal":
        return f"{field} is {value}, expected {context['ge']} or more"
    if kind == "less_than_equal":
        return f"{field} is {value}, expected {context['le']} or less"
    shape = excerpt(value) if isinstance(value, str) else kind_of(value)
    return f"{field} is {shape}, expected {context.get('error') or context.get('expected') or fault['msg']}"


def _owner(fields: type[BaseModel], loc: Sequence[str | int]) -> type[BaseModel]:
    """The model inside `fields` to which a place belongs."""
    for name in loc:
        if isinstance(name, str):
            inner = [kind for kind in _inside(fields.model_fields[name].annotation) if isinstance(kind, type)]
            fields = next(kind for kind in inner if issubclass(kind, BaseModel))
    return fields


def _inside(annotation: Any) -> Iterator[Any]:
    yield annotation
    for inner in get_args(annotation):
        yield from _inside(inner)


def unusable(value: Any, *loc: str | int) -> Iterator[str]:
    """What JSON lets through and nothing downstream can store: lone surrogates, numbers beyond range, endless depth."""
    if len(loc) > MAX_DEPTH:
        yield f"{shown(str(loc[0]))} is nested deeper than {MAX_DEPTH} levels"
    elif isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            yield (
                f"{_dotted('', loc)} has half a surrogate pair (U+{ord(value[error.start]):04X}) at character "
                f"{error.start}; write the whole character"
            )
    elif isinstance(value, float) and not math.isfinite(value):
        yield f"{_dotted('', loc)} is a number beyond the range of a float"
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            if not key.isascii():
                yield from unusable(key, *loc, f"the name {key!a}")
            yield from unusable(inner, *loc, key)
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            yield from unusable(inner, *loc, position)


def _dotted(prefix: str, loc: Sequence[str | int]) -> str:
    path = prefix
    for part in loc:
        path += f"[{part}]" if isinstance(part, int) else f".{shown(part)}" if path else shown(part)
    return path


def kind_of(value: Any) -> str:
    """What kind of JSON value it is, in words."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int() | float():
            return f"the number {shown(str(value))}"
        case str():
            return "text"
        case list():
            return "a list"
        case _:
            return "an object"


def excerpt(text: str, around: int = 0) -> str:
    """`text` in quotes and escapes, cut to the surroundings of character `around` where it is long."""
    start = max(0, around - SHOWN // 3) if len(text) > SHOWN else 0
    return f"{'…' if start else ''}{text[start : start + SHOWN]!r}{'…' if start + SHOWN < len(text) else ''}"


def shown(name: str) -> str:
    """`name` fit for a message: on one line, and never what a terminal or a log cannot encode."""
    return name if name.isprintable() and name.strip() else ascii(name)
