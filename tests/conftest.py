import pytest
from sample_plans import plan

from planner.search.records import Plan


@pytest.fixture
def helpful_plan() -> Plan:
    """A plan that says yes."""
    return plan()
