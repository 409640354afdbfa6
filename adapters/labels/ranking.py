"""Definitions over the places of a ranking: was it found, how early, and how clean is the list.

Every value is one float in [0, 1] for one question. Notation: g(r) is the grade at rank r (0 where not relevant),
the hits are the ranks r <= k with g(r) >= min_grade, n is the number of relevant units that could be found.
"""

from __future__ import annotations

from abc import abstractmethod
from math import log2
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from adapters import asks
from adapters.labels.relevance import (
    HOLDS,
    NOTHING,
    ORDER,
    UNREACHABLE,
    CoverOf,
    Judgement,
    ListDefinition,
    MinCover,
    MinGrade,
    Unit,
    judge,
    nothing_labelled,
    nothing_retrieved,
)
from adapters.schema import Question, Record, Score, Span

BOOK = "Manning, Raghavan and Schütze 2008, Introduction to Information Retrieval"
LLAMA_INDEX = "llama-index-core/llama_index/core/evaluation/retrieval/metrics.py at 0f3f958, read 2026-11-30"
UNJUDGED = "An unjudged unit counts as not relevant unless judged_only takes it out of the ranking (see labels/judged)."
POOL = (
    "n counts the chunks of Record.labelled and of the ranking; a system that does not report Record.labelled may "
    "leave relevant chunks out of n."
)
RECHUNKED = (
    "With unit=chunk another chunker makes another number of relevant chunks, so n and the ideal change with it; "
    "between chunkers compare unit=document, labels/reciprocal_rank, labels/recall by passage, or characters."
)
# 2^g must stay finite when hundreds of gains are added.
LARGEST_GRADE = 1000
RecallUnit = Annotated[
    Literal["passage", "chunk", "document"],
    Field(description="What is counted; passage: a labelled span is found when a chunk of the top k holds it."),
]


class RankingDefinition(ListDefinition):
    """Base of the definitions computed from the grades along a ranking; subclasses give `_value`."""

    unit_judged: ClassVar[str] = "chunk or document (see unit)"
    hit: ClassVar[str] = HOLDS + "; a document is relevant when any span in it is"
    nothing_to_judge: ClassVar[str] = NOTHING
    hazards: ClassVar[tuple[str, ...]] = (*ORDER, UNJUDGED, UNREACHABLE, POOL, RECHUNKED)

    unit: Unit = "chunk"
    min_grade: MinGrade = 1
    min_cover: MinCover = 0.5
    cover_of: CoverOf = "span"
    judged_only: Annotated[
        bool, Field(description="Take unjudged units and repeats out of the ranking first; later ranks move up.")
    ] = False

    @abstractmethod
    def _value(self, judged: Judgement) -> float:
        """The value in [0, 1]; there is at least one relevant unit to find, unless `_unscorable` says otherwise."""

    def score(self, question: Question, record: Record) -> Score:
        """The score of one ranking, with one verdict per judged place."""
        if reason := self._unscorable(question):
            return self.not_applicable(record, reason)
        ranked = self.chunks(record)
        if not ranked:
            return self.computed(record, 0.0, reason=nothing_retrieved(record))
        judged = judge(
            question.relevant or (),
            ranked,
            record.labelled,
            "document" if self.unit == "document" else "chunk",
            self.min_grade,
            self.min_cover,
            self.cover_of,
            self.judged_only,
        )
        notes = self.shortfall(judged.returned)
        if not judged.grades:
            notes.append("nothing judged among what was retrieved")
        if judged.unheld and record.labelled:
            notes.append(f"no chunk holds {judged.unheld} of {judged.passages} relevant passages")
        return self.computed(record, self._value(judged), judged.verdicts[: self.k], "; ".join(notes) or None)

    def _unscorable(self, question: Question) -> str | None:
        return nothing_labelled(question, self.min_grade)


