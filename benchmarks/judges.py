"""How far judges agree with people on WiCE and MTRAG: writes both in the format of `paribus judge align`, runs it for
each judge, and prints the figures as the rows of docs/judges.md.

    PYTHONPATH=. python benchmarks/judges.py FOLDER --judge judge=lexical --judge judge=local judge.asks=yes_no \\
        [--only wice] [--held-out] [--sentences N] [--limit N] [--out FOLDER] [--definitions ID ...]

FOLDER holds wice/claims_test.jsonl and mtrag_human/*.jsonl. Rows of even number (from 0) are the tuning split, on which
the rules of the lexical judge were set too; figures are of the others.

WiCE (ryokamoi/wice, ddeb6c1): 358 claims as answers, their evidence as one context; people's word is "supported"
against partially and not supported. MTRAG (IBM/mt-rag-benchmark, cc5b1d4): 477 answers with the passages that they were
given; people's word is the mean of three ratings of faithfulness from 1 to 4, and from 3.5 on (--supported-from 0.8333)
it counts as supported. After each --judge come its overrides; other options are those of `paribus judge align`. Every
judge sees the same lines and the same cut of the contexts.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any

from adapters.sentences import sentence_spans
from runner.align import ALIGNMENT
from runner.cli import main as paribus
from runner.retrievers.bm25 import Bm25Retriever
from runner.stage import Query

SPLITS = ("tune", "held_out")
SEED = 0
FIGURES = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "precision_unsupported": 'precision of "unsupported"',
    "recall_unsupported": 'recall of "unsupported"',
    "kappa": "kappa",
    "spearman": "Spearman",
}


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def wice(folder: Path) -> Iterable[dict[str, Any]]:
    for number, row in enumerate(rows(folder / "wice" / "claims_test.jsonl")):
        yield {
            "id": row["id"],
            "question": "Is this claim supported by the evidence?",
            "answer": row["claim"],
            "contexts": [[f"{sentence} " for sentence in row["evidence_sentences"]]],
            "split": SPLITS[number % 2],
            "origin": "human",
            "score": float(row["human_label"] == "supported"),
        }


def mtrag(folder: Path) -> Iterable[dict[str, Any]]:
    texts = {row["doc_id"]: row["text"] for row in rows(folder / "mtrag_human" / "contexts.jsonl")}
    for number, row in enumerate(rows(folder / "mtrag_human" / "records.jsonl")):
        ratings = row["human"]["faithfulness"].values()
        contexts = [texts[doc_id] for doc_id in row["context_ids"]]
        yield {
            "id": row["id"],
            "question": row["question"],
            "answer": row["response"],
            "contexts": [[text[start:end] for start, end in sentence_spans(text)] for text in contexts],
            "reference": row["reference_answer"],
            "split": SPLITS[number % 2],
            "origin": "human",
            "score": sum(ratings) / len(ratings),
            "scale": [1, 4],
        }


SETS = {"wice": (wice, ()), "mtrag": (mtrag, ("--supported-from", "0.8333"))}


def cut(answer: str, contexts: Sequence[Sequence[str]], count: int) -> list[list[str]]:
    """Of contexts, each a list of sentences, the `count` that BM25 ranks first for the answer, in their order; of
    equals the earlier. Sentences without a word of the answer are left out, unless no sentence has one: then the
    first `count` stay. A context of which nothing is left goes."""
    places = [(context, place) for context, texts in enumerate(contexts) for place in range(len(texts))]
    retriever = Bm25Retriever(k=count)
    index = retriever.index([contexts[context][place] for context, place in places])
    found = [places[at] for at, _ in retriever.search(index, None, Query(answer), count)]
    kept = set(found or places[:count])
    left = [[text for place, text in enumerate(texts) if (n, place) in kept] for n, texts in enumerate(contexts)]
    return [texts for texts in left if texts]


def table(name: str, folders: Iterable[Path]) -> Iterable[str]:
    """The alignments in `folders` as a table in Markdown."""
    heads = ["judge", "definition", "n", "failed", "commoner word", *FIGURES.values()]
    yield from ("", name, "", f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}")
    for folder in folders:
        report = json.loads((folder / ALIGNMENT).read_text(encoding="utf-8"))
        judge = f"{report['judge']['provider']} {report['judge']['model']}"
        for found in report["alignments"]:
            share = found["supported_share"]
            counts = [str(found["n"]), str(found["failed"]), "–" if share is None else f"{max(share, 1 - share):.2f}"]
            cells = [judge, f"`{found['definition']}`", *counts, *(_cell(found["figures"].get(key)) for key in FIGURES)]
            yield f"| {' | '.join(cells)} |"


def _cell(figure: dict[str, float | None] | None) -> str:
    if figure is None or figure["value"] is None:
        return "–"
    interval = "" if figure["low"] is None else f" ({figure['low']:.2f}–{figure['high']:.2f})"
    return f"{figure['value']:.2f}{interval}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--judge", nargs="+", action="append", required=True, metavar="OVERRIDE")
    parser.add_argument("--only", choices=tuple(SETS))
    parser.add_argument("--held-out", action="store_true", help="no line of tune: the threshold is the middle then")
    parser.add_argument("--sentences", type=int, metavar="N", help="cut the contexts of an answer, for slow judges")
    parser.add_argument("--limit", type=int, metavar="N", help="only N lines, drawn at random with a seed")
    parser.add_argument("--out", type=Path)
    options, rest = parser.parse_known_args()
    codes, tables = [], []
    with tempfile.TemporaryDirectory() as scratch:
        for name, (read, more) in SETS.items():
            if options.only not in (None, name):
                continue
            lines = [line for line in read(options.folder) if not options.held_out or line["split"] == SPLITS[1]]
            if options.limit is not None:
                Random(SEED).shuffle(lines)
                del lines[options.limit :]
            for line in lines:
                if options.sentences is not None:
                    line["contexts"] = cut(line["answer"], line["contexts"], options.sentences)
                line["contexts"] = ["".join(context).strip() for context in line["contexts"]]
            path = Path(scratch) / f"{name}.jsonl"
            path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
            folders = [(options.out or Path(scratch)) / name / str(n) for n, _ in enumerate(options.judge, 1)]
            for judge, folder in zip(options.judge, folders, strict=True):
                (folder / ALIGNMENT).unlink(missing_ok=True)
                print(f"\n{name}, {' '.join(judge)}", flush=True)
                codes.append(paribus(["judge", "align", str(path), *more, "--out", str(folder), *judge, *rest]))
                if not (folder / ALIGNMENT).exists():
                    return codes[-1]
            tables += table(name, folders)
    print(*tables, sep="\n")
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
