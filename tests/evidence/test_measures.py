from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.evidence.measures import draft_len_losses, figures, mean, quantile, right, verdict_of
from planner.evidence.records import EvidenceRow, Outcome


def row(
    speedup: float, *, origin: str = "a", draft_len: int = 3, tokens: float | None = None
) -> EvidenceRow:
    ask = {"model": "m", "gpu": "g", "drafter": "mtp", "draft_len": draft_len, "batch": 1}
    return EvidenceRow(
        row_id="x",
        origin=origin,
        source="s",
        basis="table",
        ask=ask,
        gpu_stated="g",
        speedup=speedup,
        tokens_per_round=tokens,
        round_cost_ratio=None,
    )


def outcome(
    measured: EvidenceRow, predicted: float, *, verdict: str = "helps", ratio: float | None = None
) -> Outcome:
    low, high = predicted * 0.8, predicted * 1.25
    blind = {
        "speedup": predicted,
        "speedup_lo": low,
        "speedup_hi": high,
        "verdict": verdict,
    }
    return Outcome(measured, blind, {"round_cost_ratio": ratio} if ratio else None)


def test_an_origin_weighs_the_root_of_its_rows() -> None:
    # a: 9 rows of value 1, each 1/3, together 3; b: 4 rows of value 2, each 1/2, together 2.
    pairs = [("a", 1.0)] * 9 + [("b", 2.0)] * 4
    assert quantile(pairs, 0.59) == 1.0
    assert quantile(pairs, 0.61) == 2.0
    assert mean(pairs) == pytest.approx((3 * 1.0 + 2 * 2.0) / 5)


def test_origins_with_few_rows_do_not_count() -> None:
    pairs = [("a", 1.0)] * 3 + [("b", 9.0)] * 2
    assert quantile(pairs, 0.99) == 1.0
    assert mean(pairs) == 1.0
    assert quantile(pairs[3:], 0.5) is None
    assert mean(pairs[3:]) is None


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 9)), max_size=30),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_a_quantile_is_a_value_and_rises_with_its_share(
    pairs: list[tuple[str, float]], one: float, other: float
) -> None:
    low, high = (quantile(pairs, share) for share in sorted((one, other)))
    if low is None or high is None:
        assert low is high
    else:
        assert low <= high
        assert {low, high} <= {value for _, value in pairs}


@pytest.mark.parametrize(
    ("said", "measured", "agrees"),
    [
        ("helps", 1.03, True),
        ("helps", 1.02, False),
        ("hurts", 0.97, True),
        ("neutral", 1.04, True),
        ("neutral", 1.06, False),
        ("neutral", 0.94, False),
    ],
)
def test_a_verdict_agrees_with_the_measurement(said: str, measured: float, agrees: bool) -> None:
    assert right(said, measured) is agrees


def test_a_measured_speedup_has_a_verdict() -> None:
    assert [verdict_of(x) for x in (0.97, 0.98, 1.02, 1.03)] == [
        "hurts",
        "neutral",
        "neutral",
        "helps",
    ]


def test_the_loss_is_that_of_the_length_ranked_first() -> None:
    # Ranked first: D = 5 (predicted 2.0), measured 1.5; best measured 2.0 at D = 3.
    sweep = [
        outcome(row(1.8, draft_len=1), 1.7),
        outcome(row(2.0, draft_len=3), 1.9),
        outcome(row(1.5, draft_len=5), 2.0),
    ]
    assert draft_len_losses(sweep) == [pytest.approx(0.25)]
    assert draft_len_losses(sweep[:2]) == []


def test_rows_of_another_card_are_another_sweep() -> None:
    sweep = [outcome(row(1.0 + d, draft_len=d, origin=f"o{d}"), 2.0) for d in (1, 2, 3)]
    assert draft_len_losses(sweep) == []


def test_figures_of_four_rows_by_hand() -> None:
    outcomes = [
        # R measured 3/1.5 = 2, predicted 2.2: 10 % off; speedup 1.8 for 1.5: 20 % off, inside.
        outcome(row(1.5, tokens=3.0), 1.8, ratio=2.2),
        # R measured 2/1 = 2, predicted 1.0: 50 % off; speedup 2 for 1: 100 % off, outside.
        outcome(row(1.0, tokens=2.0), 2.0, verdict="neutral", ratio=1.0),
        # R measured 1.6/0.8 = 2, predicted 2: right; 1.2 for 0.8: 50 % off, said helps, hurts.
        outcome(row(0.8, tokens=1.6), 1.2, ratio=2.0),
        Outcome(row(1.4), {"error": "no such model"}, None),
    ]
    found = figures(outcomes)
    assert found.answered == 0.75
    assert (found.ratio_rows, found.hurts_rows, found.false_helps) == (3, 1, 1.0)
    assert found.ratio_median == pytest.approx(0.1)
    assert found.ratio_p90 == pytest.approx(0.5)
    assert found.blind_median == pytest.approx(0.5)
    assert found.blind_p90 == pytest.approx(1.0)
    assert found.coverage80 == pytest.approx(1 / 3)
    assert found.verdict_right == pytest.approx(2 / 3)
    assert (found.sweeps, found.draft_len_loss_median) == (0, None)
    assert (found.plain_rows, found.plain_median) == (0, None)


def test_the_plain_speed_is_that_of_one_sequence() -> None:
    one = replace(row(1.5), baseline_tok_s=50.0)
    many = replace(one, ask={**one.ask, "batch": 8})
    outcomes = [
        Outcome(r, {**outcome(r, 1.5).blind, **_plain(speed)}, None)
        for r, speed in ((one, 60.0), (one, 45.0), (one, 55.0), (many, 400.0))
    ]
    found = figures(outcomes)
    assert found.plain_rows == 3
    assert found.plain_median == pytest.approx(0.1)
    assert found.plain_coverage80 == pytest.approx(2 / 3)


def _plain(speed: float) -> dict[str, float]:
    return {
        "baseline_tok_s": speed,
        "baseline_tok_s_lo": 0.9 * speed,
        "baseline_tok_s_hi": 1.12 * speed,
    }
