"""The Weights & Biases sink: figures, scalars of training and videos in the history of one run."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import wandb

from roadworthy.errors import RoadworthyError
from roadworthy.sinks.publish import Publication, Training, TrainingScalars


@dataclass(frozen=True)
class WandbConfig:
    """The table `[sinks.wandb]`."""

    project: str = "roadworthy"
    # The project of the run.
    entity: str | None = None
    # The team or user that owns the project; none: the account's default.
    name: str | None = None
    # The run's name; none: the name of the training's folder, or for evaluations alone a name that W&B generates.
    group: str | None = None
    # The group of the run; W&B shows runs of a group together.
    id: str | None = None
    # The id of a run to resume or create; none: a new run, which a resumed training continues.
    mode: Literal["online", "offline"] | None = None
    # offline writes to the folder of the runs, for `wandb sync`; none: WANDB_MODE decides, else online.
    timeout_s: int = 60
    # The maximum time to wait for the server at the start, in seconds.


class WandbSink:
    """Logs to the active W&B run of this process, or to a new one.

    W&B drops values with a lower step than the last one, but evaluations during training end late. So the step is
    logged as a figure, `step`, and is the x axis of all others.
    """

    config_type: ClassVar[type] = WandbConfig

    def __init__(self, config: WandbConfig, folder: Path) -> None:
        self._config, self._folder = config, folder
        self._is_own = wandb.run is None
        self._defined: set[str] = set()
        self._training: Training | None = None
        self._begun: Any = wandb.run
        self._lock = threading.Lock()

    def describe(self, training: Training) -> None:
        """Give the run the training's settings, and its id, so that a resumed training resumes the run."""
        self._training = training
        if self._begun is not None:
            self._begun.config.update(dict(training.config), allow_val_change=True)

    @property
    def _run(self) -> Any:
        with self._lock:
            if self._begun is None:
                self._begun = _begin(self._config, self._folder, self._training)
            return self._begun

    @classmethod
    def check(cls, config: WandbConfig, folder: Path) -> str:
        if not _is_online(config):
            return f"runs are written to {folder / 'wandb'}, for `wandb sync`"
        _require_key(config)
        return f"logged in; runs go to the project {config.project!r}"

    def write(self, publication: Publication | TrainingScalars) -> None:
        for group in set(publication.groups) - self._defined:
            self._run.define_metric("step", hidden=True)
            self._run.define_metric(f"{group}/*", step_metric="step")
            self._defined.add(group)
        values: dict[str, Any] = dict(publication.named_figures())
        missing = [path for path in publication.named_videos().values() if not path.is_file()]
        for name, path in publication.named_videos().items():
            if path not in missing:
                values[name] = wandb.Video(str(path), format="mp4")
        self._run.log({**values, "step": publication.step, "epoch": publication.epoch})
        if missing:
            raise RoadworthyError(f"there is no video {missing[0]}; the figures were logged")

    def close(self) -> None:
        if self._is_own and self._begun is not None:
            self._begun.finish()


def _begin(config: WandbConfig, folder: Path, training: Training | None) -> Any:
    if _is_online(config):
        _require_key(config)
    folder.mkdir(parents=True, exist_ok=True)
    run_id = config.id or (training.id if training else None)
    return wandb.init(
        project=config.project,
        entity=config.entity,
        name=config.name or (training.name if training else None),
        group=config.group,
        id=run_id,
        resume="allow" if run_id else None,
        mode=config.mode,
        dir=str(folder),
        job_type="train" if training else "evaluate",
        config=dict(training.config) if training else None,
        settings=wandb.Settings(console="off", silent=True, init_timeout=config.timeout_s),
    )


def _is_online(config: WandbConfig) -> bool:
    return (config.mode or os.environ.get("WANDB_MODE") or "online") == "online"


def _require_key(config: WandbConfig) -> None:
    """Raise if there is no API key, because the client would wait for input forever."""
    if not wandb.login(prompt=False, timeout=config.timeout_s):
        raise RoadworthyError('W&B has no API key; run `wandb login`, set WANDB_API_KEY, or set mode = "offline"')
