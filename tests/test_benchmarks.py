"""The benchmark runner: what it prints, not how fast anything is."""

from __future__ import annotations

import json

import pytest

from benchmarks.__main__ import main
from benchmarks.catalog import BENCHMARKS


def test_every_benchmark_runs_and_the_last_line_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    # All but one: it compiles everything again, for minutes, which is what it measures.
    names = [benchmark.name for benchmark in BENCHMARKS if benchmark.name != "sim_first_step"]
    main([*names, "--share", "0.01"])
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert list(result["benchmarks"]) == names
    assert {"system", "processor", "cores"} <= set(result["machine"])
    assert {"python", "numpy", "numba"} <= set(result["versions"])
    for name in names:
        stages = result["benchmarks"][name]["stages"]
        assert stages
        assert all(
            stage["n"] >= 1 and stage["min_s"] <= stage["median_s"] <= stage["max_s"] for stage in stages.values()
        )


def test_only_the_benchmarks_that_are_named_run(capsys: pytest.CaptureFixture[str]) -> None:
    main(["map_prepare", "--share", "0.01"])
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert list(result["benchmarks"]) == ["map_prepare"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["pack_opn"], "benchmark 'pack_opn' is unknown; known: pack_open"), (["--share", "2"], "at most 1")],
)
def test_what_makes_no_sense_is_refused(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as error:
        main(arguments)
    assert error.value.code == 2
    assert words in capsys.readouterr().err
