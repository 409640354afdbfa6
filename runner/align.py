"""A judge beside people: labels of people from a file, the judge's scores on the same answers, and how far they agree.

The file of labels is read by runner.human_labels; the statistics are runner.agreement's.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from adapters import asks
from adapters.judges.labels import JudgedClaim
from adapters.schema import Chunk, JudgeCard, Question, Ranked, Record, Score, Verdict, from_json
from runner import agreement
from runner.agreement import Confusion, CorrectedMean, Figure, Threshold
from runner.errors import ConfigError, DataError
from runner.human_labels import Label, read_labels
from runner.outputs import write_whole
from runner.results import read_run

if TYPE_CHECKING:
    from adapters.base import JudgedScorer
    from runner.drift import Drift

FEW = 50
"""Labels under which a report warns: the interval of a kappa of 0.5 is then some 0.25 wide on either side."""
MIDDLE = 0.5
"""The threshold, as a share of a definition's range, where none can be chosen on tune lines."""
OVERRIDES = ("judge", "tracking", "metrics", "hydra")
ALIGNMENT, DISAGREEMENTS = "alignment.json", "disagreements.md"


@dataclass(frozen=True, slots=True)
class Pair:
    """One answer with people's word and the judge's. value: the definition's own; judge: the same as a share of its
    range, 1 = best."""

    label: Label
    score: Score
    value: float
    judge: float


@dataclass(frozen=True, slots=True)
class Disagreement:
    """An answer of which people and the judge say different things. value: the definition's own."""

    id: str
    question: str
    answer: str
    contexts: tuple[str, ...]
    people_say: str
    judge_says: str
    people: float
    value: float
    evidence: tuple[Verdict, ...]
    claims: tuple[JudgedClaim, ...] | None
    who: str | None


@dataclass(frozen=True, slots=True)
class ClaimAgreement:
    """Claims that people and the judge cut alike. matched of `of` claims of people; words: pairs of words, people's
    first, with their counts; rates: supported against the rest, intervals as if claims of one answer were unrelated."""

    matched: int
    of: int
    words: Mapping[str, int]
    rates: Mapping[str, Figure]


@dataclass(frozen=True)
class Alignment:
    """One definition beside people.

    lines: what the figures are over: "held_out" after a threshold was chosen on tune, otherwise "all". n, failed,
    not_applicable: those lines by status. supported_share: how many of the n people call supported. threshold: the
    definition's own value from which on (down to which, where lower is better) its word is "supported"; chosen: how it
    was chosen on tune; None = it is the middle of the range, and `why` says why.
    """

    definition: str
    fingerprint: str
    lines: Literal["held_out", "all"]
    n: int
    failed: int
    not_applicable: int
    supported_share: float | None
    threshold: float
    direction: Literal["higher", "lower"]
    chosen: Threshold | None
    why: str | None
    confusion: Confusion
    figures: Mapping[str, Figure]
    claims: ClaimAgreement | None
    disagreements: tuple[Disagreement, ...]
    first_failure: str | None
    corrected: CorrectedMean | None = None


@dataclass(frozen=True)
class Report:
    """All that `paribus judge align` found. labels: usable lines by split; run: the result folder that was read; drift:
    the judge on its frozen sample, None where it has none."""

    labels: Mapping[str, int]
    judge: JudgeCard | None
    supported_from: float
    alignments: tuple[Alignment, ...]
    run: str | None = None
    drift: Drift | None = None
    notes: tuple[str, ...] = field(default=())

    @property
    def measured(self) -> bool:
        """Whether any definition has a value on any line."""
        return any(found.n for found in self.alignments)


@dataclass(frozen=True)
class _Judged:
    """A definition with the judge's scores by label id; everything: its values on a whole run, by question id."""

    key: str
    fingerprint: str
    asks: str
    range: tuple[float, float]
    direction: Literal["higher", "lower"]
    scores: Mapping[str, Score]
    everything: Mapping[str, float] | None = None

    def share(self, value: float) -> float:
        """A value of the definition as a share of its range, 1 = best; `native` turns it back."""
        low, high = self.range
        share = (value - low) / (high - low)
        return share if self.direction == "higher" else 1 - share

    def native(self, share: float) -> float:
        low, high = self.range
        return low + (share if self.direction == "higher" else 1 - share) * (high - low)


