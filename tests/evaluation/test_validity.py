"""The exams of the behavior classes: what must fail fails, what must pass passes (row CL-3).

The scenarios are generated with seeds that were not used to develop the exams, and chosen by the rules of
scenario/exams alone, which look at recordings.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from benchmarks.validity import Values, known, take_exams
from roadworthy.metrics.exams import PASSED
from roadworthy.scenario.detect import BEHAVIORS
from roadworthy.scenario.generate import GenerateConfig
from roadworthy.scenario.generate.config import EXAM_STEPS
from roadworthy.scenario.generate.pack import generate_pack

pytestmark = pytest.mark.row("CL-3")

# Classes that a lane follower must fail that is blind to other agents and lights.
NEED_EYES = (
    "hard_stop",
    "stop_and_go",
    "cut_in",
    "merge",
    "unprotected_left",
    "unprotected_right",
    "pedestrian_crossing",
    "nudge_parked",
)
FEW, MANY = 3, 40  # scenarios of each class


@dataclass(frozen=True)
class Exams:
    """A pack with as many scenarios of every class."""

    pack: Path
    count: int

    def most(self, bound: float) -> float:
        """A bound for one class; with few scenarios, one more may be passed than the bound has it."""
        return max(bound, 1.0 / self.count)


@pytest.fixture(scope="module", params=[FEW, pytest.param(MANY, marks=pytest.mark.long)])
def exams(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Exams:
    path = tmp_path_factory.mktemp("exams") / "exams.pack"
    count = request.param * len(BEHAVIORS)
    generate_pack(GenerateConfig(count=count, seed=880_000 + request.param, steps=EXAM_STEPS), path, processes=1)
    return Exams(path, request.param)


def shares(found: Values) -> dict[str, float]:
    """The share of exams passed, by class; every scenario is an exam."""
    counts = {len(values[PASSED]) for values in found.values()}
    assert set(found) == set(BEHAVIORS)
    assert len(counts) == 1
    assert all(len(known(values[PASSED])) == len(values[PASSED]) for values in found.values())
    return {name: sum(values[PASSED]) / len(values[PASSED]) for name, values in found.items()}


def test_the_recorded_motion_passes(exams: Exams) -> None:
    assert min(shares(take_exams(exams.pack, "expert:log")).values()) >= 0.95


@pytest.mark.parametrize(("policy", "bound"), [("zero", 0.2), ("random", 0.1)])
def test_who_does_nothing_or_anything_fails(exams: Exams, policy: str, bound: float) -> None:
    passed = shares(take_exams(exams.pack, policy))
    assert max(passed.values()) <= exams.most(bound), passed
    assert sum(passed.values()) / len(passed) <= bound, passed


def test_who_follows_lanes_blindly_fails_where_others_matter(exams: Exams) -> None:
    passed = shares(take_exams(exams.pack, "expert:lane_follower"))
    needing = {name: passed[name] for name in NEED_EYES}
    assert max(needing.values()) <= exams.most(0.3), needing
    assert sum(needing.values()) / len(needing) <= 0.3, needing


def test_who_keeps_the_lane_fails_to_change_lanes(exams: Exams) -> None:
    assert shares(take_exams(exams.pack, "expert:lane_keeper"))["lane_change"] <= exams.most(0.3)
