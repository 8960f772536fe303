"""Modules that tools without the simulator import stay light."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("numba", "torch", "shapely", "matplotlib")


@pytest.mark.parametrize(
    "module",
    [
        "roadworthy.scenario.schema",
        "roadworthy.scenario.pack",
        "roadworthy.scenario.generate",
        "roadworthy.scenario.importers",
        "roadworthy.scenario.statistics",
        "roadworthy.scenario.validate",
    ],
)
def test_importing_a_module_loads_no_heavy_dependency(module: str) -> None:
    code = f"import sys, {module}; print(*(set({HEAVY!r}) & sys.modules.keys()))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert found == []
