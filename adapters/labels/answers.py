"""Definitions over the answer alone: did the system decline when it should, and does the answer match the reference.

Every value is one float in [0, 1] for one question; the rates are means of 0 and 1.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import Counter
from string import punctuation
from typing import ClassVar, Literal

from adapters.labels.relevance import LabelDefinition
from adapters.schema import Question, Record, Score, Verdict

SQUAD = (
    "Rajpurkar et al. 2016, SQuAD: 100,000+ Questions for Machine Comprehension of Text, EMNLP, pp. 2383-2392, section "
    "6.1; evaluate-v1.1.py"
)
SQUAD_2 = "Rajpurkar, Jia and Liang 2018, Know What You Don't Know: Unanswerable Questions for SQuAD, ACL, pp. 784-789"
ARTICLES = re.compile(r"\b(a|an|the)\b")
DROP_PUNCTUATION = str.maketrans("", "", punctuation)


class RefusalDefinition(LabelDefinition):
    """Base of the two rates of declining; each looks at the questions that the other leaves out."""

    unit_judged: ClassVar[str] = "answer"
    hit: ClassVar[str] = "Record.refused is true"
    requires: ClassVar[tuple[str, ...]] = ("refused",)
    source: ClassVar[str] = SQUAD_2
    hazards: ClassVar[tuple[str, ...]] = (
        "Read both rates together: a system that always declines has a perfect labels/refusal_rate.",
        "It trusts Record.refused; how a system or generator comes to set it is not part of this definition.",
    )
    asks_of_answerable: ClassVar[bool]

    def score(self, question: Question, record: Record) -> Score:
        """1.0 if the system declined, else 0.0."""
        if question.answerable is not self.asks_of_answerable:
            kind = "answerable" if question.answerable else "unanswerable"
            return self.not_applicable(record, f"the question is {kind}")
        if record.refused is None:
            return self.not_applicable(
                record, f"the record does not say whether the system declined (refused){_because(record)}"
            )
        native = "refused" if record.refused else "answered"
        return self.computed(record, float(record.refused), (Verdict("answer", native),))


class RefusalRate(RefusalDefinition):
    """Share of the unanswerable questions that the system declined to answer: 0 or 1 for each.

    Unit: the answer. Source: Rajpurkar, Jia and Liang 2018 (SQuAD 2.0), accuracy on negative examples.
    """

    id: ClassVar[str] = "labels/refusal_rate"
    asks: ClassVar[str] = "does the system decline what it cannot answer?"
    formula: ClassVar[str] = "declined unanswerable questions / unanswerable questions"
    nothing_to_judge: ClassVar[str] = "not applicable to answerable questions, and where refused is None"
    asks_of_answerable: ClassVar[bool] = False


class FalseRefusalRate(RefusalDefinition):
    """Share of the answerable questions that the system declined to answer: 0 or 1 for each; lower is better.

    Unit: the answer. Source: Rajpurkar, Jia and Liang 2018 (SQuAD 2.0).
    """

    id: ClassVar[str] = "labels/false_refusal_rate"
    asks: ClassVar[str] = "does the system decline what it could answer?"
    formula: ClassVar[str] = "declined answerable questions / answerable questions"
    nothing_to_judge: ClassVar[str] = "not applicable to unanswerable questions, and where refused is None"
    direction: ClassVar[Literal["higher", "lower"]] = "lower"
    asks_of_answerable: ClassVar[bool] = True


def tokens(text: str) -> list[str]:
    """Lower case, without ASCII punctuation and English articles, split at white space: SQuAD's normalisation."""
    return ARTICLES.sub(" ", text.lower().translate(DROP_PUNCTUATION)).split()


