"""vLLM: a plan becomes engine.yaml (`vllm serve MODEL --config`), launch.sh and a D schedule."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from math import ceil, floor

from planner.emit.arms import Argv, Arms, arms_of, variants_of
from planner.emit.card_memory import card_mib, needed_mib
from planner.emit.check import Facts, check
from planner.emit.config_file import Config, flat, yaml_text
from planner.emit.deployment import (
    Deployment,
    Step,
    common_notes,
    draft_source,
    hub_downloads,
    is_gguf,
    offloaded,
)
from planner.emit.devices import install_line
from planner.emit.emitter import RuleBoundEmitter
from planner.emit.headline import headline
from planner.emit.records import Emission, EmittedFile, EngineVersion
from planner.emit.rules import RuleBook
from planner.emit.schedule import ScheduleForm, schedule_text
from planner.emit.script import launch_script
from planner.emit.vllm_checks import extra_slots, lookahead, predicates, tiers
from planner.errors import EngineUnsupported
from planner.search.records import Launch, Plan

_HOST, _PORT = "127.0.0.1", 8000
_BUDGET_STEP = 256
_MAX_UTILIZATION = 0.98
_SUFFIX_DRAFT_LEN = 32
"""Longest suffix draft; vLLM advises 16 or 32 (docs/features/speculative_decoding/suffix.md)."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to speculate with a plan's drafter; `draft_len` 0 is off."""

    draft_len: int
    steps: tuple[Step, ...] = ()
    """D by batch, where it varies."""
    method: str = ""
    """Another method of the same family: ngram_gpu or suffix in place of ngram."""
    adaptive: bool = False
    """Whether the engine decides in each step how much of the draft it verifies."""