class Recall(RankingDefinition):
    """Share of what is relevant that stands among the first k places.

    Range [0, 1]; unit: the labelled passage (default), the chunk or the document.
    Source: Manning, Raghavan and Schütze 2008, section 8.3, p. 155.
    """

    id: ClassVar[str] = "labels/recall"
    asks: ClassVar[str] = asks.FOUND
    unit_judged: ClassVar[str] = "passage, chunk or document (see unit)"
    formula: ClassVar[str] = "relevant units found among the first k / relevant units"
    source: ClassVar[str] = f"{BOOK}, section 8.3, p. 155, equation 8.2; trec_eval 10.0-rc3, m_recall.c"
    hazards: ClassVar[tuple[str, ...]] = (
        "unit=passage keeps the denominator when the chunker changes; unit=chunk does not, so it cannot be compared "
        "between chunkers.",
        "unit=passage is all or nothing: a passage counts when one chunk holds it, and pieces of it in several chunks "
        "are not added up.",
        *RankingDefinition.hazards,
    )

    # Wider than the base: only recall can count passages, since a ranking has none.
    unit: RecallUnit = "passage"  # type: ignore[assignment]

    def _value(self, judged: Judgement) -> float:
        if self.unit == "passage":
            return len(frozenset[Span]().union(*judged.found[: self.k])) / judged.passages
        return len(judged.hits(self.k)) / len(judged.relevant)


class GranularHitRate(RankingDefinition):
    """LlamaIndex's granular hit rate: hits over expected units, except that a unit retrieved twice counts once.

    Range [0, 1]; unit: the chunk (a LlamaIndex node) or the document. Source: LlamaIndex, HitRate.
    """

    id: ClassVar[str] = "labels/hit_rate_granular"
    asks: ClassVar[str] = asks.FOUND
    formula: ClassVar[str] = "relevant units among the first k / relevant units"
    source: ClassVar[str] = f"{LLAMA_INDEX}, HitRate with use_granular_hit_rate"
    hazards: ClassVar[tuple[str, ...]] = (
        "LlamaIndex counts every repeat and passes 1; here a repeat counts once, which makes it labels/recall with "
        "unit=chunk under another name.",
        *RankingDefinition.hazards,
    )

    def _value(self, judged: Judgement) -> float:
        return len(judged.hits(self.k)) / len(judged.relevant)


class Success(RankingDefinition):
    """Whether anything relevant stands among the first k places (plain hit rate): 0 or 1.

    Unit: the chunk or the document. Source: trec_eval, success.
    """

    id: ClassVar[str] = "labels/success"
    asks: ClassVar[str] = "was anything relevant found?"
    formula: ClassVar[str] = "1 if a relevant unit is among the first k, else 0"
    source: ClassVar[str] = f"trec_eval 10.0-rc3, m_success.c; {LLAMA_INDEX}, HitRate"

    def _value(self, judged: Judgement) -> float:
        return float(bool(judged.hits(self.k)))


class Precision(RankingDefinition):
    """Share of the first k places that are relevant.

    Range [0, 1]; unit: the chunk or the document. Source: Manning, Raghavan and Schütze 2008, section 8.3, p. 155.
    """

    id: ClassVar[str] = "labels/precision"
    asks: ClassVar[str] = asks.FOUND_RELEVANT
    formula: ClassVar[str] = "relevant units among the first k / k (divide_by=returned: / the places there are, <= k)"
    nothing_to_judge: ClassVar[str] = (
        "not applicable where the question is unlabelled or its labels are empty; where all its passages are rejected "
        "(grade < min_grade) a real 0 if it is answerable, not applicable if not, since no system could do better; 0 "
        "where nothing was retrieved"
    )
    source: ClassVar[str] = f"{BOOK}, section 8.3, p. 155, equation 8.1; trec_eval 10.0-rc3, m_P.c"
    hazards: ClassVar[tuple[str, ...]] = (
        "divide_by=k charges a short list for what it did not return (trec_eval); divide_by=returned does not "
        "(TruLens 2.16.0, LlamaIndex). Without k both divide by what was returned.",
        "With fewer than k relevant units in the corpus, 1 is out of reach.",
        *RankingDefinition.hazards,
    )

    divide_by: Annotated[
        Literal["k", "returned"], Field(description="The divisor when fewer than k came back; without k: returned.")
    ] = "k"

    def _unscorable(self, question: Question) -> str | None:
        # Without anything relevant an answerable question is a question lost; an unanswerable one is as it should be.
        return nothing_labelled(question, None if question.answerable else self.min_grade)

    def _value(self, judged: Judgement) -> float:
        places = len(judged.grades[: self.k])
        divisor = self.k if self.k is not None and self.divide_by == "k" else places
        return len(judged.hits(self.k)) / divisor if divisor else 0.0


