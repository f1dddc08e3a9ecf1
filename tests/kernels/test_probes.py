"""The probes' kernels and calls: right numbers in the interpreter, times on a card."""

import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import typer
from typer.testing import CliRunner

from autotune.calibrate.card import UnsupportedProbe
from autotune.calibrate.probes import (
    AllReduceProbe,
    AttentionProbe,
    CopyProbe,
    ExpertProbe,
    GemmProbe,
    LaunchProbe,
    Probe,
    StreamProbe,
)
from autotune.calibrate.torch_calls import MOST_COPIES, calls_of, copies
from autotune.calibrate.torch_card import bus_id
from autotune.commands.calibrate import command
from hwprofiles.calibration import read_calibration
from spec_kernels.errors import BadTensor
from spec_kernels.probes.launch import expert_products, read, read_sums

CPU = torch.device("cpu")
KIB = 1024


@pytest.mark.parametrize("count", [1, 1000, 16384, 16385, 40000])
def test_a_stream_is_read_whole_and_once(count: int) -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    source = torch.arange(count, dtype=torch.float32, device=device) % 7
    sums = read(source, read_sums(source))
    assert float(sums.sum()) == float(source.sum())
    with pytest.raises(BadTensor, match="sums"):
        read(source, sums[:0])


@pytest.mark.parametrize(("columns", "depth"), [(16, 256), (33, 300), (5, 17)])
def test_touched_experts_give_their_products(columns: int, depth: int) -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    weights = torch.randn(6, columns, depth, device=device)
    x = torch.randn(3, depth, device=device)
    experts = torch.tensor([4, 0, 4], dtype=torch.int32, device=device)
    out = expert_products(weights, experts, x, torch.empty(3, columns, device=device))
    torch.testing.assert_close(
        out, torch.einsum("unk,uk->un", weights[experts.long()], x), rtol=1e-4, atol=1e-3
    )
    with pytest.raises(BadTensor, match="take x"):
        expert_products(weights, experts, x[:2], out)


ON_CPU = [
    StreamProbe("read", 64 * KIB),
    StreamProbe("copy", 64 * KIB),
    GemmProbe("bf16", 4, 32, 64),
    ExpertProbe(2, 5, 16, 64),
    LaunchProbe("eager", 3),
    CopyProbe("h2d", KIB),
    CopyProbe("d2h", KIB),
    AttentionProbe(batch=2, q_len=2, kv_len=40, group_size=2, kv_heads=1, head_dim=64),
]


@pytest.mark.skipif(torch.cuda.is_available(), reason="the card has its own test")
@pytest.mark.parametrize("probe", ON_CPU, ids=lambda probe: f"{probe.name}-{probe.settings}")
def test_every_call_of_a_probe_runs(probe: Probe) -> None:
    calls = calls_of(probe, CPU, l2_bytes=0)
    assert calls
    for call in calls:
        call()


def test_products_are_those_of_their_weights() -> None:
    torch.manual_seed(0)
    outs = [call() for call in calls_of(GemmProbe("bf16", 3, 8, 16), CPU, l2_bytes=KIB)]
    assert len(outs) == MOST_COPIES
    assert all(isinstance(out, torch.Tensor) and out.shape == (3, 8) for out in outs)


def test_calls_walk_over_four_times_the_cache() -> None:
    assert copies(1 * KIB, 10 * KIB) == MOST_COPIES
    assert copies(10 * KIB, 10 * KIB) == 4
    assert copies(100 * KIB, 10 * KIB) == 1
    calls = calls_of(GemmProbe("bf16", 1, 64, 64), CPU, l2_bytes=6 * KIB)
    assert len(calls) * 64 * 64 * 2 >= 4 * 6 * KIB
    groups = calls_of(ExpertProbe(2, 7, 16, 64), CPU, l2_bytes=0)
    assert len(groups) == 3  # each of other experts; the odd one out is left


def test_what_takes_several_cards_is_refused_on_one() -> None:
    with pytest.raises(UnsupportedProbe):
        calls_of(AllReduceProbe(2, KIB), CPU, 0)
    if torch.cuda.device_count() < 2:
        with pytest.raises(UnsupportedProbe, match="one card"):
            calls_of(CopyProbe("peer", KIB), CPU, 0)


@pytest.mark.parametrize("written", [b"00000000:41:00.0", "0000:41:00.0"])
def test_a_card_is_found_by_its_address_on_the_bus(written: bytes | str) -> None:
    nvml = SimpleNamespace(nvmlDeviceGetPciInfo=lambda _: SimpleNamespace(busId=written))
    assert bus_id(nvml, None) == "41:00.0"


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
def test_a_card_is_calibrated_within_two_minutes(tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(command)
    began = time.monotonic()
    out = tmp_path / "card.yaml"
    CliRunner().invoke(app, ["--out", str(out)], catch_exceptions=False)
    assert time.monotonic() - began <= 120
    constants = read_calibration(out).record.constants
    assert 0.3 < constants["formats.bf16.bandwidth_fraction"].value <= 1.1
    assert 0.2 < constants["formats.bf16.flops_fraction"].value <= 1.3
