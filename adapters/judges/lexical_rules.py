"""Rules by which one sentence supports or contradicts another: words, quantities, negation, names. English.

No meaning is understood. A claim is held against every sentence of a text and every pair of neighbouring sentences.
What they share by stem is counted; numbers, negations and names are compared where enough is shared.
"""

from __future__ import annotations

import math
import re
from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from math import isclose
from typing import Any, Literal

from adapters.sentences import sentence_spans, well_formed

ENOUGH = 0.6
"""Share of a claim's content words that a passage must hold to support it."""
TOPIC = 0.65
"""Share of them from which on a passage speaks of the same thing, so that a difference is a contradiction."""
NEGATED_WORDS = 2
"""Content words after a negator that it denies."""


def _spelled(words: str) -> list[str]:
    return words.split()


STOPWORDS = frozenset(
    _spelled(
        "a about after again all also am an and any are as at be been before being both but by can could did do does "
        "doing done for from further had has have having he her here hers him his how i if in into is it its itself "
        "just may me might more most must my of off on once only or other our out over own per same shall she should "
        "so some such than that the their them then there these they this those through to too under until up upon us "
        "very was we were what when where which while who whom why will with would you your yes however therefore thus"
    )
)
OBJECTS = frozenset(_spelled("a an the my your his her its our their this that these those it them you to"))
"""What follows a command ("Select your plan"), and never a name that does something."""
NEGATORS = frozenset(
    _spelled("no not never none neither nor cannot without nothing nobody nowhere hardly lacks lacked lacking unable")
)
_ONES = _spelled(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TENS = _spelled("twenty thirty forty fifty sixty seventy eighty ninety")
NUMBER_WORDS = {word: n for n, word in enumerate(_ONES)} | {word: 10 * n for n, word in enumerate(_TENS, 2)}
SCALES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "dozen": 12.0}
UNITS: dict[str, tuple[str, float]] = {
    spelled: (dimension, factor)
    for dimension, units in {
        "seconds": {
            "sec secs second seconds": 1.0,
            "min mins minute minutes": 60.0,
            "h hr hrs hour hours": 3600.0,
            "day days": 86400.0,
            "week weeks": 604800.0,
        },
        # A month has no fixed number of days.
        "months": {"month months": 1.0, "quarter quarters": 3.0, "year years yr yrs": 12.0, "decade decades": 120.0},
        "business days": {"business_day business_days working_day working_days": 1.0},
        "metres": {
            "mm millimetre millimetres millimeter millimeters": 1e-3,
            "cm centimetre centimetres centimeter centimeters": 1e-2,
            "m metre metres meter meters": 1.0,
            "km kilometre kilometres kilometer kilometers": 1e3,
            "mi mile miles": 1609.344,
            "ft foot feet": 0.3048,
            "inch inches": 0.0254,
        },
        "grams": {
            "mg milligram milligrams": 1e-3,
            "g gram grams": 1.0,
            "kg kilogram kilograms kilo kilos": 1e3,
            "lb lbs pound pounds": 453.59237,
            "oz ounce ounces": 28.349523125,
        },
        "litres": {"ml millilitre millilitres milliliter milliliters": 1e-3, "l litre litres liter liters": 1.0},
        "percent": {"% percent pct": 1.0},
        "dollars": {"$ dollar dollars usd": 1.0},
        "euros": {"€ euro euros eur": 1.0},
        "bytes": {"kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12},
        "watts": {"w watt watts": 1.0, "kw kilowatt kilowatts": 1e3, "mw megawatt megawatts": 1e6},
    }.items()
    for spellings, factor in units.items()
    for spelled in spellings.split()
}
"""Spelling -> what it measures, and how many of that dimension's first unit it is."""

MONTHS = frozenset(  # not May, which is mostly a verb
    _spelled("january february march april june july august september october november december")
)
_POLES: dict[str, re.Pattern[str]] = {
    pole: re.compile(rf"\b(?:{said})\b", re.IGNORECASE)
    for pole, said in {
        "up": "rose|risen|rises|increased|increases|grew|grown|climbed",
        "down": "fell|fallen|falls|decreased|decreases|declined|dropped|shrank",
        "at least": "at least|a minimum of",
        "at most": "at most|a maximum of",
    }.items()
}
OPPOSITES = (("up", "down"), ("at least", "at most"))
_CHANGED = frozenset(word for pole in ("up", "down") for word in _spelled(_POLES[pole].pattern[5:-3].replace("|", " ")))

_NO_NAMES = STOPWORDS | UNITS.keys() | NUMBER_WORDS.keys()
_MARKER = re.compile(r"\W*(?:\d{1,3}|[A-Za-z])[.):]\W*")
_SOUND = re.compile(r"[^\W_]")
_GLUED = re.compile(r"(\d)(km|cm|mm|kg|mg|ml|gb|mb|tb|kb|kw|mw|hrs?|mins?)\b", re.IGNORECASE)
_WORKING = re.compile(r"\b(business|working)[ -](days?)\b", re.IGNORECASE)
_FREE = re.compile(r"\b(?:costs? nothing|(?:is|are) free of charge|(?:is|are) for free)\b", re.IGNORECASE)
_TOKEN = re.compile(
    r"(?:business|working)_days?|(?<!\d)\d{1,2}:\d{2}(?!\d)|(?<![\d/])\d+/\d+(?![\d/])"
    r"|(?:(?<![^\s(])-)?(?:\d+(?:,\d{3})+(?:\.\d+)?|\d+\.\d+|\d+(?![^\W_]))|[^\W_]+(?:'[^\W_]+)*|[%$€]",
    re.IGNORECASE,
)
_MODEL = re.compile(r"[^\W\d_]+\d+\w*")


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with what it measures: the dimension of its unit, "year", the stem of the noun after it, or ""."""

    value: float
    of: str
    said: str


@dataclass(frozen=True, slots=True)
class Passage:
    """What the rules see of a text.

    words: all, in small letters. stems: of its content words, quantities left out. negated: stems that a negator stands
    before. names: capitalised words inside the text, in small letters. models: model numbers such as R2. first: the
    word that it begins with, where it may be a name. poles: directions and bounds ("up", "at least").
    """

    text: str
    words: frozenset[str]
    stems: frozenset[str]
    negated: frozenset[str]
    quantities: tuple[Quantity, ...]
    names: frozenset[str]
    models: frozenset[str]
    first: frozenset[str]
    poles: frozenset[str]

    def __add__(self, other: Passage) -> Passage:
        return Passage(
            f"{self.text} {other.text}",
            self.words | other.words,
            self.stems | other.stems,
            self.negated | other.negated,
            self.quantities + other.quantities,
            self.names | other.names,
            self.models | other.models,
            self.first | other.first,
            self.poles | other.poles,
        )


@dataclass(frozen=True, slots=True)
class Held:
    """A claim held against a text. share: how much of the claim's content the deciding passage holds, 0 to 1."""

    word: Literal["supported", "contradicted", "absent"]
    reason: str
    share: float


def sentences(text: str) -> list[str]:
    """The sentences of a text that hold a letter or a digit, without white space around them. A list marker by itself
    (`1.`, `b)`) is none, unless there is nothing else."""
    found = (text[start:end].strip() for start, end in sentence_spans(text))
    sound = [sentence for sentence in found if _SOUND.search(sentence)]
    return [sentence for sentence in sound if not _MARKER.fullmatch(sentence)] or sound


@lru_cache(maxsize=2048)
def passage(text: str) -> Passage:
    """What the rules see of `text`."""
    plain = _FREE.sub("costs 0 dollars", well_formed(text).replace("’", "'").replace("−", "-"))
    tokens = _TOKEN.findall(_GLUED.sub(r"\1 \2", _WORKING.sub(r"\1_\2", plain)))
    lower = [token.lower() for token in tokens]
    quantities, used = _quantities(lower)
    content = [
        (place, stem)
        for place, stem in enumerate(_stemmer().stemWords(["rose" if word in _CHANGED else word for word in lower]))
        if place not in used and lower[place] not in STOPWORDS and not _negates(lower[place])
    ]
    places = [place for place, _ in content]
    negated = {
        stem
        for at, token in enumerate(lower)
        if _negates(token)
        for after in [bisect(places, at)]
        for _, stem in content[after : after + NEGATED_WORDS]
    }
    return Passage(
        text=text,
        words=frozenset(lower),
        stems=frozenset(stem for _, stem in content),
        negated=frozenset(negated),
        quantities=tuple(quantities),
        names=frozenset(
            token.lower() for place, token in enumerate(tokens) if _is_name(token) and (place or token.isupper())
        ),
        models=frozenset(token for token in lower if _MODEL.fullmatch(token)),
        first=frozenset(token for token in lower[:1] if _is_name(tokens[0]) and OBJECTS.isdisjoint(lower[1:2])),
        poles=frozenset(pole for pole, said in _POLES.items() if said.search(plain)),
    )


def _is_name(token: str) -> bool:
    return token[0].isupper() and len(token) > 1 and token.lower() not in _NO_NAMES and not _negates(token.lower())


@lru_cache(maxsize=8)
def windows(text: str) -> tuple[Passage, ...]:
    """Every sentence of a text, then every two neighbours joined, unless they are about different models."""
    single = [passage(sentence) for sentence in sentences(text)]
    pairs = (a + b for a, b in pairwise(single) if not (a.models and b.models and a.models != b.models))
    return tuple(dict.fromkeys((*single, *pairs)))


@lru_cache(maxsize=8)
def words(text: str) -> frozenset[str]:
    """All words of a text, in small letters."""
    return passage(text).words


@lru_cache(maxsize=8)
def names(text: str) -> frozenset[str]:
    """The names inside the sentences of a text, in small letters."""
    return frozenset().union(*(window.names for window in windows(text)))


def held(claim: str, text: str) -> Held:
    """What `text` says of `claim`: supported where a sentence or two neighbours hold it, else contradicted where one
    that speaks of the same says otherwise, else absent."""
    wanted = passage(claim)
    if not wanted.stems:
        return Held("absent", "the claim has no content word", 0.0)
    known = wanted.names | names(text)
    unnamed = (wanted.names | (wanted.first & known)) - words(text)
    # What names nothing that the text knows is compared by the rest of it.
    rest = wanted.stems - set(_stemmer().stemWords(sorted(unnamed))) or wanted.stems
    best: dict[str, Held] = {"absent": Held("absent", "no sentence shares a content word with it", 0.0)}
    for window in windows(text):
        if wanted.stems.isdisjoint(window.stems):
            continue
        judged = _compared(wanted, rest, unnamed, known, window)
        if judged.word not in best or judged.share > best[judged.word].share:
            best[judged.word] = judged
    supported, contradicted = best.get("supported"), best.get("contradicted")
    if supported and (not contradicted or supported.share >= contradicted.share):
        return supported
    return contradicted or best["absent"]


def shared(text: str, other: str) -> float:
    """Share of the content words of `text` that `other` holds, 0 to 1; 0 where it has none."""
    wanted = passage(text).stems
    return len(wanted & passage(other).stems) / len(wanted) if wanted else 0.0


def _compared(
    claim: Passage, rest: frozenset[str], unnamed: frozenset[str], known: frozenset[str], window: Passage
) -> Held:
    common = claim.stems & window.stems
    equal = [mine for mine in claim.quantities if any(_equal(mine, theirs) for theirs in window.quantities)]
    topic = len(common & rest) / len(rest)
    share = (len(common) + len(equal)) / (len(claim.stems) + len(claim.quantities))
    seen = f"“{window.text[:100]}” holds {share:.0%} of it"
    if claim.models and window.models and claim.models.isdisjoint(window.models):
        return Held("absent", f"{seen}, and is about {_listed(window.models)}", share)
    if topic >= TOPIC:
        for mine in claim.quantities:
            theirs = [other for other in window.quantities if _kind(other) == _kind(mine)]
            if mine.of and mine not in equal and theirs:
                differs = f"it says {mine.said}, not {theirs[0].said}".replace("_", " ")
                return Held("contradicted", f"{differs}: {seen}", share)
        for pair in OPPOSITES:
            said, found = claim.poles.intersection(pair), window.poles.intersection(pair)
            if len(said) == len(found) == 1 and said != found:
                differs = f"it says “{min(found)}”, not “{min(said)}”"
                return Held("contradicted", f"{differs}: {seen}", share)
        if bool(claim.negated & common) != bool(window.negated & common):
            return Held("contradicted", f"only one of the two is a denial: {seen}", share)
    others = (window.names | (window.first & known)) - claim.words
    if unnamed and others and topic >= TOPIC:
        return Held("contradicted", f"it names {_listed(unnamed)}, not {_listed(others)}: {seen}", share)
    begins, other = claim.first - window.words, window.first - claim.words
    same = set(_stemmer().stemWords(sorted(begins)))
    if begins and other and len(window.first) == 1 and claim.stems - same <= window.stems:
        return Held("absent", f"it is about {_listed(other)}, not {_listed(begins)}: {seen}", share)
    if share >= ENOUGH and len(equal) == len(claim.quantities) and not unnamed:
        return Held("supported", seen, share)
    return Held("absent", f"{seen}, which is too little" if share < ENOUGH else f"{seen}, the rest is not there", share)


def _quantities(words: Sequence[str]) -> tuple[list[Quantity], set[int]]:
    """The quantities of a text and the places of the words that they are made of."""
    found: list[Quantity] = []
    used: set[int] = set()
    place = 0
    while place < len(words):
        value, after = _number(words, place)
        if value is None:
            place += 1
            continue
        if of := _written(words, place, after):
            start = place - 1 if of in MONTHS else place
            found.append(Quantity(value, of, " ".join(words[start:after])))
            used.update(range(place, after))
            place = after
            continue
        following = words[after] if after < len(words) else ""
        unit = UNITS.get(following)
        start = place
        if unit is None and place and words[place - 1] in ("$", "€"):
            unit, start = UNITS[words[place - 1]], place - 1
        elif unit:
            after += 1
        if unit:
            found.append(Quantity(value * unit[1], unit[0], " ".join(words[start:after])))
        elif after == place + 1 and re.fullmatch(r"(?:1\d|20)\d\d", words[place]):
            found.append(Quantity(value, "year", words[place]))
        elif words[place] != "one":
            noun = following if following.isalpha() and following not in STOPWORDS else ""
            found.append(Quantity(value, noun and _stemmer().stemWord(noun), " ".join(words[start:after])))
        else:
            after = place + 1
            place = after
            continue
        used.update(range(start, after))
        place = after
    return found, used


def _number(words: Sequence[str], place: int) -> tuple[float | None, int]:
    """The number that begins at `place` ("3.5 million", "twenty four") and the place after it."""
    word = words[place]
    if word.lstrip("-")[:1].isdecimal() and word.isascii():
        try:
            value = _value(word, place > 0 and words[place - 1] == "version")
        except ValueError:
            return None, place
    elif word in NUMBER_WORDS:
        value = float(NUMBER_WORDS[word])
        following = NUMBER_WORDS.get(words[place + 1], 0) if place + 1 < len(words) else 0
        if value >= 20 and 0 < following < 10:
            value, place = value + following, place + 1
    else:
        return None, place
    place += 1
    while place < len(words) and words[place] in SCALES:
        value, place = value * SCALES[words[place]], place + 1
    return value, place


def _value(word: str, version: bool) -> float:
    """Raises ValueError for what is no number."""
    if ":" in word:
        hours, minutes = word.split(":")
        return 60.0 * int(hours) + int(minutes)
    if "/" in word:
        above, below = map(int, word.split("/"))
        return above / below if below else math.inf
    if version:
        major, _, minor = word.partition(".")
        return int(major) + int(minor or 0) / 1000
    return float(word.replace(",", ""))


def _written(words: Sequence[str], place: int, after: int) -> str:
    """What the number between two places measures by the way it is written, or ""."""
    word, before = words[place], words[place - 1] if place else ""
    following = words[after] if after < len(words) else ""
    if ":" in word:
        return "time"
    if "/" in word:
        return "fraction"
    if before == "version":
        return "version"
    if following in UNITS or not word.isdecimal():
        return ""
    if before in MONTHS and int(word) <= 31:
        return before
    # 9 to 17
    behind = following in ("to", "until") and after + 1 < len(words) and words[after + 1].isdecimal()
    ahead = before in ("to", "until") and place > 1 and words[place - 2].isdecimal()
    return "range" if (behind or ahead) and not (following.isalpha() and following not in STOPWORDS) else ""


def _equal(mine: Quantity, theirs: Quantity) -> bool:
    # A bare number ("it costs 5") is equal to any of its size.
    for share, other in ((mine, theirs), (theirs, mine)):
        if share.of == "percent" and other.of in ("", "fraction") and isclose(share.value, 100 * other.value):
            return True
    bare = {mine.of, theirs.of} & {"", "range", *MONTHS}
    return isclose(mine.value, theirs.value, rel_tol=1e-9) and (mine.of == theirs.of or bool(bare))


def _kind(quantity: Quantity) -> str:
    """What two quantities must share to contradict each other: 5 days are not 5 business days, nor dollars euros."""
    return {"business days": "seconds", "dollars": "money", "euros": "money"}.get(quantity.of, quantity.of)


def _negates(word: str) -> bool:
    return word in NEGATORS or word.endswith("n't")


def _listed(names: frozenset[str]) -> str:
    return ", ".join(sorted(names)[:5])


@cache
def _stemmer() -> Any:
    from Stemmer import Stemmer

    return Stemmer("english")
