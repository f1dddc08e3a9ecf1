"""Engine names and versions."""

import subprocess
import sys

import pytest

from planner.emit.registry import SUPPORTED, emitter_for
from planner.emit.rules import load_rules
from planner.errors import EngineUnsupported


@pytest.mark.parametrize(
    ("typed", "engine"),
    [
        ("vllm", "vllm"),
        ("vLLM==0.33.0", "vllm"),
        ("llama.cpp", "llama.cpp"),
        ("llamacpp==b11434", "llama.cpp"),
        ("llama-cpp == 11434", "llama.cpp"),
    ],
)
def test_known_engines(typed: str, engine: str) -> None:
    assert emitter_for(typed).engine_version.engine == engine


@pytest.mark.parametrize(
    ("typed", "advice"),
    [
        ("vllm==0.32.0", "vllm==0.33.0"),
        ("llama.cpp==b9000", "llama.cpp==b11434"),
        ("vlm", "use vllm"),
        ("tgi", "llama.cpp==b11434"),
        ("", "vllm==0.33.0"),
    ],
)
def test_other_engines_and_versions(typed: str, advice: str) -> None:
    with pytest.raises(EngineUnsupported) as caught:
        emitter_for(typed)
    assert advice in str(caught.value)


@pytest.mark.parametrize("engine", sorted(SUPPORTED))
def test_versions_agree(engine: str) -> None:
    version = emitter_for(engine).engine_version
    book = load_rules(engine, SUPPORTED[engine])
    assert (version.engine, version.version) == (engine, SUPPORTED[engine])
    assert (book.engine, book.version, book.read_at) == (
        version.engine,
        version.version,
        version.rules_read_at,
    )


def test_other_engines_are_not_imported() -> None:
    code = (
        "import sys; from planner.emit.registry import emitter_for; emitter_for('vllm');"
        "assert 'planner.emit.llamacpp' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
