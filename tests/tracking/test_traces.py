from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from time import sleep
from typing import Any

import pytest

from adapters.schema import JudgeCard, Question, Record, Score, Verdict
from runner import results
from runner.config import Tracking, Trial
from runner.diagnosis.findings import Fault
from runner.errors import StoreError
from runner.results import RunResult
from runner.tracking import Tracker
from runner.tracking.connection import Connection
from runner.tracking.traces import log_traces
from tests.tracking.made_results import result


def traces(client: Any, run_id: str, whole: bool = True) -> dict[str, Any]:
    """The traces of a run by question id."""
    experiment = client.get_run(run_id).info.experiment_id
    query = f"request_metadata.`mlflow.sourceRun` = '{run_id}'"
    found = client.search_traces(locations=[experiment], filter_string=query, max_results=500, include_spans=whole)
    return {trace.info.tags["paribus.question_id"]: trace for trace in found}


def logged(tracker: Tracker, made: RunResult, folder: Path, trial: Trial | None = None) -> str:
    results.write(made, folder)
    with tracker.run(made.name, trial or Trial(), {}) as handle:
        handle.log(made, folder, None)
    return handle.run_id


def scored(*scores: Score, **changed: Any) -> RunResult:
    """A result of one question with these scores."""
    made = result({score.definition: [0.0] for score in scores})
    return replace(made, scores=scores, **changed)


def test_every_question_is_a_trace_with_a_span_for_each_step(tracker: Tracker, client: Any, tmp_path: Path) -> None:
    run_id = logged(
        tracker, result({"labels/recall@5": [0.5, 1.0], "a/b": [0.25, "down"]}, judge="j"), tmp_path / "kept"
    )
    found = traces(client, run_id)
    assert set(found) == {"q0", "q1"}
    trace = found["q1"]
    assert trace.info.request_preview == '{"question": "Question 1?"}'
    assert trace.data.request == '{"question": "Question 1?"}'
    root, *inner = trace.data.spans
    assert (root.inputs, root.outputs) == ({"question": "Question 1?"}, "The rent is paid.")
    stages = ["retrieve", "rerank", "assemble", "generate", "judge"]
    assert [span.name for span in inner] == [*stages, "labels/recall@5", "a/b"]
    assert {span.parent_id for span in inner[:5]} == {root.span_id}
    assert {span.parent_id for span in inner[5:]} == {inner[4].span_id}
    assert inner[6].status.description == "down"
    assert client.get_run(run_id).data.tags["paribus.traces"] == "2 of 2 questions"


def test_a_score_is_an_assessment_with_its_reason_its_judge_and_its_definition(
    tracker: Tracker, client: Any, tmp_path: Path
) -> None:
    evidence = (Verdict("Two years.", "1", "supported"), Verdict("On Mars.", "0", "contradicted"))
    cards = {name: JudgeCard(name, "m") for name in ("openai", "labels", "lexical")}
    made = scored(
        Score("q0", "ragas/faithfulness", "f1", 0.5, evidence=evidence, judge=cards["openai"]),
        Score("q0", "a/people", "f2", 1.0, judge=cards["labels"]),
        Score("q0", "a/rules", "f3", 1.0, judge=cards["lexical"]),
        Score("q0", "labels/recall@5", "f4", 0.25),
        Score("q0", "a/failed", "f5", None, "failed", "the reply is no JSON", judge=cards["openai"]),
        Score("q0", "a/nothing", "f6", None, "not_applicable", "there is no answer"),
    )
    run_id = logged(tracker, made, tmp_path / "kept")
    told = {each.name: each for each in traces(client, run_id, whole=False)["q0"].info.assessments}
    assert set(told) == {score.definition.replace("/", ":") for score in made.scores}
    kinds = {name: (each.source.source_type, each.source.source_id) for name, each in told.items()}
    assert kinds["ragas:faithfulness"] == ("LLM_JUDGE", "openai m")
    assert [kinds[name][0] for name in ("a:people", "a:rules", "labels:recall@5")] == ["HUMAN", "CODE", "CODE"]
    whole = told["ragas:faithfulness"]
    assert whole.value == 0.5
    assert whole.rationale == "1. [1 (supported)] Two years.\n2. [0 (contradicted)] On Mars."
    assert whole.metadata == {
        "mlflow.assessment.sourceRunId": run_id,
        "key": "ragas/faithfulness",
        "definition": "ragas/faithfulness",
        "fingerprint": "f1",
        "judge": cards["openai"].fingerprint,
        "status": "computed",
    }
    assert told["a:failed"].value is None
    assert told["a:failed"].error.error_message == "the reply is no JSON"
    assert (told["a:nothing"].value, told["a:nothing"].error) == (None, None)
    assert told["a:nothing"].rationale == "there is no answer"
    assert told["a:nothing"].metadata["status"] == "not_applicable"


