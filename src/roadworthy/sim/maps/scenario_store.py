"""The scenarios of a pack that worlds run, loaded one by one into the slots of `Scenarios` and `Maps`."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roadworthy.errors import PackError, ScenarioError, UsageError
from roadworthy.scenario.pack import Pack
from roadworthy.scenario.pack.outline import PackedScenario
from roadworthy.scenario.schema import AgentType, Scenario
from roadworthy.sim import state
from roadworthy.sim.config import Control, Mode, Others, SimConfig
from roadworthy.sim.maps.agent_selection import AGENTS, PREDICT, SDC, VEHICLES, Selection, fill_agents, select_agents
from roadworthy.sim.maps.light_tables import fill_lights, plan_lights
from roadworthy.sim.maps.map_store import KEPT_BYTES as KEPT_MAP_BYTES
from roadworthy.sim.maps.map_store import MapStore, bytes_per_slot, move_contents
from roadworthy.sim.maps.slots import Slots
from roadworthy.sim.state import Maps, Scenarios

MOST_AGENTS = 256  # in a world
# Packs up to this size are verified before the first load: milliseconds at the start instead of pauses between steps.
VERIFIED_AT_ONCE = 256 * 2**20
KEPT_BYTES = 64 * 2**20  # unused scenarios stay up to this size
_TYPES = set(AgentType)
_WHO = {Control.VEHICLES: VEHICLES, Control.AGENTS: AGENTS, Control.SDC: SDC, Control.PREDICT: PREDICT}
_ROLE_OF_OTHERS = {Others.REPLAY: state.REPLAYED, Others.IDM: state.IDM, Others.STATIC: state.STATIC}


class Place(NamedTuple):
    """The slots of a world's scenario and map."""

    scenario: int  # slot of `scenarios`
    map: int  # slot of `maps`


class _Room(NamedTuple):
    """The capacity of a slot."""

    agents: int
    frames: int
    lights: int


