"""A whole run, from options to the saved result."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
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
from autotune.tune.trial import StudyWanted, finalists
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
    family = next((arm.family for arm in arms if not arm.is_off), "none")
    peers = [arm.name for arm in arms if arm.family == family]
    traffic = Traffic(
        _workload(result), wanted.effort.temperature, costs=fit_costs(evidence.cells, peers)
    )
    result = _with_expected(result, evidence, traffic)
    _save(result, wanted.out)  # measured is measured, whatever the planner makes of it
    result = learn(result, Learnt(plan, wanted.out, card_present(plan)))
    _save(result, wanted.out)
    return result


def _workload(result: TuneResult) -> str:
    return result.workloads[0] if len(result.workloads) == 1 else "unknown"


def _with_expected(result: TuneResult, evidence: Evidence, traffic: Traffic) -> TuneResult:
    found = expected_lengths(evidence.cells, evidence.arms, traffic)
    return result.model_copy(update={"expected": found})


def tune_endpoints(urls: Mapping[str, str], wanted: Wanted, plan: Plan | None) -> TuneResult:
    """Measure engines that run already, each under the name of an arm; start and stop nothing."""
    arms = tuple(_named_arm(name) for name in urls)
    stage = EndpointStage(urls, wanted.connect)
    measured, reused = _measured(arms, stage, wanted)
    if measured.identity is None:
        raise OutsideFailure("no engine answered; nothing was measured")
    arms = tuple(_identified(arm, measured.identities.get(arm.name), plan) for arm in arms)
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
    result = _with_expected(result, evidence, _endpoint_traffic(result, evidence, plan))
    if result.verdict.state == "not compared":
        result = result.model_copy(update=described(result, plan))
    _save(result, wanted.out)
    return result


def _endpoint_traffic(result: TuneResult, evidence: Evidence, plan: Plan | None) -> Traffic:
    """Round costs as measured where a baseline ran too, else those of the plan's model."""
    drafted = [arm.name for arm in evidence.arms if not arm.is_off]
    costs = fit_costs(evidence.cells, drafted) if len(drafted) < len(evidence.arms) else None
    model = None if plan is None or costs is not None else planned_model(plan)
    return Traffic(_workload(result), result.temperature, costs=costs, model=model)


def _race(arms: tuple[Arm, ...], wanted: Wanted) -> Race:
    return Race(tuple(arm.name for arm in arms), wanted.effort.blocks)


def _measured(arms: tuple[Arm, ...], stage: Stage, wanted: Wanted) -> tuple[Measured, bool]:
    order = schedule(arms, wanted.prompts.prompts, wanted.effort)
    file = SampleFile(wanted.out, header_of(arms, wanted.prompts.prompts, wanted.effort))
    told = Told(wanted.progress, wanted.max_s)
    run = Run(arms, order, wanted.effort, _race(arms, wanted), told)
    with file.held():
        earlier = file.begin(force=wanted.force)
        return run_blocks(run, stage, file, earlier), order.reused


def _named_arm(name: str) -> Arm:
    if name == OFF:
        return Arm(name=OFF, family="none", draft_len=0)
    length = name.removeprefix("draft_len=")
    return Arm(name=name, family="unknown", draft_len=int(length) if length.isdecimal() else None)


_FAMILY_OF_METHOD = {
    "ngram": "ngram",
    "prompt": "ngram",
    "suffix": "suffix",
    "eagle": "eagle3",
    "eagle3": "eagle3",
    "nextn": "mtp",
    "mtp": "mtp",
    "draft": "external",
    "standalone": "external",
    "dflash": "dflash",
    "dspark": "dspark",
}
"""First word of an engine's own method -> drafter family."""


def _identified(arm: Arm, identity: EngineIdentity | None, plan: Plan | None) -> Arm:
    """The arm with what its engine tells of its own settings, else with what the plan has."""
    if arm.is_off:
        return arm
    told = identity.speculation if identity else None
    method = (told.method if told else None) or ""
    word = re.split(r"[-_ ]", method.lower())[0]
    family = _FAMILY_OF_METHOD.get(word) or (_planned_family(plan) if plan else arm.family)
    return arm.model_copy(
        update={"family": family, "draft_len": (told.draft_len if told else None) or arm.draft_len}
    )


def _planned_family(plan: Plan) -> str:
    drafted = plan.best if plan.best.draft_len else plan.best_drafted
    return drafted.family if drafted else "unknown"


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
