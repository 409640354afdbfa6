"""One Hydra job in a worker, and the return of a job whose worker ended."""

from typing import Any

from hydra.core.utils import JobReturn, JobStatus
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, open_dict


def run_in(folder: str, variables: dict[str, str], *job: Any) -> JobReturn:
    """`run_one` in a worker of this machine that may have been started elsewhere: joblib keeps workers between calls.

    folder: the working directory; variables: those of the environment that paribus passes to itself.
    """
    import os

    os.chdir(folder)
    os.environ.update(variables)
    return run_one(*job)


def run_one(
    index: int,
    overrides: list[str],
    hydra_context: HydraContext,
    config: DictConfig,
    task_function: TaskFunction,
    state: dict[Any, Any],
) -> JobReturn:
    """Compose and run the job with this index; `state` is that of Hydra's singletons in the process that launches."""
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


def failed(overrides: list[str], error: Exception) -> JobReturn:
    """The return of a job that ended with `error` before it could return anything."""
    done = JobReturn(overrides=overrides, status=JobStatus.FAILED)
    done.return_value = error
    return done
