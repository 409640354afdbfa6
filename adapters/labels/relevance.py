"""How labelled spans and ranked chunks meet: which chunk holds which passage, and what could have been found.

Labels hang on documents, chunks come and go with every chunker; what is decided here decides all of `labels/*`.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, ClassVar, Literal, NamedTuple

from pydantic import Field

from adapters.base import Scorer
from adapters.schema import Chunk, Question, Record, Span, Verdict

RankingName = Annotated[
    Literal["reranked", "retrieved", "context"],
    Field(description="Which list of the record is judged; ranks are places in it."),
]
Cutoff = Annotated[int | None, Field(ge=1, description="Places judged, from the top; None = the whole list.")]
MinGrade = Annotated[int, Field(ge=1, description="The smallest grade that counts as relevant.")]
Unit = Annotated[Literal["chunk", "document"], Field(description="What is counted, and what k counts.")]
CoverOf = Annotated[
    Literal["span", "smaller"],
    Field(
        description="What min_cover is a share of: the labelled span, or the shorter of span and chunk "
        "(then a chunk that lies wholly within a long passage holds it)."
    ),
]
# Half: with less, a chunk that cuts off a corner of the passage is a hit and large overlapping chunks win for nothing;
# with all, a boundary one character inside the label makes the question look unanswerable. Above half, chunks that do
# not overlap can never both hold the same passage.
MinCover = Annotated[
    float,
    Field(ge=0, le=1, description="Share of the span's characters that one chunk must cover to hold it; 0 = any."),
]

HOLDS = (
    "a chunk holds a labelled span when it covers at least min_cover of the span's characters (cover_of=smaller: of "
    "the shorter of the two); its grade is the highest of the spans it holds, and it is relevant from min_grade on"
)
ORDER = (
    "The ranking's own order is used: equal scores are never re-sorted (trec_eval re-sorts them by document id).",
    "unit=chunk: a chunk ranked twice counts once, at its first place; the repeat keeps its place as a miss, and k is "
    "cut before repeats are looked at. unit=document: a document stands at the place of its first chunk, those behind "
    "it move up, and k counts documents.",
)
UNREACHABLE = (
    "A passage that no chunk holds, such as one longer than the chunks, is a miss: it stays in the denominator as one "
    "unit that could not be found, and the score's reason says so. See labels/span_recall for what was covered of it."
)
NOTHING = (
    "not applicable where the question is unlabelled or no passage of grade >= min_grade is labelled, since nothing "
    "could be found; 0 where nothing was retrieved, and the question stays in the mean"
)


class LabelDefinition(Scorer):
    """Base of all `labels/*`."""

    framework: ClassVar[str] = "labels"
    # It stands where a framework's release stands and moves every definition here; `revision` moves one alone.
    version: ClassVar[str] = "1"
    requires: ClassVar[tuple[str, ...]] = ("relevant",)


class ListDefinition(LabelDefinition):
    """Base of the definitions that lay one list of a Record, cut at k, beside Question.relevant."""

    k: Cutoff = None
    ranking: RankingName = "reranked"

    def chunks(self, record: Record) -> tuple[Chunk, ...]:
        """The judged list, best (or first in the prompt) first, not yet cut."""
        if self.ranking == "context":
            return record.context
        return tuple(ranked.chunk for ranked in getattr(record, self.ranking))

    def shortfall(self, returned: int) -> list[str]:
        """The sentence that says fewer than k came back, if so."""
        return [f"asked {self.k}, got {returned}"] if self.k is not None and returned < self.k else []


def nothing_retrieved(record: Record) -> str:
    """Why a ranking is empty, in the words that reports look for."""
    return f"nothing retrieved: {record.error}" if record.error else "nothing retrieved"


def nothing_labelled(question: Question, min_grade: int | None) -> str | None:
    """Why labels cannot judge this question; None = they can. min_grade None: any judgement will do."""
    if question.relevant is None:
        return "unlabelled: nobody said which passages answer this question"
    if not question.relevant:
        return "no relevant passage is labelled: the question's labels are empty"
    if min_grade is not None and all(span.grade < min_grade for span in question.relevant):
        return f"no relevant passage is labelled: no grade reaches {min_grade}"
    return None


def shared(span: Span, chunk: Chunk) -> int:
    """How many characters the two have in common."""
    if span.doc_id != chunk.doc_id:
        return 0
    return max(0, min(span.end, chunk.end) - max(span.start, chunk.start))


def holds(chunk: Chunk, span: Span, min_cover: float, cover_of: str) -> bool:
    """Whether the chunk covers enough of the span. Nothing holds a span without characters."""
    common = shared(span, chunk)
    if not common:
        return False
    whole = span.end - span.start
    if cover_of == "smaller":
        whole = min(whole, chunk.end - chunk.start)
    return common / whole >= min_cover


@dataclass(frozen=True, slots=True)
class Judgement:
    """A ranking laid beside the labels of its question; the first three have one entry per place.

    verdicts: what the labels say of the unit at each place.
    grades: its grade where it is relevant and stands there for the first time, else 0.
    found: the relevant passages that it holds (of a document: all its passages).
    relevant: the grades of all units that a perfect system would have found, highest first.
    passages: how many distinct relevant passages are labelled; unheld: how many of them no chunk holds.
    returned: how many places there were before unjudged ones were taken out.
    """

    verdicts: tuple[Verdict, ...]
    grades: tuple[int, ...]
    found: tuple[frozenset[Span], ...]
    relevant: tuple[int, ...]
    passages: int
    unheld: int
    returned: int

    def hits(self, k: int | None) -> list[int]:
        """The ranks, from 1, of the relevant units among the first k places."""
        return [rank for rank, grade in enumerate(self.grades[:k], 1) if grade]


class _Place(NamedTuple):
    name: str
    native: str
    grade: int | None = None
    held: tuple[Span, ...] = ()
    reason: str | None = None


# Every definition with the same parameters asks for the same judgement of a record; the size holds a data set's worth.
@lru_cache(maxsize=2048)
def judge(
    relevant: tuple[Span, ...],
    ranked: tuple[Chunk, ...],
    labelled: tuple[Chunk, ...],
    unit: str,
    min_grade: int,
    min_cover: float,
    cover_of: str,
    judged_only: bool,
) -> Judgement:
    """Lay `ranked` beside the labels; `labelled` are the chunks that touch a label, retrieved or not."""
    passages: dict[tuple[str, int, int], Span] = {}
    for span in sorted(relevant, key=lambda span: span.grade):
        passages[span.doc_id, span.start, span.end] = span
    by_document: dict[str, list[Span]] = defaultdict(list)
    for span in passages.values():
        by_document[span.doc_id].append(span)
    wanted = frozenset(span for span in passages.values() if span.grade >= min_grade)

    def judged(chunk: Chunk) -> _Place:
        spans = by_document.get(chunk.doc_id, [])
        if unit == "document":
            name, held = chunk.doc_id, tuple(spans)
        else:
            name = f"{chunk.doc_id}[{chunk.start}:{chunk.end}]"
            held = tuple(span for span in spans if holds(chunk, span, min_cover, cover_of))
        if not held:
            return _Place(name, "unjudged", reason=_near_miss(chunk, spans))
        grade = max(span.grade for span in held)
        return _Place(name, str(grade), grade, held)

    units: dict[str, _Place] = {}
    places: list[_Place] = []
    for place in map(judged, ranked):
        if place.name not in units:
            places.append(units.setdefault(place.name, place))
        elif unit == "chunk":
            places.append(_Place(place.name, "repeat", reason="ranked before"))
    returned = len(places)
    if judged_only:
        places = [place for place in places if place.grade is not None]

    elsewhere = labelled if unit == "chunk" else (Chunk(doc_id, 0, 0, "") for doc_id in by_document)
    for place in map(judged, elsewhere):
        units.setdefault(place.name, place)
    unheld = wanted.difference(*(place.held for place in units.values()))
    pool = [place.grade for place in units.values() if place.grade is not None] + [span.grade for span in unheld]
    return Judgement(
        verdicts=tuple(
            Verdict(place.name, place.native, _ours(place, min_grade), place.reason, rank)
            for rank, place in enumerate(places, 1)
        ),
        grades=tuple(place.grade if place.grade is not None and place.grade >= min_grade else 0 for place in places),
        found=tuple(wanted.intersection(place.held) for place in places),
        relevant=tuple(sorted((grade for grade in pool if grade >= min_grade), reverse=True)),
        passages=len(wanted),
        unheld=len(unheld),
        returned=returned,
    )


def _ours(place: _Place, min_grade: int) -> str | None:
    if place.native == "unjudged":
        return None
    return "relevant" if place.grade is not None and place.grade >= min_grade else "not_relevant"


def _near_miss(chunk: Chunk, spans: list[Span]) -> str | None:
    """What an unjudged chunk shares with the label that it comes closest to holding."""
    common, whole = max(
        ((shared(span, chunk), span.end - span.start) for span in spans),
        key=lambda pair: pair[0] / max(1, pair[1]),
        default=(0, 0),
    )
    return f"shares {common} of the {whole} characters of a label" if common else None
