"""The outline of a scenario: a few numbers at the start of its block that locate its arrays.

The simulator replaces scenarios many times a second and finds the arrays this way, without reading the directory. The
outline is the first array of the block; those of SCENARIO_ARRAYS follow in that order, each at a multiple of 64 bytes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from roadworthy.kernels import kernel
from roadworthy.scenario.pack.bundle import ALIGNMENT
from roadworthy.scenario.schema import SCENARIO_ARRAYS, Ints, Longs, Scenario

# Words of the outline, int32: a magic number, lengths, the self-driving car, the step length (float32).
SIGN = 0x0C0A57ED
OUTLINE_WORDS = ALIGNMENT // 4
_AGENTS, _STEPS, _PREDICTED, _LIGHTS, _SDC, _DT = range(1, 7)
# Bytes of each array: per agent, agent and step, predicted agent, light, light and step.
_BYTES = {
    "agent_ids": (8, 0, 0, 0, 0),
    "agent_types": (1, 0, 0, 0, 0),
    "sizes": (12, 0, 0, 0, 0),
    "positions": (0, 12, 0, 0, 0),
    "headings": (0, 4, 0, 0, 0),
    "velocities": (0, 8, 0, 0, 0),
    "valid": (0, 1, 0, 0, 0),
    "predict": (0, 0, 4, 0, 0),
    "light_lanes": (0, 0, 0, 4, 0),
    "light_stops": (0, 0, 0, 12, 0),
    "light_states": (0, 0, 0, 0, 1),
}
assert list(_BYTES) == list(SCENARIO_ARRAYS)
ARRAY_PLACES = {name: place for place, name in enumerate(_BYTES)}
_BYTES_PER = np.array(list(_BYTES.values()), np.int64)


class PackedScenario(NamedTuple):
    """The arrays of a scenario as words of 32 bits."""

    words: Ints  # (n,)
    starts: Longs  # (arrays,) where each of SCENARIO_ARRAYS starts, in words
    agents: int
    steps: int
    predicted: int
    lights: int
    sdc: int
    dt: np.float32


def outline_of(scenario: Scenario) -> Ints:
    """Return (OUTLINE_WORDS,) the outline of a scenario."""
    words = np.zeros(OUTLINE_WORDS, "<i4")
    words[0] = SIGN
    words[_AGENTS], words[_STEPS] = scenario.agent_count, scenario.steps
    words[_PREDICTED], words[_LIGHTS], words[_SDC] = len(scenario.predict), len(scenario.light_lanes), scenario.sdc
    words.view("<f4")[_DT] = scenario.dt
    return words


def read_scenario(words: Ints) -> PackedScenario | None:
    """Return the arrays after an outline; None if the words do not start with one, or are too few for it."""
    starts = np.empty(len(_BYTES), np.int64)
    if not _find_arrays(words, starts):
        return None
    _, agents, steps, predicted, lights, sdc = words[:_DT].tolist()
    return PackedScenario(
        words, starts, agents, steps, predicted, lights, sdc, words[_DT : _DT + 1].view(np.float32)[0]
    )


@kernel(plain=True)
def _find_arrays(words: Ints, starts_out: Longs) -> bool:
    """Compute where the arrays start. Return False if there is no outline, or if the words are too few for it."""
    if len(words) < OUTLINE_WORDS or words[0] != SIGN:
        return False
    agents, steps = np.int64(words[_AGENTS]), np.int64(words[_STEPS])
    predicted, lights, sdc = np.int64(words[_PREDICTED]), np.int64(words[_LIGHTS]), words[_SDC]
    if agents < 0 or steps < 0 or predicted < 0 or lights < 0 or sdc < -1 or sdc >= agents:
        return False
    if max(agents, predicted, lights) > len(words) or max(agents, lights) * steps > 4 * len(words):
        return False
    end = np.int64(OUTLINE_WORDS)
    for k in range(len(starts_out)):
        per = _BYTES_PER[k]
        size = (
            agents * per[0] + agents * steps * per[1] + predicted * per[2] + lights * per[3] + lights * steps * per[4]
        )
        starts_out[k] = end
        end += -(-size // ALIGNMENT) * OUTLINE_WORDS
    return bool(end <= len(words))
