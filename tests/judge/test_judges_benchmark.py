"""benchmarks/judges.py: the cut of the evidence, and a table from files in the form of WiCE and MTRAG."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import judges
from benchmarks.judges import cut

TEA, SHIPS, BOTH, SNOW = "Tea is hot. ", "Ships sail. ", "Ships carry tea. ", "Snow fell."


def test_the_cut_keeps_the_best_sentences_in_their_order() -> None:
    # "Ships carry tea." holds two words of the answer, "Ships sail." and "Tea is hot." one each, "Snow fell." none.
    contexts = [[SNOW, SHIPS], [BOTH, TEA]]
    assert cut("tea on ships", contexts, 1) == [[BOTH]]
    assert cut("tea on ships", contexts, 3) == [[SHIPS], [BOTH, TEA]]
    assert cut("tea on ships", contexts, 9) == [[SHIPS], [BOTH, TEA]]
    assert cut("tea", [[SNOW, TEA], [TEA]], 1) == [[TEA]]  # of equals the earlier
    assert cut("rain", contexts, 3) == [[SNOW, SHIPS], [BOTH]]  # none holds a word: the first
    assert cut("tea", [], 3) == []


def lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def claim(number: int, text: str, people: str) -> dict[str, Any]:
    return {
        "id": f"w{number}",
        "claim": text,
        "evidence_sentences": ["Snow fell.", "Tea is hot."],
        "human_label": people,
    }


def test_rows_of_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    lines(
        tmp_path / "wice" / "claims_test.jsonl",
        [
            claim(0, "Ships sail.", "supported"),  # tune: not among the lines
            claim(1, "Tea is hot.", "supported"),
            claim(2, "Ships sail.", "supported"),
            claim(3, "Ships sail.", "not_supported"),
            claim(4, "Ships sail.", "supported"),
            claim(5, "Snow fell.", "partially_supported"),
            claim(6, "Ships sail.", "supported"),
            claim(7, "Tea is hot.", "supported"),
        ],
    )
    options = ["--only", "wice", "--held-out", "--sentences", "1", "--judge", "judge=lexical"]
    monkeypatch.setattr(
        "sys.argv", ["judges.py", str(tmp_path), *options, "--definitions", "ragas/faithfulness", "tracking=off"]
    )

    assert judges.main() == 0

    row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("| lexical rules |"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    # People call w1 and w7 supported, the judge those and w5: 3 of 4 alike. Of the two that people call unsupported it
    # finds one, of the other two both: balanced (1/2 + 2/2) / 2.
    assert cells[:5] == ["lexical rules", "`ragas/faithfulness`", "4", "0", "0.50"]
    assert [cell.partition(" ")[0] for cell in cells[5:9]] == ["0.75", "0.75", "1.00", "0.50"]
