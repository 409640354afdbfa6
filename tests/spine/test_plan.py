"""One variable at a time: what is planned, and what is refused before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import QuotedString
from hypothesis import given
from hypothesis import strategies as st

from hydra_plugins.paribus.verbatim_source import escape, quoted
from runner.errors import ConfigError
from runner.plan import Composed, Plan, Variable, plan
from tests.spine.commands import Say, config_of, values_of, write_yaml


def compose(overrides: Sequence[str]) -> Composed:
    """A stand-in for Hydra: three keys, and one that follows another."""
    config: dict[str, Any] = {
        "retriever": {"k": "5"},
        "chunker": {"size": "200", "overlap": "0"},
        "context": {"n": "1"},
    }
    for override in overrides:
        key, _, value = override.partition("=")
        group, _, field = key.partition(".")
        config[group][field] = value
    return Composed(config, {"retriever": "dense"})


def planned(*variables: Variable, check: Any = lambda composed: None) -> Plan:
    return plan([], variables, compose, check)


def test_case_48_four_points_each_one_field_away_from_the_baseline() -> None:
    found = planned(Variable("retriever.k", ("5", "10")), Variable("chunker.size", ("100", "200", "400")))
    points = [(run.composed.config["retriever"]["k"], run.composed.config["chunker"]["size"]) for run in found.runs]
    assert points == [("5", "200"), ("10", "200"), ("5", "100"), ("5", "400")]
    assert found.left_out == ("retriever.k=5 equals the baseline", "chunker.size=200 equals the baseline")


KEYS = {"retriever.k": "5", "chunker.size": "200", "chunker.overlap": "0", "context.n": "1"}
VALUES = st.lists(st.sampled_from(["0", "1", "5", "10", "200", "x"]), max_size=6)


@given(st.dictionaries(st.sampled_from(list(KEYS)), VALUES))
def test_n_and_m_values_make_one_plus_n_plus_m_runs_less_those_equal(swept: dict[str, list[str]]) -> None:
    found = planned(*(Variable(name, tuple(values)) for name, values in swept.items()))
    new = {name: dict.fromkeys(value for value in values if value != KEYS[name]) for name, values in swept.items()}
    assert found.baseline.variable is None
    assert [run.label for run in found.runs] == ["baseline", *(f"{n}={v}" for n in new for v in new[n])]
    assert len(found.runs) + len(found.left_out) == 1 + sum(map(len, swept.values()))
    for run in found.variants:
        before, after = found.baseline.composed.described(), run.composed.described()
        assert [key for key in before if before[key] != after[key]] == [run.variable]
        assert run.from_value == before[run.variable or ""]


def test_a_variant_that_changes_another_key_is_refused_with_the_other_differences() -> None:
    def linked(overrides: Sequence[str]) -> Composed:
        found = compose(overrides)
        found.config["context"]["n"] = found.config["retriever"]["k"]
        return found

    with pytest.raises(ConfigError, match=r"retriever.k=10 changes more than retriever.k: context.n: '5' -> '10'"):
        plan([], [Variable("retriever.k", ("10",))], linked, lambda composed: None)


def test_every_fault_of_every_run_is_told_at_once() -> None:
    def check(composed: Composed) -> None:
        if composed.config["retriever"]["k"] in ("7", "8"):
            raise ConfigError(f"no {composed.config['retriever']['k']}")

    with pytest.raises(ConfigError, match=r"retriever.k=7: no 7\nretriever.k=8: no 8"):
        planned(Variable("retriever.k", ("7", "8", "9")), check=check)


def test_coupling_by_interpolation_is_refused(say: Say, folder: Path) -> None:
    write_yaml(folder / "more", "retriever/linked", _target_="spine_stubs.Overlap", k="${reranker.candidates}")
    said = say("sweep", "retriever=linked", "reranker=shortest", "reranker.candidates=4,6")
    assert said.code == 2
    assert "reranker.candidates=6 changes more than reranker.candidates: retriever.k: 4 -> 6" in said.err
    assert not (folder / "mlruns").exists()


def test_case_31_a_value_invalid_only_in_combination_stops_everything(say: Say, folder: Path) -> None:
    said = say("sweep", "chunker=fixed", "chunker.size=200", "chunker.overlap=64", "chunker.size=400,100,50")
    assert said.code == 2
    assert "chunker.size=50: chunker: overlap=64 must be smaller than size=50" in said.err
    assert "size=100" not in said.err
    assert not (folder / "mlruns").exists()


@pytest.mark.parametrize(
    "override",
    ["tracking.folder=a,b", "launcher=serial,joblib", "trial.value=a,b", "hydra.job.chdir=true,false", "sweep=none,k"],
)
def test_what_is_no_variable_cannot_be_swept(say: Say, override: str) -> None:
    said = say("sweep", "--dry-run", override)
    assert said.code == 2
    assert override.partition("=")[0] in said.err
    assert said.out == ""


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["retriever.k=range(1,8,3)"], [("retriever.k", "1"), ("retriever.k", "4"), ("retriever.k", "7")]),
        (["retriever.k=choice(1,7)"], [("retriever.k", "1"), ("retriever.k", "7")]),
        (["++retriever.k=1,7"], [("retriever.k", "1"), ("retriever.k", "7")]),
        (["prompt=glob(c*)"], [("prompt", "cited"), ("prompt", "concise")]),
        (["prompt=glob([s*,d*])"], [("prompt", "detailed"), ("prompt", "strict")]),
        (["prompt=cited"], []),
        (["sweep=k"], [("retriever.k", k) for k in ("3", "8", "12", "20")]),
        (["sweep=k", "retriever.k=1,2"], [("retriever.k", "1"), ("retriever.k", "2")]),
        (["sweep=k", "++retriever.k=1"], [("retriever.k", k) for k in ("3", "5", "8", "12", "20")]),
        (["chunker=fixed,sentences", "chunker.size=90"], [("chunker", "fixed"), ("chunker", "sentences")]),
        (
            ["chunker=fixed,recursive", "chunker.size=60,90"],
            [("chunker", "fixed"), ("chunker.size", "90")],
        ),
        (
            ['prompt.passage="{text}, then","a {text}"'],
            [("prompt.passage", v) for v in ('"{text}, then"', '"a {text}"')],
        ),
        (['prompt.passage=choice("{text}, then")'], [("prompt.passage", "'{text}, then'")]),
        (["chunker.separators=[' '],['x']"], [("chunker.separators", "[' ']"), ("chunker.separators", "['x']")]),
    ],
    ids=lambda value: value[0] if value and isinstance(value[0], str) else "",
)
def test_every_way_to_write_values(say: Say, arguments: list[str], expected: list[tuple[str, str]]) -> None:
    said = say("sweep", "--json", "--dry-run", *arguments)
    assert said.code == 0, said.err
    assert values_of(said.json) == [(None, None), *expected]


def test_presets_hold_lists_options_expressions_and_hostile_texts(say: Say, folder: Path) -> None:
    texts = ["{text}, then", 'it\'s "{text}" \\', "a\n{text}\tä ${x} \\${y} #: %s", " {text} ", "{text}\\'"]
    escaped = [text.replace("\\${y}", "\\\\\\${y}").replace(" ${x}", " \\${x}") for text in texts]
    write_yaml(
        folder / "more",
        "sweep/mine",
        variables={
            "prompt": ["plain", "cited"],
            "reranker": "glob([no*,sh*])",
            "retriever.k": "range(3,5)",
            "prompt.passage": escaped,
        },
    )
    said = say("sweep", "--json", "sweep=mine", "retriever.k=3")
    assert said.code == 0, said.err
    runs = said.json["rows"]
    assert [(run["variable"], run["value"]) for run in runs[:4]] == [
        (None, None),
        ("prompt", "cited"),
        ("reranker", "shortest"),
        ("retriever.k", "4"),
    ]
    got = [config_of(run["outcome"])["prompt"]["passage"] for run in runs if run["variable"] == "prompt.passage"]
    assert got == texts


def test_the_command_line_wins_over_the_preset_and_may_set_its_baseline(say: Say) -> None:
    said = say("sweep", "--json", "--dry-run", "sweep=k", "retriever.k=8")
    assert [(run["value"], run["baseline"]) for run in said.json["runs"][1:]] == [
        (k, "8") for k in ("3", "5", "12", "20")
    ]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["retriever.k=interval(1,7)"], "an interval has no list of values"),
        (["prompt=glob(x*)"], "nothing to sweep"),
        (["prompt.template=Be short, please"], "the commas make this text several values"),
        (["prompt=Short answer, please"], "prompt=Short answer: there is no such option"),
        (["+retriever.foo=1,2"], "retriever.foo is not a known key"),
        (["+retriever.k=1,2"], "++retriever.k=1"),
        (["chunker=fixed,nope,recursve", "retriever.k=x,1"], "retriever.k=x: "),
        (["~retriever.k"], "retriever.k is missing"),
        (["~retriever"], "retriever is missing"),
        (["sweep.variables.retriever=[]", "retriever.k=1,2"], "retriever"),
    ],
)
def test_what_cannot_be_planned_is_told_and_nothing_runs(
    say: Say, folder: Path, arguments: list[str], told: str
) -> None:
    said = say("sweep", *arguments)
    assert (said.code, said.out) == (2, "")
    assert told in said.err
    assert "Traceback" not in said.err
    assert not (folder / "mlruns").exists()


def test_a_sweep_of_nothing_says_so(say: Say) -> None:
    assert "nothing is swept" in say("sweep", "--dry-run", "retriever.k=1").err


def test_a_wrong_preset_names_its_key(say: Say, folder: Path) -> None:
    write_yaml(folder / "more", "sweep/typo", variabels={"retriever.k": [1]})
    write_yaml(folder / "more", "sweep/kind", variables={"retriever.k": 3})
    assert "sweep.variabels is not a known key (did you mean sweep.variables?" in say("sweep", "sweep=typo").err
    assert "sweep.variables.retriever.k" in say("sweep", "sweep=kind").err


def test_the_plan_is_shown_before_it_runs_with_what_is_left_out(say: Say) -> None:
    said = say("sweep", "retriever.k=5,3,3")
    assert said.code == 0, said.err
    assert said.out.index("Plan: 1 baseline + 1 variant") < said.out.index("Sweep 2")
    assert "left out: retriever.k=5 equals the baseline" in said.err
    assert "left out: retriever.k=3 equals retriever.k=3" in said.err


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30) | st.text("\\'\"${}[](), =:\n\tä", max_size=15)


@given(TEXTS)
def test_a_quoted_text_comes_back_from_the_override_parser(text: str) -> None:
    value = OverridesParser.create().parse_overrides([f"trial.value={quoted(text)}"])[0]._value
    assert isinstance(value, QuotedString)
    assert value.text == text


@given(TEXTS)
def test_an_escaped_text_comes_back_from_omegaconf(text: str) -> None:
    from omegaconf import OmegaConf

    config = OmegaConf.create({"a": {"b": escape(text)}})
    assert OmegaConf.to_container(config, resolve=True) == {"a": {"b": text}}
    assert config.a.b == text


def test_values_reach_the_run_unchanged(say: Say) -> None:
    values = ['"a, {text}"', "'it\\'s {text}'", '"${x} {text} \\\\"', '"ä\\"{text}\\"%: #"']
    said = say("sweep", "--json", f"prompt.passage={','.join(values)}")
    assert said.code == 0, said.err
    for run, value in zip(said.json["rows"][1:], values, strict=True):
        assert run["value"] == config_of(run["outcome"])["trial"]["value"] == value
        assert run["outcome"]["name"] == f"prompt.passage={value}"
    passages = [config_of(run["outcome"])["prompt"]["passage"] for run in said.json["rows"][1:]]
    assert passages == ["a, {text}", "it's {text}", "${x} {text} \\", 'ä"{text}"%: #']
