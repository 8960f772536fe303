"""Scripted drivers that know all: they show that scenarios can be solved through the action space."""

from roadworthy.policy.experts.drive import DriveExpert
from roadworthy.policy.experts.lane_follower import LaneFollower
from roadworthy.policy.experts.log import LogExpert

__all__ = ["DriveExpert", "LaneFollower", "LogExpert"]
