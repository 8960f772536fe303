"""What a policy spec names: a built-in policy, a checkpoint's folder, or something else.

Reserved words come first, whatever files lie in the current folder: `zero` is the policy of that name, and a folder of
that name is given as `./zero`. A `Path` is always a path.
"""

from __future__ import annotations

from pathlib import Path

from roadworthy.errors import UsageError

BASELINES = Path(__file__).parents[1] / "baselines"
BLIND = ("random", "zero")
BASELINE, EXPERT = "baseline:", "expert:"
REMOTE = ("ws://", "wss://")


def is_reserved(spec: str | Path) -> bool:
    """Whether a spec names a built-in policy or a server, and never a file."""
    return isinstance(spec, str) and (spec in BLIND or spec.startswith((BASELINE, EXPERT, *REMOTE)))


def checkpoint_folder(spec: str | Path) -> Path | None:
    """The checkpoint that a path or `baseline:NAME` names, whether or not it exists; None for other reserved words."""
    if isinstance(spec, str) and spec.startswith(BASELINE):
        return BASELINES / spec.removeprefix(BASELINE)
    return None if is_reserved(spec) else Path(spec).expanduser()


def require_checkpoint(spec: str | Path, what: str) -> Path:
    """The checkpoint that a spec names, where nothing else will do; `what` says of whom, for the error."""
    folder = checkpoint_folder(spec)
    if folder is None:
        raise UsageError(
            f"{what} is {str(spec)!r}, which is a built-in policy without a network; expected a checkpoint's folder or "
            f"baseline:NAME (a folder of that name is ./{spec})"
        )
    return folder
