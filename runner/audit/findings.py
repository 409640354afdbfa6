"""What an audit finds: for each question asked, the definitions side by side, in pairs, and what their formulas make of
each other's evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from adapters.formulas import Formula
from adapters.schema import JudgeCard
from runner.audit.parts import Judged, Parts

PEOPLE = "people"
"""The source of verdicts that people gave."""


@dataclass(frozen=True)
class Subject:
    """A definition that is audited. card: what is known of it, as `Definition.card` or `runner.definitions.entry` gives
    it. formula: what it makes of verdicts; None = its value does not come from verdicts on units."""

    key: str
    id: str
    framework: str
    asks: str
    unit: str
    wording: str
    range: tuple[float, float]
    direction: Literal["higher", "lower"]
    card: Mapping[str, Any]
    formula: Formula | None

    @property
    def judged(self) -> Judged | None:
        """Its formula with the words that it knows."""
        return Judged(self.id, self.formula) if self.formula else None

    def share(self, value: float) -> float:
        """A value as a share of the range, 1 = best; see `_share`."""
        return _share(value, self.range, self.direction)


def _share(value: float, range: tuple[float, float], direction: str) -> float:
    """0 to 1 for the values of a range. A cosine, of -1 to 1, is its own share and may be negative: 0 is what two texts
    get that have nothing in common, and a reader takes 0.3 for 0.3."""
    low, high = range
    low = 0.0 if (low, high) == (-1.0, 1.0) else low
    share = (value - low) / (high - low)
    return share if direction == "higher" else 1 - share


@dataclass(frozen=True, slots=True)
class Row:
    """One definition over all records. mean is over the n records with a value, low and high its 95% bootstrap interval
    over records (over questions, where several systems answered them); below: how many of them are under the threshold.
    first_failure: why the first failed one failed.
    id: the definition without its parameters. units: what its formula counts, and credits: what it counts for each of
    our words; None and empty where its value does not come from verdicts on units."""

    definition: str
    framework: str
    unit: str
    formula: str
    range: tuple[float, float]
    direction: str
    mean: float | None
    low: float | None
    high: float | None
    n: int
    failed: int
    not_applicable: int
    below: int
    first_failure: str | None
    id: str
    units: str | None
    credits: Mapping[str, float]

    def share(self, value: float) -> float:
        """A value of it as a share of the range, 1 = best; see `_share`."""
        return _share(value, self.range, self.direction)


@dataclass(frozen=True, slots=True)
class Systems:
    """Whole systems by two definitions, over the records that both scored. means: system -> left, right. kendall: tau-b
    of the two orders; left_best, right_best: those that are first, several where they tie."""

    means: Mapping[str, tuple[float, float]]
    kendall: float | None
    left_best: tuple[str, ...]
    right_best: tuple[str, ...]

    @property
    def same_winner(self) -> bool:
        """Whether the choice of the definition leaves the best system the same."""
        return self.left_best == self.right_best


@dataclass(frozen=True, slots=True)
class Why:
    """Means of the parts over the n records whose two scores both come from verdicts on the same kind of unit.

    claims + verdicts + formula = difference, the mean difference over these records. matched, only_left, only_right,
    undetermined: sums over the records (see Parts). slack: how far formula may be off for the undetermined ones.
    left, right: the two means over these records, by the formulas.
    """

    n: int
    left: float
    right: float
    difference: float
    claims: float
    verdicts: float
    formula: float
    matched: int
    only_left: int
    only_right: int
    undetermined: int
    slack: float


@dataclass(frozen=True, slots=True)
class Pair:
    """Two definitions over the n records that both scored, as shares of their ranges, 1 = best.

    difference: mean of left - right, low and high its 95% paired bootstrap interval; apart: mean absolute difference.
    sides: share of records on different sides of the threshold. spearman, kendall (tau-b): None where one of them is
    constant, or fewer than two records. why: None where `why_not` says why the difference has no parts. paper: the
    fields in which the cards differ.
    """

    left: str
    right: str
    n: int
    difference: float | None
    low: float | None
    high: float | None
    apart: float | None
    sides: float | None
    spearman: float | None
    kendall: float | None
    systems: Systems | None
    why: Why | None
    why_not: str | None
    paper: Mapping[str, tuple[Any, Any]]


@dataclass(frozen=True, slots=True)
class Cross:
    """Each formula on each source's verdicts, means over the n records on which all sources have some.

    cells, low, high: [source][formula]; low and high differ from cells where words of the source leave open what the
    formula must know. own: the cell of a definition's formula on its own verdicts is its score.
    """

    units: str
    sources: tuple[str, ...]
    formulas: tuple[str, ...]
    n: int
    cells: tuple[tuple[float, ...], ...]
    low: tuple[tuple[float, ...], ...]
    high: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class Word:
    """What one source says of a unit. unit: in its own wording. credit: what its own formula counts for it; None for
    people, who have none."""

    unit: str
    native: str
    ours: str | None
    reason: str | None
    credit: float | None


@dataclass(frozen=True, slots=True)
class Claim:
    """One unit with what each source says of it; a source without it is absent."""

    text: str
    units: str
    words: Mapping[str, Word]


@dataclass(frozen=True, slots=True)
class View:
    """One record: each definition's value (None with a reason), the claims side by side, and why each pair differs.

    spread: the largest difference between two definitions, as shares of their ranges. Where there are many records,
    only those of the largest spread are detailed: the others have no texts, claims and parts.
    """

    id: str
    question: str | None
    answer: str | None
    system: str | None
    values: Mapping[str, float | None]
    reasons: Mapping[str, str]
    claims: tuple[Claim, ...]
    parts: Mapping[str, Parts]
    spread: float
    detailed: bool = True


@dataclass(frozen=True, slots=True)
class Hazard:
    """Something of which a reader of the number alone learns nothing. native: what the framework itself returned, least
    and most, where paribus did not take it for a value. ids: the records."""

    definition: str
    what: str
    native: tuple[float, float] | None
    ids: tuple[str, ...]


@dataclass(frozen=True)
class Group:
    """The definitions that ask one question."""

    asks: str
    rows: tuple[Row, ...]
    pairs: tuple[Pair, ...]
    crosses: tuple[Cross, ...]
    views: tuple[View, ...]
    hazards: tuple[Hazard, ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """One definition of several that share a name, over the same rankings. mean is over the n rankings with a value."""

    definition: str
    formula: str
    mean: float | None
    n: int


@dataclass(frozen=True, slots=True)
class Convention:
    """How a library computes the measure. call: as its user writes it. same_as: the reading that it equals, if any.
    mean: what it gave when it was called on these rankings, over the n to which it gave a number, with its version;
    None = it is not installed, or takes no such input, and source is its documentation."""

    library: str
    version: str | None
    call: str
    convention: str
    same_as: str | None
    mean: float | None
    source: str
    n: int = 0


@dataclass(frozen=True, slots=True)
class Family:
    """The label-based definitions that go by one name (hit rate), and who computes which."""

    name: str
    readings: tuple[Reading, ...]
    conventions: tuple[Convention, ...]


@dataclass(frozen=True)
class Audit:
    """All that `paribus audit` found. threshold: share of the range from which on a value is on the good side. similar:
    likeness from which on two claims are one."""

    source: str
    records: int
    systems: tuple[str, ...]
    judge: JudgeCard | None
    threshold: float
    similar: float
    groups: tuple[Group, ...]
    families: tuple[Family, ...] = ()
    notes: tuple[str, ...] = ()
