"""compose.yaml: the same command as launch.sh, in the engine's own image."""

from pathlib import Path

import emit_plans as build
import pytest
import yaml

from planner.emit.records import Emission
from planner.emit.registry import SUPPORTED, emitter_for
from planner.search.records import Plan

IMAGES = {
    "vllm": "vllm/vllm-openai:v0.33.0",
    "sglang": "lmsysorg/sglang:v0.5.23",
    "llama.cpp": "ghcr.io/ggml-org/llama.cpp:server-cuda-b11434",
    "trtllm": "nvcr.io/nvidia/tensorrt-llm/release:1.3.0rc5",
}


def emit(engine: str, **changes: object) -> Emission:
    best = build.evaluation("external", 4, quant="Q4_K_M" if engine == "llama.cpp" else "bf16")
    return emitter_for(engine).emit(plan_of(engine, best, **changes))


def plan_of(engine: str, best: object, **changes: object) -> Plan:
    return build.plan(best, engine=engine, engine_version=SUPPORTED[engine], **changes)  # type: ignore[arg-type]


def service(emission: Emission) -> dict[str, object]:
    text = next(file.text for file in emission.files if file.name == "compose.yaml")
    (found,) = yaml.safe_load(text)["services"].values()
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("engine", sorted(IMAGES))
def test_the_container_starts_what_the_script_starts(engine: str) -> None:
    emission = emit(engine)
    made = service(emission)
    assert made["image"] == IMAGES[engine]
    assert made["command"] == list(emission.launch.argv[1:])
    program = "/app/llama-server" if engine == "llama.cpp" else emission.launch.argv[0]
    assert made["entrypoint"] == [program]
    assert made["network_mode"] == "host"  # the server listens on 127.0.0.1
    assert any(IMAGES[engine] in note for note in emission.notes)


def test_every_card_is_handed_in_the_drafters_too() -> None:
    emission = emit("llama.cpp", num_gpus=2, drafter_device="RTX 3060", drafter_device_kind="gpu")
    deploy = service(emission)["deploy"]
    assert isinstance(deploy, dict)
    assert deploy["resources"]["reservations"]["devices"][0]["count"] == 3


MI300X = {"gpu": "amd-mi300x", "gpu_name": "MI300X"}


def test_an_image_that_is_not_of_the_version_says_so() -> None:
    emission = emit("trtllm")
    assert any("not commit 0004396720" in note for note in emission.notes)
    text = next(file.text for file in emission.files if file.name == "compose.yaml")
    assert "# caution: this is a release candidate" in text


def test_amd_cards_are_reached_as_rocm_needs_it() -> None:
    emission = emit("vllm", **MI300X)
    made = service(emission)
    assert made["image"] == "vllm/vllm-openai-rocm:v0.33.0"
    assert made["devices"] == ["/dev/kfd", "/dev/dri"]
    assert "deploy" not in made
    assert any("was not checked" in note for note in emission.notes)


@pytest.mark.parametrize("engine", ["sglang", "llama.cpp"])
def test_no_image_no_file_and_a_line_that_says_so(engine: str) -> None:
    emission = emit(engine, **MI300X)
    assert "compose.yaml" not in [file.name for file in emission.files]
    assert any(note.startswith("no compose.yaml") for note in emission.notes)


def test_a_local_checkpoint_is_mounted_and_its_dollar_sign_kept(tmp_path: Path) -> None:
    folder = tmp_path / "own$HOME"
    folder.mkdir()
    made = service(emit("vllm", model_source=str(folder)))
    escaped = str(folder).replace("$", "$$")
    bind = {"type": "bind", "source": escaped, "target": escaped, "read_only": True}
    volumes, command = made["volumes"], made["command"]
    assert isinstance(volumes, list)
    assert isinstance(command, list)
    assert bind in volumes
    assert escaped in command


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_the_hub_cache_is_mounted_where_the_engine_is_told_to_look(engine: str) -> None:
    made = service(emit(engine))
    volumes, environment = made["volumes"], made["environment"]
    assert isinstance(volumes, list)
    assert isinstance(environment, list)
    home = next(line.removeprefix("HF_HOME=") for line in environment if "HF_HOME=" in line)
    assert any(str(bind).endswith(f"huggingface}}:{home}") for bind in volumes)
