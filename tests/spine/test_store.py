"""Stored stage outputs: computed once, found again for as long as their causes stand."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import ClassVar

import pytest

from runner import component
from runner.component import Component
from runner.errors import MissingExtra, StoreError
from runner.store import NotKept, StageStore
from tests.spine.commands import ROOT, Say


def test_a_second_identical_run_computes_nothing_and_says_so(say: Say) -> None:
    assert say("run", "retriever=dense", "generator=extractive").code == 0
    assert "nothing recomputed" in say("run", "retriever=dense", "generator=extractive").err
    assert "nothing recomputed" in say("sweep", "retriever=dense", "generator=extractive").err


def test_a_sweep_of_twelve_computes_each_output_once_and_no_more(say: Say) -> None:
    said = say(
        "sweep", "--json", "retriever=dense", "generator=extractive", "retriever.k=1,2,3,4", "chunker.size=80,100,120",
        "prompt=cited,strict,concise", "reranker=none,late_interaction", "context=budget,edges",
    )  # fmt: skip
    assert said.code == 0, said.err
    rows = said.json["rows"]
    assert len(rows) == 1 + 12
    calls: Counter[str] = Counter()
    for row in rows:
        calls.update(row["outcome"]["computed"])
    chunkings, ks, prompts, rerankers, contexts = 3, 4, 3, 1, 1
    assert calls == {
        "chunk": 1 + chunkings,
        "embed_passages": 1 + chunkings,
        "embed_queries": 1,
        "index": 1 + chunkings,
        "retrieve": 1 + chunkings + ks + rerankers,
        "rerank": 1 + chunkings + ks + rerankers,
        "assemble": 1 + chunkings + ks + rerankers + contexts,
        "generate": 1 + chunkings + ks + rerankers + contexts + prompts,
    }


class Part(Component):
    packages: ClassVar[tuple[str, ...]] = ("pydantic",)
    incidental: ClassVar[frozenset[str]] = frozenset({"threads"})
    size: int = 1
    threads: int = 1


def test_what_can_change_an_output_changes_the_fingerprint_and_nothing_else_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = Part().fingerprint
    assert Part(threads=4).fingerprint == first
    assert Part(size=2).fingerprint != first
    assert Part(size=2).fingerprint_without("size") == Part().fingerprint_without("size")
    monkeypatch.setattr(component, "version", lambda package: "999")
    assert Part().fingerprint != first
    monkeypatch.undo()
    monkeypatch.setattr(component, "source_hash", lambda module: "other code")
    assert Part().fingerprint != first


def test_a_missing_package_is_told_with_the_command_that_installs_it() -> None:
    class Absent(Part):
        packages: ClassVar[tuple[str, ...]] = ("no-such-package",)
        extra: ClassVar[str | None] = "onnx"

    with pytest.raises(MissingExtra, match=r'pip install "paribus\[onnx\]"'):
        _ = Absent().fingerprint


def test_an_output_is_read_back_and_within_a_process_read_once(tmp_path: Path) -> None:
    calls: list[int] = []

    def compute() -> int:
        calls.append(1)
        return 7

    first, second = StageStore(tmp_path), StageStore(tmp_path)
    output = first.output("stage", ("cause",), compute)
    assert not calls
    assert output.value() == output.value() == second.output("stage", ("cause",), compute).value() == 7
    assert (first.calls.computed["stage"], second.calls.reused["stage"], len(calls)) == (1, 1, 1)
    assert second.output("stage", ("other",), compute).key != output.key
    assert second.output("other", ("cause",), compute).key != output.key


def test_a_result_that_is_not_kept_is_computed_again(tmp_path: Path) -> None:
    def partly() -> int:
        raise NotKept([1])

    store = StageStore(tmp_path)
    assert store.output("stage", ("cause",), partly).value() == [1]
    assert StageStore(tmp_path).output("stage", ("cause",), lambda: [2]).value() == [2]


@pytest.mark.parametrize("damage", [b"", b"no pickle", None])
def test_a_damaged_output_is_computed_again_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: bytes | None
) -> None:
    StageStore(tmp_path).output("stage", ("cause",), lambda: 7).value()
    stored = next(tmp_path.rglob("output.pkl"))
    stored.write_bytes(stored.read_bytes()[:-3] if damage is None else damage)
    store = StageStore(tmp_path)
    assert store.output("stage", ("cause",), lambda: 8).value() == 8
    assert "Exception while loading results" in caplog.text
    assert store.calls.computed["stage"] == 1
    assert StageStore(tmp_path).output("stage", ("cause",), lambda: 9).value() == 8


def test_a_folder_that_cannot_be_made_or_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot make the folder for stage outputs"):
        StageStore(tmp_path / "file" / "store")
    with pytest.raises(StoreError, match="cannot make the folder for stage outputs"):
        StageStore(tmp_path / "file")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(StoreError, match=r"permission denied; set tracking.folder elsewhere"):
        StageStore(tmp_path)


WRITER = """
import sys, time
from pathlib import Path
from runner.store import StageStore
store = StageStore(Path(sys.argv[1]))
def slow():
    time.sleep(0.01)
    return list(range(50_000))
print(sum(store.output("stage", ("cause", str(n)), slow).value()[-1] for n in range(20)))
"""


def test_two_processes_may_write_the_same_output_at_once(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    writers = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(3)]
    for writer in writers:
        out, err = writer.communicate(timeout=60)
        assert (writer.returncode, out, err) == (0, b"999980\n", b"")
