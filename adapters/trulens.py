"""The definitions of TruLens (trulens.feedback), computed by TruLens itself under our judge.

TruLens asks through a provider; ours passes every question on to the measurement. Its code blocks, so it runs in the
bench's threads. What grades were given is read from the judge's replies, because TruLens leaves unreadable ones out of
its mean. The only file that imports trulens.

Never on, in any definition: TruLens's filter of trivial statements, which evaluates the judge's text as Python; its
sentence tokenizer, which downloads data; its pacing (60 calls a minute) and its retries.
"""

from __future__ import annotations

import asyncio
import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from logging import WARNING
from statistics import fmean
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from typing_extensions import override

from adapters import asks, formulas
from adapters.base import Disbelieved, JudgedScorer, NothingToJudge, RankedScorer
from adapters.bench import CallSite, Exchange, Measurement
from adapters.formulas import Formula
from adapters.isolation import framework, installed_version
from adapters.judge import Message, schema_text
from adapters.refusal import declines
from adapters.replies import excerpt, without_thought
from adapters.schema import Chunk, Question, Ranked, Record, Verdict
from adapters.sentences import sentence_spans, splitter
from adapters.tasks import Agree, Finding, Findings, Grade, Relevance, Split, Support
from adapters.units import named

if TYPE_CHECKING:
    from types import ModuleType

    from pydantic import BaseModel

TOP = 3
"""Grades go from 0 to 3. TruLens takes other scales, but its prompts go on saying 0 to 3."""
TOP_AGREEMENT = 10

BARE_MARKER = re.compile(r"^\s*\d+[\.)]?\s*$")
"""Statements that TruLens drops: the markers of a numbered list, each on a line of its own."""
KEY_POINT = re.compile(r"^\W*key point\W*\d+\W*?:[\s*_]*", re.IGNORECASE)
RATING = re.compile(
    r"[\W_]*(?P<named>(?:the )?(?:score|rating)(?: is)?\b[\W_]*?)?(?<![-+−–.,/\w])(?P<number>[0-9]+)(?P<rest>.*)",
    re.IGNORECASE,
)

Hear = Callable[[CallSite, Sequence[Message], "type[BaseModel] | None"], Any]
"""Takes a call and gives the reply: an instance of the schema, or text where there is none."""
Answer = Callable[[Sequence[Message], "type[BaseModel] | None"], Any]


@cache
def _trulens(module: str) -> ModuleType:
    """A module of TruLens. Raises Unavailable."""
    return framework("trulens", module)[0]


def _provider(answer: Answer) -> Any:
    """TruLens's provider that asks `answer`; it serves one measurement."""
    provider, endpoint = _classes()
    return provider(answer=answer, endpoint=endpoint)


@cache
def _classes() -> tuple[Any, Any]:
    llm_provider = _trulens("trulens.feedback.llm_provider")
    # It warns with the whole text of a reply without one clear rating, which may quote the record.
    _trulens("trulens.feedback.generated").logger.addFilter(lambda message: message.levelno > WARNING)
    core = _trulens("trulens.core.feedback.endpoint")

    class Provider(llm_provider.LLMProvider):  # type: ignore[misc,name-defined]
        model_engine: str = "paribus"
        answer: Any

        def _create_chat_completion(
            self,
            prompt: str | None = None,
            messages: Sequence[dict[str, str]] | None = None,
            response_format: type[BaseModel] | None = None,
            **settings: Any,
        ) -> Any:
            sent = messages or [{"role": "user", "content": prompt or ""}]
            return self.answer([Message(m["role"], m["content"]) for m in sent], response_format)  # type: ignore[arg-type]

    class Endpoint(core.Endpoint):  # type: ignore[misc,name-defined]
        def run_in_pace(self, func: Callable[..., Any], *arguments: Any, **settings: Any) -> Any:
            return func(*arguments, **settings)

    # Its constructor would open an event loop in every thread that has none, for a pace that nobody keeps.
    return Provider, Endpoint.model_construct(name="paribus")


@cache
def _no_judge() -> Any:
    def refuse(messages: Sequence[Message], schema: type[BaseModel] | None) -> Any:
        raise AssertionError("a measure computed from labels asked a judge")

    return _provider(refuse)


