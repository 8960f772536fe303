"""`roadworthy inspect`: record what happens inside a policy, step by step, as files, pictures and a video."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roadworthy.cli.output import JsonFlag, examples, note, tell, tell_json
from roadworthy.errors import UsageError
from roadworthy.progress import progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from roadworthy.evaluation.ledger import EpisodeSpec
    from roadworthy.policy.checkpoint import Checkpoint
    from roadworthy.policy.inspect import RecordingPolicy, WorldKind
    from roadworthy.record import EpisodeResult
    from roadworthy.scenario.pack import Pack
    from roadworthy.sim.config import SimConfig

EXAMPLES = examples(
    "roadworthy inspect baseline:town --pack town.pack --agents 0,3",
    "roadworthy inspect CHECKPOINT --pack town.pack --worlds ego,replay --steps 120 -o look",
    "roadworthy inspect CHECKPOINT --pack town.pack --worlds coplayers --coplayer OTHER --set episode.trials=3",
    "",
    "Exit codes: 0 done, 1 some video could not be made, 2 usage, 3 bad data",
)
LONGEST = 1_000_000


def inspect(
    checkpoint: Annotated[
        str,
        typer.Argument(
            metavar="CHECKPOINT", help="A checkpoint, a training folder, or baseline:NAME.", show_default=False
        ),
    ],
    pack: Annotated[Path, typer.Option("--pack", metavar="PACK", help="A pack file.", show_default=False)],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FOLDER", help="The output; a folder per kind of world.")
    ] = Path("inspection"),
    scenario: Annotated[str, typer.Option(metavar="ID", help="The id of the scenario, or its number.")] = "0",
    worlds: Annotated[str, typer.Option(metavar="KINDS", help="Of ego, replay, coplayers; comma-separated.")] = "ego",
    agents: Annotated[
        str | None,
        typer.Option(metavar="NUMBERS", help="Egos to record, as 0,3; by default the first.", show_default=False),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Steps to record; by default all.", show_default=False),
    ] = None,
    coplayers: Annotated[
        list[str] | None,
        typer.Option(
            "--coplayer",
            metavar="POLICY",
            help="A policy of co-players; repeatable; by default this one.",
            show_default=False,
        ),
    ] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting of the simulation; repeatable.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of the episode.")] = 0,
    greedy: Annotated[bool, typer.Option("--greedy", help="Take the most likely actions instead of samples.")] = False,
    video: Annotated[bool, typer.Option("--video/--no-video", help="Whether to record a video.")] = True,
    json: JsonFlag = False,
) -> int:
    """Inspect a policy during one episode.

    Observation, action, value, memory, mask and attention of every step go
    into a .jsonl and an .npz file per agent; pictures and a video show them.

    Worlds: ego, the policy controls all agents; replay, it controls the
    self-driving car among recorded traffic; coplayers, others control half.
    """
    from roadworthy.policy.checkpoint import load_checkpoint
    from roadworthy.policy.spec import require_checkpoint
    from roadworthy.scenario.pack import Pack

    kinds, numbers = _kinds(worlds), _numbers(agents)
    loaded = load_checkpoint(require_checkpoint(checkpoint, "the policy to look into"))
    loaded = load_checkpoint(require_checkpoint(checkpoint, "the policy to inspect"))
    written: dict[str, list[str]] = {}
    errors: list[str] = []
    with Pack(pack) as opened:
        episode = _episode(opened, scenario, seed)
        for kind in kinds:
            config = _simulation(loaded, kind, coplayers, overrides or ())
            recorder, result = _drive(loaded, opened, episode, config, numbers, steps, greedy, coplayers)
            place = out / kind.value
            files = _write(recorder, place)
            if video:
                made, failed = _film(result, opened, episode, config, recorder, place, steps)
                files, errors = files + made, errors + failed
            files.append(_write_about(place, loaded, opened, episode, kind, config, files))
            written[kind.value] = list(map(str, files))
            if not json:
                tell(_summary(kind, recorder, result, place))
    for error in errors:
        note(f"no video: {error}")
    if json:
        tell_json({"checkpoint": str(loaded.path), "scenario": episode.scenario_id, "files": written, "errors": errors})
    return 1 if errors else 0


def _kinds(worlds: str) -> list[WorldKind]:
    from roadworthy.policy.inspect import WorldKind

    known = [kind.value for kind in WorldKind]
    names = [name.strip() for name in worlds.split(",")]
    wrong = [name for name in names if name not in known]
    if wrong:
        raise UsageError(f"--worlds {wrong[0]!r} is unknown; known: {', '.join(known)}")
    return [WorldKind(name) for name in dict.fromkeys(names)]


def _numbers(agents: str | None) -> list[int] | None:
    if agents is None:
        return None
    parts = [part.strip() for part in agents.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise UsageError(f"--agents is {agents!r}, expected comma-separated numbers, as in 0,3")
    return list(dict.fromkeys(map(int, parts)))


def _episode(pack: Pack, scenario: str, seed: int) -> EpisodeSpec:
    from roadworthy.evaluation.ledger import EpisodeSpec

    number = int(scenario) if scenario.isdecimal() and scenario not in pack.ids else pack.number(scenario)
    if not number < len(pack):
        raise UsageError(f"there is no scenario {number}; {pack.path} has scenarios 0 to {len(pack) - 1}")
    name = pack.ids[number]
    return EpisodeSpec(f"{name}-seed{seed}", number, name, seed, 0)


def _simulation(
    checkpoint: Checkpoint, kind: WorldKind, coplayers: Sequence[str] | None, overrides: Sequence[str]
) -> SimConfig:
    """Return the simulation of the policy's training, changed by the kind of world and the command line."""
    from roadworthy.config import Layer, parse_overrides, resolve
    from roadworthy.policy.inspect import world_layer
    from roadworthy.sim.config import SimConfig

    trained = checkpoint.about.get("train", {}).get("env", {})
    layers = [Layer(str(checkpoint.path), trained, is_record=True), world_layer(kind, max(len(coplayers or ()), 1))]
    return resolve(SimConfig, [*layers, parse_overrides(overrides)]).config


