"""SGLang: a plan becomes engine.yaml (`sglang serve --config`), launch.sh and a D schedule."""

import json
from collections.abc import Mapping
from math import ceil, floor

from planner.emit.arms import Argv, arms_of
from planner.emit.card_memory import card_mib, working_mib
from planner.emit.check import Facts, check
from planner.emit.config_file import Config, yaml_text
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
from planner.emit.devices import install_line
from planner.emit.emitter import RuleBoundEmitter
from planner.emit.headline import headline
from planner.emit.records import Emission, EmittedFile, EngineVersion
from planner.emit.schedule import ScheduleForm, schedule_text
from planner.emit.script import launch_script
from planner.emit.sglang_checks import CHAINS, SCHEDULED, predicates
from planner.errors import EngineUnsupported
from planner.search.records import Launch, Plan

_NAME = "sglang 0.5.23"
_HOST, _PORT = "127.0.0.1", 30000
_ADAPTIVE_FILE = "adaptive.json"
_PP_SPEC = "SGLANG_ENABLE_PP_SPEC"
_STAGED = ("mtp", "eagle1")
"""Families whose algorithm runs over pipeline stages."""
_UNQUANTISED_BITS = 12
"""Drafts of at least that many bits a weight are served as they are."""


class SglangEmitter(RuleBoundEmitter):
    """Emitter for SGLang 0.5.23."""

    engine_version = EngineVersion("sglang", "0.5.23", "sglang 0.5.23 wheel (PyPI), sglang/srt")

    def written(self, plan: Plan, want: Deployment) -> Emission:
        """The engine's own files, launch and notes."""
        # SGLang drops the schedule of a pipeline (rule `pipeline`).
        steps = () if plan.inputs.num_gpus > plan.best.tp else self._schedule(want)
        config = self.config(plan, want, want.draft_len, steps)
        staged = "pp-size" in config and want.drafter and want.drafter.family in _STAGED
        env = {_PP_SPEC: "1"} if staged else {}
        arms, skipped = arms_of(
            lambda n: self._argv(want, self.config(plan, want, n)), want.arm_draft_lens
        )
        argv = ("sglang", "serve", "--model-path", want.model, "--config", "engine.yaml")
        fetch = (
            install_line(plan, f"sglang=={self.engine_version.version}"),
            *hub_downloads(plan, want),
        )
        launch = Launch(
            argv=argv,
            env=env,
            ready_url=f"http://{_HOST}:{_PORT}/health",
            metrics_url=f"http://{_HOST}:{_PORT}/metrics",
            arms=arms,
        )
        head = (*headline(plan, _NAME), "", "Before the first start:", *fetch)
        form = ScheduleForm("speculative-adaptive-config", in_config=bool(steps))
        files = [
            EmittedFile("launch.sh", launch_script(head, argv, env=env), executable=True),
            EmittedFile("engine.yaml", yaml_text(headline(plan, _NAME), config)),
            EmittedFile("schedule.json", schedule_text(plan, want, self.engine_version, form)),
        ]
        if steps:
            files.append(EmittedFile(_ADAPTIVE_FILE, _adaptive(steps)))
        notes = (*fetch, *self._remarks(plan, want, config), *skipped)
        return Emission(tuple(files), launch, notes)

    def config(
        self, plan: Plan, want: Deployment, draft_len: int, steps: tuple[Step, ...] = ()
    ) -> Config:
        """The checked flags for a draft length; 0 holds no speculation at all."""
        stages = plan.inputs.num_gpus // plan.best.tp
        quantization = self._quantization(plan, want)
        config: Config = {
            "host": _HOST,
            "port": _PORT,
            "tp-size": plan.best.tp,
            **({"pp-size": stages} if stages > 1 else {}),
            "context-length": want.context_len,
            "max-running-requests": want.max_seqs,
            "cuda-graph-max-bs-decode": want.max_seqs,
            **_memory(plan, want),
            **self._cache_type(plan),
            **({"quantization": quantization} if quantization else {}),
            **_offload(plan),
            "enable-metrics": True,
        }
        if draft_len:
            config |= self._speculation(want, draft_len, steps, quantised=bool(quantization))
        drafter = want.drafter
        facts = Facts(
            max_draft_len=drafter.block if drafter else None,
            mtp_layers=drafter.draft_len_step if drafter and drafter.family == "mtp" else None,
            checkpoint_quantised=want.quantised,
            context_len=want.context_len,
            num_gpus=plan.inputs.num_gpus,
            architecture=plan.inputs.architecture,
            schedule_draft_lens=frozenset(step.draft_len for step in steps),
        )
        seen = {**config, _PP_SPEC: "1"} if _over_stages(config) else config
        check(self.rules, seen, facts, predicates(self.rules))
        return config

    def _speculation(
        self, want: Deployment, draft_len: int, steps: tuple[Step, ...], *, quantised: bool
    ) -> Config:
        drafter = self._supported(want, draft_len)
        algorithm = self.rules.names["family"][drafter.family]
        spec: Config = {"speculative-algorithm": algorithm}
        source = draft_source(want, drafter, _NAME, "arg_groups/fields/spec.py:36")
        if source:
            spec["speculative-draft-model-path"] = source
            if quantised and drafter.core_bits >= _UNQUANTISED_BITS:
                spec["speculative-draft-model-quantization"] = "unquant"
        if algorithm in CHAINS:
            spec |= {
                "speculative-num-steps": draft_len,
                "speculative-eagle-topk": 1,
                "speculative-num-draft-tokens": draft_len + 1,
            }
        elif algorithm == "DFLASH":
            spec["speculative-dflash-block-size"] = draft_len + 1
        elif algorithm == "DSPARK":
            spec["speculative-dspark-block-size"] = draft_len
        else:
            depth = max(int(self.rules.numbers["ngram_trie_depth_default"]), draft_len + 1)
            spec |= {
                "speculative-num-draft-tokens": draft_len + 1,
                "speculative-ngram-max-bfs-breadth": 1,
                "speculative-ngram-max-trie-depth": depth,
            }
        if steps:
            spec["speculative-adaptive"] = True
            spec["speculative-adaptive-config"] = _ADAPTIVE_FILE
        return spec

    def _supported(self, want: Deployment, draft_len: int) -> Drafter:
        drafter = want.drafter
        if drafter is None:
            raise EngineUnsupported(
                f"draft length {draft_len} needs a drafter and the plan names none; "
                "give --drafter or --drafter-path"
            )
        if drafter.family not in self.rules.names["family"]:
            raise EngineUnsupported(
                f"{_NAME} has no algorithm for drafter family {drafter.family!r}; use "
                f"{', '.join(sorted(self.rules.names['family']))} [arg_groups/fields/spec.py:31]"
            )
        if drafter.parallel:
            raise EngineUnsupported(
                f"{_NAME} has neither P-EAGLE nor PARD, and {drafter.drafter_id} drafts all its "
                "tokens in one pass; use --engine vllm, or an EAGLE-3 or plain draft model "
                "[arg_groups/fields/spec.py:31]"
            )
        return drafter

    def _schedule(self, want: Deployment) -> tuple[Step, ...]:
        """D by batch where it varies and the algorithm can follow it."""
        several = len({step.draft_len for step in want.schedule}) > 1
        if not want.draft_len or want.drafter is None or not several:
            return ()
        algorithm = self.rules.names["family"].get(want.drafter.family)
        layered = want.drafter.draft_len_step > 1
        return () if algorithm not in SCHEDULED or layered else want.schedule

    def _cache_type(self, plan: Plan) -> Config:
        kinds = self.rules.names["kv_dtype"]
        kind = kinds.get(plan.best.kv_dtype.lower())
        if kind is None:
            raise EngineUnsupported(
                f"{_NAME} has no KV cache type {plan.best.kv_dtype!r}; use fp8 or bf16 "
                f"(known: {', '.join(kinds)}) [{self.rules.options['kv-cache-dtype'].source}]"
            )
        return {} if kind == "auto" else {"kv-cache-dtype": kind}

    def _quantization(self, plan: Plan, want: Deployment) -> str:
        """Scheme that SGLang converts the weights to at load time; empty where it does not."""
        if is_gguf(want, plan.best.quant):
            raise EngineUnsupported(
                f"no {_NAME} command is written for GGUF weights ({plan.best.quant}); use --engine "
                "llama.cpp, or --quant fp8 or w4a16 "
                f"[{self.rules.options['quantization'].source}]"
            )
        online = self.rules.names["online_quant"].get(plan.best.quant.lower())
        return online if online and not want.quantised else ""

    def _remarks(
        self, plan: Plan, want: Deployment, config: Mapping[str, object]
    ) -> tuple[str, ...]:
        notes = [
            "max-running-requests is set, because SGLang caps speculation at 48 requests without it"
            f" [{self.rules.rule('request-cap').source}]",
            *common_notes(plan, want, str(config.get("quantization", ""))),
        ]
        if want.draft_len and "speculative-adaptive" not in config and len(want.schedule) > 1:
            notes.append(
                "D is fixed for all batches here: schedule.json is advice "
                f"[{self.rules.rule('adaptive-dropped').source}]"
            )
        if plan.best.ledger.max_context_at_batch > want.context_len:
            notes.append(
                f"context-length is the plan's; {plan.best.ledger.max_context_at_batch} tokens "
                "would still fit"
            )
        return tuple(notes)

    def _argv(self, want: Deployment, config: Mapping[str, object]) -> Argv:
        argv = ["sglang", "serve", "--model-path", want.model]
        for name, value in config.items():
            argv.append(f"--{name}")
            if value is not True:
                argv.append(str(value))
        return tuple(argv)


