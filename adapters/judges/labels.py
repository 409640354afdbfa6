"""People as the judge: the verdicts in Question.human answer the frameworks' questions, and no model does."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Annotated, Literal, Self, TypeVar, assert_never

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeInt,
    Strict,
    ValidationError,
    model_validator,
)

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


def _filled(text: str) -> str:
    if not text.strip():
        raise ValueError("text that is not blank")
    return text


Filled = Annotated[str, AfterValidator(_filled)]
Listed = Annotated[tuple[V, ...], Strict(False)]  # JSON has no tuples


class _Judged(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Evidence(_Judged):
    """The characters [start, end) of a document. text: what stands there; with it, white space that a splitter left out
    between two chunks is not missed."""

    doc_id: Filled
    start: NonNegativeInt
    end: NonNegativeInt
    text: str | None = None


class JudgedClaim(_Judged):
    """A claim of the answer.

    verdict: what the context that people saw says of it; in_reference: whether the reference says it.
    evidence: the passages on which the verdict rests, all needed together and found nowhere else in the corpus; () = no
    passage of the corpus speaks of it. With it, the verdict holds for any context: where a part of the evidence is not
    in it, the claim is absent. None = nobody looked, and the verdict holds for the context that people saw.
    """

    text: Filled
    verdict: Literal["supported", "contradicted", "absent"]
    in_reference: bool | None = None
    evidence: Listed[Evidence] | None = None

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.evidence is not None and (self.verdict == "absent") == bool(self.evidence):
            raise ValueError(
                "evidence for what is supported or contradicted, and an empty list (or none) for what is absent; "
                f"{self.text[:60]!r} is {self.verdict} with {len(self.evidence)} passages"
            )
        return self


class JudgedReferenceClaim(_Judged):
    """A claim of the reference: whether the context that people saw holds it, and whether the answer says it.

    evidence: as in JudgedClaim; where it is given, in_context may be left out.
    """

    text: Filled
    in_context: bool | None = None
    in_answer: bool | None = None
    evidence: Listed[Evidence] | None = None


class JudgedStatement(_Judged):
    """A statement of a chunk, and whether it helps with the question."""

    text: Filled
    relevant: bool


class JudgedChunk(_Judged):
    """The statements of one chunk. chunk: its text."""

    chunk: Filled
    statements: Listed[JudgedStatement]


J = TypeVar("J", bound=JudgedClaim | JudgedReferenceClaim | JudgedChunk)


def _once(judged: tuple[J, ...]) -> tuple[J, ...]:
    seen: set[str] = set()
    for each in judged:
        text = _bare(each.chunk if isinstance(each, JudgedChunk) else each.text)
        if text in seen:
            raise ValueError(f"each text once; {text[:60]!r} stands there twice")
        seen.add(text)
    return judged


Each = Annotated[tuple[J, ...], Strict(False), AfterValidator(_once)]


class HumanVerdicts(_Judged):
    """What people said of one answer: the shape of Question.human that this judge reads.

    answer: the answer that was judged, word for word; the verdicts hold for no other. context: the passages that people
    saw beside it, in any order; reference: the reference answer that they compared it with, word for word. What was
    said against either holds for no other; None = nobody wrote down which, and nothing is taken from it, except by
    the evidence of a claim. addresses_question: how far the answer answers the question, 0 to 1. declines: whether it
    declines. agreement: how far it says what the reference says, 0 to 1. chunks: statements of chunks; where there are
    none, the sentences of a chunk take the labelled spans. White space makes no difference in any text.
    who, when, record: who judged, when, and which record of which run; for people, no verdict hangs on them.
    """

    answer: Filled
    context: Listed[Filled] | None = None
    reference: Filled | None = None
    claims: Each[JudgedClaim] | None = None
    reference_claims: Each[JudgedReferenceClaim] | None = None
    addresses_question: float | None = Field(None, ge=0, le=1)
    declines: bool | None = None
    agreement: float | None = Field(None, ge=0, le=1)
    chunks: Each[JudgedChunk] = ()
    who: str | None = None
    when: str | None = None
    record: str | None = None


class LabelsJudge(TaskJudge):
    """Answers from Question.human and from the labelled spans of the question. What nobody judged is a JudgeFault that
    says what is missing; nothing is derived but shares of verdicts.

    A chunk is relevant when it shares a character with a span of grade 1 or more. A verdict on a claim holds for the
    answer, the context and the reference that people saw; by the evidence of a claim, for any context and any chunk.
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
            f"{'.'.join(map(str, fault['loc']))}: {fault['msg'][0].lower()}{fault['msg'][1:]}".replace(
                ": value error, ", ": expected "
            )
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
                held = self._in_context(task.context, "context")
                return tuple(
                    Finding(claim.text, "attributed" if held(claim.text) == "supported" else "not_attributed")
                    for claim in self._reference_claims(task.text)
                )
            case Relevance():
                helps = self._answer_helps if task.units_of == "answer" else self._passage_helps
                return tuple(Finding(passage, helps(passage)) for passage in task.passages)
            case RelevantStatements():
                chunks = self._one_of_each(
                    task.passage, lambda chunk: [statement.word for statement in self._statements(chunk)]
                )
                return tuple(chain.from_iterable(map(self._statements, chunks)))
            case AskBack():
                return (self._asked_back(task.answer),)
            case Agree():
                self._compared_with(task.reference)
                agreement = self._human(task.answer).agreement
                return (Finding(task.answer, grade=self._said(agreement, "how far it says what the reference says")),)
            case Grade():
                return (Finding(task.text, grade=self._grade(task)),)
            case Match():
                self._compared_with(self.question.reference_answer)
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
                if self.question.human is None and self.question.reference_claims is not None:
                    self._is_reference(task.text)
                    return self.question.reference_claims
                return [claim.text for claim in self._reference_claims(task.text)]
            case "context" | "chunk":
                return [chunk.text for chunk in self._chunks(task.text)]

    def _support(self, task: Support) -> Callable[[str], Word]:
        match task.units_of, task.source:
            case "answer", "context" | "chunk":
                return self._by_context(task.text, task.source)
            case "answer", "reference":
                self._compared_with(task.text)
                return self._in_reference
            case "reference", "context" | "chunk":
                return self._in_context(task.text, task.source)
            case "reference", "answer":
                self._human(task.text)
                return self._in_answer
            case units_of, source:
                raise self._nobody(f"whether the {source} supports each unit of the {units_of}")

    # Verdicts on claims, by their texts.

    def _by_context(self, text: str, source: str) -> Callable[[str], Word]:
        def says(unit: str) -> Word:
            claim = self._claim(unit)
            return self._held(claim, claim.verdict, text, source, "answer")

        return says

    def _in_context(self, text: str, source: str) -> Callable[[str], Word]:
        def says(unit: str) -> Word:
            claim = self._reference_claim(unit)
            told = None if claim.in_context is None else _word(claim.in_context)
            return self._held(claim, told, text, source, "reference")

        return says

    def _held(
        self, claim: JudgedClaim | JudgedReferenceClaim, told: Word | None, text: str, source: str, units_of: str
    ) -> Word:
        """What people say of a claim against `text`: what they said, where they saw that; else by its evidence."""
        human = human_verdicts(self.question)
        if told is not None and human.context is not None and _joined_from(text, human.context):
            return told
        if claim.evidence is not None:
            covered = bool(claim.evidence) and self._covers(self._chunks(text), claim.evidence)
            return (told or "supported") if covered else "absent"
        hint = f"the claim {claim.text[:60]!r} names no `evidence`"
        if told is None:
            raise self._nobody(f"whether the context holds {claim.text!r}")
        if human.context is None:
            raise JudgeFault(
                f"`human` of question {self.question.id} does not say which `context` people saw, and {hint}, so its "
                "verdict holds for none"
            )
        if source == "chunk" and len(self.record.context) > 1:
            raise self._nobody(f"which single chunk supports each claim of the {units_of}; {hint}")
        raise JudgeFault(f"people judged another context for question {self.question.id}, and {hint}")

    @staticmethod
    def _covers(chunks: Iterable[Chunk], evidence: Iterable[Evidence]) -> bool:
        chunks = list(chunks)
        for span in evidence:
            missed = set(range(span.start, span.end))
            for chunk in chunks:
                if chunk.doc_id == span.doc_id:
                    missed -= set(range(chunk.start, chunk.end))
            if any(span.text is None or not span.text[place - span.start].isspace() for place in missed):
                return False
        return True

    def _in_reference(self, claim: str) -> Word:
        return _word(self._said(self._claim(claim).in_reference, f"whether the reference says {claim!r}"))

    def _in_answer(self, claim: str) -> Word:
        self._human(self.record.answer)
        return _word(self._said(self._reference_claim(claim).in_answer, f"whether the answer says {claim!r}"))

    def _claim(self, text: str) -> JudgedClaim:
        for claim in self._claims(self.record.answer):
            if _alike(claim.text, text):
                return claim
        raise self._nobody(f"the claim {text[:120]!r} of the answer")

    def _reference_claim(self, text: str) -> JudgedReferenceClaim:
        for claim in self._reference_claims(self.question.reference_answer):
            if _alike(claim.text, text):
                return claim
        raise self._nobody(f"the claim {text[:120]!r} of the reference")

    def _claims(self, answer: str | None) -> tuple[JudgedClaim, ...]:
        return self._said(self._human(answer).claims, "the claims of the answer")

    def _reference_claims(self, reference: str | None) -> tuple[JudgedReferenceClaim, ...]:
        claims = self._said(human_verdicts(self.question).reference_claims, "the claims of the reference")
        self._compared_with(reference)
        return claims

    # Verdicts on the answer as a whole.

    def _human(self, answer: str | None) -> HumanVerdicts:
        human = human_verdicts(self.question)
        if answer is None or not _alike(human.answer, answer):
            raise JudgeFault(
                f"people judged another answer to question {self.question.id}: {human.answer[:60]!r}, "
                f"not {(answer or '')[:60]!r}"
            )
        return human

    def _is_reference(self, text: str | None) -> None:
        if not _alike(text or "", self.question.reference_answer or ""):
            raise self._nobody(f"{(text or '')[:60]!r}, which is not the reference answer,")

    def _compared_with(self, reference: str | None) -> None:
        self._is_reference(reference)
        judged = human_verdicts(self.question).reference
        if judged is None:
            raise JudgeFault(
                f"`human` of question {self.question.id} does not say which `reference` answer people saw, so what "
                "they said of it holds for none"
            )
        if not _alike(judged, reference or ""):
            raise JudgeFault(
                f"people judged another reference answer to question {self.question.id}: {judged[:60]!r}, not "
                f"{(reference or '')[:60]!r}"
            )

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
        says = self._by_context(task.against or "", "context")
        return sum(says(claim.text) == "supported" for claim in judged) / len(judged)

    # Labels of passages.

    def _passage_helps(self, text: str) -> Word:
        def labelled(chunk: Chunk) -> bool:
            return self._labelled(chunk, 0, len(chunk.text))

        return "relevant" if any(map(labelled, self._one_of_each(text, labelled))) else "not_relevant"

    def _one_of_each(self, text: str, labels: Callable[[Chunk], object]) -> Iterable[Chunk]:
        """The chunks of `_chunks`, one for each text: a judge is shown texts, so equal ones cannot be told apart."""
        chunks: dict[str, Chunk] = {}
        for chunk in self._chunks(text):
            first = chunks.setdefault(_bare(chunk.text), chunk)
            if first is not chunk and labels(first) != labels(chunk):
                raise JudgeFault(
                    f"{first.doc_id} and {chunk.doc_id} hold the same text with different labels (question "
                    f"{self.question.id}): {chunk.text[:60]!r}"
                )
        return chunks.values()

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


def _joined_from(text: str, passages: Iterable[str]) -> bool:
    """Whether `text` holds all of `passages`, and nothing else but what stands between them."""
    whole = rest = _bare(text)
    for passage in sorted(map(_bare, passages), key=len, reverse=True):
        if passage not in whole:
            return False
        rest = rest.replace(passage, " ")
    return not re.search(r"\w", rest)
