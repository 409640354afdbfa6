"""What MLflow shows as the description of a run or a sweep, in Markdown: what it is, and where to look next.

Links lead to MLflow's own pages: the evaluation view with two runs side by side, and charts of one variable.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from runner.config import Trial
from runner.markdown import escaped, table
from runner.phrases import count, number, signed, some
from runner.run_log import TAG_LIMIT, Rows, RunLog, Series, metric_name

NOTE = "mlflow.note.content"
"""The tag that MLflow shows as the description."""


@dataclass(frozen=True)
class Pairing:
    """Which questions the evaluation view can pair with the baseline's. here, there: ids of those without a
    counterpart."""

    paired: int
    here: Sequence[str] = ()
    there: Sequence[str] = ()


def run_note(
    log: RunLog,
    keys: Sequence[str],
    trial: Trial,
    run: str,
    folder: Path,
    traced: tuple[int, int],
    pairing: Pairing | None,
) -> str:
    """The description of a run.

    log: what is sent to it. keys: the definitions of its table. run: its page, `#/experiments/1/runs/…`. traced: how
    many questions are traces, of how many. pairing: None without a baseline.
    """
    experiment, run_id = run.rpartition("/runs/")[0], run.rpartition("/")[2]
    base = trial.baseline_run_id
    lines = [_what(trial, f"{experiment}/runs/{base}"), ""]
    if pairing:
        compared = f"{experiment}/evaluation-runs?selectedRunUuid={run_id}&compareToRunUuid={base}"
        lines.append(f"- [Compare with the baseline question by question]({compared}). {_paired(pairing)}")
    done, of = traced
    lines.append(f"- [Questions of this run]({run}/traces): spans, and scores with their reasons")
    if done < of:
        lines.append(
            f"- Only the first {done:,} of {count(of, 'question')} are here, by tracking.traces; all are in "
            "`results/per_question.csv` among the artifacts"
        )
    lines.append(f"- Result folder: `{str(folder).replace('`', ' ')}`")
    if base:
        lines.append(f"- In a terminal: `paribus compare {base} {run_id}`")
    head = ["definition", "mean", "questions", *(["baseline", "difference"] if base else [])]
    rows = []
    for key in keys:
        name = metric_name(key)
        mean, before, delta = (log.metrics.get(f"{kind}{name}") for kind in ("", "baseline/", "delta/"))
        against = [number(before), signed(delta)] if base else []
        rows.append([escaped(key), number(mean), f"{log.metrics.get(f'n/{name}', 0):g}", *against])
    lines += ["", *table(head, rows).split("\n")]
    if "paribus.not_comparable" in log.tags:
        lines += ["", f"Not subtracted: {escaped(log.tags['paribus.not_comparable'], 1_000)}"]
    return _fitted(lines)


def sweep_note(table_rows: Rows, keys: Sequence[str], series: Sequence[Series], parent: str, report: bool) -> str:
    """The description of a finished sweep: its table, and the charts there are. parent: its page."""
    experiment, run_id = parent.rpartition("/runs/")[0], parent.rpartition("/")[2]
    plotted = [each for each in series if each.definition in keys]
    lines = ["Each run differs from the baseline in one variable. Differences are to the baseline.", ""]
    if report:
        lines += [f"- [Report]({parent}/artifacts/report/report.html) with charts, beside the runs' own files"]
    for variable in dict.fromkeys(each.variable for each in plotted):
        charts = [each for each in plotted if each.variable == variable]
        links = ", ".join(f"[{escaped(c.definition)}]({_chart(c, experiment, run_id)})" for c in charts)
        times = f" (values times {charts[0].factor})" if charts[0].factor > 1 else ""
        lines.append(f"- Charts over `{variable}`{times}, with the baseline as a level: {links}")
    lines += ["- `sweep.csv` among the artifacts has every definition, with intervals", ""]
    rows = []
    for label in dict.fromkeys(row["run"] for row in table_rows):
        found = {row.get("definition"): row for row in table_rows if row["run"] == label}
        first = next(iter(found.values()))
        linked = f"[{escaped(label)}]({experiment}/runs/{first['run_id']})" if first.get("run_id") else escaped(label)
        cells = [_cell(found[key]) if key in found else "–" for key in keys]
        rows.append([linked, *(cells if "error" not in first else [f"failed: {escaped(str(first['error']))}"])])
    return _fitted([*lines, *table(["run", *map(escaped, keys)], rows).split("\n")])


def _what(trial: Trial, baseline: str) -> str:
    sweep = escaped(trial.sweep or "")
    match trial.design:
        case "variant":
            changed = escaped(f"{trial.variable}={trial.value}")
            return f"**{changed}**; all else is as in the [baseline]({baseline}) of sweep {sweep}."
        case "baseline":
            return f"The **baseline** of sweep {sweep}: every variant differs from it in one thing."
        case "cartesian":
            return f"**{escaped(trial.value or '')}**: several variables may have changed together."
        case _:
            return "A single run."


def _paired(pairing: Pairing) -> str:
    told = f"{count(pairing.paired, 'question')} stand in both runs"
    apart: list[tuple[str, Collection[str]]] = [("only here", pairing.here), ("only in the baseline", pairing.there)]
    alone = [f"{len(ids)} {where} ({escaped(some(list(ids), 5))})" for where, ids in apart if ids]
    ends = "; ".join(["", *alone]) if alone else ""
    return f"{told}{ends}. MLflow pairs them by their text, so one without a counterpart has one row only."


def _cell(row: Mapping[str, Any]) -> str:
    delta = row.get("delta")
    return f"{number(row['mean'])} ({signed(delta)})" if delta is not None else number(row["mean"])


def _chart(series: Series, experiment: str, run_id: str) -> str:
    id = experiment.rpartition("/")[2]
    keys = [series.name] if series.level is None else [series.name, series.level_name]
    asked = {
        "runs": json.dumps([run_id]),
        "metric": json.dumps(series.name),
        "experiments": json.dumps([id]),
        "plot_metric_keys": json.dumps(keys, separators=(",", ":")),
        "x_axis": "step",
    }
    return f"#/metric?{urlencode(asked, quote_via=quote)}"


def _fitted(lines: Sequence[str]) -> str:
    """The lines that fit into a tag, from the top."""
    room, kept = TAG_LIMIT - 100, list[str]()
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            return "\n".join([*kept, "", f"… and {count(len(lines) - len(kept), 'more line')}; see the artifacts."])
        kept.append(line)
    return "\n".join(kept)
