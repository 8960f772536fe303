"""Packs: files of scenarios, written atomically and read without loading them.

    with PackWriter("town.pack") as writer:
        writer.add(scenario)
    pack = Pack("town.pack")
    pack[0], pack.scenario("town-00042"), pack.select("merge"), pack.tables(pack.map_number(0))

`layout` describes the file, and `bundle` its blocks.
"""

from roadworthy.scenario.pack.blocks import EncodedScenarios, encode_map, encode_scenario, encode_scenarios
from roadworthy.scenario.pack.inspection import Fault, inspect
from roadworthy.scenario.pack.reader import Pack
from roadworthy.scenario.pack.writer import PackWriter

__all__ = [
    "EncodedScenarios",
    "Fault",
    "Pack",
    "PackWriter",
    "encode_map",
    "encode_scenario",
    "encode_scenarios",
    "inspect",
]
