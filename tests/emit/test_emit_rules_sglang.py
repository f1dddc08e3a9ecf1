"""Every rule of SGLang's book refuses a command that breaks it, and names itself."""

import pytest

from planner.emit.check import Facts, check
from planner.emit.rules import load_rules
from planner.emit.sglang_checks import predicates
from planner.errors import EngineUnsupported

BOOK = load_rules("sglang", "0.5.23")
PREDICATES = predicates(BOOK)
SPEC = "speculative-"
GOOD: dict[str, object] = {
    "max-running-requests": 4,
    "cuda-graph-max-bs-decode": 4,
    SPEC + "algorithm": "EAGLE3",
    SPEC + "draft-model-path": "org/draft",
    SPEC + "num-steps": 3,
    SPEC + "eagle-topk": 1,
    SPEC + "num-draft-tokens": 4,
}
NO_CHAIN: dict[str, object] = {
    SPEC + "num-steps": None,
    SPEC + "eagle-topk": None,
    SPEC + "num-draft-tokens": None,
}
DFLASH = {**NO_CHAIN, SPEC + "algorithm": "DFLASH", SPEC + "dflash-block-size": 16}
DSPARK = {**NO_CHAIN, SPEC + "algorithm": "DSPARK", SPEC + "dspark-block-size": 7}
NEXTN = {SPEC + "algorithm": "NEXTN", SPEC + "draft-model-path": None}
NGRAM = {
    **NO_CHAIN,
    SPEC + "algorithm": "NGRAM",
    SPEC + "draft-model-path": None,
    SPEC + "num-draft-tokens": 5,
    SPEC + "ngram-max-bfs-breadth": 1,
}
ADAPTIVE = {SPEC + "adaptive": True, SPEC + "adaptive-config": "adaptive.json"}
THREE = Facts(schedule_draft_lens=frozenset({0, 3}))

BROKEN: list[tuple[str, dict[str, object], Facts]] = [
    ("algorithm-given", {SPEC + "algorithm": None}, Facts()),
    ("method-keys", {SPEC + "draft-model-path": None}, Facts()),
    ("method-keys", {SPEC + "dspark-block-size": 3}, Facts()),
    ("method-keys", {**NGRAM, SPEC + "draft-model-path": "org/draft"}, Facts()),
    ("chain-tokens", {SPEC + "num-draft-tokens": 3}, Facts()),
    ("chain-tokens", {**NEXTN, SPEC + "num-draft-tokens": 5}, Facts()),
    ("steps-together", {SPEC + "num-steps": None}, Facts()),
    ("request-cap", {"max-running-requests": None, "cuda-graph-max-bs-decode": None}, Facts()),
    ("graphs-cover", {"cuda-graph-max-bs-decode": 3}, Facts()),
    ("graphs-cover", {"cuda-graph-max-bs-decode": None}, Facts()),
    ("dflash-block", {**DFLASH, SPEC + "num-draft-tokens": 15}, Facts()),
    ("dflash-window", {**DFLASH, SPEC + "draft-window-size": 15}, Facts()),
    ("dspark-tokens", {**DSPARK, SPEC + "num-draft-tokens": 7}, Facts()),
    (
        "dspark-tokens",
        {**DSPARK, SPEC + "dspark-block-size": None, SPEC + "num-draft-tokens": 1},
        Facts(),
    ),
    ("trained-block", DFLASH, Facts(max_draft_len=14)),
    ("trained-block", DSPARK, Facts(max_draft_len=6)),
    ("mtp-layers", NEXTN, Facts(mtp_layers=2)),
    ("pipeline", {"pp-size": 2}, Facts()),
    ("pipeline", {"pp-size": 2, **NEXTN}, Facts()),
    ("pipeline", {"pp-size": 2, "SGLANG_ENABLE_PP_SPEC": "1", **NEXTN, **ADAPTIVE}, THREE),
    ("pipeline", {"pp-size": 2, "SGLANG_ENABLE_PP_SPEC": "1", **NEXTN}, Facts(mtp_layers=3)),
    ("attention-data-parallel", {"attn-dp-size": 2, **NGRAM}, Facts()),
    ("attention-data-parallel", {"attn-dp-size": 2, **DFLASH}, Facts()),
    ("method-keys", {**DFLASH, SPEC + "adaptive": True}, THREE),
    ("adaptive-dropped", {**ADAPTIVE, "attn-dp-size": 2}, THREE),
    ("adaptive-dropped", {**ADAPTIVE, "enable-multi-layer-eagle": True}, THREE),
    ("adaptive-dropped", {**ADAPTIVE, SPEC + "eagle-topk": 4}, THREE),
    ("adaptive-steps", ADAPTIVE, Facts(schedule_draft_lens=frozenset({0, 5}))),
    ("lora", {"enable-lora": True, SPEC + "algorithm": "STANDALONE"}, Facts()),
    ("lora", {"enable-lora": True, **ADAPTIVE}, THREE),
    ("nvfp4-cache", {"kv-cache-dtype": "nvfp4", **DFLASH}, Facts()),
    ("ngram-chain", {**NGRAM, SPEC + "ngram-max-bfs-breadth": None}, Facts()),
    ("ngram-depth", {**NGRAM, SPEC + "num-draft-tokens": 19}, Facts()),
    ("target-states", {}, Facts(architecture="NemotronHForCausalLM")),
    ("target-states", DFLASH, Facts(architecture="Glm4MoeForCausalLM")),
    ("target-states", DSPARK, Facts(architecture="MiniMaxM2ForCausalLM")),
    ("draft-format", {"quantization": "fp8"}, Facts()),
]


