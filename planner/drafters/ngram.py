"""N-gram and suffix look-up: no model, drafts copied from what was read or written before."""

from planner.arch.records import ModelArch, WeightFormat
from planner.drafters.base import PublishedDrafter
from planner.drafters.records import DrafterSpec, DraftWork, FamilyFacts

LOOKUP_FRACTION = 0.03
"""Share of a decode step that look-up costs in every round: 0.5-5 % measured in llama.cpp; vLLM on
a CPU 12-21 %."""
MAX_DRAFT_LEN = 63


class Ngram:
    """No pass at all; a look-up in every round, a draft in some."""

    def facts(self) -> FamilyFacts:
        """The family's row of the selection table."""
        return FamilyFacts(
            family="ngram",
            title="n-gram look-up",
            training="none",
            retrofit="always",
            when="long verbatim copies: summaries, RAG, code edits, agents that repeat files",
            when_not="chat and prose: few rounds find a match, each still pays for looking",
            engines=(
                ("vllm", "method ngram, suffix"),
                ("sglang", "NGRAM"),
                ("trtllm", "NGram, SA"),
                ("llama.cpp", "ngram-simple, ngram-mod"),
                ("transformers", "prompt_lookup_num_tokens"),
            ),
            sources=(
                "github:hemingkx/Spec-Bench",
                "ggml-org/llama.cpp docs/speculative.md",
                "NVIDIA selection guide, 2026-09-02, as the press reports it",
            ),
        )

    def applies(self, arch: ModelArch) -> str | None:  # noqa: ARG002 - needs nothing of the target
        """Always."""
        return None

    def template(self, arch: ModelArch) -> DrafterSpec:
        """Nothing to load."""
        return DrafterSpec(
            family="ngram",
            drafter_id="n-gram look-up",
            kind="derived",
            source="no weights",
            layers=0,
            hidden_size=arch.hidden_size,
            core_weights=0,
            head_weights=0,
            weight_bytes=0,
            core_bits=16.0,
            head_bits=16.0,
            kv_bytes_per_token=0,
            max_draft_len=MAX_DRAFT_LEN,
            default_draft_len=5,
            engines=tuple(engine for engine, _ in self.facts().engines),
        )

    def published(self, arch: ModelArch, row: PublishedDrafter) -> DrafterSpec:  # noqa: ARG002
        """There is nothing to publish."""
        return self.template(arch)

    def work(self, spec: DrafterSpec) -> DraftWork:  # noqa: ARG002
        """No pass; a share of a decode step in every round."""
        return DraftWork(
            passes_fixed=0.0,
            passes_per_token=0.0,
            rows_follow_draft=False,
            lookup_fraction=LOOKUP_FRACTION,
        )

    def in_format(self, spec: DrafterSpec, fmt: WeightFormat) -> DrafterSpec:  # noqa: ARG002
        """Nothing is stored."""
        return spec
