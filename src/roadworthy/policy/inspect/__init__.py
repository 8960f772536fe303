"""Inspect a policy while it drives: what it observes, does and attends to, step by step, as files and pictures."""

from roadworthy.policy.inspect.record import Inspection, write_inspection
from roadworthy.policy.inspect.recording import RecordingPolicy
from roadworthy.policy.inspect.worlds import WorldKind, world_layer

__all__ = ["Inspection", "RecordingPolicy", "WorldKind", "world_layer", "write_inspection"]
