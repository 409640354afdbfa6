"""Why two scores differ: parts that go to where the change was made, and that sum to the difference."""

from __future__ import annotations

from statistics import fmean
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.formulas import Formula
from adapters.schema import Verdict
from runner.audit.matching import likeness, matched
from runner.audit.parts import Evidence, Judged, applied, parts, same_evidence

STRICT = Judged(
    "a/strict",
    Formula(
        "claims",
        {"1": 1.0, "0": 0.0},
        dict.fromkeys(("contradicted", "absent", "not_supported"), 0.0) | {"supported": 1.0},
    ),
)
LENIENT = Judged(
    "b/lenient",
    Formula("claims", {"yes": 1.0, "no": 0.0, "idk": 1.0}, {"supported": 1.0, "contradicted": 0.0, "absent": 1.0}),
)
GRADED = Judged("c/graded", Formula("claims", {str(n): n / 3 for n in range(4)}, STRICT.formula.words))

SAID = {"s": ("supported", "1", "yes", "3"), "c": ("contradicted", "0", "no", "0"), "a": ("absent", "0", "idk", "0")}


def strict(*claims: tuple[str, str]) -> Evidence:
    """Verdicts as Ragas gives them: one word for contradicted and absent."""
    return Evidence(
        "a/strict",
        tuple(Verdict(text, SAID[w][1], "supported" if w == "s" else "not_supported") for text, w in claims),
    )


def lenient(*claims: tuple[str, str]) -> Evidence:
    """Verdicts as DeepEval gives them."""
    return Evidence("b/lenient", tuple(Verdict(text, SAID[word][2], SAID[word][0]) for text, word in claims))


ROUTER = (
    ("The R2 is covered for 24 months.", "s"),
    ("A failure after 14 months falls within it.", "s"),
    ("A case needs the serial number.", "s"),
    ("A new unit is sent in 2 days.", "c"),
    ("Shipping is free.", "a"),
)


def test_on_the_same_claims_and_verdicts_the_whole_difference_is_the_formula() -> None:
    found = parts(STRICT, strict(*ROUTER), LENIENT, lenient(*ROUTER))
    # strict: 3 of 5 = .6. lenient: 4 of 5 = .8. The strict side's two "0" are read with the lenient side's words.
    assert found.cross == ((pytest.approx(0.6), pytest.approx(0.8)), (pytest.approx(0.6), pytest.approx(0.8)))
    assert (found.claims, found.verdicts) == (0.0, 0.0)
    assert found.formula == pytest.approx(-0.2)
    assert (found.matched, found.only_left, found.only_right, found.undetermined) == (5, 0, 0, 0)


def test_one_flipped_verdict_moves_the_part_of_verdicts_only() -> None:
    flipped = ((ROUTER[0][0], "c"), *ROUTER[1:])
    same = parts(LENIENT, lenient(*ROUTER), LENIENT, lenient(*flipped))
    # 4/5 against 3/5, with one formula and the same claims.
    assert (same.claims, same.formula) == (0.0, 0.0)
    assert same.verdicts == pytest.approx(0.2)
    across = parts(STRICT, strict(*ROUTER), LENIENT, lenient(*flipped))
    # .6 against .6. The formulas differ by 1/5 on either evidence (strict counts the absent claim against), and the
    # verdicts make up for it: 0 = .2 - .2. On strict's evidence the flipped claim is supported, and stays so.
    assert across.claims == 0.0
    assert across.verdicts == pytest.approx(0.2)
    assert across.formula == pytest.approx(-0.2)


def test_two_claims_merged_into_one_move_the_part_of_claims_only() -> None:
    merged = (
        ("The R2 is covered for 24 months, and a case needs the serial number.", "s"),
        ROUTER[1],
        *ROUTER[3:],
    )
    found = parts(LENIENT, lenient(*ROUTER), LENIENT, lenient(*merged))
    # 4/5 against 3/4.
    assert found.claims == pytest.approx(4 / 5 - 3 / 4)
    assert (found.verdicts, found.formula) == (0.0, 0.0)
    assert (found.matched, found.only_left, found.only_right) == (3, 2, 1)


def test_the_order_of_substitution_is_not_favoured() -> None:
    """Worked by hand: one claim that only the left side makes, one flipped verdict, two formulas."""
    left = strict(("It rains.", "s"), ("Shops are shut.", "a"))  # 1/2
    right = lenient(("It rains.", "c"))  # 0/1
    found = parts(STRICT, left, LENIENT, right)
    # C, V, F of the left (L) or the right (R). "Shops are shut." has only the left's verdict, "not supported", which
    # the lenient formula cannot read: contradicted 0, absent 1, so 1/2.
    #   LLL = 1/2   LLR = (1 + 1/2)/2 = 3/4   LRL = (0 + 0)/2 = 0   LRR = (0 + 1/2)/2 = 1/4
    #   RLL = 1     RLR = 1                   RRL = 0               RRR = 0
    # claims   = [(LRR-RRR) + (LLR-RLR) + (LRL-RRL) + (LLL-RLL)] / 4 = (1/4 - 1/4 + 0 - 1/2) / 4 = -1/8
    # verdicts = [(LLR-LRR) + (RLR-RRR) + (LLL-LRL) + (RLL-RRL)] / 4 = (1/2 + 1 + 1/2 + 1) / 4 = 3/4
    # formula  = [(LLL-LLR) + (RRL-RRR)] / 2 = (-1/4 + 0) / 2 = -1/8
    assert found.claims == pytest.approx(-1 / 8)
    assert found.verdicts == pytest.approx(3 / 4)
    assert found.formula == pytest.approx(-1 / 8)
    assert found.difference == pytest.approx(1 / 2)
    assert found.undetermined == 1
    # The cell LLR may be 1/2 to 1, so 1/4 off its middle; in the formula's part it has the weight 1/2.
    assert found.slack == pytest.approx(1 / 8)