def is_override(word: str) -> bool:
    """Whether a word of the command line is meant for Hydra and not a file or a parameter of a definition."""
    head = word.lstrip("+~").partition("=")[0].partition(".")[0].partition("/")[0]
    return word.startswith("--config-dir") or ("=" in word and head in OVERRIDES)


def align(
    path: Path,
    overrides: Sequence[str] = (),
    *,
    definitions: Sequence[str] = (),
    run: Path | None = None,
    supported_from: float = 0.5,
    recording: Path | None = None,
) -> Report:
    """Compare a judge with the labels of people in `path`.

    overrides: Hydra's, which choose the judge. definitions: ids, each followed by its parameters (`k=3`); empty = the
    judged ones of metrics=faithfulness. With judge.frozen the frozen sample is graded first, as a run does, because
    agreement that was measured says nothing of a judge that moved. run: a result folder whose scores are taken instead;
    nothing is asked then, and labels belong to the questions of their ids. recording: where the replies of a judge that
    costs money or minutes are written down. Raises ParibusError for what a person can mend.
    """
    if not 0 < supported_from <= 1:
        raise ConfigError(f"--supported-from {supported_from:g} must be above 0 and at most 1")
    labels = read_labels(path)
    notes: list[str] = []
    if len(labels) < FEW:
        notes.append(
            f"only {len(labels)} labels: with fewer than {FEW} the intervals are too wide to tell judges apart"
        )
    if run is not None:
        if overrides:
            raise ConfigError(f"{overrides[0]}: with --run the judge is that of the run; leave it out")
        labels, judge, drift, judged = _from_run(labels, run, definitions, notes)
    else:
        judge, drift, judged = _from_judge(labels, overrides, definitions, notes, recording)
    if drift:
        notes.insert(0, str(drift))
    return Report(
        labels=dict(Counter(label.split for label in labels)),
        judge=judge,
        supported_from=supported_from,
        alignments=tuple(_aligned(labels, found, supported_from, notes) for found in judged),
        run=str(run) if run else None,
        drift=drift,
        notes=tuple(notes),
    )


# The judge's scores.


def _from_judge(
    labels: Sequence[Label],
    overrides: Sequence[str],
    definitions: Sequence[str],
    notes: list[str],
    recording: Path | None,
) -> tuple[JudgeCard, Drift | None, list[_Judged]]:
    from adapters.judge import Judge
    from runner import console
    from runner.app import composed
    from runner.component import build
    from runner.config import usable_judge
    from runner.drift import graded_again
    from runner.scoring import score, warnings

    plain = composed(["metrics=faithfulness", *overrides])
    judge = usable_judge(build(plain["judge"], Judge, "judge"))  # type: ignore[type-abstract]
    scorers = _scorers(_named(definitions) or plain["metrics"]["definitions"], labels, bool(definitions), notes)
    questions = [Question(label.id, label.question, label.reference) for label in labels]
    records = [finished(label.id, label.answer, passages(label.id, label.contexts)) for label in labels]
    drift = graded_again(judge, scorers) if judge.frozen else None
    scores = score(scorers, questions, records, judge, recording=recording, tell=console.note)
    if judge.spent:
        notes.append(f"judge.{judge.spent}: the scores that are missing count as failed")
    notes += warnings(judge, scorers)
    by_key: dict[str, dict[str, Score]] = {}
    for each in scores:
        by_key.setdefault(each.definition, {})[each.question_id] = each
    card = next((each.judge for each in scores if each.judge), judge.card)
    return (
        card,
        drift,
        [
            _Judged(
                scorer.key,
                scorer.definition.fingerprint,
                scorer.asks,
                scorer.value_range,
                scorer.direction,
                by_key[scorer.key],
            )
            for scorer in scorers
        ],
    )


