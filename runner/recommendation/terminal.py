"""The recommendation below the table of a sweep, at most 100 columns wide."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from runner import phrases
from runner.console import RUN_COLUMN, WIDTH, note, print_paragraphs, print_table, print_text, short, table_of
from runner.recommendation import wording
from runner.recommendation.findings import Considered, Recommendation


def show(found: Recommendation) -> None:
    """Print the decisions with their reasons, what answering costs, and the sweeps to run next."""
    for decision, members in wording.grouped(found).items():
        if decision == "cannot tell":
            print_paragraphs([_undecided(found, members)])
        else:
            print_paragraphs(f"{wording.TITLES[decision]} {each.name}: {each.why}." for each in members)
    for line in wording.DECISIONS:
        note(line)
    _show_costs(found)
    for text in found.notes:
        note(f"note: {text}")
    if found.next:
        print_text("Next:")
    for place, proposal in enumerate(found.next, 1):
        print_paragraphs([f"{place}. {proposal.why}."])
        print_text(_pasted(proposal.command))


def _pasted(command: str) -> str:
    """A command on lines of at most WIDTH, that a shell takes for one when they are pasted; one with escapes stays
    whole."""
    if "$'" in command:
        return f"     {command}"
    lines = ["    "]
    for word in map(shlex.quote, shlex.split(command)):
        if len(lines[-1]) + len(word) + 3 > WIDTH and lines[-1].strip():
            lines.append("       ")
        lines[-1] += f" {word}"
    return " \\\n".join(lines)


def _undecided(found: Recommendation, members: Sequence[Considered]) -> str:
    told = f"Cannot tell with {phrases.count(found.questions, 'question')}: {', '.join(each.name for each in members)}"
    best = wording.nearest(members, found.decisive) or members[0]
    return f"{told}. {best.name}: {best.why}." if len(members) > 1 else f"{told}: {best.why}."


def _show_costs(found: Recommendation) -> None:
    runs = [each for each in found.runs if each.cost]
    if not runs:
        return
    wanted = [name for name in wording.COSTS if name != "p50" and any(getattr(each.cost, name) for each in runs)]
    heads = {"dollars": "$ / 1,000", "tokens": "tokens", "prompt_characters": "prompt,\nchars"}
    table = table_of("run", "", "p50", "p95", *(heads[name] for name in wanted), "front", title="What answering costs")
    for each in runs:
        if each.cost:
            table.add_row(
                short(phrases.shortened(each.label, RUN_COLUMN)),
                each.decision or "",
                wording.seconds(each.cost.p50),
                wording.seconds(each.cost.p95),
                *(wording.price(each.cost, name) for name in wanted),
                "front" if each.front else "",
            )
    print_table(table)
    note(wording.LATENCY)
    if told := wording.front(found):
        print_paragraphs([told])
