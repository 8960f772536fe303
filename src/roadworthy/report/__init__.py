"""Reports: what a finished run tells, on one page. They read run folders; neither simulator nor torch is needed."""

from roadworthy.report.facts import worst_first
from roadworthy.report.page import FILE, FOLDER, write_report

__all__ = ["FILE", "FOLDER", "worst_first", "write_report"]
