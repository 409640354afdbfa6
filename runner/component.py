"""A component: frozen configuration plus behaviour, built from one YAML whose `_target_` names the class.

A component holds configuration only; weights and indexes are loaded on first use, so that building every YAML costs
nothing. Its fingerprint covers all that can change its output, so that stored outputs never outlive their cause.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from inspect import isabstract
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from adapters.schema import fingerprint
from runner.errors import ConfigError, MissingExtra

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


class Component(BaseModel):
    """Base of every stage. Fields are its configuration: strict types, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    packages: ClassVar[tuple[str, ...]] = ()
    """Distributions whose version can change the output (they enter the fingerprint)."""

    sources: ClassVar[tuple[str, ...]] = ()
    """Modules of ours outside the class and its bases whose code can change the output (they enter the fingerprint)."""

    extra: ClassVar[str | None] = None
    """The extra of paribus that installs `packages`, where they are not core dependencies."""

    incidental: ClassVar[frozenset[str]] = frozenset()
    """Fields that change speed or cost but never the output (they stay out of the fingerprint)."""

    @property
    def target(self) -> str:
        """The class with its module, as `_target_` names it."""
        return f"{type(self).__module__}.{type(self).__qualname__}"

    paid: ClassVar[bool] = False
    """Whether its work costs money or minutes; then each piece is stored as soon as it is there."""

    @property
    def fingerprint(self) -> str:
        """Hash of class, configuration, source code and the versions of `packages`."""
        return self.fingerprint_without()

    def fingerprint_without(self, *fields: str) -> str:
        """The fingerprint with some fields left out, for an output that they cannot change."""
        return fingerprint(
            {
                "class": self.target,
                "config": self.model_dump(mode="json", exclude={*self.incidental, *fields}),
                "code": [
                    *(source_hash(kind.__module__) for kind in type(self).__mro__ if _is_ours(kind)),
                    *map(source_hash, self.sources),
                ],
                "packages": {package: self._version(package) for package in self.packages},
            }
        )

    def _version(self, package: str) -> str:
        try:
            return version(package)
        except PackageNotFoundError:
            command = f'pip install "paribus[{self.extra}]"' if self.extra else f"pip install {package}"
            raise MissingExtra(
                f"{self.target} needs the package {package}, which is not installed: {command}"
            ) from None


def _is_ours(kind: type) -> bool:
    return kind is not Component and issubclass(kind, Component)


@cache
def source_hash(module: str) -> str:
    """Hash of the file of an importable module, first 16 hex digits."""
    path = getattr(import_module(module), "__file__", None)
    return hashlib.sha256(Path(path).read_bytes() if path else module.encode()).hexdigest()[:16]


C = TypeVar("C", bound=BaseModel)


def build(config: Mapping[str, Any], kind: type[C], group: str) -> C:
    """Build the component or judge that `config` describes; `group` is the key that messages name.

    Raises ConfigError with the full key, the value found and what is allowed.
    """
    fields = dict(config)
    target = fields.pop("_target_", None if isabstract(kind) else f"{kind.__module__}.{kind.__qualname__}")
    if target is None:
        raise ConfigError(f"{group}._target_ is missing; write the class as package.module.Class")
    module, _, attribute = str(target).rpartition(".")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(
            f"{group}._target_={target!r} does not name an importable class ({error}); write package.module.Class"
        ) from error
    if not (isinstance(found, type) and issubclass(found, kind)):
        raise ConfigError(
            f"{group}._target_={target!r} is not a {kind.__name__}; it must derive from "
            f"{kind.__module__}.{kind.__name__}"
        )
    try:
        return found(**fields)
    except ValidationError as error:
        known = tuple(found.model_fields)
        raise ConfigError("\n".join(explain(fault, group, known) for fault in error.errors())) from None


def explain(fault: ErrorDetails, prefix: str, known: tuple[str, ...]) -> str:
    """One sentence for a fault of pydantic's: key, value found, what is allowed. `known` are the keys beside it."""
    from difflib import get_close_matches

    key = ".".join([prefix, *map(str, fault["loc"])]).strip(".")
    match fault["type"]:
        case "extra_forbidden":
            name = str(fault["loc"][-1])
            near = get_close_matches(name, known, n=1, cutoff=0.5)
            hint = f"did you mean {key.removesuffix(name)}{near[0]}? " if near else ""
            return f"{key} is not a known key ({hint}known here: {', '.join(known)})"
        case "missing":
            return f"{key} is missing; it has no default"
        case "value_error":
            return f"{key}: {fault['ctx']['error']}".removeprefix(": ")
        case _:
            return f"{key}={fault['input']!r} is not allowed: {fault['msg'][0].lower()}{fault['msg'][1:]}"
