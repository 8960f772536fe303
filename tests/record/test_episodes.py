"""Rows: one line per episode, exact, null for no data, and complete across versions."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadworthy.errors import RecordError, UsageError
from roadworthy.record import EpisodeResult
from roadworthy.record.episodes import decode_line, encode_line, line_values, parse_line
from tests.record.made_up import result


def there_and_back(given: EpisodeResult) -> EpisodeResult:
    return decoded(encode_line(line_values(given)))


def decoded(line: bytes) -> EpisodeResult:
    values = parse_line(line, "here")
    assert values is not None
    return decode_line(values)


@pytest.mark.row("REC-2")
def test_a_row_survives_a_round_trip() -> None:
    before = replace(result("town-3-r1", scores=(1.0, 0.0, None), trials=2), trace=None)
    outcomes = {"score": 1.0, "comfort": None}  # NaN is no data
    assert there_and_back(before) == replace(before, episode=replace(before.episode, outcomes=outcomes))


@given(st.floats(width=32, allow_infinity=False), st.integers(0, 2**64 - 1))
def test_figures_and_seeds_are_exact(value: float, seed: int) -> None:
    before = result("town-3-r1", scores=(value,), has_trace=False, outcomes={"score": np.float32(value)}, seed=seed)
    after = there_and_back(before)
    expected = None if value != value else value
    assert (after.agents[0].figures["score"], after.episode.outcomes["score"]) == (expected, expected)
    assert after.episode.seed == seed


def test_a_figure_that_is_not_finite_is_named() -> None:
    with pytest.raises(UsageError, match=r"'town-3-r1' has agent_rows\.figures\.score = inf; expected finite numbers"):
        encode_line(line_values(result("town-3-r1", scores=(float("inf"),), outcomes={})))
    with pytest.raises(UsageError, match=r"has outcomes\.return = -inf"):
        encode_line(line_values(result("town-3-r1", outcomes={"return": -float("inf")})))


def test_whole_numbers_are_written_without_a_point_and_read_as_they_were() -> None:
    given = (0.0, 3.0, -7.0, 0.1, 2.0**53, 1e300, float(np.float32(0.1)))
    line = encode_line(line_values(result("town-3-r1", scores=given, outcomes={"score": 2.0})))
    assert b'"score":[0,3,-7,0.1,9007199254740992.0,1e+300,0.10000000149011612]' in line
    read = decoded(line)
    assert [row.figures["score"] for row in read.agents] == list(given)
    assert all(type(row.figures["score"]) is float for row in read.agents)
    assert type(read.episode.outcomes["score"]) is float


def test_rows_of_another_episode_are_refused() -> None:
    with pytest.raises(UsageError, match="result of episode 'town-3-r1' holds rows of episode 'town-4-r0'"):
        line_values(replace(result("town-3-r1"), agents=result("town-4-r0").agents))


@pytest.mark.row("REC-1")
def test_a_field_of_a_later_minor_version_is_kept() -> None:
    line = json.loads(encode_line(line_values(result("town-3-r1"))))
    line |= {"schema_version": "1.7", "weather": {"rain": 0.5}}
    read = decoded(json.dumps(line).encode())
    assert read.episode.more == {"weather": {"rain": 0.5}}
    again = json.loads(encode_line(line_values(read)))
    assert again["weather"] == {"rain": 0.5}


@pytest.mark.row("REC-1")
def test_a_line_of_a_newer_major_version_is_refused_by_its_number() -> None:
    line = json.loads(encode_line(line_values(result("town-3-r1")))) | {"schema_version": "2.0"}
    with pytest.raises(RecordError, match=r"line 4: has version 2\.0, but this Roadworthy reads up to 1\.x"):
        parse_line(json.dumps(line).encode(), "episodes.jsonl, line 4")
