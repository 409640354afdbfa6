"""A real HTTP server that speaks as much of OpenAI's wire format as the tests need, and misbehaves to order.

    from tests.stages.openai_stub import openai_stub  # a pytest fixture

    def test_it(openai_stub):
        openai_stub.script(status(429, {"retry-after": "1"}), chat("Paris"))
        Endpoint(base_url=openai_stub.base_url, model="m").chat([...])
        assert openai_stub.requests[0].body["model"] == "m"

Every request takes the next reply of the script; the last one stays. `answers(function)` has a function of the request
reply in its place.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


@dataclass(frozen=True)
class StubReply:
    status: int = 200
    payload: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    hang_seconds: float = 0.0
    close: bool = False
    sent_bytes: int | None = None  # of the content; then the connection is closed
    trickle_seconds: float = 0.0  # between two bytes of the content


@dataclass(frozen=True)
class Seen:
    path: str
    body: dict[str, Any]
    authorization: str | None
    at: float


def chat(text: str | None, finish_reason: str = "stop", **message: Any) -> StubReply:
    choice = {"index": 0, "finish_reason": finish_reason, "message": {"role": "assistant", "content": text, **message}}
    return completion(choices=[choice])


def completion(**fields: Any) -> StubReply:
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    plain = {"id": "c", "object": "chat.completion", "created": 0, "model": "stub-1", "usage": usage}
    return StubReply(payload=plain | fields)


def embeddings(*vectors: list[float]) -> StubReply:
    # Out of order on purpose: the index counts.
    data = [{"object": "embedding", "index": i, "embedding": vector} for i, vector in enumerate(vectors)][::-1]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return StubReply(payload={"object": "list", "model": "stub-1", "data": data, "usage": usage})


def status(code: int, headers: Mapping[str, str] | None = None, message: str = "no") -> StubReply:
    return StubReply(code, {"error": {"message": message, "type": "stub", "code": None}}, headers or {})


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # with the default of 5, connections made at once wait a second to be let in


class OpenAIStub:
    def __init__(self) -> None:
        self.requests: list[Seen] = []
        self._script: list[StubReply] = [chat("ok")]
        self._answer: Callable[[Seen], StubReply] | None = None
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def script(self, *replies: StubReply) -> None:
        self._script, self._answer = list(replies), None

    def answers(self, function: Callable[[Seen], StubReply]) -> None:
        self._answer = function

    def close(self) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        stub = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                with stub._lock:
                    seen = Seen(self.path, body, self.headers["authorization"], time.monotonic())
                    stub.requests.append(seen)
                    if stub._answer:
                        reply = stub._answer(seen)
                    else:
                        reply = stub._script.pop(0) if len(stub._script) > 1 else stub._script[0]
                if reply.hang_seconds:
                    stub._closing.wait(reply.hang_seconds)
                if reply.close:
                    self.close_connection = True
                    self.connection.close()
                    return
                content = json.dumps(reply.payload).encode() if reply.raw is None else reply.raw
                try:
                    self.send_response(reply.status)
                    for name, value in {"content-type": "application/json", **reply.headers}.items():
                        self.send_header(name, value)
                    self.send_header("content-length", str(len(content)))
                    self.end_headers()
                    for start in range(len(content)) if reply.trickle_seconds else ():
                        self.wfile.write(content[start : start + 1])
                        self.wfile.flush()
                        if stub._closing.wait(reply.trickle_seconds):
                            break
                    else:
                        if not reply.trickle_seconds:
                            self.wfile.write(content[: reply.sent_bytes])
                    self.close_connection = reply.sent_bytes is not None
                except OSError:
                    self.close_connection = True

            def log_message(self, *args: Any) -> None:
                pass

        return Handler


@pytest.fixture
def openai_stub() -> Iterator[OpenAIStub]:
    stub = OpenAIStub()
    yield stub
    stub.close()
