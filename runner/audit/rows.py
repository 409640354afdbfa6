"""Rows of a file of answers, by its suffix: JSON Lines, JSON, CSV, TSV or Parquet; and the lists inside their cells."""

from __future__ import annotations

import ast
import csv
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from runner.datasets.faults import MAX_DEPTH, kind_of, shown
from runner.datasets.jsonl import Entry
from runner.datasets.records import parse_json, parse_line
from runner.errors import DataError, MissingExtra

FORMATS = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet")


def read_rows(path: Path) -> tuple[list[str], list[Entry]]:
    """The names of the columns, in order, and what stands in each row."""
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        packed = "; unpack it first" if suffix in (".gz", ".zip", ".bz2", ".xz", ".zst") else ""
        raise DataError(f"{path} is no file of answers by its name: expected {', '.join(FORMATS)}{packed}")
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error
    for start, what in (
        (b"\x1f\x8b", "packed with gzip: unpack it first"),
        (b"PK\x03\x04", "a ZIP archive or an Excel workbook: save it as CSV or JSON Lines"),
        (b"\xff\xfe", "UTF-16: save it as UTF-8"),
        (b"\xfe\xff", "UTF-16: save it as UTF-8"),
    ):
        if raw.startswith(start):
            raise DataError(f"{path} is {what}")
    if raw.startswith(b"PAR1") != (suffix == ".parquet"):
        raise DataError(f"{path} is {'no ' * (suffix == '.parquet')}Parquet: its name and its content do not agree")
    match suffix:
        case ".parquet":
            names, entries = _parquet(path, raw)
        case ".json":
            names, entries = _json(path, raw)
        case ".csv" | ".tsv":
            names, entries = _table(path, raw, "\t" if suffix == ".tsv" else None)
        case _:
            names, entries = _lines(path, raw)
    if not entries:
        raise DataError(f"{path} has no row")
    # The index of a pandas table: it has no name, or this one.
    return [name for name in names if name.strip() and not name.startswith("__index_level_")], entries


def _columns(entries: Iterable[Entry]) -> list[str]:
    return list(dict.fromkeys(name for entry in entries for name in entry.fields or ()))


def _null(word: str) -> None:
    """What pandas and the frameworks write for a missing number (NaN) is a missing value here."""


def _lines(path: Path, raw: bytes) -> tuple[list[str], list[Entry]]:
    place = shown(path.as_posix())
    entries = [
        Entry(f"{place}:{number}", *parse_line(line, _null))
        for number, line in enumerate(raw.split(b"\n"), 1)
        if line.removeprefix(b"\xef\xbb\xbf").strip()
    ]
    return _columns(entries), entries


def _json(path: Path, raw: bytes) -> tuple[list[str], list[Entry]]:
    try:
        whole, twice = parse_json(raw, _null)
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise DataError(f"{path}:{line}: byte 0x{raw[error.start]:02x} is not UTF-8; save the file as UTF-8") from None
    except json.JSONDecodeError as error:
        hint = "; with one object a line, name it .jsonl" if error.msg == "Extra data" else ""
        raise DataError(f"{path}:{error.lineno}: not valid JSON at column {error.colno} ({error.msg}){hint}") from None
    except RecursionError:
        raise DataError(f"{path} is nested deeper than {MAX_DEPTH} levels") from None
    if twice:
        raise DataError(f"{path}: {shown(twice[0])} stands twice in one object; keep one")
    inside = ""
    if isinstance(whole, dict):
        lists = {
            name: value
            for name, value in whole.items()
            if isinstance(value, list) and value and all(isinstance(item, dict) for item in value)
        }
        if len(lists) != 1:
            which = f"has {' and '.join(map(shown, lists))}" if lists else f"holds {', '.join(map(shown, whole))}"
            raise DataError(
                f"{path} is an object that {which}; expected a list of objects, or an object with one such list "
                '(pandas writes one with orient="records")'
            )
        ((inside, whole),) = lists.items()
    if not isinstance(whole, list):
        raise DataError(f"{path} is {kind_of(whole)}, expected a list of objects")
    place = f"{shown(path.as_posix())}: {f'{shown(inside)}, ' if inside else ''}row"
    entries = [
        Entry(f"{place} {number}", item, [])
        if isinstance(item, dict)
        else Entry(f"{place} {number}", None, [f"the row is {kind_of(item)}, expected an object"])
        for number, item in enumerate(whole, 1)
    ]
    return _columns(entries), entries


