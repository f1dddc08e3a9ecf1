"""Names that strangers chose, from the question to the running process: argv is the plan's."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from gguf_samples import Q4_K, Q6_K, dense_block, write

from planner.cli.launchable import launchable
from planner.emit.write import write_out
from planner.report.page import page
from planner.report.screen import screen_text
from planner.search.question import Question
from planner.search.records import Plan

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX names and shells")
DATA = Path(__file__).parents[1] / "data"
STUB = '#!/bin/sh\nprintf "%s\\0" "$(basename "$0")" "$@" > "$STUB_OUT"\n'
PROGRAMS = ("vllm", "sglang", "trtllm-serve", "llama-server")
NAMES = (
    'it\'s "quoted"',
    "$(touch pwned)",
    "`touch pwned`",
    "a; touch pwned &",
    "line\ntouch pwned\n",
    "-rf",
    "--config=x",
    "${HOME} $HOME $$",
    "*?[x]~!{a,b}",
    "back\\slash\\",
    "# no comment",
    ": {yaml}, [list] & *anchor",
    "\x1b[2Jcleared\x1b]8;;evil\x07link\x1b]8;;\x07",
    "\u202egpj.exe\u200b\u2066",
    "\u0430\u0455\u0441ii",  # Cyrillic letters that look like Latin ones
    "\u00e9\u4e2d\U0001f4a9",
    " leading and trailing ",
)


@pytest.fixture(scope="module")
def stubs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bin")
    for name in PROGRAMS:
        (folder / name).write_text(STUB)
        (folder / name).chmod(0o755)
    return folder


def model_in(folder: Path, name: str, engine: str) -> Path:
    """A model whose path holds the name: a checkpoint folder, or for llama.cpp a file."""
    below = folder / name
    below.mkdir(parents=True)
    if engine == "llama.cpp":
        values = {
            "block_count": 2, "embedding_length": 256, "context_length": 4096,
            "feed_forward_length": 512, "attention.head_count": 4, "attention.head_count_kv": 2,
        }  # fmt: skip
        tensors = {"token_embd.weight": ((1000, 256), Q4_K), "output.weight": ((1000, 256), Q6_K)}
        tensors |= {**dense_block(0), **dense_block(1)}
        return write(below / f"{name}.gguf", "llama", values, tensors, tokens=1000)
    source = DATA / "configs" / "meta-llama--Meta-Llama-3.1-8B.config.json"
    shutil.copy(source, below / "config.json")
    return below


CASES = [
    *((engine, name) for engine in ("vllm", "llama.cpp") for name in NAMES),
    *((engine, "".join(NAMES)[::2]) for engine in ("sglang", "trtllm")),
    *((engine, name) for engine in ("sglang", "trtllm") for name in NAMES[::5]),
]
IDS = [f"{engine}-{number}" for number, (engine, _) in enumerate(CASES)]


class Planned:
    """Plans for a model and a drafter of a name, each made once and written out."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.known: dict[tuple[str, str], tuple[Plan, Path]] = {}

    def __call__(self, engine: str, name: str) -> tuple[Plan, Path]:
        if (engine, name) not in self.known:
            below = self.folder / str(len(self.known))
            below.mkdir()
            self.known[engine, name] = planned_in(below, engine, name)
        return self.known[engine, name]


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Planned:
    return Planned(tmp_path_factory.mktemp("plans"))


def planned_in(folder: Path, engine: str, name: str) -> tuple[Plan, Path]:
    """The plan for a model and a drafter of that name, and the folder it was written into."""
    model = model_in(folder / "models", name, engine)
    if engine == "llama.cpp":
        drafter = model_in(folder / "drafters", name, engine)
    else:
        drafter = folder / "drafters" / name
        drafter.mkdir(parents=True)
        shutil.copy(DATA / "drafters" / "llama3-8B-eagle3.json", drafter / "config.json")
    asked = Question(
        str(model), "h100", engine=engine, batch=(1,), context=(1024,), calibration="none",
        drafter_path=str(drafter), tokens_per_round=3.0,
    )  # fmt: skip
    plan, emission = launchable(asked, must=True)
    assert emission is not None
    out = folder / "out" / name
    return write_out(out, plan, emission), out


