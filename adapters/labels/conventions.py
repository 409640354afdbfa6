"""What libraries mean by the names of ranking measures: which of our definitions each of them computes, and how to ask
it.

`FAMILIES` holds the definitions that go by one name, `usages` the libraries. A library is imported when it is asked.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from itertools import product
from math import isfinite
from typing import Any

from adapters.base import Unavailable, scorer
from adapters.labels.ranking import Success
from adapters.labels.relevance import judge
from adapters.schema import Question, Record

TRIED = "2026-11-30"

HIT_RATE, RECALL, RECIPROCAL_RANK = "hit rate", "recall", "reciprocal rank"
NDCG, AVERAGE_PRECISION, PRECISION = "nDCG", "average precision", "precision"

FAMILIES: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    HIT_RATE: ({"id": "labels/success"}, {"id": "labels/hit_rate_granular"}),
    RECALL: ({"id": "labels/recall", "unit": "chunk"}, {"id": "labels/recall"}, {"id": "labels/success"}),
    RECIPROCAL_RANK: ({"id": "labels/reciprocal_rank"}, {"id": "labels/reciprocal_rank_all"}),
    NDCG: tuple(
        {"id": "labels/ndcg", "gain": gain, "discount": discount, "ideal": ideal}
        for ideal, discount, gain in product(
            ("judged", "retrieved"), ("log2", "2002"), ("exponential", "linear", "binary")
        )
    ),
    AVERAGE_PRECISION: ({"id": "labels/average_precision"}, {"id": "labels/rank_weighted_precision"}),
    PRECISION: ({"id": "labels/precision"}, {"id": "labels/precision", "divide_by": "returned"}),
}
"""Name -> the definitions that go by it, as `adapters.base.scorer` takes them, without a cutoff."""


@dataclass(frozen=True, slots=True)
class Listing:
    """A ranking as libraries take it. retrieved: ids, best first. grades: of every judged id that was retrieved, and of
    every relevant one (grade 1 or more) that was not."""

    retrieved: tuple[str, ...]
    grades: Mapping[str, int]

    @property
    def relevant(self) -> list[str]:
        """The ids that are relevant, retrieved or not."""
        return [id for id, grade in self.grades.items() if grade]

    @property
    def along(self) -> list[int]:
        """The grade at each place, 0 where nobody judged."""
        return [self.grades.get(id, 0) for id in self.retrieved]

    def cut(self, k: int | None) -> Listing:
        """The first k places of it."""
        return replace(self, retrieved=self.retrieved[:k])


def listing(question: Question, record: Record) -> Listing:
    """The chunks of a record as ids beside their grades, as `labels/*` with default parameters see them."""
    means = Success()
    judged = judge(
        question.relevant or (),
        means.chunks(record),
        record.labelled,
        means.unit,
        means.min_grade,
        means.min_cover,
        means.cover_of,
        means.judged_only,
    )
    grades = {verdict.unit: int(verdict.native) for verdict in judged.verdicts if verdict.native.isdigit()}
    missed = list(judged.relevant)
    for grade in filter(None, judged.grades):
        missed.remove(grade)
    grades |= {f"not retrieved {number}": grade for number, grade in enumerate(missed, 1)}
    return Listing(tuple(verdict.unit for verdict in judged.verdicts), grades)


Value = float | str
"""What a library gave for a ranking; a sentence where it gave no number."""
Values = Callable[[Sequence[Listing]], Iterable[Value]]
"""One value a ranking. Raises ImportError or Unavailable where the library is not installed, or what that raises."""


@dataclass(frozen=True, slots=True)
class Usage:
    """How a library is asked for a measure, and what it then computes.

    call: as its user writes it. convention: in one sentence, with the conditions under which it equals `same_as`, the
    key of a definition; None = it equals none of those of its family. source: file and version, or page and date.
    values: asks it; None where it is not asked, and `source` says why.
    """

    family: str
    library: str
    distribution: str
    call: str
    convention: str
    same_as: str | None
    source: str
    values: Values | None


def usages(k: int | None, depth: int) -> tuple[Usage, ...]:
    """The libraries, family by family. k: the cutoff, None = the whole list; depth: the length of the longest list."""
    return (*_trec_eval(k, depth), *_ir_measures(k, depth), *_ranx(k), *_llama_index(k), *_trulens(k), *_others(k))


def _key(id: str, k: int | None, **parameters: Any) -> str:
    return scorer({"id": f"labels/{id}", "k": k, **parameters}).key


def _each(measure: Callable[[Listing], Any]) -> Values:
    """Asks ranking by ranking; what a library raises on one, or a NaN, is why that one has no value."""

    def values(listings: Sequence[Listing]) -> Iterator[Value]:
        for listing in listings:
            try:
                value = float(measure(listing))
            except (ImportError, Unavailable):
                raise
            except Exception as error:
                yield f"{type(error).__name__}: {error}"
            else:
                yield value if isfinite(value) else "NaN"

    return values


Qrels = dict[str, dict[str, int]]
Runs = dict[str, dict[str, float]]


def _tables(listings: Sequence[Listing]) -> tuple[Qrels, Runs]:
    """Judgements and scores by query number. An id that was ranked twice keeps its last place, as in any dict."""
    numbered = list(enumerate(listings))
    qrels = {str(number): dict(listing.grades) for number, listing in numbered}
    runs = {
        str(number): {id: -float(rank) for rank, id in enumerate(listing.retrieved, 1)} for number, listing in numbered
    }
    return qrels, runs


def _of_queries(found: Mapping[str, float], count: int) -> list[Value]:
    return [found.get(str(number), "left out") for number in range(count)]


def _cut(k: int | None) -> str:
    return "" if k is None else f"; takes no cutoff, so the list was cut at {k} before"


ANY = "any: 1 when something relevant is among those looked at, else 0"
FIRST = "first: 1 / rank of the first relevant one"
FOUND = "relevant ones found / relevant ones, found or not"
PER_RELEVANT = "precision at each relevant one, summed and divided by all relevant ones, found or not"
PER_FOUND = "precision at each relevant one, summed and divided by those found: what was missed costs nothing"
BY_K = "divided by k, also where fewer came back; without a cutoff by what came back"
BY_RETURNED = "divided by what came back, at most k"
IDEAL = "ideal: best order of all that is relevant, cut at k where there is one"
LINEAR = f"gain g, discount log2(rank + 1), {IDEAL}"


def _trec_eval(k: int | None, depth: int) -> Iterator[Usage]:
    def usage(family: str, measure: str, convention: str, same_as: str, file: str, cut: int | None = None) -> Usage:
        def values(listings: Sequence[Listing]) -> list[Value]:
            qrels, runs = _tables([listing.cut(cut) for listing in listings])
            found = import_module("pytrec_eval").RelevanceEvaluator(qrels, {measure}).evaluate(runs)
            name = measure.replace(".", "_")
            return _of_queries({query: measures[name] for query, measures in found.items()}, len(listings))

        return Usage(
            family,
            "trec_eval (pytrec_eval)",
            "pytrec-eval-terrier",
            f'RelevanceEvaluator(qrels, {{"{measure}"}}).evaluate(run)',
            convention + _cut(cut),
            same_as,
            f"trec_eval 10.0-rc3, {file}; pytrec-eval-terrier 0.5.11, called {TRIED}: a query that is not in the run "
            "has no value, one with an empty result has 0",
            values,
        )

    def at(name: str, whole: str) -> str:
        return whole if k is None else f"{name}.{k}"

    yield usage(HIT_RATE, f"success.{k or depth}", ANY, _key("success", k), "m_success.c")
    yield usage(
        RECALL, at("recall", "set_recall"), FOUND, _key("recall", k, unit="chunk"), "m_recall.c and m_set_recall.c"
    )
    yield usage(RECIPROCAL_RANK, "recip_rank", FIRST, _key("reciprocal_rank", k), "m_recip_rank.c", k)
    yield usage(NDCG, at("ndcg_cut", "ndcg"), LINEAR, _key("ndcg", k, gain="linear"), "m_ndcg_cut.c and m_ndcg.c")
    yield usage(
        AVERAGE_PRECISION, at("map_cut", "map"), PER_RELEVANT, _key("average_precision", k), "m_map_cut.c and m_map.c"
    )
    yield usage(PRECISION, at("P", "set_P"), BY_K, _key("precision", k), "m_P.c and m_set_P.c")


def _ir_measures(k: int | None, depth: int) -> Iterator[Usage]:
    def usage(family: str, measure: str, convention: str, same_as: str, file: str) -> Usage:
        def values(listings: Sequence[Listing]) -> list[Value]:
            library = import_module("ir_measures")
            # One measure a call: asked together, 0.4.3 mixes up variants of nDCG.
            results = library.iter_calc([library.parse_measure(measure)], *_tables(listings))
            return _of_queries({result.query_id: float(result.value) for result in results}, len(listings))

        call = f"ir_measures.calc_aggregate([{measure.replace('@', ' @ ')}], qrels, run)"
        source = f"ir_measures 0.4.3, ir_measures/measures/{file}, called {TRIED}: a query that is not in the run has 0"
        return Usage(family, "ir_measures", "ir-measures", call, convention, same_as, source, values)

    def at(name: str, whole: str) -> str:
        return whole if k is None else f"{name}@{k}"

    yield usage(HIT_RATE, f"Success@{k or depth}", ANY, _key("success", k), "success.py")
    yield usage(RECALL, at("R", "SetR"), FOUND, _key("recall", k, unit="chunk"), "r.py and set_measures.py")
    yield usage(RECIPROCAL_RANK, at("RR", "RR"), FIRST, _key("reciprocal_rank", k), "rr.py")
    yield usage(NDCG, at("nDCG", "nDCG"), LINEAR, _key("ndcg", k, gain="linear"), "ndcg.py")
    yield usage(AVERAGE_PRECISION, at("AP", "AP"), PER_RELEVANT, _key("average_precision", k), "ap.py")
    yield usage(PRECISION, at("P", "SetP"), BY_K, _key("precision", k), "p.py and set_measures.py")


def _ranx(k: int | None) -> Iterator[Usage]:
    """Not asked: it compiles each measure when it is first called, which took 1 to 3 minutes."""

    def usage(family: str, measure: str, convention: str, same_as: str) -> Usage:
        call = f'ranx.evaluate(Qrels(qrels), Run(run), "{measure}{"" if k is None else f"@{k}"}")'
        source = (
            f"ranx 0.3.21, ranx/metrics/, read and called {TRIED} (tests/labels/test_conventions.py); not called here, "
            "because its first call compiles for minutes"
        )
        return Usage(family, "ranx", "ranx", call, convention, same_as, source, None)

    yield usage(HIT_RATE, "hit_rate", ANY, _key("success", k))
    yield usage(RECALL, "recall", FOUND, _key("recall", k, unit="chunk"))
    yield usage(RECIPROCAL_RANK, "mrr", FIRST, _key("reciprocal_rank", k))
    yield usage(NDCG, "ndcg", LINEAR, _key("ndcg", k, gain="linear"))
    yield usage(NDCG, "ndcg_burges", f"gain 2^g - 1, discount log2(rank + 1), {IDEAL}", _key("ndcg", k))
    yield usage(AVERAGE_PRECISION, "map", PER_RELEVANT, _key("average_precision", k))
    yield usage(PRECISION, "precision", BY_K, _key("precision", k))


def _llama_index(k: int | None) -> Iterator[Usage]:
    def usage(family: str, metric: str, convention: str, same_as: str | None, **options: bool) -> Usage:
        def measure(listing: Listing) -> float:
            metrics = import_module("llama_index.core.evaluation.retrieval.metrics")
            found = getattr(metrics, metric)(**options).compute(
                expected_ids=listing.relevant, retrieved_ids=list(listing.cut(k).retrieved)
            )
            return float(found.score)

        chosen = ", ".join(f"{name}={value}" for name, value in options.items())
        return Usage(
            family,
            "LlamaIndex",
            "llama-index-core",
            f"{metric}({chosen}).compute(expected_ids=expected, retrieved_ids=retrieved)",
            convention + _cut(k),
            same_as,
            f"llama-index-core 0.14.25, llama_index/core/evaluation/retrieval/metrics.py, read and called {TRIED}: "
            "raises ValueError where nothing was retrieved or nothing is expected",
            _each(measure),
        )

    again = "an id that comes twice counts twice, and the value may pass 1"
    yield usage(HIT_RATE, "HitRate", ANY, _key("success", k))
    yield usage(
        HIT_RATE,
        "HitRate",
        f"granular: relevant ones found / relevant ones; {again}",
        _key("hit_rate_granular", k),
        use_granular_hit_rate=True,
    )
    yield usage(RECALL, "Recall", f"{FOUND}, as sets", _key("recall", k, unit="chunk"))
    yield usage(RECIPROCAL_RANK, "MRR", FIRST, _key("reciprocal_rank", k))
    yield usage(
        RECIPROCAL_RANK,
        "MRR",
        "averaged: mean of 1 / rank over the relevant ones found",
        _key("reciprocal_rank_all", k),
        use_granular_mrr=True,
    )
    yield usage(
        NDCG,
        "NDCG",
        "every expected id has gain 1, discount log2(rank + 1), ideal: all expected ids, not cut at the length of the "
        "list, so equal only without a cutoff (before pull request 17126 of December 2024: as many as were retrieved); "
        f"mode is without effect; {again}",
        _key("ndcg", None, gain="binary") if k is None else None,
    )
    yield usage(AVERAGE_PRECISION, "AveragePrecision", f"{PER_RELEVANT}; {again}", _key("average_precision", k))
    yield usage(PRECISION, "Precision", f"{BY_RETURNED}, as sets", _key("precision", k, divide_by="returned"))


def _trulens(k: int | None) -> Iterator[Usage]:
    def usage(family: str, method: str, convention: str, same_as: str, takes_k: bool = True) -> Usage:
        def measure(listing: Listing) -> float:
            from adapters.trulens import ground_truth

            golden = {id: listing.grades[id] for id in listing.relevant}
            if takes_k:
                return float(getattr(ground_truth(golden), method)("", list(listing.retrieved), k=k))
            return float(getattr(ground_truth(golden), method)("", list(listing.cut(k).retrieved)))

        cutoff = f", k={k}" if takes_k and k is not None else ""
        return Usage(
            family,
            "TruLens",
            "trulens-feedback",
            f"GroundTruthAgreement(golden, provider).{method}(query, chunks{cutoff})",
            convention + _cut(None if takes_k else k),
            same_as,
            f"trulens-feedback 2.16.0, trulens/feedback/groundtruth.py, read and called {TRIED}: chunks are told by "
            "text; NaN where nothing is golden",
            _each(measure),
        )

    yield usage(HIT_RATE, "ir_hit_rate", ANY, _key("success", k))
    yield usage(RECALL, "recall_at_k", FOUND, _key("recall", k, unit="chunk"))
    yield usage(RECIPROCAL_RANK, "mrr", FIRST, _key("reciprocal_rank", k), takes_k=False)
    whole = (
        ""
        if k
        else "; without k cut at the length of the list, so that a list shorter than the relevant ones may have 1"
    )
    yield usage(
        NDCG, "ndcg_at_k", f"{LINEAR}{whole}; NaN without k where nothing was retrieved", _key("ndcg", k, gain="linear")
    )
    yield usage(
        PRECISION,
        "precision_at_k",
        f"{BY_RETURNED}; NaN where nothing was retrieved",
        _key("precision", k, divide_by="returned"),
    )


def _others(k: int | None) -> Iterator[Usage]:
    """Those that see the retrieved ones alone: scikit-learn, and the arithmetic of judged context precision."""

    def sklearn(family: str, function: str, ask: Callable[[Any, tuple[int, ...]], Any], *words: str) -> Usage:
        @cache  # it takes a millisecond a call, and short lists are often alike
        def measure(grades: tuple[int, ...]) -> Any:
            import sklearn.metrics

            with warnings.catch_warnings():
                # It warns where nothing retrieved is relevant, which `convention` says.
                warnings.simplefilter("ignore", UserWarning)
                return ask(getattr(sklearn.metrics, function), grades)

        call, convention, same_as = words
        source = (
            f"scikit-learn 1.9.1, sklearn/metrics/_ranking.py, {function}, called {TRIED}: raises for an empty list"
        )
        values = _each(lambda listing: measure(tuple(listing.along)))
        return Usage(family, "scikit-learn", "scikit-learn", call, convention, same_as, source, values)

    def falling(grades: tuple[int, ...]) -> list[int]:
        return list(range(len(grades), 0, -1))

    def binary(grades: Iterable[int]) -> list[bool]:
        return [grade > 0 for grade in grades]

    yield sklearn(
        NDCG,
        "ndcg_score",
        lambda function, grades: function([grades], [falling(grades)], k=k),
        f"ndcg_score([grades of the retrieved], [their scores]{'' if k is None else f', k={k}'})",
        "gain g, discount log2(rank + 1), ideal: best order of what it was given, the retrieved ones; raises "
        "ValueError for fewer than two, and averages over ties",
        _key("ndcg", k, gain="linear", ideal="retrieved"),
    )
    yield sklearn(
        AVERAGE_PRECISION,
        "average_precision_score",
        lambda function, grades: function(binary(grades[:k]), falling(grades[:k])),
        "average_precision_score(relevant or not, scores)",
        f"{PER_FOUND}; 0 with a warning where none was found{_cut(k)}",
        _key("rank_weighted_precision", k),
    )
    yield sklearn(
        AVERAGE_PRECISION,
        "label_ranking_average_precision_score",
        lambda function, grades: function([binary(grades[:k])], [falling(grades[:k])]),
        "label_ranking_average_precision_score([relevant or not], [scores])",
        f"{PER_FOUND}; 1, and not 0, where none was found{_cut(k)}",
        _key("rank_weighted_precision", k),
    )

    def of_verdicts(library: str, distribution: str, call: str, more: str, source: str, values: Values) -> Usage:
        return Usage(
            AVERAGE_PRECISION,
            library,
            distribution,
            call,
            f"{PER_FOUND}; here on labels in place of a judge's verdicts{more}{_cut(k)}",
            _key("rank_weighted_precision", k),
            f"{source}, read and called {TRIED}",
            values,
        )

    def ragas(listings: Sequence[Listing]) -> list[float]:
        from adapters.ragas import context_precision

        return [context_precision(binary(listing.along[:k])) for listing in listings]

    def deepeval(listings: Sequence[Listing]) -> list[float]:
        from adapters.deepeval import contextual_precision

        return [contextual_precision(binary(listing.along[:k])) for listing in listings]

    yield of_verdicts(
        "Ragas",
        "ragas",
        "ContextPrecision(llm).ascore(user_input, reference, retrieved_contexts)",
        ", 1e-10 added to the divisor",
        "ragas 0.4.3, ragas/metrics/collections/context_precision/metric.py",
        ragas,
    )
    yield of_verdicts(
        "DeepEval",
        "deepeval",
        "ContextualPrecisionMetric(model).measure(test_case)",
        "",
        "deepeval 4.3.1, deepeval/metrics/contextual_precision/contextual_precision.py",
        deepeval,
    )
