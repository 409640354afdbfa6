"""The plan of a sweep: the baseline, then variants that differ from it in exactly one variable. Pure: no Hydra, no I/O.

A variable is a key (`chunker.size`) or a config group (`embedder`). n values of A and m of B make 1 + n + m runs, less
those that equal the baseline; never n x m.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adapters.schema import fingerprint
from runner.config import OF_STAGES, REPLAYED, VARIABLES, flatten, used
from runner.errors import ConfigError, ParibusError


@dataclass(frozen=True)
class Composed:
    """A composed configuration: plain resolved data, and the choice made in each config group."""

    config: Mapping[str, Any]
    choices: Mapping[str, str]

    def described(self) -> dict[str, Any]:
        """The part that describes the experiment, flat; 1.0 is 1."""
        config = used(self.config)
        flat = flatten({name: config[name] for name in VARIABLES if name in config})
        whole = {key for key, value in flat.items() if isinstance(value, float) and value.is_integer()}
        return {key: int(value) if key in whole else value for key, value in flat.items()}


@dataclass(frozen=True)
class Variable:
    """What is swept, and the values as they are typed on the command line. prefix: `+` or `++` where a key is added."""

    name: str
    values: tuple[str, ...]
    prefix: str = ""


@dataclass(frozen=True)
class PlannedRun:
    """One run of a sweep. variable and value are None for the baseline; from_value is what the baseline has there."""

    variable: str | None
    value: str | None
    overrides: tuple[str, ...]
    composed: Composed
    from_value: str | None = None

    @property
    def label(self) -> str:
        """`baseline`, or `chunker.size=400`."""
        return "baseline" if self.variable is None else f"{self.variable}={self.value}"


@dataclass(frozen=True)
class Plan:
    """The runs of a sweep, the baseline first, and the values left out because they equal the baseline or repeat."""

    runs: tuple[PlannedRun, ...]
    left_out: tuple[str, ...]

    @property
    def baseline(self) -> PlannedRun:
        """The first run."""
        return self.runs[0]

    @property
    def dry_run(self) -> bool:
        """Whether the plan is all that was asked for."""
        return bool(self.baseline.composed.config["sweep"].get("dry_run"))

    def table(self) -> list[dict[str, Any]]:
        """Rows for a file: run, variable, value of the baseline, value of the run."""
        return [
            {"run": run.label, "variable": run.variable, "baseline": run.from_value, "value": run.value}
            for run in self.runs
        ]

    @property
    def variants(self) -> tuple[PlannedRun, ...]:
        """All runs but the first."""
        return self.runs[1:]


def plan(
    fixed: Sequence[str],
    variables: Sequence[Variable],
    compose: Callable[[Sequence[str]], Composed],
    check: Callable[[Composed], object],
) -> Plan:
    """Compose and check every run before any of them starts.

    fixed: overrides that hold for all runs. compose: overrides -> configuration. check: raises ConfigError for a
    configuration that cannot run.

    Raises ConfigError with every fault of every run: a variable that is not part of the experiment, a value that makes
    no valid configuration, or a variant that differs from the baseline in more than its variable.
    """
    faults: list[str] = []
    for variable in variables:
        group = variable.name.split(".")[0]
        if group not in VARIABLES:
            faults.append(
                f"{variable.name} is not a variable of the experiment, so it cannot be swept; variables are the keys "
                f"and choices of {', '.join(VARIABLES)}"
            )
    if faults:
        raise ConfigError("\n".join(faults))
    baseline = PlannedRun(None, None, tuple(fixed), compose(fixed))
    check(baseline.composed)
    if baseline.composed.config.get("system"):
        refuse_idle([*fixed, *(variable.name for variable in variables)])
    if (baseline.composed.config.get("records") or {}).get("frozen"):
        for variable in variables:
            if variable.name.split(".")[0] in REPLAYED:
                raise ConfigError(
                    f"{variable.name} cannot be swept with records=frozen: the contexts of the earlier run are read as "
                    "they are; sweep prompt and generator, or leave records=frozen out"
                )
    runs, left_out = [baseline], []
    seen = {fingerprint(baseline.composed.described()): "the baseline"}
    for variable in variables:
        for value in variable.values:
            override = f"{variable.name}={value}"
            typed = (*fixed, f"{variable.prefix}{override}")
            try:
                composed = compose(typed)
                check(composed)
            except ParibusError as error:
                lines = str(error).splitlines()
                faults.extend(line if line.startswith(override) else f"{override}: {line}" for line in lines)
                continue
            identity = fingerprint(composed.described())
            if identity in seen:
                left_out.append(f"{override} equals {seen[identity]}")
                continue
            others = other_differences(baseline.composed, composed, variable.name)
            if others:
                faults.append(
                    f"{override} changes more than {variable.name}: {'; '.join(others)}. One variable at a time: "
                    "remove the link between them, or sweep combinations with hydra/sweeper=basic"
                )
                continue
            seen[identity] = override
            before = _value_at(baseline.composed, variable.name)
            runs.append(PlannedRun(variable.name, value, typed, composed, before))
    if faults:
        raise ConfigError("\n".join(faults))
    return Plan(tuple(runs), tuple(left_out))


def refuse_idle(overrides: Sequence[str]) -> None:
    """Raises ConfigError for an override that a run with a system of one's own would not use."""
    for override in overrides:
        if re.split(r"[.=@]", override.lstrip("+~"), maxsplit=1)[0] in OF_STAGES:
            raise ConfigError(f"{override} has no effect: with a system of your own the stages do not run")


def other_differences(baseline: Composed, variant: Composed, variable: str) -> list[str]:
    """What differs between two configurations besides `variable`, as `key: before -> after`."""
    before, after = baseline.described(), variant.described()
    absent = object()
    differences = [
        f"{key}: {before.get(key, '(absent)')!r} -> {after.get(key, '(absent)')!r}"
        for key in sorted({*before, *after})
        if before.get(key, absent) != after.get(key, absent)
        and key != variable
        and not key.startswith(f"{variable}.")
        and not variable.startswith(f"{key}.")  # an empty mapping, which gets its first key
        and not (variable == "system" and key.partition(".")[0] in OF_STAGES)  # they end where a system begins
    ]
    for group in sorted({*baseline.choices, *variant.choices}):
        mine, theirs = baseline.choices.get(group), variant.choices.get(group)
        if mine != theirs and group != variable and group in VARIABLES and group in used(variant.config):
            differences.append(f"choice of {group}: {mine} -> {theirs}")
    return differences


def _value_at(composed: Composed, variable: str) -> str | None:
    if variable in composed.choices:
        return composed.choices[variable]
    described = composed.described()
    if variable not in described:
        return None
    return "null" if described[variable] is None else str(described[variable])
