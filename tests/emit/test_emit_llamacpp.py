"""llama.cpp b11434: exact commands for a handful of plans, and what shapes them."""

import json
from pathlib import Path

import emit_plans as build
import pytest

from planner.emit.llamacpp import LlamacppEmitter
from planner.emit.records import Emission
from planner.errors import EngineUnsupported
from planner.search.records import Plan

SPEC_FLAGS = ("--spec", "-md", "-ngld", "-ctkd", "-ctvd")


def plan(family: str = "external", draft_len: int = 5, **changes: object) -> Plan:
    limit = changes.pop("max_draft_len", None)
    step = changes.pop("draft_len_step", 1)
    offload = changes.pop("offload", None)
    num_gpus = changes.pop("num_gpus", 1)
    source = changes.pop("model_source", "catalog")
    best = build.evaluation(family, draft_len, **{"quant": "Q4_K_M", **changes})
    return build.plan(
        best,
        max_draft_len=limit,  # type: ignore[arg-type]
        draft_len_step=step,  # type: ignore[arg-type]
        engine="llama.cpp",
        engine_version="b11434",
        offload=offload,
        num_gpus=num_gpus,
        model_source=source,
    )


def emit(wanted: Plan) -> Emission:
    return LlamacppEmitter().emit(wanted)


def line(wanted: Plan) -> str:
    return " ".join(emit(wanted).launch.argv)


COMMON = "llama-server -m models/Qwen3-8B-Q4_K_M.gguf"
TAIL = "--host 127.0.0.1 --port 8080 --metrics"

EXTERNAL_SCRIPT = """\
#!/usr/bin/env bash
# llama.cpp b11434 for Qwen/Qwen3-8B on 1x RTX 4090, written by specplanner 0.1.0
# external D=5: 1.50x (1.30 to 1.70), helps (batch 4, context 4096, Q4_K_M, KV bf16)
#
# Before the first start:
# hf download Qwen/Qwen3-8B --local-dir models/hf/Qwen3-8B  # 15.3 GiB, LICENCE
# python convert_hf_to_gguf.py models/hf/Qwen3-8B --outtype bf16 --outfile models/Qwen3-8B-BF16.gguf
# llama-quantize models/Qwen3-8B-BF16.gguf models/Qwen3-8B-Q4_K_M.gguf Q4_K_M
# hf download Qwen/Qwen3-0.6B --local-dir models/hf/draft/Qwen3-0.6B  # 1.2 GiB, LICENCE
# python convert_hf_to_gguf.py models/hf/draft/Qwen3-0.6B --outtype bf16 --outfile \
models/Qwen3-0.6B-BF16.gguf
set -euo pipefail
[[ ${BASH_SOURCE[0]} != */* ]] || CDPATH='' cd -- "${BASH_SOURCE[0]%/*}/"
unset "${!LLAMA_ARG_SPEC_@}"
unset "${!LLAMA_ARG_DRAFT_@}"
exec llama-server \\
  -m models/Qwen3-8B-Q4_K_M.gguf \\
  -ngl all \\
  -c 16384 \\
  -np 4 \\
  -fa on \\
  -ctk f16 \\
  -ctv f16 \\
  --fit off \\
  -md models/Qwen3-0.6B-BF16.gguf \\
  -ngld all \\
  --spec-type draft-simple \\
  --spec-draft-n-max 5 \\
  --host 127.0.0.1 \\
  --port 8080 \\
  --metrics \\
  "$@"
""".replace("LICENCE", "licence Apache-2.0 [github.com/QwenLM/Qwen3 README]")


def test_an_external_drafter() -> None:
    emission = emit(plan())
    files = {f.name: f for f in emission.files}
    assert files["launch.sh"].text == EXTERNAL_SCRIPT
    assert files["launch.sh"].executable
    record = json.loads(files["engine.json"].text)
    assert tuple(record["argv"]) == emission.launch.argv
    assert record["settings"]["--spec-draft-n-max"] == "5"
    assert record["drafter"] == {"family": "external", "id": "Qwen/Qwen3-0.6B"}
    schedule = json.loads(files["schedule.json"].text)
    assert schedule["batch_ranges"] == [[1, 4, 5]]
    assert schedule["in_config"] is False
    assert emission.launch.ready_url == "http://127.0.0.1:8080/health"


