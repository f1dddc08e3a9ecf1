"""Which drafters come into question for one target, and why the others do not."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from planner.acceptance.names import drafter_key
from planner.acceptance.published import observations
from planner.arch.catalog import load_catalog_model
from planner.arch.records import ModelArch
from planner.drafters.base import PublishedDrafter
from planner.drafters.catalog import all_published, published_for
from planner.drafters.external import External
from planner.drafters.records import DrafterSpec, Family
from planner.drafters.registry import DRAFTERS, family_of
from planner.errors import InputError, MissingFact

USUAL_DRAFT_LEN = 5
"""D of a draft model that no table has, as most of those of the table are served."""
PER_FAMILY = 2
"""Published checkpoints of one family that a search looks at."""
_PACKAGED = ("gguf", "int4", "w4a16", "nvfp4", "-fp8")
_EXPERIMENTS = ("ckpt", "nm-testing", "preview", "-zh")


@dataclass(frozen=True, slots=True)
class DrafterChoice:
    """Drafters to search over, best documented first within each family."""

    specs: tuple[DrafterSpec, ...]
    not_applicable: Mapping[Family, str]
    """Family -> why it is not offered."""


def drafters_for(
    arch: ModelArch,
    *,
    families: Sequence[str] | None = None,
    drafter_id: str | None = None,
    drafter_path: str | None = None,
    engine: str | None = None,
) -> DrafterChoice:
    """Published checkpoints first; where none is known, what the family's recipe would give.

    Args:
        arch: The target.
        families: Only these; None asks for all of them.
        drafter_id: Only this checkpoint. A name that no catalog knows gets the template's sizes
            when exactly one family is asked for.
        drafter_path: The user's own drafter, in place of any catalog.
        engine: Leave out what this engine does not run, and prefer what it is known to run.

    Raises:
        InputError: an unknown family or drafter, or a drafter file that cannot be read.
    """
    if drafter_path is not None:
        from planner.drafters.own import read_drafter  # noqa: PLC0415 - only for --drafter-path

        return DrafterChoice((read_drafter(Path(drafter_path), arch),), {})
    asked = _families(families)
    if drafter_id is not None:
        return DrafterChoice((_named(arch, drafter_id, asked),), {})
    specs: list[DrafterSpec] = []
    reasons: dict[Family, str] = {}
    for family in asked:
        found, reason = _of_family(arch, family, engine)
        specs += found
        if reason:
            reasons[family] = reason
    return DrafterChoice(tuple(specs), reasons)


def _families(families: Sequence[str] | None) -> tuple[Family, ...]:
    if families is None:
        return tuple(DRAFTERS)
    for name in families:
        if name != "none":
            family_of(name)
    return tuple(family for family in DRAFTERS if family in families)


def known_drafters(
    arch: ModelArch, family: Family, engine: str | None = None
) -> tuple[tuple[DrafterSpec, ...], tuple[str, ...]]:
    """(all published drafters of one family, best documented first; why others are left out)."""
    maker = DRAFTERS[family]
    rows = _run_by([r for r in published_for(arch.name, arch.source) if r.family == family], engine)
    specs: list[DrafterSpec] = []
    doubts: list[str] = []
    for row in ranked(rows, engine):
        doubt = row.doubt or _contradiction(arch, row)
        if doubt:
            doubts.append(f"{row.drafter_id}: {doubt}")
            continue
        try:
            specs.append(maker.published(arch, row))
        except MissingFact as missing:
            doubts.append(str(missing))
    if isinstance(maker, External):
        specs = [*_runnable(maker.siblings(arch), engine), *specs]
    first: dict[str, DrafterSpec] = {}
    for spec in specs:
        first.setdefault(spec.drafter_id, spec)
    return tuple(first.values()), tuple(doubts)


def _of_family(
    arch: ModelArch, family: Family, engine: str | None
) -> tuple[tuple[DrafterSpec, ...], str]:
    maker = DRAFTERS[family]
    facts = maker.facts()
    if engine is not None and engine not in dict(facts.engines):
        return (), f"{engine} does not run {facts.title} drafters"
    specs, doubts = known_drafters(arch, family, engine)
    if specs:
        return specs[:PER_FAMILY], ""
    reason = maker.applies(arch)
    if reason:
        return (), "; ".join([reason, *doubts])
    return (maker.template(arch),), ""


def _contradiction(arch: ModelArch, row: PublishedDrafter) -> str:
    """A row may promise layers that the checkpoint at hand was seen not to have."""
    read = arch.checkpoint_bytes is not None
    if row.in_checkpoint and row.family == "mtp" and arch.mtp.status == "none" and read:
        return "the checkpoint that was read has no MTP tensors"
    if row.family == "mtp" and not row.in_checkpoint and not row.engines:
        return "no engine is known to load this separate MTP module"
    return ""


def _run_by(rows: Sequence[PublishedDrafter], engine: str | None) -> Sequence[PublishedDrafter]:
    """Rows that the engine is documented to run, where there are any; else all of them."""
    listed = [row for row in rows if engine in row.engines]
    return listed or rows


def ranked(
    rows: Sequence[PublishedDrafter], engine: str | None = None
) -> tuple[PublishedDrafter, ...]:
    """Best documented first: run by the engine, documented D, published acceptance, known size."""

    def key(row: PublishedDrafter) -> tuple[object, ...]:
        name = row.drafter_id.lower()
        packaged = any(word in name for word in _PACKAGED)
        return (
            engine is not None and bool(row.engines) and engine not in row.engines,
            packaged and not (engine == "llama.cpp" and "gguf" in name),
            bool(row.variant) and row.variant != "dflash2",
            any(word in name for word in _EXPERIMENTS),
            row.draft_len_from == "default",
            drafter_key(row.drafter_id) not in _observed(row.family),
            -len(row.engines),
            not (row.params or row.bytes),
        )

    return tuple(sorted(rows, key=key))


def _observed(family: str) -> frozenset[str]:
    return frozenset(row.drafter_key for row in observations(family))


def _runnable(specs: Sequence[DrafterSpec], engine: str | None) -> tuple[DrafterSpec, ...]:
    return tuple(s for s in specs if engine is None or not s.engines or engine in s.engines)


def _named(arch: ModelArch, drafter_id: str, asked: tuple[Family, ...]) -> DrafterSpec:
    wanted = drafter_key(drafter_id)
    local = published_for(arch.name, arch.source)
    for row in local:
        if drafter_key(row.drafter_id) == wanted and row.family in asked:
            return DRAFTERS[row.family].published(arch, row)
    for spec in External().siblings(arch):
        if drafter_key(spec.drafter_id) == wanted and "external" in asked:
            return spec
    elsewhere = [row for row in all_published() if drafter_key(row.drafter_id) == wanted]
    for row in elsewhere:
        if row.family in asked:
            spec = DRAFTERS[row.family].published(arch, row)
            return replace(spec, notes=(*spec.notes, f"published for {row.target}"))
    whole = _whole_model(arch, drafter_id) if "external" in asked else None
    if whole is not None:
        return whole
    if len(asked) == 1:
        return _unlisted(arch, drafter_id, asked[0])
    near = difflib.get_close_matches(drafter_id, [r.drafter_id for r in local], 3, 0.4)
    hint = f"did you mean {', '.join(near)}? " if near else ""
    raise InputError(
        f"no catalog knows the drafter {drafter_id!r} for {arch.name}; {hint}"
        "name its family with --drafter to use that family's usual sizes, or give its config "
        "with --drafter-path"
    )


def _whole_model(arch: ModelArch, drafter_id: str) -> DrafterSpec | None:
    """A model of the catalog as draft model, in the format that its name says; None without one.

    Raises:
        InputError: its vocabulary is not the target's.
    """
    from planner.drafters.own import draft_model  # noqa: PLC0415 - only for names of no drafter

    try:
        draft = load_catalog_model(drafter_id)
    except InputError:
        return None
    spec = draft_model(draft, drafter_id, arch)
    return replace(spec, default_draft_len=USUAL_DRAFT_LEN)


def _unlisted(arch: ModelArch, drafter_id: str, family: Family) -> DrafterSpec:
    """A drafter known by name only: the family's recipe, and the name kept."""
    maker = DRAFTERS[family]
    row = PublishedDrafter(
        drafter_id=drafter_id,
        family=family,
        target=arch.name,
        draft_len=1,
        draft_len_from="default",
        source="name given by the user",
        variant=_variant(drafter_id, family),
    )
    spec = maker.template(arch)
    if row.variant:
        spec = maker.published(arch, row)
    return replace(
        spec,
        drafter_id=drafter_id,
        default_draft_len=maker.template(arch).default_draft_len,
        known=False,
        notes=(*spec.notes, "not in the catalog: sizes are the family's usual ones"),
    )


def _variant(drafter_id: str, family: Family) -> str:
    name = drafter_id.lower()
    if family != "eagle3" or "eagle3" in name or "eagle-3" in name or "eagle" not in name:
        return ""
    return "peagle" if "p-eagle" in name or "peagle" in name else "eagle1"
