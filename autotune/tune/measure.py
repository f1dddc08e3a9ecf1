"""One arm, one block: warm-up thrown away, every prompt once, counters read around it."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from autotune.engines.adapter import EngineAdapter
from autotune.engines.records import MetricsReading
from autotune.load.records import Answer, Message, Request, Role
from autotune.tune.conditions import Watch
from autotune.tune.records import Cell, Counts, Prompt, Sample
from autotune.tune.schedule import Effort
from planner.acceptance.spec_counters import SpecCounters

_ROLES: dict[str, Role] = {"system": "system", "assistant": "assistant"}
WARMUP_TOKENS = 32
_FOREIGN_SHARE = 0.02
"""Counters that lag by a token or two are not others' traffic."""


def request_for(prompt: Prompt, effort: Effort, *, logprobs: bool = False) -> Request:
    """The request that sends a prompt."""
    messages = tuple(Message(_ROLES.get(role, "user"), text) for role, text in prompt.messages)
    return Request(
        prompt=messages,
        max_tokens=effort.max_tokens,
        temperature=effort.temperature,
        seed=effort.seed,
        logprobs=logprobs,
    )


def measure_cell(
    adapter: EngineAdapter,
    cell: Cell,
    prompts: Sequence[Prompt],
    effort: Effort,
    engine_pid: int | None,
) -> Cell:
    """The cell with its samples.

    Args:
        adapter: the running engine, warm.
        cell: says which block and arm this is.
        prompts: sent once each, `effort.concurrency` at a time.
        effort: tokens and temperature.
        engine_pid: process group of the engine, where we started it.
    """
    watch = Watch(engine_pid)
    before = adapter.read_counters()
    answers = _answers(adapter, [request_for(prompt, effort) for prompt in prompts], effort)
    after = adapter.read_counters()
    samples = tuple(
        _sample(prompt, answer) for prompt, answer in zip(prompts, answers, strict=True)
    )
    counted = _counted(before.counters, after.counters)
    generated = counted.generated_tokens
    return cell.model_copy(
        update={
            "samples": samples,
            "counts": counts_of(counted, answers),
            "conditions": watch.conditions(
                _others((before, after)), _foreign_tokens(generated, samples)
            ),
        }
    )


def warm_up(adapter: EngineAdapter, prompts: Sequence[Prompt], effort: Effort) -> None:
    """Send prompts whose timing is thrown away; a few tokens each bring caches and clocks up."""
    short = replace(effort, max_tokens=min(effort.max_tokens, WARMUP_TOKENS))
    _answers(adapter, [request_for(prompt, short) for prompt in prompts], short)


def likelihoods(
    adapter: EngineAdapter, prompts: Sequence[Prompt], effort: Effort
) -> dict[str, tuple[tuple[str, float], ...]]:
    """Prompt id -> the engine's tokens with their log-probabilities; untimed."""
    asked = [request_for(prompt, effort, logprobs=True) for prompt in prompts]
    answers = _answers(adapter, asked, effort)
    return {
        prompt.prompt_id: tuple((token.text, token.logprob) for token in answer.tokens)
        for prompt, answer in zip(prompts, answers, strict=True)
        if answer.tokens
    }


def _answers(adapter: EngineAdapter, requests: Sequence[Request], effort: Effort) -> list[Answer]:
    if effort.concurrency == 1:
        return [adapter.generate(request) for request in requests]
    pool = ThreadPoolExecutor(effort.concurrency)
    try:
        return list(pool.map(adapter.generate, requests))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # after an error nobody waits for the rest


def _sample(prompt: Prompt, answer: Answer) -> Sample:
    return Sample(
        prompt_id=prompt.prompt_id,
        workload=prompt.workload,
        prompt_tokens=answer.prompt_tokens,
        tokens=answer.generated_tokens,
        ttft_s=answer.ttft_s,
        decode_s=answer.decode_s,
        timed_by=answer.decode_timed_by,
        text=answer.text,
        finish=answer.finish_reason or "",
    )


def _counted(before: SpecCounters, after: SpecCounters) -> SpecCounters:
    """What the cell added; nothing where the engine restarted or its counts cannot be true."""
    since = after.since(before)
    if since.reset or since.counts.absurdity():
        return SpecCounters()
    return since.counts


def counts_of(counted: SpecCounters, answers: Sequence[Answer]) -> Counts | None:
    """Speculation over the cell: from the counters, else from what the answers report.

    A count of rounds is needed; an engine that tells tokens alone leaves it unknown, unless it
    drafted none.
    """
    if counted.drafts is not None and counted.accepted_tokens is not None:
        return Counts(
            drafted_rounds=round(counted.drafts),
            draft_tokens=round(counted.draft_tokens or 0),
            accepted_tokens=round(counted.accepted_tokens),
            accepted_by_position=tuple(round(x) for x in counted.accepted_per_position),
        )
    told = [answer.drafts for answer in answers if answer.drafts is not None]
    rounds = [one.drafts for one in told if one.drafts is not None]
    if len(told) < len(answers) or len(rounds) < len(told):
        return None
    return Counts(
        drafted_rounds=sum(rounds),
        draft_tokens=sum(one.draft_tokens for one in told),
        accepted_tokens=sum(one.accepted_tokens for one in told),
    )


def _others(readings: Sequence[MetricsReading]) -> int | None:
    """Requests in the engine while none of ours was."""
    known = [
        (one.running_requests or 0.0) + (one.waiting_requests or 0.0)
        for one in readings
        if one.running_requests is not None
    ]
    return round(max(known)) if known else None


def _foreign_tokens(generated: float | None, samples: Sequence[Sample]) -> int | None:
    if generated is None:
        return None
    own = sum(sample.tokens for sample in samples)
    more = generated - own
    return round(more) if more > max(2.0 * len(samples), _FOREIGN_SHARE * own) else 0
