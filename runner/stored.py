"""Result files that are too large to be held as objects: a line is found in one pass and parsed when it is asked for.

The JSON lines are the truth. Scores are read from the Parquet file beside them only while its metadata names the very
bytes of the lines; a folder without one, or whose lines were edited, is read line by line.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from filecmp import cmp
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from adapters.schema import JudgeCard, Score, from_json
from runner.errors import DataError

if TYPE_CHECKING:
    from numpy import bool_, float64, int64
    from numpy.typing import NDArray

T = TypeVar("T")

BLOCK = 250_000
"""Bytes that are read at once; larger blocks leave the cache of a core and take longer."""
NEWLINE = 10
BATCH = 2_000
"""Lines that are parsed at once."""
OF_LINES = b"paribus.lines"
"""The key of the Parquet metadata with the identity of the lines that the table was written beside."""


def parsed(kind: type[T], line: bytes, path: Path, start: int) -> T:
    """The value of a line that starts at byte `start` of a file. Raises DataError with the number of the line."""
    from pydantic import ValidationError

    try:
        return from_json(kind, line.decode("utf-8"))
    except (ValidationError, ValueError) as error:
        said = " ".join(str(error).partition("For further information")[0].split())
        raise refused(path, start, said) from None


def refused(path: Path, start: int, said: str) -> DataError:
    """The error for the line that starts at byte `start`."""
    with path.open("rb") as file:
        number = 1 + sum(block.count(b"\n") for block in _blocks(file, start))
    return DataError(
        f"the result folder {path.parent} cannot be read: {path.name}, line {number}: {said[:300]}. Make the run again"
    )


def _blocks(file: Any, limit: int | None = None) -> Iterator[bytes]:
    while block := file.read(BLOCK if limit is None else min(BLOCK, limit)):
        limit = None if limit is None else limit - len(block)
        yield block


def identity(blocks: Iterable[bytes]) -> str:
    """What tells the bytes of one file from those of another: their number and CRC-32."""
    size, check = 0, 0
    for block in blocks:
        size, check = size + len(block), zlib.crc32(block, check)
    return f"{size}-{check:08x}"


def _after(block: bytearray, place: int, length: int) -> int:
    """Where the next line begins; length + 1 = not in this block."""
    return block.find(b"\n", place, length) + 1 or length + 1


class Lines(Mapping[str, T], Generic[T]):
    """The values of a JSONL file by the field that names them, which is found without parsing the line where it comes
    first, as in the files that paribus writes. What was parsed is kept. Raises DataError, when something is asked for,
    that names file and line: no JSON, an id that stands twice, another id than the line began with."""

    def __init__(self, path: Path, kind: type[T], field: str) -> None:
        self.path, self._kind, self._field = path, kind, field
        self._kept: dict[str, T] = {}

    @cached_property
    def _starts(self) -> dict[str, int]:
        begins = re.compile(rb'\{"%s":"([^"\\]*)"[,}]' % self._field.encode())
        ids: list[str] = []
        starts: list[int] = []
        slow: list[int] = []
        block = bytearray(BLOCK)
        with self.path.open("rb", buffering=0) as file:
            at, inside = 0, False  # where the block is in the file, and whether a line of the last one goes on in it
            while length := file.readinto(block):
                place = _after(block, 0, length) if inside else 0
                while place < length:
                    if block[place] != NEWLINE:
                        found = begins.match(block, place, length)
                        if not found:  # the id stands elsewhere, or is cut off by the end of the block
                            slow.append(len(ids))
                        ids.append(found[1].decode("utf-8") if found else "")
                        starts.append(at + place)
                    place = _after(block, place, length)
                inside = place > length
                at += length
        with self.path.open("rb") as lines:
            for row in slow:
                lines.seek(starts[row])
                line = lines.readline()
                found = begins.match(line)
                ids[row] = found[1].decode("utf-8") if found else self._slowly(line, starts[row])
        found_at = dict(zip(ids, starts, strict=True))
        if len(found_at) != len(ids):
            first = {id: row for row, id in reversed([*enumerate(ids)])}
            twice = next(row for row, id in enumerate(ids) if first[id] != row)
            raise refused(self.path, starts[twice], f"{ids[twice]!r} stands in an earlier line too")
        return found_at

    def _slowly(self, line: bytes, start: int) -> str:
        return str(getattr(parsed(self._kind, line, self.path, start), self._field))

    def __getitem__(self, id: str) -> T:
        if id not in self._kept:
            start = self._starts[id]
            with self.path.open("rb") as file:
                file.seek(start)
                self._kept[id] = self._checked(id, file.readline(), start)
        return self._kept[id]

    def _checked(self, id: str, line: bytes, start: int) -> T:
        value = parsed(self._kind, line, self.path, start)
        if (found := getattr(value, self._field)) != id:
            raise refused(self.path, start, f"it is of {found!r} and of {id!r}")
        return value

    def whole(self) -> dict[str, T]:
        """All of it, parsed."""
        starts, text = self._starts, self.path.read_bytes()
        ends = [*list(starts.values())[1:], len(text)]
        lines = zip(starts.items(), ends, strict=True) if starts else ()
        return {id: self._checked(id, text[start:end], start) for (id, start), end in lines}

    def __iter__(self) -> Iterator[str]:
        return iter(self._starts)

    def __len__(self) -> int:
        return len(self._starts)

    def __contains__(self, id: object) -> bool:
        return id in self._starts

    def fields(self) -> Iterator[Mapping[str, Any]]:
        """What the lines say, as JSON has it, unchecked and not kept."""
        from pydantic_core import from_json as parse

        with self.path.open("rb", buffering=BLOCK) as file:
            lines = (line for line in file if line != b"\n")
            while batch := list(islice(lines, BATCH)):
                try:
                    yield from parse(b"[" + b",".join(batch) + b"]")
                except ValueError:
                    dict(self)  # names the line
                    raise


def same_lines(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two mappings were read from files with the same bytes; False where that is not known."""
    return isinstance(one, Lines) and isinstance(other, Lines) and cmp(one.path, other.path, shallow=False)


