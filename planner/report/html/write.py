"""Writes a page whole or not at all, and never over something else."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

from hwprofiles.paths import typed_path
from planner.errors import InputError, OutsideFailure
from planner.report.html.content import Page
from planner.report.html.render import html, require_renderer

_OURS = b'<meta name="generator" content="specplanner'
_HEAD_BYTES = 4096


def ready_to_write(path: Path, *, force: bool) -> None:
    """Stop before any work where no page can be made or written there.

    Raises:
        InputError: Jinja2 is missing, or `refuse_to_replace` says no.
    """
    require_renderer()
    refuse_to_replace(path, force=force)


def refuse_to_replace(path: Path, *, force: bool) -> None:
    """Stop before any work where the file may not be written.

    Raises:
        InputError: something is there that `force` does not cover, or no folder is.
    """
    target = typed_path(path)
    if not target.parent.is_dir():
        raise InputError(
            f"--html {path}: there is no folder {str(target.parent)!r}; "
            "make it, or give another file"
        )
    if not os.path.lexists(target):
        return
    if not force:
        raise InputError(
            f"--html {path}: it exists; give another name, or --force to replace an earlier page"
        )
    if target.is_symlink() or not target.is_file() or not _is_page(target):
        raise InputError(
            f"--html {path}: --force replaces an earlier page only, and this is none; "
            "give another name"
        )


def write_page(path: Path, page: Page, *, force: bool = False) -> None:
    """Write the page beside its place and move it there in one step.

    Raises:
        InputError: Jinja2 is missing, or something is there that `force` does not cover.
        OutsideFailure: the disk refused.
    """
    text = html(page)
    refuse_to_replace(path, force=force)
    target = typed_path(path)
    unfinished = target.with_name(f".{target.name[:64]}.{secrets.token_hex(6)}")
    try:
        with unfinished.open("x", encoding="utf-8", newline="\n") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        _put(unfinished, target, force=force)
    except OSError as failure:
        raise OutsideFailure(
            f"cannot write {str(path)!r}: {failure.strerror}; "
            "check the path and the free space, or give another file"
        ) from failure
    finally:
        with suppress(OSError):  # a disk that takes no file gives none back either
            unfinished.unlink(missing_ok=True)


def _put(unfinished: Path, target: Path, *, force: bool) -> None:
    if force:
        unfinished.replace(target)
        return
    try:
        os.link(unfinished, target)  # fails where another process was first; a rename would not
    except FileExistsError as first:
        raise InputError(
            f"--html {target}: it appeared meanwhile; give another name, or --force"
        ) from first
    except OSError:  # a file system without hard links
        unfinished.replace(target)


def _is_page(path: Path) -> bool:
    with path.open("rb") as file:
        return _OURS in file.read(_HEAD_BYTES)
