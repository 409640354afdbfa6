"""What an audit finds, in words: names of the definitions, numbers, and sentences on why two definitions differ.

The page, the Markdown and the terminal say the same with it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adapters.formulas import MAY_MEAN
from adapters.schema import JudgeCard
from runner.audit.findings import PEOPLE, Audit, Claim, Family, Group, Hazard, Pair, Row, Systems, View, Why, Word

FRAMEWORKS = {"ragas": "Ragas", "deepeval": "DeepEval", "trulens": "TruLens"}
PARTS = ("formula", "verdicts", "claims")
"""The parts of a difference in the order in which they are shown."""
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


def field(value: Any) -> str:
    """A field of a card."""
    if value is None or value == "":
        return "–"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def singular(units: str) -> str:
    """`claim` of `claims of the answer, held against the context`."""
    noun = units.split(",")[0].split(" of ")[0]
    return f"{noun[:-3]}y" if noun.endswith("ies") else noun.removesuffix("s")


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
    noun = singular(left.units or "unit")
    rule = _rule(group, pair, why.n, left, right, called, noun) if abs(why.formula) > NOTHING else ""
    several = sum(abs(getattr(why, name)) > NOTHING for name in PARTS) > 1
    digits = 3 if several or 0 < abs(difference) < 0.1 else 2
    ends = ((called[pair.left], why.left), (called[pair.right], why.right))
    who = " and ".join(f"{name.short} {number(mean, digits)}" for name, mean in ends)
    reason = _reason(difference, parts, pair, why, noun, digits)
    return Told(
        pair=pair,
        why=why,
        difference=difference,
        parts=parts,
        who=f"{who} {_on(why, noun)}",
        reason=reason,
        rule=rule,
        matching=_matching(why, noun, called[pair.left].short, called[pair.right].short),
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
    return signed(size, digits) if round(size, digits) else f"under {10**-digits:g}"


def _on(why: Why, noun: str) -> str:
    same = "" if why.only_left + why.only_right else f"the same {count(why.matched, noun)}"
    if why.n == 1:
        return f"on {same or '1 record'}"
    return f"over {count(why.n, 'record')}{f', {same}' if same else ''}"


def _matching(why: Why, noun: str, left: str, right: str) -> str:
    alone = [f"{n:,} of {who} alone" for n, who in ((why.only_left, left), (why.only_right, right)) if n]
    return f"{count(why.matched, noun)} in common, {listed(alone)}" if alone else ""


def _reason(difference: float, parts: Mapping[str, float], pair: Pair, why: Why, noun: str, digits: int) -> str:
    called = {
        "formula": "the formula",
        "verdicts": f"other verdicts on the same {noun}s",
        "claims": f"the splitting into other {noun}s",
    }
    exact = {name: float(getattr(why, name)) for name in PARTS}
    some = [name for name in PARTS if abs(exact[name]) > NOTHING]
    if not some:
        apart = pair.apart or 0.0
        return "no difference" if apart <= NOTHING else f"equal means, though single records are {apart:.3f} apart"
    if len(some) == 1:
        return f"the whole {abs(difference):.{digits}f} is {called[some[0]]}"
    if abs(difference) < 0.0005:
        made = listed([f"{called[name]} {part(parts[name], exact[name])}" for name in some])
        return f"as good as no difference, because the parts cancel out: {made}"
    sign = 1 if difference > 0 else -1
    made = listed([f"{part(sign * parts[name], exact[name], 3)} is {called[name]}" for name in some])
    rest = [called[name] for name in PARTS if name not in some]
    return f"of the {abs(difference):.{digits}f}, {made}{f', none is {rest[0]}' if rest else ''}"


def _open(why: Why) -> str:
    if not why.undetermined:
        return f"the verdicts leave the part of the formula open by ±{number(why.slack)}" if why.slack > NOTHING else ""
    verdicts = count(why.undetermined, "verdict says", "verdicts say")
    coarse = f"{verdicts} less than the other formula must know (not supported: contradicted, or absent?)"
    return f"{coarse} and {'counts' if why.undetermined == 1 else 'count'} halfway, which leaves the part of the formula open by ±{number(why.slack)}"


def _rule(group: Group, pair: Pair, n: int, left: Row, right: Row, called: Mapping[str, Name], noun: str) -> str:
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
        such = f"a {noun} {THAT_IS.get(word, 'so judged')} ({_word(word)}{counts})"
        credits = left.credits[word], right.credits[word]
        if set(credits) == {0.0, 1.0}:
            low, high = (one, other) if credits[0] == 0 else (other, one)
            rules.append(f"{such} counts against the score in {low} and for it in {high}")
        else:
            rules.append(f"{such} counts {_side(credits[0])} in {one} and {_side(credits[1])} in {other}")
    return "; ".join(rules)


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
    means = listed([f"{called[row.definition].short} {number(row.mean, 2)}" for row in with_value])
    if not with_value:
        first = next((row.first_failure for row in group.rows if row.first_failure), "nothing here to judge")
        return f"No definition has a value: {first.rstrip('.')}."
    if len(group.rows) == 1:
        return f"Only {called[group.rows[0].definition].short} asks this: {number(with_value[0].mean, 2)}."
    reason = next((pair.why_not for pair in group.pairs if pair.n and pair.why_not), "they have no record in common")
    return f"{means}; the differences have no parts: {reason}."


def family(found: Family) -> str:
    """What the definitions of one name give, in one sentence."""
    means = [(each.mean, each.definition) for each in found.readings if each.mean is not None]
    if not means:
        return f"No definition of {found.name} has a value."
    (low, least), (high, most) = min(means), max(means)
    name = found.name.capitalize() if found.name.islower() else found.name  # nDCG stays
    if low == high:
        return f"{name} is {number(low)} by {count(len(means), 'definition')}."
    between = "" if len({number(mean) for mean, _ in means}) == 2 else ", or between,"
    return f"{name} is {number(low)} ({least}) or {number(high)} ({most}){between} on the same rankings."


def example(group: Group, found: Sequence[Told]) -> tuple[str, str] | None:
    """A claim that the pair of the headline counts otherwise, and what each makes of it; None where there is none."""
    if not found:
        return None
    called = names(group)
    pair = {key: called[key] for key in (found[0].pair.left, found[0].pair.right)}
    for view in most_apart(group, 20):
        for claim in view.claims:
            credits = {claim.words[key].credit for key in pair if key in claim.words}
            if len(credits) == 2:
                return claim.text, remark(claim, pair, list(pair))
    return None


def remark(claim: Claim, called: Mapping[str, Name], spoke: Sequence[str]) -> str:
    """What the sources make of one claim, in a sentence; empty where all have it and count it alike. spoke: the sources
    that judged this record."""
    said = {key: word for key, word in claim.words.items() if key in called}
    missing = [called[key].short for key in spoke if key not in said]
    found = []
    if missing:
        found.append(f"not among the {singular(claim.units)}s of {listed(missing)}")
    words = list(said.values())
    finest = next(
        (_agreed(one, other)[0] for one in words for other in words if one is not other and _agreed(one, other)), None
    )
    at_one = all(_agreed(one, other) for one in words for other in words)
    counted: dict[float, list[str]] = {}
    for key, word in said.items():
        if word.credit is not None:
            counted.setdefault(word.credit, []).append(called[key].short)
    if at_one and len(counted) > 1:
        finest = next((word.ours for word in words if word.ours not in MAY_MEAN), finest)
        counts = "; ".join(
            f"{listed(who)} {'counts' if len(who) == 1 else 'count'} it {_side(credit)}"
            for credit, who in sorted(counted.items())
        )
        found.append(f"{_word(finest)}: {counts}")
    elif not at_one:
        by_word: dict[str, list[str]] = {}
        for key, word in said.items():
            by_word.setdefault(_word(word.ours) if word.ours else f"“{word.native}”", []).append(called[key].short)
        found.append("; ".join(f"{word} by {listed(who)}" for word, who in by_word.items()))
    return "; ".join(found)


def _word(ours: str | None) -> str:
    return (ours or "judged otherwise").replace("_", " ")


def says(word: Word) -> tuple[str, str]:
    """What a source said of a claim: its own word with ours where that is another, and what its formula makes of it."""
    ours = _word(word.ours) if word.ours else "no word of ours"
    native = word.native if word.native == ours else f"{word.native} ({ours})"
    return native, _side(word.credit)


def most_apart(group: Group, limit: int) -> list[View]:
    """The records on which the definitions are furthest apart, the furthest first."""
    from heapq import nsmallest

    return nsmallest(limit, group.views, key=lambda view: (-view.spread, -_disputes(view)))


def _disputes(view: View) -> int:
    """How many claims the sources do not count alike."""
    return sum(len({word.credit for word in claim.words.values()} - {None}) > 1 for claim in view.claims)


def spoke(view: View, units: str, called: Iterable[str]) -> list[str]:
    """The sources that judged this kind of unit on the record, in the order of the names."""
    found = {key for claim in view.claims if claim.units == units for key in claim.words}
    return [key for key in called if key in found]


def winner(systems: Systems, left: str, right: str) -> str:
    """Which system is best by either definition."""
    one, other = listed(systems.left_best), listed(systems.right_best)
    if systems.same_winner:
        return f"{one} is best by both {left} and {right}"
    return f"The winner changes: {one} by {left}, {other} by {right}"


def hazard(found: Hazard) -> str:
    """What happened, and what the framework returned where paribus did not take it for a value."""
    if found.native is None:
        return found.what
    low, high = (f"{value:g}" for value in found.native)
    return f"{found.what}; the framework itself returned {low if low == high else f'{low} to {high}'}"


def some(ids: Sequence[str], limit: int = 10) -> str:
    """Ids on one line, and how many more there are."""
    return f"{', '.join(ids[:limit])}{f' and {len(ids) - limit:,} more' if len(ids) > limit else ''}"


def judge(card: JudgeCard) -> list[tuple[str, str]]:
    """What is known of the judge, by name."""
    fields = ("provider", "model", "revision", "temperature", "seed", "max_tokens", "host", "embeddings")
    known = [(name.replace("_", " "), str(getattr(card, name))) for name in fields if getattr(card, name) is not None]
    return [*known, *((name, str(value)) for name, value in card.settings.items()), ("fingerprint", card.fingerprint)]


def scope(audit: Audit) -> str:
    """What was audited, in a few words."""
    over = f"{count(audit.records, 'record')} of {audit.source}"
    by = f", {count(len(audit.systems), 'system')}" if audit.systems else ""
    return (
        over + by + (f", judge: {audit.judge.provider} {audit.judge.model}" if audit.judge else ", no judge was asked")
    )


def other_scales(rows: Iterable[Row]) -> bool:
    """Whether a mean of some is not itself a share of its range with 1 as the best."""
    return any(tuple(row.range) != (0.0, 1.0) or row.direction != "higher" for row in rows)
