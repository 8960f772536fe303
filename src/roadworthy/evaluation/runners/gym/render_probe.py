"""Try in another process whether a job's envs can draw: a renderer that dies takes its process with it."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal

from roadworthy.evaluation.runners.gym.environments import open_envs
from roadworthy.evaluation.runners.gym.job import Job
from roadworthy.evaluation.runners.gym.plan import plan

PATIENCE_S = 120.0  # that an env has to be built, reset and drawn once


def render_fault(job: Job) -> str | None:
    """Say why a process in which the job's envs draw does not live; None if it does, or if no video wants render().

    An exception is not a fault here: it is listed with the film that it spoils.
    """
    if job.videos is None or not job.videos.has_render:
        return None
    process = multiprocessing.get_context("spawn").Process(target=_draw, args=(job,), name="renderer", daemon=True)
    process.start()
    process.join(PATIENCE_S)
    code = process.exitcode
    if code is None:
        process.kill()
        process.join()
        return f"the renderer did not draw a picture in {PATIENCE_S:g} s; episodes are run without it"
    if code < 0:
        return f"the renderer died: its process was killed by {signal.Signals(-code).name}; episodes are run without it"
    return None


def _draw(job: Job) -> None:
    """Build the envs, begin an episode, draw it, and let go of everything."""
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stderr(nowhere), contextlib.suppress(Exception):
        batch = open_envs(job)
        batch.begin({0: next(iter(plan(job)))})
        batch.render([0])
        batch.close()
