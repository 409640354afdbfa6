"""The configuration of one experiment: from what Hydra composed to validated components.

Hydra composes, pydantic decides: every value is checked before any work, and a fault is one sentence that names the
key, the value and what is allowed. This is the only module besides the entry points and the sweeper that knows
omegaconf.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from adapters.base import JudgedScorer, Scorer, UnknownDefinition, scorer
from adapters.judge import Judge, JudgeFault
from adapters.schema import fingerprint
from runner.component import Component, build, explain
from runner.dataset import Dataset
from runner.diagnosis.rules import Rules, check_levers, default_rules, known_at
from runner.errors import ConfigError
from runner.prompts.chat import ChatPrompt
from runner.stage import Assembler, Chunker, Embedder, Generator, Reranker, Retriever, System

if TYPE_CHECKING:
    from omegaconf import DictConfig

STAGES: dict[str, type[Component]] = {
    "dataset": Dataset,
    "chunker": Chunker,
    "embedder": Embedder,
    "retriever": Retriever,
    "reranker": Reranker,
    "context": Assembler,
    "prompt": ChatPrompt,
    "generator": Generator,
}
"""Config group -> what its `_target_` must be, in the order in which data flows."""

PARTS: dict[str, type[BaseModel]] = {**STAGES, "system": System, "judge": Judge}
"""Config group -> what its `_target_` must be, for all groups that have one."""

VARIABLES = (*STAGES, "system", "records", "metrics", "judge")
"""The config groups that describe the experiment: what may be swept, fingerprinted and compared. The others say where
results go and how work is spread, and never change a number."""


OF_STAGES = (*(name for name in STAGES if name != "dataset"), "records")
"""The config groups that a system of one's own stands in place of."""


REPLAYED = ("chunker", "embedder", "retriever", "reranker", "context")
"""The config groups whose work is read from an earlier run with records=frozen."""


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Metrics(_Settings):
    """Which definitions are computed, and which of them stand in the table.

    definitions: ids or keys, or mappings of an id and parameters. table: keys (`labels/recall@5`), at most
    five; None = the first five.
    """

    definitions: list[str | dict[str, Any]] = Field(min_length=1)
    table: list[str] | None = Field(None, max_length=5)

    @model_validator(mode="after")
    def _keys(self) -> Metrics:
        keys = [s.key for s in self.scorers()]
        for key in keys:
            if keys.count(key) > 1:
                raise ValueError(f"definition {key} is listed {keys.count(key)} times; name each once")
        for key in self.table or ():
            if key not in keys:
                raise ValueError(
                    f"table names {key!r}, which is not among the definitions; they are {', '.join(keys)}. Choose from "
                    "them with metrics.table=[...], or metrics.table=null for the first five"
                )
        return self

    @property
    def shown(self) -> list[str]:
        """The keys that stand in the table."""
        return [scorer.key for scorer in self.scorers()][:5] if self.table is None else self.table

    def scorers(self) -> list[Scorer | JudgedScorer]:
        """One scorer for each entry of `definitions`, in order."""
        try:
            return [scorer(spec) for spec in self.definitions]
        except UnknownDefinition as error:
            raise ValueError(str(error)) from None


class Tracking(_Settings):
    """Where results go.

    folder: the folder for everything paribus writes: stage outputs, result folders, and the tracking data where `uri`
    is null; relative to the working directory. uri: an MLflow tracking URI; null = sqlite in `folder`. experiment: the
    MLflow experiment. enabled: False = results stay in their folders and MLflow is not touched. traces: the first so
    many questions of a run become MLflow traces; 0 = none.
    """

    enabled: bool = True
    folder: str = "mlruns"
    uri: str | None = None
    experiment: str = "paribus"
    traces: int = Field(200, ge=0)

    @property
    def root(self) -> Path:
        """`folder`, absolute."""
        return Path(self.folder).expanduser().resolve()


class Trial(_Settings):
    """The place of a run in its sweep; filled in by the sweeper, all null for a single run.

    design: single = not in a sweep; baseline, variant = one variable at a time; cartesian = several variables change
    together. variable, value: what the variant changes, as typed (`chunker.size`, `400`). changed: the swept variables
    of a cartesian run. baseline: the result folder of the baseline run.
    """

    design: Literal["single", "baseline", "variant", "cartesian"] = "single"
    sweep: str | None = None
    variable: str | None = None
    value: str | None = None
    changed: list[str] = []
    parent_run_id: str | None = None
    baseline_run_id: str | None = None
    baseline: str | None = None


