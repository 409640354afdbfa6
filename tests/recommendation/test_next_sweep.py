"""What is proposed to be swept next, and that each command composes."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from runner.app import composed
from runner.cli import main
from runner.diagnosis.findings import Diagnosed, Diagnosis, Fault, FaultName
from runner.recommendation.findings import NextSweep
from runner.recommendation.next_sweep import _typed, further, number
from runner.recommendation.recommend import recommend
from runner.results import StoredRun
from runner.sweep_folder import StoredSweep
from tests.recommendation.sweeps import TABLE, made, sweep

RECALL, F1 = TABLE
CHOICES = {
    "chunker": "recursive",
    "embedder": "wordllama",
    "retriever": "dense",
    "reranker": "none",
    "context": "budget",
    "prompt": "plain",
}
BEFORE = {**CHOICES, "chunker.size": "800", "retriever.k": "5"}


@pytest.fixture(scope="module")
def config() -> Mapping[str, Any]:
    return composed(["tracking=off", "metrics.definitions=[labels/recall,labels/answer_f1]", "metrics.table=null"])


def named(run: StoredRun) -> StoredRun:
    run.summary["choices"] = dict(CHOICES)  # type: ignore[index]
    return run


def of(config: Mapping[str, Any], recalls: Mapping[str, int], f1: Mapping[str, int] = {}, **more: Any) -> StoredSweep:
    """40 questions, of which the baseline finds 20; recalls: how many more a variant finds, and answers better."""

    def one(more: int, f1_more: int = 0) -> StoredRun:
        both = {RECALL: [1.0] * (20 + more) + [0.0] * (20 - more), F1: [1.0] * (20 + f1_more) + [0.0] * (20 - f1_more)}
        return named(made(both, table=TABLE, config={**config, "metrics": {"table": list(TABLE)}}))

    variants = {label: one(n, f1.get(label.lstrip("+"), 0)) for label, n in recalls.items()}
    return sweep(one(0), variants, before=BEFORE, **more)


def diagnosed(counts: Mapping[FaultName, int], levers: Mapping[FaultName, Sequence[str]]) -> Diagnosis:
    questions = tuple(Diagnosed(f"q{place}", "?", (Fault("buried", "rank 4"),), False, "") for place in range(40))
    return Diagnosis(
        name="baseline",
        folder=Path("0"),
        questions=questions,
        counts=counts,
        before=None,
        appeared={},
        gone={},
        levers={fault: tuple(many) for fault, many in levers.items()},
        missing={},
        unjudged=(),
        judged_only=(),
    )


def proposed(found: StoredSweep, diagnosis: Diagnosis | None = None) -> tuple[NextSweep, ...]:
    """What is proposed; every command must compose."""
    proposals = recommend(found, diagnosis).next
    for each in proposals:
        assert composes(each.command) == 0, each.command
    return proposals


@cache
def composes(command: str) -> int:
    program, *words = shlex.split(command)
    assert program == "paribus"
    return main([*words, "--dry-run", "--json"])


def commands(found: StoredSweep, diagnosis: Diagnosis | None = None) -> list[str]:
    return [each.command for each in proposed(found, diagnosis)]


def test_a_best_number_at_the_end_goes_on(config: Mapping[str, Any]) -> None:
    found = proposed(of(config, {"chunker.size=1600": 8, "chunker.size=400": -8}))
    assert [each.command for each in found] == ["paribus sweep chunker.size=1600,2400,3200"]
    assert found[0].why.startswith(
        "recall is best at chunker.size=1600, the end of what was tried (400 to 1600): go on"
    )


def test_a_best_number_between_others_is_looked_at_closer(config: Mapping[str, Any]) -> None:
    found = proposed(of(config, {"chunker.size=1600": 8, "chunker.size=3200": 2}))
    assert [each.command for each in found] == ["paribus sweep chunker.size=1600,1200,2400"]
    assert "between others: look closer around it" in found[0].why


def test_a_baseline_that_is_best_is_looked_at_closer_only_where_others_are_shown_worse(
    config: Mapping[str, Any],
) -> None:
    assert commands(of(config, {"retriever.k=1": -9, "retriever.k=9": -8})) == ["paribus sweep retriever.k=5,3,7"]
    assert "none of 2 variants" not in proposed(of(config, {"retriever.k=1": -9, "retriever.k=9": -2}))[0].why


def test_a_value_that_the_configuration_refuses_is_not_proposed(config: Mapping[str, Any]) -> None:
    """chunker.overlap=400 needs a size above it, and a step down from 500 would be 200."""
    overlapping = {**config, "chunker": {**config["chunker"], "overlap": 400}}
    assert commands(of(overlapping, {"chunker.size=500": 8}, overrides=["chunker.overlap=400"])) == []
    assert commands(of(config, {"chunker.size=500": 8})) == ["paribus sweep chunker.size=500,200"]


def test_kept_variants_become_the_baseline_and_each_is_taken_back(config: Mapping[str, Any]) -> None:
    found = proposed(
        of(
            config,
            {"retriever=bm25": 12, "retriever=hybrid": 15, "reranker=late_interaction": 13, "prompt=strict": -14,
             "prompt=concise": 1},
            overrides=["retriever=dense", "retriever.k=5", "tracking=off", "sweep=all", "sweep.dry_run=false"],
        )
    )  # fmt: skip
    assert found[0].command == (
        "paribus sweep retriever.k=5 tracking=off retriever=hybrid reranker=late_interaction "
        "retriever=dense,hybrid reranker=none,late_interaction prompt=plain,concise"
    )
    assert "retriever=hybrid and reranker=late_interaction are kept, each by itself" in found[0].why


def test_one_that_is_kept_becomes_the_baseline_for_the_rest(config: Mapping[str, Any]) -> None:
    found = proposed(of(config, {"reranker=late_interaction": 8, "retriever=bm25": 1, "retriever=hybrid": 2}))
    assert [each.command for each in found] == ["paribus sweep reranker=late_interaction retriever=bm25,hybrid"]
    assert commands(of(config, {"reranker=late_interaction": 8})) == []  # nothing else was swept


def test_around_a_system_of_ones_own_no_stage_is_swept(config: Mapping[str, Any]) -> None:
    made_of_stages = of(config, {"system=mine": 12, "reranker=late_interaction": 8, "retriever=bm25": 1})
    mine = made_of_stages.rows[1]
    assert mine.run
    own = replace(mine.run, config={**mine.run.config, "system": {"_target_": "mine.System"}})
    rows = (made_of_stages.rows[0], replace(mine, run=own), *made_of_stages.rows[2:])
    found = [recommend(each, None).next for each in (made_of_stages, replace(made_of_stages, rows=rows))]
    assert [[each.command for each in proposals] for proposals in found] == [
        [
            "paribus sweep system=mine reranker=late_interaction reranker=none,late_interaction retriever=dense,bm25",
        ],
        [],
    ]


@pytest.mark.parametrize("word", ["a b", "a\nb", "it's `x`", "a   b", "\u202eé\x1b[0m\\n", "漢字=1,2", "$'x'", ""])
def test_a_command_is_on_one_line_and_a_shell_reads_back_what_was_swept(word: str) -> None:
    typed = _typed(word)
    assert typed.isprintable()
    assert "  " not in typed
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash here")
    done = subprocess.run(
        [bash, "-c", f"printf %s {typed}"], capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"}
    )
    assert done.stdout.decode() == word


def test_where_nothing_can_be_told_more_questions_come_before_more_sweeps(config: Mapping[str, Any]) -> None:
    found = proposed(of(config, {"retriever.k=3": -2, "retriever.k=10": 4}, overrides=["tracking=off"]))
    assert [each.command for each in found] == ["paribus sweep tracking=off retriever.k=3,10"]
    # 4 of 40 up: s**2 = (4 - 40 * 0.01) / 39 = 0.0923, visible 2.8016 * 0.3038 / sqrt(40) = 0.1346; of 4 comparisons
    # z = 2.4977 + 0.8416 = 3.3393: 40 (0.1346 * 3.3393 / 2.8016 / 0.1)**2 = 102.9, to two figures 110.
    assert found[0].why.startswith("none of 2 variants can be told from the baseline with 40 questions: more questions")
    assert "would take about 110 questions in place of 40" in found[0].why


def test_the_most_common_fault_brings_its_lever(config: Mapping[str, Any]) -> None:
    levers: dict[FaultName, list[str]] = {
        "missed top ranked": ["retriever.k=10,20", "retriever=hybrid"],
        "buried": ["reranker=late_interaction", "context=reversed,edges"],
        "incomplete": ["prompt=detailed"],
    }
    counts: dict[FaultName, int] = {"missed top ranked": 9, "buried": 12, "incomplete": 4}
    one = of(config, {"reranker=late_interaction": -9})
    found = proposed(one, diagnosed(counts, levers))
    assert [each.command for each in found] == ["paribus sweep context=budget,reversed,edges"]
    assert found[0].why == "12 of 40 questions of the baseline: buried; not yet tried against it"
    tried = of(config, {"reranker=late_interaction": -9, "context=reversed": -8, "context=edges": -8})
    assert commands(tried, diagnosed(counts, levers)) == ["paribus sweep retriever.k=5,10,20 retriever=dense,hybrid"]
    assert commands(tried, diagnosed({}, {})) == []


def test_no_lever_needs_an_endpoint_or_what_was_read_from_an_earlier_run(config: Mapping[str, Any]) -> None:
    levers: dict[FaultName, list[str]] = {
        "missed top ranked": ["retriever.k=10,20"],
        "should have declined": ["generator=openai", "prompt=strict"],
    }
    counts: dict[FaultName, int] = {"missed top ranked": 9, "should have declined": 4}
    live = of(config, {"reranker=late_interaction": -9})
    assert commands(live, diagnosed(counts, levers)) == ["paribus sweep retriever.k=5,10,20"]
    frozen = of({**config, "records": {"frozen": True, "path": "earlier"}}, {"prompt=cited": -9})
    assert commands(frozen, diagnosed(counts, levers)) == ["paribus sweep prompt=plain,strict"]


def test_at_most_three_and_none_twice(config: Mapping[str, Any]) -> None:
    found = of(
        config,
        {"reranker=late_interaction": 8, "retriever.k=10": 9, "chunker.size=1600": 7, "prompt=concise": 1},
    )
    proposals = proposed(found, diagnosed({"buried": 3}, {"buried": ["context=edges"]}))
    assert len({each.command for each in proposals}) == len(proposals) == 3


def test_folders_and_quotes_are_typed_again(config: Mapping[str, Any], tmp_path: Path) -> None:
    folder = tmp_path / "my conf"
    (folder / "prompt").mkdir(parents=True)
    found = of(config, {"chunker.size=1600": 8}, overrides=["tracking.folder='a b'"], config_dirs=[str(folder)])
    (command,) = commands(found)
    assert shlex.split(command)[2:] == [
        f"--config-dir={folder}",
        "tracking.folder='a b'",
        "chunker.size=1600,2400,3200",
    ]


def test_without_the_overrides_of_the_sweep_nothing_is_proposed(config: Mapping[str, Any]) -> None:
    assert commands(of(config, {"chunker.size=1600": 8}, overrides=None)) == []


@pytest.mark.parametrize(
    ("tried", "best", "then"),
    [
        ([200, 400, 800], 800, [1200, 1600]),
        ([200, 400, 800], 200, [100]),
        ([300, 400], 300, [200, 100]),
        ([3, 5, 10], 5, [4, 8]),
        ([3, 4, 5], 4, []),
        ([1, 5], 1, []),
        ([0.25, 0.5], 0.5, [0.75, 1.0]),
        ([0.5, 1.0], 1.0, []),
        ([0.0, 0.5, 1.0], 0.5, [0.25, 0.75]),
        ([1.5, 3.0], 3.0, [4.5, 6.0]),
        ([-1, 0], -1, [-2, -3]),
        ([0, 50], 0, []),
    ],
)
def test_further_values(tried: list[float], best: float, then: list[float]) -> None:
    assert further(tried, best) == then


def test_numbers_are_numbers_only() -> None:
    assert [number(text) for text in ("5", "0.5", "null", "dense", "inf", "nan", None)] == [5, 0.5, *[None] * 5]
