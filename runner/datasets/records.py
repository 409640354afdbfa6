"""One record of a test set: what its fields may be, and a sentence for everything that is wrong with it.

Nothing is raised here and nothing is mended: a record is either good, or has sentences that say what was found and what
is allowed. Each sentence starts with the field it is about.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import cached_property
from typing import Annotated, Any, Literal
from unicodedata import normalize

from pydantic import AfterValidator, BeforeValidator, NonNegativeInt

from adapters.schema import Question, Span
from runner.dataset import Document
from runner.datasets.faults import MAX_DEPTH, Fields, excerpt, kind_of, shown, unusable, validated


def _filled(text: str) -> str:
    if not text.strip():
        raise ValueError("text that is not blank")
    return text


def _day(value: Any) -> Any:
    try:
        day = date.fromisoformat(value)
    except (TypeError, ValueError):
        day = None
    if day is None or day.isoformat() != value:
        raise ValueError('a date in quotes, as in "2026-12-31"')
    return day


Filled = Annotated[str, AfterValidator(_filled)]


class DocumentFields(Fields):
    """One line of documents.jsonl."""

    doc_id: Filled
    text: str
    title: str | None = None
    metadata: dict[str, Any] | None = None


class SpanFields(Fields):
    """One label. text, where given, must be what the document has there: the one check that finds a shifted label."""

    doc_id: Filled
    start: NonNegativeInt
    end: NonNegativeInt
    grade: NonNegativeInt = 1
    text: str | None = None


class QuestionFields(Fields):
    """One line of questions.jsonl. `question` may be called text, and slices may be one slice."""

    advice = "; dataset.ignore_fields keeps it as metadata"

    id: Filled
    question: Filled | None = None
    text: Filled | None = None
    reference_answer: str | None = None
    reference_claims: list[str] | None = None
    relevant: list[Any] | None = None
    answerable: bool = True
    slice: Filled | None = None
    slices: list[Filled] | None = None
    origin: Literal["real", "synthetic"] = "real"
    split: Literal["tune", "held_out"] = "tune"
    valid_until: Annotated[date | None, BeforeValidator(lambda value: None if value is None else _day(value))] = None
    human: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None


class Corpus:
    """The documents that labels may point at.

    documents: by id. faulty: the ids of documents with a fault, with their place in the files. skipping: whether
    faulty documents are left out; otherwise nothing is loaded, and their labels are not worth a second sentence.
    """

    def __init__(self, documents: Mapping[str, Document], faulty: Mapping[str, str], skipping: bool) -> None:
        self.documents = documents
        self.faulty = faulty
        self.skipping = skipping

    @cached_property
    def _by_near_name(self) -> dict[str, str]:
        return {_near_name(doc_id): doc_id for doc_id in self.documents}

    def missing(self, doc_id: str) -> list[str]:
        """Why `doc_id` is not among the documents; empty where it is, or where there are none at all."""
        if doc_id in self.documents or not self.documents:
            return []
        if doc_id in self.faulty:
            return [f"labelled document {shown(doc_id)} was skipped ({self.faulty[doc_id]})"] if self.skipping else []
        near = self._by_near_name.get(_near_name(doc_id))
        hint = f"; did you mean {shown(near)}?" if near else ""
        return [f"labelled document {shown(doc_id)} is not in the corpus{hint}"]


def _near_name(doc_id: str) -> str:
    return re.sub(r"\.(md|txt)$", "", normalize("NFC", doc_id).strip().casefold())


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is not a number in JSON; write null or leave the field out")


def parse_json(raw: bytes, constant: Callable[[str], Any] = _refuse) -> tuple[Any, list[str]]:
    """What JSON in UTF-8 holds, and each key that stands twice in one object. constant: what NaN and the infinities,
    which JSON does not have, are read as. Raises UnicodeDecodeError, JSONDecodeError, RecursionError, and ValueError
    from `constant`."""
    twice: list[str] = []

    def mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        if len(fields) < len(pairs):
            twice.extend(key for key, n in Counter(key for key, _ in pairs).items() if n > 1)
        return fields

    return json.loads(raw.decode("utf-8-sig"), object_pairs_hook=mapping, parse_constant=constant), twice


def parse_line(raw: bytes, constant: Callable[[str], Any] = _refuse) -> tuple[dict[str, Any] | None, list[str]]:
    """The object on a line of JSONL, None where there is none, and what is wrong with the line."""
    try:
        fields, twice = parse_json(raw, constant)
    except UnicodeDecodeError as error:
        return None, [f"byte 0x{raw[error.start]:02x} at position {error.start} is not UTF-8; save the file as UTF-8"]
    except json.JSONDecodeError as error:
        return None, [f"not valid JSON at column {error.colno} ({error.msg}); a line must be one whole JSON object"]
    except RecursionError:
        return None, [f"nested deeper than {MAX_DEPTH} levels"]
    except ValueError as error:
        return None, [f"not valid JSON: {error}"]
    if not isinstance(fields, dict):
        return None, [f"the line is {kind_of(fields)}, expected an object: one {{...}} on each line"]
    return fields, [f"{shown(key)} stands twice in one object; keep one" for key in twice]


def parse_document(fields: Mapping[str, Any]) -> tuple[Document | None, list[str]]:
    """The document that `fields` describe, or what is wrong with them."""
    good, wrong = validated(DocumentFields, fields)
    faults = [*unusable(fields), *wrong]
    if good is None or faults:
        return None, faults
    return Document(good.doc_id, good.text, good.title, good.metadata), []


def parse_question(
    fields: Mapping[str, Any], corpus: Corpus, ignored: Sequence[str]
) -> tuple[Question | None, list[str]]:
    """The question that `fields` describe, or what is wrong with them. Fields named in `ignored` become metadata."""
    kept = {name: fields[name] for name in ignored if name in fields}
    good, wrong = validated(QuestionFields, {name: fields[name] for name in fields if name not in kept})
    faults = [*unusable(fields), *wrong]
    given = [name for name in ("question", "text") if fields.get(name) is not None]
    if len(given) != 1:
        faults.append("question and text are the same field; keep one" if given else "question is missing")
    if fields.get("slice") is not None and fields.get("slices") is not None:
        faults.append("slice and slices are the same field; keep one")
    spans, wrong = _spans(fields.get("relevant"), corpus)
    faults += wrong
    faults += _human(fields.get("human"), corpus)
    if fields.get("answerable") is False:
        graded = [span for span in spans if span.grade]
        faults += [
            f"answerable is false, but relevant has a passage of grade {span.grade} in {shown(span.doc_id)}; expected "
            "answerable: true, or grade 0 only"
            for span in graded[:1]
        ]
    if good is None:
        return None, faults
    metadata = good.metadata or {}
    faults += [f"{name} is both an ignored field and a key of metadata; keep one" for name in kept if name in metadata]
    question = Question(
        id=good.id,
        text=good.question or good.text or "",
        reference_answer=good.reference_answer,
        reference_claims=None if good.reference_claims is None else tuple(good.reference_claims),
        relevant=None if good.relevant is None else tuple(spans),
        answerable=good.answerable,
        slices=tuple(dict.fromkeys(good.slices or ([good.slice] if good.slice else ()))),
        origin=good.origin,
        split=good.split,
        valid_until=good.valid_until,
        human=good.human,
        metadata={**metadata, **kept} or None,
    )
    return (None if faults else question), faults


def _spans(raw: Any, corpus: Corpus) -> tuple[list[Span], list[str]]:
    """The labels in order, each once, and what is wrong with those that are not usable."""
    first: dict[tuple[str, int, int], tuple[str, Span]] = {}
    faults: list[str] = []
    for position, fields in enumerate(raw if isinstance(raw, list) else ()):
        place = f"relevant[{position}]"
        if not isinstance(fields, dict):
            faults.append(f"{place} is {kind_of(fields)}, expected an object")
            continue
        good, wrong = validated(SpanFields, fields, place)
        if isinstance(fields.get("doc_id"), str):
            wrong += [f"{place}.doc_id: {sentence}" for sentence in corpus.missing(fields["doc_id"])]
        if good and good.doc_id in corpus.documents:
            wrong += [f"{place}.{s}" for s in _misplaced(good, corpus.documents[good.doc_id].text)]
        faults += wrong
        if good is None or wrong:
            continue
        span = Span(good.doc_id, good.start, good.end, good.grade)
        earlier, same = first.setdefault((span.doc_id, span.start, span.end), (place, span))
        if same.grade != span.grade:
            faults.append(f"{place}.grade is {span.grade}, but {earlier} is the same span with grade {same.grade}")
    return [span for _, span in first.values()], faults


def _human(raw: Any, corpus: Corpus) -> list[str]:
    """What is wrong with people's verdicts."""
    if not isinstance(raw, dict):
        return []
    from adapters.judges.labels import HumanVerdicts

    good, faults = validated(HumanVerdicts, raw, "human")
    for name in ("claims", "reference_claims"):
        for position, claim in enumerate((getattr(good, name) or ()) if good else ()):
            evidence = [span.model_dump() for span in claim.evidence or ()]
            faults += [
                f"human.{name}[{position}].evidence{fault.removeprefix('relevant')}"
                for fault in _spans(evidence, corpus)[1]
            ]
    return faults


