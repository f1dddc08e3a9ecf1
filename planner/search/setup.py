"""From names to a deployment: model, format, engine, number of GPUs, what stays behind."""

import math
import re
from dataclasses import dataclass, replace
from functools import lru_cache

from hwprofiles.device import Device
from hwprofiles.errors import InputError
from planner.arch.catalog import load_catalog_model
from planner.arch.load import load_model
from planner.arch.quant import kv_dtype_name, weight_format
from planner.arch.quant_text import parse_quant
from planner.arch.records import ModelArch, WeightFormat
from planner.cost.deployment import Deployment, Offload
from planner.cost.ledger import memory, model_bytes, room
from planner.search.machine import Machine, host_rate

ENGINE_NAMES = {
    "vllm": "vllm",
    "sglang": "sglang",
    "trtllm": "trtllm",
    "tensorrt-llm": "trtllm",
    "tensorrt": "trtllm",
    "llama.cpp": "llama.cpp",
    "llamacpp": "llama.cpp",
    "llama": "llama.cpp",
    "ggml": "llama.cpp",
    "lucebox": "llama.cpp",
    "transformers": "transformers",
    "hf": "transformers",
}
FRONT_ENDS = {
    "ollama": "Ollama hands llama.cpp no drafter [github.com/ollama/ollama/issues/5800]; use "
    "--engine llama.cpp for what the same files do there",
    "lmstudio": "LM Studio takes a draft model in its own settings, without a draft length, and no "
    "other drafter [lmstudio.ai/docs, Speculative Decoding]; use --engine llama.cpp --drafter "
    "external for what the same files do there",
}
"""Programs around llama.cpp that take no plan of this kind, and why."""
_OTHER_ENGINES = ("exllama", "tabbyapi", "mlx", "mlc", "tgi", "lmdeploy")
"""Engines of their own, whose kernels and rules were not read."""
DEFAULT_VERSIONS = {
    "vllm": "0.33.0",
    "llama.cpp": "b11434",
    "sglang": "0.5.23",
    "trtllm": "0004396720",
}
"""Engine versions whose kernel rules and config rules were read."""
TENSOR_PARALLEL = ("vllm", "sglang", "trtllm")
GPU_COUNTS = (1, 2, 4, 8, 16, 32)
RAM_SHARE = 0.9
"""Part of the system memory that weights may take; the rest is the operating system's."""


@dataclass(frozen=True, slots=True)
class Target:
    """A model in one weight format and cache type."""

    arch: ModelArch
    weights: WeightFormat
    kv_dtype: str
    assumptions: tuple[str, ...] = ()


def engine_named(text: str) -> str | None:
    """The engine that free text names; None where no known one is among its words."""
    key = text.strip().lower()
    if front_end(text) or _squeezed(text).startswith(_OTHER_ENGINES):
        return None
    for word in (key, *re.findall(r"[a-z0-9.]+", key)):
        if word in ENGINE_NAMES:
            return ENGINE_NAMES[word]
    return next((e for word, e in ENGINE_NAMES.items() if len(word) > 2 and word in key), None)


def front_end(text: str) -> str | None:
    """Why a program around llama.cpp that the text names takes no plan; None for any other."""
    squeezed = _squeezed(text)
    return next((why for name, why in FRONT_ENDS.items() if squeezed.startswith(name)), None)


def _squeezed(text: str) -> str:
    return re.sub(r"[-_\s]", "", text.lower())


def engine_of(text: str | None) -> tuple[str, str | None] | None:
    """(engine, version or None) of `NAME[==VER]` or free text; None where nothing is said."""
    if text is None or not text.strip():
        return None
    name, pinned, version = text.strip().partition("==")
    if pinned and not version.strip():
        raise InputError(f"engine {text!r} ends in == without a version; drop == or add one")
    if engine := engine_named(name):
        return engine, version.strip() or None
    if why := front_end(name):
        raise InputError(f"engine {text!r} cannot run a plan: {why}")
    known = ", ".join(dict.fromkeys(ENGINE_NAMES.values()))
    if _squeezed(name).startswith(_OTHER_ENGINES):
        raise InputError(
            f"engine {text!r} has kernels and rules that were not read, and another engine's "
            f"figures are not its own; known engines: {known}"
        )
    raise InputError(f"unknown engine {text!r}; known engines: {known}")


