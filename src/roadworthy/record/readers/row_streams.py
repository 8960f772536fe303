"""Streams of rows from CSV, TSV, JSON lines, JSON and parquet files, with the line or row of each.

JSON lines, CSV and parquet are read in parts, so that a file of any size takes little memory; JSON is read whole.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from datetime import date, time
from decimal import Decimal
from pathlib import Path
from typing import Any

from roadworthy.errors import RecordError
from roadworthy.record.readers.log import MOST_COLUMNS, Record, flat, printable

Skip = Callable[[RecordError], None]  # is told about a row that is left out

LONGEST_LINE = 64 << 20  # bytes
LARGEST_JSON = 1 << 30  # bytes; a JSON file is read whole
ROW_LISTS = ("episodes", "results", "rows", "records", "data", "samples")
_ROWS_AT_ONCE = 2048
_LARGEST_ROW_GROUP = 8 << 30  # bytes, uncompressed
_DELIMITERS = (",", "\t", ";")


def parse_json(text: bytes | str, where: str) -> Any:
    """Parse JSON; raise RecordError that names the place."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        column = f", column {error.colno}" if error.lineno == 1 else f", line {error.lineno}, column {error.colno}"
        raise RecordError(f"{where}{column}: is not JSON: {error.msg}") from error
    except RecursionError as error:
        raise RecordError(f"{where}: is JSON that is nested too deep to be read") from error
    except ValueError as error:  # not UTF-8, or a number with thousands of digits
        raise RecordError(f"{where}: is not JSON: {printable(str(error))}") from error


def json_lines(path: Path, skip: Skip | None = None) -> Iterator[Record]:
    """Yield the rows of a file with a JSON object on each line; damaged lines go to `skip`, if it is given."""
    for number, line, is_whole in _lines(path):
        try:
            yield _json_row(path, number, line, is_whole)
        except RecordError as error:
            if skip is None:
                raise
            skip(error)


def _json_row(path: Path, number: int, line: bytes, is_whole: bool) -> Record:
    where = f"{path}, line {number}"
    try:
        row = parse_json(line, where)
    except RecordError as error:
        if is_whole:
            raise
        raise RecordError(
            f"{where}: the last line is cut off, as if the process that wrote it was killed; remove the line, or "
            "give --skip-damaged"
        ) from error
    if not isinstance(row, dict):
        raise RecordError(f"{where}: expected a JSON object, one episode per line; found {type(row).__name__}")
    return Record(f"line {number}", flat(row, where))


def _lines(path: Path) -> Iterator[tuple[int, bytes, bool]]:
    """Yield the number and the bytes of each line that is not empty, and whether it ends with a newline."""
    with _open(path) as file:
        number = 0
        while line := file.readline(LONGEST_LINE + 1):
            number += 1
            if len(line) > LONGEST_LINE:
                raise RecordError(
                    f"{path}, line {number}: is longer than {LONGEST_LINE >> 20} MiB; expected one episode per line"
                )
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            if line.strip():
                yield number, line, line.endswith(b"\n")


def first_object(path: Path) -> Mapping[str, Any]:
    """Return the first row of a file of JSON lines; {} where there is none that can be read."""
    try:
        _, line, _ = next(_lines(path))
        row = json.loads(line)
    except (RecordError, OSError, ValueError, RecursionError, StopIteration):
        return {}
    return row if isinstance(row, dict) else {}


def csv_rows(path: Path, skip: Skip | None = None) -> Iterator[Record]:
    """Yield the rows of a table of text with a header; the delimiter is a comma, a tab or a semicolon."""
    with _open(path) as raw:
        texts = _decoded(path, raw)
        first = next(texts, "")
        delimiter = max(_DELIMITERS, key=first.count)
        reader = csv.reader(_chained(first, texts), delimiter=delimiter, strict=True)
        try:
            header = [name.strip() for name in next(reader, [])]
            _require_header(path, header)
            for row in reader:
                if not row:
                    continue
                if len(row) != len(header):
                    error = RecordError(
                        f"{path}, line {reader.line_num}: has {len(row)} values, but the header names {len(header)} "
                        f"columns ({_some(header)}); is the line cut off? Correct it, or give --skip-damaged"
                    )
                    if skip is None:
                        raise error
                    skip(error)
                    continue
                yield Record(f"line {reader.line_num}", dict(zip(header, row, strict=True)))
        except csv.Error as error:
            raise RecordError(
                f"{path}, line {reader.line_num}: is not a table of text: {printable(str(error))}"
            ) from error


def _require_header(path: Path, header: list[str]) -> None:
    if not any(header):
        raise RecordError(f"{path}, line 1: expected a header with the names of the columns; the file is empty")
    repeated = next((name for place, name in enumerate(header) if name in header[:place]), None)
    if repeated is not None:
        raise RecordError(f"{path}, line 1: the column {repeated[:80]!r} occurs twice in the header; rename one")
    if len(header) > MOST_COLUMNS:
        raise RecordError(f"{path}, line 1: has {len(header)} columns; expected at most {MOST_COLUMNS}")


