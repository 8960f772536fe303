"""A full disk stops a run with a clear error, and the same command resumes it when there is space."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.record.made_up import ids, ledger

# In a name space of its own, where mounting a small disk needs no rights and harms nobody.
ALONE = ["unshare", "--user", "--map-root-user", "--mount"]
FILL = """
import json, subprocess, sys
from roadworthy.errors import RoadworthyError
from roadworthy.record import Run, RunWriter
from tests.record.made_up import HEADER, ids, ledger, result
disk = sys.argv[1]
mount = lambda options: subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", disk], check=True)
mount("size=128k")
owed = ledger(60)
told = {"error": None, "rounds": 0}
while True:
    try:
        with RunWriter.start(disk, "town", "random", HEADER, owed) as writer:
            told["kept"] = len(writer.done)
            for name in sorted(set(ids(owed)) - writer.done):
                writer.append(result(name))
            writer.seal({"figures": []})
        break
    except RoadworthyError as error:
        told["error"] = str(error)
        told["status"] = Run(writer.folder).status
        told["rounds"] += 1
        mount(f"remount,size={128 * 4 ** told['rounds']}k")
run = Run(writer.folder)
told["episodes"] = run.episodes()["episode_id"].to_pylist()
told["traces"] = sum(run.trace(name).frame_count > 0 for name in ids(owed))
told["leftovers"] = [path.name for path in run.folder.rglob(".*")]
print(json.dumps(told))
"""


@pytest.mark.row("REC-3")
def test_a_full_disk_stops_a_run_that_resumes_when_there_is_space(tmp_path: Path) -> None:
    if shutil.which("unshare") is None or subprocess.run([*ALONE, "true"], capture_output=True).returncode:
        pytest.skip("a small disk can't be mounted here")
    done = subprocess.run([*ALONE, sys.executable, "-c", FILL, str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert "can't be written: No space left on device; free some space and rerun the command" in told["error"]
    assert told["rounds"] >= 1
    assert told["status"] in ("failed", "interrupted")  # the latter where not even the status could be written
    assert 0 < told["kept"] < 60
    assert (told["episodes"], told["traces"], told["leftovers"]) == (ids(ledger(60)), 60, [])
