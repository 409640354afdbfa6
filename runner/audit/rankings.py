"""Rankings under every label-based definition that goes by one name, beside what the libraries compute by that name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean

from adapters.base import Scorer, Unavailable, scorer
from adapters.isolation import installed_version
from adapters.labels.conventions import FAMILIES, Listing, Usage, Value, listing, usages
from adapters.labels.ranking import NDCG
from adapters.schema import Chunk, Question, Ranked, Record, Span
from runner.audit.findings import Convention, Family, Reading

AGREES = 1e-9
"""How far a library may be from the definition that it is said to equal."""
MOST = 10_000
"""Relevant ones of a drawn ranking."""
GAINS = {"exponential": "2^g - 1", "linear": "g", "binary": "1"}
DISCOUNTS = {"log2": "log2(r + 1)", "2002": "max(1, log2 r)"}
IDEALS = {"judged": "all that is relevant", "retrieved": "what was retrieved"}

Values = Sequence[float | None]
"""One a ranking; None where a definition does not apply."""


def families(
    questions: Sequence[Question], records: Sequence[Record], *, k: int | None = None, call_libraries: bool = True
) -> tuple[Family, ...]:
    """Every family of definitions over the rankings (`Record.reranked`) that labels can judge; empty where they can
    judge none.

    questions and records run in parallel. k: places judged, None = all. call_libraries: ask those that are installed,
    which imports them (Ragas, DeepEval, TruLens and scikit-learn: tens of seconds); otherwise, and where they are not
    installed, there is what their code and documentation say. A library that is asked and does not give on these
    rankings what the definition gives that it is said to equal has no `same_as`, and its convention says how far off
    it is.
    """
    pairs = list(zip(questions, records, strict=True))
    measures = {name: [_measure(member, k) for member in members] for name, members in FAMILIES.items()}
    every = {measure.key: measure for members in measures.values() for measure in members}
    # By record and not by definition, because all of them share one judgement of a record while it is remembered.
    rows = [{key: measure.score(*pair).value for key, measure in every.items()} for pair in pairs]
    judged = [place for place, row in enumerate(rows) if any(value is not None for value in row.values())]
    if not judged:
        return ()
    listings = [listing(*pairs[place]) for place in judged]
    values = {key: [rows[place][key] for place in judged] for key in every}
    depth = max(1, *(len(listing.retrieved) for listing in listings))
    asked = usages(k, depth)
    return tuple(
        Family(
            name=name,
            readings=tuple(_reading(measure, values[measure.key]) for measure in members),
            conventions=tuple(
                _convention(usage, listings, {measure.key: values[measure.key] for measure in members}, call_libraries)
                for usage in asked
                if usage.family == name
            ),
        )
        for name, members in measures.items()
    )


def _measure(member: Mapping[str, object], k: int | None) -> Scorer:
    measure = scorer({**member, "k": k})
    assert isinstance(measure, Scorer)
    return measure


def _reading(measure: Scorer, values: Values) -> Reading:
    found = [value for value in values if value is not None]
    formula = measure.formula
    if isinstance(measure, NDCG):
        formula = (
            f"sum of {GAINS[measure.gain]} / {DISCOUNTS[measure.discount]}, over that of the best order of "
            f"{IDEALS[measure.ideal]}"
        )
    return Reading(measure.key, formula, fmean(found) if found else None, len(found))


def _convention(usage: Usage, listings: Sequence[Listing], readings: Mapping[str, Values], call: bool) -> Convention:
    """What a library gives on the rankings that its family can judge, and whether that is what it is said to be."""
    places = [place for place in range(len(listings)) if any(values[place] is not None for values in readings.values())]
    given: dict[int, Value] = {}
    source = usage.source
    if call and usage.values and places:
        try:
            given = dict(zip(places, usage.values([listings[place] for place in places]), strict=True))
        except (ImportError, Unavailable):
            source += "; not installed here"
        except Exception as error:
            source += f"; calling it raised {type(error).__name__}: {error}"
    numbers = {place: value for place, value in given.items() if not isinstance(value, str)}
    why = Counter(value for value in given.values() if isinstance(value, str))
    if why:
        source += f"; no value for {why.total()} of {len(places)} rankings ({why.most_common(1)[0][0]})"
    convention, same_as = usage.convention, usage.same_as
    if same_as is not None:
        beside = {place: readings[same_as][place] for place in numbers}
        off = [abs(numbers[place] - value) for place, value in beside.items() if value is not None]
        apart = [difference for difference in off if difference > AGREES]
        if apart:
            convention += f"; here {len(apart)} of {len(off)} rankings differ from {same_as}, by up to {max(apart):.3g}"
            same_as = None
    return Convention(
        library=usage.library,
        version=installed_version(usage.distribution) if numbers else None,
        call=usage.call,
        convention=convention,
        same_as=same_as,
        mean=fmean(numbers.values()) if numbers else None,
        source=source,
        n=len(numbers),
    )


def ranking(text: str, relevant: int | None = None) -> tuple[Question, Record]:
    """A ranking drawn with one character a place, best first: `.` judged and not relevant, `R` or a digit relevant with
    that grade (R is 1, 0 is `.`), `?` judged by nobody. relevant: how many there are in all, None = as many as
    are shown; those that were not retrieved have grade 1.

    Raises ValueError that says what is wrong with either.
    """
    for place, mark in enumerate(text, 1):
        if mark not in ".?R0123456789":
            raise ValueError(
                f"the ranking {text!r} has {mark!r} at place {place}; a place is '.' (not relevant), 'R' or a digit "
                "(relevant, with that grade) or '?' (not judged)"
            )
    grades = {
        f"{rank}": 1 if mark == "R" else int(mark) for rank, mark in enumerate(text.replace(".", "0"), 1) if mark != "?"
    }
    found = sum(grade > 0 for grade in grades.values())
    if relevant is None:
        relevant = found
    if relevant > MOST:
        raise ValueError(f"{relevant} relevant ones are more than can be shown; give at most {MOST}")
    if relevant < max(1, found):
        raise ValueError(
            f"the ranking {text!r} shows {found} relevant of {relevant} in all; give as many as there are, at least "
            f"{max(1, found)}"
        )
    grades |= {f"missed {number}": 1 for number in range(1, relevant - found + 1)}
    chunks = {name: Chunk(name, 0, 1, "x") for name in [*map(str, range(1, len(text) + 1)), *grades]}
    places = tuple(Ranked(chunks[f"{rank}"], float(-rank), rank) for rank in range(1, len(text) + 1))
    question = Question(
        id="ranking", text=text, relevant=tuple(Span(name, 0, 1, grade) for name, grade in grades.items())
    )
    return question, Record(
        question_id="ranking",
        asked_k=len(text),
        retrieved=places,
        reranked=places,
        labelled=tuple(chunks[name] for name in grades),
    )
