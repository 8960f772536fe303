"""Agents in a picture with sizes, colors and positions, from a recording or from one trial of a trace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from roadworthy.render.style import Color, Theme
from roadworthy.scenario.schema import AgentType, Scenario
from roadworthy.sim.state import COPLAYER, EGO, IDM, REPLAYED, STATIC

if TYPE_CHECKING:
    from roadworthy.record.traces import Trace

PARKED_BELOW_M = 0.5  # an agent that never moves farther than this from its first position is parked
LEAP_MPS = 70.0  # an agent that seems to move faster was moved by the simulator

Entries = tuple[tuple[str, Color], ...]  # names and colors of a legend


@dataclass(frozen=True, eq=False)
class Motion:
    """A agents over T steps."""

    dt: float
    positions: NDArray[np.float64]  # (A, T, 2)
    headings: NDArray[np.float64]  # (A, T)
    valid: NDArray[np.bool_]  # (A, T) whether it is present
    is_faded: NDArray[np.bool_]  # (A, T) whether it is present and has finished
    sizes: NDArray[np.float64]  # (A, 2) length and width
    is_vehicle: NDArray[np.bool_]  # (A,)
    is_parked: NDArray[np.bool_]  # (A,)
    colors: NDArray[np.float32]  # (A, 3)
    marked: int  # the agent with a halo, -1 for none
    legend: Entries

    @property
    def agent_count(self) -> int:
        return len(self.sizes)

    @property
    def steps(self) -> int:
        return self.valid.shape[1]


def recorded_motion(scenario: Scenario, theme: Theme) -> Motion:
    """Return the recorded agents of a scenario, colored by kind."""
    parked, sdc = parked_agents(scenario), np.arange(scenario.agent_count) == scenario.sdc
    kinds = scenario.agent_types
    vehicle = (kinds == AgentType.VEHICLE) & ~sdc
    groups = (
        ("self-driving car", theme.sdc, sdc),
        ("vehicle", theme.vehicle, vehicle & ~parked),
        ("vehicle that never moves", theme.parked, vehicle & parked),
        ("cyclist", theme.cyclist, (kinds == AgentType.CYCLIST) & ~sdc),
        ("pedestrian", theme.pedestrian, (kinds == AgentType.PEDESTRIAN) & ~sdc),
        ("other", theme.other, (kinds == AgentType.OTHER) & ~sdc),
    )
    return Motion(
        dt=scenario.dt,
        positions=scenario.positions[:, :, :2].astype(np.float64),
        headings=scenario.headings.astype(np.float64),
        valid=scenario.valid,
        is_faded=np.zeros(scenario.valid.shape, np.bool_),
        sizes=scenario.sizes[:, :2].astype(np.float64),
        is_vehicle=kinds == AgentType.VEHICLE,
        is_parked=parked,
        colors=_colors(groups, scenario.agent_count),
        marked=scenario.sdc,
        legend=_legend(groups),
    )


def traced_motion(trace: Trace, trial: int, theme: Theme, followed: int) -> Motion:
    """Return the agents of one trial, colored by role; cyclists and pedestrians without a policy by kind."""
    frames = trace.trial(trial)
    roles, kinds = trace.roles, trace.kinds
    has_policy = (roles == EGO) | (roles == COPLAYER)
    walks = ~has_policy & np.isin(kinds, (AgentType.CYCLIST, AgentType.PEDESTRIAN))
    groups = (
        ("ego, the policy under test", theme.sdc, roles == EGO),
        ("co-player", theme.coplayer, roles == COPLAYER),
        ("vehicle, recorded", theme.vehicle, (roles == REPLAYED) & ~walks),
        ("vehicle, reactive", theme.reactive, (roles == IDM) & ~walks),
        ("vehicle that never moves", theme.parked, (roles == STATIC) & ~walks),
        ("cyclist", theme.cyclist, walks & (kinds == AgentType.CYCLIST)),
        ("pedestrian", theme.pedestrian, walks & (kinds == AgentType.PEDESTRIAN)),
    )
    valid = trace.present[frames].T
    return Motion(
        dt=trace.dt,
        positions=np.stack([trace.x[frames].T, trace.y[frames].T], axis=-1).astype(np.float64),
        headings=trace.heading[frames].T.astype(np.float64),
        valid=valid,
        is_faded=valid & ~trace.active[frames].T & has_policy[:, None],
        sizes=np.stack([trace.length, trace.width], axis=-1).astype(np.float64),
        is_vehicle=kinds == AgentType.VEHICLE,
        is_parked=roles == STATIC,
        colors=_colors(groups, len(roles)),
        marked=followed,
        legend=_legend(groups),
    )


def parked_agents(scenario: Scenario) -> NDArray[np.bool_]:
    """Return the vehicles, except the self-driving car, that never move while they are present, (A,)."""
    first = np.argmax(scenario.valid, axis=1)
    start = np.take_along_axis(scenario.positions, first[:, None, None], axis=1)
    distance = np.hypot(*np.moveaxis((scenario.positions - start)[..., :2], -1, 0))
    parked: NDArray[np.bool_] = np.where(scenario.valid, distance, 0.0).max(axis=1, initial=0.0) < PARKED_BELOW_M
    parked &= scenario.agent_types == AgentType.VEHICLE
    if scenario.sdc >= 0:
        parked[scenario.sdc] = False
    return parked


Groups = tuple[tuple[str, Color, NDArray[np.bool_]], ...]


def _colors(groups: Groups, count: int) -> NDArray[np.float32]:
    colors = np.zeros((count, 3), np.float32)
    for _, color, members in groups:
        colors[members] = color
    return colors


def _legend(groups: Groups) -> Entries:
    return tuple((name, color) for name, color, members in groups if members.any())
