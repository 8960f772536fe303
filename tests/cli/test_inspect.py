"""`roadworthy inspect`: files, pictures and a video of a policy's drive."""

from __future__ import annotations

import json
from pathlib import Path

import av
import pytest
import typer
from typer.testing import CliRunner, Result

from roadworthy.cli.inspect import inspect
from roadworthy.config import plain
from roadworthy.errors import UsageError
from roadworthy.policy.checkpoint import save_policy
from roadworthy.sim.config import ControlConfig, EpisodeConfig, SimConfig
from tests.policy.networks import OBSERVE, small_policy
from tests.sim import scenes
from tests.sim.scenes import pack_of, scene

STEPS = 6
APP = typer.Typer()
APP.command()(inspect)


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A checkpoint that was trained for two trials, and a pack."""
    folder = tmp_path_factory.mktemp("inspect")
    cars = [scenes.Actor(20.0), scenes.Actor(60.0), scenes.Actor(90.0, y=scenes.HALF_LANE)]
    pack_of(folder / "road.pack", scene(*cars, id="road"))
    env = SimConfig(observe=OBSERVE, control=ControlConfig(rows=3), episode=EpisodeConfig(2, STEPS))
    save_policy(folder / "policy", small_policy("transformer"), more={"train": {"env": plain(env)}})
    return [str(folder / "policy"), "--pack", str(folder / "road.pack")]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(APP, list(arguments), catch_exceptions=False)


@pytest.mark.row("POLICY-6")
def test_every_kind_of_world_gets_a_folder_with_files_pictures_and_a_video(given: list[str], tmp_path: Path) -> None:
    done = run(*given, "--worlds", "ego,replay,coplayers", "--agents", "0", "-o", str(tmp_path), "--json")
    told = json.loads(done.stdout.splitlines()[-1])
    assert (done.exit_code, told["errors"], list(told["files"])) == (0, [], ["ego", "replay", "coplayers"])
    for kind, files in told["files"].items():
        assert all(Path(file).stat().st_size for file in files)
        pictures = {f"agent_0_{name}.png" for name in ("course", "attention", "heads", "mask")}
        assert {Path(file).name for file in files} == {
            "agent_0.jsonl",
            "agent_0.npz",
            "agent_0.mp4",
            "about.json",
        } | pictures
        about = json.loads((tmp_path / kind / "about.json").read_text())
        assert (about["scenario_id"], about["worlds"]) == ("road", kind)
        assert (about["env"]["mode"], about["env"]["episode"]["trials"]) == ("replay", 2)
        lines = [json.loads(line) for line in (tmp_path / kind / "agent_0.jsonl").read_text().splitlines()]
        assert len(lines[0]["observation"]) == len(about["observation_columns"])
        assert lines[-1]["trial"] == 1
        assert {line["attempt"] for line in lines} == {0}
        with av.open(tmp_path / kind / "agent_0.mp4") as film:
            # A trial's first frame is its reset.
            assert sum(1 for _ in film.decode(video=0)) == len(lines) + 2


@pytest.mark.row("POLICY-6")
def test_the_requested_steps_of_the_requested_agents_are_recorded(given: list[str], tmp_path: Path) -> None:
    options = ["--agents", "2,1", "--steps", "4", "--set", "episode.trials=1", "--greedy", "--no-video"]
    done = run(*given, *options, "-o", str(tmp_path))
    assert done.exit_code == 0
    assert "ego: 1 trial, agent 2: 4 steps; agent 1: 4 steps" in done.stdout
    assert {path.name for path in (tmp_path / "ego").glob("*.jsonl")} == {"agent_1.jsonl", "agent_2.jsonl"}
    assert not list(tmp_path.rglob("*.mp4"))
    assert len((tmp_path / "ego" / "agent_1.jsonl").read_text().splitlines()) == 4


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--worlds", "egos"], "--worlds 'egos' is unknown; known: ego, replay, coplayers"),
        (["--agents", "0;1"], "--agents is '0;1', expected comma-separated numbers"),
        (["--agents", "9"], "agent 9 is not an ego; the egos of this world are 0, 1, 2"),
        (["--scenario", "4"], "there is no scenario 4; .* has scenarios 0 to 0"),
        (["--set", "episode.trails=1"], "trials"),
    ],
)
def test_wrong_words_are_errors_that_say_what_is_allowed(
    given: list[str], options: list[str], told: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=told):
        run(*given, *options, "-o", str(tmp_path))