@lru_cache(maxsize=1024)
def target_of(
    model: str, quant: str | None, kv_dtype: str | None, *, gpu: str, own_files: bool = True
) -> Target:
    """The model with the stated weights, else those that its name says, else its own, else bf16.

    `own_files` admits paths and hub ids; without it only catalog names are looked up.
    """
    arch = load_model(model) if own_files else load_catalog_model(model)
    said = parse_quant(quant, gpu)
    own = arch.native_format
    weights = said.weight or arch.named_format or own or weight_format("bf16")
    if weights is None:
        raise InputError(f"{arch.name}: no weight format could be read")
    assumptions = [*said.assumptions, *arch.assumptions]
    if quant and said.weight is None and said.kv_dtype is None:
        assumptions.append(f"weight format {quant[:60]!r} not understood: {weights.name} assumed")
    cache = kv_dtype_name(kv_dtype) if kv_dtype else said.kv_dtype
    if kv_dtype and cache is None:
        raise InputError(f"unknown KV cache type {kv_dtype!r}; e.g. bf16, fp8, q8_0, q4_0")
    return Target(arch, weights, cache or "bf16", tuple(assumptions))


_SPARSE_IN_LLAMACPP = ("DeepseekV4", "DeepseekV32", "GlmMoeDsa")
"""Families with sparse or compressed attention among llama.cpp's architectures: deepseek4,
deepseek32, glm-dsa (names in the binary of xllamacpp 2026.10.11549)."""


def runs_in_llamacpp(arch: ModelArch) -> bool:
    """Whether llama.cpp's kernels know the model's attention."""
    kinds = {g.attention.kind for g in arch.groups if g.attention}
    return kinds <= {"gqa", "mla", "linear"} or arch.architecture.startswith(_SPARSE_IN_LLAMACPP)


def default_engine(target: Target, device: Device, offload: str | None = None) -> str:
    """llama.cpp for GGUF files, for cards that vLLM does not serve (below 7.5) and for weights in
    host memory where its kernels know the model's attention; else vLLM."""
    if target.weights.family == "gguf":
        return "llama.cpp"
    if device.compute_capability is None:  # ROCm and CANN builds of vLLM need a 16-bit matrix unit
        return "vllm" if "bf16" in device.flops else "llama.cpp"
    hybrid = offload is not None and runs_in_llamacpp(target.arch)
    return "llama.cpp" if float(device.compute_capability) < 7.5 or hybrid else "vllm"


