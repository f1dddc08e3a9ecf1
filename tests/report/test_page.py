import re
import sys
from io import StringIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from sample_plans import INPUTS, LEDGER, OFF, TILE, evaluation, plan

from planner.report.command_line import shell_lines
from planner.report.comparison import Answer, comparison
from planner.report.details import details, pointer
from planner.report.explanation import explanation
from planner.report.load import load_lines
from planner.report.memory import bar
from planner.report.page import page
from planner.report.plain import plain
from planner.report.screen import screen_text
from planner.report.verdict import verdict_line
from planner.search.records import (
    Load,
    LoadPoint,
    OtherDrafter,
    Plan,
    Rejection,
    TableCell,
    Term,
)


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def text_of(answer: Plan) -> str:
    """The page with all that -v adds."""
    return screen_text([*page(answer), *details(answer)])


@pytest.mark.parametrize(
    ("changes", "start"),
    [
        ({}, "Yes: EAGLE-3 with D=3 gives 1.9x (80 %: 1.5-2.3) for Qwen3-8B on RTX 4090."),
        ({"verdict": "hurts", "best": OFF}, "Don't: the best that speculation does"),
        ({"sure": False}, "Depends: EAGLE-3 with D=3"),
        ({"verdict": "neutral", "sure": False}, "Depends: EAGLE-3 with D=3"),
        (
            {
                "verdict": "neutral",
                "sure": False,
                "best_drafted": evaluation(speedup=1.01, speedup_lo=0.95, speedup_hi=1.07),
            },
            "Neutral: EAGLE-3 with D=3 gives 1.01x (80 %: 0.95-1.07)",
        ),
        (
            {"best": OFF, "best_drafted": None, "verdict": "neutral"},
            "Don't: no drafter both applies to and fits beside",
        ),
    ],
)
def test_first_line_is_the_verdict(changes: dict[str, object], start: str) -> None:
    assert text_of(plan(**changes)).startswith(start)


def test_an_unsure_verdict_names_the_break_even() -> None:
    line = verdict_line(plan(sure=False, break_even_tokens_per_round=4.04))
    assert "it pays above 4.0 tokens per round, 2.5 are expected." in line
    assert "until you have measured, run without" in verdict_line(plan(sure=False, best=OFF))


def test_a_round_that_costs_no_more_than_a_step_has_no_break_even() -> None:
    line = verdict_line(plan(sure=False, break_even_tokens_per_round=0.73))
    assert "a round costs no more than a plain step, 2.5 tokens are expected." in line


def test_page_keeps_to_80_columns_and_ascii_without_control_codes(helpful_plan: Plan) -> None:
    drawn = text_of(helpful_plan)
    assert max(map(len, drawn.splitlines())) <= 80
    assert drawn.isascii()
    assert "\x1b" not in drawn
    assert not re.search(r" $", drawn, re.MULTILINE)


def test_table_shows_off_doubt_and_what_does_not_fit(helpful_plan: Plan) -> None:
    lines = text_of(helpful_plan).splitlines()
    start = next(i for i, line in enumerate(lines) if line.split() == ["batch", "1K", "4K", "32K"])
    assert lines[start + 1].split() == ["1", "D=3", "1.9x", "D=3", "1.9x", "D=3", "1.9x"]
    assert lines[start + 2].split() == ["4", "D=2", "1.20x?", "D=2", "1.20x?", "D=2", "1.20x?"]
    assert lines[start + 3].split() == ["16", "off", "off", "-"]


def test_batches_and_contexts_that_never_fit_are_named_once(helpful_plan: Plan) -> None:
    cells = [
        cell.model_copy(update={"fits": cell.batch < 16 and cell.context_len < 32768})
        for cell in helpful_plan.d_table
    ]
    drawn = text_of(plan(d_table=tuple(cells))).replace("\n  ", " ")
    assert "batches from 16 up do not fit; contexts from 32K up do not fit." in drawn
    assert re.search(r" batch +1K +4K +1 .* 4 ", drawn)


def test_more_contexts_than_columns_continue_below() -> None:
    cells = plan().d_table
    many = tuple(cells[0].model_copy(update={"context_len": 1024 * n}) for n in range(1, 9))
    drawn = text_of(plan(d_table=many))
    assert re.search(r"^  batch +1K +2K +3K +4K +5K$", drawn, re.MULTILINE)
    assert re.search(r"^  batch +6K +7K +8K$", drawn, re.MULTILINE)


