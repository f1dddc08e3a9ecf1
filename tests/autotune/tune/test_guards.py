"""Each guard on records in which it must speak, and in which it must be quiet."""

import random
import string

import pytest

from autotune.tune import guards
from autotune.tune.prompts import PromptSet, shipped_prompts
from autotune.tune.records import Arm, Cell, Conditions, Counts, Prompt, Sample

OFF = Arm(name="off", family="none", draft_len=0)
NGRAM = Arm(name="draft_len=3", family="ngram", draft_len=3)
EAGLE = Arm(name="draft_len=3", family="eagle3", draft_len=3)
NOTHING = Counts(drafted_rounds=0, draft_tokens=0, accepted_tokens=0)
SOME = Counts(drafted_rounds=9, draft_tokens=27, accepted_tokens=12)


def cell(arm: str = "off", block: int = 0, **changes: object) -> Cell:
    step_s = changes.pop("step_s", 0.02)
    tokens = changes.pop("tokens", 101)
    assert isinstance(step_s, float)
    assert isinstance(tokens, int)
    sample = Sample(
        prompt_id="p",
        workload="chat",
        tokens=tokens,
        ttft_s=0.1,
        decode_s=step_s * (tokens - 1),
        text=str(changes.pop("text", "")),
    )
    return Cell.model_validate(
        {"block": block, "place": 0, "arm": arm, "samples": (sample,), **changes}
    )


def test_a_baseline_is_off_only_by_the_counters() -> None:
    assert guards.baseline_off([cell(counts=NOTHING)]).state == "ok"
    assert guards.baseline_off([cell(counts=SOME)]).state == "invalid"
    assert guards.baseline_off([cell()]).state == "note"
    assert guards.baseline_off([cell("draft_len=3", counts=SOME)]).state == "note"


def test_a_drafted_arm_that_never_drafts_is_told() -> None:
    told = list(guards.arms_draft([OFF, NGRAM], [cell("draft_len=3", counts=NOTHING)]))
    assert [one.state for one in told] == ["doubt"]
    assert not list(guards.arms_draft([OFF, NGRAM], [cell("draft_len=3", counts=SOME)]))


@pytest.mark.parametrize(
    ("arm", "reused", "restarted", "state"),
    [
        (NGRAM, True, False, "doubt"),
        (NGRAM, True, True, "ok"),
        (NGRAM, False, False, "ok"),
        (EAGLE, True, False, "ok"),
    ],
)
def test_look_up_must_not_copy_its_own_answers(
    arm: Arm, reused: bool, restarted: bool, state: str
) -> None:
    found = guards.own_repetition([OFF, arm], reused=reused, restarted=restarted)
    assert found.state == state


def test_short_answers_are_a_doubt() -> None:
    assert guards.short_answers([cell(tokens=12)]).state == "doubt"
    assert guards.short_answers([cell(tokens=64)]).state == "ok"
    assert guards.short_answers([]).state == "invalid"


@pytest.mark.parametrize(
    ("conditions", "state"),
    [
        (Conditions(foreign_requests=2), "doubt"),
        (Conditions(foreign_requests=0, foreign_tokens=50), "doubt"),
        (Conditions(foreign_requests=0, foreign_cpu_share=0.5), "doubt"),
        (Conditions(foreign_requests=0, foreign_cpu_share=0.01), "ok"),
        (Conditions(), "note"),
    ],
)
def test_other_load_is_seen_in_queue_tokens_and_processor(
    conditions: Conditions, state: str
) -> None:
    assert guards.other_load([cell(conditions=conditions)]).state == state


def test_drift_of_the_baseline_and_held_clocks_are_told() -> None:
    steady = [cell(block=k, step_s=0.02 + 0.0002 * k) for k in range(4)]
    moving = [cell(block=k, step_s=0.02 + 0.002 * k) for k in range(4)]
    capped = [cell(block=k, conditions=Conditions(throttle=("power cap",))) for k in range(3)]
    assert guards.drift(steady).state == "ok"
    assert guards.drift(moving).state == "doubt"
    assert "30%" in guards.drift(moving).sentence
    assert guards.drift(capped).state == "doubt"
    assert "power cap" in guards.drift(capped).sentence
    assert guards.drift(steady[:1]).state == "note"


def test_random_prompts_and_skipped_lines_are_told() -> None:
    source = random.Random(0)
    words = " ".join("".join(source.choices(string.printable[:90], k=6)) for _ in range(900))
    noise = Prompt(prompt_id="1", workload="random", messages=(("user", words),))
    soup = PromptSet((noise,), "file")
    assert guards.prompt_quality(shipped_prompts()).state == "ok"
    assert guards.prompt_quality(soup).state == "doubt"
    skipped = PromptSet(shipped_prompts().prompts, "file", 3, "line 7: not a JSON object")
    assert "3 lines skipped (line 7: not a JSON object)" in guards.prompt_quality(skipped).sentence


def test_a_block_smaller_than_the_batch_is_a_doubt() -> None:
    assert guards.in_flight([cell()], 1).state == "ok"
    assert guards.in_flight([cell()], 4).state == "doubt"


def test_answers_in_a_loop_are_a_doubt() -> None:
    loop = cell(text="and so on and so forth, " * 50)
    fine = cell(text=shipped_prompts("summary").prompts[0].text)
    assert guards.loops([loop, fine]).state == "doubt"
    assert guards.loops([fine]).state == "ok"
