"""Batches of Gymnasium's vector envs, one for each autoreset mode.

- next-step: the step after an end resets; its action is not used, its reward is 0 and it belongs to no episode.
- same-step: the step that ends an episode returns the first observation of the next one; the last one of the old is in
  `final_obs`, its info in `final_info`.
- disabled: the caller resets the envs that ended, by a mask.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import concatenate, create_empty_array, iterate
from numpy.typing import NDArray

from roadworthy.errors import UsageError
from roadworthy.evaluation.ledger import EpisodeSpec
from roadworthy.evaluation.runners.gym.batch import Begun, Broken, Change, EnvBatch, Moved, Picture, split_factors
from roadworthy.evaluation.watch import Watch
from roadworthy.policy.protocol import PolicyInfo

Envs = VectorEnv[Any, Any, Any]


def vector_batch(envs: Envs) -> EnvBatch:
    """Return the batch for a vector env's autoreset mode."""
    mode = autoreset_mode(envs)
    if mode is AutoresetMode.DISABLED:
        return MaskedEnvs(envs)
    return SelfResettingEnvs(envs, mode)


def autoreset_mode(envs: Envs) -> AutoresetMode:
    """Return the declared autoreset mode of a vector env; a wrong guess would assign steps to the wrong episodes."""
    declared = envs.metadata.get("autoreset_mode")
    known = {mode.value: mode for mode in AutoresetMode} | {mode.name: mode for mode in AutoresetMode}
    mode = declared if isinstance(declared, AutoresetMode) else known.get(str(declared))
    if mode is None:
        declares = "declares no autoreset mode" if declared is None else f"declares the autoreset mode {declared!r}"
        raise UsageError(
            f"{type(envs).__name__} {declares}; set metadata['autoreset_mode'] to AutoresetMode.NEXT_STEP, SAME_STEP "
            "or DISABLED of gymnasium.vector, whichever its step() follows"
        )
    return mode


class _VectorEnvs:
    """The common part of batches of vector envs: splits observations and infos, joins actions."""

    def __init__(self, envs: Envs) -> None:
        self._envs = envs
        self.count = envs.num_envs
        self.watch = Watch(self.count)
        self.info = PolicyInfo.of_gymnasium(
            self.count, envs.single_observation_space, envs.single_action_space, envs.metadata
        )
        space = envs.single_action_space
        space.seed(0)
        self._idle_action = space.sample()  # for envs without an episode, which are stepped as well
        self._actions: Any = create_empty_array(space, self.count)

    def render(self, envs: list[int]) -> dict[int, Picture]:
        with self.watch.call(), self.watch.rendering():
            frames: Any = self._envs.render() if self._envs.render_mode == "rgb_array" else None
        if frames is None:
            return {}
        return {number: np.asarray(frames[number]) for number in envs}

    def close(self) -> None:
        self._envs.close()

    def _observations(self, batched: Any) -> list[Any]:
        # Copies: many vector envs write the next observations into the same arrays.
        return [_copied(part) for part in iterate(self._envs.observation_space, batched)]

    def _step(self, actions: Mapping[int, Any]) -> tuple[list[Any], Any, Any, Any, dict[str, Any]]:
        every = [actions.get(number, self._idle_action) for number in range(self.count)]
        together = concatenate(self._envs.single_action_space, every, self._actions)
        with self.watch.call(steps=1):
            observed, rewards, terminated, truncated, infos = self._envs.step(together)
        return self._observations(observed), rewards, terminated, truncated, infos


