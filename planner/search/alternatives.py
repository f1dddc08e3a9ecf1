"""The same question in the other weight formats, cache types and tensor-parallel sizes."""

from collections.abc import Iterator
from dataclasses import replace

from planner.arch.quant import kv_dtype_bytes
from planner.search.present import evaluation
from planner.search.records import Evaluation
from planner.search.setup import TENSOR_PARALLEL, Target, place
from planner.search.situation import Situation, candidate_formats, wanted
from planner.search.sweep import best_drafted, search

_NARROW_CACHE = {"llama.cpp": "q8_0"}


def _targets(s: Situation) -> Iterator[Target]:
    """Formats and cache types that the question leaves open, other than the chosen pair."""
    q, engine = s.question, s.engine[0]
    caches = [s.target.kv_dtype]
    if q.kv_dtype is None and (kv_dtype_bytes(s.target.kv_dtype) or 0) >= 2:
        caches.append(_NARROW_CACHE.get(engine, "fp8"))
    for fmt in candidate_formats(q, s.target, engine, s.machine):
        for cache in caches:
            if (fmt, cache) != (s.target.weights, s.target.kv_dtype):
                yield replace(s.target, weights=fmt, kv_dtype=cache)


def _widths(s: Situation) -> tuple[int | None, ...]:
    """Tensor-parallel sizes that the question leaves open; None keeps the stated one."""
    count = s.placement.deployment.num_gpus
    if s.question.tp is not None or s.engine[0] not in TENSOR_PARALLEL or count == 1:
        return (None,)
    return tuple(n for n in (1, 2, 4, 8, 16) if count % n == 0 and n <= count)


def _situations(s: Situation) -> Iterator[Situation]:
    batch, context = s.grid.batches[s.headline[0]], s.grid.contexts[s.headline[1]]
    asked = wanted(s.question, batch, context)
    chosen_tp = s.placement.deployment.tp
    for target in (s.target, *_targets(s)):
        for tp in _widths(s):
            if target is s.target and tp in (None, chosen_tp):
                continue
            exact = replace(asked, tp=tp, num_gpus=s.placement.deployment.num_gpus)
            placement = place(target, s.machine, s.engine, exact)
            if placement.fits:
                yield replace(s, target=target, placement=placement)


def alternatives(s: Situation) -> tuple[tuple[Evaluation, ...], int]:
    """(best candidate of each other format, cache type and width at the stated batch and context,
    points evaluated), fastest first. Precision is the user's call: none of these is chosen for
    being faster.
    """
    found: list[Evaluation] = []
    points = 0
    for other in _situations(s):
        searched = search(other)
        points += searched.points
        best = best_drafted(other, searched)
        result, index = best or (searched.plain, (*s.headline, 0))
        grid = s.grid if best else replace(s.grid, draft_lens=(0,))
        seen = evaluation(result, grid, index, s.question.max_vram_mib)
        if seen.verdict == "hurts":
            plain_grid = replace(s.grid, draft_lens=(0,))
            seen = evaluation(searched.plain, plain_grid, (*s.headline, 0), s.question.max_vram_mib)
        found.append(seen)
    return tuple(sorted(found, key=lambda e: -e.spec_tok_s)), points
