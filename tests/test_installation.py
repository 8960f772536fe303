"""The pins agree with what torch's wheel on PyPI requires, and the demo installs nothing that it does not need."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
ENVIRONMENT = {"platform_system": "Linux", "sys_platform": "linux", "platform_machine": "x86_64"}


def pins() -> dict[str, str]:
    """The version of each package that constraints.txt names for Linux."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = [Requirement(line) for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(pin.name): str(pin.specifier).removeprefix("==") for pin in pinned}


def published_requirements(package: str, python: str) -> list[Requirement]:
    """What the newest fitting wheel on PyPI requires on Linux: not the installed one, which may be another build."""
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", "--no-deps", "--ignore-installed"]
    command += ["--disable-pip-version-check", "--retries", "1", "--timeout", "20", "--report", "-", package]
    environment = {name: value for name, value in os.environ.items() if name != "PIP_FIND_LINKS"}
    environment["PIP_CONFIG_FILE"] = os.devnull
    found = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=180)
    if found.returncode:
        pytest.skip(f"PyPI can't be asked from here: {found.stderr.strip().splitlines()[-1:]}")
    requirements = map(Requirement, json.loads(found.stdout)["install"][0]["metadata"]["requires_dist"])
    context = {**ENVIRONMENT, "python_version": python, "python_full_version": f"{python}.0", "extra": ""}
    return [r for r in requirements if r.marker is None or r.marker.evaluate(context)]


@pytest.mark.row("UI-7")
@pytest.mark.skipif(sys.platform != "linux", reason="pip reports the wheel of its own platform")
def test_pins_agree_with_what_the_wheel_of_torch_on_pypi_requires() -> None:
    pinned = pins()
    required = published_requirements(f"torch=={pinned['torch']}", "3.12")
    assert "triton" in {canonicalize_name(r.name) for r in required}, "not the build that PyPI has"
    for requirement in required:
        version = pinned.get(canonicalize_name(requirement.name))
        assert version is None or requirement.specifier.contains(version), f"{requirement} but pinned {version}"


@pytest.mark.row("UI-7")
def test_the_demo_installs_no_development_tools_and_nothing_of_cuda() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = [*project["dependencies"], *project["optional-dependencies"]["drive"]]
    names = {canonicalize_name(Requirement(line).name) for line in needed}
    assert not [name for name in names if re.match("nvidia|cuda|triton|numba-cuda|pytest|mypy|ruff|sbi|wandb", name)]
    commands = subprocess.run(
        ["make", "--dry-run", "--always-make", "demo"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    installed = [line.partition("constraints.txt ")[2] for line in commands if " pip install" in line]
    assert installed == ["torch", "-e '.[drive,view]'"]
