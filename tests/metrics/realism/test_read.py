"""Rollouts from files: what is read, and what is said of files that can't be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from roadworthy.errors import RoadworthyError, ScenarioError, UsageError
from roadworthy.metrics.realism import Rollouts
from roadworthy.metrics.realism.read import read_rollouts
from tests.metrics.realism.encode import chunk, scenario_rollouts, submission

ROLLOUTS = Rollouts.of([30, 7, -1], *np.random.default_rng(0).normal(size=(4, 2, 3, 5)))
ORDERS = [[2, 0, 1], [0, 1, 2]]


def save(path: Path, rollouts: Rollouts = ROLLOUTS) -> Path:
    motion = {name: getattr(rollouts, name) for name in ("x", "y", "z", "heading")}
    np.savez_compressed(path, object_id=rollouts.agent_ids, **motion)
    return path


def same(one: Rollouts, other: Rollouts) -> bool:
    other = other.for_agents(one.agent_ids, "made")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ("x", "y", "z", "heading"))


def test_an_npz_file_is_of_the_scenario_that_it_is_named_after(tmp_path: Path) -> None:
    save(tmp_path / "b.npz")
    ((name, found),) = read_rollouts(tmp_path / "b.npz", ["a", "b"])
    assert name == "b"
    assert same(ROLLOUTS, found)


def test_where_there_is_one_scenario_a_file_may_have_any_name(tmp_path: Path) -> None:
    ((name, found),) = read_rollouts(save(tmp_path / "rollouts.npz"), ["a"])
    assert name == "a"
    assert same(ROLLOUTS, found)
    with pytest.raises(UsageError, match="no scenario of the pack has the id 'rollouts'; name the file after"):
        list(read_rollouts(tmp_path / "rollouts.npz", ["a", "b"]))


def test_a_folder_is_read_file_by_file(tmp_path: Path) -> None:
    save(tmp_path / "b.npz")
    save(tmp_path / "a.npz")
    (tmp_path / ".hidden").touch()
    (tmp_path / "shard.binproto").write_bytes(submission(scenario_rollouts("c", ROLLOUTS, ORDERS)))
    found = dict(read_rollouts(tmp_path, ["a", "b", "c"]))
    assert list(found) == ["a", "b", "c"]
    assert all(same(ROLLOUTS, rollouts) for rollouts in found.values())


@pytest.mark.parametrize("is_packed", [True, False])
def test_a_submission_is_read_with_agents_in_any_order(is_packed: bool, tmp_path: Path) -> None:
    parts = [scenario_rollouts(name, ROLLOUTS, ORDERS, is_packed) for name in ("a", "ü")]
    path = tmp_path / "submission.binproto"
    path.write_bytes(submission(*parts))
    found = list(read_rollouts(path, ["a", "ü"]))
    assert [name for name, _ in found] == ["a", "ü"]
    assert all(same(ROLLOUTS, rollouts) for _, rollouts in found)


def test_the_rollouts_of_one_scenario_are_a_file_too(tmp_path: Path) -> None:
    path = tmp_path / "one.binproto"
    path.write_bytes(scenario_rollouts("a", ROLLOUTS, ORDERS))
    ((name, found),) = read_rollouts(path, ["a"])
    assert name == "a"
    assert same(ROLLOUTS, found)


SHORTER = Rollouts(
    ROLLOUTS.agent_ids, *(values[..., :4] for values in (ROLLOUTS.x, ROLLOUTS.y, ROLLOUTS.z, ROLLOUTS.heading))
)
SHORT_SCENE = scenario_rollouts("a", SHORTER, ORDERS[:1])[3:]  # without the id
OTHER_AGENT = scenario_rollouts("a", Rollouts.of([30, 7, 8], *np.ones((4, 1, 3, 5))), ORDERS[:1])[3:]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "the file is empty"),
        (b"not protobuf at all", "byte "),
        (submission(), "there are no rollouts in it"),
        (submission(scenario_rollouts("a", ROLLOUTS, ORDERS))[:-40], "byte "),
        (submission(chunk(1, b"a")), "its joint scenes have no trajectories"),
        (submission(scenario_rollouts("a", ROLLOUTS, ORDERS) + SHORT_SCENE), "have 4 to 5 values of center_x"),
        (submission(scenario_rollouts("a", ROLLOUTS, [[0, 1], [0, 1, 2]])), "have 2 to 3 trajectories"),
        (submission(scenario_rollouts("a", ROLLOUTS, ORDERS) + OTHER_AGENT), "joint scene 2 has other agents"),
        (submission(scenario_rollouts("a", ROLLOUTS, [[0, 1, 1], [0, 1, 1]])), "agent 7 more than once"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_damaged_submission_is_refused_with_its_name(content: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "submission.binproto"
    path.write_bytes(content)
    with pytest.raises(RoadworthyError, match=words) as caught:
        list(read_rollouts(path, ["a"]))
    assert str(caught.value).startswith(f"{path}: ")
    assert isinstance(caught.value, ScenarioError | UsageError)


def test_npz_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, object_id=ROLLOUTS.agent_ids, x=ROLLOUTS.x)
    with pytest.raises(UsageError, match=r"a.npz: there is no array 'y' in it; expected object_id, x, y, z, heading"):
        list(read_rollouts(path, ["a"]))
    path.write_bytes(save(tmp_path / "b.npz").read_bytes()[:-100])
    with pytest.raises(UsageError, match=r"a.npz: can't be read as .npz"):
        list(read_rollouts(path, ["a"]))
    np.savez(path, **{name: np.ones((2, 2)) for name in ("object_id", "x", "y", "z", "heading")})
    with pytest.raises(UsageError, match=r"a.npz: rollouts have the shapes x \(2, 2\)"):
        list(read_rollouts(path, ["a"]))


def test_a_place_with_nothing_in_it_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file or folder"):
        list(read_rollouts(tmp_path / "none", ["a"]))
    with pytest.raises(UsageError, match="the folder has no files"):
        list(read_rollouts(tmp_path, ["a"]))
