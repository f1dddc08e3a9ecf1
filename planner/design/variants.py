"""Drafters that a design may be given, and what training each costs."""

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from hwprofiles.provenance import Kind
from hwprofiles.yamlfile import parse_shipped
from planner.arch.records import ModelArch, WeightFormat
from planner.cost.smooth import Floats, Num
from planner.design.shape import Shape
from planner.drafters.base import PublishedDrafter
from planner.drafters.records import DrafterSpec, Family
from planner.drafters.registry import family_of
from planner.search.candidates import as_served

_TRAINING = Path(__file__).parent / "data" / "drafter_training.yaml"
DRAFT_MODEL_SHARE = 200.0
"""Active target weights over those of a draft model that is trained for it (arXiv:2603.11053)."""
SECONDS_PER_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Variant:
    """One drafter of a design; MTP comes by its depth."""

    family: Family
    mtp_layers: int = 0
    draft_model_params: int = 0
    """Size of an external draft model, weights."""

    @property
    def name(self) -> str:
        """Short name, as tables show it."""
        if self.family == "mtp":
            return f"mtp depth {self.mtp_layers}"
        if self.family == "external":
            return f"external {self.draft_model_params / 1e9:.2g}B"
        return self.family

    def shape(self, s: Shape) -> Shape:
        """The shape with the MTP layers that this variant needs, and no others."""
        return replace(s, mtp_layers=self.mtp_layers)

    def spec(self, arch: ModelArch, fmt: WeightFormat, engine: str) -> DrafterSpec | None:
        """The drafter of an architecture (or column) beside weights in a format; None where the
        engine does not run the family."""
        if self.family == "none":
            return None
        family = family_of(self.family)
        if engine not in dict(family.facts().engines):
            return None
        made = self._draft_model(arch) if self.family == "external" else family.template(arch)
        return family.in_format(as_served(made, engine), fmt)

    def _draft_model(self, arch: ModelArch) -> DrafterSpec:
        row = PublishedDrafter(
            drafter_id=f"template: draft model of {self.draft_model_params / 1e9:.2g}B",
            family="external",
            target=arch.name,
            draft_len=4,
            draft_len_from="default",
            source="1/200 of the target's active weights (arXiv:2603.11053)",
            params=self.draft_model_params,
        )
        spec = family_of("external").published(arch, row)
        head = arch.vocab_size * spec.hidden_size
        return replace(spec, head_weights=head, engines=())


def usual_variants(mtp_depths: tuple[int, ...], active_params: float) -> tuple[Variant, ...]:
    """Every drafter that a design may have."""
    size = int(active_params / DRAFT_MODEL_SHARE)
    return (
        Variant("none"),
        Variant("ngram"),
        *(Variant("mtp", depth) for depth in mtp_depths if depth),
        Variant("eagle3"),
        Variant("dflash"),
        Variant("dspark"),
        Variant("external", draft_model_params=size),
    )


@dataclass(frozen=True, slots=True)
class Recipe:
    """What training a drafter takes."""

    tokens: float
    """Tokens trained on, every epoch counted; 0 where nothing is trained."""
    target_passes: float
    """Forward passes of the target for each of those tokens."""
    with_target: bool
    """Trained in the target's own pretraining, on all of its tokens."""
    kind: Kind
    ref: str


@lru_cache(maxsize=1)
def recipes() -> tuple[dict[str, Recipe], float]:
    """(recipe of each family, share of the dense bf16 peak that training reaches)."""
    table = parse_shipped(_TRAINING)
    found = {name: Recipe(**row) for name, row in table["recipes"].items()}
    return found, float(table["utilisation"]["value"])


def training_hours(
    variant: Variant, arch: ModelArch, spec: DrafterSpec | None, peak_flops: float, tokens: float
) -> Num:
    """GPU-hours of training the drafter on cards of this peak: 6 FLOP per weight and token, and 2
    for each pass of the target. `tokens` are those of the target's pretraining."""
    if spec is None:
        return 0.0
    known, utilisation = recipes()
    recipe = known[variant.family]
    own = np.asarray(spec.core_weights, float)
    if recipe.with_target:
        flops: Floats = 6.0 * variant.mtp_layers * own * tokens
    else:
        target = 2.0 * recipe.target_passes * np.asarray(arch.params_active, float)
        flops = recipe.tokens * (6.0 * own + target)
    return np.asarray(flops / (peak_flops * utilisation * SECONDS_PER_HOUR))


def drafter_weights(spec: DrafterSpec | None) -> Num:
    """Parameters that the drafter adds."""
    if spec is None:
        return 0.0
    return np.asarray(spec.weight_bytes, float) * 8.0 / spec.core_bits
