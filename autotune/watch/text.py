"""Watch's events as lines for people."""

from autotune.watch.events import (
    Advised,
    Changed,
    Event,
    Interval,
    Recovered,
    Started,
    Status,
    Stopped,
    Trouble,
    Withdrawn,
)


def line(event: Event) -> str:
    """One event; advice takes a line more for its change of the command."""
    return f"{event.time[11:19]}  {_said(event)}"


def _said(event: Event) -> str:  # noqa: PLR0911 - one return for each kind
    match event:
        case Started():
            return _started(event)
        case Status():
            return _status(event)
        case Changed():
            return (
                f"acceptance changed: E[L] {_interval(event.before)} -> {_interval(event.after)}, "
                f"{event.rounds_since} rounds ago"
            )
        case Advised():
            return _advised(event)
        case Withdrawn():
            return f"{_name(event.kind, event.draft_len)} is no longer clearly better"
        case Trouble():
            return f"no good reading: {event.reason}; next try in {event.next_try_s:g} s"
        case Recovered():
            return f"readings are good again after {event.failures} that were not"
        case Stopped():
            return f"stopped ({event.reason}) after {event.polls} readings, {event.failures} bad"


def _started(event: Started) -> str:
    version = f" {event.version}" if event.version else ""
    length = "D unknown" if event.draft_len is None else f"D={event.draft_len}"
    again = "restarted: " if event.event == "restarted" else ""
    notes = "".join(f"\n          note: {note}" for note in event.notes)
    return f"{again}{event.engine}{version} serves {event.model}, {length}{notes}"


def _status(event: Status) -> str:
    if event.tokens_per_round is None:
        return "nothing drafted yet"
    batch = max(event.batch_shares, key=lambda b: event.batch_shares[b], default=None)
    most = "" if batch is None else f", mostly batch {batch}"
    positions = " ".join(f"{x.mean:.2f}" for x in event.positions)
    return (
        f"E[L] {_interval(event.tokens_per_round)} over {event.rounds:.0f} rounds; "
        f"positions {positions}{most}"
    )


def _advised(event: Advised) -> str:
    gain = event.gain
    said = (
        f"{_name(event.kind, event.draft_len)} would be {gain.mean:.2f}x faster than "
        f"D={event.running_draft_len} (80 %: {gain.low:.2f}-{gain.high:.2f})"
    )
    for step in event.schedule:
        length = f"D={step.draft_len}" if step.draft_len else "off"
        said += f"\n          batch {step.batch_from}-{step.batch_to}: {length}"
    if event.files:
        said += f"\n          changed files (--json has their text): {', '.join(event.files)}"
    if event.remove or event.add:
        said += f"\n          take out: {' '.join(event.remove) or '-'}"
        said += f"\n          put in:   {' '.join(event.add) or '-'}"
    return said


def _name(kind: str, draft_len: int) -> str:
    return {"off": "no speculation", "schedule": "a schedule by batch"}.get(kind, f"D={draft_len}")


def _interval(found: Interval) -> str:
    return f"{found.mean:.2f} ({found.low:.2f}-{found.high:.2f})"
