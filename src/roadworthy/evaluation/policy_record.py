"""Record what a policy observes, expects and chooses in episodes of a run: run them again with the network watched.

Each episode becomes one file of the run folder, `policy/<episode>.cols`, which the viewer reads (viewer/columns.py has
the format): a row per frame of the episode's trace, and for each of E recorded egos

    observation    (F, E, S)  what the network observed, in the blocks that `layout` of the header describes
    value          (F, E)     the discounted return that it expected
    entropy        (F, E)     of its distribution of actions, in nats
    probabilities  (F, E, P)  of each choice, those of the first action before those of the second; none if continuous
    reward         (F, E)     of the step that led to the frame

NaN where there is none: the last frame of a trial has no decision, the first one no reward.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from roadworthy.errors import UsageError
from roadworthy.evaluation.config import Choice
from roadworthy.evaluation.recorded import RecordedRun, open_run
from roadworthy.evaluation.replay import first_difference
from roadworthy.evaluation.runners.driving.runner import one_by_one, run_episodes
from roadworthy.policy.checkpoint import Checkpoint, load_checkpoint
from roadworthy.policy.coplayers import CoplayerPolicy
from roadworthy.policy.heads import JointHead, MultiDiscreteHead
from roadworthy.policy.inspect import RecordingPolicy
from roadworthy.policy.load import load_policy
from roadworthy.policy.network import PolicyNetwork
from roadworthy.policy.protocol import Array, Batch
from roadworthy.progress import Report
from roadworthy.record import EpisodeResult, Run, Trace
from roadworthy.record.files import write_whole
from roadworthy.record.worst import sorted_worst_first
from roadworthy.viewer.columns import Columns
from roadworthy.viewer.site import policy_path

ARTIFACT = "policy"
WORST = 3  # the number of episodes that are recorded if none are named
Floats = NDArray[np.float32]


def record_policy(
    run: Run,
    episodes: Sequence[str] | int = WORST,
    *,
    trust: bool = False,
    progress: Report = lambda done, total: None,
) -> list[Path]:
    """Write what the network of a run did in some of its episodes; return the files.

    Args:
        run: A complete run of a driving evaluator whose policy is a checkpoint.
        episodes: The ids of episodes, or the number of worst ones.
        trust: Whether co-players that are code may be run.
        progress: Called with the number of episodes that are done, and the total.

    Raises:
        UsageError: The policy is not a network, or the run has no such episode.
    """
    spec = run.header.get("checkpoint")
    if not spec:
        raise UsageError(
            f"the policy {run.header.get('policy')!r} is not a checkpoint, so it has no values and probabilities to "
            "record; leave out --record, or evaluate a checkpoint"
        )
    recorded = open_run(run, trust=trust)
    recorded.spec(worlds=1)  # checks that the policy is that of the run, and that it may be run
    ids = worst_episodes(run, episodes) if isinstance(episodes, int) else list(episodes)
    unknown = [id for id in ids if id not in set(run.ledger["episode_id"].to_pylist())]
    if unknown:
        raise UsageError(f"{run.folder} has no episode {unknown[0]!r}")
    checkpoint = load_checkpoint(Path(spec["path"]))
    written = []
    for done, id in enumerate(ids):
        progress(done, len(ids))
        path = run.place(policy_path(id))
        path.parent.mkdir(exist_ok=True)
        write_whole(path, _columns(recorded, checkpoint, id).encode(6))
        run.add_artifact(id, ARTIFACT, path)
        written.append(path)
    progress(len(ids), len(ids))
    return written


def parse_record(text: str) -> int:
    """Return the number of episodes to record from "policy" or "policy:N"."""
    what, _, count = text.partition(":")
    if what != ARTIFACT or (":" in text and not (count.isdecimal() and int(count) > 0)):
        raise UsageError(
            f"--record {text!r} is unknown; write policy for the {WORST} worst episodes, or policy:N for N"
        )
    return int(count) if count else WORST


def worst_episodes(run: Run, count: int) -> list[str]:
    """Return the ids of the worst completed episodes that have a trace."""
    rows = sorted_worst_first(run.episodes(), "score")
    pairs = zip(rows["episode_id"].to_pylist(), rows["status"].to_pylist(), rows["artifacts"].to_pylist(), strict=True)
    return [id for id, status, files in pairs if status == "completed" and "trace" in dict(files or ())][:count]


class _Watched(RecordingPolicy):
    """Records the rewards as well."""

    def __init__(self, policy: PolicyNetwork, name: str, agents: Sequence[int], is_greedy: bool) -> None:
        super().__init__(policy, name, agents=agents, is_greedy=is_greedy)
        self.rewards: list[Floats] = []

    def act(self, batch: Batch) -> Array:
        self.rewards.append(self.last_rewards())
        return super().act(batch)

    def last_rewards(self) -> Floats:
        """Return the rewards of the last step, for all rows of the world."""
        return np.array(self._env.rewards, np.float32)


def _columns(recorded: RecordedRun, checkpoint: Checkpoint, id: str) -> Columns:
    run, config = recorded.run, recorded.config
    trace = run.trace(id)
    egos = np.flatnonzero(trace.roles == 0).tolist()
    watched = _Watched(checkpoint.policy, run.header["policy"], egos, config.actions is Choice.GREEDY)
    partners = [partial(load_policy, spec) for spec in config.coplayers]
    spec = replace(recorded.spec(worlds=1), make_policy=lambda: CoplayerPolicy(lambda: watched, partners))
    results: list[EpisodeResult] = []
    run_episodes(spec, spec.make_env(threads=1), one_by_one([recorded.ledger[id]]), results.append)
    result = results[0]
    if result.trace is None or len(watched.rewards) != trace.frame_count - trace.trial_count:
        raise UsageError(f"episode {id!r} can't be recorded: {result.episode.error or 'it differs from its trace'}")
    difference = first_difference(trace, result.trace)
    head: Any = checkpoint.policy.head
    choices = list(head.choices) if isinstance(head, MultiDiscreteHead | JointHead) else []
    columns = Columns(
        trace.frame_count,
        agents=egos,
        choices=choices,
        layout=checkpoint.policy.layout.plain(),
        differs_from=None if difference is None else str(difference),
    )
    decided = np.ones(trace.frame_count, bool)
    decided[trace.trial_starts[1:] - 1] = False
    found = [watched.inspections[agent] for agent in egos]
    active = np.stack([one.active for one in found], 1)

    def add(name: str, values: NDArray[Any]) -> None:
        whole = np.full((trace.frame_count, *values.shape[1:]), np.nan, np.float32)
        whole[decided] = np.where(active.reshape(*active.shape, *[1] * (values.ndim - 2)), np.round(values, 4), np.nan)
        columns.numbers(name, whole, whole.shape)

    add("observation", np.stack([one.observation for one in found], 1))
    add("value", np.stack([one.value for one in found], 1))
    add("entropy", np.stack([one.entropy for one in found], 1))
    if choices:
        add("probabilities", np.stack([_probabilities(head, one.scores) for one in found], 1))
    rewards = _by_frame(trace, [*watched.rewards[1:], watched.last_rewards()])[:, egos]
    columns.numbers("reward", np.where(trace.active[:, egos], rewards, np.nan), rewards.shape)
    return columns


def _probabilities(head: MultiDiscreteHead | JointHead, scores: Floats) -> Floats:
    """Return the probabilities of each part's choices, (T, sum of choices)."""
    logits = torch.from_numpy(scores)
    if isinstance(head, MultiDiscreteHead):
        parts = [part.softmax(-1) for part in logits.split(head.choices, -1)]
    else:
        joint = logits.softmax(-1).reshape(len(logits), *head.choices)
        parts = [joint.sum(2), joint.sum(1)]
    return np.asarray(torch.cat(parts, -1).numpy(), np.float32)


def _by_frame(trace: Trace, rewards: Sequence[Floats]) -> Floats:
    """Move the rewards of all steps to the frames that they led to, (F, rows); the first frame of a trial has none."""
    whole = np.full((trace.frame_count, len(rewards[0])), np.nan, np.float32)
    is_led_to = np.ones(trace.frame_count, bool)
    is_led_to[trace.trial_starts[:-1]] = False
    whole[is_led_to] = rewards
    return whole
