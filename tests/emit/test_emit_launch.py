"""launch.sh starts exactly launch.argv, whatever the names are."""

import os
import subprocess
from pathlib import Path

import emit_plans as build
import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from planner.emit.names import argument, file_stem, one_line
from planner.emit.records import Emission
from planner.emit.registry import emitter_for
from planner.emit.vllm import VllmEmitter
from planner.emit.write import write_out
from planner.errors import InputError
from planner.search.records import Plan

HOSTILE = (
    'org/it\'s "quoted"',
    "org/$(touch pwned)",
    "org/`touch pwned`",
    "org/a\ntouch pwned\n#",
    "org/a\r\ntouch pwned",
    "../../etc/pas swd",
    "org/a; touch pwned",
    "org/${HOME}*?[x]~!",
    "org/: {yaml}, [list] # no",
    "org/\\\\ back\\slash\\",
    "org/\u2028touch pwned\x85\x07",
    "on",
    "1e3",
)
NAMES = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1)
STUB = '#!/bin/sh\nprintf "%s\\0" "$(basename "$0")" "$@" > "$STUB_OUT"\n'


def hostile_plan(engine: str, model: str, drafter: str) -> Plan:
    quant = "bf16" if engine == "vllm" else "Q4_K_M"
    best = build.evaluation("external", 4, drafter_id=drafter, quant=quant)
    return build.plan(best, engine=engine, model_name=model, model_source=f"catalog {model!r}")


def run_script(folder: Path, script: str, path: Path) -> list[str]:
    """The argument list that the stub engine received."""
    seen = folder / "argv"
    env = {**os.environ, "PATH": f"{path}:{os.environ['PATH']}", "STUB_OUT": str(seen)}
    env |= {"LLAMA_ARG_SPEC_TYPE": "ngram-mod"}
    subprocess.run(["bash", "-n", script], check=True, cwd=folder)
    subprocess.run(["bash", script], check=True, cwd="/", env=env, timeout=20)
    return seen.read_bytes().decode().split("\0")[:-1]


@pytest.fixture(scope="module")
def stubs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bin")
    for name in ("vllm", "llama-server"):
        (folder / name).write_text(STUB)
        (folder / name).chmod(0o755)
    return folder


def assert_starts_argv(emission: Emission, folder: Path, stubs: Path) -> None:
    script = next(f for f in emission.files if f.name == "launch.sh")
    (folder / "launch.sh").write_bytes(script.text.encode())
    assert tuple(run_script(folder, str(folder / "launch.sh"), stubs)) == emission.launch.argv
    assert sorted(p.name for p in folder.iterdir()) == ["argv", "launch.sh"]
    assert all("\n" not in note for note in emission.notes)


@pytest.mark.parametrize("engine", ["vllm", "llama.cpp"])
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_one_argument(
    engine: str, name: str, tmp_path: Path, stubs: Path
) -> None:
    emission = emitter_for(engine).emit(hostile_plan(engine, name, name + "-draft"))
    assert_starts_argv(emission, tmp_path, stubs)


@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@example("vllm", "org/x'", "d\n")
@given(st.sampled_from(["vllm", "llama.cpp"]), NAMES, NAMES)
def test_any_name_stays_one_argument(
    tmp_path: Path, stubs: Path, engine: str, model: str, drafter: str
) -> None:
    emission = emitter_for(engine).emit(hostile_plan(engine, "m" + model, "d" + drafter))
    assert_starts_argv(emission, tmp_path, stubs)


@pytest.mark.parametrize("name", HOSTILE)
def test_engine_yaml_holds_the_very_name(name: str) -> None:
    emission = VllmEmitter().emit(hostile_plan("vllm", "org/target", name))
    text = next(f.text for f in emission.files if f.name == "engine.yaml")
    assert text.isascii()
    assert yaml.safe_load(text)["speculative-config"]["model"] == name


@given(NAMES)
@settings(max_examples=100, deadline=None)
def test_file_stems_are_plain(name: str) -> None:
    stem = file_stem(name)
    assert stem
    assert not set(stem) - set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
    assert stem[0] not in ".-"


@pytest.mark.parametrize("name", ["", "-o", "--flag", "a\0b", "\ud800"])
def test_names_that_no_process_can_be_given(name: str) -> None:
    with pytest.raises(InputError, match="the model"):
        argument(name, "the model")


def test_comments_are_one_line() -> None:
    assert one_line("a\nb\r\tc\x1b[31m\u2028d") == "a b  c [31m d"


def test_extra_arguments_are_passed_on(tmp_path: Path, stubs: Path) -> None:
    emission = emitter_for("vllm").emit(build.plan())
    write_out(tmp_path / "out", build.plan(), emission)
    seen = tmp_path / "argv"
    env = {**os.environ, "PATH": f"{stubs}:{os.environ['PATH']}", "STUB_OUT": str(seen)}
    subprocess.run([tmp_path / "out" / "launch.sh", "--port", "9000"], check=True, env=env)
    assert seen.read_bytes().decode().split("\0")[-3:] == ["--port", "9000", ""]


def test_the_off_command_is_not_changed_by_the_environment(tmp_path: Path) -> None:
    """A user's LLAMA_ARG_SPEC_TYPE would switch a drafter on in the arm `off`."""
    off = build.evaluation("none", 0, quant="Q8_0")
    emission = emitter_for("llama.cpp").emit(build.plan(off, engine="llama.cpp"))
    server = tmp_path / "llama-server"
    server.write_text("#!/bin/sh\nenv\n")
    server.chmod(0o755)
    script = tmp_path / "launch.sh"
    script.write_text(next(f.text for f in emission.files if f.name == "launch.sh"))
    env = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "LLAMA_ARG_SPEC_TYPE": "ngram-mod",
        "LLAMA_ARG_DRAFT_MAX": "4",
        "KEPT": "1",
    }
    done = subprocess.run(["bash", script], check=True, env=env, capture_output=True, text=True)
    assert "LLAMA_ARG" not in done.stdout
    assert "KEPT=1" in done.stdout
