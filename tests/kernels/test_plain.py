"""Without the hooks into Numba's internals, kernels compile with plain `njit` and give the same results."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from roadworthy.kernels import installed
from roadworthy.scenario.pack import Pack

STEPS = """
import json, sys
import numpy as np
from roadworthy.kernels import cache_folder
from roadworthy.sim.env import DriveEnv
env = DriveEnv(sys.argv[1], 2, seed=3, threads=1)
rows = len(env.reset())
rng, rewards = np.random.default_rng(0), []
for _ in range(20):
    _, reward, _ = env.step(np.stack([rng.integers(0, 7, rows), rng.integers(0, 13, rows)], 1))
    rewards.append(reward.tolist())
print(json.dumps({"folder": cache_folder("sim").name, "rewards": rewards, "observations": env.observations.tolist()}))
"""


def steps(pack: Pack, **environment: str) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-c", STEPS, str(pack.path)],
        env={**os.environ, "NUMBA_ENABLE_CUDASIM": "0", **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, object] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def test_the_simulator_makes_the_same_steps_with_plain_njit(towns: Pack) -> None:
    usual, plain = steps(towns), steps(towns, ROADWORTHY_PLAIN_NUMBA="1")
    assert str(plain["folder"]).endswith("-plain")
    assert not str(usual["folder"]).endswith("-plain")
    for name in ("rewards", "observations"):
        np.testing.assert_allclose(plain[name], usual[name], rtol=1e-5, atol=1e-5)


def test_another_version_of_numba_gets_plain_njit_and_one_warning(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    installed.load_linking.cache_clear()
    request.addfinalizer(installed.load_linking.cache_clear)
    monkeypatch.delenv("ROADWORTHY_PLAIN_NUMBA", raising=False)
    monkeypatch.setattr(installed, "numba_version", lambda: "0.70.1")
    with pytest.warns(RuntimeWarning, match=r"Numba 0\.70\.1 is not the tested version 0\.68") as caught:
        found = [installed.load_linking() for _ in range(2)]
    assert found == [None, None]
    assert len(caught) == 1


def test_the_tested_version_of_numba_gets_the_hooks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROADWORTHY_PLAIN_NUMBA", raising=False)
    linking = installed.load_linking()
    assert linking is not None
    assert linking.__name__ == "roadworthy.kernels.linking"