def _memory(plan: Plan, want: Deployment) -> Config:
    """Share of the card for weights and caches; what the plan's ledger leaves to the rest."""
    ledger, whole_mib = plan.best.ledger, card_mib(plan)
    if whole_mib is None:
        if plan.inputs.max_vram_mib is None:
            return {}
        return {"max-total-tokens": want.max_seqs * want.context_len}
    share = (min(ledger.capacity_mib, whole_mib) - working_mib(plan)) / whole_mib
    return {"mem-fraction-static": floor(share * 1000 + 1e-9) / 1000}


def _offload(plan: Plan) -> Config:
    parts = offloaded(plan)
    if "experts" in parts:
        raise EngineUnsupported(
            f"{_NAME} moves weights to host memory by size and not by expert; use --engine "
            "llama.cpp for experts in host memory [arg_groups/fields/exec_.py:1068]"
        )
    gib = plan.best.ledger.host_mib / 1024
    return {"cpu-offload-gb": ceil(gib)} if parts and gib > 0 else {}


def _over_stages(config: Mapping[str, object]) -> bool:
    """Whether speculation runs over pipeline stages, which SGLang has behind a switch."""
    return "pp-size" in config and "speculative-algorithm" in config


def _adaptive(steps: tuple[Step, ...]) -> str:
    """The schedule as SGLang reads it: one fixed D from each batch size on."""
    slots = {str(step.first): {"candidate_steps": [step.draft_len]} for step in steps}
    return json.dumps(slots, indent=1) + "\n"
