"""What a run is held to: conf/gate/*.yaml, checked before anything is compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from runner.errors import ConfigError
from runner.gate.accepted import Strict, valid


class Rule(Strict):
    """What one definition is held to. Losses and limits are in the definition's own values, in the direction in which
    it gets worse: where lower is better a drop is a rise, and the floor is the highest mean allowed.

    max_drop: the largest loss against the baseline; a loss equal to it passes; null = any. floor: the worst mean over
    all questions; a mean equal to it passes; null = any. on: mean = the mean loss over the common questions decides;
    interval = it fails only when the 95% paired bootstrap interval of the loss lies above max_drop as a whole.
    min_coverage: the least share of questions with a value, of those that have one or should: the ones on which the
    definition failed, and the ones that have a value in the baseline. With null in both max_drop and floor a definition
    is not looked at.
    """

    max_drop: float | None = Field(None, ge=0)
    floor: float | None = None
    on: Literal["mean", "interval"] = "mean"
    min_coverage: float = Field(1.0, gt=0, le=1)


class Scope(Strict):
    """The rules over a set of questions. default: for every definition of the baseline; null = only those that are
    named. definitions: by key; what one leaves out is taken from `default`; null = not looked at."""

    default: Rule | None = None
    definitions: dict[str, Rule | None] = Field(default_factory=dict)

    def rule(self, key: str) -> Rule | None:
        """The rule of a definition; None = it is not looked at."""
        own = self.definitions.get(key, self.default)
        if own is None:
            return None
        common = self.default.model_dump(exclude_unset=True) if self.default else {}
        rule = Rule(**{**common, **own.model_dump(exclude_unset=True)})
        return None if rule.max_drop is None and rule.floor is None else rule


class Rules(Scope):
    """All rules. slices: by slice, `origin:real` and `split:held_out` among them; they take nothing from the rules over
    all questions."""

    slices: dict[str, Scope] = Field(default_factory=dict)


def read_rules(path: Path) -> Rules:
    """The rules of a YAML file. Raises ConfigError that names the file and every wrong key."""
    import yaml

    class Loader(yaml.SafeLoader):
        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            keys = [self.construct_object(key, deep=True) for key, _ in node.value]
            if twice := [key for place, key in enumerate(keys) if key in keys[:place]]:
                raise yaml.YAMLError(f"the key {twice[0]!r} stands twice{node.start_mark}")
            return super().construct_mapping(node, deep)

    # YAML 1.1 reads the key `on` as true; YAML 1.2 and people do not.
    Loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in found if first in "tTfF" or not tag.endswith(":bool")]
        for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    try:
        checked: Rules = valid(Rules, yaml.load(path.read_text(encoding="utf-8"), Loader), str(path))
        return checked
    except (OSError, UnicodeDecodeError, RecursionError, yaml.YAMLError) as error:
        raise ConfigError(f"cannot read the rules {path}: {' '.join(str(error).split())}") from None
