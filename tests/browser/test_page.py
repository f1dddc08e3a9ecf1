"""What a browser makes of the pages: nothing said, nothing fetched, nothing cut off."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("playwright", reason="make test-page installs it")
pytest.importorskip("jinja2", reason="extra [report]")

from browser_visits import NAMES, PICTURES, Visit, started, written
from playwright.sync_api import Browser

from planner.report.html.origins import KINDS

WINDOWS = [(width, scheme) for width in (1280, 390) for scheme in ("light", "dark")]

CUT_OFF = """() => [...document.querySelectorAll('svg[role=img]')]
  .filter(svg => svg.checkVisibility())
  .flatMap(svg => [...svg.querySelectorAll('text')].filter(text => {
    const box = text.getBoundingClientRect(), frame = svg.getBoundingClientRect();
    return box.left < frame.left - 1.5 || box.right > frame.right + 1.5
      || box.top < frame.top - 1.5 || box.bottom > frame.bottom + 1.5;
  }).map(text => svg.getAttribute('aria-labelledby') + ': ' + text.textContent))"""
SMALLEST = """() => Math.min(...[...document.querySelectorAll('svg[role=img] text')]
  .filter(text => text.checkVisibility())
  .map(text => parseFloat(getComputedStyle(text).fontSize) * text.getCTM().a))"""
OVERLAPS = """() => [...document.querySelectorAll('svg[role=img]')]
  .filter(svg => svg.checkVisibility())
  .flatMap(svg => {
    const texts = [...svg.querySelectorAll('text')].map(t => [t, t.getBoundingClientRect()]);
    return texts.flatMap(([a, p], n) => texts.slice(n + 1).filter(([b, q]) =>
      Math.min(p.right, q.right) - Math.max(p.left, q.left) > 2 &&
      Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top) > 5)
      .map(([b]) => `${svg.getAttribute('aria-labelledby')}: ${a.textContent} / ${b.textContent}`));
  })"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from started()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return written(tmp_path_factory.mktemp("pages"))


@pytest.mark.parametrize(("width", "scheme"), WINDOWS)
@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_said_fetched_or_cut_off(
    browser: Browser, files: dict[str, Path], name: str, width: int, scheme: str
) -> None:
    visit = Visit(browser, files[name], width, scheme)
    page = visit.page
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=PICTURES / f"{name}-{width}-{scheme}.png", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(CUT_OFF) == []
    assert page.evaluate(OVERLAPS) == []
    assert page.evaluate(SMALLEST) >= 11
    page.mouse.wheel(0, 4000)
    assert visit.asked == [visit.address]
    assert visit.said == []


def test_both_schemes_differ_and_neither_is_blank(browser: Browser, files: dict[str, Path]) -> None:
    shades = []
    for scheme in ("light", "dark"):
        page = Visit(browser, files["recommend"], 1280, scheme).page
        colours = [
            page.evaluate(f"getComputedStyle(document.body).{which}")
            for which in ("backgroundColor", "color")
        ]
        shades.append([sum(map(int, c[4:-1].split(", "))) for c in colours])
    (light_paper, light_ink), (dark_paper, dark_ink) = shades
    assert min(light_paper, dark_ink) > 600
    assert max(dark_paper, light_ink) < 150


def test_a_keyboard_reaches_everything(browser: Browser, files: dict[str, Path]) -> None:
    page = Visit(browser, files["recommend"], 1280, "light").page
    reached = []
    for _ in range(60):
        page.keyboard.press("Tab")
        where = "document.activeElement"
        reached.append(page.evaluate(f"{where}.tagName + ' ' + {where}.className").strip())
    assert reached[0] == "A skip"
    assert {"SUMMARY", "PRE command"} <= set(reached)
    page.locator("summary").first.focus()
    table = page.locator("details").first.locator("table")
    assert not table.is_visible()
    page.keyboard.press("Enter")
    assert table.is_visible()


def test_a_screen_reader_gets_a_name_for_every_picture_and_table(
    browser: Browser, files: dict[str, Path]
) -> None:
    page = Visit(browser, files["recommend"], 1280, "light").page
    tree = page.locator("body").aria_snapshot()
    assert tree.count('img "') == page.locator("svg[role=img]:visible").count() == 7
    assert "- img\n" not in tree
    assert 'heading "Yes. 3.2x with DSpark"' in tree
    assert page.locator("h1").count() == 1
    assert page.locator("html").get_attribute("lang") == "en"


@pytest.mark.parametrize(("name", "width"), [*((name, 390) for name in NAMES), ("recommend", 1280)])
def test_a_finger_finds_where_a_figure_comes_from(
    browser: Browser, files: dict[str, Path], name: str, width: int
) -> None:
    """Opens beside the figure, wholly inside the window, and closes again; without any script."""
    page = Visit(browser, files[name], width, "light").page
    shown = page.locator("button[popovertarget]:visible")
    for n in sorted({0, shown.count() // 2, shown.count() - 1}):
        button = shown.nth(n)
        button.scroll_into_view_if_needed()
        button.click(timeout=3000)
        note = page.locator("[popover]:popover-open")
        assert note.count() == 1
        assert note.inner_text().split()[0] in KINDS
        box = note.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        assert box["y"] >= 0
        assert box["y"] + box["height"] <= 900
        page.keyboard.press("Escape")
        assert note.count() == 0


def test_a_key_opens_an_origin_too(browser: Browser, files: dict[str, Path]) -> None:
    page = Visit(browser, files["recommend"], 1280, "light").page
    button = page.locator("dl.tiles button").first
    button.focus()
    page.keyboard.press("Enter")
    assert page.locator("[popover]:popover-open").is_visible()
    tree = page.locator("dl.tiles").aria_snapshot()
    assert 'button "3.2x"' in tree


def test_paper_shows_pictures_and_what_was_opened(
    browser: Browser, files: dict[str, Path], tmp_path: Path
) -> None:
    page = Visit(browser, files["recommend"], 1280, "dark").page
    page.emulate_media(media="print", color_scheme="dark")
    assert not page.locator("nav").is_visible()
    assert page.locator("svg.wide:visible").count() == 7
    tables = page.locator("figure table")
    assert not tables.first.is_visible()
    page.locator("details").first.evaluate("opened => { opened.open = true }")
    assert tables.first.is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    page.pdf(path=tmp_path / "p.pdf", format="A4")
    assert (tmp_path / "p.pdf").stat().st_size > 20_000


def test_a_hostile_name_is_shown_as_text(browser: Browser, tmp_path: Path) -> None:
    from planner import Question, recommend  # noqa: PLC0415  # one test
    from planner.report.html.plan_page import plan_page  # noqa: PLC0415
    from planner.report.html.render import html  # noqa: PLC0415
    from planner.search.anatomy import anatomy  # noqa: PLC0415

    name = "</title><img src=x onerror=alert(1)><script>document.title='owned'</script>"
    question = Question(model="Qwen/Qwen3-8B", gpu="4090", calibration="none")
    plan = recommend(question)
    around = anatomy(question, plan)
    inputs = plan.inputs.model_copy(update={"model_name": name, "gpu_name": name})
    file = tmp_path / "hostile.html"
    file.write_text(
        html(plan_page(plan.model_copy(update={"inputs": inputs}), around)), encoding="utf-8"
    )
    visit = Visit(browser, file, 1280, "light")
    assert name in visit.page.title()
    assert visit.page.locator("img, script").count() == 0
    assert (visit.said, visit.asked) == ([], [visit.address])
