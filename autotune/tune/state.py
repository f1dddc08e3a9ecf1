"""The file of samples: every finished cell on a line of its own, so that a run can go on."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from autotune.tune.records import Arm, Cell, Prompt, Record
from autotune.tune.schedule import Effort
from hwprofiles.calibration import replace_file
from planner.emit.swap import locked
from planner.errors import InputError, OutsideFailure

SAMPLES_FILE = "samples.jsonl"
MAX_BYTES = 2**30


class Header(Record):
    """What the cells below belong to; a run with another header cannot go on with them."""

    kind: Literal["header"] = "header"
    """Line type in the file of samples."""
    schema_version: Literal[1] = 1
    """Version of this form."""
    fingerprint: str
    """Hash of arms, prompts and effort."""


def header_of(arms: Sequence[Arm], prompts: Sequence[Prompt], effort: Effort) -> Header:
    """The header of a run; blocks are left out, so that a run can be made longer."""
    subject = [
        [arm.model_dump(mode="json") for arm in arms],
        [prompt.model_dump(mode="json") for prompt in prompts],
        [effort.prompts, effort.max_tokens, effort.warmup, effort.concurrency],
        [effort.temperature, effort.seed],
    ]
    text = json.dumps(subject, sort_keys=True)
    return Header(fingerprint=hashlib.sha256(text.encode()).hexdigest()[:32])


def holds_cells(folder: Path) -> bool:
    """Whether a run left finished cells there: a whole line behind the header."""
    path = folder / SAMPLES_FILE
    if not path.is_file():
        return False
    with path.open("rb") as stream:
        return len([line for line in islice(stream, 2) if line.endswith(b"\n")]) == 2


class SampleFile:
    """Cells on disk; a line counts once it is whole."""

    def __init__(self, folder: Path, header: Header) -> None:
        self.path = folder / SAMPLES_FILE
        self._header = header

    @contextmanager
    def held(self) -> Iterator[None]:
        """The folder for this run alone; of a run that measured nothing, nothing stays.

        Raises:
            OutsideFailure: another run writes there, or the disk refused.
        """
        folder = self.path.parent
        made = not folder.exists()
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._refused(error) from error
        with locked(folder, wait_s=0.0):
            try:
                yield
            except (OutsideFailure, KeyboardInterrupt):
                if not holds_cells(folder):
                    self.path.unlink(missing_ok=True)
                    with suppress(OSError):  # it holds the engine's log
                        if made:
                            folder.rmdir()
                raise

    def begin(self, *, force: bool) -> tuple[Cell, ...]:
        """Cells of an earlier run of the same header; the file is ready for more afterwards.

        Args:
            force: start anew whatever is there.

        Raises:
            InputError: the file belongs to another run.
            OutsideFailure: the disk refused.
        """
        try:
            cells = [] if force else self._cells()
            self._write(cells)
        except OSError as error:
            raise self._refused(error) from error
        return tuple(cells)

    def _refused(self, error: OSError) -> OutsideFailure:
        return OutsideFailure(
            f"could not write {self.path}: {error.strerror or error}; give another --out"
        )

    def _cells(self) -> list[Cell]:
        if not os.path.lexists(self.path):
            return []
        if not self.path.is_file():
            raise InputError(f"{self.path} is not a regular file; give another --out")
        if self.path.stat().st_size > MAX_BYTES:
            raise InputError(f"{self.path} is over 1 GiB; give another --out")
        with self.path.open("rb") as stream:
            first = stream.readline()
            try:
                earlier = Header.model_validate_json(first) if first else self._header
                lines = (line for line in stream if line.endswith(b"\n"))
                found = [Cell.model_validate_json(line) for line in lines]
            except ValidationError as error:
                raise InputError(
                    f"{self.path} is no file of samples of this version; use --force to start "
                    "anew, or another --out"
                ) from error
        if earlier != self._header:
            raise InputError(
                f"{self.path} holds a run with other arms, prompts or settings; "
                "use --force to start anew, or another --out"
            )
        return found

    def _write(self, cells: Sequence[Cell]) -> None:
        """Rewrite in one step: a line that a kill cut off is gone afterwards."""
        lines = [self._header.model_dump_json(), *(cell.model_dump_json() for cell in cells)]
        replace_file(self.path, "".join(line + "\n" for line in lines))

    def add(self, cell: Cell) -> None:
        """Append a finished cell.

        Raises:
            OutsideFailure: the disk refused.
        """
        try:
            with self.path.open("a", encoding="utf-8") as stream:
                stream.write(cell.model_dump_json() + "\n")
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            raise OutsideFailure(
                f"could not write {self.path}: {error.strerror or error}; the cells before are kept"
            ) from error
