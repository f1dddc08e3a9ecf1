"""Which arms of a plan to measure: off, and draft lengths around the plan's choice."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from autotune.tune.records import OFF, Arm
from planner.errors import InputError
from planner.search.records import Plan

MAX_ARMS = 6
"""Arms that a run measures unless they are named: more is a study's work."""
_DRAFT_LEN = re.compile(r"draft_len=(\d+)")
_METHOD = re.compile(r"method=([\w-]+)")


def arms_of_plan(plan: Plan) -> dict[str, Arm]:
    """Every arm that the plan can start, by name.

    Raises:
        InputError: the plan has no launch, or no arm without speculation.
    """
    if plan.launch is None or not plan.launch.arms:
        raise InputError(
            "the plan has no launch with arms; write it with `planner recommend ... --out DIR`"
        )
    if OFF not in plan.launch.arms:
        raise InputError(
            "the plan's launch has no arm `off`, and without a baseline there is nothing to "
            "compare with; write it anew with `planner recommend ... --out DIR`"
        )
    family = plan.drafted.family if plan.drafted else "none"
    return {name: _arm(name, argv, family) for name, argv in plan.launch.arms.items()}


def _arm(name: str, argv: Sequence[str], family: str) -> Arm:
    if name == OFF:
        return Arm(name=name, family="none", draft_len=0, argv=tuple(argv))
    length, method = _DRAFT_LEN.search(name), _METHOD.search(name)
    return Arm(
        name=name,
        family=method[1] if method else family,
        draft_len=int(length[1]) if length else None,
        argv=tuple(argv),
    )


def chosen_arms(plan: Plan, named: Sequence[str] | None = None) -> tuple[Arm, ...]:
    """The arms to measure, off first.

    Without names: off, the plan's draft length, half and twice of it, its neighbours as far as
    `MAX_ARMS` allows, and the other drafters that the plan can start.

    Args:
        plan: with its launch.
        named: arm names, or bare draft lengths.

    Raises:
        InputError: a named arm is not in the plan.
    """
    known = arms_of_plan(plan)
    wanted = [_known(name, known) for name in named] if named else _around(plan, known)
    arms = [known[OFF], *(arm for arm in wanted if not arm.is_off)]
    found = tuple({arm.name: arm for arm in arms}.values())
    if len(found) < 2:
        raise InputError(
            "the plan has no drafted arm to compare with off; plan with --drafter, or name arms "
            f"with --arms (the plan has {', '.join(known)})"
        )
    return found


def _known(name: str, known: Mapping[str, Arm]) -> Arm:
    full = f"draft_len={name.strip()}" if name.strip().isdecimal() else name.strip()
    full = OFF if full == "draft_len=0" else full
    if full not in known:
        raise InputError(f"the plan has no arm {full!r}; it has {', '.join(known)}")
    return known[full]


def _around(plan: Plan, known: Mapping[str, Arm]) -> Sequence[Arm]:
    by_length = {arm.draft_len: arm for name, arm in known.items() if _DRAFT_LEN.fullmatch(name)}
    others = [arm for name, arm in known.items() if _METHOD.search(name)]
    centre = plan.drafted.draft_len if plan.drafted else 0
    nearest = min(by_length, key=lambda d: abs((d or 0) - centre), default=None)
    if nearest is None:
        return others[: MAX_ARMS - 1]
    order = [nearest, nearest // 2, 2 * nearest, nearest - 1, nearest + 1, nearest + 2]
    if 2 * nearest not in by_length:
        order.insert(2, max(length or 0 for length in by_length))
    kept = [by_length[length] for length in dict.fromkeys(order) if length in by_length]
    room = max(2, MAX_ARMS - 1 - len(others))
    lengths = sorted(kept[:room], key=lambda arm: arm.draft_len or 0)
    return [*lengths, *others[: MAX_ARMS - 1 - len(lengths)]]
