"""How far the lexical judge agrees with people.

    PYTHONPATH=. python benchmarks/lexical_judge.py FOLDER

FOLDER holds wice/claims_test.jsonl and mtrag_human/*.jsonl. The thresholds of the rules were set on the rows of even
number (from 0); what is reported is of the other rows. WiCE (ryokamoi/wice, ddeb6c1): 358 claims with evidence;
"supported" against the rest, which is what the judge can say. MTRAG (IBM/mt-rag-benchmark, cc5b1d4): 477 answers; the
share of their claims that the judge finds supported by their passages, against the mean of three people's ratings of
faithfulness from 1 to 4.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

from scipy.stats import spearmanr
from sklearn.metrics import balanced_accuracy_score, cohen_kappa_score

from adapters.judges.lexical import claims
from adapters.judges.lexical_rules import held

HALVES = {"tune": 0, "held out": 1}


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def wice(folder: Path, half: str) -> dict[str, float]:
    chosen = rows(folder / "wice" / "claims_test.jsonl")[HALVES[half] :: 2]
    people = [row["human_label"] == "supported" for row in chosen]
    judged = [held(row["claim"], " ".join(row["evidence_sentences"])).word == "supported" for row in chosen]
    share = sum(people) / len(people)
    return {
        "claims": len(chosen),
        "accuracy": sum(p == j for p, j in zip(people, judged, strict=True)) / len(people),
        "accuracy of the commoner label": max(share, 1 - share),
        "balanced accuracy": float(balanced_accuracy_score(people, judged)),
        "Cohen's kappa": float(cohen_kappa_score(people, judged)),
    }


def mtrag(folder: Path, half: str) -> dict[str, float]:
    texts = {row["doc_id"]: row["text"] for row in rows(folder / "mtrag_human" / "contexts.jsonl")}
    shares, ratings = [], []
    for row in rows(folder / "mtrag_human" / "records.jsonl")[HALVES[half] :: 2]:
        context = "\n\n".join(texts[doc_id] for doc_id in row["context_ids"])
        judged = [held(claim, context).word == "supported" for claim in claims(row["response"])]
        given = row["human"]["faithfulness"].values()
        if judged:
            shares.append(sum(judged) / len(judged))
            ratings.append(sum(given) / len(given))
    return {"answers": len(shares), "Spearman": float(spearmanr(shares, ratings).statistic)}


def main() -> None:
    folder = Path(sys.argv[1])
    for name, measured in {"WiCE": wice, "MTRAG": mtrag}.items():
        for half in HALVES:
            began = perf_counter()
            figures = ", ".join(f"{what} {value:.3g}" for what, value in measured(folder, half).items())
            print(f"{name}, {half}: {figures} ({perf_counter() - began:.1f} s)")


if __name__ == "__main__":
    main()