def ground_truth(golden: Mapping[str, int]) -> Any:
    """TruLens's GroundTruthAgreement with one query, the empty text, whose golden chunks are these texts with their
    grades: for its measures of retrieval, which ask no judge. Raises Unavailable."""
    chunks = [{"text": text, "expect_score": grade} for text, grade in golden.items()]
    agreement = _trulens("trulens.feedback.groundtruth").GroundTruthAgreement
    return agreement([{"query": "", "expected_chunks": chunks}], provider=_no_judge())


class TruLensScorer(JudgedScorer):
    """Base of the definitions of TruLens. Subclasses call one method of its provider and say what its calls are."""

    framework: ClassVar[str] = "trulens"
    source: ClassVar[str] = "trulens/feedback/llm_provider.py of trulens-feedback 2.16.0"
    sentinels: ClassVar[frozenset[float]] = frozenset({-1.0})

    def framework_version(self) -> str:
        """The installed version of trulens-feedback."""
        return installed_version("trulens-feedback")

    def implementation(self) -> str:
        """The method of TruLens."""
        return f"trulens.feedback.llm_provider.LLMProvider.{self.method()}"

    @abstractmethod
    def method(self) -> str:
        """The method of TruLens's provider that computes it."""

    @abstractmethod
    def compute(self, hear: Hear, question: Question, record: Record) -> float:
        """TruLens's own value; blocks."""

    def prepare(self) -> None:
        """Import TruLens. Raises Unavailable."""
        _classes()

    @override
    async def run(self, measurement: Measurement) -> float:
        return await measurement.bench.in_thread(
            self.compute, measurement.ask_blocking, measurement.question, measurement.record
        )

    def prompts(self) -> dict[str, str]:
        """Every prompt with its schema, as TruLens sends it for a record of sentinels."""
        sent: dict[str, str] = {}

        def hear(site: CallSite, messages: Sequence[Message], schema: type[BaseModel] | None) -> Any:
            sent[site.name] = "\n\n".join([*(f"{m.role}: {m.content}" for m in messages), schema_text(schema)])
            data = site.write((Finding("<unit>", "absent", "<reason>"),))
            return data if schema is None else schema.model_validate(data)

        self.compute(hear, *_sentinels())
        return sent


def _sentinels() -> tuple[Question, Record]:
    chunk = Chunk("<document>", 0, 9, "<context>")
    question = Question("<id>", "<question>", reference_answer="<reference>")
    ranking = (Ranked(chunk, 1.0, 1),)
    record = Record("<id>", retrieved=ranking, reranked=ranking, context=(chunk,), answer="<answer>")
    return question, record


def spoken(text: str) -> str:
    """A reply in plain text as it is read: without what a model thought before it, and without white space around.

    Raises UnusableReply for a reply that is all thought.
    """
    return without_thought(text).strip()


def rating(text: str, top: int) -> int:
    """The one whole number, 0 to `top`, that a reply in plain text gives. Raises Disbelieved for any other reply.

    TruLens takes the smallest number in range, whatever it counts, cuts decimals off and does not see a minus.
    """
    numbers = re.findall(r"\d+", text)
    if len(numbers) > 1:
        raise Disbelieved(f"the reply could not be parsed: several candidate ratings in {excerpt(text)}")
    line = next((line.strip() for line in text.splitlines() if any(map(str.isnumeric, line))), "")
    found = RATING.fullmatch(line)
    if not found or any(map(str.isnumeric, found["rest"])) or (not found["named"] and re.search(r"\w", found["rest"])):
        raise Disbelieved(f"the reply could not be parsed: no clear whole number as rating in {excerpt(text)}")
    return _on_scale(int(found["number"]), top)


def _on_scale(grade: int, top: int) -> int:
    if not 0 <= grade <= top:
        raise Disbelieved(f"score {grade} is outside the range 0 to {top}")
    return grade


def _text(exchange: Exchange) -> str:
    return spoken(exchange.data)


def _named(measurement: Measurement, name: str) -> list[Exchange]:
    return [exchange for exchange in measurement.exchanges if exchange.call.name == name and exchange.data is not None]


def _one(measurement: Measurement, name: str) -> Exchange:
    found = _named(measurement, name)
    if len(found) != 1:
        raise Disbelieved(f"{len(found)} replies to {name}, where 1 was expected")
    return found[0]


