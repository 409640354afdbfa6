"""The questions of a run as MLflow traces: steps as spans, scores and faults as assessments.

`mlflow.genai.evaluate` and the tracing SDK hand traces to a queue that drops what it cannot write in time; here each
trace is sent and answered for before the run goes on, and what is stored is counted afterwards.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from adapters.schema import Question, Record, Score
from runner.config import redacted
from runner.errors import StoreError
from runner.phrases import count, cut, listed
from runner.progress import Progress
from runner.results import RunResult
from runner.run_log import FAULT, REFERENCE, assessment_name, storable
from runner.tracking.address import is_remote
from runner.tracking.connection import Connection
from runner.tracking.spans import Step, encoded, laid_out, preview, rationale

if TYPE_CHECKING:
    from mlflow.entities import Assessment, AssessmentSource, Span, TraceInfo
    from mlflow.tracing.client import TracingClient

BATCH = 50
"""Questions whose spans are sent in one request."""
WRITERS = 4
"""Requests at a time to a server; eight are no faster (measured). A database on this machine takes one at a time."""
TEXT = 5_000
"""Characters of a reference answer or of a reason. MLflow keeps them as JSON in a column that has 64 kB in MySQL, and
a character takes 12 bytes at most; a rationale, which is no JSON, may be three times as long."""


def log_traces(to: Connection, experiment_id: str, run_id: str, result: RunResult, limit: int) -> int:
    """Write the first `limit` questions of `result` as traces of the run and return how many it was.

    Writing again what is there changes nothing. Raises StoreError where less is stored afterwards than was sent.
    """
    from mlflow.tracing.client import TracingClient

    client = to.call(TracingClient, to.uri)
    traces = list(_traces(experiment_id, run_id, result, limit))
    if not traces:
        return 0

    def start(trace: _Trace) -> int:
        info = trace.info()
        to.call(client.start_trace, info)
        return len(info.assessments)

    sent = {"trace": len(traces), "span": 0, "assessment": 0}
    with ThreadPoolExecutor(WRITERS if is_remote(to.uri) else 1) as writers:
        try:
            started = writers.map(start, traces)
            sent["assessment"] = sum(Progress(result.name).over("writing traces", started, len(traces)))
        except BaseException:
            writers.shutdown(cancel_futures=True)  # Ctrl-C would wait for all that is left
            raise
    for first in range(0, len(traces), BATCH):
        spans = [span for trace in traces[first : first + BATCH] for span in trace.spans()]
        to.call(client.log_spans, experiment_id, spans)
        sent["span"] += len(spans)
    stored = _stored(to, client, experiment_id, run_id)
    if lost := [f"{stored[kind]:,} of {count(n, kind)}" for kind, n in sent.items() if stored[kind] < n]:
        raise StoreError(f"{to.where} holds {listed(lost)} of run {run_id}; tracking.traces=0 leaves traces out")
    return len(traces)


def _stored(to: Connection, client: TracingClient, experiment_id: str, run_id: str) -> dict[str, int]:
    """How many traces, spans and assessments the run has. MLflow counts, which is cheaper than reading them."""
    from mlflow.entities.trace_metrics import AggregationType, MetricAggregation, MetricViewType

    found = {}
    for kind, view in (
        ("trace", MetricViewType.TRACES),
        ("span", MetricViewType.SPANS),
        ("assessment", MetricViewType.ASSESSMENTS),
    ):
        points = to.call(
            client.store.query_trace_metrics,
            [experiment_id],
            view,
            f"{kind}_count",
            [MetricAggregation(AggregationType.COUNT)],
            filters=[f"trace.metadata.`mlflow.sourceRun` = '{run_id}'"],
        )
        found[kind] = int(sum(point.values["COUNT"] for point in points))
    return found


@dataclass(frozen=True)
class _Trace:
    """One question on its way to MLflow. began: seconds of Unix time."""

    experiment_id: str
    run_id: str
    result: RunResult
    question: Question
    record: Record
    scores: tuple[Score, ...]
    step: Step
    began: float

    @property
    def id(self) -> str:
        """The same for the same run and question, so that a request that is sent twice makes one trace. So are the ids
        of its spans and assessments."""
        return f"tr-{_digest(f'{self.run_id} {self.question.id}')}"

    def info(self) -> TraceInfo:
        from mlflow.entities import TraceInfo, TraceLocation, TraceState

        answered = sum(used.seconds for used in self.record.usage)
        faults = ", ".join(fault.name for fault in self.result.faults.get(self.question.id, ()))
        tags = {
            "mlflow.traceName": self.question.id,
            "paribus.question_id": self.question.id,
            "paribus.run_id": self.run_id,
            "paribus.run": self.result.name,
            "paribus.slices": " ".join(self.question.slices),
            "paribus.faults": faults,
        }
        return TraceInfo(
            trace_id=self.id,
            trace_location=TraceLocation.from_experiment_id(self.experiment_id),
            request_time=int(self.began * 1000),
            state=TraceState.ERROR if self.record.error else TraceState.OK,
            request_preview=preview(self.question),
            response_preview=_cut(encoded(self.record.answer), 1_000),
            execution_duration=int(answered * 1000),
            trace_metadata={"mlflow.sourceRun": self.run_id},
            tags={key: _cut(storable(value), 4_000) for key, value in tags.items() if value},
            assessments=self.assessments(),
        )

    def assessments(self) -> list[Assessment]:
        from mlflow.entities import AssessmentError, AssessmentSource, Expectation, Feedback

        made: list[Assessment] = []
        if self.question.reference_answer is not None:
            answer = _clean(self.question.reference_answer, TEXT)
            made.append(Expectation(REFERENCE, answer, AssessmentSource("HUMAN", "test set")))
        for fault in self.result.faults.get(self.question.id, ())[:1]:
            told = "\n".join(f"{each.name}: {each.evidence}" for each in self.result.faults[self.question.id])
            rules = AssessmentSource("CODE", "paribus diagnosis")
            told = _clean(told, 3 * TEXT)
            made.append(Feedback(FAULT, fault.name, source=rules, rationale=told, metadata=self._metadata()))
        for score in self.scores:
            definition = self.result.definitions[score.definition]
            known = {
                "key": _cut(storable(score.definition), 250),
                "definition": _cut(storable(definition.id), 250),
                "fingerprint": score.fingerprint,
                "judge": score.judge.fingerprint if score.judge else "none",
                "status": score.status,
            }
            # What does not apply is no error, and MLflow shows an empty cell for it.
            reason = (
                AssessmentError(score.status, _clean(score.reason or "", TEXT)) if score.status == "failed" else None
            )
            made.append(
                Feedback(
                    assessment_name(score.definition),
                    score.value,
                    error=reason,
                    source=_source(score),
                    rationale=_clean(rationale(score, definition), 3 * TEXT),
                    metadata={**self._metadata(), **known},
                )
            )
        for each in made:
            each.assessment_id = f"a-{_digest(f'{self.id} {each.name}')}"
        return made

    def _metadata(self) -> dict[str, str]:
        return {"mlflow.assessment.sourceRunId": self.run_id}

    def spans(self) -> list[Span]:
        return list(self._spans(self.step, None, itertools.count(1)))

    def _spans(self, step: Step, parent: str | None, numbers: Iterator[int]) -> Iterator[Span]:
        from mlflow.entities import Span

        id = f"{next(numbers):016x}"
        known = {
            "mlflow.traceRequestId": self.id,
            "mlflow.spanType": step.kind,
            "mlflow.spanInputs": step.inputs,
            "mlflow.spanOutputs": step.outputs,
            **step.attributes,
        }
        yield Span.from_dict(
            {
                "trace_id": self.id,
                "span_id": id,
                "parent_span_id": parent,
                "name": storable(step.name),
                "start_time_unix_nano": int((self.began + step.start) * 1e9),
                "end_time_unix_nano": int((self.began + step.end) * 1e9),
                "status": {
                    "code": "STATUS_CODE_ERROR" if step.error else "STATUS_CODE_OK",
                    "message": _clean(step.error or "", TEXT),
                },
                "attributes": {key: encoded(value) for key, value in known.items()},
            }
        )
        for inner in step.steps:
            yield from self._spans(inner, id, numbers)


def _traces(experiment_id: str, run_id: str, result: RunResult, limit: int) -> Iterator[_Trace]:
    began = datetime.fromisoformat(result.started).timestamp()
    records = {record.question_id: record for record in result.records}
    scores = result.by_definition()
    for question in result.questions[:limit]:
        record = records[question.id]
        found = tuple(column[question.id] for column in scores.values() if question.id in column)
        step = laid_out(question, record, found)
        yield _Trace(experiment_id, run_id, result, question, record, found, step, began)
        began += step.end


def _source(score: Score) -> AssessmentSource:
    from mlflow.entities import AssessmentSource

    if score.judge is None:
        return AssessmentSource("CODE", "paribus")
    kind = {"labels": "HUMAN", "lexical": "CODE"}.get(score.judge.provider, "LLM_JUDGE")
    return AssessmentSource(kind, _cut(storable(f"{score.judge.provider} {score.judge.model}"), 250))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _clean(text: str, most: int) -> str:
    return cut(storable(str(redacted(text))), most)


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"
