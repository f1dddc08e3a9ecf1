"""vLLM: a plan becomes engine.yaml (`vllm serve MODEL --config`), launch.sh and a D schedule."""

import json
from collections.abc import Mapping
from functools import partial
from math import ceil, floor

from planner.emit.arms import Argv, Arms, arms_of, variants_of
from planner.emit.card_memory import card_mib, needed_mib
from planner.emit.check import check
from planner.emit.config_file import Config, flat, yaml_text
from planner.emit.deployment import Choice, Deployment, offloaded
from planner.emit.devices import install_line
from planner.emit.downloads import hub_downloads
from planner.emit.emitter import HOST, Method, RuleBoundEmitter, Written
from planner.emit.records import EmittedFile
from planner.emit.refusals import draft_source, refuse_experts, refuse_gguf
from planner.emit.remarks import common_notes, room_left
from planner.emit.schedule import ScheduleForm
from planner.emit.vllm_checks import extra_slots, lookahead, predicates, tiers
from planner.search.records import Plan

_BUDGET_STEP = 256
_MAX_UTILIZATION = 0.98
_SUFFIX_DRAFT_LEN = 32
"""Longest suffix draft; vLLM advises 16 or 32 (docs/features/speculative_decoding/suffix.md)."""


class VllmEmitter(RuleBoundEmitter):
    """Emitter for vLLM."""

    engine = "vllm"
    port = 8000
    method = Method("method", "vllm/config/speculative.py:38")

    def written(self, plan: Plan, want: Deployment) -> Written:
        """The engine's own command, configuration and notes."""
        steps = want.schedule if want.draft_len else ()
        active = steps if len({step.draft_len for step in steps}) > 1 else ()
        config = self.config(plan, want, Choice(want.draft_len, active))
        arms, skipped = self._arms(plan, want)
        fetch = self._downloads(plan, want)
        named = common_notes(plan, want, str(config.get("quantization", "")))
        return Written(
            argv=("vllm", "serve", want.model, "--config", "engine.yaml"),
            config=EmittedFile("engine.yaml", yaml_text(self.headline(plan), config)),
            schedule=ScheduleForm(
                "speculative-config.num_speculative_tokens_per_batch_size", in_config=bool(active)
            ),
            arms=arms,
            before=(*fetch, *named),
            notes=(*fetch, *self._remarks(plan, want, named), *skipped),
        )

    def config(self, plan: Plan, want: Deployment, choice: Choice) -> Config:
        """The checked configuration; without a draft length it holds no speculation at all."""
        spec = self._speculation(want, choice) if choice.draft_len else {}
        widest = tiers(choice.ranges, choice.most, want.max_seqs)
        config: Config = {
            "host": HOST,
            "port": self.port,
            "tensor-parallel-size": plan.best.tp,
            **_stages(plan),
            "max-model-len": want.context_len,
            "max-num-seqs": want.max_seqs,
            "max-num-batched-tokens": self._token_budget(want, spec, choice.most),
            **self._memory(plan, want.max_seqs),
            **self._formats(plan, want),
            **self._offload(plan),
            "compilation-config": {"cudagraph_capture_sizes": capture_sizes(widest)},
        }
        if spec:
            config["speculative-config"] = spec
        check(self.rules, flat(config), self.facts(plan, want), predicates(self.rules))
        return config

    def _speculation(self, want: Deployment, choice: Choice) -> Config:
        drafter = self.drafter_of(want, choice.draft_len)
        method = self.method_of(drafter)
        spec: Config = {"method": choice.method or method}
        model = draft_source(want, drafter, self.title, "vllm/config/speculative.py:416")
        if model:
            spec["model"] = model
        spec["num_speculative_tokens"] = choice.most
        if drafter.parallel:
            spec["parallel_drafting"] = True
        if choice.adaptive:
            spec["enable_adaptive_verification"] = True
        if spec["method"] in ("ngram", "ngram_gpu"):
            spec |= {"prompt_lookup_min": 2, "prompt_lookup_max": 5}
        if choice.steps:
            spec["num_speculative_tokens_per_batch_size"] = choice.ranges
        return spec

    def _token_budget(self, want: Deployment, spec: Mapping[str, object], draft_len: int) -> int:
        """Tokens of one step: every sequence's verification rows and draft slots, and prefill."""
        method = str(spec.get("method", ""))
        rows = 1 + draft_len
        if spec:
            parallel = bool(spec.get("parallel_drafting"))
            rows += extra_slots(method, draft_len, parallel=parallel)
        need = max(want.max_seqs * rows, lookahead(method, draft_len) + 1)
        comfortable = int(self.rules.numbers["comfortable_batched_tokens"])
        usual = min(comfortable, want.max_seqs * want.context_len)
        return max(usual, ceil(need / _BUDGET_STEP) * _BUDGET_STEP)

    def _memory(self, plan: Plan, max_seqs: int) -> Config:
        """Share of the card: vLLM's default, more where the plan needs it, never past its limit.

        The ledger's capacity is the part of the card that the plan may claim (--max-vram included).
        """
        ledger, default = plan.best.ledger, self.rules.numbers["gpu_memory_utilization_default"]
        whole_mib = card_mib(plan)
        if whole_mib is None:
            if plan.inputs.max_vram_mib is None:
                return {"gpu-memory-utilization": default}
            kv_mib = ledger.kv_mib + ledger.drafter_kv_mib + ledger.recurrent_state_mib
            return {"kv-cache-memory-bytes": ceil(kv_mib * 2**20)}
        limit = min(ledger.capacity_mib / whole_mib, _MAX_UTILIZATION)
        share = min(limit, max(default, needed_mib(plan, max_seqs) / whole_mib))
        return {"gpu-memory-utilization": floor(share * 1000 + 1e-9) / 1000}

    def _formats(self, plan: Plan, want: Deployment) -> Config:
        """KV cache type and, where vLLM must convert the weights itself, the scheme."""
        formats: Config = {}
        kind = self.cache_type(plan)
        if kind != "auto":
            formats["kv-cache-dtype"] = kind
        refuse_gguf(plan, want, f"{self.title} loads no", self.rules.options["quantization"].source)
        online = self.rules.names["online_quant"].get(plan.best.quant.lower())
        if online and not want.quantised:
            formats["quantization"] = online
        return formats

    def _arms(self, plan: Plan, want: Deployment) -> tuple[Arms, tuple[str, ...]]:
        """Whole commands for `off`, each draft length, and the family's variants."""

        def command(choice: Choice) -> Argv:
            return self._argv(want, self.config(plan, want, choice))

        arms, skipped = arms_of(lambda n: command(Choice(n)), want.arm_draft_lens)
        if not want.arm_draft_lens or want.drafter is None:
            return arms, skipped
        best = want.draft_len or max(want.arm_draft_lens)
        if want.drafter.family == "ngram":
            suffix = Choice(_SUFFIX_DRAFT_LEN, method="suffix")
            choices = {
                "method=ngram_gpu": Choice(best, method="ngram_gpu"),
                "method=suffix": suffix,
            }
        else:
            choices = {"adaptive_verification=true": Choice(best, adaptive=True)}
        more, refused = variants_of({name: partial(command, c) for name, c in choices.items()})
        return {**arms, **more}, (*skipped, *refused)

    @staticmethod
    def _argv(want: Deployment, config: Mapping[str, object]) -> tuple[str, ...]:
        argv = ["vllm", "serve", want.model]
        for name, value in config.items():
            shown = json.dumps(value) if isinstance(value, dict) else str(value)
            argv += [f"--{name}", shown]
        return tuple(argv)

    def _offload(self, plan: Plan) -> Config:
        parts = offloaded(plan)
        refuse_experts(parts, self.title, "vllm/config/offload.py:23-34")
        gib = plan.best.ledger.host_mib / 1024
        return {"cpu-offload-gb": ceil(gib * 10) / 10} if parts and gib > 0 else {}

    def _downloads(self, plan: Plan, want: Deployment) -> tuple[str, ...]:
        package = f"vllm=={self.rules.version}"
        lines = [install_line(plan, package), *hub_downloads(plan, want)]
        if want.drafter and want.drafter.family == "ngram":
            lines.append("only for the arm method=suffix: pip install arctic-inference==0.1.1")
        return tuple(lines)

    def _remarks(self, plan: Plan, want: Deployment, named: tuple[str, ...]) -> tuple[str, ...]:
        notes = [
            f"CUDA graphs cover {want.max_seqs} sequences at every draft length of the config "
            f"[{self.rules.rule('graphs-cover').source}]",
            *named,
        ]
        if want.drafter and want.drafter.family == "external":
            notes.append(
                "draft and target need the same vocabulary size [vllm/config/speculative.py:2040]"
            )
        notes += room_left(plan, want, "max-model-len is the plan's context")
        return tuple(notes)


def capture_sizes(widest: Mapping[int, int]) -> list[int]:
    """CUDA-graph sizes n*(1+K) for every K up to its widest batch, on vLLM's grid of n.

    The grid (1, 2, 4, steps of 8, from 256 steps of 16) is that of vllm/config/vllm.py:2487-2494.
    """
    return sorted({n * (1 + k) for k, most in widest.items() for n in _request_counts(most)})


def _request_counts(most: int) -> list[int]:
    counts = [n for n in (1, 2, 4) if n <= most]
    counts += [*range(8, min(most + 1, 256), 8), *range(256, most + 1, 16)]
    return sorted({*counts, most})


def _stages(plan: Plan) -> Config:
    """Pipeline stages: GPUs beyond the tensor-parallel ones hold consecutive layers."""
    stages = plan.inputs.num_gpus // plan.best.tp
    return {"pipeline-parallel-size": stages} if stages > 1 else {}
