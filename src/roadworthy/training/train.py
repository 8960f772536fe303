"""Train a policy: settings, scenarios, evaluators, sinks and the training folder, put together."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roadworthy.config import resolve
from roadworthy.errors import DeviceError, UsageError
from roadworthy.plugins import nearest
from roadworthy.progress import Showing, show_nothing
from roadworthy.training.config import TrainConfig
from roadworthy.training.evaluators import Evaluators

if TYPE_CHECKING:
    from roadworthy.training.progress import Progress

PRESETS = Path(__file__).parent / "presets"
_CURVE_INTERVAL_S = 60.0


@dataclass(frozen=True)
class TrainResult:
    """A training run that has ended."""

    folder: Path
    # The training folder, which evaluation accepts as a policy.
    last: Path
    # The last checkpoint.
    best: Path
    # The best checkpoint, by evaluation or else by its score in training; see training/best.py.
    step: int
    # Agent-steps of the whole training.
    figures: Mapping[str, float | None]
    # Figures of the egos in training, as last reported.
    updates: int
    # Number of updates that this call made; 0 if the training was finished before.


def train(
    config: str | Path,
    *,
    out: str | Path | None = None,
    set: Mapping[str, Any] | Iterable[str] = (),
    eval: str | Path | None = None,
    sinks: Sequence[str] = (),
    new: bool = False,
    trace: str | Path | None = None,
    progress: Showing = show_nothing,
    on_update: Callable[[Progress], None] = lambda progress: None,
    say: Callable[[str], None] = lambda message: None,
) -> TrainResult:
    """Train a policy, or resume the training that is in the folder.

    The same call resumes a training that was interrupted; with more `steps` it continues one that is finished. A wrong
    name or setting raises an error before anything is written. Ctrl-C saves a checkpoint and raises KeyboardInterrupt.

    Args:
        config: A TOML file, or a preset: "fast" (two CPU cores), "default" (one GPU), "adaptive" (one GPU, memory).
        out: The training folder; `runs/train/CONFIG` by default.
        set: Settings that replace those of the config, as a mapping `{"ppo.gamma": 0.99}` or as strings
            "ppo.gamma=0.99".
        eval: A file with sections `[eval.NAME]` or a shipped suite, such as "town", to evaluate during training; by
            default the sections of the config.
        sinks: Names of sinks that show the curves, such as "tensorboard", besides those of the config.
        new: Start again; an earlier run in the folder is moved to a folder within.
        trace: A file to which boundaries of memory and value chains are written.
        progress: Called with the name of each phase before training; returns a context manager for a function of
            (done, total).
        on_update: Called with the progress after each update.
        say: Called with messages, such as where a run resumes or which evaluation has ended.

    Returns:
        The training folder, its last and its best checkpoint, and the figures in training.

    Raises:
        ConfigError: The config or a setting is wrong.
        CheckpointError: The folder has a run with other settings, or damaged checkpoints.
        DeviceError: There is no GPU, and the config asks for one.

    Example:
        >>> import roadworthy as rw
        >>> small = {"worlds": 4, "steps": 2_000, "scenarios": "generate:town?count=2&seed=7"}
        >>> result = rw.train("fast", set=small, out="runs/first")
        >>> result.step >= 2_000, result.last.parent.name
        (True, 'checkpoints')
    """
    path = preset_path(str(config))
    evaluators = Evaluators(path, None if eval is None else str(eval), set, tuple(sinks))
    settings = resolve(TrainConfig, evaluators.training_layers()).config
    evaluators.check()
    folder = Path("runs") / "train" / path.stem if out is None else Path(out)
    place = None if trace is None else Path(trace)
    return train_settings(settings, folder, evaluators, new, place, progress, on_update, say)


def train_settings(
    settings: TrainConfig,
    folder: Path,
    evaluators: Evaluators,
    is_new: bool,
    trace: Path | None,
    progress: Showing,
    on_update: Callable[[Progress], None],
    say: Callable[[str], None],
) -> TrainResult:
    """Train with settings that are checked already; see `train`."""
    _require_device(settings.device)
    from roadworthy.sources import parse_source
    from roadworthy.training.best import point_at_checkpoints
    from roadworthy.training.interrupt import Interrupt
    from roadworthy.training.processes import is_first_process
    from roadworthy.training.progress import last_progress
    from roadworthy.training.run import Evaluate, run_training

    source, updates, curve_due_s = parse_source(settings.scenarios), 0, 0.0

    def after_update(latest: Progress) -> None:
        nonlocal updates, curve_due_s
        updates, interrupt.is_deferred = updates + 1, True  # from here on there is something to save
        on_update(latest)
        if is_first_process() and latest.update % settings.checkpoint_interval == 0 and time.monotonic() >= curve_due_s:
            curve_due_s = time.monotonic() + _CURVE_INTERVAL_S
            _draw_curve(folder, say)

    def interruptible(evaluate: Evaluate) -> Evaluate:
        def run(update: int, step: int, save: Callable[[], Path], is_last: bool) -> None:
            with interrupt.at_once():
                try:
                    evaluate(update, step, save, is_last)
                except KeyboardInterrupt:
                    say(f"interrupted in an evaluation; checkpoint: {save()}")
                    raise

        return run

    with Interrupt(say) as interrupt:
        with progress("generating scenarios") as report:
            pack = source.fetch(report)
        with evaluators.scheduled(settings, folder, say) as (evaluate, sinks):
            last = run_training(
                settings,
                pack,
                folder,
                is_new=is_new,
                trace=trace,
                report=after_update,
                should_stop=interrupt.requested,
                say=say,
                evaluate=None if evaluate is None else interruptible(evaluate),
                sinks=sinks,
            )
            interrupt.is_deferred = False
            if is_first_process() and updates:
                _draw_curve(folder, say)
            if interrupt.is_requested:
                say(f"checkpoint: {last}; the same command resumes")
                raise KeyboardInterrupt
        best = (point_at_checkpoints(folder) if is_first_process() else None) or last
    final = last_progress(folder)
    return TrainResult(folder, last, best, final.get("step", 0), final.get("figures", {}), updates)


def preset_path(name: str) -> Path:
    """Return the file of a preset, or the path that was given."""
    known = sorted(path.stem for path in PRESETS.glob("*.toml"))
    if name in known:
        return PRESETS / f"{name}.toml"
    if not Path(name).is_file():
        raise UsageError(f"{name!r} is neither a file nor a preset; {nearest(name, known)}")
    return Path(name)


def _require_device(device: str) -> None:
    """Raise an error if the config needs a GPU that is missing, before anything is generated or written."""
    if device != "cpu":
        import torch

        if not torch.cuda.is_available():
            raise DeviceError(
                f"device is {device!r}, but torch finds no GPU (`nvidia-smi` shows whether the driver does); train the "
                "preset fast, or give --set device=cpu, which is slow"
            )


def _draw_curve(folder: Path, say: Callable[[str], None]) -> None:
    """Draw the learning curve; a failure does not stop the training."""
    from roadworthy.training.curve import PICTURE, draw_curve
    from roadworthy.training.progress import PROGRESS

    try:
        draw_curve(folder / PROGRESS, folder / PICTURE, folder.name)
    except (ImportError, OSError, ValueError) as error:
        say(f"the learning curve was not drawn: {error}")
