"""Test sets in a folder: questions in JSONL, documents in JSONL or as one Markdown or text file each."""

from __future__ import annotations

import os
import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from pydantic import Field, PositiveInt, field_validator

from runner.dataset import Dataset, Reading, TestSet
from runner.datasets.faults import shown
from runner.datasets.records import Corpus, QuestionFields, parse_document, parse_line, parse_question
from runner.errors import DataError

LISTED = 50
"""How many faults an error lists; it counts all of them."""

DOCUMENTS = ("documents.jsonl", "docs.jsonl", "documents", "docs")
"""Where documents are looked for when the configuration names no place."""

TEXT_SUFFIXES = (".md", ".txt")

LF = ord("\n")

PACKAGED = "pkg://"
"""Starts a path inside an installed Python package, wherever that is: pkg://package/folder."""


class JsonlDataset(Dataset):
    """A folder with questions.jsonl and documents.

    Offsets of labels count the characters (code points) of a document's text as it is stored: in a text file a CRLF
    line end is two characters and a byte order mark at the start is none. A label that carries its `text` cannot shift
    unseen when a tool converts line ends; one without can.

    In a folder of documents, the id of a file is its path there, with forward slashes and without the last suffix.
    Files that are neither .md nor .txt, hidden files and links to folders are not read.

    path: the folder; relative to the working directory, or pkg://package/folder.
    documents: a JSONL file or a folder in `path`; None = the one there is of documents.jsonl, docs.jsonl, documents
        and docs.
    questions: a JSONL file in `path`.
    skip_bad_lines: True = leave faulty records out and report them in the test set; False = refuse the whole set.
    ignore_fields: fields of questions that paribus does not know and that shall be kept as metadata.
    split: keep the questions of this split. limit: then keep the first this many; None = all. Both come after the
        checks, which always cover every record.
    """

    path: str
    documents: str | None = None
    questions: str = "questions.jsonl"
    skip_bad_lines: bool = False
    ignore_fields: list[str] = Field(default_factory=list)
    split: Literal["all", "tune", "held_out"] = "all"
    limit: PositiveInt | None = None

    @field_validator("ignore_fields")
    @classmethod
    def _unknown_only(cls, names: list[str]) -> list[str]:
        known = [name for name in names if name in QuestionFields.model_fields]
        if known:
            raise ValueError(f"paribus reads {' and '.join(known)} itself; take it off the list")
        return names

    def load(self) -> TestSet:
        """Read and check everything. Raises DataError with every fault, or where no document or question is left."""
        try:
            documents_at, questions_at = self._places()
        except OSError as error:
            raise self._error([f"dataset.path: {_unreadable(Path(error.filename), error)}"]) from error
        entries = _text_files(documents_at) if documents_at.is_dir() else _lines(documents_at)
        documents, documents_read, faults, faulty = _collect(entries, "document", "doc_id", parse_document)
        corpus = Corpus(documents, faulty, self.skip_bad_lines)
        questions, questions_read, wrong, _ = _collect(
            _lines(questions_at), "question", "id", lambda fields: parse_question(fields, corpus, self.ignore_fields)
        )
        faults += wrong
        if faults and not self.skip_bad_lines:
            raise self._error(faults)
        chosen = [question for question in questions.values() if self.split in ("all", question.split)]
        test_set = TestSet(
            name=self.name,
            version=self.version,
            documents=tuple(documents.values()),
            questions=tuple(chosen[: self.limit]),
            faults=tuple(faults),
            documents_read=documents_read,
            questions_read=questions_read,
        )
        if len(test_set.blank_documents) == len(documents):
            kind = "" if documents_at.is_file() else f" ({' and '.join(TEXT_SUFFIXES)} files are read)"
            state = "only blank documents" if documents else "no document"
            faults.append(f"{_place(documents_at)} has {state}{kind}: {_counted(documents_read)}")
        if not chosen:
            state = f"no question of split {self.split}; set dataset.split=all" if questions else "no question"
            faults.append(f"{_place(questions_at)} has {state}: {_counted(questions_read)}")
        if len(faults) > len(test_set.faults):
            raise self._error(faults)
        return test_set

    def _places(self) -> tuple[Path, Path]:
        folder = self._folder()
        documents = [folder / name for name in (DOCUMENTS if self.documents is None else (self.documents,))]
        found = [place for place in documents if place.exists()]
        questions = folder / self.questions
        faults = []
        if not found:
            faults.append(_absent(documents, "documents"))
        if len(found) > 1:
            names = " and ".join(place.name for place in found)
            faults.append(f"{folder.absolute()} has {names}: name the one to use in dataset.documents")
        if not questions.exists():
            faults.append(_absent([questions], "questions"))
        elif not questions.is_file():
            faults.append(f"dataset.questions: {questions.absolute()} is a folder, expected a JSONL file")
        if faults:
            raise self._error(faults)
        return found[0], questions

    def _folder(self) -> Path:
        folder = Path(self.path).expanduser()
        if self.path.startswith(PACKAGED):
            package, _, inside = self.path.removeprefix(PACKAGED).partition("/")
            spec = find_spec(package) if package.isidentifier() else None
            if spec is None or spec.origin is None:
                raise self._error([f"dataset.path={self.path}: there is no installed package {package!r}"])
            folder = Path(spec.origin).parent / inside
        if not folder.exists():
            raise self._error([_absent([folder], "path")])
        if not folder.is_dir():
            raise self._error([f"dataset.path: {folder.absolute()} is a file, expected the folder that holds it"])
        return folder

    def _error(self, faults: list[str]) -> DataError:
        count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
        told = _together(faults)
        more = [f"and {len(told) - LISTED} more"] if len(told) > LISTED else []
        return DataError("\n".join([f"test set {shown(self.name)} cannot be used: {count}", *told[:LISTED], *more]))


