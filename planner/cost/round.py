"""The equation: speedup = E[L] * T_target / (T_draft + T_verify), with draftless rounds.

A drafter that drafts only in a share p of the rounds (n-gram, confidence gates) costs its look-up
in every round; see `speedup`.
"""

from dataclasses import dataclass

import numpy as np

from planner.cost.draft import DraftCoefficients, draft_time
from planner.cost.smooth import Floats, Num
from planner.cost.step import StepCoefficients, StepTime, TileCharges, step_time


@dataclass(frozen=True, slots=True)
class RoundCost:
    """Cost of one drafted round and of the step it replaces, seconds."""

    target: StepTime
    verify: StepTime
    draft_s: Floats
    verify_s: Floats
    """T_verify, the engine's fixed cost of a round included."""
    rewind_s: Floats
    """What of it goes into putting a recurrent state back."""
    target_s: Floats
    """T_target of plain decoding: of this deployment, or of one without room for a drafter."""

    @property
    def ratio(self) -> Floats:
        """R = (T_draft + T_verify) / T_target of a drafted round; also the break-even E[L]."""
        return np.asarray((self.draft_s + self.verify_s) / self.target_s)


@dataclass(frozen=True, slots=True)
class RoundCoefficients:
    """Target, drafter and what the engine adds to every drafted round."""

    step: StepCoefficients
    draft: DraftCoefficients
    round_s: Num
    """Fixed cost of a drafted round: sampling, rejection, scheduling."""
    tree_sequence_s: Num
    """Host work on each further sequence of a round that drafts a tree; that on the first one hides
    behind the GPU."""
    row_s: Num
    """What each drafted row of each sequence costs beyond the model, where that was measured."""
    rewind_s: Num
    """Copying the recurrent state of one sequence out before a round and back after it; 0 where the
    engine keeps a state for each drafted position."""


@dataclass(frozen=True, slots=True)
class Point:
    """Where a round is evaluated; every field broadcasts."""

    batch: Num
    """Sequences on one rank."""
    draft_len: Num
    """D: drafted tokens of a sequence, or levels of a tree."""
    rows: Num
    """Verified tokens of a sequence: 1 + D, or 1 + nodes of a tree."""
    context: Num
    """Tokens already in the cache."""
    branches: Num = 1.0
    """Rows of one sequential draft pass of a tree."""


def round_cost(c: RoundCoefficients, at: Point, one: TileCharges, many: TileCharges) -> RoundCost:
    """Cost of a round; `one` and `many` are the tile charges of plain decode and of the rows."""
    target = step_time(c.step, at.batch, 1.0, at.context, one)
    verify = step_time(c.step, at.batch, at.rows, at.context, many)
    return with_draft(c, at, target, verify)


def with_draft(c: RoundCoefficients, at: Point, target: StepTime, verify: StepTime) -> RoundCost:
    """The round around two target passes that are already known."""
    drafts = np.asarray(at.draft_len, float) > 0
    rows = np.asarray(at.batch, float) * (np.asarray(at.rows) - 1.0)
    trees = np.asarray(at.branches, float) > 1
    planted = np.where(trees, np.maximum(0.0, np.asarray(at.batch) - 1.0) * c.tree_sequence_s, 0.0)
    extra = np.where(drafts, c.round_s + np.asarray(c.row_s) * rows + planted, 0.0)
    # From the copy, the accepted tokens are decoded once more: about the time of a plain step.
    rewinds = drafts & (np.asarray(c.rewind_s) > 0)
    rewind = np.where(rewinds, np.asarray(at.batch) * c.rewind_s + target.total, 0.0)
    drafted = draft_time(c.draft, at.batch, at.draft_len, at.context, at.branches)
    # Where a kernel hands over late, more rows can take less time; no gain is promised from that.
    verify_s = np.maximum(verify.total, target.total) + extra + rewind
    return RoundCost(target, verify, drafted, verify_s, rewind, target.total)


def speedup(tokens_drafted: Num, ratio: Num, share: Num, lookup: Num) -> Floats:
    """Speedup over plain decoding.

    p*E[L|drafted] + (1-p) tokens cost p*R + (1-p) + lookup steps, where `lookup` is what the
    drafter costs in every round as a share of T_target. With p = 1 and lookup = 0 this is E[L]/R.
    """
    p = np.asarray(share, float)
    tokens = p * np.asarray(tokens_drafted) + (1.0 - p)
    return np.asarray(tokens / (p * np.asarray(ratio) + (1.0 - p) + lookup))
