"""The sweeper `one_at_a_time`: the baseline first, then variants that differ from it in one variable.

A thin layer between Hydra and `runner.sweep`: it parses the command line and the preset, hands over how to compose and
how to launch, and nothing else.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, Quote, QuotedString
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf

from hydra_plugins.paribus.verbatim_source import escape


@dataclass
class OneAtATimeConf:
    """Configuration of the sweeper; what to sweep stands on the command line or in the group `sweep`."""

    _target_: str = "hydra_plugins.paribus.one_at_a_time.OneAtATime"


ConfigStore.instance().store(group="hydra/sweeper", name="one_at_a_time", node=OneAtATimeConf, provider="paribus")


class OneAtATime(Sweeper):
    """Runs 1 + n + m jobs for n values of one variable and m of another."""

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        from hydra.core.plugins import Plugins

        self.config = config
        self.hydra_context = hydra_context
        self.launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments: list[str]) -> Any:
        from runner.sweep import Sweep

        fixed, variables = self._split(arguments)
        sweep = Sweep(self.config, self._compose, self._launch)
        return sweep.run(fixed, variables)

    def _split(self, arguments: list[str]) -> tuple[list[str], list[Any]]:
        """Overrides that hold for all runs, and the variables: those of the preset first, a name on the command line
        taking the place of the same name in the preset."""
        from runner.errors import ConfigError
        from runner.plan import Variable

        parser = OverridesParser.create(config_loader=self.hydra_context.config_loader)
        preset = parser.parse_overrides([_expression(n, v) for n, v in self.config.sweep.variables.items()])
        fixed: list[str] = []
        values: dict[str, tuple[str, ...]] = {}
        for override in [*preset, *parser.parse_overrides(arguments)]:
            name = override.get_key_element()
            if not (override.is_sweep_override() or override in preset):
                fixed.append(override.input_line or "")
            elif override.is_sweep_override() and not override.is_discrete_sweep():
                raise ConfigError(f"{override.input_line}: an interval has no list of values; use a,b,c or range(…)")
            else:
                _refuse_split_prompt(override)
                values[name] = tuple(_values(override))
        return fixed, [Variable(name, found) for name, found in values.items()]

    def _compose(self, overrides: Sequence[str]) -> Any:
        from runner.config import resolve
        from runner.plan import Composed

        config = self.hydra_context.config_loader.load_sweep_config(self.config, list(overrides))
        return Composed(resolve(config), {str(k): str(v) for k, v in config.hydra.runtime.choices.items()})

    def _launch(self, jobs: Sequence[Any], first_index: int) -> list[Any]:
        overrides = [
            [*fixed, *(f"trial.{key}={_quoted(value)}" for key, value in trial.items())] for fixed, trial in jobs
        ]
        returns = self.launcher.launch(overrides, initial_job_idx=first_index)
        # _return_value, because return_value raises what a failed job raised.
        return [done._return_value for done in returns]


def _values(override: Override) -> list[str]:
    if override.is_sweep_override():
        return [str(value) for value in override.sweep_string_iterator()]
    return [override.get_value_element_as_str()]


def _expression(name: Any, values: Any) -> str:
    """A preset's entry as an override: a list becomes a choice with every text quoted, a text is an expression."""
    if not OmegaConf.is_list(values):
        return f"{name}={values}"
    return f"{name}=choice({','.join(_quoted(value) for value in values)})"


def _quoted(value: Any) -> str:
    """A value in Hydra's override grammar; a text is quoted, and `${` in it stays text."""
    if not isinstance(value, str):
        return "null" if value is None else str(value)
    return QuotedString(text=escape(value), quote=Quote.single).with_quotes()


def _refuse_split_prompt(override: Override) -> None:
    from runner.errors import ConfigError

    group, _, field = override.get_key_element().partition(".")
    if group != "prompt" or not field:
        return
    if not all(isinstance(value, QuotedString) for value in override.sweep_iterator()):
        raise ConfigError(
            f"{override.input_line}: the commas make this text several values. Put each prompt in a file of "
            f"conf/prompt and sweep the names (prompt=plain,cited), or quote each text inside the argument: "
            f"'{override.get_key_element()}=\"…\",\"…\"'"
        )
