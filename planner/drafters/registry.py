"""The drafter families by name; a new family is one module and one line here."""

from collections.abc import Mapping

from planner.drafters.base import DrafterFamily
from planner.drafters.dflash import DFlash
from planner.drafters.dspark import DSpark
from planner.drafters.eagle3 import Eagle3
from planner.drafters.external import External
from planner.drafters.mtp import Mtp
from planner.drafters.ngram import Ngram
from planner.drafters.records import DrafterSpec, DraftWork, Family
from planner.errors import InputError

DRAFTERS: Mapping[Family, DrafterFamily] = {
    one.family: one for one in (External(), Eagle3(), Mtp(), DFlash(), DSpark(), Ngram())
}


def family_of(name: str) -> DrafterFamily:
    """The implementation of a family.

    Raises:
        InputError: no such family.
    """
    for known, family in DRAFTERS.items():
        if known == name:
            return family
    raise InputError(f"unknown drafter family {name!r}; known: {', '.join(DRAFTERS)}, none")


def work_of(spec: DrafterSpec) -> DraftWork:
    """What one round asks of a drafter."""
    return family_of(spec.family).work(spec)
