"""The built documentation site in a browser: nothing said, nothing fetched from elsewhere."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("playwright", reason="make test-page installs it")

from browser_visits import Visit, started
from playwright.sync_api import Browser

SITE = Path(__file__).parents[2] / "build" / "site"
PAGES = ["index", "quick-start", "when-not", "data", "architecture", "python", "commands",
         "html", "worked", "method", "tune", "drafters/index",
         "drafters/dspark", "engines/vllm", "schemas/plan", "glossary", "accuracy"]  # fmt: skip


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if not (SITE / "index.html").exists():
        pytest.skip("make docs builds the site")
    yield from started()


@pytest.mark.parametrize("name", ["plan", "cards", "design", "evidence"])
def test_a_sample_is_a_page_of_its_own(browser: Browser, name: str) -> None:
    visit = Visit(browser, SITE / "samples" / f"{name}.html", 390, "light")
    assert visit.page.locator("h1").count() == 1
    assert (visit.said, visit.asked) == ([], [visit.address])


@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_the_site(browser: Browser, name: str) -> None:
    visit = Visit(browser, SITE / f"{name}.html", 390, "dark")
    assert visit.page.locator("h1").count() == 1
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert visit.said == []
    assert [address for address in visit.asked if not address.startswith("file:")] == []
