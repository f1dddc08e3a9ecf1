"""One start command against another."""

from hypothesis import given
from hypothesis import strategies as st

from autotune.tune.change import change_between

BEFORE = ("serve", "-m", "x", "--draft", "4", "--metrics")
COMMANDS = st.lists(st.sampled_from(["-a", "--b", "1", "2", "x", "--c=3"]), min_size=1)


def test_a_changed_value_is_shown_with_its_option() -> None:
    found = change_between(BEFORE, ("serve", "-m", "x", "--draft", "6", "--metrics"))
    assert (found.remove, found.add) == (("--draft", "4"), ("--draft", "6"))
    assert found.argv == ("serve", "-m", "x", "--draft", "6", "--metrics")


def test_what_only_goes_has_nothing_in_its_place() -> None:
    found = change_between(BEFORE, ("serve", "-m", "x", "--metrics"))
    assert (found.remove, found.add) == (("--draft", "4"), ())
    same = change_between(BEFORE, BEFORE)
    assert (same.remove, same.add) == ((), ())


@given(before=COMMANDS, after=COMMANDS)
def test_words_that_stay_are_named_on_neither_side(before: list[str], after: list[str]) -> None:
    found = change_between(before, after)
    kept = sorted(before)
    for word in found.remove:
        kept.remove(word)
    assert sorted([*kept, *found.add]) == sorted(after)
