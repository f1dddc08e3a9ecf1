from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table
from rich.text import Text

from planner.report.names import Name
from planner.report.plain import broken
from planner.report.screen import screen_text


@given(st.text(alphabet="ab/_-. ", max_size=60), st.integers(1, 30))
def test_only_line_breaks_are_added(text: str, width: int) -> None:
    assert broken(text, width).replace("\n", "") == text


def test_a_long_name_breaks_behind_a_separator_and_a_short_one_not_at_all() -> None:
    name = "deepseek-ai/dspark_qwen3_8b_block7"
    assert broken(name, 26) == "deepseek-ai/dspark_qwen3_\n8b_block7"
    assert broken(name, 34) == name
    assert broken("x" * 40, 10) == "x" * 40


def test_a_column_shows_all_of_it() -> None:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold", max_width=20)
    table.add_row(Text("from"), Name("see core/src/model_configs/Qwen--Qwen3-8B.json"))
    words = screen_text([table]).split()
    assert words[:2] == ["from", "see"]
    assert "".join(words[2:]) == "core/src/model_configs/Qwen--Qwen3-8B.json"
    assert all(word[-1] in "/_-" for word in words[2:-1])
