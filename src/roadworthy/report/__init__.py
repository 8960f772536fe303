"""Reports: the results of runs on one HTML page, read from run folders alone."""

from roadworthy.report.facts import worst_first
from roadworthy.report.page import FILE, FOLDER, write_report

__all__ = ["FILE", "FOLDER", "worst_first", "write_report"]
