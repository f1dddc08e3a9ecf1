"""Each engine's pages and answers, with the right reading of each."""

import json

import httpx
import pytest
from autotune_recorded import answering, recorded

from autotune.engines.detect import ADAPTERS, detect
from autotune.engines.llamacpp import LlamacppAdapter
from autotune.engines.records import EngineName, SpeculationSettings
from autotune.engines.sglang import SglangAdapter
from autotune.engines.trtllm import TrtllmAdapter
from autotune.engines.vllm import VllmAdapter
from autotune.load.records import DraftCounts, Message, Request

CHAT = Request((Message("user", "count"),), max_tokens=24)
LLAMACPP = {
    "/v1/models": "models.json",
    "/props": "props.json",
    "/metrics": "metrics.txt",
    "/v1/chat/completions": "chat.sse",
    "/v1/completions": "completion.sse",
}
VLLM = {
    "/v1/models": "models.json",
    "/version": "version.json",
    "/metrics": "metrics.txt",
    "/v1/chat/completions": "chat.sse",
}
SGLANG = {
    "/v1/models": "models.json",
    "/server_info": "server_info.json",
    "/metrics": "metrics.txt",
    "/v1/chat/completions": "chat.sse",
}
TRTLLM = {
    "/v1/models": "models.json",
    "/version": "version.json",
    "/prometheus/metrics": "metrics.txt",
    "/v1/chat/completions": "chat.sse",
}
PAGES: dict[str, tuple[EngineName, dict[str, str]]] = {
    "llamacpp": ("llama.cpp", LLAMACPP),
    "vllm": ("vllm", VLLM),
    "sglang": ("sglang", SGLANG),
    "trtllm": ("trtllm", TRTLLM),
}


@pytest.mark.parametrize("folder", PAGES)
def test_every_engine_keeps_the_contract(folder: str) -> None:
    name, pages = PAGES[folder]
    endpoint, seen = recorded(folder, pages)
    adapter = detect(endpoint)
    identity, reading, answer = adapter.identify(), adapter.read_counters(), adapter.generate(CHAT)
    assert adapter.name == identity.name == name
    assert identity.model
    assert reading.counters.absurdity() is None
    assert answer.generated_tokens > 0
    assert answer.ttft_s <= answer.total_s
    asked = json.loads(seen[-1].content)
    assert asked["model"] == identity.model
    assert asked["stream_options"] == {"include_usage": True}


def test_the_table_of_adapters_has_every_engine() -> None:
    assert set(ADAPTERS) == {name for name, _ in PAGES.values()}


def test_llamacpp_counts_tokens_not_events() -> None:
    """27 events carry 24 tokens; 19 were drafted, 15 accepted."""
    endpoint, seen = recorded("llamacpp", LLAMACPP)
    answer = LlamacppAdapter(endpoint).generate(CHAT)
    assert (answer.prompt_tokens, answer.generated_tokens) == (52, 24)
    assert answer.drafts == DraftCounts(19, 15)
    assert answer.decode_timed_by == "engine"
    assert answer.decode_s == pytest.approx(0.75523)
    assert answer.tokens_per_s == pytest.approx(23 / 0.75523)
    assert answer.finish_reason == "length"
    assert json.loads(seen[-1].content)["cache_prompt"] is False


def test_llamacpp_shows_positions_once_it_drafted() -> None:
    endpoint, _ = recorded("llamacpp", LLAMACPP | {"/metrics": "metrics_start.txt"})
    before = LlamacppAdapter(endpoint).read_counters().counters
    assert before.drafts == 0
    assert before.accepted_per_position == ()
    endpoint, _ = recorded("llamacpp", LLAMACPP)
    after = LlamacppAdapter(endpoint).read_counters().counters
    since = after.since(before)
    assert not since.reset
    assert since.counts.accepted_tokens == sum(after.accepted_per_position) == 15
    assert since.counts.draft_tokens == 19
    assert since.counts.generated_tokens == 30


def test_llamacpp_never_tells_how_it_drafts() -> None:
    endpoint, _ = recorded("llamacpp", LLAMACPP)
    identity = LlamacppAdapter(endpoint).identify()
    assert identity.speculation is None
    assert "does not tell" in identity.notes[0]


def test_completions_bring_log_probabilities() -> None:
    endpoint, seen = recorded("llamacpp", LLAMACPP)
    answer = LlamacppAdapter(endpoint).generate(Request("one two", 6, logprobs=True))
    assert seen[-1].url.path == "/v1/completions"
    assert len(answer.tokens) == answer.generated_tokens == 6
    assert all(token.logprob < 0 for token in answer.tokens)


def test_vllm_sums_data_parallel_engines_and_leaves_created_out() -> None:
    endpoint, _ = recorded("vllm", VLLM)
    reading = VllmAdapter(endpoint).read_counters()
    assert reading.counters.drafts == 1100
    assert reading.counters.accepted_per_position == (780.0, 580.0, 450.0)
    assert reading.counters.accepted_tokens == sum(reading.counters.accepted_per_position)
    assert reading.counters.generated_tokens == 3060
    assert (reading.running_requests, reading.waiting_requests) == (5.0, 1.0)
    assert reading.draft_len == 3


