import io
import json
import os
import subprocess
import sys
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.predict import stream
from planner.predict.batch import answer_lines
from planner.predict.stream import predict_stream
from planner.search.setup import engine_named

QWEN = {"id": "a", "model": "Qwen/Qwen3-8B", "gpu": "RTX 4090", "engine": "vllm"}
OUTPUT = {
    "id",
    "speedup",
    "speedup_lo",
    "speedup_hi",
    "round_cost_ratio",
    "tokens_per_round",
    "draft_share",
    "t_target_s",
    "t_draft_s",
    "t_verify_s",
    "baseline_tok_s",
    "baseline_tok_s_lo",
    "baseline_tok_s_hi",
    "spec_tok_s",
    "spec_tok_s_lo",
    "spec_tok_s_hi",
    "fits",
    "num_gpus_used",
    "engine",
    "drafter",
    "draft_len",
    "batch",
    "context_len",
    "vram_mib",
    "verdict",
    "sure",
    "provenance",
    "reasons",
    "warnings",
}


def _one(**fields: object) -> dict[str, object]:
    return answer_lines([QWEN | fields])[0]


def test_only_model_and_gpu_are_needed() -> None:
    answer = answer_lines([{"model": "Qwen/Qwen3-8B", "gpu": "4090"}])[0]
    assert set(answer) == OUTPUT
    assert answer["speedup"] == 1.0  # no drafter: the plain decode step


def test_an_answer_says_what_was_assumed() -> None:
    (answer,) = answer_lines([{"model": "Qwen/Qwen3-8B", "gpu": "4090", "drafter": "eagle3"}])
    assumed = {"engine": "vllm", "drafter": "eagle3", "draft_len": 3, "batch": 1}
    assert answer.items() >= (assumed | {"context_len": 1024}).items()
    assert _one(drafter="eagle3", draft_len=0)["drafter"] == "none"


def test_a_number_of_gpus_that_nobody_stated_is_a_warning() -> None:
    large = {"batch": 64, "context_len": 4096}
    counted, stated, named = answer_lines(
        [
            {"model": "Qwen/Qwen3-8B", "gpu": "4090", **large},
            {"model": "Qwen/Qwen3-8B", "gpu": "4090", "num_gpus": 4, **large},
            {"model": "Qwen/Qwen3-8B", "gpu": "4x4090", **large},
        ]
    )
    assert counted["num_gpus_used"] > 1
    assert any(f"num_gpus {counted['num_gpus_used']} assumed" in w for w in counted["warnings"])
    for answer in (stated, named):
        assert not any("assumed, the smallest" in warning for warning in answer["warnings"])


@pytest.mark.parametrize(
    ("key", "meant"),
    [("D", "draft_len"), ("context", "context_len"), ("draft_length", "draft_len"), ("zzz", None)],
)
def test_an_unknown_key_names_the_one_that_was_probably_meant(key: str, meant: str | None) -> None:
    warnings = _one(**{key: 4})["warnings"]
    hint = f"; did you mean {meant!r}?" if meant else ""
    assert f"unknown field {key!r} ignored{hint}" in warnings


def test_stated_tokens_per_round_give_the_speedup_of_the_equation() -> None:
    answer = _one(drafter="eagle3", draft_len=3, tokens_per_round=2.5)
    ratio = (answer["t_draft_s"] + answer["t_verify_s"]) / answer["t_target_s"]
    assert answer["round_cost_ratio"] == pytest.approx(ratio)
    assert answer["speedup"] == pytest.approx(2.5 / ratio)
    assert answer["tokens_per_round"] == pytest.approx(2.5)
    assert answer["speedup_lo"] < answer["speedup"] < answer["speedup_hi"]


def test_draft_len_zero_is_exactly_the_baseline() -> None:
    answer = _one(drafter="eagle3", draft_len=0)
    assert (answer["speedup"], answer["round_cost_ratio"]) == (1.0, 1.0)
    assert answer["t_draft_s"] == 0.0
    assert answer["t_verify_s"] == answer["t_target_s"]


def test_the_plain_step_of_8b_in_bf16_is_near_its_bytes_over_bandwidth() -> None:
    # 7.57e9 weights without the embedding x 2 bytes / (0.82 x 1008 GB/s) = 18.3 ms, plus host time.
    step = _one(draft_len=0)["t_target_s"]
    assert 0.0183 < step < 0.0215  # type: ignore[operator]


