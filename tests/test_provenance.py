import pytest

from hwprofiles.provenance import KINDS, Kind, weakest


@pytest.mark.parametrize("kind", KINDS)
def test_combining_with_an_assumption_is_an_assumption(kind: Kind) -> None:
    assert weakest([kind, "assumed"]) == "assumed"


def test_a_figure_claims_no_more_than_its_weakest_part() -> None:
    assert weakest(["measured", "derived", "datasheet"]) == "derived"
    assert weakest(["measured", "measured"]) == "measured"


def test_a_figure_built_from_nothing_is_assumed() -> None:
    assert weakest([]) == "assumed"
