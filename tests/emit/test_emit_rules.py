"""Every rule of both rule books refuses a configuration that breaks it, and names itself."""

import shlex

import pytest

from planner.emit import llamacpp_checks, vllm_checks
from planner.emit.check import Facts, check
from planner.emit.llamacpp_checks import settings_of
from planner.emit.rules import RuleBook, load_rules
from planner.emit.vllm import capture_sizes
from planner.errors import EngineUnsupported

VLLM = load_rules("vllm", "0.33.0")
LLAMACPP = load_rules("llama.cpp", "b11434")
SPEC = "speculative-config."
SCHEDULE = SPEC + "num_speculative_tokens_per_batch_size"
SIZES = "compilation-config.cudagraph_capture_sizes"

GOOD_VLLM: dict[str, object] = {
    "max-model-len": 4096,
    "max-num-seqs": 4,
    "max-num-batched-tokens": 8192,
    "tensor-parallel-size": 4,
    SIZES: [4, 8, 16],
    SPEC + "method": "eagle3",
    SPEC + "model": "org/draft",
    SPEC + "num_speculative_tokens": 3,
}
VLLM_FACTS = Facts(context_len=4096)

BROKEN_VLLM: list[tuple[str, dict[str, object], Facts]] = [
    ("method-given", {SPEC + "method": None}, VLLM_FACTS),
    ("method-given", {SPEC + "num_speculative_tokens": None, SIZES: [4]}, VLLM_FACTS),
    ("spec-flags-exclusive", {"spec-method": "eagle3"}, VLLM_FACTS),
    ("draft-tp", {SPEC + "draft_tensor_parallel_size": 2}, VLLM_FACTS),
    ("mtp-divisible", {SPEC + "method": "mtp"}, Facts(mtp_layers=2)),
    ("trained-block", {SPEC + "method": "dspark"}, Facts(max_draft_len=2)),
    ("pipeline-drafts", {"pipeline-parallel-size": 2}, VLLM_FACTS),
    (
        "ngram-order",
        {
            SPEC + "method": "ngram",
            SPEC + "model": None,
            SPEC + "prompt_lookup_min": 5,
            SPEC + "prompt_lookup_max": 2,
        },
        VLLM_FACTS,
    ),
    ("schedule-form", {SCHEDULE: [[1, 4]]}, VLLM_FACTS),
    ("schedule-form", {SCHEDULE: [[4, 1, 3]]}, VLLM_FACTS),
    ("schedule-start", {SCHEDULE: [[2, 4, 3]]}, VLLM_FACTS),
    ("schedule-overlap", {SCHEDULE: [[1, 4, 3], [4, 8, 1]]}, VLLM_FACTS),
    ("schedule-range", {SCHEDULE: [[1, 4, 5]]}, VLLM_FACTS),
    ("schedule-range", {SCHEDULE: [[1, 4, -1]]}, VLLM_FACTS),
    ("schedule-data-parallel", {SCHEDULE: [[1, 4, 3]], "data-parallel-size": 2}, VLLM_FACTS),
    (
        "schedule-runner",
        {SCHEDULE: [[1, 4, 3]], SPEC + "method": "suffix", SPEC + "model": None},
        VLLM_FACTS,
    ),
    (
        "runner-conflict",
        {SPEC + "parallel_drafting": True, SPEC + "enable_adaptive_verification": True},
        VLLM_FACTS,
    ),
    ("lookahead-budget", {"max-num-batched-tokens": 3}, VLLM_FACTS),
    ("step-budget", {"max-num-batched-tokens": 15}, VLLM_FACTS),
    (
        "block-draft-budget",
        {SPEC + "method": "dflash", "max-num-batched-tokens": 16, "max-num-seqs": 5},
        VLLM_FACTS,
    ),
    ("seqs-budget", {"max-num-batched-tokens": 4, "max-num-seqs": 5, SIZES: [5]}, VLLM_FACTS),
    ("graphs-cover", {SIZES: [4, 8]}, VLLM_FACTS),
    ("graphs-cover", {SIZES: [4, 8, 17]}, VLLM_FACTS),
    ("graphs-cover", {SIZES: None, "max-num-seqs": 200}, VLLM_FACTS),
    ("graphs-cover", {SCHEDULE: [[1, 2, 3], [3, 4, 1]], SIZES: [4, 10]}, VLLM_FACTS),
    ("graphs-budget", {SIZES: [16, 9000]}, VLLM_FACTS),
    ("graphs-max", {"compilation-config.max_cudagraph_capture_size": 64}, VLLM_FACTS),
    ("synthetic", {SPEC + "synthetic_acceptance_length": 2.0}, VLLM_FACTS),
    ("synthetic", {SPEC + "rejection_sample_method": "synthetic"}, VLLM_FACTS),
    (
        "synthetic",
        {
            SPEC + "rejection_sample_method": "synthetic",
            SPEC + "synthetic_acceptance_rates": [0.2, 0.4, 0.1],
        },
        VLLM_FACTS,
    ),
    (
        "synthetic",
        {
            SPEC + "rejection_sample_method": "synthetic",
            SPEC + "synthetic_acceptance_length": 4.5,
        },
        VLLM_FACTS,
    ),
    ("fly", {SPEC + "rejection_sample_method": "fly", SPEC + "fly_window_size": 3}, VLLM_FACTS),
    (
        "adaptive",
        {SPEC + "enable_adaptive_verification": True, "enforce-eager": True},
        VLLM_FACTS,
    ),
    (
        "adaptive",
        {SPEC + "enable_adaptive_verification": True, "pipeline-parallel-size": 2},
        Facts(aux_over_pipeline=True),
    ),
    ("heterogeneous-vocab", {SPEC + "use_heterogeneous_vocab": True}, VLLM_FACTS),
    ("context-positions", {}, Facts(context_len=4096, max_position=2048)),
    ("draft-context", {SPEC + "max_model_len": 8192}, VLLM_FACTS),
    ("target-states", {}, Facts(architecture="Glm4MoeForCausalLM")),
    ("target-states", {SPEC + "method": "dspark"}, Facts(architecture="MixtralForCausalLM")),
    ("fp8-online", {"quantization": "fp8"}, VLLM_FACTS),
    ("method-keys", {SPEC + "prompt_lookup_min": 2}, VLLM_FACTS),
    ("method-keys", {SPEC + "model": None}, VLLM_FACTS),
    ("method-keys", {SPEC + "method": "ngram"}, VLLM_FACTS),
]

