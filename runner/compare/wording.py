"""A comparison in words: the page, the Markdown and the terminal say the same with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

from runner import phrases
from runner.compare.findings import Change, Comparison, Moved, Row, Side, Slice, Word
from runner.significance import PValue
from runner.stats import Difference

TABLES: Mapping[Literal["retrieval", "generation"], str] = {"retrieval": "Retrieval", "generation": "Generation"}
SMALL = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
HOW = (
    "delta: candidate minus baseline on questions with a value in both; 95% paired bootstrap interval.",
    "p: paired permutation test, exact McNemar for yes/no.",
    "Holm: p adjusted over the definitions of metrics.table, which decide; for others over everything.",
    "w/t/l: questions that got better, stayed, got worse; carry: the fewest that make up the delta.",
    "visible: the smallest true difference that this test set shows in four of five cases.",
    "better, worse: the interval excludes 0, Holm is below 0.05 and six questions changed.",
    "Where one of the three is missing, this test set cannot tell.",
)
Cells = Mapping[str, Slice]
"""The slices of one name, by definition."""
SLICES = "* the interval excludes 0 and six questions of the slice changed; by chance so in one of twenty."


def shown(key: str) -> str:
    """A definition in a narrow column."""
    return key.removeprefix("labels/")


def side(found: Side) -> str:
    """A run by the name that was given and the one that it has itself, with its time."""
    own = f"{found.called}, " if found.called != found.name else ""
    return f"{found.name} ({own}{found.started[:19].replace('T', ' ')} UTC)"


def headline(found: Comparison) -> str:
    """What the comparison shows, in one to three sentences."""
    if not found.rows:
        return "Nothing could be compared."
    if not any(row.changed for row in found.rows):
        return f"No score of any question changed, under {phrases.count(len(found.rows), 'definition')}."
    swapped = [row for row in found.rows if row.swapped]
    if all(row.swapped or not row.changed for row in found.rows):
        return f"All means equal, {_swaps(swapped)}."
    words: dict[Word, list[str]] = {word: [] for word in get_args(Word)}
    for row in found.rows:
        told = f" ({phrases.signed(row.delta)})" if row.word in ("better", "worse") else ""
        words[row.word].append(f"{shown(row.definition)}{told}")
    sentences = [f"{word.capitalize()}: {', '.join(rows)}." for word, rows in words.items() if rows]
    if swapped:
        sentences.append(f"Equal means, and yet {_swaps(swapped)}.")
    return " ".join(sentences)


def _swaps(rows: Iterable[Row]) -> str:
    """`two questions swapped in recall and success; four in reciprocal_rank`."""
    by_count: dict[int, list[str]] = {}
    for row in rows:
        by_count.setdefault(row.changed, []).append(shown(row.definition))
    (first, *more) = sorted(by_count.items())
    told = [f"{_spelt(first[0])} questions swapped in {phrases.listed(first[1])}"]
    return "; ".join([*told, *(f"{_spelt(count)} in {phrases.listed(names)}" for count, names in more)])


def _spelt(count: int) -> str:
    return SMALL[count] if count < len(SMALL) else f"{count:,}"


def p(found: PValue | float) -> str:
    """A p-value with three decimals."""
    value = found.value if isinstance(found, PValue) else found
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def counts(row: Row) -> str:
    """Wins, ties and losses."""
    return f"{row.wins}/{row.ties}/{row.losses}"


def carries(row: Row) -> str:
    """How many of the changed questions carry the difference."""
    return "–" if row.carries is None else str(row.carries)


def visible(row: Row) -> str:
    """The smallest visible difference."""
    return phrases.number(row.visible)


def uneven(found: Comparison) -> list[str]:
    """Definitions that have a value in one run only for some questions."""
    told = []
    for row in found.rows:
        sides = [f"{n:,} more only in the {name}" for name, n in _alone(row) if n]
        if sides:
            told.append(f"{shown(row.definition)} is over {phrases.count(row.n, 'question')}; {phrases.listed(sides)}")
    return told


def _alone(row: Row) -> tuple[tuple[str, int], ...]:
    return ("baseline", row.only_baseline), ("candidate", row.only_candidate)


def setting(value: Any) -> str:
    """A value of the configuration."""
    return phrases.cut(phrases.plain(phrases.field(value)), 200)


def scores(change: Change) -> str:
    """`recall, ndcg 1.000 → 0.500; span_iou 0.200 → 0.100`."""
    alike: dict[str, list[str]] = {}
    for key, (before, after) in change.scores.items():
        alike.setdefault(f"{phrases.number(before)} → {phrases.number(after)}", []).append(shown(key))
    return "; ".join(f"{', '.join(keys)} {told}" for told, keys in alike.items())


def moves(change: Change) -> list[tuple[str, str]]:
    """Where (ranking, context, or both), and what happened there: to each relevant chunk, the lost ones first, and to
    how many of the others in the ranking."""
    ranking, context = _moves(change.ranking), _moves(change.context)
    if ranking == context:
        found = [("ranking and context", told) for told in ranking]
    else:
        found = [*(("ranking", told) for told in ranking), *(("context", told) for told in context)]
    rest = [each for each in change.ranking if not each.relevant]
    if rest:
        lost, new = sum(each.after is None for each in rest), sum(each.before is None for each in rest)
        parts = ((lost, "lost"), (new, "new"), (len(rest) - lost - new, "at another rank"))
        kind = "other chunks" if any(each.relevant is False for each in rest) else "chunks, without labels"
        found.append(("ranking", f"{kind}: {', '.join(f'{n} {what}' for n, what in parts if n)}"))
    return found


def _moves(moved: Sequence[Moved]) -> list[str]:
    relevant = [each for each in moved if each.relevant]
    relevant.sort(key=lambda each: (each.after is not None, each.before is None))
    return [f"{_move(each)}: {each.chunk} “{each.text}”" for each in relevant]


def _move(moved: Moved) -> str:
    if moved.after is None:
        return f"relevant chunk lost (was {moved.before})"
    if moved.before is None:
        return f"relevant chunk gained (at {moved.after})"
    return f"relevant chunk moved ({moved.before} → {moved.after})"


def flips(change: Change) -> list[str]:
    """`ragas/faithfulness, trulens/groundedness: “a claim”: supported → absent`; verdicts that turned round first,
    then those on units that only one answer has."""
    alike: dict[tuple[str, str | None, str | None], list[str]] = {}
    for found in change.flips:
        alike.setdefault((found.unit, found.before, found.after), []).append(shown(found.definition))
    order = sorted(alike, key=lambda flip: None in flip)
    return [f"{', '.join(alike[flip])}: “{phrases.cut(flip[0], 160)}”: {_flip(*flip[1:])}" for flip in order]


def _flip(before: str | None, after: str | None) -> str:
    was, now = ((word or "").replace("_", " ") for word in (before, after))
    return f"new, {now}" if before is None else f"gone, was {was}" if after is None else f"{was} → {now}"


def slices(found: Comparison, about: str) -> tuple[list[str], dict[str, dict[str, Slice]]]:
    """The definitions of one table that have slices, and the slices by name and definition."""
    keys = {row.definition for row in found.rows if row.about == about}
    table: dict[str, dict[str, Slice]] = {}
    for each in found.slices:
        if each.definition in keys:
            table.setdefault(each.slice, {})[each.definition] = each
    order = [row.definition for row in found.rows if any(row.definition in cells for cells in table.values())]
    return order, table


def slice_cell(found: Slice | None) -> str:
    """`+0.115* of 40`."""
    if found is None:
        return "–"
    beyond = Difference(found.delta, found.low, found.high, found.n, found.changed).beyond_noise
    delta = phrases.signed(found.delta) if found.changed else "="
    return f"{delta}{'*' if beyond else ''} of {found.n}"
