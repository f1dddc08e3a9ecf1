import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwprofiles.device import device_for
from hwprofiles.lookup import find_gpu
from planner.arch.catalog import load_catalog_model
from planner.arch.quant import weight_format
from planner.cost.deployment import Deployment, Offload, reached_flops, step_coefficients
from planner.cost.load import Service, arriving, in_flight, most_requests_per_s
from planner.cost.prefill import prefill_seconds

services = st.builds(
    lambda prefill, output, first, slope: Service(
        prefill, output, (1, 8, 64), (first, first + 7 * slope, first + 63 * slope)
    ),
    st.floats(1e-3, 2.0),
    st.integers(1, 2000),
    st.floats(1e-3, 0.2),
    st.floats(0.0, 0.01),
)


def qwen(offload: Offload | None = None) -> Deployment:
    fmt = weight_format("bf16")
    assert fmt is not None
    card = device_for(find_gpu("4090"))
    arch = load_catalog_model("Qwen/Qwen3-8B")
    return Deployment(arch, fmt, "bf16", card, 1, 1, "vllm", offload=offload)


def test_a_hand_computed_load() -> None:
    """t = 10 ms at any batch, answers of 100 tokens, prompts of 0.1 s.

    Eight sequences decode 8/(100*0.01) = 8 requests/s alone; with prompts between,
    1/(0.1 + 0.125) = 4.44 requests/s, of which prompts take 44 %.
    """
    service = Service(0.1, 100, (1, 1024), (0.01, 0.01))
    found = arriving(service, 4.4)
    assert found is not None
    assert found.batch == 8
    assert found.prefill_share == pytest.approx(0.44)
    assert found.tpot_s == pytest.approx(0.01 / 0.56)
    assert found.ttft_s == pytest.approx(0.1 * (1 + 0.44 / 1.12) + 0.01)
    # The first of 100 tokens comes with the prompt, 99 follow.
    assert found.latency_s == pytest.approx(found.ttft_s + 99 * found.tpot_s)


def test_prompts_alone_can_be_too_much() -> None:
    service = Service(0.5, 100, (1, 1024), (0.01, 0.01))
    assert arriving(service, 2.0) is None
    assert most_requests_per_s(service) < 2.0


@given(services, st.integers(1, 500))
def test_requests_in_flight_are_those_that_decode_or_wait(service: Service, requests: int) -> None:
    found = in_flight(service, requests)
    assert 1 <= found.batch <= requests
    if found.prefill_share > 0.99:  # the wait is capped there
        return
    decoding = found.requests_per_s * found.tpot_s * service.output_len
    assert decoding == pytest.approx(found.batch, rel=0.01)


@given(services, st.floats(1e-3, 50.0))
def test_more_requests_never_need_a_smaller_batch(service: Service, rate: float) -> None:
    less, more = arriving(service, rate), arriving(service, rate * 1.5)
    if less is None:
        assert more is None
    elif more is not None:
        assert more.batch >= less.batch
        assert more.ttft_s >= less.ttft_s - 1e-12


@given(services)
def test_what_is_sustained_is_answered(service: Service) -> None:
    most = most_requests_per_s(service)
    assert arriving(service, 0.99 * most) is not None
    assert arriving(service, 1.01 * most) is None


def test_prefill_of_a_dense_model_is_its_products_over_the_reached_rate() -> None:
    """2 * weights * 4096 tokens over what a 4090 reaches, and attention of a few percent."""
    d = qwen()
    c = step_coefficients(d)
    weights = float(c.weights.active_weights) - d.arch.hidden_size * d.arch.vocab_size
    products = 2 * weights * 4096 / reached_flops(d.device, "bf16", 0.715)
    whole = prefill_seconds(d, c, 4096)
    assert products < whole < 1.3 * products


@given(st.integers(1, 100_000), st.integers(1, 1000))
def test_a_longer_prompt_never_takes_less(prompt: int, more: int) -> None:
    d = qwen()
    c = step_coefficients(d)
    # A new chunk of the engine costs its launch; inside one, time only grows.
    assert prefill_seconds(d, c, prompt + more) >= 0.999 * prefill_seconds(d, c, prompt)


def test_weights_in_host_memory_are_copied_once_a_chunk_when_that_is_faster() -> None:
    d = qwen(Offload(60e9, layer_share=0.5))
    c = step_coefficients(d)
    assert d.device.host_copy_bytes_per_s is not None
    copies = float(c.host.dense_bytes) / d.device.host_copy_bytes_per_s
    extra = prefill_seconds(d, c, 8192) - prefill_seconds(qwen(), step_coefficients(qwen()), 8192)
    assert extra < copies