GOOD_LLAMACPP = shlex.split(
    "-m t.gguf -ngl all -c 8192 -np 2 -fa on -ctk f16 -ctv f16 -md d.gguf -ngld all "
    "--spec-type draft-simple --spec-draft-n-max 3"
)
LLAMACPP_FACTS = Facts(context_len=4096)

BROKEN_LLAMACPP: list[tuple[str, str, Facts]] = [
    ("spec-type", "-m t --spec-type draft", LLAMACPP_FACTS),
    ("zero-is-not-off", "-m t --spec-type draft-mtp --spec-draft-n-max 0", LLAMACPP_FACTS),
    ("orphan-draft-flags", "-m t --spec-draft-n-max 3", LLAMACPP_FACTS),
    ("orphan-draft-flags", "-m t -md d -ngld all", LLAMACPP_FACTS),
    ("draft-model-given", "-m t --spec-type draft-eagle3", LLAMACPP_FACTS),
    ("draft-model-given", "-m t --spec-type ngram-mod -md d -ngld all", LLAMACPP_FACTS),
    ("draft-on-gpu", "-m t --spec-type draft-simple -md d", LLAMACPP_FACTS),
    ("draft-on-gpu", "-m t --spec-type draft-simple -md d -ngld 0", LLAMACPP_FACTS),
    ("ngram-sizes", "-m t --spec-type ngram-simple --spec-ngram-simple-size-m 5", LLAMACPP_FACTS),
    ("quantised-v", "-m t -fa off -ctv q8_0", LLAMACPP_FACTS),
    ("quantised-heads", "-m t -fa on -ctk q8_0", Facts(head_dims=frozenset({80}))),
    ("split-tensor", "-m t -fa off -sm tensor", LLAMACPP_FACTS),
    (
        "trained-block",
        "-m t --spec-type draft-dflash -md d -ngld all --spec-draft-n-max 16",
        Facts(max_draft_len=15),
    ),
    ("mtp-heads", "-m t --spec-type draft-mtp --spec-draft-n-max 4", Facts(mtp_layers=3)),
    ("slot-context", "-m t -c 4096 -np 2", LLAMACPP_FACTS),
    ("slot-context", "-m t -c 8200 -np 2", LLAMACPP_FACTS),
    (
        "verify-batch",
        "-m t -np 200 --spec-type draft-mtp --spec-draft-n-max 15 -ub 4096",
        Facts(),
    ),
    ("verify-ubatch", "-m t -np 64 --spec-type draft-mtp --spec-draft-n-max 15", Facts()),
    ("verify-ubatch", "-m t -ub 4096", Facts()),
    ("tensor-split", "-m t -ts 1,1", Facts(num_gpus=3)),
    (
        "hidden-states",
        "-m t --spec-type draft-eagle3 -md d -ngld all",
        Facts(architecture="DeepseekV3ForCausalLM"),
    ),
    (
        "hidden-states",
        "-m t --spec-type draft-dflash -md d -ngld all",
        Facts(architecture="deepseek2"),
    ),
    ("mtp-graph", "-m t --spec-type draft-mtp", Facts(architecture="MiMoForCausalLM")),
    ("draft-min", "-m t --spec-type draft-mtp --spec-draft-n-min 4", Facts()),
    ("synthetic", "-m t --spec-type draft-mtp --spec-synth-rates 0.5,0.2", Facts()),
]