def test_tile_line_says_what_is_charged_and_what_is_lost() -> None:
    lost = TILE.model_copy(update={"split_kv": False})
    drawn = text_of(plan(best_drafted=evaluation(tile=lost))).replace("\n  ", " ")
    assert "G*(1+D) = 4*(1+3) = 16 query rows per KV head; FlashAttention-2 charges 64" in drawn
    assert "(75% idle)" in drawn
    assert "split-KV lost" in drawn
    assert "split-KV lost" not in text_of(plan())


def test_memory_is_that_of_the_choice_and_the_tile_that_of_the_drafted_round() -> None:
    alone = OFF.model_copy(
        update={"ledger": LEDGER.model_copy(update={"drafter_weights_mib": 0.0})}
    )
    drawn = text_of(plan(best=alone, verdict="hurts"))
    assert "D drafter weights" not in drawn
    assert "4*(1+3) = 16 query rows" in drawn


def test_what_rests_on_assumptions_is_shown(helpful_plan: Plan) -> None:
    drawn = text_of(helpful_plan)
    assert "1 datasheet, 1 assumed (per-pass overhead)" in screen_text(page(helpful_plan))
    assert "assumed: per-pass overhead = 0.0004 s (engine default)" in drawn
    assert "assumed: the workload is chat" in drawn


def test_names_from_files_can_neither_move_the_cursor_nor_forge_markup() -> None:
    hostile = INPUTS.model_copy(update={"model_name": "a\x1b[2J[red]b\nYes: c\u202e"})
    drawn = text_of(plan(inputs=hostile, warnings=("x\x1b]0;title\x07y",)))
    assert "\x1b" not in drawn
    assert "a?[2J[red]b?Yes: c?" in drawn
    assert "x?]0;title?y" in drawn