@dataclass(frozen=True)
class Columns:
    """The scores of a run as arrays. ids: the questions that have one, in the order in which they come first; values:
    by definition, a number for each of `ids`, NaN = no value; flaky: likewise; judges: those that gave the scores of a
    definition, by fingerprint."""

    ids: Sequence[str]
    values: Mapping[str, NDArray[float64]]
    flaky: Mapping[str, NDArray[bool_]]
    judges: Mapping[str, Mapping[str, JudgeCard]]


def columns_of(scores: Mapping[str, Mapping[str, Score]]) -> Columns:
    """Scores by definition and question as arrays."""
    import numpy as np

    ids = list(dict.fromkeys(id for by_id in scores.values() for id in by_id))
    found = {key: [by_id.get(id) for id in ids] for key, by_id in scores.items()}
    return Columns(
        ids,
        {
            key: np.array([np.nan if score is None or score.value is None else score.value for score in column])
            for key, column in found.items()
        },
        {key: np.array([score is not None and score.flaky for score in column]) for key, column in found.items()},
        {
            key: {score.judge.fingerprint: score.judge for score in column if score and score.judge}
            for key, column in found.items()
        },
    )


@dataclass(frozen=True)
class _Table:
    """A row a line: places in `ids` and `keys`; value NaN = none; judge: a place in `judges`, -1 = none."""

    ids: list[str]
    id: NDArray[int64]
    keys: list[str]
    key: NDArray[int64]
    value: NDArray[float64]
    flaky: NDArray[bool_]
    judge: NDArray[int64]


