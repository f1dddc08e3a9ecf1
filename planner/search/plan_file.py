"""plan.json read back: bounded, of this version, and every defect named."""

from pathlib import Path

from hwprofiles.yamlfile import validate
from planner.arch.json_file import read_json_object
from planner.errors import InputError
from planner.search.records import Plan

PLAN_FILE = "plan.json"
MAX_PLAN_BYTES = 32 << 20
SCHEMA_VERSION = 1
_ANEW = "plan anew with `planner recommend --out DIR`"


def plan_folder(path: Path) -> Path:
    """The output folder of a plan that is given as this folder, or as a file in it."""
    return path if path.is_dir() else path.parent


def read_plan(path: Path) -> Plan:
    """The plan in a file, or in the output folder that holds one.

    Raises:
        InputError: unreadable, no plan, of another schema version, or damaged.
    """
    file = path / PLAN_FILE if path.is_dir() else path
    try:
        record = read_json_object(file, MAX_PLAN_BYTES)
    except InputError as error:
        raise InputError(f"{error}; {_ANEW}") from error
    version = record.get("schema_version")
    if version is None or "planner_version" not in record:
        raise InputError(f"{file} is no {PLAN_FILE} of this program; {_ANEW}")
    if version != SCHEMA_VERSION:
        writer = ascii(record["planner_version"])[:40]
        raise InputError(
            f"{file} has schema version {ascii(version)[:20]} (written by planner {writer}) and "
            f"this planner reads {SCHEMA_VERSION}; {_ANEW}, or use the planner that wrote it"
        )
    try:
        return validate(Plan, record, file)
    except InputError as error:
        raise InputError(f"{error}; {_ANEW}") from error
