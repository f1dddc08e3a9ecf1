"""`planner design --out DIR`: design.json and the chosen design's config.json."""

import json
from pathlib import Path

from hwprofiles.calibration import replace_file
from planner.design.records import DesignResult
from planner.errors import InputError, OutsideFailure

RESULT_FILE, CONFIG_FILE = "design.json", "config.json"


def write_design(folder: Path, result: DesignResult, *, force: bool) -> None:
    """Write both files; `config.json` is what `recommend --model` takes.

    Raises:
        InputError: one of them is there already, and not to be overwritten.
        OutsideFailure: the disk refused.
    """
    texts = {RESULT_FILE: result.model_dump_json(indent=1) + "\n"}
    if result.chosen is not None:
        texts[CONFIG_FILE] = json.dumps(result.chosen.config, indent=2) + "\n"
    present = [name for name in texts if (folder / name).exists()]
    if present and not force:
        raise InputError(f"{folder} already holds {', '.join(present)}; add --force or another DIR")
    if present == [CONFIG_FILE]:
        raise InputError(
            f"--force replaces an earlier design only, and {folder} holds {CONFIG_FILE} without "
            f"{RESULT_FILE}: a model of yours, perhaps; give another DIR"
        )
    try:
        for name, text in texts.items():
            replace_file(folder / name, text)
    except (OSError, UnicodeError) as error:
        raise OutsideFailure(f"could not write to {folder}: {error}; give another --out") from error
