"""What is generated: the class of text that decides how well a drafter guesses."""

from planner.workload.parse import parse_workload
from planner.workload.records import WORKLOAD_NAMES, Workload

__all__ = ["WORKLOAD_NAMES", "Workload", "parse_workload"]
