"""Runs that break off go on where they were; a baseline that speculates ends them."""

import json
from pathlib import Path

import pytest
from simulated_engine import OFF_TRUTH, SimulatedStage, Truth
from tune_runs import raced

pytest.importorskip("scipy")

from autotune.tune.state import SAMPLES_FILE
from planner.errors import InputError, OutsideFailure

TRUTHS = {"off": OFF_TRUTH, "draft_len=4": Truth(4, 0.8)}


def test_finished_cells_survive_a_failure_and_are_not_measured_again(tmp_path: Path) -> None:
    with pytest.raises(ConnectionError):
        raced(SimulatedStage(TRUTHS, fail_after=3), tmp_path, blocks=4)
    lines = (tmp_path / SAMPLES_FILE).read_text().splitlines()
    assert len(lines) == 1 + 3
    again = SimulatedStage(TRUTHS)
    evidence, _ = raced(again, tmp_path, blocks=4, force=False)
    keys = [(cell.block, cell.arm) for cell in evidence.cells]
    assert len(keys) == len(set(keys))
    assert len(again.turns) == len(keys) - 3


def test_a_line_that_a_kill_cut_off_is_dropped_and_measured_again(tmp_path: Path) -> None:
    raced(SimulatedStage(TRUTHS), tmp_path, blocks=3)
    path = tmp_path / SAMPLES_FILE
    whole = path.read_bytes()
    path.write_bytes(whole[:-40])
    again = SimulatedStage(TRUTHS)
    evidence, _ = raced(again, tmp_path, blocks=3, force=False)
    assert len(again.turns) == 1
    assert len(evidence.cells) == 6


def test_samples_of_another_run_are_refused(tmp_path: Path) -> None:
    raced(SimulatedStage(TRUTHS), tmp_path, blocks=3)
    with pytest.raises(InputError, match="--force"):
        raced(SimulatedStage(TRUTHS), tmp_path, blocks=3, force=False, max_tokens=65)


def test_samples_are_for_the_owner_alone(tmp_path: Path) -> None:
    raced(SimulatedStage(TRUTHS), tmp_path, blocks=3)
    assert (tmp_path / SAMPLES_FILE).stat().st_mode & 0o077 == 0


def test_a_baseline_that_drafts_ends_the_run(tmp_path: Path) -> None:
    stage = SimulatedStage({"off": Truth(2, 0.5), "draft_len=4": Truth(4, 0.8)})
    with pytest.raises(OutsideFailure, match="still speculates"):
        raced(stage, tmp_path)
    kept = [json.loads(line) for line in (tmp_path / SAMPLES_FILE).read_text().splitlines()]
    assert kept[-1]["arm"] == "off"
