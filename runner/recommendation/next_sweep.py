"""What to sweep next, as commands that a person pastes."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import isclose
from typing import Any

from runner import phrases
from runner.compare.wording import shown
from runner.config import OF_STAGES, REPLAYED, experiment
from runner.diagnosis.findings import Diagnosis
from runner.errors import ParibusError
from runner.recommendation import wording
from runner.recommendation.findings import Considered, NextSweep, Recommendation
from runner.sweep_folder import StoredRow, StoredSweep, value_of
from runner.yaml_folders import conf_dir, extra_folders

MOST = 3
Number = int | float


def next_sweeps(sweep: StoredSweep, found: Recommendation, diagnosis: Diagnosis | None) -> tuple[NextSweep, ...]:
    """At most three, the best first: more questions where nothing can be told; else what is kept as the new baseline,
    numbers whose best value is at an end or between others, and the lever of the most common fault. None where the
    overrides of the sweep are unknown, or the baseline has no results."""
    if sweep.baseline is None or sweep.overrides is None:
        return ()
    rules = (_more_questions, _around_what_is_kept, _numbers)
    proposed = [each for rule in rules for each in rule(sweep, found)]
    proposed += _lever(sweep, diagnosis, proposed) if diagnosis else []
    unique = {each.command: each for each in reversed(proposed)}
    return tuple(each for each in proposed if unique[each.command] is each)[:MOST]


def _more_questions(sweep: StoredSweep, found: Recommendation) -> Iterable[NextSweep]:
    compared = [each for each in found.variants if each.rows]
    if not compared or any(each.decision != "cannot tell" for each in compared):
        return
    best = wording.nearest(compared, found.decisive)
    if best is None:
        return
    told = f"none of {len(compared)} variants can" if len(compared) > 1 else "the variant cannot"
    yield NextSweep(
        _command(sweep, {}, _as_swept(sweep.variants)),
        f"{told} be told from the baseline with {phrases.count(found.questions, 'question')}: more questions first, "
        f"then the same sweep. {best.name}: {best.why}",
    )


def _around_what_is_kept(sweep: StoredSweep, found: Recommendation) -> Iterable[NextSweep]:
    kept = _best_of_each(found)
    if not kept:
        return
    overrides = {row.label: row.override for row in sweep.variants}
    systems = [each for each in kept if _own_system(sweep, each)]
    kept = systems or kept  # beside a system of one's own the stages do not run
    fixed = {each.variable or "": overrides[each.label] or "" for each in kept}
    groups = {_group(name) for name in fixed}
    rest = [
        each
        for each in found.variants
        if _group(each.variable or "") not in groups and each.decision in ("cannot tell", "trade-off")
        if not (systems and _group(each.variable or "") in OF_STAGES)
    ]
    back = kept if len(kept) > 1 else []
    swept = [
        f"{each.variable}={each.from_value},{each.value}"
        for each in back
        if each.from_value is not None and _plain(each.from_value)
    ]
    swept += _as_swept([row for row in sweep.variants if row.label in {each.label for each in rest}])
    if not swept:
        return
    names = phrases.listed([each.name for each in kept])
    if len(kept) > 1:
        why = f"{names} are kept, each by itself: together as the baseline, and each taken back, shows if they add up"
    else:
        why = f"{names} is the better baseline, and the rest may do something else around it"
    yield NextSweep(_command(sweep, fixed, swept), why)


def _own_system(sweep: StoredSweep, each: Considered) -> bool:
    return any(
        row.run is not None and bool(row.run.config.get("system")) for row in sweep.rows if row.label == each.label
    )


def _best_of_each(found: Recommendation) -> list[Considered]:
    """The kept variants, of one variable, or of variables of one config group, the best by the front: of equal
    quality the cheapest."""
    lower = any(
        row.definition == found.quality and row.direction == "lower" for each in found.runs for row in each.rows
    )
    best: dict[str, tuple[tuple[float, float], Considered]] = {}
    for each in found.variants:
        if each.decision != "keep":
            continue
        value = each.means.get(found.quality)
        cost = getattr(each.cost, found.cost) if each.cost else None
        quality = (float("-inf") if value is None else -value if lower else value, -cost if cost is not None else 0.0)
        group = _group(each.variable or "")
        if group not in best or quality > best[group][0]:
            best[group] = (quality, each)
    return [each for _, each in best.values()]


def _numbers(sweep: StoredSweep, found: Recommendation) -> Iterable[NextSweep]:
    """Kept ones first, then trade-offs."""
    order = {"keep": 0, "trade-off": 1}
    told = [
        each
        for name in dict.fromkeys(each.variable for each in found.variants)
        if name
        if (each := _number(sweep, found, name))
    ]
    for _, proposal in sorted(told, key=lambda each: order.get(each[0] or "", 2)):
        yield proposal


def _number(sweep: StoredSweep, found: Recommendation, name: str) -> tuple[str | None, NextSweep] | None:
    variants = [each for each in found.variants if each.variable == name]
    start = number(variants[0].from_value)
    points: dict[Number, Considered] = {start: found.baseline} if start is not None else {}
    for each in variants:
        if (value := number(each.value)) is not None and each.means.get(found.quality) is not None and each.rows:
            points[value] = each
    if start is None or len(points) < 2:
        return None
    words = {
        value: next((row for row in each.rows if row.definition == found.quality), None)
        for value, each in points.items()
    }
    sign = -1 if any(row and row.direction == "lower" for row in words.values()) else 1
    best = max(points, key=lambda value: (sign * (points[value].means[found.quality] or 0.0), value == start))
    row = words[best]
    if best == start:
        told = any(row and row.word == "worse" for row in words.values())
    else:
        told = row is not None and row.word == "better"
    values = further(sorted(points), best)
    possible = [value for value in values if _possible(sweep, name, value)]
    if not told or not possible:
        return None
    low, high = phrases.field(min(points)), phrases.field(max(points))
    at_end = best in (min(points), max(points))
    why = f"{shown(found.quality)} is best at {name}={best}, "
    why += f"the end of what was tried ({low} to {high}): go on" if at_end else "between others: look closer around it"
    if points[best].decision == "trade-off":
        why += f". At what price: {points[best].why}"
    override = next((each.override for each in sweep.variants if each.variable == name and each.override), "")
    prefix = override[: len(override) - len(override.lstrip("+"))]
    swept = f"{prefix}{name}={','.join(map(str, (best, *possible)))}"
    return points[best].decision, NextSweep(_command(sweep, {}, [swept]), why)


def number(text: str | None) -> Number | None:
    """The number that a value is; None for anything else."""
    for kind in (int, float):
        try:
            found: Number = kind(text or "")
        except ValueError:
            continue
        return found if abs(found) != float("inf") and found == found else None
    return None


def further(tried: Sequence[Number], best: Number) -> list[Number]:
    """Values to try after these, in ascending order, of which `best` is best: two more steps at an end, or the middles
    to both neighbours. Where none is below 0, or all are above 0, so are these; where all are shares (0 to 1, not all
    whole), so are these; whole numbers stay whole."""
    place, whole = tried.index(best), all(isinstance(value, int) for value in tried)
    shares = not whole and all(0 <= value <= 1 for value in tried)
    found: list[Number]
    if place == 0 or place == len(tried) - 1:
        other = tried[1] if place == 0 else tried[-2]
        step = best - other
        found = [best + step, best + 2 * step]
        if place == 0 and tried[0] >= 0:
            found = [value for value in found if value > 0] or [best / 2]
    else:
        found = [(tried[place - 1] + best) / 2, (best + tried[place + 1]) / 2]
    if shares:
        found = [min(1.0, max(0.0, value)) for value in found]
    found = [round(value) if whole else float(f"{value:.3g}") for value in found]
    return [
        value
        for value in dict.fromkeys(found)
        if not any(isclose(value, old) for old in tried) and (value > 0 or min(tried) <= 0)
    ]


def _possible(sweep: StoredSweep, name: str, value: Number) -> bool:
    """Whether the baseline's configuration would take this value: a size may not fall below an overlap."""
    if sweep.baseline is None:
        return False
    config: dict[str, Any] = {**sweep.baseline.config}
    # Definitions have no part in it, and some bring a framework with them.
    config["metrics"] = {"definitions": ["labels/recall"], "table": None}
    *parents, last = name.split(".")
    node = config
    for key in parents:
        node[key] = {**(node.get(key) or {})}
        node = node[key]
    node[last] = value
    try:
        experiment(config)
    except ParibusError:
        return False
    return True


