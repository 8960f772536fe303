"""Settings that all tests share."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import settings

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # tests share the cores, so threads that wait don't spin

# No deadline: the first call of a kernel compiles it. Derandomized: a failure is the change's fault, not the day's.
settings.register_profile("steady", deadline=None, derandomize=True, database=None)
settings.register_profile("long", deadline=None, max_examples=1000)
settings.load_profile("steady")


@pytest.fixture
def no_wandb_run(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The client without a run, key or settings of the person who runs the tests; it is shut down afterwards."""
    wandb = pytest.importorskip("wandb")
    for name in ("WANDB_API_KEY", "WANDB_MODE", "WANDB_DIR", "WANDB_PROJECT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NETRC", "/nonexistent/netrc")
    yield wandb
    wandb.teardown()