def started(out: Path, stubs: Path, seen: Path) -> list[str]:
    env = {**os.environ, "PATH": f"{stubs}:{os.environ['PATH']}", "STUB_OUT": str(seen)}
    subprocess.run([str(out / "launch.sh")], check=True, cwd="/", env=env, timeout=60)
    return seen.read_bytes().decode().split("\0")[:-1]


@pytest.mark.parametrize(("engine", "name"), CASES, ids=IDS)
def test_the_process_gets_the_very_names(
    engine: str, name: str, tmp_path: Path, stubs: Path, planned: Planned
) -> None:
    plan, out = planned(engine, name)
    assert plan.launch is not None
    assert started(out, stubs, tmp_path / "argv") == list(plan.launch.argv)
    assert any(name.strip() in word for word in _strings(out)), "the name is in what is started"
    assert not list(planned.folder.rglob("pwned"))
    assert sorted(p.name for p in out.iterdir()) == sorted(plan.files)
    shown = screen_text(page(plan))
    assert not set(shown) - {"\n"} & set(map(chr, (*range(32), 127, 0x202E, 0x200B, 0x2066)))


def _strings(out: Path) -> list[str]:
    """Every text that the engine gets: the command's words and the values of its config."""
    plan = json.loads((out / "plan.json").read_text(encoding="utf-8"))
    found = list(plan["launch"]["argv"])
    for config in (*out.glob("engine.yaml"), *out.glob("engine.json")):
        nodes = [yaml.safe_load(config.read_text(encoding="utf-8"))]
        while nodes:
            node = nodes.pop()
            nodes += (
                node.values() if isinstance(node, dict) else node if isinstance(node, list) else []
            )
            found += [node] if isinstance(node, str) else []
    return found


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not on PATH")
def test_the_scripts_pass_shellcheck(planned: Planned) -> None:
    scripts = [str(planned(engine, name)[1] / "launch.sh") for engine, name in CASES]
    done = subprocess.run(
        ["shellcheck", *scripts], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")


_HUB_CACHE = "${HF_HOME:-${HOME}/.cache/huggingface}"


@pytest.mark.parametrize(("engine", "name"), CASES, ids=IDS)
def test_compose_starts_the_same_words(engine: str, name: str, planned: Planned) -> None:
    """Interpolation as Docker does it: `$$` is a dollar sign, and no other one is left."""
    plan, out = planned(engine, name)
    if not (out / "compose.yaml").exists():
        assert engine == "trtllm", "its image is not known"
        return
    text = (out / "compose.yaml").read_text(encoding="utf-8")
    assert text.isprintable() or set(text) <= set(map(chr, range(32, 127))) | {"\n"}
    service = yaml.safe_load(text)["services"]["engine"]
    assert plan.launch is not None
    words = [_interpolated(word) for word in service["command"]]
    assert words == list(plan.launch.argv[1:])
    for mount in service["volumes"]:
        if isinstance(mount, dict):
            source = _interpolated(mount["source"])
            assert Path(source).exists(), source
            assert source == _interpolated(mount["target"])


def _interpolated(text: str) -> str:
    left = re.sub(r"\$\$", "", text.replace(_HUB_CACHE, ""))
    assert "$" not in left, text
    return text.replace("$$", "$")


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "x" * 300])
def test_names_that_no_file_has_are_refused(name: str, tmp_path: Path) -> None:
    from planner.errors import InputError  # noqa: PLC0415 - of the same family as in production

    for asked in (
        Question(f"{tmp_path}/{name}", "h100"),
        Question("Qwen/Qwen3-8B", "h100", drafter_path=f"{tmp_path}/{name}"),
        Question("Qwen/Qwen3-8B", f"{tmp_path}/{name}.yaml"),
        Question("Qwen/Qwen3-8B", "h100", host=f"{tmp_path}/{name}.yaml"),
        Question("Qwen/Qwen3-8B", "h100", calibration=f"{tmp_path}/{name}"),
        Question("Qwen/Qwen3-8B", "h100", acceptance=f"{tmp_path}/{name}"),
    ):
        with pytest.raises(InputError):
            launchable(asked, must=False)