def test_a_grade_between_is_read_as_the_other_side_reads_the_claim() -> None:
    graded = Evidence("c/graded", (Verdict("It rains.", "2", None),))
    found = parts(GRADED, graded, STRICT, strict(("It rains.", "s")))
    assert found.cross[0] == (pytest.approx(2 / 3), 1.0)
    assert found.undetermined == 0


TEXTS = ("It rains.", "It rains today.", "Shops are shut.", "All shops are shut.", "Nobody came.", "It has 3 doors.")
CLAIMS = st.lists(st.tuples(st.sampled_from(TEXTS), st.sampled_from("sca")), min_size=1, max_size=6)


@given(CLAIMS, CLAIMS, st.floats(0.5, 1.0))
def test_the_parts_sum_to_the_difference_on_any_evidence(
    one: list[tuple[str, str]], other: list[tuple[str, str]], similar: float
) -> None:
    for left, a in ((STRICT, strict(*one)), (LENIENT, lenient(*one))):
        for right, b in ((STRICT, strict(*other)), (LENIENT, lenient(*other))):
            found = parts(left, a, right, b, similar)
            own = applied(left, a).middle - applied(right, b).middle
            assert found.difference == pytest.approx(own, abs=1e-12)
            assert found.cross[0][0] == applied(left, a).middle
            assert found.cross[1][1] == applied(right, b).middle
            # What the cross table shows: the formulas' difference on either evidence, averaged.
            shown = fmean((found.cross[0][0] - found.cross[0][1], found.cross[1][0] - found.cross[1][1]))
            assert found.formula == pytest.approx(shown, abs=1e-12)


@given(CLAIMS, CLAIMS)
def test_swapping_the_sides_swaps_the_signs(one: list[tuple[str, str]], other: list[tuple[str, str]]) -> None:
    a, b = strict(*one), lenient(*other)
    there, back = parts(STRICT, a, LENIENT, b), parts(LENIENT, b, STRICT, a)
    if there.matched == back.matched and there.undetermined == back.undetermined:
        assert there.formula == pytest.approx(-back.formula, abs=1e-12)


@given(CLAIMS)
def test_one_definition_beside_itself_has_no_parts(one: list[tuple[str, str]]) -> None:
    found = parts(LENIENT, lenient(*one), LENIENT, lenient(*one))
    assert (found.claims, found.verdicts, found.formula) == (0.0, 0.0, 0.0)


@given(CLAIMS)
def test_on_the_verdicts_of_people_all_is_the_formula(one: list[tuple[str, str]]) -> None:
    people = Evidence("people", tuple(Verdict(text, SAID[word][0], SAID[word][0]) for text, word in one))
    found = same_evidence(applied(STRICT, people), applied(LENIENT, people), len(one))
    # Each absent claim counts 0 here and 1 there.
    assert found.formula == pytest.approx(-sum(word == "a" for _, word in one) / len(one))


@given(CLAIMS, CLAIMS)
def test_matching_is_one_to_one(one: list[tuple[str, str]], other: list[tuple[str, str]]) -> None:
    pairs = matched(strict(*one).verdicts, lenient(*other).verdicts, 0.6)
    assert len(set(pairs.values())) == len(pairs)
    assert all(likeness(one[a][0], other[b][0]) >= 0.6 for a, b in pairs.items())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The R2 is covered for 24 months.", "The R2 is covered for 12 months."),
        ("Shipping is free.", "Shipping is not free."),
        ("It doesn't ship abroad.", "It does ship abroad."),
        ("It has two doors.", "It has three doors."),
    ],
)
def test_texts_that_differ_in_a_number_or_a_negation_are_not_one_claim(one: str, other: str) -> None:
    assert likeness(one, other) == 0.0


def test_the_same_words_in_another_order_are_one_claim() -> None:
    assert likeness("Covered for 24 months is the R2.", "The R2 is covered for 24 months.") == 1.0


def test_a_number_word_and_its_digits_are_one_number() -> None:
    assert likeness("It has two doors.", "It has 2 doors.") > 0.7


def test_the_most_alike_pairs_win_together_not_in_order() -> None:
    left = lenient(("The red old house was sold.", "s"), ("The red house was sold.", "s"))
    right = lenient(("The red house was sold today.", "s"), ("The red old house was sold today.", "s"))
    assert matched(left.verdicts, right.verdicts, 0.6) == {0: 1, 1: 0}


