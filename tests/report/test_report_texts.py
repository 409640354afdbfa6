"""A report as page, Markdown and files: its numbers, what it says of what it cannot know, and that texts are text."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from runner import markdown, pages, phrases
from runner.diagnosis.findings import JudgedOnly
from runner.diagnosis.rules import default_rules
from runner.errors import DataError
from runner.report import wording
from runner.report.material import material
from runner.sweep_folder import StoredSweep
from tests.audit.test_page import Seen
from tests.report import made

RULES = default_rules().model_dump()
LEVERS = {"missed_top_ranked": ["chunker.size=512,2048", "retriever=bm25"]}


def written(sweep: StoredSweep, folder: Path) -> tuple[str, str, Any]:
    """The text of the page, the Markdown, and the data."""
    data, text, page, *_ = made.written(sweep, folder)
    return Seen(page.read_text("utf-8")).text, text.read_text("utf-8"), json.loads(data.read_text("utf-8"))


def test_the_page_and_the_markdown_begin_with_the_decisions(tmp_path: Path) -> None:
    page, text, _ = written(made.sizes(), tmp_path)
    headline = (
        "Keep: chunker.size=128, chunker.size=512. Cannot tell 1 (retriever=bm25), not comparable 1 (retriever=other), "
        "failed 1 (retriever=broken)."
    )
    told = "A baseline and 5 variants, each with one setting changed (chunker.size, retriever), on 20 questions"
    for shown in (page, text.replace("\\", "")):
        assert 0 <= shown.index(headline) < 200
        assert told in shown
        assert "no score of any question changed, for characters of the prompt 800 → 400" in shown
        assert "ConfigError: no such retriever" in shown
        assert f"the dataset differs: tiny 2 (checksum {'c' * 64}) and tiny 2 (checksum {'d' * 64})" in shown


def test_names_keep_their_letters_in_the_first_sentence() -> None:
    base, flat = (0.0,) * 10, (0.5,) * 10
    swept = made.swept(
        made.row("baseline", made.scored(base, flat, name="baseline")),
        made.row("retriever=BM25", made.scored((1.0, *base[1:]), flat, name="retriever=BM25"), "dense"),
    )
    assert material(swept).headline == (
        "Keep the baseline: no variant is shown to be better in one thing and worse in none. "
        "Cannot tell 1 (retriever=BM25)."
    )


@pytest.mark.parametrize("name", ["sizes", "forty", "one question", "judged"])
def test_the_tables_have_the_numbers_of_the_data(name: str, tmp_path: Path) -> None:
    page, text, data = written(made.SWEEPS[name](), tmp_path)
    recommended = data["recommendation"]
    plain = text.replace("\\", "").replace("<br>", " ").replace("**", "")
    assert len(recommended["runs"]) >= 2
    for run in recommended["runs"]:
        for key in recommended["decisive"]:
            value = phrases.number(run["means"].get(key))
            row = next((row for row in run["rows"] if row["definition"] == key), None)
            if row is None:
                continue
            assert row["candidate"] == pytest.approx(run["means"][key])
            if row["changed"]:
                sign = {"better": "✓ ", "worse": "✗ "}.get(row["word"], "")
                delta, interval = phrases.signed(row["delta"]), phrases.interval(row["low"], row["high"])
                assert f"{value} {delta} {sign}{row['word']} {interval}" in page
                assert f"{value} {delta} {row['word']} {interval}" in plain
            else:
                assert f"{value} = unchanged" in page
                assert f"{value} =" in plain


def test_what_cannot_be_known_is_said(tmp_path: Path) -> None:
    page, text, _ = written(made.sizes(), tmp_path)
    for shown in (page, text):
        assert "retriever=broken has no results: ConfigError: no such retriever." in shown
        assert "Each variant changes one variable. What two of them do together was not run" in shown
        assert "The decision is over all questions, 5 for tuning and 3 held out; by slice they stand apart." in shown
        assert "2 of 8 questions are synthetic" in shown
        assert "“Cannot tell” is not “no difference”" in shown
        assert "tokens –: the generator counts no tokens" in shown
        assert "all costs –: no results (retriever=broken)." in shown
    assert "left out 1 of 9 questions" in page
    assert "faults of records questions.jsonl:4: id is missing" in page


def test_the_judge_is_named_with_what_it_says_against_itself(tmp_path: Path) -> None:
    page, text, data = written(made.judged(), tmp_path)
    for shown in (page, text.replace("\\", "")):
        assert "Judged definitions rest on the judge lexical rules. It says of itself: judge=lexical is rules" in shown
        assert "and weak. On 179 claims" in shown
    assert data["judge"]["provider"] == "lexical"
    assert "judge calls a record 1 + 1" in page


def test_a_judge_that_is_not_known_here_is_said_to_be_unknown() -> None:
    sweep = made.judged()
    assert sweep.baseline
    sweep.baseline.config["judge"]["_target_"] = "mine.OwnJudge"  # type: ignore[index]
    (told,) = material(sweep).warnings
    assert told.startswith("what is known of this judge cannot be looked up here: judge._target_='mine.OwnJudge'")


def test_one_run_has_a_report_without_decisions(tmp_path: Path) -> None:
    page, text, data = written(made.alone(), tmp_path)
    assert data["kind"] == "run"
    for shown in (page, text.replace("\\", "")):
        assert "answer_f1 0.500 and recall –." in shown
        assert "One run on 2 questions of tiny 2." in shown
        assert "No judge was asked" in shown
        assert "No question has labels, so nothing is known of what retrieval missed." in shown
        assert "this run" in shown
        assert "Decisions" not in shown
        assert "baseline" not in shown.replace("(baseline)", "")


def test_two_runs_are_compared_without_decisions(tmp_path: Path) -> None:
    rows = made.sizes().rows
    page, _, data = written(made.swept(rows[0], made.beside("candidate", rows[2].run)), tmp_path)
    assert data["kind"] == "comparison"
    assert "Better: recall (+0.500)." in page
    assert "One run beside a baseline, on 20 questions of tiny 2." in page
    assert "candidate" in page
    assert "Decisions" not in page
    assert "Questions that got better: 5 of 10" in page


def test_questions_behind_a_decision_are_shown_with_the_command_for_all(tmp_path: Path) -> None:
    page, text, data = written(made.sizes(), tmp_path)
    run = data["runs"]["chunker.size=512"]
    assert (len(run["worse"]), run["worse_in_all"], len(run["better"]), run["better_in_all"]) == (2, 2, 5, 10)
    assert "Questions that got worse: 2 Q" not in page
    assert "Questions that got worse: 2 " in page
    assert "relevant chunk gained (at 1)" in page
    assert "paribus compare baseline chunker.size=512" in page.replace("'", "")
    assert "answer\\_f1 0.500 → 0.400" in text


def test_faults_stand_beside_those_of_the_baseline_with_what_to_try(tmp_path: Path) -> None:
    # Ten of the twenty baseline rankings miss the right chunk, and 512 finds it everywhere.
    page, text, data = written(made.sizes(), tmp_path)
    counts = {label: found["counts"].get("missed top ranked", 0) for label, found in data["faults"].items()}
    assert counts["baseline"] == 10
    assert counts["chunker.size=512"] == 0
    (lever, *_) = data["faults"]["baseline"]["levers"]["missed top ranked"]
    assert lever in page
    assert f"`{lever}`" in text
    assert "0 −10" in page
    assert "| chunker.size=512 | 0 −10 |" in text


def test_rules_of_another_version_cost_the_faults_and_nothing_else(tmp_path: Path) -> None:
    sweep = made.sizes()
    assert sweep.baseline
    sweep.baseline.config["diagnosis"] = {"found_from": 0.5}  # type: ignore[index]
    page, text, data = written(sweep, tmp_path)
    assert data["faults"] == {}
    for shown in (page, text.replace("\\", "")):
        assert "Keep: chunker.size=128, chunker.size=512." in shown
        assert "what goes wrong in the answers is not shown: diagnosis." in shown
        assert "What goes wrong" not in shown


def test_a_drop_that_rests_on_chunks_without_a_label_is_doubted() -> None:
    # Of a fall by 0.2, judged chunks alone show 0.05: less than a half.
    report = material(made.sizes())
    own = report.faults["retriever=bm25"]
    doubted = JudgedOnly("labels/recall", 20, 0.3, 0.45, 0.5, 0.5)
    believed = JudgedOnly("labels/answer_f1", 20, 0.3, 0.35, 0.5, 0.5)
    object.__setattr__(own, "judged_only", (doubted, believed))
    ((label, told),) = wording.in_doubt(report)
    assert label == "retriever=bm25"
    assert told == (
        "recall fell from 0.500 to 0.300, but among labelled chunks alone it went from 0.500 to 0.450 (20 questions)"
    )


def test_a_sweep_without_a_baseline_cannot_be_reported(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"the baseline of .* has no results \(it broke\)"):
        made.written(made.swept(made.row("baseline", None, error="it broke")), tmp_path)


def test_the_page_fetches_nothing_and_runs_nothing(tmp_path: Path) -> None:
    _, _, page, *charts = made.written(made.hostile(), tmp_path)
    html = page.read_text("utf-8")
    seen = Seen(html)
    for tag, attributes in seen.elements:
        assert tag not in {"link", "img", "iframe", "object", "embed", "base", "script", "image", "use"}
        assert not {"src", "xlink:href"} & set(attributes)
        assert (attributes.get("href") or "#").startswith("#")
        assert not [name for name in attributes if name.startswith("on")]
    policy = next(each["content"] for tag, each in seen.elements if "http-equiv" in each)
    assert policy
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    (style,) = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    assert pages.policy_hash(style) in policy
    assert "</script><script>window.ran = 1</script>" in seen.text
    assert "{{ 7 * 7 }} {% raw %}" in seen.text
    assert len(html) < 300_000  # texts of 100 kB are cut
    assert charts


def test_markdown_is_safe_and_fits_whatever_the_texts_are(tmp_path: Path) -> None:
    _, text, _ = written(made.hostile(), tmp_path)
    assert len(text) <= markdown.LONGEST
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}) == 1
    rendered = MarkdownIt("gfm-like", {"linkify": False}).render(text)
    for tag in ("<script", "<img", "<h1>title"):
        assert tag not in rendered
    assert "@octocat" not in text


def test_forty_variants_fit_and_the_important_comes_first(tmp_path: Path) -> None:
    page, text, _ = written(made.forty(), tmp_path)
    assert len(text) <= markdown.LONGEST
    assert (
        text.index("## Decisions") < text.index("## Retrieval") < text.index("## Cost") < text.index("## Definitions")
    )
    assert page.count("option_with_a_long_name_20") >= 3
    assert (tmp_path / "report.html").stat().st_size < 600_000


def test_what_has_no_room_in_markdown_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(markdown, "LONGEST", 14_000)
    _, text, _ = written(made.forty(), tmp_path)
    assert len(text) <= 14_000
    assert "Left out, so that this fits into a comment: " in text
    assert "See report.html and report.json." in text


def test_figures_of_an_earlier_report_are_gone(tmp_path: Path) -> None:
    made.written(made.sizes(), tmp_path)
    assert {path.name for path in (tmp_path / "charts").iterdir()} == {
        "chunker.size.svg",
        "retriever.svg",
        "quality_and_cost.svg",
    }
    mine = tmp_path / "charts" / "mine.svg"
    mine.write_text('<svg xmlns="http://www.w3.org/2000/svg"/>', encoding="utf-8")
    made.written(made.alone(), tmp_path)
    assert [*(tmp_path / "charts").iterdir()] == [mine]


def test_a_variant_whose_record_is_lost_costs_its_questions_only() -> None:
    swept = made.sizes()
    before, _, broken, *rest = swept.rows
    assert broken.run
    records = {id: record for id, record in broken.run.records.items() if id != "q1"}
    lost = replace(broken, run=replace(broken.run, records=records))
    found = material(replace(swept, rows=(before, lost, *rest)))
    assert found.runs["chunker.size=512"].worse == ()
    assert "Keep: chunker.size=512" in found.headline
    assert any(note.startswith("chunker.size=512: its questions and slices are not shown: ") for note in found.notes)


def test_what_the_sweep_has_tried_is_not_proposed_for_its_baseline() -> None:
    swept = made.sizes()
    before = swept.rows[0]
    assert before.run
    run = replace(before.run, config={**before.run.config, "diagnosis": {**RULES, "levers": LEVERS}})
    found = material(replace(swept, rows=(replace(before, run=run), *swept.rows[1:])))
    assert found.faults["baseline"].levers["missed top ranked"] == ("chunker.size=2048",)


def test_a_prompt_of_many_lines_as_a_value_is_short_in_every_sentence(tmp_path: Path) -> None:
    swept = made.sizes()
    before, _, kept, *_ = swept.rows
    value = "Answer\n" + "x" * 5000 + "\u202e the end"
    label = f"prompt.template={value}"
    long = replace(kept, label=label, variable="prompt.template", value=value, override=label)
    _, text, data = written(replace(swept, rows=(before, long)), tmp_path)
    assert "Keep: prompt.template=Answer xxxxxxx" in data["headline"]
    assert "the end." in data["headline"]
    assert len(data["headline"]) < 100
    assert "x" * 100 not in text.partition("## What was tried")[0]