class VllmEmitter(RuleBoundEmitter):
    """Emitter for vLLM 0.33.0."""

    engine_version = EngineVersion(
        "vllm", "0.33.0", "vllm 0.33.0 source distribution (PyPI, 2026-11-02)"
    )

    def written(self, plan: Plan, want: Deployment) -> Emission:
        """The engine's own files, launch and notes."""
        steps = want.schedule if want.draft_len else ()
        active = steps if len({step.draft_len for step in steps}) > 1 else ()
        config = self.config(plan, want, Choice(want.draft_len, active))
        arms, skipped = self._arms(plan, want)
        argv = ("vllm", "serve", want.model, "--config", "engine.yaml")
        notes = (*_downloads(plan, want), *_remarks(self.rules, plan, want, config), *skipped)
        named = common_notes(plan, want, str(config.get("quantization", "")))
        before = ("", "Before the first start:", *_downloads(plan, want), *named)
        head = (*headline(plan, "vllm 0.33.0"), *before)
        launch = Launch(
            argv=argv,
            ready_url=f"http://{_HOST}:{_PORT}/health",
            metrics_url=f"http://{_HOST}:{_PORT}/metrics",
            arms=arms,
        )
        form = ScheduleForm(
            "speculative-config.num_speculative_tokens_per_batch_size", in_config=bool(active)
        )
        files = (
            EmittedFile("launch.sh", launch_script(head, argv, env=launch.env), executable=True),
            EmittedFile("engine.yaml", yaml_text(headline(plan, "vllm 0.33.0"), config)),
            EmittedFile("schedule.json", schedule_text(plan, want, self.engine_version, form)),
        )
        return Emission(files, launch, notes)

    def config(self, plan: Plan, want: Deployment, choice: Choice) -> Config:
        """The checked configuration; without a draft length it holds no speculation at all."""
        spec = self._speculation(want, choice) if choice.draft_len else {}
        schedule = [[s.first, s.last, s.draft_len] for s in choice.steps]
        most = _number(spec.get("num_speculative_tokens"))
        config: Config = {
            "host": _HOST,
            "port": _PORT,
            "tensor-parallel-size": plan.best.tp,
            **_stages(plan),
            "max-model-len": want.context_len,
            "max-num-seqs": want.max_seqs,
            "max-num-batched-tokens": self._token_budget(want, spec, most),
            **self._memory(plan, want.max_seqs),
            **self._formats(plan, want),
            **_offload(plan),
            "compilation-config": {
                "cudagraph_capture_sizes": capture_sizes(tiers(schedule, most, want.max_seqs))
            },
        }
        if spec:
            config["speculative-config"] = spec
        drafter = want.drafter
        is_mtp = bool(drafter and drafter.family == "mtp")
        facts = Facts(
            max_draft_len=drafter.block if drafter else None,
            mtp_layers=drafter.draft_len_step if drafter and is_mtp else None,
            aux_over_pipeline=any(
                re.search(pattern, want.model, re.IGNORECASE)
                for pattern in self.rules.lists["aux_over_pipeline"]
            ),
            checkpoint_quantised=want.quantised,
            context_len=want.context_len,
            max_position=plan.inputs.max_position,
            num_gpus=plan.inputs.num_gpus,
            architecture=plan.inputs.architecture,
        )
        check(self.rules, flat(config), facts, predicates(self.rules))
        return config

    def _speculation(self, want: Deployment, choice: Choice) -> Config:
        drafter, steps = want.drafter, choice.steps
        if drafter is None:
            raise EngineUnsupported(
                f"draft length {choice.draft_len} needs a drafter and the plan names none; "
                "give --drafter or --drafter-path"
            )
        method = self.rules.names["family"].get(drafter.family)
        if method is None:
            raise EngineUnsupported(
                f"vllm 0.33.0 has no method for drafter family {drafter.family!r}; use "
                f"{', '.join(sorted(self.rules.names['family']))} [vllm/config/speculative.py:38]"
            )
        spec: Config = {"method": choice.method or method}
        model = draft_source(want, drafter, "vllm 0.33.0", "vllm/config/speculative.py:416")
        if model:
            spec["model"] = model
        spec["num_speculative_tokens"] = max((s.draft_len for s in steps), default=choice.draft_len)
        if drafter.parallel:
            spec["parallel_drafting"] = True
        if choice.adaptive:
            spec["enable_adaptive_verification"] = True
        if spec["method"] in ("ngram", "ngram_gpu"):
            spec |= {"prompt_lookup_min": 2, "prompt_lookup_max": 5}
        if steps:
            spec["num_speculative_tokens_per_batch_size"] = [
                [s.first, s.last, s.draft_len] for s in steps
            ]
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
        kinds = self.rules.names["kv_dtype"]
        kv = kinds.get(plan.best.kv_dtype.lower())
        if kv is None:
            raise EngineUnsupported(
                f"vllm 0.33.0 has no KV cache type {plan.best.kv_dtype!r}; use fp8 or bf16 "
                f"(known: {', '.join(kinds)}) [{self.rules.options['kv-cache-dtype'].source}]"
            )
        if kv != "auto":
            formats["kv-cache-dtype"] = kv
        quant = plan.best.quant.lower()
        if is_gguf(want, quant):
            raise EngineUnsupported(
                f"vllm 0.33.0 loads no GGUF weights ({plan.best.quant}); use --engine llama.cpp, "
                f"or --quant fp8 or w4a16 [{self.rules.options['quantization'].source}]"
            )
        online = self.rules.names["online_quant"].get(quant)
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


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _offload(plan: Plan) -> Config:
    parts = offloaded(plan)
    if "experts" in parts:
        raise EngineUnsupported(
            "vllm 0.33.0 moves weights to host memory by size and not by expert; use --engine "
            "llama.cpp for experts in host memory [vllm/config/offload.py:23-34]"
        )
    gib = plan.best.ledger.host_mib / 1024
    return {"cpu-offload-gb": ceil(gib * 10) / 10} if parts and gib > 0 else {}


def _downloads(plan: Plan, want: Deployment) -> tuple[str, ...]:
    lines = [install_line(plan, "vllm==0.33.0"), *hub_downloads(plan, want)]
    if want.drafter and want.drafter.family == "ngram":
        lines.append("only for the arm method=suffix: pip install arctic-inference==0.1.1")
    return tuple(lines)


def _remarks(
    rules: RuleBook, plan: Plan, want: Deployment, config: Mapping[str, object]
) -> tuple[str, ...]:
    notes = [
        f"CUDA graphs cover {want.max_seqs} sequences at every draft length of the config "
        f"[{rules.rule('graphs-cover').source}]"
    ]
    notes += common_notes(plan, want, str(config.get("quantization", "")))
    if want.drafter and want.drafter.family == "external":
        notes.append(
            "draft and target need the same vocabulary size [vllm/config/speculative.py:2040]"
        )
    if plan.best.ledger.max_context_at_batch > want.context_len:
        notes.append(
            f"max-model-len is the plan's context; {plan.best.ledger.max_context_at_batch} tokens "
            "would still fit"
        )
    return tuple(notes)
