"""How near does judging come to the least wall time, and how near do the frameworks' own runners come?

    python benchmarks/judge_throughput.py                               200 records, 200 ms a call; minutes
    python benchmarks/judge_throughput.py --records 20 --only paribus   a quick look

A local endpoint (benchmarks/judge_stub.py, a process of its own) answers each call after --latency seconds. With 32
calls in flight the least wall time, the ideal, is calls x latency / 32. paribus scores the records with the
faithfulness, relevancy, precision and recall definitions of each framework, one framework after the other and then all
at once; beside it `deepeval.evaluate`, `ragas.evaluate` and `mlflow.genai.evaluate` score the same records, each with
its own concurrency set to 32. Calls are counted at the endpoint, retries included; imports and the building of inputs
are not part of the time. Exits with 1 if paribus takes more than 1.25 x the ideal anywhere, if one of its scores has no
value, or if a rival comes nearer to its ideal than paribus with the same framework.

Each contender runs in its own process, with telemetry off, in a temporary folder that is also its home.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib import import_module
from itertools import chain
from math import isnan
from pathlib import Path
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any
from urllib.request import Request, urlopen

from judge_stub import UNITS

if TYPE_CHECKING:
    from adapters.schema import Question, Record

CONCURRENCY = 32
LIMIT = 1.25
PARIBUS = {
    "ragas": ["ragas/faithfulness", "ragas/answer_relevancy", "ragas/context_precision", "ragas/context_recall"],
    "deepeval": [
        "deepeval/faithfulness",
        "deepeval/answer_relevancy",
        "deepeval/contextual_precision",
        "deepeval/contextual_recall",
    ],
    "trulens": ["trulens/groundedness", "trulens/answer_relevance", "trulens/context_relevance"],
}
RIVALS = {"deepeval": "deepeval.evaluate", "ragas": "ragas.evaluate", "mlflow": "mlflow.genai.evaluate"}
OFF = {
    "RAGAS_DO_NOT_TRACK": "true",
    "DEEPEVAL_TELEMETRY_OPT_OUT": "1",
    "DEEPEVAL_DISABLE_DOTENV": "1",
    "DEEPEVAL_DISABLE_LEGACY_KEYFILE": "1",
    "DEEPEVAL_UPDATE_WARNING_OPT_IN": "0",
    "DEEPEVAL_NO_INSPECT_PROMPT": "1",
    "ERROR_REPORTING": "0",
    "TRULENS_OTEL_TRACING": "0",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "TQDM_DISABLE": "1",
}
OWN_CONCURRENCY = {
    "MLFLOW_GENAI_EVAL_MAX_WORKERS": str(CONCURRENCY),
    "MLFLOW_GENAI_EVAL_MAX_SCORER_WORKERS": str(CONCURRENCY),
}


@dataclass(frozen=True)
class Row:
    """One line of the table. values: scores that came out, of `wanted`. seconds: wall time; cpu_seconds: of the
    contender's process, stub_cpu_seconds: of the endpoint's."""

    contender: str
    framework: str
    calls: int
    seconds: float
    most_in_flight: int
    cpu_seconds: float
    stub_cpu_seconds: float
    values: int
    wanted: int

    def ratio(self, latency: float) -> float:
        """Wall time over the ideal."""
        return self.seconds / (self.calls * latency / CONCURRENCY) if self.calls else float("inf")


@dataclass(frozen=True)
class Case:
    """One synthetic record: UNITS chunks of 60 words, UNITS sentences in the answer and in the reference."""

    question: str
    answer: str
    reference: str
    contexts: tuple[str, ...]


SUBJECTS = ("pump", "valve", "boiler", "filter", "motor", "sensor", "panel", "hose")
PARTS = ("seal", "gauge", "cable", "cover", "switch", "spring", "clamp")


def cases(count: int) -> list[Case]:
    """`count` different records, the same ones each time."""
    found = []
    for number in range(count):
        subject = f"{SUBJECTS[number % len(SUBJECTS)]} {100 + number}"
        facts = [
            f"The {PARTS[(number + place) % len(PARTS)]} of the {subject} lasts {number % 9 + place + 2} months."
            for place in range(UNITS)
        ]
        more = (
            f"Before work on the {subject} begins, the supply is closed and a notice is put up. Two people sign the "
            "sheet, one of whom has done the work before. Tools are counted when they go in and when they come out. "
            "What is worn goes back to the store with its number"
        )
        contexts = tuple(f"{fact} {more}, page {place + 1}." for place, fact in enumerate(facts))
        answer = " ".join(facts)
        found.append(Case(f"How long do the parts of the {subject} last?", answer, answer, contexts))
    return found


class Endpoint:
    """The stub, as its users and its observers see it."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.base_url = f"http://127.0.0.1:{port}/v1"

    def reset(self) -> None:
        """Set all figures to 0."""
        self._ask("POST", "reset")

    def stats(self) -> dict[str, float]:
        """The figures since the last reset."""
        return self._ask("GET", "stats")

    def _ask(self, method: str, path: str) -> dict[str, float]:
        with urlopen(Request(f"http://127.0.0.1:{self.port}/{path}", method=method)) as reply:
            figures: dict[str, float] = json.load(reply)
        return figures


