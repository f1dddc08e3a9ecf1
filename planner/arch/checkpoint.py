"""A checkpoint folder: config.json, hf_quant_config.json and the headers of its safetensors."""

from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from planner.arch.hf import read_hf_config
from planner.arch.json_file import MAX_CONFIG_BYTES, read_json_object
from planner.arch.quant import known_format
from planner.arch.quant_text import parse_quant
from planner.arch.records import ModelArch, MtpShape
from planner.arch.safetensors_header import TensorInfo, read_header
from planner.arch.weights import weight_bytes
from planner.errors import InputError

_MAX_INDEX_BYTES = 32 << 20
_MAX_SHARDS = 1024
_MTP_MARKS = ("mtp.", ".mtp", "mtp_", "nextn", "eh_proj", "enorm")
_TABLE_MARKS = (
    "embed_tokens.weight", "lm_head.weight", "wte.weight", "embed_in.weight", "embed_out.weight",
    "word_embeddings.weight", "tok_embeddings.weight", "output.weight", "embeddings.weight",
)  # fmt: skip
_SIDE_MARKS = ("visual.", "vision_", "audio_", "mm_projector", "multi_modal_projector")


def read_config_file(path: Path) -> ModelArch:
    """A config.json alone; an hf_quant_config.json beside it under the same stem is read too."""
    beside = [path.with_name("hf_quant_config.json")]
    if path.name.endswith(".config.json"):
        stem = path.name.removesuffix(".config.json")
        beside.insert(0, path.with_name(f"{stem}.hf_quant_config.json"))
    quant = next((p for p in beside if p.is_file()), None)
    if path.name == "config.json":
        name = _folder_name(path.parent)
    else:
        name = path.name.removesuffix(".json").removesuffix(".config").replace("--", "/", 1)
    return read_config_pair(path, quant, name=name or "config.json", source=str(path))


def _folder_name(folder: Path) -> str:
    """Name of the model in a folder; the hub's cache names its snapshots by hash only."""
    real = folder.resolve()
    if real.parent.name == "snapshots" and real.parent.parent.name.startswith("models--"):
        return real.parent.parent.name.removeprefix("models--").replace("--", "/", 1)
    return real.name


def read_config_pair(config: Path, quant: Path | None, *, name: str, source: str) -> ModelArch:
    """A config.json with the hf_quant_config.json that belongs to it."""
    raw = read_json_object(config)
    second = read_json_object(quant, MAX_CONFIG_BYTES) if quant is not None else None
    arch = read_hf_config(raw, second, name=name, source=source)
    return _with_name_check(arch)


def _with_name_check(arch: ModelArch) -> ModelArch:
    """A name that promises a quantised checkpoint whose files do not say so."""
    if arch.native_format is not None:
        return arch
    named = parse_quant(arch.name.replace("-", " ").replace("_", " ")).weight
    if named is None or named.bits_per_weight >= 16:
        return arch
    said = (
        f"the name says {named.name} but neither config.json nor hf_quant_config.json does: 16-bit "
        "weights are counted; give --quant"
    )
    return replace(arch, warnings=(*arch.warnings, said))


def read_checkpoint(folder: Path) -> ModelArch:
    """A local folder: shapes from its config, bytes and MTP layers from its tensor headers."""
    config = _inside(folder, "config.json")
    if config is None:
        ggufs = sorted(p.name for p in folder.glob("*.gguf"))[:3]
        hint = f"; it holds {', '.join(ggufs)}: give that file" if ggufs else ""
        raise InputError(f"{folder} has no config.json{hint}")
    arch = read_config_pair(
        config,
        _inside(folder, "hf_quant_config.json"),
        name=_folder_name(folder),
        source=str(folder),
    )
    names = _shard_names(folder)
    if not names:
        said = "no safetensors file in the folder: sizes are computed, MTP layers only claimed"
        return replace(arch, warnings=(*arch.warnings, said))
    tensors, missing = _read_shards(folder, names)
    if missing:
        said = f"{len(missing)} of {len(names)} safetensors files are missing: sizes are computed"
        return replace(arch, warnings=(*arch.warnings, said))
    return _measured(arch, tensors)


def _inside(folder: Path, name: str) -> Path | None:
    """A file of the folder, or None; one that leads out of the folder is refused.

    Links into a `blobs` folder two levels up are how the hub's own cache stores files, and are
    followed as far as that folder only.
    """
    path = folder / name
    if Path(name).name != name:
        raise InputError(f"{folder}: {ascii(name)[1:-1][:80]} is not a plain file name")
    try:
        if not path.exists():
            return None
        real = path.resolve(strict=True)
        home = folder.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        shown = ascii(name)[1:-1][:80]
        raise InputError(f"{shown} in {folder} cannot be followed; check its links") from error
    blobs = home.parent.parent / "blobs" if home.parent.name == "snapshots" else None
    if real.parent != home and (blobs is None or real.parent != blobs):
        raise InputError(f"{path} leads out of its folder to {real}; copy the file into the folder")
    if not real.is_file():
        raise InputError(f"{path} is not a regular file")
    return path


