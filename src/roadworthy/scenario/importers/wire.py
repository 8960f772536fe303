"""A reader of protobuf's wire format, driven by a schema declared as data.

A message is read into tables, one for each place in the schema that a message can have: a row for each message, a
column for each field. One pass of compiled code reads the bytes at any nesting depth, so that callers work on whole
columns with NumPy:

    point = Message("Point", (Field(1, "x", Kind.DOUBLE), Field(2, "y", Kind.DOUBLE)))
    line = Message("Line", (Field(1, "id", Kind.INT64), Field(2, "points", point, repeated=True)))
    table = MessageReader(line).read(data)
    table.column("id")  # (1,)
    table.child("points").column("x")  # (points,)

The rules are protobuf's: unknown fields are skipped, repeated numbers may be packed or not, the last value of a single
field counts, and a single message in parts is merged. Two rules are stricter: a known field with an unexpected wire
type is an error, because its value would be lost silently, and so is a group.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from mmap import mmap
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roadworthy.errors import ScenarioError
from roadworthy.scenario.importers.wire_scan import FIXED32, FIXED64, LENGTH_DELIMITED, VARINT, Fault, Slot, scan
from roadworthy.scenario.schema import Bools, Bytes, Longs

Buffer = bytes | bytearray | memoryview | mmap

MAX_BYTES = 2**31 - 1  # of a message, protobuf's own limit
MAX_TABLE_BYTES = 4 << 30  # for all tables of a message: an empty message takes two bytes on the wire, but a row here
MAX_FIELDS = 63  # of a message: one bit each stores their presence


class Kind(Enum):
    """The type of a field's value. A protobuf enum is INT32."""

    DOUBLE = "double"
    FLOAT = "float"
    INT32 = "int32"
    INT64 = "int64"
    BOOL = "bool"
    STRING = "string"
    BYTES = "bytes"  # or a message for another reader


WIRE_TYPES = {
    Kind.DOUBLE: FIXED64,
    Kind.FLOAT: FIXED32,
    Kind.INT32: VARINT,
    Kind.INT64: VARINT,
    Kind.BOOL: VARINT,
    Kind.STRING: LENGTH_DELIMITED,
    Kind.BYTES: LENGTH_DELIMITED,
}


@dataclass(frozen=True)
class Field:
    """A field of a message. Fields that are not declared are skipped."""

    number: int
    name: str
    kind: Kind | Message
    repeated: bool = False

    @property
    def wire_type(self) -> int:
        return LENGTH_DELIMITED if isinstance(self.kind, Message) else WIRE_TYPES[self.kind]


@dataclass(frozen=True)
class Message:
    """The fields of a message that are read."""

    name: str
    fields: tuple[Field, ...]


def message(name: str, *fields: Field) -> Message:
    """Return a message with these fields."""
    return Message(name, fields)


class MessageReader:
    """A reader of messages with one schema. Creating it prepares the schema for the kernel, so create it once.

    A slot is a field of a table. A table is a message at its place in the schema, or the values of a repeated field.
    """

    def __init__(self, message: Message) -> None:
        self.paths: list[str] = []  # of each table, for errors
        self.slots: list[dict[str, int]] = []  # of each table: the slots of its fields by name
        self.fields: list[Field] = []  # of each slot
        self.children: list[int] = []  # of each slot: the table of its messages or repeated values, -1 for none
        self._add_table(message.name, message)
        numbers = [field.number for field in self.fields]
        # A table of values has one column. Others have one for the presence bits, and one per field.
        self.widths = np.array([1 + len(slots) for slots in self.slots])
        self._slots = np.zeros(len(numbers), Slot)
        self._slot_of_number = np.full((len(self.slots), 1 + max(numbers, default=0)), -1, np.int32)
        for table, slots in enumerate(self.slots):
            for place, slot in enumerate(slots.values()):
                field = self.fields[slot]
                self._slot_of_number[table, field.number] = slot
                is_message = isinstance(field.kind, Message)
                self._slots[slot] = field.wire_type, is_message, field.repeated, self.children[slot], place

    def read(self, data: Buffer) -> Table:
        """Return the message as a table of one row. ScenarioError names the byte and the field of damage."""
        if len(data) > MAX_BYTES:
            raise ScenarioError(f"a message has {len(data)} bytes; protobuf allows {MAX_BYTES}")
        octets = np.frombuffer(data, np.uint8)
        octets.flags.writeable = False  # the kernel is only compiled for read-only arrays
        # The first scan counts rows and finds all damage; the second fills the columns.
        starts = np.zeros(len(self.paths) + 1, np.int64)
        counts = self._scan(octets, starts[:-1], starts, np.empty(0, np.int64))
        starts = np.concatenate([[0], np.cumsum(counts * self.widths)])
        if 8 * starts[-1] > MAX_TABLE_BYTES:
            raise ScenarioError(
                f"reading its {len(data)} bytes takes {8 * starts[-1] / 1e9:.1f} GB of memory, allowed: "
                f"{MAX_TABLE_BYTES / 1e9:.1f} GB; it consists of nearly empty messages"
            )
        cells = np.zeros(starts[-1], np.int64)
        self._scan(octets, counts, starts, cells)
        return Table(_Reading(self, data, counts, starts, cells), 0)

    def _scan(self, octets: Bytes, totals: Longs, starts: Longs, cells: Longs) -> Longs:
        """Return (tables,) the number of rows."""
        counts = np.zeros(len(self.paths), np.int64)
        fault, at, table, number = scan(octets, self._slot_of_number, self._slots, totals, starts, cells, counts)
        if fault:
            raise ScenarioError(f"byte {at}, {self._name(table, number)}: {Fault(fault).describe()}")
        return counts

    def _add_table(self, path: str, message: Message | None) -> int:
        table = len(self.paths)
        self.paths.append(path)
        self.slots.append({})
        for field in message.fields if message else ():
            slot = self.slots[table][field.name] = len(self.fields)
            self.fields.append(field)
            self.children.append(-1)
            if field.repeated or isinstance(field.kind, Message):
                kind = field.kind if isinstance(field.kind, Message) else None
                self.children[slot] = self._add_table(f"{path}.{field.name}", kind)
        assert len(self.slots[table]) <= MAX_FIELDS
        return table

    def _name(self, table: int, number: int) -> str:
        """Return a field's path, for errors."""
        names = [name for name, slot in self.slots[table].items() if self.fields[slot].number == number]
        if not number:
            return self.paths[table]
        return f"{self.paths[table]}.{names[0]}" if names else f"{self.paths[table]}, field {number}"


