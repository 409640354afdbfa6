"""Audits of stored verdicts, made without any framework: the router example, many records, and hostile texts."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from adapters import formulas
from adapters.formulas import Formula
from adapters.schema import JudgeCard, Question, Record, Score, Verdict
from runner.audit.comparison import audit
from runner.audit.findings import Audit, Convention, Family, Reading, Subject

ASKS = "is the answer supported by the context?"
ANSWER_IS = {"supported": "claims supported / claims", "not contradicted": "claims not contradicted / claims"}
JUDGE = JudgeCard("labels", "people", "router", temperature=0.0, seed=7)


def subject(key: str, formula: Formula | None, wording: str, **changes: Any) -> Subject:
    """A definition as the audit takes it; its id is the key up to the first dot."""
    id = key.partition(".")[0]
    found = Subject(
        key=key,
        id=id,
        framework=id.partition("/")[0],
        asks=ASKS,
        unit="claim",
        wording=wording,
        range=(0.0, 1.0),
        direction="higher",
        card={"id": id, "key": key, "formula": wording, "parameters": {"borderline": key}, "prompts": {}},
        formula=formula,
    )
    return replace(found, **changes)


def claims(native: Mapping[str, float], words: Mapping[str, float]) -> Formula:
    return Formula(formulas.ANSWER_CLAIMS, native, words)


RAGAS = subject("ragas/faithfulness", claims(formulas.ONE_OR_ZERO, formulas.SUPPORTED_ONLY), ANSWER_IS["supported"])
DEEPEVAL = subject(
    "deepeval/faithfulness",
    claims({**formulas.YES_ONLY, "borderline": 1.0}, formulas.NOT_CONTRADICTED),
    ANSWER_IS["not contradicted"],
)
PENALISED = subject(
    "deepeval/faithfulness.penalize_ambiguous_claims-True",
    claims({**formulas.YES_ONLY, "borderline": 0.0}, formulas.SUPPORTED_ONLY),
    ANSWER_IS["supported"],
)
TRULENS = subject(
    "trulens/groundedness.splitter-llm",
    claims(formulas.grades(3), formulas.SUPPORTED_ONLY),
    "mean over the claims of rating / 3",
)
RATED = subject("ragas/response_groundedness", None, "(rating by prompt 1 + rating by prompt 2) / 4", unit="answer")
FOUR = (RAGAS, DEEPEVAL, PENALISED, TRULENS)
SUBJECTS = (*FOUR, RATED)

SAYS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "ragas": {
        "supported": ("1", "supported"),
        "contradicted": ("0", "not_supported"),
        "absent": ("0", "not_supported"),
    },
    "deepeval": {
        "supported": ("yes", "supported"),
        "contradicted": ("no", "contradicted"),
        "absent": ("borderline", "absent"),
    },
    "trulens": {
        "supported": ("3", "supported"),
        "contradicted": ("0", "not_supported"),
        "absent": ("0", "not_supported"),
    },
}
"""What each framework says of a claim that is so."""

ROUTER = (
    ("The R2 is covered for 24 months.", "supported"),
    ("A failure after 14 months falls within the cover of the R2.", "supported"),
    ("A case needs the serial number and the receipt.", "supported"),
    ("A new unit is sent in 2 business days.", "contradicted"),
    ("Shipping is free of charge.", "absent"),
)

Judged = Sequence[tuple[str, str]]


def said(framework: str, judged: Judged) -> tuple[Verdict, ...]:
    return tuple(Verdict(text, *SAYS[framework][word], reason=f"{framework} finds it {word}") for text, word in judged)


def scored(subject: Subject, id: str, verdicts: tuple[Verdict, ...]) -> Score:
    """The score that the formula of a definition gives its own verdicts."""
    assert subject.formula
    value = subject.formula.combine([subject.formula.own(verdict) for verdict in verdicts])
    return Score(id, subject.key, "f", value, evidence=verdicts)


def audited(
    records: Mapping[str, Mapping[str, Judged]],
    subjects: Sequence[Subject] = FOUR,
    *,
    question: str = "Is it covered?",
    answer: str = "It is.",
    extra: Sequence[Score] = (),
    **more: Any,
) -> Audit:
    """records: id -> framework -> what it judged; a framework that is not there has no score on that record."""
    scores: dict[str, dict[str, Score]] = {subject.key: {} for subject in subjects}
    for id, by in records.items():
        for subject in subjects:
            if subject.formula and subject.framework in by:
                scores[subject.key][id] = scored(subject, id, said(subject.framework, by[subject.framework]))
    for score in extra:
        scores[score.definition][score.question_id] = score
    return audit(
        subjects,
        [Question(id, question) for id in records],
        [Record(id, asked_k=1, answer=answer) for id in records],
        scores,
        **{"source": "router.jsonl", "judge": JUDGE, **more},
    )


def router() -> Audit:
    """The router example: three frameworks and people on the same five claims, and a definition without verdicts."""
    return audited(
        {"router": dict.fromkeys(SAYS, ROUTER)},
        SUBJECTS,
        question="My R2 router died after 14 months. Is it still covered?",
        answer="Yes: the R2 is covered for 24 months. Shipping is free of charge.",
        extra=[Score("router", RATED.key, "f", 0.5)],
        people={formulas.ANSWER_CLAIMS: {"router": tuple(Verdict(text, word, word) for text, word in ROUTER)}},
        families=(FAMILY,),
        notes=("labels of people stand for the judge",),
    )


FAMILY = Family(
    "reciprocal rank",
    (
        Reading("labels/reciprocal_rank", "1 / rank of the first hit", 0.5, 1),
        Reading("labels/reciprocal_rank.hits-averaged", "mean over the relevant of 1 / rank", 0.375, 1),
    ),
    (Convention("trec_eval", "0.5.10", "recip_rank", "the first hit", "labels/reciprocal_rank", 0.5, "measured"),),
)


def many(records: int, systems: int = 3, seed: int = 1) -> Audit:
    """Random claims of several systems; DeepEval sometimes judges or cuts otherwise, and some scores are missing."""
    draw = random.Random(seed)
    by_id: dict[str, Mapping[str, Judged]] = {}
    extra = []
    for n in range(records):
        id = f"q{n:04}"
        base = [
            (f"Claim {place} of answer {n} says {draw.choice(('much', 'little', 'enough'))} on it.", _any(draw))
            for place in range(draw.randint(2, 8))
        ]
        other = [(text, _any(draw) if draw.random() < 0.1 else word) for text, word in base]
        if draw.random() < 0.3:
            other = [*other[1:], (f"A wholly different thing {n} is told here", _any(draw))]
        by_id[id] = {"ragas": base, "deepeval": other, "trulens": base}
        if draw.random() < 0.05:
            reason = f"{len(base) - 1} verdicts for {len(base)} claims"
            extra.append(Score(id, TRULENS.key, "f", None, "failed", reason, native_value=1.0))
        else:
            extra.append(Score(id, RATED.key, "f", draw.choice((0.0, 0.25, 0.5, 0.75, 1.0))))
    ids = {id: f"system-{place % systems}" for place, id in enumerate(by_id)}
    return audited(by_id, SUBJECTS, extra=extra, systems=ids)


def _any(draw: random.Random) -> str:
    return draw.choices(("supported", "contradicted", "absent"), (6, 2, 2))[0]


HOSTILE = (
    "</script><script>window.ran = 1</script>",
    "<img src=x onerror='window.ran = 1'> <!-- &amp; \"quotes\" `${window.ran = 1}` \\ | a | cell |\n\n# title",
    "\u202eturned round\u202c مرحبا بالعالم، 12 شخصا",
    "\x1b[2J\x1b]0;owned\x07 [red]markup[/red] \x00 {{ 7 * 7 }} {% raw %}",
    "a lone surrogate \udcff and a line\u2028separator\u0085or two, @octocat and #12",
    "https://example.com/x ![](https://example.com/y.png) <a href='https://example.com/z'>z</a>",
    "long" * 25_000,
)


def hostile() -> Audit:
    """Every text of records and judges would do harm where it were not shown as text."""
    judged = [(text, word) for text, word in zip(HOSTILE, ("supported", "absent", "contradicted") * 3, strict=False)]
    text = "\n".join(HOSTILE)
    return audited(
        {f"q{HOSTILE[0]}": dict.fromkeys(SAYS, judged), HOSTILE[1]: {}},
        SUBJECTS,
        question=text,
        answer=text,
        extra=[Score(HOSTILE[1], RATED.key, "f", None, "failed", text)],
        source=HOSTILE[1],
        systems={f"q{HOSTILE[0]}": HOSTILE[0], HOSTILE[1]: HOSTILE[2]},
        notes=HOSTILE[:2],
    )
