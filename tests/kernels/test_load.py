"""A build folder: what is checked before anything is launched, with a stand-in for the card."""

import errno
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

import spec_kernels
from autotune.build.folder import finished, write_build
from planner.errors import InputError, OutsideFailure
from spec_kernels.driver import packed
from spec_kernels.errors import BuildMismatch, UnsupportedShape
from spec_kernels.manifest import BuildManifest, read_manifest, source_sha256
from spec_kernels.verify_attention.spec import VerifySpec


class FakeCard:
    """Remembers what it was asked to do."""

    def __init__(self, capability: int = 89) -> None:
        self.launched: list[tuple[Any, ...]] = []
        self._capability = capability

    def capability(self) -> int:
        return self._capability

    def load(self, cubin: bytes, entry: str, smem_bytes: int) -> Any:
        return cubin, entry, smem_bytes

    def launch(self, function: Any, grid: Any, block: Any, values: Any) -> None:
        self.launched.append((function, grid, block, [one.value for one in values]))


def kernel(role: str, block_m: int, parameters: tuple[str, ...]) -> dict[str, Any]:
    name = f"{role}{block_m}"
    content = name.encode()
    return {
        "role": role,
        "entry": "merge" if role == "merge" else "attend",
        "cubin": {"name": f"{name}.cubin", "sha256": hashlib.sha256(content).hexdigest()},
        "ptx": {"name": f"{name}.ptx", "sha256": hashlib.sha256(content).hexdigest()},
        "shape": {"head_dim": 64, "page_size": 16, "dtype": "fp16"},
        "tile": {"block_m": block_m, "block_n": 64, "num_warps": 4, "num_stages": 2},
        "parameters": parameters,
        "usage": {
            "registers": 80,
            "spill_bytes": 0,
            "smem_bytes": 2048,
            "blocks_per_sm": 2,
            "matrix_instruction": "mma.m16n8",
        },
        "query_rows": block_m,
        "static_us": 1.0,
    }


def manifest(**changes: Any) -> BuildManifest:
    kernels = [kernel("verify", 64, ("u64",)), kernel("decode", 16, ("u64",))]
    record = {
        "key": "k",
        "statement": "compiled for sm_89",
        "source_sha256": source_sha256(),
        "target": {"capability": 89, "gpu": "nvidia-rtx-4090", "sm_count": 128},
        "problem": {
            "model": "m",
            "draft_len": 7,
            "batch": 1,
            "context_len": 4096,
            "kv_dtype": "fp16",
        },
        "kernels": [*kernels, kernel("merge", 16, ("u64", "u32", "u64", "u64"))],
        "search": {"ranking": "static", "space": 1, "compiled": 1, "pruned": 0, "refused": {}},
        "validation": {
            "ran_on": "interpreter",
            "cases": 1,
            "passed": True,
            "worst_ratio": 1.0,
            "max_abs_error": 0.0,
            "max_lse_error": 0.0,
            "torch": "2",
            "triton": "3",
        },
        "versions": {"triton": "3.9.0", "spec_kernels": "0", "python": "3", "fp_fusion": "1"},
    }
    return BuildManifest.model_validate({**record, **changes})


@pytest.fixture(autouse=True)
def _same_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spec_kernels.loader.version", lambda _: "3.9.0+git")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return written(tmp_path / "kernels", manifest())


def written(folder: Path, record: BuildManifest) -> Path:
    names = [file.name for one in record.kernels for file in (one.cubin, one.ptx)]
    write_build(folder, record, {name: name.split(".")[0].encode() for name in names})
    return folder


def test_a_whole_build_loads(folder: Path) -> None:
    build = spec_kernels.load(folder, driver=FakeCard())
    assert build.manifest == manifest()
    spec = VerifySpec(64, 16, "fp16")
    assert [build.kernel_for(spec, rows).tile.block_m for rows in (1, 16, 17, 64, 200)] == [
        16, 16, 64, 64, 64,
    ]  # fmt: skip


def test_arguments_reach_the_card_in_order(folder: Path) -> None:
    card = FakeCard()
    build = spec_kernels.load(folder, driver=card)
    build.merge(VerifySpec(64, 16, "fp16"), (5, 8), [2**40, 7])
    function, grid, block, values = card.launched[0]
    assert function == (b"merge16", "merge", 2048)
    assert grid == (5, 8, 1)
    assert block == (128, 2048)
    assert values == [2**40, 7, 0, 0]


