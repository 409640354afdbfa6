"""The rules of the lexical judge, and how far they agree with people."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from adapters import tasks as t
from adapters.judges.lexical import AGREEMENT, LexicalJudge, claims
from adapters.judges.lexical_rules import held, passage
from adapters.judges.vectors import WARNING
from tests.adapters.calls import CONTEXT, TASKS, found, words
from tests.adapters.router import PASSAGES, QUESTION, record
from tests.adapters.scripted import measure

JUDGE = LexicalJudge()
SHARED = Path(__file__).parents[2].parent / "shared" / "data" / "judge"


@pytest.mark.parametrize(
    ("claim", "text", "expected"),
    [
        # numbers and units
        (
            "A new unit is sent in 2 business days.",
            "Once approved, a new unit is sent in 5 business days.",
            "contradicted",
        ),
        (
            "A new unit is sent in 5 business days.",
            "Once approved, a new unit is sent in 5 business days.",
            "supported",
        ),
        ("A new unit is sent in 5 working days.", "Once approved, a new unit is sent in 5 business days.", "supported"),
        ("A new unit is sent in five business days.", "A new unit is sent in 5 business days.", "supported"),
        ("A new unit is sent in 5 days.", "A new unit is sent in 5 business days.", "contradicted"),
        ("Hardware is covered for 2 years.", "The hardware is covered for 24 months.", "supported"),
        ("Hardware is covered for 3 years.", "The hardware is covered for 24 months.", "contradicted"),
        ("The bridge is 5 km long.", "The bridge is 5000 m long.", "supported"),
        ("The bridge is 5 km long.", "The bridge is 5 m long.", "contradicted"),
        ("The bridge is 5km long.", "The bridge is 5,000 metres long.", "supported"),
        ("The parcel weighs 2 kg.", "The parcel weighs 2,000 grams.", "supported"),
        ("The share rose to 12%.", "The share rose to twelve percent.", "supported"),
        ("The share rose to 12%.", "The share rose to 13 percent.", "contradicted"),
        ("The plan costs $3.5 million.", "The plan costs 3,500,000 dollars.", "supported"),
        ("It was founded in 1990 by monks.", "Monks founded it in 1991.", "contradicted"),
        ("The box holds 4 lamps.", "The box holds 6 lamps.", "contradicted"),
        ("The box holds 4 lamps.", "The box holds lamps.", "absent"),
        ("The freezer runs at -18 degrees.", "The freezer runs at 18 degrees.", "contradicted"),
        ("The freezer runs at -18 degrees.", "The freezer runs at −18 degrees.", "supported"),
        ("It ships in 5-7 days.", "It ships in 5 to 7 days.", "supported"),
        ("Shipping costs nothing.", "Shipping costs 5 dollars.", "contradicted"),
        ("Shipping costs nothing.", "Shipping is free of charge.", "supported"),
        ("The fee is 1000 euros.", "The fee is 1000 dollars.", "contradicted"),
        ("The fee is 1000 euros.", "The fee is €1,000.", "supported"),
        ("Version 1.10 fixes it.", "Version 1.1 fixes it.", "contradicted"),
        ("Version 2.0 fixes it.", "Version 2 fixes it.", "supported"),
        ("The drive holds 1 TB.", "The drive holds 1000 GB.", "supported"),
        ("The drive holds 1 TB.", "The drive holds 100 GB.", "contradicted"),
        ("The meeting is at 10:30.", "The meeting is at 10:45.", "contradicted"),
        ("The meeting is at 10:30.", "The meeting is at 10:30.", "supported"),
        ("Opening hours are 9 to 17.", "Opening hours are 9 to 18.", "contradicted"),
        ("Opening hours are 9 to 17.", "Opening hours are 9 until 17.", "supported"),
        ("The meeting is on March 3.", "The meeting is on March 4.", "contradicted"),
        ("The meeting is on March 3.", "The meeting is on March 3.", "supported"),
        ("The ratio is 3/4.", "The ratio is 1/4.", "contradicted"),
        ("The ratio is 3/4.", "The ratio is 0.75.", "supported"),
        ("The share is 10%.", "The share is 0.1.", "supported"),
        ("The share is 10%.", "The share is 0.2.", "absent"),
        # negation
        ("Damage by lightning is covered.", "Damage by lightning is not covered.", "contradicted"),
        ("Damage by lightning isn't covered.", "Damage by lightning is not covered.", "supported"),
        ("Damage by lightning is not covered.", "Damage by lightning is covered.", "contradicted"),
        ("The plan does not cover damage.", "Damage is not covered by the plan.", "supported"),
        # names and model numbers
        ("The library is in Paris.", "The library is in London.", "contradicted"),
        ("The library is in Paris.", "The library is in Paris.", "supported"),
        ("The library is in Paris.", "The library is old.", "absent"),
        ("The R1 is covered for 24 months.", CONTEXT, "contradicted"),
        ("The R2 is covered for 24 months.", CONTEXT, "supported"),
        ("The R3 is covered for 24 months.", CONTEXT, "absent"),
        ("Paris hosts the office.", "London hosts the office.", "absent"),
        ("Paris hosts the office.", "Paris hosts the office.", "supported"),
        ("Paris hosts the office.", "London hosts the office. All of London knows it.", "absent"),
        ("Select your plan and click save.", "Choose your plan and click save.", "supported"),
        ("LG makes the panel.", "Samsung makes the panel. All of Samsung knows it.", "contradicted"),
        ("LG makes the panel.", "LG makes the panel. All of Samsung knows it.", "supported"),
        # directions and bounds
        ("Sales rose by 5%.", "Sales fell by 5%.", "contradicted"),
        ("Sales rose by 5%.", "Sales increased by 5%.", "supported"),
        ("The limit is at least 5 users.", "The limit is at most 5 users.", "contradicted"),
        ("The limit is at least 5 users.", "The limit is a minimum of 5 users.", "supported"),
        # words
        ("Shipping is free of charge.", CONTEXT, "absent"),
        ("The receipts are sent back.", "Send the receipt back.", "supported"),
        ("", CONTEXT, "absent"),
        ("It is so.", CONTEXT, "absent"),
        ("Shipping is free.", "", "absent"),
    ],
)
def test_supported_contradicted_or_absent(claim: str, text: str, expected: str) -> None:
    (finding,) = found(JUDGE, t.Support((claim,), text, "answer", "context"))
    unit, word, reason, _ = finding
    assert (unit, word) == (claim, expected), reason
    assert reason


def test_the_reason_names_the_sentence_and_the_rule() -> None:
    assert held("A new unit is sent in 2 business days.", CONTEXT).reason.startswith(
        "it says 2 business days, not 5 business days: “Once it is approved, a new unit is sent in 5 business days.”"
    )
    assert "only one of the two is a denial" in held("Tea is free.", "Tea is not free.").reason
    assert "it names paris, not london" in held("The library is in Paris.", "The library is in London.").reason


def test_the_router_example_by_rules() -> None:
    """The second claim needs arithmetic (14 months fall within 24), which the rules have not."""
    assert words(JUDGE, TASKS["support"]) == ["supported", "absent", "supported", "contradicted", "absent"]
    score = measure("ragas/faithfulness", QUESTION, record(), JUDGE)
    assert (score.status, score.judge) == ("computed", JUDGE.card)
    relevant, other = "relevant", "not_relevant"
    assert words(JUDGE, TASKS["relevance"]) == [other, relevant, other, relevant, other]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It is red, and it was blue.", ["It is red", "it was blue."]),
        ("It is red; it was blue. Done!", ["It is red", "it was blue.", "Done!"]),
        ("Red, and blue.", ["Red, and blue."]),
        ("You need a receipt, and a number.", ["You need a receipt, and a number."]),
        ("", []),
        (" ... ", []),
    ],
)
def test_claims_are_sentences_cut_where_both_sides_have_a_verb(text: str, expected: list[str]) -> None:
    assert claims(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("in 5 business days", [(5, "business days")]),
        ("twenty four months", [(24, "months")]),
        ("2 years", [(24, "months")]),
        ("3.5 million dollars", [(3.5e6, "dollars")]),
        ("$1,250.50 a year", [(1250.5, "dollars")]),
        ("12-month cover", [(12, "months")]),
        ("a 40 km ride in 1999", [(40_000, "metres"), (1999, "year")]),
        ("7 lamps and one other", [(7, "lamp")]),
        ("R2 and 5G", []),
    ],
)
def test_quantities(text: str, expected: list[tuple[float, str]]) -> None:
    assert [(q.value, q.of) for q in passage(text).quantities] == expected


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        (t.Relevance("How long is the R2 covered?", PASSAGES[:3]), ["relevant", "relevant", "not_relevant"]),
        (
            t.Relevance("How long?", ("Ships sail.", "Cover lasts 24 months."), "The cover is 24 months."),
            ["not_relevant", "relevant"],
        ),
        (
            t.Relevance("Is tea free?", ("Tea costs nothing.", "Ships sail."), units_of="answer"),
            ["relevant", "not_relevant"],
        ),
        (t.Decline("Is tea free?", "I don't know."), ["supported"]),
        (t.AskBack("I don't know."), ["absent"]),
        (
            t.Contribution("?", "Tea is free. Ships sail.", ("All tea is free.", "Cars drive.")),
            ["relevant", "not_relevant"],
        ),
        (t.Match("?", ("Tea is free.", "Ships sail."), ("Tea is free.",)), ["supported", "absent", "supported"]),
        (t.Attribute("Tea is free. Ships sail.", "All tea is free."), ["attributed", "not_attributed"]),
    ],
    ids=str,
)
def test_other_tasks(task: t.Task, expected: list[Any]) -> None:
    assert words(JUDGE, task) == expected


def test_grades() -> None:
    # precision: 1 of 2 claims of the answer; recall: 1 of 1; F1 = 2 (1/2) (1) / (3/2) = 2/3
    assert found(JUDGE, t.Agree("?", "Tea is free. Ships sail.", "Tea is free."))[0][3] == pytest.approx(2 / 3)
    assert (
        found(JUDGE, t.Grade("groundedness", "Tea is free. Ships sail.", "answer", against="Tea is free."))[0][3] == 0.5
    )
    # content words of the question: tea, free
    assert found(JUDGE, t.Grade("relevance", "Tea costs nothing.", "answer", "Is tea free?"))[0][3] == 0.5


def test_entities_are_names_models_and_quantities() -> None:
    (split,) = [
        found(JUDGE, t.Split("In 1990 the Red Cross of Geneva sent the R2 within 5 days.", "answer", "entities"))
    ]
    assert [unit for unit, *_ in split] == ["Red Cross", "Geneva", "R2", "1990", "5 days"]


def test_the_warning_gives_measured_figures() -> None:
    assert JUDGE.warnings(None) == (AGREEMENT, WARNING)
    assert "no meaning" in WARNING
    assert "weak" in AGREEMENT
    assert str(JUDGE.card.revision).startswith("3, ")


def test_the_figures_are_those_of_the_benchmark() -> None:
    if not SHARED.exists():
        pytest.skip(f"{SHARED} is absent: real data stays outside the repository")
    from benchmarks.lexical_judge import mtrag, wice

    on_wice, on_mtrag = wice(SHARED, "held out"), mtrag(SHARED, "held out")
    quoted = [float(number) for number in re.findall(r"0\.\d\d", str(LexicalJudge.__doc__))]
    measured = [
        on_wice["accuracy"],
        on_wice["accuracy of the commoner label"],
        on_wice["balanced accuracy"],
        on_wice["Cohen's kappa"],
        on_mtrag["Spearman"],
    ]
    assert quoted == pytest.approx(measured, abs=0.006)
    assert [f"{100 * on_wice[name]:.0f}%" for name in ("accuracy", "accuracy of the commoner label")] == re.findall(
        r"\d+%", AGREEMENT
    )
    assert [f"{measured[3]:.2f}", f"{measured[4]:.2f}"] == re.findall(r"0\.\d\d", AGREEMENT)
    assert (on_wice["claims"], on_mtrag["answers"]) == (179, 238)


def test_the_marker_of_a_list_is_no_claim_unless_it_is_all_there_is() -> None:
    assert claims("Some pay. 1. Small firms pay. 2. Banks pay.") == ["Some pay.", "Small firms pay.", "Banks pay."]
    assert claims("42.") == ["42."]
    assert claims("Plan B. It works.") == ["Plan B.", "It works."]
