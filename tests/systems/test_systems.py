"""Systems of one's own through the real command line: a function, a service, a file of answers."""

from __future__ import annotations

import json
import socket
from contextlib import suppress
from pathlib import Path
from threading import Thread
from time import sleep
from typing import Any

import pytest

from runner.component import build
from runner.errors import ComponentError, ConfigError
from runner.results import StoredRun, read_run
from runner.stage import System
from runner.systems.answers import AnswersSystem
from runner.systems.http import HttpSystem
from tests.spine.commands import DOCUMENTS, Say
from tests.stages.contracts import config_of
from tests.systems.conftest import Service

FUNCTION = ("dataset=jsonl", "tracking=off", "system=function", "system.function=mine:answer")


def run_of(folder: Path) -> StoredRun:
    return read_run(max(folder.glob("mlruns/results/*/*/summary.json")).parent)


def test_a_function_is_scored_by_the_same_definitions(say: Say, folder: Path, module: Path) -> None:
    said = say("run", *FUNCTION, "--json", fast=False)
    assert said.code == 0, said.err
    means = json.loads(said.out)["means"]
    # Each of the three labelled passages is in the paragraph that shares most words with its question.
    assert means["labels/recall"] == {"value": 1.0, "n": 3, "failed": 0, "not_applicable": 1}
    run = run_of(folder)
    record = run.records["q1"]
    assert record.context[0].doc_id == "bikes"
    assert record.context[0].text == DOCUMENTS["bikes"][: record.context[0].end]
    assert (record.asked_k, len(record.reranked), record.citations) == (2, 2, (0,))
    assert [(used.stage, used.tokens_in, used.tokens_out) for used in record.usage] == [("answer", 7, 3)]


def test_results_say_nothing_of_stages_that_did_not_run(say: Say, folder: Path, module: Path) -> None:
    say("run", *FUNCTION, fast=False)
    run = run_of(folder)
    assert run.config["system"]["function"] == "mine:answer"
    assert not {"chunker", "embedder", "retriever", "reranker", "context", "prompt", "generator"} & run.config.keys()
    assert not {"chunker", "retriever"} & run.summary["choices"].keys()


def test_its_parameters_are_swept_one_at_a_time(say: Say, folder: Path, module: Path) -> None:
    said = say("sweep", *FUNCTION, "+system.parameters.n=1,3", "system.k=1", "--json", fast=False)
    assert said.code == 0, said.err
    rows = json.loads(said.out)["rows"]
    assert [row["run"] for row in rows] == ["baseline", "system.parameters.n=1", "system.parameters.n=3"]


def test_answers_are_asked_for_once_and_again_for_another_version(say: Say, folder: Path, module: Path) -> None:
    def asked(*more: str) -> int:
        (folder / "calls.txt").unlink(missing_ok=True)
        assert say("run", *FUNCTION, *more, fast=False).code == 0
        file = folder / "calls.txt"
        return len(file.read_text().splitlines()) if file.exists() else 0

    assert asked() == 4
    assert asked() == 0
    assert asked("system.version=2026-12") == 4
    assert asked("system.concurrency=3") == 0
    module.write_text(module.read_text() + "\n# changed\n")
    assert asked() == 0  # the hash of a file is taken once in a process


def test_another_text_of_its_module_is_another_system(module: Path) -> None:
    from runner.component import source_hash

    config = {**config_of("system", "function"), "function": "mine:answer"}
    before = build(config, System, "system").fingerprint
    source_hash.cache_clear()
    module.write_text(module.read_text() + "\n# changed\n")
    assert build(config, System, "system").fingerprint != before


def test_what_a_function_raises_costs_one_question(say: Say, folder: Path, module: Path) -> None:
    said = say("run", *FUNCTION[:3], "system.function=mine:fails_on_coffee", fast=False)
    assert said.code == 0
    assert (
        "questions without an answer: 1; the first: q2: mine:fails_on_coffee raised LookupError: no beans" in said.err
    )
    assert "(mine.py, line" in said.err
    assert run_of(folder).scores["labels/recall"]["q2"].value == 0.0


def test_a_function_may_be_async_and_declining_is_told_by_its_words(say: Say, folder: Path, module: Path) -> None:
    assert say("run", *FUNCTION[:3], "system.function=mine:slowly", fast=False).code == 0
    assert {record.refused for record in run_of(folder).records.values()} == {True}