def test_another_shape_is_refused(folder: Path) -> None:
    build = spec_kernels.load(folder, driver=FakeCard())
    with pytest.raises(UnsupportedShape, match="no kernel was built for"):
        build.kernel_for(VerifySpec(128, 16, "fp16"), 16)


def test_another_card_is_refused(folder: Path) -> None:
    with pytest.raises(BuildMismatch, match="for sm_89 and this card is sm_120"):
        spec_kernels.load(folder, driver=FakeCard(120))


def test_a_damaged_cubin_is_refused(folder: Path) -> None:
    (folder / "verify64.cubin").write_bytes(b"verify65")
    assert finished(folder, "k") is None
    with pytest.raises(BuildMismatch, match=r"verify64\.cubin is damaged"):
        spec_kernels.load(folder, driver=FakeCard())


def test_a_missing_file_is_refused(folder: Path) -> None:
    (folder / "merge16.cubin").unlink()
    with pytest.raises(BuildMismatch, match=r"merge16\.cubin is missing"):
        spec_kernels.load(folder, driver=FakeCard())


def test_other_versions_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spec_kernels.loader.version", lambda _: "3.6.0")
    with pytest.raises(BuildMismatch, match=r"Triton 3\.9\.0 and 3\.6\.0 is installed"):
        spec_kernels.load(folder, driver=FakeCard())


def test_other_sources_are_refused(tmp_path: Path) -> None:
    other = written(tmp_path / "other", manifest(source_sha256="0" * 64))
    with pytest.raises(BuildMismatch, match="other kernel sources"):
        spec_kernels.load(other, driver=FakeCard())


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"schema_version": 2}', "\x00"])
def test_a_manifest_that_is_none_is_refused(folder: Path, text: str) -> None:
    (folder / "manifest.json").write_text(text)
    with pytest.raises(BuildMismatch, match=r"manifest\.json"):
        read_manifest(folder)


def test_a_file_name_cannot_leave_the_folder(folder: Path) -> None:
    record = json.loads((folder / "manifest.json").read_text())
    record["kernels"][0]["cubin"]["name"] = "../verify64.cubin"
    (folder / "manifest.json").write_text(json.dumps(record))
    with pytest.raises(BuildMismatch, match=r"kernels\.0\.cubin\.name"):
        read_manifest(folder)


def test_a_folder_that_is_no_build_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "photo.jpg").write_bytes(b"")
    with pytest.raises(InputError, match=r"photo\.jpg"):
        written(tmp_path, manifest())
    assert [entry.name for entry in tmp_path.iterdir()] == ["photo.jpg"]


def test_parameters_of_another_version_are_refused() -> None:
    assert [one.value for one in packed(("u64", "f32", "u64"), (1, 0.5))] == [1, 0.5, 0]
    with pytest.raises(BuildMismatch, match="takes 1 parameters and 2 are given"):
        packed(("u64",), (1, 2))
    with pytest.raises(BuildMismatch, match="takes 2 parameters and 1 are given"):
        packed(("u64", "u32"), (1,))
    with pytest.raises(BuildMismatch, match="b8 are not known"):
        packed(("b8",), (1,))


@pytest.mark.parametrize("mine", ["notes.md", "model.safetensors"])
def test_a_folder_that_holds_more_than_a_build_is_left_alone(tmp_path: Path, mine: str) -> None:
    """Other programs call their files manifest.json too."""
    (tmp_path / "manifest.json").write_text("{}")
    (tmp_path / mine).write_text("mine")
    with pytest.raises(InputError, match=mine):
        written(tmp_path, manifest())
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(["manifest.json", mine])


def test_a_new_build_takes_the_place_of_an_earlier_one(folder: Path) -> None:
    (folder / "left.over.cubin").write_bytes(b"x")
    written(folder, manifest())
    assert finished(folder, manifest().key) is not None
    assert not (folder / "left.over.cubin").exists()
    assert [p.name for p in folder.parent.iterdir()] == [folder.name]


def test_a_disk_that_is_full_leaves_the_earlier_build(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OutsideFailure, match="No space left"):
        write_build(folder, manifest(), {"a.cubin": b"x"})
    assert finished(folder, manifest().key) is not None
    assert [p.name for p in folder.parent.iterdir()] == [folder.name]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="POSIX")
def test_a_pipe_in_the_place_of_a_kernel_is_no_build(folder: Path) -> None:
    name = manifest().kernels[0].cubin.name
    (folder / name).unlink()
    os.mkfifo(folder / name)
    assert finished(folder, manifest().key) is None
