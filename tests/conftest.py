import os
import signal
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from sample_plans import plan

from planner.search.records import Plan

# The same examples in every run, and no clock: a busy machine must not fail a test.
settings.register_profile("suite", deadline=None, derandomize=True)
settings.load_profile("suite")

# Answers must not depend on what was calibrated on this machine; also those of child processes.
os.environ["XDG_DATA_HOME"] = str(Path(tempfile.gettempdir()) / "specplanner-tests-no-such-folder")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell's background job: commands that the tests interrupt would inherit the deafness.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def helpful_plan() -> Plan:
    """A plan that says yes."""
    return plan()
