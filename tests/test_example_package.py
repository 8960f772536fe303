"""The example package: each of its extensions runs for real, by its declared name and as module:Name."""

from __future__ import annotations

import csv
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import roadworthy as rw
from roadworthy.policy.checkpoint import load_checkpoint
from roadworthy.record import Run
from roadworthy.scenario.pack import Pack
from roadworthy.sensitivity.sources import load_rows
from roadworthy.sim.config import ObserveConfig, RewardConfig, SimConfig
from roadworthy.sim.env import DriveEnv
from tests.plugin_package import install_own, install_project
from tests.sim.scenes import Actor, pack_of, scene

PACKAGE = Path(__file__).parents[1] / "examples" / "plugins"
KINDS = (
    "evaluators metrics engines importers readers sinks policies reward_terms observation_blocks cores environments"
).split()
ENV = """
control.rows = 4
observe = { partners = 3, lanes = 4, edges = 4, lights = 1, blocks = ["BLOCK"] }
"""
SUITE = """
[eval.busy]
type = "EVALUATOR"
scenarios = "PACK"
episodes = 2
episode.trial_steps = 20
metrics = ["METRIC"]
engine = "ENGINE"
policy = "POLICY"
policy_config.speed_mps = 6.0
references = []

[sinks."SINK"]
name = "mine.csv"

[env]
reward.terms = { "TERM" = -0.1 }
"""
TRAINING = """
scenarios = "PACK"
worlds = 2
steps = 200
threads = 1
checkpoint_interval = 2
policy = { core = "CORE", encoder = 8, hidden = 16 }
ppo = { horizon = 8, num_minibatches = 2 }

[sinks."SINK"]

[env]
episode.trial_steps = 20
reward.terms = { "TERM" = [-0.2, -0.1] }
"""
DECLARED = {
    "EVALUATOR": "crowded",
    "METRIC": "hard_braking",
    "ENGINE": "shuffled",
    "POLICY": "keep_speed",
    "SINK": "figure_table",
    "TERM": "headway",
    "BLOCK": "leader",
    "CORE": "gru",
}
AS_CODE = {
    "EVALUATOR": "roadworthy_example.evaluator:Crowded",
    "METRIC": "roadworthy_example.metric:hard_braking",
    "ENGINE": "roadworthy_example.engine:ShuffledEngine",
    "POLICY": "roadworthy_example.policy:KeepSpeed",
    "SINK": "roadworthy_example.sink:FigureTableSink",
    "TERM": "roadworthy_example.reward_term:headway",
    "BLOCK": f"{PACKAGE}/roadworthy_example/observation_block.py:LEADER",
    "CORE": "roadworthy_example.core:GruCore",
}


@pytest.fixture(autouse=True)
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_own(tmp_path / "own", monkeypatch)
    install_project(tmp_path / "site", monkeypatch, PACKAGE / "pyproject.toml")


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Pack:
    """Three scenes, of one, two and three cars in a row."""
    scenes = [
        scene(*(Actor(10.0 + 15.0 * a, speed=8.0 - a) for a in range(count)), id=f"cars-{count}", steps=41)
        for count in (1, 2, 3)
    ]
    return pack_of(tmp_path_factory.mktemp("pack") / "cars.pack", *scenes)


def write(path: Path, text: str, names: dict[str, str], pack: Pack) -> Path:
    for word, name in (names | {"PACK": str(pack.path)}).items():
        text = text.replace(f'"{word}"', f'"{name}"')
    path.write_text(text)
    return path


def rows_of(run: Run) -> list[dict[str, Any]]:
    columns = [name for name in run.column_names("episodes") if name.startswith(("outcomes.", "episode_id", "steps"))]
    return sorted(run.episodes(columns).to_pylist(), key=lambda row: str(row["episode_id"]))


def table(path: Path) -> dict[str, float]:
    with path.open(newline="") as file:
        return {name: float(value) for _, name, value in csv.reader(file)}


def test_the_package_has_one_extension_of_every_kind() -> None:
    declared = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]["entry-points"]
    assert sorted(declared) == sorted(f"roadworthy.{kind}" for kind in KINDS)
    assert all(len(path.read_text().splitlines()) < 60 for path in PACKAGE.rglob("*.py"))


def test_an_evaluation_uses_them(tmp_path: Path, pack: Pack) -> None:
    found = []
    for number, names in enumerate((DECLARED, AS_CODE)):
        suite = write(tmp_path / f"suite{number}.toml", SUITE + ENV, names, pack)
        runs = rw.evaluate(suite, out=tmp_path / f"runs{number}")
        run = runs["busy"]
        assert run.status == "completed"
        assert sorted(run.ledger["scenario_id"].to_pylist()) == ["cars-2", "cars-3"]  # the fullest
        figures = {figure["name"]: figure["value"] for figure in run.metrics["figures"]}
        assert figures["hard_braking"] is not None
        published = table(tmp_path / f"runs{number}" / "mine.csv")
        assert published["busy/hard_braking"] == figures["hard_braking"]
        found.append(rows_of(run))
    assert found[0] == found[1]
    inline = rw.evaluate(tmp_path / "suite0.toml", out=tmp_path / "inline", set={"engine": "inline"})
    assert rows_of(inline["busy"]) == found[0]
    free = rw.evaluate(tmp_path / "suite0.toml", out=tmp_path / "free", set={"env.reward.terms.headway": 0.0})
    score = [
        (row["outcomes.return"], other["outcomes.return"])
        for row, other in zip(found[0], rows_of(free["busy"]), strict=True)
    ]
    assert all(own <= other for own, other in score)
    assert any(own < other for own, other in score)  # the ego of cars-3 starts within 1.5 s of its leader


