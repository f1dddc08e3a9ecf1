"""TensorRT-LLM's relations between settings: one predicate per rule id of its rule book.

D is `speculative_config.max_draft_len`; a verification step has 1+D rows per request.
"""

from collections.abc import Mapping

from planner.emit.check import Facts, Predicate, Settings, integer, keys_of_method, numbers, text
from planner.emit.rules import RuleBook

_SPEC = "speculative_config."
_GRAPHS = "cuda_graph_config."
SCHEDULED = ("Eagle3", "MTP", "PARD", "DFlash", "Draft_Target", "SA")
"""Decoding types that change D at run time."""
_DEFAULT_GRAPH_BATCH = 128


def predicates(book: RuleBook) -> Mapping[str, Predicate]:
    """All predicates, by rule id."""
    keys = keys_of_method(book, _SPEC, "decoding_type", "speculative_model")
    return {**_PREDICATES, "method-keys": keys}


def rows_of(decoding_type: str, draft_len: int) -> int:
    """Rows of one request in a step: PARD fills its mask tokens into the target's pass."""
    return 2 * draft_len if decoding_type == "PARD" and draft_len else 1 + draft_len


def _type(settings: Settings) -> str:
    return text(settings, _SPEC + "decoding_type") or ""


def _draft_len(settings: Settings) -> int:
    return integer(settings, _SPEC + "max_draft_len") or 0


def _schedule(settings: Settings) -> dict[int, int]:
    value = settings.get(_SPEC + "draft_len_schedule")
    return {int(k): int(v) for k, v in value.items()} if isinstance(value, dict) else {}


def _speculates(settings: Settings) -> bool:
    return any(name.startswith(_SPEC) for name in settings)


def _type_given(settings: Settings, _facts: Facts) -> str | None:
    missing = [k for k in ("decoding_type", "max_draft_len") if _SPEC + k not in settings]
    return f"no {' and no '.join(missing)}" if _speculates(settings) and missing else None


def _draft_len_positive(settings: Settings, _facts: Facts) -> str | None:
    return "max_draft_len 0" if _speculates(settings) and _draft_len(settings) <= 0 else None


def _schedule_start(settings: Settings, _facts: Facts) -> str | None:
    schedule = _schedule(settings)
    if not schedule:
        return None
    first = min(schedule)
    if first >= 1 and schedule[first] == _draft_len(settings):
        return None
    return f"{{{first}: {schedule[first]}}} with max_draft_len {_draft_len(settings)}"


def _schedule_range(settings: Settings, _facts: Facts) -> str | None:
    wrong = [d for d in _schedule(settings).values() if not 0 <= d <= _draft_len(settings)]
    return f"D = {wrong[0]} with max_draft_len {_draft_len(settings)}" if wrong else None


def _schedule_exclusive(settings: Settings, _facts: Facts) -> str | None:
    both = _schedule(settings) and _SPEC + "max_concurrency" in settings
    return "both" if both else None


def _schedule_type(settings: Settings, _facts: Facts) -> str | None:
    wrong = _schedule(settings) and _type(settings) not in SCHEDULED
    return f"a schedule with {_type(settings)}" if wrong else None


def _trained_block(settings: Settings, facts: Facts) -> str | None:
    limit, draft_len = facts.max_draft_len, _draft_len(settings)
    if _type(settings) != "DFlash" or limit is None or draft_len <= limit:
        return None
    return f"D = {draft_len}, trained block {limit}"


def _dspark_block(settings: Settings, facts: Facts) -> str | None:
    if _type(settings) != "DSpark":
        return None
    draft_len = _draft_len(settings)
    block = integer(settings, _SPEC + "block_size") or facts.max_draft_len or draft_len
    return f"D = {draft_len}, block {block}" if block != draft_len else None


def _mtp_layers(settings: Settings, facts: Facts) -> str | None:
    layers, draft_len = facts.mtp_layers or 1, _draft_len(settings)
    if _type(settings) != "MTP" or layers == 1 or draft_len <= layers:
        return None
    return f"D = {draft_len} with {layers} layers"


def _pipeline(settings: Settings, _facts: Facts) -> str | None:
    stages = integer(settings, "pipeline_parallel_size") or 1
    return f"{stages} stages" if _speculates(settings) and stages > 1 else None


def _ngram_overlap(settings: Settings, _facts: Facts) -> str | None:
    silent = _type(settings) == "NGram" and not settings.get("disable_overlap_scheduler")
    return "the overlap scheduler on" if silent else None


def _sa_match(settings: Settings, _facts: Facts) -> str | None:
    size, kind = integer(settings, _SPEC + "max_matching_ngram_size"), _type(settings)
    if size is None or size > 0 or (kind == "SA" and size == -1):
        return None
    return f"{size} for {kind}"


def _sa_pool(settings: Settings, _facts: Facts) -> str | None:
    size = integer(settings, _SPEC + "global_pool_size")
    if size is None:
        return None
    if not settings.get(_SPEC + "enable_global_pool"):
        return "global_pool_size alone"
    most = integer(settings, "max_batch_size") or 0
    return f"{size} slots for {most} requests" if size < most else None


def _graphs_max(settings: Settings, _facts: Facts) -> str | None:
    most, sizes = (
        integer(settings, _GRAPHS + "max_batch_size"),
        numbers(settings, _GRAPHS + "batch_sizes"),
    )
    if not most or not sizes or max(sizes) == most:
        return None
    return f"{most} beside sizes up to {max(sizes):g}"


def _graphs_cover(settings: Settings, _facts: Facts) -> str | None:
    seqs = integer(settings, "max_batch_size")
    sizes = numbers(settings, _GRAPHS + "batch_sizes")
    most = max(sizes) if sizes else integer(settings, _GRAPHS + "max_batch_size")
    reach = most or _DEFAULT_GRAPH_BATCH
    if seqs is None or (reach >= seqs and settings.get(_GRAPHS + "enable_padding")):
        return None
    padded = "" if settings.get(_GRAPHS + "enable_padding") else ", no padding"
    return f"graphs up to {reach:g} for {seqs} requests{padded}"


def _token_budget(settings: Settings, _facts: Facts) -> str | None:
    seqs, budget = integer(settings, "max_batch_size"), integer(settings, "max_num_tokens")
    if seqs is None or budget is None:
        return None
    need = seqs * rows_of(_type(settings), _draft_len(settings))
    return f"{budget} tokens for {need} rows" if need > budget else None


_PREDICATES: dict[str, Predicate] = {
    "type-given": _type_given,
    "draft-len-positive": _draft_len_positive,
    "schedule-start": _schedule_start,
    "schedule-range": _schedule_range,
    "schedule-exclusive": _schedule_exclusive,
    "schedule-type": _schedule_type,
    "trained-block": _trained_block,
    "dspark-block": _dspark_block,
    "mtp-layers": _mtp_layers,
    "pipeline": _pipeline,
    "ngram-overlap": _ngram_overlap,
    "sa-match": _sa_match,
    "sa-pool": _sa_pool,
    "graphs-max": _graphs_max,
    "graphs-cover": _graphs_cover,
    "token-budget": _token_budget,
}
