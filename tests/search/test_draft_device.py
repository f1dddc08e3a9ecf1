"""A drafter on a second GPU, the processor or an LPU; devices at the edge of the model."""

from functools import lru_cache
from pathlib import Path

import pytest

from hwprofiles.load import DATA
from planner.emit.registry import emitter_for
from planner.errors import EngineUnsupported, InputError, MissingFact
from planner.search.question import Question
from planner.search.recommend import recommend
from planner.search.records import Evaluation, Plan


@lru_cache
def planned(device: str | None, drafter: str = "external", gpu: str = "4060", **more: str) -> Plan:
    return recommend(
        Question(
            model="Qwen3-8B", gpu=gpu, quant="Q4_K_M", drafter=drafter, drafter_device=device,
            engine="llama.cpp", context=(4096,), batch=(1,), **more,  # type: ignore[arg-type]
        )
    )  # fmt: skip


def drafted(plan: Plan) -> Evaluation:
    assert plan.best_drafted is not None
    return plan.best_drafted


def per_token(e: Evaluation) -> float:
    return e.t_draft_s / e.draft_len


def test_a_second_gpu_frees_the_targets_memory_and_costs_the_link() -> None:
    beside, apart = drafted(planned(None)), drafted(planned("RTX 4060"))
    assert beside.ledger.drafter_weights_mib > 1000
    assert apart.ledger.drafter_weights_mib == apart.ledger.drafter_kv_mib == 0
    assert apart.ledger.drafter_device_mib > 1000
    assert apart.ledger.max_batch_at_context > beside.ledger.max_batch_at_context
    if apart.draft_len == beside.draft_len:
        # Two copies of token ids at 10 us each: the same card elsewhere is hardly slower.
        assert 0 < apart.t_draft_s - beside.t_draft_s < 1e-4


def test_a_faster_card_drafts_faster_and_the_processor_slower() -> None:
    slow, usual, fast = (
        drafted(planned("cpu", host="Ryzen 9 9950X")),
        drafted(planned("RTX 4060")),
        drafted(planned("RTX 3090")),
    )
    assert per_token(slow) > per_token(usual) > per_token(fast)
    # 936 against 272 GB/s, of which the launch of a pass takes its part.
    assert per_token(usual) / per_token(fast) < 936 / 272


def test_more_memory_channels_draft_faster() -> None:
    two = drafted(planned("cpu", host="2 channels DDR4-3200"))
    eight = drafted(planned("cpu", host="8 channels DDR4-3200"))
    assert 2 < per_token(two) / per_token(eight) < 4.5


def test_hidden_states_cross_a_narrow_bus_slowly() -> None:
    wide = drafted(planned("RTX 3090", "eagle3", host="EPYC 7002"))
    narrow = drafted(planned("RTX 3090", "eagle3", host="EPYC 7002, PCIe 1.0 x1"))
    assert narrow.draft_len <= wide.draft_len
    assert per_token(narrow) > per_token(wide)


def test_an_lpu_is_an_estimate_without_a_command() -> None:
    plan = planned("groq lpu")
    assert any("an estimate from its memory rate" in w for w in plan.warnings)
    assert plan.best.draft_len > 0
    with pytest.raises(EngineUnsupported, match="no engine loads a drafter on Groq"):
        emitter_for("llama.cpp").emit(plan)


def test_llamacpp_places_the_drafter() -> None:
    gpu = emitter_for("llama.cpp").emit(planned("RTX 3090", gpu="2x4060")).launch.argv
    assert gpu[gpu.index("-dev") + 1] == "CUDA0,CUDA1"
    assert gpu[gpu.index("-devd") + 1] == "CUDA2"
    assert gpu[gpu.index("-ngld") + 1] == "all"
    cpu = emitter_for("llama.cpp").emit(planned("cpu", host="dual EPYC 9175F numa")).launch.arms
    drafting = next(argv for name, argv in cpu.items() if name != "off")
    assert drafting[drafting.index("-devd") + 1] == "none"
    assert drafting[drafting.index("-ngld") + 1] == "0"