def _lever(sweep: StoredSweep, diagnosis: Diagnosis, proposed: Sequence[NextSweep]) -> list[NextSweep]:
    """What is left to try against the most common fault of the baseline against which anything is."""
    tried = {each.label for each in sweep.variants}
    for each in proposed:
        words = [word.lstrip("+").partition("=") for word in shlex.split(each.command) if "," in word]
        tried |= {f"{name}={value}" for name, _, many in words for value in many.split(",")}
    for fault in sorted(diagnosis.counts, key=lambda fault: -diagnosis.counts[fault]):
        swept = [left for lever in diagnosis.levers.get(fault, ()) if (left := _left(sweep, lever, tried))]
        if swept and diagnosis.counts[fault]:
            of = f"{diagnosis.counts[fault]} of {phrases.count(len(diagnosis.questions), 'question')}"
            return [NextSweep(_command(sweep, {}, swept), f"{of} of the baseline: {fault}; not yet tried against it")]
    return []


def _left(sweep: StoredSweep, lever: str, tried: Collection[str]) -> str | None:
    """A lever as values to sweep, the baseline's first, without those that were tried; None where none is left."""
    name = lever.partition("=")[0]
    if _frozen(sweep) and _group(name.lstrip("+")) in REPLAYED:
        return None
    before = value_of(sweep.baseline, name.lstrip("+")) if sweep.baseline else None
    left = [value for value in values_left(lever, tried) if value != before and not _asks_endpoint(name, value)]
    return _swept(name, left, before) if left else None


