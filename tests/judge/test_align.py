"""`paribus judge align`: labels of people read, the judge run on their answers, and what is told of the two."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adapters.base import scorer
from adapters.judges.lexical import LexicalJudge
from adapters.schema import Question, Record, from_json
from runner import drift, results
from runner.align import Report, align, as_data, write
from runner.cli import main
from runner.errors import ConfigError, DataError
from runner.human_labels import LabelFields, read_labels
from runner.results import RunResult
from runner.scoring import score
from tests.judge.said import CONTEXT, NO, SUPPORTED, UNSUPPORTED, YES, label, written
from tests.stages.openai_stub import OpenAIStub, Seen, StubReply, chat, openai_stub

__all__ = ["openai_stub"]

Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str]) -> Cli:
    def command(*arguments: str) -> tuple[int, str, str]:
        capfd.readouterr()
        try:
            code = main(["judge", *arguments])
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        return (code, *capfd.readouterr())

    return command


def aligned(lines: list[dict[str, Any]], *definitions: str, **more: Any) -> Report:
    return align(written(Path("human.jsonl"), lines), definitions=definitions or (SUPPORTED,), **more)


# The judge's values: YES 1, YES+NO 0.5, NO 0.
TUNE = [
    label("t1", [YES], ["supported"]),
    label("t2", [YES, NO], ["supported", "absent"]),
    label("t3", [NO], ["absent"]),
]
HELD_OUT = [
    label("h1", [YES], ["supported"], split="held_out"),
    label("h2", [NO], ["absent"], split="held_out"),
    label("h3", [NO, YES], ["contradicted", "supported"], split="held_out", who="Ada"),
    label("h4", [NO], ["supported"], split="held_out", who="Ben"),  # Ben is wrong, or the judge is
]


def test_a_threshold_is_chosen_on_tune_and_reported_on_held_out_only() -> None:
    (found,) = aligned([*TUNE, *HELD_OUT]).alignments
    # On tune, from 1 on: 1 of 1 supported and 2 of 2 unsupported. From 0.5 on: 1/1 and 1/2.
    assert found.chosen is not None
    assert (found.threshold, found.chosen.n, found.chosen.balanced_accuracy) == (1.0, 3, 1.0)
    assert (found.lines, found.n, found.why) == ("held_out", 4, None)
    assert found.confusion.supported_supported == 1
    assert found.confusion.supported_unsupported == 1
    assert found.confusion.unsupported_unsupported == 2
    figures = {name: figure.value for name, figure in found.figures.items()}
    assert figures["accuracy"] == pytest.approx(3 / 4)
    assert figures["recall_unsupported"] == pytest.approx(1)
    assert figures["precision_unsupported"] == pytest.approx(2 / 3)
    # Chance 1/2 * 1/4 + 1/2 * 3/4 = 1/2: (3/4 - 1/2) / (1/2)
    assert figures["kappa"] == pytest.approx(0.5)
    # People 1 0 .5 1, judge 1 0 .5 0: deviations 3/8 -5/8 -1/8 3/8 and 5/8 -3/8 1/8 -3/8; products 15 + 15 - 1 - 9
    # = 20 of 64; squares 9 + 25 + 1 + 9 = 44 and 25 + 9 + 1 + 9 = 44. So 20/44.
    assert figures["pearson"] == pytest.approx(20 / 44)


def frozen(says: str) -> None:
    """A frozen sample of one record, on which the lexical judge once found YES `says`."""
    taken = drift.freeze(stored({"q1": YES}))
    (was,) = (each for each in taken.scores if each.definition == "mine/supported")
    evidence = tuple(replace(verdict, native=says, ours=says) for verdict in was.evidence)
    then = replace(was, evidence=evidence, value=float(says == "supported"))
    drift.save(replace(taken, scores=(then,)), Path("frozen.json"))


@pytest.mark.parametrize(("says", "moved"), [("supported", False), ("absent", True)])
def test_a_judge_with_a_frozen_sample_is_held_to_it_before_it_is_believed(says: str, moved: bool) -> None:
    frozen(says)
    report = aligned([*TUNE, *HELD_OUT], overrides=["judge=lexical", "judge.frozen=frozen.json"])
    assert report.drift is not None
    assert (report.drift.moved, report.drift.verdicts) == (moved, 1)
    assert report.notes[0] == str(report.drift)
    assert as_data(report)["drift"]["moved"] is moved
    assert aligned(TUNE).drift is None


def test_a_frozen_sample_that_cannot_be_read_ends_it_before_any_call() -> None:
    with pytest.raises(ConfigError, match=r"none\.json cannot be read"):
        aligned(TUNE, overrides=["judge=lexical", "judge.frozen=none.json"])


def test_with_a_run_the_drift_is_that_of_the_run() -> None:
    frozen("absent")
    found = drift.graded_again(LexicalJudge(frozen="frozen.json"), [scorer(SUPPORTED)])
    stored({"q1": YES, "q2": NO}, found=found)
    people = [label("q1", [YES], ["supported"]), label("q2", [NO], ["absent"])]
    report = aligned(people, "mine/supported", run=Path("run"))
    assert report.drift == found
    assert report.notes[0].startswith("the judge moved, not the system: 1 of 1 verdicts")


@pytest.mark.parametrize("lines", [TUNE, HELD_OUT], ids=["tune only", "held_out only"])
def test_without_both_splits_the_middle_of_the_range_is_the_threshold(lines: list[dict[str, Any]]) -> None:
    (found,) = aligned(lines).alignments
    assert (found.lines, found.threshold, found.chosen, found.n) == ("all", 0.5, None, len(lines))
    assert "chosen on lines of split tune and reported on held_out" in str(found.why)


def test_people_who_say_the_same_of_all_tune_lines_choose_nothing() -> None:
    (found,) = aligned([TUNE[0], label("t4", [NO], ["supported"]), *HELD_OUT]).alignments
    assert (found.lines, found.threshold, found.n) == ("held_out", 0.5, 4)
    assert "say the same of every tune line" in str(found.why)


def test_a_definition_of_which_less_is_better_is_turned_round() -> None:
    more, less = aligned([*TUNE, *HELD_OUT], SUPPORTED, UNSUPPORTED).alignments
    assert less.confusion == more.confusion
    assert less.figures == more.figures
    assert (less.direction, less.threshold) == ("lower", 0.0)
    assert [each.value for each in less.disagreements] == [1.0]


def test_scores_are_shares_of_their_scale() -> None:
    lines = [
        label("a", [YES], 4, scale=[1, 4]),
        label("b", [NO], 3, scale=[1, 4]),
        label("c", [NO], 2, scale=[1, 4]),
        label("d", [NO], 0.2),
    ]
    path = written(Path("human.jsonl"), lines)
    assert [each.value for each in read_labels(path)] == pytest.approx([1, 2 / 3, 1 / 3, 0.2])
    (found,) = aligned(lines).alignments
    assert found.confusion.supported_unsupported == 1  # b: 2/3 of its scale is above the middle
    (found,) = aligned(lines, supported_from=0.7).alignments
    assert found.confusion.supported_unsupported == 0


def test_disagreements_come_worst_first_with_claims_and_reasons() -> None:
    lines = [label("x", [YES, NO], ["supported", "supported"]), label("y", [NO], ["supported"], who="Ben"), *TUNE]
    report = aligned([*lines, label("h", [YES], ["supported"], split="held_out")])
    assert report.alignments[0].disagreements == ()  # those of tune are not reported
    report = aligned(lines)
    first, *rest = report.alignments[0].disagreements
    assert (first.id, first.people, first.value, first.people_say, first.judge_says) == (
        "y",
        1.0,
        0.0,
        "supported",
        "unsupported",
    )
    assert first.evidence[0].unit == NO
    assert first.evidence[0].reason
    assert first.claims is not None
    assert first.claims[0].verdict == "supported"
    assert [each.id for each in rest] == ["t2"]  # 0.5 reaches the middle, and people want every claim supported


def test_claims_that_both_cut_alike_are_compared_word_by_word() -> None:
    lines = [*TUNE, label("z", [f"{YES.upper()}", NO], ["supported", "contradicted"])]
    lines[-1]["claims"].append({"text": "A claim that the judge does not make.", "verdict": "absent"})
    claims = aligned(lines).alignments[0].claims
    assert claims is not None
    assert (claims.matched, claims.of) == (6, 7)
    assert claims.words == {"supported: supported": 3, "absent: absent": 2, "contradicted: absent": 1}
    assert claims.rates["accuracy"].value == 1.0


def test_failed_and_inapplicable_are_counted_apart() -> None:
    (found,) = aligned(
        [*TUNE, label("f", ["BREAK"], ["absent"]), label("n", [YES], ["supported"], contexts=[])]
    ).alignments
    assert (found.n, found.failed, found.not_applicable) == (3, 1, 1)
    assert found.first_failure == "f: it broke"


# Files that cannot be used.


def test_every_fault_is_told_with_file_and_line() -> None:
    bad = [
        json.dumps(label("a", [YES], ["supported"])),
        "{",
        json.dumps(label("a", [YES], ["supported"])),
        json.dumps({**label("b", [YES], 0.5), "claims": []}),
        json.dumps(label("c", [YES], 3)),
        json.dumps(label("d", [YES], 5, scale=[1, 4])),
        json.dumps(label("e", [YES], ["maybe"])),
        json.dumps({key: value for key, value in label("f", [YES], 1).items() if key not in ("origin", "score")}),
        json.dumps(label("g", [YES], 1, when="yesterday", scale=[4, 1], labels=3)),
        json.dumps(label("h", [YES], 1, when="yesterday", scale=[4, 1])),
        json.dumps({**label("i", [YES], ["absent"]), "claims": []}),
        json.dumps(label("j", [YES, f" {YES}"], ["supported", "absent"])),
        json.dumps(label("k", [YES], 1e308, scale=[-1e308, 1.7e308])),
    ]
    Path("human.jsonl").write_text("\n".join(bad), encoding="utf-8")
    with pytest.raises(DataError) as told:
        read_labels(Path("human.jsonl"))
    lines = str(told.value).split("\n")
    for number, part in (
        (2, "not valid JSON"),
        (3, "id a is taken already, at human.jsonl:1"),
        (4, "score or claims are both there: keep one"),
        (5, 'score is 3, expected 0 to 1; another scale is written beside it, as in "scale": [1, 4]'),
        (6, "score is 5, expected 1 to 4"),
        (7, "claims[0].verdict is 'maybe', expected 'supported', 'contradicted' or 'absent'"),
        (8, "origin is missing"),
        (9, "labels is not a known field"),
        (10, "when is 'yesterday', expected a date or a time"),
        (10, "scale must be the lowest and the highest score"),
        (11, "claims is empty"),
        (12, f"claims has {YES} 2 times (supported, absent); keep one"),
        (13, "scale is wider than a number can be"),
    ):
        assert any(line.startswith(f"human.jsonl:{number}: ") and part in line for line in lines), part
    assert not any(line.startswith("human.jsonl:1:") for line in lines)


@pytest.mark.parametrize(
    ("content", "part"), [(None, "cannot read"), (b"", "has no label"), (b"\xff\xfe{\x00", "not UTF-8")]
)
def test_a_file_without_labels_is_told(content: bytes | None, part: str) -> None:
    if content is not None:
        Path("human.jsonl").write_bytes(content)
    with pytest.raises(DataError, match=part):
        read_labels(Path("human.jsonl"))


def test_labels_of_a_model_are_no_proof(cli: Cli) -> None:
    written(Path("human.jsonl"), [*TUNE, label("m", [YES], ["supported"], origin="model")])
    code, out, err = cli("align", "human.jsonl", "--definitions", SUPPORTED)
    assert (code, out) == (2, "")
    assert "human.jsonl:4: origin is model" in err
    assert "prove nothing about people" in err
    code, _, err = cli("align", "human.jsonl", "--allow-model-labels")
    assert code == 2
    assert "--allow-model-labels: no such argument" in err


def test_definitions_of_which_the_labels_do_not_speak_are_refused() -> None:
    with pytest.raises(ConfigError, match="rubric/relevance asks 'does the answer address"):
        aligned(TUNE, "rubric/relevance")
    with pytest.raises(ConfigError, match="labels/recall asks no judge"):
        aligned(TUNE, "labels/recall")
    with pytest.raises(ConfigError, match="did you mean"):
        aligned(TUNE, "rubric/relevanc")
    (found,) = aligned([label("s", [YES], 0.4), *TUNE], "rubric/relevance").alignments
    assert found.definition == "rubric/relevance"


# The command.


def test_the_command_prints_and_writes(cli: Cli, folder: Path) -> None:
    written(Path("human.jsonl"), [*TUNE, *HELD_OUT])
    code, out, err = cli("align", "human.jsonl", "judge=lexical", "--out", "found", "--definitions", SUPPORTED)
    assert code == 0
    assert "mine/supported" in out
    assert "4 answers (held_out)" in out
    assert "supported when ≥ 1, chosen on 3 tune (balanced accuracy 1.000)" in out
    assert "judge: lexical" in out
    assert max(map(len, out.splitlines())) <= 100
    assert "only 7 labels: with fewer than 50" in err
    stored = json.loads(Path("found/alignment.json").read_text(encoding="utf-8"))
    assert stored["judge"]["provider"] == "lexical"
    assert stored["labels"] == {"tune": 3, "held_out": 4}
    page = Path("found/disagreements.md").read_text(encoding="utf-8")
    assert "### h4" in page
    assert "- people (Ben): supported, 1.00" in page
    assert f"- judge on a unit: absent: {NO}" in page
    assert f"- context 1: {CONTEXT}" in page
    assert not (folder / "mlruns").exists()


def test_json_is_all_of_it_and_the_same_each_time(cli: Cli) -> None:
    written(Path("human.jsonl"), [*TUNE, *HELD_OUT])
    code, out, _ = cli("align", "human.jsonl", "--json", "--definitions", SUPPORTED, UNSUPPORTED, "judge=lexical")
    assert code == 0
    data = json.loads(out)
    assert [each["definition"] for each in data["alignments"]] == ["mine/supported", "mine/unsupported"]
    assert data["alignments"][0]["disagreements"][0]["claims"] == [{"text": NO, "verdict": "supported"}]
    again = cli("align", "human.jsonl", "judge=lexical", "--json", "--definitions", SUPPORTED, UNSUPPORTED)
    assert json.loads(again[1]) == data


def test_hostile_text_stays_text_in_the_page() -> None:
    nasty = "<script>x</script>\n# no heading [a](javascript:b) `c`"
    report = aligned([label("q", [NO], ["supported"], question=nasty, who=nasty, id=f"q\n{nasty}")])
    write(report, Path("out"))
    page = Path("out/disagreements.md").read_text(encoding="utf-8")
    assert "<script" not in page.replace("\\<script", "")
    assert "\n# no heading" not in page


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["align"], "takes one file of labels, got none"),
        (["align", "a.jsonl", "b.jsonl"], "takes one file of labels, got a.jsonl, b.jsonl"),
        (["align", "absent.jsonl"], "cannot read absent.jsonl"),
        (["align", "human.jsonl", "judge=lexicl"], "lexicl"),
        (["align", "human.jsonl", "judge.nothing=1"], "nothing"),
        (["align", "human.jsonl", "--nothing"], "--nothing: no such argument"),
        (["align", "human.jsonl", "--supported-from", "1.5"], "must be above 0 and at most 1"),
        (["align", "human.jsonl", "--run", "nowhere"], "nowhere is no result folder"),
        (["align", "human.jsonl", "--run", "nowhere", "judge=lexical"], "with --run the judge is that of the run"),
        (["align", "human.jsonl", "judge=replay", "judge.recording=absent.jsonl"], "judge: "),
    ],
)
def test_mistakes_end_with_2_and_a_sentence(cli: Cli, arguments: list[str], part: str) -> None:
    written(Path("human.jsonl"), TUNE)
    code, out, err = cli(*arguments)
    assert (code, out) == (2, "")
    assert part in err
    assert "Traceback" not in err


def test_nothing_but_failures_ends_with_1(cli: Cli) -> None:
    written(Path("human.jsonl"), [label("f", ["BREAK"], ["absent"])])
    code, out, _ = cli("align", "human.jsonl", "--definitions", SUPPORTED)
    assert code == 1
    assert "0 answers, 1 failed, 0 not applicable" in out


# Labels beside a run.


def stored(
    answers: dict[str, str], slices: dict[str, tuple[str, ...]] | None = None, found: drift.Drift | None = None
) -> Path:
    """A result folder of the lexical judge on these answers, by question id."""
    from adapters.schema import Chunk

    judge = LexicalJudge()
    definitions = [SUPPORTED, UNSUPPORTED, "rubric/relevance", "labels/recall"]
    scorers = [scorer(each) for each in definitions]
    questions = tuple(
        Question(name, "When does the shop open?", slices=(slices or {}).get(name, ())) for name in answers
    )
    context = (Chunk("shop", 0, len(CONTEXT), CONTEXT),)
    records = tuple(Record(name, context=context, answer=answer) for name, answer in answers.items())
    result = RunResult(
        name="run",
        config={"metrics": {"definitions": definitions}},
        config_fingerprint="",
        choices={},
        dataset={},
        definitions={each.key: each.definition for each in scorers},
        scores=score(scorers, questions, records, judge),
        records=records,
        questions=questions,
        environment={},
        calls={},
        started="2026-11-30T00:00:00Z",
        seconds=0.0,
        judge=judge.card,
        drift=found,
    )
    results.write(result, Path("run"))
    return Path("run")


def test_a_run_gives_the_judges_scores_and_people_correct_its_mean() -> None:
    run = stored({f"q{n}": (YES if n % 3 else NO) for n in range(60)})
    # 40 of 60 say YES. People judged q0 .. q19 (7 NO, 13 YES) and find three of the YES unsupported.
    lines = [
        label(f"q{n}", [YES if n % 3 else NO], ["supported" if n % 3 and n not in (1, 2, 4) else "absent"])
        for n in range(20)
    ]
    report = aligned(lines, "mine/supported", run=run)
    (found,) = report.alignments
    assert report.run == "run"
    assert report.judge == LexicalJudge().card
    assert (found.n, found.confusion.unsupported_supported) == (20, 3)
    mean = found.corrected
    assert mean is not None
    assert (mean.n, mean.rest) == (20, 40)
    assert mean.raw.value == pytest.approx(40 / 60)
    assert mean.labels.value == pytest.approx(10 / 20)
    # judge on the labelled 13/20, on the rest 27/40; both have 1 where people have 1.
    # cov = (10 - 20 * 13/20 * 10/20) / 19 = 3.5/19; var of all = 60 * 2/3 * 1/3 / 59; 1 + 20/40 = 3/2
    weight = (3.5 / 19) / (1.5 * (40 / 3 / 59))
    assert mean.weight == pytest.approx(weight)
    assert mean.corrected.value == pytest.approx(weight * 27 / 40 + 10 / 20 - weight * 13 / 20)
    assert json.dumps(as_data(report), allow_nan=False)


def test_the_mean_of_a_definition_of_which_less_is_better_is_its_own() -> None:
    run = stored({f"q{n}": (YES if n % 3 else NO) for n in range(30)})
    lines = [label(f"q{n}", [YES if n % 3 else NO], ["supported" if n % 3 else "absent"]) for n in range(12)]
    (found,) = aligned(lines, "mine/unsupported", run=run).alignments
    assert found.corrected is not None
    assert found.corrected.labels.value == pytest.approx(4 / 12)
    assert found.corrected.raw.value == pytest.approx(10 / 30)


def test_by_default_all_judged_definitions_of_which_claims_speak() -> None:
    run = stored({"q1": YES, "q2": NO})
    path = written(Path("human.jsonl"), [label("q1", [YES], ["supported"]), label("q2", [NO], ["absent"])])
    report = align(path, run=run)
    assert [found.definition for found in report.alignments] == ["mine/supported", "mine/unsupported"]
    assert any("left out: rubric/relevance" in note for note in report.notes)
    assert any("a corrected mean needs two of each" in note for note in report.notes)


def test_labels_of_other_questions_or_answers_do_not_count() -> None:
    run = stored({"q1": YES, "q2": NO, "q3": YES})
    lines = [
        label("q1", [YES], ["supported"]),
        label("q2", [YES], ["supported"]),
        label("q9", [YES], ["supported"]),
    ]
    report = aligned(lines, "mine/supported", run=run)
    assert report.labels == {"tune": 1}
    notes = "\n".join(report.notes)
    assert (
        "1 of 3 labels are of questions that the run does not have, and do not count; the first: human.jsonl:3" in notes
    )
    assert "1 of 3 labels are of another answer, and do not count; the first: human.jsonl:2" in notes
    with pytest.raises(DataError, match="no label is of an answer of run"):
        aligned(lines[1:], "mine/supported", run=run)
    with pytest.raises(ConfigError, match="labels/recall is no judged definition of run; they are mine/supported"):
        aligned(lines, "labels/recall", run=run)


def test_the_stored_files_are_what_is_read() -> None:
    run = stored({"q1": YES})
    assert from_json(Record, (run / "records.jsonl").read_text(encoding="utf-8").strip()).answer == YES


# Another judge, and the page that tells how to use it.


def test_a_model_as_judge_is_recorded_and_replayed_without_it(
    cli: Cli, openai_stub: OpenAIStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "*")

    def reply(seen: Seen) -> StubReply:
        (asked,) = (each["content"] for each in seen.body["messages"] if CONTEXT in each["content"])
        answer = asked.partition(f"\n{CONTEXT}")[0].split("\n")
        words = ["supported" if line == YES else "contradicted" for line in answer]
        return chat(json.dumps({"verdicts": words, "reasons": words}))

    openai_stub.answers(reply)
    written(Path("human.jsonl"), [*TUNE, *HELD_OUT])
    asked = ("judge=openai", f"judge.base_url={openai_stub.base_url}", "judge.model=m", "judge.structured=text")
    more = ("--json", "--definitions", SUPPORTED)
    code, out, err = cli("align", "human.jsonl", *asked, "--out", "found", *more)
    assert code == 0, err
    first = json.loads(out)
    assert first["judge"]["provider"] == "openai"
    assert first["alignments"][0]["claims"]["words"]["contradicted: contradicted"] == 1
    calls = len(openai_stub.requests)
    assert calls == len({tuple(line["answer"].split("\n")) for line in [*TUNE, *HELD_OUT]})
    replay = ("judge=replay", f"judge.recording=found/{results.RECORDING}")
    code, out, err = cli("align", "human.jsonl", *replay, *more)
    assert code == 0, err
    assert json.loads(out)["alignments"] == first["alignments"]
    assert len(openai_stub.requests) == calls


def test_the_labels_of_the_page_can_be_read() -> None:
    page = Path(__file__).parents[2] / "docs" / "judges.md"
    block = re.findall(r"```json\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)[0]
    lines, at = [], 0
    while at < len(block):
        found, at = json.JSONDecoder().raw_decode(block, at)
        lines.append(found)
        at += len(block[at:]) - len(block[at:].lstrip())
    one, two = read_labels(written(Path("human.jsonl"), lines))
    assert (one.value, two.value) == (0.5, pytest.approx(2 / 3))
    fields = set(re.findall(r"^\| (`.*?`) \|", page.read_text(encoding="utf-8"), re.MULTILINE))
    told = {name.strip("`") for field in fields for name in field.split(", ")}
    assert set(LabelFields.model_fields) - {"scale"} <= told
