from pathlib import Path

import pytest

from planner.errors import InputError
from planner.report.comparison import Answer, comparison
from planner.report.page import page
from planner.report.prices import Prices, read_prices, tokens_per_joule
from planner.report.screen import screen_text
from planner.search.records import Plan


def priced(plan: Plan, **inputs: object) -> Plan:
    return plan.model_copy(update={"inputs": plan.inputs.model_copy(update=inputs)})


def written(tmp_path: Path, text: str) -> Path:
    (tmp_path / "prices.yaml").write_text(text)
    return tmp_path / "prices.yaml"


def test_a_million_tokens_cost_hours_times_price(helpful_plan: Plan) -> None:
    """Two cards at 0.36 an hour are 0.0002 a second; at 100 tok/s a million take 10000 s."""
    plan = priced(helpful_plan, gpu="nvidia-rtx-4090", num_gpus=2)
    best = plan.best.model_copy(update={"spec_tok_s": 100.0})
    plan = plan.model_copy(update={"best": best})
    prices = Prices(currency="USD", per_hour={"nvidia-rtx-4090": 0.36})
    assert prices.per_million_tokens(plan) == pytest.approx(2.0)
    assert prices.per_million_tokens(priced(plan, gpu="nvidia-l4")) is None


def test_tokens_per_joule_take_the_cap_of_every_card(helpful_plan: Plan) -> None:
    plan = priced(helpful_plan, power_w=250.0, num_gpus=2)
    assert tokens_per_joule(plan) == pytest.approx(plan.best.spec_tok_s / 500)
    assert tokens_per_joule(priced(plan, power_w=None)) is None


def test_cards_are_read_as_people_write_them(tmp_path: Path) -> None:
    found = read_prices(written(tmp_path, "currency: EUR\nper_hour: {4090 24GB: 0.3, H100: 2}\n"))
    assert found.per_hour == {"nvidia-rtx-4090": 0.3, "nvidia-h100-sxm-80gb": 2}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("currency: EUR\nper_hour: {frobnicator: 1}\n", "frobnicator"),
        ("currency: EUR\nper_hour: {4090: -1}\n", "per_hour"),
        ("per_hour: {'4090': 1}\n", "currency"),
        ("currency: EUR\nper_hour: {'4090': 1, 'rtx 4090': 2}\n", "two prices"),
        ("- 1\n", "mapping"),
    ],
)
def test_a_defect_of_the_file_is_named(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(InputError, match=rf"prices.yaml.*{says}"):
        read_prices(written(tmp_path, text))


def test_a_wrong_form_shows_the_right_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="for example, ") as refusal:
        read_prices(written(tmp_path, "4090: 0.4\n"))
    shown = str(refusal.value).rpartition("for example, ")[2]
    assert read_prices(written(tmp_path, shown)).per_hour == {"nvidia-rtx-4090": 0.40}


def test_table_and_page_show_the_price(helpful_plan: Plan) -> None:
    plan = priced(helpful_plan, gpu="nvidia-rtx-4090", power_w=450.0)
    prices = Prices(currency="USD", per_hour={"nvidia-rtx-4090": 0.36})
    answers = [Answer("Qwen/Qwen3-8B", "4090", plan), Answer("Qwen/Qwen3-8B", "L4", plan)]
    table = screen_text(comparison(answers, prices))
    assert table.splitlines()[1].split()[-2:] == ["tok/J", "USD/M"]
    assert "may draw less" in table.replace("\n", " ")
    assert "Cost: " in screen_text(page(plan, prices=prices))
    other = priced(plan, gpu="nvidia-l4", gpu_name="L4")
    assert "the price file has no L4" in screen_text(page(other, prices=prices))
