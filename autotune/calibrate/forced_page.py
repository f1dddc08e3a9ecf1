"""What `planner calibrate --launch` prints."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from autotune.calibrate.forced import ForcedMeasured
from hwprofiles.schema import Calibration


def forced_page(
    found: ForcedMeasured, record: Calibration | None, notes: Sequence[str], target: Path
) -> str:
    """R by draft length and force, the constants, what to know of them, where they went."""
    return "\n".join(_lines(found, record, notes, target))


def _lines(
    found: ForcedMeasured, record: Calibration | None, notes: Sequence[str], target: Path
) -> Iterator[str]:
    inputs = found.plan.inputs
    engine = f"{inputs.engine} {found.engine_version or ''}".strip()
    yield f"{engine}, {inputs.model_name}: a plain step takes {found.step_s * 1e3:.2f} ms."
    yield ""
    yield (f"  {'D':>4}  {'drafts':<10}{'E[L]':>6}{'share':>7}{'drafted':>9}{'R':>7}{'round':>11}")
    for row in found.rows:
        yield (
            f"  {row.draft_len:>4}  {row.how + 'ed':<10}{row.tokens_per_round:>6.2f}"
            f"{row.draft_share:>7.2f}{row.mean_draft_len:>9.2f}{row.round_cost_ratio:>7.2f}"
            f"{row.round_cost_ratio * found.step_s * 1e3:>8.2f} ms"
        )
    yield "  E[L] and drafted tokens of the drafted rounds, counted; R is also the break-even E[L]."
    if inputs.engine_version != found.engine_version and found.engine_version:
        yield f"  note: the plan is for {inputs.engine} {inputs.engine_version}"
    yield from (f"  note: {note}" for note in notes)
    if record is None:
        return
    yield ""
    for name, constant in record.constants.items():
        yield f"  {name:<34}{constant.value:>10.4g}"
    ratio = record.measured_ratio
    if ratio is not None:
        yield (
            f"  R of a setting from the others' constants is off by {100 * ratio.log_sd:.0f} % "
            f"(root mean square of {ratio.points})."
        )
    yield ""
    yield f"Kept in {target}"
