"""Versions of one package beside each other, each in an environment of its own.

A package of two versions is built here, so that nothing is fetched: `probe` judges whether an answer is polite, and its
second version has another prompt, another default and another formula.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adapters.schema import Chunk, Question, Ranked, Record, to_json
from runner import console
from runner.audit import environments, versions
from runner.audit.elsewhere import ASKED, FOUND, Asked, edition
from runner.audit.environments import Release, environment, found_uv, needs, release
from runner.audit.versions import VersionAudit, changed, compare_versions, diff
from runner.errors import ComponentError, ConfigError

PROBE = """
class Probe:
    def __init__(self, unclear={unclear}):
        self.unclear = unclear

    def prompt(self, answer):
        return "Is each claim true?\\n```\\nSay yes, no or {word}.\\n```\\n" + answer

    def value(self, words):
        credits = [{{"yes": 1.0, "no": 0.0}}.get(word, self.unclear) for word in words]
        return sum(credits) / len(credits)
"""
NEWER = "\n\nclass Second(Probe):\n    pass\n"

DEFINITIONS = '''
from typing import ClassVar

from pydantic import BaseModel

from adapters.base import JudgedScorer
from adapters.bench import CallSite
from adapters.formulas import Formula
from adapters.isolation import framework, installed_version
from adapters.judge import Judge, Message, Reply, schema_text
from adapters.schema import JudgeCard, Verdict


class Said(BaseModel):
    verdicts: list[str]


class Truth(JudgedScorer):
    """Share of the answer's sentences that a judge calls true."""

    id: ClassVar[str] = "probe/truth"
    kind: ClassVar[str] = "Probe"
    asks = "is the answer true?"
    framework = "probe"
    unit_judged = "sentence"
    hit = "the judge says yes"
    formula = "hits / sentences, unclear counts whole"
    nothing_to_judge = "not applicable without an answer"
    requires = ("answer",)
    source = "this test"
    calls = "1"

    def framework_version(self):
        return installed_version("probe")

    def implementation(self):
        return f"probe.{self.kind}"

    def prepare(self):
        framework("probe", "probe")

    def probe(self):
        return getattr(framework("probe", "probe")[0], self.kind)()

    async def run(self, measurement):
        prompt = self.probe().prompt(measurement.record.answer)
        said = await measurement.ask(CallSite("verdicts"), [Message("user", prompt)], Said)
        return self.probe().value(said.verdicts)

    def evidence(self, measurement):
        (said,) = measurement.replies("verdicts")
        sentences = measurement.record.answer.split(". ")
        ours = {"yes": "supported", "no": "contradicted", "unclear": "absent"}
        return tuple(Verdict(s, w, ours[w]) for s, w in zip(sentences, said["verdicts"], strict=True))

    def prompts(self):
        return {"verdicts": self.probe().prompt("<answer>") + schema_text(Said)}

    def arithmetic(self):
        words = {"supported": 1.0, "contradicted": 0.0, "absent": 1.0}
        return Formula("sentences of the answer", {"yes": 1.0, "no": 0.0, "unclear": 1.0}, words)


class Later(Truth):
    """The same by a class that the first version does not have."""

    id: ClassVar[str] = "probe/later"
    kind: ClassVar[str] = "Second"


class ByMarks(Judge):
    """Says of each sentence what its mark says: ? unclear, ! no."""

    @property
    def card(self):
        return JudgeCard("marks", "marks")

    async def ask(self, call):
        answer = call.messages[0].content.rsplit("```\\n", 1)[1]
        words = ["unclear" if "?" in s else "no" if "!" in s else "yes" for s in answer.split(". ")]
        return Reply(Said(verdicts=words).model_dump_json())
