"""A file of finished answers as the system."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from pydantic import Field

from adapters.schema import Record, fingerprint, to_json
from runner.audit.answers import read_answers
from runner.errors import ComponentError, ConfigError
from runner.stage import Passage, System, SystemReply


class AnswersSystem(System):
    """Answers that another program wrote, with their contexts: JSON Lines, JSON, CSV, TSV or Parquet in the columns of
    Ragas, DeepEval, TruLens, LangChain or LlamaIndex (docs/audit.md).

    A row belongs to the question with its id or, where no row has that id, with its text. The fingerprint covers the
    rows, not the name of the file. Raises DataError for a file that cannot be read.
    """

    path: str | None = None
    """The file; relative to the working directory."""
    columns: dict[str, str] = Field(default_factory=dict)
    """Our field -> the file's column, where they differ."""
    system: str | None = None
    """Which of several systems in the file; null = there is one."""

    incidental = System.incidental | {"path"}

    @property
    def fingerprint(self) -> str:
        """See Component; the rows count too."""
        by_id, by_text, _ = self._rows
        return fingerprint([super().fingerprint, {id: to_json(record) for id, record in by_id.items()}, dict(by_text)])

    @cached_property
    def _rows(self) -> tuple[Mapping[str, Record], Mapping[str, str], bool]:
        """The records by the id of their row, the ids by the text of their question, and whether ids are the file's:
        otherwise rows are counted, and the first is not the answer to a question that is called 1."""
        found = read_answers(Path(self.told("path")).expanduser(), self.columns)
        there = sorted(set(found.systems.values()))
        if self.system is None and len(there) > 1:
            raise ConfigError(f"system.system is missing: {self.path} holds answers of {', '.join(there)}; name one")
        if self.system is not None and self.system not in there:
            raise ConfigError(
                f"system.system={self.system!r} is not in {self.path}; there are {', '.join(there) or 'none named'}"
            )
        by_id: dict[str, Record] = {}
        by_text: dict[str, str] = {}
        for question, record in zip(found.questions, found.records, strict=True):
            named = found.systems.get(question.id)
            if self.system in (None, named):
                id = question.id.removesuffix(f" · {named}")
                by_id[id] = record
                by_text.setdefault(question.text, id)
        return by_id, by_text, "id" in found.columns

    def answer(self, id: str, question: str) -> SystemReply:
        """See System."""
        by_id, by_text, has_ids = self._rows
        record = by_id.get(id if has_ids and id in by_id else by_text.get(question, ""))
        if record is None:
            raise ComponentError(f"{self.path} has no row with the id {id!r} or this question")
        if record.answer is None:
            raise ComponentError(f"{self.path} has no answer in the row of {id!r}")
        return SystemReply(
            answer=record.answer,
            retrieved=tuple(Passage(r.chunk.text, r.chunk.doc_id, r.chunk.start, r.score) for r in record.reranked),
            context=tuple(Passage(chunk.text, chunk.doc_id, chunk.start) for chunk in record.context),
            refused=record.refused,
        )
