"""Files that a person asked for: whole, or not there."""

from __future__ import annotations

import os
from pathlib import Path
from shutil import copymode

from runner.errors import StoreError


def write_whole(path: Path, content: str | bytes) -> None:
    """Write `content` (text as UTF-8) into the file `path`, making its folder; where that fails, what was there stays.

    Raises StoreError.
    """
    data = content.encode() if isinstance(content, str) else content
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        target = path.resolve()
        if target.exists() and not target.is_file():  # /dev/stdout may not be replaced; a folder is an error
            target.write_bytes(data)
            return
        beside = target.with_name(f"{target.name}.part")
        try:
            beside.write_bytes(data)
            if target.exists():
                copymode(target, beside)
            os.replace(beside, target)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror}; choose another place, or make room") from error
