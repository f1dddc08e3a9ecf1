import io
import zipfile
from pathlib import Path

import pytest

from autotune.fit.wheel import ROOT, timed
from planner.errors import InputError

pandas = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

ATTENTION = {
    "kernel_source": "k",
    "kv_cache_dtype": "bfloat16",
    "batch_size": 4,
    "isl": 1024,
    "step": 1,
    "num_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "latency": 0.02,
}

MOE = {
    "kernel_source": "e",
    "moe_dtype": "bfloat16",
    "num_tokens": 4,
    "hidden_size": 2048,
    "inter_size": 768,
    "num_experts": 128,
    "topk": 8,
    "moe_tp_size": 1,
    "moe_ep_size": 1,
    "distribution": "balanced",
    "latency": 0.02,
}

SPARSE = {
    "kernel_source": "s",
    "model": "zai-org/GLM-5",
    "kv_cache_dtype": "fp8",
    "gemm_type": "bfloat16",
    "num_heads": 64,
    "batch_size": 4,
    "isl": 8,
    "step": 4096,
    "latency": 0.05,
}


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "tables.whl"
    tables = {
        "l40s/attention/vllm/0.24.0/generation_attention_perf": [
            ATTENTION,
            ATTENTION | {"isl": 2},
            ATTENTION | {"num_heads": 30},
            ATTENTION | {"latency": 0.0},
        ],
        "a100_sxm/attention/trtllm/1.0.0/generation_attention_perf": [ATTENTION],
        "b200_sxm/attention/vllm/0.24.0/generation_attention_perf": [ATTENTION],
        "l40s/attention/vllm/0.24.0/context_attention_perf": [ATTENTION],
        "h100_sxm/gemm/vllm/0.24.0/gemm_perf": [
            {"kernel_source": "g", "gemm_dtype": "int4_wo", "m": m, "n": 1024, "k": 512,
             "latency": 0.01} for m in (*range(1, 21), 2048)
        ],
        "h100_sxm/sparse_attention/sglang/0.5.14/glm5_dsa_attn_module_perf": [
            SPARSE | {"compress_ratio": 1},
            SPARSE | {"isl": 64},
            SPARSE | {"step": 0},
            SPARSE | {"latency": 0.0},
        ],
        "h100_sxm/sparse_attention/sglang/0.5.14/dsa_generation_module_perf": [SPARSE],
        "h100_sxm/msa/vllm/0.24.0/msa_context_module_perf": [SPARSE | {"kernel_source": "m"}],
        "l40s/moe/sglang/0.5.9/moe_perf": [MOE, MOE | {"kernel_source": "gone"}],
        "l40s/moe/sglang/0.5.10/moe_perf": [MOE | {"latency": 0.03}],
    }  # fmt: skip
    with zipfile.ZipFile(path, "w") as archive:
        for name, rows in tables.items():
            content = io.BytesIO()
            pandas.DataFrame(rows).to_parquet(content)
            archive.writestr(f"{ROOT}/{name}.parquet", content.getvalue())
    return path


def test_only_usable_rows_of_the_three_cards_are_read(wheel: Path) -> None:
    (row,) = timed(wheel, "attention", 100)
    assert row.gpu == "L40S"
    assert row.seconds == pytest.approx(20e-6)
    assert row.line == {
        "op": "decode_attention",
        "gpu": "L40S",
        "engine": "vllm",
        "kernel": "k",
        "num_heads": 32,
        "num_kv_heads": 8,
        "head_dim": 128,
        "batch": 4,
        "kv_len": 1025,
        "q_len": 1,
        "kv_dtype": "bf16",
    }


def test_a_kernel_gives_at_most_so_many_rows(wheel: Path) -> None:
    rows = timed(wheel, "gemm", 5)
    assert len(rows) == 5
    assert {row.line["dtype"] for row in rows} == {"int4"}
    assert all(row.line["m"] <= 1024 for row in timed(wheel, "gemm", 100))


def test_a_file_that_is_no_wheel_is_refused_with_the_next_step(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="pip download"):
        timed(tmp_path / "none.whl", "gemm", 1)


def test_the_newest_version_of_each_kernel_is_read(wheel: Path) -> None:
    found = {row.line["kernel"]: row.seconds for row in timed(wheel, "moe", 100)}
    assert found == {"e": pytest.approx(30e-6), "gone": pytest.approx(20e-6)}


def test_sparse_layers_are_read_from_all_their_files(wheel: Path) -> None:
    found = {row.line["kernel"]: row.line for row in timed(wheel, "sparse", 100)}
    assert found.keys() == {"s", "m"}
    assert found["s"]["part"] == "attention"
    assert found["s"]["compress_ratio"] == 1
    assert (found["s"]["q_len"], found["s"]["kv_len"], found["s"]["dtype"]) == (8, 4096, "bf16")
    assert found["m"]["part"] == "layer"
    assert "compress_ratio" not in found["m"]
