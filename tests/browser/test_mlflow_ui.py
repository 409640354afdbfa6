"""MLflow's own pages as `paribus ui` serves them: what a person looks for is there, without our docs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from adapters.schema import Chunk, JudgeCard, Question, Ranked, Record, Score, StageUsage, Verdict
from runner import results
from runner.config import Tracking, Trial
from runner.diagnosis.findings import Fault
from runner.results import RunResult
from tests.browser.mlflow_pages import WAIT, follow, open_run, opened, served, unfold, unfold_reason
from tests.tracking.made_results import result

QUESTIONS = ("How long is the warranty?", "Who pays the rent?", "When was it built?")
CLAIMS = (Verdict("Two years.", "1", "supported", "the passage says so"), Verdict("On Mars.", "0", "contradicted"))


def made(
    recall: list[float], k: int = 2, questions: tuple[str, ...] = QUESTIONS, checksum: str = "c" * 64
) -> RunResult:
    """A run with these recalls; the last question has no judged score."""
    found = result({"labels/recall": [*recall]}, checksum=checksum)
    judge = JudgeCard("openai", "qwen2.5-7b")
    card = {"ragas/faithfulness": result({"ragas/faithfulness": [0.5]}).definitions["ragas/faithfulness"]}
    judged = [
        Score(f"q{n}", "ragas/faithfulness", "f", 0.5, evidence=CLAIMS, judge=judge, seconds=0.5)
        for n in range(len(questions) - 1)
    ]
    missing = Score(f"q{len(questions) - 1}", "ragas/faithfulness", "f", None, "failed", "no JSON", judge=judge)
    hits = tuple(Ranked(Chunk("lease", 9 * n, 9 * n + 9, f"passage {n}"), 1.0 / (n + 1), n + 1) for n in range(k))
    spent = tuple(StageUsage(name, 0.1) for name in ("retrieve", "rerank", "assemble", "generate"))
    records = tuple(
        Record(f"q{n}", k, hits, hits, tuple(hit.chunk for hit in hits), prompt="Answer.", answer=text, usage=spent)
        for n, text in enumerate(f"The answer to {question}" for question in questions)
    )
    return replace(
        found,
        definitions={**found.definitions, **card},
        scores=(*found.scores, *judged, missing),
        records=records,
        questions=tuple(Question(f"q{n}", text) for n, text in enumerate(questions)),
        faults={"q0": (Fault("buried", "the passage is at rank 9"),)},
    )


@pytest.fixture(scope="module")
def tracked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tracking folder with one finished sweep: baseline, two chunk sizes, and another test set."""
    from runner.tracking import Tracker

    folder = tmp_path_factory.mktemp("ui") / "mlruns"
    tracker = Tracker(Tracking(folder=str(folder)))
    other = made([1.0, 1.0, 0.0], questions=(*QUESTIONS[:2], "Is it heated?"), checksum="d" * 64)
    runs = {
        "baseline": made([1.0, 0.5, 0.0]),
        "chunker.size=200": made([0.0, 0.5, 0.0]),
        "chunker.size=400": made([1.0, 1.0, 1.0]),
        "dataset=other": other,
    }
    report = folder / "report"
    report.mkdir()
    (report / "report.html").write_text("<!doctype html><h1>What the sweep found</h1>")
    (report / "recall.svg").write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" width="90" height="30"><text y="20">recall</text></svg>'
    )
    table: list[dict[str, object]] = []
    with tracker.sweep("sweep of the day", {}, [{"run": name} for name in runs]) as parent:
        base = None
        for name, found in runs.items():
            variable, _, value = name.partition("=")
            trial = Trial(design="baseline", sweep="of the day", parent_run_id=parent.run_id)
            if base:
                changed = {"design": "variant", "variable": variable, "value": value, "baseline_run_id": base.run_id}
                trial = trial.model_copy(update=changed)
            results.write(replace(found, name=name), folder / "kept" / name)
            with tracker.run(name, trial, {}) as handle:
                handle.log(replace(found, name=name), folder / "kept" / name, base)
            base = base or tracker.load_baseline(handle.run_id)
            place = {"run": name, "variable": variable if value else None, "value": value or None}
            start = {"chunker.size": "800", "dataset": "sample"}.get(variable)
            for key, mean in found.means().items():
                delta = (mean.value or 0) - base.means[key]
                row = {**place, "baseline_value": start, "run_id": handle.run_id, "definition": key, "mean": mean.value}
                table.append({**row, "delta": delta if value else None})
        parent.log(table, failed=0, report=report)
    return folder


