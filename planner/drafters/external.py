"""A small model of the same vocabulary, run D times in front of the target."""

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from hwprofiles.provenance import Kind
from hwprofiles.yamlfile import parse_shipped_rows
from planner.acceptance.names import target_key
from planner.arch.records import ModelArch
from planner.drafters.base import DATA, DrafterFamily, PublishedDrafter
from planner.drafters.records import PASS_PER_TOKEN, DrafterSpec
from planner.drafters.shapes import BF16_BITS, BYTES_16BIT
from planner.errors import MissingFact

DIGEST_PASSES = 0.5
"""Passes that a drafter spends on the verified tokens besides the D that draft. 1.5-1.9 on a
compute-bound CPU (llama.cpp, 55 ms drafter); near 0 where the engine fuses them into the first
drafting pass. Assumed."""
LARGEST_SHARE = 1 / 3
"""A draft model with more of the target's active weights than this is not offered."""


@dataclass(frozen=True, slots=True)
class SmallModel:
    """One draft model of the hand-written table."""

    drafter_id: str
    targets: str
    """Pattern on the target's key."""
    layers: int
    hidden_size: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    vocab_size: int
    tied: bool
    params: int
    draft_len: int
    size_kind: Kind
    engines: tuple[str, ...]
    source: str
    max_position: int | None = None
    kv_layers: int | None = None
    """Layers whose cache grows with context, where not all do."""
    padded_vocab_size: int | None = None
    """Vocabulary size of larger siblings that pad the same tokens."""
    parallel: bool = False

    def fits(self, arch: ModelArch) -> bool:
        """Same vocabulary by name and size, and clearly smaller."""
        return (
            arch.vocab_size in (self.vocab_size, self.padded_vocab_size)
            and self.params <= LARGEST_SHARE * (arch.params_active or arch.params_total)
            and re.search(self.targets, target_key(arch.name)) is not None
        )


@lru_cache(maxsize=1)
def small_models() -> tuple[SmallModel, ...]:
    """The shipped table."""
    rows = parse_shipped_rows(DATA / "external.yaml")
    return tuple(SmallModel(**{**row, "engines": tuple(row["engines"])}) for row in rows)


class External(DrafterFamily):
    """D sequential passes of a whole small model, its own head included."""

    family = "external"
    usual_work = replace(PASS_PER_TOKEN, passes_fixed=DIGEST_PASSES, rewinds_state=True)

    def applies(self, arch: ModelArch) -> str | None:
        """Only with a known smaller model of the same vocabulary."""
        if any(model.fits(arch) for model in small_models()):
            return None
        return (
            f"no clearly smaller model with the vocabulary of {arch.name} "
            f"({arch.vocab_size} entries) is known; name yours with --drafter-path"
        )

    def template(self, arch: ModelArch) -> DrafterSpec:
        """The first small model of the table that fits.

        Raises:
            MissingFact: none is known.
        """
        known = self.siblings(arch)
        if not known:
            raise MissingFact(self.applies(arch) or "no draft model known")
        return known[0]

    def siblings(self, arch: ModelArch) -> tuple[DrafterSpec, ...]:
        """All small models that fit, in the table's order."""
        return tuple(_spec(model, arch) for model in small_models() if model.fits(arch))

    def published(self, arch: ModelArch, row: PublishedDrafter) -> DrafterSpec:
        """A published draft model: the table's shape of that name, else a size alone.

        Raises:
            MissingFact: neither shape nor size is known.
        """
        for model in small_models():
            if model.drafter_id.lower() == row.drafter_id.lower():
                return _spec(model, arch)
        if row.params is None:
            raise MissingFact(
                f"the size of draft model {row.drafter_id} is not known; "
                "give its config with --drafter-path"
            )
        near = min(small_models(), key=lambda m: abs(m.params - (row.params or 0)))
        return replace(
            _spec(replace(near, params=row.params, size_kind="assumed"), arch),
            drafter_id=row.drafter_id,
            source=row.source,
            default_draft_len=row.draft_len,
            engines=row.engines,
            parallel=row.variant == "pard",
            notes=(f"layers and heads taken from {near.drafter_id}, the nearest in size",),
        )


def _spec(model: SmallModel, arch: ModelArch) -> DrafterSpec:
    embedding = model.vocab_size * model.hidden_size
    kv_layers = model.layers if model.kv_layers is None else model.kv_layers
    same_size = arch.vocab_size == model.vocab_size
    engines = model.engines if same_size else tuple(e for e in model.engines if e == "llama.cpp")
    notes = (
        ()
        if same_size
        else (
            f"vocabulary sizes differ by padding ({model.vocab_size} and {arch.vocab_size}): "
            "vLLM refuses that without use_heterogeneous_vocab; llama.cpp accepts it",
        )
    )
    return DrafterSpec(
        family="external",
        drafter_id=model.drafter_id,
        kind=model.size_kind,
        source=model.source,
        layers=model.layers,
        hidden_size=model.hidden_size,
        core_weights=max(0, model.params - embedding * (1 if model.tied else 2)),
        head_weights=embedding,
        weight_bytes=BYTES_16BIT * model.params,
        core_bits=BF16_BITS,
        head_bits=BF16_BITS,
        kv_bytes_per_token=kv_layers * 2 * model.num_kv_heads * model.head_dim * BYTES_16BIT,
        num_heads=model.num_heads,
        num_kv_heads=model.num_kv_heads,
        head_dim=model.head_dim,
        default_draft_len=model.draft_len,
        max_position=model.max_position,
        engines=engines,
        parallel=model.parallel,
        notes=notes,
    )
