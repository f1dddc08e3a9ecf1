"""What a question states and the looked-up facts contradict: refused, or said beside the answer."""

import math
from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from hwprofiles.detect import is_auto
from hwprofiles.device import Device
from hwprofiles.errors import InputError
from hwprofiles.hosts import host_of
from hwprofiles.load import load_gpu
from hwprofiles.lookup import find_gpu
from hwprofiles.scope import scope_of
from planner.acceptance.curve import AcceptanceCurve
from planner.arch.quant import format_names
from planner.arch.quant_text import parse_quant
from planner.arch.records import ModelArch
from planner.cost.deployment import Deployment
from planner.drafters.records import FAMILIES, DrafterSpec
from planner.search.machine import Machine
from planner.search.question import Question
from planner.search.setup import TENSOR_PARALLEL, parse_offload
from planner.workload.parse import stated_workload
from planner.workload.records import Workload

LEAST_POWER_SHARE = 0.1
"""Of the board's limit: no driver takes a cap below, and the laws know nothing of such clocks."""


def refuse_unknown(question: Question) -> None:
    """Refuse what the free-text readers would only note: a person can correct it.

    Raises:
        InputError: the weight format, the host or the workload is not known, or a tile has no
            rows.
    """
    if question.tile_rows < 1:
        raise InputError(f"--tile-rows {question.tile_rows} must be at least 1")
    if question.quant is not None:
        said = parse_quant(question.quant, question.gpu)
        if said.weight is None and said.kv_dtype is None:
            known = {name.lower(): name for name in format_names()}
            near = get_close_matches(question.quant.lower(), known, n=3, cutoff=0.5)
            examples = [known[name] for name in near] or ["fp8", "w4a16", "Q4_K_M"]
            raise InputError(
                f"--quant {ascii(question.quant)[:60]} names no known weight format; "
                f"give for example {', '.join(examples)}"
            )
    if question.host is not None:
        host_of(question.host)
    stated_workload(question.workload)
    for complaint in _unnamed(question):
        raise InputError(complaint)
    if not is_auto(question.gpu):
        scope = scope_of(load_gpu(find_gpu(question.gpu).gpu_id))
        if scope.level == "not modelled":
            raise InputError(f"--gpu {question.gpu} is not modelled, because {scope.why}")


def _unnamed(question: Question) -> Iterator[str]:
    """Measured acceptance is that of one drafter: taken for all, the cheapest would win."""
    told = question.tokens_per_round
    stated = "--acceptance" if told is None else f"--tokens-per-round {told:g}"
    own = told is not None or question.acceptance is not None
    if own and question.drafter is None and question.drafter_path is None:
        yield (
            f"{stated} holds for the drafter that it was measured with; name that one by "
            f"--drafter ({', '.join(f for f in FAMILIES if f != 'none')}) or --drafter-path"
        )


def stated_doubts(question: Question, curve: AcceptanceCurve, draft_len: int) -> tuple[str, ...]:
    """Where measured acceptance was carried to a draft length that it was not measured at."""
    told, at = question.tokens_per_round, curve.sd_draft_len
    found = []
    if told is not None and question.measured_draft_len is None:
        found.append(
            f"--tokens-per-round {told:g} is read as measured at D = {at}, the usual one of this "
            f"drafter; write {told:g}@D if it was another"
        )
    if (told is not None or question.acceptance is not None) and draft_len > at:
        found.append(
            f"acceptance was measured at D = {at} and is carried on to D = {draft_len} as drafters "
            "of this family usually go on; the interval counts how they differ"
        )
    return tuple(found)


def refuse_misfits(question: Question, arch: ModelArch, machine: Machine) -> None:
    """Refuse counts that this model or these cards cannot have.

    Raises:
        InputError: names the rule, both values and the next step.
    """
    complaints = (
        *_misplaced(question, arch, machine),
        *_unequal(question, arch, machine),
        *_starved(question, machine),
    )
    for complaint in complaints:
        raise InputError(complaint)


def _starved(question: Question, machine: Machine) -> Iterator[str]:
    cap, usual = question.power_limit_w or machine.power_limit_w, machine.device.tdp_w
    if cap and usual and cap < LEAST_POWER_SHARE * usual:
        yield (
            f"a power limit of {cap:g} W is below a tenth of the {usual:g} W of "
            f"{machine.device.name}, where no card works; give --power-limit in W for each GPU, "
            f"from {math.ceil(LEAST_POWER_SHARE * usual)}"
        )


