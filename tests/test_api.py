"""The public API: its names and signatures, that it is imported lazily, and that its examples run."""

from __future__ import annotations

import doctest
import importlib
import inspect
import json
import pkgutil
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import roadworthy as rw
from roadworthy.scenario.pack import PackWriter
from tests.metrics.realism.scenes import random_rollouts, random_scenario
from tests.report.made_up import drive, make_run
from tests.scenario.example import example_scenario
from tests.scenario.importers.encoder import frame, womd_message

SIGNATURES = {
    "analyze_sensitivity": (
        "run factors outcome *against *at_least *at_most *model *neural *next_episodes *seed *report *progress"
    ),
    "compare": "a b more *metrics *margin *reference *paired *level",
    "evaluate": "source policy *out *evaluators *set *workers *step *epoch *new *record *progress *on_outcome",
    "gate": (
        "candidate baseline metric margin *suite *evaluator *set *budget *block *out *seed *workers *bounds *better"
        " *error *trust *progress *on_look"
    ),
    "generate": "out *count *seed *steps *classes *processes *progress",
    "import_results": "file format out *columns *evaluator *policy *skip_damaged *new *progress",
    "import_scenarios": "files out *format *skip_damaged *processes *progress",
    "load_policy": "spec policy_config *is_greedy *device *conditioning",
    "load_run": "path",
    "make_env": "scenarios worlds config *seed *device *threads",
    "run_jobs": ("file out *only *new *chunk_size *continue_on_error *camera_video *episode_summary *listener"),
    "sweep": (
        "factors base *job *episodes *design *levels *seed *out *new *chunk_size *camera_video *episode_summary"
        " *listener"
    ),
    "train": "config *out *set *eval *sinks *new *trace *progress *on_update *say",
    "view": "folders *bundle *light *embed *host *port *token *browser *ready *progress",
    "score_realism": "pack rollouts *challenge *only *skip_unknown *processes *progress",
}
JOBS = """
[[jobs]]
name = "lamps"
environment = "tests.jobs.arenas:SwitchableLamp"
policy = "zero"
episodes = 5
"""
HEAVY = ("numba", "torch", "pyarrow", "scipy", "matplotlib", "numpy", "typer", "av")


def written(name: str) -> str:
    """The parameters of a function, keyword-only ones with a star."""
    parameters = inspect.signature(getattr(rw, name)).parameters.values()
    return " ".join(("*" if p.kind is p.KEYWORD_ONLY else "") + p.name for p in parameters)


def test_the_public_names_and_signatures_are_these() -> None:
    names = [name for name in rw.__all__ if name != "__version__"]
    assert {name: written(name) for name in names} == SIGNATURES
    assert len(names) < 20
    assert dir(rw) == sorted(rw.__all__)


@pytest.mark.parametrize("name", SIGNATURES)
def test_every_public_function_is_typed_and_documented(name: str) -> None:
    function = getattr(rw, name)
    signature = inspect.signature(function)
    assert all(p.annotation is not p.empty for p in signature.parameters.values())
    assert signature.return_annotation is not signature.empty
    text = inspect.getdoc(function) or ""
    assert all(part in text for part in ("\nArgs:\n", "\nReturns:\n", "\nExample:\n"))
    documented = text.partition("\nArgs:\n")[2].partition("\n\n")[0]
    assert re.findall(r"^    (\w+):", documented, re.MULTILINE) == [*signature.parameters]


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'roadworthy' has no attribute 'evalaute'"):
        rw.evalaute  # noqa: B018


def test_importing_the_package_is_fast_and_loads_no_library() -> None:
    code = f"""
import sys, time
start = time.perf_counter()
import roadworthy
seconds = time.perf_counter() - start
dir(roadworthy)
print(seconds, *[name for name in {HEAVY} if name in sys.modules])
"""
    outputs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(3)
    ]
    words_of = [output.stdout.split() for output in outputs]
    assert all(len(words) == 1 for words in words_of), words_of
    assert min(float(words[0]) for words in words_of) < 0.1