class AnswerDefinition(LabelDefinition):
    """Base of the comparisons of the answer with the reference, word by word; subclasses give `_value`."""

    unit_judged: ClassVar[str] = "token"
    hit: ClassVar[str] = (
        "a token that answer and reference share, as often as both have it, after lower-casing and dropping ASCII "
        "punctuation and the English articles a, an, the"
    )
    nothing_to_judge: ClassVar[str] = (
        "not applicable to unanswerable questions and without a reference answer that has tokens; 0 where the system "
        "declined, failed or answered nothing, and the question stays in the mean"
    )
    requires: ClassVar[tuple[str, ...]] = ("reference_answer",)
    source: ClassVar[str] = SQUAD
    hazards: ClassVar[tuple[str, ...]] = (
        "Made for short English answers: a full sentence round the right words loses precision, a negation costs one "
        "token, and languages without spaces are one token per phrase.",
        "One reference answer; SQuAD takes the best of several.",
    )

    @abstractmethod
    def _value(self, answer: list[str], reference: list[str], common: int) -> float:
        """The value in [0, 1] of two non-empty lists of tokens, `common` of which they share."""

    def score(self, question: Question, record: Record) -> Score:
        """The agreement of one answer with its reference."""
        if not question.answerable:
            return self.not_applicable(record, "the question is unanswerable: nothing to agree with")
        reference = tokens(question.reference_answer or "")
        if not reference:
            without = "no" if question.reference_answer is None else "no token in the"
            return self.not_applicable(record, f"{without} reference answer (reference_answer)")
        if record.refused:
            return self.computed(record, 0.0, (Verdict("answer", "refused"),), "the system declined")
        answer = tokens(record.answer or "")
        if not answer:
            return self.computed(record, 0.0, reason=f"no answer{_because(record)}")
        common = sum((Counter(answer) & Counter(reference)).values())
        native = f"{common} shared of {len(answer)} in the answer and {len(reference)} in the reference"
        return self.computed(record, self._value(answer, reference, common), (Verdict("answer", native),))


class AnswerF1(AnswerDefinition):
    """Harmonic mean of token precision and recall of the answer against the reference, in [0, 1].

    Unit: the token. Source: Rajpurkar et al. 2016 (SQuAD), section 6.1.
    """

    id: ClassVar[str] = "labels/answer_f1"
    asks: ClassVar[str] = "does the answer say what the reference says?"
    formula: ClassVar[str] = "2 P R / (P + R), P = shared / answer tokens, R = shared / reference tokens"

    def _value(self, answer: list[str], reference: list[str], common: int) -> float:
        return 2 * common / (len(answer) + len(reference))


class AnswerPrecision(AnswerDefinition):
    """Share of the answer's tokens that stand in the reference, in [0, 1].

    Unit: the token. Source: Rajpurkar et al. 2016 (SQuAD), section 6.1.
    """

    id: ClassVar[str] = "labels/answer_precision"
    asks: ClassVar[str] = "does the answer say only what the reference says?"
    formula: ClassVar[str] = "shared tokens / answer tokens"

    def _value(self, answer: list[str], reference: list[str], common: int) -> float:
        return common / len(answer)


class AnswerRecall(AnswerDefinition):
    """Share of the reference's tokens that stand in the answer, in [0, 1].

    Unit: the token. Source: Rajpurkar et al. 2016 (SQuAD), section 6.1.
    """

    id: ClassVar[str] = "labels/answer_recall"
    asks: ClassVar[str] = "does the answer say all that the reference says?"
    formula: ClassVar[str] = "shared tokens / reference tokens"
    hazards: ClassVar[tuple[str, ...]] = ("A long answer scores high for its length alone.", *AnswerDefinition.hazards)

    def _value(self, answer: list[str], reference: list[str], common: int) -> float:
        return common / len(reference)


class AnswerExactMatch(AnswerDefinition):
    """Whether answer and reference are the same tokens in the same order: 0 or 1.

    Unit: the answer. Source: Rajpurkar et al. 2016 (SQuAD), section 6.1.
    """

    id: ClassVar[str] = "labels/answer_exact_match"
    asks: ClassVar[str] = "is the answer the reference?"
    unit_judged: ClassVar[str] = "answer"
    hit: ClassVar[str] = "answer and reference are equal after SQuAD's normalisation (see labels/answer_f1)"
    formula: ClassVar[str] = "1 if equal, else 0"

    def _value(self, answer: list[str], reference: list[str], common: int) -> float:
        return float(answer == reference)


def _because(record: Record) -> str:
    return f": {record.error}" if record.error else ""
