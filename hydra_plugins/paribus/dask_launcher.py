"""The launcher `paribus_dask`: the jobs of a sweep on the workers of a Dask cluster.

Jobs are submitted to Dask itself and not through joblib's Dask backend, which runs a single job, and any job of a
cluster with one thread, in the process that launches (joblib 1.6).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hydra.core.config_store import ConfigStore
from hydra.core.utils import JobReturn
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig

from hydra_plugins.paribus.jobs import failed, run_one


@dataclass
class DaskLauncherConf:
    """scheduler: address of the Dask scheduler. wait: seconds to wait for it to answer."""

    _target_: str = "hydra_plugins.paribus.dask_launcher.DaskLauncher"
    scheduler: str = "tcp://127.0.0.1:8786"
    wait: float = 10.0


ConfigStore.instance().store(group="hydra/launcher", name="paribus_dask", node=DaskLauncherConf, provider="paribus")


class DaskLauncher(Launcher):
    """Runs Hydra jobs on a Dask cluster."""

    def __init__(self, scheduler: str, wait: float) -> None:
        self.scheduler, self.wait = scheduler, wait

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Take what each job needs besides its overrides."""
        self.hydra_context, self.task_function, self.config = hydra_context, task_function, config

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Run the jobs; their ends in the same order, those of killed workers as failed."""
        from hydra.core.singleton import Singleton

        from runner.errors import ConfigError, MissingExtra

        try:
            from distributed import Client
        except ImportError:
            raise MissingExtra('launcher=dask needs the package distributed: pip install "paribus[dask]"') from None
        Path(str(self.config.hydra.sweep.dir)).mkdir(parents=True, exist_ok=True)
        try:
            client = Client(self.scheduler, timeout=self.wait)
        except OSError as error:
            raise ConfigError(
                f"hydra.launcher.scheduler={self.scheduler}: no Dask scheduler answers there; start one: dask scheduler"
            ) from error
        returns: list[JobReturn] = []
        with client:
            shared = (self.hydra_context, self.config, self.task_function, Singleton.get_state())
            futures = [
                client.submit(run_one, index, list(overrides), *shared, pure=False)
                for index, overrides in enumerate(job_overrides, initial_job_idx)
            ]
            for overrides, future in zip(job_overrides, futures, strict=True):
                ended = future.exception()
                returns.append(failed(list(overrides), ended) if ended else future.result())
        return returns
