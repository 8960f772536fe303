"""Roadworthy: train driving policies in a vectorized simulator and measure how good they are.

The functions below are the public API; the `roadworthy` command is a thin layer over them. Each is imported when it is
first used, so that `import roadworthy` is fast and needs no optional dependency.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from roadworthy.comparison.compare import compare as compare
    from roadworthy.evaluation.evaluate import evaluate as evaluate
    from roadworthy.evaluation.gate import gate as gate
    from roadworthy.jobs.run_jobs import run_jobs as run_jobs
    from roadworthy.jobs.sweep import sweep as sweep
    from roadworthy.metrics.realism.score_realism import score_realism as score_realism
    from roadworthy.policy.load import load_policy as load_policy
    from roadworthy.record.run import load_run as load_run
    from roadworthy.results.import_results import import_results as import_results
    from roadworthy.scenario.generate import generate as generate
    from roadworthy.scenario.importers import import_scenarios as import_scenarios
    from roadworthy.sensitivity.analyze import analyze_sensitivity as analyze_sensitivity
    from roadworthy.sim.make_env import make_env as make_env
    from roadworthy.training.train import train as train
    from roadworthy.viewer.view import view as view

__version__ = "0.1.0"

_MODULES = {
    "analyze_sensitivity": "roadworthy.sensitivity.analyze",
    "compare": "roadworthy.comparison.compare",
    "evaluate": "roadworthy.evaluation.evaluate",
    "gate": "roadworthy.evaluation.gate",
    "generate": "roadworthy.scenario.generate",
    "import_results": "roadworthy.results.import_results",
    "import_scenarios": "roadworthy.scenario.importers",
    "load_policy": "roadworthy.policy.load",
    "load_run": "roadworthy.record.run",
    "make_env": "roadworthy.sim.make_env",
    "run_jobs": "roadworthy.jobs.run_jobs",
    "score_realism": "roadworthy.metrics.realism.score_realism",
    "sweep": "roadworthy.jobs.sweep",
    "train": "roadworthy.training.train",
    "view": "roadworthy.viewer.view",
}

__all__ = ["__version__", *_MODULES]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'roadworthy' has no attribute {name!r}")
    try:
        function = getattr(import_module(_MODULES[name]), name)
    except ModuleNotFoundError as error:
        from roadworthy.errors import missing_extra

        raise missing_extra(error, name) or error from error
    globals()[name] = function
    return function


def __dir__() -> list[str]:
    return sorted(__all__)
