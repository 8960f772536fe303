"""Videos of a run: record chosen episodes, from their traces, into the run's folder. Failures are not raised."""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from pathlib import Path

import numpy as np

from roadworthy.errors import RoadworthyError, UsageError, summary_of
from roadworthy.progress import Report
from roadworthy.record import EpisodeResult, Run
from roadworthy.record.files import safe_name
from roadworthy.record.traces import Trace
from roadworthy.render.choose import choose_episodes
from roadworthy.render.config import RenderConfig, View
from roadworthy.render.counts import agent_to_follow
from roadworthy.render.episode_video import ObservationFrames, Video, write_videos
from roadworthy.render.resimulate import Resimulation, light_states
from roadworthy.render.scoreboard import Scores
from roadworthy.render.views import EpisodeScene
from roadworthy.scenario.pack import Pack
from roadworthy.sim.config import Mode, SimConfig

FOLDER = "videos"


class VideoRecorder:
    """Records videos of a run's episodes from its traces and its pack."""

    def __init__(self, run: Run, env: SimConfig) -> None:
        self._run, self._env = run, env
        self._pack = Pack(run.pack)
        self.results: dict[str, EpisodeResult] = {result.episode.episode_id: result for result in run.results()}

    @cached_property
    def _resimulation(self) -> Resimulation:
        return Resimulation(self._pack, self._env)

    def scene(self, episode_id: str, agent: int | None = None) -> EpisodeScene:
        """Return the content of an episode's video; agent: the one to follow, by default the ego that did worst."""
        trace, number = self._run.trace(episode_id), self._pack.number(self.results[episode_id].episode.scenario_id)
        result, scenario = self.results[episode_id], self._pack[number]
        if agent is not None and agent >= trace.agent_count:
            raise UsageError(f"episode {episode_id!r} has no agent {agent}; expected 0 to {trace.agent_count - 1}")
        followed = agent_to_follow(trace, _agent_scores(result)) if agent is None else agent
        resimulation = self._resimulation if self._env.mode is Mode.OPEN else None
        lights = light_states(scenario, number, result.episode.seed, trace, self._env, resimulation)
        score = result.episode.outcomes.get("score")
        words = [tag.replace("_", " ") for tag in result.episode.tags]
        subtitle = "    ".join(([] if score is None else [f"score {score:.2f}"]) + [", ".join(words)])
        own, mean = _trial_scores(result, followed), _trial_scores(result, None)
        return EpisodeScene(trace, scenario, lights, followed, self._env.goal.radius_m, subtitle, own, mean)

    def observation_frames(self, trace: Trace) -> ObservationFrames:
        """Return the observations of the policies of an episode."""
        row = self.results[trace.episode_id].episode
        number = self._pack.number(row.scenario_id)
        return ObservationFrames(self._resimulation.layout, self._resimulation.observations(trace, number, row.seed))

    def record(self, episode_id: str, config: RenderConfig, folder: Path, stem: str) -> list[Video]:
        """Record videos of one episode, a file for each view."""
        if episode_id not in self.results:
            raise UsageError(f"{self._run.folder}: episode {episode_id!r} has not ended, or is not in the ledger")
        scene = self.scene(episode_id, config.agent)
        paths: dict[View, Path] = {view: folder / f"{stem}_{view}.mp4" for view in config.views}
        observed = self.observation_frames(scene.trace) if "obs" in config.views else None
        return write_videos(scene, paths, config.max_steps, config.size, config.speed_up, observed)


def record_videos(
    run: Run,
    config: RenderConfig,
    env: SimConfig,
    epoch: int | None = None,
    step: int | None = None,
    folder: Path | None = None,
    progress: Report = lambda done, total: None,
) -> list[Video]:
    """Record videos of the episodes that `config` chooses; errors are in the returned videos.

    Args:
        run: The run.
        config: Which episodes and which views.
        env: The simulation of the run's episodes.
        epoch: The policy's epoch, for file names; None: that of the run.
        step: The policy's step, for file names; None: that of the run.
        folder: Where to write; None: the run's folder, and the run lists the videos as artifacts.
        progress: Called after each episode.
    """
    epoch = _number(epoch, run.header.get("epoch"))
    step = _number(step, run.header.get("step"))
    videos: list[Video] = []
    try:
        recorder = VideoRecorder(run, env)
        chosen = choose_episodes(recorder.results.values(), config, epoch)
    except Exception as error:
        return _listed(run, [Video(None, None, None, summary_of(error))], folder)
    for done, episode_id in enumerate(chosen):
        progress(done, len(chosen))
        stem = f"{safe_name(episode_id)}_epoch{epoch}_step{step}"
        try:
            made = recorder.record(episode_id, config, folder or run.place(FOLDER), stem)
        except Exception as error:
            made = [Video(episode_id, view, None, summary_of(error)) for view in config.views]
        videos += _listed(run, made, folder)
    progress(len(chosen), len(chosen))
    return videos


def _listed(run: Run, videos: list[Video], folder: Path | None) -> list[Video]:
    """List videos among the run's artifacts, if they are in its folder."""
    for video in videos if folder is None else []:
        with suppress(OSError, RoadworthyError):  # on a full disk this fails too; the caller has the videos anyway
            run.add_artifact(video.episode_id, f"video_{video.view or 'choice'}", video.path, video.error)
    return videos


def _number(given: int | None, recorded: object) -> int:
    return given if given is not None else recorded if isinstance(recorded, int) else 0


def _agent_scores(result: EpisodeResult) -> dict[int, float]:
    scores = {agent.agent: agent.figures.get("score") for agent in reversed(result.agents)}
    return {agent: score for agent, score in scores.items() if score is not None}


def _trial_scores(result: EpisodeResult, agent: int | None) -> Scores:
    """Return the score of each trial of one agent, or the mean over all egos."""
    by_trial: dict[int, list[float]] = {}
    for row in result.trials:
        score = row.figures.get("score")
        if score is not None and (agent is None or row.agent == agent):
            by_trial.setdefault(row.trial, []).append(score)
    return tuple(
        float(np.mean(by_trial[trial])) if trial in by_trial else None for trial in range(result.episode.trials)
    )