def test_each_function_is_called_with_arguments_of_its_own_in_one_loop(say: Say, folder: Path, module: Path) -> None:
    module.write_text(
        module.read_text()
        + """
LOCK = asyncio.Lock()
SEEN = []


async def odd(question, *, options):
    print("noise of the system")
    options.append(question)
    SEEN.append(asyncio.get_running_loop())
    async with LOCK:
        await asyncio.sleep(0.01)  # a lock that is waited for is bound to its loop
    if "coffee" in question:
        raise SystemExit(3)
    return f"{len(options)} {len({id(loop) for loop in SEEN})} \\ud800"


class Rag:
    def ask(self, question):
        return "asked"


rag = Rag()
"""
    )
    asked = ("run", *FUNCTION[:3], "system.function=mine:odd", "system.concurrency=4", "--json")
    said = say(*asked, "system.parameters.options=[]", fast=False)
    assert said.code == 0, said.err
    json.loads(said.out)
    assert "noise" not in said.out
    assert "mine:odd raised RuntimeError: sys.exit(3)" in str(run_of(folder).records["q2"].error)
    assert {record.answer for record in run_of(folder).records.values()} == {"1 1 \ufffd", None}
    assert say("run", *FUNCTION[:3], "system.function=mine:rag.ask", fast=False).code == 0


@pytest.mark.parametrize(
    ("overrides", "told"),
    [
        (["system.parameters.m=1"], "cannot be called with a question and m: got an unexpected keyword argument 'm'"),
        (["system.function=mine:slowly", "system.k=1"], "cannot be called with a question and k"),
        (["chunker.size=100"], "chunker.size=100 has no effect: with a system of your own the stages do not run"),
        (["embedder=lsa"], "embedder=lsa has no effect"),
        (["system.function=broken:f"], "'broken:f' cannot be imported (RuntimeError: no GPU here (broken.py, line 1))"),
        (["system.function=leaves:f"], "'leaves:f' cannot be imported (SystemExit: no key (leaves.py, line 1))"),
    ],
)
def test_mistakes_cost_no_question(say: Say, folder: Path, module: Path, overrides: list[str], told: str) -> None:
    (folder / "broken.py").write_text("raise RuntimeError('no GPU here')\n")
    (folder / "leaves.py").write_text("raise SystemExit('no key')\n")
    said = say("run", *FUNCTION, *overrides, fast=False)
    assert (said.code, told in said.err) == (2, True), said.err
    assert not (folder / "calls.txt").exists()


def test_contexts_of_a_system_are_not_frozen(say: Say, folder: Path, module: Path) -> None:
    assert say("run", *FUNCTION, fast=False).code == 0
    path = max(folder.glob("mlruns/results/*/*/summary.json")).parent
    said = say("run", "records=frozen", f"records.path={path}")
    assert (said.code, "is a run of a system of your own" in said.err) == (2, True), said.err


def test_mistakes_are_told_before_anything_runs(say: Say, folder: Path, module: Path) -> None:
    for override, told in {
        "system.function=mine:nothing": "system.function: 'mine:nothing' cannot be imported",
        "system.function=mine:NOT_A_FUNCTION": "is of type int, which cannot be called",
        "system.function=null": "system.function is missing; it has no default",
        "system.functoin=mine:answer": "system.functoin",
    }.items():
        said = say("run", *FUNCTION, override, fast=False)
        assert (said.code, told in said.err) == (2, True), said.err
    said = say("sweep", *FUNCTION, "chunker.size=100,200", fast=False)
    assert said.code == 2
    assert "chunker.size has no effect: with a system of your own the stages do not run" in said.err
    said = say("run", *FUNCTION[:3], "system.function=mine:a_number", fast=False)
    assert (said.code, "mine:a_number: it returned int '5'" in said.err) == (1, True)


def test_stages_and_a_system_are_compared_as_one_variable(say: Say, folder: Path, module: Path) -> None:
    (folder / "more/system").mkdir()
    (folder / "more/system/mine.yaml").write_text(
        "_target_: runner.systems.function.FunctionSystem\nfunction: mine:answer\n", encoding="utf-8"
    )
    said = say("sweep", "system=stages,mine", "--json")
    assert said.code == 0, said.err
    rows = json.loads(said.out)["rows"]
    assert [row["run"] for row in rows] == ["baseline", "system=mine"]
    assert rows[1]["differences"]


