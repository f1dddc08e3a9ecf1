"""A whole run, from options to the saved result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

from autotune.engines.records import EngineIdentity, EngineName
from autotune.tune.arms import arms_of_plan, chosen_arms
from autotune.tune.judge import Evidence
from autotune.tune.learn import Learnt, learn, predicted_speedups
from autotune.tune.outcome import Circumstances, tune_result
from autotune.tune.prompts import PromptSet
from autotune.tune.racing import Race
from autotune.tune.records import OFF, Arm
from autotune.tune.result import TuneResult
from autotune.tune.schedule import Effort, schedule
from autotune.tune.session import Measured, Progress, Run, Told, run_blocks
from autotune.tune.stage import Connect, EndpointStage, LaunchStage, Stage, Starter
from autotune.tune.state import SampleFile, header_of
from autotune.tune.trial import StudyWanted, finalists
from hwprofiles.calibration import replace_file
from planner.errors import InputError, OutsideFailure
from planner.search import plan_file
from planner.search.records import Plan

RESULT_FILE = "tune.json"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What both ways of running share."""

    prompts: PromptSet
    effort: Effort
    out: Path
    connect: Connect
    force: bool = False
    max_s: float = 2 * 3600.0
    progress: Progress = lambda *_: None
    arms: tuple[str, ...] | None = None
    starter: Starter = field(default_factory=Starter)
    study: StudyWanted | None = None
    """Settings beyond the plan's arms, searched first."""


def read_plan(folder: Path) -> tuple[Plan, Path]:
    """(plan, its folder) of a folder that `recommend --out` wrote, or of its plan.json.

    Raises:
        InputError: there is none, or it is of another version.
    """
    path = folder if folder.name.endswith(".json") else folder / plan_file.PLAN_FILE
    return plan_file.read_plan(path), path.parent


def tune_launch(plan: Plan, folder: Path, wanted: Wanted) -> TuneResult:
    """Start the plan's engine arm by arm, measure, learn and save.

    Raises:
        OutsideFailure: the engine failed; finished cells stay in the folder of results.
    """
    if plan.launch is None:
        raise InputError("the plan has no launch; write it with `planner recommend ... --out DIR`")
    arms = chosen_arms(plan, wanted.arms)
    stage = LaunchStage(plan.launch, folder, wanted.out, wanted.starter, wanted.connect)
    said = None
    if wanted.study is not None:
        every = tuple(arms_of_plan(plan).values()) if wanted.arms is None else arms
        what = (wanted.prompts.prompts, wanted.effort)
        arms, said = finalists(wanted.study, stage, every, what)
    predicted = predicted_speedups(plan, {arm.name: arm.draft_len for arm in arms})
    measured, reused = _measured(arms, stage, wanted)
    identity = measured.identity or _known_identity(plan)
    evidence = Evidence(_race(arms, wanted), arms, tuple(measured.cells), measured.standing)
    result = tune_result(
        evidence,
        Circumstances(
            prompts=wanted.prompts,
            effort=wanted.effort,
            identity=identity,
            restarts=True,
            reused=reused,
            plan=plan,
            likelihoods=measured.likelihoods,
            predicted=predicted,
        ),
    ).model_copy(update={"study": said})
    result = learn(result, Learnt(plan, wanted.out, card_present(plan)))
    _save(result, wanted.out)
    return result


def tune_endpoints(urls: Mapping[str, str], wanted: Wanted, plan: Plan | None) -> TuneResult:
    """Measure engines that run already, each under the name of an arm; start and stop nothing."""
    arms = tuple(_named_arm(name) for name in urls)
    stage = EndpointStage(urls, wanted.connect)
    measured, reused = _measured(arms, stage, wanted)
    if measured.identity is None:
        raise OutsideFailure("no engine answered; nothing was measured")
    arms = tuple(_identified(arm, measured.identities.get(arm.name)) for arm in arms)
    evidence = Evidence(_race(arms, wanted), arms, tuple(measured.cells), measured.standing)
    result = tune_result(
        evidence,
        Circumstances(
            prompts=wanted.prompts,
            effort=wanted.effort,
            identity=measured.identity,
            restarts=False,
            reused=reused,
            plan=plan,
            likelihoods=measured.likelihoods,
        ),
    )
    _save(result, wanted.out)
    return result


def _race(arms: tuple[Arm, ...], wanted: Wanted) -> Race:
    return Race(tuple(arm.name for arm in arms), wanted.effort.blocks)


def _measured(arms: tuple[Arm, ...], stage: Stage, wanted: Wanted) -> tuple[Measured, bool]:
    order = schedule(arms, wanted.prompts.prompts, wanted.effort)
    file = SampleFile(wanted.out, header_of(arms, wanted.prompts.prompts, wanted.effort))
    earlier = file.begin(force=wanted.force)
    told = Told(wanted.progress, wanted.max_s)
    run = Run(arms, order, wanted.effort, _race(arms, wanted), told)
    return run_blocks(run, stage, file, earlier), order.reused


def _named_arm(name: str) -> Arm:
    if name == OFF:
        return Arm(name=OFF, family="none", draft_len=0)
    length = name.removeprefix("draft_len=")
    return Arm(name=name, family="unknown", draft_len=int(length) if length.isdecimal() else None)


def _identified(arm: Arm, identity: EngineIdentity | None) -> Arm:
    """The arm with what its engine tells of its own settings."""
    told = identity.speculation if identity else None
    if told is None or arm.is_off:
        return arm
    family = (told.method or arm.family).partition("-")[0]
    return arm.model_copy(update={"family": family, "draft_len": told.draft_len or arm.draft_len})


def _known_identity(plan: Plan) -> EngineIdentity:
    """Where every cell came from an earlier run, the engine was not asked again."""
    known: tuple[EngineName, ...] = get_args(EngineName)
    name = next((one for one in known if one == plan.inputs.engine), None)
    if name is None:
        raise InputError(f"the plan is for {plan.inputs.engine}, which cannot be measured here")
    return EngineIdentity(name, plan.inputs.engine_version, plan.inputs.model_name, None)


def card_present(plan: Plan) -> bool:
    """Whether the plan's card is in this machine, as the driver says."""
    from hwprofiles.lookup import find_gpu  # noqa: PLC0415
    from hwprofiles.nvml import read_cards  # noqa: PLC0415 - asks the driver

    try:
        names = [card.name for card in read_cards().cards]
    except InputError:
        return False
    for name in names:
        try:
            if find_gpu(name, own_files=False).gpu_id == plan.inputs.gpu:
                return True
        except InputError:
            continue
    return False


def _save(result: TuneResult, out: Path) -> None:
    try:
        replace_file(out / RESULT_FILE, result.model_dump_json(indent=1) + "\n")
    except OSError as error:
        raise OutsideFailure(
            f"could not write {out / RESULT_FILE}: {error.strerror or error}; give another --out"
        ) from error
