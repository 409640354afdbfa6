"""One definition in several versions of its package: prompts, arguments and code beside each other, and scores.

Each version is read and scored in an environment of its own by this same paribus (runner.audit.elsewhere). The prose of
a card is paribus's and speaks of the version that it pins; what a version itself brings are its prompts, the arguments
of its class or function with their defaults, and its code.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from difflib import unified_diff
from itertools import pairwise
from pathlib import Path
from typing import Any

import adapters
import runner
from adapters.base import JudgedScorer, Measure, UnknownDefinition, scorer
from adapters.schema import Question, Record, Score, from_json, to_json
from adapters.sentences import well_formed
from runner import console, phrases
from runner.audit.comparison import THRESHOLD, audit
from runner.audit.elsewhere import ASKED, FOUND, QUESTIONS, RECORDS, SCORES, Asked, Edition, Found
from runner.audit.environments import DISTRIBUTIONS, Release, Tell, default_cache, environment, listened, release
from runner.audit.findings import Audit, Subject
from runner.audit.matching import SIMILAR
from runner.definitions import catalogue, differences
from runner.errors import ComponentError, ConfigError

DATA, TEXT = "versions.json", "versions.md"
ALWAYS = ("version", "fingerprint")
"""Fields of a card that differ between any two versions."""


@dataclass(frozen=True)
class Change:
    """What is otherwise in the right version than in the left one.

    fields: of the card, without those that always differ. arguments: of the package's class or function, with their
    defaults; None = it is not there. prompts, code: unified diffs of what changed, with the lines added and removed.
    why_not: why the two cannot be compared.
    """

    definition: str
    left: str
    right: str
    fields: Mapping[str, tuple[Any, Any]]
    arguments: Mapping[str, tuple[str | None, str | None]]
    prompts: Mapping[str, Diff]
    code: Diff | None
    why_not: str | None = None

    @property
    def same(self) -> bool:
        """Whether nothing changed."""
        return not (self.why_not or self.fields or self.arguments or self.prompts or self.code)


@dataclass(frozen=True)
class Diff:
    """A unified diff, and how many lines it adds and removes."""

    text: str
    added: int
    removed: int

    def __str__(self) -> str:
        return f"+{self.added} −{self.removed}"


@dataclass(frozen=True)
class VersionAudit:
    """The versions of one package. editions: by name of the version, in the order of `versions`; each has the same
    definitions. changes: from each version to the next. audit: the scores side by side, where records were scored."""

    package: str
    versions: tuple[str, ...]
    editions: Mapping[str, tuple[Edition, ...]]
    changes: tuple[Change, ...]
    audit: Audit | None


def compare_versions(
    requirements: Sequence[str],
    definitions: Sequence[str | Mapping[str, Any]] = (),
    *,
    questions: Sequence[Question] = (),
    records: Sequence[Record] = (),
    judge: Mapping[str, Any] | None = None,
    source: str = "",
    systems: Mapping[str, str] | None = None,
    threshold: float = THRESHOLD,
    similar: float = SIMILAR,
    cache: Path | None = None,
    tell: Tell = console.note,
) -> VersionAudit:
    """Compare two or more versions of one package, such as `deepeval==4.2.6`.

    definitions: as adapters.base.scorer takes them; empty = all of the package that ask a judge. questions and records
    run in parallel and are scored by every version with the same judge; none = cards and prompts only. judge: its
    configuration; keys reach the other environments through environment variables only. cache: where environments are
    kept; the installed version needs none.

    Raises ParibusError for what a person can mend. A definition that a version does not have is no error: its edition
    says why.
    """
    if records and judge is None:
        raise ConfigError("records are scored by a judge, and none is given")
    releases = _releases(requirements)
    specs = _specs(definitions, releases[0].package)
    pythons = [
        Path(sys.executable) if each.here else environment(each, cache or default_cache(), tell) for each in releases
    ]
    found: dict[str, Found] = {}
    scores: dict[str, list[Score]] = {}
    for each, python in zip(releases, pythons, strict=True):
        asked = Asked(dict.fromkeys(each.distributions, each.version), tuple(specs), judge if records else None)
        found[each.name], scores[each.name] = _asked(each, python, asked, questions, records, tell)
    editions = {name: one.editions for name, one in found.items()}
    return VersionAudit(
        package=releases[0].package,
        versions=tuple(editions),
        editions=editions,
        changes=tuple(
            changed(one, other, left, right)
            for left, right in pairwise(editions)
            for one, other in zip(editions[left], editions[right], strict=True)
        ),
        audit=_side_by_side(specs, found, scores, questions, records, source, systems, threshold, similar)
        if records
        else None,
    )


def _releases(requirements: Sequence[str]) -> list[Release]:
    found = list(dict.fromkeys(map(release, requirements)))
    if len(found) < 2:
        raise ConfigError(
            f"--versions compares two or more versions of one package, got {found[0].name if found else 'none'}; write "
            "them like deepeval==4.2.6 deepeval==4.3.1"
        )
    if len(packages := dict.fromkeys(each.package for each in found)) > 1:
        raise ConfigError(f"--versions compares versions of one package, got {' and '.join(packages)}")
    return found


def _specs(definitions: Sequence[str | Mapping[str, Any]], package: str) -> list[dict[str, Any]]:
    chosen = [dict(spec) if isinstance(spec, Mapping) else {"id": spec} for spec in definitions] or [
        {"id": measure.id}
        for measure in catalogue()[0]
        if measure.framework == package and isinstance(measure, JudgedScorer)
    ]
    if not chosen:
        raise ConfigError(
            f"no definition of {package} is registered (they are of {', '.join(DISTRIBUTIONS)}); name your own with "
            "--definitions module:Class"
        )
    keys: set[str] = set()
    for spec in chosen:
        measure = _measure(spec)
        if measure.framework != package:
            raise ConfigError(
                f"{measure.key} is a definition of {measure.framework}, and the versions are of {package}"
            )
        if measure.key in keys:
            raise ConfigError(f"{measure.key} is named twice")
        keys.add(measure.key)
    return chosen


def _measure(spec: Mapping[str, Any]) -> Measure:
    try:
        return scorer(spec)
    except UnknownDefinition as error:
        raise ConfigError(str(error)) from error


def _asked(
    each: Release,
    python: Path,
    asked: Asked,
    questions: Sequence[Question],
    records: Sequence[Record],
    tell: Tell,
) -> tuple[Found, list[Score]]:
    """What elsewhere finds, run with `python` in a folder that holds the code of this paribus and nothing of its
    environment."""
    with tempfile.TemporaryDirectory(prefix="paribus-versions-") as place:
        folder, code = Path(place), Path(place) / "code"
        for package in (runner, adapters):
            shutil.copytree(Path(str(package.__file__)).parent, code / package.__name__)
        _write(folder / ASKED, [asked])
        _write(folder / QUESTIONS, questions)
        _write(folder / RECORDS, records)
        variables = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, (str(code), os.environ.get("PYTHONPATH")))),
            "PYTHONNOUSERSITE": "1",
            "PYTHONUTF8": "1",
            "PYTHONUNBUFFERED": "1",
            "PYTHONWARNINGS": "ignore",
        }
        counted = phrases.count(len(asked.definitions), "definition")
        tell(f"{each.name}: {'scoring' if asked.judge else 'reading'} {counted}")
        command = [str(python), "-P", "-m", "runner.audit.elsewhere", str(folder)]
        mend = "" if each.here else f"; where its environment is damaged, remove {python.parent.parent}"
        try:
            code_of_exit, tail = listened(command, variables, each.name, tell, every=0.0 if asked.judge else 15.0)
        except OSError as error:
            raise ComponentError(f"{each.name}: {python} does not run ({error.strerror}){mend}") from None
        if code_of_exit or not (folder / FOUND).is_file():
            said = "\n".join(f"  {line}" for line in tail)
            raise ComponentError(
                f"{each.name} could not be read: its python ended with {code_of_exit}{mend}. It said last:\n{said}"
            )
        found = from_json(Found, (folder / FOUND).read_text(encoding="utf-8"))
        if found.error:
            extras = "; its environment holds no extras of paribus, so the judge must do without" if asked.judge else ""
            raise ConfigError(f"{each.name}: {found.error}{extras}")
        scored = folder / SCORES
        lines = scored.read_text(encoding="utf-8").split("\n") if scored.is_file() else []
        return found, [from_json(Score, line) for line in lines if line]


def _write(path: Path, values: Iterable[Any]) -> None:
    path.write_text("".join(to_json(value) + "\n" for value in values), encoding="utf-8", newline="\n")


def changed(one: Edition, other: Edition, left: str, right: str) -> Change:
    """What is otherwise in `other`, the edition of version `right`, than in `one`, that of `left`."""
    missing = [f"in {name}: {found.why_not}" for name, found in ((left, one), (right, other)) if found.why_not]
    if missing or one.card is None or other.card is None:
        return Change(one.definition, left, right, {}, {}, {}, None, "; ".join(missing))
    return Change(
        definition=one.definition,
        left=left,
        right=right,
        fields={
            name: pair
            for name, pair in differences(one.card, other.card).items()
            if name not in ALWAYS and not name.startswith("prompts.")
        },
        arguments={
            name: (one.arguments.get(name), other.arguments.get(name))
            for name in dict.fromkeys((*one.arguments, *other.arguments))
            if one.arguments.get(name) != other.arguments.get(name)
        },
        prompts={
            name: found
            for name in dict.fromkeys((*one.prompts, *other.prompts))
            if (found := diff(one.prompts.get(name, ""), other.prompts.get(name, ""), left, right))
        },
        code=diff(one.code or "", other.code or "", left, right),
    )


def diff(one: str, other: str, left: str, right: str) -> Diff | None:
    """Where two texts differ; None = nowhere. left, right: what each is called."""
    lines = list(unified_diff(one.splitlines(), other.splitlines(), left, right, lineterm=""))
    body = lines[2:]  # below the names
    if not body:
        return None
    return Diff("\n".join(lines), sum(line[0] == "+" for line in body), sum(line[0] == "-" for line in body))


def _side_by_side(
    specs: Sequence[Mapping[str, Any]],
    found: Mapping[str, Found],
    scores: Mapping[str, Sequence[Score]],
    questions: Sequence[Question],
    records: Sequence[Record],
    source: str,
    systems: Mapping[str, str] | None,
    threshold: float,
    similar: float,
) -> Audit:
    """The scores of all versions, each definition beside itself only."""
    from runner.audit.scored import subject

    subjects: list[Subject] = []
    by_key: dict[str, dict[str, Score]] = {}
    notes: list[str] = []
    for place, spec in enumerate(specs):
        for name, one in found.items():
            edition, version = one.editions[place], name.partition("==")[2]
            key = f"{edition.definition}=={version}"
            if edition.card is None:
                notes.append(f"left out: {key}: {edition.why_not}")
                continue
            mine = [score for score in scores[name] if score.definition == edition.definition]
            if mine:  # else no record has what it takes, which a note of the other environment says
                by_key[key] = {score.question_id: replace(score, definition=key) for score in mine}
                asks = f"{edition.card['asks']} ({edition.definition})"
                subjects.append(replace(subject(_measure(spec), edition.card), key=key, asks=asks))
    notes += dict.fromkeys(note for one in found.values() for note in one.notes)
    judges = {one.judge.fingerprint: one.judge for one in found.values() if one.judge}
    if len(judges) > 1:
        notes.append("the judge is not the same in all environments, so a difference may be the judge's")
    return audit(
        subjects,
        questions,
        records,
        by_key,
        source=source,
        systems=systems,
        judge=next(iter(judges.values()), None),
        threshold=threshold,
        similar=similar,
        notes=notes,
    )


# What is told.


def headline(found: VersionAudit, left: str, right: str) -> str:
    """What changed between two versions, one sentence: `of 6 definitions, 1 has another prompt, ...`."""
    pair = [change for change in found.changes if (change.left, change.right) == (left, right)]
    compared = [change for change in pair if change.why_not is None]
    counts = {
        "another prompt": sum(bool(change.prompts) for change in compared),
        "other arguments": sum(bool(change.arguments) for change in compared),
        "other fields on its card": sum(bool(change.fields) for change in compared),
        "other code": sum(change.code is not None for change in compared),
    }
    told = [f"{count} {'has' if count == 1 else 'have'} {what}" for what, count in counts.items() if count]
    if missing := len(pair) - len(compared):
        told.append(f"{missing} cannot be compared")
    of = f"{len(pair)} definition{'s' * (len(pair) != 1)}"
    return (
        f"From {left} to {right}, of {of}, {', '.join(told)}."
        if told
        else f"From {left} to {right} nothing changed in {of}."
    )


def data(found: VersionAudit) -> dict[str, Any]:
    """Everything, ready for JSON. Texts of prompts are whole."""
    from runner.audit import files

    return {
        "package": found.package,
        "versions": list(found.versions),
        "editions": {name: [asdict(edition) for edition in editions] for name, editions in found.editions.items()},
        "changes": [{**asdict(change), "same": change.same} for change in found.changes],
        "audit": files.data(found.audit) if found.audit else None,
    }


HEADER = ("definition", "prompts", "arguments", "card", "code")


def _row(change: Change) -> tuple[str, ...]:
    if change.why_not:
        return (change.definition, "not compared", "", "", "")
    return (
        change.definition,
        ", ".join(change.prompts) or "same",
        f"{len(change.arguments)} changed" if change.arguments else "same",
        ", ".join(change.fields) or "same",
        str(change.code or "same"),
    )


def _pairs(found: VersionAudit) -> Iterable[tuple[str, str, list[Change]]]:
    for left, right in pairwise(found.versions):
        yield left, right, [change for change in found.changes if (change.left, change.right) == (left, right)]


def markdown(found: VersionAudit) -> str:
    """Everything but the audit of the scores: a table for each pair of versions, then what changed, by definition."""
    lines = [f"# {' and '.join(found.versions)}", ""]
    for left, right, changes in _pairs(found):
        lines += [headline(found, left, right), ""]
        lines += [f"| {' | '.join(map(_cell, row))} |" for row in (HEADER, ("---",) * len(HEADER), *map(_row, changes))]
        lines.append("")
        for change in changes:
            if not change.same:
                lines += [f"## {change.definition}, {left} to {right}", "", *_changed(change)]
    return "\n".join([*lines, PROSE]) + "\n"


PROSE = (
    "Compared are the prompts with their schemas, the arguments of the package's own class or function with their "
    "defaults, its code (without what it calls), and the card's fields. The prose of a card is paribus's and speaks of "
    "the version that paribus pins. Lines are told as added and removed."
)


def _changed(change: Change) -> Iterable[str]:
    if change.why_not:
        yield from (_cell(change.why_not), "")
    for name, (one, other) in change.arguments.items():
        yield f"- argument `{name}`: {_code(one)}, then {_code(other)}"
    for name, pair in change.fields.items():
        one, other = (json.dumps(value, ensure_ascii=False) for value in pair)
        yield f"- card `{name}`: {_code(one)}, then {_code(other)}"
    if change.arguments or change.fields:
        yield ""
    texts = {f"Prompt `{name}`": found for name, found in change.prompts.items()}
    if change.code:
        texts["Code"] = change.code
    for title, found in texts.items():
        fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", found.text)), default=0))
        yield from (f"{title}:", "", f"{fence}diff", found.text, fence, "")


def _code(text: str | None) -> str:
    return "none" if text is None else f"``{' '.join(text.split())}``"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*").split())


DIFF_LINES = 40
"""Lines of one prompt's diff on a terminal."""


