"""Imports point one way: no package imports from a package above it, and reading runs needs neither Numba nor torch."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"
ROOT = SOURCE / "roadworthy"
# Packages and modules from the lowest layer to the highest; those of one layer do not import from each other.
LAYERS = (
    ("errors", "at_fault", "plots", "revision", "spelling"),
    ("boxes", "checks", "config", "plugins", "folders", "progress"),
    ("kernels", "statistics"),
    ("scenario",),
    ("sources",),
    ("record",),
    ("metrics",),
    ("comparison",),
    ("results", "sensitivity"),
    ("sim",),
    ("render",),
    ("report", "sinks"),
    ("viewer",),
    ("policy",),
    ("training",),
    ("evaluation",),
    ("robot",),
    ("jobs",),
    ("cli",),
)
LEVELS = {package: level for level, packages in enumerate(LAYERS) for package in packages}
# Packages that read runs: importing them, and what they import in turn, loads none of these.
READERS = ("record", "metrics", "comparison", "statistics", "sensitivity", "report", "results", "viewer")
NOT_FOR_READERS = {"roadworthy.sim", "numba", "torch", "llvmlite", "shapely", "av", "safetensors"}


def modules() -> dict[str, Path]:
    """Every module of the package by its name."""
    found = {}
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def imports(tree: ast.AST, *, deferred: bool) -> Iterator[str]:
    """Names that a file imports, with those in functions if deferred, but without those for type checkers."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in MODULES else str(node.module)
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            yield from (name for child in node.orelse for name in imports(child, deferred=deferred))
        elif deferred or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from imports(node, deferred=deferred)


@cache
def imported(module: str, *, deferred: bool = False) -> frozenset[str]:
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    return frozenset(imports(tree, deferred=deferred))


def package_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def loaded(module: str) -> dict[str, str]:
    """All modules that importing a module loads, each with the module that imports it."""
    found, waiting = {module: ""}, [module]
    while waiting:
        current = waiting.pop()
        parents = [current.rpartition(".")[0]] if "." in current else []
        for name in {*imported(current), *parents} if current in MODULES else ():
            if name not in found:
                found[name] = current
                waiting.append(name)
    return found


def test_every_package_has_a_layer() -> None:
    assert {package_of(module) for module in MODULES} - {"", "__main__"} == set(LEVELS)


@pytest.mark.parametrize("package", LEVELS)
def test_a_package_imports_only_from_layers_below(package: str) -> None:
    wrong = set()
    for module in MODULES:
        if package_of(module) == package:
            for name in imported(module):
                other = package_of(name)
                if name.startswith("roadworthy.") and other != package and LEVELS[other] >= LEVELS[package]:
                    wrong.add((module, name))
    assert sorted(wrong) == []


@pytest.mark.parametrize("package", READERS)
def test_reading_runs_loads_neither_the_simulator_nor_numba_nor_torch(package: str) -> None:
    wrong = {}
    for module in MODULES:
        if package_of(module) == package:
            found = loaded(module)
            for name in found:
                if any(name == heavy or name.startswith(f"{heavy}.") for heavy in NOT_FOR_READERS):
                    wrong[name] = f"{module}: {found[name]}"
    assert wrong == {}
