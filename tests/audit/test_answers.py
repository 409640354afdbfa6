"""Answers are read alike from anybody's columns and any format; what cannot be read is told with its place."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters import formulas
from adapters.base import scorer
from adapters.isolation import framework
from adapters.judges.labels import HumanVerdicts, LabelsJudge
from adapters.schema import Chunk, Span, Verdict
from adapters.tasks import Support
from runner.audit.answers import Answers, _plain, read_answers
from runner.datasets.faults import validated
from runner.errors import ConfigError, DataError
from runner.human_labels import read_labels
from tests.adapters.calls import found
from tests.adapters.router import ANSWER, CLAIMS, PASSAGES, QUESTION, REFERENCE
from tests.dataset.files import write

Read = Callable[..., Answers]


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Read:
    """Writes rows as JSON Lines, or bytes under the name given, and reads them."""
    monkeypatch.chdir(tmp_path)

    def write_and_read(rows: Any, name: str = "answers.jsonl", **columns: str) -> Answers:
        write(Path(name), rows)
        return read_answers(Path(name), columns)

    return write_and_read


def refused(read: Read, *args: Any, **columns: str) -> str:
    with pytest.raises((DataError, ConfigError)) as caught:
        read(*args, **columns)
    return str(caught.value)


def texts(answers: Answers) -> list[list[str]]:
    return [[chunk.text for chunk in record.context] for record in answers.records]


def table(rows: Sequence[Sequence[Any]], delimiter: str = ",") -> bytes:
    file = StringIO(newline="")
    csv.writer(file, delimiter=delimiter).writerows(rows)
    return file.getvalue().encode()


NODE = {"node": {"id_": "n1", "text": "Two years."}, "score": 0.9}
DOCUMENT = {"page_content": "Two years.", "metadata": {"source": "a.md"}}
SERIALISED = {"lc": 1, "type": "constructor", "id": ["langchain_core"], "kwargs": {"page_content": "Two years."}}
RECORD_CHUNK = {"chunk": {"doc_id": "d", "start": 0, "end": 10, "text": "Two years."}, "score": 1.0, "rank": 1}


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"question": "How long?", "answer": "2", "contexts": ["Two years."], "reference": "Two."}, None),
        (
            {"user_input": "How long?", "response": "2", "retrieved_contexts": ["Two years."], "reference": "Two."},
            "Ragas",
        ),
        ({"question": "How long?", "answer": "2", "contexts": ["Two years."], "ground_truth": "Two."}, "Ragas 0.1"),
        ({"question": "How long?", "answer": "2", "contexts": ["Two years."], "ground_truths": ["Two."]}, "Ragas 0.1"),
        (
            {
                "input": "How long?",
                "actual_output": "2",
                "retrieval_context": ["Two years."],
                "expected_output": "Two.",
                "context": ["The truth."],
            },
            "DeepEval",
        ),
        (
            {"input": "How long?", "actualOutput": "2", "retrievalContext": ["Two years."], "expectedOutput": "Two."},
            "DeepEval",
        ),
        (
            {
                "record_id": "r1",
                "input": "How long?",
                "output": "2",
                "contexts": ["Two years."],
                "ground_truth_output": "Two.",
            },
            "TruLens",
        ),
        ({"query": "How long?", "result": "2", "source_documents": [DOCUMENT], "reference": "Two."}, "LangChain"),
        ({"input": "How long?", "answer": "2", "context": [SERIALISED], "reference": "Two."}, None),
        ({"query": "How long?", "response": "2", "source_nodes": [NODE], "reference_answer": "Two."}, "LlamaIndex"),
        ({"question": "How long?", "answer": "2", "reranked": [RECORD_CHUNK], "reference": "Two."}, None),
    ],
)
def test_columns_of_frameworks(read: Read, row: dict[str, Any], says: str | None) -> None:
    """The last row is a list of a paribus record, which is no column by itself."""
    own = {"contexts": "reranked"} if "reranked" in row else {}
    answers = read([row], **own)
    (question,), (record,) = answers.questions, answers.records
    assert (question.text, record.answer, question.reference_answer) == ("How long?", "2", "Two.")
    assert texts(answers) == [["Two years."]]
    assert [ranked.rank for ranked in record.reranked] == [1]
    assert record.retrieved == record.reranked
    assert [note for note in answers.notes if note.startswith("columns of")] == ([f"columns of {says}"] if says else [])


def test_paribus_own_columns(read: Read) -> None:
    answers = read([{"id": "q1", "question": "Q", "answer": "A", "contexts": ["c"], "system": "s1", "score": 3}])
    assert answers.questions[0].id == answers.records[0].question_id == "q1"
    assert answers.systems == {"q1": "s1"}
    assert answers.unused == ("score",)
    assert answers.columns == {
        "id": "id", "question": "question", "answer": "answer", "contexts": "contexts", "system": "system",
    }  # fmt: skip
    assert answers.records[0].context == (Chunk("q1, context 1", 0, 1, "c"),)
    assert answers.notes == ()


def test_known_truths_of_deepeval_are_no_contexts(read: Read) -> None:
    row = {"input": "Q", "actual_output": "A", "context": ["The truth."]}
    answers = read([row])
    assert texts(answers) == [[]]
    assert answers.unused == ("context",)
    assert any("--columns contexts=context" in note for note in answers.notes)
    assert texts(read([row], contexts="context")) == [["The truth."]]


def test_what_deepeval_flattens_is_cut_again(read: Read) -> None:
    row = {"input": "Q", "actual_output": "A", "retrieval_context": "one|deepeval_source=a.md,deepeval_context=two\n2"}
    answers = read([row, row | {"retrieval_context": "alone"}])
    assert texts(answers) == [["one", "two\n2"], ["alone"]]
    assert "contexts of 1 rows are one text each, cut at | as DeepEval writes lists into tables" in answers.notes
    # Only DeepEval writes lists so: elsewhere | is text, as in a table of Markdown.
    assert texts(read([{"question": "Q", "answer": "A", "contexts": "a|b"}])) == [["a|b"]]


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ('["a", "b\\u00e9"]', ["a", "bé"]),
        ("['a', \"it's\"]", ["a", "it's"]),
        ("['a' 'b']", ["a", "b"]),
        ("[\"it's\" 'b']", ["it's", "b"]),
        ("['a\\nb'\n 'c, d' '] e']", ["a\nb", "c, d", "] e"]),
        ("[np.str_('a'), np.str_('b')]", ["a", "b"]),
        ("[{'page_content': 'a', 'metadata': {}}]", ["a"]),
        ("[]", []),
        ("plain text, with [1] a mark", ["plain text, with [1] a mark"]),
        ("[1] A footnote. [2]", ["[1] A footnote. [2]"]),
        ("[sic]", ["[sic]"]),
    ],
)
def test_lists_in_cells(read: Read, cell: str, expected: list[str]) -> None:
    answers = read(table([["question", "answer", "contexts"], ["Q", "A", cell]]), "answers.csv")
    assert texts(answers) == [expected]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), min_size=1, max_size=4))
def test_lists_that_pandas_writes_come_back(tmp_path_factory: pytest.TempPathFactory, contexts: list[str]) -> None:
    # NumPy pads text of fixed width and so drops NULs at its end; an array of objects keeps what it was given.
    path = tmp_path_factory.mktemp("pandas") / "answers.csv"
    for cell in (contexts, np.array(contexts, dtype=object), json.dumps(contexts)):
        pd.DataFrame({"question": ["Q"], "answer": ["A"], "contexts": [cell]}).to_csv(path, index=False)
        assert texts(read_answers(path)) == [contexts]


@pytest.mark.parametrize(
    ("cell", "says"),
    [
        (str(np.array([f"w{n}" for n in range(1200)])), "with ... for what it left out; save the file as JSON Lines"),
        ("['a', ", "begins like"),
        ("['a', b]", "begins like a list and cannot be read as one; write it as JSON"),
        ("[1, 2]", "contexts[0] is the number 1, expected text"),
    ],
)
def test_broken_lists_are_told(read: Read, cell: str, says: str) -> None:
    data = table([["question", "answer", "contexts"], ["Q", "A", cell]])
    if cell.endswith("]"):
        assert "answers.csv:2: contexts" in (told := refused(read, data, "answers.csv"))
        assert says in told
    else:
        assert texts(read(data, "answers.csv")) == [[cell]]


ROWS = [
    {"id": "1", "question": "Q1", "answer": "A\u20282", "contexts": ["c1", "c2"], "reference": None},
    {"id": "2", "question": "Q2", "answer": None, "contexts": [], "reference": "R"},
]


@pytest.mark.parametrize(
    "name",
    ["a.jsonl", "a.ndjson", "bom.jsonl", "a.json", "data.json", "a.csv", "semicolons.csv", "a.tsv", "a.parquet"],
)
def test_formats_hold_the_same(read: Read, name: str) -> None:
    head = list(ROWS[0])
    cells = [head, *([row[n] if n != "contexts" else json.dumps(row[n]) for n in head] for row in ROWS)]
    lines = "\r\n".join(map(json.dumps, ROWS)).encode()
    files: dict[str, Callable[[], bytes]] = {
        "a.jsonl": lambda: lines,
        "a.ndjson": lambda: lines + b"\r\n\r\n",
        "bom.jsonl": lambda: b"\xef\xbb\xbf" + lines,
        "a.json": lambda: json.dumps(ROWS, indent=2).encode(),
        "data.json": lambda: json.dumps({"version": 1, "empty": [], "data": ROWS}).encode(),
        "a.csv": lambda: b"\xef\xbb\xbf" + table(cells),
        "semicolons.csv": lambda: table(cells, ";"),
        "a.tsv": lambda: table(cells, "\t"),
        "a.parquet": lambda: pd.DataFrame(ROWS, index=["x", "y"]).to_parquet(),
    }
    answers = read(files[name](), name)
    assert [question.text for question in answers.questions] == ["Q1", "Q2"]
    assert [record.answer for record in answers.records] == ["A\u20282", None]
    assert [question.reference_answer for question in answers.questions] == [None, "R"]
    assert texts(answers) == [["c1", "c2"], []]
    assert answers.unused == ()
    assert set(answers.notes) == {"1 of 2 rows have no answer", "1 of 2 rows have no contexts"}


def test_index_of_pandas_and_missing_numbers(read: Read) -> None:
    """NaN stands where a number or a text is missing; pandas makes whole numbers beside it floats."""
    answers = read(b'{"id": 7, "question": "Q", "answer": NaN, "contexts": null, "faithfulness": NaN}\n')
    assert answers.records[0].answer is None
    assert answers.questions[0].id == "7"
    frame = pd.DataFrame({"question": ["Q"], "answer": ["A"], "system": [2.0], "score": [None]})
    assert read(frame.to_csv().encode(), "a.csv").unused == ("score",)
    assert read(frame.to_parquet(), "a.parquet").systems == {"1": "2"}


def test_a_cell_longer_than_csv_allows_and_of_several_lines(read: Read) -> None:
    allowed = csv.field_size_limit()
    long = "x" * (allowed + 1)
    answers = read(table([["question", "answer", "contexts"], ["Q", "1\n2", long], ["Q", "", ""]]), "a.csv")
    assert texts(answers) == [[long], []]
    assert answers.records[1].answer is None
    assert csv.field_size_limit() == allowed
    faulty = table([["question", "answer", "contexts"], ["Q", "1\n2", "c"], ["Q", "A"]])
    assert "a.csv:4: the row has 2 cells, the header has 3" in refused(read, faulty, "a.csv")


def test_ragas_writes_and_it_is_read(read: Read) -> None:
    (schema,) = framework("ragas", "ragas.dataset_schema")
    contexts = ["it's one, and 'two'", 'say "hi"\n2']
    sample = {"user_input": "Q", "response": "A", "retrieved_contexts": contexts, "reference": "R"}
    dataset = schema.EvaluationDataset.from_list([sample, sample])
    dataset.to_jsonl("a.jsonl")
    dataset.to_csv("a.csv")
    dataset.to_pandas().to_csv("b.csv")
    dataset.to_pandas().to_parquet("c.parquet")
    for name in ("a.jsonl", "a.csv", "b.csv", "c.parquet"):
        answers = read_answers(Path(name))
        assert texts(answers) == [contexts, contexts]
        assert [question.reference_answer for question in answers.questions] == ["R", "R"]
    turns = schema.MultiTurnSample(user_input=[{"content": "Hello", "type": "human"}])
    schema.EvaluationDataset(samples=[turns, turns]).to_jsonl("turns.jsonl")
    told = "user_input is a conversation (a list of messages), expected text: write one row for each answer"
    with pytest.raises(DataError) as caught:
        read_answers(Path("turns.jsonl"), {"answer": "user_input"})
    assert f"turns.jsonl:1: {told} (and in 1 more rows)" in str(caught.value)


def test_deepeval_writes_and_it_is_read(read: Read) -> None:
    datasets, cases = framework("deepeval", "deepeval.dataset", "deepeval.test_case")
    golden = datasets.Golden(
        input="Q",
        actual_output="A",
        expected_output="R",
        retrieval_context=["c1", cases.RetrievedContextData(context="c2", source="a.md")],
        context=["truth"],
    )
    dataset = datasets.EvaluationDataset(goldens=[golden])
    for kind in ("json", "csv", "jsonl"):
        dataset.save_as(kind, ".", "answers")
        answers = read_answers(Path(f"answers.{kind}"))
        assert texts(answers) == [["c1", "c2"]]
        assert (answers.questions[0].text, answers.records[0].answer) == ("Q", "A")
        assert answers.questions[0].reference_answer == "R"
        assert "context" in answers.unused
        assert answers.notes[0] == "columns of DeepEval"


# Which column.


def test_columns_that_are_named(read: Read) -> None:
    row = {"user_query": "Q", "prediction": "A", "docs": ["c"], "question": "not this"}
    answers = read([row], question="user_query", answer="prediction", contexts="docs", id="")
    assert (answers.questions[0].text, answers.records[0].answer, texts(answers)) == ("Q", "A", [["c"]])
    assert answers.columns == {"question": "user_query", "answer": "prediction", "contexts": "docs"}
    assert answers.unused == ("question",)


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"questions": "q"}, "--columns questions=q: questions is no field; did you mean question?; fields are id, q"),
        ({"answer": "antwort"}, "no such column; did you mean Antwort?; its columns are Frage, Antwort"),
    ],
)
def test_columns_that_are_not_there(read: Read, columns: dict[str, str], says: str) -> None:
    assert says in refused(read, [{"Frage": "Q", "Antwort": "A"}], **columns)


def test_a_file_without_anything_to_score(read: Read) -> None:
    told = refused(read, [{"Frage": "Q", "turns": []}])
    assert "no column holds an answer, contexts or verdicts; the columns are Frage, turns." in told
    assert "turns looks like a conversation: write one row for each answer." in told
    assert "--columns answer=COLUMN contexts=COLUMN" in told


def test_of_two_columns_one_is_chosen_and_told(read: Read) -> None:
    answers = read([{"question": "Q", "query": "other", "answer": "A"}])
    assert answers.questions[0].text == "Q"
    assert "question is read from question, not from query; --columns question=... chooses" in answers.notes
    assert "query" in answers.unused


def test_name_and_version_of_an_application_are_the_system(read: Read) -> None:
    row = {"record_id": "r1", "input": "Q", "output": "A", "app_name": "rag", "app_version": "v1"}
    answers = read([row, row | {"app_version": "v2"}])
    assert answers.systems == {"r1 · rag v1": "rag v1", "r1 · rag v2": "rag v2"}
    assert answers.columns["system"] == "app_name, app_version"
    assert any("add a column contexts" in note for note in answers.notes)


def test_ids(read: Read) -> None:
    row = {"answer": "A", "question": "Q"}
    assert [q.id for q in read([row, row]).questions] == ["1", "2"]
    both = [{"id": "q1", "system": name, **row} for name in ("a", "b")]
    assert [q.id for q in read(both).questions] == ["q1 · a", "q1 · b"]
    assert [q.id for q in read([both[0], both[1] | {"id": "q2"}]).questions] == ["q1", "q2"]
    assert "answers.jsonl:3: id q1 · a is taken already, at answers.jsonl:1" in refused(read, [*both, both[0]])
    told = refused(read, [{"id": "q1", **row}, {"id": "q1", **row}])
    assert "answers.jsonl:2: id q1 is taken already, at answers.jsonl:1; with a column system" in told
    told = refused(read, [{"id": "q1", **row}, {"id": None, **row}])
    assert "answers.jsonl:2: id is missing; every row has one, or --columns id= counts rows" in told


# Faults.


def test_every_fault_is_told_at_once(read: Read) -> None:
    told = refused(
        read,
        [
            {"question": "Q", "answer": 4, "contexts": ["c", None]},
            '{"question": "Q", "answer": "half \\ud83d", "contexts": []}',
            "{",
            {"question": ["no"], "answer": {"content": "A"}, "contexts": {"a": 1}},
            {"question": "Q", "answer": 4, "contexts": [{"title": "t"}]},
        ],
    )
    first, *rest = told.splitlines()
    assert first == "answers.jsonl cannot be used: 9 faults"
    assert sorted(rest) == [
        "answers.jsonl:1: answer is the number 4, expected text (and in 1 more rows)",
        "answers.jsonl:1: contexts[1] is null, expected text",
        "answers.jsonl:2: answer has half a surrogate pair (U+D83D) at character 5; write the whole character",
        "answers.jsonl:3: not valid JSON at column 2 (Expecting property name enclosed in double quotes); a line "
        "must be one whole JSON object",
        "answers.jsonl:4: answer is an object, expected text",
        "answers.jsonl:4: contexts is an object, expected a list",
        "answers.jsonl:4: question is a list, expected text",
        "answers.jsonl:5: contexts[0] is an object without text, expected one of text, page_content, content, "
        "context in it",
    ]


def test_at_most_fifty_faults_are_listed(read: Read) -> None:
    told = refused(read, [{"question": "Q", "answer": n} for n in range(60)])
    assert told.startswith("answers.jsonl cannot be used: 60 faults\n")
    assert told.endswith("\nand 10 more")
    assert told.count("\n") == 51


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("a.jsonl.gz", b"", "unpack it first"),
        ("a.jsonl", b"\x1f\x8b\x08", "packed with gzip"),
        ("a.csv", b"PK\x03\x04", "an Excel workbook: save it as CSV"),
        ("a.csv", "Frage".encode("utf-16"), "UTF-16: save it as UTF-8"),
        ("a.xlsx", b"", "expected .jsonl, .ndjson, .json, .csv, .tsv, .parquet"),
        ("a.jsonl", b"\n\n", "has no row"),
        ("a.csv", b"question,answer\n", "has no row"),
        ("a.csv", b"question,answer\nQ,\xff\n", "a.csv:2: byte 0xff is not UTF-8"),
        ("a.csv", b"answer,answer\nQ,A\n", "two columns are called answer; rename one"),
        ("a.csv", b'question,answer\nQ,A\nQ,"A\n', "a.csv:3: not a row of a table"),
        ("a.json", b'{"question": "Q"}\n{"question": "Q"}', "with one object a line, name it .jsonl"),
        ("a.json", b'[\n{"question": "Q",}\n]', "a.json:2: not valid JSON at column"),
        ("a.json", b'{"a": [{"answer": "A"}], "b": [{"answer": "A"}]}', "is an object that has a and b"),
        ("a.json", b'{"answer": {"0": "A"}}', 'orient="records"'),
        ("a.json", b'["A"]', "a.json: row 1: the row is text, expected an object"),
        ("a.json", b'{"data": [{"answer": 1}]}', "a.json: data, row 1: answer is the number 1, expected text"),
        ("a.parquet", b"PAR1", "cannot be read as Parquet"),
        ("a.parquet", b"answer\nA\n", "is no Parquet: its name and its content do not agree"),
        ("a.csv", b"PAR1", "is Parquet: its name and its content do not agree"),
    ],
)
def test_files_that_are_no_answers(read: Read, name: str, data: bytes, says: str) -> None:
    assert says in refused(read, data, name)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    for name in ("a.jsonl", "a.parquet"):
        with pytest.raises(DataError, match=r"cannot read .*No such file"):
            read_answers(tmp_path / name)


# What people said.

LABEL = {
    "id": "router",
    "question": QUESTION.text,
    "answer": ANSWER,
    "contexts": list(PASSAGES),
    "reference": REFERENCE,
    "origin": "human",
    "claims": [{"text": text, "verdict": verdict} for text, verdict in CLAIMS],
}


def test_a_file_of_labels_is_a_file_of_answers(read: Read) -> None:
    answers = read([LABEL])
    assert read_labels(Path("answers.jsonl"))
    verdicts = tuple(Verdict(text, word, word) for text, word in CLAIMS)
    assert answers.people == {formulas.ANSWER_CLAIMS: {"router": verdicts}}
    task = Support(tuple(text for text, _ in CLAIMS), "\n".join(PASSAGES), "answer", "context")
    said = found(LabelsJudge(), task, question=answers.questions[0], measured=answers.records[0])
    assert [word for _, word, _, _ in said] == [verdict for _, verdict in CLAIMS]


def test_claims_of_a_model_are_not_people(read: Read) -> None:
    answers = read([LABEL | {"origin": "model"}])
    assert answers.people == {}
    assert answers.questions[0].human is None
    assert "claims of 1 rows are of a model (origin), and are not taken for people's" in answers.notes


def test_human_of_a_test_set(read: Read) -> None:
    row = {
        "id": "router",
        "answer": ANSWER,
        "contexts": list(PASSAGES),
        "reference": REFERENCE,
        "human": QUESTION.human,
    }
    answers = read([row])
    assert answers.questions[0].human == QUESTION.human
    said = {units: [verdict.ours for verdict in by_id["router"]] for units, by_id in answers.people.items()}
    assert said == {
        formulas.ANSWER_CLAIMS: ["supported"] * 3 + ["contradicted", "absent"],
        formulas.REFERENCE_CLAIMS: ["attributed"] * 4 + ["not_attributed"],
        formulas.KEY_POINTS: ["supported"] * 3 + ["absent"] * 2,
    }
    # Verdicts on another answer, or beside other contexts, are no verdicts on this row.
    assert set(read([row | {"answer": "Yes."}]).people) == {formulas.REFERENCE_CLAIMS}
    other = read([row | {"contexts": list(PASSAGES[:2])}])
    assert set(other.people) == {formulas.KEY_POINTS}
    assert any(note.startswith("people judged another answer, context or reference") for note in other.notes)


def test_verdicts_without_an_answer_are_counted_but_replay_nothing(read: Read) -> None:
    answers = read([{"claims": LABEL["claims"]}])
    assert len(answers.people[formulas.ANSWER_CLAIMS]["1"]) == 5
    assert answers.questions[0].human is None


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"claims": [{"text": "A", "verdict": "yes"}]}, "claims[0].verdict is 'yes', expected 'supported'"),
        ({"claims": [{"text": " ", "verdict": "absent"}]}, "claims[0].text is ' ', expected text that is not blank"),
        ({"claims": [{"text": "A", "verdict": "absent"}] * 2}, "claims is a list, expected each text once"),
        ({"claims": [7]}, "claims[0] is the number 7, expected an object"),
        ({"claims": "none"}, "claims is text, expected a list"),
        ({"human": {"claims": [], "mood": "good"}}, "human.mood is not a known field"),
        ({"human": {"46542882": 4}}, "human.46542882 is not a known field"),
        ({"human": 3}, "human is the number 3, expected an object"),
    ],
)
def test_verdicts_that_cannot_be_used(read: Read, row: dict[str, Any], says: str) -> None:
    assert says in refused(read, [{"answer": "A", **row}])
    name = next(iter(row))
    assert read([{"answer": "A", **row}], **{name: ""}).people == {}


CELL = st.one_of(
    st.sampled_from(["A", "B ", " A", "", " ", "é\n", "\ud800", "supported", "absent", "yes", None]), st.integers()
)
CLAIM = st.one_of(
    st.dictionaries(st.sampled_from(["text", "verdict", "in_reference"]), CELL, max_size=3),
    st.builds(lambda text, verdict: {"text": text, "verdict": verdict}, CELL, CELL),
    st.integers(),
)


@given(st.lists(CLAIM, max_size=3))
def test_the_short_way_to_claims_says_what_the_model_says(claims: list[Any]) -> None:
    plain = _plain({"claims": claims})
    if plain is not None:
        good, faults = validated(HumanVerdicts, {"answer": "A", "claims": claims})
        assert good is not None
        assert faults == []
        assert plain == tuple(Verdict(claim.text, claim.verdict, claim.verdict) for claim in good.claims or ())


# Labels of passages.


@pytest.mark.parametrize("with_texts", [True, False])
@pytest.mark.parametrize("unit", ["chunk", "document"])
def test_ids_of_contexts_are_a_ranking_for_labels(read: Read, unit: str, with_texts: bool) -> None:
    """Retrieved a, b, c of which b is relevant, as is d, which was not found: recall 1/2, precision 1/3, first at 2."""
    row: dict[str, Any] = {"user_input": "Q", "retrieved_context_ids": ["a", 2, "c"], "reference_context_ids": [2, "d"]}
    if with_texts:
        row |= {"retrieved_contexts": ["one", "two", "three"], "reference_contexts": ["two", "four"]}
    answers = read([row])
    (question,), (record,) = answers.questions, answers.records
    for id, expected in (("labels/recall", 1 / 2), ("labels/precision", 1 / 3), ("labels/reciprocal_rank", 1 / 2)):
        assert scorer({"id": id, "unit": unit}).score(question, record).value == pytest.approx(expected)
    assert [chunk.text for chunk in record.context] == (["one", "two", "three"] if with_texts else [])
    # In characters: "two" of "two" and "four" with texts; one blank of two, one for each id, without.
    assert scorer("labels/span_recall").score(question, record).value == pytest.approx(3 / 7 if with_texts else 1 / 2)
    assert scorer({"id": "labels/recall", "unit": unit, "k": 1}).score(question, record).value == 0
    assert answers.people == {}


def test_chunks_of_one_document_keep_their_texts(read: Read) -> None:
    """Two chunks of the relevant document at ranks 1 and 2: all that is relevant is found, at 2 of 3 places."""
    row = {
        "user_input": "Q",
        "retrieved_contexts": ["long enough", "short", "other"],
        "retrieved_context_ids": ["d", "d", "e"],
        "reference_context_ids": ["d"],
    }
    answers = read([row])
    (question,), (record,) = answers.questions, answers.records
    assert texts(answers) == [["long enough", "short", "other"]]
    assert question.relevant == (Span("d", 0, 5),)
    assert scorer("labels/precision").score(question, record).value == pytest.approx(2 / 3)
    assert scorer({"id": "labels/recall", "unit": "document"}).score(question, record).value == 1
    assert scorer("labels/recall").score(question, record).value == 1


def test_ids_that_do_not_match(read: Read) -> None:
    row = {"question": "Q", "answer": "A", "contexts": ["one"], "retrieved_ids": ["a", "b"]}
    assert "contexts has 1 texts and retrieved_ids has 2 ids" in refused(read, [row])
    alone = read([{"question": "Q", "answer": "A", "contexts": ["one"], "expected_ids": ["a"]}])
    assert alone.questions[0].relevant is None
    assert alone.unused == ("expected_ids",)


def test_labelled_places_judge_contexts_with_places(read: Read) -> None:
    contexts = [{"doc_id": "d", "start": 0, "text": "Two years."}, {"doc_id": "d", "start": 10, "text": "No."}]
    row = {"question": "Q", "answer": "A", "contexts": contexts, "relevant": [{"doc_id": "d", "start": 0, "end": 4}]}
    answers = read([row])
    assert answers.questions[0].relevant == (Span("d", 0, 4),)
    assert answers.records[0].context[1] == Chunk("d", 10, 13, "No.")
    verdicts = (
        Verdict("Two years.", "relevant", "relevant", rank=1),
        Verdict("No.", "not_relevant", "not_relevant", rank=2),
    )
    assert answers.people == {
        formulas.USEFUL_CHUNKS: {"1": verdicts},
        formulas.RELEVANT_CHUNKS: {"1": verdicts},
    }
    told = refused(read, [row | {"contexts": ["Two years."], "relevant": [{"doc_id": "d", "start": 4, "end": 4}]}])
    assert "relevant[0].start is 4, expected less than end, which is 4" in told
    assert "relevant names places in documents, but no context does" in refused(read, [row | {"contexts": ["Two."]}])


def test_the_lines_of_an_old_mac_are_lines(read: Read) -> None:
    answers = read(b"question,answer\rQ,A\rR,B\r", "answers.csv")
    assert [record.answer for record in answers.records] == ["A", "B"]


def test_a_header_that_is_no_row_is_told(read: Read) -> None:
    told = refused(read, b'"question,answer\nQ,A\n', "answers.csv")
    assert told.startswith("answers.csv:1: the header is not a row of a table")


def test_a_line_break_inside_a_text_of_a_list_is_one(read: Read) -> None:
    cell = '["one\ntwo", "three"]'
    assert texts(read(table([["question", "answer", "contexts"], ["Q", "A", cell]]), "answers.csv")) == [
        ["one\ntwo", "three"]
    ]
    broken = refused(
        read, table([["question", "answer", "contexts"], ["Q", "A", "['one\ntwo' 'three']"]]), "answers.csv"
    )
    assert "contexts has a line break or an escape inside quotes; write it as JSON" in broken


def test_no_place_of_a_ranking_is_left_out(read: Read) -> None:
    row = {"question": "Q", "retrieved_context_ids": ["a", None, "b"], "reference_context_ids": ["b"]}
    assert "retrieved_context_ids[1] is null, expected text" in refused(read, [row])
