"""Answers made of sentences of the context: no model, no network; the default."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field, PositiveInt, model_validator

from adapters.refusal import declines
from adapters.sentences import sentence_spans
from runner.stage import Answer, Generator, Request

_DECLINE = "I don't know: no sentence of the context shares enough words with the question."

_WORD = re.compile(r"\w+")
_EMPTY_WORDS = frozenset(
    _WORD.findall(
        "a about all an and any are as at be been being by called can could did do does for from had has have he her"
        " him his how i in is it its kind many may me might much must my name named not of on one or our she should so"
        " some than that the their them then there these they this those to type us was we were what when where which"
        " who whom whose why will with would you your"
    )
)

_NUMBERS = {"a single": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
_COUNTED = re.compile(
    rf"\b({'|'.join(_NUMBERS)}|[1-9]\d?)(?: or (?:fewer|less|two|three|four|five|six))? (?:\w+,? )?sentences?\b",
    re.IGNORECASE,
)
_BRIEF = re.compile(r"\b(?:brief|briefly|concise|concisely|short|shortly)\b", re.IGNORECASE)
_FULL = re.compile(r"\b(?:detailed|in detail|thorough|thoroughly|comprehensive|comprehensively|fully)\b", re.IGNORECASE)
_CITE = re.compile(r"\b(?:cite|cites|citing|citations?)\b|\[n\]", re.IGNORECASE)
_STRICT = re.compile(
    r"\bi (?:do not|don't) know\b|\bdecline\b|\bunanswerable\b"
    r"|\b(?:do|does) not (?:contain|say|answer|mention|provide)\b"
    r"|\bonly (?:from|on|what|if|when|use|using)\b|\b(?:use|using) only\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Orders:
    """What a prompt asks for, as far as this generator understands it."""

    sentences: int
    cite: bool
    strict: bool


class ExtractiveGenerator(Generator):
    """Picks the sentences of the passages that share the most with the question, or declines.

    A sentence scores the share of the question's word stems that it holds, each weighted by how rare it is among the
    sentences (idf), plus up to `lead` for standing early. The chosen ones are given in the order of the prompt. It
    declines when even the best of them holds less than `threshold` of the question's stems, counted without weights.
    It knows English words only, understands nothing, and cannot be wrong about what its source says.

    So that a change of prompt is a change of answer, it reads the prompt (passages and question taken out) as a very
    literal person would. It obeys these words and nothing else, in any sense and even when negated:

        a single/one/two ... six/7 (short) sentences             so many sentences, the smallest number named
        brief(ly), concise(ly), short(ly)                        one sentence
        (in) detail(ed), thorough(ly), comprehensive(ly), fully  twice `sentences`
        cite, citation, [n]                                      [n] after each sentence; else nothing is cited
        I don't know, decline, unanswerable, do(es) not          declines below `strict_threshold`
          contain/say/answer/mention/provide, only from/on/
          what/if/when/use/using, use/using only

    A passage that the prompt does not show (no {context}) does not exist for it.
    """

    packages: ClassVar[tuple[str, ...]] = ("PyStemmer", "sentencex")
    sources: ClassVar[tuple[str, ...]] = ("adapters.sentences", "adapters.refusal")

    sentences: PositiveInt = 2
    """Sentences of an answer to a prompt that asks for no number."""
    threshold: Annotated[float, Field(ge=0, le=1, strict=False)] = 0.2
    """Share of the question's stems, 0 to 1, that the best sentence must hold."""
    strict_threshold: Annotated[float, Field(ge=0, le=1, strict=False)] = 0.35
    """The same, for a prompt that asks to decline; at least `threshold`."""
    lead: Annotated[float, Field(ge=0, strict=False)] = 0.1
    """What the first sentence of the context gains over the last, where a full match scores 1."""

    @model_validator(mode="after")
    def _ordered(self) -> ExtractiveGenerator:
        if self.strict_threshold < self.threshold:
            raise ValueError(
                f"strict_threshold={self.strict_threshold} must be at least threshold={self.threshold}: "
                "a prompt that asks to decline cannot make the generator decline less"
            )
        return self

    def generate(self, request: Request) -> Answer:
        """The chosen sentences, or a sentence that declines. tokens are not counted."""
        prompt = "\n".join(message.content for message in request.messages)
        found = [
            (passage[start:end].strip(), position)
            for position, passage in enumerate(request.passages)
            if passage and passage in prompt
            for start, end in sentence_spans(passage)
        ]
        found = [(sentence, position) for sentence, position in found if sentence]
        asked = _stems(request.question)
        held = [asked & _stems(sentence) for sentence, _ in found]
        orders = self.orders(request)
        floor = self.strict_threshold if orders.strict else self.threshold
        if not asked or max(map(len, held), default=0) < max(floor * len(asked), 1):
            return Answer(_DECLINE, refused=True)

        frequency = Counter(stem for stems in held for stem in stems)
        weight = {stem: math.log(1 + (len(found) - frequency[stem] + 0.5) / (frequency[stem] + 0.5)) for stem in asked}
        total = math.fsum(weight.values())
        score = [
            math.fsum(weight[stem] for stem in stems) / total + self.lead * (1 - place / len(found))
            for place, stems in enumerate(held)
        ]
        best = sorted(range(len(found)), key=lambda place: (-score[place], place))[: orders.sentences]
        chosen = [found[place] for place in sorted(best)]
        text = " ".join(f"{sentence} [{position + 1}]" if orders.cite else sentence for sentence, position in chosen)
        citations = tuple(dict.fromkeys(position for _, position in chosen)) if orders.cite else ()
        return Answer(text, declines(text), citations)

    def orders(self, request: Request) -> Orders:
        """What the prompt of `request` asks for; its passages and its question give no orders."""
        prompt = "\n".join(message.content for message in request.messages)
        for part in sorted({*request.passages, request.question}, key=len, reverse=True):
            prompt = prompt.replace(part, " ") if part else prompt
        prompt = prompt.replace("’", "'")
        counted = [_NUMBERS.get(number.lower()) or int(number) for number in _COUNTED.findall(prompt)]
        if counted:
            sentences = min(counted)
        elif _BRIEF.search(prompt):
            sentences = 1
        else:
            sentences = self.sentences * (2 if _FULL.search(prompt) else 1)
        return Orders(sentences, bool(_CITE.search(prompt)), bool(_STRICT.search(prompt)))


def _stems(text: str) -> set[str]:
    """The stems of the words of `text` that carry meaning; all of them where none does."""
    import Stemmer

    words = _WORD.findall(text.lower())
    meaning = [word for word in words if word not in _EMPTY_WORDS] or words
    return set(Stemmer.Stemmer("english").stemWords(meaning))