def _misplaced(question: Question, arch: ModelArch, machine: Machine) -> Iterator[str]:
    if question.offload is None:
        return
    if machine.device.unified_memory:
        yield (
            f"--offload {question.offload}: {machine.device.name} shares its memory with the "
            "processor, so that nothing is gained by moving weights; drop --offload"
        )
    kind, count = parse_offload(question.offload)
    if kind == "experts" and not arch.is_moe:
        yield (
            f"--offload {question.offload}: {arch.name} is dense and has no experts; "
            "use --offload layers=N or auto"
        )
    if count is not None and count > arch.num_layers:
        yield (
            f"--offload {question.offload}: {arch.name} has {arch.num_layers} layers; "
            f"give a number up to {arch.num_layers}, or auto"
        )


def _unequal(question: Question, arch: ModelArch, machine: Machine) -> Iterator[str]:
    ranks, heads = question.tp, arch.main_attention.num_heads
    if ranks is None or ranks == 1:
        return
    if heads % ranks:
        yield (
            f"--tp {ranks} does not divide the {heads} attention heads of {arch.name}; "
            "give a --tp that does"
        )
    count = machine.count or 1
    if count % ranks:
        yield f"--tp {ranks} does not divide {count} GPUs; give a --tp or a --gpu count that does"


def context_doubts(arch: ModelArch, context_len: int) -> tuple[str, ...]:
    """A context past the positions that the model states."""
    longest = arch.max_position
    if longest is None or context_len <= longest:
        return ()
    return (
        f"context {context_len} is past the {longest} positions of {arch.name}: it needs rope "
        "scaling, and acceptance there is not known",
    )


def drafter_doubts(spec: DrafterSpec | None, contexts: Sequence[int]) -> tuple[str, ...]:
    """A drafter asked to work past the positions it was made for."""
    longest = spec.max_position if spec else None
    if spec is None or longest is None or max(contexts) <= longest:
        return ()
    return (
        f"the drafter {spec.drafter_id} ends at {longest} positions and context "
        f"{max(contexts)} was asked for: what it proposes there is seldom accepted",
    )


def limit_doubts(
    device: Device, *, power_limit_w: float | None = None, max_vram_mib: float | None = None
) -> tuple[str, ...]:
    """Limits above what the board has, which limit nothing."""
    found = []
    if power_limit_w and device.tdp_w and power_limit_w > device.tdp_w:
        found.append(
            f"a power limit of {power_limit_w:g} W is above the {device.tdp_w:g} W of "
            f"{device.name}: taken as no limit"
        )
    if max_vram_mib and max_vram_mib > device.vram_mib:
        found.append(
            f"--max-vram {max_vram_mib:g} MiB is above the {device.vram_mib:g} MiB of "
            f"{device.name}: taken as no limit"
        )
    return tuple(found)


def speed_doubts(d: Deployment) -> tuple[str, ...]:
    """A class of deployments whose plain speed the model tells too fast."""
    if not d.arch.is_moe or d.tp == 1 or d.offload is not None:
        return ()
    return (
        "mixtures of experts over several GPUs were measured at 0.3 to 1 times the plain speed "
        "that is predicted here: count on the lower half of the interval; the speedup is a ratio "
        "and hardly affected",
    )


def stage_doubts(d: Deployment) -> tuple[str, ...]:
    """An engine that shares each layer had to split by layers, because the heads do not divide."""
    heads, wide = d.arch.main_attention.num_heads, d.num_gpus // d.attention_replicas
    if d.engine not in TENSOR_PARALLEL or d.layer_split == 1 or heads % wide == 0:
        return ()
    return (
        f"{heads} attention heads do not divide by {wide} GPUs: the layers are split into "
        f"{d.layer_split} stages that work in turn, which is no faster than one stage",
    )


def doubts(
    question: Question, arch: ModelArch, machine: Machine, workload: Workload, context_len: int
) -> tuple[str, ...]:
    """What the user should know of the question before trusting the answer."""
    found = [*context_doubts(arch, context_len)]
    limit = question.power_limit_w or machine.power_limit_w
    found += limit_doubts(machine.device, power_limit_w=limit, max_vram_mib=question.max_vram_mib)
    if question.workload is not None:
        found += workload.assumptions
    return tuple(found)
