"""The question with its names looked up: model, machine, engine, format, placement, grid."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hwprofiles.calibration import shelf_of
from hwprofiles.detect import is_auto
from planner.arch.records import WeightFormat
from planner.cost.constants import replaced
from planner.drafters.select import DrafterChoice
from planner.errors import NoFeasiblePlan
from planner.search.calibrated import NOTHING, Calibrated, Subject, calibrated, on_machine
from planner.search.candidates import drafters, formats, grid_of
from planner.search.doubts import refuse_misfits, refuse_unknown
from planner.search.draft_device import with_draft_device
from planner.search.evaluate import Grid
from planner.search.load import implied_batch, targets_alone, with_batch
from planner.search.machine import Machine, machine_of
from planner.search.question import Question
from planner.search.remedies import Misfit, remedies
from planner.search.setup import (
    DEFAULT_VERSIONS,
    Placement,
    Target,
    Wanted,
    default_engine,
    engine_of,
    place,
    runs_in_llamacpp,
    target_of,
)
from planner.workload.parse import parse_workload
from planner.workload.records import Workload


@dataclass(frozen=True, slots=True)
class Situation:
    """The question with its names looked up."""

    question: Question
    target: Target
    machine: Machine
    engine: tuple[str, str | None]
    placement: Placement
    grid: Grid
    headline: tuple[int, int]
    """Indices of the stated batch and context."""
    workload: Workload
    choice: DrafterChoice
    """Drafters that come into question, sizes beside a bf16 target."""
    tried: tuple[str, ...]
    """Formats that did not fit, one sentence each."""
    calibrated: Calibrated = NOTHING
    """Measured constants in force for this question."""


def wanted(question: Question, batch: int, context: int) -> Wanted:
    """What the question asks of a placement."""
    return Wanted(
        tp=question.tp,
        batch=batch,
        context_len=context,
        offload=question.offload,
        power_limit_w=question.power_limit_w,
        max_vram_mib=question.max_vram_mib,
    )


def situation(question: Question) -> Situation:
    """Names looked up, format and placement chosen.

    Raises:
        NoFeasiblePlan: no format fits the stated machine at the stated batch and context.
    """
    refuse_unknown(question)
    machine = machine_of(question.gpu, question.host)
    target = target_of(question.model, question.quant, question.kv_dtype, gpu=question.gpu)
    measured = _measured(question, machine, target.arch.name)
    machine = on_machine(machine, measured.constants)
    machine = with_draft_device(replace(machine, count=machine.count or 1), question.drafter_device)
    question = _within_free_memory(question, machine)
    refuse_misfits(question, target.arch, machine)
    with replaced(measured.constants):
        return replace(_placed(question, target, machine), calibrated=measured)


def at_batch(s: Situation, batch: int) -> Situation:
    """The same question with the answer at another batch."""
    grid = with_batch(s.grid, batch)
    return replace(s, grid=grid, headline=(grid.batches.index(batch), s.headline[1]))


def _measured(question: Question, machine: Machine, model: str) -> Calibrated:
    shelf = shelf_of(question.calibration)
    subject = Subject(
        device=machine.device,
        power_limit_w=question.power_limit_w or machine.power_limit_w,
        engine=engine_of(question.engine),
        model=model,
        host_here=is_auto(question.gpu) and question.host is None,
        uuids=machine.uuids,
        uses_host=question.offload is not None or question.drafter_device is not None,
    )
    return calibrated(shelf, subject, refuse=True)


def _placed(question: Question, target: Target, machine: Machine) -> Situation:
    """The first format and engine that fit."""
    grid, batch, context = grid_of(question, target.arch)
    asked = wanted(question, batch, context)
    tried: list[str] = []
    misfits: list[Misfit] = []
    for name, version in _engines(question, target, machine):
        engine = (name, version or DEFAULT_VERSIONS.get(name))
        for fmt in candidate_formats(question, target, engine[0], machine):
            attempt = replace(target, weights=fmt)
            misfit = Misfit(attempt, machine, engine, asked)
            placement, batch = _loaded(question, misfit)
            if placement.fits:
                grid = with_batch(grid, batch)
                headline = (grid.batches.index(batch), grid.contexts.index(context))
                return Situation(
                    question, attempt, machine, engine, placement, grid, headline,
                    parse_workload(question.workload),
                    drafters(question, target.arch, engine[0]), _summed_up(tried),
                )  # fmt: skip
            tried += placement.reasons
            misfits.append(misfit)
    raise NoFeasiblePlan("; ".join([*_summed_up(tried), *_what_fits(misfits)]))


def _loaded(question: Question, tried: Misfit) -> tuple[Placement, int]:
    """The placement and the batch that the load implies on it: all requests keep their caches."""
    asked = tried.wanted
    placement = place(tried.target, tried.machine, tried.engine, asked)
    if not placement.fits:
        return placement, asked.batch
    batch = implied_batch(question, placement.deployment, asked.context_len)
    if batch is None:
        return placement, asked.batch
    if batch <= asked.batch:
        return placement, batch
    more = place(tried.target, tried.machine, tried.engine, replace(asked, batch=batch))
    if more.fits or not targets_alone(question):
        return more, batch
    return _most_that_fits(tried, placement, batch)


def _most_that_fits(tried: Misfit, placement: Placement, too_many: int) -> tuple[Placement, int]:
    """The largest batch below `too_many` that fits, by halving; the asked one is known to fit."""
    batch = tried.wanted.batch
    while too_many - batch > 1:
        middle = (batch + too_many) // 2
        found = place(
            tried.target, tried.machine, tried.engine, replace(tried.wanted, batch=middle)
        )
        if found.fits:
            placement, batch = found, middle
        else:
            too_many = middle
    return placement, batch


def _engines(question: Question, target: Target, machine: Machine) -> list[tuple[str, str | None]]:
    """The stated engine, or the usual one and then llama.cpp, whose formats are smaller."""
    stated = engine_of(question.engine)
    if stated:
        return [stated]
    usual = default_engine(target, machine.device, question.offload)
    if target.arch.is_moe and question.offload is not None and "layers" not in question.offload:
        usual = "llama.cpp"  # the engine that moves experts to host memory
    if machine.draft_device is not None and runs_in_llamacpp(target.arch):
        usual = "llama.cpp"  # the engine that places a drafter on another device
    smaller = usual == "vllm" and question.quant is None and runs_in_llamacpp(target.arch)
    return [(usual, None), *([("llama.cpp", None)] if smaller else [])]


def _summed_up(tried: list[str]) -> tuple[str, ...]:
    """What did not fit: the last two in full, the others by their number."""
    if len(tried) <= 2:
        return tuple(tried)
    return (f"formats tried before these and too large: {len(tried) - 2}", *tried[-2:])


def _what_fits(misfits: Sequence[Misfit]) -> tuple[str, ...]:
    found = remedies(misfits)
    if found:
        return (f"what fits: {', or '.join(found)}; or more GPUs (--gpu 2x...)",)
    return (
        "try a smaller --quant, --context or --batch, more GPUs (--gpu 2x...), or --offload auto",
    )


def _within_free_memory(question: Question, machine: Machine) -> Question:
    """The question with no more memory than other programs leave on the cards."""
    free, stated = machine.free_mib, question.max_vram_mib
    if free is None or (stated is not None and stated <= free):
        return question
    return replace(question, max_vram_mib=max(1.0, free))


def candidate_formats(
    q: Question, target: Target, engine: str, machine: Machine
) -> list[WeightFormat]:
    """Weight formats that the question leaves open, most precise first."""
    return formats(
        target, engine, machine, stated=q.quant is not None, offload=q.offload is not None
    )
