"""What a comparison finds: numbers worked by hand, properties, what may not be subtracted, and what changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isclose

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.schema import JudgeCard, Question, Verdict
from runner.compare import paired, wording
from runner.compare.findings import Comparison, Moved, Row
from runner.compare.paired import compare, compare_sweep
from runner.errors import ConfigError
from runner.results import StoredRun
from tests.compare.runs import by_rank, defined, run

LISTS = st.lists(st.tuples(*[st.sampled_from((0.0, 0.2, 0.25, 0.5, 1.0))] * 2), min_size=1, max_size=14)


def compared(before: StoredRun, after: StoredRun, **options: object) -> Comparison:
    return compare(before, after, names=("a", "b"), **options)  # type: ignore[arg-type]


def of(values: Sequence[float], key: str = "labels/recall", **changed: object) -> StoredRun:
    return run({key: {f"q{n:03}": value for n, value in enumerate(values)}}, definitions=[defined(key, **changed)])


def only(found: Comparison) -> Row:
    (row,) = found.rows
    return row


def test_equal_means_with_other_questions_are_said() -> None:
    # A has the right passage at ranks 1, -, 2, 2 and B at 2, 2, 1, -. Recall: 3/4 and 3/4; q2 is found, q4 is lost.
    # Reciprocal rank: (1 + 0 + 1/2 + 1/2) / 4 = 1/2 and (1/2 + 1/2 + 1 + 0) / 4 = 1/2; q1 and q4 fall, q2 and q3 rise.
    found = compared(by_rank((1, None, 2, 2), "A"), by_rank((2, 2, 1, None), "B"))
    recall, rank = found.rows
    assert (recall.baseline, recall.candidate, recall.delta) == (0.75, 0.75, 0.0)
    assert (rank.baseline, rank.candidate, rank.delta) == (0.5, 0.5, 0.0)
    assert (recall.wins, recall.ties, recall.losses) == (1, 2, 1)
    assert (rank.wins, rank.ties, rank.losses) == (2, 0, 2)
    assert recall.swapped
    assert rank.swapped
    assert (recall.p.value, rank.p.value, recall.carries, rank.carries) == (1.0, 1.0, None, None)
    assert wording.headline(found) == "All means equal, two questions swapped in recall; four in reciprocal_rank."
    assert [change.id for change in found.changes] == ["q4", "q1", "q3", "q2"]
    assert [change.id for change in found.worse] == ["q4", "q1"]


def test_a_row_worked_by_hand() -> None:
    # Differences .5, .5, -.25, 0, 0: delta .75 / 5 = .15. Of 8 signings of .5, .5, .25 the sum reaches .75 in +++, ++-,
    # and their mirrors: p = 4/8. The two gains come to 1, one to .5, so two carry .75.
    # s**2 = (.35**2 + .35**2 + .4**2 + .15**2 + .15**2) / 4 = .1125; visible 2.8016 * sqrt(.1125 / 5) = .4202.
    row = only(compared(of([0.0, 0.0, 0.25, 1.0, 0.5]), of([0.5, 0.5, 0.0, 1.0, 0.5])))
    assert row.delta == pytest.approx(0.15)
    assert row.p.value == 0.5
    assert (row.wins, row.ties, row.losses, row.n, row.carries) == (2, 2, 1, 5, 2)
    assert row.visible == pytest.approx(0.4202, abs=5e-5)
    assert row.word == "cannot tell"


def test_where_lower_is_better_a_fall_is_a_win() -> None:
    row = only(compared(of([1.0] * 8, direction="lower"), of([0.0] * 8, direction="lower")))
    # All eight fell: p = 2 / 2**8 = 1/128.
    assert (row.wins, row.losses, row.delta, row.word) == (8, 0, -1.0, "better")
    assert row.p.value == pytest.approx(1 / 128)


@pytest.mark.parametrize(
    ("changed", "of_all", "others", "word"),
    [
        (5, 10, 0, "cannot tell"),  # five changed: p = 2/32
        (6, 10, 0, "better"),  # p = 2/64 = .031, and the interval excludes 0
        (6, 10, 1, "cannot tell"),  # two definitions: Holm 2 * .031 = .0625
        (8, 10, 1, "better"),  # 2 * 2/256 = .016
        (6, 400, 0, "better"),
        (0, 10, 0, "unchanged"),
    ],
)
def test_better_needs_the_interval_holm_and_six_changed_questions(
    changed: int, of_all: int, others: int, word: str
) -> None:
    def made(gains: int) -> StoredRun:
        return run(
            {
                "labels/recall": {f"q{n}": float(n < gains) for n in range(of_all)},
                **{f"labels/same{i}": {f"q{n}": 0.5 for n in range(of_all)} for i in range(others)},
            }
        )

    row = compared(made(0), made(changed)).rows[0]
    assert row.word == word
    assert compared(made(changed), made(0)).rows[0].word == {"better": "worse"}.get(word, word)
    assert row.family == 1 + others


def test_an_interval_that_excludes_0_is_not_enough() -> None:
    # Nine of 40 rose: p = 2 / 2**9 = .004, alone and not as one of twenty.
    row = only(compared(of([0.0] * 40), of([1.0] * 9 + [0.0] * 31)))
    assert row.word == "better"
    many = {f"labels/d{i}": {f"q{n}": 0.0 for n in range(40)} for i in range(20)}
    after = {key: {f"q{n}": float(n < 9) if key == "labels/d19" else 0.0 for n in range(40)} for key in many}
    held = compared(run(many), run(after)).rows[19]
    assert held.low is not None
    assert held.low > 0
    # 20 * 2 / 2**9 = .078; it is none of the first five, which decide.
    assert held.adjusted == pytest.approx(20 * 2 / 2**9)
    assert held.word == "cannot tell"


@settings(deadline=None)  # the first call imports NumPy
@given(LISTS)
def test_wins_ties_and_losses_are_all_questions(pairs: list[tuple[float, float]]) -> None:
    row = only(compared(of([one for one, _ in pairs]), of([other for _, other in pairs])))
    assert row.wins + row.ties + row.losses == row.n == len(pairs)
    assert row.changed == sum(one != other for one, other in pairs)
    assert isclose(row.delta, row.candidate - row.baseline, abs_tol=1e-12)
    if row.carries is not None:
        gains = sorted((row.delta > 0) * 2 * (b - a) - (b - a) for a, b in pairs)[::-1]
        assert sum(gains[: row.carries]) >= abs(row.delta) * row.n - 1e-9
        assert sum(gains[: row.carries - 1]) < abs(row.delta) * row.n - 1e-9


@settings(deadline=None)  # the first call imports NumPy
@given(LISTS)
def test_swapped_sides_flip_signs(pairs: list[tuple[float, float]]) -> None:
    left, right = of([one for one, _ in pairs]), of([other for _, other in pairs])
    there, back = only(compared(left, right)), only(compared(right, left))
    assert back.delta == pytest.approx(-there.delta, abs=1e-12)
    assert (back.wins, back.ties, back.losses) == (there.losses, there.ties, there.wins)
    assert (back.p, back.adjusted, back.carries) == (there.p, there.adjusted, there.carries)
    assert back.visible == pytest.approx(there.visible)
    if there.low is not None and there.high is not None:
        assert (back.low, back.high) == (pytest.approx(-there.high), pytest.approx(-there.low))
    assert back.word == {"better": "worse", "worse": "better"}.get(there.word, there.word)


@settings(deadline=None)  # the first call imports NumPy
@given(LISTS, st.data())
def test_slices_of_a_partition_weigh_to_the_whole(pairs: list[tuple[float, float]], data: st.DataObject) -> None:
    parts = data.draw(st.lists(st.sampled_from("xyz"), min_size=len(pairs), max_size=len(pairs)))
    questions = [Question(f"q{n:03}", "?", slices=(part,)) for n, part in enumerate(parts)]
    runs = [
        run({"labels/recall": {f"q{n:03}": pair[side] for n, pair in enumerate(pairs)}}, questions=questions)
        for side in (0, 1)
    ]
    found = compared(*runs)
    if len(set(parts)) == 1:
        assert found.slices == ()  # the slice is everything
        return
    assert {each.slice: each.n for each in found.slices} == {part: parts.count(part) for part in parts}
    whole = only(found)
    for field in ("baseline", "candidate", "delta"):
        weighed = sum(each.n * getattr(each, field) for each in found.slices) / len(pairs)
        assert weighed == pytest.approx(getattr(whole, field), abs=1e-12)
    assert sum(each.changed for each in found.slices) == whole.changed


def test_real_and_synthetic_and_tune_and_held_out_are_apart() -> None:
    questions = [
        Question("q0", "?", origin="synthetic"),
        Question("q1", "?", split="held_out"),
        Question("q2", "?"),
    ]
    values = {"labels/recall": {"q0": 0.0, "q1": 0.5, "q2": 1.0}}
    found = compared(run(values, questions=questions), run(values, questions=questions))
    assert {each.slice: (each.n, each.baseline) for each in found.slices} == {
        "origin:synthetic": (1, 0.0),
        "origin:real": (2, 0.75),
        "split:tune": (2, 0.5),
        "split:held_out": (1, 0.5),
    }
    limited = compared(run(values, questions=questions), run(values, questions=questions), slices=["origin:real"])
    assert (only(limited).n, limited.questions) == (2, 2)
    assert "only the 2 questions of origin:real are compared" in limited.notes
    with pytest.raises(ConfigError, match="no question is in a slice 'fact'; there are origin:real, split:tune"):
        compared(run(values), run(values), slices=["fact"])


def test_a_question_without_a_value_on_one_side_is_counted_and_left_out() -> None:
    before = run({"labels/recall": {"q0": 1.0, "q1": 0.0, "q2": None, "q3": 1.0}})
    after = run({"labels/recall": {"q0": 0.5, "q1": None, "q2": 1.0, "q3": 1.0}})
    found = compared(before, after)
    row = only(found)
    assert (row.n, row.only_baseline, row.only_candidate, row.delta) == (2, 1, 1, -0.25)
    assert wording.uneven(found) == [
        "recall is over 2 questions; 1 more only in the baseline and 1 more only in the candidate"
    ]


JUDGED = defined("ragas/faithfulness", calls="1 + 1", requires=("answer", "context"))
ONE, OTHER = JudgeCard("openai", "m1", temperature=0.0), JudgeCard("openai", "m2", temperature=0.0)


def judged(value: float, judge: JudgeCard = ONE, **more: object) -> StoredRun:
    options = {"definitions": [JUDGED], "judge": judge, **more}
    return run({"ragas/faithfulness": {"q0": value}, "labels/recall": {"q0": value}}, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("after", "named"),
    [
        (judged(0.5, OTHER), {"ragas/faithfulness": "the judge differs: openai m1 and openai m2"}),
        (
            judged(0.5, replace(ONE, temperature=0.7, fingerprint="")),
            {"ragas/faithfulness": "the judge differs: openai m1, temperature 0.0 and 0.7"},
        ),
        (
            judged(0.5, definitions=[replace(JUDGED, version="2")]),
            {"ragas/faithfulness": "the definition differs: version 1 and 2"},
        ),
        (
            judged(0.5, definitions=[replace(JUDGED, prompts={"verdicts": "ab"})]),
            {"ragas/faithfulness": "the definition differs: other prompts: verdicts"},
        ),
        (
            judged(0.5, dataset={"name": "tiny", "version": "3", "checksum": "d" * 64}),
            dict.fromkeys(
                ("ragas/faithfulness", "labels/recall"),
                f"the dataset differs: tiny 2 (checksum {'c' * 64}) and tiny 3 (checksum {'d' * 64})",
            ),
        ),
        (
            run({"labels/recall": {"q0": 0.5}}),
            {"ragas/faithfulness": "the candidate does not have it"},
        ),
    ],
    ids=["judge", "temperature", "version", "prompt", "test set", "absent"],
)
def test_what_does_not_mean_the_same_is_named_and_not_subtracted(after: StoredRun, named: dict[str, str]) -> None:
    found = compared(judged(1.0), after)
    assert {each.definition: "; ".join(each.why) for each in found.not_compared} == named
    assert [row.definition for row in found.rows] == [
        key for key in ("ragas/faithfulness", "labels/recall") if key not in named
    ]
    assert all(not named.keys() & change.scores.keys() for change in found.changes)


def test_another_cutoff_is_another_definition() -> None:
    at = [defined(f"labels/recall@{k}", parameters={"k": k}) for k in (5, 10)]
    found = compared(*(run({each.key: {"q0": 1.0}}, definitions=[each]) for each in at))
    assert found.rows == ()
    assert [(each.definition, each.why) for each in found.not_compared] == [
        (
            "labels/recall@5",
            ("the candidate does not have it; it has labels/recall@10 (k 5 and 10), which is another definition",),
        ),
        (
            "labels/recall@10",
            ("the baseline does not have it; it has labels/recall@5 (k 10 and 5), which is another definition",),
        ),
    ]
    assert wording.headline(found) == "Nothing could be compared."


def test_anyway_subtracts_and_says_so() -> None:
    found = compared(judged(1.0), judged(0.5, OTHER), anyway=True)
    assert [row.definition for row in found.rows] == ["ragas/faithfulness", "labels/recall"]
    assert found.notes == ("ragas/faithfulness is subtracted although the judge differs: openai m1 and openai m2",)


def test_a_judge_that_moved_is_no_judge_to_compare_by() -> None:
    drift = {
        "sample": "s", "frozen": "2026-11-01T00:00:00Z", "tolerance": 0.05, "n": 10, "equal": 0.5,
        "mean_difference": 0.2, "verdicts": 10, "verdicts_equal": 0.5, "moved": True,
    }  # fmt: skip
    found = compared(judged(1.0), judged(0.5, drift=drift))
    assert [each.definition for each in found.not_compared] == ["ragas/faithfulness"]
    assert "the judge moved, not the system" in found.not_compared[0].why[0]


def test_settings_that_differ_are_listed_and_where_a_run_stands_is_none() -> None:
    trial = {"trial": {"design": "variant", "value": "10"}, "tracking": {"folder": "x"}}
    before = run({"labels/recall": {"q0": 1.0}}, config={"retriever": {"k": 5, "metric": "cosine"}})
    after = run({"labels/recall": {"q0": 1.0}}, config={"retriever": {"k": 10, "metric": "cosine"}, **trial})
    assert compared(before, after).changed == {"retriever.k": (5, 10)}


def test_what_changed_in_a_question_is_told() -> None:
    before, after = by_rank((1, 3, 2), "A"), by_rank((None, 1, 2), "B")
    lost, moved = compared(before, after).changes
    assert lost.id == "q1"
    assert lost.scores == {"labels/recall": (1.0, 0.0), "labels/reciprocal_rank": (1.0, 0.0)}
    assert lost.ranking[0] == Moved("right:0-10", "the answer", 1, None, True)
    assert wording.moves(lost) == [
        ("ranking and context", "relevant chunk lost (was 1): right:0-10 “the answer”"),
        ("ranking", "other chunks: 1 new"),
    ]
    # The right passage from 3 to 1; d1 leaves, d3 comes.
    assert wording.moves(moved) == [
        ("ranking and context", "relevant chunk moved (3 → 1): right:0-10 “the answer”"),
        ("ranking", "other chunks: 1 lost, 1 new"),
    ]
    assert moved.worst == 0.0
    assert moved.best == pytest.approx(2 / 3)


def test_verdicts_that_turned_round_come_before_those_on_other_claims() -> None:
    def claims(*said: tuple[str, str]) -> dict[tuple[str, str], tuple[Verdict, ...]]:
        return {("ragas/faithfulness", "q0"): tuple(Verdict(unit, word, word) for unit, word in said)}

    before = judged(1.0, evidence=claims(("It is red.", "supported"), ("It is old.", "supported")))
    after = judged(0.5, evidence=claims(("Bees can fly.", "absent"), ("It is red.", "contradicted")))
    (change,) = compared(before, after).changes
    assert wording.flips(change) == [
        "ragas/faithfulness: “It is red.”: supported → contradicted",
        "ragas/faithfulness: “It is old.”: gone, was supported",
        "ragas/faithfulness: “Bees can fly.”: new, absent",
    ]


def test_retrieval_and_generation_are_apart() -> None:
    # labels/answer_f1 requires the reference answer alone: the answer is what it scores.
    f1 = defined("labels/answer_f1", requires=("reference_answer",))
    context = defined("ragas/context_recall", requires=("question", "reference_answer", "reranked"))
    used = defined("ragas/context_utilization", requires=("question", "answer", "reranked"))
    refused = defined("labels/refusal_rate", requires=("refused",))
    every = (f1, context, used, refused, JUDGED, defined("labels/recall"))
    made = run({each.key: {"q0": 1.0} for each in every}, definitions=every, judge=ONE)
    about = {row.definition: row.about for row in compared(made, made).rows}
    assert [key for key, what in about.items() if what == "retrieval"] == ["ragas/context_recall", "labels/recall"]


def test_the_worst_question_comes_first_and_of_equals_the_one_that_lost_most_in_all() -> None:
    before = {"labels/a": {"q0": 1.0, "q1": 1.0, "q2": 0.5}, "labels/b": {"q0": 0.5, "q1": 0.5, "q2": 0.5}}
    after = {"labels/a": {"q0": 0.0, "q1": 0.0, "q2": 0.0}, "labels/b": {"q0": 1.0, "q1": 0.0, "q2": 0.0}}
    found = compared(run(before), run(after))
    # q1 lost 1 and .5, q0 lost 1 and gained .5, q2 lost at most .5.
    assert [change.id for change in found.changes] == ["q1", "q0", "q2"]


def yes_no(gains: int, of: int = 20, keys: Sequence[str] = ("labels/recall",)) -> StoredRun:
    return run({key: {f"q{n:02}": float(n < gains) for n in range(of)} for key in keys})


def test_the_variants_of_a_sweep_are_one_family() -> None:
    # Exact McNemar p: of 8 gains 2/2**8 = 1/128, of 10 gains 2/2**10 = 1/512, of none 1. Three variants by one
    # definition: Holm 3/512 for the smallest, 2/128 for the next, 1.
    variants = {"a": yes_no(8), "b": yes_no(10), "c": yes_no(0)}
    found = compare_sweep(yes_no(0), variants)
    rows = {name: only(each) for name, each in found.items()}
    assert {name: row.family for name, row in rows.items()} == {"a": 3, "b": 3, "c": 3}
    assert {name: row.p.value for name, row in rows.items()} == pytest.approx({"a": 1 / 128, "b": 1 / 512, "c": 1.0})
    assert {name: row.adjusted for name, row in rows.items()} == pytest.approx({"a": 2 / 128, "b": 3 / 512, "c": 1.0})
    assert [row.word for row in rows.values()] == ["better", "better", "unchanged"]
    assert [each.candidate.name for each in found.values()] == ["a", "b", "c"]


def gained(gains: Mapping[str, int], table: Sequence[str] = ()) -> StoredRun:
    """20 questions: how many are answered under each definition. table: the definitions that decide."""
    return run(
        {f"labels/{key}": {f"q{n:02}": float(n < up) for n in range(20)} for key, up in gains.items()},
        config={"metrics": {"table": [f"labels/{key}" for key in table]}},
    )


def adjusted_of(found: Mapping[str, Comparison]) -> dict[tuple[str, str], tuple[float, int]]:
    return {
        (name, row.definition.removeprefix("labels/")): (row.adjusted, row.family)
        for name, each in found.items()
        for row in each.rows
    }


def test_the_definitions_of_the_table_are_a_family_of_their_own() -> None:
    # Exact McNemar p of u gains is 2 / 2**u. Of a: u 1/128, v 1/512, w 1/64; of b: u 1/256, v 1, w 1/2048.
    # u and v decide, four comparisons: v of a 4 * 1/512, u of b 3 * 1/256, u of a 2 * 1/128, v of b 1.
    # w is adjusted over all six: w of b 6 * 1/2048; then v of a 5/512, u of b 4/256, u of a 3/128; w of a 2 * 1/64; 1.
    baseline = gained({"u": 0, "v": 0, "w": 0}, ["u", "v"])
    variants = {
        "a": gained({"u": 8, "v": 10, "w": 7}, ["u", "v"]),
        "b": gained({"u": 9, "v": 0, "w": 12}, ["u", "v"]),
    }
    found = compare_sweep(baseline, variants)
    assert adjusted_of(found) == {
        ("a", "u"): (2 / 128, 4),
        ("a", "v"): (4 / 512, 4),
        ("a", "w"): (2 / 64, 6),
        ("b", "u"): (3 / 256, 4),
        ("b", "v"): (1.0, 4),
        ("b", "w"): (6 / 2048, 6),
    }
    alone = compared(baseline, variants["b"], siblings={"a": variants["a"]})
    assert alone.rows == found["b"].rows
    told = "the 4 comparisons in definitions of the table, and all 6 for the others"
    assert alone.notes == (f"Holm is over 2 variants of this sweep with its baseline: {told}",)


def test_what_else_is_computed_costs_a_decision_nothing() -> None:
    def found(*more: str, table: Sequence[str]) -> dict[tuple[str, str], tuple[float, int]]:
        up = {"a": 8, "b": 10}
        variants = {name: gained({"u": most, "v": 7, **dict.fromkeys(more, 6)}, table) for name, most in up.items()}
        baseline = gained({"u": 0, "v": 0, **dict.fromkeys(more, 0)}, table)
        return adjusted_of(compare_sweep(baseline, variants))

    few = found(table=["u", "v"])
    many = found("w", "x", "y", table=["u", "v"])
    assert {name: many[name] for name in few} == few
    assert {family for name, (_, family) in many.items() if name not in few} == {10}
    # A definition that joins the table is paid for.
    assert found("w", table=["u", "v", "w"])["a", "u"][0] > few["a", "u"][0]
    # Without a table the first five decide, and a sixth costs them nothing.
    five = found("w", "x", "y", table=[])
    six = found("w", "x", "y", "z", table=[])
    assert {name: six[name] for name in five} == five
    assert {six["a", "z"][1], six["b", "z"][1]} == {12}


def test_one_variant_with_its_siblings_says_what_the_sweep_says() -> None:
    baseline = yes_no(0, keys=("labels/a", "labels/b"))
    variants = {"a": yes_no(7, keys=("labels/a", "labels/b")), "b": yes_no(9, keys=("labels/a",))}
    found = compare_sweep(baseline, variants)
    alone = compared(baseline, variants["a"], siblings={"b": variants["b"]})
    assert alone.rows == found["a"].rows
    assert {row.family for row in alone.rows} == {3}
    assert alone.notes == ("Holm is over 2 variants of this sweep with its baseline: all 3 comparisons",)


def test_a_sibling_with_nothing_to_compare_is_no_part_of_the_family() -> None:
    other = run({"labels/recall": {"q00": 1.0}}, dataset={"name": "other", "version": "1", "checksum": "d" * 64})
    alone = compared(yes_no(0), yes_no(8), siblings={"other": other})
    assert (only(alone).family, alone.notes) == (1, ())


def test_without_details_nothing_is_looked_up_in_records() -> None:
    baseline, after = by_rank((1, None, 2, 2), "A"), by_rank((2, 2, 1, None), "B")
    found = compare_sweep(baseline, {"B": replace(after, records={})}, details=False)["B"]
    assert (found.changes, found.slices, found.points) == ((), (), {})
    assert found.rows == compared(baseline, after).rows
    assert (found.changed_questions, found.worse_questions, found.better_questions) == (4, 2, 2)


def test_the_worst_questions_and_the_best_are_told_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, bound in (("DETAILED", 3), ("GAINED", 2), ("POINTS", 4)):
        monkeypatch.setattr(paired, name, bound)
    # q000 to q004 lose .5, .4, .3, .2, .1; q005 to q009 gain .1 to .5; q010 stays.
    before = [0.5] * 11
    after = [0.0, 0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9, 1.0, 0.5]
    found = compared(of(before), of(after))
    assert (found.changed_questions, found.worse_questions, found.better_questions) == (10, 5, 5)
    assert [change.id for change in found.changes] == ["q000", "q001", "q002", "q009", "q008"]
    assert [change.id for change in found.worse] == ["q000", "q001", "q002"]
    # Every third of ten in the order of losses: the first, the last and two between.
    assert [id for id, _, _ in found.points["labels/recall"]] == ["q000", "q003", "q006", "q009"]
