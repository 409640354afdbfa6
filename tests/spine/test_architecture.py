"""Who may import whom: an AST walk over one table, so that a line knows its room."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spine.commands import ROOT

FILES = sorted(path for top in ("runner", "adapters", "hydra_plugins") for path in (ROOT / top).rglob("*.py"))
NAMES = [path.relative_to(ROOT).as_posix() for path in FILES]

ONLY_IN = {
    "mlflow": ("runner/tracking/",),
    "ragas": ("adapters/ragas.py",),
    "deepeval": ("adapters/deepeval.py",),
    "trulens": ("adapters/trulens.py",),
    "openai": ("adapters/endpoint.py",),
    "xllamacpp": ("adapters/local_server.py",),
    "hydra": ("runner/app.py", "runner/hydra_errors.py", "hydra_plugins/"),
    "omegaconf": (
        "runner/config.py",
        "runner/app.py",
        "runner/run.py",
        "runner/sweep.py",
        "runner/hydra_errors.py",
        "hydra_plugins/",
    ),
    "rich": ("runner/console.py",),
}
"""Package -> the files that may import it. runner/run.py and runner/sweep.py name omegaconf in annotations only."""

NOT_AT_IMPORT = {
    "mlflow",
    "ragas",
    "deepeval",
    "trulens",
    "openai",
    "torch",
    "sentence_transformers",
    "onnxruntime",
    "xllamacpp",
    "sklearn",
    "scipy",
    "numpy",
    "pandas",
    "joblib",
    "rich",
    "bm25s",
    "wordllama",
    "tokenizers",
    "safetensors",
    "langchain_text_splitters",
    "markdown_it",
    "sentencex",
    "Stemmer",
    "distributed",
    "threadpoolctl",
}
"""Packages that no module imports before it needs them."""

SHARED_BASES = {
    "runner.chunkers.sized",
    "runner.retrievers.scoring",
    "runner.retrievers.bm25",  # hybrid is bm25 ...
    "runner.retrievers.dense",  # ... and dense, fused
    "runner.generators.endpoint",  # local is endpoint with a server of its own
    "adapters.refusal",
    "adapters.labels.relevance",
}
"""What an implementation may import from its own folder."""

STAGES = ("chunkers", "embedders", "retrievers", "rerankers", "assemblers", "prompts", "generators")


def imports(path: Path, at_import: bool = False) -> Iterator[str]:
    """The modules that a file imports; with at_import only those that run when it is imported."""

    def walk(node: ast.AST) -> Iterator[str]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                yield from (alias.name for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                assert child.level == 0, f"{path}: relative import"
                yield child.module or ""
            elif not (at_import and later(child)):
                yield from walk(child)

    def later(node: ast.AST) -> bool:
        if isinstance(node, ast.If):
            return ast.unparse(node.test) == "TYPE_CHECKING"
        return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)

    return walk(ast.parse(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_each_package_is_imported_only_where_it_belongs(path: Path) -> None:
    name = path.relative_to(ROOT).as_posix()
    for module in imports(path):
        allowed = ONLY_IN.get(module.partition(".")[0])
        assert allowed is None or name.startswith(allowed), f"{name} imports {module}"


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_nothing_heavy_is_imported_before_it_is_needed(path: Path) -> None:
    heavy = {module for module in imports(path, at_import=True) if module.partition(".")[0] in NOT_AT_IMPORT}
    assert not heavy


def test_adapters_know_nothing_of_the_runner() -> None:
    for path in (ROOT / "adapters").rglob("*.py"):
        assert not [module for module in imports(path) if module.startswith(("runner", "hydra_plugins"))], path


def test_siblings_do_not_import_each_other() -> None:
    for stage in STAGES:
        package = f"runner.{stage}."
        for path in (ROOT / "runner" / stage).glob("*.py"):
            siblings = {module for module in imports(path) if module.startswith(package)}
            assert siblings <= SHARED_BASES, path
            assert not {
                m for m in imports(path) if m.startswith(tuple(f"runner.{s}." for s in STAGES)) and m not in siblings
            }


def test_components_know_no_stage_order_and_no_configuration() -> None:
    above = (
        "runner.pipeline",
        "runner.run",
        "runner.sweep",
        "runner.plan",
        "runner.config",
        "runner.app",
        "runner.cli",
        "runner.tracking",
    )
    for stage in STAGES:
        for path in (ROOT / "runner" / stage).glob("*.py"):
            assert not [module for module in imports(path) if module in above], path
