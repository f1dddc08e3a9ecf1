"""Arms of a plan, and how its command changes."""

from pathlib import Path

import pytest
from emit_plans import evaluation, plan
from hypothesis import given
from hypothesis import strategies as st

from autotune.tune.arms import MAX_ARMS, arms_of_plan, chosen_arms
from autotune.tune.stage import Starter, with_port
from planner.errors import InputError
from planner.search.records import Launch, Plan


def _plan(best: int, lengths: range, *others: str) -> Plan:
    arms = {"off": ("serve", "m")}
    arms |= {f"draft_len={d}": ("serve", "m", "--draft", str(d)) for d in lengths}
    arms |= {name: ("serve", "m", "--method", name) for name in others}
    launch = Launch(
        argv=arms[f"draft_len={best}"],
        ready_url="http://127.0.0.1:8000/health",
        metrics_url="http://127.0.0.1:8000/metrics",
        arms=arms,
    )
    return plan(evaluation("eagle3", best)).model_copy(update={"launch": launch})


def test_arms_are_off_the_choice_and_lengths_around_it() -> None:
    names = [arm.name for arm in chosen_arms(_plan(6, range(1, 17)))]
    assert names[0] == "off"
    assert {"draft_len=6", "draft_len=3", "draft_len=12"} <= set(names)
    assert len(names) <= MAX_ARMS


@given(best=st.integers(1, 16), longest=st.integers(1, 16))
def test_the_choice_is_always_among_them(best: int, longest: int) -> None:
    made = _plan(best, range(1, max(best, longest) + 1))
    names = [arm.name for arm in chosen_arms(made)]
    assert names[0] == "off"
    assert f"draft_len={best}" in names
    assert 2 <= len(names) <= MAX_ARMS
    assert len(names) == len(set(names))


def test_other_drafters_of_the_plan_are_arms_too() -> None:
    arms = {arm.name: arm for arm in chosen_arms(_plan(4, range(1, 9), "method=suffix"))}
    assert arms["method=suffix"].family == "suffix"
    assert arms["method=suffix"].looks_up
    assert arms["draft_len=4"].family == "eagle3"


def test_named_arms_are_taken_as_they_are_named() -> None:
    made = _plan(4, range(1, 9))
    assert [arm.name for arm in chosen_arms(made, ("2", "draft_len=8", "off"))] == [
        "off",
        "draft_len=2",
        "draft_len=8",
    ]
    with pytest.raises(InputError, match="no arm 'draft_len=99'"):
        chosen_arms(made, ("99",))


def test_a_plan_without_arms_or_baseline_is_refused() -> None:
    made = _plan(4, range(1, 9))
    assert made.launch is not None
    with pytest.raises(InputError, match="--out"):
        arms_of_plan(made.model_copy(update={"launch": None}))
    bare = made.launch.model_copy(update={"arms": {"draft_len=4": ("serve",)}})
    with pytest.raises(InputError, match="baseline"):
        arms_of_plan(made.model_copy(update={"launch": bare}))


def test_program_port_and_further_words_are_put_into_the_command() -> None:
    made = _plan(4, range(1, 9))
    assert made.launch is not None
    arm = arms_of_plan(made)["draft_len=4"]
    starter = Starter("/opt/my\\ engine/serve --fast", "-t 1", 9001)
    command = starter.command(made.launch, arm, Path("plan"))
    assert list(command.argv) == [
        "/opt/my engine/serve",
        "--fast",
        "m",
        "--draft",
        "4",
        "-t",
        "1",
        "--port",
        "9001",
    ]
    assert command.ready_url == "http://127.0.0.1:9001/health"
    assert with_port("http://localhost:8000/x", 1) == "http://localhost:1/x"
    with pytest.raises(InputError, match="--engine-args"):
        Starter(extra='"').command(made.launch, arm, Path("plan"))