def show(found: VersionAudit, written: Sequence[Path] = ()) -> None:
    """What changed, on stdout, and the scores side by side; or JSON. written: files with more, named at the end."""
    from runner.audit import terminal

    if console.as_json():
        console.print_json(data(found))
        return
    for left, right, changes in _pairs(found):
        table = console.table_of(*HEADER, title=headline(found, left, right))
        for change in changes:
            table.add_row(*map(console.short, _row(change)))
        console.print_table(table)
        for change in changes:
            if change.why_not:
                console.note(f"{change.definition}: {change.why_not}")
            for name, prompt in change.prompts.items():
                _show_diff(f"{change.definition}, prompt {name}, {prompt}", prompt.text.splitlines())
    console.note(f"note: {PROSE}")
    if found.audit:
        terminal.show(found.audit, written)
        return
    for path in written:
        console.note(f"Written: {path}")


def _show_diff(title: str, lines: Sequence[str]) -> None:
    console.print_text(title)
    for line in lines[:DIFF_LINES]:
        safe = "".join(char if char.isprintable() else " " for char in line).rstrip()
        console.print_text(f"  {safe if len(safe) <= WIDE else safe[: WIDE - 1] + '…'}")
    if len(lines) > DIFF_LINES:
        console.note(f"  and {len(lines) - DIFF_LINES} more lines")


WIDE = console.WIDTH - 2


def write(found: VersionAudit, folder: Path) -> list[Path]:
    """Write what changed as JSON and Markdown into `folder`, and the files of the audit where records were scored."""
    from runner.audit import files

    folder.mkdir(parents=True, exist_ok=True)
    texts = {DATA: json.dumps(data(found), ensure_ascii=False, indent=1, allow_nan=False), TEXT: markdown(found)}
    for name, text in texts.items():
        (folder / name).write_text(well_formed(text), encoding="utf-8", newline="\n")
    return [*(folder / name for name in texts), *(files.write(found.audit, folder) if found.audit else ())]
