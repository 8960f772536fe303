"""Make the reference runs of a run: floors and ceilings on the same ledger, kept beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from roadworthy.errors import RoadworthyError
from roadworthy.evaluation.config import EvaluatorConfig
from roadworthy.evaluation.evaluator import EvalRequest, Evaluator
from roadworthy.evaluation.policy_ref import policy_ref
from roadworthy.progress import Showing
from roadworthy.record import Run
from roadworthy.record.origin import origin
from roadworthy.record.references import CEILING, FLOOR, FOLDER, reference_runs
from roadworthy.sim.config import Mode

# Policies that a benchmark must fail: they ignore all observations.
FLOORS = ("zero", "random")
# Policies that a benchmark must pass: the recorded motion, and the scripted expert.
CEILINGS = ("expert:log", "expert:drive")


def reference_policies(config: EvaluatorConfig) -> Iterator[tuple[str, str]]:
    """Yield the role and the policy of each reference of a section."""
    if config.references is not None:
        for policy in config.references:
            yield FLOOR if policy in (*FLOORS, *config.more_floors) else CEILING, policy
    elif config.has_references and config.policy is None:
        yield from ((FLOOR, policy) for policy in (*FLOORS, *config.more_floors))
        is_recorded = config.env.mode is Mode.REPLAY
        yield from ((CEILING, policy) for policy in CEILINGS if is_recorded or policy != "expert:log")


def make_references(run: Run, evaluator: Evaluator, request: EvalRequest, showing: Showing) -> list[Run]:
    """Return the reference runs of a complete run. Runs that this version of the code has made are reused.

    A reference that is the policy of the run itself is left out. One that fails is listed among the artifacts of the
    run, and the others still run.

    Args:
        run: The complete run.
        evaluator: The evaluator of the run.
        request: The request that the run answers.
        showing: Shows the progress of each reference.
    """
    own = _policy_of(run.header)
    made = {_policy_of(found.header) for found in reference_runs(run) if _is_current(found)}
    for role, policy in reference_policies(request.config):
        try:
            ref = policy_ref(policy)
            identity = _policy_of({"policy_spec": ref.spec, "checkpoint": ref.checkpoint})
            if identity in made or (identity == own and not run.header.get("policy_config")):
                continue
            with showing(f"{request.name}: {role} {policy}") as progress:
                config = replace(
                    request.config,
                    policy=None,
                    policy_config={},
                    checkpoint=None,
                    conditioning={},
                    render=None,
                    references=(),
                )
                evaluator.evaluate(
                    replace(
                        request,
                        config=config,
                        policy=ref,
                        out=request.out / FOLDER,
                        is_new=False,
                        progress=progress,
                        on_started=lambda folder: None,
                        role=role,
                    )
                )
        except Exception as error:
            with suppress(OSError, RoadworthyError):
                run.add_artifact(None, f"reference_{policy.replace(':', '_')}", error=f"{error}")
    return reference_runs(run)


def _policy_of(header: Mapping[str, Any]) -> tuple[str, str | None]:
    """Return the identity of a policy: its spec, and the hash of its checkpoint if it has one."""
    checkpoint = header.get("checkpoint")
    return str(header["policy_spec"]), None if checkpoint is None else str(checkpoint["sha256"])


def _is_current(run: Run) -> bool:
    """Return whether this version of the code made a run: the same version and commit, without later changes."""
    session, here = run.header["sessions"][-1], origin()
    same = ("versions", "revision")
    return all(session.get(key) == here[key] for key in same) and not here["revision"]["is_dirty"]