def _in_order(graded: Iterable[tuple[str, Exchange]], units: Sequence[str], what: str) -> list[Exchange]:
    """One graded call for each unit, in the order of the units; equal units in the order asked. Raises Disbelieved."""
    waiting: dict[str, list[Exchange]] = {}
    for unit, exchange in graded:
        waiting.setdefault(unit, []).append(exchange)
    counts = {unit: len(exchanges) for unit, exchanges in waiting.items()}
    if counts != Counter(units):
        raise Disbelieved(f"{sum(counts.values())} grades for {len(units)} {what}")
    return [waiting[unit].pop(0) for unit in units]


def _verdict(
    unit: str, grade: int, words: tuple[str, str], top: int = TOP, reason: str | None = None, rank: int | None = None
) -> Verdict:
    """Our word for the ends of the scale only: what lies between is neither."""
    ours = {top: words[0], 0: words[1]}.get(grade)
    return Verdict(unit, str(grade), ours, reason or None, rank)


def _graded(unit: str, exchange: Exchange, words: tuple[str, str], rank: int | None = None) -> Verdict:
    data = exchange.data
    grade = _on_scale(int(float(data["score"])), TOP)
    return _verdict(unit, grade, words, reason=data.get("supporting_evidence"), rank=rank)


SUPPORT = ("supported", "not_supported")
RELEVANCE = ("relevant", "not_relevant")


def grade_written(findings: Findings) -> object:
    """TruLens's ChainOfThoughtResponse for one finding."""
    (finding,) = findings
    return {
        "criteria": finding.unit,
        "supporting_evidence": finding.reason,
        "score": round(TOP * finding.holds),
    }


def score_written(findings: Findings) -> object:
    """TruLens's BaseFeedbackResponse for one finding."""
    (finding,) = findings
    return {"score": round(TOP * finding.holds)}


def lines_written(findings: Findings) -> object:
    """A unit a line."""
    return "\n".join(_line(finding.unit) for finding in findings)


def key_points_written(findings: Findings) -> object:
    """`Key Point 1: ...`, a line each."""
    return "\n".join(f"Key Point {n}: {_line(finding.unit)}" for n, finding in enumerate(findings, 1))


def inclusion_written(findings: Findings) -> object:
    """TruLens's template of a grade in plain text."""
    (finding,) = findings
    return (
        f"Score: {round(TOP * finding.holds)}\nKey Point: {_line(finding.unit)}\n"
        f"Supporting Evidence: {_line(finding.reason)}"
    )


def agreement_written(findings: Findings) -> object:
    """A number from 0 to 10."""
    (finding,) = findings
    return str(round(TOP_AGREEMENT * finding.holds))


def _line(text: str) -> str:
    return " ".join(text.split())


def _between(template: str, field: str, prompt: str, **known: str) -> str:
    """What stands for `field` in a prompt made from `template`, all other fields being known."""
    before, after = template.split(f"{{{field}}}")
    return prompt[len(before.format(**known)) : len(prompt) - len(after.format(**known))]


def joined(record: Record) -> str:
    """What reached the prompt as one text, a blank line between the chunks."""
    return "\n\n".join(chunk.text for chunk in record.context)


