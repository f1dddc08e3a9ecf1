from dataclasses import replace

import pytest

from planner.arch.catalog import load_catalog_model
from planner.drafters.records import FAMILIES
from planner.drafters.refusals import WHEN, Drafting, refusals, rules, version_of
from planner.drafters.registry import family_of

QWEN = load_catalog_model("Qwen/Qwen3-8B")
HYBRID = load_catalog_model("Qwen/Qwen3.5-27B")


def drafting(
    family: str, version: str | None, engine: str = "vllm", draft_len: int = 3
) -> Drafting:
    spec = family_of(family).template(QWEN)  # type: ignore[arg-type]
    return Drafting(QWEN, engine, version, spec, draft_len)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("0.26.0", (0, 26, 0)), ("b9850", (9850,)), ("v0.27.1rc2", (0, 27, 1)), ("newest", ())],
)
def test_versions_and_builds_are_numbers(text: str, numbers: tuple[int, ...]) -> None:
    assert version_of(text) == numbers


def test_a_short_block_is_refused_by_the_version_that_says_so() -> None:
    at = drafting("dspark", "0.26.0")
    at = replace(at, spec=replace(at.spec, max_draft_len=7))
    (said,) = refusals(at)
    assert "rejects fewer draft tokens (3) than DSpark's block (7); use D = 7" in said
    assert "50012" in said
    assert refusals(replace(at, draft_len=7)) == ()
    for other in ("0.25.0", "0.27.0", None, "newest"):
        assert refusals(replace(at, engine_version=other)) == ()


def test_old_builds_do_not_roll_back_recurrent_states() -> None:
    at = replace(drafting("external", "b8200", "llama.cpp"), arch=HYBRID)
    assert "recurrent state" in refusals(at)[0]
    assert refusals(replace(at, engine_version="b9850")) == ()
    assert refusals(replace(at, arch=QWEN)) == ()
    assert refusals(replace(at, draft_len=0)) == ()


def test_each_rule_ends_has_its_predicate_and_known_families() -> None:
    for rule in rules():
        assert rule.when in WHEN
        assert rule.families <= set(FAMILIES)
        assert rule.since < rule.before
        assert rule.source.startswith("https://")
    assert len({rule.rule_id for rule in rules()}) == len(rules())
