"""A calibration and its raw samples put where `planner recommend` finds them."""

import re
from collections.abc import Iterable
from datetime import datetime, timezone
from pathlib import Path

from autotune.calibrate.samples import Series, table_of
from hwprofiles.calibration import file_name, replace_file, user_folder, write_calibration
from hwprofiles.schema import Calibration
from planner.errors import OutsideFailure


def now() -> str:
    """The present second in UTC, ISO 8601."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def target_of(record: Calibration, out: Path | None) -> Path:
    """Where the calibration goes: the stated file, else its own name in the user's folder."""
    return user_folder() / file_name(record) if out is None else out


def samples_name(target: Path, created: str) -> str:
    """Name of the samples beside a calibration; another one for each moment, so that a calibration
    and the samples it names belong together whenever the writer is stopped."""
    stem = re.sub(r"[^\w.+=-]", "-", target.stem)[:150]
    return f"{stem}.{re.sub(r'[^0-9TZ]', '', created)}.csv"


def keep(record: Calibration, series: Iterable[Series], target: Path) -> None:
    """Write the samples, then the calibration that names them, then drop older samples.

    Raises:
        OutsideFailure: the folder cannot be written.
    """
    name = samples_name(target, record.created)
    whole = record.model_copy(update={"samples_file": name})
    try:
        replace_file(target.parent / name, table_of(series))
        write_calibration(whole, target)
        stem = name.rsplit(".", 2)[0]
        for old in target.parent.glob(f"{_literal(stem)}.????????T??????Z.csv"):
            if old.name != name:
                old.unlink(missing_ok=True)
    except OSError as error:
        raise OutsideFailure(
            f"{target}: cannot be written ({error.strerror}); give --out FILE elsewhere"
        ) from error


def _literal(text: str) -> str:
    return re.sub(r"([\[\]*?])", r"[\1]", text)
