"""What `planner calibrate` prints of a card."""

from collections.abc import Iterator
from pathlib import Path

from autotune.calibrate.card_result import CardResult, Compared, errors_of
from autotune.calibrate.measure import CardMeasured
from hwprofiles.device import Device
from planner.cost.constants import value
from planner.errors import MissingFact


def card_page(measured: CardMeasured, result: CardResult, device: Device, target: Path) -> str:
    """State, constants, predicted against measured, what to know of it, where it went."""
    return "\n".join(_lines(measured, result, device, target))


def _state(measured: CardMeasured, device: Device) -> str:
    state = measured.before
    cap = "" if state.power_limit_w is None else f", cap {state.power_limit_w:g} W"
    clock = "" if state.max_sm_clock_mhz is None else f", up to {state.max_sm_clock_mhz:g} MHz"
    warm = "" if state.temperature_c is None else f", {state.temperature_c:g} C"
    versions = "".join(f", {k} {v}" for k, v in measured.facts.versions.items())
    driver = f", driver {state.driver}" if state.driver else ""
    return f"{state.name} as {device.name}{cap}{clock}{warm}{driver}{versions}"


def _lines(
    measured: CardMeasured, result: CardResult, device: Device, target: Path
) -> Iterator[str]:
    yield _state(measured, device)
    yield (
        f"{len(measured.series)} probes in {measured.seconds:.0f} s; "
        f"{len(result.constants)} constants measured."
    )
    yield ""
    for name, constant in result.constants.items():
        yield f"  {name:<34}{constant.value:>10.4g}   was {_before(name)}; {constant.ref}"
    yield ""
    yield f"  {'probe':<44}{'measured':>12}{'before':>10}{'after':>10}"
    for one in result.compared:
        yield _row(one)
    wrong = errors_of(result.compared)
    if wrong:
        yield (
            f"  Median error of the products: {100 * wrong['before']:.0f} % with the constants "
            f"before, {100 * wrong['after']:.0f} % after (fitted to these rows)."
        )
    yield from (f"  note: {note}" for note in (*measured.notes, *result.notes))
    yield ""
    yield f"Kept in {target}"


def _before(name: str) -> str:
    try:
        return f"{value(*name.split('.')):.4g}"
    except MissingFact:
        return "not shipped"


def _row(one: Compared) -> str:
    def share(predicted: float | None) -> str:
        return "-" if predicted is None else f"{100 * (predicted / one.measured_s - 1):+.0f} %"

    mark = " " if one.stable else "~"
    return (
        f"  {one.what:<44}{one.measured_s * 1e6:>9.1f} us{mark}{share(one.shipped_s):>9}"
        f"{share(one.fitted_s):>10}   {one.rate}"
    )
