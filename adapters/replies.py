"""From a judge's text to data that holds to a schema, or to a sentence that says what is wrong with it.

Nothing is guessed: a reply is read when there is exactly one JSON value in it that holds to the schema, whatever stands
around it. Numbers out of scale, words out of vocabulary and cut-off replies are faults, never scores.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from adapters.judge import JudgeFault, Reply

M = TypeVar("M", bound=BaseModel)

THOUGHT = re.compile(r"^\s*<think>.*?</think>", re.DOTALL)
"""What reasoning models write before they answer."""
MOST_OPENINGS = 200
"""Opening brackets looked at in one reply, to bound the work on a hostile one."""


class UnusableReply(JudgeFault):
    """The judge answered, but not what was asked for."""


def parse(reply: Reply, schema: type[M]) -> tuple[M, Any]:
    """The reply as an instance of `schema`, and the data that it was made from.

    JSON may stand alone, in a code fence or in prose. Raises UnusableReply when there is none, when it is cut off, when
    several different ones hold, or when the value breaks the schema.
    """
    text = THOUGHT.sub("", reply.text)
    faults: list[UnusableReply] = []
    found: list[tuple[M, Any]] = []
    try:
        for data in _values(text):
            try:
                found.append((_validated(data, schema), data))
            except UnusableReply as fault:
                faults.append(fault)
    except UnusableReply as fault:
        faults.append(fault)
        found = []
    distinct = {json.dumps(data, sort_keys=True) for _, data in found}
    if len(distinct) > 1:
        raise UnusableReply(f"the reply could not be parsed: {len(distinct)} different answers in it: {excerpt(text)}")
    if found:
        return found[0]
    cut = ", and it was cut off at max_tokens; raise it" if reply.finish_reason == "length" else ""
    if faults:
        raise UnusableReply(f"{faults[0]}{cut}")
    raise UnusableReply(f"the reply could not be parsed: no JSON in it: {excerpt(text)}{cut}")


def excerpt(text: str, length: int = 80) -> str:
    """The start of a reply on one line, quoted."""
    line = " ".join(text.split())
    return repr(line if len(line) <= length else f"{line[: length - 1]}…")


def _values(text: str) -> Iterator[Any]:
    """Every JSON object or array in `text` that is not inside another."""
    decoder = json.JSONDecoder(parse_constant=_no_constant)
    position, openings = 0, 0
    while openings < MOST_OPENINGS and (opening := re.compile(r"[{\[]").search(text, position)):
        openings += 1
        try:
            value, position = decoder.raw_decode(text, opening.start())
        except json.JSONDecodeError as error:
            if error.msg.startswith("Unterminated string") or not text[error.pos :].strip():
                raise UnusableReply(
                    f"the reply could not be parsed: its JSON ends in the middle: {excerpt(text[opening.start() :])}"
                ) from None
            position = opening.end()
        except RecursionError:
            raise UnusableReply("the reply could not be parsed: its JSON is nested too deep") from None
        else:
            yield value


def _no_constant(name: str) -> float:
    raise UnusableReply(f"the reply could not be parsed: {name} is not a number that JSON has")


def _validated(data: Any, schema: type[M]) -> M:
    try:
        instance = schema.model_validate(data)
    except ValidationError as error:
        raise UnusableReply(f"the reply does not hold to its schema: {_told(error)}") from None
    _no_booleans_as_numbers(data, instance, "")
    return instance


def _told(error: ValidationError) -> str:
    fault = error.errors()[0]
    place = ".".join(map(str, fault["loc"])) or "reply"
    more = f" ({error.error_count() - 1} more faults)" if error.error_count() > 1 else ""
    if fault["type"] == "missing":
        return f"{place} is missing in {excerpt(json.dumps(fault['input'], default=str))}{more}"
    shown = json.dumps(fault["input"], ensure_ascii=False, default=str)
    return f"{place} is {shown[:60]}: {fault['msg'][0].lower()}{fault['msg'][1:]}{more}"


def _no_booleans_as_numbers(data: Any, parsed: Any, place: str) -> None:
    """Pydantic takes true for 1; a judge that writes true where a rating is wanted did not rate."""
    if isinstance(data, bool) and not isinstance(parsed, bool) and isinstance(parsed, int | float):
        raise UnusableReply(f"the reply does not hold to its schema: {place} is {json.dumps(data)}, not a number")
    if isinstance(data, dict) and isinstance(parsed, BaseModel):
        for name, value in data.items():
            _no_booleans_as_numbers(value, getattr(parsed, name, None), f"{place}.{name}".lstrip("."))
    elif isinstance(data, list) and isinstance(parsed, list | tuple):
        for position, (value, item) in enumerate(zip(data, parsed, strict=False)):
            _no_booleans_as_numbers(value, item, f"{place}.{position}")
