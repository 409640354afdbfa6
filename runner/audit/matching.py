"""Which unit of one definition is which unit of another: claims are cut and worded by a judge, each time anew."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from adapters.judges import lexical_rules
from adapters.judges.lexical_rules import NUMBER_WORDS
from adapters.schema import Verdict
from adapters.units import alike

SIMILAR = 0.8
"""Likeness from which on two claims in other words are taken for one."""
NEGATORS = lexical_rules.NEGATORS | {
    word
    for language in (
        "nicht kein keine keinen keinem keiner keines nie niemals nichts niemand ohne",  # German
        "pas aucun aucune jamais rien sans non",  # French (`ne` stands beside one of them, or not), Italian
        "nunca jamás nada sin ningún ninguna ninguno não nem sem nenhum nenhuma nessun nessuna senza",  # Spanish
        "niet geen nooit zonder ikke ingen inte aldrig",  # Dutch, Danish, Norwegian, Swedish
        "nie bez żaden не нет без никогда ні немає",  # Polish, Russian, Ukrainian
    )
    for word in language.split()
}
"""Words that negate, as far as a list can know them."""
UNSPACED_NEGATORS = re.compile("[不没沒無无非]|(?:ませ|せ)ん|ない|なく|なかっ|않|없|아니")
"""The same in Chinese, Japanese and Korean, where they are no words of their own."""
_NUMBER = r"(?:(?<![^\W_])(?<![\d.,])[-−](?=\d))?\d+(?:[.,]\d+)*"
_WORDS = re.compile(rf"{_NUMBER}|[^\W\d_]+(?:['’][^\W\d_]+)?")
_TENS = re.compile(
    rf"\b({'|'.join(word for word, n in NUMBER_WORDS.items() if n >= 20)})[- ]"
    rf"({'|'.join(word for word, n in NUMBER_WORDS.items() if 0 < n < 10)})\b"
)
_GROUPED = re.compile(r"[-−]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")

Pairs = dict[int, int]
"""Places in one list of units -> places in another; each at most once."""


def matched(left: Sequence[Verdict], right: Sequence[Verdict], similar: float = SIMILAR) -> Pairs:
    """Units of `left` with their counterparts in `right`, one to one.

    Units that are alike (case, white space and closing punctuation aside) go first, in order. Of the others those pairs
    are taken that together are most alike, each with a likeness of at least `similar`; neither the order of different
    units nor which list is called left decides between equals. Ranked chunks match at the same rank with the same text
    only; several units of one rank are statements of the chunk there, and match as claims do within that rank.
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
    ours = [place for place in range(len(left)) if place not in pairs]
    theirs = [place for place in range(len(right)) if place not in taken]
    ranks: set[int | None] = {None}
    if any(n > 1 for side in (left, right) for n in Counter(verdict.rank for verdict in side if verdict.rank).values()):
        ranks |= {verdict.rank for verdict in left}
    for rank in ranks:
        mine = [place for place in ours if left[place].rank == rank]
        others = [place for place in theirs if right[place].rank == rank]
        if mine and others:
            pairs |= _most_alike(left, right, mine, others, similar)
    return pairs


def _most_alike(
    left: Sequence[Verdict], right: Sequence[Verdict], ours: Sequence[int], theirs: Sequence[int], similar: float
) -> Pairs:
    import numpy as np
    from scipy.optimize import linear_sum_assignment

    rows = sorted((alike(left[place].unit), place) for place in ours)
    columns = sorted((alike(right[place].unit), place) for place in theirs)
    # No text stands on both sides, so the same problem is solved from either.
    turned = columns < rows
    if turned:
        rows, columns = columns, rows
    likeness_of = _table([text for text, _ in rows], [text for text, _ in columns], similar)
    likeness_of[likeness_of < similar] = 0.0
    found = [
        (rows[a][1], columns[b][1])
        for a, b in np.transpose(linear_sum_assignment(likeness_of, maximize=True))
        if likeness_of[a, b] > 0.0
    ]
    return {b: a for a, b in found} if turned else dict(found)


def _table(ours: Sequence[str], theirs: Sequence[str], least: float) -> Any:
    """The likeness of each text with each other one, as an array; what is less than `least` may be 0."""
    import numpy as np
    from rapidfuzz import fuzz, process

    found = np.zeros((len(ours), len(theirs)))
    first, second = _by_marks(ours), _by_marks(theirs)
    for marks in first.keys() & second.keys():
        sides = ([" ".join(sorted(text.split())) for _, text in side[marks]] for side in (first, second))
        places = np.ix_(*([place for place, _ in side[marks]] for side in (first, second)))
        lowest = max(0.0, 100 * least - 1e-6)
        found[places] = process.cdist(*sides, scorer=fuzz.ratio, dtype=np.float64, score_cutoff=lowest) / 100
    return found


def _by_marks(texts: Sequence[str]) -> dict[Any, list[tuple[int, str]]]:
    found: dict[Any, list[tuple[int, str]]] = {}
    for place, text in enumerate(texts):
        found.setdefault(_marks(text), []).append((place, text))
    return found


def likeness(one: str, other: str) -> float:
    """How alike two texts are, 0 to 1, whatever the order of their words: RapidFuzz's token_sort_ratio / 100.

    0 where they differ in a number or in how often they negate: such texts share most words and say other things.
    """
    return float(_table([alike(one)], [alike(other)], 0.0)[0, 0])


def _marks(text: str) -> tuple[tuple[str, ...], int]:
    """The numbers in a text, sorted, and how often it negates."""
    together = _TENS.sub(lambda found: str(NUMBER_WORDS[found[1]] + NUMBER_WORDS[found[2]]), text.casefold())
    words = _WORDS.findall(together)
    numbers = sorted(
        (word.replace(",", "") if _GROUPED.fullmatch(word) else word).replace("−", "-")
        if word[-1].isdigit()
        else str(NUMBER_WORDS[word])
        for word in words
        if word in NUMBER_WORDS or word[-1].isdigit()
    )
    negated = sum(word in NEGATORS or word.endswith(("n't", "n’t")) for word in words)
    return tuple(numbers), negated + len(UNSPACED_NEGATORS.findall(together))
