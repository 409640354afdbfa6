"""The audit of docs/audit-example.md: what three frameworks say of the 477 answers of MTRAG, with one judge.

    PYTHONPATH=. python benchmarks/audit.py FOLDER [--limit N] [OPTION ...] [OVERRIDE ...]

FOLDER holds mtrag_human/*.jsonl (IBM/mt-rag-benchmark, cc5b1d4). N: a seeded draw, for slow judges. Other options and
overrides are those of `paribus audit`.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from pathlib import Path

from benchmarks.judges import rows
from runner.cli import main as paribus


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--limit", type=int)
    given, options = parser.parse_known_args()
    folder = given.folder
    texts = {row["doc_id"]: row["text"] for row in rows(Path(folder) / "mtrag_human" / "contexts.jsonl")}
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "mtrag.jsonl"
        with path.open("w", encoding="utf-8") as file:
            answers = rows(Path(folder) / "mtrag_human" / "records.jsonl")
            for row in random.Random(0).sample(answers, given.limit or len(answers)):
                taken = {key: row[key] for key in ("id", "system", "question", "response", "reference_answer")}
                contexts = [texts[doc_id] for doc_id in row["context_ids"]]
                file.write(json.dumps({**taken, "contexts": contexts}) + "\n")
        return paribus(["audit", str(path), *options])


if __name__ == "__main__":
    sys.exit(main())