@dataclass(frozen=True, slots=True)
class Placement:
    """How the model is spread, and what that needs."""

    deployment: Deployment
    fits: bool
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked of a placement; None lets the planner choose."""

    num_gpus: int | None = None
    tp: int | None = None
    expert_parallel: int | None = None
    attention_replicas: int | None = None
    batch: int = 1
    context_len: int = 2048
    offload: str | None = None
    power_limit_w: float | None = None
    max_vram_mib: float | None = None
    reserve_bytes: float = 0.0
    """Room to leave on each GPU for a drafter."""


def _tensor_parallel(engine: str, arch: ModelArch, count: int) -> int:
    if engine not in TENSOR_PARALLEL:
        return 1
    heads = arch.main_attention.num_heads
    while count > 1 and heads % count:
        count //= 2
    return count


def _deployment(
    target: Target, machine: Machine, engine: tuple[str, str | None], wanted: Wanted, count: int
) -> Deployment:
    replicas = wanted.attention_replicas or 1
    tp = wanted.tp or _tensor_parallel(engine[0], target.arch, max(1, count // replicas))
    if replicas > 1:
        tp = max(1, count // replicas)
    return Deployment(
        arch=target.arch,
        weights=target.weights,
        kv_dtype=target.kv_dtype,
        device=machine.device,
        num_gpus=count,
        tp=tp,
        engine=engine[0],
        engine_version=engine[1],
        expert_parallel=wanted.expert_parallel or 1,
        attention_replicas=replicas,
        power_limit_w=wanted.power_limit_w or machine.power_limit_w,
        draft_device=machine.draft_device,
    )


def fits_plain(d: Deployment, wanted: Wanted) -> bool:
    """Whether the target alone fits at the wanted batch and context."""
    return over_room(d, wanted) <= 0.0


def over_room(d: Deployment, wanted: Wanted) -> float:
    """Bytes by which the target (and the room to leave) exceeds one GPU; negative when it fits."""
    need = float(memory(d, None, wanted.batch, wanted.context_len, 0).total.max())
    return need + wanted.reserve_bytes - room(d, wanted.max_vram_mib)


def parse_offload(text: str) -> tuple[str, int | None]:
    """('auto', None) or ('layers' | 'experts', count)."""
    if text.strip().lower() == "auto":
        return "auto", None
    kind, _, number = text.strip().lower().partition("=")
    if kind in ("layers", "experts") and number.isdigit():
        return kind, int(number)
    raise InputError(f"--offload {text!r} is not auto, layers=N or experts=N")


def _offloaded(d: Deployment, machine: Machine, wanted: Wanted) -> Deployment:
    """The deployment with as much in host memory as asked, or as needed to fit."""
    kind, count = parse_offload(wanted.offload or "auto")
    rate = host_rate(machine)
    layers = d.arch.num_layers
    if count is not None:
        share = min(1.0, count / layers)
        if kind == "experts":
            return replace(d, offload=Offload(rate, expert_share=share))
        return replace(d, offload=Offload(rate, layer_share=share))
    dense, experts, _ = model_bytes(d.arch, d.weights)
    over = max(0.0, over_room(d, wanted))
    ranks = d.tp * d.layer_split
    # Engines move whole layers; a part of one would be lost in the command that is written.
    moved = math.ceil(layers * min(1.0, over * ranks / (experts or dense))) / layers
    if experts:
        moved = max(moved, min(1.0, machine.experts_on_host / layers))
    if moved == 0:
        return d
    if experts:
        return replace(d, offload=Offload(rate, expert_share=moved))
    return replace(d, offload=Offload(rate, layer_share=moved))


def gpu_counts(machine: Machine, wanted: Wanted) -> tuple[int, ...]:
    """Numbers of GPUs to try, smallest first; the stated one alone where there is one."""
    stated = wanted.num_gpus or machine.count
    if stated is None and wanted.offload is None:
        tp = wanted.tp or 1
        return tuple(tp * n for n in GPU_COUNTS if tp * n <= max(tp, GPU_COUNTS[-1]))
    return (stated or max(1, wanted.tp or 1),)


def place(
    target: Target, machine: Machine, engine: tuple[str, str | None], wanted: Wanted
) -> Placement:
    """Smallest number of GPUs that holds the target, or the stated one; offload where asked."""
    first = None
    for count in gpu_counts(machine, wanted):
        d = _placed(target, machine, engine, wanted, count)
        if fits_plain(d, wanted) and not _over_ram(d, machine):
            return Placement(d, fits=True)
        first = first or d
    d = first or d
    reason = _over_ram(d, machine) if fits_plain(d, wanted) else _over_vram(d, wanted)
    return Placement(d, fits=False, reasons=(reason,))


def _placed(
    target: Target, machine: Machine, engine: tuple[str, str | None], wanted: Wanted, count: int
) -> Deployment:
    d = _deployment(target, machine, engine, wanted, count)
    return _offloaded(d, machine, wanted) if wanted.offload else d


def _over_vram(d: Deployment, wanted: Wanted) -> str:
    need = float(memory(d, None, wanted.batch, wanted.context_len, 0).total.max()) / 2**30
    have = room(d, wanted.max_vram_mib) / 2**30
    return (
        f"{d.arch.name} in {d.weights.name} needs {need:.1f} GiB on each of "
        f"{d.num_gpus} x {d.device.name} at batch {wanted.batch} and context "
        f"{wanted.context_len}, of {have:.1f} GiB usable"
    )


def _over_ram(d: Deployment, machine: Machine) -> str:
    """Why the host cannot keep its part; empty where it can, or where its memory is not stated."""
    held = float(memory(d, None, 1, 1, 0).host.max()) / 2**20
    if d.offload is None or machine.ram_mib is None or held <= RAM_SHARE * machine.ram_mib:
        return ""
    return (
        f"{d.arch.name} in {d.weights.name} leaves {held / 1024:.1f} GiB of weights to the host, "
        f"whose {machine.ram_mib / 1024:.0f} GiB of memory hold "
        f"{RAM_SHARE * machine.ram_mib / 1024:.0f} GiB beside the system"
    )
