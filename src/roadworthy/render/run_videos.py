"""Videos of a run: chosen episodes, from their traces, into the run's folder. Nothing that fails here is raised."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from pathlib import Path

import numpy as np

from roadworthy.errors import RoadworthyError, UsageError
from roadworthy.record import EpisodeResult, Run
from roadworthy.record.files import safe_name
from roadworthy.record.traces import Trace
from roadworthy.render.choose import choose_episodes
from roadworthy.render.config import RenderConfig, View
from roadworthy.render.film import Sight, Video, shoot
from roadworthy.render.reenact import Reenactment, light_states
from roadworthy.render.scoreboard import Scores
from roadworthy.render.tally import telling_agent
from roadworthy.render.views import Story
from roadworthy.scenario.pack import Pack
from roadworthy.sim.config import Mode, SimConfig

FOLDER = "videos"

Progress = Callable[[int, int], None]  # how many episodes are done, of how many


class Studio:
    """A run's episodes, ready to be filmed: its traces, its pack, and a world in which they can be run again."""

    def __init__(self, run: Run, env: SimConfig) -> None:
        self._run, self._env = run, env
        self._pack = Pack(run.pack)
        self.results: dict[str, EpisodeResult] = {result.episode.episode_id: result for result in run.results()}

    @cached_property
    def _reenactment(self) -> Reenactment:
        return Reenactment(self._pack, self._env)

    def story(self, episode_id: str, agent: int | None = None) -> Story:
        """What a film of an episode is about; agent: the one to follow, else the ego that did worst."""
        trace, number = self._run.trace(episode_id), self._pack.number(self.results[episode_id].episode.scenario_id)
        result, scenario = self.results[episode_id], self._pack[number]
        if agent is not None and agent >= trace.agent_count:
            raise UsageError(
                f"agent {agent} of episode {episode_id!r} was to be followed; it has 0 to {trace.agent_count - 1}"
            )
        followed = telling_agent(trace, _agent_scores(result)) if agent is None else agent
        reenactment = self._reenactment if self._env.mode is Mode.OPEN else None
        lights = light_states(scenario, number, result.episode.seed, trace, self._env, reenactment)
        score = result.episode.outcomes.get("score")
        words = [tag.replace("_", " ") for tag in result.episode.tags]
        subtitle = "    ".join(([] if score is None else [f"score {score:.2f}"]) + [", ".join(words)])
        own, mean = _trial_scores(result, followed), _trial_scores(result, None)
        return Story(trace, scenario, lights, followed, self._env.goal.radius_m, subtitle, own, mean)

    def sight(self, trace: Trace) -> Sight:
        """What the policies of an episode saw."""
        row = self.results[trace.episode_id].episode
        number = self._pack.number(row.scenario_id)
        return Sight(self._reenactment.layout, self._reenactment.observations(trace, number, row.seed))

    def film(self, episode_id: str, config: RenderConfig, folder: Path, stem: str) -> list[Video]:
        """Films of one episode, a file for each view."""
        if episode_id not in self.results:
            raise UsageError(f"{self._run.folder}: episode {episode_id!r} has not ended, or is not owed")
        story = self.story(episode_id, config.agent)
        paths: dict[View, Path] = {view: folder / f"{stem}_{view}.mp4" for view in config.views}
        sight = self.sight(story.trace) if "obs" in config.views else None
        return shoot(story, paths, config.max_steps, config.size, config.speed_up, sight)


def film_run(
    run: Run,
    config: RenderConfig,
    env: SimConfig,
    epoch: int | None = None,
    step: int | None = None,
    folder: Path | None = None,
    progress: Progress = lambda done, total: None,
) -> list[Video]:
    """Film the episodes that `config` chooses; what fails is told in the videos that come back.

    env: the simulation that the run's episodes ran in. epoch, step: of the policy, for names; else those of the run.
    folder: where to write; by default the run's own, in which case the run lists them as artifacts.
    """
    epoch = _number(epoch, run.header.get("epoch"))
    step = _number(step, run.header.get("step"))
    videos: list[Video] = []
    try:
        studio = Studio(run, env)
        chosen = choose_episodes(studio.results.values(), config, epoch)
    except Exception as error:
        return _listed(run, [Video(None, None, None, _told(error))], folder)
    for done, episode_id in enumerate(chosen):
        progress(done, len(chosen))
        stem = f"{safe_name(episode_id)}_epoch{epoch}_step{step}"
        try:
            made = studio.film(episode_id, config, folder or run.place(FOLDER), stem)
        except Exception as error:
            made = [Video(episode_id, view, None, _told(error)) for view in config.views]
        videos += _listed(run, made, folder)
    progress(len(chosen), len(chosen))
    return videos


def _listed(run: Run, videos: list[Video], folder: Path | None) -> list[Video]:
    """List videos among the run's artifacts, if they are in its folder."""
    for video in videos if folder is None else []:
        with suppress(OSError, RoadworthyError):  # a full disk takes no line either; the caller knows all the same
            run.add_artifact(video.episode_id, f"video_{video.view or 'choice'}", video.path, video.error)
    return videos


def _number(given: int | None, recorded: object) -> int:
    return given if given is not None else recorded if isinstance(recorded, int) else 0


def _told(error: Exception) -> str:
    return str(error) if isinstance(error, RoadworthyError) else f"{type(error).__name__}: {error}"


def _agent_scores(result: EpisodeResult) -> dict[int, float]:
    scores = {agent.agent: agent.figures.get("score") for agent in reversed(result.agents)}
    return {agent: score for agent, score in scores.items() if score is not None}


def _trial_scores(result: EpisodeResult, agent: int | None) -> Scores:
    """The score of each trial: of one agent, or the mean over all egos."""
    by_trial: dict[int, list[float]] = {}
    for row in result.trials:
        score = row.figures.get("score")
        if score is not None and (agent is None or row.agent == agent):
            by_trial.setdefault(row.trial, []).append(score)
    return tuple(
        float(np.mean(by_trial[trial])) if trial in by_trial else None for trial in range(result.episode.trials)
    )
