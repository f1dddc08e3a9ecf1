"""Real samples of everything that is read; what is mutated starts from these."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from planner.cli.launchable import launchable
from planner.emit.write import write_out
from planner.search.question import Question

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"


def folder(pattern: str, below: Path = DATA) -> Callable[[], Sequence[bytes]]:
    """The files of a folder."""
    return lambda: [path.read_bytes() for path in sorted(below.glob(pattern))]


def catalog_configs() -> Sequence[bytes]:
    """Published configs, and the reduced ones of the catalog."""
    rows = sorted((ROOT / "planner/arch/data/models").glob("*.json"))
    configs = [json.dumps(json.loads(row.read_text("utf-8"))["config"]).encode() for row in rows]
    real = [
        p.read_bytes() for p in sorted((DATA / "configs").glob("*.json")) if "hf_q" not in p.name
    ]
    return [*real, *configs]


def gguf_samples() -> Sequence[bytes]:
    """Headers of two small models, as trees of their fields."""
    return [json.dumps(tree).encode() for tree in (_gguf("llama"), _gguf("qwen3moe", experts=8))]


def _gguf(arch: str, experts: int = 0) -> dict[str, Any]:
    """The fields of a small model's GGUF header: values, and tensors as [dims, type, offset]."""
    values: dict[str, Any] = {"general.architecture": arch, "general.file_type": 15}
    stated = {
        "block_count": 2, "context_length": 4096, "embedding_length": 256, "vocab_size": 512,
        "feed_forward_length": 512, "attention.head_count": 4, "attention.head_count_kv": [2, 2],
        "attention.key_length": 64, "attention.value_length": 64, "rope.freq_base": 1e6,
        "attention.sliding_window": 1024, "nextn_predict_layers": 1,
    }  # fmt: skip
    if experts:
        stated |= {"expert_count": experts, "expert_used_count": 2}
        stated |= {"expert_feed_forward_length": 128}
    values |= {f"{arch}.{key}": value for key, value in stated.items()}
    values["tokenizer.ggml.tokens"] = [f"t{i}" for i in range(20)]
    tensors: dict[str, Any] = {
        "token_embd.weight": [[256, 512], 12, 0], "output.weight": [[256, 512], 14, 0],
    }  # fmt: skip
    wide = [256, 512, experts] if experts else [256, 512]
    kind = "_exps" if experts else ""
    for block in range(2):
        rows = {"attn_q": [256, 256], "attn_k": [256, 128], "attn_output": [256, 256]}
        rows |= {f"ffn_up{kind}": wide, f"ffn_down{kind}": [512, 256, *wide[2:]]}
        tensors |= {f"blk.{block}.{n}.weight": [dims, 12, 0] for n, dims in rows.items()}
    return {"values": values, "tensors": tensors}


def safetensors_samples() -> Sequence[bytes]:
    """One header."""
    names = ["model.embed_tokens.weight", "lm_head.weight", "model.mtp.0.eh_proj.weight"]
    names += [f"model.layers.{i}.self_attn.q_proj.weight" for i in (0, 31, 32)]
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    for number, name in enumerate(names):
        header[name] = {
            "dtype": "BF16", "shape": [16, 4], "data_offsets": [128 * number, 128 * number + 128],
        }  # fmt: skip
    return [json.dumps(header).encode()]


def index_samples() -> Sequence[bytes]:
    """One index of shards."""
    weights = {f"model.layers.{i}.mlp.up_proj.weight": "model.safetensors" for i in range(4)}
    return [json.dumps({"metadata": {"total_size": 512}, "weight_map": weights}).encode()]


def quant_samples() -> Sequence[bytes]:
    """Published hf_quant_config.json files."""
    return [p.read_bytes() for p in sorted((DATA / "configs").glob("*hf_quant_config.json"))]


def curve_samples() -> Sequence[bytes]:
    """Curves as a person states them."""
    return [
        b"{tokens_per_round: 2.9, draft_len: 4}",
        b"positions: [0.8, 0.6, 0.5]\ndraft_share: 0.4\n",
    ]


