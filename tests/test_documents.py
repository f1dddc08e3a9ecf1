import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
PATH_IN_TEXT = re.compile(r"`([\w.-]+(?:/[\w.-]+)+/?)`|\]\(([\w./-]+)\)")
MODULE_IN_TEXT = re.compile(r"python -m ([\w.]+)")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_paths_and_modules_that_a_document_names_exist(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    named = {code or link for code, link in PATH_IN_TEXT.findall(text)}
    made = ("build", "dist", ".venv")
    named = {p for p in named if (top := p.split("/")[0]) not in made and (ROOT / top).exists()}
    modules = {name.replace(".", "/") for name in MODULE_IN_TEXT.findall(text)}
    missing = [
        path for path in named if not ((ROOT / path).exists() or (document.parent / path).exists())
    ]
    files = {path: (ROOT / f"{path}.py", ROOT / path / "__main__.py") for path in modules}
    missing += [path for path, either in files.items() if not any(map(Path.exists, either))]
    assert not missing


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_make_targets_that_a_document_names_exist(document: Path) -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    assert set(re.findall(r"\bmake (\w+)`", document.read_text(encoding="utf-8"))) <= targets


def test_recipes_have_at_most_15_lines() -> None:
    _, *recipes = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("\n## ")
    titles = [recipe.splitlines()[0] for recipe in recipes]
    assert titles == [
        "Add a GPU",
        "Add a model",
        "Add a drafter",
        "Add an engine version",
        "Add a measurement",
    ]
    assert max(len(recipe.strip().splitlines()[2:]) for recipe in recipes) <= 15


RENEW = "run `make readme`, which is tools/readme.py"
NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")


def test_the_readme_shows_what_the_demo_prints() -> None:
    """Equal but for the last digits of numbers, which libraries may round differently."""
    tool = runpy.run_path(str(ROOT / "tools" / "readme.py"))
    shown = (ROOT / "README.md").read_text(encoding="utf-8")
    fresh = tool["with_output"](shown, tool["demo_output"]())
    assert NUMBER.sub("#", shown) == NUMBER.sub("#", fresh), RENEW
    pairs = zip(NUMBER.findall(shown), NUMBER.findall(fresh), strict=True)
    far = [(a, b) for a, b in pairs if a != b and _value(a) != pytest.approx(_value(b), rel=0.03)]
    assert not far, RENEW


def _value(text: str) -> float:
    return float(text.replace(",", ""))


def test_the_makefile_runs_the_command_that_the_readme_shows() -> None:
    tool = runpy.run_path(str(ROOT / "tools" / "readme.py"))
    assert f"$(BIN)/{tool['COMMAND']}\n" in (ROOT / "Makefile").read_text(encoding="utf-8")