def _shard_names(folder: Path) -> list[str]:
    """Safetensors files of the checkpoint: those of the index, else those that are there."""
    index = _inside(folder, "model.safetensors.index.json")
    if index is None:
        found = sorted(p.name for p in folder.glob("*.safetensors"))
        return [n for n in found if n.startswith(("model", "mtp"))] or found
    weight_map = read_json_object(index, _MAX_INDEX_BYTES).get("weight_map")
    if not isinstance(weight_map, dict):
        raise InputError(f"{index}: weight_map is missing; fetch the file again")
    names = {str(v) for v in weight_map.values()}
    if len(names) > _MAX_SHARDS:
        raise InputError(f"{index} names {len(names)} files, more than {_MAX_SHARDS} are not read")
    return sorted(names)


def _read_shards(folder: Path, names: list[str]) -> tuple[dict[str, TensorInfo], list[str]]:
    tensors: dict[str, TensorInfo] = {}
    missing = []
    for name in names:
        path = _inside(folder, name)
        if path is None:
            missing.append(name)
            continue
        tensors.update(read_header(path))
    return tensors, missing


@dataclass(frozen=True, slots=True)
class _Sums:
    total: int
    tables: int
    mtp_layers: int
    mtp_bytes: int
    side: int


def _measured(arch: ModelArch, tensors: dict[str, TensorInfo]) -> ModelArch:
    """Bytes of the tensors, and MTP layers as they are really there."""
    sums = _sum(arch, tensors)
    warnings = list(arch.warnings)
    mtp = arch.mtp
    if sums.mtp_layers:
        layers = min(sums.mtp_layers, mtp.layers) if mtp.layers else sums.mtp_layers
        mtp = replace(mtp, status="present", layers=layers)
    elif mtp.status == "claimed":
        warnings.append(
            f"the config claims {mtp.layers} MTP layers but the checkpoint has no such tensors"
        )
        mtp = MtpShape(status="none")
    if not all(info.complete for info in tensors.values()):
        warnings.append("a safetensors file ends before its tensors do: the download is incomplete")
    if sums.side:
        warnings.append(f"{sums.side} bytes of vision or audio tensors are not counted")
    language = sums.total - sums.side
    warnings += _density_warning(arch, language - (sums.mtp_bytes if sums.mtp_layers else 0))
    return replace(
        arch,
        mtp=mtp,
        checkpoint_bytes=language,
        embedding_bytes=sums.tables or None,
        warnings=tuple(warnings),
        extra={**arch.extra, "mtp_bytes": str(sums.mtp_bytes)},
    )


def _density_warning(arch: ModelArch, stored: int) -> list[str]:
    """Tensors that hold clearly more or fewer bits a weight than the config says."""
    expected = weight_bytes(arch, arch.native_format or known_format("bf16")).total
    if not expected or 0.8 <= stored / expected <= 1.25:
        return []
    return [
        f"the tensors hold {8 * stored / arch.params_total:.1f} bits a weight, the config says "
        f"{8 * expected / arch.params_total:.1f}: check whether all files belong together"
    ]


def _sum(arch: ModelArch, tensors: dict[str, TensorInfo]) -> _Sums:
    total = tables = mtp_bytes = side = 0
    layers: set[str] = set()
    for name, info in tensors.items():
        total += info.num_bytes
        if any(mark in name for mark in _SIDE_MARKS):
            side += info.num_bytes
        elif _is_mtp(name, arch.num_layers):
            mtp_bytes += info.num_bytes
            layers.add(_layer_of(name))
        elif name.endswith(_TABLE_MARKS):
            tables += info.num_bytes
    numbered = layers - {""}
    return _Sums(total, tables, len(numbered) or len(layers), mtp_bytes, side)


def _is_mtp(name: str, num_layers: int) -> bool:
    """By name, or a layer number past the last one of the model (DeepSeek, GLM, MiMo)."""
    if any(mark in name for mark in _MTP_MARKS):
        return True
    layer = _layer_of(name)
    return layer != "" and ".layers." in f".{name}" and int(layer) >= num_layers


def _layer_of(name: str) -> str:
    """Number after `layers.` (or `h.`, `blk.`), or empty."""
    parts = name.split(".")
    for before, after in pairwise(parts):
        if (
            before in {"layers", "h", "blocks", "blk", "mtp", "mtp_block"}
            and after.isascii()
            and after.isdigit()
        ):
            return after[:9]
    return ""
