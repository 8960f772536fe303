"""Looking into a policy while it drives: what it saw, did and attended to, step by step, as files and pictures."""

from roadworthy.policy.inspect.onlooker import Onlooker
from roadworthy.policy.inspect.record import Inspection, write_inspection
from roadworthy.policy.inspect.worlds import WorldKind, world_layer

__all__ = ["Inspection", "Onlooker", "WorldKind", "world_layer", "write_inspection"]
