"""vLLM's relations between settings: one predicate per rule id of its rule book.

D is `num_speculative_tokens`; a verification step has 1+D rows per sequence.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from planner.emit.check import (
    Facts,
    Predicate,
    Settings,
    integer,
    keys_of_method,
    numbers,
    text,
)
from planner.emit.rules import RuleBook

_SPEC = "speculative-config."
_SCHEDULE = _SPEC + "num_speculative_tokens_per_batch_size"
_SIZES = "compilation-config.cudagraph_capture_sizes"
_BLOCK = ("dflash", "dspark")
_V1_SCHEDULE = ("ngram", "eagle", "eagle3", "mtp", "draft_model", "dflash")
_DEFAULT_GRAPH_CEILING = 512
"""vllm/config/vllm.py:2463; 1024 on SM100, which settings alone do not tell."""


def lookahead(method: str, draft_len: int) -> int:
    """KV slots that a draft reserves past the verified tokens (vllm/config/vllm.py:626-652).

    DSpark counts one more where its checkpoint does not sample from the anchor; that is assumed.
    """
    if method in _BLOCK:
        return draft_len + 1
    return draft_len if method in ("eagle", "eagle3", "mtp", "draft_model") else 0


def extra_slots(method: str, draft_len: int, *, parallel: bool) -> int:
    """Rows that drafting adds to a step for each sequence (vllm/config/speculative.py:2058)."""
    if method in _BLOCK:
        return 0
    if parallel:
        return draft_len if method == "draft_model" else draft_len - 1
    return 1 if method == "draft_model" else 0


def tiers(schedule: Sequence[Sequence[int]], draft_len: int, max_seqs: int) -> dict[int, int]:
    """K -> the widest batch that runs with it; gaps and the tail carry the K before them."""
    if not schedule:
        return {draft_len: max_seqs}
    widest: dict[int, int] = {}
    ordered = sorted(schedule, key=lambda entry: entry[0])
    for entry, following in zip(ordered, [*ordered[1:], None], strict=True):
        last = max_seqs if following is None else following[0] - 1
        if entry[0] <= max_seqs:
            widest[min(entry[2], draft_len)] = min(last, max_seqs)
    return widest


def predicates(book: RuleBook) -> Mapping[str, Predicate]:
    """All predicates, by rule id."""
    return {
        **_PREDICATES,
        "method-keys": keys_of_method(book, _SPEC, "method", "model"),
        "target-states": _target_states(book.lists["no_hidden_states"]),
    }


def _method(settings: Settings) -> str:
    return text(settings, _SPEC + "method") or ""


def _draft_len(settings: Settings) -> int:
    return integer(settings, _SPEC + "num_speculative_tokens") or 0


def _schedule(settings: Settings) -> tuple[tuple[int, int, int], ...]:
    """The well-formed entries of the schedule."""
    value = settings.get(_SCHEDULE)
    entries = value if isinstance(value, Sequence) else ()
    return tuple(tuple(e) for e in entries if isinstance(e, (list, tuple)) and len(e) == 3)


def _speculates(settings: Settings) -> bool:
    return any(name.startswith(_SPEC) for name in settings)


def _target_states(classes: tuple[str, ...]) -> Predicate:
    def predicate(settings: Settings, facts: Facts) -> str | None:
        wrong = _method(settings) in (*_BLOCK, "eagle3") and facts.architecture in classes
        return f"{_method(settings)} with {facts.architecture}" if wrong else None

    return predicate


def _method_given(settings: Settings, _facts: Facts) -> str | None:
    if not _speculates(settings):
        return None
    missing = [k for k in ("method", "num_speculative_tokens") if _SPEC + k not in settings]
    return f"no {' and no '.join(missing)}" if missing else None


def _spec_flags_exclusive(settings: Settings, _facts: Facts) -> str | None:
    pairs = (
        ("spec-method", "method"),
        ("spec-model", "model"),
        ("spec-tokens", "num_speculative_tokens"),
    )
    both = [flag for flag, key in pairs if flag in settings and _SPEC + key in settings]
    return f"--{both[0]} beside the JSON key" if both else None


def _draft_tp(settings: Settings, _facts: Facts) -> str | None:
    draft = integer(settings, _SPEC + "draft_tensor_parallel_size")
    target = integer(settings, "tensor-parallel-size") or 1
    if draft is None or draft in (1, target):
        return None
    return f"draft {draft} for target {target}"


def _mtp_divisible(settings: Settings, facts: Facts) -> str | None:
    layers, draft_len = facts.mtp_layers, _draft_len(settings)
    if _method(settings) != "mtp" or not layers or draft_len <= layers or draft_len % layers == 0:
        return None
    return f"D = {draft_len} with n_predict = {layers} (nearest: {draft_len // layers * layers})"


def _trained_block(settings: Settings, facts: Facts) -> str | None:
    limit, draft_len = facts.max_draft_len, _draft_len(settings)
    if _method(settings) not in _BLOCK or limit is None or draft_len <= limit:
        return None
    return f"D = {draft_len}, trained block {limit}"


def _pipeline_drafts(settings: Settings, facts: Facts) -> str | None:
    stages, method = integer(settings, "pipeline-parallel-size") or 1, _method(settings)
    if stages == 1 or facts.aux_over_pipeline or method not in (*_BLOCK, "eagle3"):
        return None
    return f"method {method} over {stages} pipeline stages"


def _ngram_order(settings: Settings, _facts: Facts) -> str | None:
    low = integer(settings, _SPEC + "prompt_lookup_min")
    high = integer(settings, _SPEC + "prompt_lookup_max")
    return f"{low} > {high}" if low is not None and high is not None and low > high else None


def _schedule_form(settings: Settings, _facts: Facts) -> str | None:
    value = settings.get(_SCHEDULE)
    if value is None:
        return None
    good = _schedule(settings)
    if not isinstance(value, Sequence) or not value or len(good) != len(value):
        return repr(value)
    bad = [entry for entry in good if not 1 <= entry[0] <= entry[1]]
    return repr(bad[0]) if bad else None


def _schedule_start(settings: Settings, _facts: Facts) -> str | None:
    entries = _schedule(settings)
    first = min((entry[0] for entry in entries), default=1)
    return f"a first range that starts at {first}" if first != 1 else None


def _schedule_overlap(settings: Settings, _facts: Facts) -> str | None:
    entries = sorted(_schedule(settings))
    for before, after in pairwise(entries):
        if after[0] <= before[1]:
            return f"{list(before)} and {list(after)}"
    return None


def _schedule_range(settings: Settings, _facts: Facts) -> str | None:
    limit = _draft_len(settings)
    bad = [entry for entry in _schedule(settings) if not 0 <= entry[2] <= limit]
    return f"K = {bad[0][2]} with num_speculative_tokens {limit}" if bad else None


def _schedule_data_parallel(settings: Settings, _facts: Facts) -> str | None:
    ranks = integer(settings, "data-parallel-size") or 1
    return f"data-parallel-size {ranks}" if _schedule(settings) and ranks > 1 else None


def _schedule_runner(settings: Settings, _facts: Facts) -> str | None:
    method = _method(settings)
    dropped = method in ("suffix", "custom_class") or (
        _v1_reasons(settings) and method not in _V1_SCHEDULE
    )
    return f"a schedule with method {method}" if _schedule(settings) and dropped else None


def _v1_reasons(settings: Settings) -> list[str]:
    reasons = []
    if settings.get(_SPEC + "parallel_drafting") and _method(settings) not in _BLOCK:
        reasons.append("parallel_drafting")
    if settings.get(_SPEC + "use_heterogeneous_vocab"):
        reasons.append("use_heterogeneous_vocab")
    if _method(settings) in ("suffix", "custom_class"):
        reasons.append(f"method {_method(settings)}")
    return reasons


def _runner_conflict(settings: Settings, _facts: Facts) -> str | None:
    v2 = []
    if _method(settings) == "dspark":
        v2.append("method dspark")
    if settings.get(_SPEC + "enable_adaptive_verification"):
        v2.append("enable_adaptive_verification")
    if _SPEC + "draft_lm_head_quantization" in settings:
        v2.append("draft_lm_head_quantization")
    v1 = _v1_reasons(settings)
    return f"{v1[0]} with {v2[0]}" if v1 and v2 else None


def _lookahead_budget(settings: Settings, _facts: Facts) -> str | None:
    budget = integer(settings, "max-num-batched-tokens")
    need = lookahead(_method(settings), _draft_len(settings))
    return f"{budget} <= {need}" if budget is not None and budget <= need else None


def _step_budget(settings: Settings, _facts: Facts) -> str | None:
    budget, seqs = integer(settings, "max-num-batched-tokens"), integer(settings, "max-num-seqs")
    if budget is None or seqs is None or not _speculates(settings):
        return None
    draft_len = _draft_len(settings)
    parallel = bool(settings.get(_SPEC + "parallel_drafting"))
    rows = 1 + draft_len + extra_slots(_method(settings), draft_len, parallel=parallel)
    return f"{budget} for {seqs} sequences of {rows} rows" if budget < seqs * rows else None


def _block_draft_budget(settings: Settings, _facts: Facts) -> str | None:
    budget, seqs = integer(settings, "max-num-batched-tokens"), integer(settings, "max-num-seqs")
    if _method(settings) not in _BLOCK or budget is None or seqs is None:
        return None
    need = lookahead(_method(settings), _draft_len(settings))
    return f"{budget} for {seqs} drafts of {need} rows" if budget // need < seqs else None


def _seqs_budget(settings: Settings, _facts: Facts) -> str | None:
    budget, seqs = integer(settings, "max-num-batched-tokens"), integer(settings, "max-num-seqs")
    if budget is None or seqs is None or budget >= seqs:
        return None
    return f"{budget} tokens for {seqs} sequences"


def _graphs_cover(settings: Settings, _facts: Facts) -> str | None:
    seqs = integer(settings, "max-num-seqs")
    if seqs is None or settings.get("enforce-eager"):
        return None
    sizes = numbers(settings, _SIZES)
    for k, widest in tiers(_schedule(settings), _draft_len(settings), seqs).items():
        need = widest * (1 + k)
        if sizes is None and need > _DEFAULT_GRAPH_CEILING:
            return f"the default ceiling {_DEFAULT_GRAPH_CEILING} for {widest} * (1+{k}) = {need}"
        if sizes is not None and not any(s >= need and s % (1 + k) == 0 for s in sizes):
            return f"sizes up to {max(sizes):g} for {widest} * (1+{k}) = {need}"
    return None


def _graphs_budget(settings: Settings, _facts: Facts) -> str | None:
    budget, sizes = integer(settings, "max-num-batched-tokens"), numbers(settings, _SIZES)
    if budget is None or not sizes or max(sizes) <= budget:
        return None
    return f"size {max(sizes):g} with {budget} tokens"


def _graphs_max(settings: Settings, _facts: Facts) -> str | None:
    ceiling = integer(settings, "compilation-config.max_cudagraph_capture_size")
    sizes = numbers(settings, _SIZES)
    if ceiling is None or not sizes or max(sizes) == ceiling:
        return None
    return f"{ceiling} beside sizes up to {max(sizes):g}"


def _synthetic(settings: Settings, _facts: Facts) -> str | None:
    rates = numbers(settings, _SPEC + "synthetic_acceptance_rates")
    length = settings.get(_SPEC + "synthetic_acceptance_length")
    on = text(settings, _SPEC + "rejection_sample_method") == "synthetic"
    draft_len = _draft_len(settings)
    if not on:
        return "synthetic acceptance with another method" if rates or length is not None else None
    if (rates is None) == (length is None):
        return "both rates and length" if rates else "neither rates nor length"
    if rates is not None and (len(rates) != draft_len or list(rates) != sorted(rates)[::-1]):
        return f"rates {list(rates)} for D = {draft_len}"
    if length is not None and not 1 <= float(str(length)) <= draft_len + 1:
        return f"length {length} for D = {draft_len}"
    return None


def _fly(settings: Settings, _facts: Facts) -> str | None:
    if text(settings, _SPEC + "rejection_sample_method") != "fly":
        return None
    draft_len, window = _draft_len(settings), integer(settings, _SPEC + "fly_window_size")
    if draft_len < 2 or (window is not None and window >= draft_len):
        return f"D = {draft_len}, window {window}"
    return None


def _adaptive(settings: Settings, _facts: Facts) -> str | None:
    if not settings.get(_SPEC + "enable_adaptive_verification"):
        return None
    if (integer(settings, "pipeline-parallel-size") or 1) > 1:
        return "pipeline parallelism"
    blockers = ("enforce-eager", "enable-lora", _SPEC + "use_local_argmax_reduction")
    return next((name for name in blockers if settings.get(name)), None)


def _heterogeneous_vocab(settings: Settings, _facts: Facts) -> str | None:
    if not settings.get(_SPEC + "use_heterogeneous_vocab"):
        return None
    if _method(settings) != "draft_model":
        return f"method {_method(settings)}"
    sampling = text(settings, _SPEC + "draft_sample_method") or "greedy"
    return f"{sampling} sampling" if sampling != "greedy" else None


def _context_positions(settings: Settings, facts: Facts) -> str | None:
    asked, most = integer(settings, "max-model-len"), facts.max_position
    return f"{asked} > {most}" if asked and most and asked > most else None


def _draft_context(settings: Settings, _facts: Facts) -> str | None:
    draft, target = integer(settings, _SPEC + "max_model_len"), integer(settings, "max-model-len")
    return f"{draft} > {target}" if draft and target and draft > target else None


def _fp8_online(settings: Settings, facts: Facts) -> str | None:
    wrong = text(settings, "quantization") == "fp8" and not facts.checkpoint_quantised
    return "fp8 on a checkpoint that is not FP8" if wrong else None


_PREDICATES: dict[str, Callable[[Settings, Facts], str | None]] = {
    "method-given": _method_given,
    "spec-flags-exclusive": _spec_flags_exclusive,
    "draft-tp": _draft_tp,
    "mtp-divisible": _mtp_divisible,
    "trained-block": _trained_block,
    "pipeline-drafts": _pipeline_drafts,
    "ngram-order": _ngram_order,
    "schedule-form": _schedule_form,
    "schedule-start": _schedule_start,
    "schedule-overlap": _schedule_overlap,
    "schedule-range": _schedule_range,
    "schedule-data-parallel": _schedule_data_parallel,
    "schedule-runner": _schedule_runner,
    "runner-conflict": _runner_conflict,
    "lookahead-budget": _lookahead_budget,
    "step-budget": _step_budget,
    "block-draft-budget": _block_draft_budget,
    "seqs-budget": _seqs_budget,
    "graphs-cover": _graphs_cover,
    "graphs-budget": _graphs_budget,
    "graphs-max": _graphs_max,
    "synthetic": _synthetic,
    "fly": _fly,
    "adaptive": _adaptive,
    "heterogeneous-vocab": _heterogeneous_vocab,
    "context-positions": _context_positions,
    "draft-context": _draft_context,
    "fp8-online": _fp8_online,
}
