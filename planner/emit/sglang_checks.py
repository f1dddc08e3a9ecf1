"""SGLang's relations between flags: one predicate per rule id of its rule book.

Flags come without their hyphens. D is `speculative-num-steps` for chains, the block size for
DSPARK, and one below `speculative-num-draft-tokens` elsewhere: SGLang counts the verification
window, not the draft.
"""

from collections.abc import Mapping

from planner.emit.check import Facts, Predicate, Settings, integer, keys_of_method, text
from planner.emit.rules import RuleBook

_SPEC = "speculative-"
CHAINS = ("EAGLE", "EAGLE3", "NEXTN", "STANDALONE")
SCHEDULED = ("EAGLE", "EAGLE3", "NEXTN")
"""Algorithms that take a schedule (--speculative-adaptive-config)."""
_PIPELINE = ("EAGLE", "NEXTN")
_BLOCK = ("DFLASH", "DSPARK")
_LORA = ("NGRAM", "EAGLE", "NEXTN", "EAGLE3", *_BLOCK)
_DEFAULT_TRIE_DEPTH = 18


def predicates(book: RuleBook) -> Mapping[str, Predicate]:
    """All predicates, by rule id."""
    return {
        **_PREDICATES,
        "method-keys": keys_of_method(book, _SPEC, "algorithm", "draft-model-path"),
        "target-states": _target_states(book),
    }


def draft_len_of(settings: Settings) -> int:
    """D of a command; 0 without speculation."""
    algorithm = _algorithm(settings)
    if not algorithm:
        return 0
    if algorithm in CHAINS:
        return integer(settings, _SPEC + "num-steps") or 0
    if algorithm == "DSPARK" and _SPEC + "dspark-block-size" in settings:
        return integer(settings, _SPEC + "dspark-block-size") or 0
    window = integer(settings, _SPEC + "num-draft-tokens") or integer(
        settings, _SPEC + "dflash-block-size"
    )
    return (window or 1) - 1


def _algorithm(settings: Settings) -> str:
    return text(settings, _SPEC + "algorithm") or ""


def _target_states(book: RuleBook) -> Predicate:
    def predicate(settings: Settings, facts: Facts) -> str | None:
        algorithm = _algorithm(settings)
        without = book.lists.get(f"no_{algorithm.lower()}_states", ())
        wrong = facts.architecture in without
        return f"{algorithm} with {facts.architecture}" if wrong else None

    return predicate


def _algorithm_given(settings: Settings, _facts: Facts) -> str | None:
    alone = [name for name in settings if name.startswith(_SPEC)]
    return f"{alone[0]} alone" if alone and not _algorithm(settings) else None


def _chain_tokens(settings: Settings, _facts: Facts) -> str | None:
    steps = integer(settings, _SPEC + "num-steps")
    tokens = integer(settings, _SPEC + "num-draft-tokens")
    chain = _algorithm(settings) in CHAINS and (integer(settings, _SPEC + "eagle-topk") or 1) == 1
    if not chain or steps is None or tokens is None or tokens == steps + 1:
        return None
    return f"{tokens} draft tokens with {steps} steps"


def _steps_together(settings: Settings, _facts: Facts) -> str | None:
    names = [_SPEC + key for key in ("num-steps", "eagle-topk", "num-draft-tokens")]
    missing = [name for name in names if name not in settings]
    if _algorithm(settings) not in CHAINS or not missing:
        return None
    return f"no {missing[0]}"


def _request_cap(settings: Settings, _facts: Facts) -> str | None:
    silent = _algorithm(settings) and "max-running-requests" not in settings
    return "no max-running-requests" if silent else None


def _graphs_cover(settings: Settings, _facts: Facts) -> str | None:
    seqs = integer(settings, "max-running-requests")
    most = integer(settings, "cuda-graph-max-bs-decode")
    if seqs is None or (most is not None and most >= seqs):
        return None
    return f"graphs up to {most or 'the default for the card'} for {seqs} requests"


def _dflash_block(settings: Settings, _facts: Facts) -> str | None:
    block = integer(settings, _SPEC + "dflash-block-size")
    tokens = integer(settings, _SPEC + "num-draft-tokens")
    if _algorithm(settings) != "DFLASH" or block is None or tokens in (None, block):
        return None
    return f"block size {block}, {tokens} draft tokens"


def _dflash_window(settings: Settings, _facts: Facts) -> str | None:
    window, block = integer(settings, _SPEC + "draft-window-size"), draft_len_of(settings) + 1
    wrong = _algorithm(settings) == "DFLASH" and window is not None and window < block
    return f"window {window}, block {block}" if wrong else None


def _dspark_tokens(settings: Settings, _facts: Facts) -> str | None:
    block = integer(settings, _SPEC + "dspark-block-size")
    tokens = integer(settings, _SPEC + "num-draft-tokens")
    if _algorithm(settings) != "DSPARK" or tokens is None:
        return None
    if tokens < 2 or (block is not None and tokens != block + 1):
        return f"{tokens} draft tokens with block size {block}"
    return None


