"""The first line of the answer."""

from planner.report.plain import plain
from planner.report.wording import cards, family_title, ratio, speedup
from planner.search.records import Plan

NEAR_ONE = (0.9, 1.1)
"""An interval inside these bounds means no difference, whatever the traffic."""


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
        return f"{word}: no drafter both applies to and fits beside {where}; run it plain."
    what, gain = f"{family_title(drafted.family)} with D={drafted.draft_len}", speedup(drafted)
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
