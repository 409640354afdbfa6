"""A report in words: the page and the Markdown say the same with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

from runner import phrases
from runner.compare.findings import Row
from runner.compare.wording import TABLES, shown
from runner.diagnosis.findings import FaultName
from runner.recommendation.findings import Considered, Cost, Decision, Recommendation
from runner.recommendation.wording import COSTS, TITLES, grouped, price, seconds
from runner.report.findings import Faults, Report
from runner.results import Mean

SHORT: Mapping[str, str] = {
    "p50": "p50",
    "p95": "p95",
    "prompt_characters": "prompt, characters",
    "tokens": "tokens",
    "dollars": "$ per 1,000",
}
"""Fields of runner.recommendation.findings.Cost, in a narrow column."""
SIGN: Mapping[Decision, str] = {"keep": "✓", "trade-off": "±", "reject": "✗"}
"""What stands before a decision beside its colour."""
WITH_QUESTIONS: tuple[Decision | None, ...] = ("keep", "trade-off", "reject", None)
"""Decisions whose questions are shown; None: a run that is compared with another and no variant."""
NAMED = 4
"""Variants of one decision that the first sentence names."""
HOW = (
    "Delta: the mean over questions of variant minus baseline, over the questions with a value in both runs; its 95% "
    "interval is the percentile bootstrap over those questions, 2,000 resamples with a fixed seed.",
    "p: paired permutation test, exact McNemar for yes/no definitions; Holm: p adjusted for every variant in the "
    "definitions that decide, so that the chance of any false “better” or “worse” among them stays below 5%; p of the "
    "other definitions is adjusted over all of them.",
    "Better, worse: the interval excludes 0, Holm is below 0.05 and six questions changed. Everything else that "
    "changed is “cannot tell”.",
    "w/t/l: questions that got better, stayed, got worse; carry: the fewest that make up the delta; visible: the "
    "smallest true difference that this test set shows in four of five cases.",
    "Slices are not adjusted: * marks an interval that excludes 0 with six changed questions, which one of twenty does "
    "by chance.",
)
OF_COSTS = (
    "Costs are those of answering; judging is not in them. Seconds were measured when an answer was computed, on the "
    "machine that computed it, and not when it was read back."
)


def how(report: Report) -> tuple[str, ...]:
    """How the figures are computed."""
    return (OF_COSTS,) if report.kind == "run" else (*HOW, OF_COSTS)


def title(report: Report) -> str:
    """What the report is of."""
    named = report.recommendation.sweep
    return f"Sweep {named}" if report.kind == "sweep" else named


def headline(found: Recommendation) -> str:
    """The decisions of a sweep in a sentence or two."""
    told: list[str] = []
    counted: list[str] = []
    for decision, members in grouped(found).items():
        if decision in ("keep", "trade-off"):
            told.append(f"{TITLES[decision]}: {phrases.some([each.name for each in members], NAMED)}.")
        else:
            names = f" ({members[0].name})" if len(members) == 1 else ""
            counted.append(f"{decision if counted else TITLES[decision]} {len(members)}{names}")
    if not any(each.decision == "keep" for each in found.variants):
        told.insert(0, "Keep the baseline: no variant is shown to be better in one thing and worse in none.")
    rest = f"{', '.join(counted)}." if counted else ""
    return " ".join(filter(None, (*told, rest)))


def of_one(found: Recommendation) -> str:
    """The scores of a run by itself in a sentence."""
    means = [f"{shown(key)} {phrases.number(found.baseline.means.get(key))}" for key in found.decisive]
    return f"{phrases.listed(means)}." if means else "No definition was computed."


def called(report: Report, label: str) -> str:
    """The label of a run; a run that is not compared is no baseline."""
    return "this run" if report.kind == "run" else phrases.shortened(label)


def what(report: Report) -> str:
    """What was run on what, in a sentence or two."""
    variants = len(report.recommendation.variants)
    on = f"on {test_set(report)}"
    if report.kind == "run":
        return f"One run {on}."
    if report.kind == "comparison":
        return f"One run beside a baseline, {on}."
    changed = phrases.some(list(variables(report)), 8)
    if variants == 1:
        return f"A baseline and one variant with one setting changed ({changed}), {on}."
    return f"A baseline and {variants:,} variants, each with one setting changed ({changed}), {on}."


def variables(report: Report) -> dict[str, list[Considered]]:
    """The variants by what they change, in the order in which they ran."""
    found: dict[str, list[Considered]] = {}
    for run in report.recommendation.variants:
        if run.variable is not None:
            found.setdefault(run.variable, []).append(run)
    return found


def swept(report: Report) -> list[tuple[str, str, str]]:
    """Variable, what the baseline has, and what was tried."""
    return [
        (name, runs[0].from_value or "–", ", ".join(run.value or "–" for run in runs))
        for name, runs in variables(report).items()
    ]


def test_set(report: Report) -> str:
    """`107 questions of sample 1.0`."""
    card = report.dataset
    named = " ".join(str(card[name]) for name in ("name", "version") if card.get(name) is not None)
    return f"{phrases.count(report.recommendation.questions, 'question')} of {named or 'a test set without a name'}"


def test_set_card(report: Report) -> list[tuple[str, str]]:
    """What is known of the test set, by name."""
    card = report.dataset
    told: list[tuple[str, Any]] = [
        ("name", card.get("name")),
        ("version", card.get("version")),
        ("checksum", card.get("checksum")),
        ("questions", card.get("questions", report.recommendation.questions)),
        ("answerable", _of(card, "answerable", "unanswerable", "are to be declined")),
        ("labelled", _of(card, "labelled", "unlabelled", "have no label")),
        ("origin", _counts(card.get("origins"))),
        ("split", _counts(card.get("splits"))),
        ("slices", _counts(card.get("slices"))),
        ("labels by grade", _counts(card.get("spans_by_grade"))),
        ("documents", _documents(card)),
        ("left out", _skipped(card)),
        ("faults of records", "; ".join(map(str, (card.get("faults") or ())[:20])) or "none"),
    ]
    return [(name, phrases.field(value)) for name, value in told]


def _of(card: Mapping[str, Any], one: str, other: str, what: str) -> str | None:
    return None if card.get(one) is None else f"{card[one]:,}; {card.get(other) or 0:,} {what}"


def _counts(found: Mapping[str, int] | None) -> str | None:
    return ", ".join(f"{name}: {n:,}" for name, n in found.items()) if found else None


def _documents(card: Mapping[str, Any]) -> str | None:
    if card.get("documents") is None:
        return None
    blank = len(card.get("blank_documents") or ())
    told = f"{card['documents']:,} with {card.get('characters') or 0:,} characters"
    return f"{told}; {blank:,} are blank" if blank else told


def _skipped(card: Mapping[str, Any]) -> str | None:
    parts = [
        f"{skipped:,} of {counts['read']:,} {what}"
        for what in ("questions", "documents")
        if (counts := card.get(f"{what}_read")) and (skipped := counts.get("skipped"))
    ]
    return ", ".join(parts) or "nothing"


def judge(report: Report) -> str:
    """Which judge gave the scores, in a few words."""
    if report.judge is None:
        return "No judge was asked: every score is computed from labels and references."
    named = f"{report.judge.provider} {report.judge.model}".strip()
    asked = f"Judged definitions rest on the judge {named}."
    return (
        f"{asked} It says of itself: {' '.join(_sentence(told) for told in report.warnings)}"
        if report.warnings
        else asked
    )


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def lower(report: Report, key: str) -> bool:
    """Whether a lower value of a definition is better."""
    return (report.definitions.get(key) or {}).get("direction") == "lower"


def ordered(report: Report) -> list[Considered]:
    """The variants by decision, those to keep first."""
    place = {name: n for n, name in enumerate(TITLES)}
    return sorted(report.recommendation.variants, key=lambda run: place.get(run.decision or "keep", 0))


def tables(report: Report) -> dict[str, list[str]]:
    """The decisive definitions, those of retrieval and of generation apart, by title."""
    known = [key for key in report.recommendation.decisive if key in report.definitions]
    found = {title: [key for key in known if report.about[key] == which] for which, title in TABLES.items()}
    return {title: keys for title, keys in found.items() if keys}


def row(run: Considered, key: str) -> Row | None:
    """The comparison of one definition with the baseline."""
    return next((each for each in run.rows if each.definition == key), None)


def not_compared(run: Considered, key: str) -> str | None:
    """Why a definition is not subtracted."""
    return next(("; ".join(each.why) for each in run.not_compared if each.definition == key), None)


def over(report: Report, key: str) -> str:
    """`90 of 107`, the questions of the baseline that have a value."""
    mean = report.runs["baseline"].means.get(key)
    return "no question" if mean is None else f"{mean.n:,} of {mean.of:,}"


def cost(name: str, found: Cost | None) -> str:
    """One figure of a cost, a dash where it is unknown."""
    if found is None:
        return "–"
    if name in ("p50", "p95"):
        return seconds(getattr(found, name))
    return next(price(found, each) for each in COSTS if each == name)


def unknown_costs(report: Report) -> list[str]:
    """Why there is a dash among the costs, a sentence each."""
    reasons: dict[tuple[str, str], list[str]] = {}
    runs = report.recommendation.runs
    for run in runs:
        for name in SHORT:
            if run.cost is None:
                why = "no results" if run.label in report.errors else "no question has an answer"
                reasons.setdefault(("all costs", why), []).append(called(report, run.label))
                break
            if getattr(run.cost, name) is None:
                reasons.setdefault((SHORT[name], run.cost.unknown.get(name, "unknown")), []).append(run.name)
    return [
        f"{name} –: {why}{'' if len(labels) == len(runs) else f' ({phrases.some(labels, 3)})'}."
        for (name, why), labels in reasons.items()
    ]


def costs(found: Cost | None) -> list[tuple[str, str]]:
    """The figures of one run with what they are."""
    return [(column, cost(name, found)) for name, column in SHORT.items()]


def fault_names(report: Report) -> list[FaultName]:
    """The faults that some run has, in the order in which they are looked for."""
    return [name for name in get_args(FaultName) if any(found.counts.get(name) for found in report.faults.values())]


def fault_rows(found: Faults) -> list[tuple[FaultName, int, int | None, str]]:
    """Fault, questions, questions in the baseline, and the change with what came and went."""
    names = [name for name in get_args(FaultName) if name in found.counts or name in (found.before or {})]
    return [
        (
            name,
            found.counts.get(name, 0),
            None if found.before is None else found.before.get(name, 0),
            change(found, name),
        )
        for name in names
    ]


def change(found: Faults, name: FaultName) -> str:
    """`+2 (3 new, 1 gone)`, `=` where nothing changed, nothing without a baseline."""
    if found.before is None:
        return ""
    sides = ((found.new.get(name, 0), "new"), (found.gone.get(name, 0), "gone"))
    told = ", ".join(f"{n} {side}" for n, side in sides if n)
    return f"{net(found, name)}{f' ({told})' if told else ''}"


def net(found: Faults, name: FaultName) -> str:
    """`+2`, `=` where as many questions have the fault as in the baseline."""
    by = found.counts.get(name, 0) - (found.before or {}).get(name, 0)
    return phrases.signed(by, 0) if by else "="


def unanswered(report: Report) -> list[str]:
    """Runs with questions that got no answer."""
    return [
        f"{phrases.shortened(label)}: {phrases.count(run.unanswered, 'question')} without an answer"
        for label, run in report.runs.items()
        if run.unanswered
    ]


def mean(found: Mean | None) -> str:
    """`0.637 of 90`."""
    return "–" if found is None or found.value is None else f"{phrases.number(found.value)} of {found.n:,}"


def in_doubt(report: Report) -> list[tuple[str, str]]:
    """Drops of a ranking definition that unjudged chunks may explain: the variant, and the figures in a sentence."""
    found = []
    words = {run.label: {row.definition: row.word for row in run.rows} for run in report.recommendation.variants}
    for label, faults in report.faults.items():
        for each in faults.judged_only:
            if each.value_before is None or each.judged_only_before is None or each.value >= each.value_before:
                continue
            decisive = each.definition in report.recommendation.decisive
            if not decisive and words.get(label, {}).get(each.definition) != "worse":
                continue
            if each.judged_only - each.judged_only_before > (each.value - each.value_before) / 2:
                told = (
                    f"{shown(each.definition)} fell from {phrases.number(each.value_before)} to "
                    f"{phrases.number(each.value)}, but among labelled chunks alone it went from "
                    f"{phrases.number(each.judged_only_before)} to {phrases.number(each.judged_only)}"
                )
                found.append((label, f"{told} ({phrases.count(each.n, 'question')})"))
    return found


def to_label(report: Report) -> list[str]:
    """The runs whose chunks without a label are shown: those with a drop in doubt; a run alone."""
    if report.kind == "run":
        return ["baseline"] if report.faults and report.faults["baseline"].unjudged else []
    return list(dict.fromkeys(label for label, _ in in_doubt(report) if report.faults[label].unjudged))


def cannot(report: Report) -> list[str]:
    """What this report cannot say, a sentence each."""
    found = []
    recommended = report.recommendation
    if visible := _visible(report):
        found.append(f"A true difference smaller than about {visible} would mostly go unseen here, before Holm.")
    if any(run.decision == "cannot tell" for run in recommended.variants):
        found.append("“Cannot tell” is not “no difference”: more questions would narrow the interval.")
    if report.kind == "sweep" and len(recommended.variants) > 1:
        found.append(
            "Each variant changes one variable. What two of them do together was not run: sweep again from a baseline "
            "that has the one you keep."
        )
    found += [*_of_test_set(report), *_of_values(report)]
    reasons: dict[str, list[str]] = {}
    for run in recommended.variants:
        for each in run.not_compared:
            reasons.setdefault(f"{shown(each.definition)} is not compared: {'; '.join(each.why)}", []).append(run.name)
    found += [f"{why} ({phrases.some(labels, 4)})." for why, labels in reasons.items()]
    found += [f"{phrases.shortened(label)} has no results: {_sentence(why)}" for label, why in report.errors.items()]
    baseline = report.faults.get("baseline")
    needs: dict[str, list[str]] = {}
    for name, why in (baseline.missing if baseline else {}).items():
        needs.setdefault(why, []).append(name)
    for why, names in needs.items():
        found.append(f"Not looked for everywhere: {phrases.listed(names)}. Needed in {_sentence(why)}")
    return found


def _of_test_set(report: Report) -> Iterable[str]:
    splits: Mapping[str, int] = report.dataset.get("splits") or {}
    if report.kind == "sweep" and splits and not splits.get("held_out"):
        yield "All questions are for tuning: a choice made on them looks better than it is. Hold some out."
    elif report.kind == "sweep" and splits.get("tune"):
        yield (
            f"The decision is over all questions, {splits['tune']:,} for tuning and {splits['held_out']:,} held out; "
            "by slice they stand apart."
        )
    origins: Mapping[str, int] = report.dataset.get("origins") or {}
    if synthetic := origins.get("synthetic"):
        of = f"{synthetic:,} of {sum(origins.values()):,}" if origins.get("real") else "All"
        apart = " By slice they stand apart." if origins.get("real") else ""
        yield f"{of} questions are synthetic: a model wrote them, and real ones may differ.{apart}"
    if report.dataset.get("labelled") == 0:
        yield "No question has labels, so nothing is known of what retrieval missed."
    elif unlabelled := report.dataset.get("unlabelled"):
        yield f"{phrases.count(unlabelled, 'question has', 'questions have')} no labels and no score of retrieval."


def _of_values(report: Report) -> Iterable[str]:
    for key in report.recommendation.decisive:
        means = report.runs["baseline"].means.get(key)
        if means is None or not (means.failed or means.value is None):
            continue
        if means.value is None:
            told = f"{means.failed:,} failed, {means.not_applicable:,} not applicable"
            yield f"{shown(key)} has no value in the baseline: {told}."
        else:
            failed = phrases.count(means.failed, "question")
            yield f"{shown(key)} failed for {failed} of the baseline, which are not in its mean."


def _visible(report: Report) -> str:
    """`0.13 in recall, 0.05 in answer_f1`: the median over the variants."""
    from statistics import median

    told = []
    for key in report.recommendation.decisive:
        sizes = [
            each.visible
            for run in report.recommendation.variants
            if (each := row(run, key)) and each.visible is not None and each.changed
        ]
        if sizes:
            told.append(f"{phrases.number(median(sizes), 2)} in {shown(key)}")
    return phrases.listed(told)


def definition_card(card: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What a definition means, by name of the field."""
    low, high = card["range"]
    parameters: Mapping[str, Any] = card.get("parameters") or {}
    told: list[tuple[str, Any]] = [
        ("asks", card["asks"]),
        ("formula", card["formula"]),
        ("counts", card["unit"]),
        ("hit", card["hit"]),
        ("range", f"{low:g} to {high:g}, {card['direction']} is better"),
        ("aggregation", card.get("aggregation")),
        ("nothing to judge", card.get("nothing_to_judge")),
        (
            "k",
            parameters.get("k")
            if parameters.get("k") is not None
            else "all that was passed on"
            if "k" in parameters
            else None,
        ),
        ("parameters", ", ".join(f"{name} = {phrases.field(value)}" for name, value in parameters.items())),
        ("judge calls a record", card.get("calls")),
        ("framework", f"{card['framework']} {card['version']}"),
        ("implementation", card.get("implementation")),
        ("source", card.get("source")),
        ("fingerprint", card.get("fingerprint")),
        *(("hazard", hazard) for hazard in card.get("hazards") or ()),
    ]
    return [(name, phrases.field(value)) for name, value in told if value not in (None, "")]


def judge_card(report: Report) -> Sequence[tuple[str, str]]:
    """What is known of the judge, by name."""
    from runner.audit.wording import judge as card

    return card(report.judge) if report.judge else ()