def _decoded(path: Path, file: Any) -> Iterator[str]:
    number = 0
    while line := file.readline(LONGEST_LINE):
        number += 1
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise RecordError(f"{path}, line {number}: is not UTF-8 text: {error.reason}") from error


def _chained(first: str, rest: Iterator[str]) -> Iterator[str]:
    yield first
    yield from rest


def parquet_rows(path: Path) -> Iterator[Record]:
    """Yield the rows of a parquet file."""
    import pyarrow
    import pyarrow.parquet

    number = 0
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            for place in range(file.metadata.num_row_groups):
                size = file.metadata.row_group(place).total_byte_size
                if size > _LARGEST_ROW_GROUP:
                    raise RecordError(f"{path}: row group {place} has {size / 1e9:.0f} GB; write smaller row groups")
            for batch in file.iter_batches(_ROWS_AT_ONCE):
                for row in batch.to_pylist():
                    number += 1
                    where = f"{path}, row {number}"
                    yield Record(f"row {number}", flat(_with_more(_simple(row)), where))
    except FileNotFoundError:
        raise RecordError(f"{path}: there is no such file") from None
    except (pyarrow.ArrowException, OSError, ValueError, OverflowError, UnicodeDecodeError) as error:
        raise RecordError(
            f"{path}: can't be read as parquet after row {number}: {printable(str(error).strip())}"
        ) from error


def _simple(value: Any) -> Any:
    """Return a value of parquet with the types that JSON has; binary data and maps are left out."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, dict):
        return {str(key): _simple(part) for key, part in value.items()}
    if isinstance(value, list):
        return None if any(isinstance(part, tuple) for part in value) else [_simple(part) for part in value]
    if isinstance(value, Decimal):
        return float(value)
    return value.isoformat() if isinstance(value, date | time) else None


def _with_more(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with the fields that a run's table keeps together as JSON."""
    more = row.get("more")
    if not isinstance(more, str):
        return row
    try:
        extra = json.loads(more)
    except (ValueError, RecursionError):
        return row
    return {**row, **extra} if isinstance(extra, dict) else row


def json_rows(path: Path) -> Iterator[Record]:
    """Yield the rows of a JSON file: a list of objects, an object with one such list, or lists as columns."""
    value = read_whole_json(path)
    name = ""
    if isinstance(value, dict):
        lists = {key: part for key, part in value.items() if _is_rows(part)}
        chosen = next((key for key in ROW_LISTS if key in lists), None)
        if chosen is None and len(lists) > 1:
            raise RecordError(f"{path}: has several lists of objects ({_some(list(lists))}); write the episodes alone")
        chosen = chosen or next(iter(lists), None)
        if chosen is not None:
            name, value = printable(chosen), lists[chosen]
        else:
            value = _columns(path, value)
    if not isinstance(value, list):
        raise RecordError(f"{path}: expected a list of objects, one per episode; found {type(value).__name__}")
    for number, row in enumerate(value):
        where = f"{name}[{number}]"
        if not isinstance(row, dict):
            raise RecordError(f"{path}, {where}: expected an object, one episode each; found {type(row).__name__}")
        yield Record(where, flat(row, f"{path}, {where}"))


def _is_rows(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _columns(path: Path, value: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of an object whose values are equally long lists."""
    lengths = {key: len(part) for key, part in value.items() if isinstance(part, list)}
    if not lengths or len(lengths) < len(value):
        raise RecordError(
            f"{path}: expected a list of objects, one per episode, or an object with such a list under one of "
            f"{', '.join(ROW_LISTS)}; found an object with {_some(list(value))}"
        )
    if len(set(lengths.values())) > 1:
        short, long = min(lengths, key=lambda key: lengths[key]), max(lengths, key=lambda key: lengths[key])
        raise RecordError(
            f"{path}: its columns differ in length: {short[:80]!r} has {lengths[short]} values, {long[:80]!r} "
            f"{lengths[long]}"
        )
    return [dict(zip(value, row, strict=True)) for row in zip(*value.values(), strict=True)]


def read_whole_json(path: Path) -> Any:
    """Return the content of a JSON file."""
    with _open(path) as file:
        text = file.read(LARGEST_JSON + 1)
    if len(text) > LARGEST_JSON:
        raise RecordError(
            f"{path}: is larger than {LARGEST_JSON >> 30} GiB; a JSON file is read whole: write JSON lines or parquet"
        )
    return parse_json(text.removeprefix(b"\xef\xbb\xbf"), str(path))


def _open(path: Path) -> Any:
    try:
        return path.open("rb")
    except OSError as error:
        raise RecordError(f"{path}: can't be read: {error.strerror}") from error


def _some(names: list[str]) -> str:
    return ", ".join(repr(str(name)[:40]) for name in names[:8]) + (", ..." if len(names) > 8 else "")
