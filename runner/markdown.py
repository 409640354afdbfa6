"""Markdown that GitHub renders, with foreign texts in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from runner import phrases

LONGEST = 60_000
"""Characters of the whole text; GitHub takes 65,536 in a comment."""
CELL = 300
"""Characters of a text of a record in a cell."""
SPECIAL = re.compile(r"([\\`*_{}\[\]!|~$#])")


def escaped(text: str, length: int = CELL) -> str:
    """A foreign text on one line, as text: no markup, no HTML, no cell, and nobody is mentioned by it."""
    shown = SPECIAL.sub(r"\\\1", phrases.plain(phrases.cut(text, length)))
    shown = shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    # GitHub looks for @names, #numbers and addresses in the text that it shows; a space of no width ends them.
    return shown.replace("@", "@\u200b").replace("#", "#\u200b").replace("://", ":\u200b//")


def table(head: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1) -> str:
    """A table. texts: how many columns at the left hold text; the others hold numbers."""
    lines = [head, [":--" if place < texts else "--:" for place in range(len(head))], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def fitted(parts: Iterable[tuple[str | None, str]], foot: str, elsewhere: str) -> str:
    """The parts and the foot in at most LONGEST characters: what does not fit is left out, and said at the end.

    parts: each with the name under which it is left out; None = it never is. elsewhere: the file that has all of it.
    """
    room = LONGEST - len(foot) - 2_000
    kept: list[str] = []
    left_out: list[str] = []
    for name, part in parts:
        if name is None or len(part) + 1 <= room:
            room -= len(part) + 1
            kept.append(part)
        else:
            left_out.append(name)
    if left_out:
        told = escaped(phrases.some(left_out, 12))
        kept.append(f"\nLeft out, so that this fits into a comment: {told}. See {elsewhere}.")
    return "\n".join([*kept, foot])
