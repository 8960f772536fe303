"""Scoring of realism: the time of each stage, and its growth with agents, rollouts and road edges."""

from __future__ import annotations

import numpy as np

from benchmarks.packs import LANE_WIDTH_M, TOWN_M, town
from benchmarks.runner import Measurements, Sizes
from roadworthy.metrics.realism import Rollouts, compute_features, score_features, score_rollouts
from roadworthy.metrics.realism.kinematics import kinematics
from roadworthy.metrics.realism.nearest_object import distance_to_nearest_object
from roadworthy.metrics.realism.red_light import red_light_violations
from roadworthy.metrics.realism.road_edge import distance_to_road_edge
from roadworthy.metrics.realism.scene import set_scene
from roadworthy.metrics.realism.time_to_collision import time_to_collision
from roadworthy.scenario.schema import AgentType, FeatureKind, LightState, Scenario

STEPS = 91
CURRENT = 10
EVALUATED = 9  # as in the data set: the car and eight others
CASES = {  # agents, evaluated, rollouts, streets, each as a multiple of the declared size
    "score": (1, 1, 1, 1),
    "score, agents x4": (4, 1, 1, 1),
    "score, agents x10": (10, 1, 1, 1),
    "score, agents x10, all evaluated": (10, 15, 1, 1),
    "score, rollouts x4": (1, 1, 4, 1),
    "score, edges x10": (1, 1, 1, 10),
    "score, edges x50": (1, 1, 1, 50),
}


def realism(found: Measurements, sizes: Sizes) -> None:
    """Return traffic on one street of a town, with rollouts that stay near the lanes."""
    for name, (agents, evaluated, rollouts, streets) in CASES.items():
        scenario = _traffic(sizes["agents"] * agents, EVALUATED * evaluated, streets)
        drawn = _rollouts(scenario, sizes["rollouts"] * rollouts)
        score_rollouts(scenario, drawn)  # the first call compiles
        for _ in range(sizes["repeats"]):
            with found.stage(name):
                score_rollouts(scenario, drawn)
        if name == "score":
            for _ in range(sizes["repeats"]):
                _stages(found, scenario, drawn)
        edges = scenario.map.features(FeatureKind.ROAD_EDGE)
        points = scenario.map.starts[edges.stop] - scenario.map.starts[edges.start]
        found.figures[f"{name}: edge segments"] = int(points - len(edges))


def _stages(found: Measurements, scenario: Scenario, rollouts: Rollouts) -> None:
    """Time the stages of a score."""
    with found.stage("  scene"):
        scene = set_scene(scenario, rollouts)
    motion = scene.simulated
    with found.stage("  kinematics"):
        kinematics(scene, motion)
    with found.stage("  nearest object"):
        distance_to_nearest_object(scene, motion)
    with found.stage("  time to collision"):
        time_to_collision(scene, motion)
    with found.stage("  road edge"):
        distance_to_road_edge(scenario, scene, motion)
    with found.stage("  red light"):
        red_light_violations(scenario, scene, motion)
    features = compute_features(scenario, rollouts)
    with found.stage("  likelihoods"):
        score_features(features)


def _traffic(agents: int, evaluated: int, streets: int) -> Scenario:
    rng = np.random.default_rng(7)
    road_map = town(streets)
    middle = (streets // 2 + 0.5) * TOWN_M / streets
    speed = rng.uniform(4.0, 12.0, (agents, 1))
    positions = np.zeros((agents, STEPS, 3), np.float32)
    positions[..., 0] = rng.uniform(0.0, TOWN_M / 2, (agents, 1)) + speed * 0.1 * np.arange(STEPS)
    positions[..., 1] = middle + LANE_WIDTH_M * rng.choice([-1.5, -0.5, 0.5, 1.5], (agents, 1))
    lights = rng.choice(len(road_map.features(FeatureKind.LANE)), 8, replace=False)
    return Scenario(
        id="benchmark",
        source="benchmark",
        tags=(),
        dt=0.1,
        current_step=CURRENT,
        map=road_map,
        agent_ids=np.arange(agents, dtype=np.int64),
        agent_types=np.full(agents, AgentType.VEHICLE, np.uint8),
        sizes=np.tile(np.array([4.5, 1.8, 1.6], np.float32), (agents, 1)),
        positions=positions,
        headings=np.zeros((agents, STEPS), np.float32),
        velocities=np.zeros((agents, STEPS, 2), np.float32),
        valid=np.ones((agents, STEPS), np.bool_),
        sdc=0,
        predict=np.arange(min(evaluated, agents), dtype=np.int32),
        light_lanes=lights.astype(np.int32),
        light_stops=road_map.points[road_map.starts[lights] + 40],
        light_states=np.full((len(lights), STEPS), LightState.STOP, np.uint8),
    )


def _rollouts(scenario: Scenario, count: int) -> Rollouts:
    """Return motion that is faster or slower than recorded, and shifted sideways."""
    rng = np.random.default_rng(8)
    agents, time = np.arange(scenario.agent_count), 0.1 * np.arange(1, STEPS - CURRENT)
    future = scenario.positions[None, :, CURRENT + 1 :].repeat(count, axis=0)
    future[..., 0] += rng.normal(0.0, 1.0, (count, len(agents), 1)) * time
    future[..., 1] += rng.normal(0.0, 0.1, (count, len(agents), 1)) * time
    headings = 0.01 * rng.normal(size=future.shape[:3]).astype(np.float32)
    return Rollouts.from_scenario_frame(scenario, agents, future, headings)
