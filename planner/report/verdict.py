"""The first line of the answer."""

from planner.report.plain import plain
from planner.report.wording import cards, family_title, ratio, speedup
from planner.search.records import Plan


def verdict_word(plan: Plan) -> str:
    """Yes, Don't, Neutral, or Depends.

    `Depends` where the 80 % interval crosses 1 although its middle does not lie near it: what the
    user's own traffic accepts decides.
    """
    if plan.best_drafted is None:
        return "Don't"
    if plan.verdict == "neutral":
        return "Neutral"
    if not plan.sure:
        return "Depends"
    return "Yes" if plan.verdict == "helps" else "Don't"


def verdict_line(plan: Plan) -> str:
    """The whole answer in one sentence, its first word the verdict."""
    word = verdict_word(plan)
    where = f"{plain(plan.inputs.model_name)} on {cards(plan.inputs)}"
    drafted = plan.best_drafted
    if drafted is None:
        return f"{word}: no drafter both applies to and fits beside {where}; run it plain."
    what, gain = f"{family_title(drafted.family)} with D={drafted.draft_len}", speedup(drafted)
    if word == "Yes":
        return f"Yes: {what} gives {gain} for {where}."
    if word == "Don't":
        return f"Don't: the best that speculation does for {where} is {what}, {gain}."
    return (
        f"{word}: {what} gives {gain} for {where}; it pays above "
        f"{ratio(plan.break_even_tokens_per_round)} tokens per round, "
        f"{ratio(drafted.tokens_per_round)} are expected."
    )
