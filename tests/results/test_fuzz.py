"""Damaged logs of every format give an error of Roadworthy or a run, and never anything else."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path

import pytest

from roadworthy.errors import RoadworthyError
from roadworthy.record.readers.log import LONGEST_TEXT
from roadworthy.results.check import check_results
from tests.results import made_up_logs as logs

MUTATIONS = 20
WORDS = (
    b"null",
    b"NaN",
    b"Infinity",
    b"-1",
    b"1e999",
    b"1e308",
    b"[]",
    b"{}",
    b'"\\u0000"',
    b'"\\ud800"',
    b"[" * 300,
    b"true",
    b'"x"',
    b"9" * 400,
)
SECONDS = 5.0


def mutate(data: bytes, rng: random.Random) -> bytes:
    """Return data with a part cut, repeated, overwritten or replaced by a value of another type."""
    start, size = rng.randrange(len(data)), rng.randrange(1, 40)
    kind = rng.randrange(6)
    if kind == 0:
        return data[:start]
    if kind == 1:
        return data[:start] + data[start + size :]
    if kind == 2:
        return data[:start] + data[start : start + size] * 3 + data[start:]
    if kind == 3:
        return data[:start] + rng.randbytes(size) + data[start + size :]
    if kind == 4:
        lines = data.splitlines(keepends=True)
        rng.shuffle(lines)
        return b"".join(lines)
    tokens = [place for place in range(len(data)) if data[place : place + 1] in b'0123456789tf"[']
    place = rng.choice(tokens) if tokens else start
    end = place + 1
    while end < len(data) and data[end : end + 1] not in b',}]\n"':
        end += 1
    return data[:place] + rng.choice(WORDS) + data[end:]


def refusal(path: Path) -> str | None:
    """Return why a log is refused; None if there is a report."""
    try:
        json.dumps([report.as_json() for report in check_results(path)])
    except RoadworthyError as error:
        return str(error)
    return None


@pytest.mark.row("STAT-5")
@pytest.mark.parametrize("name", logs.ALL)
def test_a_damaged_log_is_an_error_or_a_report(name: str, tmp_path: Path) -> None:
    path = logs.ALL[name](tmp_path)
    whole, rng = path.read_bytes(), random.Random(name)
    refused = 0
    for _ in range(MUTATIONS):
        path.write_bytes(mutate(whole, rng))
        started = time.monotonic()
        message = refusal(path)
        if message is not None:
            refused += 1
            assert path.name in message
            assert message.isprintable()
            assert len(message) < LONGEST_TEXT
        assert time.monotonic() - started < SECONDS
    assert refused > 0