def _table(path: Path, raw: bytes, delimiter: str | None) -> tuple[list[str], list[Entry]]:
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise DataError(f"{path}:{line}: byte 0x{raw[error.start]:02x} is not UTF-8; save the file as UTF-8") from None
    if "\n" not in text:
        text = text.replace("\r", "\n")  # the lines of old Excel for Mac
    header = text.partition("\n")[0]
    # A cell of contexts is easily longer than the 131,072 characters that csv allows unless told otherwise.
    allowed = csv.field_size_limit(sys.maxsize)
    try:
        rows = csv.reader(_cut(text), delimiter=delimiter or max(",;\t", key=header.count), strict=True)
        try:
            names = next(rows, [])
        except csv.Error as error:
            raise DataError(f"{path}:1: the header is not a row of a table ({error}); save the file as CSV") from None
        if twice := [name for name, n in Counter(names).items() if n > 1 and name.strip()]:
            raise DataError(f"{path}: two columns are called {shown(twice[0])}; rename one")
        return names, list(_cells(path, names, rows))
    finally:
        csv.field_size_limit(allowed)


def _cut(text: str) -> Iterator[str]:
    """Lines with their ends, cut at line feeds alone: other separators of str.splitlines are text inside a cell."""
    start = 0
    while start < len(text):
        end = text.find("\n", start) + 1 or len(text)
        yield text[start:end]
        start = end


def _cells(path: Path, names: Sequence[str], rows: Any) -> Iterator[Entry]:
    """One entry a row; an empty cell is a missing value, because a table cannot say that a text is empty."""
    place = shown(path.as_posix())
    while True:
        began = rows.line_num + 1
        try:
            cells = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            yield Entry(f"{place}:{began}", None, [f"not a row of a table ({error}); quotes in a cell are doubled"])
            return
        if len(cells) == len(names):
            yield Entry(f"{place}:{began}", {n: c or None for n, c in zip(names, cells, strict=True)}, [])
        elif any(cells):
            yield Entry(f"{place}:{began}", None, [f"the row has {len(cells)} cells, the header has {len(names)}"])


def _parquet(path: Path, raw: bytes) -> tuple[list[str], list[Entry]]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra(f"{path}: reading Parquet takes pyarrow: pip install pyarrow") from None
    try:
        table = pyarrow.parquet.read_table(pyarrow.BufferReader(raw))
    except (OSError, pyarrow.ArrowException) as error:
        raise DataError(f"{path} cannot be read as Parquet: {error}") from error
    place = f"{shown(path.as_posix())}: row"
    return list(table.column_names), [Entry(f"{place} {n}", row, []) for n, row in enumerate(table.to_pylist(), 1)]


# Cells.

_QUOTED = r"""(?:np\.str_\()?('[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*")\)?"""
_STRINGS = re.compile(rf"\[\s*(?:{_QUOTED}(?:(?:\s*,\s*|\s+){_QUOTED})*)?\s*,?\s*\]", re.DOTALL)
_QUOTES = re.compile(_QUOTED, re.DOTALL)


def from_json(text: str) -> Any:
    """What text says as JSON, also with line breaks as they are in its texts; None where it is none."""
    try:
        return json.loads(text, parse_constant=_null, strict=False)
    except (ValueError, RecursionError):
        return None


def from_python(text: str) -> Any:
    """What text says as Python writes it, which is how pandas puts lists and objects into a cell; None where it does
    not."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def listed(cell: str) -> list[Any] | str | None:
    """A cell as a list: JSON, Python's way of writing one, or NumPy's. None: it is no list; text: why it is broken."""
    bare = cell.strip()
    if not (bare.startswith("[") and bare.endswith("]")):
        return None
    found = from_json(bare)
    if found is None and _STRINGS.fullmatch(bare):
        # Python reads 'a' 'b' as 'ab', so NumPy's lists, which have no commas, are taken apart literal by literal.
        literals = [from_python(literal) for literal in _QUOTES.findall(bare)]
        return literals if None not in literals else "has a line break or an escape inside quotes; write it as JSON"
    if found is None:
        found = from_python(bare)
    if isinstance(found, list):
        return found
    if re.fullmatch(r"\[\s*\d+(\s+\d+)*\s*\]", bare):
        return bare[1:-1].split()
    if not re.match(r"\[\s*['\"{]", bare):
        return None
    if re.search(r"['\"]\s*\.\.\.\s*['\"]", bare):
        return "is a long array as NumPy prints it, with ... for what it left out; save the file as JSON Lines"
    return "begins like a list and cannot be read as one; write it as JSON"
