"""What the browser gets about runs: a summary of each for the table of all, and the page of one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from roadworthy.errors import RoadworthyError
from roadworthy.metrics.headlines import GAIN, HEADLINES
from roadworthy.record import Run
from roadworthy.record.references import reference_runs
from roadworthy.record.run import PACK
from roadworthy.report.facts import RunFacts
from roadworthy.viewer.catalog import Catalog, Place
from roadworthy.viewer.columns import SUFFIX
from roadworthy.viewer.episode_rows import EpisodeRows, drives

# The part of a figure that tables show.
_SHOWN = (
    *("name", "value", "low", "high", "n", "clusters", "per", "unit", "level", "method", "note"),
    *("missing", "worst_low", "worst_high"),
)
_NOT_SHOWN = ("by_scenario", "by_cluster", "schema_version")  # of metrics.json: the rows have it


def summary(place: Place, run: Run, ended: int) -> dict[str, Any]:
    """Return a row of the table of runs.

    Args:
        place: Where the run is.
        run: The run.
        ended: The number of its episodes that have ended.
    """
    header = run.header
    metrics = (run.metrics or {}) if run.is_sealed else {}
    revision = (
        next((s.get("revision") for s in reversed(header.get("sessions") or ()) if s.get("revision")), None) or {}
    )
    return {
        **identity(place, run),
        "ended_episodes": ended,
        "failed_episodes": metrics.get("num_failed_episodes"),
        "eval_seconds": metrics.get("eval_seconds"),
        "revision": {"commit": revision.get("commit"), "is_dirty": revision.get("is_dirty")},
        "figures": [shown(figure) for figure in metrics.get("figures", ()) if _is_main(str(figure["name"]))],
        "error": _last_error(header),
    }


def damaged(place: Place, error: Exception) -> dict[str, Any]:
    """Return the row of a run that can't be read."""
    return {
        "key": place.key,
        "path": place.path,
        "evaluator": place.folder.parent.name,
        "policy": place.folder.name,
        "status": "damaged",
        "error": describe(error, place.folder),
        "figures": [],
    }


def identity(place: Place, run: Run) -> dict[str, Any]:
    """Return the names, status and times of a run."""
    header = run.header
    return {
        "key": place.key,
        "path": place.path,
        "command_path": place.command_path,
        "evaluator": str(header.get("evaluator")),
        "policy": str(header.get("policy")),
        "policy_spec": header.get("policy_spec"),
        "role": header.get("role"),
        "status": run.status,
        "created": header.get("created"),
        "ended": header.get("ended"),
        "planned_episodes": header.get("owed"),
        "step": header.get("step"),
        "epoch": header.get("epoch"),
        "ledger_hash": header.get("ledger_hash"),
        "is_driving": drives(run),
    }


def page(place: Place, run: Run, rows: EpisodeRows, catalog: Catalog) -> dict[str, Any]:
    """Return what the page of a run shows besides its episodes."""
    facts = RunFacts(run)
    keys = {other.folder: key for key, other in catalog.runs.items()}
    metrics = {name: value for name, value in facts.metrics.items() if name not in _NOT_SHOWN}
    if metrics:
        metrics["figures"] = list(facts.figures.values())
    return {
        **identity(place, run),
        "header": _header(run.header),
        "rows": {"order": rows.order, "count": rows.count, "parts": rows.parts},
        "sums": [entry.plain() for entry in rows.metrics()],
        "metrics": metrics,
        "references": [
            {"key": keys.get(other.folder), **_reference(other)} for other in (reference_runs(run) if metrics else ())
        ],
        "artifacts": [
            {"name": artifact.name, "path": artifact.path, "error": artifact.error}
            for artifact in run.artifacts
            if artifact.episode_id is None
        ],
        "has_pack": (run.folder / PACK).is_file(),
        "error": _last_error(run.header),
    }


def shown(figure: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a figure that tables show."""
    return {name: figure.get(name) for name in _SHOWN}


def describe(error: Exception, folder: Path) -> str:
    """Return an error in one line, without a traceback and without the place of the folder on this machine."""
    text = str(error) if isinstance(error, RoadworthyError) else f"{type(error).__name__}: {error}"
    return text.replace(f"{folder}/", "").replace(str(folder), folder.name)


def _is_main(name: str) -> bool:
    return name in HEADLINES or name.startswith(GAIN)


def _reference(run: Run) -> dict[str, Any]:
    figures = (run.metrics or {}).get("figures", ())
    return {
        "role": run.header.get("role"),
        "policy": str(run.header.get("policy")),
        "figures": [shown(figure) for figure in figures if not str(figure["name"]).endswith("_per_scenario")],
        "by_class": {
            name: [shown(figure) for figure in entry.get("figures", ())]
            for name, entry in ((run.metrics or {}).get("by_class") or {}).items()
        },
    }


def _last_error(header: Mapping[str, Any]) -> str | None:
    errors = header.get("errors") or ()
    return str(errors[-1].get("error")) if errors else None


def _header(header: Mapping[str, Any]) -> dict[str, Any]:
    """Return run.json without tracebacks, which name paths of the machine at length."""
    errors = [{name: entry.get(name) for name in ("time", "error")} for entry in header.get("errors") or ()]
    return {**header, "errors": errors}


def media_paths(run: Run) -> set[str]:
    """Return the paths of all artifacts of a run and its episodes."""
    found = {artifact.path for artifact in run.artifacts if artifact.path is not None}
    for row in run.episodes(["episode_id", "artifacts", "artifact_errors"])["artifacts"].to_pylist():
        found.update(path for _, path in row or ())
    return {path for path in found if not path.endswith((".trace", f".{SUFFIX}"))}
