"""The challenge's own files: messages SimAgentsChallengeSubmission or ScenarioRollouts in protobuf's wire format."""

from __future__ import annotations

from typing import Any

import numpy as np

from roadworthy.errors import ScenarioError
from roadworthy.metrics.realism.rollouts import Rollouts
from roadworthy.scenario.importers.wire import Buffer, Field, Kind, MessageReader, Table, message

_TRAJECTORY = message(
    "SimulatedTrajectory",
    Field(2, "center_x", Kind.FLOAT, repeated=True),
    Field(3, "center_y", Kind.FLOAT, repeated=True),
    Field(4, "center_z", Kind.FLOAT, repeated=True),
    Field(5, "heading", Kind.FLOAT, repeated=True),
    Field(6, "object_id", Kind.INT32),
)
_SCENE = message("JointScene", Field(1, "simulated_trajectories", _TRAJECTORY, repeated=True))
_SCENARIO_ROLLOUTS = MessageReader(
    message("ScenarioRollouts", Field(1, "scenario_id", Kind.STRING), Field(2, "joint_scenes", _SCENE, repeated=True))
)
# What it holds is read scenario by scenario: a file may have gigabytes. Its second field is a number, by which it
# differs from the rollouts of a single scenario, in which a message stands there.
_SUBMISSION = MessageReader(
    message(
        "SimAgentsChallengeSubmission",
        Field(1, "scenario_rollouts", Kind.BYTES, repeated=True),
        Field(2, "submission_type", Kind.INT32),
    )
)
# Of the same message the id alone: the scenes are skipped as one piece each.
_SCENARIO_ID = MessageReader(message("ScenarioRollouts", Field(1, "scenario_id", Kind.STRING)))
_COORDINATES = ("center_x", "center_y", "center_z", "heading")


def split_submission(data: Buffer) -> list[tuple[str, Buffer]]:
    """Return the message ScenarioRollouts of every scenario in it, with the scenario's id; none of them is read yet."""
    try:
        parts: list[Any] = list(_SUBMISSION.read(data).blobs("scenario_rollouts"))
    except ScenarioError as error:
        try:
            parts = [data] if len(_SCENARIO_ROLLOUTS.read(data).child("joint_scenes")) else []
        except ScenarioError:
            raise error from None
    if not parts:
        raise ScenarioError("the message has no rollouts; expected a SimAgentsChallengeSubmission or ScenarioRollouts")
    found = []
    for number, part in enumerate(parts):
        try:
            found.append((_SCENARIO_ID.read(part).texts("scenario_id")[0], part))
        except ScenarioError as error:
            raise ScenarioError(f"scenario_rollouts[{number}]: {error}") from None
    return found


def read_scenario_rollouts(data: Buffer) -> tuple[str, Rollouts]:
    """Read one message ScenarioRollouts."""
    message = _SCENARIO_ROLLOUTS.read(data)
    name = message.texts("scenario_id")[0]
    scenes = message.child("joint_scenes")
    trajectories = scenes.child("simulated_trajectories")
    agents = _even(np.diff(scenes.starts("simulated_trajectories")), name, "joint scenes", "trajectories")
    steps = [
        _even(np.diff(trajectories.starts(coordinate)), name, "trajectories", f"values of {coordinate}")
        for coordinate in _COORDINATES
    ]
    _even(np.array(steps), name, "coordinates", "values")
    return name, _in_one_order(trajectories, (len(scenes), agents, steps[0]), name)


def _in_one_order(trajectories: Table, shape: tuple[int, int, int], name: str) -> Rollouts:
    """Reorder the agents of each scene like those of the first."""
    ids = trajectories.column("object_id").reshape(shape[:2])
    order = np.argsort(ids, axis=1, kind="stable")
    sorted_ids = np.take_along_axis(ids, order, axis=1)
    differing = np.flatnonzero((sorted_ids != sorted_ids[0]).any(axis=1))
    if differing.size:
        raise ScenarioError(
            f"scenario {name!r}: joint scene {differing[0]} has other agents than the first; expected the same in each"
        )
    motion = (
        np.take_along_axis(trajectories.column(coordinate).reshape(shape), order[..., None], axis=1)
        for coordinate in _COORDINATES
    )
    return Rollouts.of(sorted_ids[0], *motion)


def _even(counts: Any, name: str, owners: str, what: str) -> int:
    """Return the number that all of them have; it must be equal and above 0."""
    if not counts.size or counts.min() != counts.max() or not counts[0]:
        found = f"{counts.min()} to {counts.max()}" if counts.size else "no"
        raise ScenarioError(
            f"scenario {name!r}: its {owners} have {found} {what}; expected as many for each, at least one"
        )
    return int(counts[0])
