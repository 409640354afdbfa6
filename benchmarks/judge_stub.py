"""An OpenAI-compatible endpoint that answers everything after a fixed time, for benchmarks/judge_throughput.py.

    python benchmarks/judge_stub.py --latency 0.2        prints its port, serves until it is terminated

POST /v1/chat/completions and /v1/embeddings are the calls. A reply holds to the schema that was asked for: in
response_format, or written into the prompt as Ragas, DeepEval and MLflow do. Lists have UNITS items, which is right for
records whose answer, reference and context have UNITS sentences and chunks each. GET /stats tells the calls, the most
in flight at once, the seconds that they were held in all, and the seconds of CPU; POST /reset sets them to 0.

HTTP by hand, because the endpoint shares two cores with what is measured.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import json
import re
import sys
from functools import lru_cache, partial
from time import perf_counter, process_time
from typing import Any
from zlib import crc32

UNITS = 3
MARK = "0000000000"
SENTENCES = tuple(f"The {place} thing of {MARK} holds." for place in ("first", "second", "third"))
"""MARK becomes a number of the request: what follows from different records is different, so no call can be spared."""
VECTOR = [0.1] * 64
"""All texts have one meaning."""

LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
SCHEMA_OF_RAGAS = re.compile(r"as specified in JSON Schema:\n(\{.*\})Do not use single quotes")
SCHEMA_OF_MLFLOW = re.compile(r"valid JSON matching this schema: (\{.*\})\nReturn ONLY")
KEY_OF_DEEPEVAL = re.compile(r"""['"](truths|claims|statements|verdicts|reason)['"] key""")
WORDS = {"type": "string"}
LIST_OF_DEEPEVAL = {
    "verdicts": {"type": "object", "properties": {"verdict": {"enum": ["yes", "no"]}, "reason": WORDS}},
}


class Tally:
    """What the endpoint has done since the last reset."""

    def __init__(self) -> None:
        self.calls, self.in_flight, self.most_in_flight, self.held_seconds = 0, 0, 0, 0.0
        self._cpu = process_time()

    def stats(self) -> dict[str, float]:
        """The figures of GET /stats."""
        return {
            "calls": self.calls,
            "most_in_flight": self.most_in_flight,
            "held_seconds": self.held_seconds,
            "cpu_seconds": process_time() - self._cpu,
        }


class Connection(asyncio.Protocol):
    """One kept-alive connection. Requests are answered one after the other, as HTTP/1.1 clients send them."""

    tally = Tally()
    latency: float

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.buffer = bytearray()

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            head = bytes(self.buffer[:end])
            length = int(found[1]) if (found := LENGTH.search(head)) else 0
            if len(self.buffer) < end + 4 + length:
                return
            body = bytes(self.buffer[end + 4 : end + 4 + length])
            del self.buffer[: end + 4 + length]
            self._request(*head.split(b" ", 2)[:2], body)

    def _request(self, method: bytes, path: bytes, body: bytes) -> None:
        tally = Connection.tally
        if path == b"/stats":
            self._write(json.dumps(tally.stats()).encode())
        elif path == b"/reset":
            Connection.tally = Tally()
            self._write(b"{}")
        elif method == b"POST" and path in (b"/v1/chat/completions", b"/v1/embeddings"):
            began = perf_counter()
            tally.calls += 1
            tally.in_flight += 1
            tally.most_in_flight = max(tally.most_in_flight, tally.in_flight)
            reply = _completion(body) if path.endswith(b"completions") else _embeddings(body)
            asyncio.get_running_loop().call_later(self.latency, partial(self._answer, tally, began, reply))
        else:
            print(f"nothing is served at {method.decode()} {path.decode()}", file=sys.stderr)
            self._write(b'{"error": {"message": "not found"}}', b"404 Not Found")

    def _answer(self, tally: Tally, began: float, reply: bytes) -> None:
        tally.in_flight -= 1
        tally.held_seconds += perf_counter() - began
        self._write(reply)

    def _write(self, body: bytes, status: bytes = b"200 OK") -> None:
        head = b"HTTP/1.1 %b\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % (status, len(body))
        if not self.transport.is_closing():
            self.transport.write(head + body)


