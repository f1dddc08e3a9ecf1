"""Where a study is kept: a journal file, or a database, that several processes share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.errors import InputError, OutsideFailure

if TYPE_CHECKING:
    from types import ModuleType

    import optuna

_TAIL = 4096
_MAX_JOURNAL_BYTES = 512 * 2**20
_FIRST_BYTES = b'{"op_code":'
"""What every journal of Optuna begins with."""


class JournalLock:
    """A lock on the journal that the system takes back from a process that is killed.

    Optuna's own locks are files: after a kill they stay for half a minute. And a writer that was
    killed within a line leaves one without an end, behind which every later line is lost; whoever
    gets the lock next knows that nobody is writing, and cuts it off.
    """

    def __init__(self, journal: Path) -> None:
        self._journal = journal
        self._handle: int | None = None

    def acquire(self) -> bool:
        """Wait for the lock, then mend the journal's end."""
        fcntl = _fcntl()
        handle = os.open(f"{self._journal}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
        except BaseException:
            os.close(handle)
            raise
        self._handle = handle
        self._cut_torn_line()
        return True

    def release(self) -> None:
        """Let the next process write."""
        handle, self._handle = self._handle, None
        if handle is not None:
            os.close(handle)

    def _cut_torn_line(self) -> None:
        with self._journal.open("r+b") as stream:
            size = stream.seek(0, os.SEEK_END)
            end = size
            while end > 0:
                start = max(0, end - _TAIL)
                stream.seek(start)
                newline = stream.read(end - start).rfind(b"\n")
                end = start + newline + 1 if newline >= 0 else start
                if newline >= 0:
                    break
            if end < size:
                stream.truncate(end)


def _fcntl() -> ModuleType:
    try:
        import fcntl  # noqa: PLC0415 - not on Windows
    except ImportError as missing:
        raise InputError(
            "a journal file needs file locks of Linux or macOS; give a database as --study, "
            "e.g. sqlite:///study.db"
        ) from missing
    return fcntl


def shared_study(where: str, name: str, objectives: int = 1) -> optuna.Study:
    """The study of that name, made where it is missing; larger objectives are better.

    Args:
        where: path of a journal file, or a database address with `://`.
        name: studies of other names in the same place are left alone.
        objectives: values that a trial returns.

    Raises:
        InputError: the extra is not installed, or the place is no study.
        OutsideFailure: the disk or the database failed.
    """
    try:
        import optuna  # noqa: PLC0415 - 0.7 s, for studies alone
    except ImportError as missing:
        raise InputError("--study needs optuna; pip install 'specplanner[search]'") from missing
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        return optuna.create_study(
            storage=storage_of(optuna, where),
            study_name=name,
            directions=["maximize"] * objectives,
            load_if_exists=True,
        )
    except OSError as error:
        raise OutsideFailure(
            f"the study {where} cannot be opened: {error.strerror or error}; give another --study"
        ) from error
    except ImportError as missing:
        raise InputError(
            f"the study {where} needs the package {missing.name}; install it, or give a journal "
            "file as --study"
        ) from missing
    except _no_study(optuna) as error:
        said = str(error).splitlines()[:1] or [type(error).__name__]
        raise InputError(f"{where} is no study: {said[0][:200]}; give another --study") from error


def _no_study(optuna: ModuleType) -> tuple[type[Exception], ...]:
    """What Optuna raises over the content of a place that holds something else."""
    plain = (ValueError, LookupError, TypeError, AttributeError, AssertionError, RecursionError)
    try:
        from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415 - Optuna's, for databases
    except ImportError:
        return (*plain, optuna.exceptions.OptunaError)
    return (*plain, optuna.exceptions.OptunaError, SQLAlchemyError)


@contextmanager
def written_in(where: str) -> Iterator[None]:
    """A failure of the disk that names nothing is the study's: Optuna names no file."""
    try:
        yield
    except OSError as error:
        if error.filename is not None:
            raise
        raise OutsideFailure(
            f"the study {where} cannot be written: {error.strerror or error}; make room, finished "
            "trials are kept"
        ) from error


def open_study(where: str, name: str, seed: int) -> optuna.Study:
    """The study of one objective of that name, with its sampler."""
    study = shared_study(where, name)
    from optuna.samplers import TPESampler  # noqa: PLC0415 - 0.7 s, for studies alone

    seed = seed_of_process(study, seed)
    study.sampler = TPESampler(seed=seed, n_startup_trials=8, constant_liar=True)
    return study


def seed_of_process(study: optuna.Study, seed: int) -> int:
    """Seed of this process's sampler: processes of one study do not repeat each other's guesses."""
    return seed + len(study.get_trials(deepcopy=False))


def storage_of(optuna: Any, where: str) -> Any:
    """The journal file or database at a place, made where it is missing."""
    if "://" in where:
        return optuna.storages.RDBStorage(where)
    path = Path(where)
    _require_journal(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    journal = optuna.storages.journal
    path.touch()
    lock = JournalLock(path)
    lock.acquire()
    lock.release()
    return optuna.storages.JournalStorage(journal.JournalFileBackend(where, lock_obj=lock))


def _require_journal(path: Path) -> None:
    """Whatever else stands there stays as it is: opening a journal mends its end.

    Raises:
        InputError: it is no journal, or too long for one.
    """
    if not path.exists():
        return
    if not path.is_file():
        raise InputError(f"{path} is not a regular file; give another --study")
    with path.open("rb") as stream:
        head = stream.read(len(_FIRST_BYTES))
    if not _FIRST_BYTES.startswith(head):
        raise InputError(
            f"{path} holds something else than a study, and stays as it is; give another --study"
        )
    if path.stat().st_size > _MAX_JOURNAL_BYTES:
        raise InputError(
            f"{path} is over {_MAX_JOURNAL_BYTES >> 20} MiB, too long for a study's journal; "
            "give another --study"
        )
