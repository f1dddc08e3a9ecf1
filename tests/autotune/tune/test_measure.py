"""Counts and conditions of a cell: what engines get wrong, and what the machine tells."""

import os
import sys
from types import SimpleNamespace

import pytest

from autotune.load.records import Answer, DraftCounts
from autotune.tune.conditions import Watch
from autotune.tune.measure import _counted, _foreign_tokens, counts_of
from autotune.tune.records import Sample
from planner.acceptance.spec_counters import SpecCounters


def _answer(drafts: DraftCounts | None) -> Answer:
    return Answer("", 1, 10, 0.1, 1.0, 1.1, "length", drafts=drafts)


def test_counters_of_a_restarted_or_absurd_engine_count_nothing() -> None:
    before = SpecCounters(10, 40, 20, (10, 6, 3, 1), 100)
    assert _counted(before, SpecCounters(15, 60, 30, (15, 9, 4, 2), 150)).drafts == 5
    assert _counted(before, SpecCounters(1, 4, 2, (), 10)) == SpecCounters()
    assert _counted(before, SpecCounters(15, float("nan"), 30, (), 150)) == SpecCounters()
    assert _counted(before, SpecCounters(15, 41, 90, (), 150)) == SpecCounters()


def test_answers_count_where_the_metrics_do_not() -> None:
    told = [_answer(DraftCounts(8, 5, 2)), _answer(DraftCounts(4, 4, 1))]
    found = counts_of(SpecCounters(), told)
    assert found is not None
    assert (found.drafted_rounds, found.draft_tokens, found.accepted_tokens) == (3, 12, 9)
    assert counts_of(SpecCounters(), [_answer(None)]) is None
    assert counts_of(SpecCounters(), [_answer(DraftCounts(8, 5))]) is None


@pytest.mark.parametrize(
    ("each", "counted", "foreign"),
    [
        (50, None, None), (50, 100, 0), (50, 104, 0), (50, 105, 5), (50, 90, 0),
        (5000, 10_200, 0), (5000, 10_201, 201),
    ],
)  # fmt: skip
def test_tokens_beyond_our_own_are_others(
    each: int, counted: float | None, foreign: int | None
) -> None:
    """Two answers; counters may lag by two tokens of each, or by 2 % of all."""
    sample = Sample(prompt_id="p", workload="chat", tokens=each, ttft_s=0.1, decode_s=1.0)
    assert _foreign_tokens(counted, [sample, sample]) == foreign


def test_the_first_card_is_read_where_a_driver_is(monkeypatch: pytest.MonkeyPatch) -> None:
    class NVMLError(Exception):
        pass

    def unknown(_: object, __: object = None) -> float:
        raise NVMLError("not supported")

    driver = SimpleNamespace(
        NVMLError=NVMLError,
        NVML_CLOCK_SM=1,
        NVML_TEMPERATURE_GPU=0,
        nvmlInit=lambda: None,
        nvmlShutdown=lambda: None,
        nvmlDeviceGetHandleByIndex=lambda _: object(),
        nvmlDeviceGetClockInfo=lambda _, __: 1980,
        nvmlDeviceGetPowerUsage=unknown,
        nvmlDeviceGetTemperature=lambda _, __: 71,
        nvmlDeviceGetCurrentClocksThrottleReasons=lambda _: 0x4 | 0x40,
    )
    monkeypatch.setitem(sys.modules, "pynvml", driver)
    found = Watch(None).conditions(0, 0)
    assert (found.sm_clock_mhz, found.power_w, found.temperature_c) == (1980, None, 71)
    assert found.throttle == ("software power cap", "hardware thermal slowdown")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_processor_time_of_our_own_group_is_not_foreign() -> None:
    watch = Watch(os.getpgid(0))
    sum(k * k for k in range(300_000))
    share = watch.conditions(None, None).foreign_cpu_share
    assert share is None or 0.0 <= share <= 1.0
    assert Watch(None).conditions(None, None).foreign_cpu_share is None
