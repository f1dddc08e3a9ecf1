"""What every drafter family offers; one module per family implements it."""

from dataclasses import dataclass
from typing import Protocol

from planner.arch.records import ModelArch, WeightFormat
from planner.drafters.records import DrafterSpec, DraftWork, Family, FamilyFacts


@dataclass(frozen=True, slots=True)
class PublishedDrafter:
    """One row of the shipped catalog: a checkpoint that somebody published for one target."""

    drafter_id: str
    family: Family
    target: str
    draft_len: int
    """D that it is served with (drafted tokens, without the anchor or bonus token)."""
    draft_len_from: str
    """documented (recipe or card), block (trained block) or default (usual for the family)."""
    source: str
    variant: str = ""
    """Form within the family: eagle1, peagle, pard, dflash2, or a name of its own."""
    max_draft_len: int | None = None
    layers: int | None = None
    draft_vocab_size: int | None = None
    params: int | None = None
    bytes: int | None = None
    in_checkpoint: bool = False
    engines: tuple[str, ...] = ()
    doubt: str = ""
    """Why it is not offered."""
    notes: tuple[str, ...] = ()


class DrafterFamily(Protocol):
    """One family: whether it fits a target, what it weighs, what a round of it costs."""

    def facts(self) -> FamilyFacts:
        """The family's row of the selection table."""
        ...

    def applies(self, arch: ModelArch) -> str | None:
        """None where it can work for this target, else the reason why not."""
        ...

    def template(self, arch: ModelArch) -> DrafterSpec:
        """The drafter that the family's usual recipe gives for this target (kind assumed)."""
        ...

    def published(self, arch: ModelArch, row: PublishedDrafter) -> DrafterSpec:
        """A published checkpoint, with the template's sizes where none were published."""
        ...

    def work(self, spec: DrafterSpec) -> DraftWork:
        """What one round asks of it."""
        ...

    def in_format(self, spec: DrafterSpec, fmt: WeightFormat) -> DrafterSpec:
        """The same drafter beside a target stored in another format."""
        ...
