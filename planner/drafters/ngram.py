"""N-gram and suffix look-up: no model, drafts copied from what was read or written before."""

from dataclasses import replace

from planner.arch.records import ModelArch
from planner.drafters.base import DrafterFamily, PublishedDrafter
from planner.drafters.records import NO_WORK, DrafterSpec
from planner.drafters.shapes import BF16_BITS

LOOKUP_FRACTION = 0.03
"""Share of a decode step that look-up costs in every round: 0.5-5 % measured in llama.cpp; vLLM on
a CPU 12-21 %."""
MAX_DRAFT_LEN = 63


class Ngram(DrafterFamily):
    """No pass at all; a look-up in every round, a draft in some."""

    family = "ngram"
    usual_work = replace(NO_WORK, lookup_fraction=LOOKUP_FRACTION, rewinds_state=True)

    def template(self, arch: ModelArch) -> DrafterSpec:
        """Nothing to load."""
        return DrafterSpec(
            family=self.family,
            drafter_id="n-gram look-up",
            kind="derived",
            source="no weights",
            layers=0,
            hidden_size=arch.hidden_size,
            core_weights=0,
            head_weights=0,
            weight_bytes=0,
            core_bits=BF16_BITS,
            head_bits=BF16_BITS,
            kv_bytes_per_token=0,
            max_draft_len=MAX_DRAFT_LEN,
            default_draft_len=5,
            engines=tuple(engine for engine, _ in self.facts().engines),
        )

    def published(self, arch: ModelArch, row: PublishedDrafter) -> DrafterSpec:  # noqa: ARG002
        """There is nothing to publish."""
        return self.template(arch)
