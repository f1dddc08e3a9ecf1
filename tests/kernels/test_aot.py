"""Compilation for cards that are not here. A process of its own: the interpreter is on in this."""

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = """
import json, sys
from spec_kernels.aot import Job, compile_job
from spec_kernels.verify_attention.spec import VerifySpec, default_config
found = []
for kernel, capability, rows, options in json.load(sys.stdin):
    spec = VerifySpec(**{"head_dim": 128, "page_size": 16, **options})
    built = compile_job(Job(kernel, spec, default_config(capability, spec, rows), capability))
    found.append({
        "refusal": built.refusal(capability), "blocks": built.blocks_per_sm,
        "matrix": built.matrix_instruction, "parameters": built.parameters,
        "elf": built.cubin[:4] == b"\\x7fELF", "target": f"sm_{capability}" in built.ptx,
    })
print(json.dumps(found))
"""

CASES = [
    ("attend", 80, 16, {"dtype": "fp16"}, "mma.m16n8"),
    ("attend", 80, 32, {"kv_dtype": "fp8_e4m3"}, "mma.m16n8"),
    ("attend", 89, 28, {}, "mma.m16n8"),
    ("attend", 89, 128, {}, "mma.m16n8"),
    ("attend", 90, 64, {}, "wgmma.m64"),
    ("attend", 100, 128, {}, "tcgen05"),
    ("attend", 120, 32, {"mask": "tree", "tree_words": 1, "window": True}, "mma.m16n8"),
    ("merge", 120, 1, {"sinks": True}, "none"),
]
SPILL_UNDER_3_4 = {("attend", 89, 128)}
"""Refused, so that a build under Triton 3.4 finds another configuration."""


@pytest.fixture(scope="module")
def compiled() -> list[dict[str, object]]:
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps([case[:4] for case in CASES]),
        env={
            **{k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"},
            "PYTHONPATH": str(ROOT / "kernels"),
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


@pytest.mark.parametrize("place", range(len(CASES)), ids=[f"{c[0]}-sm{c[1]}-{c[2]}" for c in CASES])
def test_default_configurations_are_clean(compiled: list[dict[str, object]], place: int) -> None:
    found = compiled[place]
    known = CASES[place][:3] in SPILL_UNDER_3_4 and version("triton").startswith("3.4.")
    assert bool(found["refusal"]) == known
    assert found["blocks"] >= 1
    assert found["matrix"] == CASES[place][4]
    assert found["elf"]
    assert found["target"]


def test_the_interpreter_cannot_compile() -> None:
    from spec_kernels.aot import Job, compile_job  # noqa: PLC0415
    from spec_kernels.errors import CompilerFailure  # noqa: PLC0415
    from spec_kernels.verify_attention.spec import VerifySpec, default_config  # noqa: PLC0415

    if os.environ.get("TRITON_INTERPRET") != "1":
        pytest.skip("a GPU is here, so the interpreter is off")
    spec = VerifySpec(128, 16)
    with pytest.raises(CompilerFailure, match="TRITON_INTERPRET is set"):
        compile_job(Job("attend", spec, default_config(89, spec, 16), 89))
