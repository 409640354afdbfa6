"""Which unit of one definition is which unit of another: claims are cut and worded by a judge, each time anew."""

from __future__ import annotations

import re
from collections.abc import Sequence

from adapters.judges.lexical_rules import NEGATORS, NUMBER_WORDS
from adapters.schema import Verdict
from adapters.units import alike

SIMILAR = 0.8
"""Likeness from which on two claims in other words are taken for one."""

Pairs = dict[int, int]
"""Places in one list of units -> places in another; each at most once."""


def matched(left: Sequence[Verdict], right: Sequence[Verdict], similar: float = SIMILAR) -> Pairs:
    """Units of `left` with their counterparts in `right`, one to one.

    Units that are alike (case, white space and closing punctuation aside) go first, in order. Of the others those pairs
    are taken that together are most alike, each with a likeness of at least `similar`. Ranked chunks match at the same
    rank with the same text only.
    """
    pairs: Pairs = {}
    waiting: dict[tuple[str, int | None], list[int]] = {}
    for place, verdict in enumerate(right):
        waiting.setdefault((alike(verdict.unit), verdict.rank), []).append(place)
    for place, verdict in enumerate(left):
        same = waiting.get((alike(verdict.unit), verdict.rank))
        if same:
            pairs[place] = same.pop(0)
    taken = set(pairs.values())
    ours = [place for place, verdict in enumerate(left) if place not in pairs and verdict.rank is None]
    theirs = [place for place, verdict in enumerate(right) if place not in taken and verdict.rank is None]
    if ours and theirs:
        pairs |= _most_alike(left, right, ours, theirs, similar)
    return pairs


def _most_alike(
    left: Sequence[Verdict], right: Sequence[Verdict], ours: Sequence[int], theirs: Sequence[int], similar: float
) -> Pairs:
    import numpy as np
    from scipy.optimize import linear_sum_assignment

    likeness_of = np.array([[likeness(left[a].unit, right[b].unit) for b in theirs] for a in ours])
    likeness_of[likeness_of < similar] = 0.0
    rows, columns = linear_sum_assignment(likeness_of, maximize=True)
    return {ours[a]: theirs[b] for a, b in zip(rows, columns, strict=True) if likeness_of[a, b] > 0.0}


def likeness(one: str, other: str) -> float:
    """How alike two texts are, 0 to 1, whatever the order of their words: RapidFuzz's token_sort_ratio / 100.

    0 where they differ in a number or in how often they negate: such texts share most words and say other things.
    """
    from rapidfuzz import fuzz

    if _marks(one) != _marks(other):
        return 0.0
    return float(fuzz.token_sort_ratio(alike(one), alike(other))) / 100


def _marks(text: str) -> tuple[list[str], int]:
    words = re.findall(r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)?", text.casefold())
    numbers = sorted(str(NUMBER_WORDS.get(word, word)) for word in words if word in NUMBER_WORDS or word[0].isdigit())
    return numbers, sum(word in NEGATORS or word.endswith(("n't", "n’t")) for word in words)
