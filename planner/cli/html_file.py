"""The options `--html FILE` and `--force`, as every verb with a page has them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from planner.errors import InputError

if TYPE_CHECKING:
    from planner.report.html.content import Page


def check_html(path: Path | None, *, force: bool, others: Mapping[str, Path | None]) -> None:
    """Stop before any work where the page cannot be made or written.

    Args:
        path: Where it shall go; None where none was asked for.
        force: Whether `--force` was given.
        others: What else `--force` serves: option -> its value.

    Raises:
        InputError: there is nothing to force, no renderer, or something in the way.
    """
    served = {**others, "--html FILE": path}
    if force and not any(served.values()):
        raise InputError(
            f"--force has nothing to overwrite without {' or '.join(served)}; add one or drop it"
        )
    if path is not None:
        from planner.report.html.write import ready_to_write  # noqa: PLC0415  # few ask for it

        ready_to_write(path, force=force)


def write_html(path: Path, page: Page, *, force: bool) -> None:
    """Write the page whole or not at all."""
    from planner.report.html.write import write_page  # noqa: PLC0415  # few ask for it

    write_page(path, page, force=force)
