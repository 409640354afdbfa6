"""Where passages of a system stand in the documents."""

from __future__ import annotations

from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.schema import Chunk
from runner.dataset import Document
from runner.placed import Places, is_placed, letters
from runner.stage import Passage

BIKES = "Bicycles are parked in the yard.\n\nVisitors lock their bicycle to the red rail.\nThe rail is red.\n"
COFFEE = "The coffee machine is cleaned every Friday.\nThe rail is red.\n"
PLACES = Places((Document("bikes", BIKES), Document("coffee", COFFEE)))


def placed(text: str, doc_id: str | None = None, start: int | None = None) -> Chunk:
    return PLACES.chunk(Passage(text, doc_id, start))


def test_a_passage_stands_where_it_says_if_its_text_is_there() -> None:
    assert placed("The rail is red.", "coffee", 44) == Chunk("coffee", 44, 60, "The rail is red.")


def test_a_wrong_place_is_not_believed() -> None:
    assert placed("The rail is red.", "coffee", 3) == Chunk("coffee", 44, 60, "The rail is red.")
    assert placed("The rail is red.", "coffee", -17).start == 44


def test_a_named_document_is_the_only_one_looked_at() -> None:
    assert placed("The rail is red.", "bikes").doc_id == "bikes"
    assert placed("The rail is red.", "coffee").doc_id == "coffee"
    assert not is_placed(placed("The coffee machine", "bikes"))


def test_an_unknown_name_is_looked_for_in_all_documents() -> None:
    assert placed("The coffee machine", "chunk-17") == Chunk("coffee", 0, 18, "The coffee machine")


def test_white_space_does_not_count_and_the_chunk_is_the_documents_own_text() -> None:
    found = placed("in the yard. Visitors   lock")
    assert found.text == "in the yard.\n\nVisitors lock"
    assert found.text == BIKES[found.start : found.end]


def test_a_title_before_a_passage_is_left_out() -> None:
    found = placed("Title: Parking\n\nVisitors lock their bicycle to the red rail.\nThe rail is red.\nSource: handbook")
    assert found.text == "Visitors lock their bicycle to the red rail.\nThe rail is red."


def test_a_short_part_of_a_passage_is_no_place() -> None:
    # "therailisred" has 12 letters, of which 24 must be the same.
    assert not is_placed(placed("Title\nThe rail is red.", "coffee"))


def test_what_stands_nowhere_keeps_its_text_and_two_of_them_are_two() -> None:
    one, other = placed("A summary that a model wrote."), placed("Another summary, written too.")
    assert not is_placed(one)
    assert one.text == "A summary that a model wrote."
    assert (one.doc_id, one.start) != (other.doc_id, other.start)
    assert placed("A summary that a model wrote.") == one


def test_blank_passages_stand_nowhere() -> None:
    assert not is_placed(placed(" \n "))
    assert placed("").text == ""


RULES = "Each guarantee lasts two years from the day on which the goods arrive."
MANY = Places(
    (
        Document("hr/leave.md", "Leave\n\n" + RULES + "\nWho is ill stays at home and says so by nine."),
        Document("shop/2023", "Terms of 2023.\n" + RULES + "\nShipping costs five euros to all countries."),
        Document("shop/2024", "Terms of 2024.\r\n" + RULES + "\r\nShipping is free of charge to all countries."),
        Document(
            "marked",
            "# Caf\u00e9s & canteens\n\nThe **caf\u00e9** opens at \u201ceight\u201d, see "
            "[the list of all opening hours](https://intranet.example/canteens/hours?site=main), and closes "
            "when the last visi\u00adtor has left; do\u00a0not knock afterwards.\n",
        ),
    )
)


def test_a_text_of_several_documents_has_no_place_unless_one_is_named() -> None:
    assert not is_placed(MANY.chunk(Passage(RULES)))
    assert MANY.chunk(Passage(RULES, "shop/2024")).doc_id == "shop/2024"
    longer = MANY.chunk(Passage(f"{RULES} Shipping is free of charge"))
    assert (longer.doc_id, longer.text) == ("shop/2024", f"{RULES}\r\nShipping is free of charge")


def test_a_document_may_be_named_by_its_path() -> None:
    for name in ("leave", "leave.md", "/srv/corpus/hr/leave.md", "hr\\leave.txt"):
        assert MANY.chunk(Passage(RULES, name)).doc_id == "hr/leave.md", name
    assert not is_placed(MANY.chunk(Passage(RULES, "it/leave.md")))  # another folder: three documents hold the text


@pytest.mark.parametrize(
    "text",
    [
        'Cafe\u0301s & canteens The cafe\u0301 opens at "eight"',  # NFD, no mark-up, plain quotes
        "CAF\u00c9S & CANTEENS\r\n\r\nThe caf\u00e9 opens at 'eight'",
    ],
)
def test_marks_accents_and_capitals_do_not_count(text: str) -> None:
    found = MANY.chunk(Passage(text))
    assert found.doc_id == "marked"
    assert found.text.rstrip("\u201d").endswith("The **caf\u00e9** opens at \u201ceight")


def test_what_was_cut_off_or_taken_out_costs_only_that() -> None:
    shown = "see the list of all opening hours, and closes when the last visitor has left; do not knock afterw\u2026"
    found = MANY.chunk(Passage(f"From the handbook: {shown}"))
    assert found.text.startswith("see [the list of all opening hours](https://intranet")
    assert found.text.endswith("do\u00a0not knock afterw")


def test_joined_chunks_are_the_longest_of_them() -> None:
    joined = "Who is ill stays at home and says so by nine.\n---\nBeans! Shipping costs five euros"
    assert MANY.chunk(Passage(joined)).text == "Who is ill stays at home and says so by nine."


def test_an_offset_in_other_units_still_tells_which_of_two() -> None:
    twice = f"\U0001f600\U0001f600 {RULES} Once more. {RULES}"
    second = twice.rindex(RULES)
    places = Places((Document("d", twice),))
    for start in (second, second + 2, second + 6):  # code points, UTF-16, bytes of UTF-8
        assert places.chunk(Passage(RULES, "d", start)).start == second
    assert places.chunk(Passage(RULES, "d")).start == 3


def test_thousands_of_documents_are_searched_at_once() -> None:
    # A search through every document for each passage would take half a minute: 100 misses x 3,000 documents.
    documents = [Document(f"d{n}", f"{RULES} Number {n * 7919} is kept by clerk {n}. " * 5) for n in range(3_000)]
    places, began = Places(documents), perf_counter()
    for n in range(100):
        assert not is_placed(places.chunk(Passage(f"{RULES} Nobody knows of the year {n}")))
        found = places.chunk(Passage(f"Summary\nNumber {n * 7919} is kept by clerk {n}. {RULES} Number"))
        assert found.doc_id == f"d{n}"
    assert perf_counter() - began < 25


@given(st.text())
def test_letters_stand_where_their_characters_stand(text: str) -> None:
    assert letters(text) == "".join(letters(char) for char in text)


@given(st.text(), st.text(min_size=1), st.text())
def test_every_cut_is_found_with_the_text_of_the_document(before: str, cut: str, after: str) -> None:
    whole = before + cut + after
    found = Places((Document("d", whole),)).chunk(Passage(cut, "d"))
    if letters(cut):
        assert is_placed(found)
        assert letters(found.text) == letters(cut)
        assert found.text == whole[found.start : found.end]
