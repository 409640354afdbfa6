"""`paribus definitions` and `paribus schema`: lists, cards, differences, the page made from them, and the presets."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any

import pytest
import yaml

from adapters.base import SCORERS, scorer
from adapters.schema import Definition, Question, Record, Score, json_schema
from runner.config import Metrics
from runner.definitions import FILES, SCHEMAS, allowed, page
from tests.spine.commands import ROOT, Said, Say
from tests.spine.test_commands import FRAMEWORKS, HEAVY, HELP, PARIBUS, PYTHON, imported

PRESETS = sorted(path.stem for path in (ROOT / "conf/metrics").glob("*.yaml"))
OWN = '''
from adapters.base import Scorer


class Brevity(Scorer):
    """Whether the answer has at most `words` words."""

    id = "mine/brevity"
    asks = "is the answer short?"
    framework = "mine"
    version = "1"
    unit_judged = "answer"
    hit = "the answer has at most `words` words"
    formula = "1 if words(answer) <= words else 0"
    nothing_to_judge = "not applicable without an answer"
    requires = ("answer",)
    source = "our style guide"

    words: int = 30

    def score(self, question, record):
        return self.computed(record, float(len(record.answer.split()) <= self.words))
'''


def preset(name: str) -> Metrics:
    return Metrics(**yaml.safe_load((ROOT / f"conf/metrics/{name}.yaml").read_text(encoding="utf-8")))


@pytest.fixture
def definitions(say: Say) -> Say:
    """Runs `paribus definitions …` in this process."""

    def command(*arguments: str) -> Said:
        return say("definitions", *arguments, fast=False)

    return command


@pytest.mark.parametrize("by", ["asks", "framework"])
def test_the_list_names_every_definition_once_in_a_hundred_columns(definitions: Say, by: str) -> None:
    said = definitions("--by", by)
    assert (said.code, said.err) == (0, "")
    names = re.findall(r"^  (\w+/\w+) ", said.out, re.MULTILINE)
    assert sorted(names) == sorted(SCORERS)
    assert max(map(len, said.out.splitlines())) <= 100
    assert "\x1b" not in said.out
    headings = re.findall(r"^\S.*$", said.out, re.MULTILINE)
    expected = {getattr(scorer(name), by) for name in SCORERS}
    assert set(headings) == expected
    assert len(headings) == len(expected)


def test_the_list_is_one_json_document(definitions: Say) -> None:
    said = definitions("--json")
    entries = {entry["id"]: entry for entry in said.json["definitions"]}
    assert sorted(entries) == sorted(SCORERS)
    recall = entries["labels/recall"]
    assert (recall["framework"], recall["direction"], recall["range"], recall["calls"]) == (
        "labels",
        "higher",
        [0, 1],
        "0",
    )
    cutoff = next(parameter for parameter in recall["declared"] if parameter["name"] == "k")
    assert cutoff["allowed"] == "integer >= 1 or null"
    assert (cutoff["default"], cutoff["required"]) == (None, False)


def test_show_prints_the_whole_card(definitions: Say) -> None:
    said = definitions("show", "rubric/relevance", "of=context")
    card = scorer({"id": "rubric/relevance", "of": "context"}).definition
    assert said.code == 0
    assert max(map(len, said.out.splitlines())) <= 100
    flat = " ".join(said.out.split())
    for value in (
        card.key,
        card.asks,
        card.hit,
        card.formula,
        card.aggregation,
        card.nothing_to_judge,
        card.calls,
        card.implementation,
        card.source,
        card.fingerprint,
        f"{card.framework} {card.version}",
        "0 to 1, higher is better",
        "requires question, context",
        'of = "context" (default "answer"; "answer" or "context"; What is rated',
        *card.hazards,
        *(f"{name} {found}" for name, found in card.prompts.items()),
    ):
        assert value in flat
    assert "Reply with one JSON object" not in said.out


def test_show_as_json_is_the_card(definitions: Say) -> None:
    shown = definitions("show", "--json", "labels/recall", "k=5", "unit=document").json
    declared = shown.pop("declared")
    card = scorer({"id": "labels/recall", "k": 5, "unit": "document"}).definition
    assert shown == json.loads(json.dumps(card.card()))
    assert [parameter["name"] for parameter in declared] == list(shown["parameters"])
    assert definitions("--json", "show", "labels/recall", "k=5").json["key"] == "labels/recall@5"


def test_the_text_of_prompts_is_printed_when_asked_for(definitions: Say) -> None:
    texts = scorer("rubric/citation_accuracy").prompts()  # type: ignore[union-attr]
    said = definitions("show", "rubric/citation_accuracy", "--prompts")
    assert all(text in said.out for text in texts.values())
    assert definitions("show", "--json", "--prompts", "rubric/citation_accuracy").json["prompt_texts"] == texts
    assert definitions("show", "--json", "--prompts", "labels/recall").json["prompt_texts"] == {}


def test_parameters_may_follow_an_option(definitions: Say) -> None:
    assert definitions("show", "labels/recall", "--json", "k=5").json["key"] == "labels/recall@5"


def test_diff_shows_what_differs_and_nothing_else(definitions: Say) -> None:
    found = definitions("diff", "labels/recall", "labels/recall", "k=5", "--json").json
    assert found["definitions"] == ["labels/recall", "labels/recall@5"]
    assert set(found["differences"]) == {"key", "parameters.k", "fingerprint"}
    assert found["differences"]["parameters.k"] == [None, 5]
    said = definitions("diff", "rubric/refusal_rate", "rubric/false_refusal_rate")
    assert max(map(len, said.out.splitlines())) <= 100
    assert re.search(r"direction +higher +lower", said.out)
    assert not re.search(r"^  prompts\.", said.out, re.MULTILINE)
    assert definitions("diff", "labels/recall", "labels/recall").err == (
        "labels/recall and labels/recall are the same definition\n"
    )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["show", "ragas/faithfullness"], "did you mean ragas/faithfulness"),
        (["show", "faithfulness"], "deepeval/faithfulness"),
        (["show", "nonsense:Class"], "No module named 'nonsense'"),
        (["show", "labels/recall", "k=0"], "greater than or equal to 1"),
        (["show", "labels/recall", "size=3"], "Its parameters: k, ranking"),
        (["show", "k=3", "labels/recall"], "k=3 stands before any id"),
        (["show"], "1 definition expected, got none"),
        (["show", "labels/recall", "labels/ndcg"], "1 definition expected, got labels/recall, labels/ndcg"),
        (["diff", "labels/recall", "k=3"], "2 definitions expected, got labels/recall"),
        (["show", "labels/recall", "--nope"], "--nope: no such argument"),
        (["--nope"], "--nope: no such argument"),
        (["frobnicate"], "choose from"),
        (["--by", "size"], "choose from"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_mistakes_are_told_and_end_with_2(definitions: Say, arguments: list[str], told: str) -> None:
    said = definitions(*arguments)
    assert (said.code, said.out) == (2, "")
    assert told in said.err
    assert "Traceback" not in said.err


def test_a_definition_of_ones_own_is_shown(typed: Say, folder: Path) -> None:
    (folder / "brevity.py").write_text(OWN, encoding="utf-8")
    shown = typed(
        PYTHON, "-m", "runner", "definitions", "show", "brevity:Brevity", "words=12", "--json", PYTHONPATH="."
    ).json
    assert (shown["key"], shown["parameters"]) == ("mine/brevity.words-12", {"words": 12})


def test_a_framework_that_cannot_be_imported_costs_the_hashes_only(typed: Say, folder: Path) -> None:
    (folder / "broken/ragas").mkdir(parents=True)
    (folder / "broken/ragas/__init__.py").write_text("import no_such_module\n", encoding="utf-8")
    command = (PARIBUS, "definitions", "show", "ragas/faithfulness", "--prompts")
    said = typed(*command, "--json", PYTHONPATH=str(folder / "broken"))
    reason = {"unavailable": "ragas could not be imported: no_such_module"}
    assert said.code == 0, said.err
    assert (said.json["prompts"], said.json["prompt_texts"]) == (reason, reason)
    assert said.json["formula"] == scorer("ragas/faithfulness").formula
    assert re.search(r"^  prompt +unavailable ragas could not", typed(*command, PYTHONPATH="broken").out, re.MULTILINE)


@pytest.mark.slow
def test_a_real_framework_gives_hashes_and_says_nothing_else(typed: Say, folder: Path) -> None:
    before = set(folder.rglob("*"))
    said = typed(PARIBUS, "definitions", "show", "ragas/faithfulness", "--json")
    assert said.code == 0, said.err
    assert said.json["version"] == "0.4.3"
    assert said.json["prompts"]
    assert all(re.fullmatch("[0-9a-f]{16}", found) for found in said.json["prompts"].values())
    assert set(folder.rglob("*")) == before


def test_the_list_imports_no_framework(folder: Path) -> None:
    code = "from runner.cli import main\nassert main(['definitions']) == main(['schema', 'score']) == 0"
    assert not imported(code, folder) & (set(FRAMEWORKS) | set(HEAVY) - {"pydantic"})


@pytest.mark.parametrize("arguments", [["definitions"], ["definitions", "show"], ["schema"]], ids=" ".join)
def test_help_imports_nothing_heavy_and_tells_exit_codes(typed: Say, folder: Path, arguments: list[str]) -> None:
    assert not imported(HELP.format([*arguments, "--help"]), folder) & set(HEAVY)
    said = typed(PARIBUS, *arguments, "--help")
    assert said.code == 0
    assert re.search(r"0 done; 1 .*; 2 .*; 130\s+interrupted", said.out, re.DOTALL)


def test_the_list_costs_little_more_than_importing_pydantic(folder: Path) -> None:
    """0.4 s to 0.2 s on an idle machine. Processor time against processor time, because tests share the machine, and
    with compiled modules at hand, as after an installation."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(folder / "compiled")}

    def seconds(*command: str | Path) -> float:
        before = getrusage(RUSAGE_CHILDREN)
        subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=True)
        after = getrusage(RUSAGE_CHILDREN)
        return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime

    pydantic = (PYTHON, "-c", "import asyncio, pydantic\nclass A(pydantic.BaseModel):\n    a: int")
    pairs = [(seconds(PARIBUS, "definitions"), seconds(*pydantic)) for _ in range(4)]
    assert min(own for own, _ in pairs) < 3 * min(bare for _, bare in pairs)


