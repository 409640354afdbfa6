"""Finished answers from a file in anybody's columns: ours, those of Ragas, DeepEval, TruLens, LangChain and LlamaIndex.

What a row leaves out stays out: without an answer or contexts each definition says itself what it makes of that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from adapters import formulas
from adapters.inputs import visible
from adapters.judges.labels import HumanVerdicts
from adapters.schema import Chunk, Question, Record, Span, Verdict
from runner.align import finished, passages
from runner.audit.rows import from_json, from_python, listed, read_rows
from runner.datasets.faults import kind_of, shown, unusable, validated
from runner.datasets.jsonl import LISTED, Entry
from runner.datasets.records import SpanFields
from runner.errors import ConfigError, DataError

FIELDS: Mapping[str, tuple[str, ...]] = {
    "id": ("id", "question_id", "record_id", "query_id", "task_id"),
    "question": ("question", "user_input", "input", "query"),
    "answer": ("answer", "response", "actual_output", "output", "result"),
    "contexts": ("contexts", "retrieved_contexts", "retrieval_context", "source_documents", "source_nodes", "context"),
    "reference": (
        "reference",
        "reference_answer",
        "expected_output",
        "ground_truth",
        "ground_truths",
        "ground_truth_output",
        "expected_response",
    ),
    "system": ("system", "app_name", "app_version"),
    "claims": ("claims",),
    "human": ("human",),
    "origin": ("origin",),
    "relevant": ("relevant",),
    "retrieved_ids": ("retrieved_ids", "retrieved_context_ids"),
    "reference_ids": ("reference_ids", "reference_context_ids", "expected_ids"),
    "reference_contexts": ("reference_contexts",),
}
"""Our field -> the columns that it is read from, the first that a file has; capitals, `_`, `-` and spaces do not count,
so that actualOutput is actual_output."""

FRAMEWORKS: Mapping[str, tuple[frozenset[str], ...]] = {
    name: tuple(frozenset(mark.split()) for mark in marks)
    for name, marks in {
        "Ragas": ("userinput", "retrievedcontexts", "retrievedcontextids", "referencecontextids"),
        "Ragas 0.1": ("question groundtruth", "question groundtruths"),
        "DeepEval": ("actualoutput", "expectedoutput", "retrievalcontext"),
        "TruLens": ("recordid input", "appname", "appversion", "query expectedresponse"),
        "LangChain": ("sourcedocuments",),
        "LlamaIndex": ("sourcenodes", "expectedids"),
    }.items()
}
"""Framework -> columns, in plain letters, of which one group must be there whole."""

CONVERSATIONS = ("turns", "messages", "conversation", "scenario")
INSIDE = ("node", "chunk", "document", "kwargs", "text_resource")
"""Where LlamaIndex, paribus, Haystack and LangChain put the passage inside an item of a list of contexts."""
TEXTS = ("text", "page_content", "content", "context")
"""What they call its text."""


@dataclass(frozen=True)
class Answers:
    """What a file of answers holds. questions and records run in parallel; the ids of both are unique.

    systems: by question id, where the file names them. people: verdicts of people on what the row holds, by units
    (adapters.formulas), then by question id. columns: our field -> the column that it came from; unused: the others.
    notes: what a reader should know of how the file was understood.
    """

    questions: tuple[Question, ...]
    records: tuple[Record, ...]
    systems: Mapping[str, str]
    people: Mapping[str, Mapping[str, tuple[Verdict, ...]]]
    columns: Mapping[str, str]
    unused: tuple[str, ...]
    notes: tuple[str, ...]


def read_answers(path: Path, columns: Mapping[str, str] = MappingProxyType({})) -> Answers:
    """The answers in a file, by its suffix: JSON Lines, JSON, CSV, TSV or Parquet.

    columns: our field -> the file's column, beside or instead of those of FIELDS; an empty name leaves the field out.
    Raises DataError with every fault of the file, each with its line or row, and ConfigError for `columns` that name a
    field or a column that does not exist.
    """
    names, entries = read_rows(path)
    if not any(entry.fields for entry in entries):
        _refuse_faults(path, [(entry.place, entry.faults) for entry in entries])
    found = _found(path, names, columns)
    rows = [_Row(entry, found) for entry in entries]
    ids = _ids(rows, found)
    people: dict[str, dict[str, tuple[Verdict, ...]]] = {}
    questions, records, systems = [], [], {}
    for row, id in zip(rows, ids, strict=True):
        if row.fields is None:
            continue
        question, record = row.read(id)
        questions.append(question)
        records.append(record)
        if row.system is not None:
            systems[id] = row.system
        for units, verdicts in row.people.items():
            people.setdefault(units, {})[id] = verdicts
    _refuse_faults(path, [(row.entry.place, row.faults) for row in rows])
    return Answers(
        questions=tuple(questions),
        records=tuple(records),
        systems=systems,
        people=people,
        columns=dict(found.named),
        unused=found.unused,
        notes=(*found.notes, *_told(rows, found, records)),
    )


# Its columns.


@dataclass(frozen=True)
class _Columns:
    """Which column each field is read from. system: one column, or name and version of an application."""

    fields: Mapping[str, str]
    system: tuple[str, ...]
    frameworks: tuple[str, ...]
    unused: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def named(self) -> dict[str, str]:
        """Our field -> the column, or columns, as a person reads it."""
        return {**self.fields, **({"system": ", ".join(self.system)} if self.system else {})}


def _letters(name: str) -> str:
    return re.sub(r"[_\-\s]", "", name).casefold()


def _found(path: Path, names: Sequence[str], asked: Mapping[str, str]) -> _Columns:
    have = ", ".join(map(shown, names)) or "none"
    for ours, theirs in asked.items():
        if ours not in FIELDS:
            near = get_close_matches(ours, FIELDS, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ConfigError(f"--columns {ours}={theirs}: {ours} is no field{hint}; fields are {', '.join(FIELDS)}")
        if theirs and theirs not in names:
            near = get_close_matches(theirs, names, n=1)
            hint = f"; did you mean {shown(near[0])}?" if near else ""
            raise ConfigError(f"--columns {ours}={theirs}: {path} has no such column{hint}; its columns are {have}")
    by_letters: dict[str, str] = {}
    for name in names:
        by_letters.setdefault(_letters(name), name)
    frameworks = tuple(name for name, marks in FRAMEWORKS.items() if any(mark <= by_letters.keys() for mark in marks))
    taken = set(asked.values())
    fields: dict[str, str] = {ours: theirs for ours, theirs in asked.items() if theirs}
    notes: list[str] = []
    for ours, known in FIELDS.items():
        if ours == "contexts" and "DeepEval" in frameworks:
            known = tuple(name for name in known if name != "context")
        if ours == "reference_contexts" and "DeepEval" in frameworks:
            known = (*known, "context")
        if "LangChain" not in frameworks and "query" not in by_letters:
            known = tuple(name for name in known if name != "result")
        there = [by_letters[_letters(name)] for name in known if _letters(name) in by_letters]
        there = [name for name in there if name not in taken]
        if ours in asked or not there:
            continue
        fields[ours] = there[0]
        if len(there) > 1 and ours != "system":
            others = " and ".join(map(shown, there[1:]))
            notes.append(f"{ours} is read from {shown(there[0])}, not from {others}; --columns {ours}=... chooses")
    # Labels without what they are held against say nothing; places in documents say more than names of documents.
    if "relevant" in fields or "retrieved_ids" not in fields:
        fields.pop("reference_ids", None)
    if "reference_ids" not in fields:
        fields.pop("reference_contexts", None)
    system: tuple[str, ...] = (fields.pop("system"),) if "system" in fields else ()
    if system and "system" not in asked and _letters(system[0]) == "appname" and "appversion" in by_letters:
        system = (*system, by_letters["appversion"])
    used = {*fields.values(), *system}
    unused = tuple(name for name in names if name not in used)
    if not fields.keys() & {"answer", "contexts", "claims", "human", "retrieved_ids"}:
        turns = [name for name in names if _letters(name) in CONVERSATIONS]
        hint = f" {shown(turns[0])} looks like a conversation: write one row for each answer." if turns else ""
        raise DataError(
            f"{path}: no column holds an answer, contexts or verdicts; the columns are {have}.{hint} Name them, as in "
            "--columns answer=COLUMN contexts=COLUMN"
        )
    if frameworks:
        notes.insert(0, f"columns of {' and '.join(frameworks)}")
    if "question" not in fields:
        notes.append("no column holds the question, so that definitions that read it do not apply")
    if "id" not in fields:
        notes.append("no column holds an id: rows are counted from 1")
    if "contexts" not in fields and "DeepEval" in frameworks and "context" in by_letters:
        notes.append(
            "DeepEval's context is what is known to be true, not what was retrieved, and is not read as contexts; "
            "--columns contexts=context does so all the same"
        )
    elif "contexts" not in fields and "TruLens" in frameworks:
        notes.append("TruLens keeps contexts in its spans, not in its table of records: add a column contexts")
    return _Columns(fields, system, frameworks, unused, tuple(notes))


# Its rows.


class _Passage(NamedTuple):
    """One context. doc_id, start: where it stands in which document, where the file says so."""

    text: str
    doc_id: str | None = None
    start: int = 0


_CLAIM_WORDS = ("supported", "contradicted", "absent")
_MARKED = re.compile(r"deepeval_source=.*?,deepeval_context=(?P<text>.*)", re.DOTALL)
"""How DeepEval writes a context of which it knows the source."""


@dataclass
class _Row:
    """One row while it is read. people: verdicts of people by units; faults: what is wrong with the row."""

    entry: Entry
    columns: _Columns
    id: str | None = None
    system: str | None = None
    people: dict[str, tuple[Verdict, ...]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    split: bool = False
    by_model: bool = False
    others: bool = False
    several: bool = False

    def __post_init__(self) -> None:
        self.fields = self.entry.fields
        self.faults += self.entry.faults
        if self.fields is None:
            return
        if "id" in self.columns.fields:
            self.id = self._name(self.columns.fields["id"], self._value("id"))
            if self.id is None and not self.faults:
                self.faults.append(
                    f"{shown(self.columns.fields['id'])} is missing; every row has one, or --columns id= counts rows"
                )
        parts = [self._name(column, self.fields.get(column)) for column in self.columns.system]
        self.system = " ".join(part for part in parts if part) or None

    def read(self, id: str) -> tuple[Question, Record]:
        """The row as a question and its record; with faults it is of no use."""
        answer, reference = self._text("answer"), self._text("reference")
        contexts = self._passages("contexts")
        retrieved = self._ids("retrieved_ids")
        labels = self._labels()
        if retrieved is not None:
            record, relevant = self._by_ids(id, answer, contexts, retrieved, labels)
        else:
            record = finished(id, answer, _chunks(id, contexts or ()))
            relevant = tuple(labels) if labels is not None and "relevant" in self.columns.fields else None
            if labels and not any(passage.doc_id for passage in contexts or ()) and contexts:
                self.faults.append(
                    "relevant names places in documents, but no context does: write contexts as objects of doc_id, "
                    "start and text; --columns relevant= leaves it out"
                )
        human = self._human(answer, reference, [chunk.text for chunk in record.context])
        if relevant is not None and "relevant" in self.columns.fields:
            self._chunk_verdicts(relevant, record)
        question = Question(id, self._text("question") or "", reference, relevant=relevant, human=human)
        return question, record

    # Values.

    def _value(self, name: str) -> Any:
        column = self.columns.fields.get(name)
        if column is None or self.fields is None:
            return None
        value = self.fields.get(column)
        return None if value != value else value

    def _name(self, column: str, value: Any, *place: int) -> str | None:
        """An id or the name of a system; a whole number is one too, also as pandas keeps it beside missing ones."""
        if type(value) is float and value.is_integer():
            value = int(value)
        if type(value) is int:
            return str(value)
        if value is None or value != value:
            return None
        text = self._checked(column, value, *place)
        return text if text and text.strip() else None

    def _text(self, name: str) -> str | None:
        value = self._value(name)
        if name == "reference" and value is not None:
            several = value
            if isinstance(value, str) and _letters(self.columns.fields[name]) == "groundtruths":
                several = listed(value)
            if isinstance(several, list):
                self.several = len(several) > 1
                value = several[0] if several else None
        if value is None:
            return None
        column = self.columns.fields[name]
        if isinstance(value, list) and value and isinstance(value[0], dict):
            self.faults.append(
                f"{shown(column)} is a conversation (a list of messages), expected text: write one row for each answer"
            )
            return None
        return self._checked(column, value)

    def _checked(self, column: str, value: Any, *place: int) -> str | None:
        if type(value) is not str:
            where = "".join(f"[{number}]" for number in place)
            self.faults.append(f"{shown(column)}{where} is {kind_of(value)}, expected text")
            return None
        try:
            value.encode()
        except UnicodeEncodeError:
            self.faults += unusable(value, column, *place)
        return value

    def _list(self, name: str) -> list[Any] | None:
        """The list of a field, which a cell of text may hold too; None without one."""
        value = self._value(name)
        if value is None or isinstance(value, list):
            return value
        column = self.columns.fields[name]
        if isinstance(value, str):
            items = listed(value)
            if isinstance(items, str):
                self.faults.append(f"{shown(column)} {items}")
                return None
            if items is not None:
                return items
            if name == "contexts" and _letters(column) == "retrievalcontext" and "|" in value:
                self.split = True
                return list(value.split("|"))
            if name in ("contexts", "reference_contexts", "retrieved_ids", "reference_ids"):
                return [value]
        self.faults.append(f"{shown(column)} is {kind_of(value)}, expected a list")
        return None

    def _passages(self, name: str) -> list[_Passage] | None:
        items = self._list(name)
        if items is None:
            return None
        column = self.columns.fields[name]
        return [self._passage(column, place, item) for place, item in enumerate(items)]

    def _passage(self, column: str, place: int, item: Any) -> _Passage:
        if not isinstance(item, dict):
            whole = self._checked(column, item, place) or ""
            marked = _MARKED.fullmatch(whole)
            return _Passage(marked["text"] if marked else whole)
        while isinstance(inner := next((item[key] for key in INSIDE if key in item), None), dict):
            item = inner
        text = next((item[key] for key in TEXTS if isinstance(item.get(key), str)), None)
        if text is None:
            self.faults.append(
                f"{shown(column)}[{place}] is an object without text, expected one of {', '.join(TEXTS)} in it"
            )
            return _Passage("")
        self._checked(column, text, place)
        doc_id, start = item.get("doc_id"), item.get("start")
        if isinstance(doc_id, str) and type(start) is int and start >= 0:
            return _Passage(text, doc_id, start)
        return _Passage(text)

    def _ids(self, name: str) -> list[str] | None:
        items = self._list(name)
        if items is None:
            return None
        column = self.columns.fields[name]
        ids = []
        for place, item in enumerate(items):
            faults = len(self.faults)
            id = self._name(column, item, place)
            if id is not None:
                ids.append(id)
            elif len(self.faults) == faults:
                self.faults.append(f"{shown(column)}[{place}] is {kind_of(item)}, expected text")
        return ids

    # Labels.

    def _labels(self) -> list[Span] | None:
        """Passages that are labelled, in characters of documents, or with a length of 0 where only an id is known."""
        if "relevant" not in self.columns.fields:
            ids = self._ids("reference_ids")
            return None if ids is None else [Span(id, 0, 0) for id in dict.fromkeys(ids)]
        items = self._list("relevant")
        if items is None:
            return None
        spans = []
        for place, item in enumerate(items):
            where = f"{self.columns.fields['relevant']}[{place}]"
            if not isinstance(item, dict):
                self.faults.append(f"{where} is {kind_of(item)}, expected an object")
                continue
            good, faults = validated(SpanFields, item, where)
            self.faults += faults
            if good and good.start >= good.end:
                self.faults.append(f"{where}.start is {good.start}, expected less than end, which is {good.end}")
            elif good:
                spans.append(Span(good.doc_id, good.start, good.end, good.grade))
        return spans

    def _by_ids(
        self,
        id: str,
        answer: str | None,
        contexts: Sequence[_Passage] | None,
        retrieved: Sequence[str],
        labels: Sequence[Span] | None,
    ) -> tuple[Record, tuple[Span, ...] | None]:
        """A ranking of ids. Each is one unit, as long as its text; a blank stands for a text that the row does not
        have, so that labels can count the unit and no judge takes it for a passage."""
        if contexts is not None and len(contexts) != len(retrieved):
            ours, theirs = (shown(self.columns.fields[name]) for name in ("contexts", "retrieved_ids"))
            self.faults.append(f"{ours} has {len(contexts)} texts and {theirs} has {len(retrieved)} ids")
            contexts = None
        texts = [passage.text or " " for passage in contexts] if contexts is not None else [" "] * len(retrieved)
        chunks = [Chunk(name, 0, len(text), text) for name, text in zip(retrieved, texts, strict=True)]
        record = finished(id, answer, chunks)
        if contexts is None:
            record = replace(record, context=())
        if labels is None:
            return record, None
        grades: dict[str, int] = {}
        for span in labels:
            grades[span.doc_id] = max(span.grade, grades.get(span.doc_id, 0))
        known = [passage.text or " " for passage in self._passages("reference_contexts") or ()]
        if len(known) != len(grades):
            known = [" "] * len(grades)
        labelled = [Chunk(name, 0, len(text), text) for name, text in zip(grades, known, strict=True)]
        # The text that was retrieved decides how long a unit is: of several with one id the shortest, so that the label
        # lies in all of them.
        for place, chunk in enumerate(labelled):
            same = [other for other in chunks if other.doc_id == chunk.doc_id]
            labelled[place] = min(same, key=lambda other: other.end, default=chunk)
        relevant = tuple(Span(chunk.doc_id, 0, chunk.end, grades[chunk.doc_id]) for chunk in labelled)
        return replace(record, labelled=tuple(labelled)), relevant

    # Verdicts of people.

    def _human(self, answer: str | None, reference: str | None, contexts: Sequence[str]) -> Mapping[str, Any] | None:
        """Their verdicts in the shape that judge=labels reads; those on what the row holds go to `people` as well."""
        claims, human = self._list("claims"), self._object("human")
        if claims is not None and self._value("origin") == "model":
            self.by_model, claims = True, None
        if claims is None and human is None:
            return None
        name, prefix = ("human", self.columns.fields["human"]) if claims is None else ("claims", "")
        column = self.columns.fields[name]
        if claims is not None and human is not None and human.get("claims") is not None:
            self.faults.append("claims and human.claims are both there; keep one")
        stated = {name: value for name, value in (human or {}).items() if value is not None}
        if claims is not None:
            stated["claims"] = claims
        # Without an answer the verdicts on its claims can be counted, though no judge is ever asked about them.
        judged = (answer is not None and visible(answer)) or "answer" in stated
        if plain := _plain(stated):
            self.people[formulas.ANSWER_CLAIMS] = plain
        else:
            good, faults = validated(HumanVerdicts, {"answer": answer if judged else "-", **stated}, prefix)
            if good is None:
                faults = [*unusable(stated, column), *faults]
                self.faults += [f"{fault}; --columns {name}= leaves it out" for fault in faults]
                return None
            self._verdicts(
                good,
                "answer" not in stated or good.answer.split() == (answer or "").split(),
                "context" not in stated or _words(good.context or ()) == _words(contexts),
                "reference" not in stated or (good.reference or "").split() == (reference or "").split(),
            )
        # Who judged a row judged what stands in it, unless they say otherwise.
        beside = {
            "answer": answer,
            "context": [text for text in contexts if text.strip()],
            "reference": reference if reference and visible(reference) else None,
        }
        return {**beside, **stated} if judged else None

    def _object(self, name: str) -> dict[str, Any] | None:
        value = self._value(name)
        if isinstance(value, str):
            value = from_json(value) or from_python(value) or value
        if value is not None and not isinstance(value, dict):
            self.faults.append(f"{shown(self.columns.fields[name])} is {kind_of(value)}, expected an object")
            return None
        return value

    def _verdicts(self, human: HumanVerdicts, of_answer: bool, of_contexts: bool, of_reference: bool) -> None:
        """What people said of the very answer, contexts and reference of the row, as evidence."""
        units: dict[str, list[Verdict]] = {}
        points = human.reference_claims or ()
        if of_answer and of_contexts:
            units[formulas.ANSWER_CLAIMS] = [Verdict(c.text, c.verdict, c.verdict) for c in human.claims or ()]
        if of_reference and of_contexts and all(point.in_context is not None for point in points):
            words = [(p.text, "attributed" if p.in_context else "not_attributed") for p in points]
            units[formulas.REFERENCE_CLAIMS] = [Verdict(text, word, word) for text, word in words]
        if of_reference and of_answer and all(point.in_answer is not None for point in points):
            words = [(p.text, "supported" if p.in_answer else "absent") for p in points]
            units[formulas.KEY_POINTS] = [Verdict(text, word, word) for text, word in words]
        self.others = not (of_answer and of_contexts and of_reference)
        self.people |= {kind: tuple(verdicts) for kind, verdicts in units.items() if verdicts}

    def _chunk_verdicts(self, relevant: Sequence[Span], record: Record) -> None:
        """What labels of people say of the ranked chunks, by the rule of judge=labels: a shared character."""
        labels = [span for span in relevant if span.grade > 0]
        verdicts = []
        for ranked in record.reranked:
            chunk = ranked.chunk
            hit = any(s.doc_id == chunk.doc_id and s.start < chunk.end and chunk.start < s.end for s in labels)
            word = "relevant" if hit else "not_relevant"
            verdicts.append(Verdict(chunk.text, word, word, rank=ranked.rank))
        if verdicts and record.context:
            self.people |= {kind: tuple(verdicts) for kind in (formulas.USEFUL_CHUNKS, formulas.RELEVANT_CHUNKS)}


def _plain(stated: Mapping[str, Any]) -> tuple[Verdict, ...] | None:
    """Claims of a text and a verdict each, which is what most files hold, as evidence: HumanVerdicts would say the same
    of ten thousand rows in half a second. None: there is more to them, or something may be wrong."""
    claims = stated["claims"] if len(stated) == 1 and "claims" in stated else ()
    found: dict[str, Verdict] = {}
    for claim in claims if isinstance(claims, list) else ():
        if not isinstance(claim, dict) or len(claim) != 2:
            return None
        text, word = claim.get("text"), claim.get("verdict")
        if type(text) is not str or not text.isprintable() or word not in _CLAIM_WORDS:
            return None
        if not (bare := " ".join(text.split())) or bare in found:
            return None
        found[bare] = Verdict(text, word, word)
    return tuple(found.values()) or None


def _words(texts: Iterable[str]) -> list[list[str]]:
    return sorted(text.split() for text in texts if text.strip())


def _chunks(id: str, contexts: Sequence[_Passage]) -> tuple[Chunk, ...]:
    """The contexts at their places, or each as a document of its own."""
    chunks = passages(id, [context.text for context in contexts])
    if not any(context.doc_id for context in contexts):
        return chunks
    return tuple(
        replace(chunk, doc_id=context.doc_id, start=context.start, end=context.start + len(context.text))
        if context.doc_id
        else chunk
        for chunk, context in zip(chunks, contexts, strict=True)
    )


def _ids(rows: Sequence[_Row], found: _Columns) -> list[str]:
    """An id for each row; where an id stands twice, each with its system. What is still taken is a fault."""
    given = [row.id or str(number) for number, row in enumerate(rows, 1)]
    if len(set(given)) < len(given):
        given = [f"{id} · {row.system}" if row.system else id for id, row in zip(given, rows, strict=True)]
    first: dict[str, str] = {}
    for id, row in zip(given, rows, strict=True):
        place = first.setdefault(id, row.entry.place)
        if place != row.entry.place:
            many = "" if found.system else "; with a column system an id may stand once for each"
            row.faults.append(f"id {shown(id)} is taken already, at {place}{many}")
    return given


def _refuse_faults(path: Path, faulty: Iterable[tuple[str, Iterable[str]]]) -> None:
    """Raise DataError if there is any fault: the first place of each, and how many more rows have it."""
    places: dict[str, list[str]] = {}
    for place, faults in faulty:
        for fault in dict.fromkeys(faults):
            places.setdefault(fault, []).append(place)
    if not places:
        return
    told = [
        f"{at[0]}: {fault}" + (f" (and in {len(at) - 1} more rows)" if len(at) > 1 else "")
        for fault, at in places.items()
    ]
    count = sum(map(len, places.values()))
    more = [f"and {len(told) - LISTED} more"] if len(told) > LISTED else []
    raise DataError("\n".join([f"{path} cannot be used: {count} fault{'s' * (count > 1)}", *told[:LISTED], *more]))


def _told(rows: Sequence[_Row], found: _Columns, records: Sequence[Record]) -> Iterator[str]:
    """What the rows make worth saying."""

    def counted(having: Callable[[_Row], bool]) -> int:
        return sum(map(having, rows))

    if "answer" in found.fields and (n := sum(record.answer is None for record in records)):
        yield f"{n} of {len(records)} rows have no answer"
    if "contexts" in found.fields and (n := sum(not record.context for record in records)):
        yield f"{n} of {len(records)} rows have no contexts"
    if "retrieved_ids" in found.fields and "contexts" not in found.fields:
        yield "retrieved ids come without texts, so that labels can judge the ranking and no judge can"
    if n := counted(lambda row: row.split):
        yield f"contexts of {n} rows are one text each, cut at | as DeepEval writes lists into tables"
    if n := counted(lambda row: row.several):
        yield f"{n} rows have several references, of which the first is read"
    if n := counted(lambda row: row.others):
        yield f"people judged another answer, context or reference than that of the row in {n} rows, which counts apart"
    if n := counted(lambda row: row.by_model):
        yield f"claims of {n} rows are of a model (origin), and are not taken for people's"
