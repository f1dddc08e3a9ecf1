"""Files that users hand over, with the right reading of each."""

import json
import shutil
import time
from pathlib import Path

import pytest

from hwprofiles.errors import InputError
from planner.acceptance import user_file
from planner.acceptance.user_file import MAX_BYTES, read_acceptance

SAMPLES = Path(__file__).parent.parent / "data" / "metrics"


def test_vllm_counters_give_every_position() -> None:
    """1660 accepted of 1000 drafts; positions 0.71, 0.53, 0.42."""
    curve = read_acceptance(SAMPLES / "vllm_spec_full.txt")
    assert curve.tokens_per_round(3) == pytest.approx(2.66)
    assert curve.survival(1) == pytest.approx(0.71)
    assert curve.kind == "measured"
    assert 0.02 <= curve.log_sd < 0.06


def test_vllm_v1_log_line_wins_over_v0_and_sglang_lines_beside_it() -> None:
    curve = read_acceptance(SAMPLES / "vllm_log_lines.txt")
    assert curve.tokens_per_round(5) == pytest.approx(3.39, abs=0.01)
    assert len(curve.head) == 5


@pytest.mark.parametrize(
    ("name", "draft_len", "tokens"),
    [
        ("sglang_spec_split_labels.txt", 7, 3.95),  # (3.95-1)/7 = .4214: newer definition
        ("sglang_spec_draft_and_unified.txt", 3, 2.8),  # unified, never the draft worker's 2.7
        ("sglang_spec_config_gauges.txt", 3, 2.3),  # num_draft_tokens 4 counts the root
    ],
)
def test_sglang_gauges(name: str, draft_len: int, tokens: float) -> None:
    curve = read_acceptance(SAMPLES / name)
    assert f"D = {draft_len}" in curve.source
    assert curve.tokens_per_round(draft_len) == pytest.approx(tokens, abs=1e-6)


def test_sglang_log_line_in_the_older_convention(tmp_path: Path) -> None:
    """Accept len 2.17, rate 0.54 = 2.17/4: the root was counted, D = 3."""
    line = "Decode batch. #running-req: 1, accept len: 2.17, accept rate: 0.54, cuda graph: True\n"
    (tmp_path / "server.log").write_text(line * 3)
    curve = read_acceptance(tmp_path / "server.log")
    assert "D = 3" in curve.source
    assert curve.tokens_per_round(3) == pytest.approx(2.17, abs=1e-6)


def test_llamacpp_statistics_count_draftless_rounds(tmp_path: Path) -> None:
    (tmp_path / "s.log").write_text(
        "draft acceptance rate = 0.39 (73 accepted / 187 generated)\n"
        "statistics ngram_simple: #calls(b,g,a) = 1 15 5, #gen drafts = 5, #acc drafts = 5, "
        "#gen tokens = 187, #acc tokens = 73, dur(b,g,a) = 0.1, 0.3, 0.0 ms\n"
    )
    curve = read_acceptance(tmp_path / "s.log", family="ngram")
    assert curve.draft_share == pytest.approx(5 / 15)
    assert curve.mean_draft_len == pytest.approx(187 / 5)
    # 73 accepted over 15 rounds
    assert curve.tokens_per_round(38) == pytest.approx(1 + 73 / 15, rel=0.01)


def test_counters_without_traffic_ask_for_traffic() -> None:
    with pytest.raises(InputError, match="no drafts yet"):
        read_acceptance(SAMPLES / "llamacpp_spec_names.txt")


def test_vllm_v0_lines_alone_are_refused(tmp_path: Path) -> None:
    text = (SAMPLES / "vllm_log_lines.txt").read_text()
    (tmp_path / "v0.log").write_text("".join(x for x in text.splitlines(True) if "475]" in x))
    with pytest.raises(InputError, match="V0"):
        read_acceptance(tmp_path / "v0.log")