def test_both_ways_to_type_it_do_the_same(typed: Say) -> None:
    one = typed(PARIBUS, "definitions", "--by", "framework")
    assert one == typed(PYTHON, "-m", "runner", "definitions", "--by", "framework")
    assert typed(PARIBUS, "schema", "score") == typed(PYTHON, "-m", "runner", "schema", "score")


def test_a_reader_that_stops_early_is_no_error(folder: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([PARIBUS, "definitions"], cwd=folder, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("name", "kind"), [("score", Score), ("record", Record), ("question", Question), ("definition", Definition)]
)
def test_the_exported_schemas_are_those_of_the_types(say: Say, name: str, kind: type) -> None:
    said = say("schema", name, fast=False)
    assert said.code == 0
    assert said.json == json_schema(kind)
    stored = (ROOT / f"docs/schema/{name}.json").read_text(encoding="utf-8")
    assert stored == said.out, f"paribus schema {name} > docs/schema/{name}.json"


def test_every_schema_is_exported(say: Say) -> None:
    assert sorted(path.stem for path in (ROOT / "docs/schema").glob("*.json")) == sorted((*SCHEMAS, *FILES))
    said = say("schema", "verdict", fast=False)
    assert said.code == 2
    assert "'score', 'record', 'question', 'definition'" in said.err
    assert say("schema", "score", "extra", fast=False).code == 2


def test_the_page_is_what_the_classes_say() -> None:
    stored = (ROOT / "docs/definitions.md").read_text(encoding="utf-8")
    assert stored == page(), "python -m runner.definitions > docs/definitions.md"


def test_the_page_leaves_no_definition_out() -> None:
    written = page()
    assert sorted(re.findall(r"^### (\S+)$", written, re.MULTILINE)) == sorted(SCORERS)
    assert "Not available" not in written
    columns = {len(re.findall(r"(?<!\\)\|", line)) for line in written.splitlines() if line.startswith("| [")}
    assert columns == {9}


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "boolean"}, "boolean"),
        ({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]}, "integer >= 1 or null"),
        ({"enum": ["a", "b"], "type": "string"}, '"a" or "b"'),
        ({"const": "a"}, '"a"'),
        ({"type": "number", "minimum": 0, "exclusiveMaximum": 1}, "number >= 0 and < 1"),
        ({"type": "array", "prefixItems": [{"type": "number"}, {"type": "string"}]}, "[number, string]"),
        ({}, "any value"),
    ],
    ids=str,
)
def test_what_a_parameter_may_be_is_told_in_words(schema: dict[str, Any], words: str) -> None:
    assert allowed(schema) == words


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_names_definitions_once(name: str) -> None:
    keys = [each.key for each in preset(name).scorers()]
    assert len(keys) == len(set(keys))


def test_the_preset_all_names_every_definition() -> None:
    scorers = preset("all").scorers()
    assert {each.id for each in scorers} == set(SCORERS)
    assert {each.key for each in scorers} - set(SCORERS) == {
        "ragas/factual_correctness.mode-precision",
        "ragas/factual_correctness.mode-recall",
        "ragas/noise_sensitivity.mode-irrelevant",
        "deepeval/faithfulness.penalize_ambiguous_claims-True",
        "trulens/context_relevance.aggregate-max",
        "rubric/relevance.of-context",
    }


def test_the_preset_faithfulness_is_all_that_asks_it() -> None:
    asks = scorer("ragas/faithfulness").asks
    named = preset("faithfulness").scorers()
    assert {each.asks for each in named} == {asks}
    assert {each.id for each in named} == {name for name in SCORERS if scorer(name).asks == asks}
