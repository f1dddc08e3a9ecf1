"""TensorRT-LLM: a plan becomes engine.yaml (`trtllm-serve MODEL --config`) and a D schedule.

The speculative settings have no flags, so that each arm is a YAML file of its own.
"""

from collections.abc import Mapping
from math import ceil

from planner.emit.arms import Argv, arms_of, variants_of
from planner.emit.card_memory import card_mib
from planner.emit.check import Facts, check
from planner.emit.config_file import Config, flat, yaml_text
from planner.emit.deployment import (
    Deployment,
    Drafter,
    Step,
    common_notes,
    draft_source,
    hub_downloads,
    is_gguf,
    offloaded,
)
from planner.emit.emitter import RuleBoundEmitter
from planner.emit.headline import headline
from planner.emit.records import Emission, EmittedFile, EngineVersion
from planner.emit.schedule import ScheduleForm, schedule_text
from planner.emit.script import launch_script
from planner.emit.trtllm_checks import SCHEDULED, predicates, rows_of
from planner.errors import EngineUnsupported
from planner.search.records import Launch, Plan

_NAME = "TensorRT-LLM (rules read at commit 0004396720)"
_HOST, _PORT = "127.0.0.1", 8000
_BUDGET_STEP = 256
_LOOKUP_NGRAM = 3
"""Tokens that NGram matches; the planner's acceptance data were measured with 3."""
_SUFFIX_LEN = 16