def count_samples() -> Sequence[bytes]:
    """Metrics pages and log lines."""
    lines = (
        b"draft acceptance = 0.5\nstatistics draft-mtp: #calls(b,g,a) = 10 100 90, "
        b"#gen drafts = 80, #acc drafts = 60, #gen tokens = 240, #acc tokens = 130\n",
        b'[{"iter": 1, "specDecodingStats": {"numDraftTokens": 8, "numAcceptedTokens": 5, '
        b'"numRequestsWithDraftTokens": 2, "acceptanceLength": 3.5}}]',
        b"#running-req: 1, accept len: 2.17, accept rate: 0.54, gen throughput\n",
    )
    return [*folder("metrics/*.txt")(), *lines]


def price_samples() -> Sequence[bytes]:
    """One price file."""
    return [b"currency: USD\nper_hour:\n  RTX 4090: 0.40\n  H100 SXM: 2.1\n"]


def line_samples() -> Sequence[bytes]:
    """Lines as the evidence holds them, every operation, and one with a tree."""
    shipped = ROOT / "planner/evidence/data/published.jsonl"
    rows = [json.loads(line) for line in shipped.read_text("utf-8").splitlines()]
    asks = [json.dumps({"id": n, **row["ask"]}).encode() for n, row in enumerate(rows[::7])]
    ops = (
        {"op": "decode_attention", "gpu": "h100", "engine": "vllm", "num_heads": 32,
         "num_kv_heads": 8, "head_dim": 128, "batch": 4, "kv_len": 4096, "q_len": 4,
         "kv_dtype": "bf16"},
        {"op": "gemm", "gpu": "h100", "engine": "sglang", "m": 4, "n": 4096, "k": 4096,
         "dtype": "bf16"},
        {"op": "moe", "gpu": "h100", "engine": "trtllm", "num_tokens": 16, "hidden": 2048,
         "inter": 768, "num_experts": 128, "topk": 8, "tp": 1, "ep": 1, "distribution": "balanced",
         "dtype": "bf16"},
        {
            "op": "moe",
            "gpu": "h100",
            "engine": "trtllm",
            "num_tokens": 16,
            "hidden": 2048,
            "inter": 768,
            "num_experts": 128,
            "topk": 8,
            "ep": 4,
            "distribution": "power_law_1.2",
        },
        {"op": "all_reduce", "gpu": "h100", "num_gpus": 4, "bytes": 8192},
    )  # fmt: skip
    tree = {"id": "t", "model": "Qwen/Qwen3-8B", "gpu": "2x3090", "drafter": "eagle3", "batch": 4,
            "tree": {"depth": 4, "topk": 2, "verify_tokens": 12}, "context_len": 4096.0,
            "temperature": 0.7, "workload": "code", "power_limit_w": 300,
            "acceptance": {"positions": [0.8, 0.6]}}  # fmt: skip
    return [*asks, *(json.dumps(one).encode() for one in (*ops, tree))]


def name_samples() -> Sequence[bytes]:
    """Hardware, models, formats and workloads as people write them."""
    said = (
        "2x3090", "RTX 4090 48GB", "Tesla V100 32GB", "H200", "5060 Ti 16G", "M3 Ultra 512GB",
        "dual EPYC 7642, 16 channels, 512 GB", "2 of 8 channels DDR5-4800", "PCIe 4 x8, 7950X",
        "Qwen/Qwen3-8B", "Qwen3.6-27B dense", "UD-Q4_K_XL (15.0 GB used)", "W4A16, fp8 KV",
        "probe.py mean of code/prose/bash", "chat with thinking", "1,4,16", "4K,32K", "NVFP4",
    )  # fmt: skip
    return ["\n".join(said).encode()]


def plan_samples() -> Sequence[bytes]:
    """Two plans, made now."""
    return [launchable(one, must=False)[0].model_dump_json().encode() for one in _questions()]