def test_draftless_rounds_dilute_a_drafter() -> None:
    always = _one(drafter="ngram", draft_len=8, draft_share=1.0, tokens_per_round=2.0)
    seldom = _one(drafter="ngram", draft_len=8, draft_share=0.25, tokens_per_round=2.0)
    assert seldom["round_cost_ratio"] == pytest.approx(always["round_cost_ratio"])
    assert seldom["speedup"] > always["speedup"]  # the same tokens for fewer dear rounds


def test_a_tree_verifies_its_nodes() -> None:
    chain = _one(drafter="eagle3", draft_len=5)
    tree = _one(drafter="eagle3", tree={"depth": 5, "topk": 8, "verify_tokens": 60})
    assert tree["t_verify_s"] > chain["t_verify_s"]


def test_fitting_and_speed_are_separate() -> None:
    answer = _one(model="Llama-3.3-70B-Instruct", num_gpus=1, quant="bf16", draft_len=0)
    assert answer["fits"] is False
    assert answer["t_target_s"] > 0  # type: ignore[operator]
    assert "GiB" in str(answer["reasons"])


@pytest.mark.parametrize("gpu", ["DGX Spark", "4090"])
def test_what_no_known_number_of_cards_holds_is_timed_all_the_same(gpu: str) -> None:
    answer = _one(gpu=gpu, batch=512, context_len=100_000)
    assert answer["fits"] is False
    assert answer["num_gpus_used"] == 1
    assert answer["t_target_s"] > 0  # type: ignore[operator]
    assert "of " in answer["reasons"][0]  # type: ignore[index]


def test_the_smallest_number_of_gpus_is_taken_and_said() -> None:
    answer = _one(model="Llama-3.3-70B-Instruct", gpu="H100 SXM", quant="bf16", draft_len=0)
    # 70.6e9 weights x 2 bytes = 131 GiB: more than one card of 80 GB, less than two.
    assert (answer["num_gpus_used"], answer["fits"]) == (2, True)


def test_integral_floats_are_numbers_and_unknown_keys_are_listed() -> None:
    answer = _one(draft_len=3.0, batch=2.0, drafter="eagle3", colour="red")
    assert answer["speedup"] > 0  # type: ignore[operator]
    assert any("colour" in w for w in answer["warnings"])  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"gpu": "RTX 9999"}, "rtx 9999"),
        ({"model": "No-Such-Model-9B"}, "No-Such-Model-9B"),
        ({"draft_len": 2.5}, "whole number"),
        ({"draft_len": 64}, "63"),
        ({"draft_len": -1}, "draft_len"),
        ({"batch": 0}, "batch"),
        ({"batch": True}, "batch"),
        ({"batch": "many"}, "batch"),
        ({"drafter": "medusa"}, "medusa"),
        ({"engine": "vllm=="}, "without a version"),
        ({"draft_share": 1.5}, "draft_share"),
        ({"tokens_per_round": 0.5}, "tokens_per_round"),
        ({"kv_dtype": "fp3"}, "fp3"),
        ({"acceptance": [0.5, 0.9]}, "never rise"),
        ({"model": None}, "model"),
        ({"op": "conv"}, "conv"),
    ],
)
def test_a_bad_line_names_what_is_wrong(fields: dict[str, object], message: str) -> None:
    answer = answer_lines([QWEN | fields])[0]
    assert set(answer) == {"id", "error"}
    assert answer["id"] == "a"
    assert message in str(answer["error"])


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"engine": "abacus 3"}, "abacus 3 is not modelled: the times are those of vllm"),
        ({"draft_len": 4, "drafter": None}, "no drafter is named"),
        ({"draft_len": 4, "tokens_per_round": 6}, "more than a round of 5 tokens"),
        ({"context_len": 131_072}, "past the 40960 positions"),
        ({"workload": "zzz"}, "'zzz' is not recognised"),
        ({"drafter_id": "my/own"}, "my/own is not in the catalog"),
        ({"power_limit_w": 9999}, "above the 450 W"),
        ({"quant": "Q9"}, "'Q9' not understood: bf16 assumed"),
    ],
)
def test_what_a_line_cannot_mean_is_said(fields: dict[str, object], said: str) -> None:
    warnings = _one(**{"drafter": "eagle3", **fields})["warnings"]
    assert any(said in w for w in warnings)  # type: ignore[attr-defined]


