from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from runner.dataset import TestSet

Lines = list[dict[str, Any] | str]
Load = Callable[..., TestSet]


def write(path: Path, lines: Lines | bytes) -> None:
    if isinstance(lines, bytes):
        path.write_bytes(lines)
    else:
        text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
        path.write_text(text, encoding="utf-8", newline="\n")