def test_faults_are_a_tag_and_an_assessment(tracker: Tracker, client: Any, tmp_path: Path) -> None:
    faults = (Fault("buried", "the passage is at rank 9"), Fault("incomplete", "1 of 3 claims"))
    made = replace(result({"labels/recall": [0.5, 1.0]}), faults={"q0": faults})
    found = traces(client, logged(tracker, made, tmp_path / "kept"), whole=False)
    assert found["q0"].info.tags["paribus.faults"] == "buried, incomplete"
    (fault,) = [each for each in found["q0"].info.assessments if each.name == "fault"]
    assert fault.value == "buried"
    assert fault.rationale == "buried: the passage is at rank 9\nincomplete: 1 of 3 claims"
    assert "paribus.faults" not in found["q1"].info.tags
    assert not [each for each in found["q1"].info.assessments if each.name == "fault"]


def test_the_same_question_has_the_same_request_in_every_run(tracker: Tracker, client: Any, tmp_path: Path) -> None:
    pair = [logged(tracker, result({"labels/recall": [value] * 3}), tmp_path / str(value)) for value in (0.25, 0.75)]
    ours, theirs = (traces(client, run_id) for run_id in pair)
    for id, trace in ours.items():
        assert trace.info.request_preview == theirs[id].info.request_preview
        assert trace.data.request == theirs[id].data.request
        assert trace.info.trace_id != theirs[id].info.trace_id


@pytest.mark.parametrize(("limit", "kept"), [(0, []), (2, ["q0", "q1"]), (9, ["q0", "q1", "q2"])])
def test_so_many_questions_become_traces_and_the_run_says_so(
    folder: Path, tmp_path: Path, limit: int, kept: list[str]
) -> None:
    tracker = Tracker(Tracking(folder=str(folder), traces=limit))
    run_id = logged(tracker, result({"labels/recall": [0.5] * 3}), tmp_path / "kept")
    assert sorted(traces(tracker._client, run_id, whole=False)) == kept
    tags = tracker._client.get_run(run_id).data.tags
    assert tags["paribus.traces"] == f"{len(kept)} of 3 questions"
    assert (f"Only the first {limit} of 3 questions" in tags["mlflow.note.content"]) == (limit < 3)


def test_awkward_texts_are_stored(tracker: Tracker, client: Any, folder: Path, tmp_path: Path) -> None:
    url = "http://bob:hunter2@127.0.0.1:5000"
    question = Question("q/1 \u00e9 \U0001f600", f"lone \ud800 {url} " + "x" * 9_000, reference_answer="\udfff y")
    made = scored(
        Score(question.id, "a/" + "k" * 300, "f", 0.5, reason=f"see {url}"),
        questions=(question,),
        records=(Record(question.id, answer=f"\udc00 {url}" + "z" * 90_000),),
    )
    (tmp_path / "kept").mkdir()
    with tracker.run("run", Trial(), {}) as handle:
        handle.log(made, tmp_path / "kept", None)
    (trace,) = traces(client, handle.run_id).values()
    assert trace.data.spans[0].inputs["question"].startswith("lone \\ud800 http://[removed]@127.0.0.1:5000")
    assert len(trace.data.spans[0].outputs) > 90_000
    names = {each.name: each for each in trace.info.assessments}
    assert names["reference answer"].value == "\\udfff y"
    assert len(max(names, key=len)) < 250
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert [path for path in files if b"hunter2" in path.read_bytes()] == []


def test_writing_twice_makes_one_trace(tracker: Tracker, client: Any, folder: Path, tmp_path: Path) -> None:
    made = result({"labels/recall": [0.5, 1.0]})
    run_id = logged(tracker, made, tmp_path / "kept")
    experiment = client.get_run(run_id).info.experiment_id
    log_traces(Connection(Tracking(folder=str(folder))), experiment, run_id, made, 9)
    found = traces(client, run_id)
    assert len(found) == 2
    assert len(found["q0"].data.spans) == 5
    assert [each.name for each in found["q0"].info.assessments] == ["labels:recall"]