def test_colour_appears_on_a_terminal_only(
    helpful_plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    shown, plain_shown = StringIO(), StringIO()
    for part in page(helpful_plan):
        Console(file=shown, force_terminal=True, width=80).print(part)
    monkeypatch.setenv("NO_COLOR", "1")
    for part in page(helpful_plan):
        Console(file=plain_shown, force_terminal=True, width=80, no_color=True).print(part)
    assert "\x1b[1;32mYes" in shown.getvalue()
    assert "\x1b[1;32m" not in plain_shown.getvalue()


def test_no_color_leaves_no_control_code_on_a_terminal(
    helpful_plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b" in screen_text(page(helpful_plan))
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in screen_text(page(helpful_plan))


def test_a_width_of_zero_is_no_width(helpful_plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "0")
    assert screen_text(page(helpful_plan)).startswith("Yes: ")


def test_a_long_command_is_continued_and_never_cut(helpful_plan: Plan) -> None:
    assert helpful_plan.launch is not None
    long = "x" * 120
    launch = helpful_plan.launch.model_copy(update={"argv": ("serve", "--json", long, "--b", "1")})
    drawn = text_of(helpful_plan.model_copy(update={"launch": launch}))
    assert f"  serve \\\n    --json {long} \\\n    --b 1\n" in drawn


def test_shell_lines_quote_what_a_shell_would_read() -> None:
    assert shell_lines(["run", "--name", "a b; rm -rf /"], {"X": "$HOME"}) == [
        "X='$HOME' run --name 'a b; rm -rf /'"
    ]


sizes = st.floats(0, 40_000)


@given(weights=sizes, kv=sizes, activations=sizes, capacity=st.floats(1_000, 150_000))
def test_bar_is_as_long_as_its_share(
    weights: float, kv: float, activations: float, capacity: float
) -> None:
    total = weights + kv + activations
    ledger = LEDGER.model_copy(
        update={
            **dict.fromkeys(type(LEDGER).model_fields, 0.0),
            "weights_mib": weights,
            "kv_mib": kv,
            "activations_mib": activations,
            "total_mib": total,
            "capacity_mib": capacity,
        }
    )
    drawn = bar(ledger, 60)[1:-1]
    assert len(drawn) == 60
    if total <= capacity:
        assert abs(drawn.count(".") - 60 * (1 - total / capacity)) <= 1
    else:
        assert abs(drawn.count("!") - 60 * (1 - capacity / total)) <= 1


def test_comparison_has_a_line_for_each_question_and_says_why_one_failed(
    helpful_plan: Plan,
) -> None:
    answers = [
        Answer("Qwen/Qwen3-8B", "4090", helpful_plan),
        Answer("Qwen/Qwen3-8B", "1060", None, "needs 16.1 GiB but GTX 1060 has 6"),
    ]
    lines = screen_text(comparison(answers)).splitlines()
    assert lines[0] == "Qwen/Qwen3-8B, batch 1, context 4K, chat"
    assert lines[1].split()[:3] == ["gpu", "verdict", "drafter"]
    assert lines[2].split()[:5] == ["4090", "Yes", "EAGLE-3", "D=3", "1.9x"]
    assert lines[3].split() == ["1060", "no", "answer"]
    assert lines[-1] == "Qwen/Qwen3-8B on 1060: needs 16.1 GiB but GTX 1060 has 6"
    assert max(map(len, lines)) <= 80


def test_explanation_shows_value_unit_formula_kind_and_source() -> None:
    term = Term(
        name="t_verify_s",
        value=0.0201,
        unit="s",
        formula="bytes / rate",
        kind="derived",
        source="cost/gemm.py",
    )
    other = term.model_copy(update={"name": "other", "formula": ""})
    lines = screen_text(explanation([("verification", [term, other])])).splitlines()
    assert lines[0] == "verification"
    assert lines[1].split() == ["t_verify_s", "0.0201", "s", "derived", "bytes", "/", "rate", "[1]"]
    assert lines[2].split() == ["other", "0.0201", "s", "derived", "[1]"]
    assert lines[3:] == ["", "Sources", "  1  cost/gemm.py"]


@given(st.text())
def test_plain_text_is_printable_and_keeps_its_length(text: str) -> None:
    assert plain(text).isprintable()
    assert len(plain(text)) == len(text)


def test_rejections_are_grouped_by_reason(helpful_plan: Plan) -> None:
    rejected = [Rejection(what=f"d{n}", reason="no room", count=1000) for n in range(4)]
    drawn = text_of(helpful_plan.model_copy(update={"rejected": tuple(rejected)}))
    assert "- d0, d1 and 2 more: no room (4,000)\n" in drawn


def test_the_load_says_who_keeps_the_times_asked_for(helpful_plan: Plan) -> None:
    off = LoadPoint(
        batch=8, requests_per_s=2.0, ttft_s=0.2, tpot_s=0.03, latency_s=4.0, prefill_share=0.1
    )
    load = Load(
        concurrency=None, qps=2.0, prompt_len=1024, output_len=128, max_tpot_s=0.02,
        prefill_s=0.1, drafter_prefill_s=0.0, off=off,
        drafted=off.model_copy(update={"tpot_s": 0.01}),
    )  # fmt: skip
    lines = [str(line) for line in load_lines(helpful_plan.model_copy(update={"load": load}))]
    assert any("off breaks that, drafted keeps that" in line for line in lines)


def test_warnings_follow_the_choice_and_the_rest_is_short(helpful_plan: Plan) -> None:
    warned = helpful_plan.model_copy(update={"warnings": ("mind the gap",)})
    drawn = screen_text([*page(warned), *pointer()])
    places = [drawn.index(f"\n{title}") for title in ("Choice", "Warnings", "Draft length")]
    assert places == sorted(places)
    for title in ("Attention tile", "Other formats", "Set aside", "Where the numbers"):
        assert f"\n{title}" not in drawn
    assert "-v adds" in drawn
    assert "words: docs/glossary.md" in " ".join(drawn.split())


def _cell(**changes: Any) -> TableCell:
    return plan().d_table[0].model_copy(update=changes)


EAGLE = OtherDrafter(
    family="eagle3",
    drafter_id="org/head",
    draft_len=4,
    speedup=2.2,
    speedup_lo=1.6,
    speedup_hi=2.7,
)


def test_slower_and_full_have_signs_of_their_own_and_another_drafter_is_named() -> None:
    cells = (
        _cell(batch=1, context_len=4096),
        _cell(batch=8, context_len=4096, draft_len=0, why_off="no room", other=EAGLE),
        _cell(batch=16, context_len=4096, draft_len=0, why_off="no room", other=EAGLE),
        _cell(batch=64, context_len=4096, draft_len=0, why_off="slower"),
    )
    dspark = evaluation(family="dspark")
    drawn = text_of(plan(d_table=cells, best=dspark, best_drafted=dspark)).replace("\n  ", " ")
    assert "Draft length of DSpark by batch and context" in drawn
    assert re.search(r" 8 +full .* 64 +off ", drawn)
    assert "off: plain decoding is fastest; full: no room for this drafter" in drawn
    assert "at 4K from batch 8: EAGLE-3 D=4 2.2x" in drawn
    assert "from batch 16" not in drawn


def test_a_yes_without_a_command_says_so_in_the_second_line() -> None:
    lines = text_of(plan(no_command="vllm loads no GGUF", launch=None)).splitlines()
    assert lines[0].startswith("Yes:")
    assert lines[1] == "But no command can be given: vllm loads no GGUF"
    assert "But no command" not in text_of(plan())


@pytest.mark.parametrize(("tok_s", "named"), [(150.0, True), (130.0, False)])
def test_a_much_faster_format_is_named_near_the_top(tok_s: float, named: bool) -> None:
    other = evaluation(quant="w4a16", kv_dtype="fp8", draft_len=4, spec_tok_s=tok_s)
    top = text_of(plan(alternatives=(other,))).partition("Choice")[0].replace("\n", " ")
    assert ("w4a16 weights, fp8 KV cache, EAGLE-3 D=4: 150 instead of 108 tok/s" in top) == named


TEMPLATE = evaluation(
    family="dflash", drafter_id="template: no published checkpoint known", speedup=2.6
)


def test_a_drafter_to_be_trained_is_called_so_and_what_it_would_gain_is_said() -> None:
    chosen = evaluation()
    drawn = text_of(plan(best_per_family=(TEMPLATE, chosen)))
    assert re.search(r"DFlash .* to be trained", drawn)
    assert "Would gain more once trained, as no checkpoint is known: DFlash 2.6x." in drawn
    alone = plan(best=OFF, best_drafted=None, best_per_family=(TEMPLATE,))
    line = verdict_line(alone)
    assert line.startswith("Don't: no checkpoint of a drafter is known")
    assert "DFlash with D=3 would give 2.6x (80 %: 1.5-2.3) once trained" in line


def test_an_asked_family_that_cannot_apply_says_why_in_the_first_line() -> None:
    inputs = INPUTS.model_copy(update={"drafter": "mtp"})
    line = verdict_line(plan(best=OFF, best_drafted=None, best_per_family=(), inputs=inputs))
    assert line.startswith("Don't: MTP cannot apply to Qwen3-8B on RTX 4090: the checkpoint has")


def _point(batch: int, rate: float, tpot_s: float) -> LoadPoint:
    return LoadPoint(
        batch=batch,
        requests_per_s=rate,
        ttft_s=0.1,
        tpot_s=tpot_s,
        latency_s=3.0,
        prefill_share=0.1,
    )


@pytest.mark.parametrize(
    ("qps", "off", "said"),
    [
        (2.0, _point(15, 2.0, 0.0238), "serves 2 requests a second at 6.50 ms a token instead of"),
        (None, _point(15, 10.0, 0.0238), "serves 12 instead of 10 requests a second (+20%), 6.50"),
        (20.0, None, "serves 12 requests a second at 6.50 ms a token, which plain decoding does"),
    ],
)
def test_with_a_load_the_first_line_is_about_requests(
    qps: float | None, off: LoadPoint | None, said: str
) -> None:
    load = Load(
        concurrency=None if qps else 16,
        qps=qps,
        prompt_len=512,
        output_len=256,
        prefill_s=0.05,
        drafter_prefill_s=0.0,
        off=off,
        drafted=_point(4, qps if off and qps else 12.0, 0.0065),
    )
    line = verdict_line(plan(load=load, best=evaluation(batch=4), best_drafted=evaluation(batch=4)))
    assert line.startswith(f"Yes: EAGLE-3 with D=3 {said}")
    assert "1.9x (80 %: 1.5-2.3) while decoding at its batch of 4." in line


def test_one_card_has_no_tensor_parallelism_and_several_say_how_they_share() -> None:
    assert ", TP" not in text_of(plan())
    two = plan(inputs=INPUTS.model_copy(update={"num_gpus": 2}))
    assert "layers split over 2 cards" in text_of(two).replace("\n            ", " ")
    assert "16-bit KV cache" in text_of(plan())
