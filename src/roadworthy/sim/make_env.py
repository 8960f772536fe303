"""Make an environment of driving worlds from a pack, or from scenarios to generate."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from roadworthy.config import parse_overrides, resolve
from roadworthy.scenario.pack import Pack
from roadworthy.sim.config import SimConfig
from roadworthy.sim.env import DriveEnv
from roadworthy.sources import parse_source


def make_env(
    scenarios: str | Path,
    worlds: int = 64,
    config: SimConfig | Mapping[str, Any] | None = None,
    *,
    seed: int = 0,
    device: str = "cpu",
    threads: int | None = None,
) -> DriveEnv:
    """Make driving worlds that are stepped together. Call `reset` before the first step.

    Args:
        scenarios: A pack, as "town.pack" or "town.pack#hard_stop" for a tag, or what to generate, as
            "generate:town?count=24&seed=7".
        worlds: The number of worlds.
        config: The simulation: a SimConfig, or a mapping of its settings by dotted keys, as {"control.rows": 8}.
        seed: The seed of the run; it decides which scenario each world draws.
        device: "cpu", or "cuda" (also "cuda:1") for a GPU.
        threads: The number of CPU threads; if None, one per core.

    Returns:
        An environment with `reset`, `step` and `observations`; row r belongs to world `r // rows_per_world`.

    Example:
        >>> import roadworthy as rw
        >>> env = rw.make_env("generate:town?count=4&seed=7", worlds=2, config={"control.rows": 8})
        >>> env.reset().shape[0] == env.row_count == 16
        True
    """
    if not isinstance(config, SimConfig):
        config = resolve(SimConfig, [parse_overrides(config or {})]).config
    source = parse_source(str(scenarios))
    pack = Pack(source.fetch())
    numbers = None if source.tag is None else pack.select(source.tag).tolist()
    return DriveEnv(pack, worlds, config, seed=seed, device=device, threads=threads, scenarios=numbers)
