"""The first line of the answer."""

from planner.report.plain import plain
from planner.report.wording import (
    cache,
    cards,
    family_title,
    is_template,
    milliseconds,
    rate,
    ratio,
    speedup,
)
from planner.search.records import Evaluation, Load, LoadPoint, Plan

NEAR_ONE = (0.9, 1.1)
"""An interval inside these bounds means no difference, whatever the traffic."""

MUCH_FASTER = 1.3
"""Ratio of speeds from which another format is named beside the answer."""


def verdict_word(plan: Plan) -> str:
    """Yes, Don't, Neutral, or Depends.

    `Depends` where the 80 % interval reaches well beyond 1 on both sides, or the verdict is not
    sure: what the user's own traffic accepts decides.
    """
    drafted = plan.best_drafted
    if drafted is None:
        return "Don't"
    if NEAR_ONE[0] <= drafted.speedup_lo and drafted.speedup_hi <= NEAR_ONE[1]:
        return "Neutral"
    if not plan.sure:
        return "Depends"
    return {"helps": "Yes", "neutral": "Neutral", "hurts": "Don't"}[plan.verdict]


def verdict_line(plan: Plan) -> str:
    """The whole answer in one sentence, its first word the verdict."""
    word = verdict_word(plan)
    where = f"{plain(plan.inputs.model_name)} on {cards(plan.inputs)}"
    drafted = plan.best_drafted
    if drafted is None and plan.inputs.drafter == "none":
        return f"Plain, as asked: {where} without speculation."
    if drafted is None:
        return f"{word}: {_why_none(plan, where)}"
    what, gain = f"{family_title(drafted.family)} with D={drafted.draft_len}", speedup(drafted)
    if word == "Yes" and plan.load is not None and plan.load.drafted is not None:
        return f"Yes: {what} {_served(plan.load, plan.load.drafted)} for {where}; {gain} while " + (
            f"decoding at its batch of {drafted.batch}."
        )
    if word == "Yes":
        return f"Yes: {what} gives {gain} for {where}."
    if word == "Don't":
        return f"Don't: the best that speculation does for {where} is {what}, {gain}."
    even = plan.break_even_tokens_per_round
    pays = f"it pays above {ratio(even)} tokens per round"
    if even <= 1.0:
        pays = "a round costs no more than a plain step"
    return (
        f"{word}: {what} gives {gain} for {where}; {pays}, "
        f"{ratio(drafted.tokens_per_round)} {'are' if even > 1.0 else 'tokens are'} expected"
        f"{'.' if plan.best.draft_len else '; until you have measured, run without.'}"
    )


def _why_none(plan: Plan, where: str) -> str:
    """Why nothing can be drafted with, and what could be trained."""
    asked = plan.inputs.drafter or ""
    untrained = next((one for one in plan.best_per_family if is_template(one.drafter_id)), None)
    if untrained is not None:
        return (
            f"no checkpoint of a drafter is known for {where}; {family_title(untrained.family)} "
            f"with D={untrained.draft_len} would give {speedup(untrained)} once trained. Run it "
            "plain until then."
        )
    if asked in plan.not_applicable:
        return f"{family_title(asked)} cannot apply to {where}: {plain(plan.not_applicable[asked])}"
    return f"no drafter both applies to and fits beside {where}; run it plain."


def _served(load: Load, drafted: LoadPoint) -> str:
    """What the stated load comes to with and without drafting."""
    each, off = milliseconds(drafted.tpot_s), load.off
    if off is None:
        return (
            f"serves {drafted.requests_per_s:.3g} requests a second at {each} a token, which "
            "plain decoding does not,"
        )
    if load.qps is not None:
        return (
            f"serves {load.qps:g} requests a second at {each} a token instead of "
            f"{milliseconds(off.tpot_s)}"
        )
    more = drafted.requests_per_s / off.requests_per_s - 1.0
    return (
        f"serves {drafted.requests_per_s:.3g} instead of {off.requests_per_s:.3g} requests a "
        f"second ({more:+.0%}), {each} a token instead of {milliseconds(off.tpot_s)},"
    )


def no_command_line(plan: Plan) -> str:
    """Why no command can be given; empty where one is."""
    if plan.no_command is None:
        return ""
    return f"But no command can be given: {plain(plan.no_command)}"


def faster_line(plan: Plan) -> str:
    """The fastest other format, where it is much faster over the batch; empty otherwise."""
    found = max(plan.alternatives, key=_tok_s, default=None)
    if found is None or _tok_s(found) < MUCH_FASTER * _tok_s(plan.best):
        return ""
    shared = f", TP {found.tp}" if found.tp != plan.best.tp else ""
    what = f"{family_title(found.family)} D={found.draft_len}" if found.draft_len else "plain"
    return (
        f"Faster still, if less exact weights will do: {plain(found.quant)} weights, "
        f"{cache(found.kv_dtype)} KV cache{shared}, {what}: {rate(_tok_s(found))} instead of "
        f"{rate(_tok_s(plan.best))} tok/s over the batch."
    )


def _tok_s(one: Evaluation) -> float:
    return one.spec_tok_s if one.draft_len else one.baseline_tok_s


def untrained_line(plan: Plan) -> str:
    """What a drafter would gain that must first be trained, where it would gain more."""
    better = [
        one
        for one in plan.best_per_family
        if is_template(one.drafter_id)
        and one.verdict == "helps"
        and one.speedup > plan.best.speedup
    ]
    if not better or plan.best_drafted is None:
        return ""
    named = ", ".join(f"{family_title(one.family)} {ratio(one.speedup)}x" for one in better)
    return f"Would gain more once trained, as no checkpoint is known: {named}."
