"""What docs/jobs.md and examples/ say is true: every setting is documented, and the examples are read."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from roadworthy.evaluation.runners.gym.job import Job, SweepConfig, VideoConfig
from roadworthy.evaluation.runners.gym.plan import plan
from roadworthy.jobs.files import read_jobs
from roadworthy.jobs.record import Status
from roadworthy.robot.factors import RANGES, Factors
from roadworthy.robot.scene import THINGS
from roadworthy.sensitivity import sampling
from roadworthy.sensitivity.factors import Continuous, read_factors

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "jobs.md").read_text(encoding="utf-8")


@pytest.mark.row("UI-6")
def test_every_setting_of_jobs_is_documented() -> None:
    keys = [field.name for field in fields(Job)]
    keys += [f"videos.{field.name}" for field in fields(VideoConfig)]
    keys += [f"sweep.{field.name}" for field in fields(SweepConfig)]
    keys += [field.name for field in fields(Factors)]
    keys += [status.value for status in Status]
    assert [key for key in keys if f"`{key}`" not in TEXT] == []


def test_the_ranges_of_factors_are_those_in_the_docs() -> None:
    for name, (low, high) in RANGES.items():
        if name != "object_yaw":
            (line,) = [line for line in TEXT.splitlines() if line.startswith(f"| `{name}` |")]
            numbers = line.split("|")[2].split()
            assert (float(numbers[0]), float(numbers[2])) == (low, high)


def test_the_examples_are_read_and_name_what_there_is() -> None:
    jobs = read_jobs(ROOT / "examples" / "jobs.toml").jobs
    assert len(jobs) > 2
    for job in jobs:
        Factors().changed(job.arguments)
    factors = read_factors(ROOT / "examples" / "factors.yaml")
    for factor in factors:
        if isinstance(factor, Continuous):
            assert (factor.low, factor.high) == RANGES[factor.name]
        else:
            assert factor.choices == tuple(THINGS)
    (base,) = read_jobs(ROOT / "examples" / "job.toml").jobs
    assert base.videos is not None
    assert base.videos.episodes <= 12
    swept = Job(name="s", environment="e", policy="p", episodes=8, sweep=SweepConfig(sampling.tables_of(factors)))
    assert {name for planned in plan(swept) for name in planned.factors} == {factor.name for factor in factors}
