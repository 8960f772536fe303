"""The policy under test: what it is called, which files it is made of, and how to make an actor of it anywhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from roadworthy.errors import CheckpointError, UsageError
from roadworthy.evaluation.config import Choice, EvaluatorConfig, Memory
from roadworthy.evaluation.crew import Crew
from roadworthy.evaluation.task import Task
from roadworthy.policy.actor import Actor, load_actor
from roadworthy.policy.spec import BASELINE, checkpoint_folder


@dataclass(frozen=True)
class Subject:
    """A policy under test."""

    spec: str
    # As `load_actor` takes it.
    name: str
    checkpoint: Mapping[str, Any] | None = None
    # Its path and sha256; None for policies without a file.
    step: int | None = None
    # Agent-steps that it was trained for.
    epoch: int | None = None

    def header(self) -> dict[str, Any]:
        """What run.json keeps of it."""
        checkpoint = dict(self.checkpoint) if self.checkpoint is not None else None
        return {"checkpoint": checkpoint, "policy_spec": self.spec, "step": self.step, "epoch": self.epoch}


def subject_of(spec: str, step: int | None = None, epoch: int | None = None) -> Subject:
    """The policy that a spec names; step and epoch are the checkpoint's own unless they are given."""
    folder = checkpoint_folder(spec)
    if folder is None or not folder.exists():
        load_actor(spec)  # says what is wrong with a spec that names nothing
        return Subject(spec, spec.replace(":", "-"), None, step, epoch)
    from roadworthy.policy.checkpoint import load_policy  # torch, for which scripted policies don't wait

    checkpoint = load_policy(folder)
    return Subject(
        spec if spec.startswith(BASELINE) else str(checkpoint.path.absolute()),
        checkpoint.path.absolute().name,
        {"path": str(checkpoint.path.absolute()), "sha256": checkpoint.sha256},
        checkpoint.step if step is None else step,
        checkpoint.epoch if epoch is None else epoch,
    )


def recorded_subject(header: Mapping[str, Any], checkpoint: str | None = None) -> Subject:
    """The policy of a run, from its run.json; a checkpoint that has moved since is named anew."""
    recorded = header.get("checkpoint")
    spec = checkpoint or header.get("policy_spec")
    if not spec:
        raise UsageError(f"run.json of {header.get('evaluator')!r} does not say which policy was run; name it")
    subject = subject_of(str(spec), header.get("step"), header.get("epoch"))
    if recorded is not None and (subject.checkpoint is None or subject.checkpoint["sha256"] != recorded["sha256"]):
        raise CheckpointError(
            f"{spec} is not the policy of the run: its sha256 is {(subject.checkpoint or {}).get('sha256')}, the run's "
            f"was {recorded['sha256']}; name the checkpoint that was run"
        )
    return subject


def coplayer_files(config: EvaluatorConfig) -> list[dict[str, Any]]:
    """Which policies the co-players are, with the sha256 of those that are files."""
    return [
        {"spec": spec, "sha256": checkpoint["sha256"] if (checkpoint := subject_of(spec).checkpoint) else None}
        for spec in config.coplayers
    ]


def task_of(evaluator: str, pack: Path, subject: Subject, config: EvaluatorConfig) -> Task:
    """What a process needs to carry out episodes of a policy."""
    return Task(
        evaluator,
        pack,
        config.env,
        actor_maker(subject, config),
        config.worlds,
        config.device,
        forgets_trials=config.memory is Memory.TRIAL,
    )


def actor_maker(subject: Subject, config: EvaluatorConfig) -> Callable[[], Actor]:
    """Makes the actor of a policy for an evaluator, together with its co-players; can be sent to other processes."""
    is_greedy = config.actions is Choice.GREEDY
    ego = partial(load_actor, subject.spec, is_greedy=is_greedy, device=config.device, conditioning=config.conditioning)
    if not config.coplayers:
        return ego
    return partial(Crew, ego, [partial(load_actor, spec, device=config.device) for spec in config.coplayers])
