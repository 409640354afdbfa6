"""Systems to be asked: a module with functions, and an HTTP service on this machine."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from runner.component import source_hash
from tests.spine import commands as spine
from tests.spine.conftest import folder as folder
from tests.spine.conftest import say as say

MODULE = '''
"""A system made of word overlap, and others that misbehave."""
import asyncio, json, re
from pathlib import Path

CALLS = Path("calls.txt")


def answer(question, n=2, k=None):
    with CALLS.open("a") as file:
        file.write(question + "\\n")
    asked = set(re.findall(r"\\w+", question.lower()))
    parts = []
    for line in Path("data/documents.jsonl").read_text().splitlines():
        document = json.loads(line)
        for part in document["text"].split("\\n\\n"):
            words = set(re.findall(r"\\w+", part.lower()))
            parts.append((len(asked & words), document["doc_id"], part))
    best = sorted(parts, key=lambda each: -each[0])[: k or n]
    contexts = [{"doc_id": doc, "text": part, "score": score} for score, doc, part in best]
    return {"answer": best[0][2], "contexts": contexts, "tokens_in": 7, "tokens_out": 3, "citations": [0]}


async def slowly(question):
    await asyncio.sleep(0)
    return "I do not know."


def fails_on_coffee(question):
    if "coffee" in question:
        raise LookupError("no beans")
    return answer(question)


def a_number(question):
    return 5


NOT_A_FUNCTION = 5
'''


@pytest.fixture
def module(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`mine` in the working directory, importable there."""
    (folder / "mine.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(Path(spine.__file__).parent)  # the stubs of the stages
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "mine", raising=False)  # that of the test before
    source_hash.cache_clear()
    return folder / "mine.py"


class Service:
    """Answers POSTs with what `reply` returns: status, body and headers. requests: what came, with its headers."""

    def __init__(self) -> None:
        self.requests: list[tuple[dict[str, Any], dict[str, str]]] = []
        self.reply: Callable[[dict[str, Any]], tuple[int, Any, dict[str, str]]] = lambda body: (
            200,
            {"answer": f"About {body['question']}"},
            {},
        )
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                service.requests.append((body, dict(self.headers)))
                status, value, headers = service.reply(body)
                sent = value if isinstance(value, bytes) else json.dumps(value).encode()
                self.send_response(status)
                for name, text in {**headers, "content-length": str(len(sent))}.items():
                    self.send_header(name, text)
                self.end_headers()
                self.wfile.write(sent)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/ask"
        Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service()
    yield made
    made.server.shutdown()
    made.server.server_close()
