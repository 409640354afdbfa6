"""Files that a person asked for are whole or not there, and a place that takes none is a sentence."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runner import outputs
from runner.cli import main
from runner.errors import StoreError
from runner.outputs import write_whole
from tests.judge.said import SUPPORTED, YES, label, written
from tests.judge.test_align import stored


def test_a_file_is_replaced_whole_and_keeps_its_mode(tmp_path: Path) -> None:
    file = tmp_path / "new" / "f.txt"
    write_whole(file, "é\n")
    assert file.read_bytes() == "é\n".encode()
    file.chmod(0o640)
    link = tmp_path / "link"
    link.symlink_to(file)
    write_whole(link, b"\r\n")
    assert (file.read_bytes(), file.stat().st_mode & 0o777, link.is_symlink()) == (b"\r\n", 0o640, True)
    assert [path.name for path in file.parent.iterdir()] == ["f.txt"]


def test_what_was_there_stays_where_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, data: bytes) -> int:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
        raise OSError(28, "No space left on device")

    file = tmp_path / "f.txt"
    write_whole(file, "before")
    monkeypatch.setattr(outputs.Path, "write_bytes", full)
    with pytest.raises(StoreError, match=r"cannot write .*f\.txt: No space left on device; choose another place"):
        write_whole(file, "after")
    assert file.read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["f.txt"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["sample", "--run", "run", "--share", "1", "--to", "folder"],
        ["sample", "--run", "run", "--share", "1", "--to", "file/review.html"],
        ["sample", "--run", "run", "--share", "1", "--csv", "folder"],
        ["freeze", "--run", "run", "--to", "folder"],
        ["align", "human.jsonl", "--definitions", SUPPORTED, "--out", "file"],
    ],
    ids=" ".join,
)
def test_a_place_that_takes_no_file_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    stored({"q1": YES})
    written(Path("human.jsonl"), [label("q1", [YES], ["supported"])])
    Path("folder").mkdir()
    Path("file").touch()
    assert main(["judge", *arguments]) == 1
    told = capfd.readouterr().err
    assert f"paribus: cannot write {arguments[-1]}" in told
    assert "pathlib" not in told


def test_a_freeze_that_failed_does_not_stand_in_the_way_of_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    stored({"q1": YES})
    with monkeypatch.context() as full:
        full.setattr(outputs.os, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        assert main(["judge", "freeze", "--run", "run"]) == 1
    assert main(["judge", "freeze", "--run", "run"]) == 0, capfd.readouterr().err
