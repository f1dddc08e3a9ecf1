"""docs/licences.md names every direct dependency of an installation, with a permissive licence."""

import re
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]
TOOL = runpy.run_path(str(ROOT / "tools" / "licences.py"))
MINIMUM = runpy.run_path(str(ROOT / "tools" / "minimum.py"))
_, *ROWS = TOOL["_ROW"].findall(TOOL["PAGE"].read_text("utf-8"))
SHOWN = {row[0]: row[1] for row in ROWS}
PERMISSIVE = re.compile(r"MIT|BSD|Apache|ISC|PSF|MPL|Mozilla", re.IGNORECASE)


def folded(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_direct_dependency_is_listed() -> None:
    wanted = MINIMUM["minima"]((ROOT / "pyproject.toml").read_text("utf-8"))
    assert {folded(name) for name in wanted} <= {folded(name) for name in SHOWN}


def test_every_licence_is_stated_and_lets_one_use_it() -> None:
    odd = {name: says for name, says in SHOWN.items() if not PERMISSIVE.search(says)}
    assert odd == {}
    assert not [says for says in SHOWN.values() if "GPL" in says]


def test_what_is_installed_here_agrees_with_the_page() -> None:
    found = TOOL["brought_along"]() if TOOL["installed"]() else {}
    for name, (says, _) in found.items():
        assert folded(name) in {folded(shown) for shown in SHOWN}, f"run tools/licences.py: {name}"
        assert says != "not stated", name


def test_a_row_of_what_is_not_installed_stays() -> None:
    earlier = TOOL["page"]({"old": ("MIT", {"fit"})}, "")
    renewed = TOOL["page"]({"new": ("ISC", {"core"})}, earlier)
    assert "| old | MIT | fit |" in renewed
    assert "| new | ISC | core |" in renewed