def _completion(body: bytes) -> bytes:
    asked = json.loads(body)
    return _completion_body(_text(asked), asked.get("n") or 1).replace(MARK.encode(), b"%010d" % crc32(body))


def _text(asked: dict[str, Any]) -> str:
    wanted = asked.get("response_format") or {}
    if wanted.get("type") == "json_schema":
        return _filled_from_json(json.dumps(wanted["json_schema"]["schema"]))
    prompt = "\n".join(_plain(message["content"]) for message in asked["messages"])
    if found := SCHEMA_OF_RAGAS.search(prompt):
        return _filled_from_json(found[1])
    if found := SCHEMA_OF_MLFLOW.search(prompt):
        return _filled_from_repr(found[1])
    if keys := KEY_OF_DEEPEVAL.findall(prompt):
        return _filled_for_deepeval(keys[-1])
    return "\n".join(SENTENCES)


def _plain(content: str | list[dict[str, Any]]) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


@lru_cache
def _filled_from_json(schema: str) -> str:
    parsed = json.loads(schema)
    return json.dumps(_filled(parsed, parsed))


@lru_cache
def _filled_from_repr(schema: str) -> str:
    parsed = ast.literal_eval(schema)
    return json.dumps(_filled(parsed, parsed))


@lru_cache
def _filled_for_deepeval(key: str) -> str:
    value = WORDS if key == "reason" else {"type": "array", "items": LIST_OF_DEEPEVAL.get(key, WORDS)}
    return json.dumps({key: _filled(value, {})})


def _filled(schema: dict[str, Any], root: dict[str, Any], name: str = "", place: int = 0) -> Any:
    """A plausible value of `schema`: UNITS items a list, "yes" and 1 for verdicts, 2 for ratings."""
    if "$ref" in schema:
        return _filled(root["$defs"][schema["$ref"].rsplit("/", 1)[1]], root, name, place)
    if "anyOf" in schema:
        return _filled(schema["anyOf"][0], root, name, place)
    if "enum" in schema:
        return "yes" if "yes" in schema["enum"] else schema["enum"][0]
    match schema.get("type"):
        case "object":
            return {key: _filled(value, root, key, place) for key, value in schema["properties"].items()}
        case "array":
            return [_filled(schema["items"], root, name, place) for place in range(UNITS)]
        case "integer" | "number":
            return {"noncommittal": 0, "score": 2}.get(name, 1)
        case "boolean":
            return True
        case _:
            return "yes" if name == "verdict" else SENTENCES[place]


@lru_cache
def _completion_body(text: str, n: int) -> bytes:
    message = {"role": "assistant", "content": text}
    choices = [{"index": place, "finish_reason": "stop", "message": message} for place in range(n)]
    usage = {"prompt_tokens": 600, "completion_tokens": 60, "total_tokens": 660}
    reply = {"id": "stub", "object": "chat.completion", "created": 1, "model": "stub", "choices": choices}
    return json.dumps(reply | {"usage": usage}).encode()


def _embeddings(body: bytes) -> bytes:
    asked = json.loads(body)
    texts = asked["input"] if isinstance(asked["input"], list) else [asked["input"]]
    return _embeddings_body(len(texts), asked.get("encoding_format") == "base64")


@lru_cache
def _embeddings_body(count: int, packed: bool) -> bytes:
    from array import array
    from base64 import b64encode

    vector = b64encode(array("f", VECTOR).tobytes()).decode() if packed else VECTOR
    data = [{"object": "embedding", "index": place, "embedding": vector} for place in range(count)]
    usage = {"prompt_tokens": 20 * count, "total_tokens": 20 * count}
    return json.dumps({"object": "list", "data": data, "model": "stub", "usage": usage}).encode()


async def serve(latency: float) -> None:
    """Serve at a free port of this machine, which is printed."""
    Connection.latency = latency
    server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--latency", type=float, default=0.2, help="seconds until each reply")
    asyncio.run(serve(parser.parse_args().latency))
