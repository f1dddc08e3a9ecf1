"""What is to be built: the attention layers of the plan's model on the plan's card."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hwprofiles.device import Device, device_for
from hwprofiles.lookup import find_gpu
from planner.arch.load import load_model
from planner.arch.records import AttentionShape, ModelArch
from planner.errors import InputError, NoFeasiblePlan
from planner.search.records import Evaluation, Plan
from spec_kernels.arch import arch_limits
from spec_kernels.errors import UnsupportedShape
from spec_kernels.verify_attention.spec import HEAD_DIMS, Dtype, KvDtype, VerifySpec, ladder

KV_DTYPES: dict[str, tuple[Dtype, KvDtype]] = {
    "bf16": ("bf16", "same"),
    "fp16": ("fp16", "same"),
    "fp8": ("bf16", "fp8_e4m3"),
}
"""KV cache type of a plan -> types of queries and of the cache in the kernel."""

BLOCK_FAMILIES = ("dflash", "dspark")
"""Drafters whose layers see the whole draft at once."""

WITH_SINKS = ("GptOss", "gpt-oss", "gptoss", "gpt_oss")
"""Architectures, as configs and GGUF files spell them, whose heads have a sink (gpt-oss
modeling_gpt_oss.py: `self.sinks`)."""
WITH_SOFTCAP = ("Gemma2", "gemma2")
"""Those with `attn_logit_softcapping`."""


@dataclass(frozen=True, slots=True)
class LayerWork:
    """One kind of attention layer, as one GPU sees it.

    A layer of the target verifies and decodes; one whose mask is `block` belongs to a block
    drafter, which drafts all D tokens in one pass.
    """

    name: str
    """Name of the layer group: full, window, ... or `drafter`."""
    group_size: int
    kv_heads: int
    """On one rank."""
    spec: VerifySpec
    window: int | None = None
    """Tokens that the layer sees at most."""


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """Everything that decides a build, apart from versions."""

    model: str
    device: Device
    capability: int
    """major * 10 + minor."""
    layers: tuple[LayerWork, ...]
    draft_len: int
    batch: int
    context_len: int
    kv_dtype: str
    notes: tuple[str, ...] = ()
    """What the user should know about the plan's part in this."""

    @property
    def q_len(self) -> int:
        """Query tokens of one sequence in a verification."""
        return 1 + self.draft_len


def request_of(plan: Plan, *, page_size: int) -> BuildRequest:
    """What the plan's model needs on the plan's card.

    Raises:
        InputError: the card or an attention layer has no kernel here.
        NoFeasiblePlan: the plan has no drafted candidate.
    """
    chosen, notes = _candidate(plan)
    device = device_for(find_gpu(plan.inputs.gpu))
    arch = load_model(plan.inputs.model)
    try:
        capability = _capability(device)
        notes += _without_matrix(device, capability)
        target = _layers(arch, chosen, page_size)
        drafter = _drafter_layers(plan, chosen, page_size, notes)
        layers = tuple(_for_card(layer, capability) for layer in (*target, *drafter))
    except UnsupportedShape as refused:
        raise InputError(f"no kernel for {arch.name} on {device.name}: {refused}") from refused
    if plan.inputs.engine == "llama.cpp":
        notes.append("llama.cpp cannot load this kernel; it is of use to vLLM's page layout")
    return BuildRequest(
        model=plan.inputs.model_name,
        device=device,
        capability=capability,
        layers=layers,
        draft_len=chosen.draft_len,
        batch=chosen.batch,
        context_len=chosen.context_len,
        kv_dtype=chosen.kv_dtype,
        notes=tuple(notes),
    )


def _candidate(plan: Plan) -> tuple[Evaluation, list[str]]:
    if plan.drafted is None:
        raise NoFeasiblePlan(
            "the plan has no drafted candidate, so there is nothing to verify; "
            "try another --drafter, or a smaller --quant, --batch or --context"
        )
    if plan.best.draft_len > 0:
        return plan.drafted, []
    found = f"{plan.drafted.family} D={plan.drafted.draft_len}"
    return plan.drafted, [f"the plan says do not speculate; built for its best drafter, {found}"]


