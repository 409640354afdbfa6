"""A model as the judge that is asked yes or no and answers by probability: one token and a graded score a unit."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import exp
from typing import Annotated, Any, ClassVar, Literal, assert_never

from pydantic import Field, PrivateAttr

from adapters.client import Answered, ClientSettings
from adapters.endpoint import EndpointError
from adapters.judge import Call, JudgeFault, Reply, SampledJudge, Vectors
from adapters.judges.lexical import LexicalJudge
from adapters.judges.model_names import model_warnings
from adapters.judges.vectors import CARD, hashed
from adapters.schema import JudgeCard, fingerprint
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

Asked = Literal["support", "compatible", "relevant", "addresses", "answers", "same", "declines", "contributes"]

END = "Answer with one word, Yes or No."
QUESTIONS: dict[Asked, str] = {
    "support": "Text:\n{text}\n\nClaim: {unit}\n\nIs the claim supported by the text?",
    "compatible": "Text:\n{text}\n\nClaim: {unit}\n\nCan the text and the claim both be true?",
    "relevant": "Passage:\n{unit}\n\nQuestion: {question}\n\nDoes the passage help to answer the question?",
    "addresses": "Question: {question}\n\nStatement: {unit}\n\nDoes the statement address the question?",
    "answers": "Question: {question}\n\nAnswer: {unit}\n\nDoes the answer address the question?",
    "same": "Question: {question}\n\nCorrect answer: {text}\n\nGiven answer: {unit}\n\nIs the given answer correct?",
    "declines": "Question: {question}\n\nAnswer: {unit}\n\nDoes the answer say that it cannot answer the question?",
    "contributes": "Passage:\n{text}\n\nAnswer: {unit}\n\nDoes the answer use what the passage says?",
}
"""What is asked, each followed by END. The frameworks' own prompts are not sent."""
# Asked "does the text contradict the claim?", Qwen2.5-1.5B finds more contradiction in claims that the text does not
# mention (.32 to .37) than in contradicted ones (.25 to .30). Asked whether both can be true it has the order right:
# .04 to .06 for four contradicted claims, .16 to .24 for three that are not mentioned; but all of these lie below HALF.

HALF = 0.5
"""P(yes) from which a unit holds."""
LEAST = 0.001
"""Share of the probability that must lie on Yes and No together; below it the model answers something else."""
TOP = 20
"""Tokens whose log-probability is asked for: the most that the OpenAI interface gives."""

AGREEMENT = (
    "judge=yes_no sends its own yes/no questions, not the prompts of the frameworks: their formulas are used, on texts "
    "cut by rules. Compare its scores with its own only. Its worth is that of the model: on 50 claims of WiCE one of "
    "1.5B parameters reached a balanced accuracy of 0.78 (judge=lexical: 0.71, too close to tell apart), one of 135M "
    "0.52, which is chance"
)

READ_OFF = (
    "judge.samples={samples}: judge=yes_no reads the probability of Yes and draws no sample, so a verdict that flips "
    "shows the endpoint's noise only; judge=openai draws samples"
)

_RULES = LexicalJudge()


@dataclass
class _Spent:
    """What the questions of one call cost. sample: which of equal calls it is."""

    sample: int = 0
    answers: list[Answered] = field(default_factory=list)

    def reply(self, text: str, model: str) -> Reply:
        tokens_in = [answered.reply.tokens_in for answered in self.answers]
        tokens_out = [answered.reply.tokens_out for answered in self.answers]
        costs = [answered.cost for answered in self.answers]
        return Reply(
            text,
            None if None in tokens_in else sum(count or 0 for count in tokens_in),
            None if None in tokens_out else sum(count or 0 for count in tokens_out),
            "stop",
            self.answers[-1].reply.model if self.answers else model,
            bool(self.answers) and all(answered.cached for answered in self.answers),
            None if None in costs else sum(cost or 0 for cost in costs),
        )


