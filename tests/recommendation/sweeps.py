"""Sweeps made by hand, as they are read back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from adapters.schema import Definition, Record, StageUsage
from runner.results import StoredRun
from runner.sweep_folder import StoredRow, StoredSweep
from tests.compare.runs import run

TABLE = ("labels/recall", "labels/answer_f1")
Values = Mapping[str, Sequence[float | None]]


def record(
    id: str,
    prompt: str = "p" * 100,
    seconds: Sequence[float] = (0.001, 0.0, 0.0, 0.002),
    tokens: tuple[int, int] | None = None,
    error: str | None = None,
) -> Record:
    """seconds: of retrieve, rerank, assemble and generate."""
    stages = ("retrieve", "rerank", "assemble", "generate")
    usage = [StageUsage(stage, spent) for stage, spent in zip(stages, seconds, strict=True)]
    if tokens:
        usage[-1] = replace(usage[-1], tokens_in=tokens[0], tokens_out=tokens[1])
    return Record(id, 3, prompt=prompt, answer=None if error else "yes", error=error, usage=tuple(usage))


def made(
    values: Values,
    *,
    table: Sequence[str] | None = TABLE,
    config: Mapping[str, Any] | None = None,
    definitions: Sequence[Definition] = (),
    records: Sequence[Record] | None = None,
    prompt: str = "p" * 100,
    **more: Any,
) -> StoredRun:
    """values: definition -> one value a question, q1, q2, …"""
    ids = [f"q{place}" for place in range(1, len(next(iter(values.values()))) + 1)]
    return run(
        {key: dict(zip(ids, each, strict=True)) for key, each in values.items()},
        config={"metrics": {"table": table and list(table)}, **(config or {})},
        definitions=definitions,
        records=[record(id, prompt) for id in ids] if records is None else records,
        **more,
    )


def sweep(
    baseline: StoredRun | None,
    variants: Mapping[str, StoredRun | str],
    *,
    before: Mapping[str, str] = {},
    overrides: Sequence[str] | None = (),
    config_dirs: Sequence[str] = (),
) -> StoredSweep:
    """variants: `variable=value` -> its run, or why it has none. before: what the baseline has, by variable."""
    rows = [StoredRow("baseline", None, None, None, None, Path("0"), None, baseline, None if baseline else "it broke")]
    for place, (label, found) in enumerate(variants.items(), 1):
        variable, _, value = label.lstrip("+").partition("=")
        result, error = (None, found) if isinstance(found, str) else (found, None)
        rows.append(
            StoredRow(
                label.lstrip("+"),
                variable,
                value,
                before.get(variable),
                label,
                Path(str(place)),
                None,
                result,
                error,
            )
        )
    return StoredSweep(
        "20261130T101500-000000",
        Path("sweep"),
        None,
        None if overrides is None else tuple(overrides),
        tuple(config_dirs),
        tuple(rows),
    )


def ups(n: int, up: int = 0, down: int = 0) -> tuple[list[float], list[float]]:
    """n values of a baseline and of a variant: `up` go from 0 to 1, `down` from 1 to 0, and the others stay 1."""
    rest = n - up - down
    return [0.0] * up + [1.0] * down + [1.0] * rest, [1.0] * up + [0.0] * down + [1.0] * rest
