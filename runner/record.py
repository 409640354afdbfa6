"""`paribus record`: a run whose judge replies go to a recording, which is shown to be whole before it is relied on."""

from __future__ import annotations

from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Any

from adapters.base import JudgedScorer
from adapters.judges.replay import ReplayJudge
from runner.errors import ComponentError, ConfigError
from runner.results import RECORDING, RunResult
from runner.scoring import score

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapters.judge import Judge
    from adapters.schema import Score
    from runner.config import Experiment


def recording_file(judge: Judge | None, to: str, folder: Path) -> Path:
    """Where the replies go; `to` empty = the result folder. Raises ConfigError where there is nothing to record."""
    if judge is None:
        raise ConfigError("record: no definition of this run asks a judge; choose some, as in metrics=faithfulness")
    if not judge.recorded:
        raise ConfigError(
            f"record: the judge {judge.card.provider} is no model, and its replies cost nothing; choose judge=openai"
        )
    return Path(to).resolve() if to else folder / RECORDING


def replay(built: Experiment, result: RunResult, recording: Path) -> None:
    """Score the records of `result` again from the recording alone. Raises ComponentError where a reply is missing, or
    a score is not what it was, with the first of them."""
    judged = [scorer for scorer in built.metrics.scorers() if isinstance(scorer, JudgedScorer)]
    again = score(judged, result.questions, result.records, ReplayJudge(recording=str(recording)))
    before = {(found.definition, found.question_id): found for found in result.scores}
    pairs = [(before[found.definition, found.question_id], found) for found in again]
    differ = [(was, now) for was, now in pairs if _said(was) != _said(now)]
    if differ:
        was, now = differ[0]
        raise ComponentError(
            f"{len(differ)} of {len(pairs)} scores do not come out of {recording} as they were; the first: "
            f"{was.definition} of question {was.question_id}: {_word(was)}; replayed: {_word(now)}. The same command "
            "goes on from here"
        )


def replay_command(overrides: Sequence[str], config_folders: Sequence[Path], recording: Path) -> str:
    """The command that repeats a run with the recording as its judge."""
    kept = [word for word in overrides if word.lstrip("+~").partition("=")[0].partition(".")[0] != "judge"]
    folders = [f"--config-dir={folder}" for folder in config_folders]
    return join(["paribus", "run", *folders, *kept, "judge=replay", f"judge.recording={recording}"])


def _said(found: Score) -> tuple[Any, ...]:
    return found.value, found.status, found.reason, found.evidence, found.native_value


def _word(found: Score) -> str:
    return f"{found.status}, {found.reason}" if found.value is None else f"{found.value:.6g}"
