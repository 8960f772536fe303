"""The closed-loop score of an ego's drive, by nuPlan's published definitions.

`closed_loop_figures` computes it from a trace and its scenario. Each part has a file of its own with its definition:

    collisions  drivable_area  driving_direction  progress    multipliers, and the progress ratio
    time_to_collision  speed_limit  comfort                   graded parts
    motion  boxes  lane_map  lane_places  route               what they are computed from

docs/closed-loop.md restates the definitions and lists the substitutes for lane polygons.
"""

from roadworthy.metrics.closed_loop.figures import FIGURES, closed_loop_figures

__all__ = ["FIGURES", "closed_loop_figures"]
