"""All features and events of a scenario's recording and of its rollouts, step by step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roadworthy.metrics.realism.kinematics import kinematics, with_both_neighbors
from roadworthy.metrics.realism.nearest_object import distance_to_nearest_object
from roadworthy.metrics.realism.red_light import red_light_violations
from roadworthy.metrics.realism.road_edge import distance_to_road_edge
from roadworthy.metrics.realism.rollouts import Rollouts
from roadworthy.metrics.realism.scene import Motion, Scene, set_scene
from roadworthy.metrics.realism.time_to_collision import time_to_collision
from roadworthy.scenario.schema import Bools, Floats, Scenario


@dataclass(frozen=True, eq=False)
class MotionFeatures:
    """(R, E, S) each: of R versions of the motion, the E evaluated agents, at the S steps that are scored."""

    linear_speed: Floats  # m/s
    linear_acceleration: Floats  # m/s²
    angular_speed: Floats  # rad/s
    angular_acceleration: Floats  # rad/s²
    distance_to_nearest_object: Floats  # m
    collision_indication: Bools
    time_to_collision: Floats  # s
    distance_to_road_edge: Floats  # m
    offroad_indication: Bools
    traffic_light_violation: Bools


@dataclass(frozen=True, eq=False)
class Features:
    """The features of the recording (R = 1) and of the rollouts."""

    scene: Scene
    log: MotionFeatures
    simulated: MotionFeatures

    def counted(self, name: str) -> Bools:
        """(E, S) where a feature of the recording, or an event, counts for the likelihood.

        The rates of events count `scene.log_valid`, whatever the type of an agent.
        """
        valid = self.scene.log_valid
        if name.endswith("_speed"):
            return with_both_neighbors(valid)
        if name.endswith("_acceleration"):
            return with_both_neighbors(with_both_neighbors(valid))
        if name in ("time_to_collision", "traffic_light_violation"):
            return valid & self.scene.is_vehicle[:, None]
        return valid


def compute_features(scenario: Scenario, rollouts: Rollouts) -> Features:
    """Compute the features of the agents that the scenario's task evaluates; see `task_agents`."""
    scene = set_scene(scenario, rollouts)
    motions = (scene.log, scene.simulated)
    edges = distance_to_road_edge(scenario, scene, *motions)
    lights = red_light_violations(scenario, scene, *motions)
    log, simulated = (_features(scene, *parts) for parts in zip(motions, edges, lights, strict=True))
    return Features(scene, log, simulated)


def _features(scene: Scene, motion: Motion, road_edge: Floats, red_light: Bools) -> MotionFeatures:
    nearest = distance_to_nearest_object(scene, motion)
    return MotionFeatures(
        *kinematics(scene, motion),
        distance_to_nearest_object=nearest,
        collision_indication=nearest < np.float32(0.0),
        time_to_collision=time_to_collision(scene, motion),
        distance_to_road_edge=road_edge,
        offroad_indication=road_edge > np.float32(0.0),
        traffic_light_violation=red_light,
    )
