"""A recording as the judge: what another judge replied, without asking it again."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from adapters.judge import Call, Judge, JudgeFault, Reply
from adapters.judges.model_names import family_warnings
from adapters.recording import Recording, RecordingError, load, text_hash
from adapters.schema import JudgeCard


class ReplayJudge(Judge):
    """Answers from a recording (adapters.recording), and never otherwise.

    Its card is the card of the judge that was recorded, so its scores are that judge's and compare with them.
    Raises RecordingError when it is first used and the file cannot be read.
    """

    recording: str
    """The JSONL file, as a run wrote it (judge_replies.jsonl in its result folder)."""

    @cached_property
    def _recording(self) -> Recording:
        return load(self.recording)

    @property
    def card(self) -> JudgeCard:
        """The card of the judge that was recorded. Raises RecordingError."""
        return self._recording.card

    @property
    def repairs(self) -> int:
        """Those of the judge that was recorded, whose repaired replies are in the recording too."""
        rounds = self.card.settings.get("repair_rounds", 0)
        return rounds if isinstance(rounds, int) else 0

    @property
    def repeats(self) -> int:
        """That of the judge that was recorded, whose samples are in the recording."""
        samples = self.card.settings.get("samples", 1)
        return samples if isinstance(samples, int) else 1

    def anew(self) -> Judge:
        """See Judge; raises JudgeFault, always."""
        raise JudgeFault("a recording says what it said before, so it cannot show whether the judge moved")

    def check(self) -> None:
        """See Judge."""
        self._read()

    async def ask(self, call: Call) -> Reply:
        """The recorded reply. Raises JudgeFault where there is none."""
        recorded = self._read().replies.get(call.key)
        if recorded is None:
            raise JudgeFault(f"{call} is not in {self.recording}: {self._why(call)}; {self._how()}")
        return recorded.reply

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """The recorded vectors. Raises JudgeFault where there is none."""
        vectors = self._read().vectors
        for text in texts:
            if text_hash(text) not in vectors:
                raise JudgeFault(f"the embedding of {text[:40]!r} is not in {self.recording}; {self._how()}")
        return [vectors[text_hash(text)] for text in texts]

    def warnings(self, generator_model: str | None) -> tuple[str, ...]:
        """Whether a line of the recording is lost, and whether the recorded model is of the generator's family; that
        its name is an alias was said when it was recorded, and no other weights can answer now."""
        lost = (self._recording.lost,) if self._recording.lost else ()
        if self.card.provider != "openai":
            return lost
        return lost + family_warnings(self.card.model, generator_model)

    def _read(self) -> Recording:
        try:
            return self._recording
        except RecordingError as error:
            raise JudgeFault(str(error)) from None

    def _why(self, call: Call) -> str:
        place = (call.definition, call.name, call.question.id)
        if any((r.definition, r.call, r.question) == place for r in self._recording.replies.values()):
            return "what was recorded for it has another prompt or schema, so one of them changed since"
        return "it was never recorded"

    def _how(self) -> str:
        return f"record it by a run with the judge itself ({self.card.provider} {self.card.model})"
