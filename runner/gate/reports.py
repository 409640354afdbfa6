"""A verdict for a person, a job page, a program that reads JUnit, and machines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any
from xml.etree import ElementTree

from adapters.sentences import well_formed
from runner import console
from runner.gate.findings import RESULTS, Check, Verdict
from runner.markdown import escaped, fitted, table

WORD = {"error": "ERROR", "regression": "REGRESSION", "warning": "WARNING", "passed": "passed"}
NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
HEAD = ("definition", "rule", "baseline", "run", "worse by", "allowed", "questions", "result")


def lines(verdict: Verdict) -> Iterator[str]:
    """A line for each check that did not pass, the worst first. Definitions that fail for one reason share a line."""
    for result in RESULTS:
        same: dict[str, list[str]] = {}
        for check in verdict.of(result):
            same.setdefault(check.told, []).append(check.where)
        for told, where in same.items():
            yield f"{WORD[result]} {', '.join(where)}: {told}"


def show(verdict: Verdict) -> None:
    """Print the table or the JSON on stdout; what failed, notes and the outcome on stderr."""
    for line in lines(verdict):
        console.note(line)
    for text in verdict.notes:
        console.note(f"note: {text}")
    console.note(verdict.headline)
    if console.as_json():
        console.print_json(data(verdict))
        return
    grid = console.table_of(*HEAD[:-1], title=f"{verdict.candidate} against {verdict.baseline}")
    for check in verdict.checks:
        mark = "" if check.result == "passed" else f"{WORD[check.result]} "
        grid.add_row(*(console.short(cell) for cell in (f"{mark}{check.where}", *_cells(check))))
    console.print_table(grid)


def _cells(check: Check) -> tuple[str, ...]:
    figures = (check.baseline, check.candidate, check.loss, check.limit)
    return (check.rule, *("" if value is None else f"{value:.6g}" for value in figures), f"{check.n} of {check.of}")


def data(verdict: Verdict) -> dict[str, Any]:
    """All of it, as JSON has it."""
    return {
        "result": verdict.result,
        "exit_code": int(verdict.exit_code),
        "baseline": verdict.baseline,
        "run": verdict.candidate,
        "anyway": verdict.anyway,
        "checks": [asdict(check) for check in verdict.checks],
        "notes": list(verdict.notes),
    }


def markdown(verdict: Verdict) -> str:
    """A summary for the page of a job or a pull request."""
    top = f"## {escaped(verdict.headline)}\n\n{escaped(verdict.candidate)} against {escaped(verdict.baseline)}.\n"
    told = "".join(
        f"- **{line.partition(' ')[0]}** {escaped(line.partition(' ')[2], 2_000)}\n" for line in lines(verdict)
    )
    ordered = sorted(verdict.checks, key=lambda check: (*RESULTS, "passed").index(check.result))
    rows = [(escaped(check.where), *map(escaped, _cells(check)), WORD[check.result]) for check in ordered]
    notes = "".join(f"- {escaped(text, 2_000)}\n" for text in verdict.notes)
    parts = [(None, top), ("what failed", told), ("the table", f"{table(HEAD, rows, texts=2)}\n"), ("notes", notes)]
    return well_formed(fitted([part for part in parts if part[1]], "", "the output of the job"))


def junit(verdict: Verdict) -> str:
    """JUnit XML: a test case a check. A regression is a failure, what cannot be told an error, a warning a test that
    passed with its sentence in system-out. Names are the same in every run, so that a server can follow them."""
    count = {result: str(len(verdict.of(result))) for result in RESULTS}
    totals = {"tests": str(len(verdict.checks)), "failures": count["regression"], "errors": count["error"]}
    root = ElementTree.Element("testsuites", {"name": "paribus gate", **totals, "time": "0"})
    suite = ElementTree.SubElement(root, "testsuite", {"name": "paribus gate", **totals, "skipped": "0", "time": "0"})
    for check in verdict.checks:
        place = {"classname": _xml(check.slice or "all questions"), "name": _xml(f"{check.definition} {check.rule}")}
        case = ElementTree.SubElement(suite, "testcase", {**place, "time": "0"})
        told = _xml(check.told)
        match check.result:
            case "regression":
                ElementTree.SubElement(case, "failure", {"message": told, "type": "regression"}).text = told
            case "error":
                ElementTree.SubElement(case, "error", {"message": told, "type": check.rule}).text = told
            case "warning":
                ElementTree.SubElement(case, "system-out").text = f"WARNING {told}"
            case "passed":
                ElementTree.SubElement(case, "system-out").text = told
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=False).join(
        ('<?xml version="1.0" encoding="UTF-8"?>\n', "\n")
    )


def _xml(text: str) -> str:
    return NOT_IN_XML.sub("\ufffd", text)
