"""What the page for the terminal and the one for the browser say in the same words."""

from __future__ import annotations

from autotune.tune.result import Correction, TuneResult


def engine_of(result: TuneResult) -> str:
    """The engine, with its version where it states one."""
    return f"{result.engine} {result.engine_version or ''}".strip()


def setting(result: TuneResult) -> str:
    """What was sent, and how the run was made."""
    return (
        f"{', '.join(result.workloads)}; temperature {result.temperature:g}, "
        f"{result.concurrency} in flight, at most {result.max_tokens} tokens an answer; "
        f"blocks of the same prompts, arms in random order (seed {result.seed}); "
        f"ended: {result.stopped}."
    )


def lessons(found: Correction) -> tuple[str, ...]:
    """What was learned for the planner, a sentence each; its constants stand in `found`."""
    said = []
    if found.t_target_s is not None:
        planned = found.t_target_predicted_s
        before = f"; the plan had {planned * 1e3:.3g} ms" if planned else ""
        said.append(f"plain step {found.t_target_s * 1e3:.3g} ms{before}")
    said += [", ".join(f"{name} = {value:.4g}" for name, value in found.constants.items())]
    if found.replanned_choice:
        said.append(f"the planner would now run {found.replanned_choice}")
    said += [*found.notes, *(f"wrote {name}" for name in found.files)]
    return tuple(line for line in said if line)