def test_a_ranked_chunk_matches_at_its_own_rank_only() -> None:
    left = (Verdict("a text", "1", "relevant", rank=1), Verdict("a text", "0", "not_relevant", rank=2))
    right = (Verdict("a text", "no", "not_relevant", rank=2), Verdict("other", "yes", "relevant", rank=1))
    assert matched(left, right) == {1: 0}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Der Versand ist kostenlos.", "Der Versand ist nicht kostenlos."),
        ("La livraison est bien gratuite.", "La livraison n'est pas gratuite."),
        ("Доставка бесплатная.", "Доставка не бесплатная."),
        ("这个路由器有保修", "这个路由器没有保修"),
        ("送料は無料です。", "送料は無料ではありません。"),
        ("It works at -5 degrees.", "It works at 5 degrees."),
    ],
)
def test_a_negation_in_another_language_and_a_sign_make_another_claim(one: str, other: str) -> None:
    assert likeness(one, other) == 0.0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("It costs 1,000 dollars.", "It costs 1000 dollars."),
        ("Covered for twenty-four months.", "Covered for 24 months."),
        ("Use bands 5-10 of it.", "Use bands 5 - 10 of it."),
    ],
)
def test_a_number_is_one_however_it_is_written(one: str, other: str) -> None:
    assert likeness(one, other) > 0.6


CLOSE = ("alpha beta gamma delta", "alpha beta gamma delte", "alpha beta gamma delto", "alpha beta gamma delti", "zz")


@given(st.permutations(CLOSE), st.permutations([f"{text} a" for text in CLOSE]), st.integers(1, 5), st.integers(1, 5))
def test_neither_order_nor_side_decides_between_equals(one: list[str], other: list[str], n: int, m: int) -> None:
    left, right = sorted(one[:n]), sorted(other[:m])

    def pairs(ours: list[str], theirs: list[str]) -> set[tuple[str, str]]:
        found = matched(*(tuple(Verdict(text, "1", "supported") for text in side) for side in (ours, theirs)), 0.6)
        return {(ours[a], theirs[b]) for a, b in found.items()}

    assert pairs(one[:n], other[:m]) == pairs(left, right) == {(a, b) for b, a in pairs(right, left)}


def test_statements_of_one_chunk_match_as_claims_do_within_its_rank() -> None:
    def statements(*texts: str, rank: int) -> tuple[Verdict, ...]:
        return tuple(Verdict(text, "yes", "relevant", rank=rank) for text in texts)

    left = statements("The R2 is covered today.", "Something else.", rank=1)
    right = statements("Nothing like it.", "Unlike it.", rank=1) + statements("The R2 is covered.", rank=2)
    assert matched(left, right, 0.7) == {}
    assert matched(left, statements("Unlike it.", "The R2 is covered.", rank=1), 0.7) == {0: 1}


def test_five_hundred_claims_are_matched_in_a_second() -> None:
    words = [f"{a}{b}" for a in ("re", "un", "co", "mo") for b in ("port", "ship", "bill", "dem", "vert")]
    sides = [
        tuple(
            Verdict(" ".join(words[(n * step + m * m) % len(words)] for m in range(12)) + f" {n % 7}", "1", "supported")
            for n in range(500)
        )
        for step in (3, 7)
    ]
    matched(*sides)  # which imports what it needs
    began = process_time()
    assert matched(*sides)
    assert process_time() - began < 1.0


LOOSE = st.lists(
    st.tuples(
        st.sampled_from(TEXTS),
        st.sampled_from(("supported", "contradicted", "absent", "not_supported", None)),
        st.sampled_from(("1", "0", "yes", "no", "idk", "2", "another word")),
        st.sampled_from((None, 1, 2)),
    ),
    min_size=1,
    max_size=6,
)


@given(LOOSE, LOOSE, st.sampled_from((STRICT, LENIENT, GRADED)), st.sampled_from((STRICT, LENIENT, GRADED)))
def test_parts_sum_and_turn_their_signs_whatever_words_ranks_and_repeats_there_are(
    one: list[tuple[str, str | None, str, int | None]],
    other: list[tuple[str, str | None, str, int | None]],
    left: Judged,
    right: Judged,
) -> None:
    """Units without a counterpart, words that a formula does not know, chunks of one rank and texts that repeat."""
    evidences = [
        Evidence(by.id, tuple(Verdict(text, native, ours, rank=rank) for text, ours, native, rank in found))
        for by, found in ((left, one), (right, other))
    ]
    found = parts(left, evidences[0], right, evidences[1])
    back = parts(right, evidences[1], left, evidences[0])
    own = applied(left, evidences[0]).middle - applied(right, evidences[1]).middle
    assert found.difference == pytest.approx(own, abs=1e-12)
    for part in ("claims", "verdicts", "formula"):
        assert getattr(found, part) == pytest.approx(-getattr(back, part), abs=1e-12)
    assert found.slack == pytest.approx(back.slack, abs=1e-12)
    assert found.matched + found.only_left == len(one)
    assert found.matched + found.only_right == len(other)