def _named(words: Sequence[str]) -> list[dict[str, Any]]:
    from runner.definitions import specs

    return specs(words, sum("=" not in word for word in words)) if words else []


def _scorers(
    chosen: Sequence[str | dict[str, Any]], labels: Sequence[Label], named: bool, notes: list[str]
) -> list[JudgedScorer]:
    """The judged definitions among `chosen` of which the labels speak. Raises ConfigError where one that was named is
    not, or none is left."""
    from adapters.base import JudgedScorer, UnknownDefinition, scorer

    claims_only = all(label.claims is not None for label in labels)
    found: list[JudgedScorer] = []
    for spec in chosen:
        try:
            built = scorer(spec)
        except UnknownDefinition as error:
            raise ConfigError(str(error)) from error
        unfit = None
        if not isinstance(built, JudgedScorer):
            unfit = "asks no judge"
        elif claims_only and built.asks != asks.SUPPORTED:
            unfit = f"asks {built.asks!r}, and the labels say which claims the context supports; it needs scores"
        if unfit is None:
            assert isinstance(built, JudgedScorer)
            found.append(built)
        elif named:
            raise ConfigError(f"{built.key} {unfit}")
        else:
            notes.append(f"left out: {built.key} {unfit}")
    if not found:
        raise ConfigError("no judged definition is left; name some with --definitions")
    keys = Counter(built.key for built in found)
    if twice := [key for key, count in keys.items() if count > 1]:
        raise ConfigError(f"{twice[0]} is named twice")
    return found


def passages(id: str, texts: Sequence[str]) -> tuple[Chunk, ...]:
    """Contexts of which nothing but the texts is known: each is a document of its own."""
    return tuple(Chunk(f"{id}, context {place}", 0, len(text), text) for place, text in enumerate(texts, 1))


def finished(id: str, answer: str | None, chunks: Sequence[Chunk]) -> Record:
    """The record of an answer of which no more is known than the chunks that its author saw, best first."""
    ranked = tuple(Ranked(chunk, 1 / rank, rank) for rank, chunk in enumerate(chunks, 1))
    return Record(id, asked_k=len(chunks), retrieved=ranked, reranked=ranked, context=tuple(chunks), answer=answer)


def _from_run(
    labels: Sequence[Label], folder: Path, definitions: Sequence[str], notes: list[str]
) -> tuple[list[Label], JudgeCard | None, Drift | None, list[_Judged]]:
    """The labels of questions of the run, its judge with its drift, and its scores."""
    from runner.drift import Drift

    run = read_run(folder)
    unknown = [label for label in labels if label.id not in run.records]
    other = [label for label in labels if label not in unknown and not _same_answer(label, run.records[label.id])]
    kept = [label for label in labels if label not in unknown and label not in other]
    for group, why in ((unknown, "are of questions that the run does not have"), (other, "are of another answer")):
        if group:
            notes.append(f"{len(group)} of {len(labels)} labels {why}, and do not count; the first: {group[0].line}")
    if not kept:
        raise DataError(f"no label is of an answer of {folder}: {notes[-1]}")
    keys = run.judged()
    wanted = list(definitions) or keys
    if absent := [key for key in wanted if key not in keys]:
        raise ConfigError(f"{absent[0]} is no judged definition of {folder}; they are {', '.join(keys) or 'none'}")
    if not wanted:
        raise ConfigError(f"{folder} has no judged definition; make a run with metrics=faithfulness")
    judged = [
        _Judged(
            key,
            card["fingerprint"],
            card["asks"],
            tuple(card["range"]),
            card["direction"],
            {label.id: run.scores[key][label.id] for label in kept},
            {name: score.value for name, score in run.scores[key].items() if score.value is not None},
        )
        for key, card in run.summary["definitions"].items()
        if key in wanted
    ]
    if not definitions and all(label.claims is not None for label in kept):
        for found in judged:
            if found.asks != asks.SUPPORTED:
                notes.append(f"left out: {found.key} asks {found.asks!r}, which the labels do not")
        judged = [found for found in judged if found.asks == asks.SUPPORTED]
    judge, drift = run.summary["judge"], run.summary.get("drift")
    return (
        kept,
        JudgeCard(**judge) if judge else None,
        from_json(Drift, json.dumps(drift)) if drift else None,
        judged,
    )


