"""How far a judge agrees with people on WiCE and MTRAG: writes both in the format of `paribus judge align`, runs it.

    PYTHONPATH=. python benchmarks/judges.py FOLDER [--only wice] [--limit N] [--out FOLDER] [OVERRIDE ...]

FOLDER holds wice/claims_test.jsonl and mtrag_human/*.jsonl. Rows of even number (from 0) are the tuning split, on which
the rules of the lexical judge were set too; figures are of the others.

WiCE (ryokamoi/wice, ddeb6c1): 358 claims as answers, their evidence as one context; people's word is "supported"
against partially and not supported. MTRAG (IBM/mt-rag-benchmark, cc5b1d4): 477 answers with the passages that they were
given; people's word is the mean of three ratings of faithfulness from 1 to 4, and from 3.5 on (--supported-from 0.8333)
it counts as supported. OVERRIDE and further options are those of `paribus judge align`.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

from runner.cli import main as paribus

SPLITS = ("tune", "held_out")


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def wice(folder: Path) -> Iterable[dict[str, Any]]:
    for number, row in enumerate(rows(folder / "wice" / "claims_test.jsonl")):
        yield {
            "id": row["id"],
            "question": "Is this claim supported by the evidence?",
            "answer": row["claim"],
            "contexts": [" ".join(row["evidence_sentences"])],
            "split": SPLITS[number % 2],
            "origin": "human",
            "score": float(row["human_label"] == "supported"),
        }


def mtrag(folder: Path) -> Iterable[dict[str, Any]]:
    texts = {row["doc_id"]: row["text"] for row in rows(folder / "mtrag_human" / "contexts.jsonl")}
    for number, row in enumerate(rows(folder / "mtrag_human" / "records.jsonl")):
        ratings = row["human"]["faithfulness"].values()
        yield {
            "id": row["id"],
            "question": row["question"],
            "answer": row["response"],
            "contexts": [texts[doc_id] for doc_id in row["context_ids"]],
            "reference": row["reference_answer"],
            "split": SPLITS[number % 2],
            "origin": "human",
            "score": sum(ratings) / len(ratings),
            "scale": [1, 4],
        }


SETS = {"wice": (wice, ()), "mtrag": (mtrag, ("--supported-from", "0.8333"))}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", choices=tuple(SETS))
    parser.add_argument("--limit", type=int, help="only the first rows, for slow judges")
    parser.add_argument("--out", type=Path)
    options, rest = parser.parse_known_args()
    codes = []
    with tempfile.TemporaryDirectory() as scratch:
        for name, (lines, more) in SETS.items():
            if options.only not in (None, name):
                continue
            path = Path(scratch) / f"{name}.jsonl"
            taken = islice(lines(options.folder), options.limit)
            path.write_text("".join(json.dumps(line) + "\n" for line in taken), encoding="utf-8")
            print(f"\n{name}", flush=True)
            where = ["--out", str(options.out / name)] if options.out else []
            codes.append(paribus(["judge", "align", str(path), *more, *where, *rest]))
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
