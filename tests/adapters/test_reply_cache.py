"""The file of replies: several writers, crashes, and files that cannot be used."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from adapters import reply_cache
from adapters.reply_cache import CacheError, ReplyCache
from tests.spine.commands import ROOT

WRITER = """
import sys
from pathlib import Path
from adapters.reply_cache import ReplyCache
cache = ReplyCache(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
for n in range(int(sys.argv[3])):
    cache.put(f"{sys.argv[2]}-{n}", {"text": "x" * 2000, "n": n})
    print(n, flush=True)
"""


def writer(path: Path, name: str, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), name, str(count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def go(*writers: subprocess.Popen[str]) -> None:
    """Have them all begin once each is there."""
    for each in writers:
        assert each.stdout
        assert each.stdin
        assert each.stdout.readline() == "ready\n"
    for each in writers:
        assert each.stdin
        each.stdin.write("\n")
        each.stdin.flush()


def rows(cache: ReplyCache) -> int:
    with closing(sqlite3.connect(cache.path)) as connection:
        return int(connection.execute("SELECT count(*) FROM replies").fetchone()[0])


def test_what_is_kept_is_found_again_and_what_is_forgotten_is_not(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path / "deep" / "replies.sqlite")
    assert cache.get("a") is None
    cache.put("a", {"text": "half an emoji \ud83d, a whole one 😀"})
    cache.put("a", {"text": "later"})
    cache.put("b", {"text": "b"})
    cache.forget("b")
    cache.forget("never there")
    again = ReplyCache(tmp_path / "deep" / "replies.sqlite")
    assert (again.get("a"), again.get("b"), rows(again)) == ({"text": "later"}, None, 1)
    assert ReplyCache(tmp_path / "empty"), "a cache without replies is a cache"


def test_what_is_believed_stays_until_another_reply_takes_its_place(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path / "replies.sqlite")
    cache.put("a", {"n": 1})
    cache.put("b", {"n": 1})
    cache.believe(["a", "a", "never there"])
    for key in "ab":
        ReplyCache(tmp_path / "replies.sqlite").forget(key)
    assert (cache.get("a"), cache.get("b")) == ({"n": 1}, None)
    cache.put("a", {"n": 2})
    cache.forget("a")
    assert cache.get("a") is None


def test_several_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "replies.sqlite"
    writers = [writer(path, name, 200) for name in "abc"]
    go(*writers)
    for each in writers:
        each.communicate(timeout=60)
        assert each.returncode == 0
    cache = ReplyCache(path)
    assert rows(cache) == 600
    assert cache.get("b-199") == {"text": "x" * 2000, "n": 199}


def test_a_new_file_that_another_process_is_just_making_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "replies.sqlite"
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("CREATE TABLE made (by TEXT)")
    other.execute("BEGIN IMMEDIATE")
    done = threading.Timer(0.5, lambda: other.execute("COMMIT"))
    done.start()
    ReplyCache(path).put("a", {"n": 1})
    done.join()
    assert rows(ReplyCache(path)) == 1
    other.close()


def test_many_threads_that_open_a_new_file_at_once_can_all_use_it(tmp_path: Path) -> None:
    cache, faults = ReplyCache(tmp_path / "replies.sqlite"), []

    def put(n: int) -> None:
        try:
            cache.put(str(n), {"n": n})
        except CacheError as error:
            faults.append(error)

    threads = [threading.Thread(target=put, args=(n,)) for n in range(32)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert (faults, rows(cache)) == ([], 32)


def test_a_writer_that_is_killed_leaves_a_file_with_all_that_it_had_written(tmp_path: Path) -> None:
    path = tmp_path / "replies.sqlite"
    one = writer(path, "a", 100_000)
    go(one)
    assert one.stdout
    written = [one.stdout.readline() for _ in range(50)]
    one.send_signal(signal.SIGKILL)
    one.communicate()
    cache = ReplyCache(path)
    assert all(cache.get(f"a-{line.strip()}") for line in written)
    cache.put("after", {"text": "ok"})
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.parametrize("content", [b"no database at all, only text " * 40, b"SQLite format 3\0" + b"\0" * 4000])
def test_a_corrupt_file_is_one_sentence_that_names_it_and_says_what_to_do(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "replies.sqlite"
    path.write_bytes(content)
    with pytest.raises(CacheError) as caught:
        ReplyCache(path).get("a")
    assert str(caught.value).startswith(f"the cache {path} cannot be used (")
    assert str(caught.value).endswith("; remove it or set cache=off")
    assert path.read_bytes() == content, "nobody's file is thrown away"


def test_a_folder_in_the_place_of_the_file_and_a_file_in_that_of_its_folder_are_sentences(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for path in (tmp_path, tmp_path / "file" / "replies.sqlite"):
        with pytest.raises(CacheError, match=r"cannot be used \(.*\); remove it or set cache=off"):
            ReplyCache(path).put("a", {})


def test_a_row_that_is_no_json_is_a_sentence(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path / "replies.sqlite")
    cache.put("a", {})
    with sqlite3.connect(cache.path) as connection:
        connection.execute("UPDATE replies SET reply = '{oops'")
    with pytest.raises(CacheError, match="cannot be used"):
        cache.get("a")


def test_a_file_that_another_program_locks_is_read_and_waits_to_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reply_cache, "BUSY_SECONDS", 0.2)
    cache = ReplyCache(tmp_path / "replies.sqlite")
    cache.put("a", {"text": "a"})
    other = sqlite3.connect(cache.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert cache.get("a") == {"text": "a"}
    began = time.monotonic()
    with pytest.raises(CacheError, match="database is locked"):
        cache.put("b", {})
    assert 0.1 < time.monotonic() - began < 5
    other.execute("ROLLBACK")
    cache.put("b", {"text": "b"})
    assert cache.get("b") == {"text": "b"}
    other.close()
