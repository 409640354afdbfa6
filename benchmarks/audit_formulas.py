"""What it takes to audit stored verdicts: seconds of the processor and megabytes, for N answers of five claims each.

    PYTHONPATH=. python benchmarks/audit_formulas.py [N]

The command is `paribus audit FILE --formulas-only --json`, in a process of its own, start of Python included.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

WORDS = ("supported", "contradicted", "absent")
CHILD = r"""
import re, sys, time
from pathlib import Path
from runner.cli import main
code = main(["audit", "many.jsonl", "--formulas-only", "--out", "out", "--json", "tracking=off"])
# Not ru_maxrss, which counts what the process was before it became this program.
most = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
sys.stderr.write(f"{code} {time.process_time()} {int(most[1]) / 1024}")
"""


def write(path: Path, count: int) -> None:
    """`count` answers with the verdicts of people, drawn at random."""
    generator = random.Random(1)
    with path.open("w", encoding="utf-8") as file:
        for n in range(count):
            claims = [{"text": f"Claim {m} of {n}.", "verdict": generator.choice(WORDS)} for m in range(5)]
            answer = {"id": f"q{n}", "question": f"What of {n}?", "answer": "This and that.", "contexts": ["So it is."]}
            file.write(json.dumps({**answer, "origin": "human", "claims": claims}) + "\n")


def audited(folder: Path) -> tuple[int, float, float, Any]:
    """Exit code, seconds of the processor, megabytes and result of the audit of many.jsonl in `folder`."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    root = str(Path(__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", CHILD],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        env={**kept, "PYTHONPATH": root},
    )
    code, seconds, megabytes = done.stderr.splitlines()[-1].split()
    return int(code), float(seconds), float(megabytes), json.loads(done.stdout)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as scratch:
        write(Path(scratch) / "many.jsonl", count)
        for _ in range(3):
            _, seconds, megabytes, _ = audited(Path(scratch))
            print(f"{count:,} answers: {seconds:.1f} s of the processor, {megabytes:.0f} MB")


if __name__ == "__main__":
    main()
