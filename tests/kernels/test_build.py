"""`planner build` from end to end on a machine without a GPU, with a small search."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from spec_kernels.manifest import read_manifest

ROOT = Path(__file__).parents[2]
QUESTION = ("--model", "Qwen/Qwen3-8B", "--gpu", "4090", "--drafter", "eagle3", "--trials", "3")


def planner(cache: Path, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run the command in a process that reports which heavy packages it imported."""
    program = (
        "import sys\n"
        "from typer.main import get_command\n"
        "import typer\n"
        "from autotune.commands.build import command\n"
        "from planner.errors import PlannerError\n"
        "app = typer.Typer(add_completion=False)\n"
        "app.command()(command)\n"
        "try:\n"
        "    get_command(app)(args=sys.argv[1:], standalone_mode=False)\n"
        "except PlannerError as failure:\n"
        "    sys.exit(str(failure))\n"
        "heavy = sorted({'torch', 'triton', 'optuna'} & set(sys.modules))\n"
        "sys.stderr.write('HEAVY ' + ' '.join(heavy))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={
            **{k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"},
            "SPECPLANNER_CACHE": str(cache),
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "kernels")]),
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == code, ended.stderr
    return ended


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    cache = tmp_path_factory.mktemp("cache")
    return cache, planner(cache, *QUESTION, "--jobs", "2").stdout


def test_a_build_says_what_was_checked_and_where(first: tuple[Path, str]) -> None:
    statement = "validated numerically in the interpreter, compiled for sm_89, not timed"
    assert statement in first[1]
    (folder,) = (first[0] / "kernels").iterdir()
    manifest = read_manifest(folder)
    assert manifest.statement == statement
    assert manifest.validation.passed
    assert manifest.validation.worst_ratio <= 2
    for kernel in manifest.kernels:
        assert kernel.usage.spill_bytes == 0
        assert kernel.usage.smem_bytes <= 99 * 1024
        assert kernel.usage.blocks_per_sm >= 1
        assert (folder / kernel.cubin.name).read_bytes()[:4] == b"\x7fELF"
        assert kernel.parameters[-1] == "u64"


def test_the_second_build_is_a_cache_hit_without_heavy_imports(first: tuple[Path, str]) -> None:
    again = planner(first[0], *QUESTION)
    assert "from the cache" in again.stdout
    assert again.stderr.endswith("HEAVY ")


def test_a_build_goes_beside_the_plan_that_was_given(
    first: tuple[Path, str], tmp_path: Path
) -> None:
    from planner.search.question import Question  # noqa: PLC0415
    from planner.search.recommend import recommend  # noqa: PLC0415

    plan = recommend(Question(model="Qwen/Qwen3-8B", gpu="4090", drafter="eagle3"))
    (tmp_path / "plan.json").write_text(plan.model_dump_json())
    ended = planner(first[0], str(tmp_path / "plan.json"), "--trials", "3", "--json")
    printed = json.loads(ended.stdout)
    assert read_manifest(tmp_path / "kernels").key == printed["key"]


def test_a_damaged_build_is_made_again(first: tuple[Path, str]) -> None:
    (folder,) = (first[0] / "kernels").iterdir()
    cubin = folder / read_manifest(folder).kernels[0].cubin.name
    whole = cubin.read_bytes()
    cubin.write_bytes(whole[:-1])
    assert "  built:" in planner(first[0], *QUESTION).stdout
    assert cubin.read_bytes() == whole


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--model", "Qwen/Qwen3-8B"), "give a plan.json, or both --model and --gpu"),
        (("no.json", "--gpu", "4090"), "a plan file and --gpu were given"),
        (("no.json",), "no.json is not a regular file"),
        ((*QUESTION, "--page-size", "0"), "page_size 0 is outside"),
        (("--model", "Qwen/Qwen3-8B", "--gpu", "MI300X"), "have no CUDA compute capability"),
    ],
)
def test_bad_input(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    assert message in planner(tmp_path, *arguments, code=1).stderr
