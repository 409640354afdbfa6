"""An audit as data for machines, and its three files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from adapters.sentences import well_formed
from runner.audit import markdown, page
from runner.audit.findings import Audit, Systems
from runner.audit.parts import Parts

DATA, TEXT, PAGE = "audit.json", "audit.md", "audit.html"


def write(audit: Audit, folder: Path) -> list[Path]:
    """Write the audit as JSON, Markdown and HTML into `folder`, which is made where it is missing.

    The data comes first, so that it is there whatever the others meet. Characters that no file can hold (lone
    surrogates) are replaced. Raises OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, shown in ((DATA, encoded), (TEXT, markdown.text), (PAGE, page.html)):
        path = folder / name
        path.write_text(well_formed(shown(audit)), encoding="utf-8")
        written.append(path)
    return written


def data(audit: Audit) -> dict[str, Any]:
    """All that the audit holds, as JSON has it; names are those of runner.audit.findings.

    The cells of Parts.cross have names: left_verdicts, right_verdicts, and in each left_formula, right_formula.
    """
    found: dict[str, Any] = json.loads(encoded(audit))
    return found


def encoded(audit: Audit) -> str:
    """The JSON text of `data`."""
    return json.dumps(audit, default=_fields, ensure_ascii=False, allow_nan=False)


def _fields(value: Any) -> dict[str, Any]:
    """A dataclass with its values as they are, which the encoder goes on with. Raises TypeError for other types."""
    if isinstance(value, Mapping):
        return dict(value)
    found = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Parts):
        left, right = (dict(zip(("left_formula", "right_formula"), cells, strict=True)) for cells in value.cross)
        return {**found, "cross": {"left_verdicts": left, "right_verdicts": right}, "difference": value.difference}
    return {**found, "same_winner": value.same_winner} if isinstance(value, Systems) else found
