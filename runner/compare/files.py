"""A comparison as data for machines, and its three files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from adapters.sentences import well_formed
from runner.compare import markdown, page
from runner.compare.findings import Comparison, Row
from runner.outputs import write_whole

DATA, TEXT, PAGE = "compare.json", "compare.md", "compare.html"


def write(found: Comparison, folder: Path) -> list[Path]:
    """Write the comparison as JSON, Markdown and HTML into `folder`, which is made where it is missing.

    Characters that no file can hold (lone surrogates) are replaced. Raises StoreError.
    """
    texts = {DATA: encoded(found), TEXT: markdown.text(found), PAGE: page.html(found)}
    for name, text in texts.items():
        write_whole(folder / name, well_formed(text))
    return [folder / name for name in texts]


def encoded(found: object) -> str:
    """All that a finding (a comparison, a report) holds as JSON text; names are those of its types."""
    return well_formed(json.dumps(found, default=_plain, ensure_ascii=False, allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if not is_dataclass(value):
        return str(value)  # paths, and the dates that YAML knows
    found = {field.name: getattr(value, field.name) for field in fields(value)}
    return {**found, "changed": value.changed, "swapped": value.swapped} if isinstance(value, Row) else found