def test_training_uses_them(tmp_path: Path, pack: Pack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = rw.train(write(tmp_path / "train.toml", TRAINING + ENV, DECLARED, pack), out="trained")
    checkpoint = load_checkpoint(result.last)
    assert type(checkpoint.policy.core).__name__ == "GruCore"
    names = checkpoint.policy.layout.columns()
    assert names[-3:] == ["term_weights.headway_weight", "leader.gap", "leader.closing"]
    assert any(name.startswith("losses/") for name in table(tmp_path / "trained" / "figures.csv"))
    # An evaluation takes the block and the term from the training.
    suite = "\n".join(line for line in SUITE.split("[sinks")[0].splitlines() if not line.startswith("policy"))
    write(tmp_path / "suite.toml", suite, DECLARED, pack)
    run = rw.evaluate("suite.toml", policy="trained", out="runs")["busy"]
    assert run.status == "completed"
    assert run.header["config"]["env"]["observe"]["blocks"] == ["leader"]


def test_the_reward_term_and_the_block_compute_what_they_say(pack: Pack) -> None:
    """Cars at 8, 7 and 6 m/s, 15 m from center to center: their gaps are 15 - 4.5 = 10.5 m at the start."""
    config = SimConfig(reward=RewardConfig(terms={"headway": -1.0}), observe=ObserveConfig(blocks=("leader",)))
    env = DriveEnv(pack, 1, config, threads=1, sampling=False)
    env.reset()
    env.assign(0, 2, 0, now=True)
    seen = env.observation_layout["leader"].of(env.observations)[:3, :, 0]
    # At step 10, a second after the start of the recording, the cars are 1 m closer to each other.
    np.testing.assert_allclose(seen[:, 0], [0.095, 0.095, 1.0], atol=1e-5)  # / 100 m
    np.testing.assert_allclose(seen[:, 1], [0.05, 0.05, 0.0], atol=1e-5)  # / 20 m/s
    builtin = DriveEnv(pack, 1, SimConfig(), threads=1, sampling=False)
    builtin.reset()
    builtin.assign(0, 2, 0, now=True)
    idle = np.tile(env.idle_action, (env.row_count, 1))
    difference = (env.step(idle)[1] - builtin.step(idle)[1])[:3]
    gaps, wanted = np.array([9.4, 9.4]), np.array([12.0, 10.5])  # a step later, at 8 and 7 m/s
    np.testing.assert_allclose(difference, [*(gaps / wanted - 1.0), 0.0], atol=1e-4)


def test_the_importer_reads_a_file_that_drives(tmp_path: Path) -> None:
    lines = ["agent,step,x_m,y_m,heading_rad,speed_mps"]
    lines += [f"{a},{t},{20.0 * a + 0.5 * t},3.0,0.0,5.0" for a in range(2) for t in range(40)]
    (tmp_path / "tracks.csv").write_text("\n".join(lines))
    report = rw.import_scenarios(tmp_path / "tracks.csv", tmp_path / "out.pack", processes=1)
    assert report.scenario_count == 1
    scenario = Pack(tmp_path / "out.pack")[0]
    np.testing.assert_allclose(scenario.positions[1, :, 0], 20.0 + 0.5 * np.arange(40))
    env = DriveEnv(tmp_path / "out.pack", 1, threads=1)
    env.reset()
    assert env.signals.active.sum() == 2


def test_the_reader_reads_a_log(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("episode_id,factor.light,success\na,0.5,1\nb,0.25,0\n")
    rows = load_rows(tmp_path / "log.csv")
    assert [row["factors"] for row in rows] == [{"light": 0.5}, {"light": 0.25}]
    assert [row["outcomes"] for row in rows] == [{"success": 1.0}, {"success": 0.0}]


def test_the_environment_runs_episodes(tmp_path: Path) -> None:
    (tmp_path / "suite.toml").write_text(
        '[eval.walk]\ntype = "gym"\nenvironment = "corridor"\npolicy = "random"\nepisodes = 3\n'
        "arguments = { length = 3 }\n"
    )
    run = rw.evaluate(tmp_path / "suite.toml", out=tmp_path / "runs")["walk"]
    assert run.status == "completed"
    assert all(row["steps"] >= 3 for row in rows_of(run))


@pytest.mark.long
def test_pip_installs_it(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--target", str(tmp_path), str(PACKAGE)], check=True)
    assert list(tmp_path.glob("roadworthy_example-1.0.dist-info/entry_points.txt"))
