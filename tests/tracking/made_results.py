from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.schema import Definition, JudgeCard, Question, Record, Score
from runner.results import RunResult


def definition(key: str, **changed: Any) -> Definition:
    fields: dict[str, Any] = {
        "id": key.partition("@")[0],
        "key": key,
        "asks": "is it found?",
        "framework": key.partition("/")[0],
        "version": "1",
        "implementation": "tests.made",
        "unit": "document",
        "hit": "a labelled document",
        "formula": "hits / labelled",
        "nothing_to_judge": "not applicable",
        "aggregation": "mean over the questions with a value",
        "range": (0.0, 1.0),
        "direction": "higher",
        "requires": (),
        "parameters": {},
        "source": "made by hand",
    }
    return Definition(**(fields | changed))


def result(
    values: Mapping[str, list[float | str]],
    *,
    config: Mapping[str, Any] | None = None,
    checksum: str = "c" * 64,
    judge: str | None = None,
    version: str = "1",
    environment: Mapping[str, Any] | None = None,
) -> RunResult:
    """A result with these scores by definition key; a text is the reason why there is no value."""
    definitions = {key: definition(key, version=version) for key in values}
    card = JudgeCard("made", judge, fingerprint=judge) if judge else None
    count = max(map(len, values.values()), default=0)
    scores = []
    for key, column in values.items():
        for number, value in enumerate(column):
            common = {"question_id": f"q{number}", "definition": key, "fingerprint": definitions[key].fingerprint}
            if isinstance(value, str):
                scores.append(Score(**common, value=None, status="failed", reason=value, judge=card))
            else:
                scores.append(Score(**common, value=value, judge=card))
    return RunResult(
        name="run",
        config={"chunker": {"_target_": "x.Y", "size": 256}} if config is None else config,
        config_fingerprint="f" * 16,
        choices={"embedder": "wordllama"},
        dataset={"name": "tiny", "version": "2", "checksum": checksum},
        definitions=definitions,
        scores=tuple(scores),
        records=tuple(Record(f"q{number}", answer="The rent is paid.") for number in range(count)),
        questions=tuple(Question(f"q{number}", f"Question {number}?") for number in range(count)),
        environment={"paribus": "0.1.0", "git_commit": "abc", "git_dirty": True, "packages": {"bm25s": "0.3.1"}}
        if environment is None
        else environment,
        calls={},
        started="2026-01-01T00:00:00.000Z",
        seconds=1.0,
    )