class TrtllmEmitter(RuleBoundEmitter):
    """Emitter for TensorRT-LLM at commit 0004396720."""

    engine_version = EngineVersion(
        "trtllm", "0004396720", "tensorrt_llm/llmapi/llm_args.py at commit 0004396720"
    )

    def written(self, plan: Plan, want: Deployment) -> Emission:
        """The engine's own files, launch and notes."""
        steps = self._schedule(want)
        config = self.config(plan, want, want.draft_len, steps)
        arm_files: list[EmittedFile] = []

        def arm(draft_len: int, kind: str = "") -> Argv:
            name = f"arm-{kind or draft_len}.yaml" if draft_len else "arm-off.yaml"
            arm_config = self.config(plan, want, draft_len, kind=kind)
            arm_files.append(EmittedFile(name, yaml_text((), arm_config)))
            return _argv(want, name)

        arms, skipped = arms_of(arm, want.arm_draft_lens)
        if want.arm_draft_lens and want.drafter and want.drafter.family == "ngram":
            more, refused = variants_of({"method=SA": lambda: arm(_SUFFIX_LEN, "SA")})
            arms, skipped = {**arms, **more}, (*skipped, *refused)
        fetch = hub_downloads(plan, want)
        head = (*headline(plan, _NAME), "", "Before the first start:", *fetch)
        launch = Launch(
            argv=_argv(want, "engine.yaml"),
            ready_url=f"http://{_HOST}:{_PORT}/health",
            metrics_url=f"http://{_HOST}:{_PORT}/prometheus/metrics",
            arms=arms,
        )
        form = ScheduleForm("speculative_config.draft_len_schedule", in_config=bool(steps))
        files = (
            EmittedFile("launch.sh", launch_script(head, launch.argv, env={}), executable=True),
            EmittedFile("engine.yaml", yaml_text(headline(plan, _NAME), config)),
            EmittedFile("schedule.json", schedule_text(plan, want, self.engine_version, form)),
            *arm_files,
        )
        notes = (*fetch, *self._remarks(plan, want, config), *skipped)
        return Emission(files, launch, notes)

    def config(
        self,
        plan: Plan,
        want: Deployment,
        draft_len: int,
        steps: tuple[Step, ...] = (),
        *,
        kind: str = "",
    ) -> Config:
        """The checked YAML for a draft length; 0 holds no speculation at all."""
        self._check_formats(plan, want)
        spec = self._speculation(want, draft_len, steps, kind) if draft_len else {}
        most = max((s.draft_len for s in steps), default=draft_len)
        budget = self._token_budget(want, rows_of(str(spec.get("decoding_type", "")), most))
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
                "batch_sizes": graph_batches(want.max_seqs, steps),
            },
            "enable_iter_perf_stats": True,
            "return_perf_metrics": True,
        }
        if spec.get("decoding_type") == "NGram":
            config["disable_overlap_scheduler"] = True
        if spec:
            config["speculative_config"] = spec
        drafter = want.drafter
        facts = Facts(
            max_draft_len=drafter.block if drafter else None,
            mtp_layers=drafter.draft_len_step if drafter and drafter.family == "mtp" else None,
            context_len=want.context_len,
            num_gpus=plan.inputs.num_gpus,
            architecture=plan.inputs.architecture,
        )
        check(self.rules, flat(config), facts, predicates(self.rules))
        return config

    def _speculation(
        self, want: Deployment, draft_len: int, steps: tuple[Step, ...], kind: str
    ) -> Config:
        drafter = want.drafter
        if drafter is None:
            raise EngineUnsupported(
                f"draft length {draft_len} needs a drafter and the plan names none; "
                "give --drafter or --drafter-path"
            )
        kind = kind or self._decoding_type(drafter)
        spec: Config = {
            "decoding_type": kind,
            "max_draft_len": max((s.draft_len for s in steps), default=draft_len),
        }
        source = draft_source(want, drafter, _NAME, "DecodingBaseConfig.speculative_model")
        if source:
            spec["speculative_model"] = source
        if kind == "NGram":
            spec["max_matching_ngram_size"] = _LOOKUP_NGRAM
        if kind == "SA":
            spec["max_matching_ngram_size"] = -1
        if steps:
            spec["draft_len_schedule"] = {step.last: step.draft_len for step in steps}
        return spec

    def _decoding_type(self, drafter: Drafter) -> str:
        if drafter.family == "external" and drafter.parallel:
            return "PARD"
        if drafter.family == "eagle1" or (drafter.family == "eagle3" and drafter.parallel):
            raise EngineUnsupported(
                f"{_NAME} loads EAGLE-3 heads only, and {drafter.drafter_id} is "
                f"{'P-EAGLE' if drafter.parallel else 'a first-generation EAGLE head'}; use "
                "--engine vllm or an EAGLE-3 head [TorchLlmArgs.validate_speculative_config]"
            )
        kind = self.rules.names["family"].get(drafter.family)
        if kind is None:
            raise EngineUnsupported(
                f"{_NAME} has no decoding type for drafter family {drafter.family!r}; use "
                f"{', '.join(sorted(self.rules.names['family']))} [SpeculativeConfig]"
            )
        return kind

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
        kind = self.rules.names["kv_dtype"][plan.best.kv_dtype.lower()]
        cache: Config = {} if kind == "auto" else {"dtype": kind}
        limited = plan.inputs.max_vram_mib is not None or card_mib(plan) is None
        if limited:
            cache["max_tokens"] = want.max_seqs * want.context_len
        share = self.rules.numbers["free_gpu_memory_fraction_default"]
        return {**cache, "free_gpu_memory_fraction": share}

    def _check_formats(self, plan: Plan, want: Deployment) -> None:
        kinds = self.rules.names["kv_dtype"]
        if plan.best.kv_dtype.lower() not in kinds:
            raise EngineUnsupported(
                f"{_NAME} has no KV cache type {plan.best.kv_dtype!r}; use fp8 or bf16 "
                f"(known: {', '.join(kinds)}) [KvCacheConfig.validate_dtype]"
            )
        if is_gguf(want, plan.best.quant):
            raise EngineUnsupported(
                f"{_NAME} loads no GGUF weights ({plan.best.quant}); use --engine llama.cpp, or "
                "--quant fp8 or w4a16 [BaseLlmArgs.model]"
            )
        kept = offloaded(plan)
        if kept:
            other = "llama.cpp" if "experts" in kept else "llama.cpp or vllm"
            raise EngineUnsupported(
                f"{_NAME} has no setting that keeps weights in host memory; use --engine {other}, "
                "or a smaller --quant [TorchLlmArgs]"
            )

    def _remarks(
        self, plan: Plan, want: Deployment, config: Mapping[str, object]
    ) -> tuple[str, ...]:
        notes = [
            "these settings follow the source at commit 0004396720 and were not tried on an "
            "installed TensorRT-LLM",
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


def graph_batches(most: int, steps: tuple[Step, ...] = ()) -> list[int]:
    """Batch sizes to capture: TensorRT-LLM's padded grid, the largest batch, the schedule's ends.

    1, 2, 4, steps of 8 to 128, then steps of 64
    (BaseCudaGraphConfig._generate_cuda_graph_batch_sizes).
    """
    grid = [1, 2, 4, *range(8, 129, 8), *range(192, most + 1, 64)]
    ends = {step.last for step in steps}
    return sorted({size for size in {*grid, *ends, most} if size <= most})


def _argv(want: Deployment, config_file: str) -> Argv:
    return (
        "trtllm-serve", want.model, "--host", _HOST, "--port", str(_PORT), "--config", config_file,
    )  # fmt: skip
