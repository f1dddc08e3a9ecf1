"""What `planner calibrate --host` prints."""

import textwrap
from collections.abc import Iterator
from pathlib import Path

from autotune.calibrate.host import GB, HostMeasured, rate
from autotune.calibrate.samples import Series


def host_page(found: HostMeasured, target: Path) -> str:
    """The rates by arrangement, what to know of them, and how they are used."""
    return "\n".join(part for line in _lines(found, target) for part in _wrapped(line))


def _wrapped(line: str) -> list[str]:
    """The line within 79 columns; a path longer than that stays whole."""
    return textwrap.wrap(
        line, 79, subsequent_indent="    ", break_on_hyphens=False, break_long_words=False
    ) or [""]


def _lines(found: HostMeasured, target: Path) -> Iterator[str]:
    host, best = found.topology, found.best_read
    count = best.settings["processes"]
    yield (
        f"{host.cpu_name}: reads {rate(best) / GB:.1f} GB/s with {count} "
        f"process{'es' if count != 1 else ''} on {host.cores} cores."
    )
    yield ""
    yield f"  {'where':<20}{'processes':>10}{'read':>9}{'copy':>9}{'add':>9}  GB/s, best pass"
    rows: dict[tuple[float | str, ...], list[Series]] = {}
    for one in found.series:
        rows.setdefault((one.settings["where"], one.settings["processes"]), []).append(one)
    for (where, processes), series in sorted(rows.items(), key=lambda row: str(row[0][0])):
        shown = "".join(f"{rate(one) / GB:>8.1f}{' ' if one.stable else '~'}" for one in series)
        yield f"  {where:<20}{processes:>10}{shown}"
    yield "  Bytes as STREAM counts them: read 8 a number, copy 16, add 24 (the triad's traffic)."
    if not all(one.stable for one in found.series):
        yield "  ~ unstable: the middle 60 % of its passes spread by more than a tenth."
    if host.channels is not None:
        yield f"  {host.channels} memory channels are in use, as the controller's driver says."
    yield from (f"  note: {note}" for note in found.notes)
    yield ""
    yield f"Kept in {target}"
    yield (
        "Used by `planner recommend --gpu auto --offload auto`; for another --gpu name it with "
        "--calibration."
    )
