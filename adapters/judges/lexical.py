"""Rules as the judge: no model, no network, the same on every machine, and weak."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, assert_never

from adapters import refusal, sentences
from adapters.judge import Call
from adapters.judges import lexical_rules
from adapters.judges.lexical_rules import held, passage, shared
from adapters.judges.tasked import TaskJudge
from adapters.judges.vectors import CARD
from adapters.schema import JudgeCard
from adapters.tasks import (
    Agree,
    AskBack,
    Attribute,
    Contribution,
    Decline,
    Finding,
    Findings,
    Grade,
    Match,
    Relevance,
    RelevantStatements,
    Split,
    Support,
    Task,
)

RULES = "3"
"""Raised when a verdict may change; the hash of the source beside it changes with any edit."""
HELPS = 0.3
"""Share of the content words of a question from which on a passage is relevant."""

AGREEMENT = (
    "judge=lexical is rules without a model, and weak. On 179 claims of WiCE it agrees with people on 73% (always "
    "the commoner label: 68%; Cohen's kappa 0.29); over 238 answers of MTRAG, its share of supported claims correlates "
    "with people's ratings of faithfulness by 0.56 (Spearman). Try things out with it; decide by judge=openai or people"
)
"""Figures of benchmarks/lexical_judge.py, on the halves that the rules were not set on."""

_CLAUSES = re.compile(r";\s+|,\s+(?:and|but|so|while|whereas)\s+")
_VERB = re.compile(
    r"\b(?:is|are|was|were|be|been|has|have|had|can|could|may|might|must|shall|should|will|would|do|does|did|"
    r"cannot|\w+n't|\w{2,}ed|gets?|gives?|goes|makes?|needs?|takes?|says?|shows?|means?|holds?|falls?|includes?)\b",
    re.IGNORECASE,
)


class LexicalJudge(TaskJudge):
    """Judges by shared word stems, numbers with their units, negations and names (adapters.judges.lexical_rules).

    English only. It knows no synonyms and draws no conclusions, so what is said in other words counts as absent.

    Agreement with people, on rows that the thresholds were not set on: 179 claims of WiCE, supported or not: accuracy
    0.73 (the commoner label: 0.68), balanced accuracy 0.63, Cohen's kappa 0.29. 238 answers of MTRAG: Spearman 0.56
    between the share of supported claims and the mean of three ratings of faithfulness. `PYTHONPATH=. python
    benchmarks/lexical_judge.py FOLDER` prints them.
    """

    @property
    def card(self) -> JudgeCard:
        """The rules, by the hash of their source, and the packages that cut sentences and words."""
        return _card()

    def findings(self, task: Task, call: Call) -> Findings:
        """See TaskJudge."""
        return _found(task)

    def warnings(self, generator_model: str | None) -> tuple[str, ...]:
        """How far it agrees with people, and what its vectors cannot tell."""
        return (AGREEMENT, *super().warnings(generator_model))


@cache
def _card() -> JudgeCard:
    modules: tuple[Any, ...] = (lexical_rules, refusal, sentences)
    files = [Path(__file__), *(Path(module.__file__) for module in modules)]
    return JudgeCard(
        provider="lexical",
        model="rules",
        revision=f"{RULES}, {hashlib.sha256(b''.join(file.read_bytes() for file in files)).hexdigest()[:12]}",
        embeddings=CARD,
        settings={package: version(package) for package in ("sentencex", "PyStemmer")},
    )


def _found(task: Task) -> Findings:
    match task:
        case Split():
            return tuple(map(Finding, _units(task)))
        case Support():
            return tuple(_support(unit, task.text) for unit in task.units)
        case Attribute():
            judged = [_support(sentence, task.context) for sentence in lexical_rules.sentences(task.text)]
            return tuple(
                Finding(f.unit, "attributed" if f.word == "supported" else "not_attributed", f.reason) for f in judged
            )
        case Relevance(units_of="chunk" | "context"):
            return tuple(_helps(text, task.question, task.answer) for text in task.passages)
        case Relevance():
            return tuple(_addresses(text, task.question) for text in task.passages)
        case RelevantStatements():
            return tuple(_helps(text, task.question, None) for text in lexical_rules.sentences(task.passage))
        case AskBack():
            declines = refusal.declines(task.answer)
            first = next(iter(lexical_rules.sentences(task.answer)), task.answer.strip())
            return (Finding(f"Is it true that {first.rstrip('.!?')}?", "absent" if declines else None),)
        case Agree():
            return (Finding(task.answer, grade=_agreement(task.answer, task.reference)),)
        case Grade(what="relevance"):
            return (Finding(task.text, grade=shared(task.question or "", task.text)),)
        case Grade():
            return (Finding(task.text, grade=_share_supported(task.text, task.against or "")),)
        case Match():
            answer, reference = " ".join(task.answer_claims), " ".join(task.reference_claims)
            return (
                *(_says(claim, reference) for claim in task.answer_claims),
                *(_says(claim, answer) for claim in task.reference_claims),
            )
        case Decline():
            return (Finding(task.answer, "supported" if refusal.declines(task.answer) else "absent"),)
        case Contribution():
            return tuple(_contributes(chunk, task.answer) for chunk in task.chunks)
        case _:
            assert_never(task)


def _units(task: Split) -> Sequence[str]:
    match task.into:
        case "claims":
            return claims(task.text)
        case "sentences" | "facts":
            return lexical_rules.sentences(task.text)
        case "entities":
            return list(dict.fromkeys(_entities(task.text)))


def claims(text: str) -> list[str]:
    """The sentences of a text, cut at ";" and ", and" where both sides have something like a verb."""
    return [claim for sentence in lexical_rules.sentences(text) for claim in _clauses(sentence)]


def _clauses(sentence: str) -> Iterator[str]:
    start = 0
    for cut in _CLAUSES.finditer(sentence):
        if _VERB.search(sentence, start, cut.start()) and _VERB.search(sentence, cut.end()):
            yield sentence[start : cut.start()].strip()
            start = cut.end()
    yield sentence[start:].strip()


def _entities(text: str) -> Iterator[str]:
    """Names (neighbouring capitalised words inside a sentence), model numbers, and quantities, as they are written."""
    for sentence in lexical_rules.sentences(text):
        body = sentence.partition(" ")[2]
        yield from re.findall(r"\b[A-Z][\w'-]*(?:\s+[A-Z][\w'-]*)*", body)
        yield from (quantity.said for quantity in passage(sentence).quantities)


def _support(unit: str, text: str) -> Finding:
    judged = held(unit, text)
    return Finding(unit, judged.word, judged.reason)


def _says(claim: str, text: str) -> Finding:
    judged = held(claim, text)
    return Finding(claim, "supported" if judged.word == "supported" else "absent", judged.reason)


def _share_supported(text: str, against: str) -> float:
    judged = [held(claim, against).word == "supported" for claim in claims(text)]
    return sum(judged) / len(judged) if judged else 0.0


def _agreement(answer: str, reference: str) -> float:
    """The harmonic mean of the shares of claims that the other one supports."""
    precision, recall = _share_supported(answer, reference), _share_supported(reference, answer)
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _helps(text: str, question: str, answer: str | None) -> Finding:
    for claim in claims(answer or ""):
        if held(claim, text).word == "supported":
            return Finding(text, "relevant", f"it supports {claim[:100]!r}")
    share = shared(question, text)
    reason = f"it holds {share:.0%} of the content words of the question"
    return Finding(text, "relevant" if share >= HELPS else "not_relevant", reason)


def _addresses(statement: str, question: str) -> Finding:
    common = passage(statement).stems & passage(question).stems
    reason = f"shared with the question: {', '.join(sorted(common)[:5]) or 'no word'}"
    return Finding(statement, "relevant" if common else "not_relevant", reason)


def _contributes(chunk: str, answer: str) -> Finding:
    for claim in claims(answer):
        if held(claim, chunk).word == "supported":
            return Finding(chunk, "relevant", f"it supports {claim[:100]!r}")
    return Finding(chunk, "not_relevant", "it supports no claim of the answer")