def _same_answer(label: Label, record: Record) -> bool:
    return label.answer.split() == (record.answer or "").split()


# Agreement.


def _aligned(labels: Sequence[Label], judged: _Judged, supported_from: float, notes: list[str]) -> Alignment:
    pairs = [
        Pair(label, score, score.value, judged.share(score.value))
        for label in labels
        if (score := judged.scores[label.id]).value is not None
    ]
    tune = [pair for pair in pairs if pair.label.split == "tune"]
    chosen, why = None, None
    if not tune or len(tune) == len(pairs):
        absent = "held_out" if tune else "tune"
        why = f"a threshold is chosen on lines of split tune and reported on held_out, and no {absent} line has a score"
    else:
        chosen = agreement.best_threshold(
            [pair.label.supported(supported_from) for pair in tune], [pair.judge for pair in tune]
        )
        if chosen is None:
            why = "people, or the judge, say the same of every tune line, so that no threshold can be chosen"
    held_out = bool(tune) and len(tune) < len(pairs)
    lines = [label for label in labels if not held_out or label.split == "held_out"]
    reported = [pair for pair in pairs if not held_out or pair.label.split == "held_out"]
    threshold = chosen.value if chosen else MIDDLE
    people = [pair.label.supported(supported_from) for pair in reported]
    said = [pair.judge >= threshold for pair in reported]
    status = Counter(judged.scores[label.id].status for label in lines)
    failures = [score for label in lines if (score := judged.scores[label.id]).status == "failed"]
    values = [pair.label.value for pair in reported]
    return Alignment(
        definition=judged.key,
        fingerprint=judged.fingerprint,
        lines="held_out" if held_out else "all",
        n=len(reported),
        failed=status["failed"],
        not_applicable=status["not_applicable"],
        supported_share=sum(people) / len(people) if people else None,
        threshold=judged.native(threshold),
        direction=judged.direction,
        chosen=_native(chosen, judged),
        why=why,
        confusion=agreement.confusion(people, said),
        figures={
            **agreement.rates(people, said),
            **agreement.correlations(values, [pair.judge for pair in reported]),
        },
        claims=_claim_agreement(reported),
        disagreements=_disagreements(reported, people, said),
        first_failure=f"{failures[0].question_id}: {failures[0].reason}" if failures else None,
        corrected=_corrected(pairs, judged, notes),
    )


def _native(chosen: Threshold | None, judged: _Judged) -> Threshold | None:
    if chosen is None:
        return None
    tied = tuple(judged.native(each) for each in chosen.tied)
    return Threshold(judged.native(chosen.value), chosen.balanced_accuracy, tied, chosen.n)


def _corrected(pairs: Sequence[Pair], judged: _Judged, notes: list[str]) -> CorrectedMean | None:
    if judged.everything is None:
        return None
    labelled = {pair.label.id for pair in pairs}
    try:
        return agreement.corrected_mean(
            [judged.native(pair.label.value) for pair in pairs],
            [pair.value for pair in pairs],
            [value for name, value in judged.everything.items() if name not in labelled],
        )
    except ValueError as error:
        notes.append(f"{judged.key}: {error}")
        return None


def _claim_agreement(pairs: Sequence[Pair]) -> ClaimAgreement | None:
    """Verdicts on the claims that people and the judge cut alike, white space and case aside. None without any."""
    words: Counter[str] = Counter()
    people, said = [], []
    of = 0
    for pair in pairs:
        by_judge = {_bare(verdict.unit): verdict.ours for verdict in pair.score.evidence if verdict.ours in OF_CLAIMS}
        for claim in pair.label.claims or ():
            of += 1
            if word := by_judge.get(_bare(claim.text)):
                words[f"{claim.verdict}: {word}"] += 1
                people.append(claim.verdict == "supported")
                said.append(word == "supported")
    if not people:
        return None
    return ClaimAgreement(len(people), of, dict(words), agreement.rates(people, said))