def check_vllm(changes: dict[str, object], facts: Facts) -> None:
    settings = {k: v for k, v in {**GOOD_VLLM, **changes}.items() if v is not None}
    check(VLLM, settings, facts, vllm_checks.predicates(VLLM))


def check_llamacpp(argv: list[str], facts: Facts) -> None:
    settings = settings_of(LLAMACPP, argv)
    check(LLAMACPP, settings, facts, llamacpp_checks.predicates(LLAMACPP))


def test_the_unbroken_configurations_pass() -> None:
    check_vllm({}, VLLM_FACTS)
    check_llamacpp(GOOD_LLAMACPP, LLAMACPP_FACTS)


@pytest.mark.parametrize(("rule_id", "changes", "facts"), BROKEN_VLLM)
def test_vllm_refuses(rule_id: str, changes: dict[str, object], facts: Facts) -> None:
    with pytest.raises(EngineUnsupported) as caught:
        check_vllm(changes, facts)
    assert f"({rule_id})" in str(caught.value)
    assert VLLM.rule(rule_id).source in str(caught.value)
    assert VLLM.rule(rule_id).use in str(caught.value)


@pytest.mark.parametrize(("rule_id", "line", "facts"), BROKEN_LLAMACPP)
def test_llamacpp_refuses(rule_id: str, line: str, facts: Facts) -> None:
    with pytest.raises(EngineUnsupported) as caught:
        check_llamacpp(line.split(), facts)
    assert f"({rule_id})" in str(caught.value)
    assert LLAMACPP.rule(rule_id).source in str(caught.value)