def _misplaced(label: SpanFields, document: str) -> list[str]:
    """Why `label` cannot stand in `document`; empty where it can."""
    found = document[label.start : label.end]
    if label.start < label.end <= len(document) and label.text in (None, found):
        return []
    hint = _right_place(label, document)
    if label.start >= label.end:
        return [f"start is {label.start}, expected less than end, which is {label.end}{hint}"]
    if label.end > len(document) or label.text is None:
        return [f"end is {label.end}, but {shown(label.doc_id)} has {len(document)} characters{hint}"]
    pairs = enumerate(zip(label.text, found, strict=False))
    same = next((at for at, (one, other) in pairs if one != other), min(len(label.text), len(found)))
    return [
        f"text is {excerpt(label.text, same)}, but {shown(label.doc_id)} has {excerpt(found, same)} "
        f"at {label.start} to {label.end}{hint}"
    ]


def _right_place(label: SpanFields, document: str) -> str:
    """A hint at what shifted the label, as far as its text tells."""
    text, start, end = label.text, label.start, label.end
    if not text:
        return ""
    unix, dos = _with_line_ends(document, "\n"), _with_line_ends(document, "\r\n")
    if unix != document and unix[start:end] == _with_line_ends(text, "\n"):
        return "; it fits once CRLF is read as LF: convert the file to LF, or count offsets in the file as it is"
    if dos != document and dos[start:end] == _with_line_ends(text, "\r\n"):
        return "; it fits a copy with CRLF line ends: count offsets in the file as it is"
    at = document.find(text)
    if at < 0 or document.find(text, at + 1) >= 0:
        return ""
    return f"; the text stands once in the document, at {at} to {at + len(text)}"


def _with_line_ends(text: str, end: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", end)
