"""Test in another process whether the envs of a job can render: a renderer that crashes ends its process."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal

from roadworthy.evaluation.runners.gym.environments import open_envs
from roadworthy.evaluation.runners.gym.job import Job
from roadworthy.evaluation.runners.gym.plan import plan

TIMEOUT_S = 120.0  # to build, reset and render an env once


def render_fault(job: Job) -> str | None:
    """Return why envs of a job can't render without ending their process; None if they can, or need not.

    An exception of render() is not a fault: it is listed with the video that it ends.
    """
    if job.videos is None or not job.videos.has_render:
        return None
    process = multiprocessing.get_context("spawn").Process(target=_draw, args=(job,), name="renderer", daemon=True)
    process.start()
    process.join(TIMEOUT_S)
    code = process.exitcode
    if code is None:
        process.kill()
        process.join()
        return f"the renderer did not draw a picture in {TIMEOUT_S:g} s; episodes are run without it"
    if code < 0:
        return f"the renderer died: its process was killed by {signal.Signals(-code).name}; episodes are run without it"
    return None


def _draw(job: Job) -> None:
    """Build the envs, start an episode, render it, and close everything."""
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stderr(nowhere), contextlib.suppress(Exception):
        batch = open_envs(job)
        batch.begin({0: next(iter(plan(job)))})
        batch.render([0])
        batch.close()
