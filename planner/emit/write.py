"""Writes an output folder whole or not at all.

Everything is written into a hidden sibling folder, flushed to disk, and renamed into place; an
error or Ctrl-C leaves the old folder, or none; two planners take turns, and what a killed one left
is put right by the next. A folder that cannot be renamed, such as a mount point, is filled instead,
its files moved in after all of them were written.
"""

import json
import os
import re
import secrets
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from hwprofiles.errors import reason
from hwprofiles.paths import typed_path
from planner.emit.records import Emission, EmittedFile
from planner.emit.swap import exchanged, locked
from planner.errors import InputError, OutsideFailure
from planner.search.plan_file import MAX_PLAN_BYTES, PLAN_FILE
from planner.search.records import Plan


def write_out(folder: Path, plan: Plan, emission: Emission, *, force: bool = False) -> Plan:
    """Write plan.json and the emitted files into `folder`; returns the plan as written.

    Args:
        folder: created with its parents; must be absent or empty without `force`.
        plan: gets `files` and `launch` filled in.
        emission: what an emitter returned.
        force: replace an earlier output. Files in the folder that the earlier plan.json does not
            name (downloaded models, kernel builds) are kept.

    Raises:
        InputError: the folder holds something that is not ours to replace, or a file name is bad.
        OutsideFailure: the disk refused.
    """
    complete = plan.model_copy(
        update={
            "launch": emission.launch,
            "files": (PLAN_FILE, *(file.name for file in emission.files)),
        }
    )
    text = complete.model_dump_json(indent=1) + "\n"
    files = (EmittedFile(PLAN_FILE, text), *emission.files)
    _require_plain_names(files)
    try:
        target = typed_path(folder).resolve()
        target.parent.mkdir(parents=True, exist_ok=True)
        with locked(target.parent):
            _put(target, files, force=force)
    except (OSError, ValueError, UnicodeError) as error:
        if isinstance(error, InputError):
            raise
        raise OutsideFailure(
            f"could not write {str(folder)!r}: {reason(error)}; check the path and the free space, "
            "or give another --out"
        ) from error
    return complete


def _put(target: Path, files: Sequence[EmittedFile], *, force: bool) -> None:
    _mend(target)
    kept = _entries_to_keep(target, force=force)
    _refuse_to_replace(target, kept, files)
    if _stays(target):
        _fill(target, files, kept)
    else:
        _replace(target, files, kept)


def _require_plain_names(files: Iterable[EmittedFile]) -> None:
    seen: set[str] = set()
    for file in files:
        plain = file.name not in ("", ".", "..") and not set(file.name) & set("/\\\0")
        if not plain or file.name in seen:
            raise InputError(
                f"an output file needs a plain name of its own; got {file.name!r}; "
                "rename it in the emitter"
            )
        seen.add(file.name)


def _entries_to_keep(target: Path, *, force: bool) -> tuple[str, ...]:
    """Names in an existing folder that are not from an earlier plan."""
    if not target.exists():
        return ()
    if not target.is_dir():
        raise InputError(f"--out must be a folder; {str(target)!r} is a file; give another name")
    present = sorted(entry.name for entry in target.iterdir())
    if not present:
        return ()
    if not force:
        raise InputError(
            f"--out {str(target)!r} is not empty (it holds {present[0]!r}); "
            "give an empty or new folder, or --force to replace an earlier plan"
        )
    ours = _earlier_files(target / PLAN_FILE)
    if ours is None:
        raise InputError(
            f"--force replaces an earlier plan only, and {str(target)!r} holds no {PLAN_FILE} "
            "that this program wrote; give another folder"
        )
    # No plan writes folders: one that it names all the same is somebody's.
    return tuple(name for name in present if name not in ours or _is_folder(target / name))


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _refuse_to_replace(target: Path, kept: Sequence[str], files: Sequence[EmittedFile]) -> None:
    """What the earlier plan did not write is not overwritten by this one."""
    clash = sorted({file.name for file in files} & set(kept))
    if clash:
        raise InputError(
            f"--force replaces what an earlier plan wrote, and {str(target / clash[0])!r} is not "
            "of that; move it away, or give another folder"
        )


