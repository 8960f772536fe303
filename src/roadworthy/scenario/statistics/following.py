"""Leaders and followers: headways, gaps, free driving and queues, for every vehicle of a scenario."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roadworthy.kernels import kernel
from roadworthy.scenario.detect import Tracks
from roadworthy.scenario.schema import AgentType, Bools, Ints
from roadworthy.scenario.statistics.sample import Doubles, Longs, stretches

REACH_M = 150.0  # leaders farther ahead are ignored
MOST_LANES_AHEAD = 12

# Following, as in studies of headways: near enough to be held up, about as fast as the leader, for some time.
FOLLOWING_HEADWAY_S = 4.0
FOLLOWING_LEAST_SPEED_MPS = 5.0
FOLLOWING_SPEED_DIFFERENCE_MPS = 1.5
FOLLOWING_S = 1.0

STANDING_MPS = 0.3
QUEUE_GAP_M = 10.0  # farther apart, the second car does not stand because of the first
QUEUE_OFFSET_M = 0.8  # farther from the lane's center, a standing car is parked

# Free driving: nobody ahead, no junction near, constant speed.
FREE_HEADWAY_S = 5.0
FREE_ACCELERATION_MPS2 = 0.3
FREE_BEFORE_JUNCTION_M = 70.0
FREE_S = 1.0
STRAIGHT_RAD_PER_M = 1.0 / 300.0  # drivers slow down in lanes that bend more


@dataclass(frozen=True, eq=False)
class Following:
    """The leaders of A agents over T steps."""

    leader: Ints  # (A, T) the next vehicle ahead on the agent's way, -1 if there is none within REACH_M
    gap: Doubles  # (A, T) m from bumper to bumper, infinite if there is none
    is_vehicle: Bools  # (A,)

    @staticmethod
    def of(tracks: Tracks) -> Following:
        network = tracks.network
        is_vehicle = tracks.types == AgentType.VEHICLE
        leader, gap = _leaders(
            tracks.lane,
            tracks.arc,
            tracks.offset,
            np.flatnonzero(is_vehicle),
            0.5 * tracks.sizes[:, 0].astype(np.float64),
            network.half_width,
            network.length,
            network.turn,
            network.successor_starts,
            network.successors,
        )
        return Following(leader, gap, is_vehicle)


def following_distances(tracks: Tracks, following: Following) -> dict[str, Doubles]:
    """Return headways (front to front) and gaps (bumper to bumper), one per follower and leader, and standing gaps."""
    leader = following.leader
    behind = leader >= 0
    steps = np.arange(tracks.steps)
    leader_speed = np.where(behind, tracks.speed[leader, steps], np.nan)
    speed = tracks.speed.astype(np.float64)
    lengths = tracks.sizes[:, 0].astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        headway = (following.gap + lengths[leader]) / speed
        steady = np.abs(speed - leader_speed) <= FOLLOWING_SPEED_DIFFERENCE_MPS
    follows = behind & steady & (speed >= FOLLOWING_LEAST_SPEED_MPS) & (headway <= FOLLOWING_HEADWAY_S)
    found: dict[str, list[float]] = {
        name: [] for road in ("freeway", "street") for name in (f"headway_{road}", f"gap_{road}", f"gap_{road}_speed")
    }
    least = tracks.steps_of(FOLLOWING_S)
    for agent, when in _pairs(follows, leader, least):
        lane = tracks.lane[agent, when[len(when) // 2]]
        road = "freeway" if tracks.network.is_freeway[lane] else "street"
        found[f"headway_{road}"].append(float(np.median(headway[agent, when])))
        found[f"gap_{road}"].append(float(np.median(following.gap[agent, when])))
        found[f"gap_{road}_speed"].append(float(np.median(speed[agent, when])))
    in_lane = np.abs(tracks.offset) <= QUEUE_OFFSET_M
    stands = in_lane & (tracks.speed < STANDING_MPS) & tracks.valid
    queues = behind & stands & np.where(behind, stands[leader, steps], False) & (following.gap <= QUEUE_GAP_M)
    standing = [float(np.median(following.gap[agent, when])) for agent, when in _pairs(queues, leader, 1)]
    return {name: np.array(values) for name, values in found.items()} | {"standing_gap": np.array(standing)}


def free_speeds(tracks: Tracks, following: Following) -> dict[str, Doubles]:
    """Return the speed of unimpeded drivers over the speed limit of their lane, one per driver."""
    network, lane = tracks.network, tracks.lane
    limits = np.append(tracks.map.speed_limits.astype(np.float64), np.nan)  # lane -1 ("none") reads NaN
    leads_to_junction = np.zeros(len(network.length) + 1, np.bool_)
    before, after = tracks.map.successors[:, 0], tracks.map.successors[:, 1]
    leads_to_junction[before[network.is_junction[after] | network.touches_ring[after]]] = True
    bends = np.abs(network.turn) > STRAIGHT_RAD_PER_M * network.length
    special = np.append(network.is_junction | network.is_ring | network.is_ending | bends, True)
    left = np.append(network.length, 0.0)[lane] - tracks.arc
    with np.errstate(divide="ignore", invalid="ignore"):
        clear = following.gap / tracks.speed >= FREE_HEADWAY_S
    free = tracks.valid & following.is_vehicle[:, None] & ~special[lane] & clear & np.isfinite(limits[lane])
    free &= ~(leads_to_junction[lane] & (left < FREE_BEFORE_JUNCTION_M)) & (tracks.speed > STANDING_MPS)
    free &= (np.abs(tracks.acceleration) <= FREE_ACCELERATION_MPS2) & ~tracks.never_moves[:, None]
    found: dict[str, list[float]] = {"free_speed_freeway": [], "free_speed_street": []}
    for agent in np.flatnonzero(free.sum(axis=1) >= tracks.steps_of(FREE_S)):
        when = np.flatnonzero(free[agent])
        road = "freeway" if network.is_freeway[lane[agent, when[len(when) // 2]]] else "street"
        ratio = tracks.speed[agent, when] / limits[lane[agent, when]]
        found[f"free_speed_{road}"].append(float(np.median(ratio)))
    return {name: np.array(values) for name, values in found.items()}


def _pairs(flags: Bools, leader: Ints, least: int) -> list[tuple[int, Longs]]:
    """Yield agent and flagged steps (`least` or more) behind one leader, for each of its leaders."""
    pairs: list[tuple[int, Longs]] = []
    for agent in np.unique(stretches(flags)[0]):
        when = np.flatnonzero(flags[agent])
        for ahead in np.unique(leader[agent, when]):
            behind_it = when[leader[agent, when] == ahead]
            if len(behind_it) >= least:
                pairs.append((int(agent), behind_it))
    return pairs


@kernel
def _leaders(lane, arc, offset, vehicles, half_length, half_width, length, turn, successor_starts, successors):
    """Find the nearest vehicle on the next lanes of each agent: those of its recording, then the straightest ones."""
    agents, steps = lane.shape
    leader, gap = np.full((agents, steps), -1, np.int32), np.full((agents, steps), np.inf)
    for i in vehicles:
        for k in range(steps):
            here = lane[i, k]
            if here < 0:
                continue
            start, seen = -float(arc[i, k]), k
            for _ in range(MOST_LANES_AHEAD):
                for j in vehicles:
                    if j == i or lane[j, k] != here or abs(offset[j, k]) > half_width[here]:
                        continue
                    ahead = start + arc[j, k]
                    if ahead > 0.0 and ahead - half_length[i] - half_length[j] < gap[i, k]:
                        gap[i, k], leader[i, k] = ahead - half_length[i] - half_length[j], j
                start += length[here]
                if leader[i, k] >= 0 or start > REACH_M:
                    break
                while seen < steps and lane[i, seen] == here:
                    seen += 1
                following, straightest = -1, np.inf
                for p in range(successor_starts[here], successor_starts[here + 1]):
                    if seen < steps and lane[i, seen] == successors[p]:
                        following = successors[p]
                        break
                    if abs(turn[successors[p]]) < straightest:
                        following, straightest = successors[p], abs(turn[successors[p]])
                if following < 0:
                    break
                here = following
            if gap[i, k] > REACH_M:
                gap[i, k], leader[i, k] = np.inf, -1
    return leader, gap
