"""Does a sweep compute only what it must, and what does paribus cost over the bare libraries?

    python benchmarks/sweep.py                      stage calls and wall time on the bundled sample
    python benchmarks/sweep.py --chroma FOLDER      also chunk + embed + index + retrieve on chroma_chunking, beside
                                                    the same steps with the libraries alone, and the published row

FOLDER holds docs/ and questions.jsonl of brandonstarxel/chunking_evaluation, in the format of conf/dataset/jsonl.yaml.
Times are of this machine, in this run; ratios are what to quote.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import logging
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from time import perf_counter
from typing import Any

VARIANTS = {
    "chunker.size=200,400,1600": 3,
    "embedder=wordllama,lsa": 1,
    "retriever=bm25,hybrid": 2,
    "retriever.k=3,10": 2,
    "reranker=none,late_interaction": 1,
    "prompt=concise,strict": 2,
    "context=budget,edges": 1,
}
"""1 + 12 runs."""

CONF = str(Path(__file__).with_name("conf"))
BASELINE = ["chunk", "embed_passages", "embed_queries", "index", "retrieve", "rerank", "assemble", "generate"]
AFTER_RETRIEVAL = ["retrieve", "rerank", "assemble", "generate"]
MINIMUM: Counter[str] = sum(
    (
        Counter(stages * times)
        for stages, times in [
            (BASELINE, 1),
            (["chunk", "embed_passages", "index", *AFTER_RETRIEVAL], 3),  # another chunk size: all but the queries
            (["embed", *AFTER_RETRIEVAL], 1),  # lsa fits itself to the corpus: passages and queries in one stage
            (["index", *AFTER_RETRIEVAL], 2),  # another retriever: nothing is embedded anew
            (AFTER_RETRIEVAL, 2),  # k: another depth
            (AFTER_RETRIEVAL, 1),  # the reranker wants more candidates
            (["generate"], 2),  # another prompt
            (["assemble", "generate"], 1),  # another order of the context
        ]
    ),
    Counter(),
)


def sweep(folder: str, *overrides: str) -> tuple[Counter[str], float]:
    """Stage outputs computed by the sweep, and its wall time in seconds, the start of Python included."""
    command = [sys.executable, "-m", "runner", "sweep", "--json", *overrides, *(f"{variant}" for variant in VARIANTS)]
    began = perf_counter()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    seconds = perf_counter() - began
    computed: Counter[str] = Counter()
    for row in json.loads(done.stdout)["rows"]:
        computed.update(row["outcome"]["computed"])
    return computed, seconds


def stage_calls() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        cold, cold_seconds = sweep(folder)
        warm, warm_seconds = sweep(folder)
    runs = 1 + sum(VARIANTS.values())
    print(f"sweep of {runs} runs on the sample, tracked in MLflow")
    print(f"  {'stage':<16}{'computed':>9}{'minimum':>9}")
    for stage in sorted({*cold, *MINIMUM}):
        print(f"  {stage:<16}{cold[stage]:>9}{MINIMUM[stage]:>9}")
    print(f"  {'all':<16}{cold.total():>9}{MINIMUM.total():>9}")
    print(f"  the same sweep again: {warm.total()} computed")
    print(f"  wall time: cold {cold_seconds:.1f} s, warm {warm_seconds:.1f} s")
    return cold == MINIMUM and not warm


def median_seconds(
    work: Callable[[], object], others: Callable[[], object], times: int = 9
) -> tuple[float, float, float]:
    """Medians of both, run in turn after one pair that is not counted, and the median of the ratios pair by pair."""
    pairs = []
    work(), others()
    for _ in range(times):
        one = _seconds(work)
        pairs.append((one, _seconds(others)))
    mine, theirs = zip(*pairs, strict=True)
    return statistics.median(mine), statistics.median(theirs), statistics.median(a / b for a, b in pairs)


def _seconds(work: Callable[[], object]) -> float:
    began = perf_counter()
    work()
    return perf_counter() - began


def against_libraries(chroma: Path) -> None:
    """Chunk + embed + index + retrieve of paribus over an empty store, beside the same with the libraries alone."""
    print("chunk + embed + index + retrieve on chroma_chunking (472 questions, k = 5): paribus / libraries")
    for name, overrides, direct in [
        ("wordllama, dense", ["retriever=dense"], _direct_dense),
        ("BM25", ["retriever=bm25"], _direct_bm25),
    ]:
        built = _compose("dataset=jsonl", f"dataset.path={chroma}", *overrides)
        test_set, texts = built.dataset.load(), _texts(chroma)
        mine, theirs, ratio = median_seconds(partial(_retrieve_with_paribus, built, test_set), partial(direct, *texts))
        print(f"  {name:<20}{mine:6.2f} s / {theirs:5.2f} s = {ratio:.2f}")


def _compose(*overrides: str) -> Any:
    from hydra import compose, initialize_config_dir

    from runner.config import experiment
    from runner.yaml_folders import conf_dir

    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        return experiment(compose("config", overrides=list(overrides)))


def _retrieve_with_paribus(built: Any, test_set: Any) -> None:
    from runner.pipeline import Stages
    from runner.progress import Progress
    from runner.store import StageStore

    with tempfile.TemporaryDirectory() as folder:
        Stages(built, test_set, StageStore(Path(folder)), Progress()).retrieved.value()


def _texts(chroma: Path) -> tuple[list[str], list[str]]:
    documents = [path.read_text(encoding="utf-8") for path in sorted((chroma / "docs").glob("*.md"))]
    lines = (chroma / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    return documents, [json.loads(line)["question"] for line in lines]


def _split(documents: list[str]) -> list[str]:
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    splitter = RecursiveCharacterTextSplitter(chunk_size=800, chunk_overlap=0, separators=["\n\n", "\n", " ", ""])
    return [chunk for document in documents for chunk in splitter.split_text(document)]


def _direct_dense(documents: list[str], questions: list[str]) -> None:
    import numpy as np

    model = _wordllama()
    passages = model.embed(_split(documents), norm=True)
    queries = model.embed(questions, norm=True)
    for query in queries:
        np.argpartition(-(passages @ query), 5)[:5]


@lru_cache
def _wordllama() -> Any:
    from wordllama import WordLlama

    folder = Path(importlib.util.find_spec("wordllama").origin).parent
    return WordLlama.load(dim=256, cache_dir=folder, disable_download=True)


def _direct_bm25(documents: list[str], questions: list[str]) -> None:
    import bm25s
    import Stemmer

    stemmer = Stemmer.Stemmer("english")
    chunks = _split(documents)
    index = bm25s.BM25()
    index.index(bm25s.tokenize(chunks, stemmer=stemmer, stopwords="en", show_progress=False), show_progress=False)
    for question in questions:
        tokens = bm25s.tokenize([question], stemmer=stemmer, stopwords="en", show_progress=False)
        index.retrieve(tokens, k=5, show_progress=False)


def published(chroma: Path) -> None:
    """The row of the Chroma report that can be repeated: recursive chunks of 200 tokens, no overlap, k = 5, MiniLM."""
    print("published row: all-MiniLM-L6-v2, recursive 200 tokens, overlap 0, k = 5; over 472 questions, in %")
    print(f"  {'':<46}{'recall':>8}{'precision':>10}{'omega':>8}{'IoU':>8}")
    print(f"  {'published (fp32)':<46}{75.7:>8}{6.5:>10}{31.2:>8}{6.5:>8}")
    with tempfile.TemporaryDirectory() as folder:
        for special in (0, 2):
            command = [
                *(sys.executable, "-m", "runner", "run", "--json", "tracking=off", "metrics=retrieval"),
                *("dataset=jsonl", f"dataset.path={chroma}", "embedder=minilm", "retriever=dense", "retriever.k=5"),
                *("--config-dir", CONF, "chunker=chroma_report", f"chunker.special_tokens={special}"),
            ]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
            means = json.loads(done.stdout)["means"]
            row = [100 * means[f"labels/span_{n}"]["value"] for n in ("recall", "precision", "precision_omega", "iou")]
            name = f"paribus (int8 ONNX), {special} special tokens a piece"
            print(f"  {name:<46}{row[0]:>8.1f}{row[1]:>10.2f}{row[2]:>8.1f}{row[3]:>8.2f}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chroma", type=Path, help="folder of chroma_chunking")
    parser.add_argument("--only", choices=["calls", "libraries", "published"], help="one part alone")
    options = parser.parse_args()
    logging.disable(logging.INFO)  # bm25s reports its progress
    equal = True
    if options.only in (None, "calls"):
        equal = stage_calls()
    if options.chroma and options.only in (None, "libraries"):
        against_libraries(options.chroma.resolve())
    if options.chroma and options.only in (None, "published"):
        published(options.chroma.resolve())
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