class ReciprocalRank(RankingDefinition):
    """One over the rank of the first relevant unit; 0 when none is among the first k.

    Range [0, 1]; unit: the chunk or the document. Source: Voorhees 1999, TREC-8 question answering track, p. 78.
    """

    id: ClassVar[str] = "labels/reciprocal_rank"
    asks: ClassVar[str] = "how early does the first relevant one come?"
    formula: ClassVar[str] = "1 / rank of the first hit"
    source: ClassVar[str] = "Voorhees 1999, The TREC-8 Question Answering Track Report, NIST SP 500-246, pp. 77-82"

    def _value(self, judged: Judgement) -> float:
        hits = judged.hits(self.k)
        return 1 / hits[0] if hits else 0.0


class ReciprocalRankAll(RankingDefinition):
    """Mean of 1/rank over all the hits found: LlamaIndex's granular MRR.

    Range [0, 1]; unit: the chunk or the document. Source: LlamaIndex, MRR.
    """

    id: ClassVar[str] = "labels/reciprocal_rank_all"
    asks: ClassVar[str] = "how early do the relevant ones come?"
    formula: ClassVar[str] = "sum of 1/rank over the hits / number of hits"
    source: ClassVar[str] = f"{LLAMA_INDEX}, MRR with use_granular_mrr"
    hazards: ClassVar[tuple[str, ...]] = (
        "It falls when a further relevant unit is found late: a system that finds more may score less.",
        *RankingDefinition.hazards,
    )

    def _value(self, judged: Judgement) -> float:
        hits = judged.hits(self.k)
        return sum(1 / rank for rank in hits) / len(hits) if hits else 0.0


def _precision_at_hits(hits: list[int]) -> float:
    return sum(count / rank for count, rank in enumerate(hits, 1))


class AveragePrecision(RankingDefinition):
    """Precision at every hit, summed and divided by the number of relevant units, found or not.

    Range [0, 1]; unit: the chunk or the document. Source: Manning, Raghavan and Schütze 2008, section 8.4, p. 160.
    """

    id: ClassVar[str] = "labels/average_precision"
    asks: ClassVar[str] = "are the relevant ones found, and ranked before the others?"
    formula: ClassVar[str] = "sum over hits of (hits up to rank r / r) / n"
    source: ClassVar[str] = f"{BOOK}, section 8.4, p. 160, equation 8.8; trec_eval 10.0-rc3, m_map.c and m_map_cut.c"
    hazards: ClassVar[tuple[str, ...]] = (
        "With k below n, 1 is out of reach: the sum is divided by n, not by min(n, k).",
        *RankingDefinition.hazards,
    )

    def _value(self, judged: Judgement) -> float:
        return _precision_at_hits(judged.hits(self.k)) / len(judged.relevant)


class RankWeightedPrecision(RankingDefinition):
    """Precision at every hit, averaged over the hits found: the formula of Ragas' and DeepEval's contextual precision.

    Range [0, 1]; unit: the chunk or the document. Source: Ragas 0.4.3 and DeepEval 4.3.1, with labels for the judge.
    """

    id: ClassVar[str] = "labels/rank_weighted_precision"
    asks: ClassVar[str] = "are the relevant ones ranked before the others?"
    formula: ClassVar[str] = "sum over hits of (hits up to rank r / r) / number of hits"
    source: ClassVar[str] = (
        "ragas 0.4.3, ragas/metrics/collections/context_precision/metric.py; deepeval 4.3.1, "
        "deepeval/metrics/contextual_precision/contextual_precision.py; both read 2026-11-30"
    )
    hazards: ClassVar[tuple[str, ...]] = (
        "Blind to what was missed: one hit at rank 1 scores 1 however much more was relevant.",
        "Ragas adds 1e-10 to the divisor, so its value lies below this one in the tenth digit.",
        *RankingDefinition.hazards,
    )

    def _value(self, judged: Judgement) -> float:
        hits = judged.hits(self.k)
        return _precision_at_hits(hits) / len(hits) if hits else 0.0