def test_gpus_of_an_odd_tensor_parallel_size_are_its_multiples() -> None:
    assert _one(tp=3)["num_gpus_used"] == 3


def test_a_line_that_is_json_text_is_no_object() -> None:
    out = io.StringIO()
    predict_stream(io.BytesIO(b'"x"\n'), out)
    assert "must be a JSON object" in json.loads(out.getvalue())["error"]


def test_a_line_cannot_make_us_read_a_file(tmp_path: object) -> None:
    path = f"{tmp_path}/config.json"
    assert "error" in answer_lines([{"model": path, "gpu": "4090"}])[0]
    assert "error" in answer_lines([{"model": "Qwen/Qwen3-8B", "gpu": f"{tmp_path}/x.yaml"}])[0]


def test_order_is_kept_and_a_bad_line_harms_no_other() -> None:
    text = b'{"id":1,"model":"Qwen/Qwen3-8B","gpu":"4090"}\nnot json\n[1]\n\n{"id":4,"op":"gemm",'
    text += b'"gpu":"A100 SXM","engine":"vllm","m":8,"n":4096,"k":4096,"dtype":"bf16"}'
    sink = io.StringIO()
    predict_stream(io.BytesIO(text), sink)
    answers = [json.loads(line) for line in sink.getvalue().splitlines()]
    assert [a["id"] for a in answers] == [1, None, None, 4]
    assert ["error" in a for a in answers] == [False, True, True, False]


