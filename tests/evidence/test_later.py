from planner.evidence import load
from planner.evidence.later import figures_now, looks
from planner.predict.scenario import KNOWN


def test_rows_collected_later_share_no_origin_and_no_row_with_what_constants_saw() -> None:
    later, seen = load.later(), (*load.rows(), *load.arms())
    assert len(later) >= 100
    assert len({row.origin for row in later}) >= 15
    assert not {row.origin for row in later} & {row.origin for row in seen}
    assert not {row.row_id for row in later} & {row.row_id for row in seen}
    assert not {row.source for row in later} & {row.source for row in seen}


def test_rows_collected_later_are_whole_and_do_not_contradict_themselves() -> None:
    later = load.later()
    assert len({row.row_id for row in later}) == len(later)
    for row in later:
        assert row.source
        assert row.ask.keys() <= KNOWN
        assert row.basis in {"table", "derived", "report"}
        assert load.contradiction(row) is None


def test_the_first_look_names_its_commit_and_todays_figures_have_the_same_names() -> None:
    first = looks()["first"]
    assert len(first["commit"]) == 7
    now = figures_now()
    assert now.keys() == first["figures"].keys() == looks()["now"]["figures"].keys()
    assert now["answered"] >= first["figures"]["answered"]