def _frozen(sweep: StoredSweep) -> bool:
    """Whether the stages before the prompt were read from an earlier run."""
    return bool(sweep.baseline and (sweep.baseline.config.get("records") or {}).get("frozen"))


def _asks_endpoint(group: str, option: str) -> bool:
    """Whether an option asks a model behind an endpoint, which not everybody has: a command is for pasting."""
    files = (folder / group / f"{option}.yaml" for folder in (*extra_folders, conf_dir()))
    return any(file.is_file() and "\nbase_url:" in file.read_text(encoding="utf-8") for file in files)


def values_left(lever: str, tried: Collection[str]) -> list[str]:
    """The values of a lever without those that were tried, as `variable=value`."""
    name, _, values = lever.partition("=")
    many = [values] if set(values) & set("([{'\"") else values.split(",")
    return [value for value in many if value and f"{name.lstrip('+')}={value}" not in tried]


def _swept(name: str, values: Sequence[str], before: str | None) -> str:
    """Values as they are typed to be swept, even one alone."""
    if before is not None and _plain(before):
        return f"{name}={','.join((before, *values))}"
    return f"{name}={','.join(values)}" if len(values) > 1 else f"{name}=choice({values[0]})"


def _plain(value: str) -> bool:
    return value.replace("_", "").replace(".", "").replace("-", "").isalnum()


def _as_swept(rows: Iterable[StoredRow]) -> list[str]:
    """The values of these rows, as they are typed to be swept; one alone with the baseline's before it."""
    values: dict[str, list[str]] = {}
    before: dict[str, str | None] = {}
    for row in rows:
        if row.override:
            name, _, value = row.override.partition("=")
            values.setdefault(name, []).append(value)
            before[name] = row.from_value
    return [_swept(name, many, None if len(many) > 1 else before[name]) for name, many in values.items()]


def _command(sweep: StoredSweep, fixed: Mapping[str, str], swept: Sequence[str]) -> str:
    """The command of this sweep with other variables. fixed: overrides by name, in place of those of the same name."""
    names = {*fixed, "sweep"}
    kept = [
        each for each in sweep.overrides or () if (name := _name(each)) not in names and not name.startswith("sweep.")
    ]
    folders = [f"--config-dir={folder}" for folder in sweep.config_dirs]
    return " ".join(map(_typed, ["paribus", "sweep", *folders, *kept, *fixed.values(), *swept]))


def _typed(word: str) -> str:
    """A word as it is typed to a shell, on one line and without what a page or a terminal would not show as it is."""
    if word.isprintable() and "  " not in word and "`" not in word:
        return shlex.quote(word)
    shown = "".join(char if char.isprintable() and char not in "'`\\" else _escaped(char) for char in word)
    shown = shown.replace("  ", " \\x20")
    return f"$'{shown}'"


def _escaped(char: str) -> str:
    return f"\\x{ord(char):02x}" if ord(char) < 128 else f"\\U{ord(char):08x}"


def _group(name: str) -> str:
    return name.partition(".")[0]


def _name(override: str) -> str:
    return override.partition("=")[0].lstrip("+~")
