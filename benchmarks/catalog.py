"""Every benchmark: its name, what it measures, the code that it runs and the sizes that it runs with."""

from __future__ import annotations

from benchmarks import experts, generation, packs, simulation
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
)
