"""What paribus finds in another environment, which holds another version of a framework.

    python -m runner.audit.elsewhere FOLDER

FOLDER has ASKED, and QUESTIONS and RECORDS where records are to be scored; FOUND and SCORES are written into it. Only
`runner.audit.versions` starts this, with the python of that environment and the code of its own paribus.
"""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from types import ModuleType
from typing import Any

from adapters.base import JudgedScorer, Unavailable, scorer
from adapters.isolation import installed_version
from adapters.schema import JudgeCard, Question, Record, from_json, to_json
from runner.errors import ParibusError

ASKED, FOUND, SCORES, QUESTIONS, RECORDS = (
    "asked.json",
    "found.json",
    "scores.jsonl",
    "questions.jsonl",
    "records.jsonl",
)


@dataclass(frozen=True)
class Asked:
    """What to find out. distributions: name -> the version that must be there. definitions: as adapters.base.scorer
    takes them. judge: its configuration; None = no record is scored."""

    distributions: Mapping[str, str]
    definitions: tuple[Mapping[str, Any], ...]
    judge: Mapping[str, Any] | None


@dataclass(frozen=True)
class Edition:
    """A definition as one version of its package has it.

    card: paribus's own, with the hashes of that version's prompts; None where `why_not` says why the definition cannot
    be had there. prompts: their texts, each with its schema, by call. arguments: those of the package's class or
    function, with their defaults as Python writes them. code: its source text; None where there is none.
    """

    definition: str
    card: Mapping[str, Any] | None = None
    prompts: Mapping[str, str] = field(default_factory=dict)
    arguments: Mapping[str, str] = field(default_factory=dict)
    code: str | None = None
    why_not: str | None = None


@dataclass(frozen=True)
class Found:
    """The answer to Asked; editions in the order of its definitions. error: why there is none, for a person to mend."""

    editions: tuple[Edition, ...] = ()
    judge: JudgeCard | None = None
    notes: tuple[str, ...] = ()
    error: str | None = None


def edition(spec: Mapping[str, Any]) -> Edition:
    """The definition that `spec` names, as the package that is installed here has it."""
    from runner.definitions import card

    measure = scorer(spec)
    try:
        measure.prepare()
        shown = card(spec, prompts=True)
        named = measure.implementation()
        thing = _named(named)
    except Unavailable as error:
        return Edition(measure.key, why_not=str(error))
    except Exception as error:
        # The adapters are written for the versions that paribus pins: whatever another one lacks may break anywhere.
        return Edition(
            measure.key,
            why_not="the adapter, which is written for the version that paribus pins, does not get through: "
            f"{type(error).__name__}: {' '.join(str(error).split()) or 'no message'}",
        )
    texts = shown.pop("prompt_texts")
    if thing is None:
        return Edition(measure.key, why_not=f"it has no {named}")
    if isinstance(measure, JudgedScorer) and not texts and not measure.calls.startswith("0"):
        return Edition(measure.key, why_not="its prompts cannot be seen: it ended without a call, and did not say why")
    return Edition(measure.key, shown, texts, _arguments(thing), _code(thing))


def _named(path: str) -> Any:
    """The class or function that a dotted path names, in modules that are imported already; None = there is none."""
    module, rest = path, list[str]()
    while module not in sys.modules:
        module, _, name = module.rpartition(".")
        if not module:
            return None
        rest.insert(0, name)
    found: Any = sys.modules[module]
    for name in rest:
        found = getattr(found, name, None)
    return None if isinstance(found, ModuleType) else found


def _arguments(thing: Any) -> dict[str, str]:
    try:
        parameters = inspect.signature(thing).parameters
    except (TypeError, ValueError):
        return {}
    required = inspect.Parameter.empty
    return {
        name: "required" if found.default is required else re.sub(r" at 0x[0-9a-f]+", "", repr(found.default))
        for name, found in parameters.items()
        if name != "self"
    }


def _code(thing: Any) -> str | None:
    try:
        return inspect.getsource(thing)
    except (OSError, TypeError):
        return None


def find(asked: Asked, folder: Path) -> Found:
    """The editions, and the scores of the records in `folder`. Raises ParibusError."""
    for name, version in asked.distributions.items():
        if (here := installed_version(name)) != version:
            return Found(error=f"the environment for {name}=={version} holds {here}; see PYTHONPATH")
    editions = tuple(map(edition, asked.definitions))
    if asked.judge is None:
        return Found(editions)
    from runner.audit.material import Material
    from runner.audit.scored import judge_for, measured, scorers

    there = [spec for spec, found in zip(asked.definitions, editions, strict=True) if found.card]
    if not there:
        return Found(editions)
    questions, records = _read(Question, folder / QUESTIONS), _read(Record, folder / RECORDS)
    chosen = scorers(there)
    scored = measured(chosen, judge_for(chosen, asked.judge), Material("", questions, records))
    lines = [to_json(score) + "\n" for by_id in scored.scores.values() for score in by_id.values()]
    (folder / SCORES).write_text("".join(lines), encoding="utf-8", newline="\n")
    return Found(editions, scored.judge, scored.notes)


def _read(kind: type[Any], path: Path) -> tuple[Any, ...]:
    return tuple(from_json(kind, line) for line in path.read_text(encoding="utf-8").split("\n") if line)


def main(folder: Path) -> None:
    """Answer what `folder` asks. What frameworks print goes to stderr."""
    asked = from_json(Asked, (folder / ASKED).read_text(encoding="utf-8"))
    with redirect_stdout(sys.stderr):
        try:
            found = find(asked, folder)
        except ParibusError as error:
            found = Found(error=str(error))
    (folder / FOUND).write_text(to_json(found), encoding="utf-8")


def _end_with_parent() -> None:
    """Whoever started this holds its stdin; when that ends, nobody waits for replies that may cost money."""
    os.read(0, 1)
    os._exit(1)


if __name__ == "__main__":
    Thread(target=_end_with_parent, daemon=True).start()
    main(Path(sys.argv[1]))