def test_vllm_tells_off_by_the_missing_counters() -> None:
    endpoint, _ = recorded("vllm", VLLM)
    assert VllmAdapter(endpoint).identify().speculation == SpeculationSettings(None, 3)
    endpoint, _ = recorded("vllm", VLLM | {"/metrics": "metrics_off.txt"})
    assert VllmAdapter(endpoint).identify().speculation == SpeculationSettings("off", 0)


def test_vllm_tells_the_drafts_of_a_request() -> None:
    endpoint, _ = recorded("vllm", VLLM)
    answer = VllmAdapter(endpoint).generate(CHAT)
    assert answer.drafts == DraftCounts(6, 4, drafts=2)
    assert answer.generated_tokens == 7
    assert answer.text == "Hmone two three four."
    assert answer.decode_timed_by == "client"


def test_sglang_sums_split_labels_and_takes_prompts_first_tokens_off() -> None:
    """1020 generated, 4 requests, 258 rounds: 758 accepted, E[L] 3.94 beside the gauge's 3.95."""
    endpoint, _ = recorded("sglang", SGLANG)
    reading = SglangAdapter(endpoint).read_counters()
    counters = reading.counters
    assert (counters.generated_tokens, counters.drafts) == (1020.0, 258.0)
    assert counters.accepted_tokens == 1020 - 4 - 258
    assert counters.tokens_per_drafted_round() == pytest.approx(3.938, abs=1e-3)
    assert reading.tokens_per_round == 3.95
    assert reading.draft_len == 7
    assert counters.draft_tokens == 258 * 7
    assert (reading.running_requests, reading.waiting_requests) == (2.0, 1.0)


def test_sglang_counts_the_root_in_draft_tokens() -> None:
    endpoint, _ = recorded("sglang", SGLANG)
    identity = SglangAdapter(endpoint).identify()
    assert identity.version == "0.5.23"
    assert identity.speculation == SpeculationSettings("eagle3", 7)
    assert "sk-never-shown" not in repr(identity)


@pytest.mark.parametrize(
    ("method", "family"),
    [
        ("eagle", "eagle3"), ("eagle3_one_model", "eagle3"), ("nextn", "mtp"),
        ("deepseek_mtp", "mtp"), ("draft_target", "external"), ("STANDALONE", "external"),
        ("ngram-simple", "ngram"), ("dflash", "dflash"), ("off", None), (None, None),
    ],
)  # fmt: skip
def test_the_engines_words_name_a_family(method: str | None, family: str | None) -> None:
    assert SpeculationSettings(method, 3).family == family


def test_sglang_under_its_older_page_name() -> None:
    pages = {("/get_server_info" if k == "/server_info" else k): v for k, v in SGLANG.items()}
    endpoint, _ = recorded("sglang", pages)
    assert SglangAdapter(endpoint).identify().speculation is not None
    endpoint, _ = recorded("sglang", {k: v for k, v in SGLANG.items() if k != "/server_info"})
    assert SglangAdapter(endpoint).identify().speculation is None


def test_trtllm_reads_positions_of_its_own_label() -> None:
    """The fourth position was drafted 200 times and never accepted: it has no series."""
    endpoint, _ = recorded("trtllm", TRTLLM)
    reading = TrtllmAdapter(endpoint).read_counters()
    assert reading.counters.drafts == 200
    assert reading.counters.accepted_per_position == (160.0, 110.0, 80.0, 0.0)
    assert reading.counters.draft_tokens == 800
    assert reading.tokens_per_round == 2.75
    assert reading.running_requests == 5.0
    assert TrtllmAdapter(endpoint).identify().speculation == SpeculationSettings("eagle3", 4)


def test_trtllm_iterations_are_added_up_since_reading_empties_them() -> None:
    pages = {k: v for k, v in TRTLLM.items() if k != "/prometheus/metrics"}
    endpoint, _ = recorded("trtllm", pages | {"/metrics": "iterations.json"})
    adapter = TrtllmAdapter(endpoint)
    once, twice = adapter.read_counters(), adapter.read_counters()
    assert once.counters.tokens_per_drafted_round() == pytest.approx(1 + 8 / 4)
    assert twice.counters.since(once.counters).counts == once.counters
    assert once.running_requests == 2.0
    assert "settings unknown" in adapter.identify().notes[0]


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-1", "1e300", "0.2"])
def test_sglang_gauges_that_cannot_be_are_left_out(value: str) -> None:
    pages = {"/v1/models": httpx.Response(200, json={"data": [{"id": "m", "owned_by": "sglang"}]})}
    text = f"sglang:spec_accept_length {value}\nsglang:spec_num_draft_tokens 8\n"
    pages["/metrics"] = httpx.Response(200, text=text)
    endpoint = answering(lambda request: pages.get(request.url.path, httpx.Response(404)))
    assert SglangAdapter(endpoint).read_counters().tokens_per_round is None


def test_a_draft_length_that_no_engine_has_is_none() -> None:
    assert SpeculationSettings.told("eagle3", 10**9).draft_len is None
    assert SpeculationSettings.told("eagle3", -1).draft_len is None
    assert SpeculationSettings.told("eagle3", 7).draft_len == 7
