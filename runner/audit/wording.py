"""What an audit finds, in words: names of the definitions, numbers, and sentences on why two definitions differ.

The page, the Markdown and the terminal say the same with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from adapters.formulas import MAY_MEAN
from adapters.schema import JudgeCard
from runner import phrases
from runner.audit.findings import (
    PEOPLE,
    Audit,
    Claim,
    Cross,
    Family,
    Group,
    Hazard,
    Pair,
    Row,
    Systems,
    View,
    Why,
    Word,
)

FRAMEWORKS = {"ragas": "Ragas", "deepeval": "DeepEval", "trulens": "TruLens"}
PARTS = ("formula", "verdicts", "claims")
"""The parts of a difference in the order in which they are shown."""
EXAMPLE = 160
"""Characters up to which a claim is a good example."""
NOTHING = 1e-9
"""A part below it is none."""
THAT_IS = {
    "supported": "that is supported",
    "contradicted": "that is contradicted",
    "absent": "that is neither supported nor contradicted",
    "not_supported": "that is not supported",
    "relevant": "that is relevant",
    "not_relevant": "that is not relevant",
    "attributed": "that is found",
    "not_attributed": "that is not found",
}
HOW = (
    "Three things make a score: the units (claims) into which the text was cut, the verdicts on them, and the formula "
    "that counts them. Each formula is applied to each definition's verdicts, one thing is exchanged after the other "
    "from one score to the other, and each part is the mean of its steps over the orders that keep units and verdicts "
    "together, so that no order is favoured and the parts sum to the difference."
)
COARSE = (
    "Where a word of the row says less than the formula must know (Ragas's “not supported”: contradicted, or absent?), "
    "the word of the formula's own definition on the same unit is taken, if the coarse one may mean it; where there is "
    "none, the unit counts halfway, and the range is shown."
)
"""How a cell of the cross table comes about."""
BY_MEANS = (
    "The means over the records that both definitions scored decide; whether two systems are further apart than by "
    "chance is not tested here."
)
ON_PAPER = "A prompt stands here as its hash: two that differ are two prompts."
REFERENCE = (
    "Owen (1977), Values of games with a priori unions: the Shapley value (1953) of evidence and formula, the part of "
    "the evidence divided between units and verdicts by the same rule."
)


@dataclass(frozen=True, slots=True)
class Name:
    """How a definition is called. letter: in tables and charts, empty for people. short: in sentences."""

    letter: str
    short: str

    def __str__(self) -> str:
        return f"{self.letter} {self.short}".lstrip()


def names(group: Group) -> dict[str, Name]:
    """The names of the definitions of a group, by key, and that of people; no two are the same."""
    ids: dict[str, set[str]] = {}
    for row in group.rows:
        ids.setdefault(row.framework, set()).add(row.id)
    short = {row.definition: _short(row, len(ids[row.framework]) == 1) for row in group.rows}
    taken = [*short.values(), PEOPLE]
    found = {
        key: Name(_letter(place), name if taken.count(name) == 1 else key)
        for place, (key, name) in enumerate(short.items())
    }
    return {**found, PEOPLE: Name("", PEOPLE)}


def _short(row: Row, alone: bool) -> str:
    """`DeepEval`, `DeepEval faithfulness` where the framework has several in the group, and the parameters."""
    named = row.id.partition("/")[2] or row.id
    framework = FRAMEWORKS.get(row.framework)
    name = framework if framework and alone else f"{framework or row.framework} {named}"
    settings = re.sub(r"-True\b", "", row.definition.removeprefix(row.id)).lstrip(".")
    return f"{name} ({settings})" if settings else name


def _letter(place: int) -> str:
    return chr(ord("A") + place) if place < 26 else f"{_letter(place // 26 - 1)}{_letter(place % 26)}"


def plural(units: str) -> str:
    """`claims` of `claims of the answer, held against the context`."""
    return units.split(",")[0].split(" of ")[0]


def singular(units: str) -> str:
    """`claim` of the same."""
    noun = plural(units)
    return f"{noun[:-3]}y" if noun.endswith("ies") else noun.removesuffix("s")


def many(n: int, units: str) -> str:
    """`1 claim`, `2 entities`."""
    return phrases.count(n, singular(units), plural(units))


def asked(group: Group) -> str:
    """The question of a group as a title."""
    return group.asks[:1].upper() + group.asks[1:]


def sides(row: Row) -> tuple[str, str]:
    """Which of our words the formula of a definition counts for, and which against; with the share where it is in
    between."""
    good, bad = [], []
    for word, credit in _counted(row):
        named = _word(word)
        if credit == 0:
            bad.append(named)
        else:
            good.append(named if credit == 1 else f"{named} (as {credit:.2f})")
    return ", ".join(good), ", ".join(bad)


def _counted(row: Row) -> list[tuple[str, float]]:
    """Words that another word covers (not supported: contradicted or absent) are left out."""
    return [(word, credit) for word, credit in row.credits.items() if word not in MAY_MEAN]


@dataclass(frozen=True, slots=True)
class Told:
    """A pair with parts, in words.

    difference and parts (in the order of PARTS) are rounded to thousandths such that the parts sum to the difference.
    who: who has how much, on what. reason: the parts in words. rule: what the two formulas count otherwise, empty
    where the formula makes no part. matching: how many units both have, empty where that is all. open: what the
    verdicts leave open, empty where they leave nothing open.
    """

    pair: Pair
    why: Why
    difference: float
    parts: Mapping[str, float]
    who: str
    reason: str
    rule: str
    matching: str
    open: str

    @property
    def because(self) -> str:
        """The parts in words, and what the formulas count otherwise."""
        if not self.rule:
            return self.reason
        alone = sum(size != 0 for size in self.parts.values()) == 1
        return f"{self.reason}{': ' if alone else '; by the formula, '}{self.rule}"

    @property
    def in_words(self) -> str:
        """Why, with what the parts rest on: one to three sentences."""
        return " ".join(f"{text[0].upper()}{text[1:]}." for text in (self.because, self.matching, self.open) if text)

    @property
    def sentence(self) -> str:
        """Who has how much on what, and why, in one sentence."""
        return f"{self.who}: {self.because}."


def told(group: Group) -> list[Told]:
    """The pairs of a group that have parts, the largest difference first."""
    rows = {row.definition: row for row in group.rows}
    called = names(group)
    found = [_told(group, pair, pair.why, rows, called) for pair in group.pairs if pair.why]
    return sorted(found, key=lambda one: -abs(one.difference))


def _told(group: Group, pair: Pair, why: Why, rows: Mapping[str, Row], called: Mapping[str, Name]) -> Told:
    left, right = rows[pair.left], rows[pair.right]
    difference, parts = _rounded(why)
    units = left.units or "units"
    rule = _rule(group, pair, why.n, left, right, called, units) if abs(why.formula) > NOTHING else ""
    several = sum(abs(getattr(why, name)) > NOTHING for name in PARTS) > 1
    digits = 3 if several or 0 < abs(difference) < 0.1 else 2
    ends = ((called[pair.left], why.left), (called[pair.right], why.right))
    who = " and ".join(f"{name.short} {phrases.number(mean, digits)}" for name, mean in ends)
    reason = _reason(difference, parts, pair, why, units, digits)
    return Told(
        pair=pair,
        why=why,
        difference=difference,
        parts=parts,
        who=f"{who} {_on(why, units)}",
        reason=reason,
        rule=rule,
        matching=_matching(why, units, called[pair.left].short, called[pair.right].short),
        open=_open(why),
    )


def _rounded(why: Why) -> tuple[float, dict[str, float]]:
    exact = {part: 1000 * float(getattr(why, part)) for part in PARTS}
    whole = round(sum(exact.values()))
    steps = {part: round(size) for part, size in exact.items()}
    while missing := whole - sum(steps.values()):
        step = 1 if missing > 0 else -1
        # What was rounded furthest the other way gives in; a part that is none stays none.
        part = max((part for part in PARTS if exact[part]), key=lambda part: step * (exact[part] - steps[part]))
        steps[part] += step
    return whole / 1000, {part: size / 1000 for part, size in steps.items()}


def part(size: float, exact: float, digits: int = 3) -> str:
    """A part with its sign; `none`, and `under 0.001` for what is rounded away."""
    if abs(exact) <= NOTHING:
        return "none"
    return phrases.signed(size, digits) if round(size, digits) else f"under {10**-digits:g}"


def _on(why: Why, units: str) -> str:
    same = "" if why.only_left + why.only_right else f"the same {many(why.matched, units)}"
    if why.n == 1:
        return f"on {same or '1 record'}"
    return f"over {phrases.count(why.n, 'record')}{f', {same}' if same else ''}"


def _matching(why: Why, units: str, left: str, right: str) -> str:
    alone = [f"{n:,} of {who} alone" for n, who in ((why.only_left, left), (why.only_right, right)) if n]
    return f"{many(why.matched, units)} in common, {phrases.listed(alone)}" if alone else ""


def _reason(difference: float, parts: Mapping[str, float], pair: Pair, why: Why, units: str, digits: int) -> str:
    called = {
        "formula": "the formula",
        "verdicts": f"other verdicts on the same {plural(units)}",
        "claims": f"the splitting into other {plural(units)}",
    }
    exact = {name: float(getattr(why, name)) for name in PARTS}
    some = [name for name in PARTS if abs(exact[name]) > NOTHING]
    if not some:
        apart = pair.apart or 0.0
        return "no difference" if apart <= NOTHING else f"equal means, though single records are {apart:.3f} apart"
    if len(some) == 1:
        return f"the whole {abs(difference):.{digits}f} is {called[some[0]]}"
    if abs(difference) < 0.0005:
        made = phrases.listed([f"{called[name]} {part(parts[name], exact[name])}" for name in some])
        return f"as good as no difference, because the parts cancel out: {made}"
    sign = 1 if difference > 0 else -1
    made = phrases.listed([f"{part(sign * parts[name], exact[name], 3)} is {called[name]}" for name in some])
    rest = [called[name] for name in PARTS if name not in some]
    return f"of the {abs(difference):.{digits}f}, {made}{f', none is {rest[0]}' if rest else ''}"


def _open(why: Why) -> str:
    if not why.undetermined:
        open_by = f"the verdicts leave the part of the formula open by ±{phrases.number(why.slack)}"
        return open_by if why.slack > NOTHING else ""
    verdicts = phrases.count(why.undetermined, "verdict says", "verdicts say")
    coarse = f"{verdicts} less than the other formula must know (not supported: contradicted, or absent?)"
    counts = "counts" if why.undetermined == 1 else "count"
    return f"{coarse} and {counts} halfway, which leaves the part of the formula open by ±{phrases.number(why.slack)}"


def _rule(group: Group, pair: Pair, n: int, left: Row, right: Row, called: Mapping[str, Name], units: str) -> str:
    one, other = called[pair.left].short, called[pair.right].short
    apart = [word for word, credit in _counted(left) if right.credits.get(word, credit) != credit]
    if not apart:
        return f"{one} is {left.formula}, {other} is {right.formula}"
    in_detail = sum(f"{pair.left} | {pair.right}" in view.parts for view in group.views) == n
    of = [
        claim for view in group.views for claim in view.claims if pair.left in claim.words and pair.right in claim.words
    ]
    rules = []
    for word in apart:
        so = sum(
            word in _agreed(claim.words[pair.left], claim.words[pair.right])
            and claim.words[pair.left].credit != claim.words[pair.right].credit
            for claim in of
        )
        counts = f", {so:,} of {len(of):,}" if in_detail else ""
        such = f"{_article(singular(units))} {THAT_IS.get(word, 'so judged')} ({_word(word)}{counts})"
        credits = left.credits[word], right.credits[word]
        if set(credits) == {0.0, 1.0}:
            low, high = (one, other) if credits[0] == 0 else (other, one)
            rules.append(f"{such} counts against the score in {low} and for it in {high}")
        else:
            rules.append(f"{such} counts {_side(credits[0])} in {one} and {_side(credits[1])} in {other}")
    return "; ".join(rules)


def _article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def _side(credit: float | None) -> str:
    if credit is None:
        return ""
    return "for" if credit == 1 else "against" if credit == 0 else f"as {credit:.2f}"


def _agreed(one: Word, other: Word) -> tuple[str, ...]:
    """The word that both may mean, the finer one first; none where they contradict each other."""
    for word, finer in ((one.ours, other.ours), (other.ours, one.ours)):
        if word is not None and finer is not None and (word == finer or finer in MAY_MEAN.get(word, ())):
            return (finer,)
    return ()


def headline(group: Group, found: Sequence[Told]) -> str:
    """What a group shows, in one sentence. found: its pairs as `told` gives them."""
    called = names(group)
    if found:
        return found[0].sentence
    with_value = [row for row in group.rows if row.mean is not None]
    means = phrases.listed([f"{called[row.definition].short} {phrases.number(row.mean, 2)}" for row in with_value])
    if not with_value:
        first = next((row.first_failure for row in group.rows if row.first_failure), "nothing here to judge")
        return f"No definition has a value: {first.rstrip('.')}."
    if len(group.rows) == 1:
        return f"Only {called[group.rows[0].definition].short} asks this: {phrases.number(with_value[0].mean, 2)}."
    reasons = list(dict.fromkeys(pair.why_not for pair in group.pairs if pair.n and pair.why_not))
    if len(reasons) > 1:
        return f"{means}; the differences have no parts, for {len(reasons)} reasons told below."
    return f"{means}; the differences have no parts: {reasons[0] if reasons else 'they have no record in common'}."


def family(found: Family) -> str:
    """What the definitions of one name give, in one sentence."""
    means = [(each.mean, each.definition) for each in found.readings if each.mean is not None]
    if not means:
        return f"No definition of {found.name} has a value."
    # The first of equals: its name is the plainest.
    (low, least), (high, most) = min(means, key=itemgetter(0)), max(means, key=itemgetter(0))
    name = found.name.capitalize() if found.name.islower() else found.name  # nDCG stays
    if phrases.number(low) == phrases.number(high):
        return f"{name} is {phrases.number(low)} by {phrases.count(len(means), 'definition')}."
    between = "" if len({phrases.number(mean) for mean, _ in means}) == 2 else ", or between,"
    ends = f"{phrases.number(low)} ({least}) or {phrases.number(high)} ({most})"
    return f"{name} is {ends}{between} on the same rankings."


def example(group: Group, found: Sequence[Told]) -> tuple[str, str] | None:
    """A claim that the pair of the headline counts otherwise, and what each makes of it; None where there is none."""
    if not found:
        return None
    called = names(group)
    pair = {key: called[key] for key in (found[0].pair.left, found[0].pair.right)}
    found_in = [
        claim
        for view in most_apart(group, 20)
        for claim in view.claims
        if len({claim.words[key].credit for key in pair if key in claim.words}) == 2
    ]
    # A table that was taken for a sentence explains nothing.
    one = next((claim for claim in found_in if len(claim.text) <= EXAMPLE), found_in[0] if found_in else None)
    return (one.text, remark(one, pair, list(pair), group)) if one else None


def remark(claim: Claim, called: Mapping[str, Name], spoke: Sequence[str], group: Group) -> str:
    """What the sources make of one claim, in a sentence; empty where all have it and count it alike. spoke: the sources
    that judged this record."""
    said = {key: word for key, word in claim.words.items() if key in called}
    beside = _side_by_side(group)
    missing = [
        called[key].short
        for key in spoke
        if key not in said and any(PEOPLE in (key, one) or {key, one} in beside for one in said)
    ]
    found = []
    if missing:
        found.append(f"not among the {plural(claim.units)} of {phrases.listed(missing)}")
    words = list(said.values())
    at_one = all(_alike(one, other) for one in words for other in words)
    counted: dict[float, list[str]] = {}
    for key, word in said.items():
        if word.credit is not None:
            counted.setdefault(word.credit, []).append(called[key].short)
    if at_one and len(counted) > 1:
        finest = next((word for word in words if word.ours not in MAY_MEAN), words[0])
        counts = "; ".join(
            f"{phrases.listed(who)} {'counts' if len(who) == 1 else 'count'} it {_side(credit)}"
            for credit, who in sorted(counted.items())
        )
        found.append(f"{_any_word(finest)}: {counts}")
    elif not at_one:
        by_word: dict[str, list[str]] = {}
        for key, word in said.items():
            by_word.setdefault(_any_word(word), []).append(called[key].short)
        found.append("; ".join(f"{word} by {phrases.listed(who)}" for word, who in by_word.items()))
    return "; ".join(found)


def _side_by_side(group: Group) -> list[set[str]]:
    """The pairs of definitions whose units can be matched: their verdicts say which units they are about."""
    return [{pair.left, pair.right} for pair in group.pairs if pair.why]


def _alike(one: Word, other: Word) -> bool:
    """Whether two sources may have said the same; words without a counterpart among ours are compared as they are."""
    return bool(_agreed(one, other)) or (one.ours is other.ours is None and one.native == other.native)


def _any_word(word: Word) -> str:
    return _word(word.ours) if word.ours else f"“{word.native}”"


def _word(ours: str) -> str:
    return ours.replace("_", " ")


def says(word: Word) -> tuple[str, str]:
    """What a source said of a claim: its own word, with ours where there is another, and what its formula does."""
    native = f"{word.native} ({_word(word.ours)})" if word.ours and _word(word.ours) != word.native else word.native
    return native, _side(word.credit)


def field(value: Any) -> str:
    """A field of a card; lists as a person writes them."""
    if isinstance(value, list | tuple) and value and all(isinstance(each, str) for each in value):
        return (" " if value[0].endswith(".") else ", ").join(value)
    return phrases.field(value)


def most_apart(group: Group, limit: int) -> list[View]:
    """The records on which the definitions are furthest apart, the furthest first."""
    from heapq import nsmallest

    return nsmallest(limit, group.views, key=lambda view: (-view.spread, -_disputes(view)))


def apart(view: View) -> bool:
    """Whether the definitions differ on a record, in their values as they are shown or on a claim."""
    return round(view.spread, 3) > 0 or _disputes(view) > 0


def _disputes(view: View) -> int:
    """How many claims the sources do not count alike."""
    return sum(len({word.credit for word in claim.words.values()} - {None}) > 1 for claim in view.claims)


def spoke(view: View, units: str, called: Iterable[str]) -> list[str]:
    """The sources that judged this kind of unit on the record, in the order of the names."""
    found = {key for claim in view.claims if claim.units == units for key in claim.words}
    return [key for key in called if key in found]


def winner(systems: Systems, left: str, right: str) -> str:
    """Which system is best by either definition."""
    one, other = phrases.listed(systems.left_best), phrases.listed(systems.right_best)
    if systems.same_winner:
        ties = "are equal and best" if len(systems.left_best) > 1 else "is best"
        return f"{one} {ties} by both {left} and {right}"
    ends = [
        f"{best} by {name} ({phrases.number(systems.means[mine[0]][side])}; "
        f"{phrases.listed([f'{system} {phrases.number(systems.means[system][side])}' for system in theirs])})"
        for best, mine, theirs, name, side in (
            (one, systems.left_best, [each for each in systems.right_best if each not in systems.left_best], left, 0),
            (
                other,
                systems.right_best,
                [each for each in systems.left_best if each not in systems.right_best],
                right,
                1,
            ),
        )
    ]
    return f"The winner changes: {', '.join(ends)}"


def winners(group: Group, called: Mapping[str, Name], most: int) -> list[str]:
    """Whether the choice of the definition changes the best system, and where, in `most` pairs at most; empty where
    there are no systems."""
    found = [(pair, pair.systems) for pair in group.pairs if pair.systems]
    if not found:
        return []
    changed = [(pair, systems) for pair, systems in found if not systems.same_winner]
    first = f"The choice of the definition changes the winner in {len(changed)} of {phrases.count(len(found), 'pair')}"
    best = {systems.left_best for _, systems in found}
    if changed:
        told = [winner(systems, called[pair.left].short, called[pair.right].short) for pair, systems in changed]
    else:
        told = [f"Best by all of them: {phrases.listed(found[0][1].left_best)}"] if len(best) == 1 else []
    doubts = [BY_MEANS] if changed else []
    return [f"{first}.", *told[:most], *doubts, *filter(None, [other_questions(group)])]


def other_means(group: Group, cross: Cross) -> str:
    """That the cross table has other means than the definitions; empty where all are over as many records."""
    fewer = any(row.n != cross.n for row in group.rows if row.definition in cross.sources)
    return ", so that a definition's own cell is not its mean over all of its records" if fewer else ""


def other_questions(group: Group) -> str:
    """That the systems did not answer the same questions, in a sentence; empty where they did, or it is not known."""
    asked: dict[str, set[str | None]] = {}
    for view in group.views:
        if view.system and view.values:
            asked.setdefault(view.system, set()).add(view.question)
    if all(view.detailed for view in group.views) and len(set(map(frozenset, asked.values()))) > 1:
        counts = phrases.some([f"{system} {len(found)}" for system, found in asked.items()], 6)
        return f"The systems did not answer the same questions ({counts}), which alone can make a winner."
    return ""


def hazard(found: Hazard) -> str:
    """What happened, and what the framework returned where paribus did not take it for a value."""
    if found.native is None or " returned " in found.what:
        return found.what
    return f"{found.what}; the framework itself returned {_returned(found.native)}"


def _returned(native: tuple[float, float]) -> str:
    low, high = (f"{value:g}" for value in native)
    return low if low == high else f"{low} to {high}"


def hazards(group: Group, called: Mapping[str, Name]) -> list[tuple[list[Name], str, tuple[str, ...]]]:
    """What happened to several definitions on the same records, once: to whom, what, and the records."""
    alike: dict[tuple[str, tuple[str, ...]], list[Hazard]] = {}
    for found in group.hazards:
        alike.setdefault((found.what, found.ids), []).append(found)
    listed = []
    for (what, ids), each in alike.items():
        returned: dict[str, list[str]] = {}
        for found in each:
            if found.native is not None and hazard(found) != what:
                returned.setdefault(_returned(found.native), []).append(called[found.definition].letter)
        all_the_same = len(returned) == 1 and len(next(iter(returned.values()))) == len(each)
        told = ", ".join(
            value if all_the_same else f"{value} ({', '.join(letters)})" for value, letters in returned.items()
        )
        several = f"{what}; the frameworks themselves returned {told}" if told else what
        listed.append(
            ([called[found.definition] for found in each], several if len(each) > 1 else hazard(each[0]), ids)
        )
    return listed


def judge(card: JudgeCard) -> list[tuple[str, str]]:
    """What is known of the judge, by name."""
    fields = ("provider", "model", "revision", "temperature", "seed", "max_tokens", "host", "embeddings")
    known = [(name.replace("_", " "), str(getattr(card, name))) for name in fields if getattr(card, name) is not None]
    return [*known, *((name, str(value)) for name, value in card.settings.items()), ("fingerprint", card.fingerprint)]


def scope(audit: Audit) -> str:
    """What was audited, in a few words."""
    over = f"{phrases.count(audit.records, 'record')} of {audit.source}"
    by = f", {phrases.count(len(audit.systems), 'system')}" if audit.systems else ""
    return (
        over + by + (f", judge: {audit.judge.provider} {audit.judge.model}" if audit.judge else ", no judge was asked")
    )


def cosines(rows: Iterable[Row]) -> bool:
    """Whether values of some, of -1 to 1, are their own shares (see Row.share)."""
    return any(row.share(0.0) == 0.0 and row.range[0] < 0 for row in rows)


def other_scales(rows: Iterable[Row]) -> bool:
    """Whether a mean of some is not itself a share of its range with 1 as the best."""
    return any(tuple(row.range) != (0.0, 1.0) or row.direction != "higher" for row in rows)
