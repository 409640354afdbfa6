"""The Hydra application behind `python -m runner`, `paribus run` and `paribus sweep`."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.errors import ConfigError, ParibusError, StoreError, SweepIncomplete
from runner.yaml_folders import conf_dir, extra_folders

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from runner.run import Outcome

SWEPT = "PARIBUS_SWEPT"
"""Environment variable by which workers learn which overrides of the command line are swept, comma separated."""

_OPEN = re.compile(r"system\.(parameters|fields|headers|columns)[.=]")
"""Keys whose own keys are the user's."""


def launch(arguments: Sequence[str], record_to: str | None = None) -> None:
    """Hand `arguments` to Hydra as it would get them from `python -m runner`.

    record_to: see runner.run.run. Raises what the job or Hydra raises; `runner.cli` turns it into messages.
    """
    import hydra
    from hydra.core.hydra_config import HydraConfig
    from hydra.errors import HydraException
    from hydra.types import RunMode

    from hydra_plugins.paribus.verbatim_source import verbatim

    os.environ["HYDRA_FULL_ERROR"] = "1"
    signal.signal(signal.SIGTERM, _interrupt)
    overrides, extra_folders[:] = _split_config_dirs(arguments)
    _refuse_unclear_folder(overrides)
    os.environ[SWEPT] = ",".join(_swept(overrides))
    from runner import console

    failures: list[ParibusError] = []

    def job(config: DictConfig) -> Outcome | None:
        try:
            return task(config, record_to)
        except ParibusError as error:
            _drop_if_empty()
            if config.trial.sweep is not None or config.sweep.get("dry_run"):
                raise
            if HydraConfig.get().mode == RunMode.MULTIRUN:  # Hydra's own sweepers tell of the first failure only
                console.note(f"{' '.join(HydraConfig.get().overrides.task)}: {error}")
                raise SweepIncomplete(
                    "some runs failed; each is named above, and what the others found is kept"
                ) from error
            failures.append(error)
            return None

    job.__module__ = __name__
    sys.argv = ["paribus", *(overrides if {"-m", "--multirun"} & set(overrides) else verbatim(overrides))]
    try:
        hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name="config")(job)()
    except HydraException:
        raise
    except OSError as error:
        if error.filename is None:
            raise
        raise StoreError(
            f"cannot use {error.filename}: {error.strerror}. What paribus writes goes to tracking.folder"
        ) from error
    if failures:
        raise failures[0]


def composed(arguments: Sequence[str]) -> dict[str, Any]:
    """What Hydra makes of `arguments`, as plain data, where no run is to be started. Raises as `launch` does."""
    from hydra import compose, initialize_config_dir

    from hydra_plugins.paribus.verbatim_source import verbatim
    from runner.config import resolve

    overrides, extra_folders[:] = _split_config_dirs(arguments)
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        return resolve(compose("config", overrides=verbatim(overrides)))


def _refuse_unclear_folder(overrides: Sequence[str]) -> None:
    """Hydra makes result folders below tracking.folder before any configuration is checked."""
    for override in overrides:
        key, _, value = override.lstrip("+").partition("=")
        if key == "tracking.folder" and (value.strip("'\" ") in ("", "null") or value.strip("'\" ").startswith("~")):
            raise ConfigError(f"{override}: tracking.folder must be a path, and '~' is not expanded; write it in full")


def _drop_if_empty() -> None:
    """Hydra makes the result folder before a job starts; one that got no result says nothing."""
    from hydra.core.hydra_config import HydraConfig

    with suppress(OSError):
        Path(HydraConfig.get().runtime.output_dir).rmdir()


def task(config: DictConfig, record_to: str | None = None) -> Outcome:
    """One Hydra job, in this process or in a worker, as the launcher decides. record_to: see runner.run.run."""
    from hydra.core.hydra_config import HydraConfig
    from hydra.types import RunMode

    from runner import console
    from runner.config import resolve
    from runner.plan import refuse_idle
    from runner.run import run

    hydra = HydraConfig.get()
    plain = resolve(config)
    alone = plain.get("trial", {}).get("sweep") is None
    if alone and plain.get("sweep", {}).get("dry_run"):
        raise ConfigError("a dry run shows the plan of a sweep of one variable at a time; here there is none")
    if alone and hydra.mode == RunMode.MULTIRUN:
        plain["trial"].update(_cartesian(list(hydra.overrides.task)))
    if alone and plain.get("system") and "system" not in os.environ.get(SWEPT, "").split(","):
        refuse_idle(hydra.overrides.task)
    choices = {str(g): str(c) for g, c in hydra.runtime.choices.items() if not str(g).startswith("hydra/")}
    folder = Path(hydra.runtime.output_dir)
    outcome = run(plain, choices, folder, record_to)
    if alone:
        console.show_run(outcome, one_of_many=hydra.mode == RunMode.MULTIRUN)
    if record_to is not None:
        from runner.record import replay_command
        from runner.results import RECORDING

        recording = Path(record_to).resolve() if record_to else folder / RECORDING
        command = replay_command(hydra.overrides.task, extra_folders, recording)
        console.note(f"Every score came out of the recording again. Replay it without a network: {command}")
    return outcome


def _cartesian(overrides: list[str]) -> dict[str, Any]:
    """The trial of a job that another sweeper than ours started: several variables may have changed together."""
    swept = [name for name in os.environ.get(SWEPT, "").split(",") if name]
    changed = [name for name in (_name(override) for override in overrides) if not swept or name in swept]
    label = ",".join(override for override in overrides if _name(override) in changed)
    return {"design": "cartesian", "changed": changed, "value": label}


def _name(override: str) -> str:
    return override.partition("=")[0].lstrip("+~")


def _swept(arguments: Sequence[str]) -> list[str]:
    from hydra.core.override_parser.overrides_parser import OverridesParser

    overrides = [argument for argument in arguments if "=" in argument and not argument.startswith("-")]
    parsed = OverridesParser.create().parse_overrides(overrides)
    return [override.get_key_element() for override in parsed if override.is_sweep_override()]


def _split_config_dirs(arguments: Sequence[str]) -> tuple[list[str], list[Path]]:
    """`--config-dir` is handled here and not by Hydra, so that prompts in those folders are read verbatim too. Keys of
    a system that the user names get the `++` without which Hydra adds none."""
    rest: list[str] = []
    folders: list[Path] = []
    given = iter(arguments)
    for argument in given:
        option, _, value = argument.partition("=")
        if option not in ("--config-dir", "-cd"):
            rest.append(f"++{argument}" if _OPEN.match(argument) else argument)
            continue
        name = value or next(given, "")
        if not name:
            raise ConfigError(f"{option} needs a folder that holds groups like conf/")
        folder = Path(name).resolve()
        if not folder.is_dir():
            raise ConfigError(f"{option} {folder}: there is no such folder; give a folder that holds groups like conf/")
        folders.append(folder)
    return rest, folders


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt
