"""What a plan asks of any engine: which model, which drafter, how many sequences, which D."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from planner.emit.devices import refuse_devices
from planner.emit.names import argument, local_path
from planner.errors import EngineUnsupported
from planner.search.records import Plan

_QUANTISED_NAME = re.compile(
    r"fp8|nvfp4|mxfp4|mxfp8|int4|int8|w4a16|w8a8|w8a16|awq|gptq|gpt-oss|bnb|quantized"
    # released in FP8 by their makers
    r"|deepseek-(v3|v4|r1)|kimi-k2|minimax-m[23]",
    re.IGNORECASE,
)
_PARALLEL_DRAFT = re.compile(r"p-?eagle|(?<![a-z])pard(?![a-z])", re.IGNORECASE)
_BLOCK_FAMILIES = frozenset({"dflash", "dspark"})
_BLOCK_VARIANT = re.compile(r"dflash-?2|xpress|lilicorr|domino|dfly", re.IGNORECASE)
_MAX_ARM_DRAFT_LEN = 16
_TEMPLATE = "template"
_SUBFOLDER = re.compile(r"(?<![\w./-])([\w.-]+)/")


@dataclass(frozen=True, slots=True)
class Drafter:
    """The drafter as an engine loads it."""

    family: str
    drafter_id: str
    """Hub id or absolute path; empty where nothing of its own is loaded."""
    in_checkpoint: bool
    subfolder: str = ""
    """Folder inside the target's repository that holds it."""
    max_draft_len: int | None = None
    draft_len_step: int = 1
    """Several MTP modules: D is a multiple of their number once it exceeds it."""
    core_bits: float = 16.0
    parallel: bool = False
    """P-EAGLE or PARD, which draft all tokens in one pass."""
    variant: str = ""
    """Descendant of DFlash that an engine must know by itself: dflash2, xpress, lilicorr, ..."""

    @property
    def on_hub(self) -> bool:
        """Whether it is a repository of its own that must be downloaded."""
        return self.exists and bool(self.drafter_id) and not Path(self.drafter_id).is_absolute()

    @property
    def exists(self) -> bool:
        """Whether there is a checkpoint, and not only a form that could be trained."""
        return self.drafter_id != _TEMPLATE

    @property
    def block(self) -> int | None:
        """Trained block of a drafter that proposes it in one pass; None for all others."""
        return self.max_draft_len if self.family in _BLOCK_FAMILIES else None


@dataclass(frozen=True, slots=True)
class Step:
    """D for the batches first..last."""

    first: int
    last: int
    draft_len: int


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to speculate with a plan's drafter; `draft_len` 0 is off."""

    draft_len: int
    steps: tuple[Step, ...] = ()
    """D by batch, where it varies."""
    method: str = ""
    """Another method of the same family, in the engine's own word: suffix in place of ngram."""
    adaptive: bool = False
    """Whether the engine decides in each step how much of the draft it verifies."""

    @property
    def most(self) -> int:
        """Largest D of all steps."""
        return max((step.draft_len for step in self.steps), default=self.draft_len)

    @property
    def ranges(self) -> list[list[int]]:
        """[first batch, last batch, D] of each step."""
        return [[step.first, step.last, step.draft_len] for step in self.steps]


@dataclass(frozen=True, slots=True)
class Deployment:
    """The engine-neutral part of an emission."""

    model: str
    """Hub id, or absolute path of a local checkpoint or GGUF."""
    model_path: Path | None
    quantised: bool
    """Whether the checkpoint's name says that it is quantised already."""
    drafter: Drafter | None
    draft_len: int
    batch: int
    max_seqs: int
    """Largest batch of the table that fits at the stated context."""
    context_len: int
    schedule: tuple[Step, ...]
    """D by batch at the stated context, up to the last batch with room for the drafter."""
    arm_draft_lens: tuple[int, ...]


def deployment(plan: Plan) -> Deployment:
    """Read a plan.

    Raises:
        EngineUnsupported: no engine can be given a command for the plan's devices.
    """
    refuse_devices(plan)
    path = local_path(plan.inputs.model_source)
    if path is not None and path.suffix == ".json":
        path = path.parent
    # A path that was given but is gone is not a hub id either, so the engine's message will do.
    model = argument(str(path) if path else plan.inputs.model_name, "the model's name")
    drafter = _drafter(plan)
    seqs = _max_seqs(plan)
    steps = _schedule(plan, seqs, drafter)
    return Deployment(
        model=model,
        model_path=path,
        quantised=bool(_QUANTISED_NAME.search(Path(model).name)),
        drafter=drafter,
        draft_len=plan.best.draft_len,
        batch=plan.best.batch,
        max_seqs=seqs,
        context_len=plan.best.context_len,
        schedule=steps,
        arm_draft_lens=_arm_draft_lens(plan, drafter),
    )


def offloaded(plan: Plan) -> dict[str, str]:
    """`layers=12` or `experts=30` (comma separated) as a mapping.

    Raises:
        EngineUnsupported: the plan leaves the choice open or names something else.
    """
    if plan.inputs.offload in (None, "", "none"):
        return {}
    parts: dict[str, str] = {}
    for part in str(plan.inputs.offload).split(","):
        name, _, count = part.strip().partition("=")
        if name not in ("layers", "experts") or not re.fullmatch(r"all|\d+(/\d+)?", count):
            raise EngineUnsupported(
                f"an emitted command needs offload as layers=N or experts=N; got "
                f"{plan.inputs.offload!r}; give --offload layers=N"
            )
        parts[name] = count
    return parts


def _drafter(plan: Plan) -> Drafter | None:
    """The drafter of the best drafted candidate; None when off is all there is."""
    chosen = plan.drafted
    if chosen is None or chosen.draft_len == 0 or chosen.family == "none":
        return None
    record = plan.drafter if plan.drafter and plan.drafter.get("family") == chosen.family else {}
    name, folder, inside = _checkpoint(chosen.drafter_id)
    inside = inside or bool(record.get("in_checkpoint"))
    own = chosen.family != "ngram" and not inside and bool(name)
    path = local_path(name) if own else None
    limit, step = record.get("max_draft_len"), record.get("draft_len_step")
    return Drafter(
        family="eagle1" if own and not path and _is_eagle1(chosen.family, name) else chosen.family,
        drafter_id=argument(str(path or name), "the drafter's name") if own else "",
        in_checkpoint=inside,
        subfolder=folder,
        max_draft_len=int(limit) if limit else None,
        draft_len_step=int(step) if step else 1,
        core_bits=float(record.get("core_bits") or 16.0),
        parallel=own and (bool(record.get("parallel")) or bool(_PARALLEL_DRAFT.search(name))),
        variant=_block_variant(chosen.family, name, record),
    )


def _checkpoint(drafter_id: str) -> tuple[str, str, bool]:
    """(hub id or path, folder inside it, whether the target's checkpoint holds it).

    Catalogs write `Qwen/Qwen3.5-27B (in-checkpoint)`, `(dflash/ sub-folder of the target
    checkpoint)` and `org/name (sub-folder dflash/)`.
    """
    if drafter_id.startswith(_TEMPLATE):
        return _TEMPLATE, "", False
    head, bracket, remark = drafter_id.partition(" (")
    if drafter_id.startswith("("):
        head, bracket, remark = "", "(", drafter_id[1:]
    if drafter_id == "in checkpoint" or remark.startswith("in-checkpoint"):
        return "", "", True
    folder = _SUBFOLDER.search(remark) if bracket and remark.endswith(")") else None
    if folder:
        return head, folder.group(1), False
    if "no published" in remark:
        return _TEMPLATE, "", False
    return drafter_id, "", False


def _block_variant(family: str, name: str, record: dict[str, Any]) -> str:
    """Which descendant of DFlash it is, from the catalog's note or the checkpoint's name."""
    if family != "dflash":
        return ""
    words = " ".join((*(str(note) for note in record.get("notes") or ()), name))
    found = _BLOCK_VARIANT.search(words)
    return found.group(0).lower().replace("-", "") if found else ""


def _is_eagle1(family: str, name: str) -> bool:
    """Whether the name is that of a first-generation EAGLE head, which engines load otherwise."""
    lower = name.lower()
    newer = "eagle3" in lower or "eagle-3" in lower or "peagle" in lower or "p-eagle" in lower
    return family == "eagle3" and "eagle" in lower and not newer


def _max_seqs(plan: Plan) -> int:
    best = plan.best
    fitting = [c.batch for c in plan.d_table if c.context_len == best.context_len and c.fits]
    limit = best.ledger.max_batch_at_context or max(fitting, default=best.batch)
    if best.draft_len and plan.schedule:
        limit = min(limit, plan.schedule[-1].last)
    return max(best.batch, min(max(fitting, default=best.batch), limit))


def _schedule(plan: Plan, max_seqs: int, drafter: Drafter | None) -> tuple[Step, ...]:
    """The plan's ranges up to `max_seqs`, no D longer than the drafter's block."""
    limit = (drafter.block if drafter else None) or max(_draft_lens(plan), default=0)
    steps = [
        Step(one.first, min(one.last, max_seqs), min(one.draft_len, limit))
        for one in plan.schedule
        if one.first <= max_seqs
    ]
    last = steps[-1].last if steps else 0
    if last < max_seqs:
        # Beyond what was evaluated the command's own D holds; without one, no drafter is loaded.
        steps.append(Step(last + 1, max_seqs, plan.best.draft_len))
    return _joined(steps)


def _joined(steps: Iterable[Step]) -> tuple[Step, ...]:
    """Neighbours of the same D as one."""
    groups = (list(same) for _, same in groupby(steps, key=lambda step: step.draft_len))
    return tuple(Step(same[0].first, same[-1].last, same[0].draft_len) for same in groups)


def _draft_lens(plan: Plan) -> tuple[int, ...]:
    return (plan.best.draft_len, *(one.draft_len for one in plan.schedule))


def _arm_draft_lens(plan: Plan, drafter: Drafter | None) -> tuple[int, ...]:
    """Draft lengths worth starting an engine with: all small ones and the plan's own."""
    chosen = plan.drafted
    if drafter is None or chosen is None or not drafter.exists:
        return ()
    limit = min(drafter.block or max(8, chosen.draft_len), _MAX_ARM_DRAFT_LEN)
    return tuple(sorted({*range(1, limit + 1), chosen.draft_len}))
