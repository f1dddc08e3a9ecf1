"""Fits the constants of the cost model and says what they leave unexplained.

    python -m autotune.fit kernels --wheel aiconfigurator_core-0.12.0-....whl
    python -m autotune.fit rounds
    python -m autotune.fit unseen --wheel ...    errors on the wheel's other cards; fits nothing

Needs the extra [fit]. Nothing is changed without --write (constants, residuals, and what each
source moved) or --shifts (what each source moved only, for `planner evidence`).
"""

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from autotune.fit import write
from autotune.fit.kernels import LAWS, KernelFit, fit_kernel, samples
from autotune.fit.rounds import PRIORS, RoundsFit, fit_rounds, usable
from autotune.fit.unseen import Figures, unseen
from autotune.fit.wheel import timed
from planner.evidence import load

ROOT = Path(__file__).parents[2]
ROWS_PER_KERNEL = 1000


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m autotune.fit")
    parser.add_argument("what", choices=("kernels", "rounds", "unseen"))
    parser.add_argument("--wheel", type=Path, help="wheel of aiconfigurator-core 0.12.0")
    parser.add_argument("--table", choices=tuple(LAWS), help="kernels of one operation only")
    parser.add_argument("--write", action="store_true", help="write constants and shifts")
    parser.add_argument("--shifts", action="store_true", help="write shifts only")
    parser.add_argument("--root", type=Path, default=ROOT, help="top of the repository")
    found = parser.parse_args(words)
    if found.what != "rounds" and found.wheel is None:
        parser.error(f"{found.what} needs timed operations: --wheel names them")
    return found


def _show(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def _kernels(wheel: Path, tables: Iterable[str]) -> dict[str, list[KernelFit]]:
    found: dict[str, list[KernelFit]] = {}
    for table in tables:
        by_kernel = samples(table, timed(wheel, table, ROWS_PER_KERNEL))
        found[table] = [fit_kernel(table, name, sample) for name, sample in by_kernel.items()]
    return found


def _show_kernels(fits: Mapping[str, Sequence[KernelFit]]) -> None:
    _show("median/9 of 10 rows within; left out: from the other cards")
    for table, found in fits.items():
        for one in found:
            p = one.pooled
            _show(f"{table} {one.family}: {p.rows} rows, {p.parameters} constants, "
                  f"{p.median:.1%}/{p.p90:.0%} with the same on all cards")  # fmt: skip
            for gpu, own in one.own.items():
                without = one.left_out.get(gpu)
                other = f"{without.median:.1%}/{without.p90:.0%}" if without else "only card"
                _show(f"  {gpu:14} {own.median:.1%}/{own.p90:.0%}  left out {other}")


def _show_rounds(found: RoundsFit) -> None:
    f = found.fitted
    _show(f"{f.rows} rows, {f.parameters} constants; R {found.ratio_median:.1%} off in the median,")
    _show(f"left out {found.left_out_ratio_median:.1%}; plain speed {found.baseline_median:.1%}")
    for name, value in f.values.items():
        prior = PRIORS[name]
        left = f"{f.known[name]:.0%} of the prior's spread"
        _show(f"  {name:40} {prior.value:10.4g} -> {value:10.4g}  {left}")


def _show_unseen(errors: Mapping[str, Mapping[str, Figures]]) -> None:
    for table, by_gpu in errors.items():
        for gpu, f in by_gpu.items():
            wrong = f"{f['median']:.1%}/{f['p90']:.0%}" if f["median"] is not None else "-"
            _show(f"{table:10} {gpu:20} {f['rows']:6} rows, {f['answered']:.0%} answered, {wrong}")


def main(words: Sequence[str] | None = None) -> int:
    """Fit, show, and write where asked."""
    asked = _arguments(words)
    target = write.Target(asked.root)
    if asked.what == "kernels":
        kernels = _kernels(asked.wheel, (asked.table,) if asked.table else LAWS)
        _show_kernels(kernels)
        if asked.write or asked.shifts:
            write.write_kernel_shifts(target, kernels)
        if asked.write:
            write.write_kernels(target, kernels)
        return 0
    if asked.what == "unseen":
        errors = unseen(asked.wheel)
        _show_unseen(errors)
        if asked.write:
            write.write_unseen(target, errors)
        return 0
    rounds = fit_rounds(usable(load.rows()))
    _show_rounds(rounds)
    if asked.write or asked.shifts:
        write.write_round_shifts(target, rounds)
    if asked.write:
        write.write_rounds(target, rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
