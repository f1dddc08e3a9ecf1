"""Data set names -> workload class."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.workload import WORKLOAD_NAMES, parse_workload


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("HumanEval", "code"),
        ("MBPP", "code"),
        ("LiveCodeBench", "code"),
        ("SPEED-Bench coding", "code"),
        ("MT-Bench coding", "code"),
        ("Code mean", "code"),
        ("avg of 3 Code benchmarks", "code"),
        ("GSM8K", "math"),
        ("MATH500", "math"),
        ("AIME25", "math"),
        ("Spec-Bench math reasoning", "math"),
        ("MT-Bench", "chat"),
        ("Alpaca", "chat"),
        ("ShareGPT", "chat"),
        ("Spec-Bench question answering", "chat"),
        ("CNN/DM", "summary"),
        ("CNN/DailyMail", "summary"),
        ("Spec-Bench RAG", "summary"),
        ("SPEED-Bench multilingual", "translation"),
        ("Spec-Bench translation", "translation"),
        ("prose", "creative"),
        ("SPEED-Bench roleplay", "creative"),
        ("AgenticSQL (max)", "agent"),
        ("tool calling", "agent"),
        ("synthetic tg128", "random"),
        ("Spec-Bench overall", "unknown"),
        ("SPEED-Bench throughput", "unknown"),
        ("geomean of 5", "unknown"),
        ("probe.py", "unknown"),
        ("zzz", "unknown"),
    ],
)
def test_data_set_names(text: str, name: str) -> None:
    assert parse_workload(text).name == name


def test_a_mix_lists_its_parts() -> None:
    found = parse_workload("probe.py mean of code/prose/bash")
    assert found.name == "unknown"
    assert found.parts == ("code", "creative", "code")
    assert found.assumptions


def test_finer_kinds_are_kept() -> None:
    assert parse_workload("SPEED-Bench RAG").detail == "rag"
    assert parse_workload("MT-Bench extraction").detail == "extraction"


def test_unknown_is_said() -> None:
    assert "not recognised" in parse_workload("zzz").assumptions[0]
    assert "a mix of tasks" in parse_workload("SPEED-Bench qualitative").assumptions[0]
    assert parse_workload(None).assumptions


@pytest.mark.parametrize(
    ("text", "thinking"),
    [
        ("chat, thinking", True),
        ("no-thinking chat", False),
        ("non-thinking", False),
        ("chat", None),
    ],
)
def test_thinking_mode(text: str, thinking: bool | None) -> None:
    assert parse_workload(text).thinking is thinking


@pytest.mark.parametrize("name", WORKLOAD_NAMES)
def test_class_names_name_themselves(name: str) -> None:
    assert parse_workload(name).name == name


@given(st.text(max_size=60))
def test_any_text_gives_a_class(text: str) -> None:
    assert parse_workload(text).name in WORKLOAD_NAMES
