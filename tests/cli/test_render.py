"""`roadworthy render`: which films it makes, what it tells, and how it ends."""

from __future__ import annotations

import json
import shutil

import av
import pytest
import typer

from roadworthy.cli import main as command
from roadworthy.cli import render
from tests.plugin_package import install
from tests.render.drives import TRIALS, record_run
from tests.sim.scenes import Actor, pack_of, scene


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A run on a straight road: the car that starts far to the left leaves it at once, the other later or never."""
    folder = tmp_path_factory.mktemp("road")
    scenes = [scene(Actor(10.0, y=y, speed=8.0), Actor(40.0), id=name) for name, y in (("left", 1.9), ("right", -1.75))]
    return record_run(folder / "runs", pack_of(folder / "road.pack", *scenes), TRIALS).folder


@pytest.fixture
def run(recorded, tmp_path, monkeypatch):
    """A copy of it, and the evaluator by which it was made."""
    evaluator = {"multi_scenario": "roadworthy.evaluation.evaluators.multi_scenario:MultiScenario"}
    install(tmp_path / "installed", monkeypatch, "roadworthy.evaluators", evaluator, "")
    app = typer.Typer()
    app.command(epilog=render.EXAMPLES)(render.render)
    app.callback()(lambda: None)  # so that the verb is named, as among others
    monkeypatch.setattr(command, "app", app)
    return shutil.copytree(recorded, tmp_path / "towns" / "run")


@pytest.mark.row("VID-4")
def test_videos_of_failed_episodes_are_made_afterwards(run, capsys):
    assert command.main(["render", str(run), "--failed", "--size", "320x180", "--view", "ego,obs", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {video["view"] for video in told["videos"]} == {"ego", "obs"}
    for video in told["videos"]:
        assert video["episode_id"] in ("left-r0", "right-r0")
        with av.open(video["path"]) as container:
            assert sum(1 for _ in container.decode(video=0)) == video["frames"] > 0
    names = {path.name for path in (run / "videos").iterdir()}
    assert f"{told['videos'][0]['episode_id']}_epoch4_step2000_ego.mp4" in names


@pytest.mark.row("VID-4")
@pytest.mark.parametrize("choice", [["--worst", "1"], ["--first", "1"], ["--random", "1"], ["--episode", "right-r0"]])
def test_other_choices_write_where_they_are_told(run, tmp_path, capsys, choice):
    asked = ["render", str(run), *choice, "--size", "320x180", "--max-steps", "3", "--out", str(tmp_path / "films")]
    assert command.main(asked) == 0
    (path,) = (tmp_path / "films").iterdir()
    assert capsys.readouterr().out.split() == [str(path)]


def test_a_film_that_could_not_be_made_is_told_and_ends_with_1(run, capsys):
    (run / "traces" / "left-r0.trace").unlink()
    asked = [
        "render",
        str(run),
        "--episode",
        "left-r0",
        "--episode",
        "right-r0",
        "--max-steps",
        "2",
        "--size",
        "320x180",
    ]
    assert command.main(asked) == 1
    out, err = capsys.readouterr()
    assert "right-r0" in out
    assert "left-r0, ego:" in err
    assert "has no trace" in err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "give one of --failed, --worst N"),
        (["--failed", "--worst", "2"], "--failed and --worst were given"),
        (["--episode", "nobody-r0"], "has no episode 'nobody-r0'"),
        (["--worst", "1", "--view", "bev,side"], "one of bev, ego, obs"),
        (["--worst", "1", "--size", "large"], "as in 1920x1080"),
    ],
)
def test_what_makes_no_sense_is_named(run, capsys, options, words):
    assert command.main(["render", str(run), *options]) == 2
    assert words in " ".join(capsys.readouterr().err.split())
