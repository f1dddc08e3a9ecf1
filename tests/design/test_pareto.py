"""The front holds exactly the designs that no other beats."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from planner.design.pareto import beats, front, thinned

RANK_NATS = {0.0: 0.0, -1.0: -0.02, -2.0: -0.03, -3.0: -0.07}


@st.composite
def score_tables(draw: st.DrawFn) -> np.ndarray:
    objectives = draw(st.integers(1, 4))
    value = st.one_of(st.integers(0, 3).map(float), st.floats(-1e6, 1e6, allow_nan=False, width=32))
    rows = draw(
        st.lists(
            st.tuples(
                st.lists(value, min_size=objectives, max_size=objectives),
                st.sampled_from(sorted(RANK_NATS)),
            ),
            min_size=1,
            max_size=40,
        )
    )
    return np.array([[*hard, rank, RANK_NATS[rank]] for hard, rank in rows])


@given(scores=score_tables(), noise=st.sampled_from([0.0, 0.03]))
def test_no_design_of_the_front_is_beaten_and_every_other_is(
    scores: np.ndarray, noise: float
) -> None:
    chosen = set(front(scores, noise).tolist())
    assert chosen
    for i in range(len(scores)):
        beaten_by = [j for j in range(len(scores)) if beats(scores[j], scores[[i]].T, noise)[0]]
        assert (i in chosen) == (not beaten_by)


@given(scores=score_tables(), step=st.sampled_from([0.01, 1.0, 100.0]))
def test_thinning_keeps_designs_of_the_front(scores: np.ndarray, step: float) -> None:
    exact = front(scores, 0.03)
    kept = thinned(scores[exact], np.full(scores.shape[1], step))
    assert len(kept) >= 1
    assert len(kept) <= len(exact)
    assert len(set(kept.tolist())) == len(kept)


def test_two_designs_within_the_recipe_noise_are_not_ranked_by_quality() -> None:
    safer, riskier = np.array([1.0, 0.0, 0.0]), np.array([[1.0, -1.0, -0.02]]).T
    assert not beats(safer, riskier, 0.03)[0]
    much_riskier = np.array([[1.0, -3.0, -0.07]]).T
    assert beats(safer, much_riskier, 0.03)[0]


def test_a_faster_design_of_a_riskier_class_does_not_beat_a_safer_one() -> None:
    faster, safer = np.array([2.0, -1.0, -0.02]), np.array([[1.0, 0.0, 0.0]]).T
    assert not beats(faster, safer, 0.03)[0]
    assert beats(np.array([2.0, 0.0, 0.0]), np.array([[1.0, -1.0, -0.02]]).T, 0.03)[0]