def run(changes: dict[str, object], facts: Facts) -> None:
    settings = {k: v for k, v in {**GOOD, **changes}.items() if v is not None}
    check(BOOK, settings, facts, PREDICATES)


@pytest.mark.parametrize(
    ("changes", "facts"),
    [
        ({}, Facts(architecture="Glm4MoeForCausalLM")),
        (DSPARK, Facts(architecture="DeepseekV4ForCausalLM")),
        (DFLASH, Facts(max_draft_len=15)),
        ({**DFLASH, SPEC + "num-draft-tokens": 16}, Facts()),
        (DSPARK, Facts(max_draft_len=7)),
        ({**DSPARK, SPEC + "num-draft-tokens": 8}, Facts()),
        (NEXTN, Facts(mtp_layers=3)),
        ({"pp-size": 2, "SGLANG_ENABLE_PP_SPEC": "1", **NEXTN}, Facts()),
        ({**NGRAM, SPEC + "num-draft-tokens": 18}, Facts()),
        (ADAPTIVE, THREE),
        ({"enable-lora": True}, Facts()),
        ({"attn-dp-size": 2, "enable-dp-lm-head": True, **DFLASH}, Facts()),
    ],
)
def test_what_the_engine_takes_passes(changes: dict[str, object], facts: Facts) -> None:
    run(changes, facts)


@pytest.mark.parametrize(("rule_id", "changes", "facts"), BROKEN)
def test_the_rule_refuses(rule_id: str, changes: dict[str, object], facts: Facts) -> None:
    with pytest.raises(EngineUnsupported) as caught:
        run(changes, facts)
    assert f"({rule_id})" in str(caught.value)
    assert BOOK.rule(rule_id).source in str(caught.value)
    assert BOOK.rule(rule_id).use in str(caught.value)


def test_every_rule_has_a_predicate_and_a_broken_case() -> None:
    assert {rule.id for rule in BOOK.rules} == set(PREDICATES) == {case[0] for case in BROKEN}


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("cuda-graph-max-bs", 8, "cuda-graph-max-bs-decode"),
        ("enable-dp-attention", True, "attn-dp-size"),
        (SPEC + "algorithm", "EAGLE2", "EAGLE"),
        (SPEC + "num-step", 3, "speculative-num-steps"),
        ("kv-cache-dtype", "fp8", "fp8_e4m3"),
        ("quantization", "fp9", "fp8"),
        ("mem-fraction-static", 1.5, "at most 1"),
    ],
)
def test_values(name: str, value: object, expected: str) -> None:
    with pytest.raises(EngineUnsupported, match=r"sglang 0\.5\.23") as caught:
        run({name: value}, Facts())
    assert expected in str(caught.value)
