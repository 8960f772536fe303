"""Every benchmark: its name, what it measures, the code that it runs and the sizes that it runs with."""

from __future__ import annotations

from benchmarks import (
    coverage,
    experts,
    generation,
    importing,
    packs,
    realism,
    records,
    sensitivity,
    simulation,
    training,
    videos,
)
from benchmarks.runner import Benchmark

BENCHMARKS = (
    Benchmark(
        name="pack_open",
        what="open a pack of many scenarios",
        code=packs.open_pack,
        sizes={"scenarios": 10_000, "maps": 20, "agents": 2, "steps": 11, "repeats": 20},
        goals={"open": 0.050},
    ),
    Benchmark(
        name="pack_read",
        what="read scenarios in random order, each for the first time, and then again",
        code=packs.read_scenarios,
        sizes={"scenarios": 400, "maps": 40, "agents": 32, "steps": 91, "repeats": 400},
        goals={"first read, with map": 0.001, "first read": 0.001, "read again": 0.001},
    ),
    Benchmark(
        name="map_prepare",
        what="work out the tables of a town of 400 m by 400 m",
        code=packs.prepare_map,
        sizes={"streets": 4, "repeats": 20},
        goals={"prepare": 0.030},
    ),
    Benchmark(
        name="generate",
        what="generate scenarios: every stage on one core, and a pack on all cores",
        code=generation.generate,
        sizes={"repeats": 4, "scenarios": 1200},
        goals={"pack": 60.0},
    ),
    Benchmark(
        name="womd_import",
        what="import WOMD scenarios of realistic size: every stage on one core, and a file on one core and on all",
        code=importing.womd_import,
        sizes={"scenarios": 64, "tracks": 64, "streets": 20, "lanes per street": 20},
    ),
    Benchmark(
        name="sim_cpu",
        what="open worlds, random actions, default observations, collisions, off-road, goals and figures",
        code=simulation.sim_cpu,
        sizes={"worlds": 32, "agents": 32, "steps": 400, "exchanges": 5},
        goals={"step, 1 thread": 0.001024, "exchange, unseen maps": 0.007},
    ),
    Benchmark(
        name="sim_cpu_large",
        what="the same with 128 agents in a world, maps of over 20,000 segments, and many worlds",
        code=simulation.sim_cpu_large,
        sizes={"steps": 40, "worlds": 1024, "maps": 32, "large maps": 4},
    ),
    Benchmark(
        name="sim_first_step",
        what="from the import to the end of the first step, in a new process",
        code=simulation.first_step,
        sizes={"maps": 4},
    ),
    Benchmark(
        name="experts",
        what="what scripted experts score: recordings, open worlds, hidden gains told and not told",
        code=experts.experts,
        sizes={"scenarios": 120},
    ),
    Benchmark(
        name="sensitivity_surface",
        what="fit success surfaces to 644 rows, and their curves with bands",
        code=sensitivity.surface,
        sizes={"repeats": 20},
        goals={"irrelevant factor: fit": 0.2, "categorical interaction: fit": 0.2},
    ),
    Benchmark(
        name="sensitivity_truth",
        what="bands and factor distributions of splines beside known truths",
        code=sensitivity.truth,
        sizes={"repeats": 150},
    ),
    Benchmark(
        name="sensitivity_process",
        what="the same of Gaussian processes, where factors interact",
        code=sensitivity.truth_of_process,
        sizes={"repeats": 20},
    ),
    Benchmark(
        name="sensitivity_verdicts",
        what="how often factors are said to matter, one of which does nothing",
        code=sensitivity.verdicts,
        sizes={"repeats": 40},
    ),
    Benchmark(
        name="sensitivity_next",
        what="error of surfaces after suggested and after random episodes",
        code=sensitivity.next_batches,
        sizes={"repeats": 60, "batches": 3},
    ),
    Benchmark(
        name="sensitivity_neural",
        what="neural posteriors beside surfaces on the same 644 rows",
        code=sensitivity.neural,
        sizes={"repeats": 4, "epochs": 200},
        goals={"smooth: neural posterior": 60.0, "categorical interaction: neural posterior": 60.0},
    ),
    Benchmark(
        name="realism",
        what="score the realism of rollouts of a scenario, and how that grows",
        code=realism.realism,
        sizes={"agents": 13, "rollouts": 32, "repeats": 15},
        goals={"score": 0.050},
    ),
    Benchmark(
        name="record_write",
        what="append episodes with traces to a run, seal it, read traces",
        code=records.write_run,
        sizes={"episodes": 1000, "agents": 32, "steps": 91},
    ),
    Benchmark(
        name="record_summarize",
        what="all figures with their intervals from the tables of a sealed run",
        code=records.summarize,
        sizes={"episodes": 1_000_000},
        goals={"few scenarios": 5.0, "no scenario twice": 5.0},
    ),
    Benchmark(
        name="interval_coverage",
        what="how often intervals hold the truth, in percent; writes the tables of docs/statistics.md",
        code=coverage.coverage,
        sizes={"repeats": 4000},
    ),
    Benchmark(
        name="train_memoryless",
        what="learn to drive without memory: throughput and memory over horizon, batch, worlds and co-players",
        code=training.train_memoryless,
        sizes={"worlds": 2048, "updates": 8, "scenarios": 192},
    ),
    Benchmark(
        name="train_remembering",
        what="learn with a transformer that remembers two trials",
        code=training.train_remembering,
        sizes={"worlds": 1024, "updates": 8, "scenarios": 192},
    ),
    Benchmark(
        name="film_speed",
        what="draw and encode films of 1080p from traces, each view on one core",
        code=videos.speed,
        sizes={"steps": 200, "repeats": 5},
    ),
    Benchmark(
        name="film_memory",
        what="memory while many long films are made, one after another and all at once",
        code=videos.memory,
        sizes={"videos": 64, "steps": 2000},
    ),
)