@pytest.fixture(scope="module")
def address(tracked: Path) -> Iterator[str]:
    """The address of one server for all tests of this file."""
    with served(tracked) as said:
        yield said


@pytest.fixture(scope="module")
def tab(browser: Browser) -> Iterator[Page]:
    """One page for all tests of this file, so that MLflow's scripts are loaded once."""
    expect.set_options(timeout=WAIT)
    with opened(browser) as page:
        yield page


@pytest.fixture
def runs(tab: Page, address: str) -> Page:
    """The list of runs, with the variants of the sweep unfolded."""
    unfold(tab, address, "sweep of the day", "chunker.size=400")
    return tab


def test_the_sweep_holds_its_variants_beside_variable_value_and_differences(runs: Page) -> None:
    for column in ("paribus.variable", "paribus.value", "labels/recall", "delta/labels/recall"):
        expect(runs.get_by_role("columnheader").filter(has_text=column).first).to_be_visible()
    shown = {" ".join(text.split()) for text in runs.get_by_role("row").all_inner_texts()}
    # recall of chunker.size=400 is 1, of the baseline (1 + 0.5 + 0) / 3 = 0.5
    assert any("0.5 1 chunker.size 400" in row or "1 0.5 chunker.size 400" in row for row in shown), shown


def test_a_description_says_what_a_run_is_and_which_questions_pair(runs: Page) -> None:
    open_run(runs, "dataset=other")
    expect(runs.get_by_text("all else is as in the")).to_be_visible()
    expect(
        runs.get_by_text("2 questions stand in both runs; 1 only here (q2); 1 only in the baseline (q2)")
    ).to_be_visible()


def test_a_chart_over_chunk_size_has_the_baseline_as_a_level(runs: Page) -> None:
    open_run(runs, "sweep of the day")
    expect(runs.get_by_text("Charts over")).to_have_count(1)  # a test set is no number
    follow(runs, "labels/recall")
    expect(runs.get_by_text("by/chunker.size/labels/recall vs baseline_by/chunker.size/labels/recall")).to_be_visible(
        timeout=WAIT
    )
    for series in ("(by/chunker.size/labels/recall)", "(baseline_by/chunker.size/labels/recall)"):
        expect(runs.get_by_text(series).first).to_be_visible()
    expect(runs.locator(".xtick").filter(has_text="400").first).to_be_visible()
    expect(runs.get_by_text("1 (step=400)").first).to_be_visible()
    expect(runs.get_by_text("0.5 (step=800)").first).to_be_visible()


def test_the_report_and_its_figures_are_shown(runs: Page) -> None:
    open_run(runs, "sweep of the day")
    follow(runs, "Report")
    expect(runs.frame_locator("iframe").get_by_text("What the sweep found")).to_be_visible()
    runs.get_by_text("recall.svg").click()
    expect(runs.locator("img[src^='blob:'], img[src*='recall.svg']").first).to_be_visible()


def test_a_trace_shows_its_steps_and_why_each_score_is_what_it_is(runs: Page) -> None:
    open_run(runs, "chunker.size=400")
    follow(runs, "Questions of this run")
    runs.get_by_text(QUESTIONS[0]).first.click()
    for step in ("retrieve", "rerank", "assemble", "generate", "judge", "ragas/faithfulness"):
        expect(runs.get_by_text(step, exact=True).first).to_be_visible()
    runs.get_by_role("button", name="Assess").click()
    for name, value in (("fault", "buried"), ("labels:recall", "1"), ("ragas:faithfulness", "0.5")):
        unfold_reason(runs, name, value)
    for told in ("[1 (supported)] Two years.", "[0 (contradicted)] On Mars.", "the passage is at rank 9"):
        expect(runs.get_by_text(told).first).to_be_visible()


def test_the_evaluation_view_puts_two_runs_side_by_side(runs: Page) -> None:
    open_run(runs, "chunker.size=400")
    follow(runs, "Compare with the baseline question by question")
    expect(runs.get_by_text("Comparing")).to_be_visible()
    for question in QUESTIONS:
        expect(runs.get_by_text(f'"question": "{question}"')).to_have_count(1)
    expect(runs.get_by_text("The answer to Who pays the rent?")).to_have_count(2)
    for name in ("labels:recall", "ragas:faithfulness"):
        expect(runs.get_by_text(name, exact=True).first).to_be_visible()
