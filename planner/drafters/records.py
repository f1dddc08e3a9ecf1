"""What a drafter is, and what one round asks of it."""

from dataclasses import dataclass
from typing import Literal, get_args

from hwprofiles.provenance import Kind

Family = Literal["external", "eagle3", "mtp", "dflash", "dspark", "ngram", "none"]
FAMILIES: tuple[Family, ...] = get_args(Family)


@dataclass(frozen=True, slots=True)
class DrafterSpec:
    """One concrete drafter for one target: a published checkpoint, the user's own, or a template.

    Weights are counts; `weight_bytes` what it adds to VRAM beyond what the target already loads.
    """

    family: Family
    drafter_id: str
    """Hub id, path, `in checkpoint` (MTP), `n-gram look-up`, or `template` when none is known."""
    kind: Kind
    """Origin of the sizes: published, derived from a read config, or assumed from the template."""
    source: str
    layers: int
    hidden_size: int
    core_weights: int
    """Weights read in one pass without the LM head (MoE: those that one token touches)."""
    head_weights: int
    """LM-head weights read in one pass (the target's own head counts where it is shared)."""
    weight_bytes: int
    """Bytes that loading it adds."""
    core_bits: float
    """Bits per core weight."""
    head_bits: float
    """Bits per head weight."""
    kv_bytes_per_token: int
    """Its own cache, bytes per token of context (all its layers, 2 bytes an element)."""
    state_bytes_per_seq: int = 0
    num_heads: int = 0
    num_kv_heads: int = 0
    head_dim: int = 0
    max_draft_len: int | None = None
    """Trained block or depth: D above it is rejected (block) or re-runs the last layer (MTP)."""
    default_draft_len: int | None = None
    """D that the publisher or recipe serves."""
    max_position: int | None = None
    """Longest context it was trained for, tokens; beyond it acceptance falls."""
    window: int | None = None
    """Its sliding window in tokens where it has one."""
    engines: tuple[str, ...] = ()
    """Engines known to run it (engine names of the planner); empty: unknown."""
    retrofit: bool = True
    """Whether it can still be added to a finished model."""
    routed_weights: int = 0
    """All routed experts of its layers, of which `core_weights` counts the active ones."""
    shared_head: bool = False
    """Whether the head is the target's own, at the target's bits, and adds no memory."""
    in_checkpoint: bool = False
    """Whether the weights ship with the target and follow its format."""
    parallel: bool = False
    """One pass drafts all D tokens although the family is sequential (P-EAGLE, PARD)."""
    draft_len_step: int = 1
    """Engines want D to be a multiple of this once D exceeds it (several MTP modules)."""
    known: bool = True
    """Whether its own sizes are known, and not its family's usual ones under its name."""
    notes: tuple[str, ...] = ()

    @property
    def is_template(self) -> bool:
        """Whether no such drafter is published for the target: it would have to be trained."""
        return self.drafter_id.startswith("template")


@dataclass(frozen=True, slots=True)
class DraftWork:
    """Work of one round: passes(D) = passes_fixed + passes_per_token * D.

    A block drafter has (1, 0); a sequential one (0, 1); an external one also digests the verified
    tokens, (a > 0, 1). A pass has one row per sequence, or D + 1 where rows_follow_draft.
    """

    passes_fixed: float
    passes_per_token: float
    rows_follow_draft: bool
    serial_s_per_token: float = 0.0
    """Seconds of serial head work for each drafted token (DSpark's Markov look-ups)."""
    lookup_fraction: float = 0.0
    """Share of a decode step that the drafter costs in every round even when it drafts nothing."""
    hidden_states: int = 0
    """Hidden states of the target that it takes in for each verified token."""
    rewinds_state: bool = False
    """Whether a recurrent state of the target is put back from a copy after a rejection, because
    no state is kept for each drafted position."""


NO_WORK = DraftWork(passes_fixed=0.0, passes_per_token=0.0, rows_follow_draft=False)
"""Nothing is drafted."""
ONE_PASS = DraftWork(passes_fixed=1.0, passes_per_token=0.0, rows_follow_draft=True)
"""The whole draft at once, in a pass of D + 1 rows."""
PASS_PER_TOKEN = DraftWork(passes_fixed=0.0, passes_per_token=1.0, rows_follow_draft=False)
"""Token after token, in D passes of one row."""


@dataclass(frozen=True, slots=True)
class FamilyFacts:
    """One row of the selection table."""

    family: Family
    title: str
    training: str
    retrofit: str
    when: str
    when_not: str
    engines: tuple[tuple[str, str], ...]
    """(engine, first version or spelling known)."""
    sources: tuple[str, ...]
