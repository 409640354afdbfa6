"""What makes a fault: conf/diagnosis/*.yaml, checked before anything is looked at. The one place for thresholds."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from runner.component import explain
from runner.diagnosis.findings import FaultName
from runner.errors import ConfigError
from runner.yaml_folders import conf_dir, extra_folders

if TYPE_CHECKING:
    from runner.results import StoredRun

FAULTS: tuple[FaultName, ...] = get_args(FaultName)
GROUP = "diagnosis"
_LEVER = re.compile(r"(?P<group>[a-z_]+)(?:\.(?P<key>[\w.]+))?=(?P<values>\S.*)")


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Telling(_Strict):
    """A definition whose value answers a yes/no question about an answer: yes from `yes_from` on, no below `no_below`,
    unknown in between. With null in one of them it never says so, and the next definition of the list is asked."""

    definition: str
    yes_from: float | None = None
    no_below: float | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Telling:
        if self.yes_from is None and self.no_below is None:
            raise ValueError(f"{self.definition} says nothing: give yes_from, no_below or both")
        if self.yes_from is not None and self.no_below is not None and self.no_below > self.yes_from:
            raise ValueError(
                f"{self.definition}: no_below={self.no_below:g} is above yes_from={self.yes_from:g}, so that values "
                "between them would be yes and no; lower no_below"
            )
        return self


class Rules(_Strict):
    """Thresholds, the definitions that tell what an answer is worth, and what to try against each fault. What each key
    means stands beside it in conf/diagnosis/default.yaml; docs/diagnosis.md says which fault reads which."""

    min_grade: int = Field(ge=1)
    sufficient_grade: int | None = Field(ge=1)
    min_cover: float = Field(ge=0, le=1)
    cover_of: Literal["span", "smaller"]
    found_from: float = Field(gt=0, le=1)
    buried_from: int = Field(ge=2)
    repeats_from: float = Field(gt=0, le=1)
    distrusted: list[str]
    declined: list[Telling]
    right: list[Telling]
    grounded: list[Telling]
    complete: list[Telling]
    partly_from: float
    claim_said_from: float = Field(gt=0, le=1)
    claim_unsaid_below: float = Field(gt=0, le=1)
    on_topic: list[Telling]
    longer_than: float = Field(gt=1)
    long_from: int = Field(ge=1)
    format: str | None
    cites: bool
    levers: dict[str, list[str]]

    @field_validator("declined", "right", "grounded", "complete", "on_topic")
    @classmethod
    def _known(cls, tellings: list[Telling]) -> list[Telling]:
        from adapters.base import SCORERS, UnknownDefinition, scorer

        ours = {id.partition("/")[0] for id in SCORERS}
        for telling in tellings:
            if telling.definition.partition("/")[0] in ours:  # others are definitions of somebody's own
                try:
                    scorer(telling.definition)
                except UnknownDefinition as error:
                    raise ValueError(str(error)) from None
        return tellings

    @field_validator("format")
    @classmethod
    def _compiles(cls, pattern: str | None) -> str | None:
        try:
            re.compile(pattern or "")
        except re.error as error:
            raise ValueError(f"{pattern!r} is no regular expression: {error}") from None
        return pattern

    @field_validator("levers")
    @classmethod
    def _of_faults(cls, levers: dict[str, list[str]]) -> dict[str, list[str]]:
        from difflib import get_close_matches

        known = [as_key(fault) for fault in FAULTS]
        for key, overrides in levers.items():
            if key not in known:
                near = get_close_matches(key, known, n=1, cutoff=0.5)
                hint = f"did you mean {near[0]}? " if near else ""
                raise ValueError(f"{key} is no fault ({hint}faults: {', '.join(known)})")
            for override in overrides:
                if not _LEVER.fullmatch(override):
                    raise ValueError(f"{key}: {override!r} is no override; write group=option or group.key=value")
        return levers

    @model_validator(mode="after")
    def _in_order(self) -> Rules:
        if self.sufficient_grade is not None and self.sufficient_grade < self.min_grade:
            raise ValueError(
                f"sufficient_grade={self.sufficient_grade} is below min_grade={self.min_grade}; a passage that answers "
                "by itself is relevant"
            )
        if self.claim_unsaid_below > self.claim_said_from:
            raise ValueError(
                f"claim_unsaid_below={self.claim_unsaid_below:g} is above claim_said_from={self.claim_said_from:g}, so "
                "that claims between them would be said and unsaid; lower it"
            )
        return self

    def fits(self, directions: Mapping[str, str]) -> None:
        """Raises ConfigError for a definition whose lower values are better, in a list where a higher value means yes.
        directions: by key, of the definitions of a run."""
        for name in ("right", "grounded", "complete", "on_topic"):
            for telling in getattr(self, name):
                if directions.get(telling.definition) == "lower":
                    raise ConfigError(
                        f"{GROUP}.{name} names {telling.definition}, whose lower values are better; there a higher "
                        "value means yes, so leave it out"
                    )

    def lever(self, fault: FaultName) -> tuple[str, ...]:
        """The overrides to try against a fault."""
        return tuple(self.levers.get(as_key(fault), ()))


def as_key(fault: FaultName) -> str:
    """The name of a fault where spaces would be in the way: `missed_top_ranked`."""
    return fault.replace(" ", "_")


def checked(values: Any) -> Rules:
    """`values` as rules. Raises ConfigError with every fault, one a line, each naming its key."""
    if not isinstance(values, Mapping):
        raise ConfigError(f"{GROUP}={values!r} is not a mapping; choose one of conf/{GROUP}/")
    try:
        return Rules(**values)
    except ValidationError as error:
        raise ConfigError(
            "\n".join(explain(fault, GROUP, known_at(fault["loc"])) for fault in error.errors())
        ) from None


def known_at(loc: Sequence[int | str]) -> tuple[str, ...]:
    """The keys that are known at a place in the rules."""
    return tuple((Telling if len(loc) > 2 else Rules).model_fields)


@cache
def default_rules() -> Rules:
    """The rules of conf/diagnosis/default.yaml."""
    import yaml

    return checked(yaml.safe_load((conf_dir() / GROUP / "default.yaml").read_text(encoding="utf-8")))


def rules_of(run: StoredRun) -> Rules:
    """The rules that a run was made with; the default ones for a run from before there were any. Raises ConfigError."""
    stored = run.config.get(GROUP)
    return default_rules() if stored is None else checked(stored)


def check_levers(rules: Rules) -> None:
    """Raises ConfigError for a lever that names a group, an option or a key that no YAML has."""
    from runner.config import VARIABLES

    folders = (conf_dir(), *extra_folders)
    texts: dict[str, str] = {}
    for override in chain.from_iterable(rules.levers.values()):
        found = _LEVER.fullmatch(override)
        assert found  # by Rules
        group, key = found["group"], found["key"]
        if group not in VARIABLES:
            raise ConfigError(f"{GROUP}.levers: {override} changes no variable; they are {', '.join(VARIABLES)}")
        files = {file.stem: file for folder in folders for file in sorted((folder / group).glob("*.yaml"))}
        if key is None:
            for option in found["values"].split(","):
                if option not in files:
                    raise ConfigError(
                        f"{GROUP}.levers: {override}: {option} is no option of {group}; there are "
                        f"{', '.join(sorted(files))}"
                    )
            continue
        if group not in texts:
            texts[group] = "\n".join(file.read_text(encoding="utf-8") for file in files.values())
        if not re.search(rf"^{re.escape(key.partition('.')[0])}:", texts[group], re.MULTILINE):
            raise ConfigError(f"{GROUP}.levers: {override}: no option of {group} has the key {key}")


def untried(rules: Rules, run: StoredRun) -> dict[FaultName, tuple[str, ...]]:
    """The levers of each fault without what the run has already, and without keys that its components do not have."""
    from runner.config import flatten

    choices, settings = run.summary.get("choices") or {}, flatten(run.config)

    def left(override: str) -> str | None:
        name, _, values = override.partition("=")
        if name not in settings and name not in run.config:
            return None
        found = settings.get(name) if "." in name else choices.get(name)
        at = "null" if found is None else str(found)
        kept = [value for value in values.split(",") if value != at]
        return f"{name}={','.join(kept)}" if kept else None

    found = {fault: tuple(filter(None, map(left, rules.lever(fault)))) for fault in FAULTS}
    return {fault: levers for fault, levers in found.items() if levers}