@contextmanager
def endpoint(latency: float) -> Iterator[Endpoint]:
    """The stub in a process of its own, for as long as the body runs."""
    command = [sys.executable, str(Path(__file__).with_name("judge_stub.py")), "--latency", str(latency)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        yield Endpoint(int(process.stdout.readline()))
    finally:
        process.terminate()
        process.wait()


def measured(contender: str, framework: str, at: Endpoint, wanted: int, work: Callable[[], int]) -> Row:
    """`work` under the clock; it returns how many scores came out."""
    at.reset()
    began, cpu = perf_counter(), process_time()
    values = work()
    seconds, cpu_seconds = perf_counter() - began, process_time() - cpu
    stats = at.stats()
    return Row(
        contender=contender,
        framework=framework,
        calls=int(stats["calls"]),
        seconds=seconds,
        most_in_flight=int(stats["most_in_flight"]),
        cpu_seconds=cpu_seconds,
        stub_cpu_seconds=stats["cpu_seconds"],
        values=values,
        wanted=wanted,
    )


def as_records(inputs: Sequence[Case]) -> tuple[list[Question], list[Record]]:
    """The cases in paribus's own types."""
    from adapters.schema import Chunk, Question, Ranked, Record

    questions, records = [], []
    for number, case in enumerate(inputs):
        chunks = tuple(Chunk(f"d{place}", 0, len(text), text) for place, text in enumerate(case.contexts))
        ranking = tuple(Ranked(chunk, 1.0 / rank, rank) for rank, chunk in enumerate(chunks, 1))
        questions.append(Question(f"q{number}", case.question, reference_answer=case.reference))
        records.append(
            Record(
                f"q{number}",
                asked_k=UNITS,
                retrieved=ranking,
                reranked=ranking,
                context=chunks,
                answer=case.answer,
                refused=False,
            )
        )
    return questions, records


def paribus(inputs: Sequence[Case], at: Endpoint) -> list[Row]:
    """paribus, framework by framework and all at once."""
    from adapters.base import scorer
    from adapters.judges.openai import OpenAIJudge
    from runner.scoring import score

    import_module("openai")  # the client, which the judge imports on its first call

    questions, records = as_records(inputs)
    judge = OpenAIJudge(base_url=at.base_url, model="stub", embeddings="stub", concurrency=CONCURRENCY)
    rows = []
    for framework, names in {**PARIBUS, "all three": list(chain(*PARIBUS.values()))}.items():
        scorers = [scorer(name) for name in names]
        for each in scorers:
            each.prepare()
            each.definition.card()

        def work(scorers: Sequence[Any] = scorers) -> int:
            scores = score(scorers, questions, records, judge)
            reasons = {f"{s.definition}: {s.reason}" for s in scores if s.value is None}
            for reason in sorted(reasons)[:5]:
                print(reason, file=sys.stderr)
            return sum(s.value is not None for s in scores)

        rows.append(measured("paribus", framework, at, len(names) * len(inputs), work))
    return rows


def deepeval(inputs: Sequence[Case], at: Endpoint) -> list[Row]:
    """deepeval.evaluate with its class for OpenAI-compatible servers."""
    from deepeval import evaluate
    from deepeval.evaluate import AsyncConfig, CacheConfig, DisplayConfig, ErrorConfig
    from deepeval.metrics import (
        AnswerRelevancyMetric,
        ContextualPrecisionMetric,
        ContextualRecallMetric,
        FaithfulnessMetric,
    )
    from deepeval.models import LocalModel
    from deepeval.test_case import LLMTestCase

    # It makes a client for every call, 40 ms of CPU each: with the usual 5 seconds to connect, the evaluation fails.
    model = LocalModel(model="stub", base_url=at.base_url, api_key="none", temperature=0, timeout=300)
    kinds = [FaithfulnessMetric, AnswerRelevancyMetric, ContextualPrecisionMetric, ContextualRecallMetric]
    metrics = [kind(model=model, include_reason=False) for kind in kinds]
    test_cases = [
        LLMTestCase(
            input=case.question,
            actual_output=case.answer,
            expected_output=case.reference,
            retrieval_context=list(case.contexts),
        )
        for case in inputs
    ]

    def work() -> int:
        result = evaluate(
            test_cases=test_cases,
            metrics=metrics,
            async_config=AsyncConfig(max_concurrent=CONCURRENCY, throttle_value=0),
            display_config=DisplayConfig(show_indicator=False, print_results=False, inspect_after_run=False),
            cache_config=CacheConfig(write_cache=False),
            error_config=ErrorConfig(ignore_errors=True),
        )
        return sum(m.score is not None for found in result.test_results for m in found.metrics_data or ())

    return [measured(RIVALS["deepeval"], "deepeval", at, len(metrics) * len(inputs), work)]


def ragas(inputs: Sequence[Case], at: Endpoint) -> list[Row]:
    """ragas.evaluate, which takes the older classes of its metrics only."""
    from langchain_openai import ChatOpenAI, OpenAIEmbeddings
    from ragas import EvaluationDataset, RunConfig, SingleTurnSample, evaluate
    from ragas.metrics import AnswerRelevancy, ContextPrecision, ContextRecall, Faithfulness

    metrics = [Faithfulness(), AnswerRelevancy(), ContextPrecision(), ContextRecall()]
    dataset = EvaluationDataset(
        [
            SingleTurnSample(
                user_input=case.question,
                response=case.answer,
                reference=case.reference,
                retrieved_contexts=list(case.contexts),
            )
            for case in inputs
        ]
    )
    llm = ChatOpenAI(model="stub", base_url=at.base_url, api_key="none", temperature=0)
    # Without check_embedding_ctx_length=False it counts tokens with a file from the internet.
    embeddings = OpenAIEmbeddings(model="stub", base_url=at.base_url, api_key="none", check_embedding_ctx_length=False)

    def work() -> int:
        result = evaluate(
            dataset,
            metrics,
            llm=llm,
            embeddings=embeddings,
            run_config=RunConfig(max_workers=CONCURRENCY),
            show_progress=False,
        )
        return sum(not isnan(value) for row in result.scores for value in row.values())

    return [measured(RIVALS["ragas"], "ragas", at, len(metrics) * len(inputs), work)]


def mlflow(inputs: Sequence[Case], at: Endpoint) -> list[Row]:
    """mlflow.genai.evaluate with its scorers for the metrics of DeepEval, then of Ragas.

    Its scorers for TruLens download data of nltk and wait for 60 calls a minute; there is no setting for either.
    """
    import mlflow
    from mlflow.genai.scorers import deepeval as deepeval_scorers
    from mlflow.genai.scorers import ragas as ragas_scorers

    os.environ |= {"OPENAI_API_KEY": "none", "OPENAI_API_BASE": at.base_url, "OPENAI_BASE_URL": at.base_url}
    mlflow.set_tracking_uri("sqlite:///mlflow.db")
    model = "openai:/stub"
    d, r = deepeval_scorers, ragas_scorers
    by_framework = {
        "deepeval": [
            kind(model=model, include_reason=False)
            for kind in (d.Faithfulness, d.AnswerRelevancy, d.ContextualPrecision, d.ContextualRecall)
        ],
        "ragas": [
            kind(model=model) for kind in (r.Faithfulness, r.AnswerRelevancy, r.ContextPrecision, r.ContextRecall)
        ],
    }
    rows = []
    for framework, scorers in by_framework.items():
        mlflow.set_experiment(framework)  # traces keep the scores of an earlier evaluation
        ids = [_traced(case) for case in inputs]
        mlflow.flush_trace_async_logging()
        data = [
            {"trace": mlflow.get_trace(trace), "expectations": {"expected_output": case.reference}}
            for trace, case in zip(ids, inputs, strict=True)
        ]

        def work(scorers: Sequence[Any] = scorers, data: Sequence[Any] = data) -> int:
            result = mlflow.genai.evaluate(data=data, scorers=list(scorers))
            names = {scorer.name for scorer in scorers}
            given = [a for row in result.result_df["assessments"] for a in row if a["assessment_name"] in names]
            errors = {a["feedback"]["error"]["error_code"] for a in given if a["feedback"].get("error")}
            if errors:
                print(f"mlflow: {', '.join(sorted(errors))}", file=sys.stderr)
            return sum(a["feedback"].get("value") is not None for a in given)

        rows.append(measured(RIVALS["mlflow"], framework, at, len(scorers) * len(inputs), work))
    return rows


def _traced(case: Case) -> str:
    """The id of a trace of a system that retrieved and answered, as mlflow's scorers want it."""
    import mlflow
    from mlflow.entities import Document, SpanType

    with mlflow.start_span("answer") as root:
        root.set_inputs({"question": case.question})
        with mlflow.start_span("retrieve", span_type=SpanType.RETRIEVER) as span:
            span.set_inputs({"question": case.question})
            span.set_outputs([Document(page_content=text) for text in case.contexts])
        root.set_outputs(case.answer)
    return str(root.trace_id)


CONTENDERS: dict[str, Callable[[Sequence[Case], Endpoint], list[Row]]] = {
    "paribus": paribus,
    "deepeval": deepeval,
    "ragas": ragas,
    "mlflow": mlflow,
}


def in_own_process(name: str, records: int, at: Endpoint) -> list[Row]:
    """The rows of one contender. What it prints goes to our standard error."""
    with tempfile.TemporaryDirectory() as folder:
        root = str(Path(__file__).resolve().parents[1])
        command = [sys.executable, __file__, "--contender", name, "--records", str(records), "--port", str(at.port)]
        rows = Path(folder, "rows.json")
        subprocess.run(
            [*command, "--rows", str(rows)],
            cwd=folder,
            env={**os.environ, **OFF, **OWN_CONCURRENCY, "HOME": folder, "PYTHONPATH": root},
            stdout=sys.stderr,
            check=True,
        )
        return [Row(**row) for row in json.loads(rows.read_text())]


HEAD = (
    f"{'':<23}{'metrics of':<11}{'calls':>6}{'wall s':>8}{'ideal s':>8}{'ratio':>7}{'in flight':>11}{'CPU ms/call':>13}"
    f"{'scores':>12}"
)


def line(row: Row, latency: float) -> str:
    """A row of the table, at most 100 columns."""
    ideal = row.calls * latency / CONCURRENCY
    cpu = 1000 * row.cpu_seconds / max(1, row.calls)
    return (
        f"{row.contender:<23}{row.framework:<11}{row.calls:>6}{row.seconds:>8.1f}{ideal:>8.1f}{row.ratio(latency):>7.2f}"
        f"{row.most_in_flight:>11}{cpu:>13.1f}{f'{row.values}/{row.wanted}':>12}"
    )


def shortcomings(rows: Sequence[Row], latency: float) -> list[str]:
    """What was promised and did not hold, one sentence each."""
    ours = {row.framework: row for row in rows if row.contender == "paribus"}
    found = []
    for row in ours.values():
        if row.ratio(latency) > LIMIT:
            found.append(f"paribus, {row.framework}: {row.ratio(latency):.2f} x the ideal, more than {LIMIT}")
        if row.values != row.wanted:
            found.append(f"paribus, {row.framework}: {row.wanted - row.values} of {row.wanted} scores have no value")
    for row in rows:
        mine = ours.get(row.framework)
        if mine and row.contender != "paribus" and row.ratio(latency) <= mine.ratio(latency):
            found.append(f"{row.contender}, {row.framework}: nearer to its ideal than paribus")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=200)
    parser.add_argument("--latency", type=float, default=0.2, help="seconds from call to reply")
    parser.add_argument("--only", choices=list(CONTENDERS), action="append", help="one contender; may be repeated")
    # How the script calls itself for one contender.
    parser.add_argument("--contender", choices=list(CONTENDERS), help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--rows", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.contender:
        rows = CONTENDERS[options.contender](cases(options.records), Endpoint(options.port))
        options.rows.write_text(json.dumps([asdict(row) for row in rows]))
        return 0
    print(f"{options.records} records, {1000 * options.latency:g} ms a call, {CONCURRENCY} calls in flight")
    print(HEAD)
    rows: list[Row] = []
    with endpoint(options.latency) as at:
        for name in options.only or CONTENDERS:
            found = in_own_process(name, options.records, at)
            print("\n".join(line(row, options.latency) for row in found), flush=True)
            rows += found
    missed = shortcomings(rows, options.latency)
    for sentence in missed:
        print(sentence)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
