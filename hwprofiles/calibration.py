"""Calibrations on disk: reading with bounds, the user's own folder, writing whole or not at all."""

import os
import re
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import yaml

from hwprofiles.errors import InputError
from hwprofiles.paths import typed_path
from hwprofiles.schema import Calibration
from hwprofiles.yamlfile import parse_untrusted, validate

FOLDER = "calibrations"
MAX_FILES = 200
"""Files of the user's folder that are read; a folder with more is not one that we filled."""
_UNSAFE = re.compile(r"[^a-z0-9.=]+")


@dataclass(frozen=True, slots=True, eq=False)
class CalibrationFile:
    """A calibration and where it was read; equal only to itself."""

    path: Path
    record: Calibration

    @property
    def label(self) -> str:
        """File name and date, to tell the user what is in use."""
        return f"{self.path.name} of {self.record.created[:10]}"


@dataclass(frozen=True, slots=True, eq=False)
class Shelf:
    """The calibrations that a question may use; equal only to itself."""

    files: tuple[CalibrationFile, ...]
    """Newest first."""
    explicit: bool = False
    """Whether the user named the file: one that does not fit is then an error."""
    problems: tuple[str, ...] = ()
    """Files that could not be read, one sentence each."""


EMPTY = Shelf(())


def user_folder() -> Path:
    """Where calibrations of this machine are kept; it need not exist."""
    from platformdirs import user_data_path  # noqa: PLC0415  # 3 ms that --calibration none saves

    return user_data_path("specplanner", appauthor=False) / FOLDER


def read_calibration(path: Path) -> CalibrationFile:
    """A calibration file.

    Raises:
        InputError: it cannot be read, is no YAML, or breaks the record's rules; it is named.
    """
    return CalibrationFile(path, validate(Calibration, parse_untrusted(path), path))


def shelf_of(stated: str | None) -> Shelf:
    """What `--calibration` means: a file, `none`, or (None) the user's folder.

    Unchanged files give the same shelf again, so that what was computed from it can be kept.

    Raises:
        InputError: the stated file cannot be used.
    """
    if stated is not None and stated.strip().lower() == "none":
        return EMPTY
    if stated is not None:
        path = typed_path(stated)
        return _stated(path, _stamp(path))
    folder = user_folder()
    paths = _listed(folder)
    return _kept(tuple((path, _stamp(path)) for path in paths)) if paths else EMPTY


def _listed(folder: Path) -> list[Path]:
    try:
        found = sorted(path for path in folder.iterdir() if path.suffix == ".yaml")
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise InputError(
            f"{folder}: cannot be listed ({error}); mend it, or give --calibration none"
        ) from error
    if len(found) > MAX_FILES:
        raise InputError(
            f"{folder} holds {len(found)} calibrations and at most {MAX_FILES} are read; "
            "remove old ones, or give --calibration FILE or none"
        )
    return found


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


@lru_cache(maxsize=64)
def _stated(path: Path, _: tuple[int, int, int] | None) -> Shelf:
    return Shelf((read_calibration(path),), explicit=True)


@lru_cache(maxsize=64)
def _kept(stamped: tuple[tuple[Path, tuple[int, int, int] | None], ...]) -> Shelf:
    files, problems = [], []
    for path, _ in stamped:
        try:
            files.append(read_calibration(path))
        except InputError as error:
            problems.append(f"calibration not read: {error}")
    files.sort(key=lambda file: file.record.created, reverse=True)
    return Shelf(tuple(files), problems=tuple(problems))


def file_name(record: Calibration) -> str:
    """Name under which a calibration replaces an older one of the same subject."""
    watts = f"{record.power_limit_w:.0f}w" if record.power_limit_w else None
    uuid = record.gpu_uuid.removeprefix("GPU-")[:8] if record.gpu_uuid else None
    parts = (record.gpu_name or record.cpu_name, uuid, watts, record.engine, record.written_by)
    words = (_UNSAFE.sub("-", part.lower()).strip("-.=") for part in parts if part)
    return "_".join(word for word in words if word)[:180] + ".yaml"


def write_calibration(record: Calibration, path: Path) -> None:
    """Write a calibration so that every reader sees the old file or the new one, never a part."""
    plain = record.model_dump(mode="json", exclude_none=True)
    text = yaml.safe_dump(plain, sort_keys=False, allow_unicode=False, width=100)
    replace_file(path, text)


def replace_file(path: Path, text: str) -> None:
    """Put the text in the file's place in one step; also after a kill the file is whole.

    Raises:
        InputError: what stands there is a device, a pipe or a folder, which is not replaced.
    """
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is not a regular file, and is not replaced; give another name")
    path = path.resolve()  # of a link, what it leads to
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)  # noqa: PTH105 - a name, and the one call that is atomic
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
