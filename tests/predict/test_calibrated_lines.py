import io
import json
from pathlib import Path

import pytest
from calibration_files import written

import planner
from hwprofiles import calibration
from hwprofiles.calibration import shelf_of
from planner.cli import main as cli
from planner.cost.constants import value
from planner.errors import InputError
from planner.predict.batch import answer_lines
from planner.predict.stream import predict_stream

LINE = {"id": 1, "model": "Qwen/Qwen3-8B", "gpu": "4090", "drafter": "eagle3", "draft_len": 3}
RATE = "formats.bf16.bandwidth_fraction"


def _step(path: Path | None, **fields: object) -> float:
    shelf = shelf_of(str(path) if path else "none")
    return float(answer_lines([LINE | fields], shelf=shelf)[0]["t_target_s"])


def test_two_calibrations_and_none_in_one_process_do_not_mix(tmp_path: Path) -> None:
    slow = written(tmp_path / "slow.yaml", constants={RATE: 0.5})
    fast = written(tmp_path / "fast.yaml", constants={RATE: 1.0})
    order = [None, slow, fast, None, fast, slow]
    found = [_step(path) for path in order]
    assert found[2] < found[0] < found[1]
    assert found[3:] == [found[0], found[2], found[1]]
    written(slow, constants={RATE: 1.0})
    assert _step(slow) == found[2]


def test_each_line_takes_what_fits_it_and_says_so(tmp_path: Path) -> None:
    shelf = shelf_of(str(written(tmp_path / "mine.yaml")))
    lines = [LINE, LINE | {"gpu": "3090"}, LINE | {"power_limit_w": 250}]
    answers = answer_lines(lines, shelf=shelf)
    plain = answer_lines(lines)
    assert answers[0]["t_target_s"] < plain[0]["t_target_s"]
    assert any("1 constant" in w for w in answers[0]["warnings"])
    for n in (1, 2):
        assert answers[n]["t_target_s"] == plain[n]["t_target_s"]
        assert any("calibrations not used: mine.yaml" in w for w in answers[n]["warnings"])


def test_the_measured_spread_narrows_a_line_of_its_model(tmp_path: Path) -> None:
    ratio = {
        "model": "Qwen/Qwen3-8B", "log_sd": 0.03, "points": 9, "largest_batch": 2,
        "largest_context_len": 4096,
    }  # fmt: skip
    path = written(
        tmp_path / "c.yaml",
        engine="vllm==0.33.0",
        measured_ratio=ratio,
        constants={"engines.vllm.layer_us": value("engines", "vllm", "layer_us")},
    )
    lines = [LINE | {"tokens_per_round": 2.5, "batch": batch} for batch in (1, 8)]
    narrow, wide = answer_lines(lines, shelf=shelf_of(str(path)))
    plain = answer_lines(lines)
    assert narrow["speedup"] == plain[0]["speedup"]
    assert narrow["speedup_hi"] < plain[0]["speedup_hi"]
    assert wide["speedup_hi"] == plain[1]["speedup_hi"]


def test_the_stream_and_the_function_take_a_calibration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibration, "user_folder", lambda: tmp_path)
    path = written(tmp_path / "c.yaml")
    with_it = planner.predict([LINE])
    assert with_it == planner.predict([LINE], calibration=str(path))
    assert with_it[0]["t_target_s"] < planner.predict([LINE], calibration="none")[0]["t_target_s"]
    sink = io.StringIO()
    predict_stream(io.BytesIO(json.dumps(LINE).encode()), sink, shelf_of(None))
    assert json.loads(sink.getvalue()) == with_it[0]


def test_the_command_takes_the_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines, path = tmp_path / "lines.jsonl", written(tmp_path / "c.yaml")
    lines.write_text(json.dumps(LINE) + "\n")
    for stated in (str(path), "none"):
        assert cli.run(["predict", str(lines), "--calibration", stated]) == 0
    measured, shipped = map(json.loads, capsys.readouterr().out.splitlines())
    assert measured["t_target_s"] < shipped["t_target_s"]
    with pytest.raises(InputError, match="no such file"):
        cli.run(["predict", str(lines), "--calibration", str(tmp_path / "absent")])