@pytest.mark.parametrize(
    ("family", "expected"),
    [
        ("eagle3", "-md models/Qwen3-8B_eagle3-BF16.gguf -ngld all --spec-type draft-eagle3 "
                   "--spec-draft-n-max 4"),
        ("mtp", "--spec-type draft-mtp --spec-draft-n-max 4"),
        ("dflash", "-md models/Qwen3-8B-DFlash-b16-BF16.gguf -ngld all --spec-type draft-dflash "
                   "--spec-draft-n-max 4"),
        ("dspark", "-md models/dspark_qwen3_8b_block7-BF16.gguf -ngld all "
                   "--spec-type draft-dspark --spec-draft-n-max 4"),
        ("ngram", "--spec-type ngram-simple --spec-ngram-simple-size-n 3 "
                  "--spec-ngram-simple-size-m 4"),
    ],
)  # fmt: skip
def test_families(family: str, expected: str) -> None:
    head = f"{COMMON} -ngl all -c 4096 -np 1 -fa on -ctk f16 -ctv f16 --fit off"
    assert line(plan(family, 4, batch=1)) == f"{head} {expected} {TAIL}"


def test_short_ngram_drafts_keep_the_lookup_shorter() -> None:
    """size-m below size-n never drafts, so D=1 looks up one token."""
    assert "size-n 1 --spec-ngram-simple-size-m 1" in line(plan("ngram", 1))


def test_off_holds_no_speculative_flag() -> None:
    for family in ("external", "ngram", "mtp"):
        off = emit(plan(family)).launch.arms["off"]
        assert not [flag for flag in off if flag.startswith(SPEC_FLAGS)]
    emission = emit(plan("external", 0))
    assert emission.launch.argv == emission.launch.arms["off"]
    assert list(emission.launch.arms) == ["off"]


def test_arms_differ_only_in_the_draft_length() -> None:
    arms = emit(plan("eagle3", 3)).launch.arms
    assert list(arms) == ["off", *(f"draft_len={d}" for d in range(1, 9))]
    two, seven = arms["draft_len=2"], arms["draft_len=7"]
    assert [(a, b) for a, b in zip(two, seven, strict=True) if a != b] == [("2", "7")]
    assert arms["draft_len=3"] == emit(plan("eagle3", 3)).launch.argv


@pytest.mark.parametrize(
    ("offload", "expected"),
    [
        (None, "-ngl all"),
        ("experts=30", "-ngl all --n-cpu-moe 30"),
        ("experts=all", "-ngl all --cpu-moe"),
        ("layers=12/36", "-ngl 25"),
        ("layers=3", r"-ngl all -ot blk\.(0|1|2)\.=CPU"),
        ("layers=all", "-ngl 0"),
        ("layers=2/36,experts=5", "-ngl 35 --n-cpu-moe 5"),
    ],
)
def test_host_memory(offload: str | None, expected: str) -> None:
    """-ngl counts the output as one more layer: 36 + 1 - 12 = 25."""
    assert f"{COMMON} {expected} -c" in line(plan(offload=offload))


@pytest.mark.parametrize("offload", ["auto", "layers=-1", "layers=1;rm", "experts="])
def test_open_or_odd_offload(offload: str) -> None:
    with pytest.raises(EngineUnsupported, match="layers=N or experts=N"):
        emit(plan(offload=offload))


def test_several_cards_share_the_layers() -> None:
    assert "-sm layer -ts 1,1,1 " in line(plan(num_gpus=3))


def test_every_slot_gets_its_context() -> None:
    """5000 tokens are rounded to 5120 = 20 * 256 for each of 3 slots."""
    assert "-c 15360 -np 3 " in line(plan(context_len=5000, batch=3))


def test_wide_verification_raises_the_batches() -> None:
    """64 slots * (1+15) = 1024 rows > 512; 256 slots: 4096 rows > 2048."""
    wide = {"max_draft_len": 15, "context_len": 1024}
    assert "-b 2048 -ub 1024 " in line(plan("dflash", 15, batch=64, **wide))
    assert "-b 4096 -ub 4096 " in line(plan("dflash", 15, batch=256, **wide))
    assert "-ub" not in line(plan("dflash", 15, batch=32, **wide))


@pytest.mark.parametrize(
    ("changes", "advice"),
    [
        ({"kv_dtype": "fp8"}, "q8_0"),
        ({"quant": "fp8"}, "--quant Q8_0"),
        ({"quant": "w4a16"}, "--quant Q4_K_M"),
        ({"family": "eagle3", "drafter_id": "org/EAGLE-Vicuna"}, "no speculative type"),
        ({"quant": "Q4_KM"}, "--quant Q4_K"),
        ({"family": "dflash", "draft_len": 9, "max_draft_len": 8}, "trained-block"),
        ({"family": "mtp", "draft_len": 4, "draft_len_step": 3}, "mtp-heads"),
    ],
)
def test_what_the_version_cannot_do(changes: dict[str, object], advice: str) -> None:
    with pytest.raises(EngineUnsupported) as caught:
        emit(plan(**changes))  # type: ignore[arg-type]
    assert advice in str(caught.value)


