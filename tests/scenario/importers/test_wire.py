"""The wire format: messages of google.protobuf are read back, and damage is located."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadworthy.errors import ScenarioError
from roadworthy.scenario.importers.wire import Field, Kind, Message, MessageReader, Table
from tests.scenario.importers.encoder import message_classes

KINDS = {"double": Kind.DOUBLE, "float": Kind.FLOAT, "int32": Kind.INT32, "int64": Kind.INT64, "bool": Kind.BOOL}
SCHEMA = {
    "Leaf": "1 o double d; 2 o float f; 3 o int32 i; 16 o int64 l; 5 o bool b; 2000 o string s",
    "Branch": "1 o Leaf leaf; 2 r Leaf leaves; 3 r int64 loose; 4 p int32 packed; 5 p double points; 6 p float dots",
    "Root": "1 o int32 id; 2 r Branch branches; 3 o Branch trunk; 4 r string names; 5 r bytes blobs; 6 r bool flags",
}
# The same messages with extensions.
EXTENDED = {
    name: f"{fields}; 900 o double x; 901 o float y; 902 r string z; 903 p int64 w" for name, fields in SCHEMA.items()
}
CLASSES, EXTENDED_CLASSES = message_classes(SCHEMA), message_classes(EXTENDED)


def declared(name: str) -> Message:
    """Return a message of SCHEMA as the reader's schema."""
    fields = []
    for text in SCHEMA[name].split("; "):
        number, label, kind, field = text.split()
        known = {**KINDS, "string": Kind.STRING, "bytes": Kind.BYTES}
        fields.append(Field(int(number), field, declared(kind) if kind in SCHEMA else known[kind], label != "o"))
    return Message(name, tuple(fields))


ROOT = declared("Root")
READER = MessageReader(ROOT)


def as_data(message: Any, schema: Message) -> dict[str, Any]:
    """Return the content of a google.protobuf message: presence, default values and all."""
    data: dict[str, Any] = {}
    for field in schema.fields:
        value = getattr(message, field.name)
        if isinstance(field.kind, Message):
            present = list(value) if field.repeated else [value] if message.HasField(field.name) else []
            data[field.name] = [as_data(item, field.kind) for item in present]
        else:
            data[field.name] = list(value) if field.repeated else (message.HasField(field.name), value)
    return data


def read_as_data(table: Table, schema: Message) -> list[dict[str, Any]]:
    """Return the same from a table, row by row."""
    rows: list[dict[str, Any]] = [{} for _ in range(len(table))]
    for field in schema.fields:
        values: list[Any]
        if isinstance(field.kind, Message):
            values = read_as_data(table.child(field.name), field.kind)
        elif field.kind is Kind.STRING:
            values = table.texts(field.name)
        elif field.kind is Kind.BYTES:
            values = [bytes(blob) for blob in table.blobs(field.name)]
        else:
            values = table.column(field.name).tolist()
        if field.repeated or isinstance(field.kind, Message):
            starts = table.starts(field.name).tolist()
            assert starts[-1] == len(values)
            entries: list[Any] = [values[a:b] for a, b in pairwise(starts)]
        else:
            entries = list(zip(table.has(field.name).tolist(), values, strict=True))
        for row, entry in zip(rows, entries, strict=True):
            row[field.name] = entry
    return rows


numbers = {
    "d": st.floats(allow_nan=False),
    "f": st.floats(width=32, allow_nan=False),
    "i": st.integers(-(2**31), 2**31 - 1),
    "l": st.integers(-(2**63), 2**63 - 1),
    "b": st.booleans(),
    "s": st.text(max_size=5),
}


