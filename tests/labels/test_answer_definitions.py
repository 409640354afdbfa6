from __future__ import annotations

import pytest
from rankings import score, value

from adapters.schema import Question, Record

ANSWER_DEFINITIONS = ("answer_f1", "answer_precision", "answer_recall", "answer_exact_match")


def asked(reference: str | None, answer: str | None, **fields):
    answerable = fields.pop("answerable", True)
    return Question("q", "?", reference_answer=reference, answerable=answerable), Record("q", answer=answer, **fields)


@pytest.mark.parametrize(
    ("reference", "answer", "f1", "precision", "recall", "exact"),
    [
        # "the" and "." go: thirty six months | thirty six months.
        ("thirty six months", "The thirty six months.", 1.0, 1.0, 1.0, 1.0),
        # it lasts 36 months | 36 months: 2 shared of 4 and 2.
        ("36 months", "It lasts 36 months", 4 / 6, 2 / 4, 2 / 2, 0.0),
        # A word counts as often as both have it: 1 shared of 3 and 1.
        ("no", "no no no", 2 / 4, 1 / 3, 1.0, 0.0),
        # 2 shared of 3 and 2.
        ("no no", "no no maybe", 4 / 5, 2 / 3, 1.0, 0.0),
        # Punctuation goes before articles are looked for, so "a-b" is one token.
        ("a-b", "ab", 1.0, 1.0, 1.0, 1.0),
        ("months thirty", "thirty months", 1.0, 1.0, 1.0, 0.0),
        ("yes", "no", 0.0, 0.0, 0.0, 0.0),
    ],
)
def test_token_overlap(reference, answer, f1, precision, recall, exact):
    pair = asked(reference, answer)
    got = [value(definition, *pair) for definition in ANSWER_DEFINITIONS]
    assert got == pytest.approx([f1, precision, recall, exact])


@pytest.mark.parametrize("definition", ANSWER_DEFINITIONS)
def test_what_is_not_compared_and_what_is_zero(definition):
    for pair, words in [
        (asked(None, "yes"), "no reference answer"),
        (asked("The.", "yes"), "no token in the reference answer"),
        (asked("yes", "yes", answerable=False), "unanswerable"),
    ]:
        result = score(definition, *pair)
        assert result.status == "not_applicable"
        assert words in result.reason
    for pair, words in [
        (asked("yes", "yes, but I decline", refused=True), "declined"),
        (asked("yes", None, error="timed out"), "no answer: timed out"),
        (asked("yes", " . "), "no answer"),
    ]:
        result = score(definition, *pair)
        assert (result.value, result.status) == (0.0, "computed")
        assert words in result.reason


def test_each_rate_looks_at_its_own_questions():
    for refused, expected in ((True, 1.0), (False, 0.0)):
        unanswerable = asked(None, None, answerable=False, refused=refused)
        answerable = asked(None, None, refused=refused)
        assert value("refusal_rate", *unanswerable) == expected
        assert value("false_refusal_rate", *answerable) == expected
        assert score("refusal_rate", *answerable).status == "not_applicable"
        assert score("false_refusal_rate", *unanswerable).status == "not_applicable"
    unknown = score("refusal_rate", *asked(None, None, answerable=False, error="timed out"))
    assert unknown.status == "not_applicable"
    assert "refused" in unknown.reason
    assert "timed out" in unknown.reason