def test_lines_of_any_length_are_answered_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also behind lines that are too long; one that goes on for ever ends the input."""
    monkeypatch.setattr(stream, "MAX_SKIPPED_BYTES", 6 << 20)
    good = json.dumps(QWEN).encode()
    long = (b"x" * (stream.MAX_LINE_BYTES + 1), b"y" * (5 << 20))
    out = io.StringIO()
    source = io.BytesIO(b"\n".join((good, long[0], good, long[1], good, b"\xff{", good)))
    predict_stream(source, out)
    said = ["error" in json.loads(line) for line in out.getvalue().splitlines()]
    assert said == [False, True, False, True, False, True, False]
    endless = io.BytesIO(good + b"\n" + b"\0" * (30 << 20))
    predict_stream(endless, out := io.StringIO())
    assert [("error" in json.loads(line)) for line in out.getvalue().splitlines()] == [False, True]
    assert endless.tell() < 10 << 20


def test_batched_lines_give_the_answers_of_single_lines() -> None:
    lines = [
        QWEN
        | {"drafter": "eagle3", "draft_len": d, "batch": b, "context_len": c, "id": f"{d}{b}{c}"}
        for d in (0, 3, 7)
        for b in (1, 8)
        for c in (512, 8192)
    ]
    lines.append({"id": "op", "op": "all_reduce", "gpu": "H100 SXM", "num_gpus": 8, "bytes": 65536})
    together = answer_lines(lines)
    for line, answer in zip(lines, together, strict=True):
        alone = answer_lines([line])[0]
        assert alone.keys() == answer.keys()
        for key, value in alone.items():
            assert answer[key] == (pytest.approx(value) if isinstance(value, float) else value)


def test_a_caller_that_waits_for_each_answer_never_hangs() -> None:
    command = [sys.executable, "-m", "planner", "predict", "-"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ.copy()
    ) as process:
        watchdog = threading.Timer(30, process.kill)
        watchdog.start()
        assert process.stdin
        assert process.stdout
        for number in range(3):
            process.stdin.write(json.dumps(QWEN | {"id": number}) + "\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["id"] == number
        process.stdin.close()
        watchdog.cancel()
    assert process.returncode == 0


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(
            [
                "id",
                "model",
                "gpu",
                "quant",
                "engine",
                "drafter",
                "draft_len",
                "tree",
                "batch",
                "op",
                "context_len",
                "workload",
                "num_gpus",
                "tp",
                "offload",
                "acceptance",
                "host",
            ]
        ),
        st.recursive(
            st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20),
            lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text(max_size=5), x, max_size=3),
            max_leaves=6,
        ),
    )
)
def test_any_object_gets_an_answer_or_an_error(line: dict[str, object]) -> None:
    (answer,) = answer_lines([{"model": "Qwen/Qwen3-8B", "gpu": "4090"} | line])
    assert "error" in answer or "speedup" in answer or "seconds" in answer


@given(draft_len=st.integers(1, 15), tokens=st.floats(1.0, 10.0))
@settings(max_examples=25, deadline=None)
def test_speedup_rises_with_acceptance(draft_len: int, tokens: float) -> None:
    low = _one(drafter="eagle3", draft_len=draft_len, tokens_per_round=tokens)
    high = _one(drafter="eagle3", draft_len=draft_len, tokens_per_round=tokens + 0.5)
    assert high["speedup"] > low["speedup"]


@pytest.mark.parametrize(
    "line_id", ["NaN", "-Infinity", "1e400", '{"a": [1e400]}', "[" * 99_999 + "]" * 99_999]
)
def test_an_id_that_json_cannot_hold_is_an_error_line(line_id: str) -> None:
    sink = io.StringIO()
    asked = f'{{"id": {line_id}, "model": "Qwen/Qwen3-8B", "gpu": "4090"}}\n{{"id": 2}}\n'
    predict_stream(io.BytesIO(asked.encode()), sink)
    first, second = map(json.loads, sink.getvalue().splitlines())
    assert first["id"] is None
    assert "the id" in first["error"] or "not JSON" in first["error"]
    assert second["id"] == 2


@pytest.mark.parametrize("batch", [10**400, -(10**400), 1e308, float("nan")])
def test_numbers_beyond_all_measure_are_error_lines(batch: float) -> None:
    (answer,) = answer_lines([{"model": "Qwen/Qwen3-8B", "gpu": "4090", "batch": batch}])
    assert "'batch'" in answer["error"]
    assert len(answer["error"]) < 200


MOE = {"op": "moe", "gpu": "h100", "engine": "trtllm", "num_tokens": 16, "hidden": 2048,
       "inter": 768, "num_experts": 128, "topk": 8}  # fmt: skip


@pytest.mark.parametrize("law", ["power_law", "power_law_x", "power_law_nan", "power_law_1e9"])
def test_a_power_law_needs_its_exponent(law: str) -> None:
    (answer,) = answer_lines([MOE | {"distribution": law}])
    assert "power_law_1.2" in answer["error"]


def test_experts_beyond_all_models_take_no_memory() -> None:
    (answer,) = answer_lines([MOE | {"num_experts": 128_000_000}])
    assert "at most 1024" in answer["error"]


def test_a_line_for_a_front_end_gets_the_times_of_what_it_runs() -> None:
    ollama, inside, other = answer_lines(
        [QWEN | {"engine": engine} for engine in ("Ollama 0.9", "llama.cpp", "exllamav2")]
    )
    assert ollama["t_target_s"] == inside["t_target_s"]
    assert "Ollama 0.9 is not modelled: the times are those of llama.cpp" in ollama["warnings"][0]
    assert "exllamav2 is not modelled: the times are those of vllm" in other["warnings"][0]


def test_an_engine_is_found_among_the_words_of_its_name() -> None:
    said = ("HF (EAGLE repo)", "vLLM 0.24.0 TP4", "ik_llama.cpp", "SGLang (fork)", "abacus")
    assert [engine_named(text) for text in said] == [
        "transformers", "vllm", "llama.cpp", "sglang", None,
    ]  # fmt: skip
    hub, eager = answer_lines([QWEN | {"engine": said[0]}, QWEN | {"engine": "transformers"}])
    assert hub["t_target_s"] == eager["t_target_s"]


@pytest.mark.parametrize(("engine", "each_s"), [("sglang", 800e-6), ("vllm", 0.0)])
def test_trees_cost_sglang_host_time_for_each_sequence(engine: str, each_s: float) -> None:
    line = {"model": "Qwen/Qwen3-8B", "gpu": "H100", "engine": engine, "drafter": "eagle3"}
    chain, tree = ({"steps": 4, "topk": topk, "verify_tokens": 16} for topk in (1, 4))
    answers = answer_lines([{**line, "tree": shape, "batch": 8} for shape in (chain, tree)])
    costs = [a["t_verify_s"] for a in answers]
    assert costs[1] - costs[0] == pytest.approx(7 * each_s, abs=1e-9)
