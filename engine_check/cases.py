"""The matrix engine x drafter x kind of model x batch, each as the command that is emitted."""

import json
from dataclasses import asdict, dataclass, field, replace
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
    for engine in engines:
        for target in TARGETS:
            for family in target.families:
                for batch in target.batches:
                    found += _of(work, engine, target, (family, batch))
    return found


def write(work: Path, found: list[Case]) -> Path:
    """The cases as JSON, for the judges."""
    path = work / "cases.json"
    path.write_text(json.dumps([{**asdict(c), "name": c.name} for c in found], indent=1))
    return path


def _of(work: Path, engine: str, target: Target, what: tuple[str, int]) -> list[Case]:
    family, batch = what
    own = drafter_folder(work, target, family)
    question = Question(
        model=str(target_folder(work, target)),
        gpu=target.gpu,
        engine=engine,
        drafter=VARIANT_OF.get(family, family),
        drafter_path=str(own) if own else None,
        batch=(batch,),
        context=(CONTEXT_LEN,),
        tp=target.tp if engine != "llama.cpp" else None,
        quant="q4_k_m" if engine == "llama.cpp" else target.quant,
        kv_dtype="q8_0" if engine == "llama.cpp" and target.kv_dtype else target.kv_dtype,
        offload=target.offload,
        host=target.host,
        calibration="none",
    )
    base = Case(engine, target.kind, target.config, family, batch, "config")
    try:
        plan = _drafted(recommend(question))
        emission = emitter_for(engine).emit(plan)
    except PlannerError as error:
        return [replace(base, refusal=str(error).replace(f"{work}/models/", ""))]
    folder = work / "out" / base.name.replace("/", "_").replace(" ", "-")
    folder.mkdir(parents=True, exist_ok=True)
    for file in emission.files:
        (folder / file.name).write_text(file.text)
    launch, draft_len = emission.launch, plan.best.draft_len
    wanted = {"config": launch.argv}
    wanted |= {a: v for a, v in launch.arms.items() if a == "off" or _keep(a, plan)}
    return [
        replace(
            base,
            arm=arm,
            draft_len=_draft_len(arm, draft_len),
            argv=argv,
            env=dict(launch.env),
            folder=str(folder),
        )
        for arm, argv in wanted.items()
    ]


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
