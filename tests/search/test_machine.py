from collections.abc import Iterator

import pytest
from nvml_module import FakeCard, FakeNvml

from planner.search.machine import machine_of
from planner.search.question import Question
from planner.search.recommend import recommend


@pytest.fixture
def cards(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[FakeCard]]:
    """The cards that `--gpu auto` finds; the test fills the list."""
    listed: list[FakeCard] = []
    monkeypatch.setattr("hwprofiles.nvml._binding", lambda: FakeNvml(listed))
    machine_of.cache_clear()
    yield listed
    machine_of.cache_clear()


def test_auto_plans_for_the_cards_that_are_there(cards: list[FakeCard]) -> None:
    cards += [FakeCard(total_mib=49140, power_w=350), FakeCard(total_mib=49140, power_w=350)]
    plan = recommend(Question(model="Qwen/Qwen3-8B", gpu="auto"))
    asked = plan.inputs
    assert (asked.gpu, asked.num_gpus) == ("nvidia-rtx-4090-48gb-modded", 2)
    assert (asked.gpu_memory_mib, asked.power_limit_w) == (49140, 350)
    assert any("modified board" in warning for warning in plan.warnings)


def test_a_busy_card_leaves_less_room(cards: list[FakeCard]) -> None:
    cards.append(FakeCard(used_mib=4000))
    plan = recommend(Question(model="Qwen/Qwen3-8B", gpu="auto", quant="fp8"))
    assert plan.best.ledger.capacity_mib == pytest.approx(20564)
    tighter = recommend(
        Question(model="Qwen/Qwen3-8B", gpu="auto", quant="fp8", max_vram_mib=16000.0)
    )
    assert tighter.best.ledger.capacity_mib == pytest.approx(16000)


def test_a_line_from_a_stranger_does_not_ask_the_driver(cards: list[FakeCard]) -> None:
    cards.append(FakeCard())
    with pytest.raises(ValueError, match="names no GPU"):
        machine_of("auto", None, own_files=False)
