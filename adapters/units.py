"""Units that a judge names: none is blank, none counts twice, and a verdict belongs to the unit whose text it repeats.

Frameworks count whatever stands in a reply's lists, so a blank or repeated entry would move the number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from adapters.base import Disbelieved, NothingToJudge
from adapters.inputs import visible


def named(found: Sequence[str], what: str) -> list[str]:
    """The units of a list. what: their name in the plural ("claims in the answer").

    Raises NothingToJudge where there is none but blank ones, Disbelieved where some are blank.
    """
    blank = sum(not visible(unit) for unit in found)
    if blank == len(found):
        raise NothingToJudge(f"0 {what}")
    if blank:
        raise Disbelieved(f"{blank} of {len(found)} {what} {'is' if blank == 1 else 'are'} blank")
    return list(found)


def alike(text: str) -> str:
    """The form in which two texts are one unit: case, white space and punctuation at the end make no other one."""
    return " ".join(text.casefold().split()).rstrip(".,;:!?…。 ")


def each_once(told: Sequence[str], sent: Sequence[str] | None = None) -> None:
    """Raises Disbelieved where a unit has more verdicts than the times it was sent; once, where the judge chose the
    units (sent=None). Texts that were not sent are another wording."""
    allowed = Counter(map(alike, told if sent is None else sent))
    first = {alike(text): text for text in reversed(told)}
    for text, times in Counter(map(alike, told)).items():
        if sent is None and times > 1:
            raise Disbelieved(f"{times} verdicts for one statement: {first[text][:60]!r}")
        if times > allowed[text] > 0:
            count = f"{allowed[text]} time" + ("s" if allowed[text] > 1 else "")
            raise Disbelieved(f"{times} verdicts for {first[text][:60]!r}, which was sent {count}")


def displaced(told: Sequence[str], sent: Sequence[str]) -> bool:
    """Whether a text repeats a unit that was sent at another place. Both are equally long."""
    known = set(map(alike, sent))
    return any(alike(text) in known and alike(text) != alike(unit) for text, unit in zip(told, sent, strict=True))


def paired(told: Sequence[str], sent: Sequence[str]) -> list[str]:
    """The unit that each of as many verdicts is about: the one at its place, or, where texts are displaced, the one
    that its text repeats. Of displaced verdicts, one in other words stands for itself, unless a single unit is left."""
    if not displaced(told, sent):
        return list(sent)
    waiting: dict[str, list[str]] = {}
    for unit in sent:
        waiting.setdefault(alike(unit), []).append(unit)
    found = [waiting[alike(text)].pop(0) if waiting.get(alike(text)) else None for text in told]
    left = [unit for units in waiting.values() for unit in units]
    return [unit or (left[0] if len(left) == 1 else text) for unit, text in zip(found, told, strict=True)]
