import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.emit.registry import emitter_for
from planner.errors import EngineUnsupported, InputError, NoFeasiblePlan
from planner.search.explain import explain
from planner.search.question import Question
from planner.search.recommend import recommend
from planner.search.records import Plan
from planner.search.situation import situation
from planner.search.sweep import search

QWEN = Question(model="Qwen/Qwen3-8B", gpu="4090")


def _ask(**fields: object) -> Plan:
    return recommend(dataclasses.replace(QWEN, **fields))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def plan() -> Plan:
    return recommend(QWEN)


def test_the_plan_survives_its_own_json(plan: Plan) -> None:
    assert Plan.model_validate_json(plan.model_dump_json()) == plan


def test_what_the_page_calls_assumed_is_among_the_assumptions(plan: Plan) -> None:
    assumed = [term.name for term in plan.provenance if term.kind == "assumed"]
    assert assumed
    assert all(any(line.startswith(f"{name} = ") for line in plan.assumptions) for name in assumed)


def test_the_best_drafter_can_be_had(plan: Plan) -> None:
    assert not plan.best.drafter_id.startswith("template")
    assert plan.drafter is not None
    assert plan.drafter["drafter_id"] == plan.best.drafter_id


def test_every_batch_and_context_has_a_cell(plan: Plan) -> None:
    cells = {(c.batch, c.context_len) for c in plan.d_table}
    assert cells == {(b, c) for b in plan.inputs.batches for c in plan.inputs.contexts}
    assert any(c.draft_len == 0 for c in plan.d_table)
    assert all(c.speedup == 1.0 for c in plan.d_table if c.draft_len == 0)


def test_break_even_is_the_round_cost_ratio_where_every_round_drafts(plan: Plan) -> None:
    assert plan.best_drafted is not None
    ratio = plan.best_drafted.round_cost_ratio
    assert plan.break_even_tokens_per_round == pytest.approx(ratio)


def test_break_even_of_seldom_drafts_counts_the_plain_rounds() -> None:
    found = _ask(drafter="ngram").best_drafted
    assert found is not None
    assert 0 < found.draft_share < 1
    # At the break-even E[L] the speedup is 1, and speedup grows in proportion to E[L].
    at_one = found.tokens_per_round / found.speedup
    assert found.break_even_tokens_per_round == pytest.approx(at_one)


def test_families_that_cannot_apply_say_why(plan: Plan) -> None:
    assert "checkpoint" in plan.not_applicable["mtp"]


def test_the_ledger_adds_up_and_fits(plan: Plan) -> None:
    ledger = plan.best.ledger
    parts = ledger.model_dump(exclude={"total_mib", "capacity_mib", "host_mib"})
    sizes = [v for k, v in parts.items() if k.endswith("_mib")]
    assert ledger.total_mib == pytest.approx(sum(sizes))
    assert ledger.total_mib <= ledger.capacity_mib
    # 8.19e9 weights x 2 bytes = 15.6 GiB
    assert ledger.weights_mib == pytest.approx(8.19e9 * 2 / 2**20, rel=0.01)
    # 147456 bytes a token (36 layers x 2 x 8 x 128 x 2) x 4096 tokens = 576 MiB
    assert ledger.kv_mib == pytest.approx(576.0)


def test_the_stated_limits_are_kept() -> None:
    tight = _ask(max_vram_mib=19000.0)
    assert tight.best.ledger.total_mib <= 19000.0
    narrow = _ask(tile_rows=16)  # G = 4: D <= 3
    assert narrow.best_drafted is not None
    assert narrow.best_drafted.draft_len <= 3
    assert any("tile rule" in r.reason for r in narrow.rejected)


@settings(max_examples=12, deadline=None)
@given(st.sampled_from([8, 16, 32, 64, 128]), st.sampled_from(["4090", "H100 SXM", "L40S"]))
def test_accepted_rows_never_exceed_the_tile(tile_rows: int, gpu: str) -> None:
    plan = _ask(tile_rows=tile_rows, gpu=gpu)
    for found in (plan.best, *plan.best_per_family):
        assert found.tile is None or found.draft_len == 0 or found.tile.query_rows <= tile_rows


def test_a_model_too_large_is_refused_with_the_numbers() -> None:
    with pytest.raises(NoFeasiblePlan, match=r"needs .* GiB .* of .* GiB usable"):
        _ask(model="Llama-3.3-70B-Instruct")


def test_a_format_that_fits_is_found_when_none_is_stated() -> None:
    plan = _ask(model="Qwen/Qwen3-14B")
    assert plan.inputs.quant != "bf16"
    assert any("bf16" in w for w in plan.warnings)


