"""What is shared: an evidence row like ours, and nothing that tells whose machine it was."""

import json
from pathlib import Path

import pytest
from tuned_samples import measured_arm, result

from autotune.tune.guards import Finding
from autotune.tune.share import evidence_row, read_result
from autotune.tune.text import result_text
from planner.errors import InputError
from planner.evidence.load import contradiction, row_of


def test_the_row_reads_as_our_own_rows_do() -> None:
    row = evidence_row(result())
    read = row_of(row)
    assert contradiction(read) is None
    assert (read.speedup, read.tokens_per_round, read.round_cost_ratio) == (1.7, 2.4, 1.4)
    assert read.baseline_tok_s == 200.0
    assert read.ask["draft_len"] == 7
    assert read.ask["gpu"] == "nvidia-rtx-4090"
    assert read.ask["context_len"] == 164


def test_nothing_personal_goes_in() -> None:
    text = json.dumps(evidence_row(result(engine_version="0.33.0 built by ada@laptop:/home/ada")))
    for part in ("ada", "/home", "secret", "laptop", "19:12", "2026-11-30"):
        assert part not in text


def test_a_card_that_was_not_there_is_not_named() -> None:
    assert "gpu" not in evidence_row(result(card_present=False))["ask"]


@pytest.mark.parametrize(
    "model", ["/home/ada/x.gguf", "models/x.gguf", "C:\\x", "~/x", "../x", None]
)
def test_a_model_known_by_its_file_needs_a_public_name(model: str | None) -> None:
    with pytest.raises(InputError, match="--model"):
        evidence_row(result(model=model))
    assert evidence_row(result(model=model), model="org/name")["ask"]["model"] == "org/name"


def test_the_same_figures_have_the_same_name() -> None:
    assert evidence_row(result())["id"] == evidence_row(result())["id"]
    assert evidence_row(result())["id"] != evidence_row(result(), arm="3")["id"]


def test_an_invalid_or_contradictory_run_is_not_shared() -> None:
    bad = Finding(guard="baseline", state="invalid", sentence="the arm off drafted")
    with pytest.raises(InputError, match="not to be shared"):
        evidence_row(result(guards=(bad,)))
    with pytest.raises(InputError, match="no drafted arm"):
        evidence_row(result(), arm="9")
    impossible = (measured_arm("off", 0, None, 50.0), measured_arm("draft_len=7", 7, 3.0, 150.0))
    with pytest.raises(InputError, match="contradiction"):
        evidence_row(result(arms=impossible))


def test_what_was_not_measured_is_left_out_of_the_row() -> None:
    """Zero tokens a second, or a context without its prompt, would be figures nobody measured."""
    run = result()
    silent = tuple(one.model_copy(update={"tokens_per_s": None}) for one in run.arms[1:])
    run = run.model_copy(update={"mean_prompt_tokens": None, "arms": (run.arms[0], *silent)})
    row = evidence_row(run)
    assert "spec_tok_s" not in row
    assert "context_len" not in row["ask"]
    assert row["baseline_tok_s"] > 0


@pytest.mark.parametrize("number", ["NaN", "1e999", "-1e300", "9" * 400])
def test_a_number_that_no_run_measures_is_refused(tmp_path: Path, number: str) -> None:
    path = tmp_path / "tune.json"
    said = result().model_dump_json()
    path.write_text(said.replace('"mean_prompt_tokens":100.0', f'"mean_prompt_tokens":{number}'))
    assert path.read_text() != said
    with pytest.raises(InputError, match="no run measures"):
        read_result(path)
    path.write_text(said)
    assert read_result(path) == result()


def test_a_result_without_arms_has_a_page_all_the_same() -> None:
    assert "Checks of the measurement" in result_text(result(arms=()))
