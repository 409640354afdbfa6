"""The report as Markdown that GitHub renders, for a pull request: the important first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from runner import phrases
from runner.compare import wording as compared
from runner.compare.markdown import change_text
from runner.markdown import escaped, fitted, table
from runner.recommendation.findings import Considered
from runner.recommendation.wording import LATENCY
from runner.report import wording
from runner.report.figures import Figure
from runner.report.findings import Report

QUESTIONS = 3
"""Questions that got worse, of each variant whose decision rests on scores."""
WHY = 600
"""Characters of a reason."""


def text(report: Report, figures: Sequence[Figure]) -> str:
    """The report in at most runner.markdown.LONGEST characters: what does not fit is left out, and said so."""
    parts: list[tuple[str | None, str]] = [(None, _top(report))]
    if report.kind == "sweep":
        parts.append(("the decisions", _decisions(report)))
        if report.recommendation.next:
            parts.append(("what to sweep next", _next(report)))
    for title, keys in wording.tables(report).items():
        parts.append((title, f"\n## {title}\n\n{_scores(report, keys)}"))
    parts.append(("what cannot be said", _listed("What cannot be said", map(_why, wording.cannot(report)))))
    parts.append(("the costs", _costs(report)))
    if report.faults:
        parts.append(("the faults", _faults(report)))
    doubts = [f"{escaped(phrases.shortened(label))}: {escaped(told, WHY)}" for label, told in wording.in_doubt(report)]
    if doubts:
        parts.append(("drops on chunks without a label", _listed("Drops that rest on chunks nobody labelled", doubts)))
    parts.append(("what was tried", _tried(report)))
    parts += [(f"questions of {run.name}", told) for run in wording.ordered(report) if (told := _worse(report, run))]
    parts.append(("slices", _slices(report)))
    parts.append(("the test set", f"\n## Test set\n\n{_pairs(wording.test_set_card(report))}"))
    if report.judge:
        parts.append(("the judge", f"\n## Judge\n\n{_pairs(wording.judge_card(report))}"))
    parts.append(("the definitions", _definitions(report)))
    parts.append(("the settings", f"\n## Settings\n\n{_pairs(report.settings.items())}"))
    parts.append(("the environment", f"\n## Environment\n\n{_pairs(report.environment.items())}"))
    return fitted([(name, part) for name, part in parts if part], _foot(report, figures), "report.html and report.json")


def _why(told: str) -> str:
    return escaped(told, WHY)


def _top(report: Report) -> str:
    lines = [
        f"# {escaped(wording.title(report))}",
        f"**{escaped(report.headline, 2_000)}**",
        escaped(wording.what(report), 1_000),
        escaped(wording.judge(report), 2_000),
        *([f"{escaped(report.drift, WHY)}."] if report.drift else []),
    ]
    return "\n\n".join(lines)


def _decisions(report: Report) -> str:
    rows = [
        (
            escaped(wording.called(report, run.label), 80),
            _decided(run),
            escaped(run.why or report.errors.get(run.label) or "", WHY),
        )
        for run in wording.ordered(report)
    ]
    return f"\n## Decisions\n\n{table(('variant', 'decision', 'why'), rows, texts=3)}"


def _decided(run: Considered) -> str:
    if run.decision is None:
        return ""
    return f"{wording.SIGN.get(run.decision, '')} **{run.decision}**".strip()


def _next(report: Report) -> str:
    lines = [f"{escaped(each.why, WHY)} `{_code(each.command)}`" for each in report.recommendation.next]
    return _listed("What to sweep next", lines)


def _code(command: str) -> str:
    """A command between backticks, which shows what it holds as it is."""
    return phrases.plain(command).replace("`", "'")


def _listed(title: str, lines: Iterable[str]) -> str:
    points = "\n".join(f"- {line}" for line in lines)
    return f"\n## {title}\n\n{points}" if points else ""


def _scores(report: Report, keys: Sequence[str]) -> str:
    head = ["run", *(f"{escaped(compared.shown(key))}{' ↓' if wording.lower(report, key) else ''}" for key in keys)]
    rows = [
        [escaped(wording.called(report, run.label), 80), *(_cell(run, key) for key in keys)]
        for run in report.recommendation.runs
    ]
    over = ", ".join(f"{escaped(compared.shown(key))} {wording.over(report, key)}" for key in keys)
    lower = " ↓: lower is better." if any(wording.lower(report, key) for key in keys) else ""
    where = "" if report.kind == "run" else " in the baseline"
    return f"{table(head, rows)}\n\nQuestions with a value{where}: {over}.{lower}"


def _cell(run: Considered, key: str) -> str:
    value = phrases.number(run.means.get(key))
    row = wording.row(run, key)
    if row is None:
        return value
    if not row.changed:
        return f"{value} ="
    word = f"**{row.word}**" if row.word in ("better", "worse") else row.word
    return f"{value}<br>{phrases.signed(row.delta)} {word}<br>{escaped(phrases.interval(row.low, row.high))}"


def _costs(report: Report) -> str:
    rows = [
        [
            escaped(wording.called(report, run.label), 80),
            "front" if run.front else "",
            *(told for _, told in wording.costs(run.cost)),
        ]
        for run in report.recommendation.runs
    ]
    reasons = [escaped(why, WHY) for why in wording.unknown_costs(report)]
    told = " ".join([escaped(LATENCY), *reasons])
    return f"\n## Cost\n\n{table(('run', '', *wording.SHORT.values()), rows, texts=2)}\n\n{told}"


def _faults(report: Report) -> str:
    names = wording.fault_names(report)
    if not names:
        return "\n## What goes wrong\n\nNo fault was found."
    rows = []
    for run in report.recommendation.runs:
        if found := report.faults.get(run.label):
            cells = (
                f"{found.counts.get(name, 0)} {wording.net(found, name) if run.label != 'baseline' else ''}".strip()
                for name in names
            )
            rows.append([escaped(wording.called(report, run.label), 80), *cells])
    levers = [
        f"- {name}: {', '.join(f'`{_code(lever)}`' for lever in tried)}"
        for name, tried in report.faults["baseline"].levers.items()
        if report.faults["baseline"].counts.get(name)
    ]
    tries = "\n\nTo try next, by fault:\n\n" + "\n".join(levers) if levers else ""
    return f"\n## What goes wrong\n\n{table(('run', *names), rows)}{tries}"


def _tried(report: Report) -> str:
    rows = [[escaped(each) for each in row] for row in wording.swept(report)]
    return f"\n## What was tried\n\n{table(('variable', 'baseline', 'variants'), rows, texts=3)}" if rows else ""


def _worse(report: Report, run: Considered) -> str:
    found = report.runs.get(run.label)
    if found is None or not found.worse or run.decision not in wording.WITH_QUESTIONS:
        return ""
    changes = "\n".join(change_text(change) for change in found.worse[:QUESTIONS])
    command = f"\n\nAll of them: `{_code(found.command)}`" if found.command else ""
    shown = min(QUESTIONS, len(found.worse))
    title = f"\n### {escaped(wording.called(report, run.label), 80)}: questions that got worse"
    return f"{title}\n\n<details><summary>{shown} of {found.worse_in_all:,}</summary>\n{changes}{command}\n\n</details>"


def _slices(report: Report) -> str:
    keys = [key for key in report.recommendation.decisive if key in report.definitions]
    rows = [
        [escaped(name, 80), *(wording.mean(means.get(key)) for key in keys)]
        for name, means in report.runs["baseline"].slice_means.items()
    ]
    head = ("slice", *(escaped(compared.shown(key)) for key in keys))
    return f"\n## By slice\n\n{table(head, rows)}" if rows and keys else ""


def _pairs(pairs: Iterable[tuple[str, object]]) -> str:
    return table(("", ""), [(escaped(name, 80), escaped(phrases.field(value), WHY)) for name, value in pairs], texts=2)


def _definitions(report: Report) -> str:
    rows = [
        (escaped(key), escaped(card["asks"]), escaped(card["formula"], WHY), escaped(card.get("fingerprint") or ""))
        for key, card in report.definitions.items()
    ]
    return f"\n## Definitions\n\n{table(('definition', 'asks', 'formula', 'fingerprint'), rows, texts=4)}"


def _foot(report: Report, figures: Sequence[Figure]) -> str:
    notes = [f"- {_why(note)}" for note in report.notes[:20]]
    drawn = f"Figures: {', '.join(f'charts/{escaped(figure.file)}' for figure in figures[:40])}." if figures else ""
    return "\n".join(["", *notes, "", *(f"{escaped(line, WHY)}  " for line in wording.how(report)), "", drawn, ""])