class Records(_Settings):
    """Where contexts come from. frozen: True = from the result folder `path`, so that only generation runs."""

    frozen: bool = False
    path: str | None = None


class Sweep(_Settings):
    """Preset variables of a sweep: name -> list of values, or one sweep expression (`range(1,10,2)`, `glob(*)`)."""

    variables: dict[str, list[Any] | str] = {}
    dry_run: bool = False


class Experiment(_Settings):
    """One experiment, validated: a component for each stage and the definitions that score it.

    system: a system of one's own; None = the stages run.
    """

    system: System | None = None
    dataset: Dataset
    chunker: Chunker
    embedder: Embedder
    retriever: Retriever
    reranker: Reranker
    context: Assembler
    prompt: ChatPrompt
    generator: Generator
    records: Records = Records()
    metrics: Metrics
    judge: Judge
    diagnosis: Rules = Field(default_factory=default_rules)
    tracking: Tracking
    trial: Trial
    sweep: Sweep

    @model_validator(mode="after")
    def _frozen_are_of_stages(self) -> Experiment:
        if self.system is not None and self.records.frozen:
            raise ValueError("records=frozen replays contexts for our own prompt; a system of your own finds its own")
        return self

    @model_validator(mode="after")
    def _candidates_reach_k(self) -> Experiment:
        if 0 < self.reranker.candidates < self.retriever.k:
            raise ValueError(
                f"reranker.candidates={self.reranker.candidates} must be at least retriever.k={self.retriever.k}: "
                "a reranker cannot pass on more chunks than it is given"
            )
        return self

    @model_validator(mode="after")
    def _diagnosis_fits(self) -> Experiment:
        try:
            check_levers(self.diagnosis)
            self.diagnosis.fits({scorer.key: scorer.direction for scorer in self.metrics.scorers()})
        except ConfigError as error:
            raise ValueError(str(error)) from None
        return self


def components(built: Experiment) -> dict[str, Component]:
    """The components that run, by config group, in the order in which data flows."""
    names = STAGES if built.system is None else ("dataset", "system")
    return {name: getattr(built, name) for name in names}


def fingerprints(built: Experiment) -> dict[str, str]:
    """The fingerprint of every component. Raises MissingExtra where one needs a package that is not installed."""
    return {name: component.fingerprint for name, component in components(built).items()}


def asked_judge(built: Experiment) -> Judge | None:
    """The judge, if a definition of this experiment asks one. Raises ConfigError where it cannot be used at all."""
    if not any(isinstance(scorer, JudgedScorer) for scorer in built.metrics.scorers()):
        return None
    return usable_judge(built.judge)


def usable_judge(judge: Judge) -> Judge:
    """`judge`, once it is seen that it and its frozen sample can be used. Raises ConfigError."""
    try:
        judge.check()
    except JudgeFault as error:
        raise ConfigError(f"judge: {error}") from None
    if judge.frozen is not None:
        from runner.drift import load

        load(Path(judge.frozen))
    return judge


def resolve(config: DictConfig | Mapping[str, Any]) -> dict[str, Any]:
    """Plain data with every interpolation resolved; Hydra's own node is left out.

    Raises ConfigError naming the key whose interpolation fails.
    """
    from omegaconf import DictConfig, OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    if not isinstance(config, DictConfig):
        return {str(key): value for key, value in config.items() if key != "hydra"}
    plain: dict[str, Any] = {}
    for key in map(str, config):
        if key == "hydra":
            continue
        try:
            node = config._get_node(key)
            plain[key] = OmegaConf.to_container(node, resolve=True) if OmegaConf.is_config(node) else config[key]
        except OmegaConfBaseException as error:
            place = error.full_key or key
            raise ConfigError(
                f"{place}: {str(error).splitlines()[0]}. To write '${{' as text outside conf/prompt, escape it: '\\${{'"
            ) from error
    return plain


def experiment(config: DictConfig | Mapping[str, Any]) -> Experiment:
    """Validate what Hydra composed and build every component of it.

    Raises ConfigError with every fault of every group, one a line.
    """
    plain = resolve(config)
    parts: dict[str, Any] = {}
    faults: list[str] = []
    for name, value in plain.items():
        kind = PARTS.get(name)
        if kind is None or (name == "system" and not value):  # system=stages is an empty mapping
            parts[name] = value or None if name == "system" else value
            continue
        try:
            if not isinstance(value, Mapping):
                raise ConfigError(
                    f"{name}={value!r} is not a mapping; choose one of conf/{name}/ or write _target_ and its keys"
                )
            parts[name] = build(value, kind, name)
        except ConfigError as error:
            faults.append(str(error))
            parts[name] = None
    broken = {name for name in PARTS if name in parts and parts[name] is None}
    try:
        built = Experiment(**parts)
    except ValidationError as error:
        for fault in error.errors():
            if not (fault["loc"] and fault["loc"][0] in broken):
                faults.append(explain(fault, "", _known(fault["loc"])))
    if faults:
        raise ConfigError("\n".join(faults))
    return built


