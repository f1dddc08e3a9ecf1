"""llama.cpp's `print_info` lines as input: whole logs, parts of logs, and lies."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.arch.gguf_log import counted, is_log, read_print_info
from planner.arch.load import load_model
from planner.errors import InputError

PART = Path(__file__).parents[1] / "data" / "gguf" / "gemma4-31b-print_info.log"
QWEN3_8B = {
    "arch": "qwen3", "n_ctx_train": 40960, "n_embd": 4096, "n_layer": 36, "n_head": 32,
    "n_head_kv": 8, "n_swa": 0, "n_embd_head_k": 128, "n_embd_head_v": 128, "n_embd_k_gqa": 1024,
    "n_embd_v_gqa": 1024, "n_ff": 12288, "n_expert": 0, "n_expert_used": 0,
    "model params": "8.19 B", "general.name": "Some 8B", "n_vocab": 151936,
    "file type": "Q4_K - Medium", "file size": "4.68 GiB (4.91 BPW)",
}  # fmt: skip


def log(folder: Path, lines: dict[str, object], prefix: str = "print_info: ") -> Path:
    path = folder / "server.log"
    path.write_text("".join(f"{prefix}{name:<16} = {value}\n" for name, value in lines.items()))
    return path


@pytest.mark.parametrize(
    "prefix", ["print_info: ", "0.00.305.173 I print_info: ", "llm_load_print_meta: "]
)
def test_a_whole_log_is_a_model(tmp_path: Path, prefix: str) -> None:
    arch = load_model(str(log(tmp_path, QWEN3_8B, prefix)))
    # 36 layers x 2 x 1024 elements x 2 bytes
    assert arch.kv_bytes_per_token == 147456
    assert arch.params_total / 1e9 == pytest.approx(8.19, abs=0.01)
    assert arch.main_attention.group_size == 4
    assert arch.native_format is not None
    assert arch.native_format.name == "Q4_K_M"
    assert arch.checkpoint_bytes == int(4.68 * 2**30)


def test_no_parameters_printed_hold_nothing(tmp_path: Path) -> None:
    arch = load_model(str(log(tmp_path, QWEN3_8B | {"model params": "0 B"})))
    assert arch.params_total / 1e9 == pytest.approx(8.19, abs=0.01)


def test_shared_embedding_follows_from_the_printed_parameters(tmp_path: Path) -> None:
    """Qwen3-0.6B: 0.60 B with one table of 151936 x 1024, 0.75 B with two."""
    small = QWEN3_8B | {
        "n_embd": 1024, "n_layer": 28, "n_head": 16, "n_ff": 3072, "model params": "596.05 M",
    }  # fmt: skip
    arch = load_model(str(log(tmp_path, small)))
    assert arch.tied_embeddings
    assert arch.params_total / 1e6 == pytest.approx(596, abs=1)


def test_two_geometries_are_read_from_lists(tmp_path: Path) -> None:
    """Gemma-4: every sixth layer is global, with its own number of KV heads and widths."""
    per_layer = [16, 16, 16, 16, 16, 4] * 10
    gemma = {
        "arch": "gemma4", "n_embd": 5376, "n_layer": 60, "n_head": 32, "n_head_kv": per_layer,
        "n_swa": 1024, "n_embd_head_k": 512, "n_embd_head_v": 512, "n_embd_head_k_swa": 256,
        "n_embd_head_v_swa": 256, "n_embd_k_gqa": [4096, 4096, 4096, 4096, 4096, 2048] * 10,
        "n_embd_v_gqa": [4096, 4096, 4096, 4096, 4096, 2048] * 10, "n_ff": 21504,
        "n_vocab": 262144, "n_expert": 0,
    }  # fmt: skip
    arch = load_model(str(log(tmp_path, gemma)))
    assert {g.name: g.count for g in arch.groups} == {"window": 50, "full": 10}
    assert arch.kv_bytes_per_token == 10 * 2 * (2048 + 2048)
    assert arch.window_bytes_per_seq == 50 * 1024 * 2 * (4096 + 4096)


def test_a_part_is_shown_but_is_no_model() -> None:
    info = read_print_info(PART)
    assert info.num_layers == 60
    assert counted(info.numbers["n_embd_v_gqa"]) == "50 x 4096, 10 x 2048"
    with pytest.raises(InputError, match="n_head_kv"):
        load_model(str(PART))


@pytest.mark.parametrize(
    "change",
    [
        {"n_head_kv": [8] * 35},
        {"n_head_kv": 7},
        {"n_embd": 10**12},
        {"n_layer": 0},
        {"n_lora_kv": 512},
        {"n_layer": [1, 2]},
    ],
)
def test_a_log_that_contradicts_itself_is_refused(
    tmp_path: Path, change: dict[str, object]
) -> None:
    with pytest.raises(InputError):
        load_model(str(log(tmp_path, QWEN3_8B | change)))


def test_missing_layers_are_said(tmp_path: Path) -> None:
    arch = load_model(str(log(tmp_path, QWEN3_8B | {"model params": "27.32 B"})))
    assert any("27.32 B" in text for text in arch.warnings)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(sorted(QWEN3_8B)),
    value=st.one_of(st.integers(), st.text(max_size=20), st.lists(st.integers(), max_size=40)),
)
def test_any_value_reads_or_is_an_input_error(tmp_path: Path, name: str, value: object) -> None:
    path = log(tmp_path, QWEN3_8B | {name: value})
    if is_log(path):
        with contextlib.suppress(InputError):
            load_model(str(path))
