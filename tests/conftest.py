import pytest
from hypothesis import settings
from sample_plans import plan

from planner.search.records import Plan

# The same examples in every run, and no clock: a busy machine must not fail a test.
settings.register_profile("suite", deadline=None, derandomize=True)
settings.load_profile("suite")


@pytest.fixture
def helpful_plan() -> Plan:
    """A plan that says yes."""
    return plan()
