"""The operation `sparse_attention`: a layer with chosen or pooled entries, or one kernel of it."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from hwprofiles.errors import InputError
from planner.arch.catalog import load_catalog_model
from planner.arch.records import AttentionShape, SparseShape
from planner.cost.kernels import SparseUse, sparse_kernel
from planner.cost.sparse import SparseWork
from planner.predict.devices import card, device, peak
from planner.predict.fields import Line, integer, text

Part = Literal["layer", "attention", "indexer", "topk"]
PARTS = ("layer", "attention", "indexer", "topk")
WEIGHT_BYTES = {"bf16": 2.0, "fp8": 1.0, "fp8_block": 1.0}
INDEX_FORMAT = "fp8"
"""Keys and queries of DeepSeek's index are stored in fp8 with a scale for each key."""
DEEPSEEK_KEY_BYTES = 132.0
"""128 fp8 elements and their scale."""
PLAIN_INDEX = ("msa",)
"""Layers whose index keys are bf16."""
SCORE_BYTES = 8.0
"""A score in fp32, written once and read once."""


@dataclass(frozen=True, slots=True)
class Layer:
    """A sparse layer of a model."""

    kind: str
    """dsa, msa, csa or hca."""
    shape: AttentionShape
    sparse: SparseShape


def kind_of(shape: AttentionShape, sparse: SparseShape) -> str:
    """What the field calls such a layer."""
    if shape.kind == "compressed":
        return "csa" if sparse.index_heads else "hca"
    return "dsa" if sparse.expanded_width else "msa"


@lru_cache(maxsize=64)
def layers_of(model: str) -> tuple[Layer, ...]:
    """The different sparse layers of a model, those that choose their entries first.

    Raises:
        InputError: the model is not known, or all its layers attend to everything.
    """
    arch = load_catalog_model(model)
    mixers = dict.fromkeys(g.attention for g in arch.groups if g.attention and g.attention.sparse)
    found = [
        Layer(kind_of(shape, shape.sparse), shape, shape.sparse)
        for shape in mixers
        if shape is not None and shape.sparse is not None
    ]
    if not found:
        raise InputError(f"{arch.name} has no sparse layers; ask for decode_attention instead")
    return tuple(sorted(found, key=lambda layer: layer.kind))


def _layer(line: Line) -> Layer:
    model = text(line, "model")
    layers = layers_of(model)
    pool = line.get("compress_ratio")
    if pool is None:
        return layers[0]
    asked = integer(line, "compress_ratio")
    for layer in layers:
        if layer.sparse.pool == asked:
            return layer
    pools = ", ".join(str(layer.sparse.pool) for layer in layers)
    raise InputError(f"{model} has no layers of compress_ratio {asked}; it has {pools}")


def prepare_sparse(line: Line) -> tuple[Any, Any, SparseWork]:
    """(card, constants, work) of a `sparse_attention` line.

    Raises:
        InputError: a field is absent or impossible.
    """
    layer, part = _layer(line), text(line, "part", "layer")
    if part not in PARTS:
        raise InputError(f"part {part!r} is not one of {', '.join(PARTS)}")
    gpu = text(line, "gpu")
    tokens = integer(line, "kv_len") + integer(line, "q_len", 1)
    chip = device(gpu)
    row = sparse_kernel(
        SparseUse(
            layer=layer.kind,
            part=part,
            engine=text(line, "engine", "sglang"),
            kv_dtype="fp8" if text(line, "kv_dtype", "bf16").startswith("fp8") else "half",
            chooses=tokens > layer.sparse.top_k,
            capability=chip.compute_capability,
            kernel=text(line, "kernel", "") or None,
        )
    )
    return card(gpu), row.constants, _work(line, layer, row.does, tokens)


def _work(line: Line, layer: Layer, does: frozenset[str], tokens: int) -> SparseWork:
    sparse, shape = layer.sparse, layer.shape
    gpu, dtype = text(line, "gpu"), text(line, "dtype", "bf16")
    if dtype not in WEIGHT_BYTES:
        raise InputError(f"dtype {dtype!r} is not one of {', '.join(WEIGHT_BYTES)}")
    heads = integer(line, "num_heads", shape.num_heads)
    batch, q_len = integer(line, "batch"), integer(line, "q_len", 1)
    per_head = (shape.weights - sparse.shared_weights) / shape.num_heads
    entries = tokens / sparse.pool
    limit = sparse.top_k or entries
    chosen = limit if "padding" in does else min(entries, limit)
    scores, selects = "scoring" in does and sparse.index_heads > 0, "selection" in does
    key_bytes = 2.0 * sparse.index_dim if layer.kind in PLAIN_INDEX else DEEPSEEK_KEY_BYTES
    return SparseWork(
        batch=batch,
        q_len=q_len,
        entries=entries,
        heads=heads,
        weights=sparse.shared_weights + per_head * heads if "projections" in does else 0.0,
        weight_bytes=WEIGHT_BYTES[dtype],
        projection_flops=peak(device(gpu), dtype),
        attended=chosen + sparse.local if "attention" in does else 0.0,
        entry_width=shape.head_dim + shape.v_head_dim,
        expanded_width=sparse.expanded_width if "expanded attention" in does else 0,
        latent_width=shape.v_head_dim,
        score_flops=2.0 * sparse.index_heads * sparse.index_dim if scores else 0.0,
        score_peak_flops=peak(device(gpu), INDEX_FORMAT),
        score_bytes=SCORE_BYTES if scores else 0.0,
        key_bytes=SCORE_BYTES if selects else key_bytes if scores else 0.0,
        readers=batch * q_len if selects else batch,
    )
