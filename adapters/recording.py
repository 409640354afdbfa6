"""What a judge replied, written down as it comes, so that a run can be scored again without asking it.

One JSON line a reply. The first line holds the card of the judge; then {"key", "definition", "call", "question",
"sample", "text", "tokens_in", "tokens_out", "finish_reason", "model"} for each reply and {"embed", "vector"} for each
embedded text, by SHA-256. Prompts are not in it: `key` is the hash of messages, schema and sample (Call.key).
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self

from pydantic import FiniteFloat, TypeAdapter, ValidationError

from adapters.judge import Call, Reply
from adapters.schema import JudgeCard

RECORDING_VERSION = 1
"""Changes when a field of a recording changes its meaning."""


class RecordingError(Exception):
    """A recording cannot be read or written; one sentence that names file and line."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """One reply and the call that it was given to."""

    key: str
    definition: str
    call: str
    question: str
    sample: int
    text: str
    tokens_in: int | None
    tokens_out: int | None
    finish_reason: str | None
    model: str | None

    @property
    def reply(self) -> Reply:
        """The reply as the judge gave it."""
        return Reply(self.text, self.tokens_in, self.tokens_out, self.finish_reason, self.model)


@dataclass(frozen=True)
class Recording:
    """A recording, read. replies: by Call.key; vectors: by `text_hash`. lost: what is said of a last line that is cut
    off (a crash while it was written); None = nothing is lost."""

    card: JudgeCard
    replies: Mapping[str, Recorded]
    vectors: Mapping[str, list[float]]
    lost: str | None


def text_hash(text: str) -> str:
    """SHA-256 of a text, by which its vector is found."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def load(path: str | Path) -> Recording:
    """Read a recording; the last of several replies with one key stands, because one before it was of no use.

    Raises RecordingError naming file and line.
    """
    try:
        lines = Path(path).read_bytes().split(b"\n")
    except OSError as error:
        raise RecordingError(f"the recording {path} cannot be read: {error.strerror}") from None
    # Every line is written with its newline, so what comes after the last one was cut off, unless an editor took the
    # newline away: an object that was cut off is no JSON.
    if _is_json(lines[-1]):
        lines.append(b"")
    lost = f"line {len(lines)} of the recording {path} is cut off, and what it held is lost" if lines[-1] else None
    header = _object(lines[0], path, 1) if len(lines) > 1 else _wrong(path, 1, "there is no whole line in it")
    if header.get("schema_version") != RECORDING_VERSION:
        _wrong(path, 1, f"schema_version is {header.get('schema_version')!r}, and {RECORDING_VERSION} can be read")
    try:
        card = _CARD.validate_python(header.get("judge"))
    except ValidationError as error:
        _wrong(path, 1, f"judge is no card of a judge: {_told(error)}")
    replies: dict[str, Recorded] = {}
    vectors: dict[str, list[float]] = {}
    for number, line in enumerate(lines[1:-1], 2):
        data = _object(line, path, number)
        try:
            if "embed" in data:
                vector = _VECTOR.validate_python(data)
                vectors.setdefault(vector.embed, vector.vector)
            else:
                reply = _REPLY.validate_python(data)
                replies[reply.key] = reply
        except ValidationError as error:
            _wrong(path, number, _told(error))
    return Recording(card, replies, vectors, lost)


class Recorder:
    """Appends replies and vectors to a recording as they come, each once; safe for threads. Use as a context manager.
    A call that was answered anew, because a definition refused what was said before, has its new reply behind the old.

    A recording that is there is continued, after a last line that was cut off is taken away. Raises RecordingError
    where it is another judge's, or cannot be read or written.
    """

    def __init__(self, path: str | Path, card: JudgeCard) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        self._known: dict[str, Reply | None] = {}
        begun = self.path.exists() and b"\n" in self.path.read_bytes()
        if begun:
            recording = load(self.path)
            if recording.card.fingerprint != card.fingerprint:
                raise RecordingError(
                    f"{self.path} holds replies of another judge ({recording.card.provider} {recording.card.model}, "
                    f"{recording.card.fingerprint}; now {card.provider} {card.model}, {card.fingerprint}); choose "
                    "another file"
                )
            self._known = {key: found.reply for key, found in recording.replies.items()}
            self._known |= dict.fromkeys(recording.vectors)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            written = self.path.read_bytes()
            if begun and _is_json(written.rpartition(b"\n")[2]):
                os.write(self._file, b"\n")
            else:
                os.ftruncate(self._file, written.rfind(b"\n") + 1)
        except OSError as error:
            raise RecordingError(f"the recording {self.path} cannot be written: {error.strerror}") from None
        if not begun:
            self._append({"schema_version": RECORDING_VERSION, "judge": asdict(card)})

    def reply(self, call: Call, reply: Reply) -> None:
        """Write down one reply; a listener of adapters.bench.Bench."""
        recorded = Recorded(
            key=call.key,
            definition=call.definition,
            call=call.name,
            question=call.question.id,
            sample=call.sample,
            text=reply.text,
            tokens_in=reply.tokens_in,
            tokens_out=reply.tokens_out,
            finish_reason=reply.finish_reason,
            model=reply.model,
        )
        self._once(recorded.key, asdict(recorded), recorded.reply)

    def embedding(self, text: str, vector: list[float]) -> None:
        """Write down one vector; a listener of adapters.bench.Bench."""
        self._once(text_hash(text), {"embed": text_hash(text), "vector": vector})

    def close(self) -> None:
        """Close the file; everything was written when it came."""
        with self._lock:
            os.close(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _once(self, key: str, data: Mapping[str, Any], reply: Reply | None = None) -> None:
        with self._lock:
            if key not in self._known or self._known[key] != reply:
                self._append(data)
                self._known[key] = reply

    def _append(self, data: Mapping[str, Any]) -> None:
        line = memoryview(json.dumps(data, allow_nan=False).encode("ascii") + b"\n")
        try:
            while line:
                line = line[os.write(self._file, line) :]
        except OSError as error:
            raise RecordingError(f"the recording {self.path} cannot be written: {error.strerror}") from None


@dataclass(frozen=True, slots=True)
class _Vector:
    embed: str
    vector: list[FiniteFloat]


_CARD, _REPLY, _VECTOR = TypeAdapter(JudgeCard), TypeAdapter(Recorded), TypeAdapter(_Vector)


def _is_json(line: bytes) -> bool:
    try:
        return bool(json.loads(line))
    except (ValueError, RecursionError):
        return False


def _object(line: bytes, path: str | Path, number: int) -> dict[str, Any]:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        _wrong(path, number, "it is no JSON")
    if not isinstance(data, dict):
        _wrong(path, number, "it is no JSON object")
    return data


def _wrong(path: str | Path, number: int, why: str) -> NoReturn:
    raise RecordingError(f"line {number} of the recording {path} cannot be used: {why}")


def _told(error: ValidationError) -> str:
    fault = error.errors(include_url=False)[0]
    return f"{'.'.join(map(str, fault['loc']))}: {fault['msg'][0].lower()}{fault['msg'][1:]}"
