"""What is believed after counting rounds whose true acceptance is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.acceptance.curve import AcceptanceCurve
from planner.acceptance.posterior import AcceptancePosterior, PositionCounts
from planner.acceptance.prior import AcceptanceQuery, prior
from planner.acceptance.spec_counters import SpecCounters

TRUTHS = (
    (0.8, 0.7, 0.6, 0.5, 0.4),
    (0.5, 0.4, 0.5, 0.9, 0.9),
    (0.3, 0.3, 0.3, 0.3),
    (0.95, 0.95, 0.95),
    (1.0, 1.0, 0.0),
)
FAMILIES = ("eagle3", "mtp", "ngram", "external")


def believed(family: str) -> AcceptancePosterior:
    return AcceptancePosterior(prior(AcceptanceQuery(family, draft_len=5)), family)


def counted(truth: tuple[float, ...], rounds: int, seed: int) -> PositionCounts:
    """Rounds of a drafter with these conditional acceptances."""
    rng, left, accepted = np.random.default_rng(seed), rounds, []
    for share in truth:
        left = int(rng.binomial(left, share))
        accepted.append(float(left))
    return PositionCounts(float(rounds), tuple(accepted), float(rounds))


@st.composite
def counts(draw: st.DrawFn) -> PositionCounts:
    rounds = left = draw(st.integers(1, 5000))
    accepted = []
    for _ in range(draw(st.integers(1, 8))):
        left = draw(st.integers(0, left))
        accepted.append(float(left))
    return PositionCounts(
        float(rounds), tuple(accepted), float(rounds + draw(st.integers(0, 5000)))
    )


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("truth", TRUTHS)
def test_intervals_cover_the_true_positions(family: str, truth: tuple[float, ...]) -> None:
    """80 % intervals of a_k and of S_k: at least 75 % of the runs."""
    survival = np.cumprod(truth)
    held = []
    for seed in range(80):
        belief = believed(family).after(counted(truth, 200, seed))
        for k, share in enumerate(truth, start=1):
            for found, true in (
                (belief.conditional(k), share),
                (belief.survival(k), survival[k - 1]),
            ):
                held.append(found.low - 1e-12 <= true <= found.high + 1e-12)
    assert np.mean(held) >= 0.75


def test_tokens_per_round_are_covered_and_narrow() -> None:
    truth, held = TRUTHS[0], []
    true = 1.0 + float(np.cumprod(truth).sum())
    for seed in range(100):
        found = believed("eagle3").after(counted(truth, 400, seed)).tokens_per_drafted_round(5)
        held.append(found.low <= true <= found.high)
        assert found.high - found.low < 0.4
    assert np.mean(held) >= 0.72


@pytest.mark.parametrize("family", ["eagle3", "mtp"])
def test_a_draft_length_never_tried_is_covered(family: str) -> None:
    """Truth follows the family's law, counted at D = 3, asked at D = 7."""
    decay, held = {"eagle3": 0.97, "mtp": 0.954}[family], []
    truth = tuple(0.8 * decay**k for k in range(7))
    true = 1.0 + float(np.cumprod(truth).sum())
    for seed in range(60):
        found = believed(family).after(counted(truth[:3], 500, seed)).tokens_per_drafted_round(7)
        held.append(found.low <= true <= found.high)
        assert found.low < found.mean < found.high
    assert np.mean(held) >= 0.72


@given(seen=counts(), family=st.sampled_from(FAMILIES), draft_len=st.integers(1, 12))
def test_figures_stay_in_range(seen: PositionCounts, family: str, draft_len: int) -> None:
    belief = believed(family).after(seen)
    for k in (1, draft_len):
        for found in (belief.conditional(k), belief.survival(k)):
            assert 0.0 <= found.low <= found.high <= 1.0
    tokens = belief.tokens_per_drafted_round(draft_len)
    assert 1.0 <= tokens.low <= tokens.high <= draft_len + 1.0
    longer = belief.token_draws((draft_len, draft_len + 1))
    assert np.all(longer[:, 1] >= longer[:, 0])
    assert np.all((belief.share_draws() >= 0) & (belief.share_draws() <= 1))


@given(seen=counts(), family=st.sampled_from(FAMILIES))
def test_the_curve_says_what_the_belief_does(seen: PositionCounts, family: str) -> None:
    belief, draft_len = believed(family).after(seen), len(seen.accepted)
    curve = belief.curve(draft_len)
    assert isinstance(curve, AcceptanceCurve)
    assert curve.kind == "measured"
    low, high = curve.interval(draft_len)
    drafted = 1.0 + curve.draft_share * (belief.tokens_per_drafted_round(draft_len).mean - 1.0)
    assert low - 0.05 <= drafted <= high + 0.05


def test_no_counts_leave_the_prior() -> None:
    belief = believed("eagle3")
    assert belief.curve(5).kind == belief.prior.kind
    assert belief.conditional(1).mean == pytest.approx(belief.prior.first, abs=0.01)


def test_more_rounds_narrow_the_interval_and_dispersion_widens_it() -> None:
    few, many = (believed("eagle3").after(counted(TRUTHS[0], n, 0)) for n in (100, 10_000))
    clustered = AcceptancePosterior(many.prior, "eagle3", many.counts, dispersion=9.0)
    widths = [
        x.high - x.low for x in (b.tokens_per_drafted_round(5) for b in (few, many, clustered))
    ]
    assert widths[1] < 0.2 * widths[0]
    assert widths[2] == pytest.approx(3.0 * widths[1], rel=0.25)


def test_counts_of_an_engine_with_positions() -> None:
    seen = SpecCounters(100.0, 300.0, 150.0, (80.0, 50.0, 20.0), 350.0)
    found = PositionCounts.of(seen, family="eagle3", draft_len=3)
    assert found == PositionCounts(100.0, (80.0, 50.0, 20.0), 200.0)
    assert found.trials == (100.0, 80.0, 50.0)


def test_counts_of_an_engine_without_positions_keep_their_mean() -> None:
    seen = SpecCounters(drafts=258.0, accepted_tokens=758.0, generated_tokens=1020.0)
    found = PositionCounts.of(seen, family="eagle3", draft_len=7)
    assert sum(found.accepted) == pytest.approx(758.0, rel=1e-6)
    assert found.all_rounds == 262.0
    assert PositionCounts.of(seen, family="eagle3", draft_len=None).accepted == ()


@given(a=counts(), b=counts())
def test_counts_add_and_subtract(a: PositionCounts, b: PositionCounts) -> None:
    back = a.plus(b).minus(b)
    assert back.rounds == a.rounds
    assert back.all_rounds == a.all_rounds
    assert back.accepted[: len(a.accepted)] == a.accepted
    assert sum(back.accepted) == sum(a.accepted)
