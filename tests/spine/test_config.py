"""Configuration: everything that ships composes, and every mistake is one sentence that names the key."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from hydra_plugins.paribus.verbatim_source import VerbatimConfigSource
from runner.component import build
from runner.config import STAGES, experiment
from runner.prompts.chat import ChatPrompt
from tests.spine.commands import ROOT, Say, config_of, write_yaml

FILES = sorted(path.relative_to(ROOT / "conf") for path in (ROOT / "conf").rglob("*.yaml"))
OPTIONS = [(file.parent.as_posix(), file.stem) for file in FILES if file.parent not in (Path(), Path("gate"))]
"""All but the rules of `paribus gate`, which are no part of an experiment."""


def composed(*overrides: str) -> Any:
    """The packaged configuration as the command line composes it."""
    from hydra import compose, initialize_config_dir

    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3", job_name="test"):
        return compose("config", overrides=list(overrides), return_hydra_config=True)


@pytest.mark.parametrize(("group", "option"), OPTIONS, ids=[f"{group}={option}" for group, option in OPTIONS])
def test_every_option_composes_with_the_defaults_and_builds(group: str, option: str) -> None:
    config = composed(f"{group}={option}")
    assert config.hydra.runtime.choices[group] == option
    assert experiment(config)


@pytest.mark.parametrize("file", FILES, ids=str)
def test_every_key_has_a_comment(file: Path) -> None:
    lines = (ROOT / "conf" / file).read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("# ")
    wanting, block = [], None
    for before, line in zip(["", *lines], lines, strict=False):
        indent = len(line) - len(line.lstrip())
        if block is not None and (indent > block or not line.strip()):
            continue  # inside a block of text, or below a key that is commented as a whole
        block = None
        key = re.match(r" *([\w./ ]+):( |$)", line)
        if not key:
            continue
        commented = "#" in line or before.lstrip().startswith("# ")
        if re.search(r":\s*[|>][-+]?\s*(#|$)", line) or (commented and re.search(r":\s*#", line) and key[1] != "hydra"):
            block = indent
        parent = re.search(r":\s*$", line)
        if not (commented or parent or key[1] in ("_target_", "defaults", "variables")):
            wanting.append(line.strip())
    assert not wanting


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["retreiver.k=3"], ["retreiver.k is not a known key: did you mean retriever.k?"]),
        (["+retreiver.k=10"], ["retreiver is not a known key (did you mean retriever?"]),
        (["++chunker.sise=3"], ["chunker.sise is not a known key (did you mean chunker.size?"]),
        (["foo=1"], ["foo is not a known key"]),
        (["+foo=1"], ["foo is not a known key"]),
        (["+trial.foo=1"], ["trial.foo is not a known key"]),
        (["+sweep.foo=1"], ["sweep.foo is not a known key"]),
        (["+tracking.token=abc"], ["tracking.token is not a known key"]),
        (["+chunker.size.x=1"], ["chunker.size"]),
        (["retriever=dense", "retriever.pool=5"], ["retriever.pool is not a key of the option", "retriever=hybrid"]),
        (["metrics.definitions=[labels/recal]"], ["labels/recal", "did you mean labels/recall"]),
        (["metrics.table=[labels/nope]"], ["labels/nope", "labels/recall"]),
        (["tracking.enabled=maybe"], ["tracking.enabled='maybe'", "boolean"]),
        (["retriever.k=true"], ["retriever.k=True"]),
        (["retriever.k=0"], ["retriever.k=0", "greater than 0"]),
        (["chunker.size=1e3"], ["chunker.size=1000.0", "integer"]),
        (["chunker.overlap=60"], ["overlap=60 must be smaller than size=60"]),
        (["reranker=shortest", "retriever.k=9"], ["reranker.candidates=4 must be at least retriever.k=9"]),
        (
            ["retriever.k=x", "chunker.size=many", "context.order=up"],
            ["retriever.k='x'", "chunker.size=", "context.order='up'"],
        ),
        (["retriever._target_=os.path"], ["is not a Retriever"]),
        (["retriever._target_=os.path.join"], ["is not a Retriever"]),
        (["retriever._target_=nothing.here"], ["does not name an importable class"]),
        (["retriever._target_=runner.chunkers.fixed.FixedChunker"], ["is not a Retriever"]),
        (["~retriever._target_"], ["retriever._target_"]),
        (["~prompt"], ["prompt is missing"]),
        (["chunker.unit=${nope}"], ["chunker.unit: ", "nope"]),
        (["+metrics.note=${oc.env:NO_SUCH_VARIABLE}"], ["metrics.note: ", "NO_SUCH_VARIABLE"]),
        (["prompt=Answer, briefly: {question}"], ["prompt=Answer, briefly: {question}", "quoted twice"]),
        (["retriever.k=1,2"], ["retriever.k=1,2 is several values", "paribus sweep"]),
        (["prompt.template=Say something"], ["prompt.template: must contain the placeholder {question}"]),
        (["+generator.api_key=sk-123"], ["generator.api_key is not a known key"]),
        (["generator=openai", "+generator.api_key=sk-123"], ["did you mean generator.api_key_env?"]),
        (["sweep.dry_run=true"], ["a dry run shows the plan"]),
    ],
    ids=" ".join,
)
def test_a_mistake_is_told_before_anything_is_written(
    say: Say, folder: Path, arguments: list[str], told: list[str]
) -> None:
    said = say("run", *arguments)
    assert (said.code, said.out) == (2, "")
    for part in told:
        assert part in said.err
    assert "Traceback" not in said.err
    assert "sk-123" not in "".join(path.read_text() for path in folder.rglob("mlruns/**/*") if path.is_file())


def test_several_faults_are_told_at_once(say: Say) -> None:
    said = say("run", "retriever.k=x", "chunker.size=many", "context.order=up", "+foo=1")
    assert len(said.err.splitlines()) == 4


def test_an_unknown_option_lists_the_options_and_nothing_else(say: Say) -> None:
    said = say("run", "chunker=recursve")
    assert said.err == (
        "paribus: chunker=recursve: there is no such option (did you mean recursive? known here: backwards, fixed, "
        "markdown, recursive, sentences).\n"
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "_target_: spine_stubs.Overlap\nk: 5\npaus: 1.0\n",
            "retriever.paus is not a known key (did you mean retriever.pause?",
        ),
        (
            "defaults:\n  - optioal dense\n  - _self_\n",
            "'optioal' in 'optioal dense' is not a keyword; did you mean optional?",
        ),
        ("defaults:\n  - optioal /reranker: none\n", "'optioal' in 'optioal /reranker' is not a keyword"),
        (
            "defaults:\n  - dens\n",
            "retriever/mine, defaults list: retriever=dens: there is no such option (did you mean dense?",
        ),
        ("k: [1\n", "mine.yaml cannot be read as YAML"),
        ("k: 1\nk: 2\n", "mine.yaml cannot be read as YAML"),
        ("- k\n", "mine.yaml"),
        ("k: 5\n", "retriever._target_"),
        (
            "_target_: spine_stubs.Overlap\nk: ${chunker.sise}\n",
            "retriever.k: Interpolation key 'chunker.sise' not found",
        ),
        ("", "retriever"),
    ],
)
def test_a_mistake_in_a_persons_own_yaml_is_told(say: Say, folder: Path, text: str, told: str) -> None:
    (folder / "more/retriever/mine.yaml").write_text(text)
    said = say("run", "retriever=mine")
    assert (said.code, said.out) == (2, "")
    assert told in said.err
    assert "Traceback" not in said.err


def test_a_yaml_that_is_no_utf_8_is_told(say: Say, folder: Path) -> None:
    (folder / "more/prompt").mkdir()
    (folder / "more/prompt/latin.yaml").write_bytes("template: é {question}".encode("latin-1"))
    (folder / "more/retriever/latin.yaml").write_bytes("_target_: é".encode("latin-1"))
    for override in ("prompt=latin", "retriever=latin"):
        said = say("run", override)
        assert said.code == 2
        assert "latin.yaml cannot be read as YAML" in said.err


def test_a_missing_config_dir_is_told(say: Say) -> None:
    assert "there is no such folder" in say("run", "--config-dir=nowhere").err
    assert "--config-dir needs a folder" in say("run", "--config-dir").err


CASE_46 = "Cost is ${price}; pattern ${a; k=${retriever.k}. {question}"
HARD = [
    CASE_46,
    "a \"b\" 'c': {question} {x} {{y}} # no comment, 100 % %s \\n \\",
    "\\${x} \\\\${y} ${} ${{question} $ {question}\n\n  indented\n",
    "{question} 質問 é e\u0301 👩‍👩‍👧 \u202e\u2028 ${oc.env:HOME} ${now:%Y}",
]


def test_a_prompt_arrives_as_it_is_written(say: Say, folder: Path) -> None:
    """From a YAML that is chosen, from YAMLs that are swept by name, and from quotes on the command line."""
    for number, text in enumerate(HARD):
        write_yaml(folder / "more", f"prompt/hard{number}", _target_="runner.prompts.chat.ChatPrompt", template=text)
    said = say("sweep", "--json", "prompt=hard0", "prompt=hard1,hard2,hard3")
    assert said.code == 0, said.err
    assert [config_of(run["outcome"])["prompt"]["template"] for run in said.json["rows"]] == HARD
    records = (Path(said.json["rows"][0]["outcome"]["folder"]) / "records.jsonl").read_text(encoding="utf-8")
    assert "Cost is ${price}; pattern ${a; k=${retriever.k}. Where are bicycles parked ?" in records
    said = say("run", "--json", f'prompt.template="{CASE_46}, really"')
    assert said.code == 0, said.err
    assert config_of(said.json)["prompt"]["template"] == f"{CASE_46}, really"


def test_every_packaged_prompt_is_read_as_it_is_written() -> None:
    source = VerbatimConfigSource(provider="test", path=f"paribus://{ROOT / 'conf'}")
    for path in (ROOT / "conf/prompt").glob("*.yaml"):
        written = yaml.safe_load(path.read_text(encoding="utf-8"))
        read = source.load_config(f"prompt/{path.stem}").config
        assert {key: read[key] for key in written} == written


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"])) | st.text("${}\\'\"ab.:#\n ", max_size=20))
@example(CASE_46)
def test_any_text_arrives_from_a_prompt_file_in_the_model_call(tmp_path: Path, text: str) -> None:
    from omegaconf import OmegaConf

    template = f"{text}{{question}}"
    (tmp_path / "prompt").mkdir(exist_ok=True)
    keys = {"_target_": "runner.prompts.chat.ChatPrompt", "template": template}
    (tmp_path / "prompt/any.yaml").write_text(yaml.safe_dump(keys, default_style='"'))
    loaded = VerbatimConfigSource(provider="test", path=f"paribus://{tmp_path}").load_config("prompt/any").config
    composed = OmegaConf.merge(OmegaConf.create({"prompt": {}}), {"prompt": loaded})
    plain = OmegaConf.to_container(composed.prompt, resolve=True)
    prompt = build(plain, ChatPrompt, "prompt")  # type: ignore[arg-type]
    assert prompt.template == template
    if "{question}" not in text and "{context}" not in text:
        assert prompt.messages("Q?", [])[0].content == f"{text}Q?"


def test_every_stage_has_a_group_and_every_group_an_option() -> None:
    assert {group for group, _ in OPTIONS} == {
        *STAGES,
        *("system", "records", "judge", "metrics", "diagnosis", "tracking", "sweep", "launcher"),
    }


@pytest.mark.parametrize("secret", ["u:p@ss-one@h", "u:pa/ss-one@h", "h/?a=1&token=ss-one"])
def test_no_part_of_a_password_in_a_url_is_left(secret: str) -> None:
    from runner.config import redacted

    assert "ss-one" not in str(redacted({"tracking": {"uri": f"http://{secret}"}}))
