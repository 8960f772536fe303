"""Open a recorded run to run its episodes again: its evaluator, settings and ledger, as run.json has them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from roadworthy.config import parse
from roadworthy.errors import UsageError
from roadworthy.evaluation.config import EvaluatorConfig
from roadworthy.evaluation.evaluators.driving import DrivingEvaluator
from roadworthy.evaluation.ledger import Ledger
from roadworthy.evaluation.policy_ref import recorded_policy
from roadworthy.evaluation.runners.driving.spec import DrivingSpec
from roadworthy.evaluation.sections import evaluator_class
from roadworthy.evaluation.trust import recorded_specs, require_trust, require_trusted_code
from roadworthy.plugins import is_code
from roadworthy.record import Run
from roadworthy.sim.config import SimConfig
from roadworthy.sim.extensions import code_of, without_code


@dataclass(frozen=True)
class RecordedRun:
    """A run of a driving evaluator."""

    run: Run
    name: str
    evaluator: DrivingEvaluator
    config: EvaluatorConfig
    ledger: Ledger
    trust: bool = False
    # Whether code and addresses that run.json names may be run.
    env_code: tuple[str, ...] = ()
    # Reward terms and observation blocks that are code that run.json names; without `trust`, `env` lacks them.

    @property
    def env(self) -> SimConfig:
        """The simulator settings of its worlds."""
        return self.config.env

    def spec(self, checkpoint: str | None = None, worlds: int | None = None) -> DrivingSpec:
        """Return what a process needs to run its episodes again.

        checkpoint: where its policy is now, or another policy, which the caller trusts.

        Raises UsageError if run.json names a policy that is code or an address and `trust` was not given.
        """
        self.require_trusted_code()
        if not self.trust:
            require_trust(self.run.folder, recorded_specs(self.run.header, self.config.coplayers, checkpoint))
        policy = recorded_policy(self.run.header, checkpoint)
        spec = self.evaluator.spec(self.name, self.run.pack, policy, self.config)
        return spec if worlds is None else replace(spec, worlds=worlds)

    def require_trusted_code(self) -> None:
        """Raise UsageError if an extension is code that run.json names and `trust` was not given."""
        if not self.trust:
            named = {
                "evaluator": [str(self.run.header["config"]["type"])],
                "metric": self.config.metrics,
                "reward term or observation block": self.env_code,
            }
            for what, names in named.items():
                require_trusted_code(self.run.folder, what, names)


def open_run(run: Run, *, trust: bool = False) -> RecordedRun:
    """Read the evaluator and the settings of a run.

    Without `trust`, nothing that the run names is executed: the base class of driving evaluators, which is enough to
    draw its episodes, stands for an evaluator that is code, and reward terms and observation blocks that are code are
    left out.

    trust: whether code and addresses that the run names may be used: its evaluator, its metrics and its policy.
    """
    header: dict[str, Any] = run.header
    settings = {**header.get("carried_out", {}), **header["config"]}
    if "type" not in settings:
        raise UsageError(f"{run.folder}: run.json has no config with a type; the run failed before it started")
    if is_code(str(settings["type"])) and not trust:
        evaluator = DrivingEvaluator()
        settings = {name: settings[name] for name in EvaluatorConfig.__dataclass_fields__ if name in settings}
    else:
        evaluator = evaluator_class(settings["type"])()
    if not isinstance(evaluator, DrivingEvaluator):
        raise UsageError(
            f"{run.folder} is a run of the evaluator {settings['type']!r}, which does not use the simulator; "
            "this works for driving evaluators only"
        )
    config = parse(settings, evaluator.config_type, f"{run.folder}/run.json", is_record=True)
    env_code = tuple(code_of(config.env))
    if env_code and not trust:
        config = replace(config, env=without_code(config.env))
    return RecordedRun(run, header["evaluator"], evaluator, config, Ledger.from_table(run.ledger), trust, env_code)
