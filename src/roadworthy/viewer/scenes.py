"""Maps and scenarios of a run's pack for playback: a map once, however many scenarios share it."""

from __future__ import annotations

from roadworthy.scenario.pack import Pack
from roadworthy.scenario.schema import FeatureKind
from roadworthy.viewer.columns import Columns
from roadworthy.viewer.light_program import junctions_and_phases


def map_columns(pack: Pack, number: int) -> Columns:
    """Return the drawable part of a map: features with their points."""
    road_map = pack.map(number)
    columns = Columns(road_map.feature_count, map=number, kind_names=[kind.name.lower() for kind in FeatureKind])
    columns.numbers("kinds", road_map.kinds)
    columns.numbers("types", road_map.types)
    columns.numbers("starts", road_map.starts)
    columns.centimeters("points", road_map.points[:, :2])
    lanes = road_map.lane_count
    columns.numbers("speed_limits", road_map.speed_limits, (lanes,))
    columns.numbers("lane_widths", road_map.lane_widths, (lanes,))
    columns.centimeters("stop_lines", road_map.stop_lines)
    columns.numbers("stop_line_lanes", road_map.stop_line_lanes)
    return columns


def scenario_columns(pack: Pack, number: int) -> Columns:
    """Return what playback needs of a scenario: the number of its map, its lights, and the recorded motion."""
    scenario = pack[number]
    columns = Columns(
        scenario.agent_count,
        scenario_id=scenario.id,
        source=scenario.source,
        tags=list(scenario.tags),
        map=pack.map_number(number),
        dt=scenario.dt,
        current_step=scenario.current_step,
        steps=scenario.steps,
        sdc=scenario.sdc,
        lights=len(scenario.light_lanes),
    )
    columns.numbers("light_lanes", scenario.light_lanes)
    columns.centimeters("light_stops", scenario.light_stops[:, :2])
    columns.numbers("light_states", scenario.light_states, scenario.light_states.shape)
    junctions, phases = junctions_and_phases(scenario)
    columns.numbers("light_junctions", junctions)
    columns.numbers("light_phases", phases)
    columns.numbers("agent_types", scenario.agent_types)
    columns.centimeters("sizes", scenario.sizes[:, :2])
    columns.centimeters("positions", scenario.positions[:, :, :2])
    columns.numbers("headings", scenario.headings, scenario.valid.shape)
    columns.numbers("valid", scenario.valid, scenario.valid.shape)
    return columns
