"""The launcher `paribus_joblib`: the jobs of a sweep in several processes, on one machine or on a Dask cluster.

Written here because hydra-joblib-launcher (1.2.0, 2022) lets one dead worker lose the results of all others and knows
no Dask. Results come back in the order of the jobs, and a worker that dies costs the jobs it had, no more.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from hydra.core.config_store import ConfigStore
from hydra.core.utils import JobReturn, JobStatus
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, open_dict


@dataclass
class JoblibLauncherConf:
    """n_jobs: processes; -1 = as many as there are cores. scheduler: address of a Dask scheduler (`tcp://host:8786`);
    null = processes of this machine.
    """

    _target_: str = "hydra_plugins.paribus.joblib_launcher.JoblibLauncher"
    n_jobs: int = -1
    scheduler: str | None = None


ConfigStore.instance().store(group="hydra/launcher", name="paribus_joblib", node=JoblibLauncherConf, provider="paribus")


class JoblibLauncher(Launcher):
    """Runs Hydra jobs with joblib."""

    def __init__(self, n_jobs: int, scheduler: str | None) -> None:
        self.n_jobs, self.scheduler = n_jobs, scheduler

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Take what each job needs besides its overrides."""
        self.hydra_context, self.task_function, self.config = hydra_context, task_function, config

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Run the jobs; their ends in the same order, those of killed workers as failed."""
        from hydra.core.singleton import Singleton
        from joblib import Parallel, delayed

        Path(str(self.config.hydra.sweep.dir)).mkdir(parents=True, exist_ok=True)
        state = Singleton.get_state()
        jobs = [
            delayed(_run)(index, list(overrides), self.hydra_context, self.config, self.task_function, state)
            for index, overrides in enumerate(job_overrides, initial_job_idx)
        ]
        returns: list[JobReturn] = []
        with self._backend():
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
            return _failed(overrides, RuntimeError(f"its worker process ended: {str(error).splitlines()[0]}"))

    def _backend(self) -> AbstractContextManager[Any]:
        from joblib import parallel_config

        if self.scheduler is None:
            return nullcontext()
        from runner.errors import MissingExtra

        try:
            from distributed import Client
        except ImportError:
            raise MissingExtra('launcher=dask needs the package distributed: pip install "paribus[dask]"') from None
        Client(self.scheduler)
        backend: AbstractContextManager[Any] = parallel_config("dask")
        return backend


def _run(
    index: int,
    overrides: list[str],
    hydra_context: HydraContext,
    config: DictConfig,
    task_function: TaskFunction,
    state: dict[Any, Any],
) -> JobReturn:
    from hydra.core.singleton import Singleton
    from hydra.core.utils import run_job, setup_globals

    setup_globals()
    Singleton.set_state(state)
    sweep_config = hydra_context.config_loader.load_sweep_config(config, overrides)
    with open_dict(sweep_config):
        sweep_config.hydra.job.id = str(index)
        sweep_config.hydra.job.num = index
    return run_job(
        hydra_context=hydra_context,
        task_function=task_function,
        config=sweep_config,
        job_dir_key="hydra.sweep.dir",
        job_subdir_key="hydra.sweep.subdir",
    )


def _failed(overrides: list[str], error: Exception) -> JobReturn:
    done = JobReturn(overrides=overrides, status=JobStatus.FAILED)
    done.return_value = error
    return done