def test_vllm_cannot_place_it() -> None:
    plan = recommend(
        Question(model="Qwen3-8B", gpu="4090", drafter_device="RTX 3090", engine="vllm")
    )
    with pytest.raises(EngineUnsupported, match="use --engine llama"):
        emitter_for("vllm").emit(plan)


def test_a_drafter_too_large_for_its_device_is_set_aside() -> None:
    plan = planned("cpu", host="Ryzen 9 9950X, 1 GB")
    assert plan.best.draft_len == 0
    assert any("does not fit in the memory of Ryzen" in one.reason for one in plan.rejected)


def test_mtp_of_the_checkpoint_stays_with_the_target() -> None:
    plan = recommend(Question(model="Qwen3.8-27B", gpu="5090", drafter_device="RTX 3090"))
    assert any("cannot move to RTX 3090" in one.reason for one in plan.rejected)


@pytest.mark.parametrize("gpu", ["RX 7900 XTX", "Strix Halo", "M4 Max", "Arc B580", "groq lpu"])
def test_what_is_not_modelled_says_why(gpu: str) -> None:
    with pytest.raises(InputError, match="is not modelled, because"):
        recommend(Question(model="Qwen3-8B", gpu=gpu))


@pytest.mark.parametrize(("gpu", "written"), [("MI300X", True), ("Ascend 950DT", False)])
def test_an_estimate_says_that_it_is_one(gpu: str, written: bool) -> None:
    plan = recommend(Question(model="Qwen3-8B", gpu=gpu))
    assert plan.inputs.engine == "vllm"
    assert any(w.startswith("estimate: the constants of NVIDIA") for w in plan.warnings)
    if written:
        assert emitter_for("vllm").emit(plan).launch.argv
        return
    assert any("an H100's are assumed" in w for w in plan.warnings)
    with pytest.raises(EngineUnsupported, match="vllm-ascend"):
        emitter_for("vllm").emit(plan)


def test_a_disputed_bandwidth_is_said_with_its_spread() -> None:
    """400 to 1600 GB/s in print: 800 taken, a factor of 2 either way."""
    plan = recommend(Question(model="Qwen3-8B", gpu="Ascend 910B"))
    said = next(w for w in plan.warnings if "sources disagree" in w)
    assert "400 GB/s" in said
    assert "1600 GB/s" in said
    assert "2.0 times higher or lower" in said
    assert plan.best.provenance == "assumed"


def test_an_unknown_bandwidth_is_not_replaced(tmp_path: Path) -> None:
    """The 910C's one printed figure is taken; a profile without any stays a refusal."""
    assert recommend(Question(model="Qwen3-8B", gpu="Ascend 910C")).best.t_target_s > 0
    lines = (DATA / "gpus" / "huawei-ascend-910c.yaml").read_text().splitlines(keepends=True)
    own = tmp_path / "own.yaml"
    own.write_text("".join(line for line in lines if "dram_bandwidth" not in line))
    with pytest.raises(MissingFact, match="dram_bandwidth_gb_per_s is not known"):
        recommend(Question(model="Qwen3-8B", gpu=str(own)))


@pytest.mark.parametrize(
    ("device", "says"),
    [
        ("M4 Max", "is not modelled, because"),
        ("RX 7900 XTX", "is not modelled, because"),
        ("2x3090", "names 2 cards and a drafter runs on one"),
        ("frobnicator", "names no GPU"),
    ],
)
def test_what_cannot_run_a_drafter_says_why(device: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        planned(device)


def test_an_accelerator_beside_an_nvidia_target_gets_no_command() -> None:
    plan = planned("Ascend 950DT")
    assert plan.inputs.drafter_device_kind == "other"
    with pytest.raises(EngineUnsupported, match="beside a target on RTX 4060"):
        emitter_for("llama.cpp").emit(plan)
