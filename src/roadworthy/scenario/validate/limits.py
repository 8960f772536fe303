"""The limits of valid motion and geometry."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Limits of human driving. A scenario tagged `hard_stop` may use the emergency limits."""

    overlap_m: float = 0.001
    """How far boxes may reach into each other: the rounding of positions stored as float32."""
    off_road_m: float = 0.01
    """How far a corner may stand out of the drivable surface: the rounding of stored positions and polylines."""
    vehicle_speed_mps: float = 45.0
    """160 km/h; highD (Krajewski et al. 2018) records cars on German motorways up to about 50 m/s."""
    cyclist_speed_mps: float = 15.0
    """Commuting cyclists average 4 to 6 m/s, downhill sprints reach 15 (Schleinitz et al. 2017)."""
    pedestrian_speed_mps: float = 4.0
    """Walking is 1.2 to 1.5 m/s, running over a crosswalk up to 4 (HCM; Fitzpatrick et al. 2006)."""
    acceleration_mps2: float = 6.0
    """Ordinary drivers stay below 4 m/s2, and below 6 when surprised (AASHTO's design value for stopping is 3.4)."""
    emergency_acceleration_mps2: float = 9.0
    """Full braking on dry asphalt is 7 to 9 m/s2 (Fambro et al. 1997, NCHRP 400)."""
    jerk_mps3: float = 10.0
    """Over 0.2 s; 99% of expert driving stays below 8.4 m/s3 after smoothing (nuPlan's comfort bounds)."""
    emergency_jerk_mps3: float = 30.0
    """Brake pressure builds up within 0.2 to 0.5 s in an emergency (Fambro et al. 1997)."""
    lateral_acceleration_mps2: float = 4.9
    """99% of expert driving stays below 4.89 m/s2 (nuPlan's comfort bounds)."""
    vehicle_yaw_rate_radps: float = 0.95
    """99% of expert driving stays below 0.95 rad/s (nuPlan's comfort bounds)."""
    cyclist_yaw_rate_radps: float = 1.5
    """A cyclist turns on a radius of 2 to 3 m at walking pace."""
    heading_error_rad: float = 0.09
    """Between heading and motion, faster than `slow_mps`; a car's sideslip stays below 5 degrees in daily driving."""
    slow_mps: float = 1.0
    """Below this speed the direction of motion says little, and turning on the spot is looked at instead."""
    slow_turning_radps: float = 1.2
    """How fast a heading may change below `slow_mps`: full lock at parking pace, with some room."""
    velocity_error_mps: float = 0.25
    """Between recorded velocities and the difference of positions: an acceleration of 5 m/s2 over half a step."""
    joint_m: float = 0.1
    """From the end of a lane to the start of its successor."""
    joint_rad: float = 0.12
    """Between the headings of a lane's end and its successor's start; polylines are known to a few degrees."""
    neighbor_rad: float = 0.12
    """Between a lane and the lane beside it."""
    neighbor_spread_m: float = 0.5
    """How much the distance between a lane and the lane beside it may vary."""

    longest_m: float = 30.0
    """Road trains end at 25.25 m in Europe, articulated buses at 25 m; what is longer was tracked as one by mistake."""
    widest_m: float = 4.5
    """Vehicles are 2.6 m wide at most, with mirrors 3.2 m; wide loads under escort reach 4.5 m."""
    far_m: float = 1000.0
    """From the box around the map; sensors of cars see a few hundred meters."""
