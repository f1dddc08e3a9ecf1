"""Devices for which no command can be given, and why."""

from hwprofiles.load import load_gpu
from planner.errors import EngineUnsupported, InputError
from planner.search.records import Plan

ROCM_NOTE = (
    "the command is for the engine's ROCm build; its options are those read for CUDA and were not "
    "checked there"
)
_OTHERS = {
    "Huawei": "vllm-ascend and MindIE are builds of their own, whose options were not read",
}

_LOWEST = {
    "vllm": (7.5, "vLLM docs of v0.21.0, getting_started/installation/gpu.cuda.inc.md"),
    "sglang": (7.5, "srt/model_executor/model_runner_components/load_model_utils.py:90-91"),
    "trtllm": (
        8.0,
        "TensorRT-LLM docs/source/legacy/reference/support-matrix.md@17552a4, Hardware",
    ),
}
"""Engine -> (lowest compute capability that it runs on, source)."""


def vendor(plan: Plan) -> str:
    """Maker of the target's card; a profile of the user's own counts as NVIDIA."""
    try:
        return load_gpu(plan.inputs.gpu).vendor
    except InputError:
        return "NVIDIA"


def refuse_devices(plan: Plan) -> None:
    """Refuse what no engine's command can state.

    Raises:
        EngineUnsupported: names the device and what to do instead.
    """
    asked = plan.inputs
    maker = vendor(plan)
    if maker in _OTHERS:
        raise EngineUnsupported(
            f"no files are written for {asked.gpu_name}: {_OTHERS[maker]}; take draft length, "
            "batch and context from the plan"
        )
    _refuse_old_card(plan)
    if asked.drafter_device is None or plan.best.draft_len == 0:
        return
    if asked.drafter_device_kind in ("lpu", "other"):
        raise EngineUnsupported(
            f"no engine loads a drafter on {asked.drafter_device} beside a target on "
            f"{asked.gpu_name}; the figures are an estimate"
        )
    if asked.engine != "llama.cpp":
        raise EngineUnsupported(
            f"{asked.engine} runs the drafter on the target's GPUs and cannot place it on "
            f"{asked.drafter_device}; use --engine llama.cpp (-devd, -ngld), or drop "
            "--drafter-device [llama.cpp common/arg.cpp:4238]"
        )


def _refuse_old_card(plan: Plan) -> None:
    asked = plan.inputs
    lowest, source = _LOWEST.get(asked.engine, (0.0, ""))
    try:
        capability = load_gpu(asked.gpu).compute_capability
    except InputError:
        return
    if capability and float(capability) < lowest:
        raise EngineUnsupported(
            f"{asked.engine} {asked.engine_version} needs compute capability {lowest} or higher; "
            f"{asked.gpu_name} has {capability}; use --engine llama.cpp [{source}]"
        )


def install_line(plan: Plan, package: str) -> str:
    """How the engine is installed for the plan's cards."""
    if vendor(plan) == "AMD":
        name, _, version = package.partition("==")
        return (
            f"install the ROCm build of {name} {version}: the wheel of that name on PyPI is built "
            "for CUDA"
        )
    return f"pip install {package}"


def device_notes(plan: Plan) -> tuple[str, ...]:
    """What to know of the devices before the first start."""
    return (ROCM_NOTE,) if vendor(plan) == "AMD" else ()
