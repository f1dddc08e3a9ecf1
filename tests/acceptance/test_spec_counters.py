"""Growing counts: differences, restarts, and values that cannot be counts."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.acceptance.spec_counters import SpecCounters


@st.composite
def counters(draw: st.DrawFn) -> SpecCounters:
    """Counts that one engine could show."""
    drafts = draw(st.integers(0, 10_000))
    positions, most = [], drafts
    for _ in range(draw(st.integers(0, 8))):
        most = draw(st.integers(0, most))
        positions.append(float(most))
    accepted = float(sum(positions))
    return SpecCounters(
        drafts=float(drafts),
        draft_tokens=accepted + draw(st.integers(0, 1000)),
        accepted_tokens=accepted,
        accepted_per_position=tuple(positions),
        generated_tokens=accepted + draw(st.integers(0, 5000)),
    )


def added(a: SpecCounters, b: SpecCounters) -> SpecCounters:
    width = max(len(a.accepted_per_position), len(b.accepted_per_position))
    padded = [
        x.accepted_per_position + (0.0,) * (width - len(x.accepted_per_position)) for x in (a, b)
    ]
    return SpecCounters(
        drafts=(a.drafts or 0) + (b.drafts or 0),
        draft_tokens=(a.draft_tokens or 0) + (b.draft_tokens or 0),
        accepted_tokens=(a.accepted_tokens or 0) + (b.accepted_tokens or 0),
        accepted_per_position=tuple(x + y for x, y in zip(*padded, strict=True)),
        generated_tokens=(a.generated_tokens or 0) + (b.generated_tokens or 0),
    )


@given(before=counters(), more=counters())
def test_what_was_added_comes_back(before: SpecCounters, more: SpecCounters) -> None:
    since = added(before, more).since(before)
    assert not since.reset
    assert since.counts.drafts == more.drafts
    assert since.counts.accepted_tokens == more.accepted_tokens
    assert sum(since.counts.accepted_per_position) == sum(more.accepted_per_position)
    assert since.counts.absurdity() is None


@given(before=counters(), after=counters())
def test_a_difference_is_never_negative(before: SpecCounters, after: SpecCounters) -> None:
    since = after.since(before)
    assert (since.counts.drafts or 0) >= 0
    assert all(count >= 0 for count in since.counts.accepted_per_position)
    if since.reset:
        assert since.counts == after


def test_a_count_that_fell_is_a_restart_and_counts_from_zero() -> None:
    before = SpecCounters(drafts=100.0, draft_tokens=300.0, accepted_tokens=150.0)
    after = SpecCounters(drafts=7.0, draft_tokens=21.0, accepted_tokens=9.0)
    since = after.since(before)
    assert since.reset
    assert since.counts.tokens_per_drafted_round() == pytest.approx(1 + 9 / 7)


def test_a_series_that_vanished_is_a_restart() -> None:
    """llama-server shows positions only after its first drafted request."""
    before = SpecCounters(drafts=5.0, accepted_per_position=(4.0, 2.0))
    assert SpecCounters(drafts=9.0).since(before).reset is False
    assert SpecCounters(drafts=9.0, accepted_per_position=(1.0,)).since(before).reset is True


def test_what_is_not_counted_stays_unknown() -> None:
    since = SpecCounters(accepted_tokens=9.0).since(SpecCounters(accepted_tokens=4.0))
    assert since.counts.drafts is None
    assert since.counts.accepted_tokens == 5.0
    assert since.counts.tokens_per_drafted_round() is None
    assert SpecCounters().mean_draft_len() is None


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        (SpecCounters(drafts=math.nan), "drafts"),
        (SpecCounters(drafts=-1.0), "drafts"),
        (SpecCounters(generated_tokens=math.inf), "generated_tokens"),
        (SpecCounters(draft_tokens=1e300), "draft_tokens"),
        (SpecCounters(draft_tokens=5.0, accepted_tokens=6.0), "6 tokens accepted of 5"),
        (SpecCounters(drafts=5.0, accepted_per_position=(3.0, 4.0)), "position 2"),
        (SpecCounters(drafts=5.0, accepted_per_position=(6.0,)), "position 1"),
    ],
)
def test_absurd_counts_are_told(counts: SpecCounters, said: str) -> None:
    assert said in (counts.absurdity() or "")


@given(counts=counters())
def test_possible_counts_are_not_called_absurd(counts: SpecCounters) -> None:
    assert counts.absurdity() is None
    tokens, length = counts.tokens_per_drafted_round(), counts.mean_draft_len()
    if tokens is not None and length is not None:
        assert 1.0 <= tokens <= 1.0 + length
