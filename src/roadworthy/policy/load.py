"""Loading policies by spec. Importing this module does not import torch, which takes seconds."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from roadworthy import plugins
from roadworthy.errors import UsageError
from roadworthy.policy.blind import RandomPolicy, ZeroPolicy
from roadworthy.policy.protocol import Policy
from roadworthy.policy.spec import BLIND, EXPERTS, GROUP, Kind, baselines, checkpoint_folder, kind_of


def load_policy(
    spec: str | Path,
    policy_config: Mapping[str, Any] | None = None,
    *,
    is_greedy: bool = False,
    device: str = "cpu",
    conditioning: Mapping[str, float] | None = None,
) -> Policy:
    """Load the policy that a spec names.

    Args:
        spec: A checkpoint folder or training folder (`runs/first`, `runs/first@best`, `runs/first@12000`),
            `baseline:NAME`, `expert:NAME`, `random`, `zero`, `module:Class`, `file.py:Class`, a name that an installed
            package declares, or `ws://HOST:PORT`. Reserved words come before folders of the same name.
        policy_config: Arguments of the policy's class, by name.
        is_greedy: Whether a network takes its most likely action instead of drawing one. Other policies ignore it, as
            they ignore `device` and `conditioning`; `policy_config` overrides all three.
        device: Where a network runs: "cpu", "cuda" or "cuda:1".
        conditioning: Values of the conditioning that a network was trained with. The others are drawn for each agent
            and episode.

    Returns:
        A policy, not started. Call its `act` with batches of the simulator or of Gymnasium environments; see
        `roadworthy.policy.protocol`.

    Raises:
        UsageError: If the spec names nothing, or `policy_config` has a key that the policy does not know.
        CheckpointError: If a checkpoint is damaged.

    Example:
        >>> import roadworthy as rw
        >>> policy = rw.load_policy("baseline:town", {"is_greedy": True})
    """
    config = dict(policy_config or {})
    kind = kind_of(spec)
    if kind is Kind.BUILT_IN:
        return _built_in(str(spec), config)
    if kind is Kind.CHECKPOINT:
        return _network(spec, {"is_greedy": is_greedy, "device": device, "conditioning": conditioning} | config)
    if kind is Kind.REMOTE:
        from roadworthy.policy.remote.client import RemotePolicy

        return _made(str(spec), RemotePolicy, config, str(spec))
    if kind is Kind.UNKNOWN:
        raise unknown_policy(spec)
    return plugins.load(GROUP, plugins.with_colon(str(spec)), "policy")(**config)


def unknown_policy(spec: str | Path) -> UsageError:
    """Return the error for a spec that names nothing."""
    if "/" in str(spec):
        return UsageError(
            f"the folder {str(spec)!r} does not exist; give a checkpoint or training folder that does, or one of "
            f"{', '.join([*BLIND, *EXPERTS, *baselines()])}, module:Class, file.py:Class or ws://HOST:PORT"
        )
    names = [*BLIND, *EXPERTS, *baselines(), *plugins.known(GROUP)]
    if os.sep in str(spec) and "://" not in str(spec):
        return UsageError(
            f"unknown policy {str(spec)!r}: there is no such folder or file; name a checkpoint or training folder, "
            "module:Class, file.py:Class, ws://HOST:PORT, or a policy by its name, such as expert:drive"
        )
    return UsageError(
        f"unknown policy {str(spec)!r}; {plugins.nearest(str(spec), names)}; or give a checkpoint or training folder, "
        "module:Class, file.py:Class or ws://HOST:PORT"
    )


def _built_in(spec: str, config: Mapping[str, Any]) -> Policy:
    if spec in BLIND:
        return _made(spec, RandomPolicy if spec == "random" else ZeroPolicy, config)
    if spec not in EXPERTS:
        raise unknown_policy(spec)
    from roadworthy.policy.experts import DriveExpert, LaneFollower, LogExpert
    from roadworthy.policy.experts.policy import ExpertPolicy

    experts: dict[str, tuple[type[DriveExpert | LaneFollower | LogExpert], dict[str, Any]]] = {
        "expert:drive": (DriveExpert, {}),
        "expert:oracle": (DriveExpert, {"knows_gains": True}),
        "expert:lane_follower": (LaneFollower, {}),
        "expert:lane_keeper": (LaneFollower, {"keeps_lane": True}),
        "expert:log": (LogExpert, {}),
    }
    expert, preset = experts[spec]
    _require_known(spec, expert, config, given=1)
    return ExpertPolicy(spec, expert, **{**preset, **config})


def _network(spec: str | Path, config: Mapping[str, Any]) -> Policy:
    folder = checkpoint_folder(spec)
    assert folder is not None  # it is a checkpoint
    from roadworthy.policy.checkpoint import load_checkpoint
    from roadworthy.policy.neural import NeuralPolicy

    _require_known(str(spec), NeuralPolicy, config, given=2)
    checkpoint = load_checkpoint(folder)
    return NeuralPolicy(checkpoint.policy, checkpoint.path.name, **config)


def _made(spec: str, make: Callable[..., Policy], config: Mapping[str, Any], *given: Any) -> Policy:
    _require_known(spec, make, config, len(given))
    return make(*given, **config)


def _require_known(spec: str, make: Callable[..., Any], config: Mapping[str, Any], given: int) -> None:
    """Refuse keys that are not arguments of a class, apart from the first ones, which are given anyway."""
    known = list(inspect.signature(make).parameters)[given:]
    for key in config:
        if key not in known:
            raise UsageError(f"policy {spec!r} does not accept {key!r} in policy_config; {plugins.nearest(key, known)}")
