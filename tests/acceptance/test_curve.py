"""Properties of the acceptance curve and hand-computed values."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwprofiles.errors import InputError
from planner.acceptance.constants import curve_from_tokens_per_round, family_decay
from planner.acceptance.curve import AcceptanceCurve, curve_from_positions, solve_first

FAMILIES = ("external", "eagle3", "mtp", "dflash", "dspark", "ngram")


@st.composite
def curves(draw: st.DrawFn) -> AcceptanceCurve:
    mean = draw(st.none() | st.floats(0.0, 20.0))
    return AcceptanceCurve(
        first=draw(st.floats(0.0, 1.0)),
        decay=draw(st.floats(0.5, 1.3)),
        max_draft_len=draw(st.none() | st.integers(0, 20)),
        log_sd=draw(st.floats(0.0, 0.6)),
        kind="assumed",
        source="test",
        draft_share=draw(st.floats(0.0, 1.0)),
        mean_draft_len=mean,
        head=tuple(draw(st.lists(st.floats(0.0, 1.0), max_size=4))),
    )


@given(curve=curves(), draft_len=st.integers(0, 70))
def test_one_more_draft_token_never_lowers_tokens_per_round(
    curve: AcceptanceCurve, draft_len: int
) -> None:
    assert curve.tokens_per_round(draft_len + 1) >= curve.tokens_per_round(draft_len) - 1e-12


@given(curve=curves(), draft_len=st.integers(0, 70))
def test_tokens_per_round_stays_within_its_definition(
    curve: AcceptanceCurve, draft_len: int
) -> None:
    tokens = curve.tokens_per_round(draft_len)
    low, high = curve.interval(draft_len)
    assert 1.0 <= low <= tokens + 1e-12
    assert tokens - 1e-12 <= high <= draft_len + 1 + 1e-9


@given(curve=curves())
def test_no_draft_is_exactly_one_token(curve: AcceptanceCurve) -> None:
    assert curve.tokens_per_round(0) == 1.0
    assert curve.log_sd_at(0) == 0.0


@given(curve=curves(), lengths=st.lists(st.integers(0, 64), min_size=1, max_size=8))
def test_arrays_and_numbers_agree(curve: AcceptanceCurve, lengths: list[int]) -> None:
    together = curve.tokens_per_round(np.asarray(lengths))
    assert together == pytest.approx([curve.tokens_per_round(d) for d in lengths], abs=1e-12)


@given(family=st.sampled_from(FAMILIES), draft_len=st.integers(1, 32), share=st.floats(0.0, 1.0))
def test_inverse_of_the_inverse_is_the_identity(family: str, draft_len: int, share: float) -> None:
    stated = 1.0 + share * draft_len
    curve = curve_from_tokens_per_round(family, stated, draft_len)
    assert curve.tokens_per_round(draft_len) == pytest.approx(stated, abs=1e-6)
    again = solve_first(curve.decay, curve.tokens_per_round(draft_len), draft_len)[0]
    assert AcceptanceCurve(
        again, curve.decay, None, 0.0, "assumed", "", cap=curve.cap
    ).tokens_per_round(draft_len) == pytest.approx(stated, abs=1e-5)


@given(st.lists(st.floats(0.01, 1.0), min_size=1, max_size=12))
def test_positions_give_back_their_own_sum(conditional: list[float]) -> None:
    survival = np.cumprod(conditional).tolist()
    curve = curve_from_positions(survival, decay=0.97, log_sd=0.05)
    assert curve.tokens_per_round(len(survival)) == pytest.approx(1.0 + sum(survival))
    assert curve.survival(len(survival)) == pytest.approx(survival[-1])


def test_geometric_decay_by_hand() -> None:
    # a = .8, .72, .648 -> S = .8, .576, .373248
    curve = AcceptanceCurve(0.8, 0.9, None, 0.2, "assumed", "hand")
    assert curve.tokens_per_round(3) == pytest.approx(1 + 0.8 + 0.576 + 0.373248)
    assert curve.survival(2) == pytest.approx(0.576)


def test_a_block_drafter_gains_nothing_beyond_its_block() -> None:
    curve = AcceptanceCurve(0.8, 0.98, 7, 0.2, "assumed", "hand")
    assert curve.tokens_per_round(15) == curve.tokens_per_round(7)
    assert curve.survival(8) == 0.0


def test_rounds_without_a_draft_yield_one_token() -> None:
    # p = .25 of rounds draft; a drafted round of D=2 yields 1 + .5 + .25
    curve = AcceptanceCurve(0.5, 1.0, None, 0.2, "assumed", "hand", draft_share=0.25)
    assert curve.tokens_per_round(2) == pytest.approx(0.25 * 1.75 + 0.75)


def test_short_drafts_are_less_doubtful_than_long_ones() -> None:
    curve = AcceptanceCurve(0.8, 0.97, None, 0.25, "assumed", "hand")
    assert curve.log_sd_at(1) < curve.log_sd_at(3) < curve.log_sd_at(7) == pytest.approx(0.25)


def test_family_decay_follows_the_published_medians() -> None:
    assert [family_decay(f) for f in ("dflash", "dspark", "eagle3", "mtp", "external")] == [
        0.982,
        0.990,
        0.970,
        0.954,
        0.97,
    ]


@pytest.mark.parametrize(("tokens", "draft_len"), [(0.9, 3), (4.5, 3), (math.nan, 3), (2.0, 0)])
def test_impossible_tokens_per_round_are_refused(tokens: float, draft_len: int) -> None:
    with pytest.raises(InputError, match="within"):
        curve_from_tokens_per_round("eagle3", tokens, draft_len)


@pytest.mark.parametrize("positions", [[], [0.5, 0.6], [1.2], [-0.1]])
def test_impossible_positions_are_refused(positions: list[float]) -> None:
    with pytest.raises(InputError):
        curve_from_positions(positions, decay=0.97, log_sd=0.05)
