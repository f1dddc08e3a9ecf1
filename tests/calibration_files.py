"""Calibrations as tests write them."""

from pathlib import Path

import yaml

from hwprofiles.calibration import write_calibration
from hwprofiles.schema import Calibration


def record(**fields: object) -> Calibration:
    """A calibration of an RTX 4090 whose bf16 weights are read at 92 % of the datasheet rate."""
    plain = {
        "schema_version": 1,
        "written_by": "calibrate",
        "created": "2026-11-30",
        "gpu_name": "NVIDIA GeForce RTX 4090",
        "constants": {"formats.bf16.bandwidth_fraction": 0.92},
    } | fields
    constants = plain["constants"]
    assert isinstance(constants, dict)
    plain["constants"] = {
        name: {"value": value, "kind": "measured", "ref": "24 samples"}
        for name, value in constants.items()
    }
    return Calibration.model_validate({k: v for k, v in plain.items() if v is not None})


def written(path: Path, **fields: object) -> Path:
    """The same in a file."""
    write_calibration(record(**fields), path)
    return path


def raw(path: Path, **fields: object) -> Path:
    """A file that need not be a valid calibration."""
    plain = record().model_dump(mode="json", exclude_none=True) | fields
    path.write_text(yaml.safe_dump(plain), encoding="utf-8")
    return path
