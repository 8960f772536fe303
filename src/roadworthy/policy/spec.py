"""What a policy spec names.

A spec is, in this order:

- `random`, `zero`, `expert:NAME`, `baseline:NAME`, or the address `ws://HOST:PORT` of a policy server;
- a name that an installed package declares in the entry point group `roadworthy.policies`;
- a checkpoint folder (or one of the two files in it), or a training folder, with `@last`, `@best` or `@STEP` after it;
- `module:Class` (or `module.Class`) or `file.py:Class`.

A folder whose name is a reserved word is given as `./zero`. A `Path` is always a path.
"""

from __future__ import annotations

from enum import Enum
from pathlib import Path

from roadworthy import plugins
from roadworthy.errors import UsageError
from roadworthy.policy.checkpoint_files import resolve_checkpoint

GROUP = "roadworthy.policies"
BASELINES = Path(__file__).parents[1] / "baselines"
BLIND = ("random", "zero")
EXPERTS = ("expert:drive", "expert:oracle", "expert:lane_follower", "expert:lane_keeper", "expert:log")
BASELINE, EXPERT = "baseline:", "expert:"
REMOTE = ("ws://", "wss://")


class Kind(Enum):
    """What a spec names."""

    BUILT_IN = "a built-in policy"
    REMOTE = "the address of a policy server"
    DECLARED = "a policy of an installed package"
    CHECKPOINT = "a checkpoint"
    CODE = "a class"
    UNKNOWN = "unknown"


def kind_of(spec: str | Path) -> Kind:
    """Return what a spec names, without importing or reading it."""
    if isinstance(spec, str):
        if spec in BLIND or spec.startswith(EXPERT):
            return Kind.BUILT_IN
        if spec.startswith(REMOTE):
            return Kind.REMOTE
        if spec.startswith(BASELINE):
            return Kind.CHECKPOINT
    if Path(spec).expanduser().exists() or _is_selected(spec):
        is_declared = isinstance(spec, str) and spec in plugins.known(GROUP)
        return Kind.DECLARED if is_declared else Kind.CHECKPOINT
    if isinstance(spec, str) and plugins.is_code(plugins.with_colon(spec)):
        return Kind.CODE
    return Kind.DECLARED if spec in plugins.known(GROUP) else Kind.UNKNOWN


def is_reserved(spec: str | Path) -> bool:
    """Return whether a spec names a built-in policy or a server, whatever files exist."""
    return isinstance(spec, str) and (spec in BLIND or spec.startswith((BASELINE, EXPERT, *REMOTE)))


def baselines() -> list[str]:
    """Return the specs of the baselines that come with Roadworthy."""
    return sorted(f"{BASELINE}{path.name}" for path in BASELINES.glob("*/") if (path / "policy.json").is_file())


def checkpoint_folder(spec: str | Path) -> Path | None:
    """Return the checkpoint that a path or `baseline:NAME` names, whether or not it exists; None for other specs.

    A training folder names its newest checkpoint.
    """
    if isinstance(spec, str) and spec.startswith(BASELINE):
        if spec not in baselines():
            raise UsageError(f"unknown policy {spec!r}; {plugins.nearest(spec, baselines())}")
        return BASELINES / spec.removeprefix(BASELINE)
    if is_reserved(spec):
        return None
    path = Path(spec).expanduser()
    return resolve_checkpoint(spec) if path.exists() or _is_selected(spec) else path


def require_checkpoint(spec: str | Path, what: str) -> Path:
    """Return the checkpoint that a spec names; raise UsageError for a policy without a network.

    what: the purpose of the checkpoint, for the error.
    """
    folder = checkpoint_folder(spec)
    if folder is None:
        raise UsageError(
            f"{what} is {str(spec)!r}, which is a built-in policy without a network; expected a checkpoint's folder or "
            f"baseline:NAME (a folder of that name is ./{spec})"
        )
    return folder


def _is_selected(spec: str | Path) -> bool:
    """Return whether a spec is a folder with `@last`, `@best` or `@STEP` after it."""
    folder, at, _ = str(spec).rpartition("@")
    return bool(at) and Path(folder).expanduser().is_dir()
