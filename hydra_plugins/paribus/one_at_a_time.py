"""The sweeper `one_at_a_time`: the baseline first, then variants that differ from it in one variable.

A thin layer between Hydra and `runner.sweep`: it parses the command line and the preset, hands over how to compose and
how to launch, and nothing else.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, QuotedString, ValueType
from hydra.errors import HydraException
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig

from hydra_plugins.paribus.verbatim_source import escape, is_verbatim, quoted, verbatim


@dataclass
class OneAtATimeConf:
    """Configuration of the sweeper; what to sweep stands on the command line or in the group `sweep`."""

    _target_: str = "hydra_plugins.paribus.one_at_a_time.OneAtATime"


ConfigStore.instance().store(group="hydra/sweeper", name="one_at_a_time", node=OneAtATimeConf, provider="paribus")


class OneAtATime(Sweeper):
    """Runs 1 + n + m jobs for n values of one variable and m of another."""

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Take what Hydra composed, and the launcher that it names."""
        from hydra.core.plugins import Plugins

        self.composed, self.loader = config, hydra_context.config_loader
        self.jobs = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments: list[str]) -> Any:
        """Plan, run and show the sweep that the arguments and the preset describe."""
        from runner import console
        from runner.errors import StoreError, SweepIncomplete
        from runner.sweep import Sweep

        fixed, variables = self._split(arguments)
        sweep = Sweep(self.composed, self._compose, self._launch)
        planned = sweep.plan(fixed, variables)
        console.show_plan(planned)
        if planned.dry_run:
            return planned
        result = sweep.run(planned)
        console.show_sweep(result)
        if result.failed:
            reasons = "\n".join(f"{row.planned.label}: {row.error}" for row in result.failed)
            raise SweepIncomplete(f"{len(result.failed)} of {len(result.rows)} runs failed:\n{reasons}")
        if result.untracked:
            raise StoreError(result.untracked)
        return result

    def _split(self, arguments: list[str]) -> tuple[list[str], list[Any]]:
        """Overrides that hold for all runs, and the variables: those of the preset first, a name on the command line
        taking the place of the same name in the preset.
        """
        from runner.config import preset_variables
        from runner.errors import ConfigError
        from runner.plan import Variable

        parser = OverridesParser.create(config_loader=self.loader)
        preset = [_expression(name, values) for name, values in preset_variables(self.composed.sweep).items()]
        fixed: list[str] = []
        variables: dict[str, Variable] = {}
        typed_names: set[str] = set()
        for number, override in enumerate(parser.parse_overrides([*preset, *arguments])):
            typed = override.get_key_element()
            name = typed.lstrip("+~")
            if not (override.is_sweep_override() or number < len(preset)):
                fixed.append(override.input_line or "")
            elif override.is_sweep_override() and not override.is_discrete_sweep():
                raise ConfigError(f"{override.input_line}: an interval has no list of values; use a,b,c or range(…)")
            else:
                _refuse_split_prompt(override)
                if number >= len(preset) and name in typed_names:
                    raise ConfigError(f"{name} is swept twice on the command line; write its values as one list")
                typed_names |= {name} if number >= len(preset) else set()
                variables[name] = Variable(name, tuple(_values(override)), typed.removesuffix(name))
        return fixed, list(variables.values())

    def _compose(self, overrides: Sequence[str]) -> Any:
        from runner.config import resolve
        from runner.errors import ConfigError
        from runner.hydra_errors import explained
        from runner.plan import Composed

        try:
            config = self.loader.load_sweep_config(self.composed, verbatim(overrides))
        except Exception as error:
            sentence = explained(error)
            if sentence is None:
                raise
            raise ConfigError(sentence) from error
        return Composed(resolve(config), {str(k): str(v) for k, v in config.hydra.runtime.choices.items()})

    def _launch(self, jobs: Sequence[Any], first_index: int) -> list[Any]:
        overrides = [
            [*verbatim(fixed), *(f"trial.{key}={quoted(escape(value))}" for key, value in trial.items())]
            for fixed, trial in jobs
        ]
        returns = self.jobs.launch(overrides, initial_job_idx=first_index)
        # _return_value, because return_value raises what a failed job raised.
        return [done._return_value for done in returns]


def _values(override: Override) -> list[str]:
    """The values as they stand on a command line that sets one of them."""
    from runner.errors import ConfigError

    if not override.is_sweep_override():
        return [override.get_value_element_as_str()]
    values = list(override.sweep_iterator())
    if not values:
        raise ConfigError(f"{override.input_line}: no option of that group matches, so there is nothing to sweep")
    # Hydra's own strings escape what is special and forget about line ends; quotes keep everything.
    return [
        _literal(value) if isinstance(value, str) else Override._get_value_element_as_str(value) for value in values
    ]


def _expression(name: str, values: Any) -> str:
    """A preset's entry as an override: a list becomes its values, commas between, a text is an expression."""
    from runner.errors import ConfigError

    if not isinstance(values, list):
        return f"{name}={values}"
    if not values:
        raise ConfigError(f"sweep.variables.{name} is an empty list: there is nothing to sweep")
    return f"{name}={','.join(_literal(value if is_verbatim(name) else escape(value)) for value in values)}"


def _literal(value: Any) -> str:
    """A value in Hydra's override grammar: a text in quotes where it would not be read as that text without."""
    match value:
        case str():
            return value if _is_plain(value) else quoted(value)
        case list():
            return f"[{','.join(map(_literal, value))}]"
        case dict():
            return f"{{{','.join(f'{_literal(key)}:{_literal(item)}' for key, item in value.items())}}}"
        case _:
            return quoted(value)


def _is_plain(text: str) -> bool:
    try:
        return text.strip() != "" and OverridesParser.create().parse_override(f"key={text}")._value == text
    except HydraException:
        return False


def _refuse_split_prompt(override: Override) -> None:
    from runner.errors import ConfigError

    group, _, field = override.get_key_element().partition(".")
    if group != "prompt" or not field:
        return
    if override.value_type == ValueType.SIMPLE_CHOICE_SWEEP and not all(
        isinstance(value, QuotedString) for value in override.sweep_iterator()
    ):
        raise ConfigError(
            f"{override.input_line}: the commas make this text several values. Put each prompt in a file of "
            f"conf/prompt and sweep the names (prompt=plain,cited), or quote each text inside the argument: "
            f'\'{override.get_key_element()}="…","…"\''
        )