'''
JUDGE = {"_target_": "probe_definitions.ByMarks"}
TRUTH, LATER = "probe_definitions:Truth", "probe_definitions:Later"


def wheel(folder: Path, version: str, text: str) -> None:
    """A wheel of `probe` with one module."""
    info = f"probe-{version}.dist-info"
    files = {
        "probe.py": text,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: probe\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    listed = [
        f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(found.encode()).digest()).rstrip(b'=').decode()},"
        f"{len(found.encode())}\n"
        for name, found in files.items()
    ]
    files[f"{info}/RECORD"] = "".join([*listed, f"{info}/RECORD,,\n"])
    with zipfile.ZipFile(folder / f"probe-{version}-py3-none-any.whl", "w") as archive:
        for name, found in files.items():
            archive.writestr(name, found)


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The two wheels as the only index, the definitions on the path, and what paribus needs taken from here."""
    place = tmp_path_factory.mktemp("versions")
    wheels, path = place / "wheels", place / "path"
    wheels.mkdir()
    path.mkdir()
    wheel(wheels, "1.0", PROBE.format(unclear=1.0, word="unclear"))
    wheel(wheels, "2.0", PROBE.format(unclear=0.5, word="UNCLEAR") + NEWER)
    (path / "probe_definitions.py").write_text(DEFINITIONS, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(environments, "needs", lambda package: [])
        for installer in ("PIP", "UV"):
            patch.setenv(f"{installer}_NO_INDEX", "1")
            patch.setenv(f"{installer}_FIND_LINKS", str(wheels))
        for name in [name for name in os.environ if name.endswith(("_INDEX_URL", "_DEFAULT_INDEX"))]:
            patch.delenv(name)
        patch.setenv("PIP_CONFIG_FILE", os.devnull)
        patch.setenv("PYTHONPATH", os.pathsep.join((str(path), sysconfig.get_path("purelib"))))
        patch.syspath_prepend(str(path))
        yield place


def answered(id: str, answer: str) -> Record:
    chunk = Chunk("d", 0, 4, "text")
    ranked = (Ranked(chunk, 1.0, 1),)
    return Record(id, asked_k=1, retrieved=ranked, reranked=ranked, context=(chunk,), answer=answer)


QUESTIONS = [Question("a", "A?"), Question("b", "B?")]
RECORDS = [answered("a", "One. Two?. Three!"), answered("b", "One. Two")]


@pytest.fixture(scope="module")
def found(workplace: Path) -> VersionAudit:
    """Both versions, read and scored."""
    told: list[str] = []
    result = compare_versions(
        ["probe==1.0", "probe==2.0"],
        [TRUTH, LATER],
        questions=QUESTIONS,
        records=RECORDS,
        judge=JUDGE,
        source="two answers",
        cache=workplace / "cache",
        tell=told.append,
    )
    assert any(text.startswith("probe==1.0: installed in ") for text in told)
    return result


def test_the_prompt_the_default_and_the_code_of_two_versions_are_compared(found: VersionAudit) -> None:
    truth = found.changes[0]
    assert (truth.definition, truth.left, truth.right, truth.why_not) == (
        "probe/truth",
        "probe==1.0",
        "probe==2.0",
        None,
    )
    assert truth.arguments == {"unclear": ("1.0", "0.5")}
    assert truth.fields == {}
    prompt = truth.prompts["verdicts"]
    assert (prompt.added, prompt.removed) == (1, 1)
    assert "-Say yes, no or unclear." in prompt.text
    assert "+Say yes, no or UNCLEAR." in prompt.text
    assert truth.code
    assert "+    def __init__(self, unclear=0.5):" in truth.code.text
    old, new = (found.editions[name][0].card for name in found.versions)
    assert old
    assert new
    assert (old["version"], new["version"]) == ("1.0", "2.0")
    assert old["fingerprint"] != new["fingerprint"]


def test_a_definition_that_a_version_does_not_have_is_told_with_the_reason(found: VersionAudit) -> None:
    later = found.changes[1]
    assert later.why_not
    assert later.why_not.startswith("in probe==1.0: ")
    assert "no attribute 'Second'" in later.why_not
    assert found.editions["probe==2.0"][1].card
    assert found.audit
    assert any(note.startswith("left out: probe/later==1.0: ") for note in found.audit.notes)
    assert [row.definition for group in found.audit.groups[1:] for row in group.rows] == ["probe/later==2.0"]


def test_each_version_scores_the_same_records_by_its_own_code(found: VersionAudit) -> None:
    assert found.audit
    group = found.audit.groups[0]
    one, other = group.rows
    assert (one.definition, other.definition) == ("probe/truth==1.0", "probe/truth==2.0")
    # a: yes, unclear, no. 1.0 counts unclear whole: 2/3; 2.0 counts half: 1.5/3. b: yes, yes: 1 by both.
    assert one.mean == pytest.approx((2 / 3 + 1) / 2)
    assert other.mean == pytest.approx((0.5 + 1) / 2)
    assert found.audit.judge
    assert found.audit.judge.provider == "marks"


def test_an_arithmetic_that_changed_is_a_hazard_and_not_a_part(found: VersionAudit) -> None:
    """The formula is that of the version that paribus pins; it does not give the other version's score of `a`."""
    assert found.audit
    group = found.audit.groups[0]
    (hazard,) = group.hazards
    assert (hazard.definition, hazard.ids) == ("probe/truth==2.0", ("a",))
    assert group.pairs[0].why
    assert group.pairs[0].why.n == 1


def empty(asked: Release, folder: Path, *rest: object) -> None:
    """Installs nothing but the name of a python."""
    python = environments._python(folder)
    python.parent.mkdir(parents=True)
    python.write_text("")


def test_an_environment_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(environments, "_install", empty)
    python = environment(Release("probe", "1.0"), tmp_path, told.append)
    assert len(told) == 2
    assert environment(Release("probe", "1.0"), tmp_path, told.append) == python
    assert len(told) == 2
    assert environment(Release("probe", "2.0"), tmp_path, told.append) != python
    assert not list(tmp_path.glob(".making-*"))


def test_one_whose_python_is_gone_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "_install", empty)
    python = environment(Release("probe", "1.0"), tmp_path, lambda text: None)
    (python.parent / "left over").touch()
    python.unlink()
    assert environment(Release("probe", "1.0"), tmp_path, lambda text: None) == python
    assert [path.name for path in python.parent.iterdir()] == [python.name]


def test_one_whose_python_does_not_run_is_named_with_what_to_remove(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environments, "_install", empty)
    with pytest.raises(ComponentError, match=r"deepeval==1\.0: .* does not run .*; where its .* damaged, remove "):
        compare_versions(
            ["deepeval==1.0", "deepeval==2.0"], ["deepeval/faithfulness"], cache=tmp_path, tell=lambda text: None
        )


def test_one_that_was_interrupted_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: Any) -> None:
        empty(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(environments, "_install", interrupted)
    with pytest.raises(KeyboardInterrupt):
        environment(Release("probe", "1.0"), tmp_path, lambda text: None)
    assert list(tmp_path.iterdir()) == []


def test_the_one_of_another_process_that_was_first_is_left_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environments, "_install", empty)
    name = environment(Release("probe", "1.0"), tmp_path / "a", lambda text: None).relative_to(tmp_path / "a")

    def beaten(*arguments: Any) -> None:
        empty(*arguments)
        (tmp_path / "b" / name).parent.mkdir(parents=True)
        (tmp_path / "b" / name).write_text("theirs")

    monkeypatch.setattr(environments, "_install", beaten)
    assert environment(Release("probe", "1.0"), tmp_path / "b", lambda text: None).read_text() == "theirs"


def test_what_cannot_be_installed_is_one_message_with_the_installers_last_lines(workplace: Path) -> None:
    with pytest.raises(ConfigError, match=r"^probe==3\.0 cannot be installed beside what paribus needs: ") as raised:
        environment(Release("probe", "3.0"), workplace / "other", lambda text: None)
    assert "probe==3.0" in str(raised.value).split("it said last:")[1]
    assert list((workplace / "other").iterdir()) == []


@pytest.mark.slow
@pytest.mark.skipif(not found_uv(), reason="uv is neither on PATH nor beside python, so that pip makes all of them")
def test_without_uv_pip_makes_it(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(environments.shutil, "which", lambda *args, **kwargs: None)
    assert environment(Release("probe", "1.0"), workplace / "by-pip", told.append).exists()
    assert "with pip" in told[0]


def test_an_environment_that_holds_another_version_is_refused(
    workplace: Path, found: VersionAudit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PYTHONPATH comes before what is installed."""
    wrong = environment(Release("probe", "1.0"), workplace / "cache", lambda text: None)
    (site,) = wrong.parents[1].glob("[Ll]ib/**/site-packages")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(site), os.environ["PYTHONPATH"])))
    with pytest.raises(ConfigError, match=r"probe==2\.0: the environment for probe==2\.0 holds 1\.0; see PYTHONPATH"):
        compare_versions(["probe==2.0", "probe==1.0"], [TRUTH], cache=workplace / "cache", tell=lambda text: None)


@pytest.mark.parametrize(
    ("written", "package", "version"),
    [
        ("deepeval==4.2.6", "deepeval", "4.2.6"),
        (" DeepEval == 4.2.6 ", "deepeval", "4.2.6"),
        ("trulens-core==2.15.0", "trulens", "2.15.0"),
        ("trulens_feedback==2.15.0", "trulens", "2.15.0"),
        ("ragas==0.4.0rc1", "ragas", "0.4.0rc1"),
    ],
)
def test_a_requirement_names_a_package_and_one_version(written: str, package: str, version: str) -> None:
    assert release(written) == Release(package, version)


@pytest.mark.parametrize("written", ["deepeval", "deepeval>=4", "deepeval==4.*", "==4", "deepeval==4 --pre", "-e=="])
def test_anything_else_is_refused(written: str) -> None:
    with pytest.raises(ConfigError, match=r"write it like deepeval==4\.2\.6"):
        release(written)


@pytest.mark.parametrize(
    ("requirements", "definitions", "message"),
    [
        (["deepeval==4.2.6"], [], "two or more versions of one package, got deepeval==4.2.6"),
        (["deepeval==4.2.6", "deepeval==4.2.6"], [], "two or more versions of one package, got deepeval==4.2.6"),
        (["deepeval==4.2.6", "ragas==0.4.3"], [], "versions of one package, got deepeval and ragas"),
        (["numpy==1.0", "numpy==2.0"], [], "no definition of numpy is registered"),
        (["deepeval==1", "deepeval==2"], ["ragas/faithfulness"], "ragas/faithfulness is a definition of ragas"),
        (["deepeval==1", "deepeval==2"], ["deepeval/hallucination"] * 2, "deepeval/hallucination is named twice"),
        (["deepeval==1", "deepeval==2"], ["deepeval/faithfulnes"], "no definition has the id"),
    ],
)
def test_what_cannot_be_compared_is_told_before_any_work(
    requirements: list[str], definitions: list[str], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=message):
        compare_versions(requirements, definitions, cache=tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


def test_an_environment_gets_what_paribus_needs_and_no_other_framework() -> None:
    def names(package: str) -> set[str]:
        return {line.split(">")[0].split("=")[0].split("<")[0] for line in needs(package)}

    assert {"pydantic", "hydra-core", "openai", "numpy"} <= names("deepeval")
    assert not names("deepeval") & {"mlflow", "ragas", "deepeval", "trulens-core", "langchain-community", "pytest"}
    assert "langchain-community" in names("ragas")


def test_what_works_elsewhere_ends_with_who_started_it(tmp_path: Path) -> None:
    """A judge that costs money must not go on being asked when nobody waits; here the starter is gone at once."""
    asked = Asked({}, ({"id": "deepeval/faithfulness"},), None)
    (tmp_path / ASKED).write_text(to_json(asked), encoding="utf-8")
    command = [sys.executable, "-m", "runner.audit.elsewhere", str(tmp_path)]
    assert subprocess.run(command, stdin=subprocess.DEVNULL, timeout=60, check=False).returncode == 1
    assert not (tmp_path / FOUND).exists()


def test_a_definition_is_read_from_the_installed_package() -> None:
    read = edition({"id": "deepeval/faithfulness", "truths_extraction_limit": 3})
    assert read.why_not is None
    assert read.definition == "deepeval/faithfulness.truths_extraction_limit-3"
    assert set(read.prompts) == {"truths", "claims", "verdicts"}
    assert read.arguments["penalize_ambiguous_claims"] == "False"
    assert read.code
    assert read.code.startswith("class FaithfulnessMetric")


def test_a_version_beside_itself_is_the_same() -> None:
    read = edition({"id": "deepeval/hallucination"})
    assert changed(read, read, "left", "right").same


def test_texts_that_are_alike_have_no_diff() -> None:
    assert diff("a\nb", "a\nb", "x==1", "x==2") is None
    found = diff("a\nb\nc", "a\nB\nc\nd", "x==1", "x==2")
    assert found
    assert (found.added, found.removed, str(found)) == (2, 1, "+2 −1")


def test_the_page_holds_prompts_with_fences_of_their_own(found: VersionAudit) -> None:
    page = versions.markdown(found)
    assert "| probe/truth | verdicts | 1 changed | same | +2 −2 |" in page
    assert (
        "of 2 definitions, 1 has another prompt, 1 has other arguments, 1 has other code, 1 cannot be compared." in page
    )
    # The prompt holds a fence of three backticks.
    assert "````diff\n--- probe==1.0\n+++ probe==2.0\n" in page


def test_the_terminal_shows_the_table_and_the_diffs(found: VersionAudit, capsys: pytest.CaptureFixture[str]) -> None:
    versions.show(found)
    shown = capsys.readouterr()
    assert "probe/truth" in shown.out
    assert "+Say yes, no or UNCLEAR." in shown.out
    assert all(len(line) <= console.WIDTH for line in shown.out.splitlines())
    assert "probe/later: in probe==1.0: " in shown.err


def test_json_holds_both_editions(
    found: VersionAudit, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(console.FORMAT, "json")
    versions.show(found)
    printed: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert printed["versions"] == ["probe==1.0", "probe==2.0"]
    assert "Say yes, no or unclear." in printed["editions"]["probe==1.0"][0]["prompts"]["verdicts"]
    assert [change["same"] for change in printed["changes"]] == [False, False]
