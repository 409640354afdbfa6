"""What a definition asks of a judge, apart from any framework's wording.

A model reads the prompt and needs none of this. The judges without a model (people's stored verdicts, the lexical
rules) do: every adapter says of each of its calls which task it is, and writes the findings in the framework's own
schema.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Source = Literal["context", "chunk", "reference", "answer"]
"""Where a text comes from: all that reached the prompt, one chunk of it, the reference answer, the answer."""

Word = Literal["supported", "contradicted", "absent", "relevant", "not_relevant", "attributed", "not_attributed"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What a judge says of one unit (claim, chunk, sentence, entity, question).

    word: None where the task asks for units only. grade: how much of it holds, 0 to 1; None = 1 for supported,
    relevant and attributed, 0 for the others.
    """

    unit: str
    word: Word | None = None
    reason: str = ""
    grade: float | None = None

    @property
    def holds(self) -> float:
        """The grade, from 0 to 1."""
        if self.grade is not None:
            return self.grade
        return 1.0 if self.word in ("supported", "relevant", "attributed") else 0.0


Findings = tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Split:
    """Cut `text` into units, each understandable alone. One Finding a unit, without a word."""

    text: str
    source: Source
    into: Literal["claims", "sentences", "facts", "entities"] = "claims"


@dataclass(frozen=True, slots=True)
class Support:
    """Is each of `units` supported by `text`? A Finding each, in order: supported, contradicted or absent.

    units_of: where the units come from; source: where `text` comes from. apart: False = the framework has one word for
    contradicted and absent, so that a judge may leave it open which of them it is.
    """

    units: tuple[str, ...]
    text: str
    units_of: Source
    source: Source
    apart: bool = True


@dataclass(frozen=True, slots=True)
class Attribute:
    """Cut `text` (the reference) and say of each unit whether `context` holds it: attributed or not_attributed."""

    text: str
    context: str


@dataclass(frozen=True, slots=True)
class Relevance:
    """Does each of `passages` help to answer `question`? A Finding each, in order: relevant or not_relevant.

    answer: what it should help to arrive at (the reference, or the answer given), where the call shows one.
    units_of: what the passages are: chunks, or statements of the answer.
    """

    question: str
    passages: tuple[str, ...]
    answer: str | None = None
    units_of: Source = "chunk"


@dataclass(frozen=True, slots=True)
class RelevantStatements:
    """Cut `passage` into statements and say of each whether it helps with `question`: relevant or not_relevant."""

    question: str
    passage: str


@dataclass(frozen=True, slots=True)
class AskBack:
    """Which question does `answer` answer? One Finding whose unit is the question; word "absent" = noncommittal."""

    answer: str


@dataclass(frozen=True, slots=True)
class Agree:
    """How far does `answer` say what `reference` says? One Finding with a grade."""

    question: str
    answer: str
    reference: str


@dataclass(frozen=True, slots=True)
class Grade:
    """How far does `text` hold, as one grade: does it answer `question` (relevance), is it backed by `against`
    (groundedness)? One Finding with a grade. source: where `text` comes from."""

    what: Literal["relevance", "groundedness"]
    text: str
    source: Source
    question: str | None = None
    against: str | None = None


@dataclass(frozen=True, slots=True)
class Match:
    """Compare the claims of answer and reference. A Finding for every claim of the answer (supported = the reference
    says so, else absent), then for every claim of the reference (supported = the answer says so, else absent)."""

    question: str
    answer_claims: tuple[str, ...]
    reference_claims: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Decline:
    """Does `answer` decline to answer `question`? One Finding: supported = it declines, absent = it does not."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class Contribution:
    """Did each of `chunks` contribute to `answer`? A Finding each, in order: relevant or not_relevant."""

    question: str
    answer: str
    chunks: tuple[str, ...]


Task = (
    Split
    | Support
    | Attribute
    | Relevance
    | RelevantStatements
    | AskBack
    | Agree
    | Grade
    | Match
    | Decline
    | Contribution
)

Write = Callable[[Findings], object]
"""Findings -> data in the schema of the call, or a text where it has none."""
