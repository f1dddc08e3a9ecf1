"""What the search goes through: formats, cache types, drafters, batches and contexts."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from hwprofiles.errors import InputError
from planner.acceptance.constants import curve_from_tokens_per_round, decay_log_sd
from planner.acceptance.curve import AcceptanceCurve
from planner.acceptance.prior import AcceptanceQuery, prior
from planner.arch.quant import weight_format
from planner.arch.records import ModelArch, WeightFormat
from planner.drafters.records import FAMILIES, DrafterSpec, Family
from planner.drafters.select import DrafterChoice, drafters_for
from planner.drafters.spelling import family_named
from planner.search.evaluate import Grid
from planner.search.machine import Machine
from planner.search.question import Question
from planner.search.setup import Target
from planner.workload.records import Workload

BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
CONTEXTS = (1024, 4096, 16384, 32768, 131072)
DEFAULT_CONTEXT = 4096

_LADDERS = {
    "tensor": ("bf16", "fp8", "w4a16"),
    "gguf": ("BF16", "Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M", "IQ4_XS", "Q3_K_M", "IQ3_XXS"),
}
"""Formats tried in turn when none is stated, most precise first."""


def grid_of(question: Question, arch: ModelArch) -> tuple[Grid, int, int]:
    """(grid, headline batch, headline context)."""
    batches = question.batch or ((question.concurrency,) if question.concurrency else None)
    contexts = question.context
    if contexts is None and question.prompt_len:
        contexts = (question.prompt_len + (question.output_len or 0) // 2,)
    longest = arch.max_position or max(CONTEXTS)
    batch = batches[0] if batches else 1
    context = contexts[0] if contexts else min(DEFAULT_CONTEXT, longest)
    usual = [c for c in CONTEXTS if c <= longest] or [longest]
    all_batches = batches if batches and len(batches) > 1 else sorted({*BATCHES, batch})
    all_contexts = contexts if contexts and len(contexts) > 1 else sorted({*usual, context})
    return Grid(tuple(sorted(set(all_batches))), tuple(sorted(set(all_contexts)))), batch, context


def formats(
    target: Target, engine: str, machine: Machine, *, stated: bool, offload: bool
) -> list[WeightFormat]:
    """Weight formats to try, most precise first; the model's own alone where it has one that the
    engine takes. With weights in host memory, whose size sets the pace, 4 bits."""
    own = target.arch.native_format
    gguf = engine == "llama.cpp"
    stated = stated or target.arch.named_format is not None
    if stated or (own is not None and (own.family == "gguf") == gguf):
        return [target.weights]
    names = _LADDERS["gguf" if gguf else "tensor"]
    if own is not None and own.expert_bits is not None and own.expert_bits < 6:
        names = ("MXFP4_MOE",)
    elif offload:
        names = ("Q4_K_M",) if gguf else ("w4a16",)
    found = [weight_format(n) for n in names]
    capability = float(machine.device.compute_capability or "0")
    return [f for f in found if f is not None and not (f.compute == "fp8" and capability < 8.9)]


def _families(question: Question) -> tuple[Family, ...] | None:
    if question.drafter is None:
        return None
    family = family_named(question.drafter)
    if family is not None:
        return () if family == "none" else (family,)
    raise InputError(f"--drafter {question.drafter!r} is not one of {', '.join(FAMILIES)}")


def drafters(question: Question, arch: ModelArch, engine: str) -> DrafterChoice:
    """Drafters to try, and the families that cannot apply with their reason."""
    families = _families(question)
    if families == ():
        return DrafterChoice((), {})
    found = drafters_for(arch, families=families, drafter_path=question.drafter_path, engine=engine)
    specs = tuple(as_served(spec, engine) for spec in found.specs)
    return _without(DrafterChoice(specs, found.not_applicable), dict(question.set_aside))


def as_served(spec: DrafterSpec, engine: str) -> DrafterSpec:
    """SGLang and TensorRT-LLM run each of several MTP modules once; the others repeat them."""
    if spec.family != "mtp" or spec.draft_len_step <= 1 or engine not in ("sglang", "trtllm"):
        return spec
    return replace(spec, max_draft_len=min(spec.draft_len_step, spec.max_draft_len or 64))


def _without(choice: DrafterChoice, set_aside: Mapping[str, str]) -> DrafterChoice:
    """The choice less the drafters that were set aside, whose reasons stand with their family."""
    if not set_aside:
        return choice
    gone = [spec for spec in choice.specs if spec.drafter_id in set_aside]
    reasons: dict[Family, str] = {spec.family: set_aside[spec.drafter_id] for spec in gone}
    kept = tuple(spec for spec in choice.specs if spec.drafter_id not in set_aside)
    still = {spec.family for spec in kept}
    named = {family: why for family, why in reasons.items() if family not in still}
    return DrafterChoice(kept, {**choice.not_applicable, **named})


def _of_drafter(measured: AcceptanceCurve, spec: DrafterSpec) -> AcceptanceCurve:
    """A measured curve with the limits of its drafter, and how its family differs beyond."""
    return replace(
        measured, max_draft_len=spec.max_draft_len, decay_log_sd=decay_log_sd(spec.family)
    )


@dataclass(frozen=True, slots=True)
class Acceptance:
    """What the user says of acceptance, and the workload."""

    question: Question
    workload: Workload
    target_name: str

    def curve(self, spec: DrafterSpec, context: int) -> AcceptanceCurve:
        """Acceptance of a drafter at a context: the user's own figure before any prior."""
        q = self.question
        if q.acceptance is not None:
            from planner.acceptance.user_file import read_acceptance  # noqa: PLC0415  # seldom

            found = read_acceptance(Path(q.acceptance), family=spec.family)
            return _of_drafter(found, spec)
        if q.tokens_per_round is not None:
            depth = q.measured_draft_len or q.draft_len or spec.default_draft_len or 3
            if q.tokens_per_round > depth + 1:
                raise InputError(
                    f"--tokens-per-round {q.tokens_per_round:g}: a round of D = {depth} draft "
                    f"tokens and the bonus token yields {depth + 1} at most; write the D that it "
                    f"was measured at: --tokens-per-round {q.tokens_per_round:g}@D"
                )
            curve = curve_from_tokens_per_round(spec.family, q.tokens_per_round, depth)
            return _of_drafter(replace(curve, log_sd=0.0), spec)
        temperature = q.temperature if q.temperature is not None else self.workload.temperature
        return prior(
            AcceptanceQuery(
                family=spec.family,
                workload=self.workload.name,
                temperature=temperature,
                thinking=bool(self.workload.thinking),
                drafter_id=spec.drafter_id,
                target_name=self.target_name,
                context_len=context,
                drafter_max_position=spec.max_position,
                max_draft_len=spec.max_draft_len,
            )
        )
