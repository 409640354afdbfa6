"""Each fault, worked by hand, and beside it what is nearly one and is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adapters.schema import Chunk, JudgeCard, Question, Ranked, Record, Score, Span, Verdict
from runner.diagnosis.rules import Telling
from tests.diagnosis.made import (
    ANSWERS,
    BUDGET,
    DUPLICATE,
    NEW,
    OLD,
    REJECTED,
    dropped,
    found,
    others,
    question,
    ranking,
    record,
    score,
    whole,
)

WRONG = "Soup is served."
"""Shares no word with `After 45 months.`: labels/answer_recall is 0 of 3."""
RIGHT = "It is renewed after 45 months."
"""after, 45 and months of the three words of the reference: labels/answer_recall 3/3."""


def test_a_right_answer_from_the_first_chunk_has_no_fault() -> None:
    assert found(question(), record()) == {}


# missing content


@pytest.mark.parametrize(("end", "missing"), [(18, True), (19, False)])
def test_missing_content_is_a_passage_that_no_chunk_holds(end: int, missing: bool) -> None:
    # The passage has 37 characters; half of it is 18.5, so that 18 do not hold it and 19 do.
    assert len(NEW) == 37
    pieces = (Chunk("new", 0, end, NEW[:end]), Chunk("new", end, end + 1, NEW[end : end + 1]))
    did = record(others(2), labelled=pieces, retrieved=(), answer=WRONG)
    told = found(question(), did)
    assert ("missing content" in told, "missed top ranked" in told) == (missing, not missing)
    if missing:
        assert "no chunk holds 50% of new[0:37]: the most that one has is 18 of its 37" in told["missing content"]


def test_missing_content_is_an_answerable_question_with_nothing_relevant() -> None:
    told = found(question(relevant=()), record(answer=WRONG))
    assert told["missing content"] == "the question is answerable, and its labels are empty"
    rejected = found(question(relevant=(REJECTED,)), record(answer=WRONG))
    assert "1 rejected passage and no relevant one" in rejected["missing content"]
    assert "missing content" not in found(question(relevant=()), record(answer=RIGHT))  # it did not need them
    assert "missing content" not in found(question(relevant=None), record(answer=WRONG))
    assert found(question(relevant=(), answerable=False), record(answer=None, refused=True)) == {}


# missed top ranked


def test_missed_says_where_the_chunk_was() -> None:
    did = record(others(3), retrieved=ranking([*others(4), "new"]), answer=WRONG)
    assert found(question(), did) == {
        "missed top ranked": "new[0:37]: the first is in new[0:37], at rank 5 of 5 retrieved; 3 were passed on"
    }
    did = record(others(3), retrieved=ranking(["new", *others(4)]), answer=WRONG)
    assert (
        "at rank 1 of 5 retrieved; the reranker left it out of its first 3"
        in found(question(), did)["missed top ranked"]
    )
    did = record(others(3), answer=WRONG)
    assert found(question(), did)["missed top ranked"] == "not among the 3 retrieved: new[0:37]"
    did = record((), asked_k=3, answer=WRONG)
    assert found(question(), did)["missed top ranked"] == "nothing was retrieved, so neither was new[0:37]"


def test_a_passage_in_the_last_place_is_not_missed() -> None:
    assert "missed top ranked" not in found(question(), record([*others(2), "new"], answer=WRONG))


def test_without_a_sufficient_passage_all_are_needed() -> None:
    both = (Span("new", 0, len(NEW), 1), Span("old", 0, len(OLD), 1))
    one = record(["new", "other0"], answer=WRONG)
    assert "1 of 2 passages found" in found(question(relevant=both), one)["missed top ranked"]
    assert "missed top ranked" not in found(question(relevant=both), one, found_from=0.5)
    sufficient = (ANSWERS, Span("old", 0, len(OLD), 1))
    assert "missed top ranked" not in found(question(relevant=sufficient), one)
    helper_only = record(["old", "other0"], answer=WRONG)
    assert "missed top ranked" in found(question(relevant=sufficient), helper_only)


def test_a_right_answer_was_not_hurt_by_what_was_missed() -> None:
    assert found(question(), record(others(3), answer=RIGHT)) == {}


# stale source


def test_stale_is_an_answer_with_the_words_that_only_the_rejected_passage_has() -> None:
    # OLD's own words: badges, are, swapped, every, 90, weeks, by, porter. `the` is an article and not counted.
    did = record(["old", "new"], answer="Badges are swapped every now and then.")
    assert "4 of the 8 words that only rejected old[0:48] has" in found(question(), did)["stale source"]
    three = record(["old", "new"], answer="Badges are swapped, as you know.")
    assert "stale source" not in found(question(), three)


def test_an_answer_that_says_both_rules_is_stale_unless_a_judge_calls_it_right() -> None:
    both = record(["old", "new"], answer=f"{RIGHT} {OLD}")
    assert list(found(question(), both)) == ["stale source"]
    assert found(question(), both, score("rubric/correctness", 1.0)) == {}


def test_stale_is_an_answer_with_the_figures_of_the_rejected_passage() -> None:
    did = record(["old", "new"], answer="You get one after 90.")
    assert found(question(), did)["stale source"].endswith("has what only rejected old[0:48] has: 90")
    right = record(["old", "new"], answer="After 45 months, at room 90.")  # recall 3/3: right
    assert "stale source" not in found(question(), right)


def test_words_that_the_right_passage_has_too_are_nobodys_own() -> None:
    twin = question(relevant=(ANSWERS, Span("copy", 0, len(NEW), 0)))
    did = record(["new"], labelled=(whole("new"), Chunk("copy", 0, len(NEW), NEW)), answer="The badge is renewed.")
    assert "stale source" not in found(twin, did)


def test_without_an_answer_the_place_of_the_rejected_passage_tells() -> None:
    unanswered = {"answer": None, "refused": None}
    before = record(["old", "new"], **unanswered)
    assert found(question(), before)["stale source"] == (
        "rejected old[0:48] is number 1 of the context, before new[0:37] at 2"
    )
    assert "stale source" not in found(question(), record(["new", "old"], **unanswered))
    alone = record(["other0", "old"], **unanswered)
    assert "number 2 of the context, and nothing that answers is in it" in found(question(), alone)["stale source"]


# buried


def test_buried_is_a_first_passage_at_rank_four() -> None:
    told = found(question(), record([*others(3), "new"], answer=WRONG))
    assert told["buried"] == "the first chunk that holds a passage, new[0:37], has rank 4 of 4 (buried from 4)"
    assert "buried" not in found(question(), record([*others(2), "new"], answer=WRONG))
    assert "buried" in found(question(), record([*others(2), "new"], answer=WRONG), buried_from=3)


# not in context


def test_not_in_context_is_a_chunk_that_was_dropped() -> None:
    did = record(["other0", "new"], context=(whole("other0"),), dropped=(dropped("new", BUDGET),), answer=WRONG)
    assert found(question(), did) == {"not in context": "new[0:37] was ranked 2 and was dropped: budget"}


def test_a_duplicate_whose_twin_is_in_the_context_is_no_fault() -> None:
    twin = Chunk("copy", 0, len(NEW), NEW.replace(" ", "\n"))
    passed_on = (Ranked(twin, 1.0, 1), Ranked(whole("new"), 0.9, 2))
    did = record(
        reranked=passed_on, retrieved=passed_on, context=(twin,), dropped=(dropped("new", DUPLICATE),), answer=WRONG
    )
    assert list(found(question(), did)) == ["not extracted"]
    lone = replace(did, context=(whole("other0"),))
    assert "was ranked 2 and was dropped: duplicate" in found(question(), lone)["not in context"]


# declining


def test_should_have_declined() -> None:
    asked = question(answerable=False, relevant=(REJECTED,), reference_answer=None)
    told = found(asked, record(["old"], answer="Every 90 weeks."))
    assert list(told) == ["should have declined"]
    assert "answered “Every 90 weeks.”: labels/refusal_rate 0 (no below 0.5)" in told["should have declined"]
    assert found(asked, record(["old"], answer="I don't know.", refused=True)) == {}
    assert found(asked, record(["old"], refused=None)) == {}  # nobody knows
    judged = score("rubric/refusal_rate", 0.0)
    assert "rubric/refusal_rate 0" in found(asked, record(["old"], refused=None), judged)["should have declined"]


def test_declined_wrongly_needs_the_passage_in_the_context() -> None:
    declined = {"answer": "I don't know.", "refused": True}
    told = found(question(), record(**declined))
    assert list(told) == ["declined wrongly"]
    assert told["declined wrongly"].startswith("the context holds new[0:37], and the system declined")
    assert list(found(question(), record(others(2), **declined))) == ["missed top ranked"]
    assert list(found(question(relevant=None), record(**declined))) == ["declined wrongly"]


# the form


def test_wrong_format() -> None:
    marker = r"\[\d+\]"
    assert list(found(question(), record(), format=marker)) == ["wrong format"]
    assert found(question(), record(answer=f"{RIGHT} [1]"), format=marker) == {}
    assert found(question(), record()) == {}
    assert list(found(question(), record(), cites=True)) == ["wrong format"]
    assert found(question(), record(citations=(0,)), cites=True) == {}
    assert list(found(question(), record(answer="I don't know.", refused=True), format=marker)) == ["declined wrongly"]


# the answer


def test_not_extracted_is_a_wrong_answer_to_the_right_context() -> None:
    assert found(question(), record(answer=WRONG)) == {
        "not extracted": "the context holds new[0:37], and the answer is wrong: labels/answer_recall 0 (no below 0.1)"
    }
    # One of five words: 0.2 is not below 0.1, and unknown is no fault.
    five = question(reference_answer="Renewal comes after fortyfive months.")
    assert found(five, record(answer="In months.")) == {}
    assert list(found(question(), record(others(2), answer=WRONG))) == ["missed top ranked"]


def test_a_judge_comes_before_words_and_the_first_that_knows_decides() -> None:
    assert found(question(), record(answer=WRONG), score("rubric/correctness", 1.0)) == {}
    told = found(question(), record(answer=RIGHT), score("rubric/correctness", 0.0))
    assert "rubric/correctness 0 (no below 0.5)" in told["not extracted"]
    assert found(question(), record(answer=WRONG), score("rubric/correctness", 0.5)) == {}  # partly right
    assert list(found(question(), record(answer=WRONG), score("rubric/correctness", None))) == ["not extracted"]
    one_sided = [
        Telling(definition="rubric/correctness", yes_from=1.0),
        Telling(definition="ragas/answer_accuracy", no_below=0.5),
    ]
    both = score("rubric/correctness", 0.0) | score("ragas/answer_accuracy", 0.25)
    assert "ragas/answer_accuracy 0.25" in found(question(), record(), both, right=one_sided)["not extracted"]


def test_a_distrusted_judge_is_passed_over() -> None:
    weak, other = JudgeCard("lexical", "rules"), JudgeCard("openai", "large")

    def by(judge: JudgeCard) -> dict[str, Score]:
        return {key: replace(each, judge=judge) for key, each in score("rubric/correctness", 0.0).items()}

    assert found(question(), record(answer=RIGHT), by(weak)) == {}
    assert list(found(question(), record(answer=RIGHT), by(other))) == ["not extracted"]
    assert list(found(question(), record(answer=RIGHT), by(weak), distrusted=[])) == ["not extracted"]


def test_unsupported_claims_are_named_with_their_verdicts() -> None:
    verdicts = (
        Verdict("It is renewed after 45 months.", "1", "supported"),
        Verdict("The porter does it.", "0", "not_supported"),
        Verdict("It is blue.", "2"),
    )
    told = found(question(), record(), score("trulens/groundedness", 0.5, *verdicts))
    assert told == {
        "unsupported claim": "trulens/groundedness 0.5 (no below 0.8): “The porter does it.” (not_supported), "
        "“It is blue.” (2)"
    }
    assert found(question(), record(), score("trulens/groundedness", 0.8, *verdicts)) == {}
    first = score("ragas/faithfulness", 1.0) | score("trulens/groundedness", 0.0)
    assert found(question(), record(), first) == {}


def test_incomplete_by_a_judge_names_what_is_left_out() -> None:
    points = (Verdict("45 months", "3", "supported"), Verdict("by its owner", "0", "not_supported"))
    told = found(question(), record(), score("trulens/comprehensiveness", 0.5, *points))
    assert told == {
        "incomplete": "trulens/comprehensiveness 0.5 (no below 0.8); left out: “by its owner” (not_supported)"
    }
    assert found(question(), record(), score("trulens/comprehensiveness", 0.2, *points)) == {}  # below partly_from
    wrong = score("trulens/comprehensiveness", 0.5) | score("rubric/correctness", 0.0)
    assert list(found(question(), record(), wrong)) == ["not extracted"]
    assert found(question(), record(others(2), answer=WRONG), score("trulens/comprehensiveness", 0.5)).keys() == {
        "missed top ranked"
    }


def test_incomplete_by_words_needs_one_claim_said_and_one_missed() -> None:
    # Claim one: renewed, after, 45, months: all are in the answer. Claim two: owner, brings, it: 1/3 is below 0.35.
    asked = question(reference_claims=("Renewed after 45 months.", "The owner brings it."))
    told = found(asked, record(answer=RIGHT))
    assert "1 of 2 reference claims" in told["incomplete"]
    assert "of “The owner brings it.”" in told["incomplete"]
    assert found(asked, record(answer=f"{RIGHT} The owner does.")) == {}  # 2/3
    assert found(asked, record(answer=RIGHT), score("rubric/correctness", 1.0)) == {}
    assert list(found(asked, record(answer=WRONG))) == ["not extracted"]


def test_wrong_specificity_is_right_and_far_too_long() -> None:
    # The reference has 16 characters: five times as many are 80; the answer must also reach long_from.
    told = found(question(), record(answer=RIGHT + " Soup." * 10), long_from=81)
    assert list(told) == ["wrong specificity"]
    assert "in 90 characters where the reference has 16" in told["wrong specificity"]
    assert found(question(), record(answer=RIGHT + " Soup." * 10)) == {}
    eighty = record(answer=RIGHT + " Soup." * 8 + " ?")
    assert len(eighty.answer or "") == 80
    assert found(question(), eighty, long_from=10) == {}
    assert list(found(question(), record(answer=WRONG * 9), long_from=10)) == ["not extracted"]


def test_wrong_specificity_is_on_the_topic_without_a_figure() -> None:
    general = record(answer="It is renewed from time to time.")
    on_topic = score("rubric/relevance", 0.75) | score("rubric/correctness", 0.0)
    told = found(question(), general, on_topic)
    assert list(told) == ["wrong specificity"]
    assert told["wrong specificity"].endswith("without any figure or code; the reference has 45")
    assert list(found(question(), record(answer="Renewed every 30 years."), on_topic)) == ["not extracted"]
    off = score("rubric/relevance", 0.5) | score("rubric/correctness", 0.0)
    assert list(found(question(), general, off)) == ["not extracted"]
    by_words = record(answer="Renewed from time to time.")  # after, 45, months: none of three
    assert list(found(question(), by_words, score("rubric/relevance", 0.75))) == ["not extracted"]
    assert list(found(question(reference_answer="After four years."), general, on_topic)) == ["not extracted"]


# what is not known


def test_a_question_without_an_answer_has_only_faults_of_the_stages_before_it() -> None:
    failed = {"answer": None, "refused": None, "error": "the endpoint timed out"}
    assert found(question(), record(**failed)) == {}
    assert list(found(question(), record(others(2), **failed))) == ["missed top ranked"]
    nothing = record((), asked_k=5, context=(), labelled=(), prompt=None, **failed)
    assert found(question(), nothing) == {}  # the error may have come before retrieval


def test_an_answer_from_elsewhere_is_looked_at_as_far_as_it_goes() -> None:
    external = Record("q1", answer=WRONG)
    assert found(question(), external) == {}
    assert list(found(question(), external, score("ragas/faithfulness", 0.1))) == ["unsupported claim"]
    with_context = Record("q1", answer=WRONG, context=(whole("new"),))
    assert list(found(question(), with_context)) == ["not extracted"]
    assert found(question(relevant=None), with_context) == {}


def test_a_record_without_labelled_says_nothing_of_missing_content() -> None:
    assert found(question(), record(others(2), labelled=(), answer=WRONG)) == {}
    far = record(others(2), labelled=(), retrieved=ranking([*others(2), "new"]), answer=WRONG)
    assert list(found(question(), far)) == ["missed top ranked"]


def test_a_chunk_dropped_without_a_reason_did_not_reach_the_prompt() -> None:
    did = record(["new", "other0"], context=(whole("other0"),), dropped=(), answer=WRONG)
    assert found(question(), did)["not in context"] == "new[0:37] was ranked 1 and did not reach the prompt"


def test_questions_are_told_apart_by_what_people_know_of_them_alone() -> None:
    bare = Question("q1", "When?")
    assert found(bare, record(answer=WRONG)) == {}