@pytest.mark.parametrize("what", ["trace", "span", "assessment"])
def test_what_is_lost_is_told(tracker: Tracker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """Of three questions with five spans and one assessment each, one loses its trace, a span, or its assessment."""
    from mlflow.tracing.client import TracingClient

    start, log = TracingClient.start_trace, TracingClient.log_spans

    def loses(self: Any, info: Any) -> None:
        lost = "q1" in info.tags["paribus.question_id"]
        if lost and what == "assessment":
            info = replace(info, assessments=[])
        if not (lost and what == "trace"):
            start(self, info)

    def loses_span(self: Any, experiment_id: str, spans: list[Any]) -> None:
        if what != "trace":  # it would make the trace again
            log(self, experiment_id, spans[: -1 if what == "span" else None])

    monkeypatch.setattr(TracingClient, "start_trace", loses)
    monkeypatch.setattr(TracingClient, "log_spans", loses_span)
    told = {"trace": "2 of 3 traces", "span": "14 of 15 spans", "assessment": "2 of 3 assessments"}[what]
    with pytest.raises(StoreError, match=rf"holds {told}.* of run .*Nothing is lost"):
        logged(tracker, result({"labels/recall": [0.5] * 3}), tmp_path / "kept")


def test_names_that_differ_in_their_marks_stay_apart(tracker: Tracker, client: Any, tmp_path: Path) -> None:
    keys = ["labels/x", "labels:x", "labels_x3a_x", "fault", "reference answer"]
    made = scored(*(Score("q0", key, "f", place / 8) for place, key in enumerate(keys)))
    made = replace(
        made,
        questions=(Question("q0", "Why?", reference_answer="So."),),
        faults={"q0": (Fault("buried", "at rank 9"),)},
    )
    found = traces(client, logged(tracker, made, tmp_path / "kept"), whole=False)["q0"].info.assessments
    assert len({each.name for each in found}) == len(found) == len(keys) + 2
    assert {each.metadata["key"]: each.value for each in found if "key" in (each.metadata or {})} == {
        key: place / 8 for place, key in enumerate(keys)
    }


def test_long_texts_fit_the_columns_of_every_database(tracker: Tracker, client: Any, tmp_path: Path) -> None:
    """MySQL's TEXT has 65,535 bytes, and JSON has twelve for a character beyond the first 65,536."""
    long = "\U0001f600" * 100_000
    made = scored(
        Score("q0", "a/b", "f", 0.5, reason=long),
        Score("q0", "a/c", "f", None, "failed", long),
        questions=(Question("q0", long, reference_answer=long),),
        records=(Record("q0", answer=long, error=long),),
        faults={"q0": (Fault("buried", long),)},
    )
    (trace,) = traces(client, logged(tracker, made, tmp_path / "kept")).values()
    assert len(trace.info.assessments) == 4
    for each in trace.info.assessments:
        assert len((each.rationale or "").encode()) < 65_535
        assert len(json.dumps(each.value).encode()) < 65_535
        assert len(json.dumps(each.error.to_dictionary() if getattr(each, "error", None) else "")) < 65_535
    assert "more characters)" in trace.info.assessments[0].value
    assert len(trace.info.request_preview) == len(trace.info.response_preview) == 1_000
    assert trace.data.spans[0].outputs == long


def test_ctrl_c_while_traces_are_written_ends_the_run_as_killed(
    tracker: Tracker, client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlflow.tracing.client import TracingClient

    sent = []

    def interrupted(self: Any, info: Any) -> None:
        sent.append(info)
        sleep(0.05)  # so that not all are sent before the main thread hears of it
        raise KeyboardInterrupt

    monkeypatch.setattr(TracingClient, "start_trace", interrupted)
    made = result({"labels/recall": [0.5] * 400})
    (tmp_path / "kept").mkdir()
    with pytest.raises(KeyboardInterrupt), tracker.run("run", Trial(), {}) as handle:
        handle.log(made, tmp_path / "kept", None)
    assert client.get_run(handle.run_id).info.status == "KILLED"
    assert len(sent) < 100
