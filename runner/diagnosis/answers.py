"""What is known of one answer: did the system decline, is it right, supported and complete, by which definition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from adapters.base import Scorer, scorer
from adapters.labels.answers import tokens
from adapters.schema import Question, Record, Score, Span
from runner import phrases
from runner.diagnosis.rules import Rules, Telling

CLAIM, CLAIMS = 120, 3
"""Characters of a claim that evidence quotes, and how many claims."""
NOT_HELD = ("contradicted", "absent", "not_supported")
Asked = Literal["declined", "right", "grounded", "complete", "on_topic"]


@dataclass(frozen=True, slots=True)
class Told:
    """A yes, a no or an unknown (None), and why in words: definition, value and threshold, or what is missing. reason:
    what is missing without the values of this question, None where it is known."""

    yes: bool | None
    why: str
    reason: str | None = None
    score: Score | None = None


def told(asked: Asked, question: Question, record: Record, scores: Mapping[str, Score], rules: Rules) -> Told:
    """What the first definition that has a word on it says."""
    tellings: Sequence[Telling] = getattr(rules, asked)
    open_: Told | None = None
    distrusted = ""
    for telling in tellings:
        score = scores.get(telling.definition) or _computed(telling.definition, question, record)
        if score is None or score.value is None:
            continue
        if score.judge and score.judge.provider in rules.distrusted:
            distrusted = f" from another judge than {score.judge.provider}"
            continue
        value, high, low = score.value, telling.yes_from, telling.no_below
        if high is not None and value >= high:
            return Told(True, f"{telling.definition} {_number(value)} (yes from {_number(high)})", score=score)
        if low is not None and value < low:
            return Told(False, f"{telling.definition} {_number(value)} (no below {_number(low)})", score=score)
        said = f"{telling.definition} {_number(value)} says neither yes nor no"
        lacking = f"a clearer word of diagnosis.{asked}, whose values say neither yes nor no"
        open_ = open_ or Told(None, said, lacking, score)
        if high is not None and low is not None:
            return open_
    if open_:
        return open_
    names = " or ".join(telling.definition for telling in tellings[:3]) or "a definition"
    lacking = f"a value of {names}{distrusted} (diagnosis.{asked})"
    return Told(None, lacking, lacking)


@cache
def _labels_scorer(key: str) -> Scorer | None:
    if not key.startswith("labels/"):
        return None
    found = scorer(key)
    return found if isinstance(found, Scorer) else None


def _computed(key: str, question: Question, record: Record) -> Score | None:
    """The score of a definition that needs no judge and that the run lacks."""
    found = _labels_scorer(key)
    if found is None or (record.answer is None and record.refused is None):
        return None
    return found.score(question, record)


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


# Claims and words.


def unsupported(score: Score | None) -> str:
    """The claims that a definition does not find supported, with its own words for it; empty where it names none."""
    verdicts = score.evidence if score else ()
    bad = [v for v in verdicts if v.ours in NOT_HELD or (v.ours is None and v.rank is None)]
    named = [f"{quoted(verdict.unit)} ({verdict.ours or verdict.native})" for verdict in bad[:CLAIMS]]
    more = f" and {len(bad) - CLAIMS} more" if len(bad) > CLAIMS else ""
    return f": {', '.join(named)}{more}" if named else ""


def quoted(text: str) -> str:
    """The beginning of a claim or an answer, in quotation marks."""
    line = phrases.plain(text)
    return f"“{line if len(line) <= CLAIM else f'{line[: CLAIM - 1].rstrip()}…'}”"


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims of a reference beside an answer, by the words that they share. said, unsaid: those that are clear."""

    said: tuple[str, ...]
    unsaid: tuple[str, ...]
    of: int


def claims_said(question: Question, record: Record, rules: Rules) -> Claims:
    """Which claims of the reference the answer has the words of."""
    claims, answer = question.reference_claims or (), words(record.answer or "")
    shares = [(claim, _share(words(claim), answer)) for claim in claims]
    return Claims(
        tuple(claim for claim, share in shares if share >= rules.claim_said_from),
        tuple(claim for claim, share in shares if share < rules.claim_unsaid_below),
        len(claims),
    )


def words(text: str) -> frozenset[str]:
    """The words of a text, as labels/answer_f1 takes them."""
    return frozenset(tokens(text))


def _share(some: frozenset[str], among: frozenset[str]) -> float:
    return len(some & among) / len(some) if some else 0.0


def own_words(rejected: str, others: Iterable[str]) -> frozenset[str]:
    """The words of a rejected passage that no other text has."""
    return words(rejected).difference(*map(words, others))


def specifics(text: str) -> tuple[str, ...]:
    """What makes a reference exact: its words with a digit, each once."""
    return tuple(dict.fromkeys(word for word in tokens(text) if any(char.isdigit() for char in word)))


def text_of(span: Span, record: Record) -> str | None:
    """The text of a passage, where a chunk of the record has all of it."""
    chunks = (*record.labelled, *(ranked.chunk for ranked in record.reranked), *record.context)
    for chunk in chunks:
        if chunk.doc_id == span.doc_id and chunk.start <= span.start and span.end <= chunk.end:
            return chunk.text[span.start - chunk.start : span.end - chunk.start]
    return None
