"""A whole run, from options to the saved result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import get_args

from autotune.engines.records import EngineIdentity, EngineName
from autotune.tune.arms import arms_of_plan, chosen_arms
from autotune.tune.expected import Traffic, expected_lengths
from autotune.tune.judge import Evidence
from autotune.tune.learn import Learnt, learn, planned_model, predicted_speedups
from autotune.tune.outcome import Circumstances, described, tune_result
from autotune.tune.pieces import fit_costs
from autotune.tune.prompts import PromptSet
from autotune.tune.racing import Race
from autotune.tune.records import OFF, Arm
from autotune.tune.result import TuneResult
from autotune.tune.schedule import Effort, schedule
from autotune.tune.session import Measured, Progress, Run, Told, run_blocks
from autotune.tune.stage import Connect, EndpointStage, LaunchStage, Stage, Starter
from autotune.tune.state import SampleFile, header_of
from autotune.tune.trial import Material, StudyWanted, finalists
from hwprofiles.calibration import replace_file
from planner.errors import InputError, OutsideFailure
from planner.search.plan_file import plan_folder, read_plan
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


def planned_in(folder: Path) -> tuple[Plan, Path]:
    """(plan, its folder) of a folder that `recommend --out` wrote, or of its plan.json.

    Raises:
        InputError: there is none, or it is of another version.
    """
    return read_plan(folder), plan_folder(folder)


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
        material = Material(stage, wanted.prompts.prompts, wanted.effort)
        arms, said = finalists(wanted.study, material, every)
    predicted = predicted_speedups(plan, {arm.name: arm.draft_len for arm in arms})
    measured = _measured(arms, stage, wanted)
    evidence = _evidence(arms, measured, wanted)
    identity = measured.identity or _known_identity(plan)
    of = replace(_circumstances(identity, measured, stage, wanted), plan=plan, predicted=predicted)
    result = tune_result(evidence, of).model_copy(update={"study": said})
    result = _with_expected(result, evidence, _launch_traffic(result, evidence))
    _save(result, wanted.out)  # measured is measured, whatever the planner makes of it
    result = learn(result, Learnt(plan, wanted.out, card_present(plan)))
    _save(result, wanted.out)
    return result


def tune_endpoints(urls: Mapping[str, str], wanted: Wanted, plan: Plan | None) -> TuneResult:
    """Measure engines that run already, each under the name of an arm; start and stop nothing."""
    arms = tuple(_named_arm(name) for name in urls)
    stage = EndpointStage(urls, wanted.connect)
    measured = _measured(arms, stage, wanted)
    if measured.identity is None:
        raise OutsideFailure("no engine answered; nothing was measured")
    arms = tuple(_identified(arm, measured.identities.get(arm.name), plan) for arm in arms)
    evidence = _evidence(arms, measured, wanted)
    of = replace(_circumstances(measured.identity, measured, stage, wanted), plan=plan)
    result = tune_result(evidence, of)
    result = _with_expected(result, evidence, _endpoint_traffic(result, evidence, plan))
    if result.verdict.state == "not compared":
        result = described(result, plan)
    _save(result, wanted.out)
    return result


def _evidence(arms: tuple[Arm, ...], measured: Measured, wanted: Wanted) -> Evidence:
    return Evidence(_race(arms, wanted), arms, tuple(measured.cells), measured.standing)


def _circumstances(
    identity: EngineIdentity, measured: Measured, stage: Stage, wanted: Wanted
) -> Circumstances:
    return Circumstances(
        prompts=wanted.prompts,
        effort=wanted.effort,
        identity=identity,
        restarts=stage.restarts,
        reused=measured.reused,
        likelihoods=measured.likelihoods,
    )


def _with_expected(result: TuneResult, evidence: Evidence, traffic: Traffic) -> TuneResult:
    found = expected_lengths(evidence.cells, evidence.arms, traffic)
    return result.model_copy(update={"expected": found})


def _launch_traffic(result: TuneResult, evidence: Evidence) -> Traffic:
    """Round costs of the drafter that the first drafted arm has."""
    if result.verdict.state == "unusable":
        return Traffic(result.workload or "unknown", result.temperature)
    family = next((arm.family for arm in evidence.arms if not arm.is_off), "none")
    peers = [arm.name for arm in evidence.arms if arm.family == family]
    costs = fit_costs(evidence.cells, peers)
    return Traffic(result.workload or "unknown", result.temperature, costs=costs)


def _endpoint_traffic(result: TuneResult, evidence: Evidence, plan: Plan | None) -> Traffic:
    """Round costs as measured where a baseline ran too, else those of the plan's model."""
    if result.verdict.state == "unusable":
        return Traffic(result.workload or "unknown", result.temperature)
    drafted = [arm.name for arm in evidence.arms if not arm.is_off]
    costs = fit_costs(evidence.cells, drafted) if len(drafted) < len(evidence.arms) else None
    model = None if plan is None or costs is not None else planned_model(plan)
    return Traffic(result.workload or "unknown", result.temperature, costs=costs, model=model)


def _race(arms: tuple[Arm, ...], wanted: Wanted) -> Race:
    return Race(tuple(arm.name for arm in arms), wanted.effort.blocks)


def _measured(arms: tuple[Arm, ...], stage: Stage, wanted: Wanted) -> Measured:
    order = schedule(arms, wanted.prompts.prompts, wanted.effort)
    file = SampleFile(wanted.out, header_of(arms, wanted.prompts.prompts, wanted.effort))
    told = Told(wanted.progress, wanted.max_s)
    run = Run(arms, order, wanted.effort, _race(arms, wanted), told)
    with file.held():
        return run_blocks(run, stage, file, file.begin(force=wanted.force))


def _named_arm(name: str) -> Arm:
    if name == OFF:
        return Arm(name=OFF, family="none", draft_len=0)
    length = name.removeprefix("draft_len=")
    return Arm(name=name, family="unknown", draft_len=int(length) if length.isdecimal() else None)


def _identified(arm: Arm, identity: EngineIdentity | None, plan: Plan | None) -> Arm:
    """The arm with what its engine tells of its own settings, else with what the plan has."""
    if arm.is_off:
        return arm
    told = identity.speculation if identity else None
    planned = plan.drafted.family if plan and plan.drafted else arm.family
    return arm.model_copy(
        update={
            "family": (told.family if told else None) or planned,
            "draft_len": (told.draft_len if told else None) or arm.draft_len,
        }
    )


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
