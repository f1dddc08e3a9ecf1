from hypothesis import given
from hypothesis import strategies as st

from planner.report.html.scatter import Dot, agreement


def dot(measured: float, predicted: float) -> Dot:
    return Dot("mtp", measured, predicted, predicted, predicted, "")


def test_a_quarter_is_near_and_the_rest_has_a_side() -> None:
    dots = [dot(2.0, 2.5), dot(2.0, 1.6), dot(2.0, 1.5), dot(1.0, 1.3)]
    said = agreement(dots)
    assert said.startswith("Of 4 marks 2 are in the shaded band, 1 below it")
    assert said.endswith("and 1 above.")


@given(st.lists(st.tuples(st.floats(0.1, 10), st.floats(0.1, 10)), min_size=1))
def test_all_marks_are_counted_once(pairs: list[tuple[float, float]]) -> None:
    words = agreement([dot(*pair) for pair in pairs]).replace(".", "").split()
    numbers = [int(word) for word in words if word.isdigit()]
    assert numbers[0] == len(pairs) == sum(numbers[1:])
