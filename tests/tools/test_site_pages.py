"""The generated pages of the documentation site, without the site's generator."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from planner.drafters.registry import DRAFTERS
from planner.emit.registry import SUPPORTED
from planner.evidence.load import rows
from tools.site_pages import cases, commands, data, drafters, engines, outputs, schemas, worked

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    makers = (cases, commands, data, drafters, engines, outputs, schemas, worked)
    return {path: page for maker in makers for path, page in maker.pages()}


def named(nav: object) -> Iterator[str]:
    """Every page that the navigation names."""
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, dict):
        for value in nav.values():
            yield from named(value)
    elif isinstance(nav, list):
        for value in nav:
            yield from named(value)


def test_the_navigation_names_every_page_once(made: dict[str, str]) -> None:
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    written = {path.name for path in (ROOT / "docs").glob("*.md")}
    assert sorted(named(nav)) == sorted(written | set(made))


def test_tables_are_whole(made: dict[str, str]) -> None:
    for path, page in made.items():
        assert page.startswith("# "), path
        head = 0
        for line in re.sub(r"```.*?```", "", page, flags=re.DOTALL).splitlines():
            cells = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else 0
            assert not (head and cells) or cells == head, (path, line)
            head = cells


def test_every_family_and_engine_has_its_page(made: dict[str, str]) -> None:
    assert {f"drafters/{name}.md" for name in DRAFTERS} <= set(made)
    assert len([path for path in made if path.startswith("engines/")]) == len(SUPPORTED)


def test_measured_losses_are_all_there(made: dict[str, str]) -> None:
    page = made["when-not.md"]
    lost = [row for row in rows() if row.speedup <= 0.97]
    section = page.partition("## Measured to lose")[2].partition("## Measured to change")[0]
    assert section.count("x | ") == len(lost) > 10
    for row in lost:
        assert row.source.rpartition("/")[2].split()[0] in section


def test_commands_and_forms_are_those_of_the_code(made: dict[str, str]) -> None:
    assert "## recommend" in made["commands.md"]
    assert "--html FILE" in made["commands.md"]
    assert "`tokens_per_round` | number | E[L] over all rounds" in made["schemas/plan.md"].replace(
        "\\_", "_"
    ).replace("\\[", "[").replace("\\]", "]")
    assert "Yes: DSpark" in made["index.md"]
