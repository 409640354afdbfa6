"""Base of the judges without a model: they answer tasks instead of prompts."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Sequence

from adapters.judge import Call, Judge, Reply
from adapters.judges.vectors import WARNING, hashed
from adapters.tasks import Findings, Task


class TaskJudge(Judge):
    """Answers each call by the task that it stands for, in the schema of the call; embeds by hashed words."""

    @abstractmethod
    def findings(self, task: Task, call: Call) -> Findings:
        """What `adapters.tasks` asks for, in its order. Raises JudgeFault."""

    async def ask(self, call: Call) -> Reply:
        """The findings as JSON, or as text where the call has no schema. No tokens are spent. Raises JudgeFault."""
        written = call.write(self.findings(call.task(), call))
        return Reply(written if isinstance(written, str) else json.dumps(written), 0, 0, "stop", self.card.model)

    def warnings(self, generator_model: str | None) -> tuple[str, ...]:
        """What its vectors cannot tell."""
        return (WARNING,)

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """See adapters.judges.vectors.hashed. Raises JudgeFault."""
        return hashed(texts)
