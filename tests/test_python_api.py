import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest

import planner


def in_a_process_of_its_own(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = (
        "import sys, planner; print([m for m in sys.modules if m.partition('.')[0] in "
        "('numpy', 'pydantic', 'yaml', 'typer', 'rich') or m.startswith('planner.')])"
    )
    assert in_a_process_of_its_own(code) == "[]"


def test_recommend_gives_a_plan() -> None:
    plan = planner.recommend(planner.Question(model="Qwen/Qwen3-8B", gpu="4090"))
    assert isinstance(plan, planner.Plan)
    assert plan.verdict == "helps"


def test_predict_answers_lines_also_after_its_package_was_imported() -> None:
    line = "{'id': 1, 'model': 'Qwen3-8B', 'gpu': '4090', 'draft_len': 0}"
    code = (
        f"import planner; a = planner.predict([{line}]); import planner.predict.batch; "
        f"b = planner.predict([{line}]); print(a == b, a[0]['id'], a[0]['speedup'])"
    )
    assert in_a_process_of_its_own(code) == "True 1 1.0"


@pytest.mark.parametrize(
    ("field", "value", "example"),
    [
        ("batch", "1,4", "batch=(1, 4)"),
        ("batch", 4, "batch=(1, 4)"),
        ("context", "8K", "context=(4096, 32768)"),
        ("context", (0,), "context=(4096, 32768)"),
    ],
)
def test_lists_as_the_command_line_takes_them_are_refused_with_what_to_write(
    field: str, value: object, example: str
) -> None:
    with pytest.raises(planner.PlannerError) as refusal:
        planner.Question(model="Qwen/Qwen3-8B", gpu="4090", **{field: value})
    assert example in str(refusal.value)
    assert repr(value) in str(refusal.value)


def test_a_list_of_batches_is_kept_as_a_tuple() -> None:
    assert planner.Question(model="Qwen/Qwen3-8B", gpu="4090", batch=[1, 4]).batch == (1, 4)


def test_the_page_on_python_lists_every_field_of_a_question() -> None:
    page = (Path(__file__).parents[1] / "docs" / "python.md").read_text(encoding="utf-8")
    fields = [field.name for field in dataclasses.fields(planner.Question)]
    assert [name for name in fields if f"| `{name}` |" not in page] == []


def test_failures_share_a_root() -> None:
    with pytest.raises(planner.PlannerError):
        planner.recommend(planner.Question(model="Qwen/Qwen3-8B", gpu="no such card"))


def test_other_names_are_refused_as_everywhere() -> None:
    with pytest.raises(AttributeError, match="no attribute 'frobnicate'"):
        planner.frobnicate  # noqa: B018
    assert set(planner.__all__) == set(dir(planner))
