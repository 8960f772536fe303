"""No rule reads or writes beyond an array, whatever the settings: Numba checks every index."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from roadworthy.kernels import cache_folder
from roadworthy.scenario.pack import Pack
from roadworthy.sim.config import AtGoal, Mode, OnInfraction

ROOT = Path(__file__).parents[2]


@pytest.mark.row("SIM-12")
def test_no_rule_leaves_its_arrays_in_any_combination_of_settings(towns: Pack) -> None:
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_DISABLE_JIT": "0", "PYTHONPATH": paths}
    done = subprocess.run(
        [sys.executable, "-m", "tests.sim.bounds", str(towns.path)],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.strip().splitlines()[-1])
    assert found["combinations"] == len(Mode) * len(AtGoal) * len(OnInfraction)
    assert found["goals"] > 3, "agents reached more goals than there is room for"


def test_kernels_with_checked_indices_are_kept_apart_from_others(monkeypatch: pytest.MonkeyPatch) -> None:
    folders = set()
    for is_checked in (0, 1):
        monkeypatch.setattr(numba.config, "BOUNDSCHECK", is_checked)
        folders.add(cache_folder.__wrapped__("sim"))
    assert len(folders) == 2
