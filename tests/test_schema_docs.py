import json
import os
import subprocess
import sys

_SCRIPT = """
import json
from planner.search.records import Plan
print(json.dumps(Plan.model_json_schema()))
"""


def test_a_schema_describes_every_field_when_asked_to() -> None:
    env = os.environ | {"SPECPLANNER_FIELD_DOCS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT], env=env, capture_output=True, text=True, check=True
    )
    ratio = json.loads(done.stdout)["$defs"]["Evaluation"]["properties"]["round_cost_ratio"]
    assert "break-even" in ratio["description"]
