"""Settings beyond a handful: draft lengths and other drafters of the plan, times engine flags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from autotune.tune.records import OFF, Arm
from planner.errors import InputError

ARM = "arm"
"""Name of the setting that picks one of the plan's arms."""
ABSENT = "-"
"""Value of a flag that is left out."""
MAX_VALUES = 64


@dataclass(frozen=True, slots=True)
class Knob:
    """One flag of the engine and the values to try."""

    flag: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Space:
    """Everything that a study may choose from."""

    arms: tuple[Arm, ...]
    """Drafted arms of the plan."""
    knobs: tuple[Knob, ...] = ()

    def choices(self) -> dict[str, tuple[str, ...]]:
        """Setting -> values."""
        found = {ARM: tuple(arm.name for arm in self.arms)}
        return found | {knob.flag: knob.values for knob in self.knobs}

    @property
    def size(self) -> int:
        """Number of configurations."""
        return prod(len(values) for values in self.choices().values())

    def all(self) -> list[dict[str, str]]:
        """Every configuration."""
        names, values = zip(*self.choices().items(), strict=True)
        return [dict(zip(names, one, strict=True)) for one in product(*values)]

    def arm(self, settings: Mapping[str, str]) -> Arm:
        """The configuration as an arm with its command."""
        base = next(arm for arm in self.arms if arm.name == settings[ARM])
        argv, name = list(base.argv), base.name
        for knob in self.knobs:
            value = settings[knob.flag]
            argv = with_flag(argv, knob.flag, value)
            name += f" {knob.flag}={value}"
        return base.model_copy(update={"name": name, "argv": tuple(argv)})


def space_of(arms: Sequence[Arm], varied: Sequence[str]) -> Space:
    """The space of the plan's arms and of `FLAG=V1,V2` texts.

    Raises:
        InputError: a text does not read so, or a flag is given twice.
    """
    knobs = [_knob(text) for text in varied]
    flags = [knob.flag for knob in knobs]
    if len(set(flags)) < len(flags):
        raise InputError(f"--vary names a flag twice: {', '.join(flags)}; give its values at once")
    return Space(tuple(arm for arm in arms if arm.name != OFF), tuple(knobs))


def _knob(text: str) -> Knob:
    flag, equals, listed = text.strip().rpartition("=")
    values = tuple(dict.fromkeys(value.strip() for value in listed.split(",")))
    if not equals or not flag.startswith("-") or not all(values):
        raise InputError(
            f"--vary takes FLAG=VALUE,VALUE with the engine's own flag and got {text[:80]!r}; "
            f"write for example --vary=--spec-ngram-simple-size-n=2,3 ({ABSENT} leaves it out)"
        )
    if len(values) > MAX_VALUES:
        raise InputError(f"--vary {flag} has {len(values)} values; {MAX_VALUES} at most")
    return Knob(flag, values)


def with_flag(argv: Sequence[str], flag: str, value: str) -> list[str]:
    """The command with a flag's value set, added or taken out."""
    words = list(argv)
    for index, word in enumerate(words):
        if word.startswith(f"{flag}="):
            words[index : index + 1] = [] if value == ABSENT else [f"{flag}={value}"]
            return words
        if word == flag:
            words[index : index + 2] = [] if value == ABSENT else [flag, value]
            return words
    return words if value == ABSENT else [*words, flag, value]
