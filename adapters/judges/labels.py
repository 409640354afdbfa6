"""People as the judge: the verdicts in Question.human answer the frameworks' questions, and no model does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Literal, TypeVar, assert_never

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from adapters.judge import Call, JudgeFault
from adapters.judges.tasked import TaskJudge
from adapters.judges.vectors import CARD
from adapters.schema import Chunk, JudgeCard, Question, Record
from adapters.sentences import sentence_spans
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
    Word,
)

V = TypeVar("V")


class _Judged(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class JudgedClaim(_Judged):
    """A claim of the answer. verdict: what the context says of it; in_reference: whether the reference says it."""

    text: str
    verdict: Literal["supported", "contradicted", "absent"]
    in_reference: bool | None = None


class JudgedReferenceClaim(_Judged):
    """A claim of the reference: whether the context holds it, and whether the answer says it."""

    text: str
    in_context: bool | None = None
    in_answer: bool | None = None


class JudgedStatement(_Judged):
    """A statement of a chunk, and whether it helps with the question."""

    text: str
    relevant: bool


class JudgedChunk(_Judged):
    """The statements of one chunk. chunk: its text."""

    chunk: str
    statements: tuple[JudgedStatement, ...]


class HumanVerdicts(_Judged):
    """What people said of one answer: the shape of Question.human that this judge reads.

    answer: the answer that was judged, word for word; the verdicts hold for no other. addresses_question: how far it
    answers the question, 0 to 1. declines: whether it declines. agreement: how far it says what the reference says,
    0 to 1. chunks: statements of chunks; where there are none, the sentences of a chunk take the labelled spans.
    """

    answer: str
    claims: tuple[JudgedClaim, ...] | None = None
    reference_claims: tuple[JudgedReferenceClaim, ...] | None = None
    addresses_question: float | None = Field(None, ge=0, le=1)
    declines: bool | None = None
    agreement: float | None = Field(None, ge=0, le=1)
    chunks: tuple[JudgedChunk, ...] = ()


class LabelsJudge(TaskJudge):
    """Answers from Question.human and from the labelled spans of the question. What nobody judged is a JudgeFault that
    says what is missing; nothing is derived but shares of verdicts.

    A chunk is relevant when it shares a character with a span of grade 1 or more. Verdicts on claims are about all of
    the context that the record holds; which chunk of several supports a claim is not known.
    """

    @property
    def card(self) -> JudgeCard:
        """The people of the test set; which ones, and what they said, the checksum of the test set covers."""
        return JudgeCard(provider="labels", model="people", revision="1", embeddings=CARD)

    def findings(self, task: Task, call: Call) -> Findings:
        """See TaskJudge."""
        return _Verdicts(call.question, call.record).findings(task)


def human_verdicts(question: Question) -> HumanVerdicts:
    """The verdicts stored with a question. Raises JudgeFault naming question and field."""
    if question.human is None:
        raise JudgeFault(f"nobody judged question {question.id}: it has no `human`")
    try:
        return HumanVerdicts.model_validate(question.human)
    except ValidationError as error:
        told = "; ".join(
            f"{'.'.join(map(str, fault['loc']))}: {fault['msg'][0].lower()}{fault['msg'][1:]}"
            for fault in error.errors(include_url=False)[:3]
        )
        raise JudgeFault(f"`human` of question {question.id} cannot be used: {told}") from None


class _Verdicts:
    """What people said of one record, as findings."""

    def __init__(self, question: Question, record: Record) -> None:
        self.question, self.record = question, record

    def findings(self, task: Task) -> Findings:
        match task:
            case Split():
                return tuple(map(Finding, self._units(task)))
            case Support():
                says = self._support(task)
                return tuple(Finding(unit, says(unit)) for unit in task.units)
            case Attribute():
                self._is_reference(task.text)
                return tuple(
                    Finding(
                        claim.text, "attributed" if self._in_context(claim.text) == "supported" else "not_attributed"
                    )
                    for claim in self._reference_claims()
                )
            case Relevance():
                helps = self._answer_helps if task.units_of == "answer" else self._passage_helps
                return tuple(Finding(passage, helps(passage)) for passage in task.passages)
            case RelevantStatements():
                return tuple(chain.from_iterable(map(self._statements, self._chunks(task.passage))))
            case AskBack():
                return (self._asked_back(task.answer),)
            case Agree():
                self._is_reference(task.reference)
                agreement = self._human(task.answer).agreement
                return (Finding(task.answer, grade=self._said(agreement, "how far it says what the reference says")),)
            case Grade():
                return (Finding(task.text, grade=self._grade(task)),)
            case Match():
                return (
                    *(Finding(claim, self._in_reference(claim)) for claim in task.answer_claims),
                    *(Finding(claim, self._in_answer(claim)) for claim in task.reference_claims),
                )
            case Decline():
                return (Finding(task.answer, "supported" if self._declines(task.answer) else "absent"),)
            case Contribution():
                raise self._nobody("which chunks contributed to the answer")
            case _:
                assert_never(task)

    def _units(self, task: Split) -> Iterable[str]:
        if task.into == "entities":
            raise self._nobody(f"which entities the {task.source} names")
        match task.source:
            case "answer":
                return [claim.text for claim in self._claims(task.text)]
            case "reference":
                self._is_reference(task.text)
                if self.question.human is None and self.question.reference_claims is not None:
                    return self.question.reference_claims
                return [claim.text for claim in self._reference_claims()]
            case "context" | "chunk":
                return [chunk.text for chunk in self._chunks(task.text)]

    def _support(self, task: Support) -> Callable[[str], Word]:
        # The only chunk of a context is the context.
        source = "context" if task.source == "chunk" and len(self.record.context) == 1 else task.source
        match task.units_of, source:
            case "answer", "context":
                return self._by_context
            case "answer", "reference":
                self._is_reference(task.text)
                return self._in_reference
            case "reference", "context":
                return self._in_context
            case "reference", "answer":
                self._human(task.text)
                return self._in_answer
            case units_of, "chunk":
                raise self._nobody(f"which single chunk supports each claim of the {units_of}")
            case units_of, _:
                raise self._nobody(f"whether the {source} supports each unit of the {units_of}")

    # Verdicts on claims, by their texts.

    def _by_context(self, claim: str) -> Word:
        return self._claim(claim).verdict

    def _in_reference(self, claim: str) -> Word:
        return _word(self._said(self._claim(claim).in_reference, f"whether the reference says {claim!r}"))

    def _in_context(self, claim: str) -> Word:
        return _word(self._said(self._reference_claim(claim).in_context, f"whether the context holds {claim!r}"))

    def _in_answer(self, claim: str) -> Word:
        self._human(self.record.answer)
        return _word(self._said(self._reference_claim(claim).in_answer, f"whether the answer says {claim!r}"))

    def _claim(self, text: str) -> JudgedClaim:
        for claim in self._claims(self.record.answer):
            if _alike(claim.text, text):
                return claim
        raise self._nobody(f"the claim {text[:120]!r} of the answer")

    def _reference_claim(self, text: str) -> JudgedReferenceClaim:
        for claim in self._reference_claims():
            if _alike(claim.text, text):
                return claim
        raise self._nobody(f"the claim {text[:120]!r} of the reference")

    def _claims(self, answer: str | None) -> tuple[JudgedClaim, ...]:
        return self._said(self._human(answer).claims, "the claims of the answer")

    def _reference_claims(self) -> tuple[JudgedReferenceClaim, ...]:
        return self._said(human_verdicts(self.question).reference_claims, "the claims of the reference")

    # Verdicts on the answer as a whole.

    def _human(self, answer: str | None) -> HumanVerdicts:
        human = human_verdicts(self.question)
        if answer is None or not _alike(human.answer, answer):
            raise JudgeFault(
                f"people judged another answer to question {self.question.id}: {human.answer[:60]!r}, "
                f"not {(answer or '')[:60]!r}"
            )
        return human

    def _is_reference(self, text: str) -> None:
        if not _alike(text, self.question.reference_answer or ""):
            raise self._nobody(f"{text[:60]!r}, which is not the reference answer,")

    def _declines(self, answer: str) -> bool:
        return self._said(self._human(answer).declines, "whether the answer declines")

    def _addresses(self, answer: str | None) -> float:
        return self._said(self._human(answer).addresses_question, "whether the answer addresses the question")

    def _answer_helps(self, statement: str) -> Word:
        self._claim(statement)
        addresses = self._addresses(self.record.answer)
        if 0 < addresses < 1:
            raise self._nobody(
                f"whether {statement[:120]!r} addresses the question; the whole answer got {addresses:g}"
            )
        return "relevant" if addresses else "not_relevant"

    def _asked_back(self, answer: str) -> Finding:
        if self._declines(answer):
            return Finding(self.question.text, "absent")
        if self._addresses(answer) < 1:
            raise self._nobody("which question the answer answers; it does not fully address the one that was asked")
        return Finding(self.question.text)

    def _grade(self, task: Grade) -> float:
        if task.source == "reference":
            raise self._nobody(f"the {task.what} of the reference")
        if task.source != "answer" and task.what == "groundedness":
            raise self._nobody(f"the groundedness of the {task.source}")
        if task.source != "answer":
            return float(self._passage_helps(task.text) == "relevant")
        if task.what == "relevance":
            return self._addresses(task.text)
        claims = self._claims(self.record.answer)
        judged = claims if _alike(task.text, self.record.answer or "") else (self._claim(task.text),)
        if not judged:
            raise self._nobody("a claim of the answer")
        return sum(claim.verdict == "supported" for claim in judged) / len(judged)

    # Labels of passages.

    def _passage_helps(self, text: str) -> Word:
        return (
            "relevant"
            if any(self._labelled(chunk, 0, len(chunk.text)) for chunk in self._chunks(text))
            else "not_relevant"
        )

    def _labelled(self, chunk: Chunk, start: int, end: int) -> bool:
        spans = self._said(self.question.relevant, "which passages are relevant")
        return any(
            span.grade > 0
            and span.doc_id == chunk.doc_id
            and span.start < chunk.start + end
            and chunk.start + start < span.end
            for span in spans
        )

    def _statements(self, chunk: Chunk) -> Iterator[Finding]:
        human = human_verdicts(self.question) if self.question.human is not None else None
        for judged in human.chunks if human else ():
            if _alike(judged.chunk, chunk.text):
                yield from (Finding(s.text, "relevant" if s.relevant else "not_relevant") for s in judged.statements)
                return
        for start, end in sentence_spans(chunk.text):
            if sentence := chunk.text[start:end].strip():
                yield Finding(
                    sentence, "relevant" if self._labelled(chunk, start, start + len(sentence)) else "not_relevant"
                )

    def _chunks(self, text: str) -> list[Chunk]:
        """The chunks of the record that `text` is, or else those that it is joined from, in order of their places."""
        record = self.record
        ranked = (item.chunk for item in (*record.reranked, *record.retrieved))
        wanted = _bare(text)
        chunks = [chunk for chunk in dict.fromkeys((*record.context, *ranked)) if _bare(chunk.text)]
        same = [chunk for chunk in chunks if _bare(chunk.text) == wanted]
        inside = sorted(
            (chunk for chunk in chunks if _bare(chunk.text) in wanted), key=lambda c: wanted.index(_bare(c.text))
        )
        if not same and not inside:
            raise self._nobody(f"the passage {text[:60]!r}, which is no chunk of the record")
        return same or inside

    def _said(self, verdict: V | None, what: str) -> V:
        if verdict is None:
            raise self._nobody(what)
        return verdict

    def _nobody(self, what: str) -> JudgeFault:
        return JudgeFault(f"nobody judged {what} (question {self.question.id})")


def _word(holds: bool) -> Word:
    return "supported" if holds else "absent"


def _bare(text: str) -> str:
    return " ".join(text.split())


def _alike(text: str, other: str) -> bool:
    return _bare(text) == _bare(other)