class Groundedness(TruLensScorer):
    """Mean grade, from 0 to 1, of how far the context supports each sentence of the answer.

    splitter: who cuts the answer. "sentences" = the rules of `adapters.sentences` (no call); "llm" = TruLens's own
    prompt, one call more. Source: trulens/feedback/llm_provider.py (2.16.0), groundedness_measure_with_cot_reasons.
    """

    id: ClassVar[str] = "trulens/groundedness"
    asks: ClassVar[str] = asks.SUPPORTED
    unit_judged: ClassVar[str] = "sentence"
    hit: ClassVar[str] = "a sentence that the judge grades 3 of 0 to 3 against the context; 1 and 2 are 1/3 and 2/3"
    formula: ClassVar[str] = "mean over the sentences of grade / 3"
    nothing_to_judge: ClassVar[str] = (
        "not applicable: without a statement TruLens returns -1 (0 where its trivial filter dropped them all)"
    )
    requires: ClassVar[tuple[str, ...]] = ("answer", "context")
    calls: ClassVar[str] = "1 a sentence; 1 more with splitter=llm"
    hazards: ClassVar[tuple[str, ...]] = (
        "TruLens's default tokenizer (nltk, which downloads data) and its filter of trivial statements (which runs "
        "the judge's text as Python) are never used: sentencex cuts, and all sentences are judged, greetings too.",
        "A statement of doubt gets the full grade: TruLens's criteria tell the judge so.",
        "A contradicted sentence and one that the context does not mention both get 0.",
        "Whole sentences are judged: one with a true and a false claim gets a grade between.",
        "The chunks are joined by blank lines; TruLens's own pipelines show the judge a Python list.",
        "Lines without a letter or digit, and bare list markers, are not judged; TruLens would judge blank lines. An "
        "answer that is a number alone has no statement. Line breaks within a sentence become spaces.",
        "With splitter=llm the judge may rephrase, drop or invent sentences; what it wrote is what is judged, a line "
        "of preamble too.",
        "TruLens leaves an unreadable grade out of the mean; here it fails the score.",
    )

    splitter: Literal["sentences", "llm"] = "sentences"

    def method(self) -> str:
        """See TruLensScorer."""
        return "groundedness_measure_with_cot_reasons"

    def arithmetic(self) -> Formula:
        """See Measure."""
        return Formula(formulas.ANSWER_CLAIMS, formulas.grades(TOP), formulas.SUPPORTED_ONLY)

    def compute(self, hear: Hear, question: Question, record: Record) -> float:
        """See TruLensScorer."""
        configs = _trulens("trulens.core.feedback.feedback").GroundednessConfigs(
            use_sent_tokenize=False, filter_trivial_statements=False
        )
        value, _ = _provider(self._answer(hear, record)).groundedness_measure_with_cot_reasons(
            source=joined(record), statement=record.answer, groundedness_configs=configs
        )
        return float(value)

    def _answer(self, hear: Hear, record: Record) -> Answer:
        def answer(messages: Sequence[Message], schema: type[BaseModel] | None) -> Any:
            if schema is not None:
                return hear(GRADES, messages, schema)
            cut = self._cut(record.answer or "", hear(SPLIT, messages, None) if self.splitter == "llm" else "")
            # Of an empty text TruLens would judge the one blank line; a bare list marker it drops.
            return "\n".join(cut) or "1."

        return answer

    def _cut(self, answer: str, split: str) -> list[str]:
        if self.splitter == "llm":
            pieces = spoken(split).split("\n")
        else:
            pieces = [answer[start:end] for start, end in sentence_spans(answer)]
        lines = map(_line, pieces)
        return [line for line in lines if re.search(r"[^\W_]", line) and not BARE_MARKER.match(line)]

    def prompts(self) -> dict[str, str]:
        """See TruLensScorer; and who cuts the sentences, where no prompt does."""
        return {**super().prompts(), **({"splitter": splitter()} if self.splitter == "sentences" else {})}

    @override
    def evidence(self, measurement: Measurement) -> tuple[Verdict, ...]:
        answer, split = measurement.record.answer or "", ""
        if self.splitter == "llm":
            split = _text(_one(measurement, SPLIT.name))
            if declines(split) and not declines(answer):
                raise Disbelieved(f"the reply could not be parsed: the judge declined to split: {excerpt(split)}")
        sentences = self._cut(answer, split)
        if not sentences:
            raise NothingToJudge("0 sentences")
        graded = [(_statement(e), e) for e in _named(measurement, GRADES.name)]
        for unit, exchange in graded:
            _graded(unit, exchange, SUPPORT)
        ordered = _in_order(graded, sentences, "sentences")
        return tuple(_graded(unit, e, SUPPORT) for unit, e in zip(sentences, ordered, strict=True))


def _statement(exchange: Exchange) -> str:
    template = _trulens("trulens.feedback.templates.rag").Groundedness.user_prompt
    prompt = exchange.call.messages[-1].content
    return _between(template, "hypothesis", prompt, premise=joined(exchange.call.record))


def _support_task(prompt: str, measurement: Measurement) -> Support:
    source = joined(measurement.record)
    template = _trulens("trulens.feedback.templates.rag").Groundedness.user_prompt
    return Support(
        (_between(template, "hypothesis", prompt, premise=source),), source, "answer", "context", apart=False
    )


SPLIT = CallSite("split", lambda prompt, m: Split(prompt, "answer"), lines_written)
GRADES = CallSite("grades", _support_task, grade_written)


