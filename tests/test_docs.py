"""What the documents show is run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```\w+ file=(\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def ran(folder: Path, arguments: str) -> Any:
    """What a command of CONTRIBUTING printed, run beside its files."""
    blocks = BLOCK.findall(CONTRIBUTING)
    assert len(blocks) == 10
    for name, body in blocks:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(body, encoding="utf-8")
    assert f"$ PYTHONPATH=. paribus {arguments}\n" in CONTRIBUTING
    done = subprocess.run(
        [sys.executable, "-m", "runner", *arguments.split(), "--json", "tracking=off", "dataset.limit=10"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": "."},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_chunker_and_the_definition_of_contributing_run(tmp_path: Path) -> None:
    rows = ran(tmp_path, "sweep --config-dir . metrics=brevity chunker=paragraphs,sentences")["rows"]
    assert [row["run"] for row in rows] == ["baseline", "chunker=paragraphs", "chunker=sentences"]
    assert all(row["outcome"]["means"]["mine/brevity.words-12"]["n"] for row in rows)


def test_the_judge_and_the_judged_definition_of_contributing_run(tmp_path: Path) -> None:
    outcome = ran(tmp_path, "run --config-dir . metrics=politeness judge=command")
    assert outcome["means"]["mine/politeness"] == {"value": 1.0, "n": 10, "failed": 0, "not_applicable": 0}
    assert len(outcome["judge"]) == 16


def test_the_system_of_contributing_runs_beside_the_stages(tmp_path: Path) -> None:
    rows = ran(tmp_path, "sweep --config-dir . system=stages,parrot")["rows"]
    assert [row["run"] for row in rows] == ["baseline", "system=parrot"]
    # Of the first ten questions, the first is answered by that passage, which is more than half of its label.
    assert rows[1]["outcome"]["means"]["labels/success"]["value"] == 0.1


def test_every_exit_code_of_the_readme_is_one_of_ours() -> None:
    from runner.errors import ExitCode

    listed = re.findall(r"^\| (\d+) \|", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert [int(code) for code in listed] == [int(code) for code in ExitCode]
