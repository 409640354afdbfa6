"""The jobs of docs/ci.md run, on a part of the bundled test set, with a stub in place of the judge's endpoint."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from tests.spine.commands import ROOT, Said
from tests.stages.openai_stub import OpenAIStub, chat, openai_stub

__all__ = ["openai_stub"]

DOCUMENT = (ROOT / "docs/ci.md").read_text(encoding="utf-8")
JOBS = [
    yaml.load(body, yaml.BaseLoader)
    for body in re.findall(r"^```yaml\n(name: .*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)
]
FILES = re.findall(r"^```yaml file=(\S+)\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)
ONCE = re.findall(r"^\$ (paribus .* ci/.*)$", DOCUMENT, re.MULTILINE)

Shell = Callable[..., Said]


def script(job: dict[str, Any]) -> str:
    """The step of a job that calls paribus."""
    (step,) = [step["run"] for step in job["jobs"]["gate"]["steps"] if "paribus " in step.get("run", "")]
    return str(step)


def rating(value: int) -> Callable[[Any], Any]:
    return lambda _: chat(json.dumps({"reason": "so it says", "rating": value}))


@pytest.fixture
def shell(tmp_path: Path, openai_stub: OpenAIStub) -> Shell:
    """Runs the lines of a job as a runner does, six questions each, with more overrides for `paribus run`."""
    for name, body in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(body, encoding="utf-8")
    openai_stub.answers(rating(2))
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "JUDGE": f"judge=openai judge.base_url={openai_stub.base_url} judge.model=stub judge.max_attempts=1",
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
    }

    def command(lines: str, *more: str) -> Said:
        few = re.sub(r"paribus (run|record) ", rf"paribus \1 dataset.limit=6 {' '.join(more)} ", lines)
        done = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", f"rm -rf out\n{few}"],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
        )
        return Said(done.returncode, done.stdout, done.stderr)

    return command


@pytest.mark.slow
def test_the_three_tiers(shell: Shell, openai_stub: OpenAIStub, tmp_path: Path) -> None:
    assert (len(JOBS), len(FILES), len(ONCE)) == (3, 2, 3)
    every_commit, frozen, live = map(script, JOBS)
    for line in ONCE:
        said = shell(line)
        assert said.code == 0, said.err
    baseline = json.loads((tmp_path / "baseline.json").read_text(encoding="utf-8"))
    assert [definition["mean"]["n"] for definition in baseline["definitions"]][-1] == 6

    # Every commit: nobody is asked.
    asked = len(openai_stub.requests)
    said = shell(every_commit)
    assert said.code == 0, said.err
    assert len(openai_stub.requests) == asked
    assert "Gate: passed" in (tmp_path / "summary.md").read_text(encoding="utf-8")
    said = shell(every_commit, "retriever.k=1")  # retrieval is worse, and the answers are not in the recording
    assert said.code == 2, said.err
    assert "REGRESSION labels/recall: " in said.err
    assert "ERROR rubric/correctness: " in said.err
    report = ElementTree.parse(tmp_path / "gate.xml").getroot()
    assert int(report.attrib["failures"]) >= 1
    assert report.attrib["errors"] == "1"

    # Another prompt, whose answers the judge dislikes.
    said = shell(frozen)
    assert said.code == 0, said.err
    openai_stub.answers(rating(0))
    said = shell(frozen, "prompt=strict")
    assert said.code == 1, said.err
    assert "REGRESSION rubric/correctness: 1 -> " in said.err
    assert "changed since the baseline: judge" not in said.err
    assert "prompt plain -> strict" in said.err
    assert not re.search("(REGRESSION|WARNING|ERROR).*labels/recall", said.err)
    assert shell(frozen, "retriever.k=1").code == 2

    # Live: first with the judge as it was, then with one that moved.
    openai_stub.answers(rating(2))
    said = shell(live)
    assert said.code == 0, said.err
    openai_stub.answers(rating(0))
    said = shell(live)
    assert said.code == 2, said.err
    assert "ERROR rubric/correctness: the judge moved, not the system" in said.err
