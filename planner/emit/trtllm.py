"""TensorRT-LLM: a plan becomes engine.yaml (`trtllm-serve MODEL --config`) and a D schedule.

The speculative settings have no flags, so that each arm is a YAML file of its own.
"""

from collections.abc import Mapping
from math import ceil

from planner.emit.arms import Argv, Arms, arms_of, variants_of
from planner.emit.card_memory import card_mib
from planner.emit.check import check
from planner.emit.config_file import Config, flat, yaml_text
from planner.emit.deployment import Choice, Deployment, Drafter, Step, offloaded
from planner.emit.downloads import hub_downloads
from planner.emit.emitter import HOST, Method, RuleBoundEmitter, Written
from planner.emit.records import EmittedFile
from planner.emit.refusals import draft_source, refuse_gguf
from planner.emit.remarks import common_notes
from planner.emit.schedule import ScheduleForm
from planner.emit.trtllm_checks import SCHEDULED, predicates, rows_of
from planner.errors import EngineUnsupported
from planner.search.records import Plan

_BUDGET_STEP = 256
_LOOKUP_NGRAM = 3
"""Tokens that NGram matches; the planner's acceptance data were measured with 3."""
_SUFFIX_LEN = 16


class TrtllmEmitter(RuleBoundEmitter):
    """Emitter for TensorRT-LLM."""

    engine = "trtllm"
    port = 8000
    metrics_path = "/prometheus/metrics"
    method = Method("decoding type", "SpeculativeConfig")
    cache_option = "kv_cache_config.dtype"

    @property
    def title(self) -> str:
        """Engine and commit, as messages and heads of files name them."""
        return f"TensorRT-LLM (rules read at commit {self.rules.version})"

    def written(self, plan: Plan, want: Deployment) -> Written:
        """The engine's own command, configuration and notes."""
        steps = self._schedule(want)
        config = self.config(plan, want, Choice(want.draft_len, steps))
        arms, arm_files, skipped = self._arms(plan, want)
        fetch = hub_downloads(plan, want)
        return Written(
            argv=self._argv(want, "engine.yaml"),
            config=EmittedFile("engine.yaml", yaml_text(self.headline(plan), config)),
            schedule=ScheduleForm("speculative_config.draft_len_schedule", in_config=bool(steps)),
            arms=arms,
            before=fetch,
            notes=(*fetch, *self._remarks(plan, want, config), *skipped),
            more_files=arm_files,
        )

    def _arms(
        self, plan: Plan, want: Deployment
    ) -> tuple[Arms, tuple[EmittedFile, ...], tuple[str, ...]]:
        """(commands by arm, the configuration of each, why others are missing)."""
        files: list[EmittedFile] = []

        def arm(choice: Choice) -> Argv:
            name = f"arm-{(choice.method or choice.draft_len) if choice.draft_len else 'off'}.yaml"
            files.append(EmittedFile(name, yaml_text((), self.config(plan, want, choice))))
            return self._argv(want, name)

        arms, skipped = arms_of(lambda n: arm(Choice(n)), want.arm_draft_lens)
        if want.arm_draft_lens and want.drafter and want.drafter.family == "ngram":
            suffix = Choice(_SUFFIX_LEN, method="SA")
            more, refused = variants_of({"method=SA": lambda: arm(suffix)})
            arms, skipped = {**arms, **more}, (*skipped, *refused)
        return arms, tuple(files), skipped

    def config(self, plan: Plan, want: Deployment, choice: Choice) -> Config:
        """The checked YAML of a choice; without a draft length it holds no speculation at all."""
        self._check_formats(plan, want)
        spec = self._speculation(want, choice) if choice.draft_len else {}
        budget = self._token_budget(want, rows_of(str(spec.get("decoding_type", "")), choice.most))
        stages = plan.inputs.num_gpus // plan.best.tp
        config: Config = {
            "tensor_parallel_size": plan.best.tp,
            **({"pipeline_parallel_size": stages} if stages > 1 else {}),
            "max_batch_size": want.max_seqs,
            "max_num_tokens": budget,
            "max_seq_len": want.context_len,
            **({"enable_chunked_prefill": True} if want.context_len > budget else {}),
            "kv_cache_config": self._cache(plan, want),
            "cuda_graph_config": {
                "enable_padding": True,
                "batch_sizes": graph_batches(want.max_seqs, choice.steps),
            },
            "enable_iter_perf_stats": True,
            "return_perf_metrics": True,
            **({"disable_overlap_scheduler": True} if spec.get("decoding_type") == "NGram" else {}),
            **({"speculative_config": spec} if spec else {}),
        }
        check(self.rules, flat(config), self.facts(plan, want), predicates(self.rules))
        return config

    def _speculation(self, want: Deployment, choice: Choice) -> Config:
        drafter = self.drafter_of(want, choice.draft_len)
        kind = choice.method or self._decoding_type(drafter)
        spec: Config = {"decoding_type": kind, "max_draft_len": choice.most}
        source = draft_source(want, drafter, self.title, "DecodingBaseConfig.speculative_model")
        if source:
            spec["speculative_model"] = source
        if kind == "NGram":
            spec["max_matching_ngram_size"] = _LOOKUP_NGRAM
        if kind == "SA":
            spec["max_matching_ngram_size"] = -1
        if choice.steps:
            spec["draft_len_schedule"] = {step.last: step.draft_len for step in choice.steps}
        return spec

    def _decoding_type(self, drafter: Drafter) -> str:
        if drafter.family == "external" and drafter.parallel:
            return "PARD"
        if drafter.family == "eagle1" or (drafter.family == "eagle3" and drafter.parallel):
            raise EngineUnsupported(
                f"{self.title} loads EAGLE-3 heads only, and {drafter.drafter_id} is "
                f"{'P-EAGLE' if drafter.parallel else 'a first-generation EAGLE head'}; use "
                "--engine vllm or an EAGLE-3 head [TorchLlmArgs.validate_speculative_config]"
            )
        return self.method_of(drafter)

    def _schedule(self, want: Deployment) -> tuple[Step, ...]:
        """D by batch where it varies, falls, and the decoding type can follow it."""
        lengths = [step.draft_len for step in want.schedule]
        if not want.draft_len or want.drafter is None or len(set(lengths)) < 2:
            return ()
        follows = self._decoding_type(want.drafter) in SCHEDULED
        return want.schedule if follows and lengths[0] == max(lengths) else ()

    def _token_budget(self, want: Deployment, rows: int) -> int:
        usual = int(self.rules.numbers["max_num_tokens_default"])
        need = ceil(want.max_seqs * rows / _BUDGET_STEP) * _BUDGET_STEP
        return max(usual, need)

    def _cache(self, plan: Plan, want: Deployment) -> Config:
        """Type and size of the KV pool: a share of what is free after loading, or tokens."""
        kind = self.cache_type(plan)
        cache: Config = {} if kind == "auto" else {"dtype": kind}
        limited = plan.inputs.max_vram_mib is not None or card_mib(plan) is None
        if limited:
            cache["max_tokens"] = want.max_seqs * want.context_len
        share = self.rules.numbers["free_gpu_memory_fraction_default"]
        return {**cache, "free_gpu_memory_fraction": share}

    def _check_formats(self, plan: Plan, want: Deployment) -> None:
        self.cache_type(plan)
        refuse_gguf(plan, want, f"{self.title} loads no", "BaseLlmArgs.model")
        kept = offloaded(plan)
        if kept:
            other = "llama.cpp" if "experts" in kept else "llama.cpp or vllm"
            raise EngineUnsupported(
                f"{self.title} has no setting that keeps weights in host memory; use --engine "
                f"{other}, or a smaller --quant [TorchLlmArgs]"
            )

    def _remarks(
        self, plan: Plan, want: Deployment, config: Mapping[str, object]
    ) -> tuple[str, ...]:
        notes = [
            f"these settings follow the source at commit {self.rules.version} and were not tried "
            "on an installed TensorRT-LLM",
            f"CUDA graphs cover {want.max_seqs} requests "
            f"[{self.rules.rule('graphs-cover').source}]",
            *common_notes(plan, want, ""),
        ]
        spec = config.get("speculative_config")
        if isinstance(spec, dict) and "draft_len_schedule" not in spec and len(want.schedule) > 1:
            notes.append(
                "D is fixed for all batches here: schedule.json is advice "
                f"[{self.rules.rule('schedule-type').source}]"
            )
        return tuple(notes)

    def _argv(self, want: Deployment, config_file: str) -> Argv:
        place = ("--host", HOST, "--port", str(self.port))
        return ("trtllm-serve", want.model, *place, "--config", config_file)


def graph_batches(most: int, steps: tuple[Step, ...] = ()) -> list[int]:
    """Batch sizes to capture: TensorRT-LLM's padded grid, the largest batch, the schedule's ends.

    1, 2, 4, steps of 8 to 128, then steps of 64
    (BaseCudaGraphConfig._generate_cuda_graph_batch_sizes).
    """
    grid = [1, 2, 4, *range(8, 129, 8), *range(192, most + 1, 64)]
    ends = {step.last for step in steps}
    return sorted({size for size in {*grid, *ends, most} if size <= most})
