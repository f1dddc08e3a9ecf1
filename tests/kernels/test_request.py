"""From a plan to what is built."""

from pathlib import Path

import pytest

from autotune.build.folder import build_key
from autotune.build.make import Wanted, build
from autotune.build.request import BuildRequest, LayerWork, request_of
from planner.errors import InputError
from planner.search.question import Question
from planner.search.recommend import recommend
from planner.search.records import Plan
from spec_kernels.manifest import Versions

MADE_BY = Versions(triton="3.9.0", spec_kernels="0", python="3.11", fp_fusion="1")


def plan(**changes: object) -> Plan:
    asked = {"model": "Qwen/Qwen3-8B", "gpu": "4090", "drafter": "eagle3", "batch": (1,)}
    return recommend(Question(**{**asked, **changes}))  # type: ignore[arg-type]


def of_target(request: BuildRequest) -> list[LayerWork]:
    return [one for one in request.layers if one.name != "drafter"]


def test_the_model_decides_the_shape_and_the_card_the_target() -> None:
    request = request_of(plan(), page_size=16)
    assert request.capability == 89
    assert [(one.group_size, one.kv_heads, one.spec.head_dim) for one in request.layers] == [
        (4, 8, 128)
    ]
    assert request.q_len == request.draft_len + 1 > 1


def test_tensor_parallelism_divides_the_kv_heads() -> None:
    request = request_of(plan(gpu="2x4090", tp=2), page_size=16)
    assert request.layers[0].kv_heads == 4


def test_ranks_that_outnumber_kv_heads_keep_one_each() -> None:
    """Qwen3.5-397B: 32 query heads, 2 KV heads; 4 ranks have 8 and 1 each."""
    request = request_of(
        plan(model="Qwen3.5-397B-A17B", gpu="8xH200", tp=4, drafter=None), page_size=16
    )
    assert [(one.kv_heads, one.group_size) for one in of_target(request)] == [(1, 8)]


def test_windows_and_sinks_are_compiled_in_where_the_model_has_them() -> None:
    request = request_of(plan(model="openai/gpt-oss-20b", drafter=None, gpu="H100"), page_size=16)
    kinds = [(one.spec.window, one.spec.sinks, one.window) for one in of_target(request)]
    assert kinds == [(False, True, None), (True, True, 128)]


def test_latent_attention_divides_its_heads_over_the_ranks() -> None:
    """DeepSeek-V3: 128 heads on one latent of 512 + 64; 8 ranks have 16 heads each."""
    request = request_of(
        plan(model="deepseek-ai/DeepSeek-V3", gpu="8xH200", tp=8, drafter=None), page_size=64
    )
    (layer,) = request.layers
    assert (layer.spec.head_dim, layer.spec.rope_dim) == (512, 64)
    assert (layer.kv_heads, layer.group_size) == (1, 16)


def test_a_block_drafter_brings_its_own_attention() -> None:
    """Its layers have 32 heads on 8 KV heads of 128, as the drafter's record says."""
    made = plan(drafter="dflash")
    target, drafter = request_of(made, page_size=16).layers
    assert target.spec.mask == "causal"
    assert made.drafter is not None
    assert (drafter.name, drafter.spec.mask) == ("drafter", "block")
    assert drafter.spec.head_dim == made.drafter["head_dim"]
    assert drafter.group_size * drafter.kv_heads == made.drafter["num_heads"]


def test_a_drafter_that_goes_token_by_token_brings_none() -> None:
    assert [one.spec.mask for one in request_of(plan(), page_size=16).layers] == ["causal"]


def test_a_drafter_without_a_kernel_of_its_shape_is_said() -> None:
    made = plan(drafter="dflash")
    odd = made.model_copy(update={"drafter": {**(made.drafter or {}), "head_dim": 100}})
    request = request_of(odd, page_size=16)
    assert len(request.layers) == 1
    assert "the drafter's own attention" in request.notes[-1]


def test_turing_is_built_in_fp16_and_told_what_it_loses() -> None:
    """2080 Ti: 13.4 TFLOPS on the vector units over 616 GB/s are 22 rows."""
    request = request_of(plan(gpu="2080 Ti", quant="w4a16"), page_size=16)
    assert request.capability == 75
    assert {layer.spec.dtype for layer in request.layers} == {"fp16"}
    assert "no tensor-core" in request.notes[0]
    assert "more than 22 rows" in request.notes[0]


def test_a_plan_without_speculation_is_built_for_its_best_drafter() -> None:
    off = plan()
    off = off.model_copy(update={"best": off.best.model_copy(update={"draft_len": 0})})
    request = request_of(off, page_size=16)
    assert request.draft_len > 0
    assert "do not speculate" in request.notes[0]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"gpu": "V100", "quant": "fp16"}, r"7\.0: Triton emits no tensor-core"),
    ],
)
def test_cards_without_tensor_code_are_refused(changes: dict[str, object], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        request_of(plan(**{"quant": "w4a16", **changes}), page_size=16)


def test_missing_packages_are_named_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPECPLANNER_CACHE", str(tmp_path))
    monkeypatch.setattr("autotune.build.make.versions", lambda: MADE_BY)
    monkeypatch.setattr("autotune.build.make.find_spec", lambda name: name != "optuna" or None)
    request = request_of(plan(), page_size=16)
    with pytest.raises(InputError, match=r"needs optuna, not installed.*specplanner\[kernels\]"):
        build(request, Wanted(None, jobs=1, trials=1), lambda *_: None)
    assert not list(tmp_path.iterdir())


def test_equal_requests_share_a_key_and_unlike_ones_do_not() -> None:
    one, same = (request_of(plan(), page_size=16) for _ in range(2))
    key = build_key(one, MADE_BY, trials=None)
    assert build_key(same, MADE_BY, trials=None) == key
    others = [
        build_key(request_of(plan(), page_size=32), MADE_BY, trials=None),
        build_key(request_of(plan(gpu="3090"), page_size=16), MADE_BY, trials=None),
        build_key(one, MADE_BY, trials=5),
        build_key(one, MADE_BY.model_copy(update={"triton": "3.6.0"}), trials=None),
    ]
    assert len({key, *others}) == 5
    assert build_key(one, MADE_BY.model_copy(update={"python": "3.12"}), trials=None) == key
