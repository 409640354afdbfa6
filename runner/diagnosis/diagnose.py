"""Which fault each question of a run has, by the pattern of its record, its labels and its scores.

What pattern means what (thresholds: conf/diagnosis/*.yaml; docs/diagnosis.md shows each with an example):

- missing content: an answerable question, and no chunk of the corpus holds enough of its passages to answer from, or
  nothing in the corpus is relevant.
- missed top ranked: chunks hold enough, and those that the retriever and the reranker passed on do not.
- stale source: the answer has the words that only a rejected passage has (below min_grade: another product, an old
  edition), or is not right and has all its figures; where there is no answer to read, a rejected passage stands in the
  context (in the ranking, where no context is known) before all that would answer.
- buried: enough was passed on, and the first of it came late.
- not in context: enough was passed on, and not enough of it reached the prompt.
- should have declined, declined wrongly: an answer to an unanswerable question; none to an answerable one although the
  context held enough (or nobody knows what it held).
- wrong format: the answer does not match `format`, or cites nothing where `cites` asks for it.
- not extracted: the context held enough, and the answer is wrong and says no part of the reference.
- unsupported claim: the answer is not grounded in its context.
- incomplete: the answer says a part of the reference and misses another that the context held.
- wrong specificity: a right answer that is far longer than the reference, or one that a judge finds on the topic and
  not right, and that has no figure or code where the reference has some.

A right answer has no fault of the stages before it: what they missed was not needed. (Where words in common alone tell
that it is right, it may still be stale.) A question without an answer
(Record.error) has no fault of the answer; it is counted in the notes. What is unknown is no fault and never counts as
fine: Diagnosis.missing says what could not be looked for, and why.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from adapters.schema import Question, Record, Score
from runner import phrases
from runner.diagnosis.answers import (
    CLAIMS,
    Asked,
    Told,
    claims_said,
    own_words,
    quoted,
    specifics,
    text_of,
    told,
    unsupported,
    words,
)
from runner.diagnosis.findings import Diagnosed, Diagnosis, Fault, FaultName, counted
from runner.diagnosis.passages import Passages, listed, named
from runner.diagnosis.rules import FAULTS, Rules, untried
from runner.diagnosis.unjudged import BothWays, judged_only, unjudged
from runner.results import StoredRun

LABELS = "labels: which passages answer the question (Question.relevant)"
RANKING = "the ranking that the system stood by (Record.reranked)"
CHUNKS = "the chunks that touch a label, found or not (Record.labelled)"
CONTEXT = "what reached the prompt (Record.context)"
ANSWER = "an answer (Record.answer)"
REJECTED = "passages that were judged and rejected (grade below min_grade)"
CLAIMS_OR_COMPLETE = (
    "a value of trulens/comprehensiveness or ragas/factual_correctness.mode-recall, or Question.reference_claims"
)
FORMAT = "diagnosis.format or diagnosis.cites, which say what every answer must look like"
JUDGED = "a judge's value of diagnosis.right; words in common cannot tell a general answer from a wrong one"
REFERENCE = "a reference answer (Question.reference_answer)"


def faults_of(question: Question, record: Record, scores: Mapping[str, Score], rules: Rules) -> tuple[Fault, ...]:
    """All faults of one question, in the order of FaultName. scores: by definition, of this question."""
    return _Look(question, record, scores, rules).diagnosed.faults


@dataclass
class _Look:
    """One question looked at. unknown: what could not be looked for, and what it needs. needless: whether the answer is
    right although what would answer was not in its context."""

    question: Question
    record: Record
    scores: Mapping[str, Score]
    rules: Rules
    unknown: dict[FaultName, str] = field(default_factory=dict)
    needless: bool = False

    @cached_property
    def diagnosed(self) -> Diagnosed:
        """All of it."""
        found = {fault.name: fault for fault in (*self._retrieval(), *self._answer())}
        right = self.right
        return Diagnosed(
            self.question.id,
            self.question.text,
            tuple(found[name] for name in FAULTS if name in found),
            right.yes,
            right.why,
        )

    def _told(self, asked: Asked) -> Told:
        return told(asked, self.question, self.record, self.scores, self.rules)

    @cached_property
    def declined(self) -> Told:
        """Whether the system declined."""
        return self._told("declined")

    @cached_property
    def right(self) -> Told:
        """Whether the answer is right: one that declines is where the question is unanswerable."""
        if self.record.error:
            return Told(False, f"no answer: {self.record.error}")
        if self.record.answer is None and self.record.refused is None:
            return Told(None, ANSWER, ANSWER)
        declined = self.declined
        if not self.question.answerable:
            return declined
        if declined.yes:
            return Told(False, f"the system declined: {declined.why}", score=declined.score)
        return self._told("right")

    @property
    def _judged(self) -> bool:
        """Whether a judge, and not words in common, told if the answer is right."""
        return self.right.score is not None and not self.right.score.definition.startswith("labels/")

    # The stages before the answer.

    @cached_property
    def passages(self) -> Passages | None:
        """Where the passages are; None without labels, or for an unanswerable question."""
        if self.question.relevant is None or not self.question.answerable:
            return None
        return Passages(self.question, self.record, self.rules)

    @cached_property
    def prompt_holds_enough(self) -> bool | None:
        """Whether the prompt held enough to answer from; None = unknown."""
        found = self.passages
        if found is None or not found.context_known:
            return None
        return bool(found.relevant) and found.enough(found.prompted)

    def _retrieval(self) -> list[Fault]:
        if not self.question.answerable:
            return []
        stages: tuple[FaultName, ...] = (
            "missing content",
            "missed top ranked",
            "stale source",
            "buried",
            "not in context",
        )
        if self.passages is None:
            self._cannot(stages, LABELS)
            return []
        faults = self._of_stages(self.passages)
        if self.right.yes:
            self.needless = any(fault.name in ("missing content", "missed top ranked") for fault in faults)
            # Words in common do not see that an answer says the old rule beside the new one.
            return [fault for fault in faults if fault.name == "stale source" and not self._judged]
        return faults

    def _cannot(self, faults: Sequence[FaultName], reason: str) -> None:
        for fault in faults:
            self.unknown[fault] = reason

    def _of_stages(self, at: Passages) -> list[Fault]:
        if not at.relevant:
            rejected = phrases.count(len(at.rejected), "rejected passage")
            none = f"the labels hold {rejected} and no relevant one" if at.rejected else "its labels are empty"
            return [
                Fault("missing content", f"the question is answerable, and {none}"),
                *self._stale(at),
            ]
        known = bool(self.record.reranked) or (self.record.asked_k > 0 and not self.record.error)
        if not known:
            self._cannot(("buried",), RANKING)
            if not at.context_known or not at.enough(at.prompted):
                self._cannot(("missing content", "missed top ranked", "not in context"), RANKING)
            return self._stale(at)
        if at.enough(at.found):
            return [*self._stale(at), *self._passed_on(at)]
        if not at.enough(at.held):
            if not self.record.labelled:
                self._cannot(("missing content", "missed top ranked"), CHUNKS)
                return self._stale(at)
            return [Fault("missing content", self._unheld(at)), *self._stale(at)]
        return [Fault("missed top ranked", self._missed(at)), *self._stale(at)]

    def _unheld(self, at: Passages) -> str:
        span = next(span for span in at.needed if span not in at.held)
        share = f"{at.rules.min_cover:.0%} of " if at.rules.min_cover else ""
        return (
            f"no chunk holds {share}{named(span)}: the most that one has is {at.longest_piece(span)} of its "
            f"{span.end - span.start} characters"
        )

    def _missed(self, at: Passages) -> str:
        lost = [span for span in at.needed if span not in at.found]
        some = f"{len(at.found)} of {len(at.needed)} passages found; " if at.found else ""
        places = len(at.ranked)
        if not places:
            return f"nothing was retrieved, so neither was {listed(lost)}"
        retrieved = tuple(ranked.chunk for ranked in self.record.retrieved)
        place = at.rank_of(lost, retrieved)
        if place is None:
            return f"{some}not among the {len(retrieved) or places} retrieved: {listed(lost)}"
        rank, chunk = place
        passed = f"{places} were passed on" if rank > places else f"the reranker left it out of its first {places}"
        where = f"{named(chunk)}, at rank {rank} of {len(retrieved)} retrieved"
        return f"{some}{listed(lost)}: the first is in {where}; {passed}"

    def _passed_on(self, at: Passages) -> list[Fault]:
        faults = []
        first = at.rank_of(at.needed, at.ranked)
        if first and first[0] >= self.rules.buried_from:
            rank, chunk = first
            told_ = f"the first chunk that holds a passage, {named(chunk)}, has rank {rank} of {len(at.ranked)}"
            faults.append(Fault("buried", f"{told_} (buried from {self.rules.buried_from})"))
        if not at.context_known:
            self._cannot(("not in context",), CONTEXT)
        elif not at.enough(at.prompted):
            faults.append(Fault("not in context", self._dropped(at)))
        return faults

    def _dropped(self, at: Passages) -> str:
        span = next(span for span in at.found if span not in at.prompted)
        place = at.rank_of([span], at.ranked)
        assert place  # it was found
        rank, chunk = place
        why = next((drop.reason for drop in self.record.dropped if drop.chunk == chunk), None)
        how = f"was dropped: {why}" if why else "did not reach the prompt"
        return f"{named(span)} was ranked {rank} and {how}"

    def _stale(self, at: Passages) -> list[Fault]:
        if not at.rejected:
            self._cannot(("stale source",), REJECTED)
            return []
        if self.declined.yes:
            return []
        if self.record.answer is not None:
            repeated = self._repeats(at)
            return [Fault("stale source", repeated)] if repeated else []
        chunks, where = (self.record.context, "context") if at.context_known else (at.ranked, "ranking")
        bad = at.holding_rejected(chunks)
        first = at.rank_of(at.needed, chunks)
        if bad is None or (first and first[0] < bad[0]):
            return []
        place, span = bad
        right = f"before {named(first[1])} at {first[0]}" if first else "and nothing that answers is in it"
        return [Fault("stale source", f"rejected {named(span)} is number {place} of the {where}, {right}")]

    def _repeats(self, at: Passages) -> str | None:
        """The rejected passage whose own words, or all of whose own figures, the answer has."""
        answer = words(self.record.answer or "")
        relevant = [text for span in at.relevant if (text := text_of(span, self.record))]
        others = [*relevant, self.question.text, self.question.reference_answer or ""]
        for span in at.rejected:
            own = own_words(text_of(span, self.record) or "", others)
            figures = own.intersection(specifics(" ".join(own)))
            if own and len(own & answer) / len(own) >= self.rules.repeats_from:
                return (
                    f"the answer has {len(own & answer)} of the {phrases.count(len(own), 'word')} that only rejected "
                    f"{named(span)} has (from {self.rules.repeats_from:g} of them)"
                )
            if figures and figures <= answer and not self.right.yes:
                return f"the answer has what only rejected {named(span)} has: {phrases.some(sorted(figures), 3)}"
        return None

    # The answer.

    def _answer(self) -> list[Fault]:
        if self.record.error:
            return []
        if self.record.answer is None and self.record.refused is None:
            self._cannot(FAULTS[FAULTS.index("should have declined") :], ANSWER)
            return []
        faults = [*self._declining()]
        if self.declined.yes:
            return faults
        return [
            *faults,
            *self._format(),
            *self._grounded(),
            *(self._content() if self.question.answerable else ()),
        ]

    def _declining(self) -> list[Fault]:
        declined, name = self.declined, self._declining_name
        if declined.yes is None:
            self._cannot((name,), declined.reason or declined.why)
            return []
        if name == "should have declined":
            answer = quoted(self.record.answer or "")
            said = f"the question is unanswerable, and the system answered {answer}: {declined.why}"
            return [] if declined.yes else [Fault(name, said)]
        if not declined.yes or self.prompt_holds_enough is False:
            return []
        at = self.passages
        held = f"the context holds {listed(at.prompted)}" if at and at.context_known else "the question is answerable"
        return [Fault(name, f"{held}, and the system declined: {declined.why}")]

    @property
    def _declining_name(self) -> FaultName:
        return "declined wrongly" if self.question.answerable else "should have declined"

    def _format(self) -> list[Fault]:
        if self.rules.format is None and not self.rules.cites:
            self._cannot(("wrong format",), FORMAT)
        elif self.rules.format is not None and not re.search(self.rules.format, self.record.answer or ""):
            return [Fault("wrong format", f"nothing in the answer matches diagnosis.format {self.rules.format!r}")]
        elif self.rules.cites and not self.record.citations:
            return [Fault("wrong format", "the answer cites no passage of its context (diagnosis.cites)")]
        return []

    def _grounded(self) -> list[Fault]:
        grounded = self._told("grounded")
        if grounded.yes is None:
            self._cannot(("unsupported claim",), grounded.reason or grounded.why)
        if grounded.yes is not False:
            return []
        return [Fault("unsupported claim", f"{grounded.why}{unsupported(grounded.score)}")]

    def _content(self) -> list[Fault]:
        general = self._too_general()
        partly = general or self._incomplete()
        faults = [*(partly or self._not_extracted()), *self._too_long()]
        if not self.question.reference_answer:
            self._cannot(("wrong specificity",), REFERENCE)
        return faults

    def _not_extracted(self) -> list[Fault]:
        if self.prompt_holds_enough is False:
            return []
        if self.right.yes is None or (self.right.yes is False and self.prompt_holds_enough is None):
            self._cannot(
                ("not extracted",),
                (self.right.reason or self.right.why)
                if self.right.yes is None
                else (LABELS if self.passages is None else CONTEXT),
            )
            return []
        if self.right.yes:
            return []
        assert self.passages
        held = listed(self.passages.prompted)
        return [Fault("not extracted", f"the context holds {held}, and the answer is wrong: {self.right.why}")]

    def _incomplete(self) -> list[Fault]:
        if self.prompt_holds_enough is False:
            return []
        complete = self._told("complete")
        if complete.score is not None and complete.score.value is not None:
            partly = complete.score.value >= self.rules.partly_from and self.right.yes is not False
            if complete.yes is None:
                self._cannot(("incomplete",), complete.reason or complete.why)
            if complete.yes is False and partly:
                return [Fault("incomplete", f"{complete.why}; left out{unsupported(complete.score)}")]
            return []
        claims = claims_said(self.question, self.record, self.rules)
        if not claims.of:
            self._cannot(("incomplete",), CLAIMS_OR_COMPLETE)
        if not (claims.said and claims.unsaid) or (self.right.yes and self._judged):
            return []
        unsaid = ", ".join(map(quoted, claims.unsaid[:CLAIMS]))
        return [
            Fault(
                "incomplete",
                f"the answer has the words of {len(claims.said)} of {claims.of} reference claims (from "
                f"{self.rules.claim_said_from:g} of them), and not (below {self.rules.claim_unsaid_below:g}) of "
                f"{unsaid}",
            )
        ]

    def _too_general(self) -> list[Fault]:
        on_topic, exact = self._told("on_topic"), specifics(self.question.reference_answer or "")
        if not exact or self.right.yes or self.prompt_holds_enough is False:
            return []
        if not self._judged:
            self._cannot(("wrong specificity",), JUDGED)
            return []
        if on_topic.yes is None:
            self._cannot(("wrong specificity",), on_topic.reason or on_topic.why)
        if not on_topic.yes or specifics(self.record.answer or ""):
            return []
        return [
            Fault(
                "wrong specificity",
                f"on the topic ({on_topic.why}), and without any figure or code; the reference has "
                f"{phrases.some(exact, 3)}",
            )
        ]

    def _too_long(self) -> list[Fault]:
        answer, reference = len(self.record.answer or ""), len(self.question.reference_answer or "")
        if self.right.yes is None:
            self._cannot(("wrong specificity",), self.right.reason or self.right.why)
        if not self.right.yes or not reference or answer < self.rules.long_from:
            return []
        if answer <= self.rules.longer_than * reference:
            return []
        return [
            Fault(
                "wrong specificity",
                f"right ({self.right.why}), in {answer:,} characters where the reference has {reference:,}: more than "
                f"{self.rules.longer_than:g} times as many, and at least {self.rules.long_from}",
            )
        ]


# A whole run.


@dataclass(frozen=True)
class _Seen:
    """A run that is looked at once, however many others are beside it."""

    run: StoredRun
    rules: Rules

    @cached_property
    def both_ways(self) -> BothWays:
        return BothWays(self.run)

    @cached_property
    def looks(self) -> dict[str, _Look]:
        return _looks(self.run, self.rules)

    @cached_property
    def first(self) -> dict[str, FaultName | None]:
        return {id: look.diagnosed.faults[0].name if look.diagnosed.faults else None for id, look in self.looks.items()}


def diagnose(run: StoredRun, rules: Rules, baseline: StoredRun | None = None) -> Diagnosis:
    """What is wrong in a run, question by question, and beside its baseline. Raises ConfigError for rules that do not
    fit the definitions of the run."""
    return _diagnosed(_Seen(run, rules), _Seen(baseline, rules) if baseline else None)


def diagnose_sweep(baseline: StoredRun, variants: Mapping[str, StoredRun], rules: Rules) -> list[Diagnosis]:
    """What is wrong in a baseline, and in each of its variants beside it, in this order. Raises ConfigError as
    `diagnose` does."""
    before = _Seen(baseline, rules)
    return [_diagnosed(before, None), *(_diagnosed(_Seen(run, rules), before) for run in variants.values())]


def _diagnosed(seen: _Seen, before: _Seen | None) -> Diagnosis:
    run, rules, baseline = seen.run, seen.rules, before.run if before else None
    rules.fits({key: definition.direction for key, definition in run.definitions.items()})
    looks, first, earlier = seen.looks, seen.first, before.first if before else {}
    common = set(first) & set(earlier)
    appeared: dict[FaultName, list[str]] = {}
    gone: dict[FaultName, list[str]] = {}
    for id in (id for id in first if id in common and first[id] != earlier[id]):
        if now := first[id]:
            appeared.setdefault(now, []).append(id)
        if was := earlier[id]:
            gone.setdefault(was, []).append(id)
    return Diagnosis(
        name=str(run.summary.get("name") or run.folder.name),
        folder=run.folder,
        questions=tuple(look.diagnosed for look in looks.values()),
        counts=counted(first.values()),
        before=counted(earlier.values()) if before is not None else None,
        appeared={fault: tuple(appeared[fault]) for fault in FAULTS if fault in appeared},
        gone={fault: tuple(gone[fault]) for fault in FAULTS if fault in gone},
        levers=untried(rules, run),
        missing=_missing(looks),
        unjudged=unjudged(run, baseline),
        judged_only=judged_only(seen.both_ways, before.both_ways if before else None),
        notes=(*_notes(run, looks), *_baseline_notes(run, baseline)),
    )


def faults_by_question(
    questions: Iterable[Question], records: Iterable[Record], scores: Iterable[Score], rules: Rules
) -> dict[str, tuple[Fault, ...]]:
    """All faults of each question that has any, by question id."""
    by_question = _by_question(scores)
    answered = {record.question_id: record for record in records}
    found = {q.id: faults_of(q, answered[q.id], by_question.get(q.id, {}), rules) for q in questions}
    return {id: faults for id, faults in found.items() if faults}


def _by_question(scores: Iterable[Score]) -> dict[str, dict[str, Score]]:
    found: dict[str, dict[str, Score]] = {}
    for score in scores:
        found.setdefault(score.question_id, {})[score.definition] = score
    return found


def _looks(run: StoredRun, rules: Rules) -> dict[str, _Look]:
    by_question = _by_question(score for scores in run.scores.values() for score in scores.values())
    looks = {}
    for id, question in run.questions.items():
        record = run.records.get(id)
        if record is None:
            record = Record(id, error="the run has no record of this question")
        looks[id] = _Look(question, record, by_question.get(id, {}), rules)
        _ = looks[id].diagnosed
    return looks


def _missing(looks: Mapping[str, _Look]) -> dict[FaultName, str]:
    """Why each fault could not be looked for, the most frequent reason first, with the number of questions."""
    reasons: dict[FaultName, Counter[str]] = {}
    for look in looks.values():
        found = {fault.name for fault in look.diagnosed.faults}
        for fault, reason in look.unknown.items():
            if fault not in found:
                reasons.setdefault(fault, Counter())[reason] += 1
    return {
        fault: "; ".join(f"{n:,} of {len(looks):,} questions: {reason}" for reason, n in reasons[fault].most_common())
        for fault in FAULTS
        if fault in reasons
    }


def _notes(run: StoredRun, looks: Mapping[str, _Look]) -> list[str]:
    notes = []
    if failed := [id for id, look in looks.items() if look.record.error]:
        notes.append(
            f"without an answer: {phrases.some(failed)}; the first: {looks[failed[0]].record.error}. No fault of the "
            "answer was looked for in them"
        )
    if needless := [id for id, look in looks.items() if look.needless]:
        notes.append(
            f"right although no passage that answers was found: {phrases.some(needless)}. The labels may be "
            "incomplete, or the model knew it from elsewhere; no fault is counted"
        )
    day = str(run.summary.get("started") or "")[:10]
    if expired := [q.id for q in run.questions.values() if q.valid_until and q.valid_until.isoformat() < day]:
        notes.append(
            f"the reference answer held no longer when the run was made (valid_until): {phrases.some(expired)}. What "
            "is said of these answers may be a fault of the test set"
        )
    unexplained = [id for id, look in looks.items() if look.right.yes is False and not look.diagnosed.faults]
    unexplained = [id for id in unexplained if not looks[id].record.error]
    if unexplained:
        notes.append(f"wrong without a pattern that would say why: {phrases.some(unexplained)}")
    return notes


def _baseline_notes(run: StoredRun, baseline: StoredRun | None) -> list[str]:
    if baseline is None:
        return []
    notes = []
    ours, theirs = (each.summary.get("dataset", {}).get("checksum") for each in (run, baseline))
    if ours != theirs:
        notes.append("the baseline was run on another test set; the counts are of different questions")
    here, there = set(run.definitions), set(baseline.definitions)
    if here != there:
        notes.append(
            f"the baseline has other definitions ({phrases.some(sorted(here ^ there), 3)} in one of the two only), so "
            "that some answers may have been told right or wrong by others"
        )
    return notes
