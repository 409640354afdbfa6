"""The launcher `paribus_joblib`: the jobs of a sweep in several processes of this machine.

Written here because hydra-joblib-launcher (1.2.0, 2022) lets one dead worker lose the results of all others. Results
come back in the order of the jobs, and a worker that dies costs the job it had, no more.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from hydra.core.config_store import ConfigStore
from hydra.core.utils import JobReturn
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig

from hydra_plugins.paribus.jobs import failed, run_in


@dataclass
class JoblibLauncherConf:
    """n_jobs: processes; -1 = as many as there are cores."""

    _target_: str = "hydra_plugins.paribus.joblib_launcher.JoblibLauncher"
    n_jobs: int = -1


ConfigStore.instance().store(group="hydra/launcher", name="paribus_joblib", node=JoblibLauncherConf, provider="paribus")


class JoblibLauncher(Launcher):
    """Runs Hydra jobs with joblib."""

    def __init__(self, n_jobs: int) -> None:
        self.n_jobs = n_jobs

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Take what each job needs besides its overrides."""
        self.hydra_context, self.task_function, self.config = hydra_context, task_function, config

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Run the jobs; their ends in the same order, those of killed workers as failed."""
        from hydra.core.singleton import Singleton
        from joblib import Parallel, delayed

        Path(str(self.config.hydra.sweep.dir)).mkdir(parents=True, exist_ok=True)
        here = os.getcwd(), {name: value for name, value in os.environ.items() if name.startswith("PARIBUS_")}
        shared = self.hydra_context, self.config, self.task_function, Singleton.get_state()
        jobs = [
            delayed(run_in)(*here, index, list(overrides), *shared)
            for index, overrides in enumerate(job_overrides, initial_job_idx)
        ]
        returns: list[JobReturn] = []
        try:
            for done in Parallel(n_jobs=self._processes(len(jobs)), return_as="generator")(jobs):
                returns.append(done)
        except RuntimeError:  # a worker was killed: joblib ends the whole call and does not say by which job
            for i in range(len(returns), len(jobs)):
                returns.append(self._alone(jobs[i], list(job_overrides[i])))
        return returns

    def _processes(self, jobs: int) -> int:
        """At least two where several are allowed: with one, joblib would run the job in this process."""
        return self.n_jobs if self.n_jobs < 2 else max(2, min(self.n_jobs, jobs))

    def _alone(self, job: Any, overrides: list[str]) -> JobReturn:
        """Run one job that a killed worker may have had, with no other beside it that it could take down."""
        from joblib import Parallel

        try:
            return cast(JobReturn, Parallel(n_jobs=self._processes(2))([job])[0])
        except RuntimeError as error:
            return failed(overrides, RuntimeError(f"its worker process ended: {str(error).splitlines()[0]}"))