class StoredScores(Mapping[str, Mapping[str, Score]]):
    """The scores of a result folder by definition and question. Values come from the Parquet file where it belongs to
    the lines. Raises DataError that names file and line."""

    def __init__(self, path: Path, table: Path) -> None:
        self.path, self._table_path = path, table
        self._kept: dict[str, _OfDefinition] = {}

    @cached_property
    def _scanned(self) -> tuple[str, NDArray[int64]]:
        """The identity of the file, and where its lines start that are not empty."""
        import numpy as np

        ends = [np.array([-1])]

        def seen(file: Any) -> Iterator[bytes]:
            at = 0
            for block in _blocks(file):
                ends.append(np.flatnonzero(np.frombuffer(block, dtype=np.uint8) == 10) + at)
                at += len(block)
                yield block
            ends.append(np.array([at]))

        with self.path.open("rb") as file:
            found = identity(seen(file))
        every = np.concatenate(ends)
        return found, (every[:-1] + 1)[np.diff(every) > 1]

    @cached_property
    def _rows(self) -> _Table:
        read = self._from_parquet()
        return read if read is not None else self._from_lines()

    def _from_parquet(self) -> _Table | None:
        import numpy as np
        import pyarrow
        from pyarrow import parquet

        found, starts = self._scanned
        try:
            with parquet.ParquetFile(self._table_path) as file:
                if (file.schema_arrow.metadata or {}).get(OF_LINES) != found.encode():
                    return None
                # Not parquet.read_table: it imports pyarrow.dataset, for half a second.
                table = file.read(["question_id", "definition", "value", "flaky", "judge.fingerprint"])
        except (OSError, pyarrow.ArrowException):
            return None
        if table.num_rows != len(starts):
            return None

        def plain(column: Any, none: Any, kind: Any, type: Any) -> NDArray[Any]:
            # Neither to_numpy nor fill_null: both import pandas, for half a second.
            found = column.cast(kind)
            valid, data = found.buffers()
            rows = slice(found.offset, found.offset + len(found))
            values = np.frombuffer(data, type)[rows]
            if valid is None:
                return values
            return np.where(np.unpackbits(np.frombuffer(valid, np.uint8), bitorder="little")[rows], values, none)

        def coded(column: Any) -> tuple[list[str], NDArray[int64]]:
            encoded = column.dictionary_encode()
            return encoded.dictionary.to_pylist(), plain(encoded.indices, -1, pyarrow.int64(), np.int64)

        columns = {name: table[name].combine_chunks() for name in ("question_id", "definition", "value", "flaky")}
        (ids, id), (keys, key) = (coded(columns[name]) for name in ("question_id", "definition"))
        _, judge = coded(table["judge"].combine_chunks().field("fingerprint"))
        value = plain(columns["value"], np.nan, pyarrow.float64(), np.float64)
        flaky = plain(columns["flaky"], 0, pyarrow.int8(), np.int8).astype(np.bool_)
        return _Table(ids, id, keys, key, value, flaky, judge)

    def _from_lines(self) -> _Table:
        import numpy as np

        ids: dict[str, int] = {}
        keys: dict[str, int] = {}
        judges: dict[str, int] = {}
        columns: tuple[list[int], list[int], list[float], list[bool], list[int]] = ([], [], [], [], [])
        with self.path.open("rb", buffering=BLOCK) as file:
            start = 0
            for line in file:
                if line != b"\n":
                    score = parsed(Score, line, self.path, start)
                    columns[0].append(ids.setdefault(score.question_id, len(ids)))
                    columns[1].append(keys.setdefault(score.definition, len(keys)))
                    columns[2].append(np.nan if score.value is None else score.value)
                    columns[3].append(score.flaky)
                    columns[4].append(judges.setdefault(score.judge.fingerprint, len(judges)) if score.judge else -1)
                start += len(line)
        id, key, value, flaky, judge = columns
        return _Table(
            list(ids),
            np.array(id, dtype=np.int64),
            list(keys),
            np.array(key, dtype=np.int64),
            np.array(value, dtype=np.float64),
            np.array(flaky, dtype=np.bool_),
            np.array(judge, dtype=np.int64),
        )

    @cached_property
    def rows(self) -> Mapping[str, NDArray[int64]]:
        """By definition, the number of the line of each question of `columns.ids`, from 0; -1 = it has none."""
        import numpy as np

        table = self._rows
        found = {}
        for place, key in enumerate(table.keys):
            lines = np.flatnonzero(table.key == place)
            rows = np.full(len(table.ids), -1, dtype=np.int64)
            rows[table.id[lines]] = lines
            if len(lines) != np.count_nonzero(rows >= 0):
                (twice, *_) = (line for line in lines if rows[table.id[line]] != line)
                id = table.ids[table.id[twice]]
                raise refused(self.path, int(self._scanned[1][rows[table.id[twice]]]), f"{key} on {id!r} stands twice")
            found[key] = rows
        return found

    @cached_property
    def columns(self) -> Columns:
        """The scores as arrays."""
        import numpy as np

        table = self._rows
        values, flaky = {}, {}
        judges: dict[str, dict[str, JudgeCard]] = {}
        for key, rows in self.rows.items():
            there = rows >= 0
            values[key] = np.where(there, table.value[rows], np.nan)
            flaky[key] = there & table.flaky[rows]
            cards, first = np.unique(table.judge[rows[there]], return_index=True)
            lines = rows[there][first[cards >= 0]]
            found = [self._read(int(line)).judge for line in lines]
            judges[key] = {card.fingerprint: card for card in found if card}
        return Columns(table.ids, values, flaky, judges)

    @cached_property
    def places(self) -> Mapping[str, int]:
        """The place of each question in `columns.ids`."""
        return {id: place for place, id in enumerate(self._rows.ids)}

    def score(self, key: str, id: str) -> Score:
        """One score. Raises KeyError where there is none."""
        row = int(self.rows[key][self.places[id]])
        if row < 0:
            raise KeyError(id)
        score = self._read(row)
        if (score.definition, score.question_id) != (key, id):
            start = int(self._scanned[1][row])
            told = f"it is {score.definition} on {score.question_id!r}, and {key} on {id!r} was there a moment ago"
            raise refused(self.path, start, told)
        return score

    def _read(self, row: int) -> Score:
        start = int(self._scanned[1][row])
        with self.path.open("rb") as file:
            file.seek(start)
            return parsed(Score, file.readline(), self.path, start)

    def __getitem__(self, key: str) -> Mapping[str, Score]:
        if key not in self._kept:
            self._kept[key] = _OfDefinition(self, key, self.rows[key])
        return self._kept[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows.keys)

    def __len__(self) -> int:
        return len(self._rows.keys)


class _OfDefinition(Mapping[str, Score]):
    def __init__(self, scores: StoredScores, key: str, rows: NDArray[int64]) -> None:
        self._scores, self._key, self._rows = scores, key, rows
        self._kept: dict[str, Score] = {}

    def __getitem__(self, id: str) -> Score:
        if id not in self._kept:
            self._kept[id] = self._scores.score(self._key, id)
        return self._kept[id]

    def __iter__(self) -> Iterator[str]:
        return (id for id, row in zip(self._scores.places, self._rows.tolist(), strict=True) if row >= 0)

    def __len__(self) -> int:
        return int((self._rows >= 0).sum())

    def __contains__(self, id: object) -> bool:
        place = self._scores.places.get(id) if isinstance(id, str) else None
        return place is not None and bool(self._rows[place] >= 0)
