"""What every engine's emitter does alike: its rule book, the files around its own, refusals."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from re import IGNORECASE, search

from planner.emit.arms import Argv, Arms
from planner.emit.check import Facts
from planner.emit.compatibility import with_compatibility
from planner.emit.containers import with_compose
from planner.emit.deployment import Deployment, Drafter, Step, deployment
from planner.emit.names import one_line
from planner.emit.records import Emission, EmittedFile, EngineVersion
from planner.emit.refusals import require_loadable
from planner.emit.registry import SUPPORTED
from planner.emit.rules import RuleBook, load_rules
from planner.emit.schedule import ScheduleForm, schedule_text
from planner.emit.script import launch_script
from planner.errors import EngineUnsupported
from planner.search.records import Launch, Plan

HOST = "127.0.0.1"
"""Where an emitted server listens: on this machine alone."""


@dataclass(frozen=True, slots=True)
class Written:
    """What an engine's own emitter makes of a plan."""

    argv: Argv
    """The command, to be started from the folder of the files."""
    config: EmittedFile
    """Its configuration, or a description of the command."""
    schedule: ScheduleForm
    arms: Arms
    """Other ways to start it, by name."""
    before: tuple[str, ...]
    """What the head of launch.sh says to do before the first start."""
    notes: tuple[str, ...]
    """What the user must know."""
    env: Mapping[str, str] = field(default_factory=dict)
    unset: tuple[str, ...] = ()
    """Beginnings of variables that would change what the command means."""
    more_files: tuple[EmittedFile, ...] = ()


@dataclass(frozen=True, slots=True)
class Method:
    """How an engine calls what drafts, for its complaints."""

    word: str
    source: str
    """Where the engine lists what it knows."""


