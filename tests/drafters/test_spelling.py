import pytest

from planner.drafters.records import FAMILIES
from planner.drafters.spelling import family_named
from planner.report.wording import family_title


def test_every_family_goes_by_its_own_name_and_its_title() -> None:
    for family in FAMILIES:
        assert family_named(family) == family
        assert family_named(family_title(family)) == family


@pytest.mark.parametrize("text", ["", "medusa", "EAGLE-4", "\u0435agle3"])
def test_other_words_are_no_family(text: str) -> None:
    assert family_named(text) is None
