"""Small GGUF files for the tests, written by the upstream writer."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np

Q4_K = gguf.GGMLQuantizationType.Q4_K
Q6_K = gguf.GGMLQuantizationType.Q6_K
F32 = gguf.GGMLQuantizationType.F32


def write(
    path: Path,
    arch: str,
    values: Mapping[str, Any],
    tensors: Mapping[str, tuple[tuple[int, ...], gguf.GGMLQuantizationType]],
    tokens: int = 0,
) -> Path:
    """A file with these metadata and zero tensors; shapes as numpy has them (rows first)."""
    writer = gguf.GGUFWriter(path, arch)
    for key, value in values.items():
        name = key if key.startswith("general.") else f"{arch}.{key}"
        if isinstance(value, list):
            writer.add_array(name, value)
        elif isinstance(value, str):
            writer.add_string(name, value)
        else:
            writer.add_uint32(name, value)
    if tokens:
        writer.add_token_list([f"t{i}" for i in range(tokens)])
    for name, (shape, kind) in tensors.items():
        block, width = gguf.GGML_QUANT_SIZES[kind]
        stored = (*shape[:-1], shape[-1] // block * width)
        if kind is F32:
            writer.add_tensor(name, np.zeros(shape, np.float32))
        else:
            writer.add_tensor(name, np.zeros(stored, np.uint8), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def dense_block(number: int, hidden: int = 256, ffn: int = 512, kv: int = 128) -> dict[str, Any]:
    """Tensors of one dense block: Q4_K with a Q6_K down projection."""
    return {
        f"blk.{number}.attn_norm.weight": ((hidden,), F32),
        f"blk.{number}.attn_q.weight": ((hidden, hidden), Q4_K),
        f"blk.{number}.attn_k.weight": ((kv, hidden), Q4_K),
        f"blk.{number}.attn_v.weight": ((kv, hidden), Q4_K),
        f"blk.{number}.attn_output.weight": ((hidden, hidden), Q4_K),
        f"blk.{number}.ffn_up.weight": ((ffn, hidden), Q4_K),
        f"blk.{number}.ffn_gate.weight": ((ffn, hidden), Q4_K),
        f"blk.{number}.ffn_down.weight": ((hidden, ffn), Q6_K),
    }
