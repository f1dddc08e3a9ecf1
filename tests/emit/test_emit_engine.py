"""What is emitted, through the real engines' own argument parsers where they are installed."""

import dataclasses
import json
import shutil
import subprocess
from pathlib import Path

import emit_plans as build
import pytest
import yaml

from planner.emit.registry import SUPPORTED, emitter_for
from planner.search.records import Plan

pytestmark = pytest.mark.engine

FAMILIES = sorted(build.DRAFTERS)
LIMITS = {"dflash": 15, "dspark": 7}


def plan(engine: str, family: str) -> Plan:
    best = build.evaluation(family, 4, quant="bf16", batch=2)
    table = build.cells((1, 4), (2, 4), (8, 0))
    return build.plan(
        best,
        table,
        engine=engine,
        engine_version=SUPPORTED[engine],
        max_draft_len=LIMITS.get(family),
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_vllm_serve_parses_the_config(family: str, tmp_path: Path) -> None:
    pytest.importorskip("vllm", reason="vllm is not installed")
    from vllm.config import SpeculativeConfig  # noqa: PLC0415
    from vllm.entrypoints.common.cli_args import make_arg_parser  # noqa: PLC0415
    from vllm.utils.argparse_utils import FlexibleArgumentParser  # noqa: PLC0415

    emission = emitter_for("vllm").emit(plan("vllm", family))
    text = next(f.text for f in emission.files if f.name == "engine.yaml")
    (tmp_path / "engine.yaml").write_text(text)
    parser = make_arg_parser(FlexibleArgumentParser())
    model = emission.launch.argv[2]
    config = yaml.safe_load(text)
    parsed = parser.parse_args([model, "--config", str(tmp_path / "engine.yaml")])
    assert parsed.max_num_seqs == config["max-num-seqs"]
    for argv in emission.launch.arms.values():
        assert parser.parse_args(list(argv[2:])).model_tag == model
    known = {field.name for field in dataclasses.fields(SpeculativeConfig)}
    assert set(config["speculative-config"]) <= known


@pytest.mark.parametrize("family", FAMILIES)
def test_llama_server_knows_every_flag(family: str) -> None:
    """The model file is missing, so a command that parses ends at loading it."""
    server = shutil.which("llama-server")
    if server is None:
        pytest.skip("llama-server is not on PATH")
    emission = emitter_for("llama.cpp").emit(plan("llama.cpp", family))
    for argv in (emission.launch.argv, *emission.launch.arms.values()):
        done = subprocess.run(
            [server, *argv[1:]], capture_output=True, text=True, timeout=60, check=False
        )
        said = done.stdout + done.stderr
        assert "invalid argument" not in said, json.dumps(argv)
        assert "error while handling argument" not in said, json.dumps(argv)
