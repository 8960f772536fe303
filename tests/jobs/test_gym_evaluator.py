"""The evaluator `gym`: a section of an evaluation that runs episodes of any Gymnasium environment."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from roadworthy.config import parse
from roadworthy.errors import ConfigError
from roadworthy.evaluation.evaluate import evaluate_sections
from roadworthy.evaluation.evaluators.gym import GymConfig
from roadworthy.evaluation.runs import Outcome
from roadworthy.evaluation.sections import read_sections
from tests.jobs.arenas import QUICK, SLOW
from tests.plugin_package import install_own

SECTIONS = """
[eval.corridor]
type = "gym"
environment = "tests.jobs.arenas:Corridor"
policy = "tests.jobs.arenas:Remembering"
episodes = 20
worlds = 4
metrics = ["tests.jobs.arenas:half_of_the_steps"]

[eval.vector]
inherits = "corridor"
type = "gym"
environment = "tests.jobs.arenas:corridors"
arguments = { mode = "SAME_STEP" }

[eval.masked]
inherits = "vector"
type = "gym"
arguments = { mode = "DISABLED" }

[eval.swept]
inherits = "corridor"
type = "gym"
environment = "tests.jobs.arenas:Lamp"
policy = "zero"
metrics = []
sweep.factors.brightness = { type = "continuous", range = [0, 1] }

[eval.broken]
inherits = "corridor"
type = "gym"
arguments = { breaks_at = "build" }

[eval.drawn]
inherits = "corridor"
type = "gym"
render.max_steps = 5
render.episodes = 1
"""


COLUMNS = ["episode_id", "seed", "replicate", "steps", "status", "outcomes.return", "outcomes.success"]


@pytest.fixture(autouse=True)
def _own_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_own(tmp_path / "site", monkeypatch)


def run_sections(folder: Path, settings: Sequence[str] = (), *names: str) -> list[Outcome]:
    folder.mkdir(exist_ok=True)
    (folder / "eval.toml").write_text(SECTIONS)
    sections = read_sections(folder / "eval.toml", overrides=settings)
    return evaluate_sections([s for s in sections if not names or s.name in names], None, folder / "runs")


def rows_of(outcome: Outcome) -> pa.Table:
    assert outcome.is_complete, outcome.error
    assert outcome.run is not None
    return outcome.run.episodes()


@pytest.mark.row("EVAL-2")
def test_sections_of_type_gym_are_evaluated_each_failing_alone(tmp_path: Path) -> None:
    outcomes = {o.name: o for o in run_sections(tmp_path)}
    for name in ("corridor", "vector"):
        outcome = outcomes[name]
        assert outcome.is_complete, outcome.error
        assert outcome.run is not None
        assert outcome.run.metrics is not None
        by_name = {figure["name"]: figure for figure in outcome.run.metrics["figures"]}
        assert by_name["success"]["n"] == 20
        assert by_name["half_of_the_steps"]["value"] == by_name["steps"]["value"] / 2.0
    assert "no such corridor" in str(outcomes["broken"].error)
    assert outcomes["broken"].run is not None
    assert outcomes["broken"].run.status == "failed"
    assert "render is for driving" in str(outcomes["drawn"].error)


@pytest.mark.row("ENG-3")
@pytest.mark.row("EVAL-6")
@pytest.mark.parametrize("engine", ["workers", "tests.jobs.engines:Backwards"])
def test_sections_of_type_gym_have_the_same_rows_in_all_engines(engine: str, tmp_path: Path) -> None:
    names = ("corridor", "masked", "swept")
    expected = [rows_of(o) for o in run_sections(tmp_path / "inline", (), *names)]
    found = [rows_of(o) for o in run_sections(tmp_path / "other", (f"engine={engine}", "workers=2"), *names)]
    for one, other in zip(expected, found, strict=True):
        columns = [name for name in one.column_names if name in COLUMNS or name.startswith("factors")]
        assert other.select(columns).equals(one.select(columns))


@pytest.mark.row("EVAL-6")
def test_envs_that_reset_themselves_run_all_episodes_in_a_pool(tmp_path: Path) -> None:
    (outcome,) = run_sections(tmp_path, ("engine=workers", "workers=3"), "vector")
    rows = rows_of(outcome).to_pylist()
    assert [row["episode_id"] for row in rows] == [f"{number:04d}" for number in range(20)]
    assert {(row["steps"], row["outcomes.success"]) for row in rows} <= {(QUICK, 1.0), (SLOW, 0.0)}


@pytest.mark.row("ENG-3")
@pytest.mark.row("EVAL-5")
@pytest.mark.parametrize(("breaks", "words"), [("process", "SIGKILL"), ("hang", "longer than its limit of 1 s")])
def test_an_env_that_dies_or_hangs_fails_its_episodes_in_a_pool(breaks: str, words: str, tmp_path: Path) -> None:
    settings = ("engine=workers", "workers=2", "retries=0", "time_limit_s=1.0", f"arguments.breaks_at={breaks}")
    (outcome,) = run_sections(tmp_path, (*settings, "episodes=8"), "corridor")
    (whole,) = run_sections(tmp_path / "whole", ("episodes=8",), "corridor")
    found, expected = rows_of(outcome).to_pylist(), rows_of(whole).to_pylist()
    assert [row["status"] == "completed" for row in found] == [row["steps"] == QUICK for row in expected]
    assert all(words in row["error"] for row in found if row["status"] == "failed")


@pytest.mark.parametrize("limit", [{"time_limit_s": 60.0}, {"memory_limit_gb": 2.0}])
def test_a_limit_that_the_engine_can_not_enforce_is_refused(limit: dict[str, float]) -> None:
    section = {"type": "gym", "environment": "gym:CartPole-v1", "policy": "random", "episodes": 1}
    parse(section, GymConfig, "eval.carts")
    (name,) = limit
    with pytest.raises(ConfigError, match=f'{name} is .*set engine = "workers"'):
        parse({**section, **limit}, GymConfig, "eval.carts")
    assert getattr(parse({**section, **limit, "engine": "workers"}, GymConfig, "eval.carts"), name) == limit[name]