def test_no_drafter_means_off() -> None:
    plan = _ask(drafter="none")
    assert (plan.best.draft_len, plan.best_drafted) == (0, None)


def test_a_stated_acceptance_below_break_even_turns_it_off() -> None:
    plan = _ask(drafter="eagle3", tokens_per_round=1.05)
    assert plan.best.draft_len == 0
    assert plan.verdict == "hurts"


def test_more_acceptance_means_more_speed() -> None:
    low, high = (_ask(drafter="eagle3", tokens_per_round=x).best_drafted for x in (2.0, 3.0))
    assert low is not None
    assert high is not None
    assert high.speedup > low.speedup


def test_every_point_of_the_grid_is_counted() -> None:
    s = situation(QWEN)
    searched = search(s)
    drafted = len(s.grid.batches) * len(s.grid.contexts) * 64 * len(searched.drafted)
    assert searched.points == drafted + len(s.grid.batches) * len(s.grid.contexts)


def test_open_formats_and_caches_are_all_searched(plan: Plan) -> None:
    pairs = {(e.quant, e.kv_dtype) for e in plan.alternatives}
    wanted = {(q, kv) for q in ("bf16", "fp8", "w4a16") for kv in ("bf16", "fp8")}
    assert pairs == wanted - {(plan.inputs.quant, plan.inputs.kv_dtype)}
    speeds = [e.spec_tok_s for e in plan.alternatives]
    assert speeds == sorted(speeds, reverse=True)


def test_stated_formats_leave_nothing_open() -> None:
    assert _ask(quant="fp8", kv_dtype="bf16").alternatives == ()


def test_open_widths_are_searched_where_several_cards_share_layers() -> None:
    plan = _ask(gpu="4x H100 SXM", quant="bf16", kv_dtype="bf16")
    assert {e.tp for e in plan.alternatives} == {1, 2}


def test_the_explanation_repeats_the_plan(plan: Plan) -> None:
    groups = dict(explain(QWEN).groups)
    values = {t.name: t.value for t in groups["Speedup"]}
    assert plan.best_drafted is not None
    assert values["R"] == pytest.approx(plan.best_drafted.round_cost_ratio)
    assert values["speedup"] == pytest.approx(plan.best_drafted.speedup)
    parts = {t.name: t.value for t in groups["T_target: one row of each sequence"]}
    total = parts.pop("sum")
    assert sum(float(v) for v in parts.values()) == pytest.approx(total)


def test_a_drafter_gets_room_by_moving_whole_layers_more() -> None:
    """27B in 4 bits leaves a 16 GB card no room: layers move out for the drafter as well."""
    small = {"model": "Qwen3.8-27B", "gpu": "5060 Ti 16G", "quant": "Q4_K_M", "offload": "auto"}
    plain, drafted = _ask(**small, drafter="none"), _ask(**small, drafter="mtp")
    assert drafted.best.family == "mtp"
    assert drafted.best.ledger.total_mib <= drafted.best.ledger.capacity_mib
    moved = [int((p.inputs.offload or "=0").partition("=")[2]) for p in (plain, drafted)]
    assert 0 < moved[0] < moved[1]
    # What the plan says stays on the host is what its command moves there.
    each = plain.best.ledger.host_mib / moved[0]
    assert drafted.best.ledger.host_mib == pytest.approx(each * moved[1])


def test_vllm_gets_no_command_past_the_positions_of_the_model() -> None:
    refused = _ask(context=(65536,), quant="w4a16", engine="vllm", drafter="none")
    assert refused.inputs.max_position == 40960
    with pytest.raises(EngineUnsupported, match="65536 > 40960"):
        emitter_for("vllm").emit(refused)


@pytest.mark.parametrize(
    ("engine", "why"),
    [
        ("ollama", "hands llama.cpp no drafter"),
        ("LM Studio", "--engine llama.cpp --drafter external"),
        ("exllamav2", "kernels and rules that were not read"),
        ("tgi", "known engines: vllm"),
        ("abacus", "unknown engine"),
    ],
)
def test_a_program_that_takes_no_plan_is_refused_with_the_reason(engine: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        _ask(engine=engine)


def test_an_unknown_workload_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"--workload 'foo'.*code, math, chat"):
        _ask(workload="foo")
    assert _ask(workload="Spec-Bench overall").inputs.workload == "unknown"


@pytest.mark.parametrize("asked", [{"power_limit_w": 44.0}, {"gpu": "4090 @ 44W"}])
def test_a_power_limit_below_a_tenth_of_the_cards_is_refused(asked: dict[str, object]) -> None:
    with pytest.raises(InputError, match=r"44 W is below a tenth of the 450 W.*from 45"):
        _ask(**asked)
