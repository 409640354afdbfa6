"""A whole run, alone and beside its baseline; and what holds of any question."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from adapters.schema import Chunk, Question, Ranked, Record, Score, Span
from runner.diagnosis.diagnose import diagnose, faults_by_question, faults_of
from runner.diagnosis.findings import counted
from runner.diagnosis.rules import FAULTS, default_rules
from runner.results import StoredRun
from tests.compare.runs import run
from tests.diagnosis.made import others, question, record

RULES = default_rules()
WRONG = "Soup is served."


def made(records: dict[str, Record], questions: dict[str, Question] | None = None, name: str = "run") -> StoredRun:
    """A run of these records; every question is that of tests.diagnosis.made, where none is given."""
    return run(
        {"labels/success": dict.fromkeys(records, 1.0)},
        questions=[replace((questions or {}).get(id) or question(), id=id) for id in records],
        records=[replace(each, question_id=id) for id, each in records.items()],
        name=name,
    )


HERE = {"a": record(answer=WRONG), "b": record(others(2), answer=WRONG), "c": record(), "d": record(answer=WRONG)}
BEFORE = {"a": record(answer=WRONG), "b": record(), "c": record(others(2), answer=WRONG), "d": record(others(2))}


def test_questions_count_with_their_first_fault() -> None:
    found = diagnose(made(HERE), RULES)
    assert [tuple(fault.name for fault in each.faults) for each in found.questions] == [
        ("not extracted",),
        ("missed top ranked",),
        (),
        ("not extracted",),
    ]
    assert list(found.counts.items()) == [("missed top ranked", 1), ("not extracted", 2)]
    assert found.before is None
    assert (found.appeared, found.gone) == ({}, {})
    assert [each.right for each in found.questions] == [False, False, True, False]
    assert found.questions[2].why == "labels/answer_recall 1 (yes from 0.6)"


def test_beside_a_baseline_the_questions_that_changed_are_named() -> None:
    found = diagnose(made(HERE), RULES, made(BEFORE, name="base"))
    assert found.before == {"missed top ranked": 1, "not extracted": 1}
    assert found.appeared == {"missed top ranked": ("b",), "not extracted": ("d",)}
    assert found.gone == {"missed top ranked": ("c",)}  # d was right although its passage was missed


def test_a_question_that_only_one_run_has_neither_appears_nor_goes() -> None:
    found = diagnose(made({"x": HERE["a"]}), RULES, made({"y": HERE["a"]}, name="base"))
    assert (found.appeared, found.gone) == ({}, {})


def test_what_could_not_be_looked_for_is_counted_with_what_it_needs() -> None:
    unlabelled = {"a": question(relevant=None)}
    found = diagnose(made({"a": record(answer=WRONG), "b": record()}, unlabelled), RULES)
    assert found.missing["buried"] == (
        "1 of 2 questions: labels: which passages answer the question (Question.relevant)"
    )
    assert found.missing["wrong format"].startswith("2 of 2 questions: diagnosis.format or diagnosis.cites")
    assert found.missing["unsupported claim"].startswith("2 of 2 questions: a value of ragas/faithfulness")
    assert "should have declined" not in found.missing  # both are answerable: there was nothing to look for
    assert set(found.missing).isdisjoint(found.counts)


def test_notes_tell_of_what_is_no_fault() -> None:
    records = {
        "failed": record(others(2), answer=None, refused=None, error="timed out"),
        "lucky": record(others(2)),
        "old": record(),
        "riddle": record(others(1), labelled=(), answer=WRONG),
    }
    questions = {"old": question(valid_until=date(2025, 12, 31))}
    found = diagnose(made(records, questions), RULES)
    told = {note.partition(":")[0]: note for note in found.notes}
    assert "failed; the first: timed out" in told["without an answer"]
    assert "lucky" in told["right although no passage that answers was found"]
    assert "old" in told["the reference answer held no longer when the run was made (valid_until)"]
    assert told["wrong without a pattern that would say why"].endswith(" riddle")
    assert [each.right for each in found.questions] == [False, True, True, False]
    assert found.questions[0].why == "no answer: timed out"


def test_a_question_without_a_record_is_no_question_without_a_fault() -> None:
    lost = made(HERE)
    lost = replace(lost, records={id: each for id, each in lost.records.items() if id != "c"})
    found = diagnose(lost, RULES)
    assert found.questions[2].right is False
    assert "the run has no record of this question" in found.questions[2].why


def test_another_test_set_and_other_definitions_are_told() -> None:
    base = made(BEFORE, name="base")
    assert not [note for note in diagnose(made(HERE), RULES, base).notes if "baseline" in note]
    other = replace(base, summary={**base.summary, "dataset": {"checksum": "d" * 64}, "definitions": {}}, scores={})
    notes = diagnose(made(HERE), RULES, other).notes
    assert any("another test set" in note for note in notes)
    assert any("other definitions (labels/success" in note for note in notes)


def test_a_run_and_its_questions_one_by_one_agree() -> None:
    stored = made(HERE)
    scores = [score for by_id in stored.scores.values() for score in by_id.values()]
    found = faults_by_question(stored.questions.values(), stored.records.values(), scores, RULES)
    told = diagnose(stored, RULES)
    assert found == {each.question_id: each.faults for each in told.questions if each.faults}
    assert counted(faults[0].name for faults in found.values()) == told.counts


# What holds of any question.

TEXT = "abcdefghij" * 2
SPANS = st.builds(
    lambda doc, start, length, grade: Span(doc, start, start + length, grade),
    st.sampled_from(["a", "b"]),
    st.integers(0, 10),
    st.integers(1, 10),
    st.integers(0, 3),
)
CHUNKS = st.builds(
    lambda doc, start, length: Chunk(doc, start, start + length, TEXT[start : start + length]),
    st.sampled_from(["a", "b", "c"]),
    st.integers(0, 10),
    st.integers(1, 10),
)
TEXTS = st.none() | st.sampled_from(["", "Ada.", "After 45 months.", "abcdefghij", "I don't know."])


@st.composite
def looked_at(draw: st.DrawFn) -> tuple[Question, Record, dict[str, Score]]:
    asked = Question(
        "q",
        "When?",
        draw(TEXTS),
        draw(st.none() | st.just(("After 45 months.", "Ada."))),
        draw(st.none() | st.lists(SPANS, max_size=3, unique=True).map(tuple)),
        draw(st.booleans()),
    )
    chunks = draw(st.lists(CHUNKS, max_size=5, unique=True))
    ranked = tuple(Ranked(chunk, 1.0, rank) for rank, chunk in enumerate(chunks, 1))
    passed_on = ranked[: draw(st.integers(0, 5))]
    did = Record(
        "q",
        draw(st.integers(0, 5)),
        ranked,
        passed_on,
        tuple(each.chunk for each in passed_on[: draw(st.integers(0, 5))]),
        (),
        tuple(draw(st.lists(CHUNKS, max_size=3))),
        draw(st.none() | st.just("prompt")),
        draw(TEXTS),
        refused=draw(st.none() | st.booleans()),
        error=draw(st.none() | st.just("timed out")),
    )
    keys = ("rubric/correctness", "ragas/faithfulness", "trulens/comprehensiveness", "rubric/relevance")
    scores = {
        key: Score("q", key, "f" * 16, value)
        for key in keys
        if (value := draw(st.none() | st.sampled_from([0.0, 0.3, 0.5, 0.9, 1.0]))) is not None
    }
    return asked, did, scores


STAGES = {"missing content", "missed top ranked", "stale source", "buried", "not in context"}
CHAIN = {"missing content", "missed top ranked", "not in context", "not extracted"}
OF_ANSWERS = set(FAULTS) - STAGES


@given(looked_at())
def test_a_question_has_at_most_the_faults_that_its_data_can_show(
    made_up: tuple[Question, Record, dict[str, Score]],
) -> None:
    asked, did, scores = made_up
    names = [fault.name for fault in faults_of(asked, did, scores, RULES)]
    assert names == sorted(set(names), key=FAULTS.index)
    assert len(CHAIN.intersection(names)) <= 1
    if asked.relevant is None or not asked.answerable:
        assert STAGES.isdisjoint(names)
        assert asked.answerable is False or "not extracted" not in names
    if did.error or (did.answer is None and did.refused is None):
        assert OF_ANSWERS.isdisjoint(names)
    if did.refused:
        assert OF_ANSWERS.intersection(names) <= {"declined wrongly"}
    if "ragas/faithfulness" not in scores:
        assert "unsupported claim" not in names
    assert "wrong format" not in names  # the rules ask for no format
    if not any(span.grade == 0 for span in asked.relevant or ()):
        assert "stale source" not in names
    assert not {"should have declined", "declined wrongly"} <= set(names)
    if scores.get("rubric/correctness") == Score("q", "rubric/correctness", "f" * 16, 1.0) and not did.error:
        assert did.refused or did.answer is None or "missed top ranked" not in names