class ScenarioStore:
    """Hold the scenarios that worlds run, each once, and their maps.

    `scenarios` and `maps` change when a larger scenario or map needs more room.
    """

    def __init__(self, pack: Pack, config: SimConfig, worlds: int, keeps: bool = True) -> None:
        """Make an empty store. keeps: whether unused scenarios and maps stay as long as there is room."""
        if not len(pack):
            raise UsageError(
                f"{pack.path}: the pack is empty: there is nothing to simulate; generate or import scenarios"
            )
        if pack.size <= VERIFIED_AT_ONCE:
            pack.verify()
        self._pack, self._config = pack, config
        self._is_open = config.mode is Mode.OPEN
        self._who, self._role = _WHO[config.control.who], _ROLE_OF_OTHERS[config.control.others]
        self._map_store = MapStore(pack, worlds, KEPT_MAP_BYTES if keeps else 0)
        self._kept_bytes = KEPT_BYTES if keeps else 0
        self._slots = Slots()
        self._held: list[int | None] = [None] * worlds  # the scenario that each world holds
        self._room = _Room(0, 0, 0)
        self.scenarios = _make_scenarios(0, self._room)

    @property
    def maps(self) -> Maps:
        return self._map_store.maps

    @property
    def rows_per_world(self) -> int:
        """How many agents of a world policies can drive."""
        if self._is_open:
            return self._config.open.agents
        return 1 if self._config.control.who is Control.SDC else self._config.control.rows

    @property
    def agent_room(self) -> int:
        """How many agents a world needs room for: the most in any scenario loaded so far."""
        if self._is_open:
            return self._config.open.agents + self._config.open.traffic
        return self._room.agents

    def load(self, world: int, number: int) -> Place:
        """Let a world hold a scenario of the pack, and read it if necessary.

        Raise ScenarioError for a scenario that cannot be simulated with this config; the world then keeps what it
        holds.
        """
        map_number = self._pack.map_number(number)
        # The map first, because it may be damaged: then nothing must be held.
        m = self._map_store.acquire(map_number) if number in self._slots else None
        slot = self._slots.hold(number)
        place = self._read(number, map_number) if slot is None or m is None else Place(slot, m)
        self.unload(world)
        self._held[world] = number
        return place

    def unload(self, world: int) -> None:
        """Release the scenario of a world; another one may replace it."""
        number = self._held[world]
        if number is not None:
            self._slots.release(number)
            self._map_store.release(self._pack.map_number(number))
            self._held[world] = None

    def memory(self) -> dict[str, int]:
        """Return the bytes of the loaded scenarios and maps."""
        scenarios = self._slots.filled * bytes_per_slot(self.scenarios)
        return {"scenarios": scenarios, "maps": self._map_store.byte_count}

    def _read(self, number: int, map_number: int) -> Place:
        packed = self._pack.packed_scenario(number)
        selection = None if self._is_open else self._select(number, packed)
        frames = max(packed.steps - self._config.init_steps, 0)
        self._grow(0 if selection is None else selection.agents, frames, packed.lights)
        m = self._map_store.acquire(map_number)
        slot = self._slots.take()
        if not self._fill(packed, selection, m, slot):
            self._map_store.release(map_number)
            self._slots.give_back(slot)
            raise PackError(f"{self._name(number)}: its lights are on lanes that its map does not have")
        return Place(self._slots.put(number, slot), m)

    def _select(self, number: int, packed: PackedScenario) -> Selection:
        """Select the agents, and raise ScenarioError if none can be driven or too many are present."""
        control, first = self._config.control, self._config.init_steps
        if first >= packed.steps:
            raise ScenarioError(
                f"{self._name(number)}: init_steps is {first}, but its recording has the frames 0 to "
                f"{packed.steps - 1}; lower init_steps"
            )
        order, ends = np.empty(packed.agents, np.int32), np.empty(packed.agents, np.int32)
        distance = control.min_distance_m
        driven, count = select_agents(packed, first, self._who, control.rows, distance, order, ends)
        if driven == 0:
            raise ScenarioError(f"{self._name(number)}: {self._explain_no_driven(self._pack[number])}")
        if count > MOST_AGENTS:
            raise ScenarioError(
                f"{self._name(number)}: {count} agents are present from frame {first} on, but at most {MOST_AGENTS} "
                "fit into a world; leave some out of the scenario"
            )
        return Selection(order, ends, driven, count)

    def _explain_no_driven(self, scenario: Scenario) -> str:
        """Explain why no agent can be driven."""
        control, first = self._config.control, self._config.init_steps
        types = scenario.agent_types[scenario.valid[:, first]].tolist()
        counts = Counter(AgentType(kind).name.lower() if kind in _TYPES else "unknown" for kind in types)
        present = ", ".join(f"{count} {name}" for name, count in sorted(counts.items())) or "none"
        sdc = f"agent {scenario.sdc}" if scenario.sdc >= 0 else "none"
        return (
            f"control.who is {control.who.value!r}, but no agent can be driven at frame {first} (init_steps); there "
            f"at that frame: {present}; of {scenario.agent_count} in all; the self-driving car: {sdc}; vehicles that "
            f"end less than {control.min_distance_m:g} m from there count as parked (control.min_distance_m); choose "
            "another control.who or init_steps, or leave the scenario out"
        )

    def _fill(self, packed: PackedScenario, selection: Selection | None, m: int, slot: int) -> bool:
        """Fill a slot that is large enough. Return False if a light refers to a lane that does not exist."""
        scenarios, first = self.scenarios, self._config.init_steps
        if packed.lights:
            widths = self._map_store.half_widths
            if not fill_lights(packed, first, self.maps, widths, m, scenarios, slot):
                return False
            if self._is_open:
                plan_lights(self.maps, m, scenarios, slot)
        scenarios.dt[slot] = packed.dt
        driven, count = (0, 0) if selection is None else (selection.driven, selection.agents)
        scenarios.counts[slot] = count, driven, max(packed.steps - first, 0), packed.lights
        if selection is not None:
            fill_agents(packed, selection, first, self._role, scenarios, slot)
        return True

    def _grow(self, agents: int, frames: int, lights: int) -> None:
        """Replace the arrays by larger ones if a scenario does not fit."""
        room = self._room
        if agents > room.agents or frames > room.frames or lights > room.lights or not self._slots.count:
            self._room = _Room(
                max(room.agents, min(_padded(agents), MOST_AGENTS)),
                max(room.frames, frames),
                max(room.lights, _padded(lights)),
            )
            kept = self._kept_bytes // bytes_per_slot(_make_scenarios(1, self._room))
            # One more than there are worlds: a world releases its scenario only after the next one is loaded.
            slots = max(self._slots.count, min(len(self._pack), max(len(self._held) + 1, kept)))
            larger = _make_scenarios(slots, self._room)
            move_contents(self.scenarios, larger, self._slots.filled)
            self.scenarios = larger
            self._slots.grow(slots)

    def _name(self, number: int) -> str:
        return f"{self._pack.path}: scenario {self._pack.ids[number]!r}"


def _padded(count: int) -> int:
    return -(-count // 8) * 8


def _make_scenarios(slots: int, room: _Room) -> Scenarios:
    def zeros(dtype: type, *shape: int) -> NDArray[Any]:
        return np.zeros((slots, *shape), dtype)

    agents, frames, lights = room
    return Scenarios(
        counts=zeros(np.int32, state.COUNT_COLUMNS),
        dt=zeros(np.float32),
        bodies=zeros(np.float32, state.BODY_LINES, agents),
        agent_types=zeros(np.int32, agents),
        agent_roles=zeros(np.int32, agents),
        agent_sources=zeros(np.int32, agents),
        motion=zeros(np.float32, state.MOTION_LINES, frames, agents),
        valid=zeros(np.uint8, frames, agents),
        lights=zeros(np.float32, state.STOP_LINE_LINES, lights),
        light_lanes=zeros(np.int32, lights),
        light_phases=zeros(np.int32, lights),
        light_junctions=zeros(np.int32, lights),
        light_states=zeros(np.uint8, frames, lights),
    )
