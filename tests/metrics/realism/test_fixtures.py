"""Agreement with the reference on every field, from the imported message to the leaderboard's buckets."""

from __future__ import annotations

import numpy as np
import pytest

from roadworthy.metrics.realism import CHALLENGES, buckets, compute_features, score_features
from tests.metrics.realism import fixtures

TOLERANCE = 1e-4  # what the requirement asks for

pytestmark = pytest.mark.skipif(not fixtures.is_there(), reason=f"there is no folder {fixtures.FOLDER}")


@pytest.mark.row("REAL-1")
@pytest.mark.parametrize(("tag", "variant"), fixtures.CASES)
def test_every_field_agrees_with_the_reference(tag: str, variant: str) -> None:
    features = compute_features(fixtures.scenario(tag), fixtures.rollouts(tag, variant))
    expected = fixtures.expected(tag, variant)
    for name, challenge in fixtures.CONFIGS.items():
        if name not in expected:
            assert (tag, challenge) == ("", "2025_scenario_gen")
            continue
        config = CHALLENGES[challenge]
        figures = score_features(features, config)
        fields = {field: value for field, value in expected[name].items() if field != "scenario_id"}
        assert figures.plain() == pytest.approx(fields, abs=TOLERANCE), name
        if f"{name}_buckets" in expected:
            assert buckets(figures, config) == pytest.approx(expected[f"{name}_buckets"], abs=TOLERANCE), name


@pytest.mark.row("REAL-1")
@pytest.mark.parametrize(("tag", "variant"), fixtures.CASES)
def test_every_feature_agrees_with_the_reference_step_by_step(tag: str, variant: str) -> None:
    """Distances to 1 mm, except where rounding decides; events exactly."""
    found = compute_features(fixtures.scenario(tag), fixtures.rollouts(tag, variant))
    expected = fixtures.arrays(f"features_{variant}{tag}")
    count = found.scene.evaluated
    assert found.scene.agent_ids[:count].tolist() == expected["object_id"].tolist()
    np.testing.assert_array_equal(found.scene.log_valid, expected["log_valid"])
    steps = ("linear_speed", "linear_acceleration", "angular_speed", "angular_acceleration", "time_to_collision")
    for name in (*steps, "distance_to_nearest_object", "distance_to_road_edge"):
        simulated = getattr(found.simulated, name)[:2]
        np.testing.assert_allclose(simulated, expected[f"sim_{name}_first2"], atol=1e-3, err_msg=name)
        log, log_expected = getattr(found.log, name)[0], expected[f"log_{name}"]
        valid = found.counted(name)
        np.testing.assert_allclose(log[valid], log_expected[valid], atol=1e-3, err_msg=name)
    for name, theirs in (
        ("collision_indication", "collision_per_step"),
        ("offroad_indication", "offroad_per_step"),
        ("traffic_light_violation", "traffic_light_violation_per_step"),
    ):
        packed = expected[f"sim_{theirs}_packed"]
        shape = expected[f"sim_{theirs}_shape"]
        events = np.unpackbits(packed)[: np.prod(shape)].reshape(shape).astype(np.bool_)
        np.testing.assert_array_equal(getattr(found.simulated, name), events, err_msg=name)
        valid = found.scene.log_valid
        np.testing.assert_array_equal(getattr(found.log, name)[0][valid], expected[f"log_{theirs}"][valid])