@pytest.mark.parametrize(
    ("book", "ids", "broken"),
    [
        (VLLM, set(vllm_checks.predicates(VLLM)), {case[0] for case in BROKEN_VLLM}),
        (
            LLAMACPP,
            set(llamacpp_checks.predicates(LLAMACPP)),
            {case[0] for case in BROKEN_LLAMACPP},
        ),
    ],
)
def test_every_rule_has_a_predicate_and_a_broken_case(
    book: RuleBook, ids: set[str], broken: set[str]
) -> None:
    assert {rule.id for rule in book.rules} == ids == broken


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        (SPEC + "tensor_parallel_size", 2, "draft_tensor_parallel_size"),
        (SPEC + "num_speculative_token", 2, "num_speculative_tokens"),
        (SPEC + "method", "eagle-3", "eagle3"),
        (SPEC + "attention_backend", "FLASHINFER_TS", "FLASHINFER"),
        (SPEC + "attention_backend", "B12X_MLA_SPARSE", "FLASH"),
        (SPEC + "num_speculative_tokens", 0, "above 0"),
        ("kv-cache-dtype", "q8_0", "kv-cache-dtype must be"),
        ("gpu-memory-utilization", 1.2, "at most 1"),
        ("max-num-seqs", 2.5, "whole number"),
        ("max-num-seqs", float("inf"), "whole number"),
        (SIZES, [], "a list"),
        (SIZES, ["x"], "a number"),
    ],
)
def test_vllm_values(name: str, value: object, expected: str) -> None:
    with pytest.raises(EngineUnsupported, match=r"vllm 0\.33\.0") as caught:
        check_vllm({name: value}, VLLM_FACTS)
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("--draft-max 8", "--spec-draft-n-max"),
        ("--draft-min 1", "--spec-draft-n-min"),
        ("--spec-draft-conf-min 0.3", "--spec-draft-p-min"),
        ("--spec-ngram-simple-size-n 5000", "at most 1024"),
        ("--cache-type-k fp8", "q8_0"),
        ("--spec-draft-ngl many", "auto or all"),
        ("--ctx-sise 5", "--ctx-size"),
        ("-c", "needs a value"),
    ],
)
def test_llamacpp_values(line: str, expected: str) -> None:
    with pytest.raises(EngineUnsupported) as caught:
        check_llamacpp([*GOOD_LLAMACPP, *line.split()], LLAMACPP_FACTS)
    assert expected in str(caught.value)


def test_aliases_are_one_flag() -> None:
    short = settings_of(LLAMACPP, ["-md", "d", "-ctk", "f16"])
    long = settings_of(LLAMACPP, ["--spec-draft-model", "d", "--cache-type-k", "f16"])
    assert short == long == {"-md": "d", "-ctk": "f16"}


def test_tiers_carry_gaps_and_tail() -> None:
    """1-16: 3, gap 17-31 carries 3, 32-64: 2, tail 65-100 carries 2; K above D is clamped."""
    assert vllm_checks.tiers([[1, 16, 3], [32, 64, 2]], 3, 100) == {3: 31, 2: 100}
    assert vllm_checks.tiers([[1, 16, 9]], 3, 100) == {3: 100}
    assert vllm_checks.tiers([], 3, 100) == {3: 100}


def test_capture_sizes_are_multiples_on_the_engines_grid() -> None:
    assert capture_sizes({3: 10}) == [4, 8, 16, 32, 40]
    assert capture_sizes({2: 4, 0: 9}) == [1, 2, 3, 4, 6, 8, 9, 12]
    assert capture_sizes({15: 300})[-2:] == [16 * 288, 16 * 300]


@pytest.mark.parametrize(
    ("line", "architecture"),
    [
        ("-m t --spec-type draft-eagle3 -md d -ngld all", "Qwen3MoeForCausalLM"),
        ("-m t --spec-type draft-dspark -md d -ngld all", "qwen35"),
        ("-m t --spec-type draft-eagle3 -md d -ngld all", ""),
        ("-m t --spec-type draft-mtp", "DeepseekV3ForCausalLM"),
        ("-m t --spec-type draft-mtp -md mtp.gguf -ngld all", "MiMoForCausalLM"),
        ("-m t --spec-type draft-simple -md d -ngld all", "deepseek2"),
    ],
)
def test_llamacpp_takes_targets_whose_graphs_have_what_the_drafter_reads(
    line: str, architecture: str
) -> None:
    check_llamacpp(line.split(), Facts(architecture=architecture))
