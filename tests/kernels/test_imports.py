"""Numba stays behind roadworthy.kernels, and what only reads files works without it."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import roadworthy
from roadworthy.scenario.pack import Pack

SOURCE = Path(roadworthy.__file__).parent
LIBRARIES = {"numba", "llvmlite", "numba_cuda"}
LIGHT = (
    "roadworthy.scenario.pack",
    "roadworthy.scenario.schema",
    "roadworthy.scenario.lanes.network",
    "roadworthy.metrics.closed_loop.figures",
    "roadworthy.metrics.realism.score_realism",
    "roadworthy.record",
    "roadworthy.report",
    "roadworthy.sensitivity",
)


def run(code: str, *arguments: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip()


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


def test_only_the_kernels_package_imports_numba_and_llvm() -> None:
    importers = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if {name.split(".")[0] for name in imported(path)} & LIBRARIES
    }
    assert importers
    assert {place.split(os.sep)[0] for place in importers} == {"kernels"}


@pytest.mark.parametrize("module", LIGHT)
def test_a_module_that_only_reads_imports_neither_numba_nor_torch(module: str) -> None:
    code = f"import sys, {module}; print(sorted({{'numba', 'llvmlite', 'torch'}} & set(sys.modules)))"
    assert run(code) == "[]"


WITHOUT_NUMBA = """
import json, sys
sys.modules["numba"] = None  # as if it were not installed
import importlib
for module in json.loads(sys.argv[2]):
    importlib.import_module(module)
from roadworthy.scenario.pack import Pack, inspect
from roadworthy.scenario.pack.checksum import checksum
pack = Pack(sys.argv[1])
scenario = pack[0]
data = open(sys.argv[1], "rb").read()
print(json.dumps({
    "id": scenario.id,
    "positions": float(scenario.positions.sum()),
    "checksums": [checksum(data[:size * 8]) for size in (0, 1, 7, 100_000)],
    "faults": len(list(inspect(sys.argv[1]))),
}))
"""


def test_a_pack_reads_the_same_without_numba(towns: Pack) -> None:
    from roadworthy.scenario.pack.checksum import checksum

    found = json.loads(run(WITHOUT_NUMBA, str(towns.path), json.dumps(LIGHT)))
    data = towns.path.read_bytes()
    assert len(data) > 800_000
    assert found == {
        "id": towns[0].id,
        "positions": float(towns[0].positions.sum()),
        "checksums": [checksum(data[: size * 8]) for size in (0, 1, 7, 100_000)],
        "faults": 0,
    }


NEEDS_NUMBA = """
import sys
sys.modules["numba"] = None
from roadworthy.errors import MissingExtraError
from roadworthy.kernels import kernel
@kernel
def double(x):
    return x + x
try:
    double(1)
except MissingExtraError as error:
    print(error, error.exit_code)
try:
    import roadworthy.sim.env
except ModuleNotFoundError as error:
    print(error, error.name)
"""


def test_what_needs_numba_says_which_extra_to_install() -> None:
    call, simulator = run(NEEDS_NUMBA).splitlines()
    assert call == "double needs Numba; install it with: pip install 'roadworthy[drive]' 5"
    assert simulator == "Numba is not installed; install it with: pip install 'roadworthy[drive]' numba"
