"""The audit as Markdown, as data and on the terminal."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from adapters.schema import Score, Verdict
from runner import console, phrases
from runner.audit import files, markdown, page, terminal, wording
from runner.audit.findings import PEOPLE, Audit, Claim, Family, Hazard, Reading, Why, Word
from tests.audit import stored


def rendered(text: str) -> str:
    return MarkdownIt("gfm-like", {"linkify": False}).render(text)


# Markdown.


def test_markdown_has_the_numbers_of_the_router_example() -> None:
    text = markdown.text(stored.router())
    assert "Ragas faithfulness 0.60 and DeepEval 0.80 on the same 5 claims: the whole 0.20 is the formula" in text
    assert "| 1 | 0.600 | 0.800 | **−0.200** | −0.200 | none | none |" in text
    assert "| A Ragas faithfulness | **0.600** | 0.800 | 0.600 | 0.600 |" in text
    assert "| ✗ 0 (not supported) | ✓ borderline (absent) |" in text
    assert "labels/reciprocal\\_rank.hits-averaged" in text


def test_every_row_of_a_table_has_the_cells_of_its_head() -> None:
    for audit in (stored.router(), stored.many(30), stored.hostile()):
        html = rendered(markdown.text(audit))
        tables = re.findall(r"<table>(.*?)</table>", html, re.DOTALL)
        assert len(tables) > 5
        for table in tables:
            counts = {len(re.findall(r"<t[hd]\b", row)) for row in re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL)}
            assert len(counts) == 1


def test_hostile_texts_are_inert_in_markdown() -> None:
    text = markdown.text(stored.hostile())
    text.encode()
    html = rendered(text)
    tags = set(re.findall(r"<(\w+)", html))
    assert not tags & {"script", "img", "a"}
    assert "<h1>title" not in html
    assert not re.search(r"@\w|#\d|://\w", text)


def test_markdown_fits_into_a_comment_and_says_what_was_cut() -> None:
    whole = markdown.text(stored.router())
    assert "Left out" not in whole
    long = [(f"{'A claim that takes room. ' * 12}{n}", "absent") for n in range(20)]
    audit = stored.audited({f"q{n}": dict.fromkeys(stored.SAYS, long) for n in range(40)}, stored.SUBJECTS)
    text = markdown.text(audit)
    assert len(text) < 60_000
    assert "The 10 that are furthest apart; 30 more are in audit.json." in text
    assert re.search(r"Left out, so that this fits into a comment: .*record q", text)


# Data.


def test_data_has_every_field_and_names_for_parts() -> None:
    audit = stored.many(12)
    found = files.data(audit)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert [row["definition"] for row in found["groups"][0]["rows"]] == [each.key for each in stored.SUBJECTS]
    assert set(found) == {
        "source", "records", "systems", "judge", "threshold", "similar", "groups", "families", "notes",
    }  # fmt: skip
    view = found["groups"][0]["views"][0]
    pair = "ragas/faithfulness | deepeval/faithfulness"
    parts, kept = view["parts"][pair], audit.groups[0].views[0].parts[pair]
    assert parts["claims"] + parts["verdicts"] + parts["formula"] == pytest.approx(parts["difference"], abs=1e-12)
    assert parts["cross"]["left_verdicts"]["right_formula"] == kept.cross[0][1]
    assert parts["cross"]["right_verdicts"]["left_formula"] == kept.cross[1][0]
    assert isinstance(found["groups"][0]["pairs"][0]["systems"]["same_winner"], bool)


def test_three_files_are_written_whatever_the_texts_are(tmp_path: Path) -> None:
    written = files.write(stored.hostile(), tmp_path / "new" / "folder")
    assert [path.name for path in written] == ["audit.json", "audit.md", "audit.html"]
    assert json.loads(written[0].read_text(encoding="utf-8"))["records"] == 2
    for path in written:
        assert "window.ran" in path.read_text(encoding="utf-8")


# The terminal.


def shown(audit: Audit, capsys: pytest.CaptureFixture[str]) -> str:
    terminal.show(audit, [Path("out/audit.html")])
    said = capsys.readouterr()
    assert "Written: out/audit.html" in said.err
    return said.out


def test_the_terminal_shows_the_headline_the_parts_and_the_claims(capsys: pytest.CaptureFixture[str]) -> None:
    said = shown(stored.router(), capsys)
    text = " ".join(said.split())
    assert "Ragas faithfulness 0.60 and DeepEval 0.80 on the same 5 claims: the whole 0.20 is the formula" in text
    assert "A − B 1 0.600 0.800 −0.200 −0.200 none none" in text
    assert "C deepeval/faithfulness.penalize_ 0.600" in text
    assert "A ✗ 0 (not supported); B ✓ borderline (absent); C ✗ borderline (absent); D ✗ 0 (not supported)" in text
    assert "4 claims judged and counted alike by all" in text
    assert "computed as labels/reciprocal_rank by trec_eval: recip_rank (called here: 0.500)" in text


@pytest.mark.parametrize(
    "audit", [stored.router(), stored.many(40), stored.hostile()], ids=["router", "many", "hostile"]
)
def test_the_terminal_keeps_to_its_width_and_is_not_steered(audit: Audit, capsys: pytest.CaptureFixture[str]) -> None:
    said = shown(audit, capsys)
    assert max(map(len, said.splitlines())) <= 100
    assert all(char == "\n" or char.isprintable() for char in said)


def test_json_is_the_data(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(console.FORMAT, "json")
    audit = stored.router()
    terminal.show(audit, [])
    assert json.loads(capsys.readouterr().out) == files.data(audit)


# Words.


def test_names_are_short_and_never_the_same() -> None:
    (group,) = stored.router().groups
    assert [str(name) for name in wording.names(group).values()] == [
        "A Ragas faithfulness",
        "B DeepEval",
        "C DeepEval (penalize_ambiguous_claims)",
        "D TruLens (splitter-llm)",
        "E Ragas response_groundedness",
        PEOPLE,
    ]
    assert wording._letter(25) == "Z"
    assert wording._letter(26) == "AA"


def test_two_definitions_that_would_share_a_name_keep_their_keys() -> None:
    ones = [replace(stored.RAGAS, key=key, id=key, framework=key) for key in ("mine", "mine/mine")]
    (group,) = stored.audited({"q": {}}, [ones[0], replace(ones[1], framework="mine")]).groups
    assert len({name.short for name in wording.names(group).values()}) == 3


def test_a_difference_of_several_parts_is_told_with_each() -> None:
    # Ragas: a supported, b absent: 1/2. DeepEval: a contradicted, b absent: 1/2 (absent counts for it). Of the formula
    # DeepEval has 0.5 more, of the verdict on a 0.5 less: no difference, because the parts cancel.
    audit = stored.audited(
        {
            "q": {
                "ragas": [("a is so", "supported"), ("b may be", "absent")],
                "deepeval": [("a is so", "contradicted"), ("b may be", "absent")],
            }
        },
        (stored.RAGAS, stored.DEEPEVAL),
    )
    (one,) = wording.told(audit.groups[0])
    assert dict(one.parts) == {"formula": -0.5, "verdicts": 0.5, "claims": 0.0}
    assert one.reason == (
        "as good as no difference, because the parts cancel out: the formula −0.500 and other verdicts on the same "
        "claims +0.500"
    )
    assert one.in_words.endswith("counts against the score in Ragas and for it in DeepEval.")


def test_other_claims_are_told_as_such() -> None:
    # Both count what is supported only; TruLens has one more claim, which is supported: 1/2 and 2/3.
    audit = stored.audited(
        {
            "q": {
                "ragas": [("One is so.", "supported"), ("Red is not.", "contradicted")],
                "trulens": [("One is so.", "supported"), ("Red is not.", "contradicted"), ("Bees fly.", "supported")],
            }
        },
        (stored.RAGAS, stored.TRULENS),
    )
    (one,) = wording.told(audit.groups[0])
    assert one.sentence == (
        "Ragas 0.50 and TruLens (splitter-llm) 0.67 on 1 record: the whole 0.17 is the splitting into other claims."
    )
    assert one.matching == "2 claims in common, 1 of TruLens (splitter-llm) alone"
    (claim,) = [each for each in audit.groups[0].views[0].claims if each.text == "Bees fly."]
    called = wording.names(audit.groups[0])
    assert (
        wording.remark(claim, called, [stored.RAGAS.key, stored.TRULENS.key], audit.groups[0])
        == "not among the claims of Ragas"
    )


def test_verdicts_that_contradict_each_other_are_told_by_word() -> None:
    audit = stored.audited(
        {"q": {"ragas": [("a is so", "supported")], "deepeval": [("a is so", "contradicted")]}},
        (stored.RAGAS, stored.DEEPEVAL),
    )
    (claim,) = audit.groups[0].views[0].claims
    assert wording.remark(claim, wording.names(audit.groups[0]), list(claim.words), audit.groups[0]) == (
        "supported by Ragas; contradicted by DeepEval"
    )


thousandths = st.floats(-1, 1, allow_nan=False)


@given(thousandths, thousandths, thousandths)
def test_the_parts_that_are_shown_sum_to_the_difference_that_is_shown(
    claims: float, verdicts: float, formula: float
) -> None:
    why = Why(1, 0.0, 0.0, claims + verdicts + formula, claims, verdicts, formula, 1, 0, 0, 0, 0.0)
    difference, parts = wording._rounded(why)
    assert round(1000 * difference) == sum(round(1000 * size) for size in parts.values())
    assert all(abs(size - getattr(why, name)) < 0.0015 for name, size in parts.items())
    assert all(parts[name] == 0 for name in parts if getattr(why, name) == 0)


@pytest.mark.parametrize(
    ("value", "told"),
    [(None, "–"), (0.0, "0.000"), (-0.0001, "0.000"), (0.25, "+0.250"), (-0.25, "−0.250")],
)
def test_numbers_have_a_sign_only_where_they_are_not_zero(value: float | None, told: str) -> None:
    assert phrases.signed(value) == told


def test_a_part_that_is_rounded_away_is_not_called_none() -> None:
    assert wording.part(0.0, 0.0) == "none"
    assert wording.part(0.0, 0.0002) == "under 0.001"


def test_a_hazard_tells_what_the_framework_returned() -> None:
    assert wording.hazard(Hazard("d", "failed: no claims", (1.0, 1.0), ("q",))) == (
        "failed: no claims; the framework itself returned 1"
    )
    assert wording.hazard(Hazard("d", "not applicable", (-1.0, 1.0), ("q",))).endswith("returned -1 to 1")


def test_what_a_hazard_tells_already_is_not_told_twice() -> None:
    what = "nothing to judge (here deepeval returned 1, which is kept out of means)"
    assert wording.hazard(Hazard("d", what, (1.0, 1.0), ("q",))) == what


def test_what_happened_to_several_definitions_on_the_same_records_is_told_once() -> None:
    (group,) = stored.router().groups
    a, b, c, d = (row.definition for row in group.rows[:4])
    found = (
        Hazard(a, "no context", None, ("q",)),
        Hazard(b, "no context", (1.0, 1.0), ("q",)),
        Hazard(c, "no context", (0.0, 0.0), ("q",)),
        Hazard(d, "no context", (0.0, 0.0), ("q",)),
        Hazard(d, "no context", (0.0, 0.0), ("r",)),
        Hazard(a, "no claims", (1.0, 1.0), ("s",)),
        Hazard(b, "no claims", (1.0, 1.0), ("s",)),
    )
    told = wording.hazards(replace(group, hazards=found), wording.names(group))
    assert [("".join(name.letter for name in who), what, ids) for who, what, ids in told] == [
        ("ABCD", "no context; the frameworks themselves returned 1 (B), 0 (C, D)", ("q",)),
        ("D", "no context; the framework itself returned 0", ("r",)),
        ("AB", "no claims; the frameworks themselves returned 1", ("s",)),
    ]


def test_lists_of_a_card_are_sentences_or_words() -> None:
    assert wording.field(("One thing.", "Another.")) == "One thing. Another."
    assert wording.field(["answer", "context"]) == "answer, context"
    assert wording.field([]) == "[]"
    assert wording.field({"a": 1}) == '{"a": 1}'


def test_units_of_two_definitions_whose_verdicts_do_not_name_them_are_not_called_missing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    # The second definition speaks of "sentence 1", which may well be the claim that the first one has.
    assert stored.DEEPEVAL.formula
    blind = replace(stored.DEEPEVAL, formula=replace(stored.DEEPEVAL.formula, named=False))
    judged = {"ragas": [("The sky is blue.", "supported")], "deepeval": [("sentence 1", "contradicted")]}
    audit = stored.audited({"q": judged}, (stored.RAGAS, blind))
    for text in (markdown.text(audit), page.html(audit), shown(audit, capsys)):
        assert "not among" not in text
        assert "alike by all" not in text
    audit = stored.audited({"q": judged}, (stored.RAGAS, stored.DEEPEVAL))
    said = shown(audit, capsys)
    assert "not among the claims of DeepEval" in said
    assert "not among the claims of Ragas" in said


def test_what_one_definition_judges_alone_is_not_called_alike(capsys: pytest.CaptureFixture[str]) -> None:
    audit = stored.audited(
        {"q": {"ragas": [("The sky is blue.", "supported"), ("Bees fly.", "absent")]}},
        (stored.RAGAS, stored.RATED),
        extra=[Score("q", stored.RATED.key, "f", 0.0)],
    )
    said = shown(audit, capsys)
    assert "2 claims judged by Ragas faithfulness alone" in said
    assert "alike by all" not in said


def test_a_word_without_a_counterpart_among_ours_is_no_disagreement_with_itself() -> None:
    word = Word("chunk", "yes", None, None, 1.0)
    (group,) = stored.audited({"q": {}}, (stored.RAGAS, stored.DEEPEVAL)).groups
    both = [stored.RAGAS.key, stored.DEEPEVAL.key]
    claim = Claim("chunk", "chunks, held against the answer", dict.fromkeys(both, word))
    assert wording.remark(claim, wording.names(group), both, group) == ""
    assert wording.says(word) == ("yes", "for")
    other = replace(claim, words={both[0]: word, both[1]: replace(word, native="no", credit=0.0)})
    assert wording.remark(other, wording.names(group), both, group) == "“yes” by Ragas; “no” by DeepEval"


def test_records_without_a_difference_are_not_shown_as_furthest_apart(capsys: pytest.CaptureFixture[str]) -> None:
    same = [("The sky is blue.", "supported")]
    audit = stored.audited({"q-same": {"ragas": same, "deepeval": same}}, (stored.RAGAS, stored.DEEPEVAL))
    assert "q-same" not in shown(audit, capsys)
    # Ragas adds 1e-8 to a denominator; both are shown as 1.000.
    (group,) = audit.groups
    padded = replace(audit, groups=(replace(group, views=(replace(group.views[0], spread=1e-8),)),))
    assert "q-same" not in shown(padded, capsys)


def test_a_cross_table_over_fewer_records_says_that_its_means_are_others() -> None:
    # Ragas alone judged q2: its mean is over two records, the cross table over one.
    judged = {"q1": dict.fromkeys(stored.SAYS, stored.ROUTER), "q2": {"ragas": stored.ROUTER}}
    told = "so that a definition's own cell is not its mean over all of its records."
    for records, expected in ((judged, True), ({"q1": judged["q1"]}, False)):
        audit = stored.audited(records, (stored.RAGAS, stored.DEEPEVAL))
        assert (told in markdown.text(audit)) is expected
        assert (told in page.html(audit).replace("&#39;", "'")) is expected


@pytest.mark.parametrize("columns", [60, 80])
def test_on_a_narrow_terminal_sentences_are_as_narrow(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "_width", lambda: columns)
    assert max(map(len, shown(stored.many(40), capsys).splitlines())) <= columns


def test_the_example_is_a_claim_that_is_soon_read() -> None:
    judged = (("| a | b | " * 40, "absent"), ("Bees fly.", "absent"))
    audit = stored.audited({"q": dict.fromkeys(stored.SAYS, judged)}, (stored.RAGAS, stored.DEEPEVAL))
    (group,) = audit.groups
    assert wording.example(group, wording.told(group)) == (
        "Bees fly.",
        "absent: Ragas counts it against; DeepEval counts it for",
    )


def two_systems(question_of_b: str) -> Audit:
    # a: 1 of 2 supported, none contradicted (Ragas 0.5, DeepEval 1); b: 2 of 3 supported, one contradicted (2/3, 2/3).
    one, red, two, up = ("One is so.", "supported"), ("Red.", "supported"), ("Two.", "absent"), ("Up.", "contradicted")
    audit = stored.audited(
        {id: dict.fromkeys(stored.SAYS, claims) for id, claims in {"qa": (one, two), "qb": (one, red, up)}.items()},
        (stored.RAGAS, stored.DEEPEVAL),
        systems={"qa": "a", "qb": "b"},
    )
    (group,) = audit.groups
    views = tuple(replace(view, question=question_of_b) if view.system == "b" else view for view in group.views)
    return replace(audit, groups=(replace(group, views=views),))


def test_the_winner_is_told_with_its_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    said = " ".join(shown(two_systems("Is it covered?"), capsys).split())
    assert "changes the winner in 1 of 1 pair." in said
    assert "The winner changes: b by Ragas (0.667; a 0.500), a by DeepEval (1.000; b 0.667)" in said
    assert wording.BY_MEANS in said
    assert "did not answer the same questions" not in said


def test_a_winner_that_stays_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    judged = {"qa": [("One is so.", "supported")], "qb": [("Two is so.", "contradicted")]}
    audit = stored.audited(
        {id: dict.fromkeys(stored.SAYS, claims) for id, claims in judged.items()},
        systems={"qa": "a", "qb": "b"},
    )
    said = " ".join(shown(audit, capsys).split())
    assert "changes the winner in 0 of 6 pairs. Best by all of them: a" in said


def test_systems_that_answered_other_questions_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    audit = two_systems("Who pays?")
    for text in (markdown.text(audit), page.html(audit), shown(audit, capsys)):
        said = " ".join(text.split())
        assert "The systems did not answer the same questions (a 1, b 1), which alone can make a winner." in said


@pytest.mark.parametrize(
    ("units", "one"),
    {
        "claims of the answer, held against the context": "claim",
        "entities of the reference, looked for in the context": "entity",
        "ranked chunks, by their use for the reference answer": "ranked chunk",
        "key points of the reference, looked for in the answer": "key point",
    }.items(),
)
def test_what_is_counted_has_a_name(units: str, one: str) -> None:
    assert wording.singular(units) == one
    assert wording.many(1, units) == f"1 {one}"
    assert units.startswith(wording.many(2, units).removeprefix("2 "))


def test_people_alone_are_a_source_without_a_formula() -> None:
    verdicts: Mapping[str, tuple[Verdict, ...]] = {"q": (Verdict("a is so", "absent", "absent"),)}
    audit = stored.audited({"q": {}}, people={"claims of the answer, held against the context": verdicts})
    cross = audit.groups[0].crosses[0]
    assert cross.sources == (PEOPLE,)
    text = markdown.text(audit)
    assert "| people | 0.000 | 1.000 | 0.000 | 0.000 |" in text


def test_of_definitions_that_agree_the_plainest_is_named() -> None:
    ones = (("ndcg", 0.5), ("ndcg.discount-2002", 0.75), ("ndcg.gain-linear.discount-2002", 0.75))
    found = Family("nDCG", tuple(Reading(name, "", mean, 1) for name, mean in ones), ())
    assert wording.family(found) == "nDCG is 0.500 (ndcg) or 0.750 (ndcg.discount-2002) on the same rankings."
    same = Family("nDCG", tuple(Reading(name, "", 0.5 + 1e-12 * n, 1) for n, (name, _) in enumerate(ones)), ())
    assert wording.family(same) == "nDCG is 0.500 by 3 definitions."


def test_a_group_without_parts_gives_one_reason_only_where_it_is_the_only_one() -> None:
    scores = [Score("q", stored.RATED.key, "f", 0.5)]
    judged = {"q": {"ragas": stored.ROUTER, "deepeval": stored.ROUTER}}
    (group,) = stored.audited(judged, (stored.RAGAS, stored.RATED), extra=scores).groups
    assert "have no parts: ragas/response_groundedness does not" in wording.headline(group, [])
    assert stored.DEEPEVAL.formula
    chunks = replace(stored.DEEPEVAL, formula=replace(stored.DEEPEVAL.formula, units="chunks, held against the answer"))
    (group,) = stored.audited(judged, (stored.RAGAS, chunks, stored.RATED), extra=scores).groups
    assert wording.headline(group, []).endswith("the differences have no parts, for 2 reasons told below.")


def test_a_ranking_alone_has_its_headlines() -> None:
    audit = stored.audited({}, (), families=(stored.FAMILY,), judge=None)
    said = (
        "Reciprocal rank is 0.375 (labels/reciprocal_rank.hits-averaged) or 0.500 (labels/reciprocal_rank) on the same "
        "rankings."
    )
    assert wording.family(stored.FAMILY) == said
    assert said in markdown.text(audit).replace("\\", "")
    assert said in page.html(audit)


def test_records_without_detail_leave_the_counts_of_claims_out() -> None:
    audit = stored.router()
    (group,) = audit.groups
    view = replace(group.views[0], question=None, answer=None, claims=(), parts={}, detailed=False)
    bare = replace(audit, groups=(replace(group, views=(view,)),))
    assert "nor contradicted (absent) counts against the score in Ragas faithfulness" in markdown.text(bare)
    assert "router" in page.html(bare)