class _Reading(NamedTuple):
    """The values of one message."""

    reader: MessageReader
    data: Buffer
    counts: Longs  # (tables,) rows
    starts: Longs  # (tables + 1,) table t has cells[starts[t]:starts[t + 1]], column by column
    cells: Longs  # bits of numbers, place and length of texts, or the number of a child's entries in the row

    def columns(self, table: int) -> Longs:
        """Return (columns, rows) the cells of a table."""
        cells = self.cells[self.starts[table] : self.starts[table + 1]]
        return cells.reshape(self.reader.widths[table], self.counts[table])


class Table:
    """All messages at one place of the schema, a row each, in the order of the bytes.

    The values of repeated fields and of message fields are stored together for all rows; `starts` assigns them to rows.
    """

    def __init__(self, reading: _Reading, number: int) -> None:
        self._reading = reading
        self._number = number
        self._slots = reading.reader.slots[number]

    def __len__(self) -> int:
        return int(self._reading.counts[self._number])

    def column(self, name: str) -> NDArray[Any]:
        """Return (rows,) numbers, 0 where the field is missing; (k,) if the field is repeated."""
        kind, raw = self._field(name).kind, self._raw(name)
        if kind is Kind.DOUBLE:
            return raw.view(np.float64)
        if kind is Kind.FLOAT:
            return raw.astype(np.uint32).view(np.float32)
        if kind is Kind.INT32:
            return raw.astype(np.int32)
        if kind is Kind.BOOL:
            return raw != 0
        assert kind is Kind.INT64, f"{name} holds no numbers"
        return raw

    def blobs(self, name: str) -> list[memoryview]:
        """Return (rows) the bytes of a string or bytes field, empty where it is missing; (k) if it is repeated."""
        data, raw = memoryview(self._reading.data), self._raw(name)
        return [data[cell >> 32 :][: cell & 0xFFFFFFFF] for cell in raw.tolist()]

    def texts(self, name: str) -> list[str]:
        """Return (rows) the texts of a string field, empty where it is missing; (k) if it is repeated."""
        blobs = self.blobs(name)
        try:
            return [str(blob, "utf-8") for blob in blobs]
        except UnicodeDecodeError as error:
            path = f"{self._reading.reader.paths[self._number]}.{name}"
            raise ScenarioError(f"{path}: {bytes(error.object)!r:.60} is not UTF-8 text") from None

    def child(self, name: str) -> Table:
        """Return (k rows) the messages of a field."""
        return Table(self._reading, self._reading.reader.children[self._slots[name]])

    def has(self, name: str) -> Bools:
        """Return (rows,) whether the field is present."""
        bits = self._reading.columns(self._number)[0]
        return (bits >> self._place(name)) & 1 != 0

    def starts(self, name: str) -> Longs:
        """Return (rows + 1,): row r owns the entries starts[r]..starts[r + 1] - 1 of a repeated or message field."""
        assert self._reading.reader.children[self._slots[name]] >= 0, f"{name} is single"
        counts = self._reading.columns(self._number)[1 + self._place(name)]
        return np.concatenate([[0], np.cumsum(counts)])

    def _field(self, name: str) -> Field:
        return self._reading.reader.fields[self._slots[name]]

    def _place(self, name: str) -> int:
        return list(self._slots).index(name)

    def _raw(self, name: str) -> Longs:
        if self._field(name).repeated:
            return self._reading.columns(self._reading.reader.children[self._slots[name]])[0]
        return self._reading.columns(self._number)[1 + self._place(name)]