class MaskedEnvs(_VectorEnvs):
    """A vector env that is reset by a mask: each env starts the chosen episode with its seed."""

    resets_itself = False
    shows_last_state = True

    def __init__(self, envs: Envs) -> None:
        super().__init__(envs)
        self._has_begun = False
        self._ended: set[int] = set()

    def begin(self, episodes: Mapping[int, EpisodeSpec]) -> dict[int, Begun | Broken]:
        found: dict[int, Begun | Broken] = {}
        if not self._has_begun:  # envs without an episode need a state as well
            self._reset(np.ones(self.count, np.bool_), dict.fromkeys(range(self.count), 0), {})
            self._has_begun = True
        groups: dict[str, list[int]] = {}
        for number, spec in episodes.items():
            groups.setdefault(repr(sorted(spec.factors.items())), []).append(number)
        for numbers in groups.values():  # envs that are reset together share their options
            mask = np.isin(np.arange(self.count), numbers)
            factors, _ = split_factors(episodes[numbers[0]].factors, self.info.metadata)
            found |= self._reset(mask, {number: episodes[number].seed for number in numbers}, factors)
        return found

    def step(self, actions: Mapping[int, Any]) -> dict[int, Change]:
        if self._ended:  # envs without an episode must not stay in an ended state
            mask = np.isin(np.arange(self.count), sorted(self._ended))
            self._reset(mask, dict.fromkeys(self._ended, 0), {})
        observed, rewards, terminated, truncated, infos = self._step(actions)
        self._ended = set(np.flatnonzero(np.asarray(terminated) | np.asarray(truncated)).tolist())
        return {
            number: Change(
                Moved(
                    observed[number],
                    float(rewards[number]),
                    bool(terminated[number]),
                    bool(truncated[number]),
                    info_of(infos, number),
                )
            )
            for number in actions
        }

    def _reset(
        self, mask: NDArray[np.bool_], seeds: Mapping[int, int], factors: Mapping[str, Any]
    ) -> dict[int, Begun | Broken]:
        options: dict[str, Any] = {"reset_mask": mask} | ({"factors": dict(factors)} if factors else {})
        every = [seeds.get(number) for number in range(self.count)]
        with self.watch.call():
            batched, infos = self._envs.reset(seed=every, options=options)  # type: ignore[arg-type]  # None keeps a seed
        self._ended -= set(np.flatnonzero(mask).tolist())
        observed = self._observations(batched)
        return {number: Begun(observed[number], info_of(infos, number)) for number in np.flatnonzero(mask).tolist()}


class SelfResettingEnvs(_VectorEnvs):
    """A vector env that resets its envs itself, in the step that ends an episode or in the next one."""

    resets_itself = True

    def __init__(self, envs: Envs, mode: AutoresetMode) -> None:
        super().__init__(envs)
        self._is_same_step = mode is AutoresetMode.SAME_STEP
        self.shows_last_state = not self._is_same_step
        self._resets_next = np.zeros(self.count, np.bool_)  # in the next step

    def begin(self, episodes: Mapping[int, EpisodeSpec]) -> dict[int, Begun | Broken]:
        spare = max((spec.seed for spec in episodes.values()), default=0)
        seeds = [episodes[number].seed if number in episodes else spare + 1 + number for number in range(self.count)]
        with self.watch.call():
            try:
                batched, infos = self._envs.reset(seed=seeds)  # type: ignore[arg-type]  # the base class takes one seed
            except (TypeError, ValueError, UsageError):  # some take one seed only
                batched, infos = self._envs.reset(seed=seeds[0])
        self._resets_next[:] = False
        observed = self._observations(batched)
        return {number: Begun(observed[number], info_of(infos, number)) for number in episodes}

    def step(self, actions: Mapping[int, Any]) -> dict[int, Change]:
        observed, rewards, terminated, truncated, infos = self._step(actions)
        ended = np.asarray(terminated) | np.asarray(truncated)
        changes = {}
        for number in range(self.count):
            info = info_of(infos, number)
            if self._resets_next[number]:
                changes[number] = Change(begun=Begun(observed[number], info))
                continue
            last, last_info, begun = observed[number], info, None
            if ended[number] and self._is_same_step:
                last, last_info = _final(info, number)
                rest = {key: value for key, value in info.items() if key not in ("final_obs", "final_info")}
                begun = Begun(observed[number], rest)
            moved = Moved(last, float(rewards[number]), bool(terminated[number]), bool(truncated[number]), last_info)
            changes[number] = Change(moved, begun)
        self._resets_next = ended & (not self._is_same_step) & ~self._resets_next
        return changes


def info_of(infos: Mapping[str, Any], number: int) -> dict[str, Any]:
    """Return one env's part of a vector env's info: the entries that their masks, if any, assign to it."""
    found: dict[str, Any] = {}
    for key, values in infos.items():
        if key.startswith("_") and key[1:] in infos:
            continue
        mask = infos.get(f"_{key}")
        if mask is not None and not mask[number]:
            continue
        if isinstance(values, Mapping):
            found[key] = info_of(values, number)
        elif isinstance(values, np.ndarray | list | tuple) and len(values) > number:
            found[key] = values[number]
    return found


def _final(info: Mapping[str, Any], number: int) -> tuple[Any, dict[str, Any]]:
    """Return the last observation and info of an episode."""
    if info.get("final_obs") is None:
        raise UsageError(
            f"env {number} ended an episode, but its info has no final_obs; a vector env that declares SAME_STEP puts "
            "the last observation there"
        )
    return info["final_obs"], dict(info.get("final_info") or {})


def _copied(part: Any) -> Any:
    if isinstance(part, np.ndarray):
        return part.copy()
    if isinstance(part, Mapping):
        return {key: _copied(value) for key, value in part.items()}
    if isinstance(part, tuple):
        return tuple(_copied(value) for value in part)
    return part
