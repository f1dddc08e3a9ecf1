"""SGLang: a plan becomes engine.yaml (`sglang serve --config`), launch.sh and a D schedule."""

import json
from collections.abc import Mapping
from math import ceil, floor

from planner.emit.arms import Argv, arms_of
from planner.emit.card_memory import card_mib, working_mib
from planner.emit.check import check
from planner.emit.config_file import Config, yaml_text
from planner.emit.deployment import Deployment, Step, offloaded
from planner.emit.devices import install_line
from planner.emit.downloads import hub_downloads
from planner.emit.emitter import HOST, Method, RuleBoundEmitter, Written
from planner.emit.records import EmittedFile
from planner.emit.refusals import draft_source, refuse_experts, refuse_gguf
from planner.emit.remarks import common_notes, room_left
from planner.emit.schedule import ScheduleForm
from planner.emit.sglang_checks import CHAINS, SCHEDULED, predicates
from planner.search.records import Plan

_ADAPTIVE_FILE = "adaptive.json"
_PP_SPEC = "SGLANG_ENABLE_PP_SPEC"
_STAGED = ("mtp", "eagle1")
"""Families whose algorithm runs over pipeline stages."""
_UNQUANTISED_BITS = 12
"""Drafts of at least that many bits a weight are served as they are."""


class SglangEmitter(RuleBoundEmitter):
    """Emitter for SGLang."""

    engine = "sglang"
    port = 30000
    method = Method("algorithm", "arg_groups/fields/spec.py:31")

    def written(self, plan: Plan, want: Deployment) -> Written:
        """The engine's own command, configuration and notes."""
        # SGLang drops the schedule of a pipeline (rule `pipeline`).
        steps = () if plan.inputs.num_gpus > plan.best.tp else self._schedule(want)
        config = self.config(plan, want, want.draft_len, steps)
        staged = "pp-size" in config and want.drafter and want.drafter.family in _STAGED
        arms, skipped = arms_of(
            lambda n: _argv(want, self.config(plan, want, n)), want.arm_draft_lens
        )
        install = install_line(plan, f"sglang=={self.rules.version}")
        fetch = (install, *hub_downloads(plan, want))
        return Written(
            argv=("sglang", "serve", "--model-path", want.model, "--config", "engine.yaml"),
            config=EmittedFile("engine.yaml", yaml_text(self.headline(plan), config)),
            schedule=ScheduleForm("speculative-adaptive-config", in_config=bool(steps)),
            arms=arms,
            before=fetch,
            notes=(*fetch, *self._remarks(plan, want, config), *skipped),
            env={_PP_SPEC: "1"} if staged else {},
            more_files=(EmittedFile(_ADAPTIVE_FILE, _adaptive(steps)),) if steps else (),
        )

    def config(
        self, plan: Plan, want: Deployment, draft_len: int, steps: tuple[Step, ...] = ()
    ) -> Config:
        """The checked flags for a draft length; 0 holds no speculation at all."""
        stages = plan.inputs.num_gpus // plan.best.tp
        quantization = self._quantization(plan, want)
        config: Config = {
            "host": HOST,
            "port": self.port,
            "tp-size": plan.best.tp,
            **({"pp-size": stages} if stages > 1 else {}),
            "context-length": want.context_len,
            "max-running-requests": want.max_seqs,
            "cuda-graph-max-bs-decode": want.max_seqs,
            **_memory(plan, want),
            **self._cache_type(plan),
            **({"quantization": quantization} if quantization else {}),
            **self._offload(plan),
            "enable-metrics": True,
        }
        if draft_len:
            config |= self._speculation(want, draft_len, steps, quantised=bool(quantization))
        seen = {**config, _PP_SPEC: "1"} if _over_stages(config) else config
        check(self.rules, seen, self.facts(plan, want, steps), predicates(self.rules))
        return config

    def _speculation(
        self, want: Deployment, draft_len: int, steps: tuple[Step, ...], *, quantised: bool
    ) -> Config:
        drafter = self.drafter_of(want, draft_len)
        algorithm = self.method_of(drafter)
        self.refuse_parallel(drafter)
        spec: Config = {"speculative-algorithm": algorithm}
        source = draft_source(want, drafter, self.title, "arg_groups/fields/spec.py:36")
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

    def _schedule(self, want: Deployment) -> tuple[Step, ...]:
        """D by batch where it varies and the algorithm can follow it."""
        several = len({step.draft_len for step in want.schedule}) > 1
        if not want.draft_len or want.drafter is None or not several:
            return ()
        algorithm = self.rules.names["family"].get(want.drafter.family)
        layered = want.drafter.draft_len_step > 1
        return () if algorithm not in SCHEDULED or layered else want.schedule

    def _cache_type(self, plan: Plan) -> Config:
        kind = self.cache_type(plan)
        return {} if kind == "auto" else {"kv-cache-dtype": kind}

    def _quantization(self, plan: Plan, want: Deployment) -> str:
        """Scheme that SGLang converts the weights to at load time; empty where it does not."""
        said = f"no {self.title} command is written for"
        refuse_gguf(plan, want, said, self.rules.options["quantization"].source)
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
        return (*notes, *room_left(plan, want, "context-length is the plan's"))

    def _offload(self, plan: Plan) -> Config:
        parts = offloaded(plan)
        refuse_experts(parts, self.title, "arg_groups/fields/exec_.py:1068")
        gib = plan.best.ledger.host_mib / 1024
        return {"cpu-offload-gb": ceil(gib)} if parts and gib > 0 else {}


def _argv(want: Deployment, config: Mapping[str, object]) -> Argv:
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


def _over_stages(config: Mapping[str, object]) -> bool:
    """Whether speculation runs over pipeline stages, which SGLang has behind a switch."""
    return "pp-size" in config and "speculative-algorithm" in config


def _adaptive(steps: tuple[Step, ...]) -> str:
    """The schedule as SGLang reads it: one fixed D from each batch size on."""
    slots = {str(step.first): {"candidate_steps": [step.draft_len]} for step in steps}
    return json.dumps(slots, indent=1) + "\n"
