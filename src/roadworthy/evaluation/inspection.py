"""Inspect a policy during one episode: run it in a kind of world, and write files, pictures and a video per agent."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from roadworthy.config import Layer, parse_overrides, plain, resolve
from roadworthy.errors import UsageError
from roadworthy.evaluation.ledger import EpisodeSpec
from roadworthy.evaluation.runners.driving.runner import one_by_one, run_episodes
from roadworthy.evaluation.runners.driving.spec import DrivingSpec
from roadworthy.evaluation.trust import require_own_code
from roadworthy.policy.checkpoint import Checkpoint
from roadworthy.policy.coplayers import CoplayerPolicy
from roadworthy.policy.inspect import Inspection, RecordingPolicy, WorldKind, world_layer, write_inspection
from roadworthy.policy.inspect.pictures import pictures
from roadworthy.policy.load import load_policy
from roadworthy.progress import Showing
from roadworthy.record import EpisodeResult
from roadworthy.render.episode_video import write_videos
from roadworthy.render.resimulate import Resimulation, light_states
from roadworthy.render.views import EpisodeScene
from roadworthy.scenario.pack import Pack
from roadworthy.sim.config import Mode, SimConfig

_ALL_STEPS = 1_000_000
# Shows the progress of one phase: called with its name, entered while it runs.


@dataclass(frozen=True)
class Request:
    """The episode to inspect, and what to record of it."""

    checkpoint: Checkpoint
    pack: Pack
    scenario: str
    # The id of a scenario, or its number.
    seed: int = 0
    coplayers: Sequence[str] = ()
    # Policies of co-players; the policy itself if empty.
    agents: Sequence[int] | None = None
    # Egos to record; None for the first one.
    steps: int | None = None
    # Steps to record; None for all.
    is_greedy: bool = False
    overrides: Sequence[str] = ()
    # Settings of the simulation, as `key=value`.

    def episode(self) -> EpisodeSpec:
        """Return the episode, after checking that there is such a scenario."""
        pack, scenario = self.pack, self.scenario
        number = int(scenario) if scenario.isdecimal() and scenario not in pack.ids else pack.number(scenario)
        if not number < len(pack):
            raise UsageError(f"there is no scenario {number}; {pack.path} has scenarios 0 to {len(pack) - 1}")
        name = pack.ids[number]
        return EpisodeSpec(f"{name}-seed{self.seed}", number, name, self.seed, 0)


@dataclass(frozen=True)
class Inspected:
    """What an inspection in one kind of world wrote."""

    kind: WorldKind
    folder: Path
    files: tuple[Path, ...]
    errors: tuple[str, ...]
    # Of videos that could not be made.
    trials: int
    inspections: dict[int, Inspection]
    # By agent.


def inspect_episode(
    request: Request, kind: WorldKind, folder: Path, *, has_video: bool = True, showing: Showing
) -> Inspected:
    """Run the episode in one kind of world, and write what the policy observed, computed and did into a folder."""
    episode, config = request.episode(), _simulation(request, kind)
    recorder, result = _run(request, episode, config, showing)
    files = _write(recorder, folder)
    errors: list[str] = []
    if has_video:
        videos, errors = _make_videos(request, episode, config, recorder, result, folder, showing)
        files += videos
    files.append(_write_about(request, episode, kind, config, folder, files))
    return Inspected(kind, folder, tuple(files), tuple(errors), result.episode.trials, recorder.inspections)


def _simulation(request: Request, kind: WorldKind) -> SimConfig:
    """Return the simulation of the policy's training, changed by the kind of world and the overrides."""
    checkpoint = request.checkpoint
    trained = checkpoint.about.get("train", {}).get("env", {})
    partners = max(len(request.coplayers), 1)
    layers = [Layer(str(checkpoint.path), trained, is_record=True), world_layer(kind, partners)]
    own = parse_overrides(request.overrides)
    config = resolve(SimConfig, [*layers, own]).config
    require_own_code(config, str(checkpoint.path), [own.values])
    return config


def _run(
    request: Request, episode: EpisodeSpec, config: SimConfig, showing: Showing
) -> tuple[RecordingPolicy, EpisodeResult]:
    checkpoint, name = request.checkpoint, request.checkpoint.path.name
    agents = None if request.agents is None else list(request.agents)
    recorder = RecordingPolicy(checkpoint.policy, name, agents=agents, steps=request.steps, is_greedy=request.is_greedy)
    partners = request.coplayers or [str(checkpoint.path)]
    policy = CoplayerPolicy(lambda: recorder, [partial(load_policy, spec) for spec in partners])
    spec = DrivingSpec("inspect", request.pack.path, config, lambda: policy, worlds=1)
    results: list[EpisodeResult] = []
    with showing("running the episode") as progress:
        progress(0, 1)
        run_episodes(spec, spec.make_env(threads=1), one_by_one([episode]), results.append)
        progress(1, 1)
    if results[0].episode.error is not None:
        raise UsageError(f"{episode.scenario_id}: {results[0].episode.error}")
    return recorder, results[0]


def _write(recorder: RecordingPolicy, folder: Path) -> list[Path]:
    """Write the files and pictures of every agent."""
    written: list[Path] = []
    for agent, inspection in recorder.inspections.items():
        written += write_inspection(inspection, folder / f"agent_{agent}")
        for name, data in pictures(inspection).items():
            path = folder / f"agent_{agent}_{name}.png"
            path.write_bytes(data)
            written.append(path)
    return written


def _make_videos(
    request: Request,
    episode: EpisodeSpec,
    config: SimConfig,
    recorder: RecordingPolicy,
    result: EpisodeResult,
    folder: Path,
    showing: Showing,
) -> tuple[list[Path], list[str]]:
    """Make a video that follows each agent; return paths and errors."""
    assert result.trace is not None
    scenario = request.pack[episode.scenario]
    resimulation = Resimulation(request.pack, config) if config.mode is Mode.OPEN else None
    lights = light_states(scenario, episode.scenario, episode.seed, result.trace, config, resimulation)
    made: list[Path] = []
    errors: list[str] = []
    with showing("making videos") as progress:
        for done, agent in enumerate(recorder.inspections):
            progress(done, len(recorder.inspections))
            scene = EpisodeScene(result.trace, scenario, lights, agent, config.goal.radius_m, f"agent {agent}")
            (video,) = write_videos(scene, {"ego": folder / f"agent_{agent}.mp4"}, request.steps or _ALL_STEPS)
            made += [video.path] if video.path else []
            errors += [video.error] if video.error else []
        progress(len(recorder.inspections), len(recorder.inspections))
    return made, errors


def _write_about(
    request: Request, episode: EpisodeSpec, kind: WorldKind, config: SimConfig, folder: Path, files: Sequence[Path]
) -> Path:
    """Write what was inspected, and the names of all columns of an observation."""
    checkpoint = request.checkpoint
    about: dict[str, Any] = {
        "checkpoint": str(checkpoint.path),
        "sha256": checkpoint.sha256,
        "step": checkpoint.step,
        "pack": str(request.pack.path),
        "scenario_id": episode.scenario_id,
        "seed": episode.seed,
        "worlds": kind.value,
        "env": plain(config),
        "observation_columns": checkpoint.policy.layout.columns(),
        "files": [path.name for path in files],
    }
    path = folder / "about.json"
    path.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    return path
