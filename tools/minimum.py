"""The oldest version of every dependency that pyproject.toml accepts, as constraints for pip.

`python tools/minimum.py FILE` writes them; `make nightly-minimum-versions` installs them and runs
the tests.
"""

import re
import sys
from pathlib import Path

TESTED = ("hub", "search", "live", "fit", "report")
"""Extras whose minima are tested; those of `kernels` have their own nightly step."""
_LIST = re.compile(r"^(\w+) = \[\n?(.*?)\]$", re.MULTILINE | re.DOTALL)
_RANGE = re.compile(r'"([A-Za-z0-9_.-]+)>=([\w.]+)[^"]*"')


def minima(text: str) -> dict[str, str]:
    """Package -> oldest version, over the core and the tested extras."""
    listed = dict(_LIST.findall(text))
    wanted = [listed["dependencies"], *(listed[extra] for extra in TESTED)]
    found: dict[str, str] = {}
    for package, version in _RANGE.findall("\n".join(wanted)):
        if found.setdefault(package, version) != version:
            raise SystemExit(f"{package} has two lower bounds: {found[package]} and {version}")
    return found


if __name__ == "__main__":
    project = Path(__file__).parents[1] / "pyproject.toml"
    lines = [f"{name}=={version}" for name, version in minima(project.read_text("utf-8")).items()]
    target = Path(sys.argv[1])
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")
