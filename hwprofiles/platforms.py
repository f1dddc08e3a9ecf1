"""Memory channels, transfer rate and bus of processor series, for processors without a profile."""

import re
from functools import lru_cache

from pydantic import BaseModel, ConfigDict

from hwprofiles.errors import InputError
from hwprofiles.load import DATA
from hwprofiles.yamlfile import parse_shipped_rows, validate


class Platform(BaseModel):
    """One series of processors."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    series: str
    pattern: str
    """Regular expression for the folded text."""
    channels: int = 0
    """Memory channels of one socket."""
    ddr: int = 0
    """DDR generation."""
    mt_per_s: float = 0.0
    """Fastest transfer rate of the maker's list, MT/s."""
    pcie: int = 0
    """PCIe generation of a card's slot."""
    ref: str = ""
    note: str = ""
    refuse: str = ""
    """Why no memory rate is given for the series."""


@lru_cache(maxsize=1)
def load_platforms() -> tuple[Platform, ...]:
    """All series, in the order in which they are tried."""
    path = DATA / "platforms.yaml"
    return tuple(validate(Platform, row, path) for row in parse_shipped_rows(path))


def platform_of(text: str) -> Platform | None:
    """The series that a folded text names, or None.

    Raises:
        InputError: a series for which no rate can be given.
    """
    for row in load_platforms():
        if re.search(row.pattern, text):
            if row.refuse:
                raise InputError(f"{row.series} as host: {row.refuse}")
            return row
    return None
