"""Whether the judge moved: a sample of graded records that is kept, and graded again before each judged run.

    frozen = freeze(result_folder, n=30)            # paribus judge freeze
    drift = graded_again(judge, scorers, progress)  # with judge.frozen: FILE

A moved judge changes every number, and the system did not. So what it says of the frozen records now stands beside what
it said then, and judged scores are subtracted only where both runs were graded on the same side of the move.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import zip_longest
from math import fsum, isclose
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from pydantic import ValidationError

from adapters.base import JudgedScorer, Scorer, Unavailable, UnknownDefinition, scorer
from adapters.bench import Bench
from adapters.flips import Flip, verdict_pairs
from adapters.judge import Judge, JudgeFault
from adapters.schema import JudgeCard, Question, Record, Score, fingerprint, from_json, to_json
from runner.errors import ConfigError
from runner.outputs import write_whole
from runner.progress import Progress
from runner.results import CONFIG, StoredRun, Usage, read_run, usage
from runner.scoring import Job, in_own_loop, measured

T = TypeVar("T")

FROZEN_VERSION = 1
"""Changes when a field of a frozen sample changes its meaning."""
MOVED = "the judge moved, not the system"
MARKS = 800
"""Flips that a standing tells apart, so that it fits into a tag of MLflow."""


@dataclass(frozen=True)
class Frozen:
    """Graded records, and all that is needed to grade them again.

    frozen: when, UTC. run: configuration fingerprint of the run that graded them; dataset: name, version and checksum
    of its test set. definitions: by key, as adapters.base.scorer takes them. scores: computed ones, without the judge,
    whose card stands here once.
    """

    schema_version: int
    frozen: str
    run: str
    dataset: Mapping[str, Any]
    judge: JudgeCard
    definitions: Mapping[str, str | dict[str, Any]]
    scores: tuple[Score, ...]
    questions: tuple[Question, ...]
    records: tuple[Record, ...]

    @property
    def fingerprint(self) -> str:
        """Hash of all of it."""
        return fingerprint(json.loads(to_json(self)))


@dataclass(frozen=True)
class Standing:
    """Where a judge stood when it graded a run, as far as two runs are compared by it.

    sample: fingerprint of the frozen sample. verdicts, flipped: how many were compared, and how many of them flipped;
    flips: hashes of these, the first MARKS of them. difference: see Drift.mean_difference.
    """

    sample: str
    moved: bool
    tolerance: float
    verdicts: int
    flipped: int
    difference: float
    flips: str

    def __str__(self) -> str:
        return f"{self.flipped} of {self.verdicts} verdicts flipped"


@dataclass(frozen=True)
class Drift:
    """A judge on a frozen sample, then and now.

    unmeasured: why there are no figures; None = there are. n: scores that are compared; failed: those that the judge
    could not give again. equal: the share of the n that are the same number. mean_difference: mean absolute difference
    in shares of the range, 0 to 1. verdicts: units with a verdict both times, or scores by the side of the middle of
    their range where no unit is common; verdicts_equal: the share of them that did not flip; flips: those that did.
    moved: more than `tolerance` of the verdicts flipped, or mean_difference is above it. left_out: definitions that
    mean something else now. usage: what it took; the run's own usage does not hold it.
    """

    sample: str
    frozen: str
    tolerance: float
    unmeasured: str | None = None
    n: int = 0
    failed: int = 0
    equal: float | None = None
    mean_difference: float | None = None
    verdicts: int = 0
    verdicts_equal: float | None = None
    moved: bool = False
    flips: tuple[Flip, ...] = ()
    left_out: tuple[str, ...] = ()
    usage: Usage | None = None

    @property
    def standing(self) -> Standing | None:
        """What a comparison needs to know; None where nothing was measured."""
        if self.unmeasured or self.mean_difference is None:
            return None
        places = {fingerprint([flip.definition, flip.question_id, flip.unit])[:6] for flip in self.flips}
        return Standing(
            self.sample,
            self.moved,
            self.tolerance,
            self.verdicts,
            len(self.flips),
            self.mean_difference,
            " ".join(sorted(places)[:MARKS]),
        )

    def __str__(self) -> str:
        of = f"the sample frozen on {self.frozen[:10]}"
        if self.unmeasured:
            return f"whether the judge moved is not known: {self.unmeasured} ({of})"
        told = (
            f"{len(self.flips)} of {self.verdicts} verdicts on {of} flipped, {round((self.equal or 0) * self.n)} of "
            f"{self.n} scores are equal, mean absolute difference {self.mean_difference or 0:.3f}"
        )
        if self.failed:
            told += f"; {self.failed} could not be given again"
        if self.left_out:
            told += f"; not compared, because they mean something else now: {', '.join(self.left_out)}"
        rule = f"judge.drift_tolerance={self.tolerance:g}"
        if self.moved:
            return f"{MOVED}: {told} (more than {rule} of the verdicts or of the range)"
        return f"the judge did not move: {told} (within {rule})"


def moved_between(before: Standing | None, after: Standing | None) -> str | None:
    """Why the judged scores of two runs may not be subtracted: the judge moved between them. None = they may, as far as
    is known; two runs that were graded after the same move are on one side of it."""
    if not any(standing and standing.moved for standing in (before, after)):
        return None
    if before is None or after is None or before.sample != after.sample:
        other = "the baseline" if after and after.moved else "this run"
        return f"{MOVED} ({after if other == 'the baseline' else before}), and {other} was not held to the same sample"
    apart = len({*before.flips.split()} ^ {*after.flips.split()}) / max(after.verdicts, 1)
    tolerance = min(before.tolerance, after.tolerance)
    if apart <= tolerance and abs(before.difference - after.difference) <= tolerance:
        return None
    return (
        f"{MOVED}: on the frozen sample {after}, for the baseline {before}; mean absolute difference "
        f"{after.difference:.3f}, for the baseline {before.difference:.3f}"
    )


def freeze(folder: Path, n: int = 30, seed: int = 0) -> Frozen:
    """A sample of the records of a result folder, with their judged scores.

    n: how many records. They are drawn in turn from the thirds of the range of each definition, so that low scores are
    in it too where most are high; each comes with all its judged scores. Flaky ones stay out: they flip by themselves.
    Raises ConfigError where the folder is none, or holds no judged score.
    """
    if n < 1:
        raise ConfigError(f"--n={n} must be at least 1")
    run = read_run(folder)
    summary, specs = run.summary, _specs(run)
    found = [score for by_question in run.scores.values() for score in by_question.values()]
    scores = [s for s in found if s.judge and s.value is not None and not s.flaky]
    cards = {s.judge.fingerprint: s.judge for s in scores if s.judge}
    if len(cards) != 1:
        held = "no score that a judge gave" if not cards else f"scores of {len(cards)} judges"
        raise ConfigError(f"{folder} holds {held}; name the result folder of a judged run")
    (card,) = cards.values()
    ranges = {key: tuple(definition["range"]) for key, definition in summary["definitions"].items()}
    chosen = _drawn(scores, ranges, n, seed)
    kept = tuple(replace(score, judge=None) for score in scores if score.question_id in chosen)
    return Frozen(
        schema_version=FROZEN_VERSION,
        frozen=datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        run=summary["config_fingerprint"],
        dataset={key: summary["dataset"].get(key) for key in ("name", "version", "checksum")},
        judge=card,
        definitions={key: specs[key] for key in dict.fromkeys(score.definition for score in kept)},
        scores=kept,
        questions=tuple(question for name, question in run.questions.items() if name in chosen),
        records=tuple(record for name, record in run.records.items() if name in chosen),
    )


def _drawn(scores: Sequence[Score], ranges: Mapping[str, tuple[float, float]], n: int, seed: int) -> set[str]:
    strata: dict[tuple[str, int], list[str]] = {}
    for score in sorted(scores, key=lambda score: (score.definition, score.question_id)):
        low, high = ranges[score.definition]
        third = min(int(3 * ((score.value or 0.0) - low) / (high - low)), 2)
        strata.setdefault((score.definition, third), []).append(score.question_id)
    order = Random(seed)
    for ids in strata.values():
        order.shuffle(ids)
    turns = zip_longest(*(strata[place] for place in sorted(strata)))
    return set(list(dict.fromkeys(id for turn in turns for id in turn if id is not None))[:n])


def _specs(run: StoredRun) -> dict[str, str | dict[str, Any]]:
    try:
        return {scorer(spec).key: spec for spec in run.config["metrics"]["definitions"]}
    except UnknownDefinition as error:
        raise ConfigError(f"{run.folder / CONFIG}: {error}") from None
    except (KeyError, TypeError):
        raise ConfigError(f"{run.folder / CONFIG} names no definitions; make the run again") from None


def save(frozen: Frozen, path: Path) -> None:
    """Write a frozen sample, one field a line. Raises ConfigError where a file is there already, because it is what
    later runs are held to, and StoreError."""
    if path.is_file():
        raise ConfigError(f"{path} is there already, and runs may be held to it; remove it or give --to")
    write_whole(path, json.dumps(json.loads(to_json(frozen)), ensure_ascii=False, indent=1) + "\n")


def load(path: Path) -> Frozen:
    """Read a frozen sample. Raises ConfigError naming the file and what is wrong with it."""
    text = _text(path)
    frozen = _valid(Frozen, text, f"judge.frozen: {path} is no file of `paribus judge freeze`")
    if frozen.schema_version != FROZEN_VERSION:
        told = f"has schema_version {frozen.schema_version}, and {FROZEN_VERSION} can be read"
        raise ConfigError(f"judge.frozen: {path} {told}; freeze it anew")
    known = {q.id for q in frozen.questions} & {r.question_id for r in frozen.records}
    if lost := [score.question_id for score in frozen.scores if score.question_id not in known]:
        raise ConfigError(f"judge.frozen: {path} has a score of {lost[0]}, and not its question and record")
    if empty := [score.question_id for score in frozen.scores if score.value is None]:
        raise ConfigError(f"judge.frozen: {path} has a score of {empty[0]} without a value; freeze it anew")
    for what, names in (
        ("question", [question.id for question in frozen.questions]),
        ("record", [record.question_id for record in frozen.records]),
        ("score", [f"{score.question_id} by {score.definition}" for score in frozen.scores]),
    ):
        if twice := [name for name, count in Counter(names).items() if count > 1]:
            raise ConfigError(f"judge.frozen: {path} has the {what} of {twice[0]} twice; keep one")
    return frozen


def graded_again(judge: Judge, scorers: Sequence[Scorer | JudgedScorer], progress: Progress | None = None) -> Drift:
    """What `judge` says now of the sample that `judge.frozen` names, as far as `scorers` ask the same.

    Kept replies are neither used nor changed, and nothing is recorded: a run's own scores do not hang on this. Raises
    ConfigError for a file that cannot be used.
    """
    assert judge.frozen
    frozen = load(Path(judge.frozen))
    drift = Drift(frozen.fingerprint, frozen.frozen, judge.drift_tolerance)
    asked = {each.key: each for each in scorers if isinstance(each, JudgedScorer) and _prepared(each)}
    changed = {s.definition for s in frozen.scores if s.definition in asked and not _same(s, asked[s.definition])}
    befores = [score for score in frozen.scores if score.definition in asked.keys() - changed]
    drift = replace(drift, left_out=tuple(sorted(changed)))
    if not befores:
        return replace(drift, unmeasured="none of the frozen definitions is asked here as it was then")
    for score in befores:
        low, high = asked[score.definition].value_range
        if score.value is None or not low <= score.value <= high:
            told = f"has {score.value} as the {score.definition} of {score.question_id}, expected {low:g} to {high:g}"
            raise ConfigError(f"judge.frozen: {judge.frozen} {told}; freeze it anew")
    questions = {question.id: question for question in frozen.questions}
    records = {record.question_id: record for record in frozen.records}
    jobs = [(asked[s.definition], questions[s.question_id], records[s.question_id]) for s in befores]
    try:
        found = in_own_loop(_measured(judge.anew(), frozen.judge, jobs, progress or Progress()))
    except JudgeFault as fault:
        return replace(drift, unmeasured=str(fault))
    if isinstance(found, JudgeCard):
        now, then = _named(found), _named(frozen.judge)
        return replace(drift, unmeasured=f"another judge than the one that was frozen (now {now}; then {then})")
    return _compared(drift, asked, befores, found)


async def _measured(
    judge: Judge, frozen: JudgeCard, jobs: Sequence[Job], progress: Progress
) -> list[Score] | JudgeCard:
    """The scores, or the card of the judge where it is not the one that was frozen."""
    async with Bench(judge) as bench:
        if bench.card.fingerprint != frozen.fingerprint:
            return bench.card
        return await measured(jobs, bench, progress, "drift")


def _compared(
    drift: Drift, asked: Mapping[str, JudgedScorer], befores: Sequence[Score], afters: Sequence[Score]
) -> Drift:
    flips: list[Flip] = []
    differences: list[float] = []
    verdicts = equal = 0
    pairs = [(one, other) for one, other in zip(befores, afters, strict=True) if other.status != "failed"]
    drift = replace(drift, n=len(pairs), failed=len(afters) - len(pairs), usage=usage(afters))
    if not pairs:
        return replace(drift, unmeasured=f"the judge gave no score again; the first: {afters[0].reason}")
    for before, after in pairs:
        low, high = asked[before.definition].value_range
        if before.value is not None and after.value is not None:
            equal += isclose(before.value, after.value, rel_tol=0.0, abs_tol=1e-9)
            differences.append(abs(after.value - before.value) / (high - low))
        for unit, then, now in verdict_pairs(before, after, (low + high) / 2):
            verdicts += 1
            if then != now:
                flips.append(Flip(before.definition, before.question_id, unit, then, now))
    difference = fsum(differences) / len(differences) if differences else 0.0
    return replace(
        drift,
        equal=equal / len(pairs),
        mean_difference=difference,
        verdicts=verdicts,
        verdicts_equal=1 - len(flips) / verdicts,
        moved=len(flips) > drift.tolerance * verdicts or difference > drift.tolerance,
        flips=tuple(flips),
    )


def _prepared(each: JudgedScorer) -> bool:
    try:
        each.prepare()
    except Unavailable:  # the run says so
        return False
    return True


def _same(score: Score, each: JudgedScorer) -> bool:
    return score.fingerprint == each.definition.fingerprint


def _named(card: JudgeCard) -> str:
    return " ".join(filter(None, (card.provider, card.model, card.revision, card.fingerprint)))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is no text in UTF-8") from None


def _valid(kind: type[T], text: str, told: str) -> T:
    try:
        return from_json(kind, text)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        place = ".".join(map(str, fault["loc"]))
        raise ConfigError(": ".join(filter(None, (told, place, fault["msg"])))) from None