class YesNoJudge(ClientSettings, SampledJudge):
    """Asks a chat endpoint one yes/no question a unit, and takes P(Yes) / (P(Yes) + P(No)) of the first token as grade.

    For any endpoint that returns log-probabilities (llama.cpp, vLLM, OpenAI and others). A unit holds from a grade
    of 0.5. Of a claim that is not supported it asks a second question, whether both can be true, where the
    framework tells contradicted from absent. Texts are cut into claims, sentences and entities by the rules of
    judge=lexical, which also write the question back to an answer; vectors are hashed words. Its questions are
    QUESTIONS.

    Agreement with people: docs/judges.md, measured by benchmarks/judges.py.

    Raises JudgeFault where the endpoint gives no reply, no log-probabilities, or neither Yes nor No.
    """

    recorded: ClassVar[bool] = True
    keeps_time: ClassVar[bool] = True

    max_tokens: Annotated[int, Field(ge=1)] | None = 1
    """Only the first token is read; more for endpoints that refuse 1."""
    revision: str | None = None
    """What says which weights answer, where the name does not: a digest, a date, a commit."""
    _anew: bool = PrivateAttr(False)

    @property
    def card(self) -> JudgeCard:
        """What is asked, where, and how; nothing of the key."""
        return JudgeCard(
            provider="yes_no",
            model=self.model,
            revision=self.revision,
            temperature=self.temperature,
            seed=self.seed,
            max_tokens=self.max_tokens,
            host=self.host,
            embeddings=CARD,
            settings={
                **settings(),
                "options": self.options,
                **self.sampled(),
                **({} if self.path is None else {"path": self.path}),
            },
        )

    @property
    def spent(self) -> str | None:
        """See Judge."""
        return self.client.limits.spent

    @property
    def weights(self) -> str | None:
        """See ClientSettings."""
        return self.revision

    def anew(self) -> YesNoJudge:
        """See Judge."""
        copied = self.model_copy()
        copied.__dict__["client"] = self.client  # counts and limits are one
        copied._anew = True
        return copied

    def check(self) -> None:
        """See Judge."""
        try:
            self.client.check()
        except EndpointError as error:
            raise JudgeFault(str(error)) from None

    async def ask(self, call: Call) -> Reply:
        """The findings in the schema of the call. Raises JudgeFault, and TimeoutError where one question takes
        call_seconds, in which waiting for requests_per_minute and tokens_per_minute does not count."""
        spent = _Spent(call.sample)
        written = call.write(await self._findings(call.task(), call, spent))
        return spent.reply(written if isinstance(written, str) else json.dumps(written), self.model)

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """See adapters.judges.vectors.hashed. Raises JudgeFault."""
        return hashed(texts)

    async def embedded(self, texts: Sequence[str]) -> Vectors:
        """See Judge. Hashed words cost nothing."""
        return Vectors(hashed(texts), 0.0)

    def alike(self, temperature: float | None) -> tuple[str, ...]:
        """See SampledJudge; no temperature makes probabilities differ."""
        return read_off(self.samples)

    def warnings(self, generator_model: str | None) -> tuple[str, ...]:
        """That the prompts are not the frameworks', what the name of the model tells, samples that cannot differ,
        another model that answered, replies that could not be kept."""
        named = model_warnings(self.model, self.revision, generator_model)
        return (AGREEMENT, *self.alike(self.temperature), *named, *self.client.notes())

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        await self.client.close()

    async def yes(self, asked: Asked, **texts: str) -> float:
        """P(yes), 0 to 1, that the model gives to one of QUESTIONS. Raises what `ask` does."""
        return await self._yes(_Spent(), asked, **texts)

    async def _yes(self, spent: _Spent, asked: Asked, **texts: str) -> float:
        content = f"{QUESTIONS[asked].format(**texts)} {END}"
        messages = [{"role": "user", "content": content}]
        options: dict[str, Any] = {"logprobs": True, "top_logprobs": TOP}
        if spent.sample and self.seed is not None:
            options["seed"] = self.seed + spent.sample
        try:
            answered = await self.client.chat(messages, options, spent.sample, self._anew, self.call_seconds)
        except EndpointError as error:
            raise JudgeFault(str(error)) from None
        spent.answers.append(answered)
        try:
            return self._grade(answered.reply.body)
        except JudgeFault:
            if not self._anew:
                self.client.forget(self.client.key(messages, options, spent.sample))
            raise

    def _grade(self, body: Mapping[str, Any]) -> float:
        try:
            top = [(str(each["token"]), float(each["logprob"])) for each in _first(body)["top_logprobs"]]
        except (KeyError, IndexError, TypeError, ValueError):
            raise JudgeFault(
                f"{self.host} sent no log-probabilities (top_logprobs), and judge=yes_no reads nothing else; choose a "
                f"judge.model or judge.base_url that has them, or judge=openai"
            ) from None
        said = {"yes": 0.0, "no": 0.0}
        for token, logprob in top:
            if (word := token.strip(" \n▁Ġ").lower()) in said:
                said[word] += exp(logprob)
        whole = sum(said.values())
        if whole < LEAST:
            raise JudgeFault(
                f"{self.model} answered neither Yes nor No: they have {whole:.2%} of the probability, and "
                f"{', '.join(repr(token) for token, _ in top[:3])} lead; choose another judge.model"
            )
        return said["yes"] / whole

    async def _findings(self, task: Task, call: Call, spent: _Spent) -> Findings:
        async def support(unit: str, text: str, or_absent: bool = False) -> Finding:
            grade = await self._yes(spent, "support", unit=unit, text=text)
            reason = f"P(yes) = {grade:.2f}"
            if grade >= HALF:
                return Finding(unit, "supported", reason, grade)
            if or_absent:
                return Finding(unit, "absent", reason, grade)
            compatible = await self._yes(spent, "compatible", unit=unit, text=text)
            reason = f"{reason}; that both can be true: {compatible:.2f}"
            return Finding(unit, "absent" if compatible >= HALF else "contradicted", reason, grade)

        async def relevant(asked: Asked, unit: str, **texts: str) -> Finding:
            grade = await self._yes(spent, asked, **({"unit": unit} | texts))
            return Finding(unit, "relevant" if grade >= HALF else "not_relevant", f"P(yes) = {grade:.2f}", grade)

        async def graded(asked: Asked, unit: str, **texts: str) -> Finding:
            grade = await self._yes(spent, asked, unit=unit, **texts)
            return Finding(unit, None, f"P(yes) = {grade:.2f}", grade)

        # One question after the other: `concurrency` is the number of calls in flight, and each asks one at a time.
        match task:
            case Split():
                return _RULES.findings(task, call)
            case Support():
                return tuple([await support(unit, task.text, not task.apart) for unit in task.units])
            case Attribute():
                units = _sentences(task.text, call)
                judged = [await support(unit, task.context, or_absent=True) for unit in units]
                return tuple(
                    Finding(f.unit, "attributed" if f.word == "supported" else "not_attributed", f.reason, f.grade)
                    for f in judged
                )
            case Relevance(units_of="answer"):
                return tuple([await relevant("addresses", p, question=task.question) for p in task.passages])
            case Relevance():
                return tuple([await relevant("relevant", p, question=task.question) for p in task.passages])
            case RelevantStatements():
                units = _sentences(task.passage, call)
                return tuple([await relevant("relevant", unit, question=task.question) for unit in units])
            case AskBack():
                (asked,) = _RULES.findings(task, call)
                return (asked,)
            case Agree():
                return (await graded("same", task.answer, question=task.question, text=task.reference),)
            case Grade(what="relevance", source="answer"):
                return (await graded("answers", task.text, question=task.question or ""),)
            case Grade(what="relevance"):
                return (await graded("relevant", task.text, question=task.question or ""),)
            case Grade():
                return (await graded("support", task.text, text=task.against or ""),)
            case Match():
                answer, reference = " ".join(task.answer_claims), " ".join(task.reference_claims)
                return (
                    *[await support(claim, reference, or_absent=True) for claim in task.answer_claims],
                    *[await support(claim, answer, or_absent=True) for claim in task.reference_claims],
                )
            case Decline():
                grade = await self._yes(spent, "declines", unit=task.answer, question=task.question)
                word: Literal["supported", "absent"] = "supported" if grade >= HALF else "absent"
                return (Finding(task.answer, word, f"P(yes) = {grade:.2f}", grade),)
            case Contribution():
                judged = [await relevant("contributes", task.answer, text=chunk) for chunk in task.chunks]
                return tuple(
                    Finding(chunk, f.word, f.reason, f.grade) for chunk, f in zip(task.chunks, judged, strict=True)
                )
            case _:
                assert_never(task)


def read_off(samples: int) -> tuple[str, ...]:
    """What to know of samples where probabilities are read."""
    return (READ_OFF.format(samples=samples),) if samples > 1 else ()


def settings() -> dict[str, str | float]:
    """What can change a verdict besides the model: the questions, where a unit begins to hold, and the rules that cut
    texts."""
    return {
        "questions": fingerprint([QUESTIONS, END]),
        "holds_from": HALF,
        "least": LEAST,
        "rules": _RULES.card.fingerprint,
    }


def _sentences(text: str, call: Call) -> list[str]:
    return [found.unit for found in _RULES.findings(Split(text, "context", "sentences"), call)]


def _first(body: Mapping[str, Any]) -> Any:
    """What is said of the first token of a reply."""
    return body["choices"][0]["logprobs"]["content"][0]