def some(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(strategy, max_size=4)


leaves = st.fixed_dictionaries({}, optional=numbers)
branches = st.fixed_dictionaries(
    {},
    optional={
        "leaf": leaves,
        "leaves": some(leaves),
        "loose": some(numbers["l"]),
        "packed": some(numbers["i"]),
        "points": some(numbers["d"]),
        "dots": some(numbers["f"]),
    },
)
unknown = {"x": numbers["d"], "y": numbers["f"], "z": some(numbers["s"]), "w": some(numbers["l"])}
roots = {
    "id": numbers["i"],
    "branches": some(branches),
    "trunk": branches,
    "names": some(numbers["s"]),
    "blobs": some(st.binary(max_size=5)),
    "flags": some(numbers["b"]),
}


@given(st.fixed_dictionaries({}, optional=roots))
def test_any_message_of_google_protobuf_is_read_back(content: dict[str, Any]) -> None:
    message = CLASSES["Root"](**content)
    assert read_as_data(READER.read(message.SerializeToString()), ROOT) == [as_data(message, ROOT)]


@given(st.fixed_dictionaries({}, optional=roots), st.fixed_dictionaries({}, optional=roots))
def test_messages_put_one_after_another_are_merged_as_protobuf_does(one: dict[str, Any], two: dict[str, Any]) -> None:
    data = CLASSES["Root"](**one).SerializeToString() + CLASSES["Root"](**two).SerializeToString()
    merged = CLASSES["Root"].FromString(data)
    assert read_as_data(READER.read(data), ROOT) == [as_data(merged, ROOT)]


@given(st.fixed_dictionaries(unknown, optional={**roots, "trunk": st.fixed_dictionaries(unknown)}))
def test_unknown_fields_are_skipped(content: dict[str, Any]) -> None:
    data = EXTENDED_CLASSES["Root"](**content).SerializeToString()
    assert read_as_data(READER.read(data), ROOT) == [as_data(CLASSES["Root"].FromString(data), ROOT)]


@pytest.mark.parametrize("label", ["r", "p"])
def test_repeated_numbers_are_read_packed_or_not(label: str) -> None:
    values = [1, -1, 2**31 - 1, 0]
    schema = {"M": f"1 {label} int32 i; 2 {label} double d; 3 {label} float f; 4 {label} bool b"}
    data = message_classes(schema)["M"](i=values, d=values, f=values, b=[True, False]).SerializeToString()
    kinds = {"i": Kind.INT32, "d": Kind.DOUBLE, "f": Kind.FLOAT, "b": Kind.BOOL}
    fields = (Field(k + 1, name, kind, repeated=True) for k, (name, kind) in enumerate(kinds.items()))
    table = MessageReader(Message("M", tuple(fields))).read(data)
    assert table.column("i").tolist() == values
    assert table.column("d").tolist() == values
    assert table.column("f").tolist() == np.float32(values).tolist()
    assert table.column("b").tolist() == [True, False]


def test_hand_encoded_bytes_are_read() -> None:
    # From the documentation of the format: field 1 as varint 150; field 2 of length 7, "testing".
    message = Message("Test", (Field(1, "a", Kind.INT32), Field(2, "b", Kind.STRING)))
    table = MessageReader(message).read(bytes.fromhex("089601 120774657374696e67"))
    assert (table.column("a").tolist(), table.texts("b")) == ([150], ["testing"])


@given(st.fixed_dictionaries(roots), st.data())
def test_every_truncation_is_noticed_or_lies_between_two_fields(content: dict[str, Any], data: st.DataObject) -> None:
    whole = CLASSES["Root"](**content).SerializeToString()
    cut = whole[: data.draw(st.integers(0, len(whole)))]
    try:
        expected = CLASSES["Root"].FromString(cut)
    except Exception:  # google.protobuf's DecodeError
        with pytest.raises(ScenarioError, match=r"^byte \d+, Root"):
            READER.read(cut)
    else:
        assert read_as_data(READER.read(cut), ROOT) == [as_data(expected, ROOT)]


@given(st.binary(max_size=60))
def test_whatever_is_read_google_protobuf_reads_too(data: bytes) -> None:
    try:
        found = READER.read(data)
    except ScenarioError:
        return
    expected = CLASSES["Root"].FromString(data)
    assert len(found) == 1
    assert found.column("id").tolist() == [expected.id]
    assert found.starts("branches").tolist() == [0, len(expected.branches)]


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ("1207", "byte 0, Root.branches: it is longer than the rest of the enclosing message"),
        ("1204 12020a09", "byte 4, Root.branches.leaves.d: it is longer"),
        ("0880", "byte 0, Root.id: the message ends in the middle of a value"),
        ("08" + "ff" * 11, "byte 0, Root.id: a number has more than ten bytes"),
        ("0001", "byte 0, Root: the field number is invalid"),
        ("0b", "byte 0, Root.id: wire types 3 and 4"),
        ("0d00000000", "byte 0, Root.id: the wire type is not that of the field's kind"),
        ("1205 2a03000000", "byte 2, Root.branches.points: packed numbers don't fill it evenly"),
        ("080a 1203220180", "byte 4, Root.branches.packed: packed numbers don't fill it evenly"),
        ("ba3e05", "byte 0, Root, field 999: it is longer"),
    ],
)
def test_damage_is_reported_with_its_byte_and_its_field(data: str, told: str) -> None:
    with pytest.raises(ScenarioError, match=f"^({told})"):
        READER.read(bytes.fromhex(data))


def test_text_that_is_not_utf8_is_an_error() -> None:
    with pytest.raises(ScenarioError, match=r"Root\.names: .*xff.* is not UTF-8 text"):
        READER.read(b"\x22\x01\xff").texts("names")


def test_an_empty_message_has_one_row_of_nothing() -> None:
    assert read_as_data(READER.read(b""), ROOT) == [as_data(CLASSES["Root"](), ROOT)]
