"""Build folders: the cache by content, the check of a hit, and writing one whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
import sys
from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from autotune.build.request import BuildRequest
from planner.emit.swap import exchanged, locked
from planner.errors import InputError, OutsideFailure
from spec_kernels.aot import FP_FUSION
from spec_kernels.errors import BuildMismatch
from spec_kernels.manifest import (
    MANIFEST_FILE,
    BuildManifest,
    Versions,
    read_checked,
    read_manifest,
    source_sha256,
)

_OURS = re.compile(rf"{re.escape(MANIFEST_FILE)}|.+\.(?:cubin|ptx)")
"""Names of the files of a build."""
BUILD_FORM = 2
"""Rises when the builder itself changes what it would choose."""


def versions() -> Versions:
    """What would make the build, found without importing it.

    Raises:
        InputError: Triton is not installed.
    """
    try:
        triton = version("triton")
    except PackageNotFoundError as missing:
        raise InputError(
            "`planner build` needs Triton, which is not installed; "
            "pip install 'specplanner[kernels]'"
        ) from missing
    return Versions(
        triton=triton,
        spec_kernels=version("specplanner") if _installed("specplanner") else "source",
        python=".".join(map(str, sys.version_info[:2])),
        fp_fusion=FP_FUSION,
    )


def _installed(package: str) -> bool:
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


def build_key(
    request: BuildRequest, made_by: Versions, *, trials: int | None, timed: bool = False
) -> str:
    """Hash of everything that decides the result."""
    device = request.device
    facts = {
        "form": BUILD_FORM,
        "source": source_sha256(),
        "versions": made_by.model_dump(exclude={"python", "spec_kernels"}),
        "layers": [asdict(one) for one in request.layers],
        "target": [request.capability, device.id, device.sm_count, device.dram_bytes_per_s],
        "rates": sorted(device.flops.items()),
        "work": [request.draft_len, request.batch, request.context_len, request.kv_dtype],
        "trials": trials,
        "timed": timed,
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:24]


def cache_folder() -> Path:
    """Where builds are kept: $SPECPLANNER_CACHE, else the user's cache directory."""
    stated = os.environ.get("SPECPLANNER_CACHE")
    if stated:
        return Path(stated) / "kernels"
    base = os.environ.get("XDG_CACHE_HOME")
    root = Path(base) if base else Path.home() / ".cache"
    return root / "specplanner" / "kernels"


def finished(folder: Path, key: str) -> BuildManifest | None:
    """The manifest of a whole and undamaged build of that key; None where there is none."""
    try:
        manifest = read_manifest(folder)
        for kernel in manifest.kernels:
            read_checked(folder, kernel.cubin)
            read_checked(folder, kernel.ptx)
    except BuildMismatch:
        return None
    return manifest if manifest.key == key else None


def write_build(folder: Path, manifest: BuildManifest, files: Mapping[str, bytes]) -> None:
    """Write a build folder whole or not at all; an earlier build there is replaced.

    Raises:
        InputError: the folder holds something that is not a build.
        OutsideFailure: the disk refused.
    """
    folder = folder.resolve()
    fresh = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.new")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with locked(folder.parent):
            _must_be_ours(folder)
            fresh.mkdir()
            for name, content in files.items():
                (fresh / name).write_bytes(content)
            text = manifest.model_dump_json(indent=1) + "\n"
            (fresh / MANIFEST_FILE).write_text(text, encoding="utf-8")
            if not folder.exists() or not exchanged(fresh, folder):
                shutil.rmtree(folder, ignore_errors=True)
                fresh.rename(folder)
    except OSError as error:
        raise OutsideFailure(
            f"could not write {str(folder)!r}: {error}; check the path and the free space"
        ) from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def copy_build(source: Path, target: Path) -> None:
    """Copy a build out of the cache.

    Raises:
        InputError: the target holds something that is not a build.
        OutsideFailure: the disk refused.
    """
    manifest = read_manifest(source)
    names = [file.name for one in manifest.kernels for file in (one.cubin, one.ptx)]
    write_build(target, manifest, {name: (source / name).read_bytes() for name in names})


def _must_be_ours(folder: Path) -> None:
    if not folder.exists():
        return
    if not folder.is_dir():
        raise InputError(f"{str(folder)!r} is a file; a build needs a folder: give another --out")
    strange = sorted(entry.name for entry in folder.iterdir() if not _OURS.fullmatch(entry.name))
    if strange:
        raise InputError(
            f"{str(folder)!r} holds {strange[0]!r}, which no build writes and a new build would "
            "remove; give an empty or new folder with --out"
        )