def http(service: Service, **changed: Any) -> HttpSystem:
    built = build({**config_of("system", "http"), "url": service.url, **changed}, System, "system")
    assert isinstance(built, HttpSystem)
    return built


def test_a_service_is_asked_with_the_question_k_and_parameters(service: Service) -> None:
    system = http(service, k=4, k_field="top", question_field="query", parameters={"alpha": 0.5})
    service.reply = lambda body: (200, {"answer": body["query"]}, {})
    assert system.answer("q1", "Why?").answer == "Why?"
    assert service.requests[0][0] == {"query": "Why?", "alpha": 0.5, "top": 4}


def test_a_service_that_is_busy_is_asked_again(service: Service) -> None:
    replies = [(503, b"busy", {}), (429, b"slow down", {"retry-after": "0"}), (200, {"answer": "at last"}, {})]
    service.reply = lambda body: replies[len(service.requests) - 1]
    assert http(service).answer("q1", "Why?").answer == "at last"
    assert len(service.requests) == 3


@pytest.mark.parametrize(
    ("reply", "told", "times"),
    [
        ((404, b"no such route", {}), "status 404: no such route", 1),
        ((429, b"later", {"retry-after": "4000"}), "status 429: later", 1),
        ((500, b"oops", {}), r"status 500: oops \(asked 2 times\)", 2),
        ((200, b"<html>", {}), "sent no JSON: <html>", 1),
        ((200, [], {}), r"it returned list '\[\]'", 1),
    ],
)
def test_a_service_that_fails_is_quoted(service: Service, reply: Any, told: str, times: int) -> None:
    service.reply = lambda body: reply
    with pytest.raises(ComponentError, match=told):
        http(service, attempts=2).answer("q1", "Why?")
    assert len(service.requests) == times


def test_nothing_that_listens_is_told(service: Service) -> None:
    service.server.shutdown()
    service.server.server_close()
    with pytest.raises(ComponentError, match=r"ConnectError .*\(asked 1 times\)"):
        http(service, attempts=1).answer("q1", "Why?")


def test_the_key_goes_into_the_request_and_nowhere_else(
    say: Say, folder: Path, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "s3cret-of-mine")
    service.reply = lambda body: (400, b"bad key s3cret-of-mine", {})
    say("run", "dataset=jsonl", "system=http", f"system.url={service.url}", "system.api_key_env=MY_KEY", fast=False)
    assert service.requests[0][1][
        "authorization" if "authorization" in service.requests[0][1] else "Authorization"
    ] == ("Bearer s3cret-of-mine")
    for path in folder.rglob("*"):
        assert not (path.is_file() and b"s3cret-of-mine" in path.read_bytes()), path


def test_secrets_and_odd_addresses_in_the_configuration_are_refused() -> None:
    for changed, told in (
        ({"headers": {"X-Api-Key": "k"}}, "X-Api-Key would be written into every result"),
        ({"url": "http://me:pw@host/"}, "must not hold credentials"),
        ({"url": "ftp://host/"}, "must be an address"),
        ({"url": "http://host/ask?code=pw"}, "must not hold credentials, a query"),
        ({"api_key_env": "sk-pw"}, "must be the NAME of an environment variable"),
        ({"fields": {"anser": "x"}}, "'anser' is not a field of ours"),
    ):
        with pytest.raises(ConfigError, match=told) as error:
            build({**config_of("system", "http"), "url": "http://h/", **changed}, System, "system")
        assert "pw" not in str(error.value).replace("http", "")