class RuleBoundEmitter(ABC):
    """An emitter that follows the rule book of one engine version."""

    engine: str
    """Planner's engine name."""
    port: int
    metrics_path: str = "/metrics"
    method: Method
    cache_option: str = "kv-cache-dtype"
    """Setting of the KV cache's type."""
    cache_types: str = "fp8 or bf16"
    """KV cache types to use in place of one that the engine does not have."""

    @cached_property
    def rules(self) -> RuleBook:
        """The rule book of the version that files are written for."""
        return load_rules(self.engine, SUPPORTED[self.engine])

    @property
    def engine_version(self) -> EngineVersion:
        """The version, and where its rules were read."""
        return EngineVersion(self.rules.engine, self.rules.version, self.rules.read_at)

    @property
    def title(self) -> str:
        """Engine and version, as messages and heads of files name them."""
        return f"{self.rules.engine} {self.rules.version}"

    def emit(self, plan: Plan) -> Emission:
        """Files and launch of a plan.

        Raises:
            EngineUnsupported: a rule of this version forbids the plan.
        """
        self._require_own_format(plan)
        self._require_known_method(plan)
        want = deployment(plan)
        if want.draft_len and want.drafter:
            require_loadable(want.drafter, self.rules)
        made = self.written(plan, want)
        launch = Launch(
            argv=made.argv,
            env=dict(made.env),
            ready_url=f"http://{HOST}:{self.port}/health",
            metrics_url=f"http://{HOST}:{self.port}{self.metrics_path}",
            arms=made.arms,
        )
        head = (*self.headline(plan), "", "Before the first start:", *made.before)
        script = launch_script(head, made.argv, env=made.env, unset=made.unset)
        files = (
            EmittedFile("launch.sh", script, executable=True),
            made.config,
            EmittedFile("schedule.json", schedule_text(plan, want, self.rules, made.schedule)),
            *made.more_files,
        )
        said = (*made.notes, *self._remote_code_notes(plan))
        emission = Emission(files, launch, tuple(one_line(note) for note in said))
        emission = with_compatibility(emission, self.engine, want)
        return with_compose(emission, self.rules, plan, want)

    @abstractmethod
    def written(self, plan: Plan, want: Deployment) -> Written:
        """The engine's own command, configuration and notes."""

    def headline(self, plan: Plan) -> tuple[str, str]:
        """Engine, model, card, verdict and choice of a plan, for the head of a file."""
        best = plan.best
        where = f"{plan.inputs.num_gpus}x {plan.inputs.gpu_name}"
        first = f"{self.title} for {plan.inputs.model_name} on {where}, written by specplanner"
        shape = f"batch {best.batch}, context {best.context_len}, {best.quant}, KV {best.kv_dtype}"
        if best.draft_len == 0:
            choice = f"no speculation ({shape})"
        else:
            choice = (
                f"{best.family} D={best.draft_len}: {best.speedup:.2f}x "
                f"({best.speedup_lo:.2f} to {best.speedup_hi:.2f}), {plan.verdict} ({shape})"
            )
        return f"{first} {plan.planner_version}", choice

    def facts(self, plan: Plan, want: Deployment, steps: tuple[Step, ...] = ()) -> Facts:
        """What the rules must know besides the settings."""
        drafter = want.drafter
        over_stages = self.rules.lists.get("aux_over_pipeline", ())
        return Facts(
            max_draft_len=drafter.block if drafter else None,
            mtp_layers=drafter.draft_len_step if drafter and drafter.family == "mtp" else None,
            checkpoint_quantised=want.quantised,
            context_len=want.context_len,
            max_position=plan.inputs.max_position,
            num_gpus=plan.inputs.num_gpus,
            architecture=plan.inputs.architecture,
            schedule_draft_lens=frozenset(step.draft_len for step in steps),
            head_dims=frozenset(plan.inputs.head_dims),
            aux_over_pipeline=any(search(p, want.model, IGNORECASE) for p in over_stages),
        )

    def drafter_of(self, want: Deployment, draft_len: int) -> Drafter:
        """The drafter that drafts so many tokens.

        Raises:
            EngineUnsupported: the plan names none.
        """
        if want.drafter is None:
            raise EngineUnsupported(
                f"draft length {draft_len} needs a drafter and the plan names none; "
                "give --drafter or --drafter-path"
            )
        return want.drafter

    def method_of(self, drafter: Drafter) -> str:
        """The engine's name of what such a drafter does.

        Raises:
            EngineUnsupported: it has none.
        """
        known = self.rules.names["family"]
        if drafter.family not in known:
            raise EngineUnsupported(
                f"{self.title} has no {self.method.word} for drafter family {drafter.family!r}; "
                f"use {', '.join(sorted(known))} [{self.method.source}]"
            )
        return known[drafter.family]

    def refuse_parallel(self, drafter: Drafter) -> None:
        """Refuse a drafter of one pass, where the engine runs sequential ones only."""
        if drafter.parallel:
            raise EngineUnsupported(
                f"{self.title} has neither P-EAGLE nor PARD, and {drafter.drafter_id} drafts all "
                "its tokens in one pass; use --engine vllm, or an EAGLE-3 or plain draft model "
                f"[{self.method.source}]"
            )

    def cache_type(self, plan: Plan) -> str:
        """The engine's name of the plan's KV cache type.

        Raises:
            EngineUnsupported: it has none.
        """
        kinds = self.rules.names["kv_dtype"]
        kind = kinds.get(plan.best.kv_dtype.lower())
        if kind is None:
            raise EngineUnsupported(
                f"{self.title} has no KV cache type {plan.best.kv_dtype!r}; use {self.cache_types} "
                f"(known: {', '.join(kinds)}) [{self.rules.options[self.cache_option].source}]"
            )
        return kind

    def _require_own_format(self, plan: Plan) -> None:
        foreign = plan.inputs.foreign_format
        if foreign is not None:
            raise EngineUnsupported(
                f"{self.rules.engine} {self.rules.version} loads no weights packed for {foreign}, "
                f"which {plan.inputs.model_name} is; use the unquantised checkpoint with --quant "
                f"fp8 or w4a16, or a GGUF with llama.cpp [{self.rules.read_at}]"
            )

    def _require_known_method(self, plan: Plan) -> None:
        method, known = plan.inputs.quant_method, self.rules.lists.get("quant_methods")
        if method is None or not known or method.replace("_", "-") in known:
            return
        raise EngineUnsupported(
            f"{self.rules.engine} {self.rules.version} loads no checkpoint of quant_method "
            f"{ascii(method)[:40]}, which {plan.inputs.model_name} states; use its unquantised "
            f"checkpoint with --quant fp8 or w4a16, or one of {', '.join(known[:6])} "
            f"[{self.rules.names['sources']['quant_methods']}]"
        )

    def _remote_code_notes(self, plan: Plan) -> tuple[str, ...]:
        """What a checkpoint needs whose configuration is a program of its own.

        The flag is left to the user: it runs Python from the download with the server's rights.
        """
        if plan.inputs.architecture not in self.rules.lists.get("remote_code", ()):
            return ()
        return (
            f"{self.rules.engine} cannot read the configuration of {plan.inputs.architecture} by "
            "itself: the repository brings Python for it, which the engine runs only with "
            "--trust-remote-code. That flag lets the download run code on this machine, so it is "
            "not in the files: read the repository's *.py, then start "
            "./launch.sh --trust-remote-code",
        )