def _trained_block(settings: Settings, facts: Facts) -> str | None:
    limit, draft_len = facts.max_draft_len, draft_len_of(settings)
    if _algorithm(settings) not in _BLOCK or limit is None or draft_len <= limit:
        return None
    return f"D = {draft_len}, trained block {limit}"


def _mtp_layers(settings: Settings, facts: Facts) -> str | None:
    layers, draft_len = facts.mtp_layers or 1, draft_len_of(settings)
    if _algorithm(settings) != "NEXTN" or layers == 1 or draft_len <= layers:
        return None
    return f"D = {draft_len} with {layers} layers"


def _pipeline(settings: Settings, facts: Facts) -> str | None:
    algorithm, stages = _algorithm(settings), integer(settings, "pp-size") or 1
    if stages == 1 or not algorithm:
        return None
    if algorithm not in _PIPELINE or (facts.mtp_layers or 1) > 1:
        return f"{algorithm} over {stages} stages"
    if settings.get("SGLANG_ENABLE_PP_SPEC") != "1":
        return f"{stages} stages without SGLANG_ENABLE_PP_SPEC=1"
    return "a schedule over stages" if settings.get(_SPEC + "adaptive") else None


def _attention_data_parallel(settings: Settings, _facts: Facts) -> str | None:
    algorithm, ranks = _algorithm(settings), integer(settings, "attn-dp-size") or 1
    if ranks == 1:
        return None
    if algorithm in ("STANDALONE", "NGRAM"):
        return f"{algorithm} with attn-dp-size {ranks}"
    headless = algorithm in _BLOCK and not settings.get("enable-dp-lm-head")
    return f"{algorithm} without enable-dp-lm-head" if headless else None


def _adaptive_dropped(settings: Settings, facts: Facts) -> str | None:
    if not settings.get(_SPEC + "adaptive"):
        return None
    if (integer(settings, _SPEC + "eagle-topk") or 1) != 1:
        return "a tree"
    if (integer(settings, "attn-dp-size") or 1) > 1:
        return "attention data parallelism"
    several = settings.get("enable-multi-layer-eagle") or (facts.mtp_layers or 1) > 1
    return "multi-layer EAGLE" if several else None


def _adaptive_steps(settings: Settings, facts: Facts) -> str | None:
    if not settings.get(_SPEC + "adaptive"):
        return None
    steps, candidates = draft_len_of(settings), facts.schedule_draft_lens
    if not candidates or min(candidates) < 0 or steps not in candidates:
        return f"{steps} steps, candidates {sorted(candidates)}"
    return None


def _lora(settings: Settings, _facts: Facts) -> str | None:
    algorithm = _algorithm(settings)
    if not settings.get("enable-lora") or not algorithm:
        return None
    if algorithm not in _LORA:
        return algorithm
    return "a schedule" if settings.get(_SPEC + "adaptive") else None


def _nvfp4_cache(settings: Settings, _facts: Facts) -> str | None:
    wrong = _algorithm(settings) in _BLOCK and text(settings, "kv-cache-dtype") == "nvfp4"
    return f"{_algorithm(settings)} with an nvfp4 cache" if wrong else None


def _ngram_chain(settings: Settings, _facts: Facts) -> str | None:
    breadth = integer(settings, _SPEC + "ngram-max-bfs-breadth")
    if _algorithm(settings) != "NGRAM" or breadth == 1:
        return None
    return f"breadth {breadth or 'by default 10'}"


def _ngram_depth(settings: Settings, _facts: Facts) -> str | None:
    depth = integer(settings, _SPEC + "ngram-max-trie-depth") or _DEFAULT_TRIE_DEPTH
    draft_len = draft_len_of(settings)
    short = _algorithm(settings) == "NGRAM" and depth <= draft_len
    return f"depth {depth} for D = {draft_len}" if short else None


def _draft_format(settings: Settings, _facts: Facts) -> str | None:
    alone = _SPEC + "draft-model-path" in settings and "quantization" in settings
    if not alone or _SPEC + "draft-model-quantization" in settings:
        return None
    return f"--quantization {settings['quantization']} alone"


_PREDICATES: dict[str, Predicate] = {
    "algorithm-given": _algorithm_given,
    "chain-tokens": _chain_tokens,
    "steps-together": _steps_together,
    "request-cap": _request_cap,
    "graphs-cover": _graphs_cover,
    "dflash-block": _dflash_block,
    "dflash-window": _dflash_window,
    "dspark-tokens": _dspark_tokens,
    "trained-block": _trained_block,
    "mtp-layers": _mtp_layers,
    "pipeline": _pipeline,
    "attention-data-parallel": _attention_data_parallel,
    "adaptive-dropped": _adaptive_dropped,
    "adaptive-steps": _adaptive_steps,
    "lora": _lora,
    "nvfp4-cache": _nvfp4_cache,
    "ngram-chain": _ngram_chain,
    "ngram-depth": _ngram_depth,
    "draft-format": _draft_format,
}
