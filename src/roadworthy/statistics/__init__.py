"""Intervals of rates, means and ratios, clustered by what rows share, and of differences between pairs."""

from roadworthy.statistics.clusters import Clusters
from roadworthy.statistics.intervals import LEVEL, Interval, mean, rate, ratio
from roadworthy.statistics.missing import with_missing
from roadworthy.statistics.paired import paired_mean, paired_rate

__all__ = ["LEVEL", "Clusters", "Interval", "mean", "paired_mean", "paired_rate", "rate", "ratio", "with_missing"]