def test_no_submodule_hides_a_public_function() -> None:
    """Importing a submodule sets an attribute of its package, which must not replace a function."""
    for found in pkgutil.walk_packages(rw.__path__, "roadworthy."):
        if found.name != "roadworthy.__main__":
            with suppress(ImportError):  # of an extra that is not installed
                importlib.import_module(found.name)
    for name in SIGNATURES:
        function = getattr(rw, name)
        assert inspect.isfunction(function)
        assert function.__name__ == name


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the examples name."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    lines = []
    for number, (light, friction) in enumerate(rng.random((150, 2))):
        row = {"episode_id": f"e{number}", "factors": {"light": light, "friction": friction}}
        lines.append(json.dumps({**row, "outcomes": {"success": bool(rng.random() < light)}}))
    (tmp_path / "episodes.jsonl").write_text("\n".join(lines) + "\n")
    kind = "{type: continuous, range: [0, 1]}"
    (tmp_path / "factors.yaml").write_text(f"factors:\n  light: {kind}\n  friction: {kind}\n")
    return tmp_path


@pytest.mark.parametrize("name", SIGNATURES)
def test_the_example_of_every_function_runs(name: str, workspace: Path) -> None:
    PREPARE.get(name, lambda folder: None)(workspace)
    function = getattr(rw, name)
    (test,) = doctest.DocTestFinder(recurse=False).find(function, name, globs={})
    assert test.examples
    output: list[str] = []
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=output.append)
    assert result.failed == 0, "".join(output)


def with_rollouts(folder: Path) -> None:
    """Write a pack, and rollouts of one of its scenarios."""
    scenario = random_scenario(0)
    with PackWriter(folder / "town.pack") as writer:
        writer.add(scenario)
    rollouts = random_rollouts(scenario, 2, 0)
    (folder / "rollouts").mkdir()
    motion = {part: getattr(rollouts, part) for part in ("x", "y", "z", "heading")}
    np.savez(folder / "rollouts" / f"{scenario.id}.npz", object_id=rollouts.agent_ids, **motion)


def with_run(folder: Path) -> None:
    """Write a run under the name in the example."""
    run = make_run(folder / "made", [drive(k, [[1.0]]) for k in range(12)])
    (folder / "runs" / "town").mkdir(parents=True)
    run.folder.rename(folder / "runs" / "town" / "20260101T120000Z-best-1f2e3d4c")


def with_recording(folder: Path) -> None:
    """Write a file of the Waymo Open Motion Dataset."""
    (folder / "validation").mkdir()
    data = frame(womd_message(example_scenario("a")).SerializeToString())
    (folder / "validation" / "some.tfrecord-00000-of-00001").write_bytes(data)


def with_jobs(folder: Path) -> None:
    """Write a jobs file, and a file of factors that its environment takes."""
    (folder / "jobs.toml").write_text(JOBS)
    brightness = "brightness: {type: continuous, range: [0, 1]}"
    color = "color: {type: categorical, choices: [white, red]}"
    (folder / "factors.yaml").write_text(f"factors:\n  {brightness}\n  {color}\n")


def with_runs(folder: Path) -> None:
    """Write a run below the folder in the example."""
    make_run(folder / "runs", [drive(k, [[1.0]]) for k in range(3)])


def with_log(folder: Path) -> None:
    """Write a table of results."""
    (folder / "results.csv").write_text("seed,success,steps\n0,true,41\n1,false,90\n2,true,38\n3,true,55\n")


def with_two_runs(folder: Path) -> None:
    """Write two runs of the same 40 episodes, of which the second fails every fourth."""
    for name, fails in (("before", ()), ("after", range(0, 40, 4))):
        make_run(folder / "runs" / name, [drive(k, [[float(k not in fails)]]) for k in range(40)])


PREPARE = {
    "view": with_runs,
    "compare": with_two_runs,
    "import_results": with_log,
    "run_jobs": with_jobs,
    "sweep": with_jobs,
    "import_scenarios": with_recording,
    "score_realism": with_rollouts,
    "load_run": with_run,
    "gate": with_run,
}
