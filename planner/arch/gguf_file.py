"""A .gguf file, whole or in parts -> ModelArch with true bytes and its mix of types."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from planner.arch.assemble import group_layers, with_parameters
from planner.arch.gguf_header import GgufHeader, GgufTensor, read_gguf_header
from planner.arch.gguf_layers import GgufLayers, block_of, is_table
from planner.arch.quant import weight_format
from planner.arch.quant_text import parse_quant
from planner.arch.records import ModelArch, MtpShape, WeightFormat
from planner.arch.refused import refuse_family
from planner.errors import InputError

_PART = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$", re.IGNORECASE)
_MAX_PARTS = 1000


def read_gguf(path: Path) -> ModelArch:
    """The model of a GGUF file; of a file in parts all headers are read.

    Raises:
        InputError: no GGUF, broken header, a missing part, or no language model in it.
    """
    headers = [read_gguf_header(part) for part in _parts(path)]
    first = headers[0]
    architecture = first.values.get("general.architecture")
    if not isinstance(architecture, str) or not architecture:
        raise InputError(f"{path} has no general.architecture; it is no model file")
    if architecture in {"clip", "mmproj"}:
        raise InputError(f"{path} is a vision projector; give the language model's file")
    refuse_family(architecture, str(path))
    sizes, warnings = tensor_bytes(headers, path)
    tensors = [t for header in headers for t in header.tensors]
    if not tensors:
        raise InputError(f"{path} describes no tensors; give the first part of the whole model")
    layers = GgufLayers(first, architecture, tensors, str(path))
    return _assemble(layers, path, sizes, warnings)


def _parts(path: Path) -> list[Path]:
    """All parts of a split file, in order."""
    match = _PART.search(path.name)
    if match is None:
        return [path]
    count = int(match.group(2))
    if not 1 <= count <= _MAX_PARTS:
        raise InputError(f"{path}: {count} parts are not believed; the limit is {_MAX_PARTS}")
    stem = path.name[: match.start()]
    found = [path.with_name(f"{stem}-{i:05d}-of-{count:05d}.gguf") for i in range(1, count + 1)]
    missing = [p.name for p in found if not p.is_file()]
    if missing:
        raise InputError(f"{len(missing)} of {count} parts are missing, first {missing[0]}")
    return found


def tensor_bytes(headers: Sequence[GgufHeader], path: Path) -> tuple[list[int], list[str]]:
    """Bytes of every tensor in order; types that ggml does not know are sized by their gaps."""
    from gguf.constants import GGML_QUANT_SIZES  # noqa: PLC0415  # 0.2 s that other readers save

    table = {int(kind): sizes for kind, sizes in GGML_QUANT_SIZES.items()}
    found: list[int] = []
    unknown: set[int] = set()
    short = False
    for header in headers:
        starts = sorted({t.offset for t in header.tensors})
        after = dict(pairwise([*starts, header.file_bytes - header.data_start]))
        for tensor in header.tensors:
            if tensor.type_id in table:
                block, width = table[tensor.type_id]
                size = -(-tensor.elements // block) * width
            else:
                unknown.add(tensor.type_id)
                size = max(0, after[tensor.offset] - tensor.offset)
            found.append(size)
            short = short or header.data_start + tensor.offset + size > header.file_bytes
    warnings = []
    if unknown:
        kinds = ", ".join(str(k) for k in sorted(unknown)[:5])
        warnings.append(f"tensor types {kinds} are not ggml's (a fork's): sized by their offsets")
    if short:
        warnings.append(f"{path.name} ends before its tensor data do: the download is incomplete")
    return found, warnings


@dataclass(slots=True)
class _Mix:
    """Elements, bytes and types of one kind of weights."""

    elements: int = 0
    size: int = 0

    def add(self, tensor: GgufTensor, size: int) -> None:
        self.elements += tensor.elements
        self.size += size

    @property
    def bits(self) -> float | None:
        return 8 * self.size / self.elements if self.elements else None


def _assemble(layers: GgufLayers, path: Path, sizes: list[int], warnings: list[str]) -> ModelArch:
    made = layers.layers()
    tables = sum(s for t, s in zip(layers.tensors, sizes, strict=True) if is_table(t.name))
    arch = ModelArch(
        name=_model_name(layers, path),
        source=str(path),
        architecture=layers.architecture,
        hidden_size=layers.hidden,
        vocab_size=layers.vocab_size,
        num_layers=len(made),
        tied_embeddings=not layers.has_tensor("output.weight"),
        groups=group_layers(made),
        lookup_weights=layers.elements_of("per_layer_token_embd.weight"),
        mtp=_mtp(layers, warnings),
        max_position=layers.optional_int("context_length", high=1 << 40),
        native_format=_format(layers, path, sizes),
        checkpoint_bytes=sum(sizes),
        embedding_bytes=tables or None,
        assumptions=tuple(layers.assumptions),
        warnings=(*layers.warnings, *warnings),
    )
    return with_parameters(arch)


def _model_name(layers: GgufLayers, path: Path) -> str:
    for key in ("general.name", "general.basename"):
        name = layers.header.values.get(key)
        if isinstance(name, str) and name.strip():
            return "".join(c for c in name.strip() if c.isprintable())[:120]
    return path.stem


def _mtp(layers: GgufLayers, warnings: list[str]) -> MtpShape:
    """MTP blocks stand after the model's own; without their tensors the claim is void."""
    claimed = layers.num_nextn
    if not claimed:
        return MtpShape(status="none")
    blocks = range(layers.num_layers, layers.num_layers + claimed)
    present = [b for b in blocks if layers.elements_of_block(b)]
    if not present:
        warnings.append(f"metadata claims {claimed} MTP layers but the file has no such tensors")
        return MtpShape(status="none")
    total = layers.elements_of_block(present[0])
    active = layers.active_elements_of_block(present[0])
    return MtpShape("present", len(present), total, active)


