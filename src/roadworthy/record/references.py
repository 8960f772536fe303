"""Reference runs: a floor policy, which must fail, and a ceiling policy, which must pass, on the episodes of a run.

They are ordinary run folders in `OUT/references/<evaluator>/`, beside the runs that they belong to. A reference belongs
to a run if evaluator, ledger, scenarios, co-players and settings are equal, except for those of the policy.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from roadworthy.errors import RoadworthyError
from roadworthy.record.files import folder_name
from roadworthy.record.run import RUN, Run

FOLDER = "references"
FLOOR, CEILING = "floor", "ceiling"
ROLES = (FLOOR, CEILING)
# Settings of the policy, which differ between a run and its references.
POLICY_KEYS = frozenset(("policy", "conditioning", "traits", "actions", "memory", "remembers"))


def reference_runs(run: Run) -> list[Run]:
    """Return the completed reference runs of a run: the newest for each policy, floors first, sorted by policy."""
    home = run.folder.parent.parent / FOLDER / folder_name(str(run.header["evaluator"]))
    found: dict[str, Run] = {}
    for path in sorted(home.glob(f"*/{RUN}")):
        try:
            other = Run(path.parent)
        except RoadworthyError:
            continue
        if other.is_sealed and other.header.get("role") in ROLES and belongs_to(other, run):
            policy = str(other.header["policy_spec"])
            if policy not in found or found[policy].header["created"] < other.header["created"]:
                found[policy] = other
    return sorted(found.values(), key=lambda other: (ROLES.index(other.header["role"]), other.header["policy_spec"]))


def belongs_to(reference: Run, run: Run) -> bool:
    """Return whether two runs have the same evaluator, episodes and settings, whatever their policies."""
    same = ("evaluator", "ledger_hash", "coplayers")
    if any(reference.header.get(key) != run.header.get(key) for key in same):
        return False
    return _setting(reference.header) == _setting(run.header) and _digest(reference.pack) == _digest(run.pack)


def best(references: Sequence[Run], role: str, figure: str) -> Run | None:
    """Return the reference of a role with the highest value of a figure: the floor to exceed, the ceiling to reach."""
    known = {
        found["value"]: reference
        for reference in references
        if reference.header["role"] == role
        for found in (reference.metrics or {}).get("figures", ())
        if found["name"] == figure and found["value"] is not None
    }
    return known[max(known)] if known else None


def _digest(pack: Path) -> str | None:
    """Return a hash of a run's scenarios, None if it has none. The ledger holds their ids, not their content."""
    if not pack.is_file():
        return None
    found = pack.stat()
    return _hash_file(str(pack), found.st_size, found.st_mtime_ns)


@lru_cache(maxsize=256)
def _hash_file(path: str, size: int, changed_ns: int) -> str:
    """Return the sha256 of a file; its size and the time of its last change are part of the cache key."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _setting(header: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in header.get("config", {}).items() if key not in POLICY_KEYS}