class NDCG(RankingDefinition):
    """Discounted gain of the first k places over that of the best order possible.

    Range [0, 1]; unit: the chunk or the document.
    Source: Järvelin and Kekäläinen 2002 (linear gain, `2002` discount); Burges et al. 2005 (exponential, `log2`).
    """

    id: ClassVar[str] = "labels/ndcg"
    asks: ClassVar[str] = "are the most relevant ones found and ranked first?"
    formula: ClassVar[str] = (
        "DCG / ideal DCG, DCG = sum over r <= k of gain(g(r)) / discount(r); gain: 2^g - 1 (exponential), g (linear) "
        "or 1 (binary); discount: log2(r + 1), or max(1, log2 r) (2002)"
    )
    source: ClassVar[str] = (
        "Järvelin and Kekäläinen 2002, Cumulated Gain-Based Evaluation of IR Techniques, ACM TOIS 20(4), pp. 422-446; "
        "Burges et al. 2005, Learning to Rank using Gradient Descent, ICML, pp. 89-96; trec_eval 10.0-rc3, m_ndcg_cut.c"
    )
    hazards: ClassVar[tuple[str, ...]] = (
        "trec_eval, pytrec_eval, ir_measures and scikit-learn have linear gain. With grades 0 and 1 all gains agree.",
        "ideal=retrieved puts only the retrieved into the best order: what was missed costs nothing. It is 0 when "
        "nothing retrieved is relevant.",
        "discount=2002 does not tell rank 1 from rank 2.",
        "Grades below min_grade have no gain (trec_eval's -l leaves nDCG untouched).",
        *RankingDefinition.hazards,
    )

    gain: Annotated[
        Literal["exponential", "linear", "binary"], Field(description="What a grade g is worth: 2^g - 1, g, or 1.")
    ] = "exponential"
    discount: Annotated[
        Literal["log2", "2002"], Field(description="What rank r divides by: log2(r + 1), or max(1, log2 r).")
    ] = "log2"
    ideal: Annotated[
        Literal["judged", "retrieved"],
        Field(description="What the best order is made of: all that is labelled, or only what was retrieved."),
    ] = "judged"

    def _value(self, judged: Judgement) -> float:
        pool = judged.relevant if self.ideal == "judged" else tuple(sorted(judged.grades, reverse=True))
        best = self._dcg(pool[: self.k])
        return self._dcg(judged.grades[: self.k]) / best if best else 0.0

    def _unscorable(self, question: Question) -> str | None:
        highest = max((span.grade for span in question.relevant or ()), default=0)
        if self.gain == "exponential" and highest > LARGEST_GRADE:
            return f"grade {highest} is too large for an exponential gain (at most {LARGEST_GRADE}); use gain=linear"
        return super()._unscorable(question)

    def _dcg(self, grades: tuple[int, ...]) -> float:
        # log2(2) is 1, so starting the older discount at rank 2 spares rank 1 and nothing else.
        shift = 1 if self.discount == "log2" else 0
        return sum(self._gain(grade) / log2(max(2, rank + shift)) for rank, grade in enumerate(grades, 1) if grade)

    def _gain(self, grade: int) -> float:
        if self.gain == "exponential":
            return 2.0**grade - 1
        return grade if self.gain == "linear" else 1


class Judged(ListDefinition):
    """Share of the first k places that carry any judgement, grade 0 included: how far the labels reach.

    Range [0, 1]; unit: the chunk or the document. Source: ir_measures 0.4.3, Judged.
    """

    id: ClassVar[str] = "labels/judged"
    asks: ClassVar[str] = "how much of what was retrieved has anybody judged?"
    unit_judged: ClassVar[str] = "chunk or document (see unit)"
    hit: ClassVar[str] = HOLDS.partition(";")[0] + "; it is judged when it holds a span of any grade"
    formula: ClassVar[str] = "judged units among the first k / places there are, <= k"
    nothing_to_judge: ClassVar[str] = (
        "not applicable where the question is unlabelled, its labels are empty or nothing was retrieved: this says how "
        "far labels reach, and an empty list says nothing of that"
    )
    source: ClassVar[str] = "ir_measures 0.4.3, Judged; Sakai 2007, Alternatives to Bpref, SIGIR, pp. 71-78"
    hazards: ClassVar[tuple[str, ...]] = (
        "A low share means that the other labels/* definitions measure the labelling as much as the system.",
        *ORDER,
    )

    unit: Unit = "chunk"
    min_cover: MinCover = 0.5
    cover_of: CoverOf = "span"

    def score(self, question: Question, record: Record) -> Score:
        """The share, with one verdict per judged place."""
        if reason := nothing_labelled(question, None):
            return self.not_applicable(record, reason)
        ranked = self.chunks(record)
        if not ranked:
            return self.not_applicable(record, nothing_retrieved(record))
        judged = judge(
            question.relevant or (), ranked, record.labelled, self.unit, 1, self.min_cover, self.cover_of, False
        )
        verdicts = judged.verdicts[: self.k]
        known = sum(verdict.native not in ("unjudged", "repeat") for verdict in verdicts)
        notes = self.shortfall(judged.returned)
        return self.computed(record, known / len(verdicts), verdicts, "; ".join(notes) or None)
