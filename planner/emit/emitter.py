"""What every engine's emitter does alike: its rule book, and the steps around the files."""

from abc import ABC, abstractmethod
from functools import cached_property

from planner.emit.compatibility import with_compatibility
from planner.emit.containers import with_compose
from planner.emit.deployment import Deployment, deployment, require_loadable
from planner.emit.names import one_line
from planner.emit.records import Emission, EngineVersion
from planner.emit.remote_code import remote_code_notes
from planner.emit.rules import RuleBook, load_rules
from planner.errors import EngineUnsupported
from planner.search.records import Plan


class RuleBoundEmitter(ABC):
    """An emitter that follows the rule book of one engine version."""

    engine_version: EngineVersion

    @cached_property
    def rules(self) -> RuleBook:
        """The rule book of this version."""
        return load_rules(self.engine_version.engine, self.engine_version.version)

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
        said = (*made.notes, *remote_code_notes(self.rules, plan))
        notes = tuple(one_line(note) for note in said)
        emission = Emission(made.files, made.launch, notes)
        emission = with_compatibility(emission, self.engine_version.engine, want)
        return with_compose(emission, self.rules, plan, want)

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

    @abstractmethod
    def written(self, plan: Plan, want: Deployment) -> Emission:
        """The engine's own files, launch and notes."""
