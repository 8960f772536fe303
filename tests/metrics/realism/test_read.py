"""Rollouts from files: valid files, and errors for invalid ones."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import numpy as np
import pytest

from roadworthy.errors import RoadworthyError, ScenarioError, UsageError
from roadworthy.metrics.realism import Rollouts
from roadworthy.metrics.realism.read import Selection, find_parts, read_rollouts
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
        (submission(), "the message has no rollouts"),
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


@pytest.mark.row("REAL-2")
@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("object_id", np.array([30.0, 7.0, -1.0]), "agent ids are float64, expected integers"),
        ("x", np.ones((2, 3, 5), np.int32), "x is int32, expected float32 or float64"),
        ("y", np.ones((2, 3, 5), np.float16), "y is float16, expected"),
        ("heading", np.full((2, 3, 5), "1.0"), "heading is <U3, expected"),
        ("z", np.ones((2, 3, 5), bool), "z is bool, expected"),
        ("x", np.array([[[1e300] * 5] * 3] * 2), "x of agent 30 is inf in rollout 0 at its step 0"),
    ],
)
def test_wrong_types_of_numbers_are_refused(name: str, values: np.ndarray, words: str, tmp_path: Path) -> None:
    arrays = {part: getattr(ROLLOUTS, part) for part in ("x", "y", "z", "heading")}
    np.savez(tmp_path / "a.npz", **({"object_id": ROLLOUTS.agent_ids, **arrays} | {name: values}))
    with pytest.raises(UsageError, match=rf"a.npz: .*{words}"):
        list(read_rollouts(tmp_path / "a.npz", ["a"]))


@pytest.mark.row("REAL-2")
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["x", "y", "z", "heading"])
def test_samples_that_are_no_numbers_are_refused(name: str, value: float, tmp_path: Path) -> None:
    arrays = {part: getattr(ROLLOUTS, part).copy() for part in ("x", "y", "z", "heading")}
    arrays[name][1, 2, 4] = value
    np.savez(tmp_path / "a.npz", object_id=ROLLOUTS.agent_ids, **arrays)
    with pytest.raises(UsageError, match=rf"{name} of agent -1 is {value} in rollout 1 at its step 4.*finite"):
        list(read_rollouts(tmp_path / "a.npz", ["a"]))
    part = scenario_rollouts("a", ROLLOUTS, ORDERS)
    broken = part.replace(np.float32(getattr(ROLLOUTS, name)[1, 2, 4]).tobytes(), np.float32(value).tobytes())
    (tmp_path / "s.binproto").write_bytes(submission(broken))
    with pytest.raises(UsageError, match=rf"s.binproto: {name} of agent -1 is {value}"):
        list(read_rollouts(tmp_path / "s.binproto", ["a"]))


SHARDED = {f"sub.binproto-{k:05d}-of-00003": submission(scenario_rollouts(f"s{k}", ROLLOUTS, ORDERS)) for k in range(3)}


def write_shards(folder: Path) -> Path:
    folder.mkdir()
    for name, content in SHARDED.items():
        (folder / name).write_bytes(content)
    return folder


def archive(path: Path, files: dict[str, bytes], mode: str) -> Path:
    with tarfile.open(path, mode) as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path


IDS = ["s0", "s1", "s2"]


@pytest.mark.row("REAL-2")
def test_shards_are_read_from_their_folder_by_their_common_name_and_one_by_one(tmp_path: Path) -> None:
    folder = write_shards(tmp_path / "shards")
    for path in (folder, folder / "sub.binproto"):
        found = list(read_rollouts(path, IDS))
        assert [name for name, _ in found] == IDS
        assert all(same(ROLLOUTS, rollouts) for _, rollouts in found)
    assert [name for name, _ in read_rollouts(folder / "sub.binproto-00001-of-00003", IDS)] == ["s1"]


@pytest.mark.row("REAL-2")
@pytest.mark.parametrize(("ending", "mode"), [("tar.gz", "w:gz"), ("tgz", "w:gz"), ("tar", "w")])
def test_a_submission_is_read_from_a_tar_archive(ending: str, mode: str, tmp_path: Path) -> None:
    inside = {f"./submission/{name}": content for name, content in SHARDED.items()} | {"./submission/.hidden": b"x"}
    found = list(read_rollouts(archive(tmp_path / f"s.{ending}", inside, mode), IDS))
    assert [name for name, _ in found] == IDS
    assert all(same(ROLLOUTS, rollouts) for _, rollouts in found)
    save(tmp_path / "a.npz")
    mixed = archive(tmp_path / f"m.{ending}", {"a.npz": (tmp_path / "a.npz").read_bytes()}, mode)
    ((name, rollouts),) = read_rollouts(mixed, ["a", "b"])
    assert name == "a"
    assert same(ROLLOUTS, rollouts)


@pytest.mark.row("REAL-2")
def test_a_missing_shard_is_an_error(tmp_path: Path) -> None:
    folder = write_shards(tmp_path / "shards")
    (folder / "sub.binproto-00001-of-00003").unlink()
    words = r"of the 3 shards of sub\.binproto, 1 are missing \(00001\)"
    for path in (folder, folder / "sub.binproto"):
        with pytest.raises(UsageError, match=words):
            list(read_rollouts(path, IDS))
    rest = {name: content for name, content in SHARDED.items() if "00001" not in name}
    with pytest.raises(UsageError, match=words):
        list(read_rollouts(archive(tmp_path / "s.tar.gz", rest, "w:gz"), IDS))


@pytest.mark.row("REAL-2")
def test_archives_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    whole = archive(tmp_path / "s.tar.gz", SHARDED, "w:gz").read_bytes()
    (tmp_path / "cut.tar.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UsageError, match=r"cut.tar.gz: can't be read as a tar archive"):
        list(read_rollouts(tmp_path / "cut.tar.gz", IDS))
    with pytest.raises(UsageError, match="the archive has no files"):
        list(read_rollouts(archive(tmp_path / "empty.tar", {}, "w"), IDS))


@pytest.mark.row("REAL-2")
def test_a_part_of_the_scenarios_is_read_alone(tmp_path: Path) -> None:
    folder = write_shards(tmp_path / "shards")
    with pytest.raises(UsageError, match=r"no scenario of the pack has the id 's1'.*--skip-unknown"):
        list(read_rollouts(folder, ["s0", "s2"]))
    known = Selection(frozenset(["s0", "s2"]), skip_unknown=True)
    assert [part.scenario_id for part in find_parts([folder], known)] == ["s0", "s2"]
    chosen = Selection(frozenset(IDS), only=frozenset(["s2"]))
    assert [part.scenario_id for part in find_parts([folder], chosen)] == ["s2"]


def test_npz_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, object_id=ROLLOUTS.agent_ids, x=ROLLOUTS.x)
    with pytest.raises(UsageError, match=r"a.npz: there is no array 'y' in it; expected object_id, x, y, z, heading"):
        list(read_rollouts(path, ["a"]))
    path.write_bytes(save(tmp_path / "b.npz").read_bytes()[:-100])
    with pytest.raises(UsageError, match=r"a.npz: can't be read as .npz"):
        list(read_rollouts(path, ["a"]))
    np.savez(path, object_id=np.ones((2, 2), int), **{name: np.ones((2, 2)) for name in ("x", "y", "z", "heading")})
    with pytest.raises(UsageError, match=r"a.npz: rollouts have the shapes x \(2, 2\)"):
        list(read_rollouts(path, ["a"]))


def test_a_place_with_nothing_in_it_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file or folder"):
        list(read_rollouts(tmp_path / "none", ["a"]))
    with pytest.raises(UsageError, match="the folder has no files"):
        list(read_rollouts(tmp_path, ["a"]))