def _earlier_files(path: Path) -> frozenset[str] | None:
    """Files that an earlier plan.json names; None when it is not one of ours."""
    if path.is_symlink() or not path.is_file() or path.stat().st_size > MAX_PLAN_BYTES:
        return None
    try:
        record = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or not {"schema_version", "planner_version"} <= record.keys():
        return None
    named = record.get("files")
    names = named if isinstance(named, list) else []
    return frozenset({PLAN_FILE, *(name for name in names if isinstance(name, str))})


def _stays(target: Path) -> bool:
    """Whether the folder itself cannot be renamed: a mount point, or one in a folder of others."""
    return target.exists() and (target.is_mount() or not os.access(target.parent, os.W_OK))


def _fill(target: Path, files: Sequence[EmittedFile], kept: tuple[str, ...]) -> None:
    """Put the files into a folder that has to stay, all of them or none."""
    mark = secrets.token_hex(6)
    fresh, old = target / f".{mark}.new", target / f".{mark}.old"
    earlier = [entry.name for entry in target.iterdir() if entry.name not in kept]
    try:
        fresh.mkdir()
        old.mkdir()
        for file in files:
            _write_file(fresh / file.name, file)
        for name in earlier:
            (target / name).rename(old / name)
        for file in files:
            (fresh / file.name).replace(target / file.name)
    except BaseException:
        _unfill(target, files, old, earlier)
        raise
    else:
        _sync_folder(target)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def _unfill(target: Path, files: Iterable[EmittedFile], old: Path, earlier: list[str]) -> None:
    if not old.is_dir():
        return
    moved = [name for name in earlier if (old / name).exists()]
    if len(moved) == len(earlier):  # only then can any of the new files be in place
        for file in files:
            (target / file.name).unlink(missing_ok=True)
    for name in moved:
        (old / name).rename(target / name)


def _replace(target: Path, files: Iterable[EmittedFile], kept: tuple[str, ...]) -> None:
    """Build the new folder beside the old one and swap them, undoing it on any failure."""
    mark = secrets.token_hex(6)
    fresh = _beside(target, mark, "new")
    old = _beside(target, mark, "old")
    moved: list[str] = []
    try:
        fresh.mkdir()
        for file in files:
            _write_file(fresh / file.name, file)
        _sync_folder(fresh)
        if not kept and target.exists() and exchanged(fresh, target):
            shutil.rmtree(fresh, ignore_errors=True)
            return
        if target.exists():
            target.rename(old)
        for name in kept:
            # Recorded first: an interrupt between the two must not lose a kept file.
            moved.append(name)
            if not (fresh / name).exists():
                (old / name).rename(fresh / name)
        fresh.rename(target)
    except BaseException:
        _undo(target, fresh, old, moved)
        raise
    _sync_folder(target.parent)
    shutil.rmtree(old, ignore_errors=True)


def _beside(target: Path, mark: str, what: str) -> Path:
    return target.with_name(f".{target.name[:100]}.{mark}.{what}")


def _undo(target: Path, fresh: Path, old: Path, moved: Iterable[str]) -> None:
    if old.exists() and target.exists():
        shutil.rmtree(old, ignore_errors=True)
        return
    if old.exists():
        for name in moved:
            if (fresh / name).exists() and not (old / name).exists():
                (fresh / name).rename(old / name)
        old.rename(target)
    shutil.rmtree(fresh, ignore_errors=True)


def _mend(target: Path) -> None:
    """Put right what a run left that was killed between two renames."""
    pattern = re.compile(rf"\.{re.escape(target.name[:100])}\.([0-9a-f]{{12}})\.(?:new|old)")
    if not os.access(target.parent, os.R_OK | os.W_OK):
        return
    marks = {found[1] for p in target.parent.iterdir() if (found := pattern.fullmatch(p.name))}
    for mark in marks:
        fresh, old = _beside(target, mark, "new"), _beside(target, mark, "old")
        ours = _earlier_files(fresh / PLAN_FILE) or frozenset()
        others = [p.name for p in fresh.iterdir() if p.name not in ours] if fresh.is_dir() else []
        _undo(target, fresh, old, others)


def _write_file(path: Path, file: EmittedFile) -> None:
    with path.open("x", encoding="utf-8", newline="\n") as handle:
        handle.write(file.text)
        handle.flush()
        os.fsync(handle.fileno())
    if file.executable:
        path.chmod(path.stat().st_mode | 0o111)


def _sync_folder(path: Path) -> None:
    if os.name != "posix":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
