"""Settings that all tests share."""

from __future__ import annotations

import os

from hypothesis import settings

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # tests share the cores, so threads that wait don't spin

# No deadline: the first call of a kernel compiles it. Derandomised: a failure is the change's fault, not the day's.
settings.register_profile("steady", deadline=None, derandomize=True, database=None)
settings.register_profile("long", deadline=None, max_examples=1000)
settings.load_profile("steady")
