"""TensorRT-LLM's /metrics answer: a JSON list of iterations, not a Prometheus page.

Names: `SpecDecodingStats` of cpp/include/tensorrt_llm/executor/types.h.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from hwprofiles.errors import InputError
from planner.acceptance.counts import RoundCounts

KEY = "specDecodingStats"
_MOST_ITERATIONS = 100_000
_COUNTERS = ("numRequestsWithDraftTokens", "numDraftTokens", "numAcceptedTokens")


def counts_from_iterations(text: str, where: str) -> RoundCounts:
    """Sums over all iterations: a request with draft tokens is one drafted round.

    Raises:
        InputError: no JSON, too many iterations, counters that cannot be, or nothing drafted.
    """
    drafts = drafted = accepted = 0
    for number, stats in enumerate(_iterations(text, where)):
        if number >= _MOST_ITERATIONS:
            raise InputError(f"{where} has more than {_MOST_ITERATIONS} iterations; cut it")
        here = [_count(stats.get(name), name, where) for name in _COUNTERS]
        drafts, drafted, accepted = drafts + here[0], drafted + here[1], accepted + here[2]
    if accepted > drafted:
        raise InputError(
            f"{where}: {accepted} tokens accepted of {drafted} drafted; fetch it again"
        )
    if drafts <= 0 or drafted <= 0:
        raise InputError(
            f"{where} counts no drafts yet: send your own traffic first (iteration statistics need "
            "enable_iter_perf_stats), then fetch /metrics again"
        )
    return RoundCounts(
        tokens_per_drafted_round=1.0 + accepted / drafts,
        draft_len=max(1, -(-drafted // drafts)),
        rounds=drafts,
        mean_draft_len=drafted / drafts if drafted % drafts else None,
        note="TensorRT-LLM iterations",
    )


def _iterations(text: str, where: str) -> Iterator[Mapping[str, Any]]:
    """The statistics of each iteration: of one JSON text, or of one a line."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        try:
            data = [json.loads(line) for line in text.splitlines() if line.strip()]
        except (ValueError, RecursionError) as error:
            raise InputError(f"{where} is not JSON, as TensorRT-LLM's /metrics is") from error
    for item in data if isinstance(data, list) else [data]:
        for one in item if isinstance(item, list) else [item]:
            stats = one.get(KEY) if isinstance(one, dict) else None
            if isinstance(stats, dict):
                yield stats


def _count(value: object, name: str, where: str) -> int:
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 10**15:
        raise InputError(f"{where}: {name} must be a count, found {ascii(value)[:40]}")
    return value
