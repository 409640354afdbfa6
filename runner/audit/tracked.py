"""An audit in MLflow: a run of its own, with the figures that its charts can show and every file."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from runner.audit.findings import Audit
from runner.run_log import metric_name

if TYPE_CHECKING:
    from runner.config import Tracking


def track(found: Audit, folder: Path, settings: Tracking) -> tuple[str, str]:
    """Log `found` and the files of `folder`; the id of the MLflow run, and the command that shows it."""
    from runner.tracking import Tracker, ui_command

    tags = {
        "paribus.results": str(folder),
        "paribus.source": found.source,
        "paribus.judge": json.dumps(asdict(found.judge), ensure_ascii=False) if found.judge else "none",
    }
    judge = f"{found.judge.provider} {found.judge.model}" if found.judge else "none"
    params = {"judge": judge, "threshold": found.threshold, "similar": found.similar}
    with Tracker(settings).audit(f"audit of {found.source}", tags) as handle:
        handle.log(figures(found), params, folder)
    return handle.run_id, ui_command(settings)


def figures(found: Audit) -> dict[str, float]:
    """Means by definition, and of each pair (`difference/LEFT..RIGHT`) the difference with its parts."""
    values: dict[str, float | None] = {"n/records": float(found.records)}
    for group in found.groups:
        for row in group.rows:
            name = metric_name(row.definition)
            values |= {name: row.mean, f"n/{name}": float(row.n), f"failed/{name}": float(row.failed)}
        for pair in group.pairs:
            name = metric_name(f"{pair.left}..{pair.right}")
            values |= {
                f"difference/{name}": pair.difference,
                f"apart/{name}": pair.apart,
                f"spearman/{name}": pair.spearman,
            }
            if pair.why:
                values |= {f"{part}/{name}": getattr(pair.why, part) for part in ("claims", "verdicts", "formula")}
    for family in found.families:
        values |= {metric_name(reading.definition): reading.mean for reading in family.readings}
    return {name: value for name, value in values.items() if value is not None}