class ContextRelevance(TruLensScorer, RankedScorer):
    """Grade, from 0 to 1, of how relevant each ranked chunk is to the question, brought together over the chunks.

    aggregate: mean or max over the chunks. reasons: whether the judge gives its reasons; the prompt without them is
    another one. Source: trulens/feedback/llm_provider.py (2.16.0), context_relevance_with_cot_reasons.
    """

    id: ClassVar[str] = "trulens/context_relevance"
    asks: ClassVar[str] = asks.CONTEXT_RELEVANT
    unit_judged: ClassVar[str] = "chunk"
    hit: ClassVar[str] = "a chunk that the judge grades 3 of 0 to 3 by itself; 1 and 2 count as 1/3 and 2/3"
    formula: ClassVar[str] = "mean (or max) over the ranked chunks of grade / 3; ranks do not count"
    nothing_to_judge: ClassVar[str] = "not applicable without chunks, where a mean of TruLens's values would be NaN"
    requires: ClassVar[tuple[str, ...]] = ("question", "reranked")
    calls: ClassVar[str] = "1 a chunk"
    hazards: ClassVar[tuple[str, ...]] = (
        "TruLens scores one chunk; the mean or max over chunks is taken here, as its users do.",
        "A chunk is full only when it serves the whole question, so questions in two parts keep good chunks below 1.",
        "The prompt without reasons (reasons=false) says other criteria: it is another definition.",
        "The prompt with reasons asks for a template in plain text; only JSON that holds to the schema is taken.",
        "TruLens puts its template wherever a text says RELEVANCE: in capitals with a colon, the record's texts too.",
        "TruLens says -1 for an unreadable grade, and a mean would count it; here it fails the score.",
    )

    aggregate: Literal["mean", "max"] = "mean"
    reasons: bool = True

    def method(self) -> str:
        """See TruLensScorer."""
        return "context_relevance_with_cot_reasons" if self.reasons else "context_relevance"

    def arithmetic(self) -> Formula:
        """See Measure."""
        return Formula(
            formulas.RELEVANT_CHUNKS,
            formulas.grades(TOP),
            formulas.RELEVANT_ONLY,
            fmean if self.aggregate == "mean" else max,
        )

    def compute(self, hear: Hear, question: Question, record: Record) -> float:
        """See TruLensScorer; one chunk after the other."""
        return self._together([self._rate(hear, question.text, chunk) for chunk in self.contexts(record)])

    def _rate(self, hear: Hear, question: str, chunk: str) -> float:
        site = CallSite(
            "grades",
            lambda prompt, m: Relevance(question, (chunk,)),
            grade_written if self.reasons else score_written,
        )
        provider = _provider(lambda messages, schema: hear(site, messages, schema))
        rated = getattr(provider, self.method())(question=question, context=chunk)
        return float(rated[0] if self.reasons else rated)

    def _together(self, values: Sequence[float]) -> float:
        # A chunk without a grade leaves the whole without a value.
        if any(value in self.sentinels for value in values):
            return -1.0
        return fmean(values) if self.aggregate == "mean" else max(values)

    @override
    async def run(self, measurement: Measurement) -> float:
        question, chunks = measurement.question.text, self.contexts(measurement.record)
        rated = await asyncio.gather(
            *(measurement.bench.in_thread(self._rate, measurement.ask_blocking, question, chunk) for chunk in chunks),
            return_exceptions=True,  # so that no call is still under way when the score is given
        )
        values: list[float] = []
        for value in rated:
            if isinstance(value, BaseException):
                raise value
            values.append(value)
        return self._together(values)

    @override
    def evidence(self, measurement: Measurement) -> tuple[Verdict, ...]:
        chunks = self.contexts(measurement.record)
        graded = [(_passage(e), e) for e in _named(measurement, "grades")]
        for unit, exchange in graded:
            _graded(unit, exchange, RELEVANCE)
        ordered = _in_order(graded, chunks, "chunks")
        return tuple(
            _graded(unit, e, RELEVANCE, rank) for rank, (unit, e) in enumerate(zip(chunks, ordered, strict=True), 1)
        )


def _passage(exchange: Exchange) -> str:
    task = exchange.call.task()
    assert isinstance(task, Relevance)
    return task.passages[0]


