"""Commands beside a browser, each in a process of its own: Playwright's loop runs in the thread of the tests, where
`asyncio.run` is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def paribus(folder: Path, *arguments: str) -> str:
    """What `paribus …` prints in `folder`."""
    done = subprocess.run(
        [sys.executable, "-m", "runner", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