@pytest.mark.parametrize(
    ("text", "draft_len", "tokens"),
    [
        ('{"tokens_per_round": 2.9, "draft_len": 4}', 4, 2.9),
        ("tokens_per_round: 2.9\ndraft_len: 4\n", 4, 2.9),
        ('{"positions": [0.8, 0.6, 0.5]}', 3, 2.9),
        ('{"positions": [0.8, 0.6, 0.5], "draft_share": 0.5}', 3, 1.95),
    ],
)
def test_stated_curves(text: str, draft_len: int, tokens: float, tmp_path: Path) -> None:
    path = tmp_path / "acceptance.yaml"
    path.write_text(text)
    curve = read_acceptance(path)
    assert curve.tokens_per_round(draft_len) == pytest.approx(tokens, abs=1e-6)
    assert curve.kind == "measured"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        "hello",
        '{"tokens_per_round": 9, "draft_len": 4}',
        '{"tokens_per_round": 2}',
        '{"tokens_per_round": NaN, "draft_len": 4}',
        '{"positions": "0.5"}',
        '{"positions": [0.5, 0.9]}',
        '{"positions": [0.5], "draft_share": 7}',
        "a: &a [x]\n" + "b: [" + "*a," * 30 + "*a]",
        json.dumps({"positions": [0.1] * 4000}),
    ],
)
def test_useless_files_end_in_one_message(text: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(InputError):
        read_acceptance(path)


def test_missing_and_huge_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read"):
        read_acceptance(tmp_path / "none.txt")
    huge = tmp_path / "huge.log"
    with huge.open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(InputError, match="limit"):
        read_acceptance(huge)
    shutil.rmtree(tmp_path)


def test_a_file_without_end_is_read_to_the_limit_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its size says 0, as that of a device or a pipe does."""
    endless = tmp_path / "endless.json"
    endless.write_bytes(b" " * 2000)
    monkeypatch.setattr(user_file, "MAX_BYTES", 1000)
    with pytest.raises(InputError, match="more than 1000 bytes"):
        user_file.read_acceptance(endless)


@pytest.mark.parametrize(
    "text",
    [
        "{tokens_per_round: 2.9, draft_len: 1000000000.0}",
        "{tokens_per_round: 2.9, draft_len: 129}",
        f"{{tokens_per_round: {10**400}, draft_len: 4}}",
        f"{{tokens_per_round: 2.9, draft_len: {10**400}}}",
        f"{{tokens_per_round: {'x' * 90_000}, draft_len: 4}}",
    ],
)
def test_impossible_numbers_are_refused_in_a_short_message(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(InputError) as caught:
        read_acceptance(tmp_path / "a.yaml")
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    "text",
    [
        f"vllm:spec_decode_num_drafts_total {'9' * 400}\n",
        "vllm:spec_decode_num_drafts_total 1e308\nvllm:spec_decode_num_drafts_total 1e308\n",
        f"statistics x: #calls = {'9' * 5000}, #gen drafts = 1, #acc drafts = 1, "
        "#gen tokens = 1, #acc tokens = 1\n",
        f"accept len: {'9' * 400}, accept rate: 0.5\n",
        "accept len: 1.2.3, accept rate: 0.5\n",
        "Mean acceptance length: 2, Accepted: 9 tokens, Drafted: 9 tokens, "
        "Per-position acceptance rate: ., ,.\n",
    ],
)
def test_counts_that_no_engine_writes_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "m.txt").write_text(text)
    with pytest.raises(InputError):
        read_acceptance(tmp_path / "m.txt")


def test_a_long_line_of_beginnings_is_read_in_linear_time(tmp_path: Path) -> None:
    """Each beginning looked for its end over the rest of the line: minutes for 10 MB."""
    (tmp_path / "m.log").write_text("Mean acceptance length: 2.5, " * 300_000)
    started = time.process_time()
    with pytest.raises(InputError, match="no acceptance"):
        read_acceptance(tmp_path / "m.log")
    assert time.process_time() - started < 20


def write(folder: Path, text: str) -> Path:
    path = folder / "sample.txt"
    path.write_bytes(text.encode())
    return path


def test_tensorrt_llm_iterations_are_summed(tmp_path: Path) -> None:
    """100 + 20 drafted rounds, 180 + 30 accepted: E[L] = 1 + 210/120; 360 drafted: D = 3."""
    stats = [(100, 300, 180), (20, 60, 30), (0, 0, 0)]
    page = [
        {"iter": i, "specDecodingStats": {
            "numRequestsWithDraftTokens": d, "numDraftTokens": n, "numAcceptedTokens": a,
            "acceptanceLength": 2.8, "draftOverhead": 0.1}}
        for i, (d, n, a) in enumerate(stats)
    ]  # fmt: skip
    curve = read_acceptance(write(tmp_path, json.dumps(page)))
    assert curve.tokens_per_round(3) == pytest.approx(1 + 210 / 120)
    lines = "\n".join(json.dumps(item) for item in page)
    assert read_acceptance(write(tmp_path, lines)).tokens_per_round(3) == pytest.approx(2.75)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[{"specDecodingStats": {"numDraftTokens": 3, "numAcceptedTokens": 5}}]', "5 tokens"),
        ('[{"specDecodingStats": {"numDraftTokens": -3}}]', "must be a count"),
        ('[{"specDecodingStats": {}}]', "no drafts yet"),
        ('{"specDecodingStats": ', "not JSON"),
        ("vllm:spec_decode_num_emitted_tokens_total 4200\n", "vLLM V0"),
        ("draft acceptance rate = 0.57576 (  171 accepted /   297 generated)", "does not"),
        ("tokens_per_round: 3\n", "holds no acceptance"),
    ],
)
def test_what_cannot_be_converted_says_why(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read_acceptance(write(tmp_path, text))


def test_a_byte_order_mark_and_two_engines_are_read(tmp_path: Path) -> None:
    lines = [
        f'vllm:spec_decode_num_{name}_total{{engine="{engine}"}} {value}'
        for engine, scale in (("0", 2), ("1", 1))
        for name, value in (("drafts", 500 * scale), ("draft_tokens", 1500 * scale),
                            ("accepted_tokens", 830 * scale))
    ]  # fmt: skip
    curve = read_acceptance(write(tmp_path, "\ufeff" + "\r\n".join(lines) + "\r\n# EOF\r\n"))
    assert curve.tokens_per_round(3) == pytest.approx(2.66)
