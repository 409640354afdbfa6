"""A diagnosis in words: the terminal, the report and the notes of a run say the same with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from runner import phrases
from runner.diagnosis.findings import Diagnosed, Diagnosis, FaultName, JudgedOnly, Unjudged
from runner.diagnosis.rules import FAULTS

MEANS: Mapping[FaultName, str] = {
    "missing content": "no chunk holds what answers the question",
    "stale source": "the answer comes from a passage that people rejected",
    "missed top ranked": "chunks hold what answers, and none of them was passed on",
    "buried": "what answers was passed on, but late in the ranking",
    "not in context": "what answers was passed on, and did not reach the prompt",
    "should have declined": "the question cannot be answered, and the system answered",
    "declined wrongly": "the context held what answers, and the system declined",
    "wrong format": "the answer does not look as it must",
    "not extracted": "the context held what answers, and the answer is wrong",
    "unsupported claim": "the answer says what its context does not",
    "incomplete": "the answer says a part of what it must",
    "wrong specificity": "right, but far too long; or on the topic, but too general",
}
"""Each fault in a clause."""
HOW = (
    "A question counts with its first fault, on the way from the documents to the answer.",
    "Faults found by labels are as good as the labels, those found by a judge as good as the judge.",
)


@dataclass(frozen=True, slots=True)
class Row:
    """One fault of a table: how many questions have it as their first one, how that changed against the baseline (None
    without one), one of them as an example, and overrides to try."""

    fault: FaultName
    count: int
    change: int | None
    example: Diagnosed | None
    levers: tuple[str, ...]


def in_short(counts: Mapping[FaultName, int]) -> str:
    """`missed top ranked 21, buried 9`, the most frequent first."""
    return ", ".join(f"{fault} {counts[fault]}" for fault in sorted(counts, key=lambda fault: -counts[fault]))


def rows(found: Diagnosis) -> list[Row]:
    """The faults that a question has now or had in the baseline, the most frequent first."""
    shown = [fault for fault in FAULTS if fault in found.counts or fault in (found.before or {})]
    made = [
        Row(
            fault,
            count := found.counts.get(fault, 0),
            None if found.before is None else count - found.before.get(fault, 0),
            next(examples(found, fault), None),
            found.levers.get(fault, ()),
        )
        for fault in shown
    ]
    return sorted(made, key=lambda row: -row.count)


def examples(found: Diagnosis, fault: FaultName) -> Iterator[Diagnosed]:
    """Questions with this as their first fault, worst first: those that the baseline did not have, then those whose
    answer is known to be wrong, then those with more faults."""
    new = set(found.appeared.get(fault, ()))
    having = [each for each in found.questions if each.faults and each.faults[0].name == fault]
    yield from sorted(
        having, key=lambda each: (each.question_id not in new, each.right is not False, -len(each.faults))
    )


def change(row: Row) -> str:
    """`+3`, `=`, empty without a baseline."""
    return "" if row.change is None else f"{row.change:+d}".replace("-", "−") if row.change else "="


def headline(found: Diagnosis) -> str:
    """How many questions have a fault, and what is known of the others."""
    faulty = sum(found.counts.values())
    right = sum(each.right is True and not each.faults for each in found.questions)
    open_ = sum(each.right is None and not each.faults for each in found.questions)
    wrong = sum(each.right is False and not each.faults for each in found.questions)
    parts = [
        f"{faulty:,} of {phrases.count(len(found.questions), 'question')} with a fault",
        f"{right:,} without one and right",
        *([f"{open_:,} without one, and nobody knows whether they are right"] if open_ else []),
        *([f"{wrong:,} wrong without a pattern, or without an answer"] if wrong else []),
    ]
    return f"{'; '.join(parts)}."


def moved(found: Diagnosis) -> list[str]:
    """Which questions got or lost each fault as their first one."""
    told = []
    for fault in FAULTS:
        new, gone = found.appeared.get(fault, ()), found.gone.get(fault, ())
        parts = [f"{what} {phrases.some(ids, 6)}" for what, ids in (("new", new), ("gone", gone)) if ids]
        if parts:
            told.append(f"{fault}: {'; '.join(parts)}")
    return told


def missing(found: Diagnosis) -> list[str]:
    """What could not be looked for, and what that needs."""
    return [f"{fault}: needs, in {reason}" for fault, reason in found.missing.items()]


def unjudged(found: Sequence[Unjudged]) -> str:
    """How many chunks nobody judged, and how many of them the baseline does not have."""
    if not found:
        return "Every chunk that was passed on shares characters with a label, or the labels are empty."
    questions = len({each.question_id for each in found})
    told = f"{phrases.count(len(found), 'chunk')} of {phrases.count(questions, 'question')} that no label speaks of"
    if found[0].in_baseline is None:
        return f"{told}."
    new = sum(each.in_baseline is False for each in found)
    return f"{told}; {new:,} of them are not in the baseline."


def judged_only(found: Sequence[JudgedOnly]) -> tuple[list[JudgedOnly], int]:
    """The definitions whose values differ, and how many do not."""
    differ = [each for each in found if (each.value, each.value_before) != (each.judged_only, each.judged_only_before)]
    return differ, len(found) - len(differ)
