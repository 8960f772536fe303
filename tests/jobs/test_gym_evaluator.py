"""The evaluator `gym`: a section of an evaluation that runs episodes of any Gymnasium environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from roadworthy.config import parse
from roadworthy.errors import ConfigError
from roadworthy.evaluation.evaluate import evaluate_sections
from roadworthy.evaluation.evaluators.gym import GymConfig
from roadworthy.evaluation.sections import read_sections
from tests.plugin_package import install

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


@pytest.mark.row("EVAL-2")
def test_sections_of_type_gym_are_evaluated_each_failing_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = {"gym": "roadworthy.evaluation.evaluators.gym:Gym"}
    install(tmp_path / "site", monkeypatch, "roadworthy.evaluators", parts, "", name="gym_part")
    path = tmp_path / "eval.toml"
    path.write_text(SECTIONS)
    outcomes = {o.name: o for o in evaluate_sections(read_sections(path), None, tmp_path / "runs")}
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


@pytest.mark.parametrize("limit", [{"time_limit_s": 60.0}, {"memory_limit_gb": 2.0}])
def test_a_limit_that_nobody_would_keep_is_refused(limit: dict[str, float]) -> None:
    section = {"type": "gym", "environment": "gym:CartPole-v1", "policy": "random", "episodes": 1}
    parse(section, GymConfig, "eval.carts")
    (name,) = limit
    with pytest.raises(ConfigError, match=f"{name} is .*run it as a job"):
        parse({**section, **limit}, GymConfig, "eval.carts")
