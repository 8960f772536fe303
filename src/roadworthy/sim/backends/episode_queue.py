"""Which episode comes next in a world, decided where the world runs: a GPU asks no host.

A world first takes what was assigned to it, then draws from the run's scenarios as `episodes.Sampler` does, so that
episode e of a run is the same on both devices.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roadworthy.kernels import rule
from roadworthy.scenario.schema import Ints, Longs
from roadworthy.sim.episodes import ATTEMPTS
from roadworthy.sim.rules import draws
from roadworthy.sim.state import EPISODE_ENDED, IS_STARTING, MAP, SCENARIO, Worlds

Seeds = NDArray[np.uint64]

# Entries of EpisodeQueue.run.
RUN_SEED, FIRST_WORLD, WORLD_TOTAL, IS_DRAWING = range(4)
# Columns of EpisodeQueue.queues.
QUEUE_START, QUEUE_LENGTH = range(2)
QUEUE_ROOM = 64  # episodes that can wait in a world


class EpisodeQueue(NamedTuple):
    """What runs in each of W worlds, and what comes next."""

    run: Seeds  # (4,) the run's seed, its first world here, its worlds in all, 1 where worlds draw their episodes
    choices: Ints  # (n,) the slots of the scenarios to draw from, -1 for one that can't be driven
    slot_maps: Ints  # (S,) the slot of each scenario's map
    rounds: Longs  # (W,) episodes drawn
    numbers: Longs  # (W,) which of the run's episodes runs, -1 for one that was assigned
    queues: Ints  # (W, 2) where the episodes that wait begin in the next two, and how many they are
    waiting_slots: Ints  # (W, QUEUE_ROOM)
    waiting_seeds: Seeds  # (W, QUEUE_ROOM)


@rule
def take_episode(worlds: Worlds, episode_queue: EpisodeQueue, w: int) -> None:
    """Set the scenario, the map and the seed of world w's next episode; SCENARIO is -1 if there is none."""
    clock, queue = worlds.clocks[w], episode_queue.queues[w]
    clock[EPISODE_ENDED] = clock[IS_STARTING] = 0
    clock[SCENARIO] = -1
    episode_queue.numbers[w] = -1
    if queue[QUEUE_LENGTH] > 0:
        place = queue[QUEUE_START]
        queue[QUEUE_START], queue[QUEUE_LENGTH] = (place + 1) % QUEUE_ROOM, queue[QUEUE_LENGTH] - 1
        worlds.seeds[w] = episode_queue.waiting_seeds[w, place]
        clock[SCENARIO] = episode_queue.waiting_slots[w, place]
    elif episode_queue.run[IS_DRAWING] != 0:
        number = (
            np.int64(episode_queue.run[FIRST_WORLD])
            + w
            + episode_queue.rounds[w] * np.int64(episode_queue.run[WORLD_TOTAL])
        )
        episode_queue.rounds[w] += 1
        episode_queue.numbers[w] = number
        for attempt in range(ATTEMPTS):
            seed = episode_seed(episode_queue.run[RUN_SEED], number, attempt)
            slot = episode_queue.choices[choose_scenario(seed, len(episode_queue.choices))]
            if slot >= 0:
                worlds.seeds[w] = seed
                clock[SCENARIO] = slot
                break
    if clock[SCENARIO] >= 0:
        clock[MAP] = episode_queue.slot_maps[clock[SCENARIO]]


@rule
def episode_seed(run_seed: int, number: int, attempt: int) -> int:
    """The seed of an episode; a later attempt stands in for one whose scenario can't be driven."""
    return draws.mix(draws.mix(run_seed, number), attempt)


@rule
def choose_scenario(seed: int, count: int) -> int:
    """Which of so many scenarios an episode has."""
    return draws.choose(seed, draws.WORLD, 0, draws.SCENARIO, count)