def _drive(
    checkpoint: Checkpoint,
    pack: Pack,
    episode: EpisodeSpec,
    config: SimConfig,
    agents: list[int] | None,
    steps: int | None,
    is_greedy: bool,
    coplayers: Sequence[str] | None,
) -> tuple[RecordingPolicy, EpisodeResult]:
    """Run the episode; return the recorder and the result."""
    from functools import partial

    from roadworthy.evaluation.runners.driving.runner import one_by_one, run_episodes
    from roadworthy.evaluation.runners.driving.spec import DrivingSpec
    from roadworthy.policy.coplayers import CoplayerPolicy
    from roadworthy.policy.inspect import RecordingPolicy
    from roadworthy.policy.load import load_policy

    name = checkpoint.path.name
    recorder = RecordingPolicy(checkpoint.policy, name, agents=agents, steps=steps, is_greedy=is_greedy)
    partners = coplayers or [str(checkpoint.path)]
    policy = CoplayerPolicy(lambda: recorder, [partial(load_policy, spec) for spec in partners])
    spec = DrivingSpec("inspect", pack.path, config, lambda: policy, worlds=1)
    results: list[EpisodeResult] = []
    with progress("running the episode") as report:
        report(0, 1)
        run_episodes(spec, spec.make_env(threads=1), one_by_one([episode]), results.append)
        report(1, 1)
    if results[0].episode.error is not None:
        raise UsageError(f"{episode.scenario_id}: {results[0].episode.error}")
    return recorder, results[0]


def _write(recorder: RecordingPolicy, folder: Path) -> list[Path]:
    """Write the files and pictures of every agent."""
    from roadworthy.policy.inspect import write_inspection
    from roadworthy.policy.inspect.pictures import pictures

    written: list[Path] = []
    for agent, inspection in recorder.inspections.items():
        stem = folder / f"agent_{agent}"
        written += write_inspection(inspection, stem)
        for name, data in pictures(inspection).items():
            path = folder / f"agent_{agent}_{name}.png"
            path.write_bytes(data)
            written.append(path)
    return written


def _film(
    result: EpisodeResult,
    pack: Pack,
    episode: EpisodeSpec,
    config: SimConfig,
    recorder: RecordingPolicy,
    folder: Path,
    steps: int | None,
) -> tuple[list[Path], list[str]]:
    """Make a video that follows each agent; return paths and errors."""
    from roadworthy.render.episode_video import write_videos
    from roadworthy.render.resimulate import Resimulation, light_states
    from roadworthy.render.views import EpisodeScene
    from roadworthy.sim.config import Mode

    assert result.trace is not None
    scenario = pack[episode.scenario]
    resimulation = Resimulation(pack, config) if config.mode is Mode.OPEN else None
    lights = light_states(scenario, episode.scenario, episode.seed, result.trace, config, resimulation)
    made: list[Path] = []
    errors: list[str] = []
    with progress("making videos") as report:
        for done, agent in enumerate(recorder.inspections):
            report(done, len(recorder.inspections))
            scene = EpisodeScene(result.trace, scenario, lights, agent, config.goal.radius_m, f"agent {agent}")
            (film,) = write_videos(scene, {"ego": folder / f"agent_{agent}.mp4"}, steps or LONGEST)
            made += [film.path] if film.path else []
            errors += [film.error] if film.error else []
        report(len(recorder.inspections), len(recorder.inspections))
    return made, errors


def _write_about(
    folder: Path,
    checkpoint: Checkpoint,
    pack: Pack,
    episode: EpisodeSpec,
    kind: WorldKind,
    config: SimConfig,
    files: list[Path],
) -> Path:
    """Write what was inspected, and the names of all columns of an observation."""
    from roadworthy.config import plain

    about: dict[str, Any] = {
        "checkpoint": str(checkpoint.path),
        "sha256": checkpoint.sha256,
        "step": checkpoint.step,
        "pack": str(pack.path),
        "scenario_id": episode.scenario_id,
        "seed": episode.seed,
        "worlds": kind.value,
        "env": plain(config),
        "observation_columns": checkpoint.policy.layout.columns(),
        "files": [path.name for path in files],
    }
    path = folder / "about.json"
    path.write_text(json_format.dumps(about, indent=1) + "\n", encoding="utf-8")
    return path


def _summary(kind: WorldKind, recorder: RecordingPolicy, result: EpisodeResult, folder: Path) -> str:
    agents = []
    for agent, inspection in recorder.inspections.items():
        inactive = int((~inspection.active).sum())
        agents.append(
            f"agent {agent}: {len(inspection.trial)} steps" + (f", {inactive} of them inactive" if inactive else "")
        )
    trials = f"{result.episode.trials} trial{'s' if result.episode.trials > 1 else ''}"
    return f"{kind.value}: {trials}, {'; '.join(agents)}\n{folder}"
