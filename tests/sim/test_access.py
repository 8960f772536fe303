"""Other packages use the accessors of DriveEnv, never the arrays behind it."""

from __future__ import annotations

import ast
from pathlib import Path

import roadworthy

PACKAGE = Path(roadworthy.__file__).parent


def test_no_package_but_sim_reaches_through_the_batch_of_an_env() -> None:
    found = []
    for path in PACKAGE.rglob("*.py"):
        if path.is_relative_to(PACKAGE / "sim"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            is_reach = isinstance(node, ast.Attribute) and node.attr == "batch"
            if is_reach and "env" in ast.unparse(node.value).lower():
                found.append(f"{path.relative_to(PACKAGE)}:{node.lineno}")
    assert found == []