def _format(layers: GgufLayers, path: Path, sizes: list[int]) -> WeightFormat:
    """Average bits of linear, expert, head and embedding weights, as stored in this file."""
    linear, experts, head, embedding = _Mix(), _Mix(), _Mix(), _Mix()
    kinds: Counter[int] = Counter()
    for tensor, size in zip(layers.tensors, sizes, strict=True):
        if tensor.name == "output.weight":
            head.add(tensor, size)
        elif is_table(tensor.name):
            embedding.add(tensor, size)
        elif block_of(tensor.name) is not None and len(tensor.dims) >= 2:
            (experts if "_exps" in tensor.name else linear).add(tensor, size)
            kinds[tensor.type_id] += tensor.elements
    name = _type_name(layers.header, path, kinds)
    expert_bits = experts.bits
    bits = linear.bits or expert_bits or 16.0
    table_bits = embedding.bits or bits
    known = weight_format(name)
    return WeightFormat(
        name=name,
        bits_per_weight=round(bits, 4),
        family="gguf",
        compute=known.compute if known is not None else "int8",
        head_bits=round(head.bits or table_bits, 4),
        expert_bits=None if expert_bits is None else round(expert_bits, 4),
        embedding_bits=round(table_bits, 4),
        kind="derived",
    )


def _type_name(header: GgufHeader, path: Path, kinds: "Counter[int]") -> str:
    """Name of the mix: from the file's name, its file type, or its commonest type."""
    from gguf.constants import GGMLQuantizationType, LlamaFileType  # noqa: PLC0415

    stem = re.sub(r"[-.](?=(?:ud-)?i?q\d|f16|bf16|mxfp4)", " ", path.stem.lower())
    named = parse_quant(stem).weight
    if named is not None and named.family == "gguf":
        return named.name
    kind = header.values.get("general.file_type")
    if isinstance(kind, int):
        try:
            return LlamaFileType(kind).name.removeprefix("MOSTLY_").removeprefix("ALL_")
        except ValueError:
            pass
    if not kinds:
        return "unknown"
    commonest = kinds.most_common(1)[0][0]
    try:
        return GGMLQuantizationType(commonest).name
    except ValueError:
        return f"type {commonest}"
