"""The doctor: is everything there that an evaluation needs, and what will it take?"""

from roadworthy.evaluate.doctor.findings import Finding, State
from roadworthy.evaluate.doctor.machine import examine_machine
from roadworthy.evaluate.doctor.suite import examine_suite

__all__ = ["Finding", "State", "examine_machine", "examine_suite"]
