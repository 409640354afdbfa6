"""Numbers, counts and foreign texts as people read them, on a page, in Markdown and on a terminal."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any


def number(value: float | None, digits: int = 3) -> str:
    """A number with that many decimals, a dash for none."""
    if value is None:
        return "–"
    told = f"{value:.{digits}f}"
    return told.removeprefix("-") if float(told) == 0 else told.replace("-", "−")


def signed(value: float | None, digits: int = 3) -> str:
    """The same with its sign."""
    told = number(value, digits)
    return f"+{told}" if value is not None and value > 0 and float(told) != 0 else told


def interval(low: float | None, high: float | None) -> str:
    """`[0.512, 0.633]`, a dash where there is none."""
    return "–" if low is None or high is None else f"[{number(low)}, {number(high)}]"


def count(n: int, singular: str, plural: str | None = None) -> str:
    """`1 record`, `2 records`."""
    return f"{n:,} {singular if n == 1 else plural or f'{singular}s'}"


def listed(words: Sequence[str]) -> str:
    """`a, b and c`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else ""


def plain(text: str) -> str:
    """`text` on one line, without what steers a terminal or turns the direction of the text around it."""
    shown = text if text.isprintable() else "".join(char if char.isprintable() else " " for char in text)
    return " ".join(shown.split())


def cut(text: str, length: int) -> str:
    """The first `length` characters of `text`, and how many more there are."""
    return text if len(text) <= length else f"{text[:length]} … ({len(text) - length:,} more characters)"


def shortened(text: str, length: int = 60) -> str:
    """`text` on one line of at most `length` characters, without what is between its beginning and its end."""
    line = plain(text)
    if len(line) <= length:
        return line
    tail = length // 3
    return f"{line[: length - tail - 1].rstrip()}…{line[-tail:].lstrip()}"


def field(value: Any) -> str:
    """A field of a card."""
    if value is None or value == "":
        return "–"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def some(ids: Sequence[str], limit: int = 10) -> str:
    """Ids on one line, and how many more there are."""
    return f"{', '.join(ids[:limit])}{f' and {len(ids) - limit:,} more' if len(ids) > limit else ''}"
