"""Every rule of TensorRT-LLM's book refuses a configuration that breaks it, and names itself."""

import pytest

from planner.emit.check import Facts, check
from planner.emit.rules import load_rules
from planner.emit.trtllm_checks import predicates
from planner.errors import EngineUnsupported

BOOK = load_rules("trtllm", "0004396720")
PREDICATES = predicates(BOOK)
SPEC = "speculative_config."
GRAPHS = "cuda_graph_config."
GOOD: dict[str, object] = {
    "max_batch_size": 4,
    "max_num_tokens": 8192,
    GRAPHS + "batch_sizes": [1, 2, 4],
    GRAPHS + "enable_padding": True,
    SPEC + "decoding_type": "Eagle3",
    SPEC + "speculative_model": "org/draft",
    SPEC + "max_draft_len": 3,
}
NGRAM = {
    SPEC + "decoding_type": "NGram",
    SPEC + "speculative_model": None,
    "disable_overlap_scheduler": True,
}
SA = {SPEC + "decoding_type": "SA", SPEC + "speculative_model": None}
SCHEDULE = SPEC + "draft_len_schedule"

BROKEN: list[tuple[str, dict[str, object], Facts]] = [
    ("type-given", {SPEC + "decoding_type": None}, Facts()),
    ("method-keys", {SPEC + "speculative_model": None}, Facts()),
    ("method-keys", {SPEC + "is_keep_all": True}, Facts()),
    ("method-keys", {**NGRAM, SPEC + "speculative_model": "org/draft"}, Facts()),
    ("draft-len-positive", {SPEC + "max_draft_len": 0}, Facts()),
    ("schedule-start", {SCHEDULE: {1: 2, 4: 1}}, Facts()),
    ("schedule-start", {SCHEDULE: {0: 3}}, Facts()),
    ("schedule-range", {SCHEDULE: {1: 3, 4: 5}}, Facts()),
    ("schedule-range", {SCHEDULE: {1: 3, 4: -1}}, Facts()),
    ("schedule-exclusive", {SCHEDULE: {4: 3}, SPEC + "max_concurrency": 4}, Facts()),
    ("schedule-type", {SPEC + "decoding_type": "DSpark", SCHEDULE: {4: 3}}, Facts()),
    ("schedule-type", {**NGRAM, SCHEDULE: {4: 3}}, Facts()),
    ("trained-block", {SPEC + "decoding_type": "DFlash"}, Facts(max_draft_len=2)),
    ("dspark-block", {SPEC + "decoding_type": "DSpark"}, Facts(max_draft_len=7)),
    ("dspark-block", {SPEC + "decoding_type": "DSpark", SPEC + "block_size": 4}, Facts()),
    ("mtp-layers", {SPEC + "decoding_type": "MTP"}, Facts(mtp_layers=2)),
    ("pipeline", {"pipeline_parallel_size": 2}, Facts()),
    ("ngram-overlap", {**NGRAM, "disable_overlap_scheduler": None}, Facts()),
    ("sa-match", {**SA, SPEC + "max_matching_ngram_size": 0}, Facts()),
    ("sa-match", {**NGRAM, SPEC + "max_matching_ngram_size": -1}, Facts()),
    ("sa-pool", {**SA, SPEC + "global_pool_size": 8}, Facts()),
    (
        "sa-pool",
        {**SA, SPEC + "global_pool_size": 3, SPEC + "enable_global_pool": True},
        Facts(),
    ),
    ("graphs-max", {GRAPHS + "max_batch_size": 8}, Facts()),
    ("graphs-cover", {GRAPHS + "batch_sizes": [1, 2]}, Facts()),
    ("graphs-cover", {GRAPHS + "enable_padding": None}, Facts()),
    ("graphs-cover", {GRAPHS + "batch_sizes": None, "max_batch_size": 129}, Facts()),
    ("token-budget", {"max_num_tokens": 15}, Facts()),
    ("token-budget", {SPEC + "decoding_type": "PARD", "max_num_tokens": 23}, Facts()),
]


def run(changes: dict[str, object], facts: Facts) -> None:
    settings = {k: v for k, v in {**GOOD, **changes}.items() if v is not None}
    check(BOOK, settings, facts, PREDICATES)


@pytest.mark.parametrize(
    ("changes", "facts"),
    [
        ({}, Facts()),
        ({SCHEDULE: {1: 3, 4: 1}}, Facts()),
        (NGRAM, Facts()),
        ({**SA, SPEC + "max_matching_ngram_size": -1}, Facts()),
        ({SPEC + "decoding_type": "DSpark"}, Facts(max_draft_len=3)),
        ({SPEC + "decoding_type": "PARD", "max_num_tokens": 24}, Facts()),
        ({SPEC + "decoding_type": "MTP", SPEC + "speculative_model": None}, Facts(mtp_layers=3)),
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
        (SPEC + "decoding_type", "DraftTarget", "Draft_Target"),
        (SPEC + "use_sa_spec", True, "sa_config"),
        (SPEC + "num_nextn_predict_layers", 3, "max_draft_len"),
        (SPEC + "max_batch_size", 4, "max_batch_size"),
        (SCHEDULE, [[1, 4, 3]], "a mapping of whole numbers"),
        (SCHEDULE, {}, "a mapping of whole numbers"),
        (SCHEDULE, {1: 2.5}, "a mapping of whole numbers"),
        ("kv_cache_config.dtype", "int8", "auto"),
        ("max_batchsize", 4, "max_batch_size"),
    ],
)
def test_values(name: str, value: object, expected: str) -> None:
    with pytest.raises(EngineUnsupported, match="trtllm 0004396720") as caught:
        run({name: value}, Facts())
    assert expected in str(caught.value)
