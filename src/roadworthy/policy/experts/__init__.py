"""Scripted drivers that read the state of the simulator: they show which scenarios the action space can solve."""

from roadworthy.policy.experts.drive import DriveExpert
from roadworthy.policy.experts.lane_follower import LaneFollower
from roadworthy.policy.experts.log import LogExpert

__all__ = ["DriveExpert", "LaneFollower", "LogExpert"]