@pytest.mark.parametrize(
    ("quant", "name"), [("bf16", "BF16"), ("UD-Q4_K_XL", "UD-Q4_K_XL"), ("mxfp4", "MXFP4_MOE")]
)
def test_weight_types(quant: str, name: str) -> None:
    assert f"-m models/Qwen3-8B-{name}.gguf" in line(plan(quant=quant))


def test_a_native_format_is_said_to_change() -> None:
    emission = emit(plan("ngram", 3, quant="fp8_block"))
    assert emission.launch.argv[2] == "models/Qwen3-8B-Q8_0.gguf"
    assert "the plan counts on fp8_block, which a GGUF holds as Q8_0" in emission.notes


def test_a_drafter_is_optional_where_off_won() -> None:
    off = build.evaluation("none", 0, quant="Q4_K_M")
    both = build.plan(off, best_drafted=build.evaluation("eagle3", 3), engine="llama.cpp")
    drafts = [note for note in emit(both).notes if "eagle3" in note]
    assert drafts
    assert all(note.startswith("only for the arms with a drafter: ") for note in drafts)


def test_a_local_gguf_is_used_as_it_is(tmp_path: Path) -> None:
    gguf = tmp_path / "my model.gguf"
    gguf.write_bytes(b"GGUF")
    emission = emit(plan("ngram", 5, model_source=str(gguf), quant="odd"))
    assert emission.launch.argv[2] == str(gguf)
    assert not [note for note in emission.notes if "convert" in note or "hf download" in note]


def test_trained_drafters_are_converted_with_the_target() -> None:
    notes = "\n".join(emit(plan("eagle3", 3)).notes)
    assert "--target-model-dir models/hf/Qwen3-8B " in notes
    assert "--target-model-dir" not in "\n".join(emit(plan("external", 3)).notes)


@pytest.mark.parametrize(
    ("family", "says"),
    [("external", "takes the pair"), ("dspark", "documents draft models only, not dspark")],
)
def test_other_front_ends_are_named_where_a_drafter_runs(family: str, says: str) -> None:
    (note,) = [n for n in emit(plan(family, 3)).notes if "LM Studio" in n]
    assert says in note
    assert "Ollama" in note
    assert not [n for n in emit(plan("none", 0)).notes if "LM Studio" in n]
    inside = emit(plan("dspark", 3, drafter_id="org/M (in-checkpoint)"))
    assert "-md models/Qwen3-8B-dspark-BF16.gguf" in " ".join(inside.launch.argv)


def test_draft_and_target_files_never_collide() -> None:
    argv = emit(plan("external", 3, drafter_id="other/Qwen3-8B", quant="bf16")).launch.argv
    assert argv[argv.index("-m") + 1] != argv[argv.index("-md") + 1]


def test_gguf_repositories_are_not_converted() -> None:
    wanted = plan("dflash", 5, drafter_id="Lucebox/Qwen3.6-27B-DFlash-GGUF")
    emission = emit(wanted)
    assert "-md models/Qwen3.6-27B-DFlash-BF16.gguf" in " ".join(emission.launch.argv)
    fetch = "hf download Lucebox/Qwen3.6-27B-DFlash-GGUF --include '*.gguf' --local-dir models"
    assert fetch in emission.notes
    assert any("adapt the file names" in note for note in emission.notes)


def test_a_drafter_in_a_folder_of_the_target() -> None:
    folder = "(dflash/ sub-folder of the target checkpoint)"
    notes = "\n".join(emit(plan("dflash", 5, drafter_id=folder)).notes)
    assert "convert_hf_to_gguf.py models/hf/Qwen3-8B/dflash --target-model-dir" in notes


def test_parallel_drafters_are_refused() -> None:
    for family, name in (("external", "amd/PARD-Qwen3-0.6B"), ("eagle3", "org/x.peagle")):
        best = build.evaluation(family, 4, quant="Q4_K_M", drafter_id=name)
        with pytest.raises(EngineUnsupported, match="--engine vllm"):
            LlamacppEmitter().emit(build.plan(best))
