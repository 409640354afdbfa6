"""A test set: documents, and questions with what people know about them.

`TestSet` is plain data and the same for every source; a `Dataset` component says where one comes from.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import date
from functools import cached_property
from typing import Any, ClassVar

from adapters.schema import Question
from runner.component import Component


@dataclass(frozen=True, slots=True)
class Document:
    """One document of the corpus. Labels and chunks count the characters of `text`, line ends as they are stored."""

    doc_id: str
    text: str
    title: str | None = None
    metadata: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """How many records a source has and how many of them could be used. Blank lines are not records."""

    read: int = 0
    kept: int = 0

    @property
    def skipped(self) -> int:
        """The records left out because of a fault."""
        return self.read - self.kept

    def counts(self) -> dict[str, int]:
        """The three numbers by name."""
        return {"read": self.read, "kept": self.kept, "skipped": self.skipped}


@dataclass(frozen=True)
class TestSet:
    """A checked test set. documents are in order of doc_id, questions in the order of their file.

    version: what its owner calls this state of it; for people, the checksums decide what is comparable.
    faults: what was wrong with the records left out, a sentence each, where the dataset was told to skip them.
    documents_read, questions_read: the counts before questions are filtered by split or limit.
    """

    __test__: ClassVar[bool] = False  # pytest would collect it by its name

    name: str
    version: str | None
    documents: tuple[Document, ...]
    questions: tuple[Question, ...]
    faults: tuple[str, ...] = ()
    documents_read: Reading = Reading()
    questions_read: Reading = Reading()

    def __post_init__(self) -> None:
        object.__setattr__(self, "documents", tuple(sorted(self.documents, key=lambda document: document.doc_id)))

    @cached_property
    def documents_checksum(self) -> str:
        """SHA-256 (hex) of every field of every document, whatever their order: the cause of the chunk stage."""
        return _checksum(asdict(document) for document in self.documents)

    @cached_property
    def questions_checksum(self) -> str:
        """SHA-256 (hex) of every field of every question here, whatever the order of questions, labels and slices.

        Metadata counts too, ignored fields included, because a definition or a generator may read it. A filter by
        split or limit changes it, because a mean over other questions is another mean.
        """
        return _checksum(
            asdict(question)
            | {"slices": sorted(question.slices)}
            | {"relevant": None if question.relevant is None else sorted(map(_position, question.relevant))}
            for question in self.questions
        )

    @cached_property
    def checksum(self) -> str:
        """SHA-256 (hex) of both. Name, version and files do not count: equal content is the same test set."""
        return _checksum([self.documents_checksum, self.questions_checksum])

    @cached_property
    def blank_documents(self) -> tuple[str, ...]:
        """Ids of the documents without a character other than white space: they are allowed and have no chunk."""
        return tuple(document.doc_id for document in self.documents if not document.text.strip())

    def card(self) -> dict[str, Any]:
        """Identity, counts, blank documents by id and faults, ready for JSON.

        characters are code points; a question counts in each of its slices.
        """
        questions = self.questions
        unanswerable = sum(not question.answerable for question in questions)
        unlabelled = sum(question.relevant is None for question in questions)
        return {
            "name": self.name,
            "version": self.version,
            "checksum": self.checksum,
            "documents_checksum": self.documents_checksum,
            "questions_checksum": self.questions_checksum,
            "documents": len(self.documents),
            "blank_documents": list(self.blank_documents),
            "characters": sum(len(document.text) for document in self.documents),
            "questions": len(questions),
            "answerable": len(questions) - unanswerable,
            "unanswerable": unanswerable,
            "labelled": len(questions) - unlabelled,
            "unlabelled": unlabelled,
            "slices": _counts(name for question in questions for name in question.slices),
            "origins": _counts(question.origin for question in questions),
            "splits": _counts(question.split for question in questions),
            "spans_by_grade": _counts(str(span.grade) for question in questions for span in question.relevant or ()),
            "documents_read": self.documents_read.counts(),
            "questions_read": self.questions_read.counts(),
            "faults": list(self.faults),
        }


def _position(span: Any) -> tuple[str, int, int, int]:
    return span.doc_id, span.start, span.end, span.grade


def _checksum(records: Iterable[Any]) -> str:
    lines = sorted(json.dumps(record, sort_keys=True, allow_nan=False, default=date.isoformat) for record in records)
    return hashlib.sha256("\n".join(lines).encode("ascii")).hexdigest()


def _counts(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items()))


class Dataset(Component, ABC):
    """Where a test set comes from."""

    name: str
    """What people call the test set; it does not identify it."""

    version: str | None = None
    """What its owner calls this state of it; None = it has no versions."""

    @abstractmethod
    def load(self) -> TestSet:
        """The checked test set. Raises DataError with every fault at once."""
