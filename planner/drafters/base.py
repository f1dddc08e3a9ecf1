"""What every drafter family offers; one module per family implements it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Literal

from hwprofiles.yamlfile import parse_shipped
from planner.arch.records import ModelArch, WeightFormat
from planner.drafters.records import ONE_PASS, DrafterSpec, DraftWork, Family, FamilyFacts

DATA = Path(__file__).parent / "data"


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

    @property
    def size_kind(self) -> Literal["published", "assumed"]:
        """Origin of its sizes: stated in the row, or those of the family's template."""
        return "published" if self.params or self.bytes else "assumed"


class DrafterFamily(ABC):
    """One family: whether it fits a target, what it weighs, what a round of it costs."""

    family: Family
    """Its name, and the key of its row in `data/families.yaml`."""
    usual_work: DraftWork
    """What one round asks of it, where it is not `parallel`."""

    def facts(self) -> FamilyFacts:
        """The family's row of the selection table."""
        return _selection_table()[self.family]

    def applies(self, arch: ModelArch) -> str | None:
        """None where it can work for this target, else the reason why not."""
        if self.usual_work.hidden_states and arch.hidden_size <= 0:
            return "the target's hidden size is not known"
        return None

    @abstractmethod
    def template(self, arch: ModelArch) -> DrafterSpec:
        """The drafter that the family's usual recipe gives for this target (kind assumed)."""

    @abstractmethod
    def published(self, arch: ModelArch, row: PublishedDrafter) -> DrafterSpec:
        """A published checkpoint, with the template's sizes where none were published."""

    def work(self, spec: DrafterSpec) -> DraftWork:
        """What one round asks of it: one pass of D + 1 rows where it drafts in parallel."""
        if not spec.parallel:
            return self.usual_work
        return replace(
            ONE_PASS,
            hidden_states=self.usual_work.hidden_states,
            rewinds_state=self.usual_work.rewinds_state,
        )

    def in_format(self, spec: DrafterSpec, fmt: WeightFormat) -> DrafterSpec:
        """The same drafter beside a target stored in another format; a shared head follows it."""
        return replace(spec, head_bits=fmt.head_bits) if spec.shared_head else spec


@lru_cache(maxsize=1)
def _selection_table() -> Mapping[str, FamilyFacts]:
    return {
        family: FamilyFacts(
            **{
                **row,
                "family": family,
                "engines": tuple(row["engines"].items()),
                "sources": tuple(row["sources"]),
            }
        )
        for family, row in parse_shipped(DATA / "families.yaml").items()
    }