class AnswerRelevance(TruLensScorer):
    """Grade, from 0 to 1, of how relevant the answer is to the question.

    Source: trulens/feedback/llm_provider.py (2.16.0), relevance_with_cot_reasons.
    """

    id: ClassVar[str] = "trulens/answer_relevance"
    asks: ClassVar[str] = asks.ADDRESSES
    unit_judged: ClassVar[str] = "answer"
    hit: ClassVar[str] = "an answer that the judge grades 3 of 0 to 3"
    formula: ClassVar[str] = "grade / 3"
    nothing_to_judge: ClassVar[str] = "not applicable without an answer"
    requires: ClassVar[tuple[str, ...]] = ("question", "answer")
    calls: ClassVar[str] = "1"
    hazards: ClassVar[tuple[str, ...]] = (
        "The criteria give 0 to an answer that is confidently false, so it is not about relevance alone.",
        "Declining counts as irrelevant (0), also where declining is right.",
        "TruLens's method without reasons asks for keys that its own schema forbids; it is not used.",
        "TruLens puts its template wherever a text says RELEVANCE: in capitals with a colon, the record's texts too.",
        "The grade is one of four, so a mean over few questions is coarse.",
    )
    site: ClassVar[CallSite] = CallSite(
        "grade",
        lambda prompt, m: Grade("relevance", m.record.answer or "", "answer", question=m.question.text),
        grade_written,
    )

    def method(self) -> str:
        """See TruLensScorer."""
        return "relevance_with_cot_reasons"

    def compute(self, hear: Hear, question: Question, record: Record) -> float:
        """See TruLensScorer."""
        provider = _provider(lambda messages, schema: hear(self.site, messages, schema))
        return float(provider.relevance_with_cot_reasons(prompt=question.text, response=record.answer)[0])

    @override
    def evidence(self, measurement: Measurement) -> tuple[Verdict, ...]:
        return (_graded(measurement.record.answer or "", _one(measurement, "grade"), RELEVANCE),)


class Comprehensiveness(TruLensScorer):
    """Mean grade, from 0 to 1, of how far the answer includes each key point of the reference answer.

    TruLens compares a source text with a summary of it. The source here is the reference answer and the summary is the
    answer: nobody wants an answer that sums up all that was retrieved. Source: trulens/feedback/llm_provider.py
    (2.16.0), comprehensiveness_with_cot_reasons.
    """

    id: ClassVar[str] = "trulens/comprehensiveness"
    asks: ClassVar[str] = asks.COMPLETE
    unit_judged: ClassVar[str] = "key point of the reference"
    hit: ClassVar[str] = "a key point that the judge grades 3 of 0 to 3 as included; 1 and 2 count as 1/3 and 2/3"
    formula: ClassVar[str] = "mean over the key points of grade / 3"
    nothing_to_judge: ClassVar[str] = "not applicable: TruLens returns 0 for a source without key points"
    requires: ClassVar[tuple[str, ...]] = ("answer", "reference_answer")
    calls: ClassVar[str] = "1 + 1 a key point, one after the other"
    hazards: ClassVar[tuple[str, ...]] = (
        "TruLens's source is the reference answer and its summary is the answer; the context is not looked at.",
        "The judge chooses the key points, and is told to leave out what it finds less important.",
        "TruLens takes every line for a key point and the smallest number of the first line for the grade; here a line "
        "that is no key point, or a first line without one clear whole number, fails the score.",
        "TruLens leaves an empty grade out of the mean; here it fails the score.",
        "What the answer says beyond the reference does not count.",
    )

    def method(self) -> str:
        """See TruLensScorer."""
        return "comprehensiveness_with_cot_reasons"

    def arithmetic(self) -> Formula:
        """See Measure."""
        return Formula(formulas.KEY_POINTS, formulas.grades(TOP), formulas.SUPPORTED_ONLY)

    def compute(self, hear: Hear, question: Question, record: Record) -> float:
        """See TruLensScorer."""
        listing = _trulens("trulens.feedback.templates.rag").GENERATE_KEY_POINTS_SYSTEM_PROMPT

        def answer(messages: Sequence[Message], schema: type[BaseModel] | None) -> str:
            site = KEY_POINTS if messages[0].content == listing else INCLUSION
            return spoken(hear(site, messages, schema))

        value, _ = _provider(answer).comprehensiveness_with_cot_reasons(
            source=question.reference_answer, summary=record.answer
        )
        return float(value)

    @override
    def evidence(self, measurement: Measurement) -> tuple[Verdict, ...]:
        points = [line.strip() for line in _text(_one(measurement, KEY_POINTS.name)).split("\n") if line.strip()]
        for point in points:
            if not KEY_POINT.match(point):
                raise Disbelieved(f'the key points could not be parsed: no "Key Point 1: ..." but {excerpt(point)}')
        units = named([KEY_POINT.sub("", point) for point in points], "key points")
        graded = _named(measurement, INCLUSION.name)
        grades = [rating(_text(exchange).split("\n")[0], TOP) for exchange in graded]
        if len(grades) != len(points):
            raise Disbelieved(f"{len(grades)} grades for {len(points)} key points")
        return tuple(
            _verdict(unit, grade, SUPPORT, reason=_after(_text(exchange), "Supporting Evidence:"))
            for unit, grade, exchange in zip(units, grades, graded, strict=True)
        )


