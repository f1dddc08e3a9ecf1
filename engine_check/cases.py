"""The matrix engine x drafter x kind of model x batch, each as the command that is emitted."""

import json
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from pathlib import Path

from engine_check.folders import TARGETS, VARIANT_OF, Target, drafter_folder, target_folder
from planner.emit.registry import SUPPORTED, emitter_for
from planner.errors import PlannerError
from planner.search.question import Question
from planner.search.recommend import recommend
from planner.search.records import Plan

CONTEXT_LEN = 4096


@dataclass(frozen=True, slots=True)
class Case:
    """One emitted command, or the planner's own refusal to emit it."""

    engine: str
    kind: str
    """Kind of model."""
    model: str
    """Config that it was made from."""
    family: str
    batch: int
    arm: str
    """`config` for the emitted file, else the arm's name."""
    draft_len: int = 0
    argv: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    folder: str = ""
    """Where the command's files lie."""
    refusal: str = ""
    """Why the planner wrote nothing; empty for a command."""

    @property
    def name(self) -> str:
        """Unique name."""
        return f"{self.engine}/{self.kind}/{self.family}/batch {self.batch}/{self.arm}"


def cases(work: Path, engines: tuple[str, ...] = tuple(SUPPORTED)) -> list[Case]:
    """All cases; their files are written below `work`."""
    found = []
    for engine, target in product(engines, TARGETS):
        for family, batch in product(target.families, target.batches):
            base = Case(engine, target.kind, target.config, family, batch, "config")
            found += _of(work, base, target)
    return found


def write(work: Path, found: list[Case]) -> Path:
    """The cases as JSON, for the judges."""
    path = work / "cases.json"
    path.write_text(json.dumps([{**asdict(c), "name": c.name} for c in found], indent=1))
    return path


def _of(work: Path, base: Case, target: Target) -> list[Case]:
    """The commands of one combination, or its refusal."""
    try:
        plan = _drafted(recommend(_question(work, base, target)))
        emission = emitter_for(base.engine).emit(plan)
    except PlannerError as error:
        return [replace(base, refusal=str(error).replace(f"{work}/models/", ""))]
    folder = work / "out" / base.name.replace("/", "_").replace(" ", "-")
    folder.mkdir(parents=True, exist_ok=True)
    for file in emission.files:
        (folder / file.name).write_text(file.text)
    launch, length = emission.launch, plan.best.draft_len
    wanted = {"config": launch.argv}
    wanted |= {a: v for a, v in launch.arms.items() if a == "off" or _keep(a, plan)}
    base = replace(base, env=dict(launch.env), folder=str(folder))
    return [
        replace(base, arm=arm, draft_len=_draft_len(arm, length), argv=argv)
        for arm, argv in wanted.items()
    ]


def _question(work: Path, base: Case, target: Target) -> Question:
    own = drafter_folder(work, target, base.family)
    gguf = base.engine == "llama.cpp"
    return Question(
        model=str(target_folder(work, target)),
        gpu=target.gpu,
        engine=base.engine,
        drafter=VARIANT_OF.get(base.family, base.family),
        drafter_path=str(own) if own else None,
        batch=(base.batch,),
        context=(CONTEXT_LEN,),
        tp=None if gguf else target.tp,
        quant="q4_k_m" if gguf else target.quant,
        kv_dtype="q8_0" if gguf and target.kv_dtype else target.kv_dtype,
        offload=target.offload,
        host=target.host,
        calibration="none",
    )


def _drafted(plan: Plan) -> Plan:
    """The plan with its drafted candidate chosen, also where off is better."""
    if plan.best_drafted is None:
        reasons = [r.reason for r in plan.rejected] + list(plan.not_applicable.values())
        raise PlannerError(f"no candidate of the family: {'; '.join(reasons)[:300]}")
    return plan.model_copy(update={"best": plan.best_drafted})


def _keep(arm: str, plan: Plan) -> bool:
    """The arms of one draft length are alike: the shortest and the plan's own are tried."""
    length = arm.removeprefix("draft_len=")
    return not arm.startswith("draft_len=") or length in ("1", str(plan.best.draft_len))


def _draft_len(arm: str, plan_draft_len: int) -> int:
    if arm == "off":
        return 0
    if arm.startswith("draft_len="):
        return int(arm.partition("=")[2])
    return plan_draft_len
