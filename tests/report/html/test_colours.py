"""The style sheet's colours: readable in both schemes, and apart for colour-blind eyes too."""

import re
from importlib.resources import files
from itertools import combinations, pairwise

import numpy as np
import numpy.typing as npt
import pytest

Colours = dict[str, npt.NDArray[np.float64]]
STYLE = files("planner.report.html").joinpath("templates", "page.css").read_text("utf-8")
SERIES = [f"s{n}" for n in range(1, 7)]
HEAT = [f"q{n}" for n in range(1, 8)]
# Machado, Oliveira, Fernandes 2009: severity 1.0, on linear RGB.
EYES = {
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
                   [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                     [-0.011820, 0.042940, 0.968881]],
    "usual": np.eye(3).tolist(),
}  # fmt: skip


def scheme(block: str) -> Colours:
    found = re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block)
    return {name: linear(colour) for name, colour in found}


def linear(colour: str) -> npt.NDArray[np.float64]:
    value = np.array([int(colour[n : n + 2], 16) for n in (1, 3, 5)]) / 255
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def contrast(a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> float:
    """WCAG 2.2 contrast ratio."""
    light = [float(c @ [0.2126, 0.7152, 0.0722]) + 0.05 for c in (a, b)]
    return max(light) / min(light)


def lab(colour: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    t = (xyz @ np.clip(colour, 0, 1)) / [0.9505, 1.0, 1.089]
    f = np.where(t > 0.008856, np.cbrt(t), 7.787 * t + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


_LIGHT, _REST = STYLE.split("@media (prefers-color-scheme: dark)")
_DARK, _PRINT = _REST.split("* { box-sizing", 1)
SCHEMES = {"light": scheme(_LIGHT), "dark": scheme(_DARK), "print": scheme(_PRINT)}


@pytest.mark.parametrize("name", SCHEMES)
def test_text_is_readable(name: str) -> None:
    c = SCHEMES[name]
    for ink in ("ink", "soft", "good", "bad", "open", *SERIES):
        for paper in ("card", "bg"):
            assert contrast(c[ink], c[paper]) >= 4.5, (ink, paper)
    for part in SERIES:
        assert contrast(c["on-part"], c[part]) >= 4.5, part
    for n, level in enumerate(HEAT, start=1):
        text = "deep-text" if n >= 5 else "light-text"
        assert contrast(c[text], c[level]) >= 4.5, level
    assert contrast(c["soft"], c["idle"]) >= 4.5


@pytest.mark.parametrize("name", SCHEMES)
@pytest.mark.parametrize("eye", EYES)
def test_series_differ(name: str, eye: str) -> None:
    c = SCHEMES[name]
    seen = {s: lab(np.array(EYES[eye]) @ c[s]) for s in SERIES}
    for a, b in combinations(SERIES, 2):
        assert np.linalg.norm(seen[a] - seen[b]) > 10, (a, b)


@pytest.mark.parametrize("name", SCHEMES)
def test_heat_goes_one_way(name: str) -> None:
    lightness = [float(lab(SCHEMES[name][level])[0]) for level in HEAT]
    steps = [b - a for a, b in pairwise(lightness)]
    assert min(map(abs, steps)) > 3
    assert len({step > 0 for step in steps}) == 1


def test_nothing_moves() -> None:
    """So `prefers-reduced-motion` has nothing to switch off."""
    assert not re.search(r"transition|animation|@keyframes|scroll-behavior", STYLE)


def test_text_of_a_note_and_a_file_stands_on_the_same_paper() -> None:
    """Whatever states a background states one that the contrasts above are measured on."""
    papers = set(re.findall(r"background(?:-color)?: ([^;}]+)", STYLE))
    assert papers <= {"var(--bg)", "var(--card)", "var(--rule)"}


def test_print_is_light() -> None:
    light, paper = SCHEMES["light"], SCHEMES["print"]
    assert set(paper) >= set(light) - {"focus"}
