"""What the documents show is run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```\w+ file=(\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_example_of_contributing_runs(tmp_path: Path) -> None:
    blocks = BLOCK.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    assert len(blocks) == 4
    for name, body in blocks:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(body, encoding="utf-8")
    arguments = "sweep --config-dir . metrics=brevity chunker=paragraphs,sentences"
    assert f"paribus {arguments}" in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "runner", *arguments.split(), "--json", "tracking=off", "dataset.limit=10"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": "."},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert [row["run"] for row in rows] == ["baseline", "chunker=paragraphs", "chunker=sentences"]
    assert all(row["outcome"]["means"]["mine/brevity.words-12"]["n"] for row in rows)


def test_every_exit_code_of_the_readme_is_one_of_ours() -> None:
    from runner.errors import ExitCode

    listed = re.findall(r"^\| (\d+) \|", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert [int(code) for code in listed] == [int(code) for code in ExitCode]