OF_CLAIMS = ("supported", "contradicted", "absent", "not_supported")


def _bare(text: str) -> str:
    return " ".join(text.casefold().split())


def _disagreements(pairs: Sequence[Pair], people: Sequence[bool], said: Sequence[bool]) -> tuple[Disagreement, ...]:
    """Those in which the words differ, the farthest apart first."""
    apart = [
        (pair, person, judge) for pair, person, judge in zip(pairs, people, said, strict=True) if person is not judge
    ]
    apart.sort(key=lambda found: (-abs(found[0].label.value - found[0].judge), found[0].label.id))
    return tuple(
        Disagreement(
            id=pair.label.id,
            question=pair.label.question,
            answer=pair.label.answer,
            contexts=pair.label.contexts,
            people_say=_word(person),
            judge_says=_word(judge),
            people=pair.label.value,
            value=pair.value,
            evidence=pair.score.evidence,
            claims=pair.label.claims,
            who=pair.label.who,
        )
        for pair, person, judge in apart
    )


def _word(supported: bool) -> str:
    return "supported" if supported else "unsupported"


# What is written.


def as_data(report: Report) -> dict[str, Any]:
    """The report, ready for JSON."""
    data = asdict(report)
    for found, plain in zip(report.alignments, data["alignments"], strict=True):
        for plainly, disagreement in zip(plain["disagreements"], found.disagreements, strict=True):
            plainly["claims"] = [claim.model_dump(exclude_none=True) for claim in disagreement.claims or ()]
    return data


def write(report: Report, folder: Path) -> None:
    """Write alignment.json, and disagreements.md for people, into `folder`. Raises StoreError."""
    text = json.dumps(as_data(report), ensure_ascii=False, indent=1, allow_nan=False)
    write_whole(folder / ALIGNMENT, text + "\n")
    write_whole(folder / DISAGREEMENTS, _page(report))


def _page(report: Report) -> str:
    lines = ["# Where the judge and people disagree", ""]
    if report.judge:
        lines += [f"Judge: {report.judge.provider} {_one_line(report.judge.model)} ({report.judge.fingerprint})", ""]
    for found in report.alignments:
        lines += [
            f"## {found.definition}",
            "",
            f"{len(found.disagreements)} of {found.n}, the farthest apart first.",
            "",
        ]
        for each in found.disagreements:
            by = f" ({_one_line(each.who)})" if each.who else ""
            lines += [
                f"### {_one_line(each.id)}",
                "",
                f"- people{by}: {each.people_say}, {each.people:.2f}",
                f"- judge: {each.judge_says}, {each.value:.2f}",
                f"- question: {_one_line(each.question)}",
                f"- answer: {_one_line(each.answer)}",
                *(f"- people on a claim: {claim.verdict}: {_one_line(claim.text)}" for claim in each.claims or ()),
                *(f"- judge on a unit: {_verdict(verdict)}" for verdict in each.evidence),
                *(f"- context {rank}: {_one_line(text)}" for rank, text in enumerate(each.contexts, 1)),
                "",
            ]
    return "\n".join(lines)


def _verdict(verdict: Verdict) -> str:
    native = "" if verdict.native == verdict.ours else f" ({_one_line(verdict.native)})"
    reason = f": {_one_line(verdict.reason)}" if verdict.reason else ""
    return f"{verdict.ours or 'no word of ours'}{native}: {_one_line(verdict.unit)}{reason}"


def _one_line(text: str, longest: int = 1_500) -> str:
    """Text of others on one line of Markdown, with what Markdown or a browser would act on made harmless."""
    plain = " ".join(text.split())
    cut = plain if len(plain) <= longest else f"{plain[: longest - 1]}…"
    return cut.replace("\\", "\\\\").replace("<", "\\<").replace("[", "\\[").replace("`", "\\`")
