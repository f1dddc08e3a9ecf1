"""The adapter against the real llama-server: counts are asserted, never times."""

import json

import numpy as np
import pytest
from live_server import DRAFT_FIVE, LiveServer

from autotune.engines.detect import detect
from autotune.engines.llamacpp import LlamacppAdapter
from autotune.load.address import Token
from autotune.load.endpoint import Endpoint
from autotune.load.errors import EndpointDown, EndpointError, EndpointRefused
from autotune.load.records import Answer, Message, Request
from planner.acceptance.posterior import AcceptancePosterior, PositionCounts
from planner.acceptance.prior import AcceptanceQuery, prior
from planner.acceptance.spec_counters import SpecCounters

COPY = "Repeat: red, green, blue, red, green, blue, red, green, blue, red, green, blue"
RATES = (0.8, 0.64, 0.512, 0.41, 0.328)
"""Imposed share of rounds that accept at least 1, 2, ... tokens."""


def copying(tokens: int, seed: int = 0, **more: bool) -> Request:
    return Request((Message("user", COPY),), tokens, seed=seed, ignore_eos=True, **more)


def counted(adapter: LlamacppAdapter, request: Request) -> tuple[Answer, SpecCounters]:
    """The answer, and what the metrics counted meanwhile."""
    before = adapter.read_counters().counters
    answer = adapter.generate(request)
    since = adapter.read_counters().counters.since(before)
    assert not since.reset
    return answer, since.counts


def test_drafts_are_counted_alike_by_timings_and_metrics(live_server: LiveServer) -> None:
    with live_server(*DRAFT_FIVE) as endpoint:
        adapter = detect(endpoint)
        assert isinstance(adapter, LlamacppAdapter)
        assert adapter.identify().model == "smollm2"
        answer, counts = counted(adapter, copying(60))
        again, counts_again = counted(adapter, copying(60))
        plain, _ = counted(adapter, Request("one two three one two", 8, logprobs=True))
        with pytest.raises(EndpointError, match="400"):
            endpoint.post_json("/v1/chat/completions", {"messages": "no list"})
    assert answer.drafts is not None
    assert answer.generated_tokens == counts.generated_tokens == 60
    assert answer.drafts.draft_tokens == counts.draft_tokens
    assert answer.drafts.accepted_tokens == counts.accepted_tokens
    assert sum(counts.accepted_per_position) == counts.accepted_tokens
    assert (counts.drafts or 0) >= 2
    # Greedy on one thread: a repeat counts the same.
    assert (again.text, counts_again) == (answer.text, counts)
    assert len(plain.tokens) == plain.generated_tokens
    assert answer.decode_s > 0
    assert answer.ttft_s < answer.total_s


def test_without_speculation_nothing_is_drafted(live_server: LiveServer) -> None:
    with live_server() as endpoint:
        answer, counts = counted(LlamacppAdapter(endpoint), copying(20))
    assert answer.generated_tokens == 20
    assert answer.drafts is None
    assert (counts.drafts, counts.accepted_tokens, counts.accepted_per_position) == (0, 0, ())


def test_imposed_acceptance_is_covered_by_the_posterior(live_server: LiveServer) -> None:
    """80 % intervals of S_k hold the imposed rate in at least 75 % of the seeded runs."""
    belief = AcceptancePosterior(prior(AcceptanceQuery("ngram", draft_len=5)), "ngram")
    held, everything = [], belief
    with live_server(*DRAFT_FIVE, "--spec-synth-rates", ",".join(map(str, RATES))) as endpoint:
        adapter = LlamacppAdapter(endpoint)
        for seed in range(20):
            _, counts = counted(adapter, copying(100, seed))
            run = PositionCounts.of(counts, family="ngram", draft_len=5)
            for position, rate in enumerate(RATES, start=1):
                found = belief.after(run).survival(position)
                held.append(found.low <= rate <= found.high)
            everything = everything.after(run)
    assert np.mean(held) >= 0.75
    tokens = everything.tokens_per_drafted_round(5)
    # The last draft of each run is cut by the end of the output: a few per cent.
    assert tokens.low - 0.15 <= 1.0 + sum(RATES) <= tokens.high + 0.15


def test_a_token_is_asked_for_and_never_shown(live_server: LiveServer) -> None:
    secret = "sk-live-secret"  # noqa: S105 - made up
    with live_server(token=secret) as endpoint:
        with pytest.raises(EndpointRefused, match="PLANNER_API_KEY"):
            LlamacppAdapter(endpoint).read_counters()
        wrong = Endpoint(endpoint.address, token=Token("sk-wrong"))
        with wrong, pytest.raises(EndpointRefused) as refusal:
            LlamacppAdapter(wrong).generate(copying(2))
        with Endpoint(endpoint.address, token=Token(secret)) as right:
            answer = LlamacppAdapter(right).generate(copying(2))
    assert "sk-wrong" not in str(refusal.value)
    assert answer.generated_tokens == 2


def test_a_server_that_is_gone_is_told(live_server: LiveServer) -> None:
    with live_server() as endpoint:
        address = endpoint.address
        props = endpoint.get_json("/props")
    assert json.dumps(props).count("speculative.types") == 1
    with Endpoint(address) as gone, pytest.raises(EndpointDown):
        LlamacppAdapter(gone).read_counters()
