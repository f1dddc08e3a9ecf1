"""A page as text: Jinja2 (extra `[report]`) with everything escaped, one style sheet, no script."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from planner import __version__
from planner.errors import InputError
from planner.report.html.origins import Notes, origins_section, said_by_cells
from planner.report.plain import plain

if TYPE_CHECKING:
    from jinja2 import Environment

    from planner.report.html.content import Page

MAX_BYTES = 400_000
"""A page stays below this."""
_TEMPLATES = "templates"


def require_renderer() -> None:
    """Say what to install where Jinja2 is missing.

    Raises:
        InputError: it is.
    """
    try:
        import jinja2  # noqa: F401, PLC0415  # an extra
    except ModuleNotFoundError as missing:
        raise InputError(
            f"an HTML page needs {missing.name}, which is not installed; "
            "pip install 'specplanner[report]'"
        ) from missing


def html(page: Page) -> str:
    """The whole file.

    Raises:
        InputError: Jinja2 is not installed.
    """
    require_renderer()
    origins = origins_section(page)
    if not origins.empty:
        page = replace(page, sections=(*page.sections, origins))
    style = _text("page.css")
    template = _environment().get_template("page.html.j2")
    return template.render(
        page=page, notes=Notes(page), style=style, policy=policy(style), version=__version__
    )


def policy(style: str) -> str:
    """Content-Security-Policy: nothing is loaded, nothing runs, this one style sheet applies."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _text(name: str) -> str:
    return files(__package__).joinpath(_TEMPLATES).joinpath(name).read_text("utf-8")


def _shown(value: Any) -> Any:
    """Text from outside without control characters and direction marks; markup stays as it is."""
    return plain(value, keep="\n") if type(value) is str else value


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined  # noqa: PLC0415  # an extra

    environment = Environment(
        autoescape=True,
        loader=FunctionLoader(_text),
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["css_text"] = _css_text
    environment.filters["prose"] = _prose
    environment.filters["said_by_cells"] = said_by_cells
    return environment


_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*\b")


def _prose(text: str) -> Any:
    """A sentence, its command-line options kept whole at the end of a line."""
    from markupsafe import Markup, escape  # noqa: PLC0415  # an extra

    escaped = str(escape(plain(text, keep="\n")))
    return Markup(_OPTION.sub(r"<code>\g<0></code>", escaped))  # noqa: S704  # escaped above


def _css_text(style: str) -> Any:
    """Our own style sheet, which must not be escaped: its hash is in the policy."""
    from markupsafe import Markup  # noqa: PLC0415  # an extra

    if "<" in style:
        raise ValueError("a style sheet with < could end its element")
    return Markup(style)  # noqa: S704  # package data, checked above