def _known(loc: tuple[Any, ...]) -> tuple[str, ...]:
    models: dict[str, type[BaseModel]] = {
        "records": Records,
        "metrics": Metrics,
        "tracking": Tracking,
        "trial": Trial,
        "sweep": Sweep,
    }
    if loc and loc[0] == "diagnosis" and len(loc) > 1:
        return known_at(loc)
    owner = models.get(str(loc[0]), Experiment) if len(loc) > 1 else Experiment
    return tuple(owner.model_fields)


def preset_variables(config: DictConfig) -> dict[str, list[Any] | str]:
    """The variables of a composed node `sweep`. Raises ConfigError for anything else than lists and expressions."""
    try:
        return Sweep(**resolve(config)).variables
    except ValidationError as error:
        known = tuple(Sweep.model_fields)
        raise ConfigError("\n".join(explain(fault, "sweep", known) for fault in error.errors())) from None


def known_keys() -> dict[str, list[str]]:
    """Every key that some YAML has (`retriever`, `retriever.k`, `chunker.overlap`, ...) and the options it is in."""
    import yaml

    from runner.yaml_folders import conf_dir, extra_folders

    keys: dict[str, list[str]] = {}
    for path in sorted(path for folder in (conf_dir(), *extra_folders) for path in folder.glob("*/*.yaml")):
        group, option = path.parent.name, f"{path.parent.name}={path.stem}"
        if group == "gate":  # the rules of `paribus gate`, no part of an experiment
            continue
        try:
            found = yaml.safe_load(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, yaml.YAMLError):
            continue
        keys.setdefault(group, []).append(option)
        for key in found if isinstance(found, dict) else ():
            if not str(key).startswith("_") and key != "defaults":
                keys.setdefault(f"{group}.{key}", []).append(option)
    return keys


def experiment_fingerprint(plain: Mapping[str, Any]) -> str:
    """Hash of the part of a resolved configuration that describes the experiment."""
    return fingerprint({name: plain.get(name) for name in VARIABLES if name in plain or name != "system"})


def used(plain: Mapping[str, Any]) -> dict[str, Any]:
    """What of a composed configuration, or of the choices in its groups, a run uses: with a system of one's own nothing
    of the stages, whose settings would only look as if they had an effect."""
    return {name: value for name, value in plain.items() if not (plain.get("system") and name in OF_STAGES)}


def flatten(value: Any, prefix: str = "") -> dict[str, Any]:
    """Nested mappings as dotted keys; lists stay values. An empty mapping is a value."""
    if isinstance(value, Mapping) and value:
        flat: dict[str, Any] = {}
        for key, inner in value.items():
            flat.update(flatten(inner, f"{prefix}.{key}" if prefix else str(key)))
        return flat
    return {prefix: value}


_SECRET_KEY = re.compile(r"(?:^|_)(?:api_?key|password|passwd|secret|token|credential)s?$", re.IGNORECASE)
_URL_KEY = re.compile(r"(?:^|_)(?:url|uri)$", re.IGNORECASE)
_URL_BEFORE_HOST = re.compile(r"(?<=://).*@")  # people write passwords with '@' and '/' in them unquoted
_URL_SECRET = re.compile(r"([?&][^=&]*(?:key|token|secret|password|sig)[^=&]*=)[^&#]*", re.IGNORECASE)
_URL_CREDENTIALS = re.compile(r"(?<=://)[^\s/?#]+@")


def redacted(value: Any, key: str = "") -> Any:
    """A copy of plain data without secrets: the values of keys that name one, and the credentials of every URL."""
    if isinstance(value, Mapping):
        return {inner: redacted(item, str(inner)) for inner, item in value.items()}
    if isinstance(value, list):
        return [redacted(item, key) for item in value]
    if isinstance(value, str):
        if value and _SECRET_KEY.search(key):
            return "[removed]"
        if _URL_KEY.search(key):
            return _URL_SECRET.sub(r"\1[removed]", _URL_BEFORE_HOST.sub("[removed]@", value))
        return _URL_CREDENTIALS.sub("[removed]@", value)
    return value
