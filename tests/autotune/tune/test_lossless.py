"""Texts of the arms against the baseline's: what is said, and what is never claimed."""

import math

import pytest

from autotune.tune.lossless import compare_cells
from autotune.tune.records import Cell, Sample

TOKENS = (("The", -0.01), (" cat", math.log(0.52)), (" sat", -0.02))
"""The baseline nearly said another animal."""


def _cell(arm: str, *texts: str) -> Cell:
    samples = tuple(
        Sample(prompt_id=f"p{k}", workload="chat", tokens=9, ttft_s=0, decode_s=1, text=text)
        for k, text in enumerate(texts)
    )
    return Cell(block=0, place=0, arm=arm, samples=samples)


def test_equal_texts_are_the_same() -> None:
    found = compare_cells([_cell("off", "a b"), _cell("d", "a b")], {}, temperature=0)
    assert (found.state, found.compared, found.differing) == ("same", 1, 0)


def test_a_text_cut_a_token_earlier_is_the_same() -> None:
    found = compare_cells([_cell("off", "a b c"), _cell("d", "a b")], {}, temperature=0)
    assert found.state == "same"


def test_a_close_call_is_within_numeric_noise() -> None:
    cells = [_cell("off", "The cat sat"), _cell("d", "The dog ran")]
    found = compare_cells(cells, {"p0": TOKENS}, temperature=0)
    assert found.state == "within noise"
    assert found.differences[0].at == 4
    assert found.differences[0].probability == pytest.approx(0.52)
    assert "quality" in found.sentence


@pytest.mark.parametrize(
    ("text", "at", "probability"),
    [
        ("A cat sat", 0, math.exp(-0.01)),
        ("They sat", 3, 0.52),
        ("The cat sits", 9, math.exp(-0.02)),
    ],
)
def test_the_token_that_covers_the_first_difference_counts(
    text: str, at: int, probability: float
) -> None:
    """At 3 the baseline's first token is over and its second begins."""
    cells = [_cell("off", "The cat sat"), _cell("d", text)]
    (found,) = compare_cells(cells, {"p0": TOKENS}, temperature=0).differences
    assert (found.at, found.probability) == (at, pytest.approx(probability))


def test_a_sure_token_that_changed_is_not_explained_by_rounding() -> None:
    cells = [_cell("off", "The cat sat"), _cell("d", "The cat ran")]
    found = compare_cells(cells, {"p0": TOKENS}, temperature=0)
    assert found.state == "not explained"


def test_without_log_probabilities_nothing_is_claimed() -> None:
    found = compare_cells([_cell("off", "a b"), _cell("d", "a c")], {}, temperature=0)
    assert found.state == "not known"
    assert "cannot be told" in found.sentence


def test_sampled_texts_are_not_compared() -> None:
    found = compare_cells([_cell("off", "a"), _cell("d", "b")], {}, temperature=0.7)
    assert (found.state, found.compared) == ("not checked", 0)
    assert compare_cells([_cell("d", "b")], {}, temperature=0).state == "not checked"
