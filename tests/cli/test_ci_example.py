"""The example workflow: it parses, and its commands run as they stand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.evaluation.test_gate import HOME, SUITE

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "ci" / "gate.yml"


def read() -> dict[str, Any]:
    values: dict[str, Any] = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))
    return values


def test_the_workflow_has_a_trigger_and_only_known_actions() -> None:
    workflow = read()
    steps = workflow["jobs"]["gate"]["steps"]
    assert "pull_request" in workflow[True]  # YAML reads the key "on" as true
    assert all(("run" in step) != ("uses" in step) for step in steps)
    assert {step["uses"].partition("@")[0] for step in steps if "uses" in step} == {
        "actions/checkout",
        "actions/setup-python",
        "actions/cache",
        "actions/upload-artifact",
    }


@pytest.mark.parametrize(("skill", "code", "verdict"), [("Equal", 0, "pass"), ("Worse", 10, "regression")])
def test_its_commands_decide(skill: str, code: int, verdict: str, tmp_path: Path) -> None:
    workflow = read()
    (tmp_path / workflow["env"]["SUITE"]).write_text(SUITE)
    values = {**workflow["env"], "METRIC": "success", "MARGIN": "0.05", "BUDGET": "300"}
    values |= {"CANDIDATE": f"{HOME}:{skill}", "BASELINE": f"{HOME}:Skilled"}
    paths = os.pathsep.join([*filter(None, sys.path), str(ROOT)])
    # A venv's commands lie beside its interpreter.
    env = {**os.environ, **values, "PYTHONPATH": paths}
    env["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), env["PATH"]])
    steps = {step["name"]: step["run"] for step in workflow["jobs"]["gate"]["steps"] if "run" in step}
    codes = {}
    for name in ("Evaluate the baseline", "Gate"):
        run = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", steps[name]],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        codes[name] = run.returncode
        assert run.returncode in (0, 10, 11), run.stderr
    assert codes == {"Evaluate the baseline": 0, "Gate": code}
    assert json.loads((tmp_path / "gate.json").read_text())["verdict"] == verdict
    assert verdict.upper() in (tmp_path / "gate.html").read_text()
