"""Check that everything an evaluation needs is there, and estimate its time and memory."""

from roadworthy.evaluation.doctor.findings import Finding, State
from roadworthy.evaluation.doctor.machine import examine_machine
from roadworthy.evaluation.doctor.suite import examine_suite

__all__ = ["Finding", "State", "examine_machine", "examine_suite"]
