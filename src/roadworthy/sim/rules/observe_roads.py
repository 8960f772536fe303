"""Observation blocks `lanes` and `edges`: the road points nearest to the agent's grid cell."""

from __future__ import annotations

from typing import Any

import numpy as np

from roadworthy.kernels import rule
from roadworthy.scenario.schema import Floats
from roadworthy.sim import layout
from roadworthy.sim.rules import draws
from roadworthy.sim.rules.observation import clear, drop, map_cell, share
from roadworthy.sim.rules.observe_simd import write_edges, write_lanes
from roadworthy.sim.state import COS, EDGE_POINT_COUNT, LANE_POINT_COUNT, SIN, Maps, Params, Whole, X, Y

_ZERO = np.float32(0.0)
LANE_SIZE, EDGE_SIZE = len(layout.LANE), len(layout.EDGE)


@rule(inline=True)
def observe_roads(
    agents: Floats, a: Whole, maps: Maps, m: Whole, step: Whole, seed: Any, p: Params, row_out: Floats
) -> None:
    """Write both blocks for agent a, with dropout."""
    pose = agents[X, a], agents[Y, a], agents[COS, a], agents[SIN, a]
    place = maps.cell_lists[m, map_cell(maps.sizes[m], maps.origins[m], agents[X, a], agents[Y, a])]
    lanes = min(p.lanes, maps.sizes[m, LANE_POINT_COUNT])
    edges = min(p.edges, maps.sizes[m, EDGE_POINT_COUNT])
    at, after = p.block_starts[layout.LANES_BLOCK], p.block_starts[layout.EDGES_BLOCK]
    write_lanes(maps.lane_points[m], maps.lane_lists[m, place], lanes, pose, row_out, at, p.lanes)
    write_edges(maps.edge_points[m], maps.edge_lists[m, place], edges, pose, row_out, after, p.edges)
    clear(row_out, at, LANE_SIZE, lanes, p.lanes)
    clear(row_out, after, EDGE_SIZE, edges, p.edges)
    row_out[p.block_starts[layout.COUNTS_BLOCK] + layout.LANES_COUNT] = share(lanes, p.lanes)
    row_out[p.block_starts[layout.COUNTS_BLOCK] + layout.EDGES_COUNT] = share(edges, p.edges)
    if p.dropout > _ZERO:
        key = draws.draw(seed, a, step, draws.DROPOUT)
        drop(key, layout.LANES_COUNT, p.dropout, row_out, at, LANE_SIZE, lanes, p.lanes)
        drop(key, layout.EDGES_COUNT, p.dropout, row_out, after, EDGE_SIZE, edges, p.edges)
