"""Drafter families as people write them."""

import re

from planner.drafters.records import FAMILIES, Family

_ALSO: dict[str, Family] = {
    "draftmodel": "external",
    "draft": "external",
    "eagle": "eagle3",
    "nextn": "mtp",
    "lookup": "ngram",
    "ngramlookup": "ngram",
    "promptlookup": "ngram",
    "off": "none",
}
"""Further names, without -, _ and spaces: what the page, engines and papers call them."""


def family_named(text: str) -> Family | None:
    """The family that a word means: `EAGLE-3`, `draft model`, `n-gram`; None where it is none."""
    word = re.sub(r"[-_\s]", "", text.lower())
    for family in FAMILIES:
        if word == family:
            return family
    return _ALSO.get(word)
