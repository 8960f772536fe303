"""The generator: road networks, traffic on them, and the behaviour classes that are staged there."""

from roadworthy.scenario.generate.config import GenerateConfig
from roadworthy.scenario.generate.pack import generate_pack
from roadworthy.scenario.generate.producer import produce

__all__ = ["GenerateConfig", "generate_pack", "produce"]
