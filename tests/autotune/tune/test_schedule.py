"""Which prompts run in which block, in what order of the arms."""

from hypothesis import given
from hypothesis import strategies as st

from autotune.tune.records import Arm, Prompt
from autotune.tune.schedule import Effort, schedule

ARMS = [Arm(name=name, family="none", draft_len=None) for name in ("off", "a", "b")]


def prompts(count: int) -> list[Prompt]:
    return [
        Prompt(prompt_id=str(n), workload="chat" if n % 3 else "code", messages=(("user", "x"),))
        for n in range(count)
    ]


EFFORTS = st.builds(
    Effort, blocks=st.integers(1, 6), prompts=st.integers(1, 4), warmup=st.integers(0, 2)
)


@given(effort=EFFORTS, count=st.integers(1, 40))
def test_no_prompt_comes_back_while_there_are_others(effort: Effort, count: int) -> None:
    found = schedule(ARMS, prompts(count), effort)
    sent = [prompt.prompt_id for block in found.blocks for prompt in block.prompts]
    warm = [prompt.prompt_id for prompt in found.warmup]
    assert found.reused == (len(set(sent)) < effort.blocks * effort.prompts)
    if not found.reused:
        assert len(sent) == len(set(sent)) == effort.blocks * effort.prompts
    if count > effort.prompts:
        assert not set(sent) & set(warm)
    assert len(warm) <= max(1, effort.warmup)


@given(effort=EFFORTS, count=st.integers(1, 40))
def test_every_block_runs_every_arm_once_and_the_seed_decides_all(
    effort: Effort, count: int
) -> None:
    found = schedule(ARMS, prompts(count), effort)
    assert schedule(ARMS, prompts(count), effort) == found
    for block in found.blocks:
        assert sorted(block.order) == sorted(arm.name for arm in ARMS)
        assert len({prompt.prompt_id for prompt in block.prompts}) == len(block.prompts) > 0


def test_orders_differ_between_blocks() -> None:
    found = schedule(ARMS, prompts(40), Effort(blocks=8, prompts=2))
    assert len({block.order for block in found.blocks}) > 1
