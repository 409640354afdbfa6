from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runner.dataset import TestSet
from runner.datasets.jsonl import JsonlDataset
from tests.dataset.files import Lines, Load, write


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Writes a test set into the working directory and loads it. A text among the records is a line as it stands."""
    monkeypatch.chdir(tmp_path)

    def write_and_load(
        questions: Lines | bytes | None = None, documents: Lines | bytes | None = None, /, **config: Any
    ) -> TestSet:
        write(
            Path("documents.jsonl"),
            [{"doc_id": "d1", "text": "Anna pays the rent."}] if documents is None else documents,
        )
        write(Path("questions.jsonl"), [{"id": "q1", "question": "Who?"}] if questions is None else questions)
        return JsonlDataset(name="mine", **({"path": "."} | config)).load()

    return write_and_load