def _together(faults: list[str]) -> list[str]:
    """One line for faults that differ only in their record: the first of them, and how many more there are."""
    alike: dict[tuple[str, str], list[str]] = {}
    for fault in faults:
        place = _RECORD.match(fault)
        alike.setdefault((place["file"], fault[place.end() :]) if place else ("", fault), []).append(fault)
    return [same[0] + (f" (and in {len(same) - 1} more records)" if len(same) > 1 else "") for same in alike.values()]


_RECORD = re.compile(r"(?P<file>.*?):\d+: (?:document|question) .*?: ")


class Entry(NamedTuple):
    """What stands at one place of a source: a record, or the reasons why there is none."""

    place: str
    fields: dict[str, Any] | None
    faults: list[str]


T = TypeVar("T")


def _collect(
    entries: Iterable[Entry],
    kind: str,
    key: str,
    parse: Callable[[Mapping[str, Any]], tuple[T | None, list[str]]],
) -> tuple[dict[str, T], Reading, list[str], dict[str, str]]:
    """The good records by id, the counts, every fault with its place, and the place of each id that is not good."""
    good: dict[str, T] = {}
    first: dict[str, str] = {}
    report: list[str] = []
    read = 0
    for entry in entries:
        read += 1
        faults, value, name, record = list(entry.faults), None, None, ""
        if entry.fields is not None:
            value, wrong = parse(entry.fields)
            faults += wrong
            name = entry.fields.get(key)
        if isinstance(name, str) and name.strip():
            record = f"{kind} {shown(name)}: "
            if first.setdefault(name, entry.place) != entry.place:
                faults.append(f"{key} is taken already, at {first[name]}; ids are unique")
        report += [f"{entry.place}: {record}{fault}" for fault in faults]
        if value is not None and name is not None and not faults:
            good[name] = value
    return good, Reading(read, len(good)), report, {name: first[name] for name in first if name not in good}


def _lines(path: Path) -> Iterator[Entry]:
    try:
        with path.open("rb") as file:
            for number, raw in enumerate(file, 1):
                place = f"{_place(path)}:{number}"
                if number == 1 and raw.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
                    yield Entry(place, None, ["the file is UTF-16; save it as UTF-8"])
                    return
                if raw.removeprefix(BOM_UTF8).strip():
                    yield Entry(place, *parse_line(raw))
    except OSError as error:
        yield Entry(_place(path), None, [_unreadable(path, error)])


def _text_files(folder: Path) -> Iterator[Entry]:
    closed: list[OSError] = []
    paths = []
    for parent, folders, names in os.walk(folder, onerror=closed.append):
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths += [
            Path(parent, name) for name in names if name.lower().endswith(TEXT_SUFFIXES) and not name.startswith(".")
        ]
    for error in closed:
        where = Path(error.filename)
        yield Entry(_place(where), None, [_unreadable(where, error)])
    for path in sorted(paths, key=Path.as_posix):
        place, text, faults = _place(path), "", []
        try:
            text = path.read_bytes().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            place += f":{error.object.count(LF, 0, error.start) + 1}"
            faults.append(f"byte 0x{error.object[error.start]:02x} is not UTF-8; save the file as UTF-8")
        except OSError as error:
            faults.append(_unreadable(path, error))
        doc_id = path.relative_to(folder).with_suffix("").as_posix()
        yield Entry(place, {"doc_id": doc_id, "text": text}, faults)


def _unreadable(path: Path, error: OSError) -> str:
    return f"cannot read {shown(str(path.absolute()))}: {error.strerror}"


def _absent(places: list[Path], key: str) -> str:
    """That none of `places`, which share a folder, exists; with a name in that folder that comes near one of them."""
    folder = places[0].absolute().parent
    names = sorted(os.listdir(folder)) if folder.is_dir() else []
    near = [name for place in places for name in get_close_matches(place.name, names, n=1)]
    hint = f"; did you mean {shown(near[0])}?" if near else ""
    return f"dataset.{key}: there is no {' or '.join(str(place.absolute()) for place in places)}{hint}"


def _place(path: Path) -> str:
    return shown(path.as_posix())


def _counted(reading: Reading) -> str:
    return f"read {reading.read}, kept {reading.kept}, skipped {reading.skipped}"