def _after(text: str, marker: str) -> str:
    return text.partition(marker)[2].strip()


def _inclusion_task(prompt: str, measurement: Measurement) -> Support:
    template = _trulens("trulens.feedback.templates.rag").Comprehensiveness.user_prompt
    answer = measurement.record.answer or ""
    point = KEY_POINT.sub("", _between(template, "key_point", prompt, summary=answer))
    return Support((point,), answer, "reference", "answer", apart=False)


KEY_POINTS = CallSite(
    "key points", lambda prompt, m: Split(m.question.reference_answer or "", "reference"), key_points_written
)
INCLUSION = CallSite("inclusion", _inclusion_task, inclusion_written)


class GroundTruthAgreement(TruLensScorer):
    """Grade, from 0 to 1, of how similar in meaning the answer is to the reference answer.

    Source: trulens/feedback/groundtruth.py (2.16.0), GroundTruthAgreement.agreement_measure.
    """

    id: ClassVar[str] = "trulens/ground_truth_agreement"
    asks: ClassVar[str] = asks.CORRECT
    source: ClassVar[str] = "trulens/feedback/groundtruth.py of trulens-feedback 2.16.0"
    unit_judged: ClassVar[str] = "answer"
    hit: ClassVar[str] = "an answer that the judge rates 10 of 0 to 10 for similarity with the reference"
    formula: ClassVar[str] = "rating / 10"
    nothing_to_judge: ClassVar[str] = "not applicable without an answer or a reference, where TruLens returns 0 or NaN"
    requires: ClassVar[tuple[str, ...]] = ("question", "answer", "reference_answer")
    calls: ClassVar[str] = "1"
    hazards: ClassVar[tuple[str, ...]] = (
        "The prompt asks for 1 to 10 and says that 0 is no similarity: a wrong answer gets 0 or 0.1, as the judge "
        "reads that.",
        "The rating is plain text, of which TruLens takes the smallest number in range; here a reply without one clear "
        "whole number fails the score.",
        "One rating for the whole: it does not say what is missing or wrong.",
    )
    site: ClassVar[CallSite] = CallSite(
        "agreement",
        lambda prompt, m: Agree(m.question.text, m.record.answer or "", m.question.reference_answer or ""),
        agreement_written,
    )

    def method(self) -> str:
        """See TruLensScorer."""
        return "agreement_measure"

    def implementation(self) -> str:
        """The method of TruLens."""
        return "trulens.feedback.groundtruth.GroundTruthAgreement.agreement_measure"

    def compute(self, hear: Hear, question: Question, record: Record) -> float:
        """See TruLensScorer."""
        provider = _provider(lambda messages, schema: spoken(hear(self.site, messages, schema)))
        expected = [{"query": question.text, "expected_response": question.reference_answer}]
        agreement = _trulens("trulens.feedback.groundtruth").GroundTruthAgreement(expected, provider=provider)
        return float(agreement.agreement_measure(question.text, record.answer)[0])

    @override
    def evidence(self, measurement: Measurement) -> tuple[Verdict, ...]:
        grade = rating(_text(_one(measurement, "agreement")), TOP_AGREEMENT)
        return (_verdict(measurement.record.answer or "", grade, SUPPORT, TOP_AGREEMENT),)
