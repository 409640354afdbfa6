"""The gate: rules, comparability, and what never passes. Runs are made by hand and written as result folders."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.base import scorer
from adapters.schema import Question
from runner import results
from runner.drift import Drift
from runner.errors import DataError
from runner.gate.accepted import Accepted, accepted, encoded, read
from runner.gate.checking import gate
from runner.gate.findings import Verdict
from runner.gate.rules import Rules
from runner.results import RunResult, StoredRun, read_run
from tests.labels.rankings import labelled, ranked
from tests.spine.commands import ROOT
from tests.tracking.made_results import result

Made = Callable[..., StoredRun]
Values = Mapping[str, list[float | str]]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """Writes a result and reads it back as a stored run."""
    count = iter(range(100))

    def write(values: Values | RunResult, **changes: Any) -> StoredRun:
        found = values if isinstance(values, RunResult) else result(values, **changes)
        folder = tmp_path / f"run{next(count)}"
        results.write(found, folder)
        return read_run(folder)

    return write


def decided(before: StoredRun | Accepted, after: StoredRun, anyway: bool = False, **rules: Any) -> Verdict:
    baseline = accepted(before) if isinstance(before, StoredRun) else before
    return gate(baseline, after, Rules.model_validate(rules), names=("baseline", "run"), anyway=anyway)


def told(verdict: Verdict) -> str:
    return "\n".join(map(str, verdict.checks))


def means_only(run: StoredRun, **means: tuple[float, int]) -> Accepted:
    """A baseline of means from elsewhere: value and number of questions by definition key."""
    data = json.loads(encoded(accepted(run)))
    data |= {"questions": [], "slices": {}}
    for definition in data["definitions"]:
        value, n = means[definition["key"].partition("/")[2].partition("@")[0]]
        definition["mean"] = {"value": value, "n": n, "failed": 0, "not_applicable": 1}
    return Accepted.model_validate_json(json.dumps(data))


def published() -> RunResult:
    """The published example. Hits: q1 ranks 2 (grade 2) and 4 (grade 1), q2 none, q3 ranks 1, 2, 5 (grades 2, 1, 2)."""
    grades = {"q1": {"a": 2, "b": 1}, "q2": {"c": 1}, "q3": {"d": 2, "e": 2, "f": 1}, "q4": {"g": 0}}
    rankings = {"q1": "xaxbx", "q2": "xxxxx", "q3": "dfxxe", "q4": "gxxxx"}
    scorers = [
        scorer({"id": f"labels/{name}", "k": 5, "unit": "document"})
        for name in ("recall", "success", "reciprocal_rank", "ndcg")
    ]
    questions: list[Question] = []
    scores, records = [], []
    for id, labels in grades.items():
        question = replace(labelled(labels), id=id)
        documents = [f"{id}{place}" if name == "x" else name for place, name in enumerate(rankings[id])]
        record = replace(ranked(documents, question), question_id=id, asked_k=5)
        questions.append(question)
        records.append(record)
        scores += [each.score(question, record) for each in scorers]
    blank = result({})
    definitions = {each.key: each.definition for each in scorers}
    return replace(
        blank, definitions=definitions, questions=tuple(questions), records=tuple(records), scores=tuple(scores)
    )


def test_the_published_example(made: Made) -> None:
    # recall: (2/2 + 0 + 3/3) / 3 = .667. MRR: (1/2 + 0 + 1) / 3 = .5. Success: (1 + 0 + 1) / 3 = .667.
    # nDCG, gains 2^g - 1: q1 (3/log2 3 + 1/log2 5) / (3 + 1/log2 3) = 2.3234 / 3.6309 = .6399;
    # q3 (3 + 1/log2 3 + 3/log2 6) / (3 + 3/log2 3 + 1/2) = 4.7915 / 5.3928 = .8885; (.6399 + 0 + .8885) / 3 = .5095.
    run = made(published())
    means = {key: definition.mean.value for key, definition in accepted(run).by_key.items()}
    assert [*means.values()] == pytest.approx([0.6667, 0.6667, 0.5, 0.5095], abs=1e-4)
    baseline = means_only(run, recall=(0.70, 3), success=(0.6667, 3), reciprocal_rank=(0.55, 3), ndcg=(0.52, 3))
    verdict = decided(baseline, run, default={"max_drop": 0.02})
    assert verdict.exit_code == 1
    assert [check.definition.partition("@")[0] for check in verdict.of("regression")] == [
        "labels/recall",
        "labels/reciprocal_rank",
    ]
    assert len(verdict.of("passed")) == 2
    assert all(check.unscored == ("q4",) and (check.n, check.of) == (3, 4) for check in verdict.checks)
    assert any(note.startswith("unscored: q4 (1 of 4 questions)") for note in verdict.notes)


@pytest.mark.parametrize(
    ("before", "after", "allowed", "passes"),
    [
        (0.8, 0.7, 0.1, True),  # in binary 0.8 - 0.1 > 0.7
        (0.55, 0.45, 0.1, True),
        (0.92, 0.82, 0.1, True),
        (0.8, 0.6999, 0.1, False),
        (0.5, 0.4799, 0.02, False),
        (0.5, 0.5, 0.0, True),
    ],
)
def test_a_drop_equal_to_the_allowance_passes(
    made: Made, before: float, after: float, allowed: float, passes: bool
) -> None:
    runs = made({"labels/recall": [before] * 3}), made({"labels/recall": [after] * 3})
    for baseline in (runs[0], means_only(runs[0], recall=(before, 3))):
        verdict = decided(baseline, runs[1], default={"max_drop": allowed})
        assert (verdict.result, verdict.exit_code) == (("passed", 0) if passes else ("regression", 1))


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.integers(0, 1000), st.integers(0, 1000))
def test_no_noise_turns_a_decision(before: int, lost: int) -> None:
    """Thousandths: a loss of exactly the allowance passes, one thousandth more fails, wherever it lies."""
    from runner.gate.checking import _fails
    from runner.gate.rules import Rule
    from runner.stats import Difference

    loss = before / 1000 - (before - lost) / 1000
    found = Difference(loss, None, None, 1, 1)
    assert not _fails(found, Rule(), lost / 1000)
    assert lost == 0 or _fails(found, Rule(), (lost - 1) / 1000)


def held(result: RunResult) -> StoredRun:
    """A result as it is read back, without files."""
    summary = json.loads(json.dumps(result.summary()))
    by_id = {each.id: each for each in result.questions}
    records = {each.question_id: each for each in result.records}
    return StoredRun(Path("run"), summary, result.config, by_id, records, result.by_definition())


WAYS: Sequence[Callable[[int, int], float]] = (
    lambda steps, of: steps / of,
    lambda steps, of: float(f"{steps / of:.12f}"),
    lambda steps, of: sum([1 / of] * steps),
    lambda steps, of: 1 - (of - steps) / of,
    lambda steps, of: steps * (1 / of),
)
"""A share as people and programs come to it; none is exact for most of them."""


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    st.data(), st.sampled_from((3, 7, 10, 12, 100, 1000)), st.sampled_from(WAYS), st.sampled_from(("mean", "interval"))
)
def test_what_equals_a_limit_passes_however_it_was_computed(
    data: st.DataObject, of: int, way: Callable[[int, int], float], on: str
) -> None:
    """Each question loses the same number of steps of 1 / of: that much is allowed, and one step less is not."""
    lost = data.draw(st.integers(1, of))
    before = data.draw(st.lists(st.integers(lost, of), min_size=2, max_size=9))
    after = [steps - lost for steps in before]
    runs = [held(result({"labels/recall": [steps / of for steps in side]})) for side in (before, after)]
    for allowed, outcome in ((lost, "passed"), (lost - 1, "regression")):
        rule = {"max_drop": abs(way(allowed, of)), "on": on}
        assert decided(*runs, default=rule).result == outcome
    mean = sum(after) / (of * len(after))
    for floor, outcome in ((mean, "passed"), (way(sum(after), of) / len(after), "passed"), (mean + 1e-6, "regression")):
        assert decided(*runs, default={"floor": floor}).result == outcome


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.data(), st.integers(2, 40), st.sampled_from(WAYS))
def test_a_coverage_that_equals_the_least_is_enough(
    data: st.DataObject, of: int, way: Callable[[int, int], float]
) -> None:
    scored = data.draw(st.integers(1, of - 1))
    whole = held(result({"labels/recall": [0.5] * of}))
    part = held(result({"labels/recall": [0.5] * scored + ["no reply"] * (of - scored)}))
    for least, outcome in ((scored, "passed"), (scored + 1, "error")):
        rule = {"max_drop": 0.0, "min_coverage": min(1.0, way(least, of))}
        assert decided(whole, part, default=rule).result == outcome
        assert decided(part, whole, default=rule).result == outcome


def test_a_floor_that_is_met_but_for_noise_passes(made: Made) -> None:
    run = made({"ragas/context_precision": [0.9999999999666667] * 3})
    assert decided(run, run, default={"floor": 1.0}).exit_code == 0
    low = decided(run, made({"ragas/context_precision": [0.98, 1.0, 1.0]}), default={"floor": 1.0})
    assert low.exit_code == 1
    assert "0.993333 is below the lowest allowed mean, 1" in told(low)


def test_a_definition_that_is_missing_never_passes(made: Made) -> None:
    before = made({"labels/recall": [0.8, 0.8], "ragas/faithfulness": [0.9, 0.9]})
    after = made({"labels/recall": [0.81, 0.81], "labels/ndcg": [0.7, 0.7]})
    verdict = decided(before, after, default={"max_drop": 0.02})
    assert verdict.exit_code == 2
    assert [str(check) for check in verdict.of("error")] == ["ragas/faithfulness: missing: the run does not have it"]
    assert any("new in this run and not looked at: labels/ndcg" in note for note in verdict.notes)
    # Named by the rules, it must be on both sides; with a floor alone, in the run.
    named = decided(before, after, definitions={"labels/ndcg": {"max_drop": 0.02}})
    assert (named.exit_code, "the baseline does not have it" in told(named)) == (2, True)
    assert decided(before, after, definitions={"labels/ndcg": {"floor": 0.6}}).exit_code == 0
    # Another definition of the same id is no stand-in.
    other = decided(made({"labels/recall@5": [0.8]}), made({"labels/recall@10": [0.9]}), default={"max_drop": 0.02})
    assert other.exit_code == 2
    assert "it has labels/recall@10, which is another definition" in told(other)


def test_what_is_not_comparable_is_refused_with_both_values(made: Made) -> None:
    before = made({"ragas/faithfulness": [0.8]}, checksum="aaa", judge="m1")
    after = made({"ragas/faithfulness": [0.5]}, checksum="bbb", judge="m2", version="2")
    verdict = decided(before, after, default={"max_drop": 0.02})
    assert verdict.exit_code == 2
    for word in ("definition", "ragas 1", "ragas 2", "judge", "m1", "m2", "dataset", "aaa", "bbb"):
        assert word in told(verdict)
    assert all(check.loss is None for check in verdict.checks)
    assert not any("bbb" in note for note in verdict.notes)
    forced = decided(before, after, anyway=True, default={"max_drop": 0.02})
    assert (forced.exit_code, forced.anyway) == (1, True)
    assert "ragas/faithfulness is compared although the definition differs" in forced.notes[0]
    assert "bbb" in forced.notes[0]


@pytest.mark.parametrize(("change", "word"), [({"direction": "lower"}, "direction"), ({"range": (0.0, 2.0)}, "range")])
def test_a_file_that_was_turned_round_is_refused(made: Made, change: dict[str, Any], word: str) -> None:
    run = made({"labels/recall": [0.8]})
    data = json.loads(encoded(accepted(run)))
    data["definitions"][0] |= change
    verdict = decided(Accepted.model_validate_json(json.dumps(data)), run, default={"max_drop": 0.02})
    assert (verdict.exit_code, f"the {word} differs" in told(verdict)) == (2, True)


def test_a_judge_that_moved_is_named_and_not_the_system(made: Made) -> None:
    values: Values = {"labels/recall": [0.9, 0.9], "ragas/faithfulness": [0.9, 0.9]}
    fell: Values = {"labels/recall": [0.5, 0.9], "ragas/faithfulness": [0.3, 0.3]}
    judge = {"judge": "m"}
    stood = Drift("s", "2026-01-01", 0.05, n=30, equal=1.0, mean_difference=0.0, verdicts=30, verdicts_equal=1.0)
    moved = replace(stood, moved=True, mean_difference=0.3, verdicts_equal=0.5)
    runs = [
        made(replace(judged_only(result(column, **judge)), drift=drift))
        for column, drift in ((values, stood), (fell, moved))
    ]
    verdict = decided(*runs, default={"max_drop": 0.02})
    assert verdict.exit_code == 2
    (error,) = verdict.of("error")
    assert "the judge moved, not the system" in error.told
    assert "mean absolute difference 0.300, for the baseline 0.000" in error.told
    assert [check.definition for check in verdict.of("regression")] == ["labels/recall"]


def judged_only(found: RunResult) -> RunResult:
    """Without a judge on what labels give."""
    scores = (replace(s, judge=None) if s.definition.startswith("labels/") else s for s in found.scores)
    return replace(found, scores=tuple(scores))


def test_a_question_that_could_not_be_judged_leaves_the_gate_incomplete(made: Made) -> None:
    before = made({"ragas/faithfulness": [0.8, 0.7, 0.6]}, judge="m")
    after = made({"ragas/faithfulness": [0.8, "the reply could not be parsed", 0.6]}, judge="m")
    verdict = decided(before, after, default={"floor": 0.65})
    assert verdict.exit_code == 2
    assert "incomplete: 2 of 3 questions have a value (without: q1; the first: the reply could not be" in told(verdict)
    enough = decided(before, after, default={"floor": 0.65, "max_drop": 0.0, "min_coverage": 0.66})
    assert enough.exit_code == 0
    # Means over the two common questions: (.8 + .6) / 2, and never with a 0 in place of what is missing.
    assert [(check.candidate, check.n) for check in enough.checks] == [(pytest.approx(0.7), 2)] * 2
    back = decided(after, before, default={"max_drop": 0.5})
    assert (back.exit_code, "the baseline is incomplete: 2 of 3" in told(back)) == (2, True)


def test_no_value_is_no_pass(made: Made) -> None:
    blank: Values = {"ragas/faithfulness": ["x", "x"]}
    assert "no question has a value" in told(decided(made(blank), made(blank), default={"max_drop": 1.0}))
    apart = made({"labels/recall": [0.5, "x"]}), made({"labels/recall": ["x", 0.5]})
    verdict = decided(*apart, default={"max_drop": 1.0, "min_coverage": 0.1})
    assert (verdict.exit_code, "no question has a value on both sides" in told(verdict)) == (2, True)
    run = made({"labels/recall": [0.5]})
    nothing = decided(run, run)
    assert (nothing.exit_code, "the rules look at nothing" in told(nothing)) == (2, True)


def test_questions_that_became_not_applicable_are_lost_too(made: Made) -> None:
    before, after = result({"ragas/faithfulness": [0.9, 0.1]}), result({"ragas/faithfulness": [0.9, "no claims"]})
    after = replace(after, scores=tuple(replace(s, status="not_applicable") if s.reason else s for s in after.scores))
    verdict = decided(made(before), made(after), default={"max_drop": 0.02})
    assert (verdict.exit_code, "incomplete: 1 of 2" in told(verdict)) == (2, True)
    # Where it never applied and now fails, a judgement is missing all the same.
    failed = result({"ragas/faithfulness": [0.9, "the judge was away"]})
    verdict = decided(made(after), made(failed), default={"max_drop": 0.02})
    assert (verdict.exit_code, "incomplete: 1 of 2" in told(verdict)) == (2, True)
    # Where it never applied, nothing is lost.
    assert decided(made(after), made(after), default={"max_drop": 0.02}).exit_code == 0


def test_an_interval_fails_only_when_it_excludes_the_allowance(made: Made) -> None:
    before = made({"labels/recall": [1.0] * 40})
    unsure = made({"labels/recall": [0.0] * 3 + [1.0] * 37})  # mean loss .075, interval about 0 to .16
    sure = made({"labels/recall": [0.0] * 20 + [1.0] * 20})  # mean loss .5, interval about .35 to .65
    assert decided(before, unsure, default={"max_drop": 0.05}).exit_code == 1
    verdict = decided(before, unsure, default={"max_drop": 0.05, "on": "interval"})
    assert (verdict.exit_code, verdict.result) == (0, "warning")
    assert "does not exclude that" in told(verdict)
    failed = decided(before, sure, default={"max_drop": 0.05, "on": "interval"})
    (check,) = failed.of("regression")
    assert check.low is not None
    assert check.low > 0.05
    one = decided(
        made({"labels/recall": [1.0]}), made({"labels/recall": [0.0]}), default={"max_drop": 0, "on": "interval"}
    )
    assert (one.exit_code, "use on: mean" in told(one)) == (2, True)
    baseline = means_only(before, recall=(1.0, 40))
    assert decided(baseline, sure, default={"max_drop": 0.05, "on": "interval"}).exit_code == 2


def test_flaky_questions_warn(made: Made) -> None:
    def fell(*flaky: str) -> RunResult:
        found = result({"ragas/faithfulness": [0.0, 0.9, 0.9, 0.9]}, judge="m")
        return replace(found, scores=tuple(replace(s, samples=3, flaky=s.question_id in flaky) for s in found.scores))

    before = made({"ragas/faithfulness": [0.9] * 4}, judge="m")
    limits = {"max_drop": 0.02, "floor": 0.8}
    assert decided(before, made(fell()), default=limits).exit_code == 1
    warned = decided(before, made(fell("q0")), default=limits)
    assert (warned.exit_code, len(warned.of("warning"))) == (0, 2)
    assert "it is gone without the 1 flaky questions (q0)" in told(warned)
    # Another question is flaky: the drop stays. All are: nothing is left that could clear it.
    assert decided(before, made(fell("q1")), default=limits).exit_code == 1
    assert len(decided(before, made(fell("q0", "q1", "q2", "q3")), default=limits).of("regression")) == 2
    # It is as uncertain where the baseline was the flaky one.
    high = result({"ragas/faithfulness": [0.9] * 4}, judge="m")
    shaky = replace(high, scores=tuple(replace(s, samples=3, flaky=s.question_id == "q0") for s in high.scores))
    assert len(decided(made(shaky), made(fell()), default=limits).of("warning")) == 2


def test_where_lower_is_better_a_rise_is_a_drop(made: Made) -> None:
    def turned(column: list[float | str]) -> RunResult:
        found = result({"labels/false_refusal_rate": column})
        cards = {key: replace(card, direction="lower") for key, card in found.definitions.items()}
        return replace(found, definitions=cards)

    before, after = made(turned([0.1, 0.1])), made(turned([0.2, 0.2]))
    assert decided(before, after, default={"max_drop": 0.05}).exit_code == 1
    assert decided(after, before, default={"max_drop": 0.05}).exit_code == 0
    assert decided(before, after, default={"floor": 0.15}).exit_code == 1
    assert decided(after, before, default={"floor": 0.15}).exit_code == 0
    means = means_only(before, false_refusal_rate=(0.1, 2))
    assert decided(means, after, default={"max_drop": 0.05}).exit_code == 1


def test_slices_have_rules_of_their_own(made: Made) -> None:
    def sliced(column: list[float | str]) -> StoredRun:
        found = result({"labels/recall": column, "labels/ndcg": column})
        origins = ("synthetic", "synthetic", "synthetic", "real")
        questions = (replace(q, origin=origin) for q, origin in zip(found.questions, origins, strict=True))
        return made(replace(found, questions=tuple(questions)))

    before, after = sliced([0.5, 0.5, 0.5, 1.0]), sliced([0.7, 0.7, 0.7, 0.5])
    overall = {"default": {"max_drop": 0.02}}
    assert decided(before, after, **overall).exit_code == 0
    real = {"origin:real": {"definitions": {"labels/recall": {"max_drop": 0.1}}}}
    verdict = decided(before, after, slices=real, **overall)
    assert verdict.exit_code == 1
    assert [str(check) for check in verdict.of("regression")] == [
        "labels/recall in origin:real: 1 -> 0.5, worse by 0.5, allowed 0.1"
    ]
    wrong = decided(before, after, slices={"origin:reel": {"default": {"max_drop": 0.1}}})
    assert (wrong.exit_code, "did you mean origin:real?" in told(wrong)) == (2, True)


def test_a_rule_takes_what_it_leaves_out_from_the_default(made: Made) -> None:
    before = made({"labels/recall": [1.0] * 4, "labels/ndcg": [1.0] * 4})
    after = made({"labels/recall": [0.9] * 4, "labels/ndcg": [0.9] * 4})
    verdict = decided(
        before, after, default={"max_drop": 0.02, "floor": 0.5}, definitions={"labels/recall": {"max_drop": 0.2}}
    )
    assert [(check.definition, check.rule, check.result) for check in verdict.checks] == [
        ("labels/recall", "max_drop", "passed"),
        ("labels/recall", "floor", "passed"),
        ("labels/ndcg", "max_drop", "regression"),
        ("labels/ndcg", "floor", "passed"),
    ]
    spared = decided(before, after, default={"max_drop": 0.02}, definitions={"labels/ndcg": None})
    assert {check.definition for check in spared.checks} == {"labels/recall"}
    assert any("because the rules say so: labels/ndcg" in note for note in spared.notes)
    typo = decided(before, after, definitions={"labels/recal": {"max_drop": 0.2}})
    assert (typo.exit_code, "did you mean labels/recall?" in told(typo)) == (2, True)


def test_an_error_outweighs_a_regression(made: Made) -> None:
    before = made({"labels/recall": [1.0], "labels/ndcg": [1.0]})
    verdict = decided(before, made({"labels/recall": [0.0]}), default={"max_drop": 0.02})
    assert (verdict.result, verdict.exit_code, len(verdict.of("regression"))) == ("error", 2, 1)


def test_means_over_another_number_of_questions_are_not_subtracted(made: Made) -> None:
    run = made({"labels/recall": [0.5, 0.5, 0.5]})
    verdict = decided(means_only(run, recall=(0.5, 4)), run, default={"max_drop": 0.02})
    assert (verdict.exit_code, "over 4 questions, the run's over 3" in told(verdict)) == (2, True)


def test_the_file_reads_back_as_it_was(made: Made, tmp_path: Path) -> None:
    run = made({"labels/recall": [1 / 3, 0.1, "no"], "ragas/faithfulness": [0.9, 0.2, 0.7]}, judge="m")
    baseline, file = accepted(run), tmp_path / "baseline.json"
    file.write_text(encoded(baseline), encoding="utf-8")
    assert read(file) == baseline
    assert str(tmp_path) not in file.read_text(encoding="utf-8")
    lines = file.read_text(encoding="utf-8").splitlines()
    assert sum('"values"' in line for line in lines) == 3  # a line a question
    assert baseline.values["labels/recall"] == {"q0": 1 / 3, "q1": 0.1}


def test_the_exported_schema_is_that_of_the_file(made: Made) -> None:
    from jsonschema import Draft202012Validator

    from runner.definitions import schema_of

    stored = json.loads((ROOT / "docs/schema/baseline.json").read_text(encoding="utf-8"))
    assert stored == schema_of("baseline"), "paribus schema baseline > docs/schema/baseline.json"
    baseline = json.loads(encoded(accepted(made({"ragas/faithfulness": [0.5, "no"]}, judge="m"))))
    Draft202012Validator(stored).validate(baseline)
    del baseline["definitions"][0]["fingerprint"]
    assert not Draft202012Validator(stored).is_valid(baseline)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda d: d.update(schema_version=2), "has schema_version 2, and 1 can be read"),
        (lambda d: d.pop("schema_version"), "has no schema_version"),
        (lambda d: d.update(datasset=1), "datasset is not a known key (did you mean dataset?"),
        (
            lambda d: d["definitions"][0].update(fingerprnt=1),
            "definitions.0.fingerprnt is not a known key (did you mean",
        ),
        (lambda d: d["definitions"][0].pop("fingerprint"), "definitions.0.fingerprint is missing"),
        (lambda d: d["definitions"][0]["mean"].update(value=float("nan")), "definitions.0.mean.value"),
        (lambda d: d["definitions"][0]["mean"].update(value="0.5"), "definitions.0.mean.value='0.5' is not allowed"),
        (lambda d: d["definitions"][0]["mean"].update(value=0.9), "accept the run again"),
        (lambda d: d["definitions"][0]["mean"].update(n=7), "accept the run again"),
        (lambda d: d["questions"][0].update(values=[2.0]), "outside its range 0 to 1"),
        (lambda d: d["questions"][0].update(values=[]), "has 0 for 1 definitions"),
        (lambda d: d["questions"][1].update(id="q0"), "questions has 'q0' twice"),
        (lambda d: d["slices"]["origin:real"].update(means=[0.1]), "slices.origin:real of labels/recall is 0.1"),
        (lambda d: d.update(accepted="2026-03-01T23:30:00"), "accepted='2026-03-01T23:30:00' is not allowed"),
        (lambda d: d.update(definitions=[]), "definitions=[] is not allowed"),
    ],
)
def test_a_broken_file_is_refused_with_its_key(
    made: Made, tmp_path: Path, spoil: Callable[[dict[str, Any]], object], message: str
) -> None:
    data = json.loads(encoded(accepted(made({"labels/recall": [0.5, 0.7]}))))
    spoil(data)
    file = tmp_path / "baseline.json"
    file.write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(DataError) as fault:
        read(file)
    assert message in str(fault.value)
    assert "baseline.json" in str(fault.value)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda text: text.replace(' "definitions"', '<<<<<<< HEAD\n "definitions"', 1), "is no JSON (Expecting"),
        (lambda text: text.replace(' "questions"', ' "judges": {},\n "questions"', 1), "the key 'judges' stands twice"),
        (
            lambda text: text.replace("[0.7, ", "[0.75, "),
            "the values of the questions come to 0.625 over 2; accept the",
        ),
        (lambda text: text.replace("[0.7, ", "[NaN, "), "questions.1.values.0=nan is not allowed"),
        (lambda text: text.replace("[0.7, ", '["0.7", '), "questions.1.values.0='0.7' is not allowed"),
        (lambda text: text.replace("[0.7, ", "[true, "), "questions.1.values.0=True is not allowed"),
        (
            lambda text: "".join(line for line in text.splitlines(True) if '"key": "labels/recall"' not in line),
            "questions.0.values of 'q0' has 2 for 1 definitions",
        ),
        (lambda text: text[:-3], "is no JSON"),
        (lambda text: "", "is no JSON"),
    ],
    ids=["merge", "twice", "edited", "nan", "text", "true", "removed", "cut off", "empty"],
)
def test_a_file_that_was_edited_or_merged_is_refused_in_a_sentence(
    made: Made, tmp_path: Path, spoil: Callable[[str], str], message: str
) -> None:
    file = tmp_path / "baseline.json"
    text = encoded(accepted(made({"labels/recall": [0.5, 0.7], "labels/ndcg": [0.5, 0.5]})))
    file.write_text(spoil(text), encoding="utf-8")
    with pytest.raises(DataError) as fault:
        read(file)
    assert message in str(fault.value)
    assert "\n" not in str(fault.value)


def test_a_run_without_definitions_is_no_baseline(made: Made) -> None:
    with pytest.raises(DataError, match=r"no definition was computed in the run .*, so that nothing can be held to it"):
        accepted(made({}))