def launch_samples() -> Sequence[bytes]:
    """The same as they are written, with the commands that start their engines."""
    with tempfile.TemporaryDirectory() as made:
        written = []
        for number, one in enumerate(_questions()):
            plan, emission = launchable(one, must=True)
            if emission is not None:
                plan = write_out(Path(made) / str(number), plan, emission)
            written.append(plan.model_dump_json().encode())
        return written


def _questions() -> Sequence[Question]:
    return (
        Question("Qwen/Qwen3-8B", "4090", batch=(1, 4), context=(4096,), calibration="none"),
        Question("Qwen/Qwen3-30B-A3B", "3090", batch=(1,), context=(4096,), engine="llama.cpp",
                 calibration="none"),
    )  # fmt: skip


def manifest_samples() -> Sequence[bytes]:
    """One build's manifest."""
    file = {"name": "verify64.cubin", "sha256": "0" * 64}
    kernel = {
        "role": "verify", "entry": "verify", "cubin": file, "ptx": file,
        "shape": {"head_dim": 128, "page_size": 16, "dtype": "fp16"},
        "tile": {"block_m": 64, "block_n": 64, "num_warps": 4, "num_stages": 2},
        "parameters": ["u64", "u32"], "query_rows": 64, "static_us": 9.5,
        "usage": {"registers": 128, "spill_bytes": 0, "smem_bytes": 32768, "blocks_per_sm": 3,
                  "matrix_instruction": "mma.sync"},
    }  # fmt: skip
    record = {
        "schema_version": 1, "key": "k", "statement": "compiled for sm_89",
        "source_sha256": "0" * 64, "kernels": [kernel],
        "target": {"capability": 89, "gpu": "nvidia-rtx-4090", "sm_count": 128},
        "problem": {"model": "m", "draft_len": 7, "batch": 1, "context_len": 4096,
                    "kv_dtype": "fp16"},
        "search": {"ranking": "static", "space": 1, "compiled": 1, "pruned": 0, "refused": {}},
        "validation": {"ran_on": "interpreter", "cases": 1, "passed": True, "worst_ratio": 1.0,
                       "max_abs_error": 0.0, "max_lse_error": 0.0, "torch": "2", "triton": "3"},
        "versions": {"triton": "3.9.0", "spec_kernels": "0", "python": "3", "fp_fusion": "1"},
    }  # fmt: skip
    return [json.dumps(record).encode()]


def log_samples() -> Sequence[bytes]:
    """llama.cpp's start-up logs: a part of a published one, and a whole one."""
    words = (
        "arch = qwen3", "n_ctx_train = 40960", "n_embd = 4096", "n_layer = 36", "n_head = 32",
        "n_head_kv = 8", "n_swa = 0", "n_embd_head_k = 128", "n_embd_head_v = 128",
        "n_embd_k_gqa = 1024", "n_embd_v_gqa = 1024", "n_ff = 12288", "n_expert = 0",
        "n_expert_used = 0", "model params = 8.19 B", "general.name = Some 8B",
        "n_vocab = 151936", "file type = Q4_K - Medium", "file size = 4.68 GiB (4.91 BPW)",
    )  # fmt: skip
    whole = "".join(f"print_info: {line}\n" for line in words).encode()
    return [*folder("gguf/*.log")(), whole, whole, whole]


def targets_samples() -> Sequence[bytes]:
    """Deployments as `planner design --targets` takes them."""
    return [
        b"targets:\n- {gpu: 8xH200, batch: [1, 32], context: [32768], weight: 2, max_tpot_ms: 20}\n"
        b"- {gpu: RTX 4090, batch: [1], context: [4096], engine: vllm, tp: 1, quant: fp8}\n"
    ]


def quality_samples() -> Sequence[bytes]:
    """The shipped table of quality risks."""
    return [(ROOT / "planner/design/data/quality.yaml").read_bytes()]
