"""Where passages of a system stand in the documents."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from adapters.schema import Chunk
from runner.dataset import Document
from runner.placed import Places, is_placed
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


def test_a_short_line_is_found_in_the_document_that_is_named_and_nowhere_else() -> None:
    # "Therailisred." has 13 characters: enough in one document, too few in all of them.
    assert placed("Title\nThe rail is red.", "coffee").text == "The rail is red."
    assert not is_placed(placed("Title\nThe rail is red."))


def test_what_stands_nowhere_keeps_its_text_and_two_of_them_are_two() -> None:
    one, other = placed("A summary that a model wrote."), placed("Another summary, written too.")
    assert not is_placed(one)
    assert one.text == "A summary that a model wrote."
    assert (one.doc_id, one.start) != (other.doc_id, other.start)
    assert placed("A summary that a model wrote.") == one


def test_blank_passages_stand_nowhere() -> None:
    assert not is_placed(placed(" \n "))
    assert placed("").text == ""


@given(st.text(), st.text(min_size=1), st.text())
def test_every_cut_is_found_with_the_text_of_the_document(before: str, cut: str, after: str) -> None:
    whole = before + cut + after
    found = Places((Document("d", whole),)).chunk(Passage(cut, "d"))
    if cut.strip():
        assert is_placed(found)
        assert found.text == cut == whole[found.start : found.end]
