"""The prior: directions, published anchors, and its error on rows it has not seen."""

import math

import numpy as np
import pytest

from planner.acceptance.constants import WORKLOADS, constants, family_decay
from planner.acceptance.curve import geometric_tokens
from planner.acceptance.prior import AcceptanceQuery, prior
from planner.acceptance.published import Observation, observations
from planner.workload.records import WORKLOAD_NAMES

FAMILIES = ("external", "eagle3", "mtp", "dflash", "dspark")


def tokens(family: str, draft_len: int = 7, **asked: object) -> float:
    return float(prior(AcceptanceQuery(family, **asked)).tokens_per_round(draft_len))  # type: ignore[arg-type]


@pytest.mark.parametrize("family", [*FAMILIES, "ngram"])
def test_code_is_easier_than_creative_writing(family: str) -> None:
    assert tokens(family, workload="code") > tokens(family, workload="creative")


@pytest.mark.parametrize("family", FAMILIES)
def test_hotter_sampling_never_helps(family: str) -> None:
    assert tokens(family, temperature=1.0) < tokens(family, temperature=0.0)


def test_block_drafters_swing_more_with_the_content_than_mtp() -> None:
    """One GB10: DSpark 4.9 on math and 2.1 on prose, MTP nearly flat."""
    swing = {
        f: tokens(f, workload="math") / tokens(f, workload="creative") for f in ("dspark", "mtp")
    }
    assert swing["dspark"] > 1.3 * swing["mtp"]


def test_every_workload_class_has_its_numbers() -> None:
    numbers = constants()
    assert set(numbers.workload) == set(WORKLOADS)
    assert set(numbers.ngram.draft_share) == set(numbers.ngram.tokens_per_round) == set(WORKLOADS)


def test_the_classes_are_those_of_the_workload_parser() -> None:
    assert set(WORKLOADS) == set(WORKLOAD_NAMES) - {"random"}
    assert {row.workload for f in FAMILIES for row in observations(f)} <= set(WORKLOADS)


def test_published_rows_agree_with_their_own_inverse() -> None:
    """logit_first is stored so that nothing is solved at start-up; it must give back E[L]."""
    for family in FAMILIES:
        for row in observations(family):
            first = 1 / (1 + math.exp(-row.logit_first))
            back = geometric_tokens(first, family_decay(family), row.draft_len, 0.98)
            assert back == pytest.approx(row.tokens_per_round, rel=0.01) or first > 0.98


def test_an_unknown_workload_word_counts_as_unknown() -> None:
    assert tokens("mtp", workload="cooking") == tokens("mtp", workload="unknown")


@pytest.mark.parametrize(("context", "left"), [(2048, 1.0), (8192, 0.53), (20480, 0.065)])
def test_eagle3_beyond_its_training_falls_as_measured(context: int, left: float) -> None:
    """speculators issue 684: E[L] 2.295 at 2K, 1.687 at 8K, 1.084 at 20K; (E-1) falls to .065."""
    near = AcceptanceQuery("eagle3", draft_len=3, context_len=1024, drafter_max_position=2048)
    far = AcceptanceQuery("eagle3", draft_len=3, context_len=context, drafter_max_position=2048)
    share = (prior(far).tokens_per_round(3) - 1) / (prior(near).tokens_per_round(3) - 1)
    assert share == pytest.approx(left, abs=0.01)


def test_an_unknown_trained_length_widens_the_interval() -> None:
    short = prior(AcceptanceQuery("eagle3", context_len=2048))
    long = prior(AcceptanceQuery("eagle3", context_len=65536))
    assert long.log_sd / long.sensitivity(7) > 1.2 * short.log_sd / short.sensitivity(7)


def test_published_curves_of_the_same_drafter_move_the_prior_towards_them() -> None:
    """What is known of a drafter must tell more about it than the family alone."""
    errors: dict[bool, list[float]] = {True: [], False: []}
    for row in observations("eagle3"):
        for named in (True, False):
            asked = AcceptanceQuery(
                "eagle3",
                row.workload,
                row.temperature,
                drafter_id=row.drafter,
                target_name=row.target if named else "",
                draft_len=row.draft_len,
                tree_nodes=row.nodes,
                exclude_origins=frozenset() if named else frozenset({row.origin}),
            )
            predicted = prior(asked).tokens_per_round(row.draft_len)
            errors[named].append(abs(math.log(predicted / row.tokens_per_round)))
    assert np.median(errors[True]) < 0.85 * np.median(errors[False])


def test_excluded_origins_are_not_looked_up() -> None:
    origins = frozenset(row.origin for row in observations("dspark"))
    asked = AcceptanceQuery("dspark", target_name="Qwen/Qwen3-8B", exclude_origins=origins)
    assert prior(asked) == prior(AcceptanceQuery("dspark", exclude_origins=origins))
    assert "published curves" not in prior(asked).source


def test_look_up_drafting_drafts_in_few_rounds() -> None:
    curve = prior(AcceptanceQuery("ngram", workload="chat"))
    assert curve.draft_share < 0.5
    assert curve.tokens_per_round(5) == pytest.approx(1.35)


def test_a_tree_gets_more_out_of_one_depth() -> None:
    chain = AcceptanceQuery("eagle3", draft_len=7)
    tree = AcceptanceQuery("eagle3", draft_len=7, tree_nodes=60)
    assert prior(tree).tokens_per_round(7) > prior(chain).tokens_per_round(7)


def left_out(row: Observation) -> tuple[float, bool]:
    """(log error, inside the 80 % interval) of one row with its whole origin hidden."""
    curve = prior(
        AcceptanceQuery(
            row.family,
            row.workload,
            row.temperature,
            drafter_id=row.drafter,
            target_name=row.target,
            draft_len=row.draft_len,
            tree_nodes=row.nodes,
            exclude_origins=frozenset({row.origin}),
        )
    )
    low, high = curve.interval(row.draft_len)
    error = math.log(curve.tokens_per_round(row.draft_len) / row.tokens_per_round)
    return error, low <= row.tokens_per_round <= high


@pytest.mark.parametrize(
    ("family", "median"),
    [("eagle3", 0.14), ("mtp", 0.08), ("dflash", 0.17), ("dspark", 0.24)],
)
def test_leave_one_origin_out_error_and_coverage(family: str, median: float) -> None:
    results = [left_out(row) for row in observations(family)]
    errors, inside = zip(*results, strict=True)
    assert np.median(np.abs(errors)) <= median
    assert 0.76 <= np.mean(inside) <= 0.95