def _capability(device: Device) -> int:
    if device.compute_capability is None:
        raise UnsupportedShape(f"{device.vendor} cards have no CUDA compute capability")
    major, minor = device.compute_capability.split(".")
    capability = int(major) * 10 + int(minor)
    arch_limits(capability)
    return capability


def _without_matrix(device: Device, capability: int) -> list[str]:
    """What a card without tensor-core code loses; n rows do n FLOP for each byte of the cache."""
    if arch_limits(capability).matrix_rows or device.fp32_flops is None:
        return []
    rows = device.fp32_flops / device.dram_bytes_per_s
    return [
        f"for compute capability {device.compute_capability} Triton emits no tensor-core "
        f"instructions: fp16 products run on the vector units, so that more than {rows:.0f} rows "
        "are bound by arithmetic and the engine's own kernel is probably faster; built in fp16"
    ]


def _for_card(layer: LayerWork, capability: int) -> LayerWork:
    """The layer in the arithmetic that the card has; engines too run fp16 where bf16 is missing."""
    if not arch_limits(capability).matrix_rows:
        layer = replace(layer, spec=replace(layer.spec, dtype="fp16"))
    ladder(capability, layer.spec)
    return layer


def _layers(arch: ModelArch, chosen: Evaluation, page_size: int) -> tuple[LayerWork, ...]:
    found: dict[tuple[object, ...], LayerWork] = {}
    for group in arch.groups:
        shape = group.attention
        if shape is None or shape.kind == "linear":
            continue
        spec = replace(
            _spec(shape, chosen.kv_dtype, page_size),
            sinks=arch.architecture.startswith(WITH_SINKS),
            softcap=arch.architecture.startswith(WITH_SOFTCAP),
        )
        # Where ranks outnumber KV heads (always so for a latent), each keeps one whole.
        kv_heads = max(1, shape.num_kv_heads // chosen.tp)
        group_size = max(1, shape.num_heads // chosen.tp // kv_heads)
        work = LayerWork(group.name, group_size, kv_heads, spec, shape.window)
        found.setdefault((spec, work.group_size), work)
    if not found:
        raise UnsupportedShape("no layer of it has softmax attention")
    return tuple(found.values())


def _drafter_layers(
    plan: Plan, chosen: Evaluation, page_size: int, notes: list[str]
) -> tuple[LayerWork, ...]:
    """The attention of a block drafter; none for drafters that decode token by token."""
    drafter = plan.drafter or {}
    if chosen.family not in BLOCK_FAMILIES or drafter.get("family") != chosen.family:
        return ()
    heads, kv_heads, head_dim = (
        int(drafter.get(name) or 0) for name in ("num_heads", "num_kv_heads", "head_dim")
    )
    if head_dim not in HEAD_DIMS or not kv_heads or heads % kv_heads:
        notes.append(
            f"no kernel for the drafter's own attention: {heads} heads, {kv_heads} KV heads of "
            f"{head_dim}"
        )
        return ()
    window = drafter.get("window")
    dtype, _ = KV_DTYPES[chosen.kv_dtype]
    spec = VerifySpec(head_dim, page_size, dtype, mask="block", window=window is not None)
    on_rank = max(1, kv_heads // chosen.tp)
    group_size = max(1, heads // chosen.tp // on_rank)
    return (LayerWork("drafter", group_size, on_rank, spec, window),)


def _spec(shape: AttentionShape, kv_dtype: str, page_size: int) -> VerifySpec:
    if shape.kind not in {"gqa", "mla"}:
        raise UnsupportedShape(
            f"its attention is {shape.kind}; the kernel computes grouped-query and latent attention"
        )
    if kv_dtype not in KV_DTYPES:
        raise UnsupportedShape(
            f"KV cache type {kv_dtype}; built are {', '.join(KV_DTYPES)}: give --kv-dtype"
        )
    rope_dim = shape.head_dim - shape.v_head_dim
    if shape.kind == "gqa" and rope_dim:
        raise UnsupportedShape(
            f"keys have {shape.head_dim} columns and values {shape.v_head_dim}; outside latent "
            "attention the kernel needs them equal"
        )
    dtype, cached = KV_DTYPES[kv_dtype]
    window = shape.window is not None
    return VerifySpec(shape.v_head_dim, page_size, dtype, cached, rope_dim=rope_dim, window=window)