def test_a_key_that_is_not_set_is_told(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MY_KEY", raising=False)
    with pytest.raises(ConfigError, match=r"MY_KEY \(system\.api_key_env\) is not set"):
        _ = http(service, api_key_env="MY_KEY").fingerprint


def test_a_date_in_retry_after_is_waited_for(service: Service) -> None:
    far = "Wed, 21 Oct 2099 07:28:00 GMT"
    service.reply = lambda body: (429, b"later", {"retry-after": far})
    with pytest.raises(ComponentError, match=r"status 429: later$"):
        http(service).answer("q1", "Why?")
    assert len(service.requests) == 1  # it is too far away to wait for
    replies = [(429, b"", {"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}), (200, {"answer": "now"}, {})]
    service.reply = lambda body: replies[len(service.requests) - 2]
    assert http(service).answer("q1", "Why?").answer == "now"


def test_a_service_that_drips_is_stopped_after_the_timeout() -> None:
    # Every byte comes in time, all of them do not: a limit on single reads would wait for ever.
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            connection, _ = server.accept()
            with connection, suppress(OSError):
                connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
                while True:
                    connection.sendall(b"x")
                    sleep(0.05)

        Thread(target=drip, daemon=True).start()
        system = HttpSystem(url=f"http://127.0.0.1:{server.getsockname()[1]}/", timeout=0.5, attempts=1)
        with pytest.raises(ComponentError, match=r"no answer in 0\.5 s"):
            system.answer("q1", "Why?")


def test_a_service_that_has_moved_says_where(service: Service) -> None:
    service.reply = lambda body: (307, b"", {"location": "http://elsewhere.example/ask?token=t"})
    with pytest.raises(ComponentError, match=r"status 307: it has moved to http://elsewhere\.example/ask$"):
        http(service).answer("q1", "Why?")


ROWS = [
    {"id": "q1", "question": "Where?", "answer": "In the yard.", "contexts": ["Bicycles are parked in the yard"]},
    {"question": "Who buys the coffee beans ?", "answer": "Ada.", "contexts": ["Beans are bought by Ada."]},
    {"id": "q3", "question": "Which?", "answer": None, "contexts": []},
]


def answers(folder: Path, rows: list[dict[str, Any]]) -> Path:
    file = folder / "answers.jsonl"
    lines = [{"id": row.get("id", f"row {n}"), **row} for n, row in enumerate(rows)]
    file.write_text("".join(json.dumps(row) + "\n" for row in lines), encoding="utf-8")
    return file


def test_finished_answers_are_scored_by_id_or_by_question(say: Say, folder: Path) -> None:
    answers(folder, ROWS)
    said = say("run", "dataset=jsonl", "tracking=off", "system=answers", "system.path=answers.jsonl", fast=False)
    assert said.code == 0, said.err
    records = run_of(folder).records
    assert {id: record.answer for id, record in records.items()} == {
        "q1": "In the yard.", "q2": "Ada.", "q3": None, "q4": None,
    }  # fmt: skip
    assert [chunk.doc_id for chunk in records["q2"].context] == ["coffee"]
    assert "has no answer in the row of 'q3'" in str(records["q3"].error)
    assert "has no row with the id 'q4' or this question" in str(records["q4"].error)


def test_one_of_several_systems_in_a_file_is_named(folder: Path) -> None:
    rows = [{**ROWS[0], "system": name, "answer": name} for name in ("old", "new")]
    path = str(answers(folder, rows))
    config = {**config_of("system", "answers"), "path": path}
    with pytest.raises(ConfigError, match=r"system\.system is missing: .* holds answers of new, old; name one"):
        AnswersSystem(path=path).answer("q1", "Where?")
    chosen = build({**config, "system": "old"}, System, "system")
    assert chosen.answer("q1", "Where?").answer == "old"
    with pytest.raises(ConfigError, match="'newer' is not in"):
        AnswersSystem(path=path, system="newer").answer("q1", "Where?")


def test_other_answers_are_another_system_wherever_the_file_lies(folder: Path) -> None:
    path = answers(folder, ROWS)
    before = AnswersSystem(path=str(path)).fingerprint
    copy = folder / "copy.jsonl"
    copy.write_bytes(path.read_bytes())
    assert AnswersSystem(path=str(copy)).fingerprint == before
    answers(folder, [{**ROWS[0], "answer": "In the hall."}, *ROWS[1:]])
    assert AnswersSystem(path=str(path)).fingerprint != before


def test_rows_without_ids_belong_to_the_text_of_their_question(folder: Path) -> None:
    """Rows are counted from 1, and a test set may call its questions 1 and 2."""
    file = folder / "answers.jsonl"
    rows = [{"question": "Second?", "answer": "two"}, {"question": "First?", "answer": "one"}]
    file.write_text("".join(json.dumps({**row, "contexts": []}) + "\n" for row in rows), encoding="utf-8")
    system = AnswersSystem(path=str(file))
    assert [system.answer("1", "First?").answer, system.answer("2", "Second?").answer] == ["one", "two"]


def test_answers_to_each_others_questions_are_another_system(folder: Path) -> None:
    def fingerprint(first: str, second: str) -> str:
        rows = [{**ROWS[0], "question": first}, {**ROWS[1], "id": "q2", "question": second}]
        return AnswersSystem(path=str(answers(folder, rows))).fingerprint

    assert fingerprint("Where?", "Who?") != fingerprint("Who?", "Where?")
