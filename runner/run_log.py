"""What a run leaves in MLflow: its metrics, params, tags and files, under names and within limits that MLflow accepts.

Nothing here talks to MLflow. Limits are those of mlflow/utils/validation.py in MLflow 3.17.2.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from adapters.schema import to_json
from runner.config import flatten, redacted
from runner.drift import Drift, Standing, moved_between
from runner.results import Mean, RunResult, usage

Rows = Sequence[Mapping[str, Any]]

PARAM_LIMIT, TAG_LIMIT, NAME_LIMIT = 6_000, 8_000, 200
"""Characters. MLflow cuts longer params and tags with a warning only. It allows 250 for a name; ours leave room for
prefixes."""

STANDING = "paribus.drift.standing"
"""The tag with runner.drift.Standing."""

PREFIXES = (
    *("n", "failed", "not_applicable", "baseline", "delta", "choice", "runs", "drift", "flaky", "usage", "faults"),
    *("by", "baseline_by"),
)
"""First parts of the names that tracking makes itself; no definition key maps to a name that begins with one."""

OWN_ASSESSMENTS = FAULT, REFERENCE = ("fault", "reference answer")
"""Assessments of a trace that are no scores."""

TABLE = "paribus.table"
"""The tag with the definition keys of the table, as JSON."""

_ESCAPE = re.compile(r"_at_|_x([0-9a-f]*)_")
# ':' is legal too, but not on Windows. Names may become paths: no empty part, and no part that begins with a dot.
_NOT_IN_METRIC = r"[^\w./ -]|^/|(?<=/)/|/\Z|(?<![^/])\.|" + "|".join(rf"(?<=^{prefix})/" for prefix in PREFIXES)
_NOT_IN_ASSESSMENT = ":|[\ud800-\udfff]|" + "|".join(rf"^{own[0]}(?={own[1:]}\Z)" for own in OWN_ASSESSMENTS)
_NOT_IN_FILE = r"[^A-Za-z0-9_.-]|^\."


def _escape(text: str, illegal: str) -> str:
    lookalike = rf"_(?=(?:at|x[0-9a-f]*)(?:_|{illegal}))"
    escaped = re.sub(f"{illegal}|{lookalike}", lambda m: "_at_" if m[0] == "@" else f"_x{ord(m[0]):x}_", text) or "_x_"
    if len(escaped) < NAME_LIMIT:
        return escaped
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return f"{escaped[: NAME_LIMIT - 35]}_x_{digest}"


def metric_name(key: str) -> str:
    """The MLflow name of a definition key: `labels/recall@5` -> `labels/recall_at_5`. No two keys share a name.

    '@' becomes `_at_`; a character that MLflow refuses, or that would make the name an unsafe path, becomes its code
    point as `_x3d_`; an underscore that would read as the start of either becomes `_x5f_`. A name of 200 characters
    ends in a hash and is the only kind that cannot be read back.
    """
    return _escape(key, _NOT_IN_METRIC)


def definition_key(name: str) -> str:
    """The definition key that `metric_name` turned into `name`. Raises ValueError for a name that ends in a hash."""
    if len(name) >= NAME_LIMIT:
        raise ValueError(f"{name} ends in the hash of a longer key, which is in results/summary.json of its run")
    return _ESCAPE.sub(lambda m: "@" if m[0] == "_at_" else chr(int(m[1], 16)) if m[1] else "", name)


def assessment_name(key: str) -> str:
    """The name of a definition key among the assessments of a trace: `ragas/faithfulness` -> `ragas:faithfulness`,
    because MLflow's pages show only what stands after a slash. The key itself is in the metadata. No two keys share a
    name, and none has one of OWN_ASSESSMENTS."""
    return _escape(key, _NOT_IN_ASSESSMENT).replace("/", ":")


def safe_artifact_name(id: str) -> str:
    """A file name for any id, escaped as in `metric_name` but ASCII and without separators. `definition_key` reads it
    back. Names that differ in case only are two names here and one file on a file system that ignores case.
    """
    return _escape(id, _NOT_IN_FILE)


@dataclass(frozen=True)
class BaselineView:
    """What a baseline run logged, by definition key. A definition without a mean is not in `means`, one that asked no
    judge is not in `judges`. standing: where the judge stood on its frozen sample; None where it was not measured.
    """

    run_id: str
    means: Mapping[str, float]
    counts: Mapping[str, int]
    fingerprints: Mapping[str, str]
    judges: Mapping[str, str]
    dataset_checksum: str
    standing: Standing | None = None


@dataclass
class RunLog:
    """What is to be sent to one run: finite metrics, params and tags within the limits, texts by file name. series:
    metrics with several values, each at a step."""

    metrics: dict[str, float] = field(default_factory=dict)
    params: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    series: dict[str, list[tuple[int, float]]] = field(default_factory=dict)

    def param(self, key: str, value: Any) -> None:
        """Strings as they are, all else as JSON, which is how Hydra overrides are typed."""
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        name = key if key.startswith("choice/") else metric_name(key)
        self.params[name] = self._within("params", key, text, PARAM_LIMIT)

    def tag(self, key: str, value: str) -> None:
        """A tag, free of secrets; a long one whole in a file, with its hash in the tag."""
        self.tags[key] = self._within("tags", key, redacted(value), TAG_LIMIT)

    def _within(self, kind: str, key: str, text: str, limit: int) -> str:
        text = storable(text)
        if len(text) <= limit:
            return text
        file = f"{kind}/{safe_artifact_name(key)}.txt"
        self.files[file] = text
        return f"sha256:{hashlib.sha256(text.encode()).hexdigest()} ({len(text)} characters, whole in {file})"


def described(result: RunResult, folder: Path) -> RunLog:
    """All there is to say of a result by itself; `folder` is where it is kept."""
    log = RunLog()
    for key, value in flatten(redacted(result.config)).items():
        log.param(key, value)
    for group, choice in result.choices.items():
        log.param(f"choice/{metric_name(group)}", choice)
    environment = flatten(redacted(result.environment), "paribus.environment")
    if commit := result.environment.get("git_commit"):
        log.tag("mlflow.source.git.commit", commit)
    for key in ("name", "version", "checksum"):
        environment[f"paribus.dataset.{key}"] = result.dataset.get(key)
    for key, value in environment.items():
        if value is not None:
            log.tag(metric_name(key), value if isinstance(value, str) else json.dumps(value, default=str))
    log.tag("paribus.config_fingerprint", result.config_fingerprint)
    log.tag(TABLE, json.dumps(shown(result), ensure_ascii=False))
    log.tag("paribus.results", str(folder))
    if unanswered := sum(record.error is not None for record in result.records):
        log.metrics["runs/questions_without_answer"] = float(unanswered)
    for key, mean in result.means().items():
        name = metric_name(key)
        log.tag(f"paribus.definition.{name}", result.definitions[key].fingerprint)
        counts = {"n": mean.n, "failed": mean.failed, "not_applicable": mean.not_applicable}
        log.metrics |= {f"{kind}/{name}": float(count) for kind, count in counts.items() if count or kind == "n"}
        if mean.value is not None and math.isfinite(mean.value):
            log.metrics[name] = mean.value
        else:
            log.tag(f"paribus.no_value.{name}", _why_none(result, key, mean))
    if used := usage(result.scores):
        log.metrics |= {f"usage/{kind}": float(n) for kind, n in asdict(used).items() if n is not None}
    for key, judge in _judges(result).items():
        log.tag(f"paribus.judge.{metric_name(key)}", judge)
    if result.judge:
        log.tag("paribus.judge", json.dumps(asdict(result.judge), ensure_ascii=False))
    for key, scores in result.by_definition().items():
        if any(score.samples > 1 for score in scores.values()):
            log.metrics[f"flaky/{metric_name(key)}"] = float(sum(score.flaky for score in scores.values()))
    log.metrics |= {f"faults/{fault}": float(count) for fault, count in result.fault_counts().items()}
    if result.drift:
        _describe_drift(log, result.drift)
    return log


def shown(result: RunResult) -> list[str]:
    """The definition keys that a person asked to see: those of metrics.table, else the first five."""
    chosen = (result.config.get("metrics") or {}).get("table")
    return list(chosen or list(result.definitions)[:5])


@dataclass(frozen=True)
class Series:
    """The mean of one definition over one variable: points of (value, mean), the baseline's own among them.

    level: the baseline's mean, None where it has none. factor: by what values were multiplied, because MLflow's steps
    are whole numbers; 1 for whole ones.
    """

    variable: str
    definition: str
    factor: int
    points: tuple[tuple[int, float], ...]
    level: float | None

    @property
    def name(self) -> str:
        """Its metric: `by/chunker.size/labels/recall`, with the factor where there is one."""
        times = f" x {self.factor}" if self.factor > 1 else ""
        return f"by/{metric_name(self.variable)}{times}/{metric_name(self.definition)}"

    @property
    def level_name(self) -> str:
        """The metric that draws the baseline as a level beside it."""
        return f"baseline_{self.name}"


def numeric_series(table: Rows) -> list[Series]:
    """A series for each definition and each variable whose values, the baseline's too, are all numbers.

    table: rows of the sweep table. Values that need more than six decimals make no series.
    """
    level = {row["definition"]: row["mean"] for row in table if row["variable"] is None and "definition" in row}
    found = []
    for variable in dict.fromkeys(row["variable"] for row in table if row["variable"] is not None):
        rows = [row for row in table if row["variable"] == variable]
        factor = _whole_by({str(row[which]) for row in rows for which in ("value", "baseline_value")})
        if factor is None:
            continue
        start = round(Decimal(str(rows[0]["baseline_value"])) * factor)
        for key in dict.fromkeys(row["definition"] for row in rows if "definition" in row):
            means = [(row["value"], row["mean"]) for row in rows if row.get("definition") == key]
            points = {round(Decimal(str(value)) * factor): mean for value, mean in means if mean is not None}
            if level.get(key) is not None:
                points[start] = level[key]
            if points:
                found.append(Series(variable, key, factor, tuple(sorted(points.items())), level.get(key)))
    return found


def _whole_by(values: Iterable[str]) -> int | None:
    """The power of ten that makes all of them whole numbers; None where one is no number, or has too many decimals."""
    try:
        numbers = [Decimal(value) for value in values]
    except InvalidOperation:
        return None
    if not all(number.is_finite() and abs(number) < 10**9 for number in numbers):
        return None
    factors = (10**power for power in range(7))
    return next((factor for factor in factors if all(number * factor % 1 == 0 for number in numbers)), None)


def _describe_drift(log: RunLog, drift: Drift) -> None:
    log.tag("paribus.drift", str(drift))
    if standing := drift.standing:
        log.tag(STANDING, to_json(standing))
    figures = {
        "n": drift.n,
        "verdicts": drift.verdicts,
        "scores_equal": drift.equal,
        "verdicts_equal": drift.verdicts_equal,
        "mean_difference": drift.mean_difference,
    }
    log.metrics |= {f"drift/{name}": float(figure) for name, figure in figures.items() if figure is not None}


def _why_none(result: RunResult, key: str, mean: Mean) -> str:
    if mean.value is not None:
        return f"the mean is {mean.value}, which is not a finite number"
    reason = next((score.reason for score in result.scores if score.definition == key), "there are no questions")
    return f"{mean.n} of {mean.of} questions have a value; the first: {reason}"


def _judges(result: RunResult) -> dict[str, str]:
    asked: dict[str, set[str]] = {}
    for score in result.scores:
        if score.judge:
            asked.setdefault(score.definition, set()).add(score.judge.fingerprint)
    return {key: ", ".join(sorted(judges)) for key, judges in asked.items()}


def compare(log: RunLog, result: RunResult, baseline: BaselineView) -> None:
    """Add the baseline's means and the differences to `log`, for definitions that mean the same on the same test set
    under the same judge; for others a tag says what differs."""
    checksum, judges = str(result.dataset.get("checksum")), _judges(result)
    same_data = checksum == baseline.dataset_checksum
    moved = moved_between(baseline.standing, result.drift.standing if result.drift else None)
    differ = [] if same_data else [f"dataset: {checksum}, in the baseline {baseline.dataset_checksum}"]
    for key, mean in result.means().items():
        if key not in baseline.means or mean.value is None:
            continue
        parts = (
            ("definition", result.definitions[key].fingerprint, baseline.fingerprints[key]),
            ("judge", judges.get(key), baseline.judges.get(key)),
            ("number of questions", mean.n, baseline.counts.get(key)),
        )
        faults = [f"{key}: {part} {ours}, in the baseline {theirs}" for part, ours, theirs in parts if ours != theirs]
        if moved and key in judges:
            faults.append(f"{key}: {moved}")
        differ += faults
        if same_data and not faults:
            name = metric_name(key)
            log.metrics[f"baseline/{name}"] = baseline.means[key]
            log.metrics[f"delta/{name}"] = mean.value - baseline.means[key]
    if differ:
        log.tag("paribus.not_comparable", "; ".join(differ))


def as_csv(rows: Rows) -> str:
    """MLflow shows CSV files as tables. The columns are those of all rows, in the order in which they come up."""
    text = io.StringIO()
    table = csv.DictWriter(text, list(dict.fromkeys(key for row in rows for key in row)), lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    return text.getvalue()


def storable(text: str) -> str:
    """Lone surrogates, which no database stores, as backslash escapes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
