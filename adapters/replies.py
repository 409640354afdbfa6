"""From a judge's text to data that holds to a schema, or to a sentence that says what is wrong with it.

Nothing is guessed: a reply is read when there is exactly one JSON value in it that holds to the schema, whatever stands
around it. Numbers out of scale, words out of vocabulary and cut-off replies are faults, never scores.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel, ValidationError

from adapters.judge import JudgeFault, Message, Reply
from adapters.sentences import well_formed

M = TypeVar("M", bound=BaseModel)

_ANSWER_BEGINS = re.compile(r"\s*[{\[`]")
_THOUGHT_BEGINS = re.compile(r"\s*<think(?:ing)?>")
_THOUGHT_ENDS = re.compile(r"</think(?:ing)?>")
_OPENING = re.compile(r"[{\[]")
MOST_OPENINGS = 200
"""Opening brackets looked at in one reply, to bound the work on a hostile one."""
MOST_CHARACTERS = 200_000
"""Of one reply. A verdict with its reason takes some 200, so this is a thousand of them."""
ECHO = 200
"""Characters of the start of a prompt that no honest reply repeats."""
TELLING = 30
"""Characters from which a text in a reply is no coincidence with the example in the prompt."""
_TOKENS = re.compile(r'\\.|["\n\[\]{}]')


class UnusableReply(JudgeFault):
    """The judge answered, but not what was asked for."""


def parse(reply: Reply, schema: type[M], prompt: Sequence[Message] = ()) -> tuple[M, Any]:
    """The reply as an instance of `schema`, and the data that it was made from, lone surrogates replaced.

    JSON may stand alone, in a code fence or in prose; line breaks inside its strings are allowed. Raises UnusableReply
    when there is none, when it is cut off or broken, when a key stands twice, when several different ones hold, when
    the value breaks the schema, when the reply repeats the prompt that it is an answer to, or when it is longer than
    MOST_CHARACTERS.
    """
    cut = ", and it was cut off at max_tokens; raise it" if reply.finish_reason == "length" else ""
    try:
        if not reply.text.strip():
            _unparsed("it is empty")
        _hold_length(reply.text)
        text = without_thought(reply.text)
        _refuse_echo(text, prompt)
        instance, data = _parsed(text, schema)
        _refuse_example(data, prompt)
        return instance, data
    except UnusableReply as fault:
        raise UnusableReply(f"{fault}{cut}") from None
    except RecursionError:
        raise UnusableReply(f"the reply could not be parsed: its JSON is nested too deep{cut}") from None


def plain(reply: Reply, prompt: Sequence[Message] = ()) -> str:
    """The text of a reply to a call without a schema, lone surrogates replaced. Raises UnusableReply when it is empty,
    cut off, longer than MOST_CHARACTERS, or repeats the prompt."""
    if reply.finish_reason == "length":
        raise UnusableReply("the reply was cut off at max_tokens; raise it")
    if not reply.text.strip():
        _unparsed("it is empty")
    _hold_length(reply.text)
    # The messages after the first may be nothing but a text of the record, which a reply may well repeat.
    _refuse_echo(reply.text, prompt[:1])
    return well_formed(reply.text)


def _hold_length(text: str) -> None:
    if len(text) > MOST_CHARACTERS:
        _unparsed(f"it has {len(text)} characters, more than {MOST_CHARACTERS}: {excerpt(text)}")


def _refuse_echo(text: str, prompt: Sequence[Message]) -> None:
    """A reply that holds the start of the prompt, or another message as a whole. What a judge may quote, statements and
    passages, stands further on; a message of one line may be nothing else, and is left alone."""
    starts = [message.content[:ECHO] for message in prompt[:1]]
    wholes = [message.content.strip() for message in prompt[1:] if "\n" in message.content.strip()]
    if any(len(echoed) >= ECHO and echoed in text for echoed in starts + wholes):
        _unparsed(f"it repeats the prompt: {excerpt(text)}")


def _refuse_example(data: Any, prompt: Sequence[Message]) -> None:
    """A reply that is, letter by letter, a JSON value of the prompt: its worked example, and no judgement. A value
    without a telling text ({"verdict": "yes"}) may be both."""
    if not any(len(text) >= TELLING or (text and not re.search(r"\w", text)) for text in _texts(data)):
        return
    for message in prompt:
        try:
            example = data in _values(message.content)
        except (UnusableReply, RecursionError):  # brackets of a text that is no JSON; all before them was compared
            continue
        if example:
            _unparsed(f"it is the example of the prompt: {excerpt(json.dumps(data, ensure_ascii=False))}")


def _texts(data: Any) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif isinstance(data, dict | list):
        for part in data.values() if isinstance(data, dict) else data:
            yield from _texts(part)


def excerpt(text: str, length: int = 80) -> str:
    """The start of a reply on one line, quoted."""
    line = " ".join(text[: 20 * length].split())
    return repr(line if len(line) <= length else f"{line[: length - 1]}…")


def without_thought(text: str) -> str:
    """`text` after what reasoning models write before they answer; some servers leave out the opening tag."""
    start = 0
    while not _ANSWER_BEGINS.match(text, start):
        end = _THOUGHT_ENDS.search(text, start)
        if not end and _THOUGHT_BEGINS.match(text, start):
            _unparsed(f"it thinks and does not answer: {excerpt(text)}")
        if not end:
            break
        start = end.end()
    return text[start:]


def _parsed(text: str, schema: type[M]) -> tuple[M, Any]:
    faults: list[tuple[int, UnusableReply]] = []
    found: dict[str, tuple[M, Any]] = {}
    for data in _values(text):
        if isinstance(data, UnusableReply):
            faults.append((0, data))
            continue
        written = json.dumps(data, sort_keys=True)
        try:
            found[written] = _validated(data, schema), data
        except UnusableReply as fault:
            # What is said is said of the likeliest attempt: an object before a list, a long one before a short one.
            faults.append((len(written) * (1 if isinstance(data, list) else 1000), fault))
    if len(found) > 1:
        raise UnusableReply(f"the reply could not be parsed: {len(found)} different answers in it: {excerpt(text)}")
    if found:
        return next(iter(found.values()))
    if faults:
        raise max(faults, key=lambda fault: fault[0])[1]
    raise UnusableReply(f"the reply could not be parsed: no JSON in it: {excerpt(text)}")


def _values(text: str) -> Iterator[Any]:
    """Every JSON object or array in `text` that is not inside another, and a fault for each bracketed passage that is
    none. Raises UnusableReply where the whole reply cannot be trusted."""
    decoder = json.JSONDecoder(
        strict=False,
        parse_constant=_no_constant,
        parse_float=_finite,
        parse_int=_integer,
        object_pairs_hook=_without_twins,
    )
    closings: dict[int, int] | None = None
    position = 0
    for _ in range(MOST_OPENINGS):
        opening = _OPENING.search(text, position)
        if not opening:
            return
        start = opening.start()
        try:
            value, position = decoder.raw_decode(text, start)
        except json.JSONDecodeError as error:
            closings = _closings(text) if closings is None else closings
            closing = closings.get(start)
            if closing is None and (error.msg.startswith("Unterminated string") or not text[error.pos :].strip()):
                _unparsed(f"its JSON ends in the middle: {excerpt(text[start:])}")
            if closing is None and text[start + 1 : error.pos].strip():
                _unparsed(f"{_broken(text, start, error)}")
            # What stands inside a broken value is no answer by itself.
            position = start + 1 if closing is None else closing
            yield UnusableReply(f"the reply could not be parsed: {_broken(text, start, error)}")
        else:
            yield _well_formed(value)
    if _OPENING.search(text, position):
        _unparsed(f"more than {MOST_OPENINGS} brackets in it: {excerpt(text)}")


def _well_formed(data: Any) -> Any:
    if isinstance(data, str):
        return well_formed(data)
    if isinstance(data, list):
        return [_well_formed(item) for item in data]
    return {name: _well_formed(value) for name, value in data.items()} if isinstance(data, dict) else data


def _closings(text: str) -> dict[int, int]:
    """Where each opening bracket outside of strings is closed again: the position after it. A string ends with its line
    at the latest, because quotation marks in prose need not be paired."""
    closings: dict[int, int] = {}
    open_at: list[int] = []
    in_string = False
    for token in _TOKENS.finditer(text):
        match token[0]:
            case '"':
                in_string = not in_string
            case "\n":
                in_string = False
            case "{" | "[" if not in_string:
                open_at.append(token.start())
            case "}" | "]" if not in_string and open_at:
                if text[open_at[-1]] + token[0] in ("{}", "[]"):
                    closings[open_at.pop()] = token.end()
    return closings


def _broken(text: str, start: int, error: json.JSONDecodeError) -> str:
    near = excerpt(text[max(start, error.pos - 20) :], 40)
    return f"no valid JSON in it: near {near}: {error.msg[0].lower()}{error.msg[1:]}"


def _unparsed(why: str) -> NoReturn:
    raise UnusableReply(f"the reply could not be parsed: {why}")


def _no_constant(name: str) -> NoReturn:
    _unparsed(f"{name} is not a number that JSON has")


def _finite(digits: str) -> float:
    if not isfinite(number := float(digits)):
        _unparsed(f"{excerpt(digits, 20)} is not a finite number")
    return number


def _integer(digits: str) -> int:
    if len(digits) > 100:
        _unparsed(f"a number of {len(digits)} digits is in it")
    return int(digits)


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = {well_formed(name): value for name, value in pairs}
    if len(data) < len(pairs):
        names = [well_formed(name) for name, _ in pairs]
        twin = next(name for name in names if names.count(name) > 1)
        _unparsed(f"the key {excerpt(twin)} stands twice in one object")
    return data


def _validated(data: Any, schema: type[M]) -> M:
    try:
        instance = schema.model_validate(data)
    except ValidationError as error:
        raise UnusableReply(f"the reply does not hold to its schema: {_told(error)}") from None
    except Exception as error:  # a framework's own validator may raise anything
        raise UnusableReply(f"the reply does not hold to its schema: {type(error).__name__}: {error}") from error
    _hold_numbers(data, instance, "")
    return instance


def _told(error: ValidationError) -> str:
    fault = error.errors(include_url=False)[0]
    place = well_formed(".".join(map(str, fault["loc"]))) or "reply"
    more = f" ({error.error_count() - 1} more faults)" if error.error_count() > 1 else ""
    if fault["type"] == "missing":
        return f"{place} is missing in {excerpt(json.dumps(fault['input'], default=str))}{more}"
    shown = well_formed(json.dumps(fault["input"], ensure_ascii=False, default=str))
    wanted = re.sub(r"<\w+\.\w+: ('[^']*')>", r"\1", fault["msg"])  # the values of an enum, not its members
    return f"{place} is {shown[:60]}: {wanted[0].lower()}{wanted[1:]}{more}"


def _hold_numbers(data: Any, parsed: Any, place: str) -> None:
    """Pydantic takes true for 1 and "inf" for infinity; a judge that writes these gave no number."""
    number = isinstance(parsed, int | float) and not isinstance(parsed, bool)
    if number and (isinstance(data, bool) or (isinstance(parsed, float) and not isfinite(parsed))):
        raise UnusableReply(f"the reply does not hold to its schema: {place} is {json.dumps(data)[:60]}, not a number")
    if isinstance(data, dict) and isinstance(parsed, BaseModel):
        for name, value in data.items():
            _hold_numbers(value, getattr(parsed, name, None), f"{place}.{name}".lstrip("."))
    elif isinstance(data, list) and isinstance(parsed, list | tuple):
        for position, (value, item) in enumerate(zip(data, parsed, strict=False)):
            _hold_numbers(value, item, f"{place}.{position}")
